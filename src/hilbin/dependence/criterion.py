r"""The Hilbert-Schmidt independence criterion: do two descriptions of the same rows depend?

**Definition.** Rows :math:`(x_i, y_i)` under two kernels have Gram matrices :math:`K` and
:math:`L`. With :math:`H = I - 11^T/n`, :math:`A = HKH` and :math:`B = HLH`,

.. math:: \mathrm{HSIC} = \frac{T}{(n-1)^2}, \qquad T = \langle A, B \rangle = \sum_{ij} A_{ij}
    B_{ij} ,

the squared norm of the covariance of both feature spaces. It is 0, for many rows, if and only if
:math:`x` and :math:`y` are independent, provided that the kernels are characteristic: Gaussian
kernels are, and exponentials of chi-squared on histograms; additive kernels are not, and see only
some of the dependences. This estimate is too large by :math:`O(1/n)`. The unbiased one (Song et
al.) is, with :math:`a, b` the diagonals of :math:`A, B`,

.. math:: \frac{1}{n(n-3)} \Big( T - \frac{n\, a^T b}{n-2}
    + \frac{\mathrm{tr} A\, \mathrm{tr} B}{(n-1)(n-2)} \Big) .

**Features.** For :math:`k(x, x') = \langle z, z' \rangle`, :math:`T` is the squared norm of the
sum of products of centered features, and all else is a sum over rows: :math:`O(n D^2)`, in memory
or over chunks (:mod:`hilbin.dependence.sums`).

**Test.** Pairs that are shuffled are independent. The permutation test counts how many of
:math:`R` shuffled statistics reach the one that is seen, :math:`p = (1 + \#\{T_\pi \ge T\}) / (1 +
R)`, with both matrices fixed. The gamma test takes the exact mean and variance of :math:`T_\pi`
over all permutations, which are sums over the entries of both matrices, and the gamma distribution
with these two; below :math:`p` of some :math:`10^{-3}` it is the tail of a guess.

**References.** A. Gretton, O. Bousquet, A. Smola and B. Schölkopf, *Measuring Statistical
Dependence with Hilbert-Schmidt Norms*, 2005. A. Gretton et al., *A Kernel Statistical Test of
Independence*, 2007. L. Song, A. Smola, A. Gretton, J. Bedo and K. Borgwardt, *Feature Selection via
Dependence Maximization*, 2012. S. Kornblith, M. Norouzi, H. Lee and G. Hinton, *Similarity of
Neural Network Representations Revisited*, 2019. C. Lampert, *Kernel Methods in Computer Vision*,
section 9.1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaincc
from sklearn.utils import check_random_state

from hilbin._arrays import Array, check_rows
from hilbin._parameters import require_choice, require_whole
from hilbin.dependence.sums import PairSums, ViewSums, as_sums
from hilbin.dependence.views import View, as_view
from hilbin.kernels.alignment import targets

METHODS = ("auto", "permutation", "gamma")
MOST_PERMUTED = 500  # rows up to which "auto" takes permutations
TIED = 1e-12  # standard deviation over the mean of shuffled statistics that are all alike
TIED_SHUFFLES = 1e-10  # share by which a shuffled statistic may be below one that it ties with


def hsic(
    X: Any, Y: Any, kernel_x: Any = None, kernel_y: Any = None, *, biased: bool = True
) -> float:
    r"""Compute the Hilbert-Schmidt independence criterion of two descriptions of the same rows.

    It is :math:`\langle HKH, HLH \rangle / (n - 1)^2`, with :math:`H = I - 11^T/n`, or the
    unbiased estimate, which can be negative.

    Parameters
    ----------
    X, Y : array-like or sparse of shape (n, d) and (n, e), or vectors of n numbers
        Both descriptions, row for row; Gram matrices where the kernel is ``"precomputed"``. Rows
        that do not fit into memory are anything that :func:`hilbin.stream.as_chunks` takes for
        rows and targets, or chunks (X, Y) with ``Y=None``; they need maps.
    kernel_x, kernel_y : Kernel, map, "precomputed" or None
        Kernels, with rules resolved on the rows; ``None`` is ``Gaussian("median")``, or
        ``Gaussian("mean")`` where most rows are equal. With a map of :mod:`hilbin.maps`, or the
        linear kernel, on both sides nothing of the size of all pairs is computed: time grows with
        the number of rows, and rows may come in chunks. A map is then fitted to 10 000 rows drawn
        at random.
    biased : bool, default True
        Whether the estimate may be too large by a share of 1/n, and is never negative.

    Returns
    -------
    criterion : float
        0 if a description is the same for all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.dependence import hsic
    >>> from hilbin.kernels import Gaussian
    >>> x = np.arange(10) / 10
    >>> round(hsic(x, abs(x - 0.45), Gaussian(4.0), Gaussian(4.0)), 6)
    0.012303
    """
    sums = as_sums(X, Y, kernel_x, kernel_y, fewest=2 if biased else 4)
    return _of_both(sums, biased=biased)


def cka(
    X: Any, Y: Any, kernel_x: Any = None, kernel_y: Any = None, *, biased: bool = True
) -> float:
    r"""Compute the centered kernel alignment of two descriptions of the same rows.

    It is :math:`\mathrm{HSIC}(x, y) / \sqrt{\mathrm{HSIC}(x, x)\, \mathrm{HSIC}(y, y)}`, the cosine
    of the angle between both centered Gram matrices: between 0 and 1 if biased, and 1 for a
    description and itself, whatever its scale.

    Parameters
    ----------
    X, Y, kernel_x, kernel_y, biased
        As in :func:`hsic`.

    Returns
    -------
    alignment : float
        0 if a description is the same for all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.dependence import cka
    >>> X = load_iris().data
    >>> round(cka(X[:, :2], 3 * X[:, :2]), 6)
    1.0
    >>> cka(X[:, :2], X[:, 2:]) > 0.5
    True
    """
    sums = as_sums(X, Y, kernel_x, kernel_y, fewest=2 if biased else 4)
    own = [
        _criterion(sums.n, T, t * t, d, biased=biased)
        for T, t, d in zip(sums.squares, sums.traces, sums.diagonals[:2], strict=True)
    ]
    return _of_both(sums, biased=biased) / float(np.sqrt(own[0] * own[1])) if min(own) > 0 else 0.0


@dataclass(frozen=True)
class HSICTest:
    """What :func:`hsic_test` found.

    Attributes
    ----------
    statistic : float
        The biased criterion.
    pvalue : float
        Probability of a statistic as large, if the descriptions are independent.
    null_mean, null_variance : float
        Exact mean and variance of the statistic over all permutations of one description.
    method : {"permutation", "gamma"}
        Where ``pvalue`` comes from.

    Examples
    --------
    >>> from hilbin.dependence import hsic_test
    >>> test = hsic_test([0.0, 1, 2, 3, 4], [0.0, 1, 4, 9, 16], method="gamma")
    >>> bool(test.statistic > test.null_mean), test.method
    (True, 'gamma')
    """

    statistic: float
    pvalue: float
    null_mean: float
    null_variance: float
    method: str


def hsic_test(
    X: Any,
    Y: Any,
    kernel_x: Any = None,
    kernel_y: Any = None,
    *,
    method: str = "auto",
    n_permutations: int = 999,
    random_state: Any = 0,
) -> HSICTest:
    r"""Test whether two descriptions of the same rows are independent.

    Parameters
    ----------
    X, Y, kernel_x, kernel_y
        As in :func:`hsic`; at least 4 rows.
    method : {"auto", "permutation", "gamma"}
        ``"permutation"`` counts how many shuffled pairs have a statistic as large, which is valid
        for any number of rows. ``"gamma"`` takes a gamma distribution of the exact mean and
        variance over all permutations: one look at both matrices, or at features, but below p of
        some 1e-3 it is the tail of a guess. ``"auto"`` permutes up to 500 rows; rows that come in
        chunks cannot be permuted.
    n_permutations : int, default 999
        Number of permutations; ``pvalue`` is at least ``1 / (n_permutations + 1)``.
    random_state : int, RandomState or None, default 0
        Random seed of the permutations.

    Returns
    -------
    test : HSICTest
        Its ``pvalue`` is 1 if a description is the same for all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.dependence import hsic_test
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 100)
    >>> hsic_test(np.cos(angle), np.sin(angle)).pvalue  # a ring, without correlation
    0.001
    """
    require_choice("method", method, METHODS)
    require_whole("n_permutations", n_permutations, 1)
    sums = as_sums(X, Y, kernel_x, kernel_y, fewest=4)
    views = isinstance(sums, ViewSums)
    if method == "permutation" and not views:
        raise ValueError('method="permutation" needs rows in memory: take "gamma"')
    if method == "auto":
        method = "permutation" if views and sums.n <= MOST_PERMUTED else "gamma"
    T = sums.product
    mean, variance = _null_moments(sums)
    if mean == 0:
        pvalue = 1.0
    elif method == "gamma":
        pvalue = _gamma_tail(T, mean, variance)
    else:
        assert isinstance(sums, ViewSums)
        pvalue = _permuted_share(sums.x, sums.y, n_permutations, random_state)
    scale = (sums.n - 1) ** 2
    return HSICTest(T / scale, pvalue, mean / scale, variance / scale**2, method)


def hsic_scores(X: Any, y: Any, kernel: Any = None, *, task: str = "auto") -> Array:
    r"""Compute how much the targets depend on each column, for ranking and choosing columns.

    The score of a column is its :func:`cka` with the targets: one-hot labels, or numbers to
    regress, under the linear kernel. It sees what a correlation sees, and what it does not, such as
    a mean that is largest in the middle. It is a ``score_func`` of scikit-learn's ``SelectKBest``.

    Parameters
    ----------
    X : array-like or sparse of shape (n, d)
        Rows.
    y : array-like of shape (n,), or (n, n_targets) for regression
        Class labels, at least two classes, or targets of regression.
    kernel : Kernel or None
        Kernel of one column; ``None`` is as in :func:`hsic`, with a width for every column.
    task : {"auto", "classification", "regression"}
        What ``y`` is, as in :func:`hilbin.kernels.kernel_alignment`.

    Returns
    -------
    scores : ndarray of shape (d,)
        Between 0 and 1; 0 for a constant column.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.dependence import hsic_scores
    >>> X, y = load_iris(return_X_y=True)
    >>> hsic_scores(X, y).round(2)
    array([0.44, 0.22, 0.81, 0.84])
    """
    rows = check_rows(X, "X")
    T = View(targets(y, rows.shape[0], task=task))
    size = np.sqrt(T.product(T))
    scores = np.zeros(rows.shape[1])
    for j in range(rows.shape[1]):
        column = as_view(rows[:, [j]], kernel, "x")
        norm = np.sqrt(column.product(column))
        scores[j] = column.product(T) / (norm * size) if norm else 0.0
    return scores


def _criterion(n: int, T: float, traces: float, diagonals: float, *, biased: bool) -> float:
    """Return the criterion from products of the matrices, of their traces and of diagonals."""
    if biased:
        return T / (n - 1) ** 2
    return (T - n * diagonals / (n - 2) + traces / ((n - 1) * (n - 2))) / (n * (n - 3))


def _of_both(sums: PairSums, *, biased: bool) -> float:
    (t, u), (_, _, both) = sums.traces, sums.diagonals
    return _criterion(sums.n, sums.product, t * u, both, biased=biased)


def _null_moments(sums: PairSums) -> tuple[float, float]:
    """Return the mean and the variance of the product over all permutations of one side."""
    n, (t, u), (t2, u2), (s2, v2, _) = sums.n, sums.traces, sums.squares, sums.diagonals
    pairs = 2 * ((n - 1) * t2 - t**2) * ((n - 1) * u2 - u**2)
    own = (n * (n + 1) * s2 - (n - 1) * (t**2 + 2 * t2)) * (
        n * (n + 1) * v2 - (n - 1) * (u**2 + 2 * u2)
    )
    variance = pairs / ((n - 1) ** 2 * (n + 1) * (n - 2))
    variance += own / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    return t * u / (n - 1), max(variance, 0.0)


def _gamma_tail(T: float, mean: float, variance: float) -> float:
    if variance <= (TIED * mean) ** 2:  # all permutations are alike
        return 1.0
    return float(gammaincc(mean**2 / variance, max(T, 0.0) * mean / variance))


def _permuted_share(x: View, y: View, n_permutations: int, random_state: Any) -> float:
    random, n = check_random_state(random_state), len(x)
    orders = np.array([np.arange(n), *(random.permutation(n) for _ in range(n_permutations))])
    own, *shuffled = x.products(y, orders)
    reached = np.count_nonzero(np.array(shuffled) >= own * (1 - TIED_SHUFFLES))
    return float((1 + reached) / (1 + n_permutations))
