"""Rows of values as estimators on histograms take them."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, validate_data

from hilbin._arrays import Array, Matrix, check_rows_and_least

ACCEPTED: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": (np.float64, np.float32),
    "ensure_all_finite": False,
}
OFFER = (
    "; if the values are not counts or frequencies, negative='shift' measures every feature from "
    "its low end"
)


class BinnedRows:
    """Rows that a binner takes; a subclass has a parameter ``negative``."""

    negative: str

    def _rows(self, X: Any, *, reset: bool = False, scan: bool = True) -> Matrix:
        """``X`` as rows; without ``scan``, the values are looked at by whoever encodes them."""
        rows = validate_data(self, X, reset=reset, **ACCEPTED)
        if scan:
            rows = self._refuse_bad_values(rows, reset=reset)
        binner: Any = getattr(self, "binner_", self)
        if sp.issparse(rows) and not reset and binner._shifted:
            return rows.toarray()  # what is not stored is not the least value
        return rows

    def _rows_and_targets(self, X: Any, y: Any, **options: Any) -> tuple[Matrix, Array]:
        """As ``_rows(X, reset=True)``, and ``y`` as one value per row."""
        rows, y = validate_data(self, X, y, **ACCEPTED, **options)
        return self._refuse_bad_values(rows, reset=True), y

    def _weights(self, sample_weight: Any, X: Matrix) -> Array:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if not np.isfinite(weights).all() or (weights < 0).any():
            bad = int(np.argmax(~np.isfinite(weights) | (weights < 0)))
            raise ValueError(f"sample_weight[{bad}] = {weights[bad]} is not a number >= 0")
        return weights

    def _refuse_bad_values(self, rows: Any, *, reset: bool = False) -> Matrix:
        who = type(self).__name__ if self.negative == "error" else None
        rows, least = check_rows_and_least(rows, "X", nonnegative=who, otherwise=OFFER)
        if reset and least < 0 and sp.issparse(rows):
            raise ValueError(
                "X is sparse and has negative values: shifting them would fill it; pass a dense X"
            )
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.negative == "error"
        return tags
