"""scikit-learn's decorators of methods, with the types of the methods they decorate.

Callbacks are those of scikit-learn 1.9; with an older version there are none.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.utils.metaestimators import available_if

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for the mixin that scikit-learn does not have yet."""

    def _with_callbacks(method: Any) -> Any:
        return method


__all__ = ["CallbackSupportMixin", "available_where", "with_callbacks"]

Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(method: Method) -> Method:
    """Return a ``fit`` that calls the callbacks of its estimator when it begins and ends."""
    decorated: Method = _with_callbacks(method)
    return decorated


def available_where(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """Return a decorator of methods that exist only where ``check(estimator)`` is true."""
    decorator: Callable[[Method], Method] = available_if(check)
    return decorator
