"""What a solver returns."""

from dataclasses import dataclass

from hilbin.solvers._codes import Array


@dataclass(frozen=True)
class Result:
    """A solution and its certificate.

    Parameters
    ----------
    coef : array
        Weight of every row (and class): the score of ``x`` is ``sum_i coef_i k(x_i, x)``.
    dual : array
        The dual variables, for a warm start.
    objective : float, or array with a number for every task
        Value of the primal problem at this solution.
    gap : float or array
        How far it can be above the optimum: primal minus dual value, in float64.
    n_iter : int
        Sweeps over the data.
    converged : bool
        Whether the tolerance was reached.
    bias : float or array
        What is added to every score.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import GramRows, classification, icd
    >>> problem = classification(np.array([1, -1]), np.ones(2), "hinge")
    >>> result = icd(GramRows(np.eye(2)), problem)
    >>> result.converged, bool(result.gap < 1e-9)
    (True, True)
    """

    coef: Array
    dual: Array
    objective: float
    gap: float
    n_iter: int
    converged: bool
    bias: float | Array = 0.0
