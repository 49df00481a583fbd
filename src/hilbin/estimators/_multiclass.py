r"""Many classes by machines that tell two groups of classes apart.

A matrix of codes :math:`M` has a row per class and a column per machine: machine :math:`k` learns
the rows of class :math:`c` as :math:`M_{ck} = \pm 1`, and does not see them where it is 0. One
class against the rest, pairs of classes and error-correcting codes are such matrices; they differ
in how the scores :math:`f_k(x)` of the machines become scores of the classes.

- **One against the rest**: the score of its machine.
- **Pairs** (one against one): every machine votes; equal votes are decided by the sum of the
  scores.
- **DAG**: the first and the last class that are left meet, the loser leaves, until one is left. A
  class scores by the round in which it left.
- **Error-correcting codes**: :math:`-\sum_k \max(0, 1 - M_{ck} f_k(x))`, the loss of the class.

**References.** T. G. Dietterich and G. Bakiri, *Solving Multiclass Learning Problems via
Error-Correcting Output Codes*, JAIR 1995. J. Platt, N. Cristianini and J. Shawe-Taylor, *Large
Margin DAGs for Multiclass Classification*, NIPS 1999. E. Allwein, R. Schapire and Y. Singer,
*Reducing Multiclass to Binary*, JMLR 2000.
"""

from typing import Any

import numpy as np

from hilbin._arrays import Array

MOST_EXHAUSTIVE = 7  # classes; 63 machines
PER_BIT = 10  # machines of a random code for every doubling of the classes
TRIALS = 100  # random codes, of which the best is taken


def one_against_rest(classes: int) -> Array:
    """A machine per class, but one for two classes."""
    return np.array([[-1], [1]]) if classes == 2 else 2 * np.eye(classes, dtype=int) - 1


def pairs(classes: int) -> Array:
    """A machine for every two classes, the later one positive."""
    first, second = np.triu_indices(classes, 1)
    codes = np.zeros((classes, first.size), int)
    machines = np.arange(first.size)
    codes[first, machines], codes[second, machines] = -1, 1
    return codes


def error_correcting(classes: int, random: np.random.RandomState) -> Array:
    """All ways to split few classes in two, or a random choice in which classes differ much."""
    if classes <= MOST_EXHAUSTIVE:
        splits = np.arange(1, 2 ** (classes - 1))
        digits = splits >> np.arange(classes - 1)[:, None] & 1
        return np.vstack([np.full(splits.size, -1), 2 * digits - 1])
    tried = [_random_codes(classes, random) for _ in range(TRIALS)]
    return max(tried, key=least_distance)


def _random_codes(classes: int, random: np.random.RandomState) -> Array:
    """Different splits, none of them the other one turned round."""
    machines = int(np.ceil(PER_BIT * np.log2(classes)))
    splits = np.empty((classes, 0), int)
    while splits.shape[1] < machines:
        more = 2 * random.randint(0, 2, (classes, machines)) - 1
        more = more[:, np.abs(more.sum(axis=0)) < classes]
        splits = np.unique(np.hstack([splits, -more[0] * more]), axis=1)
    return splits[:, random.permutation(splits.shape[1])[:machines]]


def least_distance(codes: Array) -> float:
    """Between two classes: the machines that tell them apart, 0 counting half."""
    distances = (codes.shape[1] - codes @ codes.T) / 2
    return float(distances[np.triu_indices(len(codes), 1)].min())


def checked_codes(codes: Any, classes: Array) -> Array:
    """Codes that a user gave; complaints name the class or the machine."""
    given = np.asarray(codes)
    if given.ndim != 2 or len(given) != classes.size or given.shape[1] < 1:
        raise ValueError(
            f"codes must have a row for each of the {classes.size} classes, got shape {given.shape}"
        )
    if not np.isin(given, (-1, 0, 1)).all():
        raise ValueError("codes must be -1, 0 or 1")
    given = given.astype(int)
    one_sided = (given.min(axis=0) > -1) | (given.max(axis=0) < 1)
    if one_sided.any():
        raise ValueError(f"codes[:, {int(np.argmax(one_sided))}] must have a 1 and a -1")
    separate = np.maximum(given, 0) @ np.maximum(-given, 0).T
    separate = separate + separate.T + np.eye(classes.size, dtype=int)
    if not separate.all():
        a, b = np.unravel_index(int(np.argmin(separate)), separate.shape)
        raise ValueError(f"codes has no machine that tells {classes[a]} from {classes[b]}")
    return given


def by_votes(scores: Array, codes: Array) -> Array:
    """Scores of classes from pairs: their votes, and a fraction that decides among equals."""
    votes = np.where(scores > 0, 1, -1) @ codes.T
    return (votes + len(codes) - 1) / 2 + _fractions(scores @ codes.T)


def by_dag(scores: Array, codes: Array) -> Array:
    """Scores of classes from pairs: the round in which they leave, and a fraction as above."""
    n, classes = len(scores), len(codes)
    machine = np.zeros((classes, classes), int)
    machine[np.triu_indices(classes, 1)] = np.arange(codes.shape[1])
    rounds = np.full((n, classes), classes - 1.0)
    rows, first, last = np.arange(n), np.zeros(n, int), np.full(n, classes - 1)
    for k in range(classes - 1):
        last_wins = scores[rows, machine[first, last]] > 0
        rounds[rows, np.where(last_wins, first, last)] = k
        first, last = first + last_wins, last - ~last_wins
    return rounds + _fractions(scores @ codes.T)


def by_losses(scores: Array, codes: Array) -> Array:
    """Scores of classes: what all machines together lose if it is that class."""
    return np.column_stack([-np.maximum(1 - scores * code, 0).sum(axis=1) for code in codes])


def _fractions(sums: Array) -> Array:
    """Numbers between -1/3 and 1/3 in the same order."""
    return sums / (3 * (np.abs(sums) + 1))
