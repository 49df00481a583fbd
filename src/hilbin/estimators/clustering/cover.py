r"""Few rows to which all others are near: set cover, with a lower bound.

**Problem.** :math:`\min \sum_i z_i` such that :math:`\sum_{i \in N(j)} z_i \ge 1` for every row
:math:`j`, where :math:`N(j)` are the rows near it and :math:`z_i` is 0 or 1.

**Algorithm.** Without the last condition it is a linear program, which HiGHS solves; its value,
rounded up, is a lower bound. Rounding takes, again and again, the row of largest :math:`z_i` times
the number of rows that it newly covers; the greedy way does it without :math:`z`, and is within
:math:`1 + \ln \max |N|` of the optimum. In both, rows that are no longer needed are dropped, last
chosen first; the smaller of the two is the answer. Where the program would be too large the greedy
way stands alone, and its guarantee gives the bound.
"""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from hilbin._arrays import Array

MOST_PAIRS = 2_000_000  # of near rows, in a linear program
POSITIVE = 1e-9  # value of z that is not rounding
ROUNDING = 1e-6  # of the program's value


def smallest_cover(near: Array) -> tuple[Array, int]:
    """Return rows that cover all others, and how few there must be at least.

    ``near`` is a symmetric matrix of bool, with True on its diagonal.
    """
    n = len(near)
    greedy = _pruned(near, _chosen(near, np.ones(n)))
    if np.count_nonzero(near) > MOST_PAIRS:
        least = greedy.size / (1 + np.log(near.sum(axis=1).max()))
        return np.sort(greedy), int(np.ceil(least - ROUNDING))
    sets = sp.csr_array(near, dtype=np.float64)
    program = linprog(np.ones(n), A_ub=-sets, b_ub=-np.ones(n), bounds=(0, 1), method="highs")
    if not program.success:
        raise RuntimeError(f"the linear program of the cover failed: {program.message}")
    z = np.where(program.x > POSITIVE, program.x, 0)
    rounded = _pruned(near, _chosen(near, z))
    best = min(rounded, greedy, key=len)
    return np.sort(best), int(np.ceil(program.fun - ROUNDING))


def _chosen(near: Array, values: Array) -> Array:
    """Choose rows by their value times what they newly cover, until all are covered."""
    open_rows = np.ones(len(near), bool)
    gains = near.sum(axis=1)
    chosen = []
    while open_rows.any():
        best = int(np.argmax(values * gains))
        chosen.append(best)
        newly = near[best] & open_rows
        open_rows &= ~newly
        gains = gains - near[newly].sum(axis=0)
    return np.array(chosen, np.int64)


def _pruned(near: Array, chosen: Array) -> Array:
    """Drop rows that are not needed, last chosen first."""
    covered = near[chosen].sum(axis=0)
    kept = []
    for row in chosen[::-1]:
        if (covered[near[row]] > 1).all():
            covered -= near[row]
        else:
            kept.append(row)
    return np.array(kept, np.int64)
