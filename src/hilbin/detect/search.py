r"""The best box of an image: an exact search among all boxes of a grid of cells.

**Problem.** Over all boxes :math:`y` of whole cells that are not empty,

.. math:: \max_y f(y) + \Delta(y), \qquad f(y) = \sum_{c \in y} s_c \quad \text{or} \quad
          f(y) = \sum_j g_j(h_j(y)),

with scores :math:`s` of cells, or functions :math:`g_j` of how often word :math:`j` is in the box
(or of its number per cell of the box), also for the parts of the box in a spatial pyramid, and
:math:`\Delta = 1 - \mathrm{IoU}` with a true box, if one is given.

**Algorithm.** A sum over cells without a true box takes Kadane's algorithm for every pair of rows,
:math:`O(r^2 c)` for :math:`r \le c` rows and columns. All else is a best-first branch and bound
(efficient subwindow search). A set of boxes, an interval for every edge, has a smallest and a
largest box, :math:`a \subseteq y \subseteq b`, and is bounded by

- :math:`\sum_{c \in b} \max(s_c, 0) + \sum_{c \in a} \min(s_c, 0)` for sums over cells,
- :math:`\sum_j g_j^\uparrow(h_j(b)) + g_j^\downarrow(h_j(a))` for functions of counts, with
  :math:`g = g^\uparrow + g^\downarrow` a sum of one that rises and one that falls,
- :math:`\Delta \le 1 - |y^* \cap a| / |y^* \cup b|`.

A part of the box moves with its corners, so that it has a smallest and a largest one as well. Each
bound is the value itself if the set is one box. The set of the highest bound is split, until it is
one box, which is the best.

**Stopping rule.** The best box is found, or ``max_nodes`` sets have been looked at: then the best
box known is returned with ``gap``, how much better another one might be.

**Reference.** C. Lampert, M. Blaschko and T. Hofmann, *Efficient Subwindow Search: A Branch and
Bound Framework for Object Localization*, PAMI 2009.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin._core import core
from hilbin._parameters import require_positive, require_whole
from hilbin.detect.boxes import as_coordinates
from hilbin.detect.cells import WordCells

MAX_NODES = 10_000_000
MOST_LEVELS = 6
ROWS_FIRST = (2, 0, 3, 1)  # [x0, y0, x1, y1) of top, bottom, left, right
NO_LOSS = np.empty(0)


@dataclass(frozen=True, eq=False)
class BestBox:
    """The best boxes of a grid of cells, with a certificate.

    Parameters
    ----------
    boxes : int array of shape (n, 4)
        Boxes ``[x0, y0, x1, y1)`` in cells, by falling score.
    scores : array of shape (n,)
        Their scores.
    nodes : int
        Number of sets of boxes that were looked at; 0 if none had to be.
    gap : float
        How much better than the last box another one might be; 0 if the boxes are the best.

    Examples
    --------
    >>> from hilbin.detect import best_box
    >>> found = best_box([[-1, 2], [3, -1]])
    >>> found.boxes, found.scores, found.gap
    (array([[0, 0, 2, 2]]), array([3.]), 0.0)
    """

    boxes: Array
    scores: Array
    nodes: int
    gap: float


def best_box(
    cells: Any,
    tables: Any = None,
    *,
    k: int = 1,
    limit: float = 0.0,
    truth: Any = None,
    reference: float | None = None,
    max_density: float | None = None,
    levels: int = 1,
    max_nodes: int = MAX_NODES,
) -> BestBox:
    """Find the boxes of the highest score among all boxes of a grid of cells.

    Parameters
    ----------
    cells : array-like of shape (rows, columns), or WordCells
        Scores of the cells; with ``tables``, the words in them, as :class:`WordCells` takes them.
    tables : array-like of shape (n_words, length), optional
        ``tables[j, c]`` is what ``c`` occurrences of word ``j`` in a box add to its score; more
        than ``length - 1`` count as so many.
    k : int, default=1
        Number of boxes; there are fewer if no more fit.
    limit : float, default=0.0
        Boxes that overlap a better one by an IoU above this are left out.
    truth : array-like of shape (4,), optional
        A box ``[x0, y0, x1, y1)`` in cells, not necessarily whole ones. One minus the IoU with it
        is added to the score: the box that a structured SVM learns from.
    reference : float, optional
        Score of the true box. If given, one minus the IoU is multiplied by one plus the score
        minus this one instead (slack rescaling).
    max_density : float, optional
        If given, tables are functions of the number of words per cell of the box, at nodes spaced
        evenly from 0 to this number; linear in between, constant beyond.
    levels : int, default=1
        Number of levels of a spatial pyramid: the box, its quarters, the quarters of these, and so
        on, cut between cells as evenly as they can be. ``tables`` has ``n_words`` rows for each
        part, level by level from the box on, and row by row. Densities are per cell of the box.
    max_nodes : int, default=10_000_000
        Largest number of sets of boxes to look at, 24 bytes each.

    Returns
    -------
    found : BestBox

    Examples
    --------
    >>> from hilbin.detect import best_box
    >>> best_box([[1, -2, 3], [-1, 4, -5], [2, 1, -1]])
    BestBox(boxes=array([[0, 1, 2, 3]]), scores=array([6.]), nodes=0, gap=0.0)

    Word 1 is good once, and bad if it is there more often; word 0 is a little good:

    >>> words = [[0, 0, 1], [0, 1, 0]]
    >>> best_box(words, [[0.0, 0.5, 1.0, 1.5], [0.0, 2.0, -1.0, -1.0]]).boxes
    array([[0, 0, 2, 2]])
    """
    require_whole("k", k, 1)
    require_whole("max_nodes", max_nodes, 1)
    require_positive("limit", limit, or_zero=True, most=1)
    loss = _loss(truth, reference)
    if tables is None:
        scores = _checked_scores(cells)
        if loss.size == 0 and (k == 1 or limit == 0):
            return _best_runs(scores, k)
        return _search(core.best_boxes, (scores,), k, (loss, float(limit), max_nodes))
    require_whole("levels", levels, 1, MOST_LEVELS)
    n_parts = (4**levels - 1) // 3
    given = isinstance(cells, WordCells)
    words = cells if given else WordCells(cells, len(np.asarray(tables)) // n_parts)
    monotone = _monotone(tables, words, n_parts, max_density)
    arrays: tuple[Any, ...] = (words.integral, *monotone, levels)
    if max_density is None:
        return _search(core.best_boxes_of_counts, arrays, k, (loss, float(limit), max_nodes))
    arrays += (float(max_density),)
    return _search(core.best_boxes_of_densities, arrays, k, (loss, float(limit), max_nodes))


def _checked_scores(cells: Any) -> Array:
    scores = np.ascontiguousarray(cells, np.float64)
    if scores.ndim != 2 or scores.size == 0:
        raise ValueError(
            f"cells must have the shape (rows, columns) and one cell at least, got {scores.shape}"
        )
    if not np.isfinite(scores).all():
        row, column = np.argwhere(~np.isfinite(scores))[0]
        raise ValueError(f"cells[{row}, {column}] = {scores[row, column]} is not finite")
    return scores


def _loss(truth: Any, reference: float | None) -> Array:
    """Return the edges of the true box and the reference, as the core takes them."""
    if truth is None:
        if reference is not None:
            raise ValueError("reference needs truth, the box whose score it is")
        return NO_LOSS
    x0, y0, x1, y1 = as_coordinates([truth], "truth")[0]
    if not (x0 < x1 and y0 < y1):
        raise ValueError(f"truth = {[x0, y0, x1, y1]} is empty")
    return np.array([y0, y1, x0, x1, *([] if reference is None else [float(reference)])])


def _monotone(
    tables: Any, words: WordCells, n_parts: int, max_density: float | None
) -> tuple[Array, Array]:
    """Return the parts of the functions that rise, with the first value, and that fall."""
    values = np.asarray(tables, np.float64)
    least = 1 if max_density is None else 2
    count = n_parts * words.n_words
    if values.ndim != 2 or values.shape[0] != count or values.shape[1] < least:
        parts = f" in each of {n_parts} parts" if n_parts > 1 else ""
        raise ValueError(
            f"tables must have a row of {least} numbers or more for each of {words.n_words} words"
            f"{parts}, got the shape {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("tables is not finite: NaN and inf are refused")
    if max_density is not None:
        require_positive("max_density", max_density)
    else:  # no count is above that of the whole grid
        values = values[:, : int(words.integral[-1, -1].max()) + 1]
    steps = np.diff(values, axis=1)
    zero = np.zeros((len(values), 1))
    rising = np.hstack([values[:, :1], np.maximum(steps, 0)]).cumsum(axis=1)
    return rising, np.hstack([zero, np.minimum(steps, 0)]).cumsum(axis=1)


def _best_runs(scores: Array, k: int) -> BestBox:
    """Return disjoint boxes by Kadane's algorithm; cells that are taken are in no further box."""
    turned = scores.shape[0] > scores.shape[1]
    left = np.array(scores.T if turned else scores, order="C")
    boxes: list[list[int]] = []
    values: list[float] = []
    while len(boxes) < k:
        box = np.zeros(4, np.int32)
        best = core.best_run(left, box)
        if best == -np.inf:
            break
        top, bottom, begin, end = box.tolist()
        left[top:bottom, begin:end] = -np.inf
        boxes.append([top, begin, bottom, end] if turned else [begin, top, end, bottom])
        values.append(best)
    return BestBox(np.array(boxes, np.int64), np.array(values), 0, 0.0)


def _search(
    search: Callable[..., tuple[int, int, float]], arrays: tuple[Any, ...], k: int, limits: Any
) -> BestBox:
    boxes, scores = np.zeros((k, 4), np.int32), np.zeros(k)
    count, nodes, gap = search(*arrays, *limits, boxes, scores)
    found = boxes[:count].astype(np.int64)[:, ROWS_FIRST]
    return BestBox(found, scores[:count], nodes, gap)
