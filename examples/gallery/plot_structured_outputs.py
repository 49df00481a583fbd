"""
Structured outputs
==================

A structured SVM predicts many things at once: all labels of a word, all pixels of an image, the
four edges of a box. It learns what belongs together.
"""

import matplotlib.pyplot as plt
import numpy as np

from hilbin.detect import BoxLocalizer
from hilbin.estimators import GridModel, MapSVC, StructuredSVM
from hilbin.images import LBP
from hilbin.plot import localization

rng = np.random.default_rng(0)

# %%
# Pixels
# ------
# Ellipses under strong noise. The features of a pixel are its value and a constant; the output is
# the mask of all pixels. The last weight is that of equal neighbors.
ys, xs = np.mgrid[:48, :64]


def ellipse():
    """Return an image and its mask."""
    (cy, cx), (ry, rx) = rng.uniform((14, 16), (34, 48)), rng.uniform(7, 14, 2)
    mask = (((ys - cy) / ry) ** 2 + ((xs - cx) / rx) ** 2 < 1).astype(int)
    gray = mask + rng.normal(0, 0.7, mask.shape)
    return np.stack([gray, np.ones_like(gray)], axis=2), mask


images, masks = zip(*(ellipse() for _ in range(16)), strict=True)
machine = StructuredSVM(GridModel(), C=100.0).fit(images[:10], masks[:10])
print("weights of value, constant and equal neighbors:", machine.coef_.round(2))
print(f"wrong pixels: {-machine.score(images[10:], masks[10:]):.1%}")

# %%
# A classifier of single pixels ignores neighbors, so the same features tell it much less.
rows, labels = np.concatenate([x.reshape(-1, 2) for x in images[:10]]), np.ravel(masks[:10])
alone = MapSVC(C=0.01, class_weight="balanced").fit(rows, labels)
figure, axes = plt.subplots(3, 4, figsize=(9, 5.2), layout="constrained")
for column, (image, mask) in enumerate(zip(images[10:14], masks[10:14], strict=True)):
    pixels = alone.predict(image.reshape(-1, 2)).reshape(mask.shape)
    for axis, shown in zip(axes[:, column], (image[:, :, 0], pixels, None), strict=True):
        axis.imshow(machine.predict([image])[0] if shown is None else shown, cmap="gray")
        axis.contour(mask, [0.5], colors="orange", linewidths=1)
        axis.set(xticks=[], yticks=[])
for axis, name in zip(axes[:, 0], ("image", "alone", "by a cut"), strict=True):
    axis.set_ylabel(name)
plt.show()

# %%
# Boxes
# -----
# A patch of a smooth ramp lies on noise. The localizer learns from boxes which words of local
# binary patterns are inside; the best of all boxes is found exactly. The picture shows which cells
# made it win.
pictures, boxes = [], []
for _ in range(20):
    picture = rng.integers(0, 256, (96, 128), np.uint8)
    w, h = rng.integers(32, 64), rng.integers(24, 48)
    x, y = rng.integers(0, 128 - w), rng.integers(0, 96 - h)
    picture[y : y + h, x : x + w] = np.linspace(40, 220, h)[:, None] + rng.normal(0, 4, (h, w))
    pictures.append(picture)
    boxes.append([x, y, x + w, y + h])
localizer = BoxLocalizer(LBP(), cell=4).fit(pictures[:14], boxes[:14])
print(f"mean IoU: {localizer.score(pictures[14:], boxes[14:]):.2f}")
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for axis, found, box in zip(axes, localizer.explain(pictures[14:16]), boxes[14:16], strict=True):
    localization(found, truth=box, ax=axis)
plt.show()
