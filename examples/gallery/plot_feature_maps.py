"""
Feature maps
============

A feature map turns rows into features whose inner products approximate a kernel, so that a linear
model can replace a kernel machine. This example shows how many features a value needs for the
chi-squared kernel, and how accurate classifiers on such features are.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.svm import SVC, LinearSVC

from hilbin.kernels import Chi2, Exponential
from hilbin.maps import AdditiveMap, FourierMap, NystroemMap

# %%
# The handwritten digits of scikit-learn, as histograms that sum to 1. The chi-squared kernel adds
# up :math:`k(a, b) = 2 a b / (a + b)` over bins, so a map of single values suffices. Its error is
# measured on a thousand values, spread evenly among those of the data that are not 0.
X, y = load_digits(return_X_y=True)
X = normalize(X, norm="l1")
values = np.quantile(X[X > 0], (np.arange(1000) + 0.5) / 1000)[:, None]
K = Chi2().gram(values)


def error(feature_map):
    """Root mean square error over pairs of values, relative to the kernel."""
    Z = feature_map.fit(values).transform(values)
    return np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K)


# %%
# The error of :math:`N` features is at least that of the eigenvalues of the kernel matrix beyond
# the first :math:`N`. The fitted series is nearly as good. With other parameters the series has
# other guarantees: "universal" serves any data up to the same largest value, "Zolotarev" has the
# least worst relative error. The maps that sample the spectrum, scikit-learn's among them, have
# pairs of features and a constant, an odd number.
components = np.arange(1, 10)
eigenvalues = np.linalg.eigvalsh(K)[::-1]
bound = [np.linalg.norm(eigenvalues[n:]) / np.linalg.norm(K) for n in components]
lines = {
    "Chebyshev": ("#a0a0a0", {"method": "chebyshev"}),
    "harmonic, best step": ("#606060", {"method": "harmonic"}),
    "series, universal": ("#7bccc4", {"parameters": "universal"}),
    "series, greedy": ("#4eb3d3", {"parameters": "greedy"}),
    "series, Zolotarev": ("#2b8cbe", {"parameters": "zolotarev"}),
    "series, fitted": ("#084081", {"parameters": "fit", "method": "series"}),
}

# %%
fig, ax = plt.subplots(figsize=(8.6, 5), layout="constrained")
ax.plot(components, bound, color="#fee391", linewidth=9, solid_capstyle="round")
ax.annotate(
    "least possible",
    (6, bound[5]),
    (-16, -10),
    textcoords="offset points",
    ha="right",
    color="#b8860b",
)
for name, (color, options) in lines.items():
    counts = components if "parameters" in options else components[::2]
    errors = [error(AdditiveMap(Chi2(), int(n), **options)) for n in counts]
    ax.plot(counts, errors, "o-", markersize=4, color=color)
    aside = {"series, greedy": 6, "series, Zolotarev": -5}.get(name, 0)
    at = {"xytext": (9, aside), "textcoords": "offset points", "va": "center"}
    ax.annotate(name, (9, errors[-1]), **at, color=color)
sampler = [error(AdditiveChi2Sampler(sample_steps=steps)) for steps in (1, 2, 3)]
ax.plot([1, 3, 5], sampler, "s-", markersize=5, color="#d94801")
ax.annotate(
    "scikit-learn",
    (5, sampler[-1]),
    (9, -2),
    textcoords="offset points",
    va="center",
    color="#d94801",
)
ax.set(
    yscale="log",
    xlim=(0.8, 9.2),
    xticks=components,
    xlabel="features per value",
    ylabel="relative error of the kernel",
    title="Maps of the chi-squared kernel on the values of the digits",
)
ax.spines[["top", "right"]].set_visible(False)
ax.grid(axis="y", alpha=0.3)
plt.show()

# %%
# A linear SVM is trained on the raw histograms, on the features of the chi-squared kernel, and
# on features of its exponential; the last line is the SVM with the exact kernel. ``FourierMap`` and
# ``NystroemMap`` take the length scale from the training rows.
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
exponential = Exponential(Chi2(), gamma="median")


def linear(*maps):
    return make_pipeline(*maps, LinearSVC(C=10, random_state=0))


machines = {
    "raw histograms": linear(),
    "AdditiveMap(Chi2())": linear(AdditiveMap(Chi2())),
    "NystroemMap, 300 landmarks": linear(NystroemMap(exponential, 300, random_state=0)),
    "FourierMap, 1024 features": linear(FourierMap(exponential, 1024, random_state=0)),
    "exact kernel, SVC": SVC(kernel=exponential.resolve(X_train), C=10),
}
print(f"{'':28}{'accuracy':>8}{'train':>9}{'predict':>10}")
for name, machine in machines.items():
    start = perf_counter()
    machine.fit(X_train, y_train)
    trained = perf_counter()
    accuracy = machine.score(X_test, y_test)
    times = trained - start, perf_counter() - trained
    print(f"{name:28}{accuracy:8.1%}{times[0]:7.2f} s{times[1] * 1e3:7.0f} ms")

# %%
# With a thousand training rows the exact SVM is as fast as the others. Its time grows with the
# square of the number of rows or faster, that of the others in proportion.
