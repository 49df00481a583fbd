"""A kernel is an immutable value that measures the similarity of rows.

``k(x, y) = <phi(x), phi(y)>`` for some map ``phi`` into a Hilbert space; equivalently every Gram
matrix ``K_ij = k(x_i, x_j)`` is symmetric positive semi-definite (Lampert, *Kernel Methods in
Computer Vision*, chapter 2). Kernels that break this law say so by ``psd = False`` and warn.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp
from sklearn import get_config

from hilbin._arrays import Array, Matrix, check_pair, check_rows
from hilbin.kernels.bandwidth import is_rule


class NotPositiveDefiniteWarning(UserWarning):
    """The kernel is not positive definite: solvers that count on it may misbehave."""


class Kernel:
    """Base of all kernels.

    A subclass is a frozen dataclass whose fields are its parameters. It computes ``_gram(X, Y,
    n_jobs)`` (``Y`` is None for the symmetric matrix) and ``_diag(X)`` on rows that are already
    checked; everything else follows.

    Attributes
    ----------
    psd : bool
        Whether every Gram matrix is positive semi-definite.
    compact : bool
        Whether the kernel vanishes beyond some distance; ``gram`` and ``tiles`` are then CSR.
    nonnegative : bool
        Whether the kernel is defined for non-negative values only.
    """

    psd: bool = True
    compact: bool = False
    nonnegative: bool = False

    # what a subclass computes
    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Any:
        raise NotImplementedError

    def _diag(self, X: Matrix) -> Array:
        raise NotImplementedError

    def _against(self, Y: Matrix, n_jobs: int | None) -> Callable[[Matrix], Any]:
        """``X -> _gram(X, Y)``; what belongs to ``Y`` alone may be computed once."""
        return lambda X: self._gram(X, Y, n_jobs)

    def _resolve(self, X: Matrix, random_state: Any) -> Self:
        return self

    def _require_resolved(self) -> None:
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, Kernel):
                value._require_resolved()
            elif is_rule(value):
                raise ValueError(
                    f"{name}={value!r} of {self!r} is a rule, not a number: "
                    "take kernel.resolve(X), with X the training rows"
                )

    # what everyone uses
    def gram(self, X: object, Y: object | None = None, *, n_jobs: int | None = None) -> Any:
        """Gram matrix ``K_ij = k(x_i, y_j)``.

        Parameters
        ----------
        X, Y : array-like or CSR of shape (n, d) and (m, d)
            ``Y=None`` means ``X``: the matrix is symmetric and half the work is saved.
        n_jobs : int, optional
            Threads, as in joblib.

        Returns
        -------
        K : ndarray of shape (n, m), or CSR for a kernel of compact support
            float32 if the data is float32, else float64.
        """
        self._require_resolved()
        return self._gram(*check_pair(X, Y, nonnegative=self._demand()), n_jobs)

    def diag(self, X: object) -> Array:
        """``k(x_i, x_i)`` for every row, in float64."""
        self._require_resolved()
        return self._diag(check_rows(X, "X", nonnegative=self._demand()))

    def tiles(
        self,
        X: object,
        Y: object | None = None,
        *,
        memory: float | None = None,
        n_jobs: int | None = None,
    ) -> Iterator[tuple[slice, Any]]:
        """Gram matrix in bands of rows, for one that does not fit in memory.

        Parameters
        ----------
        X, Y : as in :meth:`gram`
        memory : float, optional
            MiB for one band; scikit-learn's ``working_memory`` setting by default.
        n_jobs : int, optional
            Threads, as in joblib.

        Yields
        ------
        rows, K[rows] : slice and matrix
            In order; together the whole matrix.
        """
        self._require_resolved()
        budget = 2**20 * (get_config()["working_memory"] if memory is None else memory)
        if not budget > 0:
            raise ValueError(f"memory must be a number of MiB > 0, got {memory!r}")
        x, y = check_pair(X, Y, nonnegative=self._demand())
        y = x if y is None else y
        height = max(1, int(budget // (y.dtype.itemsize * max(1, y.shape[0]))))
        return (
            (slice(i, min(i + height, x.shape[0])), self._gram(x[i : i + height], y, n_jobs))
            for i in range(0, x.shape[0], height)
        )

    def lazy(
        self,
        X: object,
        Y: object | None = None,
        *,
        memory: float | None = None,
        n_jobs: int | None = None,
    ) -> Any:
        """Gram matrix as a SciPy ``LinearOperator``: products, never the matrix.

        Each product computes the matrix band by band (see :meth:`tiles`) and forgets it.
        """
        from hilbin.kernels._lazy import LazyGram

        self._require_resolved()
        x, y = check_pair(X, Y, nonnegative=self._demand())
        return LazyGram(self, x, x if y is None else y, memory, n_jobs)

    def __call__(self, X: object, Y: object | None = None) -> Any:
        """Dense Gram matrix, or the number ``k(x, y)`` for two vectors.

        This is the form scikit-learn takes: ``SVC(kernel=k)``. Threads come from
        ``joblib.parallel_config``.
        """
        if not sp.issparse(X) and np.ndim(X) == 1:  # type: ignore[arg-type]
            y = X if Y is None else Y
            return float(dense(self.gram(np.atleast_2d(X), np.atleast_2d(y)))[0, 0])  # type: ignore[call-overload]
        return dense(self.gram(X, Y))

    def resolve(self, X: object, random_state: Any = None) -> Self:
        """The same kernel with every rule (``gamma="median"``) replaced by its number on ``X``.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)
            Rows, usually the training set; at most 2000 are sampled.
        random_state : int, RandomState or None
            Chooses the sample.
        """
        return self._resolve(check_rows(X, "X", nonnegative=self._demand()), random_state)

    # parameters
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with ``deep``, those of inner kernels as ``kernel__name``."""
        if not is_dataclass(type(self)):
            raise TypeError(
                f"{type(self).__name__} is not a dataclass: "
                "put @dataclass(frozen=True, repr=False) above its definition"
            )
        params = {f.name: getattr(self, f.name) for f in fields(cast(Any, self))}
        if deep:
            for name, value in list(params.items()):
                if isinstance(value, Kernel):
                    params |= {f"{name}__{k}": v for k, v in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Refused: a kernel is a value. Use :meth:`replace`, or search over whole kernels."""
        if not params:
            return self
        raise TypeError(
            f"{type(self).__name__} is immutable; make another one, kernel.replace(...), or give a "
            "search whole kernels: {'kernel': [Exponential(Chi2(), g) for g in (0.5, 1, 2)]}"
        )

    def replace(self, **params: Any) -> Self:
        """A copy with other parameters."""
        return cast(Self, replace(cast(Any, self), **params))

    def __add__(self, other: "Kernel") -> "Kernel":
        from hilbin.kernels.combine import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: "Kernel | float") -> "Kernel":
        from hilbin.kernels.combine import Product
        from hilbin.kernels.wrap import Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other) if isinstance(other, (int, float)) else NotImplemented

    __rmul__ = __mul__

    def __repr__(self) -> str:
        shown = []
        for f in fields(cast(Any, self)):
            value = getattr(self, f.name)
            if isinstance(value, Kernel):
                shown.append(repr(value))
            elif f.default is MISSING or value != f.default:
                shown.append(f"{f.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def _demand(self) -> str | None:
        return type(self).__name__ if self.nonnegative else None


def dense(K: Any) -> Array:
    """``K`` as an array, whatever form it has."""
    return K.toarray() if sp.issparse(K) else K


def warn_not_psd(kernel: Kernel, reason: str) -> None:
    """Warn, at the line that made the kernel, that it is not positive definite."""
    warnings.warn(
        f"{type(kernel).__name__} is not positive definite: {reason}",
        NotPositiveDefiniteWarning,
        stacklevel=4,
    )


def require_positive(kernel: Kernel, name: str) -> None:
    """Raise unless the parameter is a number > 0."""
    value = getattr(kernel, name)
    if not (isinstance(value, (int, float, np.number)) and 0 < value < math.inf):
        raise ValueError(f"{name} of {type(kernel).__name__} must be a number > 0, got {value!r}")
