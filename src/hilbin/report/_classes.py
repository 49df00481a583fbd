"""Each class: what is found of it, and what is taken for it."""

import numpy as np

from hilbin.report._context import Context, section
from hilbin.report._html import DASH, Html, fill, fraction, join
from hilbin.report._svg import spark

HEADS = ("class", "test", "precision", "recall", "F1", "AP")


def classes(context: Context) -> Html:
    """A table that can be sorted, with a precision-recall curve per class."""
    heads = join(
        fill(
            '<th scope="col"{kind}><button type="button">{head}</button></th>',
            head=head,
            kind=Html(' class="num"' if at else ""),
        )
        for at, head in enumerate(HEADS)
    )
    rows = join(_row(context, k) for k in range(len(context.classes)))
    return section(
        "classes",
        "Class by class",
        "Precision: how much of what is taken for the class is of it. Recall: how much of the "
        "class is found. AP: area under the curve of precision (up) over recall (right), as the "
        "threshold on the score falls; dashed is chance. A dash: nothing to count.",
        fill(
            '<div class="scroll"><table id="classes-table" class="classes"><thead><tr>{heads}'
            '<th scope="col">precision over recall</th></tr></thead><tbody>{rows}</tbody>'
            "</table></div>",
            heads=heads,
            rows=rows,
        ),
    )


def _row(context: Context, k: int) -> Html:
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
        curve=_curve(context, k),
    )


def _curve(context: Context, k: int) -> Html:
    curve = context.measures.curves[k]
    if curve is None:
        return Html(DASH)
    recall, precision = curve
    chance = float((context.evidence.truth == k).mean())
    area = fraction(float(context.measures.average_precision[k]))
    return spark(recall, precision, chance, f"Precision over recall, area {area}")
