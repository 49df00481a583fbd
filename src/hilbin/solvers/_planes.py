"""The planes of one task of a bundle, its best point so far, and the bound that they give.

:mod:`hilbin.solvers._bundle` has the formulas. A plane is one row of a growing array; everything
else that is kept of it is a few numbers, in float64.
"""

from typing import Any

import numpy as np

from hilbin.solvers._codes import Array
from hilbin.solvers._simplex import maximize_on_simplex

IDLE = 20  # rounds after which a plane that does not count is dropped
SHARE = 1e-2  # of the gap, to which the quadratic problem is solved
LEAST_VALUE = 1e-12
ROOM = 16  # planes, to begin with
WIDE = 1 << 13  # numbers of a row that are converted to float64 at a time


class Task:
    """The planes of one task.

    With ``v`` the best point and ``u`` the optimum of the planes, ``on_best`` is ``a^T v`` of every
    plane, and ``square``, ``cross`` and ``new_square`` are ``lam`` times the products of ``v`` and
    ``u`` with themselves and each other in the inner product of the regularizer.

    Parameters
    ----------
    size : int
        Length of ``v``.
    lam : float
        Weight of the regularizer.
    least : float
        What the risk never falls below: a plane from the beginning, unless it is -inf.
    keep_dual : bool
        Whether the ``a`` are kept beside the ``K a``, for ``w`` with ``v = K w``.
    """

    def __init__(self, size: int, lam: float, least: float, keep_dual: bool) -> None:
        self.lam, self.least, self.count, self.step = lam, least, 0, 1.0
        self.value, self.bound = np.inf, -np.inf
        self.square = self.cross = self.new_square = 0.0
        # v, u and the planes K a; beside them, if they are kept, w of v and u, and a
        self.best = self.new = np.zeros((2 if keep_dual else 1, size))
        self.planes = np.empty((len(self.best), 0, size))
        self.H = np.empty((0, 0))
        self.offset, self.alpha, self.on_best, self.idle = np.empty((4, 0))

    @property
    def relative_gap(self) -> float:
        """Of the value to its bound."""
        return (self.value - self.bound) / max(abs(self.value), LEAST_VALUE)

    def aim(self) -> Array:
        """The optimum of the planes."""
        weights = self.alpha[: self.count] / self.lam
        used = np.flatnonzero(weights)
        self.new = np.stack([_sum(weights[used], rows, used) for rows in self.planes])
        return self.new[0]

    def learn(self, values: Array, steps: Array, gradient: Array, product: Array) -> None:
        """Take the best point on the way, and the plane at its last point; find the new bound.

        Parameters
        ----------
        values : array of shape (g,)
            The risk on the way from the best point to the optimum of the planes.
        steps : array of shape (g,)
            Where on the way.
        gradient, product : array of shape (size,)
            Of the risk at the last step, and ``K`` times it.
        """
        if not (np.isfinite(values).all() and np.isfinite(gradient).all()):
            raise ValueError("the oracle gave a value or a gradient that is not finite")
        a_best, a_new = (-float(dots(point[:1], gradient)[0]) for point in (self.best, self.new))
        at = steps[-1]
        offset = values[-1] + (1 - at) * a_best + at * a_new
        self._move(values, steps)
        if not self.count and self.least > -np.inf:
            self._add(np.zeros_like(gradient), np.zeros_like(gradient), self.least, 0.0)
        self._add(gradient, product, offset, (1 - self.step) * a_best + self.step * a_new)
        self._solve()

    def _move(self, values: Array, steps: Array) -> None:
        t, first = self.count, self.count == 0
        slope, curvature = self.cross - self.square, self.square - 2 * self.cross + self.new_square
        J = values + 0.5 * self.square + slope * steps + 0.5 * curvature * steps**2
        place = -1 if first else int(np.argmin(J))
        if not J[place] < self.value:
            self.step = 0.0
            return
        step = 1.0 if first else float(steps[place])
        self.on_best[:t] += step * (self.H[:t, :t] @ self.alpha[:t] - self.on_best[:t])
        self.square += 2 * step * slope + step**2 * curvature
        moved = self.best + step * (self.new - self.best)
        self.best, self.value, self.step = moved, float(J[place]), step

    def _add(self, gradient: Array, product: Array, offset: float, on_best: float) -> None:
        t = self.count
        if t == self.offset.size:
            self._grow(gradient.dtype)
        for kept, vector in zip(self.planes, (product, gradient), strict=False):
            np.negative(vector, out=kept[t], casting="same_kind")
        row = dots(self.planes[0, : t + 1], gradient) / -self.lam
        self.H[t, : t + 1] = self.H[: t + 1, t] = row
        self.offset[t], self.on_best[t], self.idle[t] = offset, on_best, 0
        self.alpha[t] = 0.0 if t else 1.0
        self.count += 1

    def _grow(self, dtype: Any) -> None:
        t, room = self.count, max(ROOM, 2 * self.count)
        planes = np.empty((len(self.best), room, self.best.shape[1]), dtype)
        H = np.zeros((room, room))
        planes[:, :t], H[:t, :t] = self.planes, self.H
        self.planes, self.H, self.best = planes, H, self.best.astype(dtype, copy=False)
        for name in ("offset", "alpha", "on_best", "idle"):
            setattr(self, name, np.append(getattr(self, name), np.zeros(room - t)))

    def _solve(self) -> None:
        t = self.count
        H, b = self.H[:t, :t], self.offset[:t]
        gap = min(self.value - self.bound, abs(self.value))
        alpha = maximize_on_simplex(H, b, self.alpha[:t], SHARE * gap)
        self.alpha[:t] = alpha
        self.new_square = float(alpha @ H @ alpha)
        self.cross = float(self.on_best[:t] @ alpha)
        self.bound = max(self.bound, float(b @ alpha) - 0.5 * self.new_square)
        self.idle[:t] = np.where(alpha > 0, 0, self.idle[:t] + 1)
        self.idle[0] = 0  # what the risk never falls below may count again
        for place in np.flatnonzero(self.idle[:t] >= IDLE)[::-1]:
            self._drop(int(place))

    def _drop(self, place: int) -> None:
        """The last plane takes the place of one that is not needed."""
        self.count -= 1
        last = self.count
        for values in (*self.planes, self.H, self.offset, self.alpha, self.on_best, self.idle):
            values[place] = values[last]
        self.H[:, place] = self.H[:, last]


def dots(rows: Array, vector: Array) -> Array:
    """``rows @ vector`` with sums in float64, without a float64 copy of the rows."""
    if rows.dtype == np.float64:
        return rows @ vector.astype(np.float64, copy=False)
    total = np.zeros(len(rows))
    for begin in range(0, vector.size, WIDE):
        part = slice(begin, begin + WIDE)
        total += rows[:, part].astype(np.float64) @ vector[part].astype(np.float64)
    return total


def _sum(weights: Array, rows: Array, used: Array) -> Array:
    """``weights @ rows[used]`` in the dtype of the rows; large planes cancel, so not its sums."""
    total = np.empty(rows.shape[1], rows.dtype)
    for begin in range(0, total.size, WIDE):
        part = slice(begin, begin + WIDE)
        total[part] = weights @ rows[used, part].astype(np.float64, copy=False)
    return total
