r"""Canonical correlations of data of any size, from one pass.

The scatter of all views side by side, :math:`S_{ij}`, is a sum over rows. Its diagonal blocks are
decomposed and penalized, and the rest is the problem of :mod:`hilbin.solvers.correlations`: with
:math:`S_{ii} = W_i\,\mathrm{diag}(s_i)\,W_i^\top` the coefficients of view :math:`i` are :math:`W_i
(\mathrm{diag}(s_i) + \varepsilon_i I)^{-1/2} v_i`. They are those of
:class:`~hilbin.estimators.KernelCCA` with the same maps.
"""

from dataclasses import KW_ONLY, dataclass
from functools import reduce
from itertools import combinations
from operator import iadd
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.preprocessing import FunctionTransformer

from hilbin._arrays import Array, Matrix, to_dense
from hilbin._parameters import estimator, require_positive, require_whole
from hilbin.estimators._callbacks import available_where
from hilbin.estimators._sizes import require_finite, without_warnings
from hilbin.estimators.linear.base import GroupedModel, keeps_sums
from hilbin.estimators.linear.cost import FirstRows, Plan
from hilbin.estimators.linear.transformers import (
    group_features,
    joint_features,
    row_slices,
)
from hilbin.estimators.reduction.base import LEAST_SPREAD, signs
from hilbin.estimators.reduction.cca import (
    LEAST,
    CorrelatedViews,
    KernelView,
    as_columns,
    count_components,
    is_listed,
    is_views,
    of_each,
)
from hilbin.solvers.correlations import correlations, whitening
from hilbin.stats import Moments
from hilbin.stream import Chunk

NEEDS_VIEWS = (
    "StreamCCA requires y to be passed, but the target y is None: give y, chunks (X, y), or two "
    "column_groups or more"
)


@estimator
class StreamCCA(CorrelatedViews, GroupedModel):
    r"""Canonical correlations from sums: exact, out of core, and of kernel features.

    Views are the targets ``y``, if there are some, and the columns of ``X``, or each of its groups
    of columns. Coordinates equal those of :class:`KernelCCA` on the same maps, up to their signs:
    the largest coefficient of the first view is positive.

    Parameters
    ----------
    n_components : int, optional
        Number of directions of each view; by default 10, or as many as there are.
    reg : float or sequence of float, default=3e-3
        Penalty of all views, or of each, as a share of its total variance.

    Attributes
    ----------
    correlations_, score_correlations_ : ndarray of shape (n_components,)
        The correlations with the penalty and without it, as in :class:`KernelCCA`.
    views_ : list
        The views, with ``coef_`` and ``intercept_``.
    n_components_ : int
        Number of directions of each view.
    n_samples_seen_ : float
        Weight of the rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import StreamCCA
    >>> X = load_iris().data
    >>> chunks = [(X[i : i + 50, :2], X[i : i + 50, 2:]) for i in (0, 50, 100)]
    >>> model = StreamCCA(2, reg=0.01).fit(chunks)
    >>> model.correlations_.round(3)
    array([0.921, 0.086])
    >>> model.rank(X[:1, :2], X[:, 2:]).shape
    (1, 150)
    """

    n_components: int | None = None
    _: KW_ONLY
    reg: Any = 3e-3

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_components is not None:
            require_whole("n_components, if not None,", self.n_components, 1)
        for each in self.reg if is_listed(self.reg) else [self.reg]:
            require_positive("reg", each, or_zero=True)

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        client: Any = None,
        callback: Any = None,
    ) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : array-like, sparse, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows of a view, or of several in ``column_groups``.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or paths, optional
            Rows of another view, which has no map.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice.
        client : distributed.Client, optional
            The Dask cluster to compute on.
        callback : callable, optional
            Function that is called with the name of the pass, the rows done, and all rows or None.

        Returns
        -------
        self : StreamCCA
        """
        return self._learn(X, y, sample_weight, client, callback, first=True)

    @available_where(keeps_sums)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those of earlier calls; needs ``keep_sums=True``.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`; maps are fitted at the first call.

        Returns
        -------
        self : StreamCCA
        """
        return self._learn(X, y, sample_weight, first=self._is_first(), earlier=True)

    def _learn(
        self,
        X: Any,
        y: Any,
        weight: Any,
        client: Any = None,
        callback: Any = None,
        *,
        first: bool,
        earlier: bool = False,
    ) -> Self:
        """Read the rows; add the sums of earlier ones if they are asked for."""
        self._check_parameters()
        targets = None if y is None else "numbers"
        chunks = self._open(X, y, weight, reset=first, targets=targets)
        with self._passes(chunks, client, callback) as passes:
            if first:
                self._fit_maps(passes)
            widths = self._widths(passes.first())
            sums: Any = passes.fold("sums", ViewMoments(self.transformers_, self._budget))
            self._correlate(self._with_earlier(sums) if earlier else sums, widths)
        return self

    def _widths(self, chunk: Chunk) -> list[int]:
        """Return the number of features of every view; keep the views."""
        found = [Z.shape[1] for Z in group_features(self.transformers_, chunk.X[:1])]
        columns = [chunk.X.shape[1] if c is None else c.size for _, c, _ in self.transformers_]
        maps = [feature_map for _, _, feature_map in self.transformers_]
        if chunk.y is not None:
            width = np.reshape(chunk.y, (len(chunk.y), -1)).shape[1]
            found, columns, maps = [*found, width], [*columns, width], [*maps, None]
        if len(found) < 2:
            raise ValueError(NEEDS_VIEWS)
        self.views_ = [
            _view(feature_map, width) for feature_map, width in zip(maps, columns, strict=True)
        ]
        return found

    @without_warnings()
    def _correlate(self, sums: Moments, widths: list[int]) -> None:
        """Keep the correlations, and the coefficients of all views."""
        if sums.n == 0:
            raise ValueError("sample_weight is zero for every row")
        self._keep_sums(sums)
        ends = np.cumsum(widths)
        parts = [slice(e - w, e) for e, w in zip(ends, widths, strict=True)]
        S = sums.scatter
        white, shrunk = [], []
        for place, (part, reg) in enumerate(
            zip(parts, of_each("reg", self.reg, len(parts)), strict=True)
        ):
            own, h = _whitened(S[part, part], reg, sums.n * sums.mean[part] ** 2, place)
            white.append(own)
            shrunk.append(h)
        products = {
            (i, j): white[i].T @ S[parts[i], parts[j]] @ white[j]
            for i, j in combinations(range(len(parts)), 2)
        }
        self.n_components_ = count_components(self.n_components, [h.size for h in shrunk])
        solved = correlations(products, shrunk, self.n_components_)
        self.correlations_, self.score_correlations_ = solved.penalized, solved.plain
        self.n_samples_seen_ = sums.n
        sign = signs(white[0] @ solved.directions[0])
        for view, part, own, v in zip(self.views_, parts, white, solved.directions, strict=True):
            view.coef_ = own @ (v * sign)
            view.intercept_ = -(sums.mean[part] @ view.coef_)
            require_finite(view, "coef_", "intercept_")

    def transform(self, X: Any, y: Any = None) -> Any:
        """Compute the coordinates of rows of one view, or of several.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features) or None
            Rows as in ``fit``, with all groups of columns; or a list of views, with None for those
            that are not there.
        y : array-like or sparse of shape (n_samples, n_features), optional
            Rows of the view that ``y`` was in ``fit``.

        Returns
        -------
        coordinates : ndarray of shape (n_samples, n_components), or a tuple of them
            Those of the view that is given; of each if several are.
        """
        if y is None and is_views(X):
            return super().transform(X)
        columns = [c for _, c, _ in getattr(self, "transformers_", [])]
        if X is None or columns in ([], [None]):
            return super().transform(X, y)
        rows: Any = self._rows(X, reset=False)
        found: list[Any] = [rows.X[:, c] for c in columns]
        return super().transform(found if y is None else [*found, as_columns(y)])

    def _plan(self, widths: tuple[int, ...], rows: FirstRows, n_workers: int) -> Plan:
        width = sum(widths)
        if rows.y is not None:
            width += int(np.reshape(rows.y[:1], (1, -1)).size)
        return Plan(0, ((width,),), (), "eigen", width, self.n_components or 1)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        self._check_parameters()
        super()._check_state()
        self._check_transformers()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.column_groups is None
        return tags


@dataclass(frozen=True)
class ViewMoments:
    """Moments of the features of all views, side by side; targets are the last one."""

    transformers: Any
    budget: float
    settle: bool = False

    def __call__(self, chunk: Chunk) -> Moments:
        """Return the moments of a chunk."""
        slices = row_slices(self.transformers, chunk.X, self.budget)
        moments = reduce(iadd, (self._of(chunk, rows) for rows in slices))
        return moments.settle() if self.settle else moments

    def _of(self, chunk: Chunk, rows: slice) -> Moments:
        Z: Matrix = joint_features(self.transformers, chunk.X[rows])
        if chunk.y is not None:
            targets = np.asarray(chunk.y[rows], np.float64)
            Z = np.hstack([to_dense(Z), targets.reshape(Z.shape[0], -1)])
        return Moments.of(Z, weight=None if chunk.weight is None else chunk.weight[rows])


def _view(feature_map: Any, n_columns: int) -> KernelView:
    """Return a view of a fitted map, or of the columns as they are."""
    feature_map = FunctionTransformer() if feature_map is None else feature_map
    view = KernelView(feature_map=feature_map)
    view.feature_map_, view.X_fit_, view.n_features_in_ = feature_map, None, n_columns
    return view


def _whitened(S: Array, reg: float, mean_squares: Array, place: int) -> tuple[Array, Array]:
    """Return the whitening of a view, and how much the penalty shrinks each direction."""
    s, W = eigh(S)
    if not s.sum() > LEAST_SPREAD * (s.sum() + mean_squares.sum()):
        raise ValueError(
            f"view {place} has no variance in the feature space: all rows are equal, or there is "
            "1 sample"
        )
    kept = s > LEAST * s[-1]
    roots, shrunk = whitening(s[kept], reg)
    return W[:, kept] / roots, shrunk
