"""Rules that choose a length scale from data.

A rule is a statistic of the pairwise distances of at most 2000 sampled rows, the zero distances of
rows to themselves left out: ``"median"``, ``"mean"``, or ``Quantile(q)``. It sets the scale so that
the kernel of two rows at that distance is ``1 / e``. Where the kernel is ``exp(-gamma d)`` that is
``gamma = 1 / statistic(d)``; for the Gaussian ``d`` is the squared distance (the steepest descent
of ``exp(-gamma d)`` is then near the typical pair). For a kernel of compact support the radius then
grows with the number of columns. Only there ``Sparsity`` is a rule too: it sets the support, and
with it the share of zeros in the Gram matrix.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.utils import check_random_state

from hilbin._arrays import Array, Matrix
from hilbin._core import core

SAMPLE_ROWS = 2000


@dataclass(frozen=True)
class Quantile:
    """A rule that sets ``gamma`` or ``radius`` by the ``q`` quantile of the pairwise distances.

    The kernel of two rows at that distance is :math:`1 / e`.

    Parameters
    ----------
    q : float in (0, 1)
        The share of pairs that are closer.

    Examples
    --------
    >>> from hilbin.kernels import Gaussian, Quantile
    >>> Gaussian(gamma=Quantile(0.1)).resolve([[0.0], [1.0], [3.0]]).gamma.__round__(3)
    0.625
    """

    q: float

    def __post_init__(self) -> None:
        if not 0 < self.q < 1:
            raise ValueError(f"q of Quantile must be in (0, 1), got {self.q!r}")


@dataclass(frozen=True)
class Sparsity:
    """A rule that sets the ``radius`` of a compact kernel by the share of zeros of a Gram matrix.

    The diameter of the support is the ``1 - zeros`` quantile of the pairwise distances.

    Parameters
    ----------
    zeros : float in (0, 1)
        The share of the entries that are exactly 0, about.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.kernels import GCS, Sparsity
    >>> X = np.random.default_rng(0).uniform(size=(1000, 2))
    >>> K = GCS(Sparsity(0.9)).resolve(X).gram(X)
    >>> round(1 - K.nnz / 1000**2, 2)
    0.9
    """

    zeros: float

    def __post_init__(self) -> None:
        if not 0 < self.zeros < 1:
            raise ValueError(f"zeros of Sparsity must be in (0, 1), got {self.zeros!r}")


Rule: TypeAlias = Literal["median", "mean"] | Quantile


def is_rule(value: object) -> bool:
    """Return whether ``value`` is a rule for any length scale."""
    return isinstance(value, Quantile) or value in ("median", "mean")


def sample(X: Matrix, random_state: Any) -> Matrix:
    """Return at most ``SAMPLE_ROWS`` rows of ``X``, chosen at random."""
    if X.shape[0] <= SAMPLE_ROWS:
        return X
    chosen = check_random_state(random_state).choice(X.shape[0], SAMPLE_ROWS, replace=False)
    return X[np.sort(chosen)]


def statistic(rule: Rule | Sparsity, distances: Array, name: str) -> float:
    """Return the rule's number for the distances of all pairs of rows; ``name`` is what it sets."""
    if not len(distances):
        raise ValueError(f"{name}={rule!r} needs at least two rows, got 1 sample")
    if rule == "mean":
        value = float(np.mean(distances, dtype=np.float64))
    elif isinstance(rule, Sparsity):
        value = quantile(distances, 1 - rule.zeros)
    else:
        value = quantile(distances, rule.q if isinstance(rule, Quantile) else 0.5)
    if 0 < value < np.inf and 1 / value < np.inf:
        return value
    raise ValueError(
        f"{name}={rule!r} is 0 on this data: too many rows are identical; give a number"
    )


def quantile(values: Array, q: float) -> float:
    """Return the quantile of a vector, as :func:`numpy.quantile` has it."""
    at = q * (len(values) - 1)
    low, high = core.ranked(values, int(at))
    share = at - int(at)
    # the end that is nearer first: the result is between both, whatever rounding does
    return low + (high - low) * share if share < 0.5 else high - (high - low) * (1 - share)
