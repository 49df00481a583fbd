"""Boxes in XML: dlib's imglab, and Pascal VOC.

imglab has one file for all images: ``image[@file]/box[@top @left @width @height]``, from 0, whole
pixels, ``x1 = left + width``, paths relative to the file. VOC has a file for each image:
``object/bndbox`` with ``xmin ymin xmax ymax`` from 1, the last pixel included, so that the box is
``[xmin - 1, ymin - 1, xmax, ymax)``.

A file with a document type is refused before its elements are parsed: entities can be made to
expand without end, or to read other files.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from hilbin.detect.formats.records import (
    NO_BOX,
    YES,
    Entry,
    ImageBoxes,
    as_number,
    find_by_stem,
    find_image,
    relative,
    size_or_none,
    whole_or_float,
)
from hilbin.files import require_regular

VOC_FOLDERS = (".", "../JPEGImages", "../images", "..")  # of images, from the file
CORNERS = ("xmin", "ymin", "xmax", "ymax")
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _RootFoundError(Exception):
    """The prolog of a file has ended."""


def root_tag(path: Path, content: bytes) -> str:
    """Return the name of the outermost element; refuse a document type."""

    def refuse(*_: object) -> None:
        raise ValueError(f"{path}: has a DOCTYPE, which is refused: entities can be harmful")

    def stop(tag: str, _: object) -> None:
        raise _RootFoundError(tag)

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = stop
    try:
        parser.Parse(content, True)
    except _RootFoundError as found:
        return str(found)
    except (expat.ExpatError, LookupError) as error:
        raise ValueError(f"{path}: not valid XML: {error}") from None
    raise ValueError(f"{path}: not valid XML: no element")


def _parse(path: Path, wanted: str) -> ElementTree.Element:
    require_regular(path)
    content = path.read_bytes()
    tag = root_tag(path, content)
    if tag != wanted:
        raise ValueError(f"{path}: the outermost element is <{tag}>, not <{wanted}>")
    try:
        return ElementTree.fromstring(content)
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise ValueError(f"{path}: not valid XML: {error}") from None


def _text(element: ElementTree.Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


def read_imglab(path: Path) -> Iterator[tuple[Path, list[Entry]]]:
    """Read a file of imglab."""
    for place, image in enumerate(_parse(path, "dataset").iter("image")):
        name = image.get("file")
        if not name:
            raise ValueError(f"{path}: image {place} has no attribute file")
        boxes = enumerate(image.iterfind("box"))
        where = f"{path}, {name}"
        yield find_image(path.parent, name), [_imglab_box(b, f"{where}, box {k}") for k, b in boxes]


def _imglab_box(box: ElementTree.Element, where: str) -> Entry:
    sides = ("left", "top", "width", "height")
    left, top, width, height = (as_number(box.get(a), f"{where}, {a}") for a in sides)
    score = box.get("detection_score")
    return Entry(
        (left, top, left + width, top + height),
        _text(box, "label"),
        box.get("ignore", "").strip().lower() in YES,
        None if score is None else as_number(score, f"{where}, detection_score"),
    )


def write_imglab(records: Sequence[ImageBoxes], path: Path) -> dict[Path, bytes]:
    """Return the file of imglab; it has whole pixels, so that boxes are rounded."""
    root = ElementTree.Element("dataset")
    images = ElementTree.SubElement(root, "images")
    for record in records:
        image = ElementTree.SubElement(images, "image", file=relative(record.path, path.parent))
        for k, box in enumerate(record.boxes):
            _add_imglab_box(image, record, k, box)
    return {path: _xml_bytes(root, path)}


def _add_imglab_box(
    image: ElementTree.Element, record: ImageBoxes, k: int, box: np.ndarray
) -> None:
    low = np.rint(box[:2])
    size = np.maximum(np.rint(box[2:]) - low, 1)
    numbers = dict(zip(("left", "top", "width", "height"), (*low, *size), strict=True))
    element = ElementTree.SubElement(image, "box", {a: f"{v:.0f}" for a, v in numbers.items()})
    if record.ignore[k]:
        element.set("ignore", "1")
    if record.scores is not None:
        element.set("detection_score", repr(float(record.scores[k])))
    if record.labels[k]:
        ElementTree.SubElement(element, "label").text = record.labels[k]


def voc_files(path: Path) -> list[Path]:
    """Return the XML files of VOC: of a file itself, or of a folder or its folder Annotations."""
    if not path.is_dir():
        return [path]
    return sorted(path.glob("*.xml")) or sorted((path / "Annotations").glob("*.xml"))


def voc_file_of(listed: Path, name: str) -> Path:
    """Return the XML file of an image that a list of ``ImageSets/Main`` names."""
    return listed.parent / ".." / ".." / "Annotations" / f"{name}.xml"


def read_voc_list(path: Path) -> Iterator[tuple[Path, list[Entry]]]:
    """Read the images that a file of ``ImageSets/Main`` lists."""
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        if line.strip():
            yield from read_voc(voc_file_of(path, line.split()[0]).resolve())


def read_voc(path: Path) -> Iterator[tuple[Path, list[Entry]]]:
    """Read a file of VOC, or all of a folder."""
    for file in voc_files(path):
        root = _parse(file, "annotation")
        objects = enumerate(root.iterfind("object"))
        yield _voc_image(file, _text(root, "filename")), [_voc_box(file, k, o) for k, o in objects]


def _voc_image(file: Path, name: str) -> Path:
    """Return the image of a file of VOC: by its element filename, else by the file's own name."""
    folders = [file.parent / folder for folder in VOC_FOLDERS]
    last = name.replace("\\", "/").rpartition("/")[2]
    for folder in folders if last else ():
        if os.path.isfile(folder / last):  # a name may be too long for Path.is_file
            return Path(folder / last).resolve()
    found = find_by_stem(folders, last) if last else None
    found = found or find_by_stem(folders, file.stem)
    return file.parent / (last or file.stem) if found is None else found.resolve()


def _voc_box(file: Path, k: int, thing: ElementTree.Element) -> Entry:
    label, difficult = _text(thing, "name"), _text(thing, "difficult").lower() in YES
    box = thing.find("bndbox")  # of the object itself, not of its parts
    if box is None:
        return Entry(NO_BOX, label, difficult)
    x0, y0, x1, y1 = (as_number(_text(box, c), f"{file}, object {k}, {c}") for c in CORNERS)
    if x1 <= x0 or y1 <= y0:  # a click, not a thing of one pixel
        return Entry((x0 - 1, y0 - 1, x0 - 1, y0 - 1), label, difficult)
    return Entry((x0 - 1, y0 - 1, x1, y1), label, difficult)


def write_voc(records: Sequence[ImageBoxes], path: Path) -> dict[Path, bytes]:
    """Return the files of VOC, one for each image, in a folder."""
    return {
        file: _xml_bytes(_voc_root(record), file)
        for file, record in zip(files_by_stem(records, path, ".xml"), records, strict=True)
    }


def files_by_stem(records: Sequence[ImageBoxes], folder: Path, suffix: str) -> list[Path]:
    """Return a file in a folder for each image, which must have different names."""
    files = [folder / f"{record.path.stem}{suffix}" for record in records]
    twice = [file for k, file in enumerate(files) if file in files[:k]]
    if twice:
        raise ValueError(f"{twice[0]}: two images have this name, and each needs a file of its own")
    return files


def _voc_root(record: ImageBoxes) -> ElementTree.Element:
    root = ElementTree.Element("annotation")
    ElementTree.SubElement(root, "filename").text = record.path.name
    size = size_or_none(record.path)
    if size is not None:
        element = ElementTree.SubElement(root, "size")
        for name, value in zip(("width", "height", "depth"), (*size, 3), strict=True):
            ElementTree.SubElement(element, name).text = str(value)
    for k, (x0, y0, x1, y1) in enumerate(record.boxes):
        thing = ElementTree.SubElement(root, "object")
        ElementTree.SubElement(thing, "name").text = record.labels[k]
        ElementTree.SubElement(thing, "difficult").text = str(int(record.ignore[k]))
        box = ElementTree.SubElement(thing, "bndbox")
        for name, value in zip(CORNERS, (x0 + 1, y0 + 1, x1, y1), strict=True):
            ElementTree.SubElement(box, name).text = whole_or_float(value)
    return root


def _xml_bytes(root: ElementTree.Element, path: Path) -> bytes:
    for element in root.iter():
        for text in (element.text or "", *element.attrib.values()):
            if NOT_XML.search(text):
                raise ValueError(f"{path}: XML cannot hold the text {text!r}")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n"
