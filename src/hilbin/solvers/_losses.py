r"""Losses of a score :math:`s` and a target :math:`t`: convex in :math:`s`, value and slope.

A loss is two functions of arrays, which keep the dtype of the scores, and a word about its shape:
where it is smooth, cutting planes beside the best point say more than those further off.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from hilbin.solvers._codes import Array


class Loss(Protocol):
    """What a solver asks of a loss."""

    smooth: ClassVar[bool]

    def value(self, targets: Array, scores: Array) -> Array:
        """Of every entry."""

    def slope(self, targets: Array, scores: Array) -> Array:
        """A subgradient in the score."""


@dataclass(frozen=True)
class Hinge:
    r""":math:`\max(0, 1 - ts)` of targets 1 and -1.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Hinge
    >>> Hinge().value(np.array([1.0, 1.0, -1.0]), np.array([0.5, 3.0, 1.0]))
    array([0.5, 0. , 2. ])
    """

    smooth: ClassVar[bool] = False

    def value(self, targets: Array, scores: Array) -> Array:
        """Of every entry."""
        return np.maximum(1 - targets * scores, 0)

    def slope(self, targets: Array, scores: Array) -> Array:
        """A subgradient in the score."""
        return -targets * (targets * scores < 1)


@dataclass(frozen=True)
class SquaredHinge:
    r""":math:`\max(0, 1 - ts)^2` of targets 1 and -1.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import SquaredHinge
    >>> SquaredHinge().value(np.array([1.0, 1.0, -1.0]), np.array([0.5, 3.0, 1.0]))
    array([0.25, 0.  , 4.  ])
    """

    smooth: ClassVar[bool] = True

    def value(self, targets: Array, scores: Array) -> Array:
        """Of every entry."""
        return np.square(np.maximum(1 - targets * scores, 0))

    def slope(self, targets: Array, scores: Array) -> Array:
        """Its derivative in the score."""
        return -2 * targets * np.maximum(1 - targets * scores, 0)


@dataclass(frozen=True)
class Logistic:
    r""":math:`\log(1 + e^{-ts})` of targets 1 and -1.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import Logistic
    >>> Logistic().value(np.array([1.0, -1.0]), np.array([0.0, 800.0]))
    array([6.93147181e-01, 8.00000000e+02])
    """

    smooth: ClassVar[bool] = True

    def value(self, targets: Array, scores: Array) -> Array:
        """Of every entry."""
        margin = targets * scores
        return np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0)

    def slope(self, targets: Array, scores: Array) -> Array:
        """Its derivative in the score."""
        margin = targets * scores
        small = np.exp(-np.abs(margin))  # cannot overflow
        return -targets * np.where(margin > 0, small, 1) / (1 + small)


@dataclass(frozen=True)
class EpsilonInsensitive:
    r""":math:`\max(0, |t - s| - \epsilon)`.

    Parameters
    ----------
    epsilon : float, default=0.0
        Errors up to this cost nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import EpsilonInsensitive
    >>> EpsilonInsensitive(0.5).value(np.array([1.0, 1.0]), np.array([1.25, -1.0]))
    array([0. , 1.5])
    """

    epsilon: float = 0.0
    smooth: ClassVar[bool] = False

    def value(self, targets: Array, scores: Array) -> Array:
        """Of every entry."""
        return np.maximum(np.abs(targets - scores) - self.epsilon, 0)

    def slope(self, targets: Array, scores: Array) -> Array:
        """A subgradient in the score."""
        beyond = scores - targets
        return np.sign(beyond) * (np.abs(beyond) > self.epsilon)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive:
    r""":math:`\max(0, |t - s| - \epsilon)^2`.

    Parameters
    ----------
    epsilon : float, default=0.0
        Errors up to this cost nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import SquaredEpsilonInsensitive
    >>> SquaredEpsilonInsensitive(0.5).value(np.array([1.0, 1.0]), np.array([1.25, -1.0]))
    array([0.  , 2.25])
    """

    epsilon: float = 0.0
    smooth: ClassVar[bool] = True

    def value(self, targets: Array, scores: Array) -> Array:
        """Of every entry."""
        return np.square(np.maximum(np.abs(targets - scores) - self.epsilon, 0))

    def slope(self, targets: Array, scores: Array) -> Array:
        """Its derivative in the score."""
        beyond = scores - targets
        return 2 * np.sign(beyond) * np.maximum(np.abs(beyond) - self.epsilon, 0)
