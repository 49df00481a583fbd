r"""Probabilities of classes, from the scores of rows that were left out.

Scores of training rows are too good: a model has seen them. So a part of the rows is left out, the
problem is solved again from where the full solution is, which takes few sweeps, and the scores of
the rows left out are compared with their classes.

**Two classes** (Platt): :math:`p(s) = 1 / (1 + e^{-(as + b)})`.
**More classes**: :math:`p_k(s) \propto e^{a s_k + b_k}`, the softmax of scores with one slope and
an intercept for every class.

Both minimize the log loss by Newton's method; the slope is at least 0. The targets are not 1 and 0
but what a row more of every kind would make of them, as Platt proposes, so that rows that are all
told apart give no probability of 1. **Isotonic** regression makes any rising function of a score,
and needs many rows.

Rows are left out by what they hold, not by where they stand: copies of a row are left out together,
so a weight of 2 is the row twice, and no copy is learned while another is left out.

**References.** J. Platt, *Probabilistic Outputs for Support Vector Machines*, 1999. H.-T. Lin,
C.-J. Lin and R. Weng, *A Note on Platt's Probabilistic Outputs for Support Vector Machines*, 2007.
C. Guo et al., *On Calibration of Modern Neural Networks*, ICML 2017.
"""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.isotonic import IsotonicRegression

from hilbin._arrays import Array
from hilbin._core import core
from hilbin._parameters import estimator, require_choice
from hilbin._state import require, require_attributes, require_offsets, require_vector
from hilbin.estimators._fit import ScoreClassifier

METHODS = ("auto", "sigmoid", "isotonic", "softmax")
FOR_ISOTONIC = 1000  # rows of every class
RIDGE = (
    5.0  # penalty of the intercepts of classes, in rows: few rows are near the border of a class
)
ENOUGH, FEWEST, MOST = 1200, 3, 25  # rows that are left out, and parts of the rows
MOST_PARTS, ALMOST = 10, 0.75  # parts by default, and the share of enough rows that will do
# Newton's method: most steps, shortest one, and the relative decrease at which it ends
STEPS, SHORTEST, CLOSE = 50, 1e-6, 1e-10
USUAL = 2.0  # slope, of scores over their mean deviation, from which it starts if 0 is worse


class ScoreCalibration:
    """Turn scores of classes into probabilities.

    Parameters
    ----------
    method : {"auto", "sigmoid", "isotonic", "softmax"}, default="auto"
        A sigmoid of every score, divided by their sum if there are several; a rising function
        instead of the sigmoid, if every class has 1,000 rows (else as "auto"); or the softmax of
        scores with one slope and an intercept for every class. "auto" is the sigmoid for two
        classes and the softmax for more.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    method_ : {"sigmoid", "isotonic", "softmax"}
        The method in use.
    coef_, intercept_ : ndarray of shape (n_scores,)
        Slope and intercept of every score, for sigmoid and softmax.
    scores_, probabilities_, offsets_ : ndarray
        For isotonic regression: the scores at which the functions bend and the probabilities there,
        class after class, and where each class begins.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import ScoreCalibration
    >>> scores = np.array([-2.0, -1.0, -0.5, 0.3, 1.0, 2.0])  # of rows that were left out
    >>> calibration = ScoreCalibration().fit(scores, [0, 0, 1, 0, 1, 1])
    >>> calibration.predict_proba(np.array([0.0, 3.0])).round(2)
    array([[0.49, 0.51],
           [0.11, 0.89]])
    """

    def __init__(self, method: str = "auto") -> None:
        self.method = method

    def __repr__(self) -> str:
        return f"ScoreCalibration(method={self.method!r})"

    def fit(self, scores: Any, y: Any, sample_weight: Any = None, *, classes: Any = None) -> Self:
        """Learn the probabilities that belong to scores.

        Parameters
        ----------
        scores : array-like of shape (n_samples,) or (n_samples, n_classes)
            Scores of rows that were left out; the score of the second of two classes may stand
            alone. Rows with NaN, which were never left out, do not count.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice.
        classes : array-like of shape (n_classes,), optional
            All labels in the order of the scores, if ``y`` may lack some; by default those of
            ``y``, sorted.

        Returns
        -------
        self : ScoreCalibration
        """
        require_choice("method", self.method, METHODS)
        y = np.asarray(y)
        self.classes_ = np.unique(y) if classes is None else np.asarray(classes)
        S = self._columns(scores)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        known = np.isfinite(S).all(axis=1) & (weight > 0)
        places = _places(self.classes_, y[known])
        own = np.zeros((places.size, self.classes_.size))
        own[np.arange(places.size), places] = 1.0
        self._learn(S[known], own, weight[known])
        return self

    def predict_proba(self, scores: Any) -> Array:
        """Compute probabilities of classes.

        Parameters
        ----------
        scores : array-like of shape (n_samples,) or (n_samples, n_classes)
            Scores, as in ``fit``.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            They sum to 1 in every row.
        """
        S = self._columns(scores)
        if self.method_ == "softmax":
            return np.asarray(softmax(S * self.coef_ + self.intercept_, axis=1))
        if self.method_ == "sigmoid":
            logits = S * self.coef_ + self.intercept_
            each = expit(logits)
            if self.classes_.size == 2:
                return np.column_stack([expit(-logits), each])
        else:
            ends = zip(self.offsets_[:-1], self.offsets_[1:], strict=True)
            each = np.column_stack(
                [
                    np.interp(column, self.scores_[b:e], self.probabilities_[b:e])
                    for column, (b, e) in zip(S.T, ends, strict=True)
                ]
            )
        if self.classes_.size == 2:
            return np.column_stack([1 - each[:, 0], each[:, 0]])
        total = each.sum(axis=1, keepdims=True)
        return np.where(total > 0, each / np.where(total > 0, total, 1), 1 / each.shape[1])

    def _columns(self, scores: Any) -> Array:
        """Return a column per score: one of two classes, else one for each."""
        if hasattr(scores, "toarray"):
            raise TypeError(f"scores must be an array, got {type(scores).__name__}")
        S = np.asarray(scores, np.float64)
        S = S[:, None] if S.ndim == 1 else S
        K = self.classes_.size
        if S.ndim != 2 or S.shape[1] not in ((1, 2) if K == 2 else (K,)):
            raise ValueError(f"scores of {K} classes cannot have the shape {np.shape(scores)}")
        return S[:, 1:] - S[:, :1] if S.shape[1] == 2 else S

    def _learn(self, S: Array, own: Array, weight: Array) -> None:
        """Fit the functions; ``own`` is 1 for the class of a row."""
        several = self.classes_.size > 2
        self.method_ = "softmax" if several else "sigmoid"
        counts = np.count_nonzero(own, axis=0)
        if self.method == "isotonic" and counts.min() >= FOR_ISOTONIC:
            self.method_ = "isotonic"
            self._learn_isotonic(S, own if several else own[:, 1:], weight)
        elif several and self.method == "sigmoid":
            self.method_ = "sigmoid"
            parts = [_sigmoid(s, one, weight) for s, one in zip(S.T, own.T, strict=True)]
            self.coef_, self.intercept_ = np.array(parts).T.copy()
        elif several:
            self.coef_, self.intercept_ = _softmax(S, own, weight)
        else:
            self.coef_, self.intercept_ = np.array([_sigmoid(S[:, 0], own[:, 1], weight)]).T.copy()

    def _learn_isotonic(self, S: Array, own: Array, weight: Array) -> None:
        fits = [
            IsotonicRegression(y_min=0, y_max=1).fit(s, one, weight)
            for s, one in zip(S.T, own.T, strict=True)
        ]
        self.scores_ = np.concatenate([f.X_thresholds_ for f in fits]).astype(np.float64)
        self.probabilities_ = np.concatenate([f.y_thresholds_ for f in fits]).astype(np.float64)
        sizes = [f.X_thresholds_.size for f in fits]
        self.offsets_ = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded calibration do not fit together."""
        require(vars(self).get("method") in METHODS, "method of a calibration is unknown")
        if not require_attributes(self, method_="str", classes_="labels[k]"):
            return
        require(self.method_ in METHODS[1:], "a calibration has an unknown method")
        K = np.asarray(self.classes_).size
        scores = 1 if K == 2 else K
        require(K >= 2 and (K > 2 or self.method_ != "softmax"), "classes_ is out of range")
        if self.method_ == "isotonic":
            size = require_vector(self.scores_, np.float64, "scores_").size
            same = require_vector(self.probabilities_, np.float64, "probabilities_").size == size
            require_offsets(self.offsets_, scores, size, "offsets_")
            require(same and (np.diff(self.offsets_) >= 1).all(), "a class has no probabilities")
            return
        for name in ("coef_", "intercept_"):
            size = require_vector(getattr(self, name), np.float64, name).size
            require(size == scores, f"{name} has {size} values for {scores} scores")


def _places(classes: Array, y: Array) -> Array:
    """Return the places of labels among the classes."""
    order = np.argsort(classes, kind="stable")
    found = np.minimum(np.searchsorted(classes, y, sorter=order), classes.size - 1)
    places = order[found]
    wrong = classes[places] != y
    if wrong.any():
        raise ValueError(f"y has the label {y[wrong][0]!r}, which is not one of the classes")
    return places


def _sigmoid(scores: Array, own: Array, weight: Array) -> tuple[float, float]:
    """Return slope and intercept of Platt's sigmoid, a softmax of two scores."""
    positive = float(weight @ own)
    negative = float(weight.sum()) - positive
    target = np.where(own > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))
    both = np.stack([np.zeros(scores.size), scores])
    slope, intercepts = _fitted(both, np.stack([1 - target, target]), weight, 1e-6)
    return slope, float(intercepts[1] - intercepts[0])


def _softmax(S: Array, own: Array, weight: Array) -> tuple[Array, Array]:
    """Return slopes, all the same, and intercepts of the softmax of several scores."""
    n, K = float(weight.sum()), S.shape[1]
    targets = np.where(own > 0, (n + 1) / (n + 2), 1 / ((n + 2) * (K - 1)))
    slope, intercepts = _fitted(S.T.copy(), targets.T.copy(), weight, RIDGE)
    return np.full(K, slope), intercepts


def _fitted(S: Array, T: Array, weight: Array, ridge: float) -> tuple[float, Array]:
    """Minimize the log loss of ``softmax(a S + b)``, plus ``ridge |b|^2 / 2``, by Newton's method.

    ``S`` and ``T`` have a row for every class, so that sums over few classes are fast. A slope
    below 0 would turn the order of the classes round; then it is 0.
    """
    unit = float(np.abs(S - S.mean(axis=0)).mean()) if S.size else 1.0
    unit = unit if unit > 0 and np.isfinite(unit) else 1.0
    x = _minimized(S / unit, T, weight, ridge, free=True)
    if x[0] < 0:
        x = _minimized(S / unit, T, weight, ridge, free=False)
    return float(x[0]) / unit, x[1:]


def _minimized(S: Array, T: Array, weight: Array, ridge: float, *, free: bool) -> Array:
    """Return slope and intercepts; the slope stays 0 unless it is ``free``."""
    x = np.zeros(len(S) + 1)
    value = np.inf
    if free:
        x[0] = USUAL
        value, gradient, hessian = _log_loss(x, S, T, weight, ridge)
    if not value < float(weight.sum()) * np.log(len(S)):  # that of all classes alike
        x[0] = 0.0
        value, gradient, hessian = _log_loss(x, S, T, weight, ridge)
    for _ in range(STEPS):
        if not free:
            gradient[0], hessian[0], hessian[:, 0] = 0.0, 0.0, 0.0
        hessian[0, 0] += 1e-9  # scores that are all equal say nothing about the slope
        step = np.linalg.solve(hessian, gradient)
        decrease = float(step @ gradient)
        if decrease <= CLOSE * (1 + abs(value)):
            return x - step  # the error of which is the square of that
        length = 1.0
        tried = _log_loss(x - step, S, T, weight, ridge)
        while tried[0] > value - 1e-4 * length * decrease and length > SHORTEST:
            length /= 2
            tried = _log_loss(x - length * step, S, T, weight, ridge)
        x, (value, gradient, hessian) = x - length * step, tried
    return x


def _log_loss(
    x: Array, S: Array, T: Array, weight: Array, ridge: float
) -> tuple[float, Array, Array]:
    """Return value, gradient and Hessian in slope and intercepts."""
    Z = x[0] * S + x[1:, None]
    Z -= Z.max(axis=0)
    P = np.exp(Z)
    total = P.sum(axis=0)
    P /= total
    losses = np.log(total) - np.einsum("ij,ij->j", T, Z)
    value = float(weight @ losses) + 0.5 * ridge * float(x[1:] @ x[1:])
    W = weight * P
    away = weight * (P - T)
    gradient = np.append((away * S).sum(), away.sum(axis=1) + ridge * x[1:])
    from_mean = W * (S - (P * S).sum(axis=0))
    hessian = np.empty((x.size, x.size))
    hessian[0, 0] = float((from_mean * S).sum())
    hessian[0, 1:] = hessian[1:, 0] = from_mean.sum(axis=1)
    hessian[1:, 1:] = np.diag(W.sum(axis=1) + ridge) - P @ W.T
    return value, gradient, hessian


@estimator
class ProbabilityClassifier(ScoreClassifier):
    """Base of the classifiers that can give probabilities.

    Parameters
    ----------
    probability : bool, default=False
        Whether ``fit`` also learns probabilities, for ``predict_proba``. Some rows are held out,
        and a :class:`ScoreCalibration` is learned from their scores. Scores and ``predict`` do not
        change.

    Attributes
    ----------
    calibration_ : ScoreCalibration
        The conversion of scores to probabilities, if ``probability=True``.
    """

    _: KW_ONLY
    probability: bool = False

    def _check_state(self) -> None:
        """Raise ``ValueError`` if a loaded model has probabilities of other classes."""
        if "calibration_" in vars(self):
            require(isinstance(self.calibration_, ScoreCalibration), "calibration_ is none")
            same = np.array_equal(self.calibration_.classes_, self.classes_)
            require(same, "calibration_ has other classes")

    def _forget_calibration(self) -> None:
        """Remove what an earlier fit has learned of probabilities."""
        if hasattr(self, "calibration_"):
            del self.calibration_

    def _learn_calibration(
        self, keys: Array, labels: Array, weights: Array, scores_without: Callable[[Array], Array]
    ) -> None:
        """Keep the calibration by rows left out.

        ``labels`` are places in ``classes_``; ``scores_without(left_out)`` are the scores of the
        rows that are marked, by a model that has learned from the others.
        """
        width = 1 if self.classes_.size == 2 else self.classes_.size
        scores, rows = [np.empty((0, width))], [np.empty(0, np.intp)]
        for left_out in parts_left_out(keys, labels, ENOUGH, FEWEST, MOST):
            scores.append(scores_without(left_out).reshape(-1, width))
            rows.append(np.flatnonzero(left_out))
        which = np.concatenate(rows)
        self._keep_calibration(np.concatenate(scores), labels[which], weights[which])

    def _keep_calibration(self, scores: Array, labels: Array, weights: Array | None) -> None:
        known = self.classes_[labels]
        self.calibration_ = ScoreCalibration().fit(scores, known, weights, classes=self.classes_)


def row_keys(X: Any) -> Array:
    """Return a number for every row that depends on its values alone, dense or sparse.

    It is the sum of the bits of every value times a random number of its column, modulo 2**64.
    """
    groups = getattr(X, "groups", None)  # of codes
    if groups is not None:
        X = groups.transpose(1, 0, 2).reshape(groups.shape[1], -1)
    random = np.random.default_rng(0)
    factors = random.integers(2**63, size=X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    if X.dtype in (np.float32, np.float64):
        keys = np.empty(X.shape[0], np.uint64)
        core.row_keys(*_parts(X), factors, keys)
    elif sp.issparse(X):
        keys = X.astype(np.uint64) @ factors
    else:
        keys = np.einsum("ij,j->i", X, factors, dtype=np.uint64, casting="unsafe")
    return (keys >> np.uint64(1)).astype(np.int64)


def separate_keys(n: int) -> Array:
    """Return keys of rows that are taken to be all different."""
    return np.arange(n, dtype=np.int64) << 31  # in the upper bits, as those that say most


def _parts(X: Any) -> tuple[Array, Array, Array]:
    """Return values, column indices and row pointers; the last two empty if the rows are dense."""
    if not sp.issparse(X):
        return np.ascontiguousarray(X).ravel(), np.empty(0, np.int32), np.empty(0, np.int64)
    return X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)


def parts_left_out(
    keys: Array, labels: Array, enough: int = 1500, fewest: int = 5, most: int = MOST_PARTS
) -> Iterator[Array]:
    """Yield masks of rows to leave out, each a part of every class, until they are enough.

    Equal rows of a class are left out together, and the first of every class in the first part.
    """
    n_folds = int(np.clip(keys.size // enough, fewest, most))
    fold = _ranks(keys, labels) % n_folds
    held_out = 0
    for number in range(n_folds):
        if held_out >= ALMOST * enough:
            return
        left_out = fold == number
        if left_out.any() and not left_out.all():
            held_out += int(left_out.sum())
            yield left_out


def _ranks(keys: Array, labels: Array) -> Array:
    """Return the place of every row among the different keys of its class."""
    # By class, then by the first bits of the key, then by place: to sort such numbers is faster
    # than to sort places by two of them.
    of_class, of_place = int(labels.max(initial=0)).bit_length(), keys.size.bit_length()
    both = labels.astype(np.int64) << (63 - of_class) | keys >> of_class
    both = np.sort(both >> of_place << of_place | np.arange(keys.size))
    order, both = both & ((1 << of_place) - 1), both >> of_place
    new = np.ones(keys.size, bool)
    np.not_equal(both[1:], both[:-1], out=new[1:])
    count, sizes = np.cumsum(new), np.bincount(labels)
    ranks = np.empty(keys.size, np.intp)
    ranks[order] = count - np.repeat(count[np.cumsum(sizes) - sizes], sizes)
    return ranks
