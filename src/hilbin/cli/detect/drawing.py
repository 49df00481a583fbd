"""Copies of images with boxes drawn in."""

import io
from pathlib import Path
from typing import Any

from hilbin.cli._why_picture import font
from hilbin.detect import ImageBoxes
from hilbin.files import write_whole
from hilbin.images import read_image

COLOR, INK = (240, 140, 0), (20, 20, 20)
LEAST_WIDTH, WIDTH = 2, 1 / 320  # pixels of a line, and its part of the longer side
LEAST_LETTERS, LETTERS = 11, 1 / 45  # the same of the height of letters
QUALITY = 90


def copy_path(folder: Path, image: Path, taken: set[Path]) -> Path:
    """Return where the copy of an image goes, and enter it in ``taken``.

    The copy of ``photo.png`` is ``photo-boxes.jpg``, so that no image is overwritten by its copy;
    images of the same name from several folders are numbered.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hilbin.cli.detect.drawing import copy_path
    >>> taken = set()
    >>> [copy_path(Path("."), Path(name), taken).name for name in ("a/x.png", "b/x.jpg")]
    ['x-boxes.jpg', 'x-boxes-2.jpg']
    """
    path, n = folder / f"{image.stem}-boxes.jpg", 1
    while path in taken:
        n += 1
        path = folder / f"{image.stem}-boxes-{n}.jpg"
    taken.add(path)
    return path


def draw_boxes(record: ImageBoxes, probabilities: Any, path: Path) -> None:
    """Write a copy of an image with its boxes drawn in.

    Parameters
    ----------
    record : ImageBoxes
        The image, its boxes, labels and scores.
    probabilities : array of shape (n,) or None
        Probabilities, which are written instead of scores.
    path : Path
        The file to write. Its folder is made if needed.
    """
    from PIL import Image, ImageDraw

    picture = Image.fromarray(read_image(record.path, color=True))
    draw = ImageDraw.Draw(picture)
    side = max(picture.size)
    width = max(LEAST_WIDTH, round(side * WIDTH))
    letters = font(max(LEAST_LETTERS, round(side * LETTERS)))
    for k in reversed(range(len(record.boxes))):  # the best one is on top
        x0, y0, x1, y1 = record.boxes[k].tolist()
        draw.rectangle([x0, y0, max(x0, x1 - 1), max(y0, y1 - 1)], outline=COLOR, width=width)
        text = _caption(record, k, probabilities)
        left, top, right, bottom = draw.textbbox((0, 0), text, letters)
        wide, high = right - left + 2 * width, bottom - top + 2 * width
        x = max(0, min(x0, picture.width - wide))
        y = y0 - high if y0 >= high else y0  # above the box, if there is room
        draw.rectangle([x, y, x + wide, y + high], fill=COLOR)
        draw.text((x + width - left, y + width - top), text, INK, letters)
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=QUALITY)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, file.getvalue())


def _caption(record: ImageBoxes, k: int, probabilities: Any) -> str:
    score = 0.0 if record.scores is None else record.scores[k]
    worth = f"{score:.2f}" if probabilities is None else f"{probabilities[k]:.0%}"
    return f"{record.labels[k]} {worth}".strip()
