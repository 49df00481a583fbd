"""The Gram matrix as a picture, sorted by class.

If the kernel suits the labels, bright squares stand on the diagonal (Lampert, *Kernel Methods in
Computer Vision*, Figure 2.7); their contrast as a number is
:func:`hilbin.kernels.kernel_alignment`.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_consistent_length, column_or_1d

from hilbin._arrays import Array
from hilbin.kernels.alignment import kernel_alignment

MAX_PIXELS = 1000


def kernel_matrix(K: Any, y: Any, *, ax: Any = None, title: str | None = None) -> Any:
    """Draw ``K`` with rows and columns sorted by class and lines between the classes.

    Parameters
    ----------
    K : array-like or sparse of shape (n, n)
        Gram matrix. More than 1000 rows are averaged down to that many pixels.
    y : array-like of shape (n,)
        Class labels.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    title : str, optional
        Printed above, before the centered alignment.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_digits
    >>> from hilbin.kernels import Chi2
    >>> from hilbin.plot import kernel_matrix
    >>> X, y = load_digits(return_X_y=True)
    >>> ax = kernel_matrix(Chi2().gram(X[:200]), y[:200], title="Chi2")
    >>> ax.get_title()
    'Chi2, alignment 0.64'
    """
    pyplot = _pyplot()
    alignment = kernel_alignment(K, y)  # also checks the shapes
    labels = column_or_1d(y)
    check_consistent_length(K, labels)
    order = np.argsort(labels, kind="stable")
    classes, counts = np.unique(labels, return_counts=True)
    n = labels.size

    if ax is None:
        _, ax = pyplot.subplots(figsize=(5, 4.4), layout="constrained")
    pixels = _averaged(K, order)
    image = ax.imshow(pixels, cmap="viridis", extent=(0, n, n, 0), interpolation="nearest")
    ends = np.cumsum(counts)
    for end in ends[:-1]:
        ax.axhline(end, color="white", linewidth=0.5)
        ax.axvline(end, color="white", linewidth=0.5)
    middles = ends - counts / 2
    ax.set_xticks(middles, classes)
    ax.set_yticks(middles, classes)
    ax.tick_params(length=0, labelsize=8)
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
    ax.set_title(f"{title}, alignment {alignment:.2f}" if title else f"alignment {alignment:.2f}")
    return ax


def _averaged(K: Any, order: Array) -> Array:
    """``K`` in this order, by block means if it has more rows than pixels."""
    n = order.size
    if n <= MAX_PIXELS:
        K = K.toarray() if sp.issparse(K) else np.asarray(K)
        return K[np.ix_(order, order)]
    pixel = np.empty(n, dtype=np.intp)
    pixel[order] = np.arange(n) * MAX_PIXELS // n
    blocks = sp.csr_array((np.ones(n), (pixel, np.arange(n))), shape=(MAX_PIXELS, n))
    blocks = sp.diags_array(1 / blocks.sum(axis=1)) @ blocks
    means = blocks @ (blocks @ K).T
    return means.toarray() if sp.issparse(means) else np.asarray(means)


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as pyplot
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install hilbin[plot]") from error
    return pyplot
