"""Boxes of COCO: one JSON file, ``annotations[].bbox = [x, y, width, height]`` from 0.

Numbers of images and categories are arbitrary. An image without annotations is one without objects.
A crowd (``iscrowd``) is ignored.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hilbin.detect.formats.records import (
    NO_BOX,
    Entry,
    ImageBoxes,
    as_number,
    find_image,
    relative,
    size_or_none,
)

FOLDERS = (".", "images", "..", "../images")  # from the file


def load_json(path: Path, content: bytes) -> Any:
    """Return what a JSON file says."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not valid JSON: {error}") from None


def read_coco(path: Path) -> Iterator[tuple[Path, list[Entry]]]:
    """Read a file of COCO."""
    about = load_json(path, path.read_bytes())
    lists = ("images", "annotations")
    if not isinstance(about, dict) or not all(isinstance(about.get(n), list) for n in lists):
        raise ValueError(
            f"{path}: a JSON file of boxes (COCO) has the lists images and annotations"
        )
    names = {_key(c, "id", path): str(c.get("name", "")) for c in _dicts(about, "categories", path)}
    images = {_key(i, "id", path): i for i in _dicts(about, "images", path)}
    boxes: dict[Any, list[Entry]] = {key: [] for key in images}
    for k, one in enumerate(_dicts(about, "annotations", path)):
        where = f"{path}, annotation {k}"
        if _key(one, "image_id", path) not in boxes:
            raise ValueError(f"{where}: there is no image of the id {one['image_id']!r}")
        boxes[one["image_id"]].append(_entry(one, names, where))
    for key, image in images.items():
        if not isinstance(image.get("file_name"), str):
            raise ValueError(f"{path}: the image of the id {key!r} has no file_name")
        yield _image(path, image["file_name"]), boxes[key]


def _dicts(about: dict[str, Any], name: str, path: Path) -> list[dict[str, Any]]:
    found = about.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError(f"{path}: {name} is not a list of objects")
    return found


def _key(one: dict[str, Any], name: str, path: Path) -> Any:
    key = one.get(name)
    if not isinstance(key, int | str | float):
        raise ValueError(f"{path}: {name} must be a number or a text, got {key!r}")
    return key


def _entry(one: dict[str, Any], names: dict[Any, str], where: str) -> Entry:
    category = one.get("category_id", "")
    label = names.get(category, str(category)) if isinstance(category, int | str | float) else ""
    ignore = bool(one.get("iscrowd")) or bool(one.get("ignore"))
    score = None if one.get("score") is None else as_number(one["score"], f"{where}, score")
    bbox = one.get("bbox")
    if bbox is None or bbox == []:  # an outline or key points alone
        return Entry(NO_BOX, label, ignore, score)
    if not isinstance(bbox, list) or len(bbox) != 4:
        raise ValueError(f"{where}: bbox must be [x, y, width, height]")
    x, y, width, height = (as_number(value, f"{where}, bbox") for value in bbox)
    return Entry((x, y, x + width, y + height), label, ignore, score)


def _image(path: Path, name: str) -> Path:
    found = (find_image(path.parent / folder, name) for folder in FOLDERS)
    fallback = path.parent / name
    return next((Path(os.path.normpath(one)) for one in found if os.path.exists(one)), fallback)


def write_coco(records: Sequence[ImageBoxes], path: Path) -> dict[Path, bytes]:
    """Return the file of COCO."""
    names = sorted({label for record in records for label in record.labels})
    images, annotations = [], list[dict[str, Any]]()
    for number, record in enumerate(records, 1):
        size = size_or_none(record.path)
        sides = {} if size is None else {"width": size[0], "height": size[1]}
        images.append({"id": number, "file_name": relative(record.path, path.parent), **sides})
        for k, (x0, y0, x1, y1) in enumerate(record.boxes.tolist()):
            about = {
                "id": len(annotations) + 1,
                "image_id": number,
                "category_id": names.index(record.labels[k]) + 1,
                "bbox": [x0, y0, x1 - x0, y1 - y0],
                "area": (x1 - x0) * (y1 - y0),
                "iscrowd": int(record.ignore[k]),
            }
            score = {} if record.scores is None else {"score": float(record.scores[k])}
            annotations.append({**about, **score})
    categories = [{"id": k, "name": name} for k, name in enumerate(names, 1)]
    whole = {"images": images, "annotations": annotations, "categories": categories}
    return {path: (json.dumps(whole, indent=1) + "\n").encode()}
