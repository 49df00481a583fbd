"""
Denoising by pre-images
=======================

In the feature space of a kernel, the principal components of clean digits describe digits well, and
noise badly. So a noisy digit is projected onto these components. Its pre-image, a row whose image
is close to the projection, is nearly free of noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from hilbin.estimators import KernelPCA
from hilbin.kernels import Gaussian

# %%
# Gray values from -1 to 1; 1200 clean rows to learn from, and others with noise.
X, y = load_digits(return_X_y=True)
X = X / 8 - 1
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
train, clean, labels = X[order[:1200]], X[order[1200:1500]], y[order[1200:1500]]
noisy = clean + 0.5 * rng.normal(size=clean.shape)

# %%
# The Gaussian has a curved space of digits, so many components help; the linear kernel, which is
# PCA, takes up noise with each.
gaussian = KernelPCA(Gaussian("median"), 120).fit(train)
linear = PCA(20).fit(train)
found = {
    "clean": clean,
    "noisy": noisy,
    "PCA": linear.inverse_transform(linear.transform(noisy)),
    "KernelPCA": gaussian.denoise(noisy),
}
for name, rows in found.items():
    print(f"{name}: mean squared error {np.mean((rows - clean) ** 2):.3f}")

# %%
# One example of each digit, in four rows: clean, noisy, and denoised by both methods.
figure, axes = plt.subplots(4, 10, figsize=(8, 3.6), layout="constrained")
places = [int(np.argmax(labels == digit)) for digit in range(10)]
for line, (name, rows) in zip(axes, found.items(), strict=True):
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    for axis, i in zip(line, places, strict=True):
        axis.imshow(rows[i].reshape(8, 8), cmap="gray_r", vmin=-1, vmax=1)
        axis.set(xticks=[], yticks=[])
plt.show()
