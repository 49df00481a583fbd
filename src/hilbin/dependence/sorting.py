r"""Kernelized sorting: match rows with the members of another set, or with the cells of a grid.

**Problem.** Rows have the Gram matrix :math:`K`, places :math:`L`; nothing compares a row with a
place. Sought is the assignment under which both depend on each other most,

.. math:: \max_P \; \mathrm{tr}(K_c P L P^T), \qquad K_c = HKH ,

where :math:`P` has one 1 in every row and at most one in every column: there may be more places
than rows. It is HSIC of the rows and their places, up to a factor.

**Algorithm.** The objective is convex in :math:`P` for positive definite kernels, so that its
linearization is below it, and the assignment that maximizes the linearization,

.. math:: P \leftarrow \arg\max_P \; \langle P, K_c P_{\mathrm{old}} L \rangle ,

never lowers it. Steps end where nothing rises, at a local optimum; the best of all starts is kept.
The first starts give rows and places that are alike in their first two kernel components to each
other, as ranks between 0 and 1, after a turn that does not depend on the eigensolver where both
components have about the same variance; more starts are random.

An assignment takes up to :math:`O(n^3)`: match some thousands of rows, not more.
:mod:`hilbin.dependence.grid` sorts more rows to a grid.

**Reference.** N. Quadrianto, A. Smola, L. Song and T. Tuytelaars, *Kernelized Sorting*, 2010. C.
Lampert, *Kernel Methods in Computer Vision*, section 9.2.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from hilbin._arrays import Array
from hilbin._parameters import require_whole
from hilbin.dependence.views import View, as_view, of_gram

MOST_STEPS = 100
RISES = 1e-12  # share of the objective that is not rounding
TIED = 0.1  # share by which the variances of two components differ that are about equal
DIGITS = 9  # of components that are not rounding
TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class Sorting:
    r"""What :func:`kernelized_sorting` found.

    Attributes
    ----------
    places : ndarray of shape (n,)
        The row of ``Y`` that each row of ``X`` is matched with; all differ.
    objective : float
        :math:`\mathrm{tr}(K_c P L P^T)`.
    cka : float
        Centered kernel alignment of the rows and their places.
    path : ndarray
        Objective before the first step and after every step from the best start.

    Examples
    --------
    >>> from hilbin.dependence import kernelized_sorting
    >>> sorting = kernelized_sorting([[3.0], [1], [2]], [[10.0], [20], [30]])
    >>> round(sorting.cka, 6)
    1.0
    """

    places: Array
    objective: float
    cka: float
    path: Array


def kernelized_sorting(
    X: Any,
    Y: Any,
    kernel_x: Any = None,
    kernel_y: Any = None,
    *,
    start: Any = None,
    n_init: int = 1,
    random_state: Any = 0,
) -> Sorting:
    r"""Match rows with those of another set by their kernels alone.

    It maximizes :math:`\mathrm{tr}(K_c P L P^T)` over assignments :math:`P`, which is HSIC of the
    matched rows. Columns of ``X`` and ``Y`` need not have anything in common.

    Parameters
    ----------
    X, Y : array-like or sparse of shape (n, d) and (m, e), m >= n
        Both sets; Gram matrices where the kernel is ``"precomputed"``.
    kernel_x, kernel_y
        As in :func:`hsic`. Steps never lower the objective if they are positive definite.
    start : array of n whole numbers, optional
        Places to start from, all different. By default rows are matched by their first two kernel
        components, for all signs of these.
    n_init : int, default 1
        Number of starts; all but the first are random.
    random_state : int, RandomState or None, default 0
        Random seed of these.

    Returns
    -------
    sorting : Sorting
        The best that was found.

    Examples
    --------
    >>> from hilbin.dependence import kernelized_sorting
    >>> from hilbin.kernels import Linear
    >>> kernelized_sorting([[0.3], [2], [5], [4]], [[0], [1], [2], [3]], Linear(), Linear()).places
    array([0, 1, 3, 2])
    """
    require_whole("n_init", n_init, 1)
    x, y = as_view(X, kernel_x, "x"), as_view(Y, kernel_y, "y")
    n, n_places = len(x), len(y)
    require_room(n, n_places, "Y")
    random = check_random_state(random_state)
    first = [_checked_start(start, n, n_places)] if start is not None else _component_starts(x, y)
    others = (random.permutation(n_places)[:n] for _ in range(n_init - 1))
    found = [_climb(x.gram, y.gram, places) for places in (*first, *others)]
    places, path = max(found, key=lambda one: one[1][-1])
    return Sorting(places, path[-1], _alignment(x, y.gram, places), np.array(path))


def _climb(Kc: Array, L: Array, places: Array) -> tuple[Array, list[float]]:
    """Take steps while the objective rises; return the best places, and the objective's path."""
    path = [_objective(Kc, L, places)]
    for _ in range(MOST_STEPS):
        proposed = assign(Kc @ L[places])
        value = _objective(Kc, L, proposed)
        if value - path[-1] <= RISES * abs(path[-1]):
            break
        places = proposed
        path.append(value)
    return places, path


def assign(gains: Array) -> Array:
    """Return the place of every row in the assignment of the largest sum."""
    places: Array = linear_sum_assignment(gains, maximize=True)[1]
    return places


def _objective(Kc: Array, L: Array, places: Array) -> float:
    return float(np.vdot(Kc, L[np.ix_(places, places)]))


def _alignment(x: View, L: Array, places: Array) -> float:
    """Return the centered alignment of the rows and the places that they are in."""
    y = of_gram(L[np.ix_(places, places)])
    norms = x.product(x) * y.product(y)
    return x.product(y) / float(np.sqrt(norms)) if norms > 0 else 0.0


def _component_starts(x: View, y: View) -> Iterator[Array]:
    """Give the matches by the ranks of two components, for all signs of them.

    Components of about equal variance, as those of a square grid, are turned as well, and tried in
    both orders.
    """
    (here, tied), (there, also) = components(x.gram), components(y.gram)
    pairs = [(here, there)]
    if tied or also:
        here, there = (_turned(c) if is_tied else c for c, is_tied in ((here, tied), (there, also)))
        pairs += [(here, there), (here[:, ::-1], there)]
    for (own, others), *signs in product(pairs, (1, -1), (1, -1)):
        yield assign(-_squared_distances(_ranks(own * signs), _ranks(others)))


def components(Kc: Array) -> tuple[Array, bool]:
    """Return the first two kernel components, and whether their variances are about equal.

    The largest entry of each is positive.
    """
    n = len(Kc)
    if n < 2:
        return np.zeros((n, 2)), False
    values, vectors = eigh(Kc, subset_by_index=[n - 2, n - 1])
    vectors = vectors[:, ::-1]
    largest = vectors[np.argmax(np.abs(vectors), axis=0), [0, 1]]
    tied = values[1] - values[0] <= TIED * values[1]
    return vectors * np.where(largest < 0, -1, 1), bool(tied)


def _turned(vectors: Array) -> Array:
    """Return two columns turned so that the sum of their fourth powers is largest.

    Components of equal variance are known up to a turn; this one is along the sides of a grid.
    """
    a, b = vectors.T
    u, v = a**2 - b**2, 2 * a * b
    angle = np.arctan2(2 * (u @ v), u @ u - v @ v) / 4
    cosine, sine = np.cos(angle), np.sin(angle)
    turned: Array = vectors @ np.array([[cosine, -sine], [sine, cosine]])
    return turned


def _ranks(columns: Array) -> Array:
    """Return every value as its rank in the column, from 0 to 1; those within rounding are tied."""
    largest = np.abs(columns).max(axis=0, initial=0)
    ranks: Array = rankdata(np.round(columns / np.maximum(largest, TINY), DIGITS), axis=0) - 1
    return ranks / max(1, len(columns) - 1)


def _squared_distances(rows: Array, others: Array) -> Array:
    return np.sum((rows[:, None] - others) ** 2, axis=2)


def require_room(n: int, n_places: int, name: str) -> None:
    """Raise if there are more rows than places."""
    if n > n_places:
        raise ValueError(f"X has {n} rows, but {name} has only {n_places} places for them")


def _checked_start(start: Any, n: int, n_places: int) -> Array:
    places = np.asarray(start)
    whole = places.shape == (n,) and places.dtype.kind in "iu"
    if not whole or np.unique(places).size < n or places.min() < 0 or places.max() >= n_places:
        raise ValueError(f"start must be {n} different whole numbers from 0 to {n_places - 1}")
    return places.astype(np.intp)
