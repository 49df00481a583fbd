"""What the page about a model is made from."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilbin.cli import _visual_words as useful
from hilbin.cli._answers import Answers
from hilbin.cli._console import Console
from hilbin.cli._contributions import shapes
from hilbin.cli._duplicates import duplicates, suspicions
from hilbin.cli._explanations import Explainer
from hilbin.cli._layout import feature, whole_image_words
from hilbin.cli._models import Model
from hilbin.images import read_image
from hilbin.report import Evidence, Shape, VisualWord

SAMPLE = 300  # rows from which the use of features is told

Array = NDArray[Any]


def evidence(
    explainer: Explainer,
    found: Answers,
    source: str,
    baselines: Mapping[str, float],
    console: Console,
) -> Evidence:
    """All that the page shows.

    Parameters
    ----------
    explainer : Explainer
        Of the model.
    found : Answers
        What the model says about the held-out examples.
    source : str
        Where they come from.
    baselines : mapping of str to float
        Accuracies of simpler models.
    console : Console
    """
    model = explainer.model
    with console.stage("looking for useful features"):
        words, features = _learned(explainer, found)
    with console.stage("looking for duplicates"):
        pairs = duplicates(model, found) if model.of_images else None
        odd = suspicions(model)
    return Evidence(
        title=f"{model.path.stem}: {model.metadata['features'] or 'table'}, "
        f"{model.metadata['kernel']} kernel",
        classes=model.classes,
        truth=found.truth,
        scores=found.scores,
        names=found.names,
        picture=_pictures(model, found) if model.of_images else None,
        heat=_heat(explainer, found) if model.of_images else None,
        intercept=explainer.intercept,
        exact=explainer.exact,
        exact_note=explainer.note,
        baselines=baselines,
        words=words,
        features=features,
        suspicious=odd,
        duplicates=pairs,
        unreadable=_unreadable(model, found) if model.of_images else None,
        provenance=_provenance(model, found, source),
        timings=_timings(model, console),
    )


def _pictures(model: Model, found: Answers) -> Callable[[int], Array]:
    side = model.features.max_side
    return lambda i: read_image(found.paths[i], max_side=side, color=True)


def _heat(explainer: Explainer, found: Answers) -> Callable[[int, int], Array]:
    directions = np.eye(len(explainer.model.classes))
    features = explainer.model.features
    # the maps of an image are asked for one after the other
    explained = lru_cache(maxsize=1)(lambda i: explainer.of(features.read(found.paths[i])))
    return lambda i, k: explained(i).heat(directions[k])


def _learned(explainer: Explainer, found: Answers) -> tuple[list[VisualWord], list[Shape]]:
    """Useful words of images, or useful features of a table; neither if nothing is additive."""
    if explainer.parts is None:
        return [], []
    if found.rows is not None:
        return [], _shapes(explainer, found)
    return _words(explainer, found), []


def _sample(n: int) -> list[int]:
    """Places of some of many, evenly spread."""
    found: list[int] = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(int)).tolist()
    return found


def _shapes(explainer: Explainer, found: Answers) -> list[Shape]:
    assert explainer.parts is not None
    columns = explainer.model.metadata["table"]["columns"]
    used = useful.use(explainer.parts, found.rows[_sample(found.truth.size)])
    chosen = useful.most_useful_features(used)
    names = [columns[j] if columns else f"column {j + 1}" for j in chosen]
    return list(shapes(explainer.parts, chosen, names, used.low, used.high))


def _words(explainer: Explainer, found: Answers) -> list[VisualWord]:
    assert explainer.parts is not None
    model, sample = explainer.model, _sample(found.truth.size)
    features, name = model.features, model.metadata["features"]
    rows, gone = features.transform_with_errors([found.paths[i] for i in sample])
    kept = [at for at in range(len(sample)) if at not in gone]  # readable a moment ago
    rows, sample = rows[kept], [sample[at] for at in kept]
    used = useful.use(explainer.parts, rows)
    pairs = useful.most_useful_words(
        used, whole_image_words(features), lambda j: feature(features, j, name)
    )
    what = [feature(features, j, name) for j, _ in pairs]
    curves = shapes(
        explainer.parts, [j for j, _ in pairs], [str(w) for w in what], 0 * used.low, used.high
    )
    image = useful.cached(lambda i: features.read(found.paths[i]), sample)
    shown = useful.cached(_pictures(model, found), sample)
    return [
        VisualWord(
            replace(curve, values=curve.values / word.weight),  # the share of the image
            k,
            useful.patches(word, rows[:, j], image, shown),
        )
        for (j, k), word, curve in zip(pairs, what, curves, strict=True)
    ]


def _unreadable(model: Model, found: Answers) -> list[tuple[str, str]]:
    left_out = [(f["path"], f["reason"]) for f in found.unreadable]
    return left_out + [(f["name"], f["reason"]) for f in model.metadata["unreadable"]]


def _provenance(model: Model, found: Answers, source: str) -> dict[str, str]:
    about = model.metadata
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return {
        "trained by": about["command"],
        "evaluated by": shlex.join(["hilbin", "eval", str(model.path), source]),
        "model": f"{model.path}, made {about['created']}",
        "seed": str(about["seed"]),
        "training data": f"{about['data']['n']} of {about['data']['source']}, "
        f"sha256 {about['data']['sha256']}",
        "held-out data": f"{found.truth.size} of {source}, sha256 {found.sha256}",
        "versions": versions,
    }


def _timings(model: Model, console: Console) -> dict[str, float]:
    trained = {f"train, {stage}": took for stage, took in model.metadata["seconds"].items()}
    return trained | {f"eval, {stage}": took for stage, took in console.seconds.items()}
