"""What several parts need of one image is computed once: its gray values, its SIFT descriptors.

The parts know nothing of each other. Inside :func:`sharing`, :func:`once` returns what it has
returned before for the same image and key; outside, and for other images, it computes.
"""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Shared(threading.local):
    image: Any = None
    results: dict[Hashable, Any] | None = None


_shared = _Shared()


@contextmanager
def sharing(image: Any) -> Iterator[None]:
    """Keep what :func:`once` makes of this image, in this thread, until the block ends.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images._once import once, sharing
    >>> image, calls = np.zeros((4, 4), np.uint8), []
    >>> with sharing(image):
    ...     _ = [once(image, "mean", lambda: calls.append(1)) for _ in range(3)]
    >>> len(calls)
    1
    """
    before = _shared.image, _shared.results
    _shared.image, _shared.results = image, {}
    try:
        yield
    finally:
        _shared.image, _shared.results = before


def once(image: Any, key: Hashable, make: Callable[[], Result]) -> Result:
    """Return ``make()``, or what it returned for this image and key before, unchanged."""
    if image is not _shared.image or _shared.results is None:
        return make()
    if key not in _shared.results:
        _shared.results[key] = make()
    found: Result = _shared.results[key]
    return found
