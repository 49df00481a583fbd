"""The base of the estimators on explicit features: how data are opened, and how maps are fitted.

Rows come from memory, as one chunk, or as chunks that are read again in every pass. The first pass,
the survey, draws a sample of the rows, to which the maps are fitted, and finds the classes.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone, is_classifier
from sklearn.utils import get_tags

from hilbin._arrays import Array, Matrix, validate_data
from hilbin._parameters import estimator, require_positive, require_whole
from hilbin._state import require, require_attributes
from hilbin.estimators._fit import check_labels, checked_weights, random_seed
from hilbin.estimators.linear.cost import (
    FIRST_ROWS,
    CostEstimate,
    FirstRows,
    Plan,
    estimated,
    measure,
    read_first,
)
from hilbin.estimators.linear.passes import Passes, Survey
from hilbin.estimators.linear.transformers import (
    Transformer,
    checked_groups,
    fitted,
    need_rows,
    require_plain_inner_product,
)
from hilbin.estimators.probability import row_keys
from hilbin.stats import ClassSums, DistinctSample, Moments
from hilbin.stream import Chunk, Chunks, as_chunks
from hilbin.stream.opening import lies_in_memory

MEBIBYTE = 1 << 20
SHARE = 0.25  # of the memory, for the features of one slice of rows
ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}


@estimator
class MapModel(BaseEstimator):
    """Base of the estimators on the features of a map.

    Parameters
    ----------
    feature_map : transformer, optional
        A map of :mod:`hilbin.maps`, or any transformer; without one the columns themselves are the
        features. It is cloned and fitted to a sample of the different rows, with their weights if
        its ``fit`` takes some; so for the map, too, a weight of 2 is equivalent to repeating the
        row. A map in :class:`sklearn.frozen.FrozenEstimator` is used as it is, which saves a pass
        over the data. Maps with an inner product of their own (``SparseMap``,
        ``SparseProjectionMap``) need ``orthonormal=True``.
    n_fit_samples : int, default=10000
        Number of rows in the sample to which maps are fitted. It is drawn at random from all
        different rows, in a pass of its own.
    n_jobs : int, optional
        Number of chunks that threads compute side by side. With 1, the default, matrix products
        have all threads of BLAS; more pay where the map is most of the work.
    memory : float, optional
        MiB for rows and features in memory at a time, besides the sums; scikit-learn's
        ``working_memory`` by default.
    random_state : int, RandomState or None, default=0
        Random seed of the sample, and of maps that have no ``random_state``.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray
        Their names, if ``X`` has some.
    """

    _: KW_ONLY
    feature_map: Any = None
    n_fit_samples: int = 10_000
    n_jobs: int | None = None
    memory: float | None = None
    random_state: Any = 0

    def _check_parameters(self) -> None:
        require_whole("n_fit_samples", self.n_fit_samples, 1)
        if self.memory is not None:
            require_positive("memory, if not None,", self.memory)

    @property
    def _budget(self) -> float:
        """Bytes for the features of one slice of rows."""
        memory = get_config()["working_memory"] if self.memory is None else self.memory
        return float(memory) * MEBIBYTE * SHARE

    def _rows(
        self, X: Any, y: Any = None, weight: Any = None, *, reset: bool, targets: str | None = None
    ) -> Chunk | Chunks:
        """Return checked rows: one chunk if they are in memory, else chunks that are read.

        ``targets`` is "numbers" or "labels" where they are needed.
        """
        if not lies_in_memory(X):
            chunks = as_chunks(X, y, weight, memory=self.memory)
            self._check_width(chunks.n_features, reset)
            return chunks
        if targets is None:
            rows, y = validate_data(self, X, reset=reset, **ACCEPTED), None
        elif y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        else:
            numbers = targets == "numbers"
            kinds: dict[str, Any] = {"multi_output": numbers, "y_numeric": numbers}
            rows, y = validate_data(self, X, y, reset=reset, **kinds, **ACCEPTED)
        if targets == "labels":
            check_labels(y)
        return Chunk(rows, y, None if weight is None else checked_weights(weight, rows), 0, "X")

    def _chunks(self, X: Any) -> Iterable[Chunk]:
        """Return the chunks of rows to predict."""
        rows = self._rows(X, reset=False)
        return [rows] if isinstance(rows, Chunk) else rows

    def _check_width(self, width: int, reset: bool) -> None:
        if reset:
            self.n_features_in_ = width
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        elif width != self.n_features_in_:
            raise ValueError(
                f"X has {width} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        self._check_parameters()
        found = (
            require_attributes(
                self,
                coef_="float[p]|float[1, p]|float[s, p]",
                intercept_="float|float[1]|float[s]",
                n_features_in_="int",
            )
            if "coef_" in vars(self)
            else {}
        )
        self._check_transformers()
        if found and "classes_" in vars(self):
            classes = require_attributes(self, classes_="labels[k]")["k"]
            s = 1 if np.ndim(self.coef_) == 1 else len(self.coef_)
            require(s == (1 if classes == 2 else classes), "coef_ is not for classes_")

    def _check_transformers(self) -> None:
        """Raise ``ValueError`` if the loaded groups of columns are not those of the rows."""
        for name in ("feature_map", "feature_map_"):
            feature_map = getattr(self, name, None)
            maps = feature_map is None or hasattr(feature_map, "transform")
            require(maps, f"{name} does not transform")
        groups = getattr(self, "column_groups", None)
        require(groups is None or isinstance(groups, list | tuple), "column_groups is no list")
        fitted = vars(self).get("transformers_", [])
        unfitted = "transformers_" not in vars(self)
        require(unfitted or (isinstance(fitted, list) and fitted), "transformers_ is no list")
        for group in fitted:
            right = isinstance(group, tuple) and len(group) == 3 and isinstance(group[0], str)
            require(right, "transformers_ are not names, columns and maps")
            columns, feature_map = group[1:]
            require(feature_map is None or hasattr(feature_map, "transform"), "a map is none")
            if columns is not None:
                numbers = isinstance(columns, np.ndarray) and columns.dtype.kind == "i"
                require(numbers and columns.ndim == 1, "transformers_ have no columns")
                inside = (
                    columns.min(initial=0) >= 0 and columns.max(initial=0) < self.n_features_in_
                )
                require(inside, "transformers_ have columns out of range")

    def _transformers(self) -> list[Transformer]:
        """Return the transformers that the parameters ask for, not fitted yet."""
        return [("all", None, self.feature_map)]

    def _survey(
        self, passes: Passes, *, classes: bool = False, partly: bool = False
    ) -> tuple[list[Transformer], ClassSums | None]:
        """Return the transformers, fitted to a sample of the rows, and the classes if asked."""
        asked, seed = self._transformers(), random_seed(self.random_state)
        size = self.n_fit_samples if need_rows(asked) else 0
        if not (size or classes):
            return fitted(asked, None, seed), None
        found = [*passes.fold("survey", Survey(size, seed, classes, partly)).parts]
        sample = found.pop(0) if size else None
        if sample is not None and not sample.rows.shape[0]:
            raise ValueError("sample_weight is zero for every row")
        return fitted(asked, sample, seed), found[0] if classes else None

    def _keep_weights(self, coef: Array, intercept: Any) -> None:
        """Store the weights of the scores."""
        self.coef_, self.intercept_ = coef, intercept

    def _maps(self) -> list[Any]:
        """Return the maps among the parameters, which say what input is allowed."""
        return [self.feature_map]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = [get_tags(feature_map) for feature_map in self._maps() if feature_map is not None]
        tags.input_tags.sparse = all(t.input_tags.sparse for t in given)
        tags.input_tags.positive_only = any(t.input_tags.positive_only for t in given)
        return tags


def keeps_sums(model: Any) -> bool:
    """Tell whether a model has ``partial_fit``."""
    if not model.keep_sums:
        raise AttributeError("partial_fit adds to the sums of earlier rows: set keep_sums=True")
    return True


@estimator
class SumsModel(MapModel):
    """Base of the estimators that learn from sums over the rows alone.

    Parameters
    ----------
    keep_sums : bool, default=False
        Whether the model keeps the sums it was learned from, whose size is the square of the number
        of features, so that ``partial_fit`` can add rows.
    checkpoint : path, optional
        Folder for the running sums, from which a job that was killed resumes. It is removed at the
        end of the fit.
    verbose : int, default=0
        1 prints how far a pass over the rows has come and the time left, if it takes over two
        seconds, and how the sums were solved.

    Attributes
    ----------
    transformers_ : list of tuples (name, columns, map)
        The fitted maps, with the columns they take, or None for all.
    """

    _: KW_ONLY
    keep_sums: bool = False
    checkpoint: Any = None
    verbose: int = 0

    def estimate_cost(
        self, X: Any, y: Any = None, *, n_rows: int | None = None, n_workers: int = 1
    ) -> CostEstimate:
        """Estimate the time and memory of ``fit``, from the first rows alone.

        The maps are fitted to the first ``n_fit_samples`` rows, or to as many as can be read in two
        seconds; nothing of it is kept.

        Parameters
        ----------
        X : array-like, sparse, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows, as for ``fit``. Dask collections of unknown length are taken for copies of their
            first partition.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
            Targets, unless ``X`` brings them along: their number counts.
        n_rows : int, optional
            Number of rows, if it is another than that of ``X``, or ``X`` does not tell it.
        n_workers : int, default=1
            Number of workers of a cluster, each as fast as this machine with one thread.

        Returns
        -------
        cost : CostEstimate
            Its ``seconds`` and ``bytes``, and ``model``: how they were estimated.
        """
        self._check_parameters()
        require_whole("n_workers", n_workers, 1)
        if n_rows is not None:
            require_whole("n_rows, if not None,", n_rows, 1)
        model = clone(self)
        fits = need_rows([("", None, feature_map) for feature_map in self._maps()])
        wanted = max(FIRST_ROWS, self.n_fit_samples if fits else 0)
        rows = model._first_rows(X, y, wanted, n_rows)
        asked, seed = model._transformers(), random_seed(self.random_state)

        def fit(X: Matrix) -> list[Transformer]:
            size = self.n_fit_samples
            return fitted(asked, DistinctSample.of(X, size, numbers=row_keys(X), seed=seed), seed)

        measured = measure(rows, fit)
        surveys = fits or (not lies_in_memory(X) and y is None and is_classifier(self))
        plan = model._plan(measured.widths, rows, n_workers)
        plan = plan._replace(read=plan.read + surveys)
        return estimated(plan, measured, self._budget, effective_n_jobs(self.n_jobs), n_workers)

    def _first_rows(self, X: Any, y: Any, wanted: int, n_rows: int | None) -> FirstRows:
        """Return the first rows, checked; keep their width and names."""
        if lies_in_memory(X):
            some: Any = self._rows(X[:wanted], reset=True)
            found = FirstRows(some.X, None, n_rows or (np.shape(X) or [len(X)])[0], 0, 0.0)
        else:
            found = read_first(X, wanted, n_rows, int(self._budget / SHARE))
            self._check_width(found.X.shape[1], reset=True)
        given = None if y is None else given_targets(y)
        return found if given is None else found._replace(y=given)

    def _plan(self, widths: tuple[int, ...], rows: FirstRows, n_workers: int) -> Plan:
        """Return what ``fit`` does, apart from a survey of the rows."""
        raise NotImplementedError

    def _passes(self, chunks: Chunks, client: Any = None, callback: Any = None) -> Passes:
        return Passes(chunks, self.n_jobs, client, self.checkpoint, callback, self.verbose)

    def _open(
        self, X: Any, y: Any = None, weight: Any = None, *, reset: bool, targets: str | None = None
    ) -> Chunks:
        """Return checked rows, cut into chunks in memory as well."""
        rows = self._rows(X, y, weight, reset=reset, targets=targets)
        if isinstance(rows, Chunk):
            return as_chunks(rows.X, rows.y, rows.weight, memory=self.memory)
        return rows

    def _fit_maps(
        self, passes: Passes, *, classes: bool = False, partly: bool = False
    ) -> ClassSums | None:
        """Keep the fitted transformers, and return the classes if asked."""
        self.transformers_, counts = self._survey(passes, classes=classes, partly=partly)
        for _, _, feature_map in self.transformers_:
            require_plain_inner_product(feature_map)
        return counts

    def _is_first(self) -> bool:
        """Tell whether ``partial_fit`` begins: nothing is learned yet."""
        first = not hasattr(self, "_sums")
        if not first and self._sums is None:
            raise ValueError(
                "the sums of fit were not kept (keep_sums=False, unlabeled rows, or components of "
                "several column groups): learn from a clone of this model"
            )
        return first

    def _with_earlier(self, sums: Moments) -> Moments:
        """Add the sums of earlier calls of ``partial_fit``."""
        earlier = getattr(self, "_sums", None)
        if earlier is not None:
            sums += Moments.from_state(earlier)
        return sums

    def _keep_sums(self, sums: Moments | None) -> None:
        self._sums = None if sums is None or not self.keep_sums else sums.state()


@estimator
class GroupedModel(SumsModel):
    """Base of the estimators that know groups of columns.

    Parameters
    ----------
    column_groups : list of tuples (name, columns, map), optional
        Several groups of columns with maps of their own instead of one ``feature_map``. Columns are
        a slice, numbers, or names.
    """

    _: KW_ONLY
    column_groups: Any = None

    def _transformers(self) -> list[Transformer]:
        if self.column_groups is None:
            return super()._transformers()
        if self.feature_map is not None:
            raise ValueError(
                "give feature_map or column_groups, not both: every group has its own map"
            )
        names = getattr(self, "feature_names_in_", None)
        return checked_groups(self.column_groups, names, self.n_features_in_)

    def _maps(self) -> list[Any]:
        # groups of another form are refused by fit, in words
        groups = [g for g in self.column_groups or () if isinstance(g, tuple) and len(g) == 3]
        return [self.feature_map, *(feature_map for _, _, feature_map in groups)]


class ScoreRegressor(MultiOutputMixin, RegressorMixin):
    """A regression by scores: another base has ``_scores(X)`` of shape (n_samples, n_targets)."""

    coef_: Array
    intercept_: Any
    _scores: Callable[[Any], Array]

    def predict(self, X: Any) -> Array:
        """Predict the targets of rows.

        Parameters
        ----------
        X : array-like, sparse, or anything that :func:`hilbin.stream.as_chunks` takes
            Rows, or whatever else ``fit`` takes.

        Returns
        -------
        targets : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        scores = self._scores(X)
        return scores[:, 0] if self.coef_.ndim == 1 else scores

    def _set_single(self, X: Any, y: Any) -> None:
        """Note whether ``y`` has one dimension, if that is known before chunks are read."""
        self._single = np.asarray(y).ndim == 1 if lies_in_memory(X) else None

    def _keep_weights(self, coef: Array, intercept: Any) -> None:
        """Store the weights, without the dimension of a single target."""
        single = len(coef) == 1 if self._single is None else self._single
        self.coef_, self.intercept_ = (
            (coef[0], float(intercept[0])) if single else (coef, intercept)
        )


def given_labels(y: Any, weight: Any) -> tuple[Array, Array | None] | None:
    """Return labels and weights of all rows, if they are known without reading ``X``."""
    if y is None or _are_paths(y) or type(y).__module__.startswith("dask"):
        return None
    labels = np.asarray(y)
    labels = np.array(labels.tolist()) if labels.dtype == object else labels
    if weight is not None and not hasattr(weight, "__array__"):
        return None
    return labels.reshape(len(labels)), None if weight is None else np.asarray(weight)


def given_targets(y: Any) -> Array | None:
    """Return targets of all rows, if they are known without reading files."""
    if _are_paths(y) or type(y).__module__.startswith("dask"):
        return None
    return np.asarray(y)


def _are_paths(y: Any) -> bool:
    first = y[0] if isinstance(y, list | tuple) and y else y
    return isinstance(first, os.PathLike) or isinstance(y, str)
