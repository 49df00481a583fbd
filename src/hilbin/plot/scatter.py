"""Clusters as points in two coordinates, or by their most typical pictures."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.plot.matrix import pyplot_or_error
from hilbin.plot.pictures import montage

OUTLIERS = "0.7"  # gray


def clusters(
    coordinates: Any,
    labels: Any,
    *,
    images: Sequence[Any] | None = None,
    n_images: int = 10,
    size: int = 64,
    ax: Any = None,
) -> Any:
    """Draw clusters: rows as points of two coordinates, or a row of pictures for each cluster.

    Parameters
    ----------
    coordinates : array-like of shape (n_samples, n_coordinates)
        Coordinates of rows, as of :class:`hilbin.estimators.KernelPCA`. Points are drawn at the
        first two; pictures are those nearest to the mean of their cluster in all.
    labels : array-like of shape (n_samples,)
        Cluster of each row; -1 is none, drawn in gray.
    images : sequence of arrays of shape (height, width) or (height, width, 3), optional
        Pictures of the rows, drawn instead of points: a line for each cluster, the most typical
        first.
    n_images : int, default 10
        Most pictures of a cluster.
    size : int, default 64
        Most pixels of the height and the width of a picture.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_digits
    >>> from hilbin.estimators import KernelPCA, KernelPCAClustering
    >>> from hilbin.plot import clusters
    >>> digits = load_digits()
    >>> T = KernelPCA(n_components=10).fit_transform(digits.data[:300])
    >>> labels = KernelPCAClustering(10).fit_predict(digits.data[:300])
    >>> ax = clusters(T, labels)
    >>> len(ax.texts)
    10
    >>> ax = clusters(T, labels, images=digits.images[:300], n_images=5)
    >>> ax.images[0].get_array().shape
    (91, 46)
    """
    T, labels = _checked(coordinates, labels)
    present = np.unique(labels[labels >= 0])
    if images is None:
        return _points(T, labels, present, ax)
    if len(images) != len(T):
        raise ValueError(f"there are {len(images)} images for {len(T)} rows of coordinates")
    chosen, cells = [], []
    for line, cluster in enumerate(present):
        members = np.flatnonzero(labels == cluster)
        squares = np.square(T[members] - T[members].mean(axis=0)).sum(axis=1)
        typical = members[np.argsort(squares, kind="stable")[:n_images]]
        chosen += [images[i] for i in typical]
        cells += [(line, column) for column in range(typical.size)]
    return montage(chosen, cells, size=size, ax=ax)


def _checked(coordinates: Any, labels: Any) -> tuple[Array, Array]:
    T, labels = np.asarray(coordinates, np.float64), np.asarray(labels)
    if T.ndim != 2 or T.shape[1] < 2:
        raise ValueError(f"coordinates must have two columns or more, got shape {T.shape}")
    if labels.shape != (len(T),):
        raise ValueError(f"labels have shape {labels.shape}, but there are {len(T)} rows")
    if not np.isfinite(T).all():
        raise ValueError("coordinates have values that are not finite")
    if not (labels >= 0).any():
        raise ValueError("labels have no cluster: all are below 0")
    return T, labels


def _points(T: Array, labels: Array, present: Array, ax: Any) -> Any:
    pyplot = pyplot_or_error()
    if ax is None:
        _, ax = pyplot.subplots(layout="constrained")
    outside = labels < 0
    if outside.any():
        ax.scatter(*T[outside, :2].T, s=8, color=OUTLIERS, linewidths=0)
    colors = pyplot.get_cmap("tab20")(np.arange(present.size) % 20)
    for cluster, color in zip(present, colors, strict=True):
        members = T[labels == cluster, :2]
        ax.scatter(*members.T, s=8, color=color, linewidths=0)
        ax.text(
            *np.median(members, axis=0),
            str(cluster),
            ha="center",
            va="center",
            bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": color},
        )
    ax.set_xlabel("first coordinate")
    ax.set_ylabel("second coordinate")
    return ax
