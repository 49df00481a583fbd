"""Clusters of two rings by the graph of neighbors."""

import matplotlib.pyplot as plt
from sklearn.datasets import make_circles

from hilbin.estimators import GraphClustering, KernelKMeans
from hilbin.kernels import Gaussian

X, _ = make_circles(400, factor=0.4, noise=0.06, random_state=0)
figure, both = plt.subplots(1, 2, figsize=(7, 3.2), sharey=True)
for axes, model, title in (
    (both[0], KernelKMeans(2, kernel=Gaussian("median")), "KernelKMeans"),
    (both[1], GraphClustering(2), "GraphClustering"),
):
    axes.scatter(*X.T, c=model.fit_predict(X), s=8, cmap="coolwarm")
    axes.set_title(title, fontsize=9)
    axes.set_aspect("equal")
