"""How good the model is: accuracy, precision and recall per class, and the reject option."""

import numpy as np

from hilbin.report.charts import Axes, Line, chart, spark
from hilbin.report.context import Context
from hilbin.report.markup import (
    DASH,
    Html,
    fill,
    fraction,
    join,
    percent,
    plural,
    section,
    short,
    table,
)
from hilbin.report.measures import wilson

HEADS = ("class", "test", "precision", "recall", "F1", "AP")
FEWEST = 20  # test examples, below which a curve says nothing
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
GROUPS, FEWEST_PER_GROUP = 10, 20


def headline(context: Context) -> Html:
    """Show the accuracy, its interval, and bars for the model and the baselines."""
    m = context.measures
    low, high = (float(end) for end in wilson(int(m.right.sum()), m.n))
    return fill(
        '<section id="headline" aria-labelledby="headline-h" class="headline">'
        '<div class="figure"><h2 id="headline-h">Accuracy</h2>'
        '<p class="big">{accuracy}</p><p class="range">95 % interval {low} to {high}</p></div>'
        "{facts}{bars}</section>",
        accuracy=percent(m.accuracy),
        low=percent(low),
        high=percent(high),
        facts=_facts(context),
        bars=_bars(context, low, high),
    )


def _facts(context: Context) -> Html:
    m = context.measures
    absent = int((m.confusion.sum(axis=1) == 0).sum())
    wrong = m.n - int(m.right.sum())
    facts = [
        (f"test {plural(m.n, context.thing)}", f"{m.n:,}"),
        (plural(wrong, "mistake"), f"{wrong:,}"),
        ("classes", f"{len(context.classes):,}"),
        ("balanced accuracy (mean recall)", percent(m.balanced_accuracy)),
    ]
    if absent:
        noun = plural(absent, "class", "classes")
        facts.insert(3, (f"{noun} without test {context.thing}s", f"{absent:,}"))
    if m.reliability is not None:
        error = percent(m.reliability.expected_calibration_error)
        facts.append(("expected calibration error", error))
    rows = join(fill("<div><dt>{k}</dt><dd>{v}</dd></div>", k=k, v=v) for k, v in facts)
    return fill('<dl class="facts">{rows}</dl>', rows=rows)


def _bars(context: Context, low: float, high: float) -> Html:
    whisker = fill(
        '<i class="whisker" style="left:{low}%;width:{wide}%"></i>',
        low=f"{100 * low:.2f}",
        wide=f"{100 * (high - low):.2f}",
    )
    rows = [_bar("this model", context.measures.accuracy, "ours", whisker)]
    baselines = context.evidence.baselines
    for name in sorted(baselines, key=lambda name: -baselines[name]):
        rows.append(_bar(short(name, 40), baselines[name], "other", Html("")))
    return fill(
        '<figure class="bars"><table><caption class="visually-hidden">Accuracy of this model and '
        "of simpler ones</caption><tbody>{rows}</tbody></table><figcaption>Accuracy on the "
        "test {things} unless stated otherwise; the whisker is the 95 % interval (Wilson)."
        "</figcaption></figure>",
        rows=join(rows),
        things=context.thing + "s",
    )


def _bar(name: str, accuracy: float, kind: str, whisker: Html) -> Html:
    return fill(
        '<tr class="{kind}"><th scope="row">{name}</th><td class="track"><i class="bar" '
        'style="width:{wide}%"></i>{whisker}</td><td class="value">{accuracy}</td></tr>',
        kind=kind,
        name=name,
        wide=f"{100 * min(max(accuracy, 0), 1):.2f}",
        whisker=whisker,
        accuracy=percent(accuracy),
    )


def classes(context: Context) -> Html:
    """Show a table that can be sorted, with a precision-recall curve for each class."""
    heads = join(
        fill(
            '<th scope="col"{kind}><button type="button">{head}</button></th>',
            head=head,
            kind=Html(' class="num"' if at else ""),
        )
        for at, head in enumerate(HEADS)
    )
    rows = join(_class_row(context, k) for k in range(len(context.classes)))
    return section(
        "classes",
        "Precision and recall per class",
        "Precision is the fraction of the predictions of a class that are correct, recall the "
        "fraction of its examples that are found. AP, average precision, is the area under the "
        "curve of precision (vertical) over recall (horizontal) as the threshold on the score is "
        "lowered; the dashed line is chance. A dash means that there is nothing to count.",
        fill(
            '<div class="scroll" tabindex="0"><table id="classes-table" class="classes"><thead>'
            "<tr>{heads}"
            '<th scope="col">precision over recall</th></tr></thead><tbody>{rows}</tbody>'
            "</table></div>",
            heads=heads,
            rows=rows,
        ),
    )


def _class_row(context: Context, k: int) -> Html:
    m = context.measures
    numbers = (m.precision[k], m.recall[k], m.f1[k], m.average_precision[k])
    cells = join(
        fill(
            '<td class="num" data-v="{v}"><i style="width:{w}%"></i>{text}</td>',
            v="" if np.isnan(value) else f"{value:.6f}",
            w="0" if np.isnan(value) else f"{100 * value:.1f}",
            text=fraction(float(value)),
        )
        for value in numbers
    )
    support = int(m.confusion[k].sum())
    return fill(
        '<tr><th scope="row" title="{name}"><span>{name}</span></th>'
        '<td class="num" data-v="{n}">{n_text}</td>{cells}<td>{curve}</td></tr>',
        name=context.classes[k],
        n=support,
        n_text=f"{support:,}",
        cells=cells,
        curve=_precision_recall(context, k),
    )


def _precision_recall(context: Context, k: int) -> Html:
    curve = context.measures.curves[k]
    if curve is None:
        return Html(DASH)
    recall, precision = curve
    chance = float((context.evidence.truth == k).mean())
    area = fraction(float(context.measures.average_precision[k]))
    return spark(recall, precision, chance, f"Precision over recall, area {area}")


def reject(context: Context) -> Html:
    """Show the accuracy on the kept part against the share rejected, and accuracy by margin."""
    if context.measures.n < FEWEST:
        return Html("")
    lead = (
        "Accuracy on the rest if the predictions with the smallest margin (highest score minus the "
        "second highest) are rejected, for a person to decide; the band is the 95 % interval. If "
        "the curve does not rise, the margin says nothing about correctness."
    )
    parts = [_reject_curve(context), _reject_table(context)]
    if context.measures.n >= 3 * FEWEST_PER_GROUP:
        parts.append(_margin_groups(context))
    return section(
        "reject",
        "Accuracy with a reject option",
        lead,
        fill('<div class="cards">{p}</div>', p=join(parts)),
    )


def _reject_curve(context: Context) -> Html:
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
    return fill(
        '<article class="card"><h3>Accuracy–rejection curve</h3>{drawn}</article>', drawn=drawn
    )


def _reject_table(context: Context) -> Html:
    rows, seen = [], set()
    for share in SHARES:
        rejected, accuracy = context.measures.accuracy_when_rejecting(share)
        if rejected not in seen:
            rows.append((percent(rejected), percent(accuracy)))
        seen.add(rejected)
    return fill(
        '<article class="card"><h3>The curve in numbers</h3>{t}</article>',
        t=table(("rejected", "accuracy on the rest"), rows, "plain numbers"),
    )


def _margin_groups(context: Context) -> Html:
    """Show the accuracy of groups of equal size, from the smallest margins to the largest."""
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
        describe="Accuracy of groups of predictions against their margin",
        labels=("median margin of the group", "accuracy"),
        x=(0.0, float(middle.max()) * 1.05 or 1.0),
        y=(0.0, 1.0),
        shares=(False, True),
        extra=marks,
    )
    return fill(
        '<article class="card"><h3>Accuracy by margin</h3>{drawn}'
        '<p class="note">{k} groups of equal size, sorted by margin.</p></article>',
        drawn=drawn,
        k=len(groups),
    )
