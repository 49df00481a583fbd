"""The page: its sections in order, in one file that is small enough to send."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from hilbin.files import write_whole
from hilbin.inspection import Evidence
from hilbin.report.accuracy import classes, headline, reject
from hilbin.report.context import Caps, Context
from hilbin.report.document import document
from hilbin.report.learned import (
    channels,
    compared,
    duplicates,
    features,
    labels,
    provenance,
    unreadable,
    words,
)
from hilbin.report.markup import Html, fill, join, short
from hilbin.report.measures import Measures
from hilbin.report.mistakes import confusion, mistakes
from hilbin.report.pictures import Pictures
from hilbin.report.reliability import reliability

SECTIONS = (
    ("Accuracy", headline),
    ("Confusion matrix", confusion),
    ("Classes", classes),
    ("Mistakes", mistakes),
    ("Words", words),
    ("Features", features),
    ("Reliability", reliability),
    ("Labels", labels),
    ("Duplicates", duplicates),
    ("Reject option", reject),
    ("Descriptions", channels),
    ("Compared models", compared),
    ("Unreadable", unreadable),
    ("Provenance", provenance),
)
LOWER = (1.0, 0.7, 0.5, 0.35, 0.2, 0.1, 0.05, 0.0)  # caps are multiplied by these in turn


def write_report(
    evidence: Evidence, path: str | os.PathLike[str], *, max_bytes: int = 5_000_000
) -> Path:
    """Write the report on a classifier: one HTML file, whole or not at all.

    Parameters
    ----------
    evidence : Evidence
        Test results, pictures and whatever else the page shows.
    path : path-like
        Path of the file. Its folder must exist.
    max_bytes : int, default=5_000_000
        Largest size of the file. The page shows fewer pictures and names until it fits, and says
        how many of how many.

    Returns
    -------
    path : Path
        Path of the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.inspection import Evidence
    >>> from hilbin.report import write_report
    >>> evidence = Evidence(
    ...     title="Birds",
    ...     classes=["egret", "heron"],
    ...     truth=[0, 1, 1],
    ...     scores=[[0.3, -0.3], [-1.0, 1.0], [0.1, -0.1]],
    ...     names=["1.jpg", "2.jpg", "3.jpg"],
    ...     baselines={"always heron": 2 / 3},
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(evidence, Path(folder) / "birds.html")
    ...     "66.7" in page.read_text(encoding="utf-8")
    True
    """
    measures, pictures = Measures(evidence), Pictures()
    return write_within(
        path,
        lambda factor: _page(Context(evidence, measures, pictures, Caps().scaled(factor))),
        max_bytes,
    )


def _page(context: Context) -> Html:
    made = [(title, make(context)) for title, make in SECTIONS]
    return lay_out(context.evidence.title, made, ("theme.js", "page.js"))


def lay_out(
    title: str, sections: Sequence[tuple[str, Html]], scripts: Sequence[str] = ("theme.js",)
) -> Html:
    """Return a page of sections and links to them; sections that are empty are left out."""
    made = [
        (name, html.split('id="', 1)[1].split('"', 1)[0], html) for name, html in sections if html
    ]
    link = '<li><a href="#{anchor}">{title}</a></li>'
    return document(
        "page.html", "page.css", scripts,
        title=short(title), first=made[0][1],
        links=join(fill(link, anchor=anchor, title=name) for name, anchor, _ in made),
        sections=join(html for _, _, html in made),
    )  # fmt: skip


def write_within(
    path: str | os.PathLike[str], make: Callable[[float], Html], max_bytes: int
) -> Path:
    """Write the page that ``make`` returns for the largest factor of its caps that fits."""
    for factor in LOWER:
        page = make(factor).encode()
        if len(page) <= max_bytes:
            break
    else:
        raise ValueError(f"max_bytes={max_bytes}: the page has {len(page)} without any picture")
    write_whole(path, page)
    return Path(path)
