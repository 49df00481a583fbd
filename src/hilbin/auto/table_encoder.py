"""Tables of numbers and texts as rows of numbers.

A column of numbers stays as it is. A column of texts becomes one column of zeros and ones per
category. Where a column of numbers has missing values, they get the median, and a column of its own
says where they were missing; a missing text is a category. Columns that number the rows, and
columns with a single value, are left out, with a reason.
"""

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, check_rows
from hilbin._parameters import estimator
from hilbin._state import require, stored
from hilbin.auto.table_data import Table, as_table, parsed

MOST_CATEGORIES = 100  # per column; rarer ones are all zeros
MANY = 10  # rows from which unique values are a sign of an identifier
MEDIAN_ROWS = 2000  # whose medians stand for values that are missing in new rows alone
ID_NAME = re.compile(
    r"^(id|index|row|rownum|row[ _]?(id|number|nr)|.*[ _-]id|.*[a-z]I[dD]|uuid|guid)$"
)
NUMBER = re.compile(r"[ _.-]*\d+$")
NO_NAME = re.compile(r"^(|unnamed: \d+|__index_level_\d+__)$", re.IGNORECASE)


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
    others : bool, default=False
        Whether there were categories that have no feature, because they are rare.
    """

    place: int
    name: str
    categories: list[Any] | None = None
    fill: float = 0.0
    indicates: bool = False
    others: bool = False

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
            if not self.others:
                _warn_of_unseen(found < 0, column, self.name, source)
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
    >>> from hilbin.auto.table_encoder import TableEncoder
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
            found = [_described(table, j, v) for j, v in zip(kept, values, strict=True)]
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


def _described(table: Table, place: int, values: Array) -> Column:
    """Return how a column becomes features."""
    name = table.names[place] if table.names else f"column {place + 1}"
    column = parsed(values, table.source, repr(name))
    if column.dtype.kind == "f":
        known = column[~np.isnan(column)]
        fill = float(np.median(known)) if known.size else 0.0
        return Column(place, name, None, fill, indicates=known.size < column.size)
    counts = Counter(column.tolist())
    often = [c for c, count in counts.items() if count > 1 and c is not None] or [*counts]
    often = sorted(often, key=lambda c: (-counts[c], str(c)))[:MOST_CATEGORIES]
    categories: list[Any] = sorted(c for c in often if c is not None)
    others = len(counts) - (None in counts) > len(categories)
    return Column(place, name, [*categories, None] if None in counts else categories, others=others)


def _warn_of_unseen(unseen: Array, column: Array, name: str, source: str) -> None:
    """Warn of texts that the training table does not have; they might be misspelled."""
    if not unseen.any():
        return
    row = int(np.argmax(unseen))
    what = "a missing value" if column[row] is None else repr(column[row])
    more = f", and {unseen.sum() - 1} more of its values," if unseen.sum() > 1 else ""
    warnings.warn(
        f"{source}, row {row + 1}: {what} in column {name!r}{more} did not occur in training, "
        "and is treated as none of the categories",
        stacklevel=2,
    )


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


def column_groups(names: Sequence[str]) -> list[tuple[str, int, int]] | None:
    """Find runs of columns whose names differ in a number alone, such as the bins of a histogram.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.

    Returns
    -------
    groups : list of (str, int, int), or None
        Name, first column, and one past the last of every run, single columns included; None
        unless there are two runs of two columns.

    Examples
    --------
    >>> from hilbin.auto.table_encoder import column_groups
    >>> column_groups(["hue 1", "hue 2", "edge_1", "edge_2", "edge_3"])
    [('hue', 0, 2), ('edge', 2, 5)]
    >>> column_groups(["width", "height"])
    """
    stems = [NUMBER.sub("", name) for name in names]
    begins = [j for j in range(len(stems)) if j == 0 or stems[j] != stems[j - 1]]
    runs = [*zip(begins, [*begins[1:], len(stems)], strict=True)]
    if sum(end - begin > 1 for begin, end in runs) < 2:
        return None
    counts = Counter(stems[begin] for begin, _ in runs)
    labels = [stems[b] if counts[stems[b]] == 1 and stems[b] else str(names[b]) for b, _ in runs]
    return [(label, begin, end) for label, (begin, end) in zip(labels, runs, strict=True)]
