"""
Heat maps of an image classifier
================================

The census transform and the intersection kernel distinguish patches of two photographs. The score
of a patch is distributed over its pixels: the pixels and the intercept sum to it exactly.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_sample_images
from sklearn.pipeline import make_pipeline

from hilbin.estimators import IntersectionSVC
from hilbin.images import Centrist, SpatialPyramid
from hilbin.report import overlay

# %%
# Two photographs come with scikit-learn. Squares of their left halves are for training, squares of
# their right halves for testing.
temple, flower = load_sample_images().images
SIDE = 64


def squares(photograph, part):
    half = np.array_split(photograph, 2, axis=1)[part]
    rows, columns = (n // SIDE for n in half.shape[:2])
    return [
        half[SIDE * i : SIDE * (i + 1), SIDE * j : SIDE * (j + 1)]
        for i in range(rows)
        for j in range(columns)
    ]


train, test = ([squares(p, part) for p in (temple, flower)] for part in (0, 1))
names = np.array(["temple", "flower"])
y_train, y_test = (np.repeat(names, [len(p) for p in parts]) for parts in (train, test))
model = make_pipeline(SpatialPyramid(Centrist(), levels=2), IntersectionSVC())
model.fit(train[0] + train[1], y_train)
images = test[0] + test[1]
print(f"accuracy {model.score(images, y_test):.1%} on {len(images)} squares")

# %%
# Red pixels raise the score of the temple, blue ones that of the flower. A little blur, which
# leaves the sum as it is, makes the heat maps of single pixel words readable.
features, svm = model[0], model[-1]
scores = model.decision_function(images)
order = np.argsort(scores)
shown = order[np.linspace(0, len(order) - 1, 6).astype(int)]
figure, axes = plt.subplots(2, len(shown), figsize=(11, 4.2))
for column, i in zip(axes.T, shown, strict=True):
    image = features.read(images[i])
    contributions = svm.explain(features.transform([images[i]]))[0]
    heat = features.to_pixels(image, contributions)
    assert np.isclose(heat.sum() + svm.intercept_[0], scores[i])
    column[0].imshow(images[i])
    column[0].set_title(f"{y_test[i]}\n{scores[i]:+.2f}", fontsize=9)
    column[1].imshow(overlay(image, gaussian_filter(heat, 3)))
for axis in axes.ravel():
    axis.axis("off")
figure.tight_layout()
plt.show()
