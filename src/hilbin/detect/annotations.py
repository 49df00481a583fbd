"""Files of boxes: imglab, Pascal VOC, YOLO, COCO and CSV, told by their content, read and written.

All become the same list of :class:`ImageBoxes`, boxes ``[x0, y0, x1, y1)`` in pixels. Boxes that
cannot be used are left out with a :class:`BoxWarning`; a damaged file is a ``ValueError`` that
names the file and the place in it.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hilbin._parameters import require_choice
from hilbin.detect.formats.coco import read_coco, write_coco
from hilbin.detect.formats.records import Entry, ImageBoxes, as_records
from hilbin.detect.formats.table import DELIMITERS, read_table, write_table
from hilbin.detect.formats.xml import (
    read_imglab,
    read_voc,
    read_voc_list,
    root_tag,
    voc_file_of,
    voc_files,
    write_imglab,
    write_voc,
)
from hilbin.detect.formats.yolo import has_yolo, is_list, read_lines, read_yolo, write_yolo
from hilbin.files import require_regular, write_whole

KNOWN = "imglab or VOC (XML), COCO (JSON), YOLO (text) and CSV"
BLANK = b"\xef\xbb\xbf\xff\xfe\0 \t\r\n"  # what may stand before the first character


@dataclass(frozen=True)
class Format:
    """How files of a format are read and written."""

    read: Callable[[Path], Iterator[tuple[Path, list[Entry]]]]
    write: Callable[[Sequence[ImageBoxes], Path], dict[Path, bytes]]
    suffix: str = ""  # of its files; a format without one fills a folder


FORMATS = {
    "imglab": Format(read_imglab, write_imglab, ".xml"),
    "voc": Format(read_voc, write_voc),
    "yolo": Format(read_yolo, write_yolo),
    "coco": Format(read_coco, write_coco, ".json"),
    "csv": Format(read_table, write_table, ".csv"),
}


def read_boxes(
    path: str | os.PathLike[str], *, labels: str | Iterable[str] | None = None
) -> list[ImageBoxes]:
    """Read the boxes of a file or a folder; the format is recognized by its content.

    Parameters
    ----------
    path : path
        A file of imglab (XML), COCO (JSON) or CSV; a file or a folder of Pascal VOC (XML), or a
        list of ``ImageSets/Main``; a folder, a list of images, or one text file of YOLO.
    labels : str or list of str, optional
        Keep the boxes of these labels alone. Images without any stay: they show what is not meant.

    Returns
    -------
    images : list of ImageBoxes
        One for each image, also for those without boxes.

    Raises
    ------
    ValueError
        If the file is damaged, of no known format, or a label is not in it.

    Warns
    -----
    BoxWarning
        For a box that is empty, not finite, or outside its image; it is left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.detect import read_boxes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "boxes.csv"
    ...     _ = table.write_text("path,xmin,ymin,xmax,ymax,label\\na.jpg,2,3,20,30,cat\\n")
    ...     drawn = read_boxes(table)
    >>> drawn[0].path.name, drawn[0].boxes, drawn[0].labels
    ('a.jpg', array([[ 2.,  3., 20., 30.]]), array(['cat'], dtype=object))
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"{source}: there is no such file or folder")
    records = as_records(source, _reader(source)(source))
    return records if labels is None else _of_labels(source, records, labels)


def _of_labels(
    source: Path, records: list[ImageBoxes], labels: str | Iterable[str]
) -> list[ImageBoxes]:
    wanted = {labels} if isinstance(labels, str) else set(labels)
    known = {label for record in records for label in record.labels}
    if wanted - known:
        there = ", ".join(sorted(known)) or "none"
        missing = ", ".join(sorted(wanted - known))
        raise ValueError(f"{source}: no box has the label {missing}; there are: {there}")
    return [record.only(np.isin(record.labels.astype(str), [*wanted])) for record in records]


def _reader(source: Path) -> Callable[[Path], Iterator[tuple[Path, list[Entry]]]]:
    if source.is_dir():
        return FORMATS[_format_of_folder(source)].read
    require_regular(source)
    content = source.read_bytes()
    begin = content.lstrip(BLANK)[:1]
    if begin == b"<":
        tag = root_tag(source, content)
        if tag not in ("dataset", "annotation"):
            raise ValueError(f"{source}: XML of <{tag}> is not known; known are {KNOWN}")
        return read_imglab if tag == "dataset" else read_voc
    return read_coco if begin in (b"{", b"[") else _reader_of_text(source)


def _format_of_folder(folder: Path) -> str:
    if voc_files(folder):
        return "voc"
    if has_yolo(folder):
        return "yolo"
    raise ValueError(f"{folder}: no file of boxes in this folder; known are {KNOWN}")


def _reader_of_text(source: Path) -> Callable[[Path], Iterator[tuple[Path, list[Entry]]]]:
    lines = read_lines(source)
    if source.suffix in (".yaml", ".yml"):
        raise ValueError(f"{source}: give the folder of images instead, such as images/train")
    if not lines:
        if source.suffix == ".txt":
            return read_yolo  # an image without objects
        raise ValueError(f"{source}: is empty")
    if os.path.isfile(voc_file_of(source, lines[0].split()[0])):
        return read_voc_list
    words = 0 if any(c in lines[0] for c in DELIMITERS) else len(lines[0].split())
    return read_yolo if words >= 3 or is_list(lines) else read_table


def write_boxes(
    records: Iterable[ImageBoxes], path: str | os.PathLike[str], *, format: str | None = None
) -> None:
    """Write boxes to a file, or to the files of a folder.

    Paths of images are written relative to the file. imglab has whole pixels, so that boxes are
    rounded; YOLO has no ignored boxes, and needs to read the sizes of the images; both VOC and YOLO
    have a file for each image, which is named after it. Scores are kept by all but VOC.

    Parameters
    ----------
    records : list of ImageBoxes
        The boxes of every image.
    path : path
        The file, or for VOC and YOLO the folder, which is made if needed.
    format : {"imglab", "voc", "yolo", "coco", "csv"}, optional
        By default the extension says it: ``.xml`` is imglab, ``.json`` COCO, ``.csv`` CSV.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.detect import ImageBoxes, read_boxes, write_boxes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "boxes.xml"
    ...     write_boxes([ImageBoxes("a.jpg", [[2, 3, 20, 30]], ["cat"])], file)
    ...     read_boxes(file)[0].boxes
    array([[ 2.,  3., 20., 30.]])
    """
    target = Path(path)
    if format is None:
        by_suffix = {known.suffix: name for name, known in FORMATS.items() if known.suffix}
        format = by_suffix.get(target.suffix.lower())
        if format is None:
            raise ValueError(f"{target}: pass with format= which of {', '.join(FORMATS)} to write")
    require_choice("format", format, list(FORMATS))
    files = FORMATS[format].write(list(records), target)
    if not FORMATS[format].suffix:
        target.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        write_whole(file, content)
