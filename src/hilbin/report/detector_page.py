"""The page about a detector: precision and recall, misses, false alarms, filters, speed."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.detect import DetectorEvaluation
from hilbin.report.charts import Axes, Line, chart
from hilbin.report.glyphs import cells_of, glyphs
from hilbin.report.learned import provenance_list, unreadable_list
from hilbin.report.markup import (
    DASH,
    Html,
    file_name,
    fill,
    fraction,
    image,
    join,
    percent,
    plural,
    section,
    short,
    shown_of,
    signed,
)
from hilbin.report.page import lay_out, write_within
from hilbin.report.pictures import Pictures, data_uri, pillow, shrink

MOST_CARDS, MOST_ROWS = 24, 400
MARGIN = 0.6  # of the longer side of a box, shown around it
SIDE = 200  # pixels of a picture
TRUTH, FOUND = (64, 196, 99), (240, 140, 0)  # colors of boxes


@dataclass(frozen=True, eq=False)
class _Page:
    """What the sections are made from."""

    evaluation: DetectorEvaluation
    title: str
    filters: Sequence[Array]
    about: Mapping[str, Any]
    pictures: Pictures = field(default_factory=Pictures)


def write_detector_report(
    evaluation: DetectorEvaluation,
    path: str | os.PathLike[str],
    *,
    title: str = "Detector",
    filters: Sequence[Array] = (),
    about: Mapping[str, Any] | None = None,
    max_bytes: int = 5_000_000,
) -> Path:
    """Write the report on a detector: one HTML file, whole or not at all.

    Parameters
    ----------
    evaluation : DetectorEvaluation
        What the detector found in images that it was not fitted to.
    path : path-like
        Path of the file. Its folder must exist.
    title : str, default="Detector"
        Heading of the page.
    filters : sequence of arrays of shape (rows, columns, channels), optional
        Filters of the detector, to be drawn.
    about : mapping, optional
        How the detector was made.
    max_bytes : int, default=5_000_000
        Largest size of the file; fewer pictures are shown until it fits.

    Returns
    -------
    path : Path
        Path of the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.detect import Boxes, Detected, DetectorEvaluation, ImageBoxes
    >>> from hilbin.report import write_detector_report
    >>> drawn = [ImageBoxes("a.jpg", [[0, 0, 10, 10]])]
    >>> found = [Detected("a.jpg", Boxes([[0, 0, 10, 10]], scores=[0.9]), (80, 20), 0.01)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     evaluation = DetectorEvaluation(drawn, found, threshold=0.5)
    ...     page = write_detector_report(evaluation, Path(folder) / "cats.html", title="Cats")
    ...     "Average precision" in page.read_text(encoding="utf-8")
    True
    """
    page = _Page(evaluation, title, filters, about or {})
    return write_within(path, lambda factor: _lay_out(page, int(MOST_CARDS * factor)), max_bytes)


def _lay_out(page: _Page, most: int) -> Html:
    return lay_out(
        page.title,
        [
            ("Average precision", _headline(page)),
            ("Precision and recall", _curves(page)),
            ("Misses", _misses(page, most)),
            ("False alarms", _false_alarms(page, most)),
            ("Filters", _filters(page)),
            ("Unreadable", _unreadable(page)),
            ("Provenance", _provenance(page)),
        ],
    )


def _headline(page: _Page) -> Html:
    found = page.evaluation
    n_missed, n_false = len(found.misses()), len(found.false_alarms())
    n_boxes = found.matches.n_truths
    facts = [
        (f"test {plural(len(found.records), 'image')}", f"{len(found.records):,}"),
        (plural(n_boxes, "box to find", "boxes to find"), f"{n_boxes:,}"),
        (f"recall at the threshold {signed(found.threshold)}", percent(found.recall)),
        ("precision there", percent(found.precision)),
        (plural(n_missed, "miss", "misses"), f"{n_missed:,}"),
        (plural(n_false, "false alarm"), f"{n_false:,}"),
        (f"per image of {_megapixels(found)} on one processor", _milliseconds(found.seconds)),
    ]
    rows = join(fill("<div><dt>{k}</dt><dd>{v}</dd></div>", k=k, v=v) for k, v in facts)
    return fill(
        '<section id="headline" aria-labelledby="headline-h" class="headline"><div class="figure">'
        '<h2 id="headline-h">Average precision</h2><p class="big">{ap}</p><p class="range">a '
        "detection is correct from an IoU of 0.5 on</p></div>"
        '<dl class="facts">{rows}</dl></section>',
        ap=_three_digits(found.average_precision),
        rows=rows,
    )


def _three_digits(value: float) -> str:
    return DASH if np.isnan(value) else f"{value:.3f}"


def _megapixels(found: DetectorEvaluation) -> str:
    pixels = [width * height for width, height in (one.size for one in found.found)]
    return f"{np.mean(pixels or [0]) / 1e6:.2f} megapixels"


def _milliseconds(seconds: float) -> str:
    return DASH if np.isnan(seconds) else f"{1e3 * seconds:.1f} ms"


def _curves(page: _Page) -> Html:
    matches = page.evaluation.matches
    if not matches.n_truths or not matches.thresholds.size:
        return section(
            "curves", "Precision and recall", "There is nothing to find, or nothing was found."
        )
    lead = (
        "Left: the share of detections that are correct (precision) over the share of the boxes "
        "that are found (recall), as the threshold on the score falls; the dot is the detector's "
        "threshold. Right: both against the threshold. Move it to the left to find more, to the "
        "right for fewer false alarms."
    )
    cards = [_over_recall(page), _over_threshold(page)]
    return section(
        "curves",
        "Precision and recall",
        lead,
        fill('<div class="cards">{p}</div>', p=join(cards)),
    )


def _over_recall(page: _Page) -> Html:
    found = page.evaluation
    recall, precision = found.matches.recall, found.matches.precision

    def dot(axes: Axes) -> Html:
        if np.isnan(found.precision):
            return Html("")
        x, y = axes.place(np.array(found.recall), np.array(found.precision))
        return fill('<circle class="dot" cx="{x}" cy="{y}" r="5"/>', x=f"{x:.1f}", y=f"{y:.1f}")

    drawn = chart(
        [Line(np.append(0.0, recall), np.append(precision[:1], precision))],
        describe=f"Precision over recall, area {fraction(found.average_precision)}",
        labels=("recall", "precision"),
        x=(0.0, 1.0),
        y=(0.0, 1.0),
        shares=(True, True),
        extra=dot,
    )
    return _card("Precision over recall", drawn)


def _over_threshold(page: _Page) -> Html:
    found = page.evaluation
    matches = found.matches
    scores = matches.thresholds[::-1]
    low, high = (min(float(scores[0]), found.threshold), max(float(scores[-1]), found.threshold))
    high += 1e-9 + 0.02 * (high - low)

    def mark(axes: Axes) -> Html:
        level = Line(np.full(2, found.threshold), np.array([0.0, 1.0]), "ref")
        return fill('<path class="line ref" d="{d}"/>', d=axes.path(level))

    drawn = chart(
        [Line(scores, matches.recall[::-1], "l0"), Line(scores, matches.precision[::-1], "l1")],
        describe="Recall and precision against the threshold",
        labels=("threshold on the score", "share"),
        x=(low, high),
        y=(0.0, 1.0),
        shares=(False, True),
        extra=mark,
    )
    legend = Html('<ul class="lines"><li class="l0">recall</li><li class="l1">precision</li></ul>')
    return _card("Against the threshold", join([drawn, legend]))


def _card(title: str, body: Html) -> Html:
    return fill('<article class="card"><h3>{t}</h3>{b}</article>', t=title, b=body)


def _misses(page: _Page, most: int) -> Html:
    missed = page.evaluation.misses()
    if not missed:
        return section("misses", "Misses", "Every box was found.")
    lead = (
        "Boxes that were not found, the lowest scores first, with the oriented gradients of their "
        "cells, which are all that the filter sees. "
    )
    cards = [
        _figure(
            page,
            one.image,
            one.box,
            TRUTH,
            "no detection near it" if one.score is None else f"score {signed(one.score)}",
        )
        for one in missed[:most]
    ]
    return _gallery("misses", "Misses", lead, cards, len(missed))


def _false_alarms(page: _Page, most: int) -> Html:
    alarms = page.evaluation.false_alarms()
    if not alarms:
        return section("alarms", "False alarms", "There is no false alarm.")
    lead = (
        "Detections that match no box, the highest scores first. An IoU a little below 0.5 means "
        "a badly placed box, 0.5 and more a second detection of the same thing, 0 a confusion, or "
        "a thing that nobody drew a box around. "
    )
    cards = [
        _figure(
            page,
            one.image,
            one.box,
            FOUND,
            f"score {signed(one.score)}, IoU {one.overlap:.2f} with a box",
        )
        for one in alarms[:most]
    ]
    return _gallery("alarms", "False alarms", lead, cards, len(alarms))


def _gallery(anchor: str, title: str, lead: str, cards: list[Html], total: int) -> Html:
    return section(
        anchor,
        title,
        lead + shown_of(len(cards), total, anchor if anchor == "misses" else "false alarms"),
        fill('<div class="cards">{c}</div>', c=join(cards)),
    )


def _figure(page: _Page, i: int, box: Array, color: tuple[int, int, int], said: str) -> Html:
    key = (i, tuple(box.tolist()), color)
    shown = page.pictures.once(key, lambda: _pictures(page, i, box, color))
    path = page.evaluation.records[i].path
    name = short(path)
    figures = join(
        fill("<figure>{image}</figure>", image=image(source, f"{alt} {name}"))
        for source, alt in zip(shown, ("box in", "cells of"), strict=False)
    )
    return fill(
        '<article class="card"><div class="trio two">{figures}</div><p class="verdict">{said}</p>'
        '<p class="file">{name}</p></article>',
        figures=figures,
        said=said,
        name=file_name(short(path.name)),
    )


def _pictures(page: _Page, i: int, box: Array, color: tuple[int, int, int]) -> tuple[str, ...]:
    """Return the surroundings of a box with the box drawn, and the cells inside it."""
    try:
        whole = page.evaluation.picture(i)
    except ValueError:  # the file has gone since
        return ()
    height, width = whole.shape[:2]
    pad = MARGIN * max(box[2] - box[0], box[3] - box[1])
    x0, y0 = (max(0, int(v - pad)) for v in box[:2])
    x1, y1 = min(width, int(box[2] + pad) + 1), min(height, int(box[3] + pad) + 1)
    crop = whole[y0:y1, x0:x1]
    if not crop.size:
        return ()
    around = _with_box(crop, box - np.array([x0, y0, x0, y0]), color)
    left, top = (max(0, int(v)) for v in box[:2])
    inside = whole[top : max(top + 1, int(box[3])), left : max(left + 1, int(box[2]))]
    return data_uri(around), data_uri(shrink(glyphs(cells_of(inside)), SIDE))


def _with_box(crop: Array, box: Array, color: tuple[int, int, int]) -> Array:
    from PIL import ImageDraw

    small = shrink(crop, SIDE)
    factor = small.shape[1] / crop.shape[1]
    picture = pillow().fromarray(small)
    ImageDraw.Draw(picture).rectangle([float(v) for v in box * factor], outline=color, width=2)
    return np.asarray(picture)


def _filters(page: _Page) -> Html:
    if not len(page.filters):
        return Html("")
    lead = (
        "What the detector looks for, as oriented gradients: strokes lie along edges. Left are the "
        "weights that raise the score where they meet an edge, right those that lower it."
    )
    cards = []
    for k, one in enumerate(page.filters, 1):
        signs = ((one, "raises the score"), (-np.asarray(one), "lowers it"))
        figures = join(
            fill(
                "<figure>{image}<figcaption>{text}</figcaption></figure>",
                image=image(data_uri(glyphs(weights)), f"filter {k}: {text}"),
                text=text,
            )
            for weights, text in signs
        )
        rows, columns = np.shape(one)[:2]
        title = f"Filter {k}: {rows} by {columns} cells"
        cards.append(_card(title, fill('<div class="trio two">{f}</div>', f=figures)))
    return section("filters", "Filters", lead, fill('<div class="cards">{c}</div>', c=join(cards)))


def _unreadable(page: _Page) -> Html:
    given = [(one["path"], one["reason"]) for one in page.evaluation.unreadable]
    return unreadable_list(given, "These images were left out. ", MOST_ROWS) if given else Html("")


def _provenance(page: _Page) -> Html:
    facts = [(short(key), short(value, 400)) for key, value in page.about.items()]
    return provenance_list(facts) if facts else Html("")
