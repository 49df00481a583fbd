r"""Least squares on kernel features, learnt from sums: data of any size in one or two passes.

:math:`f(x) = b + \sum_k w_k z_k(x)` with the features :math:`z` of a map of :mod:`hilbin.maps`.
All that is asked of the data are the sums of :class:`~hilbin.stats.Moments`, so the model is the
exact optimum, however the rows are cut into blocks. Principal components of the features, if asked
for, are found from the same sums and folded back into the weights: prediction never projects (F.
Li, G. Lebanon and C. Sminchisescu, *A Linear Approximation to the χ² Kernel with Geometric
Convergence*, section 5).
"""

from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array
from hilbin.estimators._feature_model import FeatureModel
from hilbin.estimators._passes import Learn, Numbers
from hilbin.estimators._streamed import Passes, keeps_sums, lies_in_memory
from hilbin.solvers import Result


class MapRidge(MultiOutputMixin, RegressorMixin, FeatureModel):
    r"""Ridge, lasso or group lasso regression on the features of a kernel map, out of core.

    Minimizes :math:`\sum_i w_i (t_i - f(x_i))^2 + \alpha \|w\|^2`, or with
    ``penalty="lasso"`` the half mean of the squares plus :math:`\alpha \|w\|_1`, as scikit-learn
    does. The intercept is not penalized.

    Parameters
    ----------
    feature_map : transformer, optional
        A map of :mod:`hilbin.maps`, or any transformer; none learns on the columns themselves. It
        is cloned and fitted to a sample of the rows. One in
        :class:`sklearn.frozen.FrozenEstimator` is used as it is, which saves a pass over the data.
        Maps with an inner product of their own (``SparseMap``, ``SparseProjectionMap``) need
        ``orthonormal=True``.
    alpha : float, sequence of float, or "auto", default=1.0
        Penalty; of several, or of a grid of its own ("auto"), the best is taken.
    n_components : int, float or dict, optional
        Principal components of the features to learn on, as a number or a share of the variance;
        all features by default. Of every block, or of those that the dict names.
    penalty : {"ridge", "lasso", "group_lasso"}, default="ridge"
        ``"group_lasso"`` chooses among blocks. On components it is their weights that are few.
    blocks : list of tuples (name, columns, map), optional
        Several descriptors with their own kernels instead of one ``feature_map``. Columns are a
        slice, numbers, or names. With ``n_components`` it takes two passes: components of
        every block, then the joint sums.
    alpha_selection : {"gcv", "loo"}, default="gcv"
        How the best ``alpha`` is found: by generalized cross-validation, from the sums alone, or
        by leaving out one row after another, which takes one more pass (ridge). Weights count as
        numbers of copies in both.
    n_fit_samples : int, default=10000
        Rows in the sample to which maps are fitted, drawn at random from all, in a pass of its own.
    keep_sums : bool, default=False
        Whether the model keeps the sums it was learnt from, the square of the number of features,
        so that ``partial_fit`` can add rows.
    tol, max_iter : float, int, default=1e-6, 1000
        Of lasso and group lasso: duality gap over the mean square of the targets, and rounds.
    n_jobs : int, optional
        Blocks computed side by side in threads. With 1, the default, the matrix product has all
        threads of BLAS; more pay where the map is most of the work.
    checkpoint : path, optional
        A folder for the running sums: a job that was killed goes on from there. It is empty again
        when all is done.
    memory : float, optional
        MiB for rows and features in memory at a time, besides the sums; scikit-learn's
        ``working_memory`` by default.
    random_state : int, RandomState or None, default=0
        Draws the sample, and seeds maps that have no ``random_state``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_out,) or (n_targets, n_features_out)
        Weights of the features, components folded in.
    intercept_ : float or ndarray of shape (n_targets,)
        Constant part.
    transformers_ : list of tuples (name, columns, map)
        The fitted maps.
    alpha_ : float
        The penalty in use.
    alphas_, errors_ : ndarray
        The penalties tried and their errors, if there were several.
    n_components_ : int
        Dimensions of the problem solved.
    objective_, gap_ : float
        Value of the problem, and how far it can be above the optimum.
    n_iter_ : int
        Rounds of the solver; 1 for ridge.
    n_features_in_ : int
        Columns of ``X``.
    feature_names_in_ : ndarray
        Their names, if ``X`` has some.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import MapRidge
    >>> from hilbin.kernels import Gaussian
    >>> from hilbin.maps import FourierMap
    >>> X = np.random.default_rng(0).random((500, 2))
    >>> y = np.sin(5 * X[:, 0]) * X[:, 1]
    >>> model = MapRidge(FourierMap(Gaussian(2.0), 200), alpha=1e-3).fit(X, y)
    >>> bool(model.score(X, y) > 0.99)
    True
    """

    def __init__(
        self,
        feature_map: Any = None,
        alpha: Any = 1.0,
        *,
        n_components: Any = None,
        penalty: str = "ridge",
        blocks: Any = None,
        alpha_selection: str = "gcv",
        n_fit_samples: int = 10_000,
        keep_sums: bool = False,
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        memory: float | None = None,
        random_state: Any = 0,
    ):
        self.feature_map = feature_map
        self.alpha = alpha
        self.n_components = n_components
        self.penalty = penalty
        self.blocks = blocks
        self.alpha_selection = alpha_selection
        self.n_fit_samples = n_fit_samples
        self.keep_sums = keep_sums
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.memory = memory
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        unlabeled: Any = None,
        client: Any = None,
        callback: Any = None,
    ) -> Self:
        """Learn.

        Parameters
        ----------
        X : array-like, sparse, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, unless the blocks of ``X`` bring them along.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is the row twice, one of 0 no row.
        unlabeled : like ``X``, optional
            More rows, without targets: they count for the principal components alone.
        client : distributed.Client, optional
            The Dask cluster to compute on.
        callback : callable, optional
            Called with the name of the pass, the rows done, and all rows or None.

        Returns
        -------
        self : MapRidge
        """
        self._check_parameters()
        chunks = self._open(X, y, sample_weight, reset=True, targets="numbers")
        self._single = np.asarray(y).ndim == 1 if lies_in_memory(X) else None
        passes = Passes(self.checkpoint, self.n_jobs, client, callback)
        self._survey(chunks, passes)
        more = self._open_unlabeled(unlabeled)
        self._learn(chunks, Numbers(), more, passes)
        passes.finish()
        return self

    @available_if(keeps_sums)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those of earlier calls: the model of them all, by adding sums.

        Needs ``keep_sums=True``. The maps are fitted to a sample of the rows of the first call.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        self : MapRidge
        """
        self._check_partial()
        first = self._is_first()
        chunks = self._open(X, y, sample_weight, reset=first, targets="numbers")
        passes = Passes(self.checkpoint, self.n_jobs)
        if first:
            self._single = np.asarray(y).ndim == 1 if lies_in_memory(X) else None
            self._survey(chunks, passes)
        self._add(chunks, Learn(self.transformers_, Numbers(), self._budget), passes)
        return self

    def predict(self, X: Any) -> Array:
        """The targets of rows.

        Parameters
        ----------
        X : array-like, sparse, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows.

        Returns
        -------
        targets : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self, "coef_")
        scores = self._scores(X)
        return scores[:, 0] if self.coef_.ndim == 1 else scores

    def _keep(self, result: Result) -> None:
        super()._keep(result)
        single = self._single if self._single is not None else len(self.coef_) == 1
        if single:
            self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
