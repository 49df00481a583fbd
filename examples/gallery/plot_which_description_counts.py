"""
Which description counts?
=========================

The same digits are described in five ways: by their pixels, by the directions of their edges, by
the magnitudes of their Fourier coefficients, by the sums of their rows and columns, and by random
numbers. Each description has its own kernel, and a support vector machine learns how much each of
them counts. The result is compared with the plain average of the kernels: weights help if a
description is noise, and hardly if all are useful.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hilbin.estimators import KernelSVC, MultipleKernelSVC
from hilbin.kernels import Chi2, Exponential, OnColumns
from hilbin.plot import kernel_weights

# %%
# The descriptions are placed side by side in the columns of ``X``.
digits = load_digits()
images, y = digits.images, digits.target
gy, gx = np.gradient(images, axis=(1, 2))
angle = ((np.arctan2(gy, gx) / np.pi + 1) * 4).astype(int) % 8
edges = [
    (np.hypot(gy, gx) * (angle == k)).reshape(-1, 2, 4, 2, 4).sum(axis=(2, 4)) for k in range(8)
]
descriptions = {
    "pixels": images.reshape(len(y), -1),
    "edges": np.stack(edges, axis=-1).reshape(len(y), -1),
    "waves": np.abs(np.fft.rfft2(images)).reshape(len(y), -1),
    "sums": np.hstack([images.sum(axis=1), images.sum(axis=2)]),
    "noise": np.random.default_rng(0).gamma(1.0, size=(len(y), 20)),
}
X = np.hstack([*descriptions.values()])
ends = np.cumsum([part.shape[1] for part in descriptions.values()])
columns = {
    name: slice(end - part.shape[1], end)
    for (name, part), end in zip(descriptions.items(), ends, strict=True)
}
kernels = {name: OnColumns(Exponential(Chi2(), "mean"), c) for name, c in columns.items()}
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=200, stratify=y, random_state=0
)

# %%
# We train on each description alone, and with weights that sum to 1, which leave out what is not
# needed. The duality gap says how far the solution can be from the best weights.
alone = [
    KernelSVC(kernel, C=10).fit(X_train, y_train).score(X_test, y_test)
    for kernel in kernels.values()
]
model = MultipleKernelSVC(kernels, C=10, norm=1).fit(X_train, y_train)
print(f"{model.n_iter_} rounds, duality gap {model.gap_[0] / model.objective_[0]:.1e}")

# %%
# With ``norm=numpy.inf`` all weights are equal: the plain average. ``norm=2`` is between.
useful = {name: kernel for name, kernel in kernels.items() if name != "noise"}
others = {
    "average": MultipleKernelSVC(kernels, C=10, norm=np.inf),
    "average, no noise": MultipleKernelSVC(useful, C=10, norm=np.inf),
    "norm 2": MultipleKernelSVC(kernels, C=10, norm=2),
}
combined = {
    name: other.fit(X_train, y_train).score(X_test, y_test) for name, other in others.items()
}
combined["norm 1"] = model.score(X_test, y_test)
for name, accuracy in combined.items():
    print(f"{name:18} {accuracy:.3f}")
axes = kernel_weights(model, accuracies=alone, combined=combined)
axes[1].set_xlim(80, 100)
axes[1].annotate(
    f"noise: {100 * alone[-1]:.0f} %",
    (80, 4),
    (6, 0),
    textcoords="offset points",
    va="center",
    fontsize=8,
)
plt.show()

# %%
# What every description contributes to the score of a class sums to that score.
parts = model.contributions(X_test[:1])[0]
label = model.predict(X_test[:1])[0]
for name, contribution in zip(model.kernel_names_, parts[:, label], strict=True):
    print(f"{name:8} {contribution:+.3f}")
print(f"score of {label}: {parts[:, label].sum() + model.intercept_[label]:+.3f}")
