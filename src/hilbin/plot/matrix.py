"""Gram matrices as pictures: sorted by class, and sparse ones before and after reordering.

If the kernel suits the labels, the matrix sorted by class has bright squares on the diagonal
(Lampert, *Kernel Methods in Computer Vision*, Figure 2.7); their contrast as a number is
:func:`hilbin.kernels.kernel_alignment`. A sparse matrix in the order of
:func:`hilbin.kernels.reorder` has its entries in a band (Boughorbel, Tarel, Fleuret and Boujemaa,
*GCS Kernel for SVM-Based Image Recognition*, Figure 2).
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_consistent_length, column_or_1d

from hilbin._arrays import Array, to_dense
from hilbin.kernels import kernel_alignment, reorder

MAX_PIXELS = 1000
BAND = "tab:red"


def kernel_matrix(K: Any, y: Any, *, ax: Any = None, title: str | None = None) -> Any:
    """Draw ``K`` with rows and columns sorted by class and lines between the classes.

    Parameters
    ----------
    K : array-like or sparse of shape (n, n)
        Gram matrix. If it has more than 1000 rows, a pixel shows the mean of several entries.
    y : array-like of shape (n,)
        Class labels.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.
    title : str, optional
        Title, to which the centered alignment is added.

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
    pyplot = pyplot_or_error()
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


def reordering(K: Any, *, axes: Any = None) -> Array:
    """Draw where ``K`` is not zero, as it is and in the order of :func:`hilbin.kernels.reorder`.

    Parameters
    ----------
    K : sparse or array-like of shape (n, n)
        Symmetric matrix. If it has more than 1000 rows, a pixel shows the share of entries that are
        not zero.
    axes : array of two matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    axes : ndarray of two matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from hilbin.kernels import GCS
    >>> from hilbin.plot import reordering
    >>> x = np.random.default_rng(0).uniform(0, 50, size=(200, 1))
    >>> axes = reordering(GCS(radius=0.5).gram(x))
    >>> print(axes[0].get_title())
    as given
    96 % zeros
    """
    pyplot = pyplot_or_error()
    found = reorder(K)  # also checks the shape
    if axes is None:
        _, axes = pyplot.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
    axes = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if axes.size != 2:
        raise ValueError(f"axes must be two, got {axes.size}")
    pattern = sp.csr_array(K) != 0
    n = found.order.size
    shown = pattern.astype(np.float64)
    for ax, order in zip(axes, (np.arange(n), found.order), strict=True):
        pixels = _averaged(shown, order)
        ax.imshow(pixels, cmap="Greys", vmin=0, extent=(0, n, n, 0))
        ax.tick_params(labelsize=8)
    for start, end in (((found.bandwidth, 0), (n, n - found.bandwidth)),
                       ((0, found.bandwidth), (n - found.bandwidth, n))):  # fmt: skip
        axes[1].plot(*zip(start, end, strict=True), color=BAND, linewidth=1)
    axes[0].set_title(f"as given\n{100 * (1 - found.density):.0f} % zeros", fontsize=9)
    axes[1].set_title(
        f"reverse Cuthill–McKee\nband of {found.bandwidth}: {100 * found.coverage:.0f} % of it all",
        fontsize=9,
    )
    return axes


def _averaged(K: Any, order: Array) -> Array:
    """Return ``K`` in this order, averaged over pixels if it has more rows than these."""
    n = order.size
    if n <= MAX_PIXELS:
        K = to_dense(K)
        return K[np.ix_(order, order)]
    pixel = np.empty(n, dtype=np.intp)
    pixel[order] = np.arange(n) * MAX_PIXELS // n
    pool = sp.csr_array((np.ones(n), (pixel, np.arange(n))), shape=(MAX_PIXELS, n))
    pool = sp.diags_array(1 / pool.sum(axis=1)) @ pool
    means = pool @ (pool @ K).T
    return to_dense(means)


def pyplot_or_error() -> Any:
    """Return matplotlib's ``pyplot``, or raise an error that says how to get it."""
    try:
        import matplotlib.pyplot as pyplot
    except ImportError as error:
        raise ImportError('pictures need matplotlib: pip install "hilbin[plot]"') from error
    return pyplot
