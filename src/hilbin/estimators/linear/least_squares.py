r"""Least squares on kernel features, learned from sums: data of any size in one or two passes.

:math:`f(x) = b + \sum_k w_k z_k(x)` with the features :math:`z` of a map of :mod:`hilbin.maps`.
All that is asked of the data are the sums of :class:`~hilbin.stats.Moments`, so the model is the
exact optimum, however the rows are cut into chunks. Principal components of the features, if asked
for, are found from the same sums and folded back into the weights: prediction never projects (F.
Li, G. Lebanon and C. Sminchisescu, *A Linear Approximation to the χ² Kernel with Geometric
Convergence*, section 5). Where features outnumber the rows, the rows are kept instead of the sums,
which are larger, and the same optimum is found from their inner products.
"""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY
from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import block_diag
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array
from hilbin._parameters import (
    estimator,
    require_choice,
    require_norm,
    require_positive,
    require_whole,
)
from hilbin.estimators._fit import outer_level, warn_not_converged
from hilbin.estimators._sizes import finite_scores, require_finite, without_warnings
from hilbin.estimators.linear.base import GroupedModel
from hilbin.estimators.linear.cost import FirstRows, Plan, number_kept
from hilbin.estimators.linear.passes import (
    FeatureMoments,
    Indicators,
    LeaveOneOut,
    Numbers,
    Passes,
    TargetMoments,
    TargetRows,
    scores_of,
)
from hilbin.estimators.linear.transformers import group_features
from hilbin.solvers.lasso import lasso_path
from hilbin.solvers.multiple import multiple
from hilbin.solvers.multiple_machines import GroupedSums
from hilbin.solvers.problem import Result
from hilbin.solvers.ridge import (
    CenteredRows,
    Sums,
    pca,
    ridge,
    ridge_grid,
    ridge_path,
    unproject,
)
from hilbin.stats import ClassSums, Moments, StatisticTuple
from hilbin.stream import Chunks

PENALTIES = ("ridge", "lasso", "group_lasso", "multiple")
SELECTIONS = ("gcv", "loo")
GRID = 19  # penalties of ridge_grid
NO_WEIGHT = "no row with a target has a weight above 0"


@estimator
class LeastSquares(GroupedModel):
    r"""Base of the estimators by least squares.

    Parameters
    ----------
    alpha : float, sequence of float, or "auto", default="auto"
        Penalty; if several are given, the best is chosen. "auto" tries a grid in units of the mean
        variance of the features, so that no scaling of the data changes the model. A single number
        is faster if there are many thousands of features and even more rows.
    n_components : int, float or dict, optional
        Principal components of the features to learn on, as a number or a share of the variance;
        all features by default. They are those of every column group, or of the groups that the
        dict names, and then take two passes: components of every group, and the joint sums.
    penalty : {"ridge", "lasso", "group_lasso", "multiple"}, default="ridge"
        ``"group_lasso"`` chooses among column groups. On components it is their weights that are
        few. ``"multiple"`` learns a weight of every group, multiple kernel learning: its features
        are scaled to unit variance, all together, and the penalty is
        :math:`\alpha \sum_j \|w_j\|^2 / \beta_j`; "auto" is the best penalty for equal weights.
    norm : float, default=1.0
        For ``"multiple"``: the norm of the weights of the groups that is 1, as in
        :class:`MultipleKernelRidge`.
    alpha_selection : {"gcv", "loo"}, default="gcv"
        How the best ``alpha`` is found: by generalized cross-validation, from the sums alone, or
        by leaving out one row after another, which takes one more pass (ridge). Weights count as
        numbers of copies in both.
    tol, max_iter : float, int, default=1e-6, 1000
        Largest duality gap of lasso and group lasso, over the mean square of the targets, or with
        ``"multiple"`` over the objective, and the largest number of rounds.

    Attributes
    ----------
    alpha_ : float
        The penalty in use.
    alphas_, errors_ : ndarray
        The penalties tried and their errors, if there were several.
    n_components_ : int
        Number of dimensions of the problem solved.
    objective_, gap_ : float
        Value of the problem, and how far it can be above the optimum.
    n_iter_ : int
        Number of rounds of the solver; 1 for ridge.
    widths_ : list of int
        Number of features of every column group, if there are some.
    weights_, scales_ : ndarray of shape (n_groups,)
        With ``penalty="multiple"``, the weights of the groups, and the variances that their
        features are scaled by.
    """

    feature_map: Any = None
    alpha: Any = "auto"
    _: KW_ONLY
    n_components: Any = None
    penalty: str = "ridge"
    norm: float = 1.0
    alpha_selection: str = "gcv"
    tol: float = 1e-6
    max_iter: int = 1000

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("penalty", self.penalty, PENALTIES)
        require_choice("alpha_selection", self.alpha_selection, SELECTIONS)
        require_positive("tol", self.tol)
        require_whole("max_iter", self.max_iter, 1)
        if isinstance(self.alpha, str):
            require_choice("alpha, if not numbers,", self.alpha, ("auto",))
        else:
            for alpha in np.atleast_1d(np.asarray(self.alpha, object)):
                require_positive("alpha", alpha, or_zero=self.penalty == "ridge")
        if self.penalty in ("group_lasso", "multiple") and self.column_groups is None:
            raise ValueError(f'penalty="{self.penalty}" chooses among groups: give column_groups')
        require_norm(self.norm)
        if self.alpha_selection == "loo" and self.penalty != "ridge":
            raise ValueError(
                f'alpha_selection="loo" is for penalty="ridge", got penalty={self.penalty!r}'
            )

    def _check_partial(self) -> None:
        """Refuse what takes all rows at once."""
        self._check_parameters()
        if self.column_groups is not None and self.n_components is not None:
            raise ValueError(
                "components of several column groups take two passes over all rows: use fit"
            )
        if self.alpha_selection == "loo" and not isinstance(self.alpha, Real):
            raise ValueError(
                'alpha_selection="loo" needs all rows again: use fit, or alpha_selection="gcv"'
            )

    def _open_unlabeled(self, unlabeled: Any) -> Chunks | None:
        """Return the chunks of rows without targets, which need components to count for."""
        if unlabeled is None:
            return None
        self._require_components()
        return self._open(unlabeled, reset=False)

    def _require_components(self) -> None:
        if self.n_components is None:
            raise ValueError("unlabeled rows count for the components alone: give n_components")

    # groups of columns
    def _fit_maps(
        self, passes: Passes, *, classes: bool = False, partly: bool = False
    ) -> ClassSums | None:
        counts = super()._fit_maps(passes, classes=classes, partly=partly)
        if self.column_groups is not None:
            row = passes.first().X[:1]
            self.widths_ = [Z.shape[1] for Z in group_features(self.transformers_, row)]
        return counts

    def _wanted(self, name: str) -> Any:
        """Return the components of a group; None keeps its features."""
        if isinstance(self.n_components, dict):
            return self.n_components.get(name)
        return self.n_components

    # sums
    @without_warnings()
    def _learn(
        self, passes: Passes, targets: Numbers | Indicators, unlabeled: Chunks | None
    ) -> None:
        """Sum, in one pass or two, and solve."""
        if unlabeled is None and self._has_few_rows(passes):
            self._learn_from_rows(passes, targets)
            return
        transformers, budget = self.transformers_, self._budget
        known = [name for name, _, _ in transformers]
        for name in self.n_components if isinstance(self.n_components, dict) else ():
            if name not in known:
                raise ValueError(f"n_components names {name!r}, which is not one of {known}")
        several = len(transformers) > 1 and self.n_components is not None
        bare: Any = None
        if unlabeled is not None:
            bare = passes.fold("unlabeled", FeatureMoments(transformers, budget), unlabeled)
        projections = None
        if several:
            seen = passes.fold("components", FeatureMoments(transformers, budget, targets))
            seen = seen if bare is None else seen + bare
            projections = [
                None if self._wanted(name) is None else pca(m, self._wanted(name)).components
                for m, name in zip(seen.parts, known, strict=True)
            ]
        of = TargetMoments(transformers, targets, budget, projections)
        sums = passes.fold("sums", of)
        extra = None if bare is None or several else bare[0]
        if isinstance(sums, StatisticTuple):
            sums, more = sums.parts
            extra = more if extra is None else extra + more
        self._solve(passes, of, sums, None if several else extra)

    def _plan(self, widths: tuple[int, ...], rows: FirstRows, n_workers: int) -> Plan:
        targets, width = self._n_targets(rows.y), sum(widths)
        single = isinstance(self.alpha, Real)
        choice = self.alpha_selection == "loo" and not single
        solution = "cholesky" if single and self.n_components is None else "eigen"
        if n_workers == 1 and self._may_keep_rows() and rows.n_rows < width:
            scored = (2 * rows.n_rows * (width + GRID * (targets + 1)),) if choice else ()
            return Plan(0, ((width,),), scored, solution, rows.n_rows, targets, few_rows=True)
        names = [name for name, _, _ in self._transformers()]
        kept = [number_kept(self._wanted(k), w) for k, w in zip(names, widths, strict=True)]
        several = len(widths) > 1 and self.n_components is not None
        return Plan(
            read=0,
            sums=(widths, (sum(kept),)) if several else ((width,),),
            scored=(2 * sum(kept) * (sum(kept) + GRID * (targets + 1)),) if choice else (),
            solution=solution if self.penalty == "ridge" else None,
            size=sum(kept) if several else width,
            targets=targets,
        )

    def _n_targets(self, y: Any) -> int:
        """Return the number of targets; one if that is not known."""
        return 1 if y is None or y.ndim == 1 else int(y.shape[1])

    def _has_few_rows(self, passes: Passes) -> bool:
        """Tell whether rows are fewer than features, and nothing but a ridge is asked for."""
        rows = passes.data.n_rows if isinstance(passes.data, Chunks) else None
        if rows is None or passes.client is not None or not self._may_keep_rows():
            return False
        row = passes.first().X[:1]
        return bool(rows < sum(Z.shape[1] for Z in group_features(self.transformers_, row)))

    def _may_keep_rows(self) -> bool:
        return self.penalty == "ridge" and self.n_components is None and not self.keep_sums

    def _learn_from_rows(self, passes: Passes, targets: Numbers | Indicators) -> None:
        """Keep all rows, and solve the dual."""
        Z, T, weight = passes.fold("rows", TargetRows(self.transformers_, targets)).stacked()
        if not weight.any():
            raise ValueError(NO_WEIGHT)
        self._keep_sums(None)
        scale, shift = self._scaling()
        rows = CenteredRows.of(Z, scale * T + shift, weight)
        of = TargetMoments(self.transformers_, targets, self._budget)
        self.n_components_ = rows.mean.size
        self._keep(self._solved(passes, of, rows, None))

    @without_warnings()
    def _add(self, passes: Passes, targets: Numbers | Indicators) -> None:
        """Add rows to the sums of earlier calls, and solve."""
        of = TargetMoments(self.transformers_, targets, self._budget)
        self._solve(passes, of, self._with_earlier(passes.fold("sums", of)), None)

    def _scaling(self) -> tuple[float, float]:
        """Return ``scale`` and ``shift``: targets t are learned as ``scale * t + shift``."""
        return 1.0, 0.0

    def _solve(
        self, passes: Passes, of: TargetMoments, sums: Moments, extra: Moments | None
    ) -> None:
        """Keep the model of the sums; rows without targets, ``extra``, count for components."""
        if sums.n == 0:
            raise ValueError(NO_WEIGHT)
        self._keep_sums(sums if extra is None and of.projections is None else None)
        scale, shift = self._scaling()
        moments = sums.with_targets(scale=scale, shift=shift)
        components = None
        wanted = self._wanted(of.transformers[0][0])
        if wanted is not None and of.projections is None:
            everything = moments
            if extra is not None:
                everything = sums.without_targets()
                everything += extra
            components = pca(everything, wanted).components
            moments = moments.project(components)
        result = self._solved(passes, of, moments, components)
        if of.projections is not None:
            pairs = zip(of.projections, self.widths_, strict=True)
            components = block_diag(*(np.eye(width) if U is None else U for U, width in pairs))
        self.n_components_ = moments.mean.size
        self._keep(result if components is None else unproject(result, components))

    def _solved(
        self, passes: Passes, of: TargetMoments, moments: Sums, components: Array | None
    ) -> Result:
        """Solve by the penalty asked for, with the best of several ``alpha``."""
        if self.verbose:
            size, targets = moments.mean.size, moments.target_mean.size
            print(f"[solution] {size:,} features, {targets:,} targets", flush=True)
        if self.penalty == "multiple" and isinstance(moments, Moments):
            return self._multiple(of, moments, components)
        if self.penalty != "ridge" and isinstance(moments, Moments):
            return self._sparse(of, moments, components)
        if isinstance(self.alpha, Real):
            self.alpha_ = float(self.alpha)
            return ridge(moments, self.alpha_)
        alphas = ridge_grid(moments) if isinstance(self.alpha, str) else self.alpha
        path = ridge_path(moments, alphas)
        self.alphas_, self.errors_ = path.alphas, path.gcv.sum(axis=1)
        self.alpha_ = path.best_alpha
        if self.alpha_selection == "loo":
            left_out = LeaveOneOut(of, path, components, *self._scaling())
            self.errors_ = passes.fold("choice", left_out)["errors"].sum(axis=1) / moments.n
            self.alpha_ = float(self.alphas_[np.argmin(self.errors_)])
        self._warn_of_no_choice(moments.n)
        return path.at(self.alpha_)

    def _groups(self, of: TargetMoments, components: Array | None) -> list[Array]:
        """Return the features, or components, of every column group."""
        pairs = zip(of.projections or [None] * len(self.widths_), self.widths_, strict=True)
        sizes = [width if U is None else len(U) for U, width in pairs]
        if components is not None:
            sizes = [len(components)]
        ends = np.cumsum(sizes)
        return [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    def _grouped(
        self, of: TargetMoments, moments: Moments, components: Array | None
    ) -> GroupedSums:
        """Return the sums by groups, each of which must vary."""
        sums = GroupedSums.of(moments, self._groups(of, components))
        if not (sums.scales > 0).all():
            name = self.transformers_[int(np.argmin(sums.scales))][0]
            raise ValueError(f"column_groups: the features of {name!r} are constant: leave it out")
        return sums

    def _multiple(self, of: TargetMoments, moments: Moments, components: Array | None) -> Result:
        """Learn the weights of groups; several ``alpha`` are compared with equal weights."""
        sums = self._grouped(of, moments, components)
        m = len(sums.groups)
        if isinstance(self.alpha, Real):
            self.alpha_ = float(self.alpha)
        else:
            equal = sums.scaled(np.full(m, m ** (-1 / self.norm)))
            path = ridge_path(
                equal, ridge_grid(equal) if isinstance(self.alpha, str) else self.alpha
            )
            self.alphas_, self.errors_ = path.alphas, path.gcv.sum(axis=1)
            self.alpha_ = path.best_alpha
        course: dict[str, Any] = {"norm": self.norm, "tol": self.tol, "max_iter": self.max_iter}
        result = multiple(sums.trials(self.alpha_), m, **course)
        self.weights_, self.scales_ = result.weights, sums.scales
        unit, machine = 2 * self.alpha_, result.solution
        objective, gap = unit * result.objective, unit * result.gap
        counts = result.n_iter, result.converged
        return Result(machine.coef, np.empty(0), objective, gap, *counts, machine.intercept)

    def _warn_of_no_choice(self, n: float) -> None:
        """Warn if no penalty leaves any freedom, so that none is better than another."""
        if self.errors_.size > 1 and not np.isfinite(self.errors_).any():
            warnings.warn(
                f"alpha_={self.alpha_:g} is not chosen, but the first of all: cross-validation "
                f"needs more rows than degrees of freedom, and the weights sum to {n:g} rows. "
                "Scale sample_weight to count rows, or give one alpha",
                UserWarning,
                stacklevel=outer_level(),
            )

    def _sparse(self, of: TargetMoments, moments: Moments, components: Array | None) -> Result:
        """Solve lasso or group lasso; freedom is the number of weights that are not 0."""
        groups = self._groups(of, components) if self.penalty == "group_lasso" else None
        alphas = self._sparse_grid(moments)
        path = lasso_path(moments, alphas, groups, tol=self.tol, max_iter=self.max_iter)
        errors = []
        for alpha, result in zip(alphas, path, strict=True):
            left = 1 - (1 + np.count_nonzero(result.coef) / result.coef.shape[1]) / moments.n
            loss = 2 * (result.objective - alpha * _norm(result.coef, groups))
            errors.append(loss / left**2 if left > 0 else np.inf)
        self.alphas_, self.errors_ = alphas, np.array(errors)
        best = int(np.argmin(self.errors_))
        self.alpha_ = float(alphas[best])
        self._warn_of_no_choice(moments.n)
        return path[best]

    def _sparse_grid(self, moments: Moments) -> Array:
        if not isinstance(self.alpha, str):
            return np.atleast_1d(np.asarray(self.alpha, np.float64))
        # from where all weights are 0, whatever the groups
        largest = np.abs(moments.cross).max() / moments.n or 1.0
        return largest * np.logspace(0, -3, 16)

    def _keep(self, result: Result) -> None:
        """Store the model, and warn if it is not the optimum."""
        self._keep_weights(np.ascontiguousarray(result.coef.T), np.asarray(result.intercept))
        self.objective_, self.gap_ = result.objective, result.gap
        require_finite(self, "coef_", "intercept_", "objective_", "alpha_")
        self.n_iter_ = max(1, result.n_iter)
        if not result.converged:
            warn_not_converged(self, f"max_iter={self.max_iter} rounds did not suffice")

    @without_warnings()
    def _scores(self, X: Any) -> Array:
        """Return the scores of rows, chunk by chunk."""
        check_is_fitted(self, "coef_")
        coef, intercept = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        parts = [
            scores_of(self.transformers_, chunk.X, coef, intercept, self._budget)
            for chunk in self._chunks(X)
        ]
        return finite_scores(np.concatenate(parts) if parts else np.empty((0, len(coef))))


def _norm(W: Array, groups: Sequence[Array] | None) -> float:
    """Return the norm that lasso or group lasso penalizes."""
    if groups is None:
        return float(np.abs(W).sum())
    return float(sum(np.sqrt(g.size) * np.linalg.norm(W[g]) for g in groups))
