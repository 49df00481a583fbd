r"""Many classes by machines that tell two groups of classes apart.

A code book :math:`M` has a row per class and a column per machine: machine :math:`k` learns the
rows of class :math:`c` as :math:`M_{ck} = \pm 1`, and does not see them where it is 0. One class
against the rest, pairs of classes and error-correcting codes are such matrices; they differ
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

MULTI_CLASS = ("ovr", "ovo", "dag", "ecoc", "crammer_singer")
MOST_EXHAUSTIVE = 7  # classes; 63 machines
PER_BIT = 10  # machines of a random code book for every doubling of the classes
TRIALS = 100  # random code books, of which the best is taken


def code_book(multi_class: str, given: Any, classes: Array, random: Any) -> Array | None:
    """Return the code book of a way to handle many classes; None for Crammer and Singer's."""
    n = classes.size
    if multi_class == "crammer_singer":
        return None
    if multi_class == "ovr":
        return one_against_rest(n)
    if multi_class == "ecoc":
        return error_correcting(n, random) if given is None else checked_code_book(given, classes)
    return pairs(n)


def machine_names(multi_class: str, book: Array, classes: Array) -> list[str]:
    """Return names of the machines, by the classes that they tell apart."""
    if book.shape == (2, 1):
        return [str(classes[1])]
    if multi_class == "ovr":
        return [str(c) for c in classes]
    if multi_class == "ecoc":
        return [f"machine {k}" for k in range(book.shape[1])]
    return [f"{classes[m.argmin()]} or {classes[m.argmax()]}" for m in book.T]


def class_scores(multi_class: str, book: Array | None, scores: Array) -> Array:
    """Turn scores of machines into scores of classes, or of the second of two classes."""
    if scores.shape[1] == 1:
        return scores[:, 0]
    if book is None or multi_class == "ovr":
        return scores
    found = DECODERS[multi_class](scores, book)
    return found[:, 1] - found[:, 0] if found.shape[1] == 2 else found


def one_against_rest(classes: int) -> Array:
    """Return a machine per class, but one for two classes."""
    return np.array([[-1], [1]]) if classes == 2 else 2 * np.eye(classes, dtype=int) - 1


def pairs(classes: int) -> Array:
    """Return a machine for every two classes, the later one positive."""
    first, second = np.triu_indices(classes, 1)
    book = np.zeros((classes, first.size), int)
    machines = np.arange(first.size)
    book[first, machines], book[second, machines] = -1, 1
    return book


def error_correcting(classes: int, random: np.random.RandomState) -> Array:
    """Return all ways to split few classes in two, or random ones in which classes differ much."""
    if classes <= MOST_EXHAUSTIVE:
        splits = np.arange(1, 2 ** (classes - 1))
        digits = splits >> np.arange(classes - 1)[:, None] & 1
        return np.vstack([np.full(splits.size, -1), 2 * digits - 1])
    tried = [_random_book(classes, random) for _ in range(TRIALS)]
    return max(tried, key=least_distance)


def _random_book(classes: int, random: np.random.RandomState) -> Array:
    """Draw different splits, none of them another one turned round."""
    machines = int(np.ceil(PER_BIT * np.log2(classes)))
    splits = np.empty((classes, 0), int)
    while splits.shape[1] < machines:
        more = 2 * random.randint(0, 2, (classes, machines)) - 1
        more = more[:, np.abs(more.sum(axis=0)) < classes]
        splits = np.unique(np.hstack([splits, -more[0] * more]), axis=1)
    return splits[:, random.permutation(splits.shape[1])[:machines]]


def least_distance(book: Array) -> float:
    """Return the number of machines that tell the closest two classes apart; 0 counts half."""
    distances = (book.shape[1] - book @ book.T) / 2
    return float(distances[np.triu_indices(len(book), 1)].min())


def checked_code_book(book: Any, classes: Array) -> Array:
    """Return the code book that a user gave; errors name the class or the machine."""
    given = np.asarray(book)
    if given.ndim != 2 or len(given) != classes.size or given.shape[1] < 1:
        raise ValueError(
            f"code_book must have a row for each of the {classes.size} classes, got shape "
            f"{given.shape}"
        )
    if not np.isin(given, (-1, 0, 1)).all():
        raise ValueError("code_book must be -1, 0 or 1")
    given = given.astype(int)
    one_sided = (given.min(axis=0) > -1) | (given.max(axis=0) < 1)
    if one_sided.any():
        raise ValueError(f"code_book[:, {int(np.argmax(one_sided))}] must have a 1 and a -1")
    separate = np.maximum(given, 0) @ np.maximum(-given, 0).T
    separate = separate + separate.T + np.eye(classes.size, dtype=int)
    if not separate.all():
        a, b = np.unravel_index(int(np.argmin(separate)), separate.shape)
        raise ValueError(f"code_book has no machine that tells {classes[a]} from {classes[b]}")
    return given


def by_votes(scores: Array, book: Array) -> Array:
    """Score classes by the votes of pairs, and a fraction that decides among equals."""
    votes = np.where(scores > 0, 1, -1) @ book.T
    return (votes + len(book) - 1) / 2 + _fractions(scores @ book.T)


def by_dag(scores: Array, book: Array) -> Array:
    """Score classes by the round in which they leave, and a fraction as above."""
    n, classes = len(scores), len(book)
    machine = np.zeros((classes, classes), int)
    machine[np.triu_indices(classes, 1)] = np.arange(book.shape[1])
    rounds = np.full((n, classes), classes - 1.0)
    rows, first, last = np.arange(n), np.zeros(n, int), np.full(n, classes - 1)
    for k in range(classes - 1):
        last_wins = scores[rows, machine[first, last]] > 0
        rounds[rows, np.where(last_wins, first, last)] = k
        first, last = first + last_wins, last - ~last_wins
    return rounds + _fractions(scores @ book.T)


def by_losses(scores: Array, book: Array) -> Array:
    """Score classes by minus the loss of all machines together if it is that class."""
    return np.column_stack([-np.maximum(1 - scores * row, 0).sum(axis=1) for row in book])


def _fractions(sums: Array) -> Array:
    """Return numbers between -1/3 and 1/3 in the same order."""
    return sums / (3 * (np.abs(sums) + 1))


DECODERS = {"ovo": by_votes, "dag": by_dag, "ecoc": by_losses}
