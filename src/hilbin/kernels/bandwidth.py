"""Rules that choose a length scale from data.

A rule is a statistic of the pairwise distances of at most 2000 sampled rows, the zero distances of
rows to themselves left out: ``"median"``, ``"mean"``, or ``Quantile(q)``. Where the kernel is
``exp(-gamma d)`` the rule sets ``gamma = 1 / statistic(d)``; for the Gaussian ``d`` is the squared
distance (the steepest descent of ``exp(-gamma d)`` is then near the typical pair). For a kernel of
compact support the statistic is the diameter ``2 radius`` of the support, so ``Quantile(0.1)``
leaves about a tenth of the Gram matrix non-zero.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.utils import check_random_state

from hilbin._arrays import Array, Matrix

SAMPLE_ROWS = 2000


@dataclass(frozen=True)
class Quantile:
    """A rule that sets ``gamma`` or ``radius`` by the ``q`` quantile of the pairwise distances.

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


Rule: TypeAlias = Literal["median", "mean"] | Quantile


def is_rule(value: object) -> bool:
    """Return whether ``value`` is a rule."""
    return isinstance(value, Quantile) or value in ("median", "mean")


def sample(X: Matrix, random_state: Any) -> Matrix:
    """Return at most ``SAMPLE_ROWS`` rows of ``X``, chosen at random."""
    if X.shape[0] <= SAMPLE_ROWS:
        return X
    chosen = check_random_state(random_state).choice(X.shape[0], SAMPLE_ROWS, replace=False)
    return X[np.sort(chosen)]


def statistic(rule: Rule, distances: Array, name: str) -> float:
    """Return the rule's number for a square matrix of distances; ``name`` is what it sets."""
    pairs = distances[np.triu_indices_from(distances, k=1)].astype(np.float64)
    if not pairs.size:
        raise ValueError(f"{name}={rule!r} needs at least two rows, got 1 sample")
    if rule == "mean":
        value = float(pairs.mean())
    else:
        value = float(np.quantile(pairs, rule.q if isinstance(rule, Quantile) else 0.5))
    if value > 0:
        return value
    raise ValueError(
        f"{name}={rule!r} is 0 on this data: too many rows are identical; give a number"
    )
