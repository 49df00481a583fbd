"""Which class is taken for which, and the images of every such pair."""

import json

import numpy as np

from hilbin.report._context import Context, section
from hilbin.report._html import Html, fill, join, short
from hilbin.report._measures import turns
from hilbin.report.evidence import Array

MOST_CLASSES = 200
LEVELS = 9
SIZES = ((12, "roomy"), (20, "normal"), (40, "small"))  # most classes, and how cells are drawn


def confusion(context: Context) -> Html:
    """The matrix, and beside or below it the gallery that it filters."""
    shown = _shown_classes(context.measures.confusion)
    lead = (
        "A row is a true class, a column what it was taken for; color is the share of the row, "
        "blue where it is right, orange where it is not (square-root scale). "
        f"Choose a cell to see its {context.things}."
    )
    if shown.size < len(context.classes):
        lead += f" The {shown.size} classes with most mistakes of {len(context.classes):,}."
    return section(
        "confusion",
        "What is taken for what",
        lead,
        fill(
            '<div class="beside">{matrix}{gallery}</div>',
            matrix=_matrix(context, shown),
            gallery=_gallery(context),
        ),
    )


def _shown_classes(counts: Array) -> Array:
    wrong = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
    most = np.argsort(-wrong, kind="stable")[:MOST_CLASSES]
    return np.sort(most)


def _matrix(context: Context, shown: Array) -> Html:
    counts = context.measures.confusion
    size = next((name for most, name in SIZES if shown.size <= most), "tiny")
    heads = join(
        fill(
            '<th scope="col" data-k="{k}" title="{name}"><span>{name}</span></th>',
            k=k,
            name=context.classes[k],
        )
        for k in shown
    )
    rows = join(_matrix_row(context, counts, int(t), shown) for t in shown)
    return fill(
        '<div class="matrix-side"><div class="scroll matrix-box"><table id="matrix" role="grid" '
        'class="matrix {size}" aria-label="Confusion matrix" aria-describedby="told">'
        '<thead><tr><td class="corner"><span>true ↓ taken for →</span></td>{heads}</tr></thead>'
        '<tbody>{rows}</tbody></table></div><p id="told" class="told" aria-live="polite">'
        "Point at a cell for its numbers. Arrow keys move, Enter chooses.</p></div>",
        size=size,
        heads=heads,
        rows=rows,
    )


def _matrix_row(context: Context, counts: Array, truth: int, shown: Array) -> Html:
    total = max(1, int(counts[truth].sum()))
    cells = []
    for k in shown:
        count = int(counts[truth, k])
        if count == 0:
            cells.append("<td></td>")
            continue
        level = int(np.ceil(LEVELS * np.sqrt(count / total)))
        cells.append(f'<td class="{"d" if k == truth else "e"}{level}">{count}</td>')
    return fill(
        '<tr><th scope="row" data-k="{k}" data-n="{n}" title="{name}"><span>{name}</span></th>'
        "{cells}</tr>",
        k=truth,
        n=int(counts[truth].sum()),
        name=context.classes[truth],
        cells=Html("".join(cells)),
    )


def order_of_display(context: Context) -> Array:
    """Every cell in turn gives an example, mistakes first, then every cell its second, ..."""
    m = context.measures
    # the most confident mistakes and the narrowest right decisions say most
    worth = np.where(m.right, -m.margin, m.lead_over_truth)
    cells = context.evidence.truth * len(context.classes) + m.predicted
    order = np.argsort(-worth, kind="stable")
    return order[np.lexsort((m.right[order], turns(cells[order])))]


def _gallery(context: Context) -> Html:
    m = context.measures
    order = order_of_display(context)
    n_shown = min(context.caps.gallery, m.n) if context.evidence.picture else 0
    chosen = order[:n_shown]
    # what is shown: mistakes before right decisions, whatever turn they had
    chosen = chosen[np.argsort(m.right[chosen], kind="stable")]
    figures = join(_figure(context, int(i)) for i in chosen)
    rest = order[n_shown:]
    rest = rest[np.argsort(m.right[rest], kind="stable")][: context.caps.listed]
    note = f"{n_shown:,} of {m.n:,} images have a picture here; every cell has its share of them."
    if n_shown == m.n or not context.evidence.picture:
        note = ""
    return fill(
        '<div class="gallery-side" id="gallery"><div class="gallery-head">'
        '<h3 id="filter" aria-live="polite">{count}</h3>'
        '<div class="buttons"><button type="button" id="show-all">Show all</button>'
        '<button type="button" id="show-mistakes">Only mistakes</button></div></div>'
        '<div class="gallery">{figures}</div>'
        '<button type="button" id="more" hidden>Show more</button>'
        '<details id="rest"{opened} hidden><summary></summary><ul class="names"></ul></details>'
        '<p class="note">{note}</p></div>'
        '<script type="application/json" id="data">{data}</script>',
        count=context.count(m.n),
        figures=figures,
        opened=Html("" if n_shown else " open"),
        note=note,
        data=_data(context, rest),
    )


def _figure(context: Context, i: int) -> Html:
    m, truth = context.measures, int(context.evidence.truth[i])
    right = bool(m.right[i])
    verdict = fill(
        '<span class="{kind}">{mark}</span>',
        kind="yes" if right else "no",
        mark="✓ " + context.classes[truth]
        if right
        else f"✗ {context.classes[truth]} → {context.classes[m.predicted[i]]}",
    )
    return fill(
        '<figure data-t="{t}" data-p="{p}">{image}<figcaption>{verdict}'
        '<bdi title="{name}">{tail}</bdi></figcaption></figure>',
        t=truth,
        p=int(m.predicted[i]),
        image=context.thumbnail(i),
        verdict=verdict,
        name=context.name(i),
        tail=short(context.name(i).replace("\\", "/").rsplit("/", 1)[-1], 28),
    )


def _data(context: Context, rest: Array) -> Html:
    """Names of the examples without a picture, for the script; ``<`` would end its element."""
    m, truth = context.measures, context.evidence.truth
    data = {
        "classes": context.classes,
        "things": context.things,
        "n": m.n,
        "wrong": m.n - int(m.right.sum()),
        "rest": [[int(truth[i]), int(m.predicted[i]), context.name(i)] for i in rest],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Html(text)
