"""
Outlier detection
=================

Support vector data description is the smallest ball around the training rows in the feature space
of a kernel; rows outside it are outliers. In this example, some other handwritten digits are hidden
among fives.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from hilbin.estimators import SVDD
from hilbin.kernels import Chi2, Exponential, Gaussian

# %%
# All fives and 18 other digits, without labels.
X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
wrong = rng.choice(np.flatnonzero(y != 5), 18, replace=False)
rows = np.concatenate([np.flatnonzero(y == 5), wrong])
X, y = X[rows], y[rows]
print(f"{len(X)} rows, {np.mean(y != 5):.0%} of them outliers")

# %%
# The ball may leave out a tenth of the rows. The area under the ROC curve says how well the scores,
# distances from its surface, separate outliers from fives.
for kernel in (Gaussian("median"), Exponential(Chi2(), "median")):
    ball = SVDD(kernel, nu=0.1).fit(X)
    area = roc_auc_score(y == 5, ball.decision_function(X))
    print(f"{type(kernel).__name__}: area under the curve {area:.3f}, radius {ball.radius_:.2f}")

# %%
# These are the twenty rows farthest outside, the farthest first. The outliers have red frames.
scores = ball.decision_function(X)
figure, axes = plt.subplots(2, 10, figsize=(8, 2.2), layout="constrained")
for axis, i in zip(axes.flat, np.argsort(scores)[:20], strict=True):
    axis.imshow(X[i].reshape(8, 8), cmap="gray_r")
    axis.set(xticks=[], yticks=[])
    axis.set_xlabel(f"{scores[i]:.2f}", fontsize=8)
    for spine in axis.spines.values():
        spine.set(color="0.8" if y[i] == 5 else "tab:red", linewidth=1 if y[i] == 5 else 3)
plt.show()
