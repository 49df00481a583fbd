r"""Means and scatters: all that least squares and principal components need of the rows.

For rows :math:`z_i` with targets :math:`t_i` and weights :math:`w_i`, and :math:`n = \sum w_i`:

.. math::
    m = \tfrac1n \sum w_i z_i, \quad \bar t = \tfrac1n \sum w_i t_i, \quad
    S = \sum w_i (z_i - m)(z_i - m)^\top, \quad V = \sum w_i (z_i - m)(t_i - \bar t)^\top .

Two sets of rows add up by

.. math::
    S = S_a + S_b + \frac{n_a n_b}{n_a + n_b} (m_b - m_a)(m_b - m_a)^\top

and likewise :math:`V` (Chan, Golub and LeVeque, *Updating Formulae and a Pairwise Algorithm for
Computing Sample Variances*, 1982): nothing large is subtracted from anything large, however far
the means are from zero.

Single precision rows are centered in double precision and multiplied in double precision: the
product of single precision ones would be twice as fast and wrong in the seventh digit. ``S`` is a
symmetric rank-k update of one triangle. Fewer rows than columns say the same as their scatter in
less memory, so they stay rows until they are added, in place, to a sum. Sparse rows of which few
entries are stored are multiplied as such.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsyr, dsyrk

from hilbin._arrays import Array, Matrix
from hilbin.stats._statistic import (
    Additive,
    State,
    checked_rows,
    checked_weights,
    require_same_width,
)

STRIP = 1024  # rows of one product
FEW = 64  # rows whose copy stays in the cache
MOST_STEPS = 64  # of means, added to a triangle at once
_given_back: deque[Array] = deque(maxlen=2)
TILE = 512
THIN = 0.05  # share of entries up to which the product of sparse rows is faster than a dense one


class Moments(Additive):
    r"""Weight, means and centered scatters of rows and their targets.

    Make them by :meth:`of` and add them; the module has the formulas. One of these holds
    :math:`D^2` numbers for rows of :math:`D` columns.

    Parameters
    ----------
    n_features, n_targets : int
        Columns of the rows and of the targets; the moments of no rows are made.

    Attributes
    ----------
    n : float
        Sum of the weights.
    mean : ndarray of shape (D,)
        Mean of the rows.
    target_mean : ndarray of shape (c,)
        Mean of the targets.
    cross : ndarray of shape (D, c)
        Centered sum of products of rows and targets.
    target_squares : ndarray of shape (c,)
        Centered sum of squares of every target.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.stats import Moments
    >>> Z = np.array([[1.0, 2.0], [3.0, 0.0], [2.0, 4.0]])
    >>> both = Moments.of(Z[:2]) + Moments.of(Z[2:])
    >>> both.n, both.mean
    (3.0, array([2., 2.]))
    >>> both.scatter
    array([[ 2., -2.],
           [-2.,  8.]])
    """

    def __init__(self, n_features: int, n_targets: int = 0) -> None:
        self.n = 0.0
        self.mean = np.zeros(n_features)
        self.target_mean = np.zeros(n_targets)
        self.cross = np.zeros((n_features, n_targets))
        self.target_squares = np.zeros(n_targets)
        self._triangle: Array | None = None  # the lower one counts, column by column
        self._rows: Array | None = None  # centered, times the roots of weights
        self._steps: list[Array] = []  # of means, yet to be added to the triangle

    @classmethod
    def of(cls, Z: Matrix, T: Any = None, weight: Any = None) -> Self:
        """Return the moments of some rows.

        Parameters
        ----------
        Z : array or CSR of shape (rows, D)
        T : array or CSR of shape (rows,) or (rows, c), optional
            Targets.
        weight : array of shape (rows,), optional
            Weights; a weight of 2 is the row twice.

        Returns
        -------
        moments : Moments
        """
        Z = checked_rows(Z)
        rows, width = Z.shape
        w = checked_weights(weight, rows)
        targets = checked_targets(T, rows)
        made = cls(width, targets.shape[1])
        made.n = float(rows if w is None else w.sum())
        if made.n == 0:
            return made
        made.mean = weighted_mean(Z, w, made.n)
        if not np.isfinite(made.mean).all():
            bad = int(np.argmin(np.isfinite(made.mean)))
            raise ValueError(f"Z has values that are not finite or too large, in column {bad}")
        made._take_targets(targets, w)
        root = None if w is None else np.sqrt(w)
        if is_thin(Z, w, made.n):
            made._triangle = sparse_scatter(Z, w, made.n, made.mean)
            made.cross = sparse_cross(Z, targets, w, made.mean, made.target_mean)
        elif rows < width:
            made._rows = borrow(rows, width)
            center(Z, made.mean, root, made._rows)
            made._cross_with(made._rows, targets, root, 0)
        else:
            made._triangle = np.zeros((width, width), order="F")
            strip = np.empty((min(STRIP, rows), width))
            for begin in range(0, rows, STRIP):
                part = strip[: min(STRIP, rows - begin)]
                few = slice(begin, begin + len(part))
                center(Z[few], made.mean, None if root is None else root[few], part)
                made._cross_with(part, targets, root, begin)
                add_products(made._triangle, part)
        return made

    def _take_targets(self, targets: Matrix, w: Array | None) -> None:
        self.target_mean = weighted_mean(targets, w, self.n)
        if sp.issparse(targets):
            squares = weighted_mean(targets.power(2), w, self.n) - self.target_mean**2
            self.target_squares = self.n * np.maximum(squares, 0)
        elif targets.shape[1]:
            squares = np.square(targets - self.target_mean)
            self.target_squares = squares.sum(axis=0) if w is None else w @ squares

    def _cross_with(self, rows: Array, targets: Matrix, root: Array | None, begin: int) -> None:
        """Add the products of rows and targets.

        The rows are centered already, so targets need not be, unless their means are large.
        """
        if not self.cross.shape[1]:
            return
        part = targets[begin : begin + len(rows)]
        scale = None if root is None else root[begin : begin + len(rows), None]
        if sp.issparse(part):
            part = part if scale is None else sp.csr_array(part.multiply(scale))
            self.cross += (part.T @ rows).T
        else:
            part = part - self.target_mean
            self.cross += rows.T @ (part if scale is None else part * scale)

    @property
    def scatter(self) -> Array:
        """The matrix ``S`` of shape (D, D); valid until something is added to the moments."""
        mirror(self._lower())
        view = self._lower().view()
        view.flags.writeable = False
        return view

    def _lower(self) -> Array:
        """Return ``S`` with its lower triangle valid, in Fortran's order."""
        triangle = self._products()
        if self._steps:
            add_products(triangle, np.array(self._steps))
            self._steps = []
        return triangle

    def _products(self) -> Array:
        """Return the same without the last steps of means."""
        if self._triangle is None:
            width = self.mean.size
            self._triangle = np.zeros((width, width), order="F")
            if self._rows is not None:
                add_products(self._triangle, self._rows)
                give_back(self._rows)
                self._rows = None
        return self._triangle

    def __del__(self) -> None:
        give_back(self.__dict__.get("_rows"))

    def settle(self) -> Self:
        """Do at once the product that the next addition would do, as threads want it."""
        self._lower()
        return self

    def copy(self) -> Self:
        """Return an independent copy."""
        other = type(self)(*self.cross.shape)
        other.n = self.n
        for name in ("mean", "target_mean", "cross", "target_squares"):
            setattr(other, name, getattr(self, name).copy())
        other._triangle = None if self._triangle is None else self._triangle.copy(order="F")
        other._rows = None if self._rows is None else self._rows.copy()
        other._steps = self._steps.copy()
        return other

    def __iadd__(self, other: Self) -> Self:
        if not isinstance(other, Moments):
            return NotImplemented
        require_same_width(self.mean.size, other.mean.size, "columns")
        require_same_width(self.target_mean.size, other.target_mean.size, "targets")
        if other.n == 0:
            return self
        other = self.copy() if other is self else other
        n = self.n + other.n
        share = other.n / n
        step, target_step = other.mean - self.mean, other.target_mean - self.target_mean
        joint = self.n * share
        self._add_scatter(other, np.sqrt(joint) * step)
        self.cross += other.cross
        self.cross += joint * np.outer(step, target_step)
        self.target_squares += other.target_squares + joint * target_step**2
        self.mean = self.mean + share * step
        self.target_mean = self.target_mean + share * target_step
        self.n = n
        return self

    def _add_scatter(self, other: Self, step: Array) -> None:
        rows, triangle = other._rows, self._products()
        if rows is not None:
            add_products(triangle, rows)
        else:
            add_lower(triangle, other._lower())
        # a product with one row reads and writes all of the triangle, as one with many does
        self._steps.append(step)
        if len(self._steps) == MOST_STEPS:
            self._lower()

    def with_targets(self, *, scale: float = 1.0, shift: float = 0.0) -> Self:
        """Return the moments with targets ``scale * t + shift``.

        They share the scatter: add to neither afterwards.
        """
        other = type(self)(*self.cross.shape)
        other.n, other.mean, other._triangle = self.n, self.mean, self._lower()
        other.target_mean = scale * self.target_mean + shift
        other.cross = scale * self.cross
        other.target_squares = scale**2 * self.target_squares
        return other

    def without_targets(self) -> Self:
        """Return a copy that has the rows alone."""
        other = self.copy()
        other.target_mean, other.target_squares = np.zeros((2, 0))
        other.cross = np.zeros((self.mean.size, 0))
        return other

    def project(self, components: Array) -> Self:
        """Return the moments of the rows ``components @ z``, from these sums alone.

        Parameters
        ----------
        components : array of shape (k, D)
        """
        other = type(self)(components.shape[0], self.target_mean.size)
        other.n, other.mean, other.cross = self.n, components @ self.mean, components @ self.cross
        other.target_mean, other.target_squares = self.target_mean, self.target_squares
        other._triangle = np.asfortranarray(components @ self.scatter @ components.T)
        return other

    def state(self) -> State:
        """Return arrays from which :meth:`from_state` restores the moments."""
        kept = ("mean", "scatter", "target_mean", "cross", "target_squares")
        return {"n": np.array(self.n)} | {name: getattr(self, name) for name in kept}

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """Restore the moments from their :meth:`state`."""
        d, t = state["cross"].shape
        shapes = {"mean": (d,), "scatter": (d, d), "target_mean": (t,), "target_squares": (t,)}
        for name, shape in shapes.items():
            if state[name].shape != shape or state[name].dtype.kind not in "fiu":
                raise ValueError(f"{name} is {state[name].dtype}{list(state[name].shape)}")
        made = cls(d, t)
        made.n = float(state["n"])
        for name in ("mean", "target_mean", "cross", "target_squares"):
            setattr(made, name, np.array(state[name], np.float64))
        made._triangle = np.array(state["scatter"], np.float64, order="F")
        return made

    @property
    def nbytes(self) -> int:
        """Memory in use, in bytes."""
        held = (self.mean, self.cross, self._triangle, self._rows)
        return sum(a.nbytes for a in held if a is not None)


def checked_targets(T: Any, rows: int) -> Matrix:
    """Return targets as float64, one row for every row; of width 0 if ``T`` is None."""
    if T is None:
        return np.empty((rows, 0))
    T = sp.csr_array(T, dtype=np.float64) if sp.issparse(T) else np.asarray(T, np.float64)
    T = T[:, None] if T.ndim == 1 else T
    if T.ndim != 2 or T.shape[0] != rows:
        raise ValueError(f"T has shape {T.shape}, but Z has {rows} rows")
    if not np.isfinite(T.data if sp.issparse(T) else T).all():
        raise ValueError("T has values that are not finite")
    return T


def weighted_mean(Z: Matrix, w: Array | None, n: float) -> Array:
    """Return the mean in double precision, whatever ``Z`` is."""
    if sp.issparse(Z):
        ones = np.ones(Z.shape[0]) if w is None else w
        return np.asarray(Z.T @ ones, np.float64) / n
    total = np.zeros(Z.shape[1])
    with np.errstate(invalid="ignore", over="ignore"):
        for begin in range(0, Z.shape[0], FEW):
            part = Z[begin : begin + FEW].astype(np.float64, copy=False)
            total += part.sum(axis=0) if w is None else w[begin : begin + FEW] @ part
        return total / n


def borrow(rows: int, width: int) -> Array:
    """Return memory that was given back, if it is enough: the first touch of new memory is slow."""
    while _given_back:
        try:
            memory = _given_back.pop()
        except IndexError:  # another thread took it
            break
        if memory.size >= rows * width:
            return memory[: rows * width].reshape(rows, width)
    return np.empty(rows * width).reshape(rows, width)


def give_back(rows: Array | None) -> None:
    """Let others borrow the memory of rows that are not needed any more."""
    if rows is not None and isinstance(rows.base, np.ndarray) and rows.base.ndim == 1:
        _given_back.append(rows.base)


def center(Z: Matrix, mean: Array, root: Array | None, out: Array) -> None:
    """Write rows without their mean, times the roots of their weights, into ``out``."""
    np.subtract(Z.toarray() if sp.issparse(Z) else Z, mean, out=out)
    if root is not None:
        out *= root[:, None]


def add_products(triangle: Array, rows: Array) -> None:
    """Compute ``triangle += rows.T @ rows`` in place, the lower triangle alone."""
    dsyrk(1.0, rows.T, beta=1.0, c=triangle, lower=1, overwrite_c=1)


def add_lower(triangle: Array, other: Array) -> None:
    """Compute ``triangle += other`` in place, the lower triangle alone."""
    for begin in range(0, len(triangle), TILE):
        triangle[begin:, begin : begin + TILE] += other[begin:, begin : begin + TILE]


def mirror(triangle: Array) -> None:
    """Copy the lower triangle into the upper one, tile by tile."""
    size = len(triangle)
    for j in range(0, size, TILE):
        corner = triangle[j : j + TILE, j : j + TILE]
        corner[...] = np.tril(corner) + np.tril(corner, -1).T
        for i in range(j + TILE, size, TILE):
            triangle[j : j + TILE, i : i + TILE] = triangle[i : i + TILE, j : j + TILE].T


def is_thin(Z: Matrix, w: Array | None, n: float) -> bool:
    """Return whether a sparse product is faster, and means can be subtracted afterwards.

    If a column is 0 in half of the rows, Cauchy and Schwarz have ``n m^2`` below half of its sum of
    squares, so that the difference loses no more than a bit.
    """
    if not sp.issparse(Z) or Z.nnz > THIN * Z.shape[0] * Z.shape[1]:
        return False
    each = None if w is None else np.repeat(w, np.diff(Z.indptr))
    return bool(2 * np.bincount(Z.indices, each).max(initial=0) <= n)


def sparse_scatter(Z: Matrix, w: Array | None, n: float, mean: Array) -> Array:
    """Return the centered scatter of sparse rows; its lower triangle counts."""
    rows = sp.csr_array(Z, dtype=np.float64)
    weighted = rows if w is None else sp.csr_array(rows.multiply(w[:, None]))
    triangle = (weighted.T @ rows).toarray(order="F")
    return np.asarray(dsyr(-n, mean, lower=1, a=triangle, overwrite_a=1))


def sparse_cross(
    Z: Matrix, targets: Matrix, w: Array | None, mean: Array, target_mean: Array
) -> Array:
    """Return the centered products of sparse rows and targets."""
    weight = np.ones(Z.shape[0]) if w is None else w
    if sp.issparse(targets):
        sums = (sp.csr_array(targets.multiply(weight[:, None])).T @ Z).toarray().T
        return np.asarray(sums - weight.sum() * np.outer(mean, target_mean))
    # what is centered on one side is centered
    return np.asarray(Z.T @ (weight[:, None] * (targets - target_mean)))
