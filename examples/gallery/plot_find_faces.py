"""
A detector of drawn faces
=========================

Faces and other round shapes are drawn on noise. In seconds, a detector learns to find faces from
boxes around them.
"""

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw

from hilbin.detect import DeformableDetector, explain_box, match_boxes
from hilbin.plot import detection_heat, detector_filters

# %%
# A face is a disk with eyes and a mouth. Each picture has two of them, and two disks
# without eyes, which are not faces.
rng = np.random.default_rng(0)
WIDTH, HEIGHT = 240, 160


def disk(draw, box, is_face):
    x0, y0, x1, y1 = box
    w, h = x1 - x0, y1 - y0
    draw.ellipse(box, fill=int(rng.integers(180, 230)))
    if not is_face:
        return
    for eye in (0.32, 0.68):
        x, y, r = x0 + eye * w, y0 + 0.4 * h, 0.08 * w
        draw.ellipse([x - r, y - r, x + r, y + r], fill=50)
    draw.arc([x0 + 0.27 * w, y0 + 0.4 * h, x1 - 0.27 * w, y1 - 0.2 * h], 20, 160, fill=60, width=3)


def overlaps(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def picture():
    """Return a picture and the boxes of its faces."""
    image = Image.fromarray(rng.integers(60, 140, (HEIGHT, WIDTH), np.uint8))
    draw = ImageDraw.Draw(image)
    boxes = []
    while len(boxes) < 4:
        side = rng.integers(40, 66)
        x, y = rng.integers(0, WIDTH - side), rng.integers(0, HEIGHT - side)
        box = [int(v) for v in (x, y, x + side, y + side)]
        if not any(overlaps(box, other) for other in boxes):
            disk(draw, box, is_face=len(boxes) < 2)
            boxes.append(box)
    return np.asarray(image), boxes[:2]


train, test = ([picture() for _ in range(n)] for n in (10, 5))
images, boxes = zip(*train, strict=True)
detector = DeformableDetector(area=1600, random_state=0).fit(images, boxes)

# %%
# The average precision is that on pictures that the detector has not seen.
images, boxes = zip(*test, strict=True)
print(f"average precision {detector.score(images, boxes):.3f}")
print(f"threshold {detector.threshold_:.2f}")
found = detector.predict(images, threshold=-1.5)
matches = match_boxes(found, boxes)

# %%
# Boxes above the threshold are drawn, with their scores; and precision over recall.
figure, axes = plt.subplots(1, 4, figsize=(12, 2.6))
for axis, image, one in zip(axes, images, found, strict=False):
    axis.imshow(image, cmap="gray")
    for (x0, y0, x1, y1), score in zip(one.coordinates, one.scores, strict=True):
        if score >= detector.threshold_:
            rectangle = plt.Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, color="orange", lw=2)
            axis.add_patch(rectangle)
            axis.text(x0, y0 - 3, f"{score:.1f}", color="orange")
    axis.axis("off")
curve = axes[-1]
curve.clear()
curve.plot(matches.recall, matches.precision)
curve.set(xlabel="recall", ylabel="precision", ylim=(0, 1.05))
figure.tight_layout()
plt.show()

# %%
# The filter as strokes along the edges that it looks for, left those that raise the score and right
# those that lower it; and what each cell of a window adds to the score of one face.
figure, axes = plt.subplots(1, 3, figsize=(9, 3))
detector_filters(detector, axes=axes[:2])
detection_heat(images[0], explain_box(detector, images[0], boxes[0][0]), ax=axes[2])
figure.tight_layout()
plt.show()
