r"""The candidates for images: machines on the weighted channels of their rows.

Additive ones, whose heat maps are exact:

- a support vector machine and ridge classifiers on the features of :math:`\chi^2` or of the
  intersection kernel, every channel with its own scale and weight (:mod:`hilbin.auto.channels`) or
  the square of this weight;
- the histogram intersection SVM on rows whose channels are weighted in the same way.

Others: the support vector machine with :math:`e^{-\gamma \chi^2}` of these rows, a product over the
channels. A linear SVM on square roots, unweighted, is the plain baseline.

The Gram matrices of the channels are computed once. They give the weights of the channels, the
penalty, the held-out scores of every ridge and, if one is chosen, the model itself. An exponential
of :math:`\chi^2` is compared by its distances :math:`K_{ii} + K_{jj} - 2 K_{ij}`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from hilbin import parallel
from hilbin._arrays import Array
from hilbin._state import stored
from hilbin.auto.channels import ChannelMap, ChannelWeights
from hilbin.auto.choice import class_scores, correct_rows
from hilbin.auto.dual import (
    ALPHAS,
    MOST_ROWS,
    Dual,
    DualRidgeClassifier,
    DualSVC,
    class_targets,
)
from hilbin.auto.image_rows import COMPONENTS, ImageRows
from hilbin.estimators import IntersectionSVC, KernelSVC
from hilbin.kernels import (
    AdditiveKernel,
    Chi2,
    Exponential,
    Hellinger,
    Intersection,
    JensenShannon,
)
from hilbin.maps import AdditiveMap

KERNELS = ("auto", "chi2", "intersection", "js", "hellinger", "linear", "exp-chi2")
PLAIN = "square roots + LinearSVC"
POWERS = (1.0, 2.0)  # of the weights of the channels
BINS = 16  # of the intersection SVM: more make larger models, not better ones
INTERSECTION_CS = (3.0, 30.0)  # in units of 1 / the mean of k(x, x)
INTERSECTION_CELLS = 4e9  # rows x columns x classes that an intersection SVM is compared on
EXPONENT_ROWS = 4000  # rows that an exponential is compared on
EXPONENT_C = 10.0
WIDTHS = (0.3, 0.8)  # gamma, in units of 1 / the mean distance
BASELINE_CS = (1.0, 10.0)  # in units of 1 / the mean of k(x, x)


def _both(scores: Array) -> Array:
    return np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores


def _accuracy(scores: Array, y: Array) -> float:
    """Return the share of right answers among the images that were left out; 0 if none was."""
    right = correct_rows(scores, y)
    return float(right[~np.isnan(right)].mean()) if not np.isnan(right).all() else 0.0


@dataclass
class ImageCandidate:
    """Base of the candidates: they score images by models that have not seen them.

    Parameters
    ----------
    name : str
        Name of the candidate.
    data : ImageRows or None
        The training rows; None once they are forgotten.
    """

    name: str
    data: ImageRows | None

    @property
    def rows(self) -> ImageRows:
        """The training rows."""
        assert self.data is not None, "the candidate has forgotten its rows"
        return self.data

    def by_folds(
        self, images: Array, y: Array, folds: Array, fit: Callable[[Array, Array, Array], Array]
    ) -> Array:
        """Return the held-out scores of images.

        Parameters
        ----------
        images : int array of shape (n_images,)
            Numbers of images.
        y, folds : int array of shape (n_images,)
            Numbers of classes, and of the folds that leave the images out.
        fit : callable
            Takes the rows to train on (copies included), their classes, and the rows to score.
        """
        data = self.rows
        used, place = data.places(images)
        scores = np.full((y.size, int(y.max()) + 1), np.nan)
        for fold in range(folds.max() + 1):
            train = np.flatnonzero(folds[place] != fold)
            test = np.flatnonzero((folds[place] == fold) & ~data.is_copy[used])
            scores[place[test]] = fit(used[train], y[place[train]], used[test])
        return scores


@stored
@dataclass
class RidgeCandidate(ImageCandidate):
    """A ridge classifier on the mapped and weighted channels.

    Parameters
    ----------
    name, data
        As in :class:`ImageCandidate`.
    kernel : AdditiveKernel or None
        Kernel of the values; None is linear.
    """

    kernel: AdditiveKernel | None
    explainable: bool = True
    alpha: float | None = None
    power: float = 1.0

    def held_out(self, rows: Any, y: Array, folds: Array, seed: int) -> Array:
        """Score images by a model that has not seen them; ``rows`` are numbers of images."""
        data = self.rows
        _, grams, weights = data.of_kernel(self.kernel)
        if self.alpha is None:
            self.power, self.alpha = grams.best_power(weights, POWERS, ALPHAS)
        K = grams.combined(grams.sharper(weights, self.power))
        used, place = data.places(rows)
        at = np.searchsorted(data.sample, used)
        known = np.isin(used, data.sample)
        used, place, at = used[known], place[known], at[known]
        whole = used.size == len(K)
        gram = K if whole else K[np.ix_(at, at)]
        targets = class_targets(y[place], int(y.max()) + 1)
        found = Dual.solve(gram, targets, self.alpha, data.weights[used]).held_out(folds[place])
        scores = np.full((y.size, targets.shape[1]), np.nan)
        originals = ~data.is_copy[used]
        scores[place[originals]] = found[originals]
        return _both(scores)

    def make(self) -> Any:
        """Return the classifier to train on all rows."""
        data = self.rows
        features = ChannelMap(
            data.channels,
            kernel=self.kernel,
            n_components=COMPONENTS,
            power=self.power,
            n_jobs=data.n_jobs,
        )
        alphas = ALPHAS if self.alpha is None else (self.alpha,)
        ridge = DualRidgeClassifier(alphas, class_weight=data.class_weight)
        return Pipeline([("channels", features), ("classifier", ridge)])

    def train(self) -> Any:
        """Return the trained classifier, from the Gram matrices that are known."""
        data = self.rows
        features, grams, weights = data.of_kernel(self.kernel)
        weights = grams.sharper(weights, self.power)
        ridge = self.make()[1]
        dual, row_weights = ridge.fit_gram(
            grams.combined(weights), data.labels, np.ones(len(data.rows)), data.origin
        )
        features.set_params(power=self.power).set_weights(weights)
        ridge.coef_, scores = features.combination(data.rows, dual.coef)
        ridge.intercept_ = np.average(dual.targets - scores, axis=0, weights=row_weights)
        ridge.n_features_in_ = ridge.coef_.shape[1]
        return Pipeline([("channels", features), ("classifier", ridge)])


@stored
@dataclass
class SupportCandidate(ImageCandidate):
    """A support vector machine on the mapped and weighted channels.

    Parameters
    ----------
    name, data
        As in :class:`ImageCandidate`.
    kernel : AdditiveKernel
        Kernel of the values.
    """

    kernel: AdditiveKernel
    explainable: bool = True
    power: float | None = None

    def held_out(self, rows: Any, y: Array, folds: Array, seed: int) -> Array:
        """Score images by a model that has not seen them; ``rows`` are numbers of images."""
        _, grams, weights = self.rows.of_kernel(self.kernel)
        powers = POWERS if self.power is None and weights.size > 1 else [self.power or 1.0]
        found = [
            self._scores(grams.combined(grams.sharper(weights, power)), rows, y, folds)
            for power in powers
        ]
        best = int(np.argmax([_accuracy(scores, y) for scores in found]))
        self.power = powers[best]
        return found[best]

    def _scores(self, K: Array, rows: Array, y: Array, folds: Array) -> Array:
        def fit(train: Array, labels: Array, test: Array) -> Array:
            machine = KernelSVC("precomputed", C=DualSVC().C, n_jobs=self.rows.n_jobs)
            machine.fit(K[np.ix_(train, train)], labels)
            return class_scores(machine, K[np.ix_(test, train)])

        return self.by_folds(rows, y, folds, fit)

    def make(self) -> Any:
        """Return the classifier to train on all rows."""
        data = self.rows
        features = ChannelMap(
            data.channels,
            kernel=self.kernel,
            n_components=COMPONENTS,
            power=self.power or 1.0,
            n_jobs=data.n_jobs,
        )
        machine = DualSVC(class_weight=data.class_weight, n_jobs=data.n_jobs)
        return Pipeline([("channels", features), ("classifier", machine)])

    def train(self) -> Any:
        """Return the trained classifier, from the Gram matrices that are known."""
        data = self.rows
        features, grams, weights = data.of_kernel(self.kernel)
        weights = grams.sharper(weights, self.power or 1.0)
        machine = self.make()[1]
        coef, intercept = machine.fit_gram(grams.combined(weights), data.labels)
        coef -= coef.mean(axis=0)  # the same for rows that are centered
        features.set_params(power=self.power or 1.0).set_weights(weights)
        machine.coef_, scores = features.combination(data.rows, coef)
        machine.intercept_ = intercept - scores.mean(axis=0)
        machine.n_features_in_ = machine.coef_.shape[1]
        return Pipeline([("channels", features), ("classifier", machine)])


@stored
@dataclass
class IntersectionChannels(ImageCandidate):
    """An intersection SVM on rows of weighted channels.

    Parameters
    ----------
    name, data
        As in :class:`ImageCandidate`.
    """

    explainable: bool = True
    C: float | None = None
    factors: list[float] | None = None

    def held_out(self, rows: Any, y: Array, folds: Array, seed: int) -> Array:
        """Score images by a model that has not seen them; ``rows`` are numbers of images."""
        data = self.rows
        self.factors = data.factors()
        used = data.places(rows)[0]
        X = ChannelWeights(data.channels, self.factors).fit_transform(data.rows[used])
        # features are counted in hundredths of the largest value of all
        unit = 100 * float(X.sum(dtype=np.float64)) / len(X) / (float(X.max()) or 1.0)
        Cs = [c / (unit or 1.0) for c in INTERSECTION_CS] if self.C is None else [self.C]
        at = np.zeros(len(data.rows), np.intp)
        at[used] = np.arange(used.size)

        def scores(C: float) -> Array:
            def fit(train: Array, labels: Array, test: Array) -> Array:
                model = self._machine(C, data).fit(X[at[train]], labels)
                return class_scores(model, X[at[test]])

            return self.by_folds(rows, y, folds, fit)

        found = [scores(C) for C in Cs]
        best = int(np.argmax([_accuracy(one, y) for one in found]))
        self.C = Cs[best]
        return found[best]

    def _machine(self, C: float, data: ImageRows) -> IntersectionSVC:
        return IntersectionSVC(
            C, n_bins=BINS, scope="all", random_state=data.seed, n_jobs=data.n_jobs
        )

    def make(self) -> Any:
        """Return the classifier to train on all rows."""
        data = self.rows
        machine = self._machine(self.C or 1e-3, data)
        machine.set_params(class_weight=data.class_weight)
        weigh = ChannelWeights(data.channels, self.factors)
        return Pipeline([("channels", weigh), ("classifier", machine)])


@stored
@dataclass
class ExponentialChannels(ImageCandidate):
    """A support vector machine with the exponential of chi-squared, a product over the channels.

    Parameters
    ----------
    name, data
        As in :class:`ImageCandidate`.
    """

    explainable: bool = False
    gamma: float | None = None
    factors: list[float] | None = None

    def held_out(self, rows: Any, y: Array, folds: Array, seed: int) -> Array:
        """Score images by a model that has not seen them; ``rows`` are numbers of images."""
        data = self.rows
        self.factors = data.factors()
        used = data.places(rows)[0]
        D, scale = self._distances(data, used)
        mean = float(D.mean()) or 1.0
        at = np.zeros(len(data.rows), np.intp)
        at[used] = np.arange(used.size)
        best: tuple[float, Array] | None = None
        for width in WIDTHS if self.gamma is None else [self.gamma / scale * mean]:
            K = np.exp(-width / mean * D).astype(np.float32)

            def fit(train: Array, labels: Array, test: Array, K: Array = K) -> Array:
                model = KernelSVC("precomputed", C=EXPONENT_C, n_jobs=data.n_jobs)
                model.fit(K[np.ix_(at[train], at[train])], labels)
                return class_scores(model, K[np.ix_(at[test], at[train])])

            scores = self.by_folds(rows, y, folds, fit)
            accuracy = _accuracy(scores, y)
            if best is None or accuracy > best[0]:
                best, self.gamma = (accuracy, scores), width / mean * scale
        assert best is not None
        return best[1]

    def _distances(self, data: ImageRows, used: Array) -> tuple[Array, float]:
        """Return squared distances, and those of weighted rows over them."""
        made, grams, weights = data.of_kernel(Chi2())
        at = np.searchsorted(data.sample, used)
        K = grams.combined(weights)[np.ix_(at, at)]
        norms = np.diag(K)
        assert self.factors is not None
        first = int(np.argmax(self.factors))
        variance = weights[first] * np.square(made.factors_[first]) / made.weights_[first]
        scale = variance / self.factors[first]
        return np.maximum(norms[:, None] + norms - 2 * K, 0), float(scale)

    def make(self) -> Any:
        """Return the classifier to train on all rows."""
        assert self.gamma is not None
        data = self.rows
        weigh = ChannelWeights(data.channels, self.factors)
        # the distance of Exponential is half the squared one in the feature space
        kernel = Exponential(Chi2(), 2 * self.gamma)
        machine = KernelSVC(
            kernel, C=EXPONENT_C, class_weight=data.class_weight, n_jobs=data.n_jobs
        )
        return Pipeline([("channels", weigh), ("classifier", machine)])


@stored
@dataclass
class SquareRoots(ImageCandidate):
    """The plain baseline: a linear SVM on the square roots of rows whose channels have mean sum 1.

    Parameters
    ----------
    name, data
        As in :class:`ImageCandidate`.
    """

    explainable: bool = True
    baseline: bool = True
    C: float | None = None

    def held_out(self, rows: Any, y: Array, folds: Array, seed: int) -> Array:
        """Score images by a model that has not seen them; ``rows`` are numbers of images."""
        data = self.rows
        used = np.flatnonzero(np.isin(data.origin, rows) & ~data.is_copy)
        with parallel.blas_threads(1):
            X = _shorter(np.sqrt(ChannelWeights(data.channels).fit_transform(data.rows[used])))
        unit = float(np.square(X).sum(dtype=np.float64)) / len(X) or 1.0
        scores = np.full((y.size, int(y.max()) + 1), np.nan)
        for fold in range(folds.max() + 1):
            train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            tried = [c / unit for c in BASELINE_CS] if self.C is None else [self.C]
            found = [class_scores(_svm(C).fit(X[train], y[train]), X[test]) for C in tried]
            best = int(np.argmax([_accuracy(s, y[test]) for s in found]))
            self.C, scores[test] = tried[best], found[best]  # the first fold decides on C
        return scores

    def make(self) -> Any:
        """Return the classifier to train on all rows."""
        weigh = ChannelWeights(self.rows.channels)
        steps = [("channels", weigh), ("map", AdditiveMap(Hellinger(), 1))]
        return Pipeline([*steps, ("classifier", _svm(self.C or 1.0))])


def _svm(C: float) -> LinearSVC:
    return LinearSVC(C=C, tol=1e-2, random_state=0)


def _shorter(X: Array) -> Array:
    """Return rows with the same inner products, with no more columns than rows."""
    if X.shape[1] <= X.shape[0]:
        return X
    K = np.asarray(X @ X.T, np.float64)
    K[np.diag_indices_from(K)] += 1e-6 * np.trace(K) / len(K)
    return np.linalg.cholesky(K)


def image_candidates(data: ImageRows, kernel: str = "auto") -> list[Any]:
    """Return the candidates that suit the rows of images, the additive ones first.

    The baseline is one of them unless a kernel is asked for by name.

    Parameters
    ----------
    data : ImageRows
        The training rows.
    kernel : str, default="auto"
        Kernel to be restricted to, a name of ``KERNELS``.

    Returns
    -------
    candidates : list of Candidate
    """
    n, d = data.rows.shape
    nonnegative = data.nonnegative
    found: list[Any] = []
    ridges = {
        "chi2": Chi2(), "intersection": Intersection(), "js": JensenShannon(),
        "hellinger": Hellinger(), "linear": None,
    }  # fmt: skip
    if data.complete:
        found += [
            RidgeCandidate(f"{name} ridge, weighted channels", data, k)
            for name, k in ridges.items()
            if kernel == name or (kernel == "auto" and name == "chi2")
        ]
        if kernel in ("auto", "chi2"):
            found.insert(0, SupportCandidate("chi2 SVM, weighted channels", data, Chi2()))
    cheap = n * d * data.classes.size <= INTERSECTION_CELLS or not data.complete
    if nonnegative and (kernel == "intersection" or (kernel == "auto" and cheap)):
        found.append(IntersectionChannels("intersection SVM, weighted channels", data))
    exponent = kernel == "exp-chi2" or (kernel == "auto" and n <= EXPONENT_ROWS)
    if nonnegative and data.complete and exponent:
        found.append(ExponentialChannels("exp-chi2 SVM, weighted channels", data))
    if nonnegative and kernel == "auto":
        found.append(SquareRoots(PLAIN, data))
    if not found:
        raise ValueError(
            f"kernel={kernel!r} takes neither negative values nor more than {MOST_ROWS} images"
        )
    return found


def forget(candidate: Any) -> Any:
    """Return the candidate without the training rows."""
    candidate.data = None
    return candidate
