r"""Boxes as the outputs of a structured SVM: the histogram of the words inside, and IoU as loss.

**Model.** An example is a grid of cells with words (:class:`WordCells`), its output the box of the
thing in it. :math:`\Phi(x, y)` is the histogram :math:`h` of the words in the box :math:`y`, so the
score is a sum over cells, and the best box is Kadane's. Or it is a piecewise linear function of the
density :math:`h_j / |y|` of every word, whose weights are its values at some nodes: the score does
not grow with the box then. The loss is :math:`1 - \mathrm{IoU}`. Boxes with their loss are searched
by branch and bound (:func:`best_box`); where it is cut short, the bound keeps the certificate of
the machine right.

**Reference.** M. Blaschko and C. Lampert, *Learning to Localize Objects with Structured Output
Regression*, ECCV 2008.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from hilbin._arrays import Array
from hilbin._parameters import require_positive, require_whole
from hilbin.detect.boxes import iou
from hilbin.detect.cells import WordCells
from hilbin.detect.search import BestBox, best_box
from hilbin.solvers import Bounded


@dataclass(frozen=True, eq=False)
class BoxModel:
    """Boxes in grids of words, for :class:`hilbin.estimators.StructuredSVM`.

    Examples are :class:`WordCells`, outputs are boxes ``[x0, y0, x1, y1)`` in whole cells.

    Parameters
    ----------
    normalized : bool, default=False
        Whether features are densities of words, counts per cell of the box, or counts.
    n_nodes : int, default=2
        Number of nodes of the function of every density, from 0; 2 is linear.
    max_nodes : int, default=100_000
        Largest number of sets that a search with the loss looks at; see :func:`best_box`.
    n_words : int, optional
        Number of words; ``fit`` finds it in ``X``.
    max_density : float, optional
        Density at the last node; by default the largest number of a word in a cell of ``X``.
    scale : float, optional
        Factor of the features; by default such that the mean square of their length is 1 for the
        boxes of ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import BoxModel, WordCells
    >>> from hilbin.estimators import StructuredSVM

    The thing is made of word 1:

    >>> rng = np.random.default_rng(0)
    >>> images, boxes = [], []
    >>> for _ in range(20):
    ...     x, y = rng.integers(0, 5, 2)
    ...     words = (rng.uniform(size=(8, 8)) < 0.1).astype(int)
    ...     words[y : y + 3, x : x + 4] = rng.uniform(size=(3, 4)) < 0.9
    ...     images.append(WordCells(words, 2))
    ...     boxes.append([x, y, x + 4, y + 3])
    >>> machine = StructuredSVM(BoxModel()).fit(images[:15], boxes[:15])
    >>> machine.score(images[15:], boxes[15:]) > -0.2  # minus one plus the mean IoU
    True
    """

    normalized: bool = False
    n_nodes: int = 2
    max_nodes: int = 100_000
    n_words: int | None = None
    max_density: float | None = None
    scale: float | None = None

    @property
    def size(self) -> int:
        """Number of weights."""
        return (self.n_words or 0) * (self.n_nodes - 1 if self.normalized else 1)

    def for_data(self, X: Any, y: Any) -> Self:
        """Return the model of the words of these examples, with features scaled by their boxes."""
        require_whole("n_nodes", self.n_nodes, 2)
        require_whole("max_nodes", self.max_nodes, 1)
        n_words = getattr(X[0], "n_words", None) if self.n_words is None else self.n_words
        model = replace(self, n_words=n_words, scale=1.0)
        for i, (cells, box) in enumerate(zip(X, y, strict=True)):
            try:
                model._cells(cells).checked([box])
            except ValueError as error:
                raise ValueError(f"example {i}: {error}") from error
        if self.max_density is None:
            most = max(int(cells.counts.max()) for cells in X)
            model = replace(model, max_density=float(max(most, 1)))
        squares = [np.sum(model.joint(x, box) ** 2) for x, box in zip(X, y, strict=True)]
        scale = 1 / np.sqrt(np.mean(squares)) if any(squares) else 1.0
        return replace(model, scale=float(scale if self.scale is None else self.scale))

    def joint(self, x: WordCells, y: Any) -> Array:
        """Return the counts of words in the box, or the shares of nodes in their densities."""
        scale = self.scale or 1.0
        if not self.normalized:
            counts: Array = self._cells(x).histograms([y])[0]
            return scale * counts
        features: Array = scale * self._shares(self._cells(x).densities([y])[0])[:, 1:].ravel()
        return features

    def loss(self, y: Any, z: Any) -> float:
        """Return one minus the intersection over union."""
        return 1 - float(iou([y], [z])[0, 0])

    def best(self, x: WordCells, w: Array, y: Any = None) -> Any:
        """Return the box of the highest score, with its loss added if ``y`` is given."""
        return _output(self.search(x, w, truth=y, max_nodes=self.max_nodes))

    def best_slack(self, x: WordCells, w: Array, y: Any) -> Any:
        """Return the box of the highest loss times one plus the difference of scores."""
        reference = float(w @ self.joint(x, y))
        found = self.search(x, w, truth=y, reference=reference, max_nodes=self.max_nodes)
        return _output(found)

    def search(self, x: WordCells, w: Array, **options: Any) -> BestBox:
        """Search boxes by weights, as :func:`best_box` does; it says what the options are."""
        cells = self._cells(x)
        if not self.normalized:
            return best_box(self.cell_scores(cells, w), **options)
        return best_box(cells, self.tables(w), max_density=self.max_density, **options)

    def cell_scores(self, x: WordCells, w: Array) -> Array:
        """Return the scores of cells, which sum up to those of boxes if these are counts."""
        return x.counts @ ((self.scale or 1.0) * w)

    def tables(self, w: Array) -> Array:
        """Return the functions of densities at their nodes, (n_words, n_nodes)."""
        values = (self.scale or 1.0) * w.reshape(self.n_words or 0, -1)
        return np.hstack([np.zeros((len(values), 1)), values])

    def contributions(self, x: WordCells, w: Array, box: Any) -> Array:
        """Return what every cell contributes to the score of a box, (rows, columns).

        They sum up to it inside the box. Outside they are what cells would add, if scores are sums
        over cells; else 0.
        """
        cells = self._cells(x)
        if not self.normalized:
            return self.cell_scores(cells, w)
        ((x0, y0, x1, y1),) = cells.checked([box])
        counts = cells.histograms([box])[0]
        of_words = (self._shares(cells.densities([box])[0]) * self.tables(w)).sum(axis=1)
        each = np.divide(of_words, counts, out=np.zeros(counts.size), where=counts > 0)
        found = np.zeros(cells.shape)
        found[y0:y1, x0:x1] = cells.counts[y0:y1, x0:x1] @ each
        return found

    def _shares(self, densities: Array) -> Array:
        """Return the shares of the nodes beside every density, (n_words, n_nodes)."""
        last = self.n_nodes - 1
        places = np.minimum(densities * (last / (self.max_density or 1.0)), last)
        return np.maximum(0.0, 1 - np.abs(places[:, None] - np.arange(self.n_nodes)))

    def _cells(self, x: Any) -> WordCells:
        if not isinstance(x, WordCells) or x.n_words != self.n_words:
            raise ValueError(f"an image must be WordCells of {self.n_words} words, got {x!r}")
        return x

    def _check_state(self) -> None:
        require_whole("n_nodes", self.n_nodes, 2)
        require_whole("max_nodes", self.max_nodes, 1)
        if self.n_words is not None:
            require_whole("n_words", self.n_words, 1)
        for name in ("max_density", "scale"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name))


def _output(found: BestBox) -> Any:
    """Return the best box, with a bound if it may not be the best."""
    box = found.boxes[0]
    return Bounded(box, float(found.scores[0]) + found.gap) if found.gap > 0 else box
