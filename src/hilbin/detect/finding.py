"""From templates and a pyramid to boxes.

The scores of all windows of all templates, those at or above a threshold, greedy suppression of
windows that overlap a better one across all templates, and boxes clipped to the image at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hilbin._arrays import Array
from hilbin.detect.boxes import Boxes, suppress
from hilbin.detect.pyramid import Levels, Shape
from hilbin.detect.template import CONTEXT, Template

LOW = -1.5  # threshold of detections that average precision is computed of
MOST = 4000  # windows that are compared with each other


@dataclass(frozen=True, eq=False)
class Found:
    """Windows that were found in one image, by falling score.

    Parameters
    ----------
    component : int array of shape (n,)
        Which template found the window.
    window : int array of shape (n,)
        Number of the window among those of the template.
    boxes : Boxes
        Boxes and scores, clipped to the image.
    """

    component: Array
    window: Array
    boxes: Boxes


def all_roots(templates: Sequence[Template], pyramid: Levels) -> list[Array]:
    """Return the root scores of all windows for every template; those of one shape share a pass."""
    by_shape: dict[Shape, list[int]] = {}
    for number, template in enumerate(templates):
        by_shape.setdefault(template.shape, []).append(number)
    scores: dict[int, Array] = {}
    for numbers in by_shape.values():
        found = pyramid.filter_scores(np.stack([templates[k].root for k in numbers]))
        scores |= dict(zip(numbers, found, strict=True))
    return [scores[k] for k in range(len(templates))]


def all_scores(
    templates: Sequence[Template], pyramid: Levels, *, exact: bool = False
) -> list[Array]:
    """Return the scores of all windows for every template."""
    roots = all_roots(templates, pyramid)
    return [
        template.with_parts(pyramid, root, exact=exact)
        for template, root in zip(templates, roots, strict=True)
    ]


def find(
    scores: Sequence[Array],
    templates: Sequence[Template],
    pyramid: Levels,
    threshold: float,
    limit: float,
) -> Found:
    """Return the windows at or above a threshold that no better one overlaps.

    Parameters
    ----------
    scores : sequence of arrays
        Scores of all windows for every template.
    templates : sequence of Template
    pyramid : Levels
    threshold : float
        Least score.
    limit : float
        Largest IoU of two windows that are both kept.
    """
    windows = [np.flatnonzero(s >= threshold) for s in scores]
    component = np.repeat(np.arange(len(windows)), [len(w) for w in windows])
    window = np.concatenate(windows)
    values = np.concatenate([s[w] for s, w in zip(scores, windows, strict=True)])
    if len(values) > MOST:
        best = np.sort(np.argpartition(-values, MOST)[:MOST])
        component, window, values = component[best], window[best], values[best]
    coordinates = np.concatenate(
        [
            pyramid.boxes(window[component == k], template.shape, CONTEXT)
            for k, template in enumerate(templates)
        ]
    )
    kept = suppress(coordinates, values, limit=limit)
    height, width = pyramid.size
    boxes = Boxes(coordinates[kept], scores=values[kept]).clipped(width, height)
    return Found(component[kept], window[kept], boxes)
