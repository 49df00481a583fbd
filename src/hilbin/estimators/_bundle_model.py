"""Machines on features by cutting planes: what classification and regression share."""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_is_fitted,
    validate_data,
)

from hilbin._arrays import Array
from hilbin._parameters import require_choice, require_positive, require_whole
from hilbin.estimators._bundle_risk import (
    EXPANSIONS,
    Model,
    StreamedRisk,
    inner_of,
    last_step,
    uncoded,
)
from hilbin.estimators._passes import Indicators, Numbers, Survey, labels_in, required_targets
from hilbin.estimators._progress import CallbackSupportMixin, Watch
from hilbin.estimators._streamed import StreamedModel, lies_in_memory
from hilbin.maps import PQCodes, ProductQuantizer
from hilbin.maps.codes import require_same_words
from hilbin.parallel import blas_threads
from hilbin.solvers import Result, bundle, bundle_risk
from hilbin.stats import ClassSums
from hilbin.stream import Chunk, Chunks, as_chunks, fold

EXACT_TOL = 1e-4  # below it, features are not rounded to compact kinds
ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}


class Data(NamedTuple):
    """The rows of a fit: one block in memory, or blocks to be read."""

    blocks: Chunk | Chunks
    fold: Callable[[Any], Any]


def class_counts(chunk: Chunk) -> ClassSums:
    """How much of every class there is."""
    return labels_in(required_targets(chunk), chunk.weight, False)


class BundleModel(CallbackSupportMixin, StreamedModel):
    """A linear machine on the features of a map, by the bundle solver."""

    C: float
    intercept_scaling: float
    tol: float
    max_iter: int
    max_time: float | None
    expansion: str
    verbose: int

    def _check_parameters(self) -> None:
        self._check_streaming()
        require_positive("C", self.C)
        require_positive("intercept_scaling", self.intercept_scaling, or_zero=True)
        require_positive("tol", self.tol)
        require_whole("max_iter", self.max_iter, 1)
        require_choice("expansion", self.expansion, EXPANSIONS)
        if self.max_time is not None:
            require_positive("max_time, if not None,", self.max_time)

    def _data(self, X: Any, y: Any, weight: Any, client: Any, *, numbers: bool) -> Data:
        """``X`` checked, and without a copy if it lies in memory."""
        if not lies_in_memory(X):
            chunks = as_chunks(X, y, weight, memory=self.memory)
            self._check_width(chunks, reset=True)
            return Data(chunks, lambda of: fold(chunks, of, n_jobs=self.n_jobs, client=client))
        kinds: dict[str, Any] = {"multi_output": numbers, "y_numeric": numbers}
        if isinstance(X, PQCodes):
            rows, y = X, self._targets_of_codes(X, y, **kinds)
        else:
            rows, y = validate_data(self, X, y, **kinds, **ACCEPTED)
        if weight is not None:
            weight = _check_sample_weight(weight, rows, ensure_non_negative=True)
            if not weight.any():
                raise ValueError("sample_weight is 0 for all rows")
        chunk = Chunk(rows, y, weight, 0, "X")
        return Data(chunk, lambda of: of(chunk))

    def _targets_of_codes(self, codes: PQCodes, y: Any, **kinds: Any) -> Array:
        if self.feature_map is not None:
            raise ValueError(
                "X is coded already: give feature_map=None, or rows that are not coded"
            )
        if y is None:
            raise ValueError(f"This {type(self).__name__} requires y to be passed")
        y = _check_y(y, estimator=self, **kinds)
        check_consistent_length(codes, y)
        self.n_features_in_ = codes.n_features
        return y

    def _encoded(self, chunks: Chunks) -> Data:
        """The codes of all blocks, which are small enough to be kept in memory."""
        codes, labels, weights, weighted = [], [], [], False
        for chunk in chunks:
            y = required_targets(chunk)
            codes.append(self.feature_map_.transform(chunk.X))
            labels.append(y)
            weights.append(np.ones(len(y)) if chunk.weight is None else chunk.weight)
            weighted |= chunk.weight is not None
        weight = np.concatenate(weights) if weighted else None
        whole = Chunk(codes[0].append(*codes[1:]), np.concatenate(labels), weight, 0, "X")
        return Data(whole, lambda of: of(whole))

    def _prepare(self, data: Data, *, classes: bool) -> ClassSums | None:
        """Fit the map to a sample of the rows; what classes there are."""
        ready = self.feature_map is None or isinstance(self.feature_map, FrozenEstimator)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        sample, counts = None, None
        coded = isinstance(data.blocks, Chunk) and isinstance(data.blocks.X, PQCodes)
        if coded:
            counts = data.fold(class_counts) if classes else None
        elif classes or not ready:
            found = data.fold(Survey(1 if ready else self.n_fit_samples, seed, classes, False))
            sample, counts = found[0].rows, found[1] if classes else None
            if not sample.shape[0]:
                raise ValueError("no row has a weight above 0")
        feature_map: Any = None if self.feature_map is None else clone(self.feature_map)
        if not ready:
            chance = {
                key: seed
                for key, value in feature_map.get_params().items()
                if key.split("__")[-1] == "random_state" and value is None
            }
            feature_map.set_params(**chance).fit(sample)
        self.feature_map_ = feature_map
        self._fingerprint = data.fold(lambda chunk: chunk.X.fingerprint) if coded else None
        return counts

    def _train(
        self, data: Data, targets: Numbers | Indicators, loss: Any, fitted: tuple[Any, Any]
    ) -> None:
        """Solve for all tasks, and keep the model."""
        bias = float(self.intercept_scaling) ** 2
        model = self._model(targets, loss, float(self.C), bias)
        inner = inner_of(self.feature_map_)
        if isinstance(data.blocks, Chunks) and isinstance(
            last_step(self.feature_map_), ProductQuantizer
        ):
            data = self._encoded(data.blocks)
        watch = Watch(self, *fitted, 1, "pass {}: gap {:.3g} of the objective")
        with watch.problem(0, "all tasks") as callback, self._threads(data):
            course: dict[str, Any] = {
                "tol": self.tol,
                "max_iter": self.max_iter,
                "callback": callback,
            }
            if isinstance(data.blocks, Chunk):
                result = bundle_risk(model.risk(data.blocks), 1.0, inner=inner, **course)
            else:
                first = next(iter(data.blocks))
                size = model.rows(first.X[:1]).shape[1] + (bias > 0)
                tasks = targets.targets(required_targets(first)).shape[1]
                risk = StreamedRisk(model, data.fold, size, tasks)
                result = bundle(risk, size, 1.0, tasks=tasks, inner=inner, **course)
        watch.finish()
        self._keep(result)
        self._say_how_it_ended(watch)

    def _model(self, targets: Any, loss: Any, C: float, bias: float) -> Model:
        exact = self.tol < EXACT_TOL
        threads = self.n_jobs
        return Model(
            self.feature_map_, self.expansion, targets, loss, C, bias, self._budget, exact, threads
        )

    def _threads(self, data: Data) -> AbstractContextManager[Any]:
        in_memory = isinstance(data.blocks, Chunk)
        return blas_threads(self.n_jobs) if in_memory else nullcontext()

    def _keep(self, result: Result) -> None:
        """Store the model."""
        scaling = float(self.intercept_scaling)
        self.coef_ = np.ascontiguousarray(result.coef[:, :-1]) if scaling else result.coef
        self.intercept_: Any = scaling * result.coef[:, -1].astype(np.float64)
        self.objective_: Any = result.objective
        self.gap_: Any = result.gap
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        if self.verbose:
            worst = float(np.max(result.gap / np.maximum(result.objective, 1e-300)))
            print(f"[all tasks] {result.n_iter} passes, gap {worst:.2g} of the objective")

    def _say_how_it_ended(self, watch: Watch) -> None:
        """Pass an interrupt on, or warn, if the model is not the optimum."""
        if watch.interrupted:
            raise KeyboardInterrupt
        if not self.converged_:
            reason = watch.reason or f"max_iter={self.max_iter} passes did not suffice"
            gap = np.max(self.gap_ / np.maximum(self.objective_, 1e-300))
            warnings.warn(
                f"{type(self).__name__} has not converged: {reason}. The model is usable; its "
                f"duality gap is {gap:.2g} of the objective.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _scores(self, X: Any) -> Array:
        """Scores of rows, block by block."""
        check_is_fitted(self, "coef_")
        coef, intercept = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        model = self._model(Numbers(), None, 1.0, 0.0)
        if isinstance(X, PQCodes):
            self._require_own_codes(X)
            return model.rows(X).scores(coef) + intercept
        model = replace(model, feature_map=uncoded(self.feature_map_))
        if lies_in_memory(X):  # without the copies that blocks of a CSR matrix are
            blocks: Any = [
                Chunk(validate_data(self, X, reset=False, **ACCEPTED), None, None, 0, "X")
            ]
        else:
            blocks = self._open(X, reset=False)
        parts = [
            model.rows(part.X).scores(coef) + intercept
            for chunk in blocks
            for part in model.strips(chunk, coef.shape[1])
        ]
        return np.concatenate(parts) if parts else np.empty((0, len(coef)))

    def _require_own_codes(self, codes: PQCodes) -> None:
        """Refuse codes that do not mean what the model learnt."""
        last = last_step(self.feature_map_)
        own = last.fingerprint_ if isinstance(last, ProductQuantizer) else self._fingerprint
        if own is not None:
            require_same_words(own, codes)
        elif self.feature_map_ is not None:
            raise ValueError("X is coded, but the model was trained on the features of its map")
        elif codes.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {codes.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
