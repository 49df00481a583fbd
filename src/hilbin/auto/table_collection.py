"""Table rows without labels: the most similar ones, duplicates, clusters."""

import os
from dataclasses import KW_ONLY
from typing import Any, Self, cast

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from hilbin._arrays import Array, to_dense
from hilbin._parameters import estimator
from hilbin._state import require, require_attributes
from hilbin.auto.base import Callback, Stopwatch, counted
from hilbin.auto.collection import (
    KERNELS,
    Clustering,
    Collection,
    Difference,
    exact_among,
    require_two,
    sampled,
    strongest,
)
from hilbin.auto.describing import checked_seed
from hilbin.auto.row_index import RowIndex
from hilbin.auto.table_classifier import TableClassifier
from hilbin.auto.table_data import Table, as_table
from hilbin.auto.table_encoder import TableEncoder
from hilbin.report import ClusterCard

COLUMNS_SHOWN = 6  # that set a cluster apart
ROWS_SHOWN = 12  # of a cluster on the page


@estimator
class TableCollection(Collection):
    """Table rows without labels: find similar rows, duplicates and clusters.

    Parameters
    ----------
    id : str or int, optional
        Column that names the rows; it is not a feature.
    drop : str, int or list of these, optional
        Columns to leave out.
    kernel : {"linear", "hellinger", "chi2", "intersection", "js"}, default="linear"
        Kernel whose feature space rows are compared in. For ``"linear"`` every column is scaled to
        variance 1; the others take rows that are histograms, as they are.

    Attributes
    ----------
    encoder_ : object
        From tables to rows of numbers.
    scaler_ : StandardScaler or None
        Scales the columns.
    rows_ : float32 ndarray of shape (n_rows, n_columns)
        The rows.
    left_out_ : dict
        Columns that are left out, and why.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin import TableCollection
    >>> X = load_iris().data
    >>> rows = TableCollection().fit(X)
    >>> [one.name for one in rows.similar(X[:1], 2)[0]]
    ['row 1', 'row 18']
    >>> rows.duplicates()
    [['row 102', 'row 143']]
    """

    id: Any = None
    _: KW_ONLY
    drop: Any = None
    kernel: str = "linear"

    def fit(
        self, X: Any, y: Any = None, *, model: Any = None, callback: Callback | None = None
    ) -> Self:
        """Keep the rows, and codes of them.

        Parameters
        ----------
        X : array-like, sparse, data frame, or path of a file
            The table: CSV, TSV, Parquet, NumPy archive or svmlight file.
        y : ignored
        model : TableClassifier, optional
            A fitted classifier whose columns are taken, coded as it codes them.
        callback : callable, optional
            Called with the name of a stage, how much of it is done, and how much there is.

        Returns
        -------
        self : TableCollection
        """
        self._check_parameters()
        seed, watch = self._seed(), Stopwatch(callback, self.verbose)
        table = as_table(X)
        if not isinstance(X, str | os.PathLike | Table):
            validate_data(self, X, skip_check_array=True)
        require_two(table.n_rows, table.source, "sample (row)")
        with watch.stage("reading the table"):
            if model is None:
                encoder = TableEncoder(self.drop, self.id).fit(table)
            else:
                encoder = _encoder_of(model)
            rows = self._checked(to_dense(encoder.transform(table)), table.source)
            scaler = StandardScaler().fit(rows) if self.kernel == "linear" else None
            rows = _scaled(scaler, rows)
        with watch.stage("making codes"):
            index = self._indexed(rows, seed)
        self.encoder_, self.scaler_, self.index_, self.rows_ = encoder, scaler, index, rows
        self.n_features_in_ = encoder.n_features_in_
        self.left_out_ = encoder.left_out_
        self.names_ = self._row_names(table)
        self.metadata_ = self._about(table.source, watch, left_out=encoder.left_out_)
        return self

    def _checked(self, rows: Array, source: str) -> Array:
        if self.kernel != "linear" and rows.min(initial=0) < 0:
            row, column = np.argwhere(rows < 0)[0]
            raise ValueError(
                f"{source}, row {row + 1}: {rows[row, column]:g} in column {column + 1} is "
                f"negative, but kernel={self.kernel!r} takes histograms; take 'linear'"
            )
        return rows

    def _indexed(self, rows: Array, seed: int) -> RowIndex:
        channels, some = [("columns", 0, rows.shape[1])], rows[sampled(len(rows))]
        index = RowIndex(some, channels, KERNELS[self.kernel], self.n_components, seed, self.n_jobs)
        return index.keep(*index.embed(index.features(rows)), seed, self.n_jobs)

    def _row_names(self, table: Table) -> list[str]:
        if isinstance(self.id, str) and self.id in (table.names or []):
            return [str(value) for value in table.column(self.id)]
        return [f"row {i + 1}" for i in range(table.n_rows)]

    # use
    def duplicates(self) -> list[list[str]]:
        """Find rows that are equal in all columns that are used.

        Returns
        -------
        groups : list of lists of str
            Names of rows that are equal; the largest groups first.
        """
        check_is_fitted(self)
        _, places = np.unique(self.rows_, axis=0, return_inverse=True)
        order = np.argsort(places.ravel(), kind="stable")
        ends = np.flatnonzero(np.diff(places.ravel()[order])) + 1
        groups = [part.tolist() for part in np.split(order, ends) if len(part) > 1]
        groups.sort(key=lambda group: (-len(group), group[0]))
        return [[self.names_[i] for i in group] for group in groups]

    @property
    def _title(self) -> str:
        title: str = self.metadata_["collection"]
        return title

    @property
    def _lead(self) -> str:
        return "" if self.scaler_ is None else "Columns are scaled to variance 1."

    def _card(self, found: Clustering, cluster: int) -> ClusterCard:
        """Return what the page shows of a cluster."""
        members = found.members[cluster]
        words = [(one.name, one.effect, list[Array]()) for one in found.differences[cluster]]
        typical = found.typical(cluster, ROWS_SHOWN)
        return ClusterCard(f"Cluster {cluster + 1}", len(members), [], words, typical, "row")

    def _differences(self, inside: Array) -> list[Difference]:
        """Return the columns whose means differ most, those that are lower with a minus."""
        effects, columns = self._effects(inside), self.index_.input_columns
        names = self.encoder_.get_feature_names_out()
        found = strongest(np.abs(effects), names[columns].tolist(), COLUMNS_SHOWN)
        return [
            Difference(one.name, int(columns[one.column]), float(effects[one.column]))
            for one in found
        ]

    # of the base
    def _new_rows(self, X: Any) -> Array:
        return _scaled(self.scaler_, to_dense(self.encoder_.transform(X)))

    def _exact_distances(self, features: Array, numbers: Array, known: Array) -> Array:
        return exact_among(self.index_, features, self.rows_[numbers])

    def _counted(self, n: int) -> str:
        return counted(n, "row")

    def _seed(self) -> int:
        return checked_seed(self.random_state)

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the attributes of a loaded collection do not fit together."""
        if not require_attributes(self, rows_="float32[n, d]", left_out_="dict"):
            return
        require(isinstance(self.encoder_, TableEncoder), "encoder_ is no encoder")
        require(len(self.rows_) == len(self.names_), "rows_ are not one for every name")
        width = self.index_.channel_map.n_features_in_
        require(self.rows_.shape[1] == width, "rows_ are not those of the index")
        require(len(self.encoder_.get_feature_names_out()) == width, "encoder_ has other columns")
        scaled = self.scaler_ is None or isinstance(self.scaler_, StandardScaler)
        require(scaled, "scaler_ is no StandardScaler")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _encoder_of(model: Any) -> TableEncoder:
    """Return how a fitted classifier of tables codes their columns."""
    if not isinstance(model, TableClassifier):
        raise ValueError(f"model must be a TableClassifier, got {type(model).__name__}")
    check_is_fitted(model)
    return cast(TableEncoder, model.model_[0])


def _scaled(scaler: StandardScaler | None, rows: Array) -> Array:
    found: Array = rows if scaler is None else scaler.transform(rows)
    return np.ascontiguousarray(found, np.float32)
