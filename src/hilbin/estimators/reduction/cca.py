r"""Kernel canonical correlations: what two or more views of the same things have in common.

For a function of each view, :math:`f_i = \langle w_i, \phi_i(x_i) \rangle`, with images centered,

.. math:: \rho = \max_{w_1, w_2} \frac{\operatorname{cov}(f_1, f_2)}
    {\sqrt{\operatorname{var}(f_1) + \varepsilon_1 \|w_1\|^2}
     \sqrt{\operatorname{var}(f_2) + \varepsilon_2 \|w_2\|^2}} ,

and further pairs likewise, uncorrelated with the first in the penalized sense. Of more views it is
the mean over all pairs, with the sum of penalized variances fixed
(:mod:`hilbin.solvers.correlations`). Without a penalty any two views of independent images
correlate perfectly. Here :math:`n \varepsilon_i = \mathrm{reg}_i \cdot \mathrm{tr}(K_{ic})`, a
share of the total variance, so that neither factors of the kernels nor the number of rows matter.

**Algorithm.** With :math:`K_{ic} = U_i\,\mathrm{diag}(s_i)\,U_i^\top` and :math:`h_i = \sqrt{s_i /
(s_i + n\varepsilon_i)}`, the whitened covariance of two views is :math:`\mathrm{diag}(h_i)
U_i^\top U_j \mathrm{diag}(h_j)`, and directions :math:`v_i` found there have the coefficients
:math:`U_i \mathrm{diag}(s_i (s_i + n\varepsilon_i))^{-1/2} v_i`. Eigenvalues below
:math:`10^{-10}` of the first are left out. Features of explicit maps have the same numbers from
their singular values.

**Retrieval.** Things of one view rank those of another by the cosine of their coordinates, each
times its :math:`\rho`.

**References.** D. Hardoon, S. Szedmak and J. Shawe-Taylor, *Canonical Correlation Analysis: An
Overview with Application to Learning Methods*, 2004. F. Bach and M. Jordan, *Kernel Independent
Component Analysis*, 2002. Chapter 7 of C. Lampert, *Kernel Methods in Computer Vision*, which does
not state that matrices are centered.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY
from itertools import combinations
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice, require_positive, require_whole
from hilbin._state import require, require_attributes, stored
from hilbin.estimators._fit import checked_weights
from hilbin.estimators.reduction.base import Centered, KernelProjection, Spectrum, signs
from hilbin.parallel import blas_threads
from hilbin.solvers.correlations import correlations, joint_directions, whitening

LEAST = 1e-10  # eigenvalues below, over the largest, are left out
DEFAULT = 10  # components, or as many as there are
QUERIES = ("X", "y")


@stored
@estimator
class KernelView(KernelProjection):
    """One view: its kernel or map, and the coefficients of its coordinates."""

    def decompose(self, X: Any, sample_weight: Any) -> tuple[Centered, Spectrum]:
        """Check the rows, and decompose their matrix."""
        rows, _ = self._checked(X)
        weights = None if sample_weight is None else checked_weights(sample_weight, rows)
        found = self._center(rows, weights)
        return found, self._spectrum(found, None, LEAST)


class CorrelatedViews(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """What canonical correlations are for: coordinates of views, and retrieval between them."""

    correlations_: Array
    n_components_: int
    views_: list[KernelView]

    def transform(self, X: Any, y: Any = None) -> Any:
        """Compute the coordinates of rows of one view, or of several.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features) or None
            Rows of the first view, or their kernel to the training rows; or a list of all views,
            with None for those that are not there.
        y : array-like or sparse of shape (n_samples, n_features), optional
            Rows of the second view.

        Returns
        -------
        coordinates : ndarray of shape (n_samples, n_components), or a tuple of them
            Those of the view that is given; of each if several are.
        """
        check_is_fitted(self, "correlations_")
        listed = y is None and is_views(X)
        given = X if listed else [X, y]
        if len(given) > len(self.views_):
            raise ValueError(f"X has {len(given)} views, but fit had {len(self.views_)}")
        found = []
        for place, rows in enumerate(given):
            if rows is not None:
                with about_view(place, listed):
                    found.append(self._coordinates(rows, place))
        if not found:
            raise ValueError("X and y are None: give rows of a view")
        return found[0] if len(found) == 1 else tuple(found)

    def _coordinates(self, rows: Any, place: int) -> Array:
        return self.views_[place]._project(as_columns(rows) if place else rows)

    def similarity(self, X: Any, y: Any, *, views: tuple[int, int] = (0, 1)) -> Array:
        r"""Compute how well things of one view fit those of another, between -1 and 1.

        It is the cosine of the coordinates, each times its correlation :math:`\rho`.

        Parameters
        ----------
        X, y : array-like or sparse
            Rows of two views; not of the same things, and any number.
        views : pair of int, default=(0, 1)
            Places of the views of ``X`` and of ``y``.

        Returns
        -------
        similarity : ndarray of shape (n_rows_of_X, n_rows_of_y)
        """
        check_is_fitted(self, "correlations_")
        sides = []
        for rows, place in zip((X, y), views, strict=True):
            if not 0 <= place < len(self.views_):
                raise ValueError(f"views must be two of 0 to {len(self.views_) - 1}, got {views!r}")
            T = self._coordinates(rows, place) * self.correlations_
            norms = np.linalg.norm(T, axis=1, keepdims=True)
            sides.append(np.divide(T, norms, out=np.zeros_like(T), where=norms > 0))
        found: Array = sides[0] @ sides[1].T
        return found

    def rank(self, X: Any, y: Any, *, queries: str = "X", views: tuple[int, int] = (0, 1)) -> Array:
        """Rank the rows of one view for every row of another, best first.

        Parameters
        ----------
        X, y, views : as in ``similarity``
        queries : {"X", "y"}
            Rows that ask; the others are ranked.

        Returns
        -------
        places : ndarray of shape (n_queries, n_ranked)
            Indices of rows; of equal ones the first is first.
        """
        require_choice("queries", queries, QUERIES)
        similarity = self.similarity(X, y, views=views)
        similarity = similarity if queries == "X" else similarity.T
        return np.argsort(-similarity, axis=1, kind="stable")

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the attributes of a loaded model do not fit together."""
        found = require_attributes(
            self,
            correlations_="float64[m]",
            score_correlations_="float64[m]",
            n_components_="=m",
            views_="list",
            n_features_in_="int",
        )
        require(not found or len(self.views_) >= 2, "views_ has no two views")
        for view in self.views_ if found else ():
            require(isinstance(view, KernelView), "views_ has something else than views")
            count = getattr(vars(view).get("intercept_"), "size", None)
            require(count == found["m"], "a view has another number of components")

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


@estimator
class KernelCCA(CorrelatedViews, BaseEstimator):
    r"""Directions in which two or more views of the same things correlate, with any kernels.

    With linear kernels and next to no penalty the correlations of two views are those of
    :class:`sklearn.cross_decomposition.CCA`. The largest coordinate of a training row of the first
    view is positive.

    Parameters
    ----------
    kernel : Kernel, callable, "precomputed" or None, or a list of these, default=None
        The kernel of all views, or of each, as in :class:`KernelPCA`. ``None`` is
        ``Gaussian("median")``.
    n_components : int, optional
        Number of directions of each view; by default 10, or as many as there are.
    reg : float or sequence of float, default=3e-3
        Penalty of all views, or of each, as a share of its total variance. Without one, views
        with more dimensions than rows correlate perfectly.
    feature_map : transformer or None, or a list of these, default=None
        Explicit maps in place of the kernels: of all views, or of each, where ``None`` leaves the
        view its kernel.
    null_correlations : bool, default=False
        Whether to compute the correlations of randomly permuted rows, too: components that are
        not above these are nothing. Rows that have weights cannot be permuted.
    n_jobs : int, optional
        Number of threads that compute kernel values.
    random_state : int, RandomState or None, default=0
        Random seed of the samples that rules look at, and of the permutations.

    Attributes
    ----------
    correlations_ : ndarray of shape (n_components,)
        The penalized correlations :math:`\rho`, falling; of more than two views a mean over pairs.
    score_correlations_ : ndarray of shape (n_components,)
        Correlations of the coordinates of the training rows, the mean over pairs of views.
    null_correlations_ : ndarray of shape (n_components,)
        Penalized correlations of permuted rows; None unless they were asked for.
    views_ : list
        The views, with ``kernel_``, ``coef_`` and ``intercept_``.
    n_components_ : int
        Number of directions of each view.
    n_features_in_ : int
        Number of columns of the first view.
    feature_names_in_ : ndarray
        Their names, if it has some.

    See Also
    --------
    StreamCCA : the same with explicit maps, out of core.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import KernelCCA
    >>> X, _ = load_iris(return_X_y=True)
    >>> sepals, petals = X[:, :2], X[:, 2:]
    >>> model = KernelCCA(n_components=2, reg=0.01).fit(sepals, petals)
    >>> model.correlations_.round(2)
    array([0.95, 0.79])
    >>> model.transform(sepals).shape
    (150, 2)
    >>> model.rank(sepals[:1], petals).shape
    (1, 150)
    >>> three = KernelCCA(n_components=2).fit([X[:, :2], X[:, 2:3], X[:, 3:]])
    >>> [part.shape for part in three.transform([X[:, :2], None, X[:, 3:]])]
    [(150, 2), (150, 2)]
    """

    kernel: Any = None
    n_components: int | None = None
    _: KW_ONLY
    reg: Any = 3e-3
    feature_map: Any = None
    null_correlations: bool = False
    n_jobs: int | None = None
    random_state: Any = 0

    def _check_parameters(self) -> None:
        if self.n_components is not None:
            require_whole("n_components, if not None,", self.n_components, 1)
        for each in self.reg if is_listed(self.reg) else [self.reg]:
            require_positive("reg", each, or_zero=True)

    def _unfitted(self, count: int) -> list[KernelView]:
        """Return the views, not fitted yet."""
        common = {"n_jobs": self.n_jobs, "random_state": self.random_state}
        kernels = of_each("kernel", self.kernel, count)
        maps = of_each("feature_map", self.feature_map, count)
        return [
            KernelView(kernel, feature_map=feature_map, **common)
            for kernel, feature_map in zip(kernels, maps, strict=True)
        ]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples of the first view, or their Gram matrix; or a list of two or more views.
        y : the same, optional
            Samples of the second view, row by row of the same things. A vector is one column.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice.

        Returns
        -------
        self : KernelCCA
        """
        self._check_parameters()
        if self.null_correlations and sample_weight is not None:
            raise ValueError("null_correlations permutes rows, which must not have sample_weight")
        given = as_views(X, y)
        views = self._unfitted(len(given))
        found = []
        for place, (view, rows) in enumerate(zip(views, given, strict=True)):
            with about_view(place, y is None):
                found.append(view.decompose(rows, sample_weight))
            n, m = len(found[0][1].vectors), len(found[-1][1].vectors)
            if n != m:
                names = ("X", "y") if y is not None else ("view 0", f"view {place}")
                raise ValueError(
                    f"{names[0]} has {n} rows, but {names[1]} has {m}: views must have the same "
                    "rows"
                )
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(views[0], name):
                setattr(self, name, getattr(views[0], name))
        with blas_threads(self.n_jobs):
            self._correlate(views, found)
        self.views_ = views
        return self

    def _correlate(
        self, views: list[KernelView], found: Sequence[tuple[Centered, Spectrum]]
    ) -> None:
        """Keep the correlations, and the coefficients of all views."""
        spectra = [spectrum for _, spectrum in found]
        count = count_components(self.n_components, [s.eigenvalues.size for s in spectra])
        penalties = of_each("reg", self.reg, len(views))
        roots, shrunk = zip(
            *(whitening(s.eigenvalues, r) for s, r in zip(spectra, penalties, strict=True)),
            strict=True,
        )
        white = [s.vectors * h for s, h in zip(spectra, shrunk, strict=True)]
        solved = correlations(products_of(white), shrunk, count)
        sign = signs(found[0][0].unweighted(white[0] @ solved.directions[0]))
        for view, (centered, s), root, v in zip(
            views, found, roots, solved.directions, strict=True
        ):
            view._keep(centered, s.coef @ (v * sign / root[:, None]))
        self.n_components_ = count
        self.correlations_, self.score_correlations_ = solved.penalized, solved.plain
        self.null_correlations_ = None
        if self.null_correlations:
            random = check_random_state(self.random_state)
            mixed = [white[0], *(F[random.permutation(len(F))] for F in white[1:])]
            null = joint_directions(products_of(mixed), [h.size for h in shrunk], count)[0]
            self.null_correlations_ = np.clip(null, 0.0, 1.0)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the attributes of a loaded model do not fit together."""
        self._check_parameters()
        super()._check_state()
        require_attributes(self, correlations_="float64[m]", null_correlations_="float64[m]?")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kernel, feature_map = (
            each[0] if is_listed(each) and len(each) else each
            for each in (self.kernel, self.feature_map)
        )
        first = KernelView(kernel, feature_map=feature_map)
        tags.input_tags = first.__sklearn_tags__().input_tags
        tags.target_tags.required = True
        return tags


def count_components(asked: int | None, ranks: Sequence[int]) -> int:
    """Return the number of components; refuse more than the smallest rank of a view."""
    most = min(ranks)
    if asked is None:
        return min(DEFAULT, most)
    if asked > most:
        listed = ", ".join(map(str, ranks[:-1])) + f" and {ranks[-1]}"
        raise ValueError(
            f"n_components={asked} is more than {most}: the ranks of the views in their feature "
            f"spaces are {listed}"
        )
    return int(asked)


def products_of(white: Sequence[Array]) -> dict[tuple[int, int], Array]:
    """Return the products of all pairs of whitened views."""
    return {(i, j): white[i].T @ white[j] for i, j in combinations(range(len(white)), 2)}


def is_listed(value: Any) -> bool:
    """Tell whether a parameter is given for every view."""
    return isinstance(value, list | tuple | np.ndarray)


def of_each(name: str, value: Any, count: int) -> Sequence[Any]:
    """Return a parameter for each of some views."""
    if not is_listed(value):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name} has {len(value)} entries, but there are {count} views")
    found: Sequence[Any] = value
    return found


def is_views(X: Any) -> bool:
    """Tell whether ``X`` is a list of views: of matrices, or None."""
    return (
        isinstance(X, list | tuple)
        and any(rows is not None for rows in X)
        and all(rows is None or np.ndim(rows) == 2 for rows in X)
    )


def as_views(X: Any, y: Any) -> Sequence[Any]:
    """Return the rows of every view."""
    if y is not None:
        return [X, as_columns(y)]
    if not is_views(X):
        raise ValueError(
            "KernelCCA requires y to be passed, but the target y is None, and X is not a list of "
            "views"
        )
    if len(X) < 2 or any(rows is None for rows in X):
        raise ValueError(f"X must be a list of two or more views, got {len(X)}, or one is None")
    found: Sequence[Any] = X
    return found


@contextmanager
def about_view(place: int, listed: bool) -> Iterator[None]:
    """Say which view an error is about, where a view calls its rows X."""
    try:
        yield
    except ValueError as error:
        if place == 0 and not listed:
            raise
        name = f"view {place}" if listed else "y, the second view"
        raise ValueError(f"{name}: {error}") from error


def as_columns(y: Any) -> Any:
    """Return a vector as one column."""
    if getattr(y, "ndim", 0) == 2:
        return y
    values = np.asarray(y)
    return values[:, None] if values.ndim == 1 else values
