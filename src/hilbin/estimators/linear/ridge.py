r"""Regression and classification by least squares on kernel features.

A classifier has a target for every class, 1 for its rows and -1 for others. All targets share one
decomposition, and the sums that they add are sums by class, so the number of classes costs nearly
nothing. The class of the highest score is the answer (R. Rifkin, G. Yeo and T. Poggio,
*Regularized Least-Squares Classification*, 2003).
"""

from dataclasses import KW_ONLY
from typing import Any, NamedTuple, Self

import numpy as np

from hilbin._arrays import Array, to_dense
from hilbin._parameters import estimator, require_whole
from hilbin.estimators._callbacks import available_where
from hilbin.estimators._fit import check_classes, class_factors, random_seed
from hilbin.estimators.linear.base import ScoreRegressor, given_labels, keeps_sums
from hilbin.estimators.linear.cost import FirstRows, Plan
from hilbin.estimators.linear.least_squares import LeastSquares
from hilbin.estimators.linear.passes import (
    HighestScores,
    Indicators,
    LabeledSample,
    Numbers,
    Passes,
    TargetMoments,
    labels_in,
)
from hilbin.estimators.linear.transformers import joint_features
from hilbin.estimators.probability import ProbabilityClassifier
from hilbin.solvers.problem import Result
from hilbin.solvers.ridge import CenteredRows, Sums, leverages
from hilbin.stats import ClassSums, Moments
from hilbin.stream import Chunks

# rows that are left out one by one: a tenth, at least and at most
SAMPLED, ENOUGH_EXACT, MOST_EXACT = 10, 800, 5000
LEAST_LEFT = 1e-6  # of a row's own influence, so that one which alone decides its score counts


class LeftOut(NamedTuple):
    """Rows to leave out one by one, and how much each decides its own score."""

    places: Array
    weight: Array
    scores: Array
    share: Array


@estimator
class MapRidge(ScoreRegressor, LeastSquares):
    r"""Ridge, lasso or group lasso regression on the features of a kernel map, out of core.

    Minimizes :math:`\sum_i w_i (t_i - f(x_i))^2 + \alpha \|w\|^2`, or with
    ``penalty="lasso"`` the half mean of the squares plus :math:`\alpha \|w\|_1`, as scikit-learn
    does. The intercept is not penalized.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_out,) or (n_targets, n_features_out)
        Weights of the features, components folded in.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import MapRidge
    >>> from hilbin.kernels import Gaussian
    >>> from hilbin.maps import FourierMap
    >>> X = np.random.default_rng(0).random((500, 2))
    >>> y = np.sin(5 * X[:, 0]) * X[:, 1]
    >>> model = MapRidge(FourierMap(Gaussian(2.0), 200), alpha=1e-3).fit(X, y)
    >>> bool(model.score(X, y) > 0.99)
    True
    """

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        unlabeled: Any = None,
        client: Any = None,
        callback: Any = None,
    ) -> Self:
        """Learn.

        Parameters
        ----------
        X : array-like, sparse, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, unless the chunks of ``X`` bring them along.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, one of 0 as no row.
        unlabeled : like ``X``, optional
            More rows, without targets: they count for the principal components alone.
        client : distributed.Client, optional
            The Dask cluster to compute on.
        callback : callable, optional
            Function that is called with the name of the pass, the rows done, and all rows or None.

        Returns
        -------
        self : MapRidge
        """
        self._check_parameters()
        chunks = self._open(X, y, sample_weight, reset=True, targets="numbers")
        self._set_single(X, y)
        more = self._open_unlabeled(unlabeled)
        with self._passes(chunks, client, callback) as passes:
            self._fit_maps(passes)
            self._learn(passes, Numbers(), more)
        return self

    @available_where(keeps_sums)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those of earlier calls: the model is that of all rows, by adding sums.

        Needs ``keep_sums=True``. The maps are fitted to a sample of the rows of the first call.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        self : MapRidge
        """
        self._check_partial()
        first = self._is_first()
        chunks = self._open(X, y, sample_weight, reset=first, targets="numbers")
        with self._passes(chunks) as passes:
            if first:
                self._set_single(X, y)
                self._fit_maps(passes)
            self._add(passes, Numbers())
        return self


@estimator
class MapRidgeClassifier(ProbabilityClassifier, LeastSquares):
    r"""Ridge, lasso or group lasso classifier on the features of a kernel map, out of core.

    Minimizes :math:`\sum_i w_i (t_i - f(x_i))^2 + \alpha \|w\|^2` for the targets
    :math:`t_i = \pm 1` of every class, one class against the rest.

    Parameters
    ----------
    class_weight : dict or "balanced", optional
        Factor of the weights of the rows of each class.
    calibrate_rank : int, optional
        Shift the scores of every class so that its score at this rank, highest first, among the
        training rows is 0; the paper takes 500 of a million. Then every class is given to about as
        many rows, which suits classes of equal size in the data to come. It takes one more pass.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    coef_ : ndarray of shape (1 or n_classes, n_features_out)
        Weights of the features, components folded in.
    intercept_ : ndarray of shape (1 or n_classes,)
        Intercept of every score.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hilbin.estimators import MapRidgeClassifier
    >>> from hilbin.kernels import Chi2, Exponential
    >>> from hilbin.maps import FourierMap
    >>> X, y = load_digits(return_X_y=True)
    >>> kernel = FourierMap(Exponential(Chi2(), gamma="median"), 500)
    >>> model = MapRidgeClassifier(kernel, alpha=0.1).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.93)
    True
    """

    _: KW_ONLY
    class_weight: Any = None
    calibrate_rank: int | None = None

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        unlabeled: Any = None,
        client: Any = None,
        callback: Any = None,
    ) -> Self:
        """Learn.

        Parameters
        ----------
        X : array-like, sparse, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows.
        y : array-like of shape (n_samples,)
            Labels, unless the chunks of ``X`` bring them along.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, one of 0 as no row.
        unlabeled : like ``X``, or True, optional
            More rows, without labels; or True if rows of ``y = -1`` have none, as in
            :mod:`sklearn.semi_supervised`. They count for the principal components alone. Otherwise
            -1 is a label like others.
        client : distributed.Client, optional
            The Dask cluster to compute on.
        callback : callable, optional
            Function that is called with the name of the pass, the rows done, and all rows or None.

        Returns
        -------
        self : MapRidgeClassifier
        """
        self._check_parameters()
        partly = isinstance(unlabeled, bool) and unlabeled
        if partly:
            self._require_components()
        chunks = self._open(X, y, sample_weight, reset=True, targets="labels")
        more = self._open_unlabeled(None if isinstance(unlabeled, bool) else unlabeled)
        given = given_labels(y, sample_weight)
        counts: Any = None if given is None else labels_in(*given, partly)
        with self._passes(chunks, client, callback) as passes:
            found = self._fit_maps(passes, classes=counts is None, partly=partly)
            counts = found if counts is None else counts
            self.classes_ = check_classes(counts.labels, sample_weight)
            self._forget_calibration()
            self._learn(passes, Indicators(self.classes_, self._factors(counts), partly), more)
            if self.calibrate_rank is not None:
                self._calibrate(passes, self.calibrate_rank)
        return self

    @available_where(keeps_sums)
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add rows to those of earlier calls: the model is that of all rows, by adding sums.

        Needs ``keep_sums=True``. The maps are fitted to a sample of the rows of the first call.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        classes : array-like of shape (n_classes,), optional
            All labels, needed at the first call.

        Returns
        -------
        self : MapRidgeClassifier
        """
        if self.calibrate_rank is not None or isinstance(self.class_weight, str):
            raise ValueError(
                'calibrate_rank and class_weight="balanced" need all rows: use fit, or None'
            )
        self._check_partial()
        first = self._is_first()
        chunks = self._open(X, y, sample_weight, reset=first, targets="labels")
        with self._passes(chunks) as passes:
            if first:
                if classes is None:
                    raise ValueError("classes must be given at the first call of partial_fit")
                self._fit_maps(passes)
                self.classes_ = check_classes(ClassSums.of(classes).labels)
            factors = self._factors(ClassSums.of(self.classes_))
            self._add(passes, Indicators(self.classes_, factors))
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.calibrate_rank is not None:
            require_whole("calibrate_rank", self.calibrate_rank, 1)

    def _scaling(self) -> tuple[float, float]:
        return 2.0, -1.0

    def _n_targets(self, y: Any) -> int:
        classes = 2 if y is None else np.unique(y).size
        return classes if classes > 2 else 1

    def _plan(self, widths: tuple[int, ...], rows: FirstRows, n_workers: int) -> Plan:
        plan = super()._plan(widths, rows, n_workers)
        plan = plan._replace(read=int(self.probability and not plan.few_rows))
        if self.calibrate_rank is None:
            return plan
        return plan._replace(scored=(*plan.scored, 2 * sum(widths) * plan.targets))

    def _factors(self, counts: ClassSums) -> Array | None:
        if self.class_weight is None:
            return None
        places = np.arange(counts.labels.size)
        return class_factors(self.class_weight, counts.labels, places, counts.n)

    def _calibrate(self, passes: Passes, rank: int) -> None:
        of = HighestScores(self.transformers_, self._budget, self.coef_, self.intercept_, rank)
        level = passes.fold("calibration", of).at_rank()
        if self.classes_.size == 2:  # those of the scores f and -f; half their difference decides
            level = (level[1:] - level[:1]) / 2
        self.intercept_ = self.intercept_ - level
        if self.probability:
            calibration = self.calibration_
            calibration.intercept_ = calibration.intercept_ + calibration.coef_ * level

    def _solved(
        self, passes: Passes, of: TargetMoments, moments: Sums, components: Array | None
    ) -> Result:
        result = super()._solved(passes, of, moments, components)
        if self.probability:
            self._learn_probabilities(passes, of, moments, components, result)
        return result

    def _learn_probabilities(
        self,
        passes: Passes,
        of: TargetMoments,
        moments: Sums,
        components: Array | None,
        result: Result,
    ) -> None:
        r"""Calibrate by rows that are left out in turn: all that are kept, or a sample.

        The score of a row that is left out is
        :math:`t_i - (t_i - f(z_i)) / (1 - h_i)` with its leverage :math:`h_i`. Lasso is taken for
        least squares on the features that it has chosen.
        """
        if isinstance(moments, CenteredRows):
            places, weight, scores, share = self._kept(of, moments, result)
        else:
            places, weight, scores, share = self._sampled(passes, of, moments, components, result)
        own = np.arange(self.classes_.size) == places[:, None]
        T = np.where(own[:, 1:] if self.classes_.size == 2 else own, 1.0, -1.0)
        left = np.maximum(1 - share, LEAST_LEFT)[:, None]
        self._keep_calibration(T - (T - scores) / left, places, weight)

    def _kept(self, of: TargetMoments, rows: CenteredRows, result: Result) -> LeftOut:
        """Return what is known of all rows, from their inner products."""
        root, factors = np.sqrt(rows.weight)[:, None], getattr(of.targets, "factors", None)
        T = rows.targets / root + rows.target_mean
        places = T.argmax(axis=1) if self.classes_.size > 2 else (T[:, 0] > 0).astype(np.intp)
        scores = rows.rows @ result.coef / root + rows.target_mean
        share = leverages(rows, self.alpha_)
        if factors is None:
            return LeftOut(places, rows.weight, scores, share)
        own = factors[places]
        return LeftOut(places, rows.weight / own, scores, share * own)

    def _sampled(
        self,
        passes: Passes,
        of: TargetMoments,
        moments: Moments,
        components: Array | None,
        result: Result,
    ) -> LeftOut:
        """Return what is known of a random sample of the rows, which are read again."""
        targets: Any = of.targets
        count = passes.data.n_rows if isinstance(passes.data, Chunks) else None
        size = int(np.clip((count or 0) // SAMPLED, ENOUGH_EXACT, MOST_EXACT))
        sample = LabeledSample(targets, size, random_seed(self.random_state))
        X, known = (part.rows for part in passes.fold("probabilities", sample).parts)
        places, weight = known[:, 0].astype(np.intp), known[:, 1]
        Z = to_dense(joint_features(of.transformers, X, of.projections))
        Z = Z if components is None else Z @ components.T
        if self.penalty == "ridge":
            share = leverages(moments, self.alpha_, Z)
        elif self.penalty == "multiple":
            sums = self._grouped(of, moments, components)
            factors = sums.factors(self.weights_)
            used = np.flatnonzero(factors)
            share = leverages(sums.scaled(self.weights_), self.alpha_, Z[:, used] * factors[used])
        else:
            share = leverages(moments, 0.0, Z, np.flatnonzero(result.coef.any(axis=1)))
        if targets.factors is not None:
            share = share * targets.factors[places]
        return LeftOut(places, weight, Z @ result.coef + result.intercept, share)
