r"""Support vector machines on the features of a kernel map, with the map's own inner product.

:math:`f(x) = b + v^\top \Phi(x)`. Where the features of a map are sparse, their inner product is
not the ordinary one: :math:`k(x, y) \approx \Phi(x)^\top K \Phi(y)`. Making them orthonormal would
fill them; the bundle solver needs only products with :math:`K`, one after every pass over the data.
Features in memory are left to faster solvers if their inner product is the ordinary one, or if they
are pairs of neighbors (A. Vedaldi and A. Zisserman, *Sparse Kernel Approximations for Efficient
Classification and Detection*, CVPR 2012).
"""

from contextlib import nullcontext
from dataclasses import KW_ONLY, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _check_y, check_is_fitted

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice, require_positive, require_whole
from hilbin.estimators._fit import (
    SMALL,
    CallbackSupportMixin,
    Fit,
    check_classes,
    checked_weights,
    class_factors,
    random_seed,
    with_callbacks,
)
from hilbin.estimators._sizes import finite_scores, require_finite, without_warnings
from hilbin.estimators.linear.base import MapModel, ScoreRegressor
from hilbin.estimators.linear.passes import (
    Indicators,
    LabeledSample,
    Numbers,
    Passes,
    required_targets,
)
from hilbin.estimators.linear.risk import (
    ChunkRisk,
    Features,
    StreamedRisk,
    inner_product,
    last_step,
    uncoded,
)
from hilbin.estimators.probability import ProbabilityClassifier, row_keys
from hilbin.maps import PQCodes, ProductQuantizer
from hilbin.maps.pq import require_same_words
from hilbin.parallel import blas_threads
from hilbin.solvers.bundle import bundle
from hilbin.solvers.coded import PairRows
from hilbin.solvers.linear import linear, suits
from hilbin.solvers.problem import Callback, Result
from hilbin.solvers.risk import EpsilonInsensitive, Hinge, Logistic, Loss
from hilbin.solvers.working_sets import has_working_sets, working_sets
from hilbin.stream import Chunk, Chunks

EXACT_TOL = 1e-4  # below it, features are not rounded to compact kinds
TOL_AGAIN, TOL_FEW = 0.05, 1e-6  # of the solution without some of the rows; of few rows
SAMPLE = 2000  # rows of those left out, by which chunks are calibrated
EXPANSIONS = ("delayed", "immediate")
CLASSIFICATION: dict[str, Loss] = {
    "hinge": Hinge(),
    "squared_hinge": Hinge(squared=True),
    "logistic": Logistic(),
}
REGRESSION = ("epsilon_insensitive", "squared_epsilon_insensitive")


class Trained(NamedTuple):
    """What a machine was trained on: passes over all rows, or rows in memory, and their risk."""

    passes: Passes
    rows: Chunk | Chunks
    of: ChunkRisk
    risk: Any


@estimator
class MapMachine(CallbackSupportMixin, MapModel):
    """Base of the support vector machines on the features of a map.

    Parameters
    ----------
    feature_map : transformer, optional
        A map of :mod:`hilbin.maps`, or any transformer; without one the columns themselves are the
        features. It is cloned and fitted to a sample of the different rows, with their weights if
        its ``fit`` takes some; so for the map, too, a weight of 2 is equivalent to repeating the
        row. A map in :class:`sklearn.frozen.FrozenEstimator` is used as it is. Sparse maps
        (``SparseMap``, ``SparseProjectionMap``) train with their own inner product, and need not be
        orthonormal; a :class:`~hilbin.maps.ProductQuantizer` trains on codes, also of data that are
        not in memory. Rows to predict are then scored as they are, unless they are codes.
    C : float, default=1.0
        Weight of the loss.
    fit_intercept : bool, default=True
        Whether scores have an intercept, the weight of a constant feature.
    intercept_scaling : float, default=1.0
        Value :math:`s` of the constant feature: the larger, the less is the intercept penalized.
    tol : float, default=1e-3
        Largest gap between an objective and its lower bound, relative to it.
    max_iter : int, default=1000
        Largest number of passes over the data.
    max_time : float, optional
        Seconds after which training stops, with a usable model.
    expansion : {"delayed", "immediate"}, default="delayed"
        How codes of a product quantizer are scored: weights are multiplied with the codewords
        first, so that rows are sums of looked-up numbers; or rows are decoded again in every pass.
        Other features are not affected.
    n_jobs : int, optional
        Number of threads of BLAS if the data are in memory, else of chunks computed side by side.
    memory : float, optional
        MiB for rows and features in memory at a time, if the data are not in memory; scikit-learn's
        ``working_memory`` by default.
    verbose : int, default=0
        1 prints how the fit ended, 2 every pass as well.

    Attributes
    ----------
    feature_map_ : transformer or None
        The fitted map.
    objective_, gap_ : ndarray of shape (n_scores,)
        Value of the problem, and how far it can be above the optimum.
    n_iter_ : int
        Number of passes over the data.
    converged_ : bool
        Whether every score reached the tolerance.
    """

    feature_map: Any = None
    C: float = 1.0
    _: KW_ONLY
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    tol: float = 1e-3
    max_iter: int = 1000
    max_time: float | None = None
    expansion: str = "delayed"
    verbose: int = 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("C", self.C)
        require_positive("intercept_scaling", self.intercept_scaling)
        require_positive("tol", self.tol)
        require_whole("max_iter", self.max_iter, 1)
        require_choice("expansion", self.expansion, EXPANSIONS)
        if self.max_time is not None:
            require_positive("max_time, if not None,", self.max_time)

    def _rows(
        self, X: Any, y: Any = None, weight: Any = None, *, reset: bool, targets: str | None = None
    ) -> Chunk | Chunks:
        """Return checked rows, which may be codes."""
        if not isinstance(X, PQCodes):
            return super()._rows(X, y, weight, reset=reset, targets=targets)
        if self.feature_map is not None:
            raise ValueError(
                "X is coded already: give feature_map=None, or rows that are not coded"
            )
        if y is None:
            raise ValueError(f"This {type(self).__name__} requires y to be passed")
        numbers = targets == "numbers"
        y = _check_y(y, multi_output=numbers, y_numeric=numbers, estimator=self)
        check_consistent_length(X, y)
        self._check_width(X.n_features, reset)
        return Chunk(X, y, None if weight is None else checked_weights(weight, X), 0, "X")

    def _fit_map(self, passes: Passes, *, classes: bool) -> Any:
        """Keep the fitted map, and return the classes if asked."""
        ((_, _, self.feature_map_),), counts = self._survey(passes, classes=classes)
        rows = passes.data.X if isinstance(passes.data, Chunk) else None
        self._fingerprint = rows.fingerprint if isinstance(rows, PQCodes) else None
        return counts

    @without_warnings()
    def _train(
        self, passes: Passes, targets: Numbers | Indicators, loss: Loss, data: tuple[Any, Any]
    ) -> "Trained":
        """Solve for all scores, and keep the model; return what it was trained on."""
        constant = float(self.intercept_scaling) ** 2 if self.fit_intercept else 0.0
        of = ChunkRisk(self._features(self.feature_map_), targets, loss, float(self.C), constant)
        rows = passes.data
        if isinstance(rows, Chunks) and isinstance(last_step(self.feature_map_), ProductQuantizer):
            rows = self._encoded(rows)
        threads = blas_threads(self.n_jobs) if isinstance(rows, Chunk) else nullcontext()
        with Fit(self, *data, ["all tasks"], unit="pass") as fit:
            fit.max_iter = self.max_iter
            with fit.problem(0) as callback, threads:
                risk: Any = of(rows) if isinstance(rows, Chunk) else StreamedRisk(of, passes)
                result = self._minimized(risk, self.tol, callback)
            fit.say(0, result)
            fit.keep([result])
            require_finite(self, "objective_")
            if isinstance(getattr(risk, "rows", None), PairRows):  # which are of single precision
                result = replace(result, coef=result.coef.astype(risk.rows.source_dtype))
            self._keep(result)
        return Trained(passes, rows, of, risk)

    def _minimized(self, risk: Any, tol: float, callback: Callback | None = None) -> Result:
        """Return the solution by the solver for such rows.

        Few rows are left to cutting planes, whose passes do not depend on chance: a weight is a
        repetition for them to rounding.
        """
        inner = inner_product(self.feature_map_)
        given: dict[str, Any] = {"tol": tol, "max_iter": self.max_iter, "callback": callback}
        fits = inner is None and suits(risk)
        if fits and (not risk.loss.quadratic or risk.rows.shape[0] > SMALL):
            return linear(risk, seed=random_seed(self.random_state), n_jobs=self.n_jobs, **given)
        if has_working_sets(risk, inner) and risk.rows.shape[0] > SMALL:
            chance: dict[str, Any] = {"seed": random_seed(self.random_state), "n_jobs": self.n_jobs}
            found = working_sets(risk, inner, **chance, **given)
            if found is not None:
                return found
        return bundle(risk, inner=inner, **given)

    def _features(self, feature_map: Any) -> Features:
        exact = self.tol < EXACT_TOL
        return Features(feature_map, self.expansion, exact, self.n_jobs, self._budget)

    def _encoded(self, chunks: Chunks) -> Chunk:
        """Return the codes of all chunks as one, as they are small enough to be kept in memory."""
        codes, labels, weights, weighted = [], [], [], False
        for chunk in chunks:
            y = required_targets(chunk)
            codes.append(self.feature_map_.transform(chunk.X))
            labels.append(y)
            weights.append(np.ones(len(y)) if chunk.weight is None else chunk.weight)
            weighted |= chunk.weight is not None
        weight = np.concatenate(weights) if weighted else None
        return Chunk(codes[0].append(*codes[1:]), np.concatenate(labels), weight, 0, "X")

    def _keep(self, result: Result) -> None:
        self._keep_weights(*self._weights(result))

    def _weights(self, result: Result) -> tuple[Array, Array]:
        """Return the weights of the features, and the intercepts."""
        coef, intercept = result.coef, np.zeros(len(result.coef))
        if self.fit_intercept:
            intercept = float(self.intercept_scaling) * coef[:, -1].astype(np.float64)
            coef = np.ascontiguousarray(coef[:, :-1])
        return coef, intercept

    def _scores(self, X: Any) -> Array:
        """Return the scores of rows, chunk by chunk."""
        check_is_fitted(self, "coef_")
        return self._scores_by(X, np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_))

    @without_warnings()
    def _scores_by(self, X: Any, coef: Array, intercept: Array) -> Array:
        """Return the scores of rows by other weights."""
        if isinstance(X, PQCodes):
            self._require_own_codes(X)
            return self._features(None).rows(X).scores(coef) + intercept
        features = self._features(uncoded(self.feature_map_)).unrounded
        parts = [
            features.rows(part.X).scores(coef) + intercept
            for chunk in self._chunks(X)
            for part in features.slices(chunk, coef.shape[1])
        ]
        return finite_scores(np.concatenate(parts) if parts else np.empty((0, len(coef))))

    def _require_own_codes(self, codes: PQCodes) -> None:
        """Refuse codes whose words are not those the model has learned."""
        last = last_step(self.feature_map_)
        own = last.fingerprint_ if isinstance(last, ProductQuantizer) else self._fingerprint
        if own is not None:
            require_same_words(own, codes)
        elif self.feature_map_ is not None:
            raise ValueError("X is coded, but the model was trained on the features of its map")
        else:
            self._check_width(codes.n_features, reset=False)


@estimator
class MapSVC(ProbabilityClassifier, MapMachine):
    r"""Linear classifier on the features of a kernel map, also out of core.

    Minimizes :math:`\tfrac12 v^\top K^+ v + \tfrac12 (b / s)^2 + C \sum_i w_i \ell(y_i f(x_i))` for
    every class against the rest, with :math:`K` the inner product of the map's features: the
    problem of :class:`sklearn.svm.LinearSVC` on orthonormal features. Features in memory are
    trained on by :func:`~hilbin.solvers.linear`, sparse maps in memory by descents on working sets;
    codes and streams by :func:`~hilbin.solvers.bundle`, where all classes share the passes over the
    data. The result is within ``tol`` of the optimum, by a certificate (``gap_``).

    Parameters
    ----------
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        :math:`\max(0, 1 - yf)`, its square, or :math:`\log(1 + e^{-yf})`.
    class_weight : dict or "balanced", optional
        Factor of ``C`` for the rows of each class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    coef_ : ndarray of shape (n_scores, n_features_out)
        Weights :math:`v` of the features: float32 if these are.
    intercept_ : ndarray of shape (n_scores,)
        Intercept :math:`b` of every score.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hilbin.estimators import MapSVC
    >>> from hilbin.kernels import Chi2
    >>> from hilbin.maps import SparseMap
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MapSVC(SparseMap(Chi2(), 12), C=0.01).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.92
    True
    """

    _: KW_ONLY
    loss: str = "hinge"
    class_weight: Any = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None) -> Self:
        """Train. An interrupt (Ctrl-C) leaves a usable model, marked as not converged.

        Parameters
        ----------
        X : array-like, sparse, PQCodes, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows. Features of rows in memory are kept in memory, and so are codes; others are
            computed again in every pass.
        y : array-like of shape (n_samples,)
            Labels, unless the chunks of ``X`` bring them along.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, one of 0 as no row.
        client : distributed.Client, optional
            The Dask cluster to compute on.

        Returns
        -------
        self : MapSVC
        """
        self._check_parameters()
        rows = self._rows(X, y, sample_weight, reset=True, targets="labels")
        passes = Passes(rows, self.n_jobs, client)
        counts = self._fit_map(passes, classes=True)
        self.classes_, factors = check_classes(counts.labels, sample_weight), None
        if self.class_weight is not None:
            places = np.arange(self.classes_.size)
            factors = class_factors(self.class_weight, self.classes_, places, counts.n)
        targets = Indicators(self.classes_, factors)
        self._forget_calibration()
        trained = self._train(passes, targets, CLASSIFICATION[self.loss], (X, y))
        if self.probability:
            if isinstance(trained.rows, Chunk):
                self._learn_in_memory(trained.rows, trained.risk, targets)
            else:
                self._learn_again(trained, targets)
        return self

    def _again(self, risk: Any, rows: int | None = None) -> Result:
        """Return a looser solution, of another risk; few rows are solved to rounding."""
        tol = TOL_FEW if rows is not None and rows <= SMALL else max(self.tol, TOL_AGAIN)
        return self._minimized(risk, tol)

    def _learn_in_memory(self, rows: Chunk, risk: Any, targets: Indicators) -> None:
        """Train again without some of the rows, whose features are there, and calibrate."""
        places = targets.places(required_targets(rows))
        weight = np.ones(places.size) if rows.weight is None else rows.weight
        used = weight > 0

        def scores_without(left_out: Array) -> Array:
            marked = np.zeros(weight.size, bool)
            marked[used] = left_out
            with blas_threads(self.n_jobs):
                result = self._again(risk.without(marked), weight.size)
                return risk.scores(result.coef)[marked].astype(np.float64)

        keys = row_keys(rows.X)[used]
        self._learn_calibration(keys, places[used], weight[used], scores_without)

    def _learn_again(self, trained: "Trained", targets: Indicators) -> None:
        """Train again without a tenth of the rows, and calibrate by a sample of these."""
        risk = StreamedRisk(replace(trained.of, partly=True), trained.passes)
        weights = self._weights(self._again(risk))
        sample = LabeledSample(targets, SAMPLE, random_seed(self.random_state), left_out=True)
        rows, known = (part.rows for part in trained.passes.fold("probabilities", sample).parts)
        scores = self._scores_by(rows, *weights)
        self._keep_calibration(scores, known[:, 0].astype(np.intp), known[:, 1])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("loss", self.loss, tuple(CLASSIFICATION))


@estimator
class MapSVR(ScoreRegressor, MapMachine):
    r"""Linear regression on the features of a kernel map, also out of core.

    Minimizes :math:`\tfrac12 v^\top K^+ v + \tfrac12 (b / s)^2 + C \sum_i w_i \ell(y_i - f(x_i))`
    with :math:`\ell(r) = \max(0, |r| - \epsilon)` or its square: the problem of
    :class:`sklearn.svm.LinearSVR` on orthonormal features. Several targets share the passes over
    the data.

    Parameters
    ----------
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The loss.
    epsilon : float, default=0.0
        Largest error that costs nothing.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_out,) or (n_targets, n_features_out)
        Weights :math:`v` of the features.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept :math:`b`.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import MapSVR
    >>> from hilbin.kernels import Intersection
    >>> from hilbin.maps import SparseMap
    >>> X = np.random.default_rng(0).random((500, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2
    >>> MapSVR(SparseMap(Intersection()), C=10.0).fit(X, y).score(X, y) > 0.99
    True
    """

    _: KW_ONLY
    loss: str = "epsilon_insensitive"
    epsilon: float = 0.0

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None) -> Self:
        """Train. An interrupt (Ctrl-C) leaves a usable model, marked as not converged.

        Parameters
        ----------
        X : array-like, sparse, PQCodes, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows. Features of rows in memory are kept in memory, and so are codes; others are
            computed again in every pass.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, unless the chunks of ``X`` bring them along.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, one of 0 as no row.
        client : distributed.Client, optional
            The Dask cluster to compute on.

        Returns
        -------
        self : MapSVR
        """
        self._check_parameters()
        rows = self._rows(X, y, sample_weight, reset=True, targets="numbers")
        self._set_single(X, y)
        passes = Passes(rows, self.n_jobs, client)
        self._fit_map(passes, classes=False)
        loss = EpsilonInsensitive(float(self.epsilon), squared=self.loss.startswith("squared"))
        self._train(passes, Numbers(), loss, (X, y))
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("loss", self.loss, REGRESSION)
        require_positive("epsilon", self.epsilon, or_zero=True)
