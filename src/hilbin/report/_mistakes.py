"""The most confident mistakes, and where in the image they come from."""

import numpy as np

from hilbin.report._context import LARGE, Context, image, section
from hilbin.report._html import Html, file_name, fill, join, signed
from hilbin.report._measures import turns
from hilbin.report._pictures import data_uri
from hilbin.report.evidence import Array
from hilbin.report.heat import heat_scale, overlay

FEW = 4  # with fewer mistakes, the narrowest right decisions are shown as well
OF_A_KIND = 2  # mistakes shown for one pair of classes, if there are pairs enough
TOLERANCE = 1e-6  # relative to the score, for a sum that is called exact


def mistakes(context: Context) -> Html:
    """Cards, each with the photograph and the heat maps of two classes."""
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
        "Worst mistakes" if wrong.size else "Narrowest decisions",
        _lead(context, wrong.size, min(varied.size, len(chosen))),
        _exactness(context, max(gaps)) if chosen and context.evidence.heat else Html(""),
        fill('<div class="cards {kind}">{cards}</div>', kind=_kind(context), cards=join(cards)),
    )


def _varied(context: Context, order: Array) -> Array:
    """The first few of each pair of classes, or all the mistakes would look alike."""
    pairs = context.evidence.truth[order] * len(context.classes) + context.measures.predicted[order]
    most = max(OF_A_KIND, -(-context.caps.mistakes // max(1, np.unique(pairs).size)))
    return order[turns(pairs) < most]


def _kind(context: Context) -> str:
    if context.evidence.picture is None:
        return "bare"
    return "maps" if context.evidence.heat else "plain"


def _lead(context: Context, wrong: int, shown: int) -> str:
    if not wrong:
        lead = f"No mistakes among {context.count(context.measures.n)}; these were the closest."
    else:
        lead = (
            f"{shown:,} of {wrong:,}, the wrong class furthest ahead of the true one first; "
            "a few for each pair of classes."
        )
    if context.evidence.heat and context.evidence.picture:
        lead += (
            " Red parts of the image speak for the class, blue parts against it, gray parts "
            "neither; both maps of a card have one scale."
        )
    return lead


def _card(context: Context, i: int) -> tuple[Html, float]:
    """A card, and by how much the sums of its heat maps miss the scores."""
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
            for source, k, kind in ((first, predicted, "taken for"), (second, other, "")):
                kind = kind or ("runner-up" if right else "truth")
                if right and k == predicted:
                    kind = "truth"
                shown = image(source, f"Heat map for {context.classes[k]}")
                parts.append(_framed(shown, kind, context.classes[k], evidence.scores[i, k]))
        pictures = fill('<div class="trio">{parts}</div>', parts=join(parts))
    card = fill(
        '<article class="card"><h3>{verdict}</h3><p class="file">{name}</p>{pictures}{scores}'
        "</article>",
        pictures=pictures,
        verdict=_verdict(context, predicted, other, right),
        name=file_name(context.name(i)),
        scores=Html("") if evidence.heat else _scores(context, i, predicted, other),
    )
    return card, gap


def _verdict(context: Context, predicted: int, other: int, right: bool) -> Html:
    template = '{b} <span class="than">taken for</span> {a}'
    if right:
        template = '{a} <span class="than">rightly, before</span> {b}'
    return fill(template, a=context.classes[predicted], b=context.classes[other])


def _scores(context: Context, i: int, predicted: int, other: int) -> Html:
    scores = context.evidence.scores[i]
    return fill(
        '<p class="score">score {a} against {b}</p>',
        a=signed(scores[predicted]),
        b=signed(scores[other]),
    )


def _framed(shown: Html, kind: str, label: str, score: float | None = None) -> Html:
    return fill(
        "<figure>{shown}<figcaption><small>{kind}</small>{label}{score}</figcaption></figure>",
        shown=shown,
        kind=kind,
        label=fill("<b>{label}</b>", label=label) if label else Html(""),
        score=Html("") if score is None else fill("<span>{s}</span>", s=signed(score)),
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
    bias = context.evidence.bias
    if bias is None:
        return 0.0
    scores = context.evidence.scores[i]
    missed = [
        abs(m.sum() + bias[k] - scores[k]) / max(1.0, abs(scores[k]))
        for k, m in zip(labels, maps, strict=True)
    ]
    return float(max(missed))


def _exactness(context: Context, gap: float) -> Html:
    """What the maps sum to: claimed, and checked if the bias is known."""
    evidence = context.evidence
    if evidence.exact and evidence.bias is None:
        said = "Exact: the map of a class sums to its score less the bias."
    elif evidence.exact and gap <= TOLERANCE:
        said = (
            "Exact: the map of a class sums to its score less the bias "
            f"(checked on the maps below: off by at most {gap:.0e})."
        )
    elif evidence.exact:
        said = f"Not exact: the sums of the maps below miss the scores by up to {gap:.1e}."
    else:
        said = "Not exact: the maps do not sum to the scores."
    exact = said.startswith("Exact")
    return fill(
        '<div class="key"><p class="{kind}">{said} {note}</p><div class="scale" role="img" '
        'aria-label="Colors from blue, against, over gray, neither, to red, for">'
        "<span>against</span><i></i><span>for</span></div></div>",
        kind="exact" if exact else "inexact",
        said=said,
        note=evidence.exact_note,
    )
