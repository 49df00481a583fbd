r"""The pyramid match kernel: how many points of two sets fall into common cells, coarse to fine.

Space is cut into cells of side :math:`2^i s`, :math:`i = 0, \dots, L - 1`, nested in each other.
With :math:`I_i` the number of points that two sets have in common when counted by cells of level
:math:`i`, the points that meet first at level :math:`i` are :math:`I_i - I_{i-1}`, and count
:math:`2^{-i}` each (Grauman and Darrell, *The Pyramid Match Kernel*, 2005):

.. math:: k = \sum_{i=0}^{L-1} 2^{-i} (I_i - I_{i-1})
            = \sum_{i<L-1} 2^{-(i+1)} I_i + 2^{-(L-1)} I_{L-1}, \qquad I_{-1} = 0.

The weights add up to 1, so :math:`k(x, x)` is the number of points. (Lampert's (3.11) has half the
weight for the coarsest level, and the cells of one dimension.) Since an intersection scales with
its histograms, this is the histogram intersection of the weighted counts of all cells: one sparse
row per set, time linear in the number of points. Only cells with points in them exist.

Which points share a cell depends on where the grid lies; an average over several random places of
the grid depends less on it. In many dimensions hardly any two points share a fine cell: reduce
descriptors to a few dimensions first.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_positive, require_whole
from hilbin.kernels.intersection import Intersection
from hilbin.kernels.sets.base import SetKernel, Stack, stack

MOST_LEVELS = 48
FARTHEST = 2.0**52  # coordinates of cells beyond this are not exact


@dataclass(frozen=True)
class PyramidMatch(SetKernel):
    r"""Pyramid match of two sets of points, :math:`k(x, y) / \sqrt{k(x, x)\,k(y, y)}` with
    :math:`k = \sum_i 2^{-i} (I_i - I_{i-1})`.

    :math:`I_i` is the intersection of the sets' histograms over cells of side
    :math:`2^i` ``side``. Positive definite.

    Parameters
    ----------
    levels : int from 1 to 48, default 6
        Number of sizes of cells. Points that share no cell of side
        ``side * 2 ** (levels - 1)`` do not match at all.
    side : float > 0, default 1
        Side of the finest cells: about the distance of points that are the same but for noise.
    shifts : int >= 1, default 1
        Number of places of the grid to average over: at the origin, and at random.
    normalize : {"cosine", "size", None}, default "cosine"
        ``"size"`` divides each histogram by the number of its points instead, so that sets of
        different sizes compare as distributions; None counts.
    random_state : int, default 0
        Random seed of the places of the grid.

    Examples
    --------
    >>> from hilbin.kernels import PyramidMatch
    >>> near, far = [[0.0, 0.0], [5.0, 5.0]], [[0.0, 0.0], [40.0, 40.0]]
    >>> PyramidMatch(levels=4).gram([near, far])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    levels: int = 6
    side: float = 1.0
    shifts: int = 1
    normalize: Literal["cosine", "size"] | None = "cosine"
    random_state: int = 0

    def __post_init__(self) -> None:
        require_whole("levels of PyramidMatch", self.levels, 1, MOST_LEVELS)
        require_whole("shifts of PyramidMatch", self.shifts, 1)
        require_whole("random_state of PyramidMatch", self.random_state, 0)
        require_positive("side of PyramidMatch", self.side)
        if self.normalize not in ("cosine", "size", None):
            raise ValueError(
                f"normalize of PyramidMatch must be 'cosine', 'size' or None, "
                f"got {self.normalize!r}"
            )

    @property
    def weights(self) -> Array:
        """What a point in common counts at every level, fine to coarse; the sum is 1."""
        weights = 0.5 ** np.arange(1, self.levels + 1)
        weights[-1] *= 2
        return weights

    def _gram(self, X: Stack, Y: Stack | None, n_jobs: int | None) -> Array:
        cells = self._cells(X)
        known = np.unique(cells.names)
        rows = cells.histograms(known)
        other = None if Y is None else self._cells(Y).histograms(known)
        K: Array = Intersection()._gram(rows, other, n_jobs)
        if self.normalize == "cosine":
            x, y = (_inverse_roots(S.sizes) for S in (X, X if Y is None else Y))
            K *= np.outer(x, y)
        return K

    def _diag(self, X: Stack) -> Array:
        if self.normalize is None:
            return X.sizes.astype(np.float64)
        return (X.sizes > 0).astype(np.float64)

    def _cells(self, X: Stack) -> "Cells":
        """Return the cell of every point, for every level and place of the grid."""
        rng = np.random.default_rng(self.random_state)
        offsets = rng.uniform(0, 2.0 ** (self.levels - 1), size=(self.shifts, X.points.shape[1]))
        offsets[0] = 0
        points = X.points.astype(np.float64) / self.side
        if np.abs(points).max(initial=0) > FARTHEST:
            raise ValueError(f"points are too far from 0 for cells of side {self.side!r}")
        names, shares = [], []
        for place, offset in enumerate(offsets):
            finest = np.floor(points + offset).astype(np.int64)
            for level, weight in enumerate(self.weights):
                names.append(_hash(finest >> level, place * MOST_LEVELS + level))
                shares.append(np.full(len(points), weight / self.shifts))
        owners = np.tile(np.repeat(np.arange(len(X)), X.sizes), len(names))
        share = np.concatenate(shares)
        if self.normalize == "size":
            share /= X.sizes[owners]
        return Cells(np.concatenate(names), owners, share, len(X))


@estimator
class PyramidMatchMap(TransformerMixin, BaseEstimator):
    """Turns sets of points into sparse rows whose histogram intersection is the pyramid match.

    It is exact between the sets of ``fit`` and any others: a cell that was not seen in ``fit`` is
    left out, and could not match. The rows feed ``IntersectionSVC``, whose cost is linear in the
    number of sets.

    Parameters
    ----------
    kernel : PyramidMatch, optional
        With ``normalize`` ``"size"`` or None: the cosine is no intersection. By default
        ``PyramidMatch(normalize="size")``.

    Attributes
    ----------
    cells_ : ndarray of shape (n_cells,)
        Names of the cells seen in ``fit``.

    Examples
    --------
    >>> from hilbin.kernels import Intersection, PyramidMatchMap
    >>> rows = PyramidMatchMap().fit_transform([[[0.0], [5.0]], [[0.0], [40.0]]])
    >>> Intersection().gram(rows)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    # sets are what others call X, not metadata to be routed
    __metadata_request__fit: ClassVar[dict[str, str]] = {"sets": UNUSED}
    __metadata_request__transform: ClassVar[dict[str, str]] = {"sets": UNUSED}

    kernel: PyramidMatch | None = None

    def fit(self, sets: Any, y: Any = None) -> "PyramidMatchMap":
        """Learn which cells there are.

        Parameters
        ----------
        sets : sequence of arrays of shape (m_i, d)
        y : ignored

        Returns
        -------
        self : PyramidMatchMap
        """
        X = stack(sets, "sets")
        self.cells_ = np.unique(self._checked_kernel()._cells(X).names)
        self.n_features_in_ = X.points.shape[1]
        return self

    def transform(self, sets: Any) -> Any:
        """Return the weighted counts of the cells in every set.

        Parameters
        ----------
        sets : sequence of arrays of shape (m_i, d)

        Returns
        -------
        rows : CSR array of shape (n, n_cells)
        """
        check_is_fitted(self)
        X = stack(sets, "sets")
        if X.points.shape[1] != self.n_features_in_:
            raise ValueError(
                f"points of sets have {X.points.shape[1]} values, "
                f"but those of fit had {self.n_features_in_}"
            )
        return self._checked_kernel()._cells(X).histograms(self.cells_)

    def _checked_kernel(self) -> PyramidMatch:
        kernel = PyramidMatch(normalize="size") if self.kernel is None else self.kernel
        if not isinstance(kernel, PyramidMatch) or kernel.normalize == "cosine":
            raise ValueError(
                f"kernel must be a PyramidMatch with normalize='size' or None, got {self.kernel!r}"
            )
        return kernel

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.no_validation = True
        return tags


@dataclass(frozen=True)
class Cells:
    """Names of the cells of points, the sets these belong to, and what they count."""

    names: Array
    owners: Array
    shares: Array
    n_sets: int

    def histograms(self, known: Array) -> Any:
        """Return the weighted counts of the known cells (ascending names) in every set, as CSR."""
        columns = np.minimum(np.searchsorted(known, self.names), max(0, len(known) - 1))
        found = known[columns] == self.names if len(known) else np.zeros(len(columns), bool)
        places = (self.owners[found], columns[found])
        rows = sp.csr_array((self.shares[found], places), shape=(self.n_sets, max(1, len(known))))
        rows.sum_duplicates()
        return rows


def _hash(coordinates: Array, seed: int) -> Array:
    """Give every row of whole numbers a 64-bit name, by the mixing function of splitmix64.

    Two of a million cells share a name with a probability of 3e-8.
    """
    names = _mixed(np.full(len(coordinates), seed, np.uint64))
    for column in coordinates.T.astype(np.uint64):
        names = _mixed(names + column)
    return names


def _mixed(x: Array) -> Array:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _inverse_roots(sizes: Array) -> Array:
    return np.where(sizes > 0, 1 / np.sqrt(np.maximum(sizes, 1)), 0.0)
