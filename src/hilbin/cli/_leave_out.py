"""What a score of a row of a table loses when a column tells nothing.

For classifiers whose scores are no sums over the columns. A column tells nothing if it has its
median in the table; in a sparse table, if it is zero.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hilbin import parallel
from hilbin.cli._classifiers import class_scores

BLOCK = 256

Array = NDArray[Any]


def changes_without(classifier: Any, rows: Any, at: int) -> NDArray[np.float64]:
    """What the scores of a row lose without each column, shape (d, n_classes).

    Parameters
    ----------
    classifier : classifier of rows
    rows : array or CSR of shape (n, d)
    at : int
        Which row.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from hilbin.cli._leave_out import changes_without
    >>> X = np.array([[0.0, 2.0], [1.0, 2.0], [0.0, 2.0]])
    >>> model = RidgeClassifier(alpha=0.5).fit(X, ["no", "yes", "no"])
    >>> changes_without(model, X, 1).round(3)
    array([[-1.143,  1.143],
           [ 0.   ,  0.   ]])
    """
    row = rows[at : at + 1]
    if sp.issparse(row):
        columns = row.indices
        usual = np.zeros(row.shape[1])
        row = row.toarray()
    else:
        usual = np.median(rows, axis=0)
        columns = np.flatnonzero(row[0] != usual)
    whole = class_scores(classifier, row)
    losses = np.zeros((row.shape[1], whole.shape[1]))
    for begin, end in parallel.ranges(columns.size, BLOCK):
        some = columns[begin:end]
        without = np.repeat(row, some.size, axis=0)
        without[np.arange(some.size), some] = usual[some]
        losses[some] = whole - class_scores(classifier, without)
    return losses
