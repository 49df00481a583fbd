"""The page about a detector: precision and recall, misses, false alarms, filters, speed."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.detect import DetectorEvaluation, explain_box
from hilbin.report.charts import Axes, Line, chart
from hilbin.report.glyphs import glyphs
from hilbin.report.learned import provenance_list, unreadable_list
from hilbin.report.markup import (
    DASH,
    NARROW_SPACE,
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
from hilbin.report.pictures import Pictures, data_uri, overlay, pillow, shrink

MOST_CARDS, MOST_ROWS = 24, 400
MARGIN = 0.6  # of the longer side of a box, shown around it
SIDE = 200  # pixels of a picture
KEY = (
    "The oriented gradients of a window are all that the detector sees; the reasons are what each "
    "of its cells adds to the score: red raises it, blue lowers it. "
)
OUTSIDE = 128  # gray value outside of an image
Color = tuple[int, int, int]
TRUTH, FOUND = (64, 196, 99), (240, 140, 0)  # colors of boxes


@dataclass(frozen=True, eq=False)
class _Page:
    """What the sections are made from."""

    evaluation: DetectorEvaluation
    title: str
    detector: Any
    about: Mapping[str, Any]
    pictures: Pictures = field(default_factory=Pictures)


def write_detector_report(
    evaluation: DetectorEvaluation,
    path: str | os.PathLike[str],
    *,
    title: str = "Detector",
    detector: Any = None,
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
    detector : DeformableDetector, optional
        The detector, whose filters and reasons are drawn.
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
    page = _Page(evaluation, title, detector, about or {})
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
        (f"per image of {_megapixels(found)}", _milliseconds(found.seconds)),
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
    return DASH if np.isnan(seconds) else f"{1e3 * seconds:.1f}{NARROW_SPACE}ms"


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
        "Boxes that were not found, the lowest scores first. Of the windows that meet a box, the "
        "best is explained. " + KEY
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
        "a thing that nobody drew a box around. " + KEY
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
        fill('<div class="cards maps">{c}</div>', c=join(cards)),
    )


def _figure(page: _Page, i: int, box: Array, color: Color, said: str) -> Html:
    key = (i, tuple(box.tolist()), color)
    path = page.evaluation.records[i].path
    shown = page.pictures.once(key, lambda: _pictures(page, i, box, color))
    figures = join(
        fill(
            "<figure>{image}<figcaption>{text}</figcaption></figure>",
            image=image(data_uri(picture), f"{text}: {short(path)}"),
            text=text,
        )
        for text, picture in shown.items()
    )
    return fill(
        '<article class="card"><div class="trio">{figures}</div><p class="verdict">{said}</p>'
        '<p class="file">{name}</p></article>',
        figures=figures,
        said=said,
        name=file_name(short(path.name)),
    )


def _pictures(page: _Page, i: int, box: Array, color: Color) -> dict[str, Array]:
    """Return a box in its surroundings, the cells of its window, and what every cell adds."""
    try:
        whole = page.evaluation.picture(i)
    except ValueError:  # the file has gone since
        return {}
    pad = MARGIN * max(box[2] - box[0], box[3] - box[1])
    around = _cut(whole, box + pad * np.array([-1, -1, 1, 1]))
    shown = {"box": _with_box(around, pad * np.ones(2), box, color)}
    reasons = None if page.detector is None else explain_box(page.detector, whole, box)
    if reasons is not None:
        window = shrink(_cut(whole, reasons.window), SIDE)
        shown["gradients"] = shrink(glyphs(reasons.cells), SIDE)
        shown["reasons"] = overlay(window, reasons.contributions)
    return shown


def _cut(whole: Array, box: Array) -> Array:
    """Return a part of a picture, which may begin or end outside of it, where it is gray."""
    (x0, y0), (x1, y1) = np.floor(box[:2]).astype(int), np.ceil(box[2:]).astype(int)
    part = np.full((max(1, y1 - y0), max(1, x1 - x0), 3), OUTSIDE, np.uint8)
    height, width = whole.shape[:2]
    ys, xs = slice(max(0, y0), min(y1, height)), slice(max(0, x0), min(x1, width))
    inside = whole[ys, xs]
    if inside.size:
        part[ys.start - y0 :, xs.start - x0 :][: inside.shape[0], : inside.shape[1]] = inside
    return part


def _with_box(around: Array, corner: Array, box: Array, color: Color) -> Array:
    from PIL import ImageDraw

    small = shrink(around, SIDE)
    factor = small.shape[1] / around.shape[1]
    ends = factor * np.concatenate([corner, corner + box[2:] - box[:2]])
    picture = pillow().fromarray(small)
    ImageDraw.Draw(picture).rectangle([float(v) for v in ends], outline=color, width=2)
    return np.asarray(picture)


def _filters(page: _Page) -> Html:
    if page.detector is None:
        return Html("")
    lead = (
        "What the detector looks for, as oriented gradients: strokes lie along edges. Left are the "
        "weights that raise the score where they meet an edge, right those that lower it."
    )
    cards = []
    for k, one in enumerate((f.transpose(0, 2, 1) for f in page.detector.filters_), 1):
        signs = ((one, "raises the score"), (-one, "lowers it"))
        figures = join(
            fill(
                "<figure>{image}<figcaption>{text}</figcaption></figure>",
                image=image(data_uri(glyphs(weights)), f"filter {k}: {text}"),
                text=text,
            )
            for weights, text in signs
        )
        rows, columns = one.shape[:2]
        title = f"Filter {k}: {rows} by {columns} cells"
        cards.append(_card(title, fill('<div class="trio two">{f}</div>', f=figures)))
    return section("filters", "Filters", lead, fill('<div class="cards">{c}</div>', c=join(cards)))


def _unreadable(page: _Page) -> Html:
    given = [(one["path"], one["reason"]) for one in page.evaluation.unreadable]
    return unreadable_list(given, "These images were left out. ", MOST_ROWS) if given else Html("")


def _provenance(page: _Page) -> Html:
    facts = [(short(key), short(value, 400)) for key, value in page.about.items() if value != ""]
    return provenance_list(facts) if facts else Html("")
