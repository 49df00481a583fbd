r"""Losses, and the risk of a linear model: the sum of the losses of all rows.

.. math:: L(v) = \sum_i w_i \, \ell(t_i, s_i), \qquad
          s = Z v, \qquad \nabla L(v) = Z^\top (w \, \ell'(t, s)).

**Losses.** A loss of a score :math:`s` and a target :math:`t` is convex in :math:`s`. Every solver
takes the same objects: :func:`~hilbin.solvers.bundle` asks them for values and slopes,
:func:`~hilbin.solvers.linear` for the curvatures of smooth ones as well,
:func:`~hilbin.solvers.icd` and :func:`~hilbin.solvers.smo` for their dual
:class:`~hilbin.solvers.Problem`.

**Risk.** The rows are anything that can be scored and summed (``scores`` and ``gradient``), so the
risk does not know how they are stored. Several tasks share the rows and every pass over them:
``V`` has a row for every task, and scores and targets have a column. Scores are linear in ``v``, so
the risk anywhere between two points whose scores are known costs no pass over the rows.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, to_dense
from hilbin._core import core
from hilbin.parallel import ranges
from hilbin.solvers.problem import Problem

LEAST_VALUE = 1e-12  # that gaps are relative to
CACHED_SCORES = 1 << 15  # scores that are evaluated together, so that they stay in the cache
BEYOND_SMOOTH, BEYOND_KINKED = 0.02, 0.1


class Loss(Protocol):
    """The interface of a loss; arrays keep the dtype of the scores."""

    @property
    def smooth(self) -> bool:
        """Whether the loss has a derivative everywhere."""

    @property
    def quadratic(self) -> bool:
        """Whether the dual problem is quadratic."""

    def value(self, targets: Array, scores: Array) -> Array:
        """Return the loss of every entry."""

    def slope(self, targets: Array, scores: Array) -> Array:
        """Return a subgradient in every score."""

    def curvature(self, targets: Array, scores: Array) -> Array:
        """Return the second derivative in every score, of a smooth loss."""

    def problem(
        self, targets: Array, weights: Any, *, constant: float = 0.0, total: float | None = None
    ) -> Problem:
        """Return the dual problem of a kernel machine with this loss."""


class _PiecewiseLoss:
    """A loss ``max(0, excess)`` or its square, where the excess is linear on either side."""

    squared: bool
    epsilon: float = 0.0
    quadratic: ClassVar[bool] = True

    @property
    def smooth(self) -> bool:
        """Whether the loss has a derivative everywhere: the squares have."""
        return self.squared

    def value(self, targets: Array, scores: Array) -> Array:
        """Return the loss of every entry."""
        loss = np.maximum(self._excess(targets, scores), 0)
        return np.square(loss) if self.squared else loss

    def slope(self, targets: Array, scores: Array) -> Array:
        """Return a subgradient in every score."""
        excess, sign = self._excess(targets, scores), self._sign(targets, scores)
        return sign * (2 * np.maximum(excess, 0) if self.squared else excess > 0)

    def curvature(self, targets: Array, scores: Array) -> Array:
        """Return the second derivative in every score: 2 or 0 if the loss is squared."""
        return 2 * (self._excess(targets, scores) > 0).astype(scores.dtype) * self.squared

    def problem(
        self, targets: Array, weights: Any, *, constant: float = 0.0, total: float | None = None
    ) -> Problem:
        """Return the dual problem of a kernel machine with this loss.

        Parameters
        ----------
        targets : array of shape (n,)
            Target of every row.
        weights : float or array of shape (n,)
            Weight ``C`` of the loss of every row.
        constant : float, default=0.0
            Number that is added to every kernel value: a penalized intercept.
        total : float, optional
            Sum of the coefficients, 0 for a free intercept.

        Returns
        -------
        problem : Problem
        """
        t = np.asarray(targets, np.float64)
        C = np.broadcast_to(np.asarray(weights, np.float64), t.shape)
        low, high = self._bounds(t, np.full_like(t, np.inf) if self.squared else C)
        diagonal = 0.5 / C if self.squared else 0.0
        return Problem(t, low, high, diagonal, self.epsilon, constant, total)

    def _excess(self, targets: Array, scores: Array) -> Array:
        raise NotImplementedError

    def _sign(self, targets: Array, scores: Array) -> Array:
        """Return the sign of the slope, where there is one."""
        raise NotImplementedError

    def _bounds(self, targets: Array, C: Array) -> tuple[Array, Array]:
        raise NotImplementedError


@dataclass(frozen=True)
class Hinge(_PiecewiseLoss):
    r"""The hinge loss :math:`\max(0, 1 - ts)` of targets 1 and -1, or its square.

    Parameters
    ----------
    squared : bool, default=False
        Whether to take the square.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Hinge
    >>> y, scores = np.array([1.0, 1.0, -1.0]), np.array([0.5, 3.0, 1.0])
    >>> Hinge().value(y, scores), Hinge(squared=True).value(y, scores)
    (array([0.5, 0. , 2. ]), array([0.25, 0.  , 4.  ]))
    >>> Hinge().problem(y, 10.0).high
    array([10., 10.,  0.])
    """

    squared: bool = False

    def on_lines(
        self, targets: Array, old: Array, new: Array, weights: Array, steps: Array
    ) -> Array:
        """Return the risks of tasks (k, g) at steps (k, g) from old scores (n, k) to new ones."""
        values, most = np.zeros(steps.shape), float(weights.max(initial=0.0)) or 1.0
        scores = (np.ascontiguousarray(part, new.dtype) for part in (old, new, targets))
        shares = np.ascontiguousarray(steps, np.float64)
        core.hinge_lines(*scores, weights / most, shares, self.squared, values)
        return most * values

    def _excess(self, targets: Array, scores: Array) -> Array:
        return 1 - targets * scores

    def _sign(self, targets: Array, scores: Array) -> Array:
        return -targets

    def _bounds(self, targets: Array, C: Array) -> tuple[Array, Array]:
        return np.minimum(0, targets * C), np.maximum(0, targets * C)


@dataclass(frozen=True)
class EpsilonInsensitive(_PiecewiseLoss):
    r"""The loss :math:`\max(0, |t - s| - \epsilon)` of a regression, or its square.

    Parameters
    ----------
    epsilon : float, default=0.0
        Largest error that costs nothing.
    squared : bool, default=False
        Whether to take the square.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import EpsilonInsensitive
    >>> t, scores = np.array([1.0, 1.0]), np.array([1.25, -1.0])
    >>> EpsilonInsensitive(0.5).value(t, scores)
    array([0. , 1.5])
    >>> EpsilonInsensitive(0.5, squared=True).value(t, scores)
    array([0.  , 2.25])
    """

    epsilon: float = 0.0
    squared: bool = False

    def _excess(self, targets: Array, scores: Array) -> Array:
        return np.abs(targets - scores) - self.epsilon

    def _sign(self, targets: Array, scores: Array) -> Array:
        return np.sign(scores - targets)

    def _bounds(self, targets: Array, C: Array) -> tuple[Array, Array]:
        return -C, C


@dataclass(frozen=True)
class Logistic:
    r"""The logistic loss :math:`\log(1 + e^{-ts})` of targets 1 and -1.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Logistic
    >>> Logistic().value(np.array([1.0, -1.0]), np.array([0.0, 800.0]))
    array([6.93147181e-01, 8.00000000e+02])
    """

    smooth: ClassVar[bool] = True
    quadratic: ClassVar[bool] = False

    def value(self, targets: Array, scores: Array) -> Array:
        """Return the loss of every entry."""
        margin = targets * scores
        return np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0)

    def slope(self, targets: Array, scores: Array) -> Array:
        """Return the derivative in every score."""
        margin = targets * scores
        small = np.exp(-np.abs(margin))  # cannot overflow
        return -targets * np.where(margin > 0, small, 1) / (1 + small)

    def curvature(self, targets: Array, scores: Array) -> Array:
        """Return the second derivative in every score."""
        small = np.exp(-np.abs(scores))
        return small / np.square(1 + small)

    def problem(
        self, targets: Array, weights: Any, *, constant: float = 0.0, total: float | None = None
    ) -> Problem:
        """Raise an error: the dual of the logistic loss is not quadratic."""
        raise ValueError("the dual of Logistic() is not quadratic: icd and smo cannot solve it")


class RiskRows(Protocol):
    """The interface of rows to a risk."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def scores(self, V: Array) -> Array:
        """Return ``Z V^T`` of shape (n, k), in the dtype of the rows."""

    def gradient(self, S: Array) -> Array:
        """Return ``S^T Z`` of shape (k, D), for ``S`` of shape (n, k)."""


class MatrixRows:
    """The rows of a matrix.

    Parameters
    ----------
    Z : array or CSR of shape (n, D)
        Matrix of float32 or float64, used as it is; numbers of other types are converted.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers.risk import MatrixRows
    >>> rows = MatrixRows(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> rows.scores(np.array([[1.0, 1.0]]))
    array([[3.],
           [3.]])
    >>> rows.gradient(np.array([[1.0], [1.0]]))
    array([[1., 5.]])
    """

    def __init__(self, Z: Any) -> None:
        as_it_is = isinstance(Z, sp.csr_array)
        self.Z = Z if as_it_is else sp.csr_array(Z) if sp.issparse(Z) else np.asarray(Z)
        if self.Z.ndim != 2:
            raise ValueError(f"Z must be two-dimensional, got shape {self.Z.shape}")
        if self.Z.dtype not in (np.float32, np.float64):
            self.Z = self.Z.astype(np.float64)
        self.shape, self.dtype = self.Z.shape, self.Z.dtype

    def scores(self, V: Array) -> Array:
        """Return ``Z V^T``."""
        if V.shape[1] != self.shape[1]:
            raise ValueError(f"V has {V.shape[1]} columns for the {self.shape[1]} columns of Z")
        if self._is_single(len(V)):
            out = np.empty(self.shape[0])
            core.score_sparse_rows(*self._arrays, V[0].astype(np.float64), out)
            return out[:, None].astype(self.dtype, copy=False)
        return self.Z @ V.T.astype(self.dtype, copy=False)

    def gradient(self, S: Array) -> Array:
        """Return ``S^T Z``."""
        if self._is_single(S.shape[1]):
            total = np.zeros(self.shape[1])
            core.add_sparse_rows(*self._arrays, total, S[:, 0].astype(np.float64))
            return total[None].astype(self.dtype, copy=False)
        S = S.astype(self.dtype, copy=False)
        return np.ascontiguousarray((self.Z.T @ S).T) if sp.issparse(self.Z) else S.T @ self.Z

    def curved(self, V: Array, D: Array, constants: Array) -> tuple[Array, Array]:
        """Return ``S = Z V^T`` and a constant for every task, and ``(D * S)^T Z``."""
        if not self._is_single(len(V)):
            S = self.scores(V) + constants.astype(self.dtype)
            return S, self.gradient(D * S)
        scores, sums = np.empty(self.shape[0]), np.zeros(self.shape[1])
        given = V[0].astype(np.float64), float(constants[0]), D[:, 0].astype(np.float64)
        core.curve_sparse_rows(*self._arrays, *given, scores, sums)
        S, products = (a.astype(self.dtype, copy=False) for a in (scores[:, None], sums[None]))
        return S, products

    def _is_single(self, tasks: int) -> bool:
        """Tell whether a product is that of sparse rows with one vector, which has no overhead."""
        return tasks == 1 and sp.issparse(self.Z)

    @cached_property
    def _arrays(self) -> tuple[Array, Array, Array]:
        return csr_arrays(self.Z)

    def gram(self) -> Array:
        """Return ``Z Z^T``."""
        return to_dense(self.Z @ self.Z.T)


class Risk:
    """The sum of the losses of rows, and its gradient.

    Parameters
    ----------
    rows : array, CSR, or rows with ``scores``, ``gradient``, ``shape`` and ``dtype``
        Rows ``Z`` of shape (n, D).
    loss : Hinge, EpsilonInsensitive, Logistic, or another object with ``value`` and ``slope``
        Loss of a target and a score.
    targets : array of shape (n,) or (n, k)
        Target of every row and task.
    weights : float or array of shape (n,), default=1.0
        Weight of the loss of every row.
    constant : float, default=0.0
        If above 0, scores have a constant part, as if all rows had one more feature (the last) of
        the value ``sqrt(constant)``. The intercept is ``sqrt(constant)`` times its weight.

    Attributes
    ----------
    size : int
        Number of weights, that of the constant feature included.
    tasks : int
        Number of tasks ``k``.
    least : float
        Lower bound of the risk, 0.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Hinge, Risk
    >>> risk = Risk(np.array([[2.0], [3.0]]), Hinge(), np.array([1.0, -1.0]))
    >>> values, gradients = risk(np.array([[1.0]]), np.array([0]))
    >>> values, gradients
    (array([4.]), array([[3.]]))
    """

    least = 0.0

    def __init__(
        self, rows: Any, loss: Loss, targets: Array, weights: Any = 1.0, constant: float = 0.0
    ) -> None:
        self.rows: RiskRows = rows if hasattr(rows, "gradient") else MatrixRows(rows)
        self.loss, self.root = loss, float(np.sqrt(constant))
        n = self.rows.shape[0]
        T = np.asarray(targets, self.rows.dtype)
        self.targets = T.reshape(len(T), -1)
        if len(T) != n:
            raise ValueError(f"targets has {len(T)} rows, but there are {n} rows")
        w = np.asarray(weights, np.float64)
        if w.shape not in ((), (n,)):
            raise ValueError(f"weights has shape {w.shape}, but there are {n} rows")
        self.weights = np.ascontiguousarray(np.broadcast_to(w, (n,)))
        self.size = self.rows.shape[1] + (constant > 0)
        self.tasks = self.targets.shape[1]

    def without(self, left_out: Array) -> "Risk":
        """Return the risk of the rows that are not marked."""
        if isinstance(self.rows, MatrixRows):
            kept = ~left_out
            parts = (self.rows.Z[kept], self.loss, self.targets[kept], self.weights[kept])
            return Risk(*parts, self.root**2)
        weights = np.where(left_out, 0.0, self.weights)
        return Risk(self.rows, self.loss, self.targets, weights, self.root**2)

    def __call__(self, V: Array, which: Array) -> tuple[Array, Array]:
        """Return values (k,) and gradients (k, size) at ``V``, a row for each task ``which``."""
        S = self.scores(V)
        values, gradients = self.between(np.zeros_like(S), S, which, np.ones((len(V), 1)))
        return values[:, 0], gradients

    def at(self, S: Array, which: Array) -> tuple[Array, Array]:
        """Return values (k,) and gradients (k, size) at the scores ``S`` of the tasks ``which``."""
        values, T = np.zeros(which.size), _columns(self.targets, which)
        for some in _runs(S):
            values += self.weights[some] @ self.loss.value(T[some], S[some])
        return values, self._gradient_at(S, T)

    def _gradient_at(self, S: Array, T: Array) -> Array:
        slopes, weights = np.empty_like(S), self.weights[:, None].astype(S.dtype)
        for some in _runs(S):
            np.multiply(self.loss.slope(T[some], S[some]), weights[some], out=slopes[some])
        return self.gradient(slopes)

    def scores(self, V: Array) -> Array:
        """Return the scores of all rows at ``V``, of shape (n, k); zeros cost no pass."""
        if not V.any():
            return np.zeros((self.rows.shape[0], len(V)), self.rows.dtype)
        S = self.rows.scores(V[:, : self.rows.shape[1]])
        if self.root > 0:
            S += (self.root * V[:, -1]).astype(S.dtype)
        return S

    def between(self, old: Array, new: Array, which: Array, steps: Array) -> tuple[Array, Array]:
        """Evaluate the risk along the lines from some scores to others.

        A loss is convex and not below 0: where it is 0 at both ends of a line, it is 0 between, and
        the row is passed over.

        Parameters
        ----------
        old, new : array of shape (n, k)
            Scores at the ends of the lines.
        which : array of shape (k,)
            Task of every line.
        steps : array of shape (k, g)
            Steps along every line, as shares of its length.

        Returns
        -------
        values : array of shape (k, g)
            Risk at all steps.
        gradients : array of shape (k, size)
            Gradients at the last step.
        """
        T = _columns(self.targets, which)
        if isinstance(self.loss, Hinge):
            values = self.loss.on_lines(T, old, new, self.weights, steps)
            at = new - old
            at *= steps[:, -1].astype(new.dtype)
            at += old
            return values, self._gradient_at(at, T)
        values = np.zeros(steps.shape)
        slopes = np.zeros_like(new)
        loss, shares = self.loss, steps.astype(new.dtype)
        for begin, end in ranges(len(new), max(1, CACHED_SCORES // max(1, which.size))):
            counted = self._counted(T, old, new, begin, end)
            t, w, start = T[counted], self.weights[counted], old[counted]
            line = new[counted] - start
            for g in range(steps.shape[1]):
                at = start + shares[:, g] * line
                values[:, g] += w @ loss.value(t, at)
            slopes[counted] = w[:, None] * loss.slope(t, at)
        return values, self.gradient(slopes)

    def _counted(self, T: Array, old: Array, new: Array, begin: int, end: int) -> Any:
        """Return which of the rows of a range have a loss at an end of a line."""
        some = slice(begin, end)
        t, value = T[some], self.loss.value
        lost = (value(t, old[some]) > 0) | (value(t, new[some]) > 0)
        rows = np.flatnonzero(lost.any(axis=1) & (self.weights[some] > 0))
        return some if 2 * rows.size > end - begin else begin + rows

    def gradient(self, S: Array) -> Array:
        """Return ``S^T Z``, for the constant feature as well."""
        return self._with_constant(self.rows.gradient(S), S)

    def curved(self, V: Array, D: Array) -> tuple[Array, Array]:
        """Return the scores at ``V``, and the products with ``Z^T D Z``, of rows of a matrix.

        ``D`` has a column for every row of ``V``.
        """
        rows: Any = self.rows
        constants = self.root * V[:, -1] if self.root > 0 else np.zeros(len(V))
        S, products = rows.curved(V[:, : rows.shape[1]], D, constants)
        return S, self._with_constant(products, D * S if self.root > 0 else S)

    def _with_constant(self, gradient: Array, S: Array) -> Array:
        if self.root > 0:
            constant = self.root * S.sum(axis=0, dtype=np.float64)
            gradient = np.column_stack([gradient, constant.astype(gradient.dtype)])
        return gradient

    def start(self) -> "ScoreLines":
        """Return lines that begin at 0, for :func:`~hilbin.solvers.bundle`."""
        return ScoreLines(self)


class ScoreLines:
    """The scores of the best points so far, and the risk on the lines from there to others."""

    def __init__(self, risk: Risk) -> None:
        self.risk = risk
        self.beyond = beyond(risk.loss)
        self._best = np.zeros((risk.rows.shape[0], risk.tasks), risk.rows.dtype)

    def look(self, new: Array, which: Array, steps: Array) -> tuple[Array, Array]:
        """Return values at steps towards ``new``, and gradients at the last step."""
        self._new, self._which = self.risk.scores(new), which
        return self.risk.between(_columns(self._best, which), self._new, which, steps)

    def go(self, steps: Array) -> None:
        """Move the best point of every task by a share of its line."""
        best = _columns(self._best, self._which)
        change = self._new - best
        change *= steps.astype(change.dtype)
        best += change
        if best is not self._best:
            self._best[:, self._which] = best


def csr_arrays(Z: Any) -> tuple[Array, Array, Array]:
    """Return values, columns and row pointers as the core takes them."""
    columns = np.ascontiguousarray(Z.indices, np.int32)
    return np.ascontiguousarray(Z.data), columns, np.ascontiguousarray(Z.indptr)


def require_finite(*arrays: Any) -> None:
    """Refuse values or gradients of a risk that are not finite."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError(
            "the risk or its gradient is not finite: features, targets or weights are too "
            "large to compute with; scale them"
        )


def beyond(loss: Loss) -> float:
    """Return how far beyond the best point cutting planes are best taken, as a share of the line.

    Where a loss is smooth, planes near the best point say more than those further off.
    """
    return BEYOND_SMOOTH if loss.smooth else BEYOND_KINKED


def _runs(S: Array) -> list[slice]:
    """Return runs of rows of scores that stay in the cache."""
    size = max(1, CACHED_SCORES // max(1, S.shape[1]))
    return [slice(begin, end) for begin, end in ranges(len(S), size)]


def _columns(S: Array, which: Array) -> Array:
    """Return some columns of ``S``, or ``S`` itself if all are wanted."""
    return S if which.size == S.shape[1] else S[:, which]
