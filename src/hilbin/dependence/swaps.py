r"""Swaps of two rows that raise the objective of kernelized sorting.

If rows :math:`i` and :math:`j` trade places, :math:`\sum_{kl} K_{kl} L_{kl}`, with :math:`L` in the
order of the rows, rises by

.. math:: 2 \sum_{k \ne i, j} (K_{ik} - K_{jk})(L_{jk} - L_{ik}) + (K_{ii} - K_{jj})(L_{jj} -
    L_{ii}) .

One product of both matrices gives this for all pairs. A round tries each row's best partner, the
largest gain first, computes the gain again, as earlier swaps change it, and swaps if it is above 0.
Rounds end where no pair gains.
"""

import numpy as np

from hilbin._arrays import Array

GAINS = 1e-9  # share of the objective that is worth a swap
MOST_ROUNDS = 100


def swapped(K: Array, L: Array, places: Array) -> Array:
    """Return places after all swaps that raise the objective."""
    places = places.copy()
    inside = L[np.ix_(places, places)]
    least = GAINS * abs(float(np.vdot(K, inside)))
    for _ in range(MOST_ROUNDS):
        gains = pair_gains(K, inside)
        partners = gains.argmax(axis=1)
        best = gains[np.arange(len(K)), partners]
        order = np.argsort(-best, kind="stable")
        done = [_swap(K, inside, places, i, partners[i], least) for i in order[best[order] > least]]
        if not any(done):
            break
    return places


def pair_gains(K: Array, L: Array) -> Array:
    """Return what the objective gains if two rows trade places, for all pairs."""
    M, k, d = K @ L, np.diag(K), np.diag(L)
    own = np.diag(M)
    inner = M + M.T - own - own[:, None]
    ends = (k + k[:, None]) * L - k * d - (k * d)[:, None] + K * (d + d[:, None] - 2 * L)
    found: Array = 2 * (inner - ends) + (k[:, None] - k) * (d - d[:, None])
    return found


def _swap(K: Array, L: Array, places: Array, i: int, j: int, least: float) -> bool:
    """Swap two rows, in ``places`` and in ``L``, if it is worth it."""
    others = np.ones(len(K), bool)
    others[[i, j]] = False
    gain = 2 * ((K[i] - K[j]) * (L[j] - L[i])) @ others
    gain += (K[i, i] - K[j, j]) * (L[j, j] - L[i, i])
    if gain <= least:
        return False
    places[[i, j]] = places[[j, i]]
    L[[i, j]] = L[[j, i]]
    L[:, [i, j]] = L[:, [j, i]]
    return True
