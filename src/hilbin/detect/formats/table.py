"""Boxes in a CSV file: a line for each box, with the path of its image.

The first line names the columns: a path (``path``, ``filename``, ``image``), corners (``xmin``,
``ymin``, ``xmax``, ``ymax``, or others of :data:`CORNERS`) or ``left``, ``top``, ``width``,
``height``, and if wanted ``label``, ``ignore`` and ``score``. Where there are corners, ``width``
and ``height`` are those of the image, and are not read. Without such a line the columns are
``path, x1, y1, x2, y2, label``. A line without coordinates is an image without objects.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from hilbin.detect.formats.records import (
    YES,
    Entry,
    ImageBoxes,
    as_number,
    find_image,
    relative,
    whole_or_float,
)

PATHS = ("path", "filename", "file_name", "image", "image_path", "file", "img")
CORNERS = (
    ("xmin", "ymin", "xmax", "ymax"),
    ("x_min", "y_min", "x_max", "y_max"),
    ("x0", "y0", "x1", "y1"),
    ("x1", "y1", "x2", "y2"),
    ("left", "top", "right", "bottom"),
)
SIDES = (("left", "top", "width", "height"), ("x", "y", "width", "height"), ("x", "y", "w", "h"))
LABELS = ("label", "class", "name", "class_name", "category")
IGNORES = ("ignore", "difficult", "iscrowd")
SCORES = ("score", "confidence", "detection_score")
PLAIN = ("path", "x1", "y1", "x2", "y2", "label")
DELIMITERS = ",;\t"


def read_table(path: Path) -> Iterator[tuple[Path, list[Entry]]]:
    """Read a CSV file of boxes."""
    rows = _rows(path)
    if not rows:
        raise ValueError(f"{path}: no line in it")
    first = [name.strip().lower() for name in rows[0][1]]
    heads = first if set(PATHS) & set(first) else list(PLAIN[: len(first)])
    where_box, has_sides = _coordinate_columns(path, heads, first)
    for line, row in rows if heads is not first else rows[1:]:
        cells = dict(zip(heads, (cell.strip() for cell in row), strict=False))
        name = _cell(cells, PATHS)
        where = f"{path}, line {line}"
        if not name:
            raise ValueError(f"{where}: the path of the image is missing")
        texts = [cells.get(column, "") for column in where_box]
        entries = [_entry(texts, cells, has_sides, where)] if any(texts) else []
        yield find_image(path.parent, name), entries


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the numbers and cells of the lines that are not empty."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # line breaks in cells stay
            text = file.read()
        first = text.partition("\n")[0]
        reader = csv.reader(io.StringIO(text), delimiter=max(DELIMITERS, key=first.count))
        return [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: not a CSV file in UTF-8: {error}") from None


def _coordinate_columns(
    path: Path, heads: Sequence[str], first: Sequence[str]
) -> tuple[tuple[str, ...], bool]:
    """Return the columns of the box, and whether they are a corner and sides."""
    for group in (CORNERS, SIDES):
        for columns in group:
            if set(columns) <= set(heads):
                return columns, group is SIDES
    raise ValueError(
        f"{path}: no columns of boxes such as path,xmin,ymin,xmax,ymax,label; "
        f"its first line is {', '.join(first)[:200]}"
    )


def _cell(cells: dict[str, str], names: Sequence[str]) -> str:
    return next((cells[name] for name in names if name in cells), "")


def _entry(texts: Sequence[str], cells: dict[str, str], has_sides: bool, where: str) -> Entry:
    a, b, c, d = (as_number(text, where) for text in texts)
    score = _cell(cells, SCORES)
    return Entry(
        (a, b, a + c, b + d) if has_sides else (a, b, c, d),
        _cell(cells, LABELS),
        _cell(cells, IGNORES).lower() in YES,
        as_number(score, f"{where}, score") if score else None,
    )


def write_table(records: Sequence[ImageBoxes], path: Path) -> dict[Path, bytes]:
    """Return the CSV file."""
    scored = any(record.scores is not None for record in records)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    heads = ["path", *CORNERS[0], "label", "ignore"]
    writer.writerow([*heads, "score"] if scored else heads)
    for record in records:
        name = relative(record.path, path.parent)
        for k, box in enumerate(record.boxes):
            score = "" if record.scores is None else repr(float(record.scores[k]))
            row = [name, *map(whole_or_float, box), record.labels[k], int(record.ignore[k])]
            writer.writerow([*row, score] if scored else row)
        if not len(record.boxes):
            writer.writerow([name, *[""] * (len(heads) - 1 + scored)])
    return {path: text.getvalue().encode(errors="surrogateescape")}
