"""What lasso and group lasso penalize, and the descent along it; ``_lasso`` has the problem."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq

from hilbin.solvers._codes import Array


class Entries:
    """Every entry of the weights is penalized, every target a problem of its own."""

    def __init__(self, G: Array, alpha: float) -> None:
        self.alpha, self.curvature = alpha, np.diag(G)

    def sweep(self, W: Array, q: Array, active: Array, block: Array) -> float:
        """Descend along the active features; all arguments are of these alone."""
        largest = 0.0
        for place, j in enumerate(active):
            curvature = self.curvature[j]
            if curvature <= 0:
                continue
            pull = q[place] + curvature * W[place]
            new = np.sign(pull) * np.maximum(np.abs(pull) - self.alpha, 0) / curvature
            change = new - W[place]
            if change.any():
                W[place] = new
                q -= block[:, place, None] * change
                largest = max(largest, float(np.abs(change).max() * np.sqrt(curvature)))
        return largest

    def active(self, W: Array, q: Array) -> Array:
        """Features that are used, or that the gradient asks for."""
        return np.flatnonzero((W != 0).any(axis=1) | (np.abs(q) > self.alpha).any(axis=1))

    def norm(self, W: Array) -> Array:
        """Of the weights of every problem."""
        return np.abs(W).sum(axis=0)

    def dual_norm(self, q: Array) -> Array:
        """Of the gradient of every problem."""
        return np.abs(q).max(axis=0)

    def each(self, values: Array) -> Array:
        """Sums over what belongs to one problem."""
        return values.sum(axis=0)


class Groups:
    """Groups of features are penalized, all targets together."""

    def __init__(self, G: Array, alpha: float, groups: Sequence[Any]) -> None:
        members = _checked_groups(groups, len(G))
        self.alpha = alpha
        self.roots = np.sqrt([member.size for member in members])
        self.of_feature = np.repeat(np.arange(len(members)), [m.size for m in members])
        self.of_feature = self.of_feature[np.argsort(np.concatenate(members))]
        self.eigen = [np.linalg.eigh(G[np.ix_(m, m)]) for m in members]

    def sweep(self, W: Array, q: Array, active: Array, block: Array) -> float:
        """Descend along the active groups; all arguments are of these alone."""
        largest = 0.0
        here = self.of_feature[active]
        for g in np.unique(here):
            at = np.flatnonzero(here == g)
            lam, U = self.eigen[g]
            pull = U.T @ (q[at] + block[np.ix_(at, at)] @ W[at])
            new = U @ _shrunk(np.maximum(lam, 0), pull, self.alpha * self.roots[g])
            change = new - W[at]
            if change.any():
                W[at] = new
                q -= block[:, at] @ change
                largest = max(largest, float(np.abs(change).max() * np.sqrt(max(lam[-1], 0))))
        return largest

    def _norms(self, W: Array) -> Array:
        squares = np.square(W).sum(axis=1)
        return np.sqrt(np.bincount(self.of_feature, squares, self.roots.size))

    def active(self, W: Array, q: Array) -> Array:
        """Features of groups that are used, or that the gradient asks for."""
        used = (self._norms(W) > 0) | (self._norms(q) > self.alpha * self.roots)
        return np.flatnonzero(used[self.of_feature])

    def norm(self, W: Array) -> Array:
        """Of the weights, all one problem."""
        return self.roots @ self._norms(W)[:, None]

    def dual_norm(self, q: Array) -> Array:
        """Of the gradient."""
        return np.max(self._norms(q) / self.roots, keepdims=True)

    def each(self, values: Array) -> Array:
        """Sums over what belongs to one problem."""
        return values.sum(keepdims=True).ravel()


def _shrunk(lam: Array, pull: Array, limit: float) -> Array:
    """The best group in the eigenbasis of its block: ``pull / (lam + limit / norm)``."""
    squares = np.square(pull).sum(axis=1)
    if np.sqrt(squares.sum()) <= limit:
        return np.zeros_like(pull)

    def excess(ratio: float) -> float:
        """In ``ratio = limit / norm``: of ``sum squares / (lam + ratio)^2 = norm^2``."""
        return float(np.sqrt(np.sum(squares * (ratio / (lam + ratio)) ** 2)) - limit)

    high = max(float(lam.max()), np.finfo(float).tiny)
    while excess(high) < 0:
        high *= 2
    low = high
    while excess(low) > 0 and low > np.finfo(float).tiny:
        low /= 16
    if excess(low) > 0:  # directions without curvature: the data does not bound the group
        return np.zeros_like(pull)
    ratio = brentq(excess, low, high, xtol=1e-300, rtol=8.9e-16)
    return pull / (lam + ratio)[:, None]


def _checked_groups(groups: Sequence[Any], width: int) -> list[Array]:
    members = [np.unique(np.asarray(group, np.intp)) for group in groups]
    named = np.concatenate(members) if members else np.empty(0, np.intp)
    counts = np.bincount(named[(named >= 0) & (named < width)], minlength=width)
    if named.size != width or not (counts == 1).all():
        bad = int(np.argmax(counts != 1))
        raise ValueError(
            f"groups must name each of the {width} features once, "
            f"but feature {bad} is named {counts[bad]} times"
        )
    return members
