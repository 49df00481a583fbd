r"""Kernel canonical correlations: what two views of the same things have in common.

For a function of each view, :math:`f_i = \langle w_i, \phi_i(x_i) \rangle`, with images centered,

.. math:: \rho = \max_{w_1, w_2} \frac{\operatorname{cov}(f_1, f_2)}
    {\sqrt{\operatorname{var}(f_1) + \varepsilon_1 \|w_1\|^2}
     \sqrt{\operatorname{var}(f_2) + \varepsilon_2 \|w_2\|^2}} ,

and further pairs likewise, uncorrelated with the first in the penalized sense. Without a penalty
any two views of independent images correlate perfectly. Here :math:`n \varepsilon_i =
\mathrm{reg}_i \cdot \mathrm{tr}(K_{ic})`, a share of the total variance, so that neither factors of
the kernels nor the number of rows matter.

**Algorithm.** With :math:`K_{ic} = U_i\,\mathrm{diag}(s_i)\,U_i^\top` and :math:`h_i = \sqrt{s_i /
(s_i + n\varepsilon_i)}`, the singular value decomposition of :math:`\mathrm{diag}(h_1) U_1^\top U_2
\mathrm{diag}(h_2) = P\,\mathrm{diag}(\rho)\,Q^\top` gives the coefficients
:math:`U_1 \mathrm{diag}(s_1 (s_1 + n\varepsilon_1))^{-1/2} P`, and likewise :math:`Q`. Eigenvalues
below :math:`10^{-10}` of the first are left out. Features of explicit maps have the same numbers
from their singular values.

**Retrieval.** Things of one view rank those of the other by the cosine of their coordinates, each
times its :math:`\rho`.

**References.** D. Hardoon, S. Szedmak and J. Shawe-Taylor, *Canonical Correlation Analysis: An
Overview with Application to Learning Methods*, 2004. Chapter 7 of C. Lampert, *Kernel Methods in
Computer Vision*, which does not state that matrices are centered.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from scipy.linalg import svd
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice, require_positive, require_whole
from hilbin._state import require, require_attributes, stored
from hilbin.estimators.reduction.base import Centered, KernelProjection, Spectrum, signs
from hilbin.parallel import blas_threads

LEAST = 1e-10  # eigenvalues below, over the largest, are left out
DEFAULT = 10  # components, or as many as there are
VIEWS = ("X", "y")


@stored
@estimator
class KernelView(KernelProjection):
    """One view: its kernel or map, and the coefficients of its coordinates."""

    def decompose(self, X: Any) -> tuple[Centered, Spectrum]:
        """Check the rows, and decompose their matrix."""
        rows, _ = self._checked(X)
        found = self._center(rows)
        return found, self._spectrum(found, None, LEAST)


@estimator
class KernelCCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Directions in which two views of the same things correlate, with any kernels.

    With linear kernels and next to no penalty the correlations are those of
    :class:`sklearn.cross_decomposition.CCA`. The largest coordinate of a training row of ``X`` is
    positive.

    Parameters
    ----------
    kernel_x, kernel_y : Kernel, callable, "precomputed" or None, default=None
        The kernels of the views, as in :class:`KernelPCA`. ``None`` is ``Gaussian("median")``.
    n_components : int, optional
        Number of pairs of directions; by default 10, or as many as there are.
    reg : float or pair of float, default=3e-3
        Penalty of both views, or of each, as a share of its total variance. Without one, views
        with more dimensions than rows correlate perfectly.
    feature_map_x, feature_map_y : transformer, optional
        Explicit maps in place of the kernels.
    null_correlations : bool, default=False
        Whether to compute the correlations of randomly permuted pairs, too: components that are
        not above these are nothing.
    n_jobs : int, optional
        Number of threads that compute kernel values.
    random_state : int, RandomState or None, default=0
        Random seed of the samples that rules look at, and of the permutation.

    Attributes
    ----------
    correlations_ : ndarray of shape (n_components,)
        The penalized correlations :math:`\rho`, falling.
    score_correlations_ : ndarray of shape (n_components,)
        Correlations of the coordinates of the training rows.
    null_correlations_ : ndarray of shape (n_components,)
        Penalized correlations of permuted pairs; None unless they were asked for.
    x_view_, y_view_ : object
        The views, with ``kernel_``, ``coef_`` and ``intercept_``.
    n_components_ : int
        Number of pairs.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray
        Their names, if ``X`` has some.

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
    """

    kernel_x: Any = None
    kernel_y: Any = None
    n_components: int | None = None
    _: KW_ONLY
    reg: Any = 3e-3
    feature_map_x: Any = None
    feature_map_y: Any = None
    null_correlations: bool = False
    n_jobs: int | None = None
    random_state: Any = 0

    def _check_parameters(self) -> None:
        if self.n_components is not None:
            require_whole("n_components, if not None,", self.n_components, 1)
        if isinstance(self.reg, Sequence | np.ndarray) and len(self.reg) != 2:
            raise ValueError(f"reg must be a number or a pair of numbers, got {self.reg!r}")
        for each in self._penalties:
            require_positive("reg", each, or_zero=True)

    @property
    def _penalties(self) -> Any:
        return self.reg if isinstance(self.reg, Sequence | np.ndarray) else (self.reg, self.reg)

    def _unfitted(self) -> list[KernelView]:
        common = {"n_jobs": self.n_jobs, "random_state": self.random_state}
        return [
            KernelView(self.kernel_x, feature_map=self.feature_map_x, **common),
            KernelView(self.kernel_y, feature_map=self.feature_map_y, **common),
        ]

    def fit(self, X: Any, y: Any) -> Self:
        """Find the directions.

        Parameters
        ----------
        X, y : array-like or sparse of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples of the two views, row by row of the same things, or their Gram matrices. A
            vector ``y`` is one column.

        Returns
        -------
        self : KernelCCA
        """
        self._check_parameters()
        if y is None:
            raise ValueError("KernelCCA requires y to be passed, but the target y is None")
        views = self._unfitted()
        first = views[0].decompose(X)
        with about_second_view():
            second = views[1].decompose(as_columns(y))
        n, m = len(first[1].vectors), len(second[1].vectors)
        if n != m:
            raise ValueError(f"X has {n} rows, but y has {m}: views must have the same rows")
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(views[0], name):
                setattr(self, name, getattr(views[0], name))
        with blas_threads(self.n_jobs):
            self._correlate(views, (first, second))
        self.x_view_, self.y_view_ = views
        return self

    def _correlate(
        self, views: list[KernelView], found: Sequence[tuple[Centered, Spectrum]]
    ) -> None:
        """Keep the correlations, and the coefficients of both views."""
        count = self._count(*(spectrum.eigenvalues.size for _, spectrum in found))
        roots, shrunk = [], []
        for (_, (s, U, _)), reg in zip(found, self._penalties, strict=True):
            roots.append(np.sqrt(s + reg * s.sum()))
            shrunk.append(U * (np.sqrt(s) / roots[-1]))
        P, rho, Qt = svd(shrunk[0].T @ shrunk[1], full_matrices=False)
        scores = [each @ V[:, :count] for each, V in zip(shrunk, (P, Qt.T), strict=True)]
        sign = signs(scores[0])
        for view, (centered, spectrum), root, V in zip(views, found, roots, (P, Qt.T), strict=True):
            view._keep(centered, spectrum.coef @ (V[:, :count] * sign / root[:, None]))
        self.n_components_ = count
        self.correlations_ = np.minimum(rho[:count], 1.0)
        x, z = (T / np.linalg.norm(T, axis=0) for T in scores)
        self.score_correlations_ = np.sum(x * z, axis=0)
        self.null_correlations_ = None
        if self.null_correlations:
            mixed = check_random_state(self.random_state).permutation(len(x))
            null = svd(shrunk[0].T @ shrunk[1][mixed], compute_uv=False)
            self.null_correlations_ = np.minimum(null[:count], 1.0)

    def _count(self, *ranks: int) -> int:
        most = min(ranks)
        if self.n_components is None:
            return min(DEFAULT, most)
        if self.n_components > most:
            raise ValueError(
                f"n_components={self.n_components} is more than {most}: the ranks of X and y in "
                f"their feature spaces are {ranks[0]} and {ranks[1]}"
            )
        return int(self.n_components)

    def transform(self, X: Any, y: Any = None) -> Any:
        """Compute the coordinates of rows of one view, or of both.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features) or None
            Rows of the first view, or their kernel to the training rows.
        y : array-like or sparse of shape (n_samples, n_features), optional
            Rows of the second view.

        Returns
        -------
        coordinates : ndarray of shape (n_samples, n_components), or a pair of them
            Those of the view that is given; of both if both are.
        """
        check_is_fitted(self, "correlations_")
        if X is None and y is None:
            raise ValueError("X and y are None: give rows of a view")
        found = []
        if X is not None:
            found.append(self.x_view_._project(X))
        if y is not None:
            with about_second_view():
                found.append(self.y_view_._project(as_columns(y)))
        return found[0] if len(found) == 1 else tuple(found)

    def similarity(self, X: Any, y: Any) -> Array:
        r"""Compute how well things of one view fit those of the other, between -1 and 1.

        It is the cosine of the coordinates, each times its correlation :math:`\rho`.

        Parameters
        ----------
        X, y : array-like or sparse
            Rows of the first and of the second view; not of the same things, and any number.

        Returns
        -------
        similarity : ndarray of shape (n_rows_of_X, n_rows_of_Y)
        """
        check_is_fitted(self, "correlations_")
        sides = []
        for T in (self.x_view_._project(X), self.y_view_._project(as_columns(y))):
            T = T * self.correlations_
            norms = np.linalg.norm(T, axis=1, keepdims=True)
            sides.append(np.divide(T, norms, out=np.zeros_like(T), where=norms > 0))
        found: Array = sides[0] @ sides[1].T
        return found

    def rank(self, X: Any, y: Any, *, queries: str = "X") -> Array:
        """Rank the rows of one view for every row of the other, best first.

        Parameters
        ----------
        X, y : as in ``similarity``
        queries : {"X", "y"}
            View that asks; the other one is ranked.

        Returns
        -------
        places : ndarray of shape (n_queries, n_ranked)
            Indices of rows; of equal ones the first is first.
        """
        require_choice("queries", queries, VIEWS)
        similarity = self.similarity(X, y)
        similarity = similarity if queries == "X" else similarity.T
        return np.argsort(-similarity, axis=1, kind="stable")

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the attributes of a loaded model do not fit together."""
        self._check_parameters()
        found = require_attributes(
            self,
            correlations_="float64[m]",
            score_correlations_="float64[m]",
            null_correlations_="float64[m]?",
            n_components_="=m",
            x_view_=KernelView,
            y_view_=KernelView,
            n_features_in_="int",
        )
        for view in (self.x_view_, self.y_view_) if found else ():
            count = getattr(vars(view).get("intercept_"), "size", None)
            require(count == found["m"], "a view has another number of components")

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._unfitted()[0].__sklearn_tags__().input_tags
        tags.target_tags.required = True
        return tags


@contextmanager
def about_second_view() -> Iterator[None]:
    """Say that an error is about ``y``, which a view calls X."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"y, the second view: {error}") from error


def as_columns(y: Any) -> Any:
    """Return a vector as one column."""
    if getattr(y, "ndim", 0) == 2:
        return y
    values = np.asarray(y)
    return values[:, None] if values.ndim == 1 else values
