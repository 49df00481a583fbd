r"""A concave quadratic on the simplex, the dual problem of a bundle of cutting planes.

.. math:: \max_\alpha \; b^\top \alpha - \tfrac12 \alpha^\top H \alpha, \qquad
          \alpha \ge 0, \; \sum_i \alpha_i = 1.

**Algorithm.** The corner of the highest gradient :math:`g = b - H\alpha` joins the active set. The
optimum on the affine hull of the set is one small linear system. If it lies outside the simplex,
the way to it ends at the first coordinate that becomes 0, which leaves the set. Corners that depend
on each other give a system that is singular to rounding: its huge solution points along a direction
in which nothing changes, and the same rule drops one of them. From a warm start this takes a few
systems, where exchanges between pairs of coordinates take thousands.

**Stopping rule.** :math:`\max_i g_i - g^\top \alpha \le` ``tol``; what is left to gain is no more.

**Reference.** P. Wolfe, *Finding the nearest point in a polytope*, 1976.
"""

import numpy as np

from hilbin.solvers._codes import Array

RIDGE = 4 * np.finfo(float).eps


def maximize_on_simplex(H: Array, b: Array, alpha: Array, tol: float) -> Array:
    """The best ``alpha``, from a feasible one to start with; never worse than that."""
    scale = float(H.diagonal().max()) or 1.0
    H, b, tol = H / scale, b / scale, tol / scale
    system, right = _conditions(H, b)
    start, alpha = alpha, alpha.copy()
    for _ in range(100 + 10 * b.size):
        gradient = b - H @ alpha
        corner = int(gradient.argmax())
        if gradient[corner] - gradient @ alpha <= tol:
            break
        before = alpha.copy()
        _ascend(system, right, alpha, corner)
        if np.array_equal(alpha, before):
            break
    return alpha if _value(H, b, alpha) >= _value(H, b, start) else start


def _value(H: Array, b: Array, alpha: Array) -> float:
    return float(b @ alpha - 0.5 * alpha @ (H @ alpha))


def _conditions(H: Array, b: Array) -> tuple[Array, Array]:
    """``b - H x`` is the same number for all coordinates, the last unknown, and they sum to 1."""
    size = b.size
    system, right = np.ones((size + 1, size + 1)), np.ones(size + 1)
    system[:size, :size], right[:size] = H, b
    system.flat[:: size + 2] += RIDGE
    system[size, size] = 0
    return system, right


def _ascend(system: Array, right: Array, alpha: Array, corner: int) -> None:
    """Move ``alpha`` to the optimum of its active set and ``corner``."""
    used = alpha > 0
    used[corner] = True
    active = np.append(np.flatnonzero(used), alpha.size)
    while active.size > 2:
        best = _solve(system[active[:, None], active], right[active])[:-1]
        here = alpha[active[:-1]]
        out = np.flatnonzero(best <= 0)
        if not out.size:
            alpha[active[:-1]] = best / best.sum()
            return
        part = here[out] / (here[out] - best[out])
        first = int(part.argmin())
        here += part[first] * (best - here)
        here[out[first]] = 0
        np.maximum(here, 0, out=here)
        here /= here.sum()
        alpha[active[:-1]] = here
        active = active[np.append(here > 0, True)]


def _solve(system: Array, right: Array) -> Array:
    try:
        return np.linalg.solve(system, right)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(system, right)[0]
