"""Explanations of single predictions, in numbers and in words: why this class?

The score of a class, or the lead of one class over another, is taken apart into what the features
add, where the model is additive. Otherwise columns are left out, or parts of the image covered, one
at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from hilbin._arrays import Array, to_dense
from hilbin.inspection.additive import additive
from hilbin.inspection.heat_maps import ImageExplainer, direction_of
from hilbin.inspection.importances import leave_column_out, names_of_columns
from hilbin.inspection.scores import class_names, class_probabilities, class_scores
from hilbin.inspection.words import sum_by_word

TOP = 8
GRID = 8  # cells along a side among which the strongest are named
COLUMNS_NOTE = "Each column contributes independently of the others."
LEFT_OUT_NOTE = (
    "The scores of this model are not sums over the columns. Shown is how much the score drops "
    "when a column is replaced by its median in this table."
)


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why an example has its score.

    It is made by :func:`explain_row` and :func:`explain_image`.

    Parameters
    ----------
    name : str
        Name of the example: a file, or a row of a table.
    predicted, label : str
        Class with the highest score, and the class that is explained.
    versus : str or None
        Class whose score is subtracted.
    score : float
        Score of the class, minus that of ``versus``.
    intercept, shares : float or None
        Constant part of the score, and sum of what the features add; None if scores are not sums.
    exact : bool
        Whether ``intercept + shares`` is the score.
    note : str
        How the parts were found.
    scores : dict from str to float
        Scores of all classes.
    features : list of dict
        ``feature``, ``value``, ``adds``: those with the largest parts; words are summed over all
        cells of the image. Empty if scores are not sums and the example is an image.
    places : list of dict
        ``x``, ``y``, ``width``, ``height``, ``adds``: the parts of an image that add or take most.
    probabilities : dict from str to float, or None
        Probabilities of all classes.
    heat : array of shape (h, w) or None
        Heat map of an image.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from hilbin.inspection import explain_row
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> why = explain_row(LogisticRegression(tol=1e-9, max_iter=1000).fit(X, y), X, 70)
    >>> why.predicted, why.label, why.features[0]["feature"]
    ('2', '2', 'petal length (cm)')
    >>> abs(why.intercept + why.shares - why.score) < 1e-9
    True
    >>> print(why.summary().splitlines()[1])
    2: 56 %, score +1.908
    """

    name: str
    predicted: str
    label: str
    versus: str | None
    score: float
    intercept: float | None
    shares: float | None
    exact: bool
    note: str
    scores: dict[str, float]
    features: list[dict[str, Any]]
    places: list[dict[str, Any]]
    probabilities: dict[str, float] | None = None
    heat: Array | None = field(default=None, repr=False)

    def caption(self) -> tuple[str, list[str], tuple[str, str]]:
        """Return a title, the lines below a picture, and what blue and red stand for."""
        title = f"Why {self.label}?"
        lines = [self._told(self.label)]
        ends = (f"against {self.label}", f"for {self.label}")
        if self.versus is not None:
            title = f"Why {self.label} rather than {self.versus}?"
            lines = [f"{lines[0]}; {self._told(self.versus)}; difference {self.score:+.3f}"]
            ends = (f"for {self.versus}", f"for {self.label}")
        if self.label != self.predicted:
            told = self._told(self.predicted, plain=True)
            lines[0] += f". The prediction is {self.predicted} ({told})."
        return title, [*lines, *self._sums()], ends

    def _told(self, label: str, plain: bool = False) -> str:
        """Return the score of a class, and its probability if there is one."""
        score = f"{self.scores[label]:+.3f}"
        if self.probabilities is not None:
            percent = f"{100 * self.probabilities[label]:.0f} %"
            return percent if plain else f"{label}: {percent}, score {score}"
        return score if plain else f"{label}: score {score}"

    def _sums(self) -> list[str]:
        if self.intercept is None or self.shares is None:
            return [f"Not exact. {self.note}"]
        total = self.shares + self.intercept
        return [
            f"Exact: contributions {self.shares:+.6f} and intercept {self.intercept:+.6f} sum to "
            f"{total:+.6f}, within {abs(total - self.score):.0e} of the score.",
            self.note,
        ]

    def summary(self) -> str:
        """Return the explanation in words."""
        _, lines, _ = self.caption()
        listed = [(f["feature"], _shown(f["value"]), f"{f['adds']:+.4f}") for f in self.features]
        if listed:
            listed.insert(0, ("feature", "value", "adds"))
            wide = [max(len(row[k]) for row in listed) for k in range(3)]
            lines += [f"{a:<{wide[0]}}  {b:>{wide[1]}}  {c:>{wide[2]}}" for a, b, c in listed]
        return "\n".join([self.name, *lines])


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def explain_row(
    model: Any,
    X: Any,
    row: int,
    *,
    class_: Any = None,
    versus: Any = None,
    feature_names: Sequence[str] | None = None,
    name: str | None = None,
    probabilities: Any = None,
    top: int = TOP,
) -> Explanation:
    """Explain the score of one row of a table.

    Parameters
    ----------
    model : fitted classifier
        If it is additive, the parts sum to the score. Otherwise each column in turn takes its
        median in ``X``, and its part is what the score loses.
    X : array-like, sparse or data frame of shape (n_samples, n_features)
        The table.
    row : int
        Number of the row, from 0.
    class_ : label, optional
        Class whose score is explained; the predicted one by default.
    versus : label, optional
        Class whose score is subtracted.
    feature_names : sequence of str, optional
        Names of the columns; by default those of the data frame, or ``x0``, ``x1``, ...
    name : str, optional
        Name of the row; its number from 1 by default.
    probabilities : array of shape (n_classes,), optional
        Probabilities of the classes for this row; by default those of ``predict_proba``, if there
        is one.
    top : int, default=8
        Largest number of features that are named.

    Returns
    -------
    explanation : Explanation

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from hilbin.inspection import explain_row
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> why = explain_row(RandomForestClassifier(20, random_state=0).fit(X, y), X, 70)
    >>> why.exact, why.note.split(".")[0]
    (False, 'The scores of this model are not sums over the columns')
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    if not 0 <= row < X.shape[0]:
        raise ValueError(f"row must be from 0 to {X.shape[0] - 1}, got {row}")
    names = names_of_columns(X, feature_names)
    one = _safe_indexing(X, np.array([row]))
    parts = additive(model)
    scores = (class_scores(model, one) if parts is None else parts.scores(one))[0]
    if probabilities is None:
        found = class_probabilities(model, one)
        probabilities = None if found is None else found[0]
    direction, _ = direction_of(model, scores, class_, versus)
    if parts is not None:
        adds = parts.contributions(one)[0] @ direction
    else:
        adds = leave_column_out(model, one, background=X)[0] @ direction
    values = to_dense(one)[0]
    return Explanation(
        **_basics(model, name or f"row {row + 1}", scores, direction, probabilities),
        intercept=None if parts is None else float(parts.intercept @ direction),
        shares=None if parts is None else float(adds.sum()),
        exact=parts is not None,
        note=LEFT_OUT_NOTE if parts is None else COLUMNS_NOTE,
        features=_largest(names, values, adds, top),
        places=[],
    )


def explain_image(
    features: Any,
    model: Any,
    image: Any,
    *,
    class_: Any = None,
    versus: Any = None,
    name: str | None = None,
    feature_name: str = "feature",
    probabilities: Any = None,
    top: int = TOP,
) -> Explanation:
    """Explain the score of one image.

    Parameters
    ----------
    features : fitted image transformer
        From images to rows.
    model : fitted classifier
        Classifier of these rows. If it is additive, the heat map sums to the score minus the
        intercept; otherwise parts of the image are covered in turn.
    image : path or uint8 array
        The image.
    class_ : label, optional
        Class whose score is explained; the predicted one by default.
    versus : label, optional
        Class whose score is subtracted.
    name : str, optional
        Name of the image; its path by default.
    feature_name : str, default="feature"
        Name of the transformer; parts of ``ImageFeatures`` have names of their own.
    probabilities : array of shape (n_classes,), optional
        Probabilities of the classes for this image; by default those of ``predict_proba``, if there
        is one.
    top : int, default=8
        Largest number of features, and of places, that are named.

    Returns
    -------
    explanation : Explanation

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import IntersectionSVC
    >>> from hilbin.images import ColorHistogram
    >>> from hilbin.inspection import explain_image
    >>> images = np.zeros((4, 8, 8, 3), np.uint8)
    >>> images[:2, :, :4, 0] = 255  # the left half is red
    >>> features = ColorHistogram(bins=2).fit(images)
    >>> model = IntersectionSVC().fit(features.transform(images), ["red", "red", "black", "black"])
    >>> why = explain_image(features, model, images[0], feature_name="color")
    >>> why.predicted, why.exact, why.features[0]["feature"]
    ('red', True, 'color word 7')
    """
    explainer = ImageExplainer(features, model)
    pixels = features.read(image)
    parts = explainer.of(pixels)
    scores = explainer.scores(parts.row)[0]
    if probabilities is None:
        found = class_probabilities(model, parts.row)
        probabilities = None if found is None else found[0]
    direction, _ = direction_of(model, scores, class_, versus)
    heat = parts.heat(direction)
    listed: list[dict[str, Any]] = []
    if explainer.parts is not None:
        adds = sum_by_word(features, parts.contributions @ direction, feature_name)
        values = sum_by_word(features, parts.row[0], feature_name)
        listed = _largest(list(adds), list(values.values()), np.array(list(adds.values())), top)
    intercept = explainer.intercept
    if name is None:
        name = "image" if isinstance(image, np.ndarray) else str(image)
    return Explanation(
        **_basics(model, name, scores, direction, probabilities),
        intercept=None if intercept is None else float(intercept @ direction),
        shares=float(heat.sum()) if explainer.exact else None,
        exact=explainer.exact,
        note=explainer.note,
        features=listed,
        places=_places(heat, pixels.shape, top),
        heat=heat,
    )


def _basics(
    model: Any, name: str, scores: Array, direction: Array, probabilities: Any
) -> dict[str, Any]:
    """Return what is known before the parts are."""
    classes = class_names(model)
    less = np.flatnonzero(direction < 0)
    chances = None
    if probabilities is not None:
        chances = {c: float(p) for c, p in zip(classes, probabilities, strict=True)}
    return {
        "name": name,
        "predicted": classes[int(scores.argmax())],
        "label": classes[int(direction.argmax())],
        "versus": classes[less[0]] if less.size else None,
        "score": float(scores @ direction),
        "scores": {c: float(s) for c, s in zip(classes, scores, strict=True)},
        "probabilities": chances,
    }


def _largest(names: Any, values: Any, adds: Array, top: int) -> list[dict[str, Any]]:
    order = np.argsort(-np.abs(adds), kind="stable")[:top]
    return [
        {"feature": names[j], "value": _plain(values[j]), "adds": float(adds[j])}
        for j in order
        if adds[j] != 0
    ]


def _plain(value: Any) -> Any:
    """Return a number as a float, and anything else as it is."""
    return float(value) if isinstance(value, int | float | np.number) else str(value)


def _places(heat: Array, shape: tuple[int, ...], top: int) -> list[dict[str, Any]]:
    """Return the cells of the image that add or take most."""
    rows, columns = (min(GRID, side) for side in heat.shape)
    cells = [
        (y, x, float(part.sum()))
        for y, band in enumerate(np.array_split(heat, rows, axis=0))
        for x, part in enumerate(np.array_split(band, columns, axis=1))
    ]
    height, width = shape[0] / rows, shape[1] / columns
    return [
        {
            "x": round(x * width),
            "y": round(y * height),
            "width": round(width),
            "height": round(height),
            "adds": adds,
        }
        for y, x, adds in sorted(cells, key=lambda cell: -abs(cell[2]))[:top]
    ]
