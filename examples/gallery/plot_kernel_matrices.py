"""
Gram matrices and alignment
===========================

This example shows the Gram matrices of six kernels on the handwritten digits of scikit-learn, with
rows sorted by class. A kernel that suits the task shows ten bright squares on the diagonal. The
alignment in each title measures this: 1 is a perfect match with the labels, 0 is none.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.preprocessing import normalize

from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Intersection,
    JensenShannon,
    Linear,
    Normalized,
    Sparsity,
    kernel_alignment,
)
from hilbin.plot import kernel_matrix

# %%
# Forty images of each digit. A row holds the 64 gray values of an image, as a histogram.
X, y = load_digits(return_X_y=True)
chosen = np.concatenate([np.flatnonzero(y == digit)[:40] for digit in range(10)])
X, y = normalize(X[chosen], norm="l1"), y[chosen]

# %%
# Length scales are computed from the data: ``resolve`` replaces a rule by its number.
kernels = {
    "Cosine": Normalized(Linear()),
    "Intersection": Intersection(),
    "Chi-squared": Chi2(),
    "Jensen-Shannon": JensenShannon(),
    "Exp-chi-squared": Exponential(Chi2(), gamma="median").resolve(X),
}
grams = {name: kernel.gram(X) for name, kernel in kernels.items()}

# %%
# The GCS kernel measures the volume that two balls share. In 64 dimensions that is nearly 0 for any
# two images, so it is computed on the first 6 principal components. The rule makes the balls so
# large that three in ten pairs meet.
reduced = PCA(6, random_state=0).fit_transform(X)
grams["GCS"] = GCS(Sparsity(0.7)).resolve(reduced).gram(reduced)

# %%
fig, axes = plt.subplots(2, 3, figsize=(10, 6.6), layout="constrained")
for ax, (name, K) in zip(axes.flat, grams.items(), strict=True):
    kernel_matrix(K, y, ax=ax, title=name)
plt.show()

# %%
# The alignments, best first:
alignments = {name: kernel_alignment(K, y) for name, K in grams.items()}
for name in sorted(alignments, key=alignments.get, reverse=True):
    print(f"{alignments[name]:.3f}  {name}")

# %%
# Where two balls do not meet the GCS kernel is exactly 0, so its matrix is sparse.
K = grams["GCS"]
print(f"{K.nnz / np.prod(K.shape):.1%} of the entries are stored")
