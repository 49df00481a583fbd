"""Drawn photographs: faces, or rectangles, on noise."""

import numpy as np
from PIL import Image, ImageDraw

from hilbin.detect import ImageBoxes


def face(draw, box):
    """A bright disk with two eyes and a mouth."""
    x0, y0, x1, y1 = box
    w, h = x1 - x0, y1 - y0
    draw.ellipse(box, fill=215)
    for eye in (0.3, 0.7):
        x, y = x0 + eye * w, y0 + 0.38 * h
        draw.ellipse([x - 0.09 * w, y - 0.09 * h, x + 0.09 * w, y + 0.09 * h], fill=40)
    draw.line([x0 + 0.3 * w, y0 + 0.72 * h, x0 + 0.7 * w, y0 + 0.72 * h], fill=60, width=3)


def scene(seed, size=(160, 112), n_faces=2, n_squares=1):
    """Return a picture, the boxes of its faces, and those of its squares."""
    rng = np.random.default_rng(seed)
    noise = rng.integers(60, 130, (size[1], size[0]), np.uint8)
    picture = Image.fromarray(noise)
    draw = ImageDraw.Draw(picture)
    boxes = []
    while len(boxes) < n_faces + n_squares:
        side = int(rng.integers(38, 48))
        x, y = int(rng.integers(0, size[0] - side)), int(rng.integers(0, size[1] - side))
        box = [x, y, x + side, y + side]
        if all(_apart(box, other) for other in boxes):
            boxes.append(box)
    for box in boxes[:n_faces]:
        face(draw, box)
    for box in boxes[n_faces:]:
        draw.rectangle(box, fill=215)
    return np.asarray(picture), boxes[:n_faces], boxes[n_faces:]


def _apart(a, b):
    return a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def write_scenes(folder, count, first=0, squares=False, **options):
    """Write pictures into a folder; return their faces, and squares if wanted."""
    folder.mkdir(parents=True, exist_ok=True)
    records = []
    for seed in range(first, first + count):
        picture, faces, others = scene(seed, **options)
        path = folder / f"scene {seed}.png"
        Image.fromarray(picture).save(path)
        drawn = [(box, "face") for box in faces] + [(box, "square") for box in others if squares]
        records.append(ImageBoxes(path, [box for box, _ in drawn], [label for _, label in drawn]))
    return records
