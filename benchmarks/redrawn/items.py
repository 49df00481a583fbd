"""What a redrawn table or figure is, and what every paper's module shares."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import harness
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SAME, DIRECTION, NOT, UNCHECKED = "same", "same direction", "not the same", "cannot be checked"
DRAWN = "drawn"  # a figure that makes no claim
VERDICTS = (SAME, DIRECTION, NOT, UNCHECKED, DRAWN)
WIDTH, DPI = 7.2, 100  # inches, dots per inch
LARGEST = 100_000  # bytes of a picture
INK, GRID = "#333333", "#e5e5e5"
COLORS = ("#2b6cb0", "#dd8452", "#55a868", "#8172b3", "#c44e52", "#937860", "#7f7f7f")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
STYLE = {
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.prop_cycle": plt.cycler(color=COLORS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "legend.frameon": False,
    "legend.fontsize": 8,
}

Table = dict[str, dict[str, Any]]
Plan = dict[str, Callable[[], "Item"]]  # what a paper has, by name, computed when it is asked for


class Picture(NamedTuple):
    """A file in the folder of pictures, and what it shows, for those who cannot see it."""

    name: str
    text: str


class Item(NamedTuple):
    """One table or figure of a paper.

    Parameters
    ----------
    name : as the paper calls it
    about : what it shows
    paper, ours : the figures, in a line each
    verdict : one of ``VERDICTS``
    reason : what differs, and why
    """

    name: str
    about: str
    paper: str
    ours: str
    verdict: str
    reason: str
    tables: dict[str, Table] = {}  # noqa: RUF012
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class Work:
    """Where data come from and pictures go to; ``quick`` for small sizes."""

    data: Path
    images: Path
    quick: bool = False

    def save(self, figure: Any, name: str, text: str) -> Picture:
        """Write a picture as a PNG of few colors, and close it."""
        self.images.mkdir(parents=True, exist_ok=True)
        path = self.images / f"{name}.png"
        figure.savefig(path, dpi=DPI, metadata={"Software": None})
        plt.close(figure)
        shrink(path)
        return Picture(path.name, text)


def shrink(path: Path) -> None:
    """Reduce a picture to a palette, as few colors as its size asks for."""
    from PIL import Image

    with Image.open(path) as opened:
        picture = opened.convert("RGB")
    for colors in (256, 128, 64, 32, 16):
        picture.quantize(colors, dither=Image.Dither.NONE).save(path, optimize=True)
        if path.stat().st_size < LARGEST:
            return


def recorded(name: str) -> dict[str, Any]:
    """The figures that another benchmark has recorded."""
    path = harness.RESULTS / f"{name}.json"
    figures: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["figures"]
    return figures


def mean_of(cell: Any) -> float:
    """The number in a cell such as ``"51.4 ± 0.5"``."""
    return float(str(cell).split("±")[0])


def panels(columns: int, rows: int = 1, height: float = 2.5, **options: Any) -> tuple[Any, Any]:
    """A figure of page width and its axes, as a flat array."""
    figure, axes = plt.subplots(
        rows, columns, figsize=(WIDTH, height * rows), squeeze=False, **options
    )
    return figure, axes.ravel()


def curves(axes: Any, x: Any, lines: dict[str, Any], **labels: Any) -> None:
    """Lines with markers over ``x``, a grid, and what ``Axes.set`` takes."""
    for number, (name, y) in enumerate(lines.items()):
        points = [(a, b) for a, b in zip(x, y, strict=True) if b is not None]
        style = {"color": COLORS[number % 7], "marker": MARKERS[number % 7]}
        axes.plot(*zip(*points, strict=True), label=name, markersize=4, linewidth=1.2, **style)
    axes.grid()
    axes.set(**labels)


def shared_legend(figure: Any, axes: Any, columns: int = 4) -> None:
    """One legend below all panels."""
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=columns)
