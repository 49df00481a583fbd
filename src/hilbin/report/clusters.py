"""A page of clusters: how many examples each has, typical ones, and what sets it apart."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hilbin._arrays import Array
from hilbin.files import write_whole
from hilbin.report.document import document
from hilbin.report.markup import (
    Html,
    file_name,
    fill,
    image,
    join,
    plural,
    section,
    short,
    signed,
    table,
)
from hilbin.report.pictures import data_uri, mosaic, shrink

THUMBNAIL = 160  # pixels of the longer side
PATCH_SIDE = 40


@dataclass(frozen=True)
class ClusterCard:
    """One cluster as the page shows it.

    Parameters
    ----------
    title : str
        Its name.
    size : int
        Number of its examples.
    pictures : list of (str, array)
        Names and pictures of typical examples, the most typical first.
    differences : list of (str, float, list of arrays)
        What sets it apart: a name, by how many standard deviations its mean is above that of the
        others, and patches of images that show it.
    names : list of str, optional
        Names of typical examples without pictures.
    thing : str, default="image"
        What an example is.

    Examples
    --------
    >>> from hilbin.report import ClusterCard
    >>> ClusterCard("Cluster 1", 7, [], [("width", 1.5, [])]).size
    7
    """

    title: str
    size: int
    pictures: list[tuple[str, Array]]
    differences: list[tuple[str, float, list[Array]]]
    names: list[str] = field(default_factory=list)
    thing: str = "image"


def write_clusters(
    cards: Sequence[ClusterCard],
    path: str | os.PathLike[str],
    *,
    title: str = "Clusters",
    lead: str = "",
) -> Path:
    """Write a page of clusters: one HTML file, whole or not at all.

    Parameters
    ----------
    cards : sequence of ClusterCard
        The clusters, in order.
    path : path-like
        Path of the file. Its folder must exist.
    title, lead : str
        Heading of the page, and what stands below it.

    Returns
    -------
    path : Path
        Path of the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.report import ClusterCard, write_clusters
    >>> cards = [ClusterCard("Cluster 1", 7, [], [("width", 1.5, [])], ["row 3"], "row")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_clusters(cards, Path(folder) / "clusters.html")
    ...     "7 rows" in page.read_text(encoding="utf-8")
    True
    """
    links = join(
        fill('<li><a href="#cluster-{k}">{title}</a></li>', k=k, title=short(card.title, 60))
        for k, card in enumerate(cards, 1)
    )
    total = sum(card.size for card in cards)
    overview = section(
        "overview", f"{len(cards)} {plural(len(cards), 'cluster')}", short(lead), _sizes(cards)
    )
    sections = join(_cluster(k, card, total) for k, card in enumerate(cards, 1))
    page = document(
        "page.html", "page.css", ("theme.js",), title=short(title), first="overview", links=links,
        sections=join([overview, sections]),
    )  # fmt: skip
    write_whole(path, page.encode())
    return Path(path)


def _sizes(cards: Sequence[ClusterCard]) -> Html:
    """Return bars as long as the clusters are large."""
    most = max((card.size for card in cards), default=1)
    rows = join(
        fill(
            '<tr><th scope="row"><a href="#cluster-{k}">{title}</a></th><td class="track">'
            '<span class="bar" style="width:{share}%"></span></td><td class="value">{n}</td></tr>',
            k=k,
            title=short(card.title, 60),
            share=f"{100 * card.size / most:.1f}",
            n=f"{card.size:,}",
        )
        for k, card in enumerate(cards, 1)
    )
    return fill('<figure class="bars importances"><table>{rows}</table></figure>', rows=rows)


def _cluster(k: int, card: ClusterCard, total: int) -> Html:
    share = f"{100 * card.size / max(total, 1):.1f} %"
    lead = f"{card.size:,} {plural(card.size, card.thing)}, {share}; the most typical first."
    figures = join(
        fill(
            '<figure class="tile">{picture}<figcaption>{name}</figcaption></figure>',
            picture=image(data_uri(shrink(picture, THUMBNAIL)), short(name)),
            name=file_name(short(name)),
        )
        for name, picture in card.pictures
    )
    gallery = fill('<div class="tiles">{figures}</div>', figures=figures) if figures else Html("")
    names = join(fill("<li>{name}</li>", name=file_name(short(name))) for name in card.names)
    listed = fill('<ul class="names" tabindex="0">{names}</ul>', names=names) if names else Html("")
    return section(f"cluster-{k}", card.title, lead, gallery, listed, _differences(card))


def _differences(card: ClusterCard) -> Html:
    """Return what sets a cluster apart; nothing if nothing does."""
    if not card.differences:
        return Html("")
    rows = []
    for name, effect, patches in card.differences:
        shown = Html("")
        if patches:
            sheet = mosaic(patches, PATCH_SIDE, len(patches))
            shown = image(data_uri(sheet), f"{len(patches)} patches with {short(name, 60)}")
        rows.append([short(name, 60), f"{signed(effect)} sd", shown])
    if any(patches for *_, patches in card.differences):
        head = ["more of", "above the others", "where"]
    else:
        head, rows = ["column", "above the others"], [row[:2] for row in rows]
    return fill('<div class="apart">{table}</div>', table=table(head, rows, "plain"))
