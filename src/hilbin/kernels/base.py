"""A kernel is an immutable value that measures the similarity of rows.

``k(x, y) = <phi(x), phi(y)>`` for some map ``phi`` into a Hilbert space; equivalently every Gram
matrix ``K_ij = k(x_i, x_j)`` is symmetric positive semi-definite (Lampert, *Kernel Methods in
Computer Vision*, chapter 2). Kernels that break this law say so by ``psd = False`` and warn.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator
from sklearn import get_config
from sklearn.utils.validation import _get_feature_names

from hilbin import _parameters
from hilbin._arrays import Array, Matrix, check_pair, check_rows, to_dense
from hilbin.kernels.bandwidth import Sparsity, is_rule
from hilbin.kernels.pairwise import Op
from hilbin.parallel import ranges

LEAST_OTHERS = 0.1  # sum of a row's other entries, in units of its own, below which a matrix warns
LEAST_ROWS = 20  # fewer rows say little about a kernel
SAMPLE_ROWS = 200  # rows whose sums are looked at
BLOCK = 2048  # rows and columns that are computed together where the matrix is rounded


class NotPositiveDefiniteWarning(UserWarning):
    """The kernel is not positive definite; solvers that rely on it may misbehave."""


class Kernel:
    """The base class of all kernels.

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
    _exponential: bool = False  # whether it is exp(-gamma d), d what _distances computes

    # What a subclass computes, of rows that are checked.
    def _gram(self, X: Matrix, Y: Matrix | None, n_jobs: int | None) -> Any:
        raise NotImplementedError

    def _diag(self, X: Matrix) -> Array:
        raise NotImplementedError

    def _gram_into(self, X: Matrix, Y: Matrix | None, n_jobs: int | None, out: Array) -> None:
        """Write ``_gram(X, Y, n_jobs)`` to an array, without another one where that is easy."""
        np.copyto(out, to_dense(self._gram(X, Y, n_jobs)), casting="same_kind")

    def _gram_as(self, X: Matrix, dtype: Any, n_jobs: int | None) -> Array:
        """Return the symmetric matrix in another dtype, each value computed once, in that of ``X``.

        Blocks are rounded one by one, so that the matrix is in memory once.
        """
        parts = ranges(X.shape[0], BLOCK)
        K = np.empty((X.shape[0], X.shape[0]), dtype)
        for b, e in parts:
            K[b:e, b:e] = self._gram(X[b:e], None, n_jobs)
            for c, f in parts[: b // BLOCK]:
                block = self._gram(X[b:e], X[c:f], n_jobs)
                K[b:e, c:f], K[c:f, b:e] = block, block.T
        return K

    def _single(self, X: Array) -> Array | None:
        """Return the rows in single precision, if kernel values from them are good enough to train.

        None if they may not be, or nobody has looked.
        """
        return None

    def _against(self, Y: Matrix, n_jobs: int | None) -> Callable[[Matrix], Any]:
        """Return ``X -> _gram(X, Y)``, which may compute once what belongs to ``Y`` alone."""
        return lambda X: self._gram(X, Y, n_jobs)

    def _distance_terms(self) -> Op | None:
        """Return what sums to ``(k(x, x) + k(y, y)) / 2 - k(x, y)``, if that is compiled."""
        return None

    def _resolve(self, X: Matrix, random_state: Any) -> Self:
        """Return the kernel with numbers for rules; there are none unless a subclass has some."""
        return self

    def _check_state(self) -> None:
        """Raise ``ValueError`` if a loaded kernel has parameters that it would not be made with."""
        made = getattr(type(self), "__post_init__", None)
        if made is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made(self)

    def _require_resolved(self) -> None:
        """Raise if a parameter is still a rule."""
        for kernel, name, value in self._rules():
            raise ValueError(
                f"{name}={value!r} of {kernel!r} is a rule, not a number: "
                "take kernel.resolve(X), with X the training rows"
            )

    @property
    def _has_rules(self) -> bool:
        """Whether a parameter, of this kernel or one inside, is a rule."""
        return any(True for _ in self._rules())

    def _rules(self) -> Iterator[tuple["Kernel", str, Any]]:
        """Give the parameters that are rules: the kernel, the name and the rule."""
        for inner in self._inner():
            yield from inner._rules()
        for name, value in self.get_params(deep=False).items():
            if is_rule(value) or isinstance(value, Sparsity):
                yield self, name, value

    def _inner(self) -> list["Kernel"]:
        """Return the kernels that this one is made of."""
        values = self.get_params(deep=False).values()
        listed = (value if isinstance(value, tuple) else (value,) for value in values)
        return [value for some in listed for value in some if isinstance(value, Kernel)]

    # Names of columns.
    @property
    def _has_names(self) -> bool:
        """Whether a kernel inside knows columns by name."""
        return any(inner._has_names for inner in self._inner())

    def _with_names(self, names: Sequence[str] | None) -> Self:
        """Return the kernel with numbers for the names of columns; ``names`` are those of ``X``."""
        if names is None or not self._has_names:
            return self

        def named(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(named, value))
            return value._with_names(names) if isinstance(value, Kernel) else value

        params = self.get_params(deep=False)
        return self.replace(**{name: named(value) for name, value in params.items()})

    def _ready(self, X: Any, Y: Any = None) -> tuple[Self, Matrix, Matrix | None]:
        """Return the kernel with numbers for names, and checked rows."""
        kernel = self
        if self._has_names:
            names = _get_feature_names(X)
            others = names if Y is None else _get_feature_names(Y)
            if names is not None and others is not None and not np.array_equal(names, others):
                raise ValueError("Y has other columns than X, or in another order")
            kernel = self._with_names(names)
        kernel._require_resolved()
        return kernel, *check_pair(X, Y, nonnegative=kernel._demand())

    # What everyone uses.
    def gram(
        self,
        X: object,
        Y: object | None = None,
        *,
        n_jobs: int | None = None,
        out: Array | None = None,
    ) -> Any:
        """Compute the Gram matrix ``K_ij = k(x_i, y_j)``.

        Parameters
        ----------
        X, Y : array-like or CSR of shape (n, d) and (m, d)
            ``Y=None`` means ``X``: the matrix is symmetric and half the work is saved.
        n_jobs : int, optional
            Threads, as in joblib.
        out : ndarray of shape (n, m), optional
            Where the matrix is written: C-contiguous and of its dtype, so that many matrices of one
            size need one piece of memory, whose pages are fresh but once.

        Returns
        -------
        K : ndarray of shape (n, m), or CSR for a kernel of compact support
            float32 if the data is float32, else float64; ``out``, if that is given.

        Examples
        --------
        >>> import numpy as np
        >>> from hilbin.kernels import Intersection
        >>> X, K = np.array([[1.0, 2.0], [3.0, 0.0]]), np.empty((2, 2))
        >>> Intersection().gram(X, out=K) is K
        True
        >>> K
        array([[3., 1.],
               [1., 3.]])
        """
        kernel, x, y = self._ready(X, Y)
        if out is not None:
            if kernel.compact:
                raise ValueError(f"out is dense, but the Gram matrix of {kernel!r} is sparse")
            kernel._fill(x, y, n_jobs, out)
            return out
        K = kernel._gram(x, y, n_jobs)
        if y is None:
            warn_near_identity(self, K)
        return K

    def _fill(self, x: Matrix, y: Matrix | None, n_jobs: int | None, out: Array) -> None:
        """Write the dense Gram matrix of checked rows to an array, which is checked first."""
        other = x if y is None else y
        wanted = (x.shape[0], other.shape[0]), x.dtype
        if not isinstance(out, np.ndarray) or (out.shape, out.dtype) != wanted:
            found = (
                f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else type(out)
            )
            raise ValueError(
                f"out must be an array of {wanted[1]} of shape {wanted[0]}, got {found}"
            )
        if not (out.flags.c_contiguous and out.flags.writeable and out.flags.aligned):
            raise ValueError("out must be C-contiguous and writeable")
        for rows in (x, other):
            if np.may_share_memory(out, rows.data if sp.issparse(rows) else rows):
                raise ValueError("out shares memory with X or Y, which would be overwritten")
        self._gram_into(x, y, n_jobs, out)

    def diag(self, X: object) -> Array:
        """Compute ``k(x_i, x_i)`` for every row, in float64."""
        kernel, x, _ = self._ready(X)
        return kernel._diag(x)

    def tiles(
        self,
        X: object,
        Y: object | None = None,
        *,
        memory: float | None = None,
        n_jobs: int | None = None,
    ) -> Iterator[tuple[slice, Any]]:
        """Compute a Gram matrix that does not fit in memory, in bands of rows.

        Parameters
        ----------
        X, Y : as in :meth:`gram`
        memory : float, optional
            MiB for two bands, the one that is computed and the one before, which a loop still
            holds; scikit-learn's ``working_memory`` setting by default.
        n_jobs : int, optional
            Threads, as in joblib.

        Yields
        ------
        rows, K[rows] : slice and matrix
            The bands come in order and make up the whole matrix.
        """
        budget = 2**20 * (get_config()["working_memory"] if memory is None else memory)
        if not budget > 0:
            raise ValueError(f"memory must be a number of MiB > 0, got {memory!r}")
        kernel, x, y = self._ready(X, Y)
        y = x if y is None else y
        height = max(1, int(budget // (2 * y.dtype.itemsize * max(1, y.shape[0]))))
        return (
            (slice(i, min(i + height, x.shape[0])), kernel._gram(x[i : i + height], y, n_jobs))
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
        """Return the Gram matrix as a SciPy ``LinearOperator`` that is never stored.

        Each product computes the matrix band by band, as :meth:`tiles` does.
        """
        kernel, x, y = self._ready(X, Y)
        return LazyGram(kernel, x, x if y is None else y, memory, n_jobs)

    def __call__(self, X: object, Y: object | None = None, *, out: Array | None = None) -> Any:
        """Compute the dense Gram matrix, or the number ``k(x, y)`` of two vectors.

        This is the form scikit-learn takes: ``SVC(kernel=k)``. Threads come from
        ``joblib.parallel_config``. The matrix is written to ``out``, if that is given, as by
        :meth:`gram`.
        """
        if out is not None:
            kernel, x, y = self._ready(X, Y)
            kernel._fill(x, y, None, out)
            return out
        if not sp.issparse(X) and np.ndim(X) == 1:  # type: ignore[arg-type]
            y = X if Y is None else Y
            return float(to_dense(self.gram(np.atleast_2d(X), np.atleast_2d(y)))[0, 0])  # type: ignore[call-overload]
        return to_dense(self.gram(X, Y))

    def resolve(self, X: object, random_state: Any = None) -> Self:
        """Return the kernel with every rule (``gamma="median"``) replaced by its number on ``X``.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)
            Rows, usually the training set; at most 2000 are sampled.
        random_state : int, RandomState or None
            Random seed of the sample.
        """
        kernel = self._with_names(_get_feature_names(X)) if self._has_names else self
        return kernel._resolve(check_rows(X, "X", nonnegative=kernel._demand()), random_state)

    # Parameters.
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters by name; with ``deep``, those of inner kernels as ``kernel__name``."""
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
        """Refuse: a kernel is a value. Use :meth:`replace`, or search over whole kernels."""
        if not params:
            return self
        raise TypeError(
            f"{type(self).__name__} is immutable; make another one, kernel.replace(...), or give a "
            "search whole kernels: {'kernel': [Exponential(Chi2(), g) for g in (0.5, 1, 2)]}"
        )

    def replace(self, **params: Any) -> Self:
        """Return a copy with other parameters."""
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
        """Return the name of the kernel if it needs values >= 0."""
        return type(self).__name__ if self.nonnegative else None


class LazyGram(LinearOperator):
    """A Gram matrix that is only multiplied, ``K @ v`` and ``K.T @ v``, by bands of rows."""

    def __init__(
        self, kernel: Kernel, X: Matrix, Y: Matrix, memory: float | None, n_jobs: int | None
    ) -> None:
        super().__init__(dtype=X.dtype, shape=(X.shape[0], Y.shape[0]))
        self._bands: Callable[[], Iterator[tuple[slice, Any]]] = lambda: kernel.tiles(
            X, Y, memory=memory, n_jobs=n_jobs
        )

    def _matmat(self, V: Array) -> Array:
        return np.concatenate([K @ V for _, K in self._bands()])

    def _rmatmat(self, V: Array) -> Array:
        out = np.zeros((self.shape[1], V.shape[1]), dtype=np.result_type(self.dtype, V))
        for rows, K in self._bands():
            out += K.T @ V[rows]
        return out

    def _matvec(self, v: Array) -> Array:
        return self._matmat(v.reshape(-1, 1))

    def _rmatvec(self, v: Array) -> Array:
        return self._rmatmat(v.reshape(-1, 1))


def warn_not_psd(kernel: Kernel, reason: str) -> None:
    """Warn, at the line that made the kernel, that it is not positive definite."""
    warnings.warn(
        f"{type(kernel).__name__} is not positive definite: {reason}",
        NotPositiveDefiniteWarning,
        stacklevel=4,
    )


def warn_near_identity(kernel: Kernel, K: Any) -> None:
    """Warn if a sparse Gram matrix of all rows is so close to the identity that none can learn."""
    n = K.shape[0]
    if not sp.issparse(K) or n < LEAST_ROWS:
        return
    some = np.unique(np.linspace(0, n - 1, min(n, SAMPLE_ROWS)).astype(np.intp))
    own = K.diagonal()[some]
    sums = np.asarray(abs(K[some]).sum(axis=1)).ravel()
    others = float(np.median(np.divide(sums, own, out=np.ones_like(sums), where=own > 0))) - 1
    if others < LEAST_OTHERS:
        warnings.warn(
            f"the Gram matrix of {kernel!r} on {n} rows is close to the identity: the other entries"
            f" of a row sum to {max(others, 0):.1g} of its own, so that a model overfits."
            ' Take a larger radius (radius="median" suits the number of columns), or fewer columns,'
            " by PCA",
            UserWarning,
            stacklevel=3,
        )


def require_positive(kernel: Kernel, name: str) -> None:
    """Raise unless the parameter ``name`` of the kernel is a number > 0."""
    _parameters.require_positive(f"{name} of {type(kernel).__name__}", getattr(kernel, name))
