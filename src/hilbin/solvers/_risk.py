r"""The risk of a linear model on rows, as an oracle of :func:`~hilbin.solvers.bundle`.

.. math:: L(v) = \sum_i w_i \, \ell(t_i, s_i), \qquad
          s = Z v, \qquad \nabla L(v) = Z^\top (w \, \ell'(t, s)).

Rows are whatever can be scored and summed (``scores`` and ``gradient``), so nothing here knows how
they are stored. Several tasks share the rows and every pass over them: ``V`` has a row for every
task, scores and targets a column.

Scores are linear in ``v``: those of the best point so far are kept, those of a new point cost a
pass, and all points between them are free. So the risk along the way from one to the other costs
no pass at all.
"""

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from hilbin.parallel import ranges
from hilbin.solvers._codes import Array
from hilbin.solvers._losses import Loss

STRIP = 1 << 15  # scores that are looked at together, so that they stay in the cache
BEYOND_SMOOTH, BEYOND_KINKED = 0.02, 0.1


class RiskRows(Protocol):
    """Rows as the risk sees them."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def scores(self, V: Array) -> Array:
        """``Z V^T`` of shape (n, k), in the dtype of the rows."""

    def gradient(self, S: Array) -> Array:
        """``S^T Z`` of shape (k, D), for ``S`` of shape (n, k)."""


class MatrixRows:
    """Rows of a matrix.

    Parameters
    ----------
    Z : array or CSR of shape (n, D)
        In float32 or float64, used as it is; numbers of other types are converted.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import MatrixRows
    >>> rows = MatrixRows(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> rows.scores(np.array([[1.0, 1.0]]))
    array([[3.],
           [3.]])
    >>> rows.gradient(np.array([[1.0], [1.0]]))
    array([[1., 5.]])
    """

    def __init__(self, Z: Any) -> None:
        self.Z = sp.csr_array(Z) if sp.issparse(Z) else np.asarray(Z)
        if self.Z.ndim != 2:
            raise ValueError(f"Z must be two-dimensional, got shape {self.Z.shape}")
        if self.Z.dtype not in (np.float32, np.float64):
            self.Z = self.Z.astype(np.float64)
        self.shape, self.dtype = self.Z.shape, self.Z.dtype

    def scores(self, V: Array) -> Array:
        """``Z V^T``."""
        return self.Z @ V.T.astype(self.dtype, copy=False)

    def gradient(self, S: Array) -> Array:
        """``S^T Z``."""
        S = S.astype(self.dtype, copy=False)
        return np.ascontiguousarray((self.Z.T @ S).T) if sp.issparse(self.Z) else S.T @ self.Z


class Risk:
    """The sum of the losses of rows, and its gradient.

    Parameters
    ----------
    rows : MatrixRows, or like it
        With ``scores``, ``gradient``, ``shape`` and ``dtype``.
    loss : Hinge, SquaredHinge, Logistic, EpsilonInsensitive, or like them
    targets : array of shape (n,) or (n, k)
        Of every task.
    weights : array of shape (n,) or float, default=1.0
        Of the rows.
    bias : float, default=0.0
        ``B``: above 0, scores have a constant part, as if all rows had one feature more (the last)
        of the value ``sqrt(B)``. ``sqrt(B)`` times its weight is the intercept.

    Attributes
    ----------
    size : int
        Number of weights, that of the constant feature among them.
    tasks : int
    least : float
        What it never falls below, 0.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Hinge, MatrixRows, Risk
    >>> risk = Risk(MatrixRows(np.array([[2.0], [3.0]])), Hinge(), np.array([1.0, -1.0]))
    >>> values, gradients = risk(np.array([[1.0]]), np.array([0]))
    >>> values, gradients
    (array([4.]), array([[3.]]))
    """

    least = 0.0

    def __init__(
        self, rows: RiskRows, loss: Loss, targets: Array, weights: Any = 1.0, bias: float = 0.0
    ) -> None:
        self.rows, self.loss, self.root = rows, loss, float(np.sqrt(bias))
        n = rows.shape[0]
        T = np.asarray(targets, rows.dtype)
        self.targets = T.reshape(len(T), -1)
        if len(T) != n:
            raise ValueError(f"targets has {len(T)} rows, but there are {n} rows")
        w = np.asarray(weights, np.float64)
        if w.shape not in ((), (n,)):
            raise ValueError(f"weights has shape {w.shape}, but there are {n} rows")
        self.weights = np.ascontiguousarray(np.broadcast_to(w, (n,)))
        self.size = rows.shape[1] + (bias > 0)
        self.tasks = self.targets.shape[1]

    def __call__(self, V: Array, which: Array) -> tuple[Array, Array]:
        """Values (k,) and gradients (k, size) at the rows of ``V``, of the tasks ``which``."""
        S = self.scores(V)
        values, gradients = self.between(np.zeros_like(S), S, which, np.ones((len(V), 1)))
        return values[:, 0], gradients

    def scores(self, V: Array) -> Array:
        """Scores of all rows at ``V``, of shape (n, k); no pass for a ``V`` of zeros."""
        if not V.any():
            return np.zeros((self.rows.shape[0], len(V)), self.rows.dtype)
        S = self.rows.scores(V[:, : self.rows.shape[1]])
        if self.root > 0:
            S += (self.root * V[:, -1]).astype(S.dtype)
        return S

    def between(self, old: Array, new: Array, which: Array, steps: Array) -> tuple[Array, Array]:
        """The risk on the way from scores to others.

        Parameters
        ----------
        old, new : array of shape (n, k)
            Scores.
        which : array of shape (k,)
            Their tasks.
        steps : array of shape (k, g)
            Shares of the way, for every task.

        Returns
        -------
        values : array of shape (k, g)
            At all steps.
        gradients : array of shape (k, size)
            At the last of them.
        """
        values = np.zeros(steps.shape)
        slopes = np.empty_like(new)
        T, loss = columns(self.targets, which), self.loss
        shares = steps.astype(new.dtype)
        for begin, end in ranges(len(new), max(1, STRIP // max(1, which.size))):
            t, w, start = T[begin:end], self.weights[begin:end], old[begin:end]
            way = new[begin:end] - start
            for g in range(steps.shape[1]):
                at = start + shares[:, g] * way
                values[:, g] += w @ loss.value(t, at)
            slopes[begin:end] = w[:, None] * loss.slope(t, at)
        return values, self.gradient(slopes)

    def gradient(self, S: Array) -> Array:
        """``S^T Z``, for the constant feature as well."""
        gradient = self.rows.gradient(S)
        if self.root > 0:
            constant = self.root * S.sum(axis=0, dtype=np.float64)
            gradient = np.column_stack([gradient, constant.astype(gradient.dtype)])
        return gradient

    def start(self) -> "ScoredWay":
        """From 0, with the risk on the way to every new point."""
        return ScoredWay(self)


class ScoredWay:
    """The best point so far, by its scores, and the risk on the way from there."""

    def __init__(self, risk: Risk) -> None:
        self.risk = risk
        self.beyond = beyond(risk.loss)
        self._best = np.zeros((risk.rows.shape[0], risk.tasks), risk.rows.dtype)

    def look(self, new: Array, which: Array, steps: Array) -> tuple[Array, Array]:
        """Values at steps towards ``new``, and gradients at the last: see ``Risk.between``."""
        self._new, self._which = self.risk.scores(new), which
        return self.risk.between(columns(self._best, which), self._new, which, steps)

    def go(self, steps: Array) -> None:
        """Move the best point by a share of the way for every task."""
        best, shares = columns(self._best, self._which), steps.astype(self._new.dtype)
        self._best[:, self._which] = best + shares * (self._new - best)


def beyond(loss: Loss) -> float:
    """Where planes are best taken: how far beyond the best point, as a share of the way."""
    return BEYOND_SMOOTH if loss.smooth else BEYOND_KINKED


def columns(S: Array, which: Array) -> Array:
    """Some columns; ``S`` itself if all are wanted."""
    return S if which.size == S.shape[1] else S[:, which]
