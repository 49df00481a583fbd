"""
Sparse Gram matrices
====================

The GCS kernel is the volume that two balls have in common, so it is exactly 0 for rows that are far
apart. Its Gram matrix is sparse; models train on it directly, and it can be reordered to a band.
Whether one can learn from it depends on the number of columns.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from hilbin.estimators import KernelSVC
from hilbin.kernels import GCS, Sparsity, reorder
from hilbin.plot import reordering

# %%
# Six hundred points are in the plane. The rule makes the balls so small that one pair in fifty
# meets.
plane = np.random.default_rng(0).uniform(size=(600, 2))
K = GCS(Sparsity(0.98)).resolve(plane).gram(plane)
print(f"{K.nnz} of {600 * 600} entries are stored")

# %%
# Reverse Cuthill-McKee brings neighbors together. What is not zero then lies in a narrow band.
reordering(K)
plt.show()

# %%
# Images are not points in a plane. If nine in ten pairs of digits are apart, in ten principal
# directions, the band is most of the matrix: a row has neighbors in all directions, and no order of
# the rows keeps all of them close.
X, y = load_digits(return_X_y=True)
few = PCA(10, random_state=0).fit_transform(X)
K = GCS(Sparsity(0.9)).resolve(few).gram(few)
reordering(K)
plt.show()

# %%
# The sparse matrix itself takes a seventh of the memory of the dense one, and the band five times
# that. An SVM is trained on it as it is, and prediction computes sparse rows.
found = reorder(K)
stored = K.data.nbytes + K.indices.nbytes + K.indptr.nbytes
print(f"dense {8 * len(X) ** 2 / 1e6:.1f} MB, CSR {stored / 1e6:.1f} MB, "
      f"band {8 * len(X) * (found.bandwidth + 1) / 1e6:.1f} MB")  # fmt: skip

# %%
# In many dimensions nearly all of a ball is close to its surface, so balls that just meet share
# hardly any volume. Below, nine entries in ten are 0 whatever the number of directions; the others
# change. The diagonal is 1; if the other entries of a row sum to much less, the matrix is close to
# the identity, and the model overfits. The kernel warns about this;
# here we look at it on purpose.
warnings.filterwarnings("ignore", "the Gram matrix of")
train, test = slice(0, 1000), slice(1000, None)
counts = (2, 3, 5, 8, 12, 20, 40)
others, accuracy = [], []
for count in counts:
    rows = PCA(count, random_state=0).fit(X[train]).transform(X)
    kernel = GCS(Sparsity(0.9)).resolve(rows[train], random_state=0)
    K = kernel.gram(rows[train])
    others.append(np.median(K.sum(axis=1) - 1))
    model = KernelSVC(kernel, C=10).fit(rows[train], y[train])
    accuracy.append(model.score(rows[test], y[test]))
    print(f"{count:2d} directions: others sum to {others[-1]:.2g}, accuracy {accuracy[-1]:.3f}")

figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
axes[0].axhline(1, color="0.7")
axes[0].semilogy(counts, others, "o-")
axes[0].set(xlabel="directions", title="sum of a row's other entries, median")
axes[1].plot(counts, accuracy, "o-")
axes[1].set(xlabel="directions", title="test accuracy", ylim=(0, 1))
plt.show()
