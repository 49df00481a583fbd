"""Tables of numbers and texts, from memory or from files, as rows of numbers.

A column of numbers stays as it is. A column of texts becomes one column of zeros and ones per
category. Where a column of numbers has missing values, they get the median, and a column of its own
says where they were missing; a missing text is a category. Columns that number the rows, and
columns with a single value, are left out, with a reason.

Files are CSV and TSV (separated by commas, semicolons or tabs, with points or decimal commas, maybe
compressed as ``.gz``), Parquet, NumPy archives and svmlight.
"""

import csv
import gzip
import io
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, check_rows, check_sparse
from hilbin._parameters import estimator
from hilbin._state import require, stored

SVMLIGHT = (".svmlight", ".libsvm", ".txt")
SUFFIXES = (".csv", ".tsv", ".npz", ".parquet", *SVMLIGHT)
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
MOST_CATEGORIES = 100  # per column; rarer ones are all zeros
MANY = 10  # rows from which unique values are a sign of an identifier
ODD_SHARE = 0.2  # of texts, at most, in a column of numbers, which are mistakes then
MEDIAN_ROWS = 2000  # whose medians stand for values that are missing in new rows alone
COMMA = re.compile(r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)?(,\d+)?([eE][+-]?\d+)?$")
ID_NAME = re.compile(
    r"^(id|index|row|rownum|row[ _]?(id|number|nr)|.*[ _-]id|.*[a-z]I[dD]|uuid|guid)$"
)
NO_NAME = re.compile(r"^(|unnamed: \d+|__index_level_\d+__)$", re.IGNORECASE)


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
        return Table(rows if rows.dtype.kind in "fiub" else rows.astype(np.float64))
    cells = np.asarray(X, dtype=object)
    if cells.ndim != 2 or not all(_is_cell(value) for value in cells.flat):
        check_array(X, dtype="numeric")  # says what is wrong
        raise ValueError(f"X must have two dimensions, got {cells.ndim}")
    return Table([cells[:, j] for j in range(cells.shape[1])])


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
        What the column must be. By default one of numbers alone is numbers; a few texts among many
        numbers are an error.

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
    numbers = np.array([_number(text) for text in texts])
    known = np.array([text is not None for text in texts])
    odd = known & np.isnan(numbers)
    if odd.any():
        commas = np.array([_comma_number(text) for text in texts])
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
    return None if text.lower() in MISSING else text


def _number(text: str | None) -> float:
    if text is None or "_" in text:
        return np.nan
    try:
        return float(text)
    except ValueError:
        return np.nan


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
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file")
    name = file.name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix not in SUFFIXES:
        raise ValueError(f"{file}: not a table that is known ({', '.join(SUFFIXES)}, or .gz)")
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
        raise ValueError(f"{file}: say by target= which column holds the labels")
    table = read_table(file)
    return table.without(target), label_texts(table.column(target), str(file))


def label_texts(labels: Any, source: str) -> Array:
    """Return labels as texts, whole numbers without a point; a missing one is an error."""
    texts = [_text(value) for value in np.asarray(labels).tolist()]
    for i, text in enumerate(texts, 1):
        if text is None:
            raise ValueError(f"{source}, row {i}: there is no label")
    return np.array(texts)


def _open_text(file: Path) -> io.StringIO:
    opened = gzip.open if file.name.lower().endswith(".gz") else open
    try:
        with opened(file, "rb") as stream:
            return io.StringIO(stream.read().decode("utf-8-sig"), newline="")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ValueError(f"{file}: not a text in UTF-8: {error}") from None


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
    names = [name.strip() for name in lines[0]] if lines else []
    if not names or len(set(names)) < len(names):
        raise ValueError(f"{file}: the first line must name the columns, each differently")
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
        return Table(sp.csr_array(rows), None, str(file)), label_texts(y, str(file))
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


# tables to rows of numbers
@stored
@dataclass
class Column:
    """How a column becomes features.

    Parameters
    ----------
    place : int
        Number of the column in the table.
    name : str
        Its name, or its number.
    categories : list of str or None, optional
        The categories that have a feature, None for missing texts; without them it is numbers.
    fill : float, default=0
        What stands for a missing number.
    indicates : bool, default=False
        Whether another feature says where numbers are missing.
    """

    place: int
    name: str
    categories: list[Any] | None = None
    fill: float = 0.0
    indicates: bool = False

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        if self.categories is None:
            return [self.name, f"{self.name} is missing"] if self.indicates else [self.name]
        return [
            f"{self.name} is missing" if c is None else f"{self.name} = {c}"
            for c in self.categories
        ]

    def encode(self, values: Array, source: str) -> Array:
        """Return the features of the values of the column."""
        kind = "number" if self.categories is None else "category"
        column = parsed(values, source, repr(self.name), kind)
        if self.categories is not None:
            places = {category: k for k, category in enumerate(self.categories)}
            found = np.array([places.get(value, -1) for value in column])
            return (found[:, None] == np.arange(len(places))).astype(np.float64)
        infinite = np.isinf(column)
        if infinite.any():
            row = int(np.argmax(infinite))
            raise ValueError(
                f"{source}, row {row + 1}: {column[row]} in column {self.name!r} is not finite"
            )
        missing = np.isnan(column)
        filled = np.where(missing, self.fill, column)
        return np.column_stack([filled, missing] if self.indicates else [filled])


@stored
@estimator
class TableEncoder(TransformerMixin, BaseEstimator):
    """Rows of numbers from a table of numbers and texts.

    Parameters
    ----------
    drop : str, int or list of these, optional
        Columns to leave out, by name or number.
    id : str or int, optional
        Column that names the rows; it is left out, too.

    Attributes
    ----------
    columns_ : list
        How every column that is used becomes features; None if all are numbers as they are.
    left_out_ : dict
        Columns that are left out, and why.
    input_columns_ : ndarray of shape (n_features_out,)
        For each feature the number of its column.
    n_features_in_ : int
        Number of columns.
    names_ : list of str or None
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.auto.table_data import TableEncoder
    >>> X = np.array([["red", 1.0], ["blue", None], ["red", 3.0], ["blue", 2.0]], object)
    >>> encoder = TableEncoder().fit(X)
    >>> encoder.transform(X)
    array([[0., 1., 1., 0.],
           [1., 0., 2., 1.],
           [0., 1., 3., 0.],
           [1., 0., 2., 0.]])
    >>> encoder.get_feature_names_out().tolist()
    ['column 1 = blue', 'column 1 = red', 'column 2', 'column 2 is missing']
    """

    drop: Any = None
    id: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find what every column holds.

        Parameters
        ----------
        X : array-like, sparse, data frame, path or Table
            The table.
        y : ignored
            For pipelines.

        Returns
        -------
        self : TableEncoder
        """
        table = as_table(X)
        self.names_, self.n_features_in_ = table.names, table.n_columns
        self.left_out_ = self._dropped(table)
        kept = [j for j in range(table.n_columns) if self._label(j) not in self.left_out_]
        if not kept:
            raise ValueError(f"{table.source}: drop= and id= leave no column")
        self.sparse_ = sp.issparse(table.columns)
        self.columns_: list[Column] | None = None
        if self.sparse_:
            self.input_columns_ = np.array(kept)
            return self
        if table.is_matrix and not np.isnan(table.columns).any():
            step = max(1, table.n_rows // MEDIAN_ROWS)
            fills = np.median(table.columns[::step], axis=0)
            found = [Column(j, self._label(j), fill=float(fills[j])) for j in kept]
            reasons = _matrix_reasons(table, kept)
        else:
            values = [self._values(table, j) for j in kept]
            found = [_described(j, self._label(j), v) for j, v in zip(kept, values, strict=True)]
            reasons = [_reason(table, j, v) for j, v in zip(kept, values, strict=True)]
        if all(reasons):  # there must be a column
            reasons = [None] * len(kept)
        self.left_out_ |= {c.name: r for c, r in zip(found, reasons, strict=True) if r}
        self.columns_ = [c for c, r in zip(found, reasons, strict=True) if not r]
        widths = [len(c.features) for c in self.columns_]
        self.input_columns_ = np.repeat([c.place for c in self.columns_], widths)
        return self

    def transform(self, X: Any) -> Any:
        """Make rows of numbers.

        Parameters
        ----------
        X : array-like, sparse, data frame, path or Table
            A table with the columns of ``fit``; further named ones are ignored.

        Returns
        -------
        rows : ndarray or CSR array of shape (n_samples, n_features_out)
        """
        check_is_fitted(self, "input_columns_")
        table = self._aligned(as_table(X))
        if self.columns_ is None or sp.issparse(table.columns):
            rows = check_rows(table.columns, table.source)
            whole = self.input_columns_.size == table.n_columns
            rows = rows if whole else rows[:, self.input_columns_]
            if sp.issparse(rows) == self.sparse_:
                return rows
            return sp.csr_array(rows) if self.sparse_ else rows.toarray()
        places = [c.place for c in self.columns_]
        if (
            table.is_matrix
            and len(places) == self.input_columns_.size
            and all(c.categories is None for c in self.columns_)
        ):
            rows = table.columns if len(places) == table.n_columns else table.columns[:, places]
            if np.isfinite(rows).all():
                return check_rows(rows, table.source)
        parts = [c.encode(self._values(table, c.place), table.source) for c in self.columns_]
        return np.hstack(parts)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the features.

        Parameters
        ----------
        input_features : ignored
            For pipelines.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self, "input_columns_")
        if self.columns_ is None:
            return np.array([self._label(j) for j in self.input_columns_], object)
        return np.array([name for c in self.columns_ for name in c.features], object)

    def _label(self, column: int) -> str:
        return self.names_[column] if self.names_ else f"column {column + 1}"

    def _dropped(self, table: Table) -> dict[str, str]:
        """Return the columns that ``drop`` and ``id`` name."""
        dropped = [self.drop] if isinstance(self.drop, str | int) else list(self.drop or [])
        asked = [*((c, "as asked") for c in dropped)]
        asked += [] if self.id is None else [(self.id, "it names the rows")]
        found = {}
        for column, reason in asked:
            if isinstance(column, str) and column not in (table.names or []):
                table.column(column)  # says which there are
            if not isinstance(column, str) and not -table.n_columns <= column < table.n_columns:
                raise ValueError(f"drop or id names column {column} of {table.n_columns}")
            name = column if isinstance(column, str) else self._label(column % table.n_columns)
            found[name] = reason
        return found

    def _aligned(self, table: Table) -> Table:
        """Return the table with the columns of ``fit``, in their order."""
        if self.names_ is not None and table.names is not None and table.names != self.names_:
            known = {name: j for j, name in enumerate(table.names)}
            used = {self._label(int(j)) for j in self.input_columns_}
            missing = [name for name in self.names_ if name in used and name not in known]
            if missing:
                raise ValueError(
                    f"{table.source}: there is no column {missing[0]!r}, which the model takes"
                )
            return table.select([known.get(name, 0) for name in self.names_])
        narrow = table.n_columns < self.n_features_in_ and table.source != "X"
        if sp.issparse(table.columns) and narrow:  # svmlight files do not say how wide they are
            rows = table.columns.copy()
            rows.resize(table.n_rows, self.n_features_in_)
            return Table(rows, table.names, table.source)
        if table.n_columns != self.n_features_in_:
            raise ValueError(
                f"{table.source} has {table.n_columns} features, but {type(self).__name__} is "
                f"expecting {self.n_features_in_} features as input"
            )
        return table

    def _values(self, table: Table, column: int) -> Array:
        found = table.columns[:, column] if table.is_matrix else table.columns[column]
        return np.asarray(found)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the attributes of a loaded encoder do not fit together."""
        if not hasattr(self, "input_columns_"):
            return
        places = self.input_columns_
        inside = places.size and places.min() >= 0 and places.max() < self.n_features_in_
        require(inside, "input_columns_ is out of range")
        if self.columns_ is not None:
            width = sum(len(c.features) for c in self.columns_)
            require(width == places.size, f"input_columns_ has {places.size} places for {width}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _described(place: int, name: str, values: Array) -> Column:
    """Return how a column becomes features."""
    column = parsed(values, "X", repr(name))
    if column.dtype.kind == "f":
        known = column[~np.isnan(column)]
        fill = float(np.median(known)) if known.size else 0.0
        return Column(place, name, None, fill, indicates=known.size < column.size)
    counts = Counter(column.tolist())
    often = [c for c, count in counts.items() if count > 1 and c is not None] or [*counts]
    often = sorted(often, key=lambda c: (-counts[c], str(c)))[:MOST_CATEGORIES]
    categories: list[Any] = sorted(c for c in often if c is not None)
    return Column(place, name, [*categories, None] if None in counts else categories)


def _reason(table: Table, place: int, values: Array) -> str | None:
    """Return why a column should be left out, or None."""
    column = parsed(values, table.source, table.name(place))
    n = len(column)
    name = table.names[place] if table.names else None
    unnamed = name is not None and bool(NO_NAME.match(name))
    named = name is not None and bool(ID_NAME.match(name))
    if column.dtype.kind == "O":
        if n >= (2 if named or unnamed else MANY) and len(set(column.tolist())) == n:
            return "an identifier: its texts are all different"
        return "constant" if len(set(column.tolist())) == 1 else None
    missing = np.isnan(column)
    if missing.any():
        return "empty" if missing.all() else None
    if column.min() == column.max():
        return "constant"
    whole = bool((column == np.floor(column)).all())
    if not whole or np.unique(column).size < n:
        return None
    if n >= MANY and column.min() in (0, 1) and column.max() - column.min() == n - 1:
        return "an index: it numbers the rows"
    if named or unnamed:
        return "an identifier: its values are all different"
    return None


def _matrix_reasons(table: Table, kept: list[int]) -> list[str | None]:
    """Return why columns of a matrix of numbers should be left out, or None for each."""
    rows = table.columns
    low, high = rows.min(axis=0), rows.max(axis=0)
    n = rows.shape[0]
    spans = (high - low == n - 1) & (low == np.floor(low))
    by_name = [bool(table.names and _may_be_identifier(table.names[j])) for j in kept]
    look = [
        bool(named or spans[j] or low[j] == high[j]) for j, named in zip(kept, by_name, strict=True)
    ]
    return [_reason(table, j, rows[:, j]) if k else None for j, k in zip(kept, look, strict=True)]


def _may_be_identifier(name: str) -> bool:
    return bool(NO_NAME.match(name) or ID_NAME.match(name))
