"""Support vector regression with the histogram intersection kernel, by ICD."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from hilbin._arrays import Array
from hilbin._parameters import require_choice, require_positive
from hilbin.estimators._intersection import IntersectionModel
from hilbin.estimators._progress import with_callbacks
from hilbin.solvers import Result, icd, regression

LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


class IntersectionSVR(RegressorMixin, IntersectionModel):
    r"""Histogram intersection regression, trained and evaluated by tables.

    Minimizes :math:`\tfrac12 \|w\|^2 + \sum_i C_i \, \ell(y_i - f(x_i))` in the feature space of
    :math:`k(x, y) = B + \sum_j \min(x_j, y_j)`, with :math:`\ell(r) = \max(0, |r| - \epsilon)` or
    its square. Targets are measured from their mean in standard deviations, so neither shifting nor
    scaling them changes the fit.

    Parameters
    ----------
    C : float, default=1e-3
        Weight of the loss, with features in hundredths of their range and targets in standard
        deviations.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The loss.
    epsilon : float, default=0.0
        Errors up to this, in the unit of ``y``, cost nothing.
    n_bins : "auto", int or None, default="auto"
        Bins per feature; ``None`` trains on the values as they are. "auto" is 100, but 31 from 500
        features on and 15 from 2000, where rounding averages out and short tables are faster.
    strategy, scope : str, default="uniform", "feature"
        How bins are spaced, as in :class:`HistogramBinner`.
    negative : {"shift", "error"}, default="shift"
        What to do with negative values: measure every feature from its low end, or complain, as
        suits histograms. See :class:`HistogramBinner`.
    bias : "auto" or float, default="auto"
        ``B``, which lets the prediction have a constant part beside the mean of the targets.
    solver : {"auto", "tables", "gram"}, default="auto"
        As in :class:`IntersectionSVC`.
    tol : float, default=0.1
        Tolerance on the gradient of the dual, in standard deviations of ``y``. Up to 256 rows are
        solved to rounding.
    max_iter : int, default=1000
        Most sweeps over the data.
    max_time : float, optional
        Seconds after which training stops, with a usable model.
    warm_start : bool, default=False
        Begin where the last ``fit`` ended, if it had as many rows.
    n_jobs : int, optional
        Threads of what is not the descent itself.
    random_state : int, RandomState or None, default=0
        Of the order in which rows are visited.
    verbose : int, default=0
        1 says how the fit ended, 2 tells of every sweep.

    Attributes
    ----------
    intercept_ : ndarray of shape (1,)
        Constant part of the prediction.
    shape_functions_ : list of ShapeFunction
        What every feature contributes, as a function of its value.
    binner_ : HistogramBinner
        How values become codes.
    n_iter_ : int
        Sweeps.
    converged_ : bool
        Whether the tolerance was reached.
    objective_, gap_ : ndarray
        Value of the primal problem, and how far it can be above the optimum.
    model_bytes_ : int
        Bytes of what prediction needs.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if ``X`` has some.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import IntersectionSVR
    >>> X = np.random.default_rng(0).random((500, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2
    >>> IntersectionSVR().fit(X, y).score(X, y) > 0.99
    True
    """

    def __init__(
        self,
        C: float = 1e-3,
        *,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.0,
        n_bins: int | str | None = "auto",
        strategy: str = "uniform",
        scope: str = "feature",
        negative: str = "shift",
        bias: Any = "auto",
        solver: str = "auto",
        tol: float = 0.1,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.n_bins = n_bins
        self.strategy = strategy
        self.scope = scope
        self.negative = negative
        self.bias = bias
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train. An interrupt (Ctrl-C) leaves a usable model, marked as not converged.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows of non-negative values.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Factor of ``C``; a weight of 2 is the row twice, one of 0 no row.

        Returns
        -------
        self : IntersectionSVR
        """
        self._check_parameters()
        rows, y = self._rows_and_targets(X, y, y_numeric=True)
        weights = self._weights(sample_weight, rows)
        used = weights > 0
        rows, targets, weights = rows[used], y[used].astype(np.float64), weights[used]
        if targets.size == 0:
            raise ValueError("sample_weight is zero for every row")
        center = float(np.average(targets, weights=weights))
        targets = targets - center
        most = float(np.abs(targets).max()) or 1.0  # squares of huge values are not finite
        unit = most * float(np.sqrt(np.average((targets / most) ** 2, weights=weights))) or 1.0
        training = self._train_on(rows, weights, 1)
        start = getattr(self, "_duals", None) if self.warm_start else None
        start = start[:, 0] if start is not None and len(start) == targets.size else None
        problem = regression(targets / unit, self.C * weights, self.loss)

        def solve(_: int, *, dual: Array | None = start, **course: Any) -> Result:
            epsilon = self.epsilon / unit
            return icd(
                training.rows, problem, bias=training.bias, epsilon=epsilon, dual=dual,
                seed=training.seed, **course,
            )  # fmt: skip

        (result,), watch = self._run(solve, ["fit"], (X, y))
        intercept = np.array([center + unit * float(result.bias)])
        self._keep(training, [result], unit * result.coef[:, None], intercept, watch)
        return self

    def predict(self, X: Any) -> Array:
        """The sum of ``explain(X)`` over the features, plus ``intercept_``.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
        """
        return self._scores(X)[:, 0]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("loss", self.loss, LOSSES)
        require_positive("epsilon", self.epsilon, or_zero=True)
