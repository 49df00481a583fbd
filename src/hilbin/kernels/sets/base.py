"""Collections of sets, checked and stacked, and what kernels of sets share."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from hilbin._arrays import Array, check_rows


@dataclass(frozen=True)
class Stack:
    """Sets one under the other: set ``i`` is ``points[ends[i]:ends[i + 1]]``."""

    points: Array
    ends: Array

    @property
    def sizes(self) -> Array:
        """The number of points of every set."""
        return np.diff(self.ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def without_empty(self) -> "Stack":
        """Return the sets that have points."""
        return Stack(self.points, np.unique(self.ends))

    def part(self, begin: int, end: int) -> "Stack":
        """Return the sets ``begin`` to ``end``."""
        ends = self.ends[begin : end + 1]
        return Stack(self.points[ends[0] : ends[-1]], ends - ends[0])

    def averaging(self) -> Any:
        """Return the sparse matrix that takes the mean over every set, none of them empty."""
        shares = np.repeat(1 / self.sizes, self.sizes)
        return sp.csr_array((shares, np.arange(len(shares)), self.ends), (len(self), len(shares)))

    def parts(self, most: int) -> list[tuple[int, int]]:
        """Return ranges of sets with at most ``most`` points, or with one set."""
        cuts: list[int] = []
        for i in range(len(self)):
            if not cuts or self.ends[i + 1] - self.ends[cuts[-1]] > most:
                cuts.append(i)
        return list(pairwise([*cuts, len(self)]))


def stack(sets: Any, name: str, *, nonnegative: str | None = None) -> Stack:
    """Check a collection of sets; complaints name the set and the row."""
    if sp.issparse(sets) or not hasattr(sets, "__iter__"):
        raise TypeError(f"{name} must be a sequence of arrays of shape (m, d), got {type(sets)}")
    points: Sequence[Array] = [_points(s, f"{name}[{i}]", nonnegative) for i, s in enumerate(sets)]
    if not points:
        raise ValueError(f"{name} is empty: no set is given")
    for i, s in enumerate(points):
        if s.shape[1] != points[0].shape[1]:
            raise ValueError(
                f"{name}[{i}] has points of {s.shape[1]} values, {name}[0] of {points[0].shape[1]}"
            )
    return Stack(np.concatenate(points), np.cumsum([0, *map(len, points)]))


def _points(points: Any, name: str, nonnegative: str | None) -> Array:
    if sp.issparse(points) or np.ndim(points) != 2:
        found = "a sparse matrix" if sp.issparse(points) else f"shape {np.shape(points)}"
        raise ValueError(f"{name} must be an array of shape (m, d), got {found}")
    if len(points) == 0:
        return np.empty(np.shape(points), np.float32)  # takes the dtype of the others
    return check_rows(points, name, nonnegative=nonnegative)


class SetKernel:
    """The base class of kernels of sets, immutable values that compare sets of vectors.

    A subclass is a frozen dataclass that computes ``_gram(X, Y, n_jobs)`` and ``_diag(X)`` of
    stacked sets, ``Y`` None for the symmetric matrix.

    Attributes
    ----------
    psd : bool
        Whether every Gram matrix is positive semi-definite.
    """

    psd: bool = True

    def _gram(self, X: Stack, Y: Stack | None, n_jobs: int | None) -> Array:
        raise NotImplementedError

    def _diag(self, X: Stack) -> Array:
        raise NotImplementedError

    def _stack(self, sets: Any, name: str) -> Stack:
        return stack(sets, name)

    def gram(self, sets: Any, others: Any = None, *, n_jobs: int | None = None) -> Array:
        """Compute the Gram matrix ``K_ij = k(sets[i], others[j])``, in float64.

        Parameters
        ----------
        sets, others : sequence of arrays of shape (m_i, d)
            ``others=None`` means ``sets``: the matrix is symmetric.
        n_jobs : int, optional
            Threads, as in joblib.

        Returns
        -------
        K : ndarray of shape (n, n_others)
        """
        X = self._stack(sets, "sets")
        if others is None or others is sets:
            return self._gram(X, None, n_jobs)
        Y = self._stack(others, "others")
        if X.points.shape[1] != Y.points.shape[1]:
            raise ValueError(
                f"points of sets have {X.points.shape[1]} values, "
                f"but those of others have {Y.points.shape[1]}"
            )
        return self._gram(X, Y, n_jobs)

    def diag(self, sets: Any) -> Array:
        """Compute ``k(s, s)`` for every set, in float64."""
        return self._diag(self._stack(sets, "sets"))

    def __call__(self, sets: Any, others: Any = None) -> Array:
        """Compute the Gram matrix, as :meth:`gram` does."""
        return self.gram(sets, others)
