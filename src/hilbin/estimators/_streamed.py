"""What every estimator that learns from sums shares: opening data, and passes over it."""

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import _check_sample_weight, validate_data

from hilbin._arrays import Array
from hilbin._parameters import require_positive, require_whole
from hilbin.estimators._descriptors import Descriptor, described, features_of, fitted, to_fit
from hilbin.estimators._passes import Survey
from hilbin.stats import ClassSums
from hilbin.stream import Chunks, as_chunks, fold

MEBIBYTE = 1 << 20
SHARE = 0.25  # of the memory, for the features of one strip of rows


class Passes:
    """The passes of one fit, each a fold, with checkpoints in folders of their own."""

    def __init__(
        self,
        checkpoint: Any = None,
        n_jobs: int | None = None,
        client: Any = None,
        callback: Callable[[str, int, int | None], object] | None = None,
    ) -> None:
        self.folder = None if checkpoint is None else Path(checkpoint)
        self.n_jobs, self.client, self.callback = n_jobs, client, callback
        self._made: list[Path] = []

    def fold(self, name: str, chunks: Chunks, of: Any) -> Any:
        """The sum over all blocks; a finished one is kept until all passes are done."""
        key = {"pass": name, **{f.name: getattr(of, f.name) for f in fields(of)}}
        key.pop("settle", None)
        if effective_n_jobs(self.n_jobs) > 1 and hasattr(of, "settle"):
            of = replace(of, settle=True)
        place = None if self.folder is None else self.folder / name
        if place is not None:
            self._made.append(place)
        tell = self.callback
        return fold(
            chunks,
            of,
            n_jobs=self.n_jobs,
            client=self.client,
            checkpoint=place,
            key=key,
            keep=True,
            callback=None if tell is None else lambda done, rows: tell(name, done, rows),
        )

    def finish(self) -> None:
        """Remove what was kept for a resumption."""
        for place in self._made:
            shutil.rmtree(place, ignore_errors=True)
        if self.folder is not None and self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


def keeps_sums(model: Any) -> bool:
    """Whether ``partial_fit`` is there."""
    if not model.keep_sums:
        raise AttributeError("partial_fit adds to the sums of earlier rows: set keep_sums=True")
    return True


class StreamedModel(BaseEstimator):
    """An estimator with ``feature_map``, ``n_fit_samples``, ``checkpoint``, ``memory``, ..."""

    feature_map: Any
    n_fit_samples: int
    n_jobs: int | None
    checkpoint: Any
    memory: float | None
    random_state: Any
    transformers_: list[Descriptor]
    n_features_in_: int
    _sums: Any  # the state of moments, if they are kept
    widths_: list[int]

    def _is_first(self) -> bool:
        """Whether ``partial_fit`` begins: nothing is learnt yet."""
        first = not hasattr(self, "_sums")
        if not first and self._sums is None:
            raise ValueError(
                "the sums of fit were not kept (keep_sums=False, unlabeled rows, or components of "
                "several blocks): learn from a clone of this model"
            )
        return first

    def _check_streaming(self) -> None:
        require_whole("n_fit_samples", self.n_fit_samples, 1)
        if self.memory is not None:
            require_positive("memory, if not None,", self.memory)

    @property
    def _budget(self) -> float:
        """Bytes of the features of one strip of rows."""
        memory = get_config()["working_memory"] if self.memory is None else self.memory
        return float(memory) * MEBIBYTE * SHARE

    def _open(
        self, X: Any, y: Any = None, weight: Any = None, *, reset: bool, targets: str | None = None
    ) -> Chunks:
        """``X`` as blocks; ``targets`` is "numbers" or "labels" where they are needed."""
        if not lies_in_memory(X):
            chunks = as_chunks(X, y, weight, memory=self.memory)
            self._check_width(chunks, reset)
            return chunks
        common: dict[str, Any] = {
            "reset": reset,
            "accept_sparse": "csr",
            "dtype": (np.float64, np.float32),
        }
        if targets is None:
            rows, y = validate_data(self, X, **common), None
        elif y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        else:
            numbers = targets == "numbers"
            rows, y = validate_data(self, X, y, multi_output=numbers, y_numeric=numbers, **common)
        if weight is not None:
            weight = _check_sample_weight(weight, rows, ensure_non_negative=True)
            if not weight.any():
                raise ValueError("sample_weight is 0 for all rows")
        return as_chunks(rows, y, weight, memory=self.memory)

    def _check_width(self, chunks: Chunks, reset: bool) -> None:
        if reset:
            self.n_features_in_ = chunks.n_features
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        elif chunks.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {chunks.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )

    def _survey(
        self,
        chunks: Chunks,
        passes: Passes,
        *,
        labels: ClassSums | None = None,
        classes: bool = False,
        partly: bool = False,
    ) -> ClassSums | None:
        """Fit the maps to a sample of the rows, and find the classes unless they are known."""
        names = getattr(self, "feature_names_in_", None)
        asked = described(
            self.feature_map, getattr(self, "blocks", None), names, self.n_features_in_
        )
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        sample: Any = np.empty((0, self.n_features_in_))
        if to_fit(asked) or (classes and labels is None):
            size = self.n_fit_samples if to_fit(asked) else 1
            of = Survey(size, seed, classes and labels is None, partly)
            found = passes.fold("survey", chunks, of)
            sample = found[0].rows
            labels = found[1] if of.classes else labels
            if to_fit(asked) and not sample.shape[0]:
                raise ValueError("no row has a weight above 0")
        self.transformers_ = fitted(asked, sample, seed)
        if getattr(self, "blocks", None) is not None:
            row = next(iter(chunks)).X[:1]
            self.widths_ = [Z.shape[1] for Z in features_of(self.transformers_, row)]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        blocks = getattr(self, "blocks", None) or ()
        # Blocks of another form are refused by fit, with words.
        maps = [self.feature_map, *(b[2] for b in blocks if isinstance(b, tuple) and len(b) == 3)]
        given = [get_tags(feature_map) for feature_map in maps if feature_map is not None]
        tags.input_tags.sparse = all(t.input_tags.sparse for t in given)
        tags.input_tags.positive_only = any(t.input_tags.positive_only for t in given)
        return tags


def lies_in_memory(X: Any) -> bool:
    """Whether ``X`` is what scikit-learn takes, rather than files, blocks or a cluster's data."""
    if sp.issparse(X):
        return True
    module = type(X).__module__.partition(".")[0]
    if isinstance(X, np.memmap | str | os.PathLike | Chunks) or module in ("dask", "zarr"):
        return False
    if isinstance(X, list | tuple):
        first: Any = X[0] if X else None
        paths = isinstance(first, str | os.PathLike)
        pair = isinstance(first, tuple) and bool(first) and np.ndim(first[0]) == 2
        return not (paths or pair or sp.issparse(first) or np.ndim(first) == 2)
    array_like = any(hasattr(X, name) for name in ("__array__", "shape", "__dataframe__"))
    return array_like or not isinstance(X, Iterable)


def given_labels(y: Any, weight: Any) -> tuple[Array, Array | None] | None:
    """Labels and weights of all rows, if they are there without reading ``X``."""
    if y is None or _are_paths(y) or type(y).__module__.startswith("dask"):
        return None
    labels = np.asarray(y)
    labels = np.array(labels.tolist()) if labels.dtype == object else labels
    if weight is not None and not hasattr(weight, "__array__"):
        return None
    return labels.reshape(len(labels)), None if weight is None else np.asarray(weight)


def _are_paths(y: Any) -> bool:
    first = y[0] if isinstance(y, list | tuple) and y else y
    return isinstance(first, os.PathLike) or isinstance(y, str)
