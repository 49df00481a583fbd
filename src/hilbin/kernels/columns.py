"""A kernel on some of the columns: one descriptor among several.

Rows often hold several descriptions of the same thing side by side: words, colors, shapes. With
``OnColumns(kernel, columns)`` each has a kernel of its own, and sums and products of these are
kernels as all others are::

    OnColumns(Chi2(), slice(0, 300)) + OnColumns(Gaussian("median"), slice(300, 320))

Two kernels may look at the same columns. Rules such as ``gamma="median"`` see the columns alone,
and so does the demand for values >= 0.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, Matrix, require_nonnegative
from hilbin.kernels.base import Kernel
from hilbin.kernels.wrap import WrapperKernel


@dataclass(frozen=True, repr=False)
class OnColumns(WrapperKernel):
    r"""A kernel on some columns, :math:`K(x, y) = k(x_S, y_S)` with :math:`S` the columns.

    A slice of dense rows is not copied. With an additive kernel inside,
    :class:`~hilbin.maps.AdditiveMap` and :class:`~hilbin.maps.SparseMap` have features for these
    columns alone.

    Parameters
    ----------
    kernel : Kernel
        The kernel of the columns.
    columns : slice, list of int or list of str
        Which columns. Numbers below 0 count from the end. Names are those of a data frame:
        ``gram`` looks them up in ``X``, and estimators in the ``X`` of ``fit``.

    Examples
    --------
    >>> from hilbin.kernels import Chi2, Linear, OnColumns
    >>> both = OnColumns(Chi2(), slice(0, 2)) + OnColumns(Linear(), [2])
    >>> both.gram([[1, 3, -2]])
    array([[8.]])
    """

    kernel: Kernel
    columns: Any
    nonnegative = False  # only of the columns, which _taken looks at

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel of OnColumns must be a kernel, got {self.kernel!r}")
        if isinstance(self.columns, slice):
            _require_whole_ends(self.columns)
            return
        columns = _listed(self.columns)
        if columns is not self.columns:  # a clone must keep the very same object
            object.__setattr__(self, "columns", columns)

    def __hash__(self) -> int:
        columns = self.columns
        if isinstance(columns, slice):  # which has no hash before Python 3.12
            columns = (columns.start, columns.stop, columns.step)
        return hash((type(self), self.kernel, columns))

    @property
    def _has_names(self) -> bool:
        own = not isinstance(self.columns, slice) and isinstance(self.columns[0], str)
        return own or super()._has_names

    def _with_names(self, names: Sequence[str] | None) -> Self:
        if names is None or not self._has_names:
            return self
        if not isinstance(self.columns[0], str):
            raise ValueError(f"{self.kernel!r} names columns, but is itself inside OnColumns")
        places = {str(name): j for j, name in enumerate(names)}
        missing = [name for name in self.columns if name not in places]
        if missing:
            raise ValueError(
                f"columns of OnColumns has {missing[0]!r}, which is not among the {len(places)} "
                "columns of X"
            )
        return self.replace(columns=tuple(places[name] for name in self.columns))

    def numbers(self, n_columns: int) -> Array:
        """Return the numbers of the columns, of so many.

        Parameters
        ----------
        n_columns : int
            The number of columns of ``X``.

        Returns
        -------
        numbers : ndarray of int
        """
        if self._has_names:
            raise ValueError(
                f"columns of OnColumns are names, {list(self.columns)}, but X has none: "
                "give a data frame, or numbers"
            )
        columns = self.columns
        given = columns if not isinstance(columns, slice) else _ends(columns)
        outside = [j for j in given if not -n_columns <= j < n_columns]
        if outside:
            raise ValueError(
                f"columns of OnColumns has column {outside[0]}, but X has {n_columns} columns"
            )
        taken: Array = np.arange(n_columns)[columns if isinstance(columns, slice) else [*columns]]
        if not taken.size:
            raise ValueError(f"columns of OnColumns, {columns}, is none of the {n_columns} of X")
        return taken

    def _taken(self, X: Matrix) -> Matrix:
        """Return the columns of checked rows, a view of dense ones if they follow each other."""
        numbers = self.numbers(X.shape[1])
        if (np.diff(numbers) == 1).all():
            rows = X[:, numbers[0] : numbers[-1] + 1]
        else:
            rows = X[:, numbers]
            if sp.issparse(rows):
                rows.sum_duplicates()  # sorts the columns of a row, as the compiled core needs them
        if self.kernel.nonnegative:
            require_nonnegative(rows, "X", type(self.kernel).__name__, numbers)
        return rows

    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Any:
        return self.kernel._gram(self._taken(X), None if Y is None else self._taken(Y), n_jobs)

    def _against(self, Y: Matrix, n_jobs: int | None) -> Callable[[Matrix], Any]:
        inner = self.kernel._against(self._taken(Y), n_jobs)
        return lambda X: inner(self._taken(X))

    def _diag(self, X: Matrix) -> Array:
        return self.kernel._diag(self._taken(X))

    def _resolve(self, X: Matrix, random_state: Any) -> Self:
        return self.replace(kernel=self.kernel._resolve(self._taken(X), random_state))


def _listed(columns: Any) -> tuple[int, ...] | tuple[str, ...]:
    """Return numbers or names of columns as a tuple."""
    listed = isinstance(columns, Iterable) and not isinstance(columns, str | dict | set)
    given = tuple(columns) if listed else ()  # a tuple is itself
    names = all(isinstance(column, str) for column in given)
    if not given or not (names or all(map(_is_whole, given))):
        raise ValueError(
            "columns of OnColumns must be a slice, a list of numbers or a list of names, and not "
            f"empty; got {columns!r}"
        )
    column, times = Counter(given).most_common(1)[0]
    if times > 1:
        raise ValueError(f"columns of OnColumns has {column!r} {times} times")
    kind: Any = str if names else int
    return given if all(type(c) is kind for c in given) else tuple(map(kind, given))


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _require_whole_ends(columns: slice) -> None:
    ends = (columns.start, columns.stop, columns.step)
    if not all(end is None or _is_whole(end) for end in ends) or columns.step == 0:
        raise ValueError(f"columns of OnColumns must be a slice of whole numbers, got {columns}")


def _ends(columns: slice) -> list[int]:
    """Return the first and the last column that a slice names; NumPy would clip them silently."""
    start, stop, step = columns.start, columns.stop, columns.step
    inside = [] if stop is None else [stop - 1 if (step or 1) > 0 and stop > 0 else stop]
    return inside if start is None else [start, *inside]
