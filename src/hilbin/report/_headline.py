"""How good the model is, beside simpler ones."""

from hilbin.report._context import Context
from hilbin.report._html import Html, fill, join, percent, short
from hilbin.report._measures import wilson


def headline(context: Context) -> Html:
    """The accuracy, its interval, and bars for the model and the baselines."""
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
    facts = [
        (f"test {context.things}", f"{m.n:,}"),
        ("mistakes", f"{m.n - int(m.right.sum()):,}"),
        ("classes", f"{len(context.classes):,}"),
        ("mean accuracy per class", percent(m.mean_recall)),
    ]
    if absent:
        facts.insert(3, (f"classes without test {context.things}", f"{absent:,}"))
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
        "test {things} where not said otherwise; the whisker is the 95 % interval (Wilson)."
        "</figcaption></figure>",
        rows=join(rows),
        things=context.things,
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
