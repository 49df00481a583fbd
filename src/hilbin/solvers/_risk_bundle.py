r"""The bundle of a risk in the smaller of two spaces: of weights, or of scores.

With :math:`n` rows :math:`Z` of :math:`D` features, :math:`v = K Z^\top w` has the scores
:math:`s = G w` with :math:`G = Z K Z^\top`, and :math:`v^\top K^+ v = w^\top G w = s^\top G^+ s`.
So the scores solve a problem of the same form, with :math:`G` for :math:`K` and a risk that costs
no pass. A product with :math:`G` is one pass for the gradient and one for scores, as many as
before, but planes have :math:`n` numbers instead of :math:`D`.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from hilbin.solvers._bundle import bundle, product
from hilbin.solvers._codes import Array
from hilbin.solvers._result import Result
from hilbin.solvers._risk import Risk


def bundle_risk(risk: Risk, lam: float, *, inner: Any = None, **course: Any) -> Result:
    """Minimize a regularized :class:`Risk` by :func:`bundle`, in the smaller space.

    Parameters
    ----------
    risk : Risk
        Of all tasks.
    lam : float
        Weight of the regularizer.
    inner : LinearOperator, array or sparse array of shape (D, D), optional
        ``K`` of the features; a constant one has the ordinary inner product.
    **course
        Further arguments of :func:`bundle`.

    Returns
    -------
    result : Result
        As of :func:`bundle`.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Hinge, MatrixRows, Risk, bundle_risk
    >>> risk = Risk(MatrixRows(np.array([[0.0, 1.0, 0.0], [3.0, 0.0, 0.0]])), Hinge(), [1.0, -1.0])
    >>> bundle_risk(risk, 0.5, tol=1e-9).coef.round(6) + 0
    array([[-0.333333,  1.      ,  0.      ]])
    """
    n = risk.rows.shape[0]
    if risk.size <= n:
        return bundle(risk, risk.size, lam, tasks=risk.tasks, inner=inner, **course)
    gram = _Gram(risk, inner)
    scored = Risk(_Scores(n, risk.rows.dtype), risk.loss, risk.targets, risk.weights)
    course["keep_dual"] = True
    result = bundle(scored, n, lam, tasks=risk.tasks, inner=gram, **course)
    return replace(result, coef=gram.weights(result.dual.T))


class _Scores:
    """Rows whose weights are the scores themselves."""

    def __init__(self, n: int, dtype: Any) -> None:
        self.shape, self.dtype = (n, n), dtype

    def scores(self, V: Array) -> Array:
        """Of every row."""
        return np.ascontiguousarray(V.T, self.dtype)

    def gradient(self, S: Array) -> Array:
        """Of every task."""
        return np.ascontiguousarray(S.T)


class _Gram:
    """``G``, by two passes."""

    def __init__(self, risk: Risk, inner: Any) -> None:
        self.risk, self.inner = risk, inner
        self.shape = (risk.rows.shape[0],) * 2

    def weights(self, W: Array) -> Array:
        """``K Z^T w`` for every column ``w``."""
        return product(self.inner, self.risk.gradient(W))

    def __matmul__(self, W: Array) -> Array:
        return self.risk.scores(self.weights(W))
