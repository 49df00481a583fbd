"""Tables of numbers and texts, from memory or from files.

Files are CSV and TSV (separated by commas, semicolons or tabs, with points or decimal commas, maybe
compressed as ``.gz``), Parquet, NumPy archives and svmlight.
"""

import csv
import gzip
import io
import os
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from hilbin._arrays import Array, check_sparse
from hilbin.estimators._fit import outer_level

SVMLIGHT = (".svmlight", ".libsvm", ".txt")
SUFFIXES = (".csv", ".tsv", ".npz", ".parquet", *SVMLIGHT)
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
ODD_SHARE = 0.2  # of texts, at most, in a column of numbers, which are mistakes then
BOOLEANS = {"true": 1.0, "false": 0.0}
WHOLE = re.compile(r"^[+-]?\d+\.0+$")
THOUSANDS = re.compile(r"^[+-]?\d{1,3}(,\d{3})*(\.\d+)?$")  # 1,234,567.8
MAYBE_THOUSANDS = re.compile(r"^[+-]?[1-9]\d{0,2},\d{3}$")  # or a decimal comma
COMMA = re.compile(r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)?(,\d+)?([eE][+-]?\d+)?$")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns side by side.

    Parameters
    ----------
    columns : list of arrays of shape (n_rows,), or a matrix
        Numbers, or texts and whatever else as objects; or all columns as one dense or CSR matrix.
    names : list of str, or None
        Names of the columns.
    source : str, default="X"
        What errors call the table.
    """

    columns: Any
    names: list[str] | None = None
    source: str = "X"

    @property
    def is_matrix(self) -> bool:
        """Whether the columns are one matrix."""
        return not isinstance(self.columns, list)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        if self.is_matrix:
            return int(self.columns.shape[0])
        return len(self.columns[0]) if self.columns else 0

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.columns.shape[1]) if self.is_matrix else len(self.columns)

    def name(self, column: int) -> str:
        """Return what a column is called in messages."""
        return repr(self.names[column]) if self.names else f"number {column + 1}"

    def without(self, name: str) -> "Table":
        """Return the table without a column, if it has it."""
        if self.names is None or name not in self.names:
            return self
        kept = [j for j, other in enumerate(self.names) if other != name]
        return self.select(kept)

    def select(self, kept: Sequence[int]) -> "Table":
        """Return the table of some columns."""
        names = [self.names[j] for j in kept] if self.names else None
        columns = self.columns[:, kept] if self.is_matrix else [self.columns[j] for j in kept]
        return Table(columns, names, self.source)

    def take(self, rows: Sequence[int]) -> "Table":
        """Return the table of some rows."""
        at = np.asarray(rows, int)
        columns = self.columns[at] if self.is_matrix else [c[at] for c in self.columns]
        return Table(columns, self.names, self.source)

    def column(self, name: str) -> Array:
        """Return the column of a name."""
        places = [j for j, other in enumerate(self.names or []) if other == name]
        if not places:
            known = ", ".join(map(repr, self.names)) if self.names else "no named columns"
            raise ValueError(f"{self.source}: there is no column {name!r}; there are {known}")
        found = self.columns[:, places[0]] if self.is_matrix else self.columns[places[0]]
        return np.asarray(found)


# rows in memory
def as_table(X: Any) -> Table:
    """Return arrays, data frames, sparse matrices, files and tables as a table.

    Parameters
    ----------
    X : array-like, sparse, data frame, path or Table
        The data.

    Returns
    -------
    table : Table

    Examples
    --------
    >>> from hilbin.auto.table_data import as_table
    >>> as_table([[1.0, 2.0], [3.0, 4.0]]).n_columns
    2
    """
    if isinstance(X, Table):
        return X
    if isinstance(X, str | os.PathLike):
        return read_table(X)
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return _from_frame(X)
    if sp.issparse(X) or _is_numeric(X):
        check_sparse(X, "X")
        options: dict[str, Any] = {"accept_sparse": "csr", "dtype": "numeric"}
        rows = check_array(X, ensure_all_finite=False, **options)
        rows = _narrow(rows) if sp.issparse(rows) else rows
        return Table(rows if rows.dtype.kind in "fiub" else rows.astype(np.float64))
    cells = np.asarray(X, dtype=object)
    if cells.ndim != 2 or not all(_is_cell(value) for value in cells.flat):
        check_array(X, dtype="numeric")  # says what is wrong
        raise ValueError(f"X must have two dimensions, got {cells.ndim}")
    return Table([cells[:, j] for j in range(cells.shape[1])])


def _narrow(rows: Any) -> Any:
    """Return CSR rows with indices of 32 bits, which scikit-learn's machines want, if they fit."""
    if rows.indices.dtype == np.int64 and max(rows.nnz, *rows.shape) < 2**31:
        parts = (rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32))
        return type(rows)(parts, shape=rows.shape)
    return rows


def _is_numeric(X: Any) -> bool:
    dtype = getattr(X, "dtype", None)
    kind = getattr(dtype, "kind", None) or np.asarray(X).dtype.kind
    return kind in "fiubc"


def _is_cell(value: Any) -> bool:
    return value is None or isinstance(value, str | bytes | bool | int | float | np.generic)


def _from_frame(frame: Any) -> Table:
    names = [str(name) for name in frame.columns]
    source = type(frame).__name__
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise ValueError(f"{source}: two columns have the name {twice!r}")
    series = [frame[name] for name in frame.columns]
    columns = [np.asarray(s.to_numpy() if hasattr(s, "to_numpy") else s) for s in series]
    if not columns or not len(columns[0]):
        raise ValueError(f"{source}: the table is empty: {len(frame)} rows, {len(names)} columns")
    if all(column.dtype.kind in "fiub" for column in columns):
        return Table(np.column_stack(columns), names, source)
    return Table(columns, names, source)


def parsed(values: Array, source: str, name: str, kind: str | None = None) -> Array:
    """Return a column as float64 with NaN for what is missing, or as texts with None.

    Parameters
    ----------
    values : array of shape (n_rows,)
        Numbers, texts, None.
    source, name : str
        What errors call the table and the column.
    kind : {"number", "category"}, optional
        What the column must be. By default one of numbers alone is numbers, as is one of true and
        false, which are 1 and 0; a few texts among many numbers are an error.

    Returns
    -------
    column : array of float64 or object

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.auto.table_data import parsed
    >>> parsed(np.array(["1,5", "", "2"], object), "t.csv", "'a'")
    array([1.5, nan, 2. ])
    >>> parsed(np.array(["red", "", "blue"], object), "t.csv", "'a'")
    array(['red', None, 'blue'], dtype=object)
    """
    code = values.dtype.kind
    if code in "fiub" and kind != "category":
        return values.astype(np.float64)
    if code in "cMm":
        what = "complex numbers" if code == "c" else "dates or times"
        raise ValueError(
            f"{source}: column {name} holds {what}: make numbers or texts of it, or drop it"
        )
    texts = [_text(value) for value in values.tolist()]
    column = np.empty(len(texts), object)
    column[:] = texts
    if kind == "category":
        return column
    known = np.array([text is not None for text in texts])
    if {text.lower() for text in texts if text is not None} <= BOOLEANS.keys():
        return np.array([np.nan if text is None else BOOLEANS[text.lower()] for text in texts])
    numbers = np.array([_number(text) for text in texts])
    odd = known & np.isnan(numbers)
    if odd.any():
        commas = _with_commas(texts, source, name)
        if not (known & np.isnan(commas)).any():
            numbers, odd = commas, known & np.isnan(commas)
    if not odd.any():
        return numbers
    if kind == "number" or odd.sum() <= ODD_SHARE * known.sum():
        row = int(np.argmax(odd))
        others = f"{known.sum() - odd.sum()} of {known.sum()} values of the column are"
        others = "the column was numbers in training" if kind == "number" else others
        raise ValueError(
            f"{source}, row {row + 1}: {texts[row]!r} in column {name} is not a number, but "
            f"{others}: correct it, leave the cell empty, or drop the column"
        )
    return column


def _text(value: Any) -> str | None:
    """Return a cell as a text, whole numbers without a point, or None if it is missing."""
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = str(value).strip()
    if hasattr(value, "isoformat"):
        text = text.removesuffix(" 00:00:00")  # as tables of texts have dates
    return None if text.lower() in MISSING else text


def _number(text: str | None) -> float:
    if text is None or "_" in text:
        return np.nan
    try:
        return float(text)
    except ValueError:
        return np.nan


def _with_commas(texts: list[str | None], source: str, name: str) -> Array:
    """Return texts with decimal commas, or with commas between thousands, as numbers."""
    split = [text for text in texts if text is not None and "," in text]
    if any(text.count(",") > 1 or "." in text.partition(",")[2] for text in split):
        if all(map(THOUSANDS.match, split)):
            return np.array([_number(None if t is None else t.replace(",", "")) for t in texts])
    elif split and all(map(MAYBE_THOUSANDS.match, split)):
        warnings.warn(
            f"{source}: {split[0]!r} in column {name} is read as {_comma_number(split[0])}, with a "
            "decimal comma; if it is a thousand, leave out the comma",
            stacklevel=outer_level(),
        )
    return np.array([_comma_number(text) for text in texts])


def _comma_number(text: str | None) -> float:
    if text is None or not text or not COMMA.match(text):
        return _number(text)
    return _number(text.replace(".", "").replace(",", "."))


# files
def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a table from a file, by its extension.

    Parameters
    ----------
    path : path
        A ``.csv`` or ``.tsv`` file whose first line names the columns, maybe with ``.gz`` behind; a
        ``.parquet`` file; a ``.npz`` archive with a matrix ``X``; or an svmlight file.

    Returns
    -------
    table : Table
        Labels that an archive or an svmlight file has are left out.
    """
    file = Path(path)
    if file.is_dir():
        raise ValueError(f"{file}: a folder, not a table ({', '.join(SUFFIXES)})")
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file")
    name = file.name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix not in SUFFIXES:
        raise ValueError(f"{file}: not a table ({', '.join(SUFFIXES)}, or .gz)")
    if suffix in SVMLIGHT or suffix == ".npz":
        table = labeled_rows(file)[0]
    elif suffix == ".parquet":
        table = _from_texts(file, *_parquet_columns(file))
    else:
        table = _from_texts(file, *_csv_columns(file, suffix))
    if table.n_rows == 0 or table.n_columns == 0:
        size = f"{table.n_rows} rows, {table.n_columns} columns"
        raise ValueError(f"{file}: the table is empty: {size}")
    return table


def read_labeled(path: str | os.PathLike[str], target: str | None) -> tuple[Table, Array]:
    """Read a table and its labels.

    Parameters
    ----------
    path : path
        As in :func:`read_table`.
    target : str or None
        Column, or array of an archive, with the labels; svmlight files have them in front.

    Returns
    -------
    table : Table
        Without the labels.
    labels : array of str
    """
    file = Path(path)
    suffix = Path(file.name.lower().removesuffix(".gz")).suffix
    if suffix in SVMLIGHT or (suffix == ".npz" and file.is_file()):
        return labeled_rows(file, target)
    if target is None:
        raise ValueError(f"{file}: name the column of labels with target=")
    table = read_table(file)
    labels = label_texts(table.column(target), str(file))
    if table.n_columns == 1:
        raise ValueError(f"{file}: there is no column but {target!r}, which holds the labels")
    return table.without(target), labels


def label_texts(labels: Any, source: str) -> Array:
    """Return labels as texts, whole numbers without a point; a missing one is an error."""
    values = np.asarray(labels).tolist()
    texts = [str(value) if isinstance(value, bool) else _text(value) for value in values]
    found = []
    for i, text in enumerate(texts, 1):
        if text is None:
            raise ValueError(f"{source}, row {i}: there is no label; remove the row, or label it")
        found.append(text.partition(".")[0] if WHOLE.match(text) else text)
    return np.array(found)


def _open_text(file: Path) -> io.StringIO:
    opened = gzip.open if file.name.lower().endswith(".gz") else open
    try:
        with opened(file, "rb") as stream:
            return io.StringIO(stream.read().decode("utf-8-sig"), newline="")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file}: not a text in UTF-8: {error}; save the table in this encoding"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{file}: cannot be read: {error}") from None


def _csv_columns(file: Path, suffix: str) -> tuple[list[str], list[list[Any]]]:
    text = _open_text(file)
    first = text.readline()
    text.seek(0)
    counts = {mark: first.count(mark) for mark in ("\t", ";", ",")}
    mark = "\t" if suffix == ".tsv" else max(counts, key=lambda m: counts[m])
    try:
        lines = [
            line
            for line in csv.reader(text, delimiter=mark if any(counts.values()) else ",")
            if line
        ]
    except csv.Error as error:
        raise ValueError(f"{file}: not a table of texts: {error}") from None
    while lines and not any(lines[-1]):  # as spreadsheets leave them behind
        lines.pop()
    if not lines:
        raise ValueError(f"{file}: the file is empty; its first line must name the columns")
    names = [name.strip() for name in lines[0]]
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        what = f"two have the name {twice!r}" if twice else "two have no name"
        raise ValueError(
            f"{file}: the first line must name the columns, each differently, but {what}"
        )
    for i, line in enumerate(lines[1:], 1):
        if len(line) != len(names):
            raise ValueError(f"{file}, row {i}: {len(line)} values for {len(names)} columns")
    return names, [list(column) for column in zip(*lines[1:], strict=True)] or [[] for _ in names]


def _parquet_columns(file: Path) -> tuple[list[str], list[list[Any]]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ImportError(f'{file}: Parquet needs pyarrow: pip install "hilbin[stream]"') from None
    try:
        found = parquet.read_table(file)
    except (ArrowException, OSError) as error:
        raise ValueError(f"{file}: not a Parquet file: {error}") from None
    return [*found.column_names], [column.to_pylist() for column in found.columns]


def _from_texts(file: Path, names: list[str], columns: list[list[Any]]) -> Table:
    found = []
    for name, column in zip(names, columns, strict=True):
        values = np.empty(len(column), object)
        values[:] = column
        bad = next((v for v in column if not _is_cell(v) and not hasattr(v, "isoformat")), None)
        if bad is not None:
            raise ValueError(f"{file}: column {name!r} holds {type(bad).__name__}, not cells")
        found.append(values)
    return Table(found, names, str(file))


def labeled_rows(file: Path, target: str | None = None) -> tuple[Table, Array]:
    """Read an svmlight file or a NumPy archive: rows, and labels if there are some."""
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file")
    if file.suffix.lower() != ".npz":
        from sklearn.datasets import load_svmlight_file

        try:
            rows, y = load_svmlight_file(os.fspath(file))
        except (ValueError, IndexError, OverflowError) as error:
            raise ValueError(f"{file}: not an svmlight file that fits: {error}") from None
        return Table(_narrow(sp.csr_array(rows)), None, str(file)), label_texts(y, str(file))
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError) as error:
        raise ValueError(f"{file}: not a NumPy archive of plain arrays: {error}") from None
    matrices = [name for name, a in arrays.items() if a.ndim == 2 and name != target]
    name = "X" if "X" in matrices else matrices[0] if len(matrices) == 1 else None
    if name is None:
        found = ", ".join(matrices) or "none"
        raise ValueError(f"{file}: expected a matrix X, or one matrix; found {found}")
    if arrays[name].dtype.kind not in "buif":
        raise ValueError(f"{file}: array {name!r} holds {arrays[name].dtype}, not numbers")
    table = Table(arrays[name].astype(np.float64), None, str(file))
    if target is None:
        return table, np.empty(0, str)
    if target not in arrays:
        raise ValueError(f"{file}: there is no array {target!r}; there are {', '.join(arrays)}")
    if arrays[target].shape != (table.n_rows,):
        shape = arrays[target].shape
        raise ValueError(f"{file}: {target!r} has shape {shape} for {table.n_rows} rows")
    return table, label_texts(arrays[target], str(file))
