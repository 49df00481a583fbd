"""What every section of the page gets: the evidence, the measures, and how much it may show."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from hilbin.report._html import Html, fill, short
from hilbin.report._measures import Measures
from hilbin.report._pictures import Pictures, data_uri, shrink
from hilbin.report.evidence import Array, Evidence

LONGEST_CLASS = 60
THUMBNAIL, LARGE = 160, 256  # pixels of the longer side


@dataclass(frozen=True)
class Caps:
    """The most of everything that the page shows; lowered until it is small enough."""

    gallery: int = 360
    mistakes: int = 8
    words: int = 12
    suspicious: int = 24
    duplicates: int = 12
    listed: int = 12000
    rows: int = 400

    def scaled(self, factor: float) -> "Caps":
        """All of them lowered."""
        return Caps(*(int(getattr(self, f.name) * factor) for f in fields(self)))


@dataclass(frozen=True, eq=False)
class Context:
    """For one layout of the page."""

    evidence: Evidence
    measures: Measures
    pictures: Pictures
    caps: Caps

    @cached_property
    def classes(self) -> list[str]:
        """Names of the classes, none of them too long."""
        return [short(name, LONGEST_CLASS) for name in self.evidence.classes]

    @property
    def things(self) -> str:
        """What the test examples are."""
        return "images" if self.evidence.picture else "rows"

    def name(self, i: int) -> str:
        """Of test example ``i``."""
        return short(self.evidence.names[i])

    def count(self, n: int) -> str:
        """So many images, or one image."""
        return f"{n:,} {self.things if n != 1 else self.things[:-1]}"

    def labels(self, i: int) -> str:
        """What test example ``i`` is and is taken for."""
        truth = self.classes[self.evidence.truth[i]]
        if self.measures.right[i]:
            return f"{truth}, right"
        return f"{truth}, taken for {self.classes[self.measures.predicted[i]]}"

    def test_picture(self, i: int, side: int) -> Array:
        """Test image ``i``, made small."""
        picture = self.evidence.picture
        assert picture is not None
        return self.pictures.once(("small", i, side), lambda: shrink(picture(i), side))

    def thumbnail(self, i: int) -> Html:
        """Test image ``i`` for the gallery."""
        source = self.pictures.once(
            ("thumbnail", i), lambda: data_uri(self.test_picture(i, THUMBNAIL))
        )
        return image(source, f"{self.name(i)}: {self.labels(i)}")

    def given_picture(self, key: Any, picture: Array | None, alt: str) -> Html:
        """A picture of the evidence, or nothing."""
        if picture is None:
            return Html("")
        return image(self.pictures.once(key, lambda: data_uri(shrink(picture, THUMBNAIL))), alt)


def image(source: str, alt: str) -> Html:
    """An embedded picture."""
    return fill(
        '<img src="{source}" alt="{alt}" decoding="async">', source=source, alt=alt or "image"
    )


def section(anchor: str, title: str, lead: str | Html, *parts: Html) -> Html:
    """A chapter of the page: a heading, one sentence on how to read it, and the rest."""
    return fill(
        '<section id="{anchor}" aria-labelledby="{anchor}-h"><h2 id="{anchor}-h">{title}</h2>'
        '<p class="lead">{lead}</p>{body}</section>',
        anchor=anchor,
        title=title,
        lead=lead,
        body=Html("".join(parts)),
    )


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], kind: str = "") -> Html:
    """A plain table in a box of its own, so that only the box scrolls."""
    heads = "".join(fill('<th scope="col">{h}</th>', h=h) for h in head)
    body = "".join(
        "<tr>" + "".join(fill("<td>{v}</td>", v=v) for v in row) + "</tr>" for row in rows
    )
    return fill(
        '<div class="scroll"><table class="{kind}"><thead><tr>{heads}</tr></thead>'
        "<tbody>{body}</tbody></table></div>",
        kind=kind,
        heads=Html(heads),
        body=Html(body),
    )
