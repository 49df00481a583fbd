"""Draw which part of an image won: the best box, and what cells contribute to its score."""

from typing import Any

import numpy as np

from hilbin.plot.matrix import pyplot_or_error


def localization(
    explanation: Any, *, truth: Any = None, opacity: float = 0.55, ax: Any = None
) -> Any:
    """Draw the best box of an image over the contributions of its cells.

    Parameters
    ----------
    explanation : BoxExplanation
        One of those that :meth:`hilbin.detect.BoxLocalizer.explain` returns.
    truth : array-like of shape (4,), optional
        The true box ``[x0, y0, x1, y1)`` in pixels; its edges are dashed.
    opacity : float, default=0.55
        Opacity of the contributions, from 0 to 1.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from hilbin.detect import BoxExplanation
    >>> from hilbin.plot import localization
    >>> image = np.zeros((16, 24), np.uint8)
    >>> cells = np.array([[1.0, 2.0, -1.0], [0.5, 1.0, -2.0]])
    >>> found = BoxExplanation(np.array([0.0, 0.0, 16.0, 16.0]), 4.5, cells, image)
    >>> localization(found).get_title()
    'score of the box: 4.5'
    """
    pyplot = pyplot_or_error()
    if not 0 <= opacity <= 1:
        raise ValueError(f"opacity must be from 0 to 1, got {opacity!r}")
    height, width = explanation.image.shape[:2]
    if ax is None:
        _, ax = pyplot.subplots(figsize=(5.2, 0.6 + 4.4 * height / width), layout="constrained")
    extent = (0, width, height, 0)
    ax.imshow(explanation.image, cmap="gray", extent=extent)
    most = float(np.abs(explanation.cells).max()) or 1.0
    drawn = ax.imshow(
        explanation.cells, cmap="BrBG", vmin=-most, vmax=most, extent=extent, alpha=opacity
    )
    _draw_box(ax, pyplot, explanation.box, edgecolor="black", linewidth=2.5)
    if truth is not None:
        _draw_box(ax, pyplot, truth, edgecolor="black", linewidth=1.5, linestyle="--")
    ax.set_xticks([])
    ax.set_yticks([])
    bar = ax.figure.colorbar(drawn, ax=ax, shrink=0.8)
    bar.set_label("contribution of a cell", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    ax.set_title(f"score of the box: {explanation.score:.3g}", fontsize=10)
    return ax


def _draw_box(ax: Any, pyplot: Any, box: Any, **style: Any) -> None:
    x0, y0, x1, y1 = (float(edge) for edge in box)
    ax.add_patch(pyplot.Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, **style))
