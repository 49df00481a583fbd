"""What is gained by leaving narrow decisions to a person."""

import numpy as np

from hilbin.report._context import Context, section, table
from hilbin.report._html import Html, fill, join, percent
from hilbin.report._measures import wilson
from hilbin.report._svg import Axes, Line, chart

FEWEST = 20  # test examples, below which a curve says nothing
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
GROUPS, FEWEST_PER_GROUP = 10, 20


def reject(context: Context) -> Html:
    """Accuracy on the kept part against the share rejected, and accuracy by margin."""
    if context.measures.n < FEWEST:
        return Html("")
    lead = (
        "If the decisions with the smallest margin (highest score less the second) are left to a "
        "person, the accuracy on the rest is this; the band is the 95 % interval. A curve that "
        "does not rise says that the margin tells nothing."
    )
    parts = [_curve(context), _table(context)]
    if context.measures.n >= 3 * FEWEST_PER_GROUP:
        parts.append(_groups(context))
    return section(
        "reject",
        "When in doubt, ask",
        lead,
        fill('<div class="cards">{p}</div>', p=join(parts)),
    )


def _curve(context: Context) -> Html:
    m = context.measures
    count, right = (a[::-1] for a in m.kept)
    enough = count >= min(10, count[0])
    count, right = count[enough], right[enough]
    rejected, accuracy = 1 - count / m.n, right / count
    low, high = wilson(right, count)
    floor = max(0.0, np.floor(10 * float(low.min()) - 0.2) / 10)

    def band(axes: Axes) -> Html:
        level = Line(np.array([0.0, 1.0]), np.full(2, m.accuracy), "ref")
        return join(
            [
                axes.band(rejected, low, high),
                fill('<path class="line ref" d="{d}"/>', d=axes.path(level)),
            ]
        )

    drawn = chart(
        [Line(rejected, accuracy)],
        describe="Accuracy on the kept part against the share rejected",
        labels=("rejected", "accuracy on the rest"),
        x=(0, 1),
        y=(floor, 1.0),
        shares=(True, True),
        extra=band,
    )
    return fill('<article class="card"><h3>Reject curve</h3>{drawn}</article>', drawn=drawn)


def _table(context: Context) -> Html:
    rows, seen = [], set()
    for share in SHARES:
        rejected, accuracy = context.measures.accuracy_when_rejecting(share)
        if rejected not in seen:
            rows.append((percent(rejected), percent(accuracy)))
        seen.add(rejected)
    return fill(
        '<article class="card"><h3>In numbers</h3>{t}</article>',
        t=table(("rejected", "accuracy on the rest"), rows, "plain numbers"),
    )


def _groups(context: Context) -> Html:
    """Accuracy in groups of equal size, from the narrowest decisions to the clearest."""
    m = context.measures
    order = np.argsort(m.margin, kind="stable")
    groups = np.array_split(order, min(GROUPS, m.n // FEWEST_PER_GROUP))
    middle = np.array([float(np.median(m.margin[g])) for g in groups])
    right = np.array([int(m.right[g].sum()) for g in groups])
    size = np.array([g.size for g in groups])
    low, high = wilson(right, size)

    def marks(axes: Axes) -> Html:
        x, y = axes.place(middle, right / size)
        bottoms, tops = axes.place(middle, low)[1], axes.place(middle, high)[1]
        return join(
            fill(
                '<path class="whisk" d="M{x},{a}V{b}"/><circle class="dot" cx="{x}" cy="{y}" '
                'r="3.5"/>',
                x=f"{cx:.1f}",
                a=f"{a:.1f}",
                b=f"{b:.1f}",
                y=f"{cy:.1f}",
            )
            for cx, cy, a, b in zip(x, y, bottoms, tops, strict=True)
        )

    drawn = chart(
        [],
        describe="Accuracy of groups of decisions against their margin",
        labels=("median margin of the group", "accuracy"),
        x=(0.0, float(middle.max()) * 1.05 or 1.0),
        y=(0.0, 1.0),
        shares=(False, True),
        extra=marks,
    )
    return fill(
        '<article class="card"><h3>Does a larger margin mean more often right?</h3>{drawn}'
        '<p class="note">{k} groups of equal size, by margin.</p></article>',
        drawn=drawn,
        k=len(groups),
    )
