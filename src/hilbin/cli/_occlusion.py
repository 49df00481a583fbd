"""Heat maps where scores are no sums: cover a part of the image and see what the score loses.

The image is cut into cells; every cell in turn is painted with the mean color of the image, and
what the scores lose by that is the cell's. The losses do not sum to the score: they say what the
score would be without one part, while all other parts stay.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilbin import parallel
from hilbin.cli._classifiers import class_scores

CELLS = 8  # along a side
NOTE = (
    "The kernel is an exponential, whose scores are no sums over the image. Shown is what a score "
    f"loses when one of {CELLS} by {CELLS} cells is painted over."
)

Array = NDArray[Any]


def losses(features: Any, classifier: Any, image: Array) -> NDArray[np.float64]:
    """What the scores lose by every cell, shape (rows, columns, n_classes).

    Parameters
    ----------
    features : ImageTransformer
        Fitted.
    classifier : classifier of rows
    image : uint8 array
        As the features read it.
    """
    edges = [np.linspace(0, side, min(CELLS, side) + 1).astype(int) for side in image.shape[:2]]
    shape = edges[0].size - 1, edges[1].size - 1
    blank = np.rint(image.mean(axis=(0, 1))).astype(np.uint8)
    rows: list[Any] = [None] * (1 + shape[0] * shape[1])

    def task(begin: int, end: int) -> None:
        for at in range(begin, end):
            covered = image.copy()
            if at > 0:
                y, x = divmod(at - 1, shape[1])
                covered[edges[0][y] : edges[0][y + 1], edges[1][x] : edges[1][x + 1]] = blank
            rows[at] = features.transform_image(covered)

    parallel.run(task, parallel.ranges(len(rows), 4), None)
    scores = class_scores(classifier, np.array(rows))
    return (scores[0] - scores[1:]).reshape(*shape, -1)
