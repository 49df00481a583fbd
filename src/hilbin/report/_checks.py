"""Doubts about the data: labels, duplicates across train and test, files that are not images."""

from hilbin.report._context import Context, section, table
from hilbin.report._html import Html, file_name, fill, join, short, shown_of, signed
from hilbin.report.evidence import Duplicate, Suspicion


def labels(context: Context) -> Html:
    """Suspicious labels; nothing if nobody looked."""
    given = context.evidence.suspicious
    if given is None:
        return Html("")
    lead = "No label stands against what the other examples say."
    if given:
        shown = min(len(given), context.caps.suspicious)
        lead = (
            "The model, not having seen the example, prefers another label by this margin. Some of "
            "these labels will be wrong, some examples only odd. "
            + shown_of(shown, len(given), "suspicions")
        )
    cards = join(
        _suspicion(context, at, one) for at, one in enumerate(given[: context.caps.suspicious])
    )
    return section(
        "labels", "Suspicious labels", lead, fill('<div class="tiles">{c}</div>', c=cards)
    )


def _suspicion(context: Context, at: int, one: Suspicion) -> Html:
    name = short(one.name)
    return fill(
        '<figure class="tile">{picture}<figcaption>labeled <b>{given}</b><br>looks like '
        '<b>{suggested}</b> <span class="score">{margin}</span>'
        "{name}</figcaption></figure>",
        picture=context.given_picture(("suspicion", at), one.picture, name),
        given=short(one.given, 60),
        suggested=short(one.suggested, 60),
        margin=signed(one.margin),
        name=file_name(name),
    )


def duplicates(context: Context) -> Html:
    """Pairs of a training and a test example; nothing if nobody looked."""
    given = context.evidence.duplicates
    if given is None:
        return Html("")
    lead = "No test example is nearly a training example."
    if given:
        shown = min(len(given), context.caps.duplicates)
        lead = (
            "A test example that is nearly a training example makes the accuracy look better than "
            "it is; 1 is the same. " + shown_of(shown, len(given), "pairs")
        )
    pairs = join(
        _duplicate(context, at, one) for at, one in enumerate(given[: context.caps.duplicates])
    )
    return section(
        "duplicates",
        "Near duplicates between train and test",
        lead,
        fill('<div class="cards">{c}</div>', c=pairs),
    )


def _duplicate(context: Context, at: int, one: Duplicate) -> Html:
    sides = []
    for kind, name, label, picture in (
        ("train", one.train, one.train_label, one.train_picture),
        ("test", one.test, one.test_label, one.test_picture),
    ):
        shown = context.given_picture((kind, at), picture, short(name))
        sides.append(
            fill(
                "<figure>{shown}<figcaption><small>{kind}</small><b>{label}</b>"
                "{name}</figcaption></figure>",
                shown=shown,
                kind=kind,
                label=short(label, 60),
                name=file_name(short(name)),
            )
        )
    differ = one.train_label != one.test_label
    return fill(
        '<article class="card"><div class="trio two">{sides}</div><p class="verdict">similarity '
        "<b>{similarity}</b>{differ}</p></article>",
        sides=join(sides),
        similarity=f"{one.similarity:.4f}",
        differ=Html(' <span class="no">✗ the labels differ</span>' if differ else ""),
    )


def unreadable(context: Context) -> Html:
    """Files that were left out; nothing if nobody looked."""
    given = context.evidence.unreadable
    if given is None:
        return Html("")
    if not given:
        return section("unreadable", "Unreadable files", "All files could be read.")
    rows = [(file_name(short(file)), short(why)) for file, why in given[: context.caps.rows]]
    lead = "Left out of training and test. " + shown_of(len(rows), len(given), "files")
    return section("unreadable", "Unreadable files", lead, table(("file", "why"), rows, "plain"))
