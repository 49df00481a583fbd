"""Comparison of the intersection kernel with a linear SVM, by cross-validation.

No rule of thumb tells from the shape of the data which of the two is better (the open question of
Wu's paper). Both are so fast that trying takes seconds: both are cross-validated on the same rows,
and their right answers are compared row by row.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state, check_X_y
from sklearn.utils.multiclass import check_classification_targets

from hilbin.estimators.intersection.svc import IntersectionSVC


@dataclass(frozen=True)
class LinearComparison:
    """The result of :func:`compare_with_linear`.

    Parameters
    ----------
    intersection, linear : float
        Cross-validated accuracies.
    gain : float
        Their difference.
    standard_error : float
        Standard error of the difference, from the rows on which only one of the two is right.
    n_rows : int
        Number of rows that were used.

    Examples
    --------
    >>> from hilbin.estimators import LinearComparison
    >>> LinearComparison(0.95, 0.92, 0.03, 0.004, 2000).verdict
    'intersection'
    """

    intersection: float
    linear: float
    gain: float
    standard_error: float
    n_rows: int

    @property
    def verdict(self) -> str:
        """The better of the two, or ``"either"`` if they are within two standard errors."""
        if abs(self.gain) <= 2 * self.standard_error:
            return "either"
        return "intersection" if self.gain > 0 else "linear"


def compare_with_linear(
    X: Any,
    y: Any,
    *,
    model: IntersectionSVC | None = None,
    max_rows: int = 5000,
    cv: int = 3,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> LinearComparison:
    """Measure how much more accurate the intersection kernel is than a linear SVM.

    Both are cross-validated on the same folds of a sample of the rows. The linear SVM gets features
    scaled to [0, 1] and ``C=1``, as its users do.

    Parameters
    ----------
    X : array-like or sparse of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Labels.
    model : IntersectionSVC, optional
        Model to compare, by default one with default parameters.
    max_rows : int, default=5000
        Largest number of rows: more are sampled down, keeping the shares of the classes.
    cv : int, default=3
        Number of folds. Classes with fewer rows than that are left out.
    random_state : int, RandomState or None, default=0
        Random seed of the sample, the folds and the linear SVM.
    n_jobs : int, optional
        Number of threads for the intersection SVM.

    Returns
    -------
    comparison : LinearComparison

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import compare_with_linear
    >>> X, y = load_iris(return_X_y=True)
    >>> found = compare_with_linear(X, y)
    >>> found.verdict, found.n_rows
    ('intersection', 150)
    """
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=(np.float64, np.float32))
    check_classification_targets(y)
    random = check_random_state(random_state)
    chosen = _sample(y, max_rows, cv, random)
    X, y = X[chosen], y[chosen]
    if np.unique(y).size < 2:
        raise ValueError(f"fewer than two classes have at least cv={cv} rows")
    folds = StratifiedKFold(cv, shuffle=True, random_state=random.randint(2**31 - 1))
    ours = (IntersectionSVC() if model is None else clone(model)).set_params(n_jobs=n_jobs)
    scaler = MaxAbsScaler() if sp.issparse(X) else MinMaxScaler()
    linear = make_pipeline(scaler, LinearSVC(random_state=random.randint(2**31 - 1)))
    right = [cross_val_predict(m, X, y, cv=folds) == y for m in (ours, linear)]
    difference = right[0].astype(float) - right[1]
    return LinearComparison(
        float(right[0].mean()),
        float(right[1].mean()),
        float(difference.mean()),
        float(difference.std() / np.sqrt(y.size)),
        int(y.size),
    )


def _sample(y: Any, max_rows: int, cv: int, random: Any) -> Any:
    """Return at most ``max_rows`` rows: of every class its share, but at least ``cv``."""
    chosen = []
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        if rows.size < cv:
            continue
        share = max(cv, round(max_rows * rows.size / y.size))
        chosen.append(random.choice(rows, min(share, rows.size), replace=False))
    return np.sort(np.concatenate(chosen)) if chosen else np.empty(0, np.intp)
