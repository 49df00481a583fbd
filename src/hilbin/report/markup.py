"""Text as HTML: whatever is filled in is escaped, unless it is HTML already.

File names are what the file system gives: they may hold tags, control characters, half of a
surrogate pair, marks that turn the direction of writing, and be very long.
"""

import html
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

LONGEST = 160
# control characters, and marks that would reorder the text after them
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
NARROW_SPACE, MINUS, ELLIPSIS, DASH = "\u202f", "\u2212", "\u2026", "\u2013"


class Html(str):
    """Text that is HTML, to be put into the page as it is."""

    __slots__ = ()


def short(text: Any, longest: int = LONGEST) -> str:
    """Return the text without unseen characters, and without its middle if it is long."""
    text = str(text)
    if len(text) > longest:
        head = (longest - 1) // 2
        text = text[:head] + ELLIPSIS + text[len(text) - (longest - 1 - head) :]
    text = text.encode("utf-8", "backslashreplace").decode()
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def fill(template: str, **values: Any) -> Html:
    """Replace every ``{name}`` by the escaped value, or by the HTML as it is."""
    return Html(template.format(**{name: _safe(value) for name, value in values.items()}))


def file_name(name: str) -> Html:
    """Return a name that keeps its direction of writing and may be broken after its slashes."""
    return fill("<bdi>{name}</bdi>", name=Html(_safe(name).replace("/", "/<wbr>")))


def join(parts: Iterable[Html]) -> Html:
    """Put one piece of HTML after the other."""
    return Html("".join(parts))


def _safe(value: Any) -> str:
    return value if isinstance(value, Html) else html.escape(str(value), quote=True)


def percent(share: float, digits: int = 1) -> str:
    """Write 0.934 as 93.4 %."""
    return DASH if math.isnan(share) else f"{100 * share:.{digits}f}{NARROW_SPACE}%"


def fraction(share: float) -> str:
    """Write 0.934 as 0.93, and nan as a dash."""
    return DASH if math.isnan(share) else f"{share:.2f}"


def signed(value: float) -> str:
    """Write a score with its sign, three digits, and a minus as long as the plus."""
    return f"{value:+.3g}".replace("-", MINUS)


def number(value: float) -> str:
    """Write the number at a tick of an axis."""
    return f"{value:.4g}".replace("-", MINUS)


def shown_of(shown: int, total: int, what: str) -> str:
    """Say how many are shown of how many."""
    if shown == total:
        return f"All {total:,} {what} are shown." if total > 1 else ""
    verb = plural(shown, "is", "are")
    return f"{shown:,} of {total:,} {what} {verb} shown, to keep this page small."


def plural(count: int, one: str, many: str = "") -> str:
    """Return the word for one, or for several: ``many``, or with an s."""
    return one if count == 1 else many or one + "s"


def image(source: str, alt: str) -> Html:
    """Return an embedded picture."""
    return fill(
        '<img src="{source}" alt="{alt}" decoding="async">', source=source, alt=alt or "image"
    )


def section(anchor: str, title: str, lead: str | Html, *parts: Html) -> Html:
    """Return a section of the page: a heading, how to read it, and the rest."""
    return fill(
        '<section id="{anchor}" aria-labelledby="{anchor}-h"><h2 id="{anchor}-h">{title}</h2>'
        '<p class="lead">{lead}</p>{body}</section>',
        anchor=anchor,
        title=title,
        lead=lead,
        body=Html("".join(parts)),
    )


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], kind: str = "") -> Html:
    """Return a plain table in a box of its own, so that only the box scrolls."""
    heads = "".join(fill('<th scope="col">{h}</th>', h=h) for h in head)
    body = "".join(
        "<tr>" + "".join(fill("<td>{v}</td>", v=v) for v in row) + "</tr>" for row in rows
    )
    return fill(
        '<div class="scroll" tabindex="0"><table class="{kind}"><thead><tr>{heads}</tr></thead>'
        "<tbody>{body}</tbody></table></div>",
        kind=kind,
        heads=Html(heads),
        body=Html(body),
    )
