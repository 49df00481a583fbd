"""A montage: all pictures on one page, in the cells of a grid, to be zoomed and searched by eye.

The pictures are cut to squares and joined into sheets of about a thousand pixels, which are smaller
than as many single files and quick to draw. A script moves and scales the sheets: by mouse and
wheel, by one finger and two, and by keys.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from hilbin._arrays import Array
from hilbin.files import write_whole
from hilbin.report.document import document, json_data
from hilbin.report.markup import Html, fill, join, short
from hilbin.report.pictures import as_rgb, data_uri, pillow

MOST_PIXELS = 24_000_000  # of all sheets together
SIDES = (16, 128)  # least and most pixels of a picture
SHEET = 1024  # most pixels of the side of a sheet
EMPTY = 200  # gray of a picture that is gone


def write_montage(
    picture: Callable[[int], Array | None],
    cells: Any,
    path: str | os.PathLike[str],
    *,
    shape: tuple[int, int],
    names: Sequence[str],
    links: Sequence[str] | None = None,
    title: str = "Montage",
    callback: Callable[[int], object] | None = None,
) -> Path:
    """Write a page of pictures in the cells of a grid: one HTML file, whole or not at all.

    Parameters
    ----------
    picture : callable
        ``picture(i)`` is picture ``i``, a uint8 array, or None if there is none.
    cells : array of shape (n, 2)
        Row and column of every picture, as :func:`hilbin.dependence.sort_to_grid` gives them.
    path : path-like
        Path of the file. Its folder must exist.
    shape : (int, int)
        Height and width of the grid.
    names : sequence of str
        Names of the pictures.
    links : sequence of str, optional
        Paths of the pictures from the folder of the page, which their names lead to.
    title : str, default="Montage"
        Title of the page.
    callback : callable, optional
        Called with the number of pictures that are done.

    Returns
    -------
    path : Path
        Path of the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from hilbin.report import write_montage
    >>> gray = np.full((8, 8), 99, np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_montage(
    ...         lambda i: gray, [[0, 0], [0, 1]], Path(folder) / "wall.html",
    ...         shape=(1, 2), names=["a.jpg", "b.jpg"],
    ...     )
    ...     "b.jpg" in page.read_text(encoding="utf-8")
    True
    """
    cells = np.asarray(cells)
    height, width = shape
    side = int(np.clip(np.sqrt(MOST_PIXELS / (height * width)), *SIDES))
    at = np.full(shape, -1)
    at[tuple(cells.T)] = np.arange(len(cells))
    step, done, sheets = SHEET // side, 0, []
    for top in range(0, height, step):
        for left in range(0, width, step):
            part = at[top : top + step, left : left + step]
            sheet = _sheet(picture, part, side)
            sheets.append(
                fill(
                    '<img src="{uri}" alt="" draggable="false" style="left:{x}px;top:{y}px">',
                    uri=data_uri(sheet), x=left * side, y=top * side,
                )
            )  # fmt: skip
            done += int((part >= 0).sum())
            if callback is not None:
                callback(done)
    for row, column in np.argwhere(at < 0):  # they look like what is around the wall
        sheets.append(
            fill(
                '<i style="left:{x}px;top:{y}px;width:{side}px;height:{side}px"></i>',
                x=int(column) * side, y=int(row) * side, side=side,
            )
        )  # fmt: skip
    data = {
        "side": side, "height": height, "width": width, "at": at.ravel().tolist(),
        "names": [short(name) for name in names],
        "links": None if links is None else [_address(link) for link in links],
    }  # fmt: skip
    page = document(
        "montage.html", "montage.css", ("montage.js",), title=short(title), n=f"{len(cells):,}",
        sheets=join(sheets), data=json_data(data), size=Html(
            f"width:{width * side}px;height:{height * side}px"
        ),
    )  # fmt: skip
    write_whole(path, page.encode())
    return Path(path)


def _sheet(picture: Callable[[int], Array | None], numbers: Array, side: int) -> Array:
    """Return pictures side by side; what has no picture is gray."""
    rows, columns = numbers.shape
    sheet = np.full((rows * side, columns * side, 3), EMPTY, np.uint8)
    for row, column in np.argwhere(numbers >= 0):
        found = picture(int(numbers[row, column]))
        if found is not None:
            y, x = row * side, column * side
            sheet[y : y + side, x : x + side] = _square(as_rgb(found), side)
    return sheet


def _square(rgb: Array, side: int) -> Array:
    """Return the middle of a picture as a square."""
    height, width = rgb.shape[:2]
    size = min(height, width)
    top, left = (height - size) // 2, (width - size) // 2
    image = pillow()
    middle = image.fromarray(np.ascontiguousarray(rgb[top : top + size, left : left + size]))
    return np.asarray(middle.resize((side, side), image.Resampling.LANCZOS, reducing_gap=2.0))


def _address(path: str) -> str:
    """Return a path as a relative address, which no scheme can be read into."""
    plain = quote(os.fsencode(path).replace(os.sep.encode(), b"/"))
    return plain if plain.startswith((".", "/")) else f"./{plain}"
