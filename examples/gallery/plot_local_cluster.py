"""
Fit on a Dask cluster
=====================

The same fit runs on one machine and on a Dask cluster: workers read files chunk by chunk and return
sums. Here the cluster is two workers on this machine; for another one, give its address in place of
the cluster, and a folder that all its workers see.
"""

import tempfile
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster
from sklearn.datasets import load_digits

from hilbin.kernels import Chi2
from hilbin.maps import AdditiveMap
from hilbin.stats import Moments
from hilbin.stream import as_chunks, fold

# %%
# A folder of shards: the handwritten digits of scikit-learn, thirty times with a little noise.
X, y = load_digits(return_X_y=True)
train, test = slice(0, 1500), slice(1500, None)
rng = np.random.default_rng(0)
home = tempfile.TemporaryDirectory()
for shard in range(30):
    noisy = np.abs(X[train] + rng.normal(scale=0.5, size=X[train].shape))
    np.save(Path(home.name) / f"X_{shard:02}.npy", noisy.astype(np.float32))
    np.save(Path(home.name) / f"y_{shard:02}.npy", y[train])

# %%
# ``as_chunks`` looks at the files and reads none of them. Chunks need not end where files do.
chunks = as_chunks(home.name, rows=500)
print(f"{chunks.n_rows} rows of {chunks.n_features} features in {len(chunks.sources)} files")

# %%
# The sums are moments of chi-squared features, with a target of 1 for the class of a row.
feature_map = AdditiveMap(Chi2(), n_components=3).fit(X[train])


def moments(chunk):
    """Return what one chunk adds to the sum."""
    return Moments.of(feature_map.transform(chunk.X), np.eye(10)[chunk.y])


# %%
# This cluster is in the process itself; ``processes=True`` starts worker processes instead, in
# a script below ``if __name__ == "__main__":``. ``fold`` takes the client, and a callback that is
# called with the number of rows summed so far.
done = []


def callback(rows, n_rows):
    done.append((perf_counter() - begin, rows))
    print(f"{rows:6} of {n_rows} rows", "#" * (30 * rows // n_rows))


with (
    LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster,
    Client(cluster) as client,
):
    begin = perf_counter()
    total = fold(chunks, moments, client=client, callback=callback)

# %%
# One process gives the same sums.
alone = fold(chunks, moments)
difference = np.abs(total.scatter - alone.scatter).max() / np.abs(alone.scatter).max()
print(f"largest relative difference: {difference:.1e}")

# %%
# Least squares needs nothing else.
ridge = total.scatter + 1.0 * np.eye(len(total.mean))
coef = np.linalg.solve(ridge, total.cross)
scores = (feature_map.transform(X[test]) - total.mean) @ coef + total.target_mean
print(f"test accuracy: {np.mean(scores.argmax(axis=1) == y[test]):.3f}")

# %%
# Every wave of chunks returns as one sum, while the next wave is computed.
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.step(*np.transpose([(0, 0), *done]), where="post")
axes.set(xlabel="seconds", ylabel="rows summed", ylim=0)
plt.show()

home.cleanup()
