"""The context of a section of the page: the evidence, the measures, and how much it may show."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from hilbin._arrays import Array
from hilbin.inspection import Evidence
from hilbin.report.markup import Html, image, percent, plural, short, signed
from hilbin.report.measures import Measures
from hilbin.report.pictures import Pictures, data_uri, shrink

LONGEST_CLASS = 60
THUMBNAIL, LARGE = 160, 256  # pixels of the longer side


@dataclass(frozen=True)
class Caps:
    """The largest number of everything that the page shows; lowered until it is small enough."""

    gallery: int = 360
    mistakes: int = 8
    words: int = 12
    suspicious: int = 24
    duplicates: int = 12
    listed: int = 12000
    rows: int = 400

    def scaled(self, factor: float) -> "Caps":
        """Return all of them lowered."""
        return Caps(*(int(getattr(self, f.name) * factor) for f in fields(self)))


@dataclass(frozen=True, eq=False)
class Context:
    """What sections are made from, for one layout of the page."""

    evidence: Evidence
    measures: Measures
    pictures: Pictures
    caps: Caps

    @cached_property
    def classes(self) -> list[str]:
        """Return the names of the classes, none of them too long."""
        return [short(name, LONGEST_CLASS) for name in self.evidence.classes]

    @property
    def thing(self) -> str:
        """Say what a test example is."""
        return "image" if self.evidence.picture else "row"

    def name(self, i: int) -> str:
        """Return the name of test example ``i``."""
        return short(self.evidence.names[i])

    def count(self, n: int) -> str:
        """Return so many images, or one image, in words."""
        return f"{n:,} {plural(n, self.thing)}"

    def labels(self, i: int) -> str:
        """Return the true and the predicted class of test example ``i``."""
        truth = self.classes[self.evidence.truth[i]]
        if self.measures.right[i]:
            return f"{truth}, correct"
        return f"{truth} predicted as {self.classes[self.measures.predicted[i]]}"

    def score(self, i: int, k: int) -> str:
        """Return the probability of class ``k`` for test example ``i`` if known, else its score."""
        probabilities = self.evidence.probabilities
        if probabilities is None:
            return signed(self.evidence.scores[i, k])
        return percent(float(probabilities[i, k]), 0)

    def test_picture(self, i: int, side: int) -> Array:
        """Return test image ``i``, made small."""
        picture = self.evidence.picture
        assert picture is not None
        return self.pictures.once(("small", i, side), lambda: shrink(picture(i), side))

    def thumbnail(self, i: int) -> Html:
        """Return test image ``i`` for the gallery."""
        source = self.pictures.once(
            ("thumbnail", i), lambda: data_uri(self.test_picture(i, THUMBNAIL))
        )
        return image(source, f"{self.name(i)}: {self.labels(i)}")

    def given_picture(self, key: Any, picture: Array | None, alt: str) -> Html:
        """Return a picture of the evidence, or nothing."""
        if picture is None:
            return Html("")
        return image(self.pictures.once(key, lambda: data_uri(shrink(picture, THUMBNAIL))), alt)
