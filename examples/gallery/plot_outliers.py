"""
Digits that are not what they should be
=======================================

A ball around the training rows, in the feature space of a kernel, knows no classes: what is outside
of it is unlike the rest. Here some handwritten digits were put among the fives by mistake.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from hilbin.estimators import SVDD
from hilbin.kernels import Chi2, Exponential, Gaussian

# %%
# All fives, and 18 digits that are none. Nothing says which.
X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
wrong = rng.choice(np.flatnonzero(y != 5), 18, replace=False)
rows = np.concatenate([np.flatnonzero(y == 5), wrong])
X, y = X[rows], y[rows]
print(f"{len(X)} rows, {np.mean(y != 5):.0%} of them wrong")

# %%
# The ball may leave out a tenth of the rows. How well do the distances from its surface tell the
# wrong rows from the right ones?
for kernel in (Gaussian("median"), Exponential(Chi2(), "median")):
    ball = SVDD(kernel, nu=0.1).fit(X)
    area = roc_auc_score(y == 5, ball.decision_function(X))
    print(f"{type(kernel).__name__}: area under the curve {area:.3f}, radius {ball.radius_:.2f}")

# %%
# The twenty rows farthest outside, the farthest first. Red is a row that does not belong here.
scores = ball.decision_function(X)
figure, axes = plt.subplots(2, 10, figsize=(8, 2.2), layout="constrained")
for axis, i in zip(axes.flat, np.argsort(scores)[:20], strict=True):
    axis.imshow(X[i].reshape(8, 8), cmap="gray_r")
    axis.set(xticks=[], yticks=[])
    axis.set_xlabel(f"{scores[i]:.2f}", fontsize=8)
    for spine in axis.spines.values():
        spine.set(color="0.8" if y[i] == 5 else "tab:red", linewidth=1 if y[i] == 5 else 3)
plt.show()
