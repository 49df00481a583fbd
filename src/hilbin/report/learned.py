"""What the model learned, and from what: words, features, doubts about the data, provenance."""

from collections.abc import Sequence

import numpy as np

from hilbin._arrays import Array
from hilbin.inspection import Duplicate, Importances, Shape, Suspicion, VisualWord
from hilbin.report.charts import SIZE, SMALL, Line, chart, span
from hilbin.report.context import Context
from hilbin.report.markup import (
    Html,
    file_name,
    fill,
    image,
    join,
    percent,
    section,
    short,
    shown_of,
    signed,
    table,
)
from hilbin.report.pictures import data_uri, mosaic

PATCHES, ACROSS, PATCH_SIDE = 16, 4, 40
NAMED_CLASSES, GREY_CLASSES = 3, 12  # curves with a color, and further ones without
LONGEST_VALUE = 2000
MOST_BARS = 12
EXACT_LEAD = (
    "The importance of a feature is its mean absolute contribution to the scores of the test rows, "
    "measured from its mean. A feature that rarely makes a difference is not important."
)
LEFT_OUT_LEAD = (
    "The scores of this model are not sums over the features. The importance of a feature is how "
    "much the scores of the test rows change on average when it is replaced by its median."
)
SHAPES_LEAD = (
    "A curve shows what a feature adds to the score (vertical) against its value (horizontal); a "
    "score is the sum of such shape functions and the intercept. "
)


def words(context: Context) -> Html:
    """Show a mosaic of patches and a curve for each visual word; nothing if there are none."""
    given = context.evidence.words
    if not given:
        return Html("")
    shown = given[: context.caps.words]
    lead = (
        "Patches of images with the visual word, and what it adds to the score of the class "
        "(vertical) against the fraction of the image that it covers (horizontal). The most "
        "important words come first. " + shown_of(len(shown), len(given), "words")
    )
    cards = join(_word(context, at, word) for at, word in enumerate(shown))
    return section(
        "words", "Most important visual words", lead, fill('<div class="cards">{c}</div>', c=cards)
    )


def _word(context: Context, at: int, word: VisualWord) -> Html:
    name, label = short(word.shape.name, 60), context.classes[word.label]
    patches = list(word.patches[:PATCHES])
    picture = Html("")
    if patches:
        source = context.pictures.once(
            ("word", at), lambda: data_uri(mosaic(patches, PATCH_SIDE, ACROSS))
        )
        picture = image(source, f"{len(patches)} patches with {name}")
    curve = _curve_of(word.shape, word.label)
    line = Line(np.asarray(word.shape.values), curve, "l0", word.shape.stepped)
    return fill(
        '<article class="card word"><h3>{name} <span class="for">{side} <b>{label}</b></span></h3>'
        '<div class="pair"><div class="mosaic">{picture}</div>{chart}</div></article>',
        name=name,
        side="for" if curve[-1] >= curve[0] else "against",
        label=label,
        picture=picture,
        chart=_chart(
            word.shape,
            [line],
            f"What {name} adds to the score of {label}",
            "share of the image",
            SMALL,
        ),
    )


def _curve_of(shape: Shape, label: int) -> Array:
    contributions = np.asarray(shape.contributions, np.float64)
    if contributions.ndim == 1:  # the score of the second of two classes
        return contributions if label == 1 else -contributions
    return contributions[:, label]


def features(context: Context) -> Html:
    """Show importances, and a curve or a few for each feature; nothing if there are none."""
    given, found = context.evidence.features, context.evidence.importances
    if not given and found is None:
        return Html("")
    lead = []
    if found is not None:
        lead.append(EXACT_LEAD if found.exact else LEFT_OUT_LEAD)
    if given:
        shown = given[: context.caps.words]
        lead.append(SHAPES_LEAD + shown_of(len(shown), len(given), "shape functions"))
    cards = join(_feature(context, shape) for shape in given[: context.caps.words])
    return section(
        "features",
        "Most important features",
        " ".join(lead),
        Html("") if found is None else _importances(context, found),
        fill('<div class="cards">{c}</div>', c=cards) if given else Html(""),
    )


def _importances(context: Context, found: Importances) -> Html:
    """Show a bar for each of the most important features."""
    listed = found.top(MOST_BARS)
    if not listed:
        return Html('<p class="note">No feature makes a difference.</p>')
    most = listed[0][1]
    rows = join(
        fill(
            '<tr class="other"><th scope="row">{name}</th><td class="track"><i class="bar" '
            'style="width:{wide}%"></i></td><td class="value">{value}</td></tr>',
            name=short(name, 40),
            wide=f"{100 * value / most:.2f}",
            value=f"{value:.3g}",
        )
        for name, value in listed
    )
    n_used = int((found.values > 0).sum())
    verb = "makes" if n_used == 1 else "make"
    note = f"{n_used:,} of {len(found.names):,} features {verb} a difference."
    if len(listed) < n_used:
        note += f" The {len(listed)} most important are shown."
    return fill(
        '<figure class="bars importances"><table><caption class="visually-hidden">Importances of '
        "the features</caption><tbody>{rows}</tbody></table><figcaption>{note}</figcaption>"
        "</figure>",
        rows=rows,
        note=note,
    )


def _feature(context: Context, shape: Shape) -> Html:
    curves = np.asarray(shape.contributions, np.float64)
    curves = curves.reshape(curves.shape[0], -1)
    most = np.argsort(-np.ptp(curves, axis=0), kind="stable")[: NAMED_CLASSES + GREY_CLASSES]
    x = np.asarray(shape.values)
    lines = [
        Line(x, curves[:, k], f"l{at}" if at < NAMED_CLASSES else "faint", shape.stepped)
        for at, k in enumerate(most)
    ][::-1]
    one = curves.shape[1] == 1
    names = [context.classes[1]] if one else [context.classes[k] for k in most[:NAMED_CLASSES]]
    key = join(
        fill('<li class="l{at}">{name}</li>', at=at, name=name) for at, name in enumerate(names)
    )
    name = short(shape.name, 60)
    return fill(
        '<article class="card"><h3>{name}</h3>{chart}<ul class="lines">{key}</ul></article>',
        name=name,
        chart=_chart(shape, lines, f"What {name} adds to the scores", "value", SIZE),
        key=key,
    )


def _chart(
    shape: Shape, lines: list[Line], describe: str, unit: str, size: tuple[int, int]
) -> Html:
    values = np.asarray(shape.values, np.float64)
    low, high = float(values.min()), float(values.max())
    if not high > low:
        low, high = low - 0.5, high + 0.5
    return chart(
        lines,
        describe=describe,
        labels=(unit, "adds to the score"),
        x=(low, high),
        y=span([line.y for line in lines]),
        size=size,
    )


def labels(context: Context) -> Html:
    """Show suspicious labels; nothing if nobody looked."""
    given = context.evidence.suspicious
    if given is None:
        return Html("")
    lead = "No label looks wrong."
    if given:
        shown = min(len(given), context.caps.suspicious)
        lead = (
            "A model that was not trained on the example gives another class a score higher by "
            "this margin. Some of these labels will be wrong, some examples only unusual. "
            + shown_of(shown, len(given), "suspicious labels")
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
    """Show pairs of a training and a test example; nothing if nobody looked."""
    given = context.evidence.duplicates
    if given is None:
        return Html("")
    lead = "No test example is a near-duplicate of a training example."
    if given:
        shown = min(len(given), context.caps.duplicates)
        lead = (
            "A test example that is nearly a training example makes the accuracy look better than "
            "it is. A similarity of 1 means that they are the same. "
            + _accuracy_without(context, given)
            + shown_of(shown, len(given), "pairs")
        )
    pairs = join(
        _duplicate(context, at, one) for at, one in enumerate(given[: context.caps.duplicates])
    )
    return section(
        "duplicates",
        "Near-duplicates in training and test set",
        lead,
        fill('<div class="cards">{c}</div>', c=pairs),
    )


def _accuracy_without(context: Context, given: Sequence[Duplicate]) -> str:
    """Say what the accuracy is without the test examples that are near-duplicates."""
    left, accuracy = context.measures.accuracy_without({one.test for one in given})
    if left == context.measures.n:
        return ""
    if left == 0:
        return "No other test examples are left. "
    return f"On the other {context.count(left)} the accuracy is {percent(accuracy)}. "


def _duplicate(context: Context, at: int, one: Duplicate) -> Html:
    sides = []
    for kind, name, label, picture in (
        ("training", one.train, one.train_label, one.train_picture),
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


def compared(context: Context) -> Html:
    """Show the models that were compared by cross-validation; nothing if none were."""
    given = context.evidence.candidates
    if not given:
        return Html("")
    shown = sorted(given, key=lambda one: -one["mean"])[: context.caps.rows]
    rows = [
        (
            short(one["name"], 80),
            percent(one["mean"]),
            f"± {percent(one.get('standard_error', float('nan')))}",
            "yes" if one.get("explainable") else "no",
        )
        for one in shown
    ]
    heads = ("model", "accuracy", "standard error", "reasons are exact")
    lead = "Accuracy by cross-validation on the training data, the best first. "
    return section(
        "compared",
        "Compared models",
        lead + context.evidence.candidates_note,
        table(heads, rows, "plain"),
    )


def channels(context: Context) -> Html:
    """Show what every description is worth; nothing if there is one alone."""
    given = context.evidence.channels
    if given is None:
        return Html("")
    each = sorted(given["each"], key=lambda one: -one["weight"])[: context.caps.rows]
    rows = [
        (short(one["name"], 60), f"{one['columns']:,}", percent(one["accuracy"]),
         percent(one["weight"]))
        for one in each
    ]  # fmt: skip
    average = given["rules"]["average"]
    lead = (
        "The leave-one-out accuracy of each description alone on the training examples, and its "
        "weight in the sum. "
    )
    if given["rule"] == "average":
        lead += f"All weights are the same; together they reach {percent(average)}."
    else:
        own = given["rules"][given["rule"]]
        lead += (
            f"The sum with these weights (rule: {given['rule']}) reaches {percent(own)}, the plain "
            f"average {percent(average)}."
        )
    heads = ("description", "columns", "accuracy alone", "weight")
    return section("channels", "How useful each description is", lead, table(heads, rows, "plain"))


def unreadable(context: Context) -> Html:
    """List the files that were left out; nothing if nobody looked."""
    given = context.evidence.unreadable
    if given is None:
        return Html("")
    if not given:
        return section("unreadable", "Unreadable files", "All files could be read.")
    lead = "These files were left out of training and test. "
    return unreadable_list(given, lead, context.caps.rows)


def unreadable_list(given: Sequence[tuple[str, str]], lead: str, most: int) -> Html:
    """List files that could not be read, and why."""
    rows = [(file_name(short(file)), short(why)) for file, why in given[:most]]
    lead += shown_of(len(rows), len(given), "files")
    return section("unreadable", "Unreadable files", lead, table(("file", "reason"), rows, "plain"))


def provenance(context: Context) -> Html:
    """List how the model was made, and timings; nothing if neither is known."""
    evidence, most = context.evidence, max(context.caps.rows, 20)
    if not evidence.provenance and not evidence.timings:
        return Html("")
    facts = [
        (short(key), short(value, LONGEST_VALUE))
        for key, value in list(evidence.provenance.items())[:most]
    ]
    facts += [
        (f"time: {short(step)}", duration(seconds))
        for step, seconds in list(evidence.timings.items())[:most]
    ]
    return provenance_list(facts)


def provenance_list(facts: Sequence[tuple[str, str]]) -> Html:
    """List facts about how a model was made."""
    rows = join(
        fill("<div><dt>{k}</dt><dd><code>{v}</code></dd></div>", k=k, v=v) for k, v in facts
    )
    return section(
        "provenance",
        "Provenance",
        "The same data, command and seed give the same model.",
        fill('<dl class="provenance">{rows}</dl>', rows=rows),
    )


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
