r"""Classification by least squares on kernel features, learnt from sums.

Every class has a target, 1 for its rows and -1 for others; all share one decomposition, and the
sums that targets add are sums by class, so the number of classes costs nearly nothing. The class of
the highest score is the answer (R. Rifkin, G. Yeo and T. Poggio, *Regularized Least-Squares
Classification*, 2003).
"""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array
from hilbin._parameters import require_whole
from hilbin.estimators._feature_model import FeatureModel
from hilbin.estimators._parameters import class_factors
from hilbin.estimators._passes import Indicators, Learn, Rank, labels_in
from hilbin.estimators._streamed import Passes, given_labels, keeps_sums, lies_in_memory
from hilbin.stats import ClassSums
from hilbin.stream import Chunks


class MapRidgeClassifier(ClassifierMixin, FeatureModel):
    r"""Ridge, lasso or group lasso classifier on the features of a kernel map, out of core.

    Minimizes :math:`\sum_i w_i (t_i - f(x_i))^2 + \alpha \|w\|^2` for the targets
    :math:`t_i = \pm 1` of every class, one class against the rest.

    Parameters
    ----------
    feature_map, alpha, n_components, penalty, blocks, alpha_selection
        As in :class:`MapRidge`.
    class_weight : dict or "balanced", optional
        Factor of the weights of the rows of each class.
    calibrate_rank : int, optional
        Shift the scores of every class so that its score at this rank, highest first, among the
        training rows is 0; the paper takes 500 of a million. Then every class is given to about as
        many rows, which suits classes of equal size in the data to come. Takes one more pass.
    n_fit_samples, keep_sums, tol, max_iter, n_jobs, checkpoint, memory, random_state
        As in :class:`MapRidge`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    coef_ : ndarray of shape (1 or n_classes, n_features_out)
        Weights of the features, components folded in.
    intercept_ : ndarray of shape (1 or n_classes,)
        Constant part of the scores.
    transformers_, alpha_, alphas_, errors_, n_components_, objective_, gap_, n_iter_
        As in :class:`MapRidge`.
    n_features_in_ : int
        Columns of ``X``.
    feature_names_in_ : ndarray
        Their names, if ``X`` has some.

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

    SCALE, SHIFT = 2.0, -1.0

    def __init__(
        self,
        feature_map: Any = None,
        alpha: Any = 1.0,
        *,
        n_components: Any = None,
        penalty: str = "ridge",
        blocks: Any = None,
        alpha_selection: str = "gcv",
        class_weight: Any = None,
        calibrate_rank: int | None = None,
        n_fit_samples: int = 10_000,
        keep_sums: bool = False,
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        memory: float | None = None,
        random_state: Any = 0,
    ):
        self.feature_map = feature_map
        self.alpha = alpha
        self.n_components = n_components
        self.penalty = penalty
        self.blocks = blocks
        self.alpha_selection = alpha_selection
        self.class_weight = class_weight
        self.calibrate_rank = calibrate_rank
        self.n_fit_samples = n_fit_samples
        self.keep_sums = keep_sums
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.memory = memory
        self.random_state = random_state

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
            Labels, unless the blocks of ``X`` bring them along.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is the row twice, one of 0 no row.
        unlabeled : like ``X``, or True, optional
            More rows, without labels; or True if rows of ``y = -1`` have none, as in
            :mod:`sklearn.semi_supervised`. They count for the principal components alone. Otherwise
            -1 is a label like others.
        client, callback
            As in :meth:`MapRidge.fit`.

        Returns
        -------
        self : MapRidgeClassifier
        """
        self._check_parameters()
        partly = isinstance(unlabeled, bool) and unlabeled
        more = None if isinstance(unlabeled, bool) else unlabeled
        if partly and self.n_components is None:
            self._refuse_unlabeled()
        chunks = self._open(X, y, sample_weight, reset=True, targets="labels")
        passes = Passes(self.checkpoint, self.n_jobs, client, callback)
        counts = self._count(chunks, y, sample_weight, partly, passes, X)
        self.classes_ = counts.labels
        targets = Indicators(self.classes_, self._factors(counts), partly)
        self._learn(chunks, targets, self._open_unlabeled(more), passes)
        if self.calibrate_rank is not None:
            self._calibrate(chunks, passes)
        passes.finish()
        return self

    @available_if(keeps_sums)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add rows to those of earlier calls: the model of them all, by adding sums.

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
        passes = Passes(self.checkpoint, self.n_jobs)
        if first:
            if classes is None:
                raise ValueError("classes must be given at the first call of partial_fit")
            known = ClassSums.of(classes)
            self._survey(chunks, passes, labels=known, classes=True)
            self.classes_ = self._several(known)
        counts = ClassSums.of(self.classes_)
        targets = Indicators(self.classes_, self._factors(counts))
        self._add(chunks, Learn(self.transformers_, targets, self._budget), passes)
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores of rows.

        Parameters
        ----------
        X : array-like, sparse, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of the second of two classes, or of every class.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The class of the highest score.

        Parameters
        ----------
        X : array-like, sparse, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "coef_")
        scores = self.decision_function(X)
        best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best.astype(np.intp)]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.calibrate_rank is not None:
            require_whole("calibrate_rank", self.calibrate_rank, 1)

    def _count(
        self, chunks: Chunks, y: Any, weight: Any, partly: bool, passes: Passes, X: Any
    ) -> ClassSums:
        """What classes there are, from ``y`` if it is in memory, else in the pass of the survey."""
        if lies_in_memory(X):
            check_classification_targets(y)
        given = given_labels(y, weight)
        labels = None if given is None else labels_in(*given, partly)
        found = self._survey(chunks, passes, labels=labels, classes=True, partly=partly)
        assert found is not None
        self._several(found)
        return found

    def _several(self, counts: ClassSums) -> Array:
        if counts.labels.size < 2:
            raise ValueError(
                "a classifier needs at least two classes, but the rows that count have "
                f"{counts.labels.size} class: {counts.labels.tolist()}"
            )
        return counts.labels

    def _factors(self, counts: ClassSums) -> Array | None:
        if self.class_weight is None:
            return None
        places = np.arange(counts.labels.size)
        return class_factors(self.class_weight, counts.labels, places, counts.n)

    def _calibrate(self, chunks: Chunks, passes: Passes) -> None:
        rank = self.calibrate_rank or 1
        of = Rank(self.transformers_, self._budget, self.coef_, self.intercept_, rank)
        level = passes.fold("calibration", chunks, of).at_rank()
        if self.classes_.size == 2:  # of the scores f and -f; half their difference decides
            level = (level[1:] - level[:1]) / 2
        self.intercept_ = self.intercept_ - level
