"""
Train on compressed features
============================

A product quantizer replaces each group of a few numbers by the index of the nearest codeword, which
takes a thirtieth of the memory. A model is trained directly on these codes, but its weights refer
to the original features, so it can predict rows that were never coded.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler

from hilbin.estimators import MapSVC
from hilbin.maps import ProductQuantizer

# %%
# The rows are long and dense: 2048 random features of the handwritten digits.
X, y = load_digits(return_X_y=True)
Z = RBFSampler(gamma=0.001, n_components=2048, random_state=0).fit_transform(X)
Z = Z.astype(np.float32)
train, test = slice(0, 1200), slice(1200, None)
print(f"{Z[train].nbytes / 1e6:.1f} MB of float32")

# %%
# Every part of 8 numbers becomes one of 64 words, which are learned from the training rows.
quantizer = ProductQuantizer(part_size=8, n_words=64, random_state=0).fit(Z[train])
codes = quantizer.transform(Z[train])
print(codes)
print(f"squared error: {quantizer.error_:.2f} of the variance")

# %%
# A model trained on the codes is compared with one trained on the rows.
plain = MapSVC(C=0.1).fit(Z[train], y[train])
coded = MapSVC(C=0.1).fit(codes, y[train])
for name, model in (("rows", plain), ("codes", coded)):
    print(f"trained on {name}: {model.score(Z[test], y[test]):.3f}, {model.n_iter_} passes")

# %%
# From one byte per 4 numbers to one byte per 64, the accuracy hardly falls here, since the 2048
# features are redundant.
sizes = (4, 8, 16, 32, 64)
accuracy, megabytes = [], []
for size in sizes:
    small = ProductQuantizer(size, n_words=64, random_state=0).fit_transform(Z[train])
    accuracy.append(MapSVC(C=0.1).fit(small, y[train]).score(Z[test], y[test]))
    megabytes.append(small.nbytes / 1e6)

figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.axhline(plain.score(Z[test], y[test]), color="0.6", label="float32 rows")
axes.plot(megabytes, accuracy, "o-", label="codes")
for size, x, height in zip(sizes, megabytes, accuracy, strict=True):
    axes.annotate(f"{4 * size}:1", (x, height), (0, -16), textcoords="offset points", ha="center")
axes.set(xscale="log", xlabel="MB of training rows", ylabel="test accuracy")
axes.set(ylim=(0.8, 1))
axes.set_xticks(megabytes, [f"{x:.2f}" for x in megabytes])
axes.set_xticks([], minor=True)
axes.legend(loc="lower right")
plt.show()
