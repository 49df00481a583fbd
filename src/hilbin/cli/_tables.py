"""Tables of numbers with a column of labels: CSV, NumPy archives, Parquet, svmlight."""

import csv
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin.cli._outcome import InputError

SVMLIGHT = (".svmlight", ".libsvm", ".txt")
SUFFIXES = (".csv", ".npz", ".parquet", *SVMLIGHT)


@dataclass(frozen=True)
class Table:
    """Rows of numbers, and their labels if there are some.

    Parameters
    ----------
    rows : array or CSR of shape (n, d), float64
    labels : list of str, or None
    columns : list of str, or None
        Names of the columns of ``rows``, if the file has some.
    ids : list of str, or None
        Names of the rows, if a column holds them.
    """

    rows: Any
    labels: list[str] | None
    columns: list[str] | None
    ids: list[str] | None = None


def read_table(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    n_features: int | None = None,
    id: str | None = None,
    drop: Sequence[str] = (),
) -> Table:
    """A table from a file, by its extension.

    Parameters
    ----------
    path : path
    target : str, optional
        Column, or array of a NumPy archive, that holds the labels; svmlight files have them in
        front. Without it, or if it is not there but ``n_features`` is given, there are no labels.
    columns : sequence of str, optional
        The columns to take, in this order; all but the target by default.
    n_features : int, optional
        How many a model expects.
    id : str, optional
        Column that names the rows.
    drop : sequence of str
        Columns to leave out.

    Returns
    -------
    table : Table
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{file}: there is no such file")
    suffix = file.suffix.lower()
    if (id or drop) and columns is None and suffix not in (".csv", ".parquet"):
        raise InputError(f"{file}: --id and --drop are for tables with names of columns")
    if suffix in SVMLIGHT:
        table = _svmlight(file, n_features)
    elif suffix == ".npz":
        table = _npz(file, target, n_features is not None)
    else:
        read = _csv_columns if suffix == ".csv" else _parquet_columns
        table = _from_columns(file, read(file), target, columns, id, drop)
    _check(file, table, n_features)
    return table


def _csv_columns(path: Path) -> dict[str, list[Any]]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        try:
            names = next(reader, [])
            rows = [row for row in reader if row]
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{path}: not a CSV file in UTF-8: {error}") from None
    if len(set(names)) < len(names) or not names:
        raise InputError(f"{path}: the first line must name the columns, each differently")
    for i, row in enumerate(rows, 1):
        if len(row) != len(names):
            raise InputError(f"{path}, row {i}: {len(row)} values for {len(names)} columns")
    return {name: [row[j] for row in rows] for j, name in enumerate(names)}


def _parquet_columns(path: Path) -> dict[str, list[Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise InputError(f'{path}: Parquet needs pyarrow: pip install "hilbin[stream]"') from None
    try:
        found = parquet.read_table(path)
    except ArrowException as error:
        raise InputError(f"{path}: not a Parquet file: {error}") from None
    return {name: found.column(name).to_pylist() for name in found.column_names}


def _from_columns(
    path: Path,
    found: dict[str, list[Any]],
    target: str | None,
    wanted: Sequence[str] | None,
    id: str | None,
    drop: Sequence[str],
) -> Table:
    left_out = [target, id, *drop]
    if wanted is None and (gone := [n for n in left_out if n is not None and n not in found]):
        raise InputError(f"{path}: no column {gone[0]!r}; there are {', '.join(found)}")
    names = [name for name in found if name not in left_out] if wanted is None else list(wanted)
    if missing := [name for name in names if name not in found]:
        raise InputError(f"{path}: no column {missing[0]!r}, which the model takes")
    rows = np.empty((len(next(iter(found.values()), [])), len(names)))
    for j, name in enumerate(names):
        rows[:, j] = _numbers(path, name, found[name])
    labels = found.get(target) if target is not None else None
    ids = None if id is None or id not in found else [str(value) for value in found[id]]
    return Table(rows, None if labels is None else _texts(path, labels), names, ids)


def _numbers(path: Path, name: str, values: list[Any]) -> Any:
    try:
        return np.array([math.nan if v is None else v for v in values], np.float64)
    except (ValueError, TypeError):
        pass
    for i, value in enumerate(values, 1):
        try:
            float(value)
        except (ValueError, TypeError):
            raise InputError(
                f"{path}, row {i}: {value!r} in column {name!r} is not a number"
            ) from None
    raise InputError(f"{path}: column {name!r} does not hold numbers")


def _npz(path: Path, target: str | None, labels_may_miss: bool) -> Table:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a NumPy archive of plain arrays: {error}") from None
    if target is not None and target not in arrays and not labels_may_miss:
        raise InputError(f"{path}: no array {target!r}; there are {', '.join(arrays)}")
    matrices = [name for name, a in arrays.items() if a.ndim == 2 and name != target]
    name = "X" if "X" in matrices else matrices[0] if len(matrices) == 1 else None
    if name is None:
        raise InputError(
            f"{path}: expected a matrix X, or one matrix; found {', '.join(matrices) or 'none'}"
        )
    if arrays[name].dtype.kind not in "buif":
        raise InputError(f"{path}: array {name!r} holds {arrays[name].dtype}, not numbers")
    rows = arrays[name].astype(np.float64)
    if target not in arrays:
        return Table(rows, None, None)
    y = arrays[target]
    if y.shape != rows.shape[:1]:
        raise InputError(f"{path}: {target!r} has shape {y.shape} for {rows.shape[0]} rows")
    return Table(rows, _texts(path, y.tolist()), None)


def _svmlight(path: Path, n_features: int | None) -> Table:
    from sklearn.datasets import load_svmlight_file

    try:
        rows, y = load_svmlight_file(os.fspath(path), n_features=n_features)
    except (ValueError, IndexError, OverflowError) as error:
        raise InputError(f"{path}: not an svmlight file that fits: {error}") from None
    return Table(sp.csr_array(rows), _texts(path, y.tolist()), None)


def _texts(path: Path, labels: list[Any]) -> list[str]:
    """Labels as texts: whole numbers without a point."""
    texts = []
    for i, label in enumerate(labels, 1):
        whole = isinstance(label, float) and label.is_integer()
        text = str(int(label)) if whole else "" if label is None else str(label).strip()
        if not text or text == "nan":
            raise InputError(f"{path}, row {i}: there is no label")
        texts.append(text)
    return texts


def _check(path: Path, table: Table, n_features: int | None) -> None:
    n, d = table.rows.shape
    if n == 0 or d == 0:
        raise InputError(f"{path}: the table is empty: {n} rows, {d} columns of numbers")
    if n_features is not None and d != n_features:
        raise InputError(f"{path}: {d} columns of numbers; the model takes {n_features}")
    entries = table.rows.tocoo() if sp.issparse(table.rows) else None
    values = table.rows if entries is None else entries.data
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        at = bad[0] if entries is None else (entries.row[bad[0, 0]], entries.col[bad[0, 0]])
        column = table.columns[at[1]] if table.columns else f"number {at[1] + 1}"
        raise InputError(f"{path}, row {at[0] + 1}: the value in column {column} is missing")
