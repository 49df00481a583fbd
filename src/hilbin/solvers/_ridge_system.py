r"""The equations of kernel ridge regression in symmetric form.

With :math:`c = S u`, :math:`S = W^{1/2}` and :math:`s = S 1` they are :math:`(SKS + \alpha I) u +
b s = S t`, :math:`s^\top u = 0`. A Householder reflection takes :math:`s` to the first axis; the
other coordinates of :math:`u` are the unknowns, without :math:`b`.
:mod:`hilbin.solvers._kernel_ridge` says what they are the equations of.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas

from hilbin.parallel import ranges
from hilbin.solvers._codes import Array
from hilbin.solvers._result import Result

ROWS = 1024  # of a copy in float64


@dataclass(frozen=True)
class RidgeSystem:
    """The problem in the symmetric form of the module."""

    gram: Any  # (n, n), dense or sparse
    targets: Array  # (n, c)
    weight: Array  # (n,)
    intercept: bool

    @classmethod
    def of(cls, gram: Any, targets: Any, weight: Any, intercept: bool) -> "RidgeSystem":
        """From what a caller gives: targets of shape (n,) or (n, c), no weights or some."""
        targets = np.asarray(targets, np.float64).reshape(gram.shape[0], -1)
        weight = np.ones(len(targets)) if weight is None else np.asarray(weight, np.float64)
        if not weight.any():
            raise ValueError("weight is zero for every row")
        return cls(gram, targets, weight, intercept)

    @cached_property
    def root(self) -> Array:
        """``s``."""
        return np.sqrt(self.weight)

    @cached_property
    def mean(self) -> Array:
        """Of every target, subtracted before and added to the bias after; 0 without intercept."""
        if not self.intercept:
            return np.zeros(self.targets.shape[1])
        return np.average(self.targets, axis=0, weights=self.weight)

    @cached_property
    def rhs(self) -> Array:
        """``S t``, of targets from their mean."""
        return self.root[:, None] * (self.targets - self.mean)

    @cached_property
    def mirror(self) -> Array:
        """Unit normal of the reflection that takes ``s`` to the first axis."""
        normal = self.root / np.linalg.norm(self.root)
        normal[0] += 1
        normal /= np.linalg.norm(normal)
        return normal

    def product(self, V: Array) -> Array:
        """``K @ V`` in float64, without a copy of all of ``K``."""
        if sp.issparse(self.gram) or self.gram.dtype == np.float64:
            product: Array = self.gram @ V
            return product
        parts = ranges(len(V), ROWS)
        return np.concatenate([self.gram[i:j].astype(np.float64) @ V for i, j in parts])

    def reduced(self) -> Array:
        """The matrix of the unknowns, in Fortran order; the lower triangle alone is right."""
        first = int(self.intercept)
        A = np.array(self.gram[first:, first:], np.float64, order="F")
        if self.weight.min() != 1 or self.weight.max() != 1:
            A *= self.root[first:, None]
            A *= self.root[first:]
        if self.intercept and len(A):
            v = self.mirror
            p = self.root * self.product(self.root * v)
            p = 2 * (p - (v @ p) * v)
            A = blas.dsyr2(-1.0, v[1:], p[1:], a=A, lower=1, overwrite_a=1)
        return A

    def reduce(self, U: Array) -> Array:
        """Rows of the right-hand side, as the reduced matrix has them."""
        if not self.intercept:
            return U
        return (U - 2 * np.outer(self.mirror, self.mirror @ U))[1:]

    def expand(self, U: Array) -> Array:
        """``u`` of the unknowns."""
        if not self.intercept:
            return U
        out = np.zeros((len(U) + 1, U.shape[1]), order="F")
        out[1:] = U
        v = self.mirror
        return out if not out.size else blas.dger(-2.0, v, v @ out, a=out, overwrite_a=1)

    def certified(
        self, U: Array, alpha: float | Array, *, n_iter: int = 1, converged: bool = True
    ) -> Result:
        """The solution ``u`` with its value and duality gap, one of each for a target."""
        coef = self.root[:, None] * U
        product = self.product(coef)
        bias = np.zeros(U.shape[1])
        if self.intercept:
            bias = np.average(self.targets - self.mean - product, axis=0, weights=self.weight)
        errors = self.rhs - self.root[:, None] * (product + bias)
        gap = np.square(errors - alpha * U).sum(axis=0)
        values = np.square(errors).sum(axis=0) + alpha * np.sum(coef * product, axis=0)
        return Result(coef, U, values, gap, n_iter, converged, bias + self.mean)
