"""A sparse Gram matrix as a picture, before and after its rows are reordered.

Figure 2 of Boughorbel, Tarel, Fleuret and Boujemaa, *GCS Kernel for SVM-Based Image Recognition*:
what is not zero, as given and by :func:`hilbin.kernels.reorder`, with the band that holds it all.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array
from hilbin.kernels import reorder
from hilbin.plot.matrix import _averaged, _pyplot

BAND = "tab:red"


def reordering(K: Any, *, axes: Any = None) -> Array:
    """Draw where ``K`` is not zero, as it is and in the order of :func:`hilbin.kernels.reorder`.

    Parameters
    ----------
    K : sparse or array-like of shape (n, n)
        Symmetric. Of more than 1000 rows, a pixel shows the share of entries that are not zero.
    axes : array of two matplotlib Axes, optional
        Where to draw; a new figure by default.

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
    pyplot = _pyplot()
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
