"""What the model has learnt: visual words as patches, and features as curves."""

import numpy as np

from hilbin.report._context import Context, image, section
from hilbin.report._html import Html, fill, join, short, shown_of
from hilbin.report._pictures import data_uri, mosaic
from hilbin.report._svg import SIZE, SMALL, Line, chart, span
from hilbin.report.evidence import Array, Shape, VisualWord

PATCHES, ACROSS, PATCH_SIDE = 16, 4, 40
NAMED_CLASSES, GREY_CLASSES = 3, 12  # curves with a color, and further ones without


def words(context: Context) -> Html:
    """A mosaic of patches and a curve for each word; nothing if there are no words."""
    given = context.evidence.words
    if not given:
        return Html("")
    shown = given[: context.caps.words]
    lead = (
        "Patches of images with the word, and what the word adds to the score of the "
        "class (up) by how much of the image it is (right). The most useful words first. "
        + shown_of(len(shown), len(given), "words")
    )
    cards = join(_word(context, at, word) for at, word in enumerate(shown))
    return section(
        "words", "Most useful visual words", lead, fill('<div class="cards">{c}</div>', c=cards)
    )


def _word(context: Context, at: int, word: VisualWord) -> Html:
    name, label = short(word.shape.name, 60), context.classes[word.label]
    patches = list(word.patches[:PATCHES])
    picture = Html("")
    if patches:
        source = context.pictures.once(
            ("word", at), lambda: data_uri(mosaic(patches, PATCH_SIDE, ACROSS))
        )
        picture = image(source, f"{len(patches)} patches with {name}")
    curve = _curve_of(word.shape, word.label)
    line = Line(np.asarray(word.shape.values), curve, "l0", word.shape.stepped)
    return fill(
        '<article class="card word"><h3>{name} <span class="for">{side} <b>{label}</b></span></h3>'
        '<div class="pair"><div class="mosaic">{picture}</div>{chart}</div></article>',
        name=name,
        side="for" if curve[-1] >= curve[0] else "against",
        label=label,
        picture=picture,
        chart=_chart(
            word.shape,
            [line],
            f"What {name} adds to the score of {label}",
            "share of the image",
            SMALL,
        ),
    )


def _curve_of(shape: Shape, label: int) -> Array:
    contributions = np.asarray(shape.contributions, np.float64)
    if contributions.ndim == 1:  # of the second of two classes
        return contributions if label == 1 else -contributions
    return contributions[:, label]


def features(context: Context) -> Html:
    """A curve or a few for each feature; nothing if there are none."""
    given = context.evidence.features
    if not given:
        return Html("")
    shown = given[: context.caps.words]
    lead = (
        "What a feature adds to the score (up) as its value grows (right); a score is the sum of "
        "such curves and a constant. The most useful features first. "
        + shown_of(len(shown), len(given), "features")
    )
    cards = join(_feature(context, shape) for shape in shown)
    return section(
        "features", "Most useful features", lead, fill('<div class="cards">{c}</div>', c=cards)
    )


def _feature(context: Context, shape: Shape) -> Html:
    curves = np.asarray(shape.contributions, np.float64)
    curves = curves.reshape(curves.shape[0], -1)
    most = np.argsort(-np.ptp(curves, axis=0), kind="stable")[: NAMED_CLASSES + GREY_CLASSES]
    x = np.asarray(shape.values)
    lines = [
        Line(x, curves[:, k], f"l{at}" if at < NAMED_CLASSES else "faint", shape.stepped)
        for at, k in enumerate(most)
    ][::-1]
    one = curves.shape[1] == 1
    names = [context.classes[1]] if one else [context.classes[k] for k in most[:NAMED_CLASSES]]
    key = join(
        fill('<li class="l{at}">{name}</li>', at=at, name=name) for at, name in enumerate(names)
    )
    name = short(shape.name, 60)
    return fill(
        '<article class="card"><h3>{name}</h3>{chart}<ul class="lines">{key}</ul></article>',
        name=name,
        chart=_chart(shape, lines, f"What {name} adds to the scores", "value", SIZE),
        key=key,
    )


def _chart(
    shape: Shape, lines: list[Line], describe: str, unit: str, size: tuple[int, int]
) -> Html:
    values = np.asarray(shape.values, np.float64)
    low, high = float(values.min()), float(values.max())
    if not high > low:
        low, high = low - 0.5, high + 0.5
    return chart(
        lines,
        describe=describe,
        labels=(unit, "adds to the score"),
        x=(low, high),
        y=span([line.y for line in lines]),
        size=size,
    )
