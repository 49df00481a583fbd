r"""The risk of structured prediction: the worst output of every example, by an oracle.

**Problem.** An output :math:`z` of an example :math:`x` has the score
:math:`\langle v, \Phi(x, z) \rangle`, the best of all outputs is the prediction, and
:math:`\Delta(y, z) \ge 0` is the loss of :math:`z` if :math:`y` is right, :math:`\Delta(y, y) = 0`.
With :math:`d_i(z) = \Phi(x_i, z) - \Phi(x_i, y_i)`,

.. math:: L(v) = \sum_i w_i \max_z h_i(z), \qquad
          h_i = \Delta(y_i, z) + \langle v, d_i(z) \rangle \text{ (margin)}, \quad
          h_i = \Delta(y_i, z) (1 + \langle v, d_i(z) \rangle) \text{ (slack rescaling).}

Both are convex in :math:`v`, bound the loss of the prediction, and are not negative, since
:math:`h_i(y_i) = 0`. Outputs are anything; an oracle finds the :math:`z` of the highest
:math:`h_i`. It makes a plane below :math:`L`, with the gradient
:math:`\sum_i w_i d_i` (margin) or :math:`\sum_i w_i \Delta_i d_i` (slack), which is all that
:func:`~hilbin.solvers.bundle` asks for.

**Certificate.** An output that is not the best gives a plane that is right and a value that is too
small. So an oracle that is not exact returns an upper bound of its maximum, too: the output makes
the plane, the bound is the value (:class:`Bounded`).

**Lines without oracle.** The outputs of the last few passes are kept. Along a line :math:`L` is at
least the highest of them, which is known without a call: piecewise linear, convex. The best step of
this estimate is where the oracle is asked next, a little beyond it, and once.

**Weights that must not be negative.** The risk at a point is that of the nearest allowed point
:math:`v^+`, and where :math:`v_k < 0` its plane has the slope :math:`\min(g_k, 0)`. Such a plane is
below the risk wherever :math:`v` is allowed, so the bound holds, and since :math:`v^+` has the
smaller norm it is never worse: the best allowed point is the solution.

**References.** I. Tsochantaridis et al., *Large Margin Methods for Structured and Interdependent
Output Variables*, JMLR 2005. T. Joachims, T. Finley and C.-N. Yu, *Cutting-Plane Training of
Structural SVMs*, Machine Learning 2009.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from hilbin import parallel
from hilbin._arrays import Array

RESCALINGS = ("margin", "slack")
BEYOND = 0.1  # how far beyond the best step of the estimate planes are taken
BELOW_ZERO = 1e-9  # rounding of the worst output, which is not better than the right one
BISECTIONS = 40
EXAMPLES_PER_TASK = 8


@dataclass(frozen=True, eq=False)
class Bounded:
    """An output that may not be the best one, and a bound of what the best one would reach.

    Parameters
    ----------
    output : object
        The output that was found.
    bound : float
        Upper bound of what the oracle maximizes: the score and the loss of an output, or, with
        slack rescaling, the loss times one plus the difference of scores.

    Examples
    --------
    >>> from hilbin.solvers import Bounded
    >>> Bounded("cat", 1.5).bound
    1.5
    """

    output: Any
    bound: float


class Found(NamedTuple):
    """The worst outputs of all examples at a point."""

    value: float  # of the risk, or its upper bound
    height: float  # of the plane
    gradient: Array
    losses: Array
    differences: Any  # CSR of shape (n, size)


class StructuredRisk:
    r"""The sum of the worst :math:`h_i` over examples, for :func:`~hilbin.solvers.bundle`.

    Parameters
    ----------
    oracle : callable
        ``oracle(x, v, y)`` is the output of the highest ``h``, or :class:`Bounded`.
    joint : callable
        ``joint(x, y)`` is the vector :math:`\Phi(x, y)`, always of the same length.
    loss : callable
        ``loss(y, z)`` is the loss of ``z`` if ``y`` is right, >= 0.
    X, Y : sequences
        Examples, and the right outputs.
    weights : float or array of shape (n,), default=1.0
        Weight of every example.
    rescaling : {"margin", "slack"}, default="margin"
        Whether losses are added to differences of scores, or multiplied with them.
    nonnegative : sequence of int, default=()
        Numbers of the weights that must not be negative.
    cache : int, default=8
        Number of passes whose outputs are kept for the search along lines; of their differences the
        numbers that are not 0 are stored.
    n_jobs : int, optional
        Threads that call the oracle; they gain if it releases the GIL.

    Attributes
    ----------
    size : int
        Length of ``v``.
    least : float
        Lower bound of the risk, 0.
    bounded : bool
        Whether the oracle has given a bound that was not reached.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.solvers import StructuredRisk, bundle

    Two classes; the feature of an example is in the place of its class:

    >>> joint = lambda x, y: np.eye(2)[y] * x
    >>> loss = lambda y, z: float(y != z)
    >>> worst = lambda x, v, y: int(np.argmax(v * x + (np.arange(2) != y)))
    >>> risk = StructuredRisk(worst, joint, loss, [1.0, -1.0], [0, 1], weights=0.5)
    >>> found = bundle(risk, 0.5)
    >>> found.coef.round(3), found.objective.round(3)
    (array([[ 0.5, -0.5]]), array([0.125]))
    """

    least, tasks = 0.0, 1

    def __init__(
        self,
        oracle: Callable[[Any, Array, Any], Any],
        joint: Callable[[Any, Any], Array],
        loss: Callable[[Any, Any], float],
        X: Sequence[Any],
        Y: Sequence[Any],
        *,
        weights: Any = 1.0,
        rescaling: str = "margin",
        nonnegative: Sequence[int] = (),
        cache: int = 8,
        n_jobs: int | None = None,
    ) -> None:
        n = len(X)
        if len(Y) != n or n == 0:
            raise ValueError(f"there are {n} examples and {len(Y)} outputs")
        if rescaling not in RESCALINGS:
            raise ValueError(f"rescaling must be one of {RESCALINGS}, got {rescaling!r}")
        self.oracle, self.joint, self.loss, self.X, self.Y = oracle, joint, loss, X, Y
        self.weights = np.broadcast_to(np.asarray(weights, np.float64), (n,))
        self.slack, self.cache, self.n_jobs = rescaling == "slack", cache, n_jobs
        self.nonnegative = np.asarray(nonnegative, np.intp)
        self.size, self.bounded = np.size(joint(X[0], Y[0])), False
        self._right = _stacked(
            [_nonzeros(self._features(i, Y[i], "the right output")) for i in range(n)], self.size
        )

    def __call__(self, V: Array, which: Array) -> tuple[Array, Array, Array]:
        """Return value, gradient and height of the plane at one point, each with one row."""
        found = self.at(V[0])
        return np.array([found.value]), found.gradient[None], np.array([found.height])

    def start(self) -> "CachedLines":
        """Return lines that begin at 0, for :func:`~hilbin.solvers.bundle`."""
        return CachedLines(self)

    def allowed(self, v: Array) -> Array:
        """Return the nearest point whose weights are as they must be."""
        v = np.array(v, np.float64)
        v[self.nonnegative] = np.maximum(v[self.nonnegative], 0)
        return v

    def at(self, v: Array) -> Found:
        """Return the worst outputs at a point, the value of the risk and its plane."""
        point = self.allowed(v)
        n = len(self.X)
        tops, heights, losses = np.empty((3, n))
        parts: list[Any] = [None] * n

        def task(begin: int, end: int) -> None:
            for i in range(begin, end):
                tops[i], heights[i], losses[i], parts[i] = self._worst(i, point)

        parallel.run(task, parallel.ranges(n, EXAMPLES_PER_TASK), self.n_jobs)
        differences = _stacked(parts, self.size)
        shares = self.weights * (heights > 0) * (losses if self.slack else 1.0)
        gradient = differences.T @ shares
        outside = self.nonnegative[np.asarray(v)[self.nonnegative] < 0]
        gradient[outside] = np.minimum(gradient[outside], 0)
        beyond = float(gradient[outside] @ np.asarray(v)[outside])
        value = float(self.weights @ tops) + beyond
        height = float(self.weights @ np.maximum(heights, 0)) + beyond
        return Found(value, height, gradient, losses, differences)

    def _worst(self, i: int, v: Array) -> tuple[float, float, float, tuple[Array, Array]]:
        """Return bound, ``h`` and loss of the worst output of one example, and its difference."""
        output, bound = self.oracle(self.X[i], v, self.Y[i]), None
        if isinstance(output, Bounded):
            output, bound = output.output, float(output.bound)
        loss = float(self.loss(self.Y[i], output))
        if not 0 <= loss < np.inf:
            raise ValueError(f"example {i}: the loss of an output is {loss}, not a number >= 0")
        columns, values = self._right_of(i)
        difference = self._features(i, output, "the output of the oracle").copy()
        difference[columns] -= values
        score = float(v @ difference)
        h = loss * (1 + score) if self.slack else loss + score
        rounding = BELOW_ZERO * (1 + loss + float(np.abs(v) @ np.abs(difference)))
        rounding += BELOW_ZERO * float(np.abs(v[columns]) @ np.abs(values))
        if not h >= -rounding:
            raise ValueError(
                f"example {i}: the oracle gives an output of h = {h:.6g}, but the right one has 0, "
                "so it is not the worst"
            )
        top = h
        if bound is not None:
            top = bound if self.slack else bound - float(v[columns] @ values)
            if not top >= h - rounding:
                raise ValueError(f"example {i}: the bound {bound:.6g} is below its own output")
            self.bounded |= top > h + rounding
        return max(top, h, 0.0), h, loss, _nonzeros(difference)

    def _right_of(self, i: int) -> tuple[Array, Array]:
        run = slice(self._right.indptr[i], self._right.indptr[i + 1])
        return self._right.indices[run], self._right.data[run]

    def _features(self, i: int, output: Any, whose: str) -> Array:
        phi = np.asarray(self.joint(self.X[i], output), np.float64)
        if phi.shape != (self.size,):
            raise ValueError(
                f"example {i}: joint of {whose} has the shape {phi.shape}, not {(self.size,)}"
            )
        if not np.isfinite(phi).all():
            raise ValueError(f"example {i}: joint of {whose} is not finite")
        return phi


def _nonzeros(vector: Array) -> tuple[Array, Array]:
    columns = np.flatnonzero(vector)
    return columns, vector[columns]


def _stacked(parts: list[tuple[Array, Array]], size: int) -> Any:
    """Return the CSR matrix of the rows whose columns and values are given."""
    ends = np.cumsum([0] + [columns.size for columns, _ in parts])
    columns, values = (np.concatenate(each) for each in zip(*parts, strict=True))
    return sp.csr_array((values, columns, ends), shape=(len(parts), size))


class CachedLines:
    """The best point so far, and the outputs of the last few passes."""

    beyond = BEYOND

    def __init__(self, risk: StructuredRisk) -> None:
        self.risk = risk
        self._best = self._new = np.zeros(risk.size)
        self._kept: deque[Found] = deque(maxlen=risk.cache)

    def choose(self, new: Array, which: Array, parabolas: Array) -> Array:
        """Return the best step of the kept outputs, and a little more; 1 as long as none are."""
        if not self._kept:
            return np.ones((1, 1))
        heights, slopes = self.estimates(self._best, new[0])
        step = least_on_line(heights, slopes, self.risk.weights, parabolas[0])
        return np.array([[(1 - self.beyond) * step + self.beyond]])

    def look(self, new: Array, which: Array, steps: Array) -> tuple[Array, Array, Array]:
        """Ask the oracle once, at the last step."""
        self._new = new[0]
        found = self.risk.at(self._best + steps[0, -1] * (new[0] - self._best))
        self._kept.append(found)
        return np.array([[found.value]]), found.gradient[None], np.array([found.height])

    def go(self, steps: Array) -> None:
        """Move the best point by a share of its line."""
        self._best = self._best + steps[0] * (self._new - self._best)

    def estimates(self, old: Array, new: Array) -> tuple[Array, Array]:
        """Return ``h`` of all kept outputs at ``old``, and its change to ``new``: (kept, n)."""
        ends = np.column_stack([self.risk.allowed(old), self.risk.allowed(new)])
        losses = np.stack([found.losses for found in self._kept])
        scores = np.stack([found.differences @ ends for found in self._kept])
        factor = losses if self.risk.slack else 1.0
        return losses + factor * scores[:, :, 0], factor * (scores[:, :, 1] - scores[:, :, 0])


def least_on_line(heights: Array, slopes: Array, weights: Array, parabola: Array) -> float:
    """Minimize ``sum_i w_i max(0, max_j h_ji + s_ji t) + c_1 t + c_2 t^2`` over ``0 <= t <= 1``.

    The derivative rises, so its zero is found by bisection.
    """
    heights = np.vstack([heights, np.zeros(len(weights))])
    slopes = np.vstack([slopes, np.zeros(len(weights))])
    every = np.arange(len(weights))
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        t = 0.5 * (low + high)
        steepest = slopes[np.argmax(heights + slopes * t, axis=0), every]
        if weights @ steepest + parabola[1] + 2 * parabola[2] * t > 0:
            high = t
        else:
            low = t
    return 0.5 * (low + high)
