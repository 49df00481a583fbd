r"""Means and scatters: all that least squares and principal components need of the rows.

Of rows :math:`z_i` with targets :math:`t_i` and weights :math:`w_i`, :math:`n = \sum w_i`:

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
symmetric rank-k update of one triangle. A block of fewer rows than columns says the same as its
scatter in less memory, so it stays a block until it is added, in place, to a sum. Sparse rows of
which few entries are stored are multiplied as such.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from hilbin.stats._products import (
    MOST_STEPS,
    STRIP,
    add_lower,
    add_products,
    borrow,
    center,
    checked_targets,
    give_back,
    is_thin,
    mirror,
    sparse_cross,
    sparse_scatter,
    weighted_mean,
)
from hilbin.stats._statistic import (
    Additive,
    Array,
    Matrix,
    State,
    checked_rows,
    checked_weights,
    require_same_width,
)


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
        Of the rows.
    target_mean : ndarray of shape (c,)
        Of the targets.
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
        """The moments of some rows.

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
        """The rows are centered already, so targets need not be, unless their means are large."""
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
        """``S``, of shape (D, D); valid until something is added to the moments."""
        mirror(self._lower())
        view = self._lower().view()
        view.flags.writeable = False
        return view

    def _lower(self) -> Array:
        """``S`` with its lower triangle valid, in Fortran's order."""
        triangle = self._products()
        if self._steps:
            add_products(triangle, np.array(self._steps))
            self._steps = []
        return triangle

    def _products(self) -> Array:
        """The same without the last steps."""
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
        """Do at once the product that the next addition would do, as threads want it; ``self``."""
        self._lower()
        return self

    def copy(self) -> Self:
        """An independent copy."""
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
        """With the targets ``scale * t + shift``; shares the scatter: add to neither afterwards."""
        other = type(self)(*self.cross.shape)
        other.n, other.mean, other._triangle = self.n, self.mean, self._lower()
        other.target_mean = scale * self.target_mean + shift
        other.cross = scale * self.cross
        other.target_squares = scale**2 * self.target_squares
        return other

    def without_targets(self) -> Self:
        """A copy that knows the rows alone."""
        other = self.copy()
        other.target_mean, other.target_squares = np.zeros((2, 0))
        other.cross = np.zeros((self.mean.size, 0))
        return other

    def project(self, components: Array) -> Self:
        """The moments of the rows ``components @ z``, from these sums alone.

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
        """Arrays that say all, for :meth:`from_state`."""
        kept = ("mean", "scatter", "target_mean", "cross", "target_squares")
        return {"n": np.array(self.n)} | {name: getattr(self, name) for name in kept}

    @classmethod
    def from_state(cls, state: Mapping[str, Array]) -> Self:
        """The moments of a :meth:`state`."""
        made = cls(*state["cross"].shape)
        made.n = float(state["n"])
        for name in ("mean", "target_mean", "cross", "target_squares"):
            setattr(made, name, np.array(state[name], np.float64))
        made._triangle = np.array(state["scatter"], np.float64, order="F")
        return made

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        held = (self.mean, self.cross, self._triangle, self._rows)
        return sum(a.nbytes for a in held if a is not None)
