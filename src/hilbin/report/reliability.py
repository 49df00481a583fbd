"""Whether the probabilities can be trusted: the reliability diagram and its numbers."""

import numpy as np

from hilbin._arrays import Array
from hilbin.inspection import Reliability
from hilbin.report.charts import Axes, Line, chart
from hilbin.report.context import Context
from hilbin.report.markup import Html, fill, join, percent, section, table
from hilbin.report.measures import wilson


def reliability(context: Context) -> Html:
    """Show accuracy against confidence; nothing if there are no probabilities."""
    found = context.measures.reliability
    if found is None:
        return Html("")
    lead = (
        "Predictions are grouped by the probability of the predicted class (horizontal); the "
        "height is the fraction that is correct, with its 95 % interval. In a reliable model the "
        "points lie on the dashed line: of the predictions made with 80 %, 80 % are correct. The "
        "expected calibration error is the mean distance from the line, "
        f"{percent(found.expected_calibration_error)} here; with few test {context.thing}s some of "
        "it is chance."
    )
    parts = [_diagram(found), _numbers(context, found)]
    return section(
        "reliability",
        "Reliability of the probabilities",
        lead,
        fill('<div class="cards">{p}</div>', p=join(parts)),
    )


def _diagram(found: Reliability) -> Html:
    right = np.rint(found.accuracy * found.count)
    low, high = wilson(right, found.count)

    def marks(axes: Axes) -> Html:
        diagonal = Line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), "ref")
        line = fill('<path class="line ref" d="{d}"/>', d=axes.path(diagonal))
        return join([line, *_points(axes, found, low, high)])

    drawn = chart(
        [Line(found.confidence, found.accuracy)] if found.count.size > 1 else [],
        describe="Share of correct predictions against the probability of the predicted class",
        labels=("probability of the predicted class", "correct"),
        x=(0.0, 1.0),
        y=(0.0, 1.0),
        shares=(True, True),
        extra=marks,
    )
    return fill('<article class="card"><h3>Reliability diagram</h3>{drawn}</article>', drawn=drawn)


def _points(axes: Axes, found: Reliability, low: Array, high: Array) -> list[Html]:
    x, y = axes.place(found.confidence, found.accuracy)
    bottoms, tops = (axes.place(found.confidence, end)[1] for end in (low, high))
    return [
        fill(
            '<path class="whisk" d="M{x},{a}V{b}"/><circle class="dot" cx="{x}" cy="{y}" r="3.5"/>',
            x=f"{cx:.1f}",
            a=f"{a:.1f}",
            b=f"{b:.1f}",
            y=f"{cy:.1f}",
        )
        for cx, cy, a, b in zip(x, y, bottoms, tops, strict=True)
    ]


def _numbers(context: Context, found: Reliability) -> Html:
    rows = [
        (percent(float(confidence)), percent(float(accuracy)), f"{int(count):,}")
        for confidence, accuracy, count in zip(
            found.confidence, found.accuracy, found.count, strict=True
        )
    ]
    heads = ("mean probability", "correct", f"{context.thing}s")
    return fill(
        '<article class="card"><h3>The diagram in numbers</h3>{t}<p class="note">Log loss {loss}, '
        "expected calibration error {error}.</p></article>",
        t=table(heads, rows, "plain numbers"),
        loss=f"{found.log_loss:.3f}",
        error=percent(found.expected_calibration_error),
    )
