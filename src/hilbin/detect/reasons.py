r"""Why a detector gives a box its score: what every cell of its window adds.

The score of a window is a sum over its cells,

.. math:: s = b + \sum_{y, x} \langle F[y, x], X[y, x] \rangle + \sum_p s_p ,

with the bias :math:`b`, the filter :math:`F` of the template, the cells :math:`X` of the window,
and the scores :math:`s_p` of the parts. Of the windows that meet the box, the one of highest score
is explained, so that a box that was missed has a reason as well.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.detect.boxes import as_coordinates
from hilbin.detect.learning import overlaps

NEAR = 0.7  # IoU from which windows compete by their score alone
LEAST = 0.2  # IoU below which a window does not meet the box


@dataclass(frozen=True, eq=False)
class BoxReasons:
    """What each cell of a window contributes to its score.

    Parameters
    ----------
    score : float
        ``bias + contributions.sum() + parts``.
    window : array of shape (4,)
        The window in pixels of the image, with one cell of context around the thing.
    overlap : float
        IoU of the window, without its context, and the box.
    template : int
        Which template of the detector.
    cells : array of shape (rows, columns, 32)
        The oriented gradients that the filter sees.
    contributions : array of shape (rows, columns)
        What every cell adds to the score.
    bias, parts : float
        Constant of the template, and what its parts add.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import BoxReasons
    >>> adds = np.array([[0.5, 1.0]])
    >>> BoxReasons(1.0, np.zeros(4), 0.9, 0, np.zeros((1, 2, 32)), adds, -0.5, 0.0).score
    1.0
    """

    score: float
    window: Array
    overlap: float
    template: int
    cells: Array
    contributions: Array
    bias: float
    parts: float


def explain_box(detector: Any, image: Any, box: Any) -> BoxReasons | None:
    """Explain the score that a detector gives to a box.

    Parameters
    ----------
    detector : DeformableDetector
        A fitted detector.
    image : path or array
        The image.
    box : array-like of shape (4,)
        ``[x0, y0, x1, y1)`` in pixels: something that was found, or that was missed.

    Returns
    -------
    reasons : BoxReasons or None
        None if no window overlaps the box because it is too small or too large.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import DeformableDetector, explain_box
    >>> images = np.random.default_rng(0).integers(0, 80, (4, 64, 64), np.uint8)
    >>> images[:, 10:42, 20:52] += 120
    >>> detector = DeformableDetector(area=1024).fit(images, [[[20, 10, 52, 42]]] * 4)
    >>> reasons = explain_box(detector, images[0], [20, 10, 52, 42])
    >>> reasons.contributions.shape
    (6, 6)
    >>> bool(np.isclose(reasons.bias + reasons.contributions.sum(), reasons.score, atol=1e-4))
    True
    """
    wanted = as_coordinates([box], "box")
    pyramid = detector.pyramid(image)
    found = [
        (*_best_window(template, pyramid, wanted), number)
        for number, template in enumerate(detector.templates_)
    ]
    score, window, overlap, number = max(found)
    if not np.isfinite(score):
        return None
    template = detector.templates_[number]
    level, y, x = (int(v[0]) for v in pyramid.places(np.array([window]), template.shape))
    cells = np.asarray(pyramid.window(level, y, x, template.shape), np.float64)
    contributions = (template.root * cells).sum(axis=1)
    return BoxReasons(
        score,
        pyramid.boxes(np.array([window]), template.shape)[0],
        overlap,
        number,
        cells.transpose(0, 2, 1),
        contributions,
        template.bias,
        float(score - template.bias - contributions.sum()) if template.n_parts else 0.0,
    )


def _best_window(template: Any, pyramid: Any, box: Array) -> tuple[float, int, float]:
    """Return the score, the number and the IoU of the window that meets a box best."""
    windows, iou = overlaps(pyramid, template.shape, box, LEAST)[0]
    if not windows.size:
        return -np.inf, -1, 0.0
    near = iou >= min(NEAR, iou.max())
    scores = template.scores(pyramid, exact=True)[windows]
    best = int(np.argmax(np.where(near, scores, -np.inf)))
    return float(scores[best]), int(windows[best]), float(iou[best])
