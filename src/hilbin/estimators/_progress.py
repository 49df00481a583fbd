"""Long fits: callback, time limits and interruption, decided between sweeps.

A :class:`Watch` is asked after every sweep of every problem of a fit whether to go on. It prints,
calls scikit-learn's callbacks where the installed version has them, and says no once the time is
up, a callback wants to stop, or the user has pressed Ctrl-C.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hilbin import parallel

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        """The method as it is."""
        return method


Callback = Callable[[int, float], bool]

__all__ = ["CallbackSupportMixin", "Watch", "with_callbacks"]


class Watch:
    """Decides whether the problems of one fit go on.

    Parameters
    ----------
    estimator : estimator
        Whose ``verbose``, ``max_time``, ``max_iter`` and callbacks count.
    X, y : arrays
        What callbacks are told the estimator is fitted to.
    problems : int
        How many problems are solved, one after the other or side by side.
    says : str
        What to print after every sweep, of their number and what the solver measures.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        problems: int,
        says: str = "sweep {}: gradients spread over {:.3g}",
    ):
        self.estimator, self.says = estimator, says
        self.reason = ""
        self.interrupted = False
        self._begin = time.monotonic()
        self._lock = threading.Lock()
        self._data = {"X": X, "y": y}
        self._context: Any = None
        self._parts: dict[int, Any] = {}
        if getattr(estimator, "_skl_callbacks", None):
            self._context = estimator._init_callback_context(
                max_subtasks=problems, sequential_subtasks=False
            )
            self._context.call_on_fit_task_begin(estimator=estimator, **self._data)

    def interrupt(self) -> None:
        """Stop everything after the sweeps that are running."""
        self.interrupted = True
        self.reason = "the fit was interrupted"

    def finish(self) -> None:
        """Tell the callbacks that all is done."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self.estimator, **self._data)

    @contextmanager
    def problem(self, number: int, name: str) -> Iterator[Callback]:
        """What the solver of one problem asks after every sweep."""
        part = None
        if self._context is not None:
            with self._lock:
                part = self._parts.get(number)
                if part is None:
                    part = self._context.subcontext(name, task_id=number, max_subtasks=None)
                    self._parts[number] = part
                    part.call_on_fit_task_begin(estimator=self.estimator, **self._data)

        def callback(sweeps: int, spread: float) -> bool:
            if sweeps < 0:
                self.interrupt()
                return False
            if part is not None:
                self._call_back(part)
            if self.estimator.verbose > 1:
                print(f"[{name}] {self.says.format(sweeps, spread)}")
            limit = self.estimator.max_time
            if limit is not None and time.monotonic() - self._begin > limit:
                self.reason = self.reason or f"max_time={limit} seconds are over"
            return not self.reason

        yield callback
        if part is not None:
            with self._lock:
                part.call_on_fit_task_end(estimator=self.estimator, **self._data)

    def solve(
        self,
        task: Callable[[int, Callable[[int, float], bool]], Any],
        names: list[str],
        n_jobs: Any,
    ) -> list[Any]:
        """``task(k, callback)`` of every problem ``k``, side by side, and tell the callbacks.

        After an interrupt, problems that have not begun are solved as far as one sweep takes them.
        """
        results: dict[int, Any] = {}

        def run(k: int, _: int) -> None:
            with self.problem(k, names[k]) as callback:
                results[k] = task(k, callback)

        parts = parallel.ranges(len(names), 1)
        try:
            parallel.run(run, parts, n_jobs, cancel=self.interrupt)
        except KeyboardInterrupt:
            self.interrupt()
            parallel.run(run, [part for part in parts if part[0] not in results], n_jobs)
        self.finish()
        return [results[k] for k in range(len(names))]

    def _call_back(self, part: Any) -> None:
        with self._lock:
            sweep = part.subcontext("sweep")
            sweep.call_on_fit_task_begin(estimator=self.estimator, **self._data)
            if sweep.call_on_fit_task_end(estimator=self.estimator, **self._data):
                self.reason = self.reason or "a callback asked to stop"
