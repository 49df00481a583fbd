"""Pictures of detectors: their filters as strokes, and what the cells of a window add to its score.

A cell is drawn as strokes along its edges, which are at right angles to its gradients: one for each
of nine orientations, the darker the larger its weight.
"""

from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.plot.matrix import pyplot_or_error

ORIENTATIONS = 9
STROKE = 0.45  # half the length of a stroke, in cells
PART_SCALE = 0.5  # nodes are half a cell apart
HEAT = 0.8  # opacity of the cell that adds most


def detector_filters(detector: Any, *, axes: Any = None) -> Array:
    """Draw the filters of a detector as strokes.

    Every template has two pictures: edges that speak for the object, of positive weights, and those
    that speak against it, of negative ones. Parts are frames where they are at rest.

    Parameters
    ----------
    detector : DeformableDetector
        A fitted detector.
    axes : array of matplotlib Axes, optional
        Axes to draw on, two for every template; a new figure by default.

    Returns
    -------
    axes : ndarray of matplotlib Axes of shape (n_templates, 2)

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from hilbin.detect import DeformableDetector
    >>> from hilbin.plot import detector_filters
    >>> images = np.random.default_rng(0).integers(0, 80, (3, 96, 128), np.uint8)
    >>> images[:, 20:60, 30:70] += 120
    >>> detector = DeformableDetector(area=1600).fit(images, [[[30, 20, 70, 60]]] * 3)
    >>> axes = detector_filters(detector)
    >>> axes[0, 0].get_title()
    'for'
    """
    pyplot = pyplot_or_error()
    templates = detector.templates_
    if axes is None:
        size = 5.6, 2.9 * len(templates)
        axes = pyplot.subplots(len(templates), 2, figsize=size, layout="constrained")[1]
    grid = np.asarray(axes, object).reshape(-1, 2)
    if len(grid) != len(templates):
        raise ValueError(f"axes must be two for each of {len(templates)} templates")
    for template, pair in zip(templates, grid, strict=True):
        for ax, sign, title in zip(pair, (1, -1), ("for", "against"), strict=True):
            _draw_cells(ax, np.maximum(sign * template.root, 0))
            ax.set_title(title, fontsize=9)
            for anchor in template.anchors:
                _frame(ax, anchor)
    return grid


def detection_heat(image: Any, reasons: Any, *, ax: Any = None) -> Any:
    """Draw what the cells of a window add to its score over the image.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, 3)
        The image.
    reasons : BoxReasons
        What :func:`~hilbin.detect.explain_box` says.
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
    >>> from hilbin.detect import DeformableDetector, explain_box
    >>> from hilbin.plot import detection_heat
    >>> images = np.random.default_rng(0).integers(0, 80, (3, 96, 128), np.uint8)
    >>> images[:, 20:60, 30:70] += 120
    >>> detector = DeformableDetector(area=1600).fit(images, [[[30, 20, 70, 60]]] * 3)
    >>> ax = detection_heat(images[0], explain_box(detector, images[0], [30, 20, 70, 60]))
    >>> len(ax.images)
    2
    """
    pyplot = pyplot_or_error()
    if ax is None:
        _, ax = pyplot.subplots(layout="constrained")
    picture = np.asarray(image)
    height, width = picture.shape[:2]
    ax.imshow(picture, cmap="gray", extent=(0, width, height, 0))
    most = float(np.abs(reasons.contributions).max()) or 1.0
    x0, y0, x1, y1 = reasons.window
    ax.imshow(
        reasons.contributions,
        cmap="RdBu_r",
        vmin=-most,
        vmax=most,
        alpha=HEAT * np.abs(reasons.contributions) / most,
        extent=(x0, x1, y1, y0),
        interpolation="nearest",
    )
    ax.set_xlim(min(0, x0), max(width, x1))
    ax.set_ylim(max(height, y1), min(0, y0))
    ax.set_title(f"score {reasons.score:.2f}", fontsize=9)
    ax.set_axis_off()
    return ax


def _draw_cells(ax: Any, weights: Array) -> None:
    """Draw cells (rows, 32, columns) of numbers >= 0 as strokes."""
    from matplotlib.collections import LineCollection

    directed = weights[:, : 2 * ORIENTATIONS].reshape(len(weights), 2, ORIENTATIONS, -1)
    undirected = weights[:, 2 * ORIENTATIONS : 3 * ORIENTATIONS]
    strength = directed.sum(axis=1) + undirected  # rows, orientations, columns
    strength = strength / (float(strength.max()) or 1.0)
    rows, columns = weights.shape[0], weights.shape[2]
    angle = np.pi * np.arange(ORIENTATIONS) / ORIENTATIONS + np.pi / 2  # of the edges
    y, k, x = np.indices(strength.shape).reshape(3, -1)
    half = STROKE * np.stack([np.cos(angle[k]), np.sin(angle[k])], axis=1)
    middle = np.stack([x + 0.5, y + 0.5], axis=1)
    shown = strength.ravel()
    order = np.argsort(shown)
    ends = np.stack([middle - half, middle + half], axis=1)[order]
    colors = np.zeros((shown.size, 4))
    colors[:, 3] = shown[order]
    ax.add_collection(LineCollection([*ends], colors=colors, linewidths=1.6))
    ax.set_xlim(0, columns)
    ax.set_ylim(rows, 0)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])


def _frame(ax: Any, anchor: Array) -> None:
    """Draw the frame of a part of 6 by 6 nodes; node 0 is at the corner of the window."""
    from matplotlib.patches import Rectangle

    y, x = PART_SCALE * (anchor - 0.5)
    ax.add_patch(Rectangle((x, y), 3, 3, fill=False, edgecolor="#d55e00", linewidth=1.2))
