"""Pictures of what a model uses, and of how far its probabilities can be trusted."""

from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.plot.matrix import pyplot_or_error
from hilbin.plot.shapes import GRAY, short

BAR = "#0072b2"


def importances(found: Any, *, top: int = 12, class_: int | None = None, ax: Any = None) -> Any:
    """Draw how much every feature matters, the most important on top.

    Parameters
    ----------
    found : Importances
        As :func:`hilbin.inspection.importances` returns it.
    top : int, default=12
        Largest number of features.
    class_ : int, optional
        Number of the class whose score is meant; the mean over all classes by default.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> from hilbin import inspection
    >>> from hilbin.estimators import IntersectionSVC
    >>> from hilbin.plot import importances
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> found = inspection.importances(IntersectionSVC().fit(X, y), X)
    >>> ax = importances(found, top=3)
    >>> len(ax.get_yticklabels()), ax.get_xlabel()
    (3, 'mean absolute contribution to the score')
    """
    pyplot = pyplot_or_error()
    if isinstance(top, bool) or not isinstance(top, (int, np.integer)) or top < 1:
        raise ValueError(f"top must be a whole number >= 1, got {top!r}")
    values = np.asarray(found.values if class_ is None else found.by_class[:, class_])
    order = np.argsort(-values, kind="stable")[:top]
    names = [short(found.names[j]) for j in order]
    if ax is None:
        size = 5.4, 0.28 * len(names) + 0.9
        ax = pyplot.subplots(figsize=size, layout="constrained")[1]
    places = np.arange(order.size)
    ax.barh(places, values[order], color=BAR, height=0.7)
    ax.set_yticks(places, names, fontsize=8)
    ax.invert_yaxis()
    what = "mean absolute contribution to" if found.exact else "mean absolute change of"
    ax.set_xlabel(f"{what} the score", fontsize=8)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def reliability(found: Any, *, ax: Any = None) -> Any:
    """Draw the fraction of correct predictions against their predicted probability.

    Parameters
    ----------
    found : Reliability
        As :func:`hilbin.inspection.reliability` returns it.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from hilbin import inspection
    >>> from hilbin.plot import reliability
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GaussianNB().fit(X[:300], y[:300])
    >>> ax = reliability(inspection.reliability(model.predict_proba(X[300:]), y[300:]))
    >>> ax.get_title().split(":")[0]
    'expected calibration error'
    """
    pyplot = pyplot_or_error()
    if ax is None:
        ax = pyplot.subplots(figsize=(3.8, 3.8), layout="constrained")[1]
    ax.plot([0, 1], [0, 1], color=GRAY, linewidth=1, linestyle="--")
    ax.plot(found.confidence, found.accuracy, color=BAR, linewidth=1.4)
    ax.scatter(found.confidence, found.accuracy, s=_areas(found.count), color=BAR, zorder=3)
    ax.set(xlim=(0, 1), ylim=(0, 1.02))
    ax.set_xlabel("probability of the predicted class", fontsize=8)
    ax.set_ylabel("share of correct predictions", fontsize=8)
    error = found.expected_calibration_error
    ax.set_title(f"expected calibration error: {100 * error:.1f} %", fontsize=9)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _areas(count: Array) -> Array:
    """Return areas of points that grow with the number of predictions."""
    return 12 + 90 * np.asarray(count) / np.max(count)
