r"""Reliability of probabilities: of the predictions made with 80 %, are 80 % correct?

Predictions are put into bins by the probability of the predicted class, the confidence. In a
reliable model the share of correct predictions of a bin, its accuracy, is its mean confidence. The
expected calibration error is the mean of their distances, weighted by the sizes of the bins,

.. math:: \mathrm{ECE} = \sum_b \frac{n_b}{n} \, |\mathrm{accuracy}_b - \mathrm{confidence}_b|

(C. Guo, G. Pleiss, Y. Sun and K. Weinberger, *On Calibration of Modern Neural Networks*, 2017). A
small sample has an error above zero even if the probabilities are right: about as much as the
accuracy of a bin varies by chance.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.inspection.scores import class_indices

SMALLEST_PROBABILITY = 1e-15  # so that the log loss stays finite


@dataclass(frozen=True, eq=False)
class Reliability:
    """How far probabilities can be trusted.

    Parameters
    ----------
    confidence : ndarray of shape (n_bins,)
        Mean probability of the predicted class, for each bin that has predictions.
    accuracy : ndarray of shape (n_bins,)
        Share of these predictions that is correct.
    count : int ndarray of shape (n_bins,)
        Number of predictions.
    log_loss : float
        Mean negative logarithm of the probability of the true class.

    Attributes
    ----------
    expected_calibration_error : float
        Mean distance of accuracy and confidence, weighted by the sizes of the bins.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.inspection import Reliability
    >>> two = Reliability(np.array([0.6, 0.9]), np.array([0.5, 0.9]), np.array([10, 30]), 0.4)
    >>> round(two.expected_calibration_error, 3)
    0.025
    """

    confidence: Array
    accuracy: Array
    count: Array
    log_loss: float

    @property
    def expected_calibration_error(self) -> float:
        """Mean distance of accuracy and confidence, weighted by the sizes of the bins."""
        distance = np.abs(self.accuracy - self.confidence)
        return float(distance @ self.count / self.count.sum())


def reliability(
    probabilities: Any, y: Any, classes: Any = None, *, n_bins: int = 10
) -> Reliability:
    """Compare probabilities with how often the predictions are correct.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
        As ``predict_proba`` returns them for samples that the model was not trained on.
    y : array-like of shape (n_samples,)
        Labels.
    classes : array-like of shape (n_classes,), optional
        Labels in the order of the columns of ``probabilities``; by default the sorted labels of
        ``y``.
    n_bins : int, default=10
        Number of bins of equal width; those without predictions are left out.

    Returns
    -------
    reliability : Reliability

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from hilbin.inspection import reliability
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GaussianNB().fit(X[:300], y[:300])
    >>> found = reliability(model.predict_proba(X[300:]), y[300:])
    >>> int(found.count.sum()), found.expected_calibration_error < 0.1
    (269, True)
    """
    probabilities = np.asarray(probabilities, np.float64)
    classes = np.unique(np.asarray(y)) if classes is None else np.asarray(classes)
    truth = class_indices(y, classes)
    if probabilities.shape != (truth.size, len(classes)):
        raise ValueError(
            f"probabilities must have the shape {(truth.size, len(classes))}, "
            f"got {probabilities.shape}"
        )
    if not (probabilities >= 0).all() or not (probabilities <= 1 + 1e-9).all():
        raise ValueError("probabilities must lie between 0 and 1")
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == truth
    places = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    count = np.bincount(places, minlength=n_bins)
    some = count > 0
    mean = np.bincount(places, confidence, n_bins)[some] / count[some]
    correct = np.bincount(places, right, n_bins)[some] / count[some]
    own = np.maximum(probabilities[np.arange(truth.size), truth], SMALLEST_PROBABILITY)
    return Reliability(mean, correct, count[some], float(-np.log(own).mean()))
