"""From what a user has to chunks: arrays, files and folders are recognized by what they are.

``KINDS`` lists the kinds of data. The first that recognizes an object, a file or a folder opens it;
what no kind recognizes is taken for an array. Error messages list the kinds from here, too.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin.stream.chunks import ChunkError, Chunks
from hilbin.stream.dask import DASK
from hilbin.stream.iterables import ITERABLE
from hilbin.stream.npy import NPY, array_files, file_sources
from hilbin.stream.parquet import PARQUET
from hilbin.stream.sources import (
    ArraySource,
    Columns,
    Joined,
    Kind,
    Source,
    SourceChunks,
    Sources,
    require_numbers,
    rows_per_chunk,
)
from hilbin.stream.svmlight import SVMLIGHT
from hilbin.stream.zarr import ZARR

KINDS: tuple[Kind, ...] = (DASK, NPY, ZARR, PARQUET, SVMLIGHT, ITERABLE)


def as_chunks(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    memory: float | None = None,
    rows: int | None = None,
    target: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    n_features: int | None = None,
) -> Chunks:
    """Open data of any kind as chunks of rows.

    Parameters
    ----------
    X : array, sparse matrix, path, list of paths, zarr, Dask collection or iterable of chunks
        - An array or anything NumPy takes for one; a SciPy sparse matrix, read as CSR.
        - A ``.npy`` file; a ``.npz`` file with ``X`` and perhaps ``y`` and ``weight``, or with a
          CSR matrix of ``scipy.sparse.save_npz``; a folder of such files, or a list of them, which
          are rows in the order of their names: ``y*.npy`` are targets, ``weight*.npy`` weights.
        - A Zarr array, or a group with ``X``, ``y`` and ``weight``, or the path of one.
        - A Parquet file, or a folder or list of them.
        - A file in the format of SVMlight and LIBSVM, or a folder (``*.svm``, ``*.svmlight``,
          ``*.libsvm``) or list of them.
        - A Dask array or data frame.
        - An iterable that can be read again, of chunks ``X``, ``(X, y)`` or ``(X, y, weight)``.
    y : array, path, list of paths or Dask collection, optional
        Targets of all rows.
    sample_weight : array, path, list of paths or Dask collection, optional
        Weights of all rows.
    memory : float, optional
        MiB for the chunks that are in memory at a time; scikit-learn's ``working_memory`` by
        default. A chunk takes a quarter of it.
    rows : int, optional
        Rows of a chunk, instead of ``memory``. Chunks of Dask and of an iterable stay as they are.
    target, weight : str, optional
        Columns of Parquet files and data frames that are targets and weights.
    features : sequence of str, optional
        Columns that are features; all others by default.
    n_features : int, optional
        Number of features of SVMlight files; as many as they show by default.

    Returns
    -------
    chunks : Chunks

    Raises
    ------
    ChunkError
        If files do not belong together or are truncated; it names them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from hilbin.stream import as_chunks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for shard in range(3):
    ...         np.save(Path(folder) / f"X_{shard}.npy", np.full((4, 2), shard))
    ...     chunks = as_chunks(folder, rows=6)
    ...     columns = [chunk.X[:, 0].tolist() for chunk in chunks]
    >>> chunks.n_rows, chunks.n_features
    (12, 2)
    >>> columns
    [[0, 0, 0, 0, 1, 1], [1, 1, 2, 2, 2, 2]]
    """
    if isinstance(X, Chunks):
        if y is not None or sample_weight is not None:
            raise ValueError("these chunks have their own targets: give X alone")
        return X
    if rows is not None and not rows >= 1:
        raise ValueError(f"rows must be at least 1, got {rows!r}")
    kind, found = _recognized(X)
    opened = kind.open(found, Columns(y, sample_weight, target, weight, features, n_features))
    if isinstance(opened, Chunks):
        return opened
    table = Joined([require_numbers(source) for source in opened.rows])
    if table.width is None:
        raise ChunkError(opened.rows[0].name, "has one value a row, not rows of features")
    targets = opened.targets if y is None else _column(y, "y")
    weights = opened.weights if sample_weight is None else _column(sample_weight, "sample_weight")
    for column in (targets, weights):
        _require_same_rows(opened.rows, column)
    if rows is None:
        rows = rows_per_chunk(table.row_bytes, memory, table.grain)
    return SourceChunks(table, _joined(targets), _joined(weights), rows)


def lies_in_memory(X: Any) -> bool:
    """Tell whether ``X`` is what scikit-learn takes, not files, chunks or a cluster's data."""
    if type(X) is np.ndarray or sp.issparse(X):
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


def _joined(sources: Sequence[Source]) -> Joined | None:
    return Joined(sources) if sources else None


def _recognized(X: Any) -> tuple[Kind, Any]:
    """Return the kind of ``X``, and what it opens."""
    many = isinstance(X, list | tuple) and bool(X) and all(_is_path(x) for x in X)
    if many or _is_path(X):
        return _recognized_files([Path(x) for x in X] if many else [Path(X)])
    return next((kind for kind in KINDS if kind.is_object and kind.is_object(X)), ARRAY), X


def _recognized_files(paths: list[Path]) -> tuple[Kind, Any]:
    for path in paths:
        _require_exists(path)
    if len(paths) == 1 and paths[0].is_dir():
        for kind in KINDS:
            if kind.in_folder and (found := kind.in_folder(paths[0])) is not None:
                return kind, found
        raise ValueError(f"{paths[0]}: none of {_names()} in it; for images use ImageChunks")
    kinds = [_kind(path) for path in paths]
    if len(set(kinds)) > 1:
        names = sorted({kind.name for kind in kinds})
        raise ValueError(f"{paths[0]} and {paths[-1]}: files of several kinds, {names}")
    return kinds[0], paths


def _kind(path: Path) -> Kind:
    for kind in KINDS:
        if kind.is_file and kind.is_file(path):
            return kind
    raise ValueError(f"{path}: not recognized; {_names()} are read")


def _names() -> str:
    """Return the names of the kinds that are files."""
    return "; ".join(kind.name for kind in KINDS if kind.is_file)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def _require_exists(path: Path) -> None:
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder")


def _require_same_rows(found: Sequence[Source], column: Sequence[Source]) -> None:
    """Check the numbers of rows file for file; one file for all is checked later, by its sum."""
    if len(column) == len(found):
        for rows, other in zip(found, column, strict=True):
            if other.n_rows != rows.n_rows:
                raise ChunkError(
                    other.name, f"has {other.n_rows} rows, while {rows.name} has {rows.n_rows}"
                )


def _array(X: Any) -> Any:
    if sp.issparse(X):
        return sp.csr_array(X)
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"X must be two-dimensional, got shape {array.shape}")
    return array


def _column(values: Any, name: str) -> list[Source]:
    """Open the targets or weights of all rows, in memory or in files."""
    if _is_path(values):
        values = [Path(values)]
    if isinstance(values, list | tuple) and values and all(isinstance(v, Path) for v in values):
        return [source for path in values for source in _files_of_column(path)]
    array = np.asarray(values)
    if array.dtype == object:
        array = np.array(array.tolist())
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must have one or two dimensions, got shape {array.shape}")
    return [ArraySource(array, name)]


def _files_of_column(path: Path) -> list[Source]:
    _require_exists(path)
    files = array_files(path) if path.is_dir() else [path]
    return [file_sources(file)[0] for file in files]


ARRAY = Kind("an array", lambda X, columns: Sources([ArraySource(_array(X), "X")]))
