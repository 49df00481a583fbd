"""Which examples are mistaken: the confusion matrix, a gallery, and mistakes with heat maps."""

from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.report.context import LARGE, Context
from hilbin.report.document import json_data
from hilbin.report.markup import Html, file_name, fill, image, join, plural, section, short
from hilbin.report.measures import turns
from hilbin.report.pictures import data_uri, heat_scale, overlay

MOST_CLASSES = 200
LEVELS = 9
SIZES = ((12, "roomy"), (20, "normal"), (40, "small"))  # most classes, and how cells are drawn
FEW = 4  # with fewer mistakes, the least certain correct predictions are shown as well
OF_A_KIND = 2  # mistakes shown for one pair of classes, if there are enough pairs
TOLERANCE = 1e-6  # relative to the score, for a sum that is called exact


def confusion(context: Context) -> Html:
    """Show the matrix, and beside or below it the gallery that it filters."""
    shown = _shown_classes(context.measures.confusion)
    lead = (
        "Rows are true classes, columns predicted ones; the color is the share of the row, blue "
        "where the prediction is correct, orange where it is not (square-root scale). "
        f"Choose a cell to see its {context.thing}s."
    )
    if shown.size < len(context.classes):
        lead += (
            f" Shown are the {shown.size} of {len(context.classes):,} classes with most mistakes."
        )
    return section(
        "confusion",
        "Confusion matrix",
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
        '<thead><tr><td class="corner"><span>true ↓ predicted →</span></td>{heads}</tr></thead>'
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
    """Return the order in which every cell gives an example, mistakes first, then a second, ..."""
    m = context.measures
    # the most confident mistakes and the correct predictions of least margin say most
    worth = np.where(m.right, -m.margin, m.lead_over_truth)
    cells = context.evidence.truth * len(context.classes) + m.predicted
    order = np.argsort(-worth, kind="stable")
    return order[np.lexsort((m.right[order], turns(cells[order])))]


def _gallery(context: Context) -> Html:
    m = context.measures
    order = order_of_display(context)
    n_shown = min(context.caps.gallery, m.n) if context.evidence.picture else 0
    chosen = order[:n_shown]
    # shown are mistakes before correct predictions, whatever turn they had
    chosen = chosen[np.argsort(m.right[chosen], kind="stable")]
    figures = join(_figure(context, int(i)) for i in chosen)
    rest = order[n_shown:]
    rest = rest[np.argsort(m.right[rest], kind="stable")][: context.caps.listed]
    note = f"{n_shown:,} of {m.n:,} images are shown; every cell of the matrix has its share."
    if n_shown == m.n or not context.evidence.picture:
        note = ""
    return fill(
        '<div class="gallery-side" id="gallery"><div class="gallery-head">'
        '<h3 id="filter" aria-live="polite">{count}</h3>'
        '<div class="buttons"><button type="button" id="show-all">Show all</button>'
        '<button type="button" id="show-mistakes">Only mistakes</button></div></div>'
        '<div class="gallery">{figures}</div>'
        '<button type="button" id="more" hidden>Show more</button>'
        '<details id="rest"{opened} hidden><summary></summary><ul class="names" tabindex="0"></ul>'
        "</details>"
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
    """List the examples without a picture, for the script."""
    m, truth = context.measures, context.evidence.truth
    return json_data({
        "classes": context.classes,
        "thing": context.thing,
        "n": m.n,
        "wrong": m.n - int(m.right.sum()),
        "rest": [[int(truth[i]), int(m.predicted[i]), context.name(i)] for i in rest],
    })  # fmt: skip


def mistakes(context: Context) -> Html:
    """Show cards, each with the photograph and the heat maps of two classes."""
    m, cap = context.measures, context.caps.mistakes
    wrong = np.flatnonzero(~m.right)
    wrong = wrong[np.argsort(-m.lead_over_truth[wrong], kind="stable")]
    varied = _varied(context, wrong)
    near = np.flatnonzero(m.right)
    near = near[np.argsort(m.margin[near], kind="stable")][: max(0, FEW - wrong.size)]
    chosen = [int(i) for i in (*varied[:cap], *near)][:cap]
    cards, gaps = [], [0.0]
    for i in chosen:
        card, gap = _card(context, i)
        cards.append(card)
        gaps.append(gap)
    return section(
        "mistakes",
        "Most confident mistakes" if wrong.size else "Least certain predictions",
        _lead(context, wrong.size, min(varied.size, len(chosen))),
        _exactness(context, max(gaps)) if chosen and context.evidence.heat else Html(""),
        fill('<div class="cards {kind}">{cards}</div>', kind=_kind(context), cards=join(cards)),
    )


def _varied(context: Context, order: Array) -> Array:
    """Keep the first few of each pair of classes, or all the mistakes would look alike."""
    pairs = context.evidence.truth[order] * len(context.classes) + context.measures.predicted[order]
    most = max(OF_A_KIND, -(-context.caps.mistakes // max(1, np.unique(pairs).size)))
    return order[turns(pairs) < most]


def _kind(context: Context) -> str:
    if context.evidence.picture is None:
        return "bare"
    return "maps" if context.evidence.heat else "plain"


def _lead(context: Context, wrong: int, shown: int) -> str:
    if not wrong:
        total = context.count(context.measures.n)
        lead = f"No mistakes among {total}; these have the smallest margins."
    else:
        lead = (
            f"{shown:,} of {wrong:,} {plural(wrong, 'mistake')}, sorted by how far the predicted "
            "class scores above the true one; a few for each pair of classes."
        )
    if context.evidence.heat and context.evidence.picture:
        lead += (
            " In a heat map, red parts of the image raise the score of the class, blue parts lower "
            "it; both heat maps of a card have one scale."
        )
    if context.evidence.reasons:
        lead += (
            " Listed are the columns that matter most, and what each adds to the score of the "
            f"predicted class minus that of the other. {context.evidence.exact_note}"
        )
    return lead


def _card(context: Context, i: int) -> tuple[Html, float]:
    """Return a card, and by how much the sums of its heat maps miss the scores."""
    evidence, m = context.evidence, context.measures
    predicted = int(m.predicted[i])
    right = bool(m.right[i])
    other = int(m.runner_up[i] if right else evidence.truth[i])
    pictures, gap = Html(""), 0.0
    if evidence.picture is not None:
        photograph, first, second, gap = context.pictures.once(
            ("card", i), lambda: _encode(context, i, predicted, other)
        )
        name = context.name(i)
        parts = [_framed(image(photograph, name), "image", "")]
        if first:
            for source, k, kind in ((first, predicted, "predicted"), (second, other, "true class")):
                if right:
                    kind = "predicted, correct" if k == predicted else "second"
                shown = image(source, f"Heat map for {context.classes[k]}")
                parts.append(_framed(shown, kind, context.classes[k], context.score(i, k)))
        pictures = fill('<div class="trio">{parts}</div>', parts=join(parts))
    card = fill(
        '<article class="card"><h3>{verdict}</h3><p class="file">{name}</p>{pictures}{scores}'
        "{reasons}</article>",
        pictures=pictures,
        reasons=_reasons(context, i, predicted, other),
        verdict=_verdict(context, predicted, other, right),
        name=file_name(context.name(i)),
        scores=Html("") if evidence.heat else _scores(context, i, predicted, other),
    )
    return card, gap


def _verdict(context: Context, predicted: int, other: int, right: bool) -> Html:
    template = '{b} <span class="than">predicted as</span> {a}'
    if right:
        template = '{a} <span class="than">correct, ahead of</span> {b}'
    return fill(template, a=context.classes[predicted], b=context.classes[other])


def _scores(context: Context, i: int, predicted: int, other: int) -> Html:
    return fill(
        '<p class="score">{what} {a} and {b}</p>',
        what="scores" if context.evidence.probabilities is None else "probabilities",
        a=context.score(i, predicted),
        b=context.score(i, other),
    )


def _reasons(context: Context, i: int, predicted: int, other: int) -> Html:
    """List what adds most to the lead of the predicted class, or takes most from it."""
    if context.evidence.reasons is None:
        return Html("")
    rows = join(
        fill(
            '<tr><th scope="row">{feature}</th><td>{value}</td><td>{adds}</td></tr>',
            feature=one["feature"],
            value=_value(one["value"]),
            adds=f"{one['adds']:+.3g}",
        )
        for one in context.evidence.reasons(i, predicted, other)
    )
    return fill(
        '<table class="plain reasons"><thead><tr><th scope="col">feature</th>'
        '<th scope="col">value</th><th scope="col">adds</th></tr></thead><tbody>{rows}</tbody>'
        "</table>",
        rows=rows,
    )


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _framed(shown: Html, kind: str, label: str, score: str = "") -> Html:
    return fill(
        "<figure>{shown}<figcaption><small>{kind}</small>{label}{score}</figcaption></figure>",
        shown=shown,
        kind=kind,
        label=fill("<b>{label}</b>", label=label) if label else Html(""),
        score=fill("<span>{s}</span>", s=score) if score else Html(""),
    )


def _encode(context: Context, i: int, predicted: int, other: int) -> tuple[str, str, str, float]:
    picture = context.test_picture(i, LARGE)
    heat = context.evidence.heat
    if heat is None:
        return data_uri(picture), "", "", 0.0
    maps = [np.asarray(heat(i, k), np.float64) for k in (predicted, other)]
    scale = heat_scale(*maps)
    drawn = [data_uri(overlay(picture, one, scale=scale)) for one in maps]
    return data_uri(picture), drawn[0], drawn[1], _gap(context, i, (predicted, other), maps)


def _gap(context: Context, i: int, labels: tuple[int, int], maps: list[Array]) -> float:
    intercept = context.evidence.intercept
    if intercept is None:
        return 0.0
    scores = context.evidence.scores[i]
    missed = [
        abs(m.sum() + intercept[k] - scores[k]) / max(1.0, abs(scores[k]))
        for k, m in zip(labels, maps, strict=True)
    ]
    return float(max(missed))


def _exactness(context: Context, gap: float) -> Html:
    """Say what the heat maps sum to: claimed, and checked if the intercept is known."""
    evidence = context.evidence
    if evidence.exact and evidence.intercept is None:
        said = "Exact: the heat map of a class sums to its score minus the intercept."
    elif evidence.exact and gap <= TOLERANCE:
        said = (
            "Exact: the heat map of a class sums to its score minus the intercept "
            f"(checked on those below: off by at most {gap:.0e})."
        )
    elif evidence.exact:
        said = f"Not exact: the sums of the heat maps below miss the scores by up to {gap:.1e}."
    else:
        said = "Not exact: the heat maps do not sum to the scores."
    exact = said.startswith("Exact")
    return fill(
        '<div class="key"><p class="{kind}">{said} {note}</p><div class="scale" role="img" '
        'aria-label="Colors from blue, which lowers the score, over gray to red, which raises it">'
        "<span>lowers the score</span><i></i><span>raises it</span></div></div>",
        kind="exact" if exact else "inexact",
        said=said,
        note=evidence.exact_note,
    )
