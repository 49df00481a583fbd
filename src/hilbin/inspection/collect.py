"""Collect the evidence for a report on a classifier: its test results, and what they rest on.

Whatever the model is, the report has accuracy, mistakes and the importances of the columns. If the
model is additive, it also has shape functions or visual words, and heat maps that sum to the
scores; if it has probabilities, their reliability.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from hilbin._arrays import Array
from hilbin.images import read_image
from hilbin.images._base import ImageTransformer
from hilbin.inspection.additive import additive, shape_functions
from hilbin.inspection.duplicates import names_of_images
from hilbin.inspection.evidence import Duplicate, Evidence, Shape, Suspicion
from hilbin.inspection.explanation import COLUMNS_NOTE, LEFT_OUT_NOTE, explain_row
from hilbin.inspection.heat_maps import ImageExplainer
from hilbin.inspection.importances import (
    Importances,
    importances,
    names_of_columns,
    spread_places,
)
from hilbin.inspection.scores import (
    class_indices,
    class_names,
    class_probabilities,
    class_scores,
)
from hilbin.inspection.words import MOST_WORDS, visual_words

SAMPLE = 300  # rows from which importances are told
MOST_LEFT_OUT = 30_000  # changed rows that are scored where columns are left out in turn
REASONS = 5  # columns that are named for a row
FEWEST_ROWS = 10  # of a sample that says something


def collect_evidence(
    model: Any,
    X: Any,
    y: Any,
    *,
    features: Any = None,
    title: str | None = None,
    names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    feature_name: str = "feature",
    scores: Any = None,
    probabilities: Any = None,
    baselines: Mapping[str, float] | None = None,
    suspicious: Sequence[Suspicion] | None = None,
    duplicates: Sequence[Duplicate] | None = None,
    unreadable: Sequence[tuple[str, str]] | None = None,
    candidates: Sequence[Mapping[str, Any]] = (),
    candidates_note: str = "",
    channels: Mapping[str, Any] | None = None,
    provenance: Mapping[str, str] | None = None,
    timings: Mapping[str, float] | None = None,
    callback: Callable[[str], object] | None = None,
) -> Evidence:
    """Collect what a report shows, for any fitted classifier.

    Parameters
    ----------
    model : fitted classifier
        Anything with ``decision_function`` or ``predict_proba``. A pipeline that begins with an
        image transformer is taken apart: the transformer becomes ``features``.
    X : array-like, sparse or data frame; or a sequence of image files or arrays
        Test examples, which the model was not trained on; with ``features``, images. Images that
        cannot be read are left out and listed.
    y : array-like of shape (n_samples,)
        Their labels.
    features : fitted image transformer, optional
        From images to the rows that the model takes.
    title : str, optional
        Title of the page; the name of the class of the model by default.
    names : sequence of str, optional
        Names of the examples; by default paths, or ``row 1``, ``row 2``, ...
    feature_names : sequence of str, optional
        Names of the columns of a table; by default those of the data frame, or ``x0``, ``x1``, ...
    feature_name : str, default="feature"
        Name of the image transformer, for the names of its columns.
    scores : array-like of shape (n_samples, n_classes), optional
        Scores of the examples, if they are known already; no image is then described again.
    probabilities : array-like of shape (n_samples, n_classes), optional
        Probabilities of the classes; by default those of ``predict_proba``, if there is one.
    baselines : mapping of str to float, optional
        Accuracies of simpler models; by default that of the most frequent class.
    suspicious : sequence of Suspicion, optional
        As :func:`suspicious_labels` returns them.
    duplicates : sequence of Duplicate, optional
        As :func:`find_duplicates` returns them.
    unreadable : sequence of (str, str), optional
        Further files that could not be read, and why.
    candidates : sequence of mappings, optional
        Models that were compared by cross-validation: ``name``, ``mean`` (accuracy), and where
        known ``standard_error`` and ``explainable``.
    candidates_note : str, default=""
        A sentence on how one of them was chosen.
    channels : mapping, optional
        What several descriptions are worth, as in :class:`Evidence`.
    provenance : mapping of str to str, optional
        How the model was made.
    timings : mapping of str to float, optional
        Duration of each step in seconds.
    callback : callable, optional
        Called with the name of each stage before it begins.

    Returns
    -------
    evidence : Evidence
        For :func:`hilbin.report.write_report`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from hilbin.inspection import collect_evidence
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> forest = RandomForestClassifier(20, random_state=0).fit(X[::2], y[::2])
    >>> evidence = collect_evidence(forest, X[1::2], y[1::2])
    >>> evidence.title, evidence.classes, evidence.baselines
    ('RandomForestClassifier', ['0', '1', '2'], {'always 0': 0.333...})
    >>> evidence.importances.top(1)[0][0]
    'petal width (cm)'
    """
    if features is None:
        features, model = split_features(model)
    tell = callback or (lambda stage: None)
    tell("scoring test examples")
    given = _Given(scores, probabilities, names)
    tested = (
        _tested_rows(model, X, y, given)
        if features is None
        else _tested_images(features, model, X, y, given)
    )
    tell("looking for important features")
    learned = (
        _learned_from_table(model, tested, feature_names)
        if features is None
        else _learned_from_images(features, model, tested, feature_name)
    )
    gone = [*tested.unreadable, *(unreadable or ())]
    return Evidence(
        title=type(_last(model)).__name__ if title is None else title,
        classes=class_names(model),
        truth=tested.truth,
        scores=tested.scores,
        names=tested.names,
        probabilities=tested.probabilities,
        baselines=_majority(model, tested.truth) if baselines is None else baselines,
        suspicious=suspicious,
        duplicates=duplicates,
        unreadable=gone if features is not None or unreadable is not None else None,
        candidates=candidates,
        candidates_note=candidates_note,
        channels=channels,
        provenance=provenance or {},
        timings=timings or {},
        **learned,
    )


def split_features(model: Any) -> tuple[Any, Any]:
    """Return the image transformer that a pipeline begins with, or None, and the rest."""
    if not isinstance(model, Pipeline) or not isinstance(model.steps[0][1], ImageTransformer):
        return None, model
    rest = model[1:]
    return model.steps[0][1], rest.steps[0][1] if len(rest.steps) == 1 else rest


@dataclass(frozen=True)
class _Given:
    """What the caller knows already."""

    scores: Any
    probabilities: Any
    names: Sequence[str] | None


@dataclass(frozen=True)
class _Tested:
    """Test examples, and what the model says about them."""

    X: Any
    truth: Array
    scores: Any
    probabilities: Any
    names: Sequence[str]
    unreadable: Sequence[tuple[str, str]] = ()


def _tested_rows(model: Any, X: Any, y: Any, given: _Given) -> _Tested:
    X = X if hasattr(X, "shape") else np.asarray(X)
    scores, probabilities = given.scores, given.probabilities
    if scores is None:
        parts = additive(model)
        scores = class_scores(model, X) if parts is None else parts.scores(X)
    if probabilities is None:
        probabilities = class_probabilities(model, X)
    names = given.names or [f"row {i + 1}" for i in range(X.shape[0])]
    return _Tested(X, class_indices(y, model.classes_), scores, probabilities, names)


def _tested_images(features: Any, model: Any, X: Any, y: Any, given: _Given) -> _Tested:
    images, labels = list(X), list(y)
    names = names_of_images(images, given.names)
    scores, probabilities = given.scores, given.probabilities
    gone: dict[int, Any] = {}
    if scores is None:
        rows, gone = features.transform_with_errors(images)
        kept = [i for i in range(len(images)) if i not in gone]
        if not kept:
            raise ValueError(f"none of the {len(images)} images can be read")
        scores = ImageExplainer(features, model).scores(rows[kept])
        if probabilities is None:
            probabilities = class_probabilities(model, rows[kept])
        else:
            probabilities = np.asarray(probabilities)[kept]
        images, labels = [images[i] for i in kept], [labels[i] for i in kept]
    unreadable = [(names[i], error.reason) for i, error in sorted(gone.items())]
    names = [name for i, name in enumerate(names) if i not in gone]
    truth = class_indices(labels, model.classes_)
    return _Tested(images, truth, scores, probabilities, names, unreadable)


def _learned_from_table(
    model: Any, tested: _Tested, feature_names: Sequence[str] | None
) -> dict[str, Any]:
    """Return importances of the columns, and shape functions of the most important ones."""
    X, parts = tested.X, additive(model)
    names = names_of_columns(X, feature_names)
    if parts is None:
        rows = min(SAMPLE, MOST_LEFT_OUT // max(1, _values_per_row(X)))
        if rows < min(FEWEST_ROWS, X.shape[0]):
            return {}
        found = importances(model, X, feature_names=names, max_rows=rows)
        return {"importances": found, **_reasons(model, tested, names)}
    found = importances(parts, X, feature_names=names, max_rows=SAMPLE)
    shapes = _shapes(parts, X, found)
    return {"importances": found, "features": shapes, **_reasons(model, tested, names)}


def _reasons(model: Any, tested: _Tested, names: Sequence[str]) -> dict[str, Any]:
    """Return what tells why a row has its prediction."""

    def reasons(i: int, a: int, b: int) -> list[dict[str, Any]]:
        why = explain_row(
            model, tested.X, i, class_=model.classes_[a], versus=model.classes_[b],
            feature_names=names, probabilities=np.zeros(len(model.classes_)), top=REASONS,
        )  # fmt: skip
        return why.features

    exact = additive(model) is not None
    return {
        "reasons": reasons,
        "exact": exact,
        "exact_note": COLUMNS_NOTE if exact else LEFT_OUT_NOTE,
    }


def _values_per_row(X: Any) -> int:
    return int(np.ceil(X.nnz / X.shape[0])) if sp.issparse(X) else int(X.shape[1])


def _shapes(parts: Any, X: Any, found: Importances) -> list[Shape]:
    """Return the shape functions of the most important columns, if there are such functions."""
    if not parts.has_shapes or found.low is None:
        return []
    best = found.by_class.max(axis=1)
    chosen = [int(j) for j in np.argsort(-best, kind="stable")[:MOST_WORDS] if best[j] > 0]
    names = [found.names[j] for j in chosen]
    columns = getattr(X, "columns", None)
    return list(shape_functions(parts, chosen, names, found.low, found.high, columns=columns))


def _learned_from_images(
    features: Any, model: Any, tested: _Tested, feature_name: str
) -> dict[str, Any]:
    """Return pictures, heat maps, and the most important visual words."""
    explainer = ImageExplainer(features, model)
    directions = np.eye(len(model.classes_))
    images, side = tested.X, features.max_side

    def picture(i: int) -> Array:
        return read_image(images[i], max_side=side, color=True)

    # the heat maps of an image are asked for one after the other
    explained = lru_cache(maxsize=1)(lambda i: explainer.of(features.read(images[i])))
    some = spread_places(len(images), SAMPLE)
    words = visual_words(
        features,
        model,
        [images[i] for i in some],
        name=feature_name,
        pictures=lambda at: picture(int(some[at])),
    )
    return {
        "picture": picture,
        "heat": lambda i, k: explained(i).heat(directions[k]),
        "intercept": explainer.intercept,
        "exact": explainer.exact,
        "exact_note": explainer.note,
        "words": words,
    }


def _last(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _majority(model: Any, truth: Array) -> dict[str, float]:
    counts = np.bincount(truth, minlength=len(model.classes_))
    return {f"always {class_names(model)[counts.argmax()]}": float(counts.max() / truth.size)}
