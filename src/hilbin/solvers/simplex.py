r"""Concave quadratic functions on the simplex, by an active set method.

**Problem.** :math:`\max_\alpha b^\top \alpha - \tfrac12 \alpha^\top H \alpha` over
:math:`\alpha \ge 0, \, \sum \alpha = 1`, with a positive semi-definite :math:`H`.

**Algorithm.** The corner of the highest gradient :math:`g = b - H\alpha` joins the active set, and
the optimum on the affine hull of the set is one small linear system. If it lies outside the
simplex, the line to it ends at the first coordinate that becomes 0, which leaves the set. Corners
that depend on each other give a system that is singular to rounding: its huge solution points along
a direction in which nothing changes, and the same rule drops one of them. From a warm start this
takes a few systems, where exchanges between pairs of coordinates take thousands.

**Stopping rule.** No more than ``tol`` is left to gain: :math:`\max g - g^\top \alpha \le` ``tol``.

**Reference.** P. Wolfe, *Finding the nearest point in a polytope*, 1976.
"""

import numpy as np

from hilbin._arrays import Array

RIDGE = 4 * np.finfo(float).eps


def maximize_on_simplex(H: Array, b: Array, alpha: Array, tol: float) -> Array:
    """Maximize ``b^T alpha - alpha^T H alpha / 2`` over ``alpha >= 0`` that sum to 1.

    It starts at a feasible ``alpha`` and returns one that is never worse, as soon as no more than
    ``tol`` is left to gain: ``max(g) - g^T alpha <= tol`` for the gradient ``g``.
    """
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

    def value(x: Array) -> float:
        return float(b @ x - 0.5 * x @ (H @ x))

    return alpha if value(alpha) >= value(start) else start


def _conditions(H: Array, b: Array) -> tuple[Array, Array]:
    """Return the system of ``b - H x`` equal in all coordinates, the last unknown, and sum 1."""
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
        matrix = system[active[:, None], active]
        try:
            best = np.linalg.solve(matrix, right[active])[:-1]
        except np.linalg.LinAlgError:
            best = np.linalg.lstsq(matrix, right[active])[0][:-1]
        here = alpha[active[:-1]]
        out = np.flatnonzero(best <= 0)
        if not out.size:
            alpha[active[:-1]] = best / best.sum()
            return
        share = here[out] / (here[out] - best[out])
        first = int(share.argmin())
        here += share[first] * (best - here)
        here[out[first]] = 0
        np.maximum(here, 0, out=here)
        here /= here.sum()
        alpha[active[:-1]] = here
        active = active[np.append(here > 0, True)]
