"""Sizes of model files: pickle, plain and compact."""

import pickle
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import hilbin
from hilbin.estimators import IntersectionSVC

rng = np.random.default_rng(0)
X, y = rng.gamma(0.3, size=(300, 1000)), np.arange(300) % 3
model = IntersectionSVC(n_bins=31).fit(X + 0.2 * (y[:, None] == np.arange(1000) % 3), y)
with tempfile.TemporaryDirectory() as folder:
    sizes = {"pickle": len(pickle.dumps(model))}
    for name, compact in (("hilbin.save", False), ("hilbin.save, compact=True", True)):
        path = Path(folder) / name
        hilbin.save(model, path, compact=compact)
        sizes[name] = path.stat().st_size
axes = plt.figure(figsize=(6, 1.8)).gca()
axes.barh([*sizes][::-1], [size / 1e6 for size in sizes.values()][::-1])
axes.set_xlabel("size of the file, MB")
