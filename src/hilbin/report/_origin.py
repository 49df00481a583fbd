"""How the page and the model came to be, so that they can be made again."""

from hilbin.report._context import Context, section
from hilbin.report._html import Html, fill, join, short

LONGEST_VALUE = 2000


def origin(context: Context) -> Html:
    """Provenance and timings; nothing if neither is known."""
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
    rows = join(
        fill("<div><dt>{k}</dt><dd><code>{v}</code></dd></div>", k=k, v=v) for k, v in facts
    )
    return section(
        "origin",
        "How it was made",
        "With the same data, command and seed, the same model comes out.",
        fill('<dl class="origin">{rows}</dl>', rows=rows),
    )


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
