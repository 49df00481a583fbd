"""Least squares on features, learnt from sums: what regression and classification share."""

import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import block_diag
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array
from hilbin._parameters import require_choice, require_positive, require_whole
from hilbin.estimators._passes import (
    Describe,
    Indicators,
    Learn,
    LeaveOneOut,
    Numbers,
    scores_of,
)
from hilbin.estimators._streamed import Passes, StreamedModel
from hilbin.solvers import Result, lasso_path, pca, ridge, ridge_grid, ridge_path, unproject
from hilbin.stats import Moments, StatisticTuple
from hilbin.stream import Chunks

PENALTIES = ("ridge", "lasso", "group_lasso")
CHOICES = ("gcv", "loo")


class FeatureModel(StreamedModel):
    """Moments of features and targets, and what is solved from them."""

    alpha: Any
    n_components: Any
    penalty: str
    blocks: Any
    alpha_selection: str
    tol: float
    max_iter: int
    keep_sums: bool
    coef_: Array
    intercept_: Any
    widths_: list[int]

    # targets t are learnt as SCALE t + SHIFT
    SCALE, SHIFT = 1.0, 0.0

    def _check_parameters(self) -> None:
        self._check_streaming()
        require_choice("penalty", self.penalty, PENALTIES)
        require_choice("alpha_selection", self.alpha_selection, CHOICES)
        require_positive("tol", self.tol)
        require_whole("max_iter", self.max_iter, 1)
        if isinstance(self.alpha, str):
            require_choice("alpha, if not numbers,", self.alpha, ("auto",))
        else:
            for alpha in np.atleast_1d(np.asarray(self.alpha, object)):
                require_positive("alpha", alpha, or_zero=self.penalty == "ridge")
        if self.penalty == "group_lasso" and self.blocks is None:
            raise ValueError('penalty="group_lasso" chooses among blocks: give blocks')
        if self.alpha_selection == "loo" and self.penalty != "ridge":
            raise ValueError(
                f'alpha_selection="loo" is for penalty="ridge", got penalty={self.penalty!r}'
            )

    def _wanted(self, name: str) -> Any:
        """Components of a descriptor; None keeps its features."""
        if isinstance(self.n_components, dict):
            return self.n_components.get(name)
        return self.n_components

    def _learn(
        self,
        chunks: Chunks,
        targets: Numbers | Indicators,
        unlabeled: Chunks | None,
        passes: Passes,
    ) -> None:
        """Sum, in one pass or two, and solve."""
        descriptors, budget = self.transformers_, self._budget
        known = [name for name, _, _ in descriptors]
        for name in self.n_components if isinstance(self.n_components, dict) else ():
            if name not in known:
                raise ValueError(f"n_components names {name!r}, which is not one of {known}")
        several = len(descriptors) > 1 and self.n_components is not None
        bare: Any = None
        if unlabeled is not None:
            bare = passes.fold("unlabeled", unlabeled, Describe(descriptors, budget))
        projections = None
        if several:
            seen = passes.fold("components", chunks, Describe(descriptors, budget, targets))
            seen = seen if bare is None else seen + bare
            projections = [
                None if self._wanted(name) is None else pca(m, self._wanted(name)).components
                for m, (name, _, _) in zip(seen.parts, descriptors, strict=True)
            ]
        learn = Learn(descriptors, targets, budget, projections)
        sums = passes.fold("sums", chunks, learn)
        extra = None if bare is None or several else bare[0]
        if isinstance(sums, StatisticTuple):
            sums, labelless = sums.parts
            extra = labelless if extra is None else extra + labelless
        self._solve(sums, None if several else extra, learn, chunks, passes)

    def _solve(
        self,
        sums: Moments,
        extra: Moments | None,
        learn: Learn,
        chunks: Chunks | None,
        passes: Passes,
    ) -> None:
        """The model of the sums; rows without targets, ``extra``, count for components alone."""
        if sums.n == 0:
            raise ValueError("no row with a target has a weight above 0")
        plain = extra is None and learn.projections is None
        self._sums = sums.state() if self.keep_sums and plain else None
        moments = sums.with_targets(scale=self.SCALE, shift=self.SHIFT)
        components = None
        wanted = self._wanted(learn.descriptors[0][0])
        if wanted is not None and learn.projections is None:
            everything = moments
            if extra is not None:
                everything = sums.without_targets()
                everything += extra
            components = pca(everything, wanted).components
            moments = moments.project(components)
        result = self._solved(moments, learn, components, chunks, passes)
        if learn.projections is not None:
            pairs = zip(learn.projections, self.widths_, strict=True)
            components = block_diag(*(np.eye(width) if U is None else U for U, width in pairs))
        self.n_components_ = moments.mean.size
        self._keep(result if components is None else unproject(result, components))

    def _solved(
        self,
        moments: Moments,
        learn: Learn,
        components: Array | None,
        chunks: Chunks | None,
        passes: Passes,
    ) -> Result:
        """By the penalty asked for, with the best of several ``alpha``."""
        if self.penalty != "ridge":
            return self._sparse(moments, learn, components)
        if isinstance(self.alpha, Real):
            self.alpha_ = float(self.alpha)
            return ridge(moments, self.alpha_)
        alphas = ridge_grid(moments) if isinstance(self.alpha, str) else self.alpha
        path = ridge_path(moments, alphas)
        self.alphas_, self.errors_ = path.alphas, path.gcv.sum(axis=1)
        if self.alpha_selection == "loo":
            assert chunks is not None  # partial_fit has refused
            of = LeaveOneOut(learn, path, components, self.SCALE, self.SHIFT)
            self.errors_ = passes.fold("choice", chunks, of)["errors"].sum(axis=1) / moments.n
        self.alpha_ = float(self.alphas_[np.argmin(self.errors_)])
        return path.at(self.alpha_)

    def _sparse(self, moments: Moments, learn: Learn, components: Array | None) -> Result:
        """Lasso or group lasso; freedom is the number of weights that are not 0."""
        groups = None
        if self.penalty == "group_lasso":
            pairs = zip(learn.projections or [None] * len(self.widths_), self.widths_, strict=True)
            sizes = [width if U is None else len(U) for U, width in pairs]
            if components is not None:
                sizes = [len(components)]
            ends = np.cumsum(sizes)
            groups = [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        alphas = np.atleast_1d(self._sparse_grid(moments))
        path = lasso_path(moments, alphas, groups, tol=self.tol, max_iter=self.max_iter)
        n = moments.n
        errors = []
        for alpha, result in zip(alphas, path, strict=True):
            left = 1 - (1 + np.count_nonzero(result.coef) / result.coef.shape[1]) / n
            loss = 2 * (result.objective - alpha * self._norm(result.coef, groups))
            errors.append(loss / left**2 if left > 0 else np.inf)
        self.alphas_, self.errors_ = alphas, np.array(errors)
        best = int(np.argmin(self.errors_))
        self.alpha_ = float(alphas[best])
        if not path[best].converged:
            warnings.warn(
                f"{type(self).__name__} has not converged in max_iter={self.max_iter} rounds: the "
                f"duality gap is {path[best].gap:.2g}",
                ConvergenceWarning,
                stacklevel=5,
            )
        return path[best]

    def _sparse_grid(self, moments: Moments) -> Any:
        if not isinstance(self.alpha, str):
            return np.asarray(self.alpha, np.float64)
        # From where all weights are 0, whatever the groups.
        largest = np.abs(moments.cross).max() / moments.n or 1.0
        return largest * np.logspace(0, -3, 16)

    @staticmethod
    def _norm(W: Array, groups: Sequence[Array] | None) -> float:
        if groups is None:
            return float(np.abs(W).sum())
        return float(sum(np.sqrt(g.size) * np.linalg.norm(W[g]) for g in groups))

    def _keep(self, result: Result) -> None:
        self.coef_ = np.ascontiguousarray(result.coef.T)
        self.intercept_ = np.asarray(result.bias)
        self.objective_, self.gap_ = result.objective, result.gap
        self.n_iter_ = max(1, result.n_iter)

    def _open_unlabeled(self, unlabeled: Any) -> Chunks | None:
        if unlabeled is None:
            return None
        if self.n_components is None:
            self._refuse_unlabeled()
        return self._open(unlabeled, reset=False)

    def _refuse_unlabeled(self) -> None:
        raise ValueError("unlabeled rows count for the components alone: give n_components")

    def _check_partial(self) -> None:
        """Refuse what takes all rows at once."""
        self._check_parameters()
        if self.blocks is not None and self.n_components is not None:
            raise ValueError("components of several blocks take two passes over all rows: use fit")
        if self.alpha_selection == "loo" and not isinstance(self.alpha, Real):
            raise ValueError(
                'alpha_selection="loo" needs all rows again: use fit, or alpha_selection="gcv"'
            )

    def _add(self, chunks: Chunks, learn: Learn, passes: Passes) -> None:
        sums = passes.fold("sums", chunks, learn)
        if hasattr(self, "_sums"):
            sums += Moments.from_state(self._sums)
        self._solve(sums, None, learn, None, passes)
        passes.finish()

    def _scores(self, X: Any) -> Array:
        """Scores of rows, block by block."""
        check_is_fitted(self, "coef_")
        coef, intercept = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        parts = [
            scores_of(self.transformers_, chunk.X, coef, intercept, self._budget)
            for chunk in self._open(X, reset=False)
        ]
        return np.concatenate(parts) if parts else np.empty((0, len(coef)))
