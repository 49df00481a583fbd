"""From what a user has to blocks: arrays, files and folders are known by what they are."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin.stream import _dask, _npy
from hilbin.stream._npy import require_numbers
from hilbin.stream._ready import IterableChunks
from hilbin.stream._sources import ArraySource, Joined, Source
from hilbin.stream._svmlight import looks_like_svmlight, svmlight_sources
from hilbin.stream._table import TableChunks, rows_per_block
from hilbin.stream._tables import is_zarr, parquet_sources, zarr_sources
from hilbin.stream.chunks import Chunks
from hilbin.stream.errors import ChunkError

PARQUET = (".parquet", ".pq")
SVMLIGHT = (".svm", ".svmlight", ".libsvm")
Sources = tuple[list[Source], list[Source], list[Source]]  # rows, targets, weights


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
    """Data of any kind as blocks of rows.

    Parameters
    ----------
    X : array, sparse matrix, path, list of paths, zarr, Dask collection or iterable of blocks
        - An array or anything NumPy takes for one; a SciPy sparse matrix, read as CSR.
        - A ``.npy`` file; a ``.npz`` file with ``X`` and perhaps ``y`` and ``weight``, or with a
          CSR matrix of ``scipy.sparse.save_npz``; a folder of such files, or a list of them, which
          are rows in the order of their names: ``y*.npy`` are targets, ``weight*.npy`` weights.
        - A Zarr array, or a group with ``X``, ``y`` and ``weight``, or the path of one.
        - A Parquet file, or a folder or list of them.
        - A file in the format of SVMlight and LIBSVM, or a folder (``*.svm``, ``*.svmlight``,
          ``*.libsvm``) or list of them.
        - A Dask array or data frame.
        - An iterable that can be read again, of blocks ``X``, ``(X, y)`` or ``(X, y, weight)``.
    y : array, path, list of paths or Dask collection, optional
        Targets of all rows.
    sample_weight : array, path, list of paths or Dask collection, optional
        Weights of all rows.
    memory : float, optional
        MiB for the blocks that are in memory at a time; scikit-learn's ``working_memory`` by
        default. A block takes a quarter of it.
    rows : int, optional
        Rows of a block, instead of ``memory``. Blocks of Dask and of an iterable stay as they are.
    target, weight : str, optional
        Columns of Parquet files and data frames that are targets and weights.
    features : sequence of str, optional
        Columns that are features; all others by default.
    n_features : int, optional
        Features of SVMlight files; as many as they show by default.

    Returns
    -------
    chunks : Chunks

    Raises
    ------
    ChunkError
        If files do not belong together or are truncated, naming them.

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
    ...     blocks = [chunk.X[:, 0].tolist() for chunk in chunks]
    >>> chunks.n_rows, chunks.n_features
    (12, 2)
    >>> blocks
    [[0, 0, 0, 0, 1, 1], [1, 1, 2, 2, 2, 2]]
    """
    if isinstance(X, Chunks):
        if y is not None or sample_weight is not None:
            raise ValueError("these chunks have their own targets: give X alone")
        return X
    if rows is not None and not rows >= 1:
        raise ValueError(f"rows must be at least 1, got {rows!r}")
    if _dask.is_collection(X):
        return _dask.DaskChunks(X, y, sample_weight, target, weight, features)
    if _is_blocks(X):
        if y is not None or sample_weight is not None:
            raise ValueError("blocks bring their targets along: yield (X, y) or (X, y, weight)")
        return IterableChunks(X)
    found, *own = _sources(X, target, weight, features, n_features)
    table = Joined([require_numbers(source) for source in found])
    if table.width is None:
        raise ChunkError(found[0].name, "has one value a row, not rows of features")
    given = {"y": y, "sample_weight": sample_weight}
    columns = [
        there if values is None else _column(values, name)
        for (name, values), there in zip(given.items(), own, strict=True)
    ]
    for column in columns:
        _require_same_rows(found, column)
    if rows is None:
        rows = rows_per_block(table.row_bytes, memory, table.grain)
    targets, weights = (Joined(column) if column else None for column in columns)
    return TableChunks(table, targets, weights, rows)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def _is_blocks(X: Any) -> bool:
    """Whether ``X`` is an iterable of blocks, rather than an array, a list of rows, or paths."""
    if _is_path(X) or hasattr(X, "__array__") or hasattr(X, "shape") or _is_zarr_group(X):
        return False
    if isinstance(X, list | tuple):
        first: Any = X[0] if X else None
        return isinstance(first, tuple) or sp.issparse(first) or np.ndim(first) == 2
    return isinstance(X, Iterable)


def _is_zarr_group(X: Any) -> bool:
    return type(X).__module__.startswith("zarr.")


def _sources(
    X: Any,
    target: str | None,
    weight: str | None,
    features: Sequence[str] | None,
    n_features: int | None,
) -> Sources:
    if _is_zarr_group(X):
        return _three(zarr_sources(X))
    many = isinstance(X, list | tuple) and bool(X) and all(_is_path(x) for x in X)
    if not many and not _is_path(X):
        return [ArraySource(_array(X), "X")], [], []
    paths = [Path(x) for x in X] if many else [Path(X)]
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: there is no such file or folder")
    kind, files, sidecars = _recognized(paths)
    if kind == "zarr":
        return _concatenated([_three(zarr_sources(path)) for path in files])
    if kind == "parquet":
        return parquet_sources(files if many else paths[0], target, weight, features), [], []
    if kind == "svmlight":
        return svmlight_sources(files, n_features), [], []
    found, own_targets, own_weights = _concatenated([_three(_npy.file_sources(f)) for f in files])
    beside = [[s for f in column for s in _npy.file_sources(f)[:1]] for column in sidecars]
    return found, own_targets or beside[0], own_weights or beside[1]


def _three(sources: tuple[Source, Source | None, Source | None]) -> Sources:
    first, second, third = ([] if source is None else [source] for source in sources)
    return first, second, third


def _concatenated(each: list[Sources]) -> Sources:
    columns = tuple(
        [s for sources in column for s in sources] for column in zip(*each, strict=True)
    )
    for column, what in zip(columns[1:], ("y", "weight"), strict=True):
        if column and len(column) != len(each):
            lacking = next(e for e in each if not e[1 if what == "y" else 2])
            raise ChunkError(lacking[0][0].name, f"has no {what}, while {column[0].name} is there")
    return columns[0], columns[1], columns[2]


def _require_same_rows(found: list[Source], column: list[Source]) -> None:
    """File for file; a single file for all is compared with their sum later."""
    if len(column) == len(found):
        for rows, other in zip(found, column, strict=True):
            if other.n_rows != rows.n_rows:
                raise ChunkError(
                    other.name, f"has {other.n_rows} rows, while {rows.name} has {rows.n_rows}"
                )


def _recognized(paths: list[Path]) -> tuple[str, list[Path], tuple[list[Path], list[Path]]]:
    """The kind of files, those with rows, and those with targets and with weights."""
    if len(paths) == 1 and paths[0].is_dir() and not is_zarr(paths[0]):
        return _recognized_folder(paths[0])
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1:
        raise ValueError(f"{paths[0]} and {paths[-1]}: files of several kinds, {sorted(kinds)}")
    return kinds.pop(), paths, ([], [])


def _recognized_folder(folder: Path) -> tuple[str, list[Path], tuple[list[Path], list[Path]]]:
    rows, targets, weights = _npy.shards(folder)
    if rows:
        for column in (targets, weights):
            if column and len(column) not in (1, len(rows)):
                raise ChunkError(
                    str(folder), f"has {len(rows)} files of rows and {len(column)} of targets"
                )
        return "npy", rows, (targets, weights)
    if any(path.suffix in PARQUET for path in folder.rglob("*")):
        return "parquet", [folder], ([], [])
    stores = sorted(path for path in folder.iterdir() if path.is_dir() and is_zarr(path))
    if stores:
        return "zarr", stores, ([], [])
    lines = sorted(path for path in folder.iterdir() if path.suffix in SVMLIGHT)
    if lines:
        return "svmlight", lines, ([], [])
    raise ValueError(
        f"{folder}: no .npy, .npz, .parquet, .zarr or .svm file in it; for images use ImageChunks"
    )


def _kind(path: Path) -> str:
    if path.is_dir() and is_zarr(path):
        return "zarr"
    for kind, suffixes in (("npy", _npy.SUFFIXES), ("parquet", PARQUET), ("svmlight", SVMLIGHT)):
        if path.suffix in suffixes:
            return kind
    if path.is_file() and looks_like_svmlight(path):
        return "svmlight"
    raise ValueError(
        f"{path}: not known what this is; .npy, .npz, .parquet, .zarr and lines of "
        "'target index:value ...' are read"
    )


def _array(X: Any) -> Any:
    if sp.issparse(X):
        return sp.csr_array(X)
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"X must be two-dimensional, got shape {array.shape}")
    return array


def _column(values: Any, name: str) -> list[Source]:
    """Targets or weights of all rows, in memory or in files."""
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
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    files = _npy.array_files(path) if path.is_dir() else [path]
    return [s for file in files for s in _npy.file_sources(file)[:1]]
