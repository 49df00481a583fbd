r"""The inner product of node coordinates: one Gram matrix per column, the same for every column.

For a map :math:`\Phi` with :math:`K(x, y) \approx \Phi(x)^T K_{ZZ} \Phi(y)`. The product with
:math:`K_{ZZ}` uses what is known of it: :math:`\min(g_i, g_j)` is two cumulative sums; nodes at
equal steps of the coordinate give a Toeplitz matrix between two diagonal ones; chi-squared is of
low rank to rounding, by its series; small matrices are multiplied as they are (Vedaldi and
Zisserman, *Sparse Kernel Approximations for Efficient Classification and Detection*).
"""

from typing import Literal

import numpy as np
from scipy.linalg import matmul_toeplitz
from scipy.sparse.linalg import LinearOperator

from hilbin._arrays import Array
from hilbin.kernels import AdditiveKernel, Chi2
from hilbin.maps._density import one_dimensional
from hilbin.maps._series import terms, zolotarev

SMALL = 128  # nodes up to which the whole matrix is as fast as anything
LARGE = 2000  # nodes from which the Fourier transform is faster

Structure = Literal["cumulative", "toeplitz", "low rank", "dense"]


class NodeInner(LinearOperator):
    """``K_ZZ`` of every column, as an operator on coordinates of ``n_columns * nodes`` entries.

    Parameters
    ----------
    kernel : AdditiveKernel
    nodes : ndarray
        Ascending values.
    n_columns : int

    Attributes
    ----------
    structure : {"cumulative", "toeplitz", "low rank", "dense"}
        How products are computed.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.kernels import Intersection
    >>> from hilbin.maps import NodeInner
    >>> inner = NodeInner(Intersection(), np.array([1.0, 2.0, 4.0]), n_columns=1)
    >>> inner @ np.ones(3)
    array([3., 5., 7.])
    >>> inner.structure
    'cumulative'
    """

    def __init__(self, kernel: AdditiveKernel, nodes: Array, n_columns: int) -> None:
        self.kernel, self.nodes, self.n_columns = kernel, nodes, n_columns
        self._u, self._r = kernel.coordinate(nodes), kernel.weight(nodes)
        self._diagonal = float(kernel.profile(np.zeros(1))[0]) * self._r**2
        self.structure = self._recognize()
        if self.structure == "low rank":
            count = np.log(4 * nodes[-1] / nodes[0]) * np.log(4e16) / np.pi**2
            self._factor = terms(nodes, zolotarev(nodes[0], nodes[-1], int(count) + 1))
        elif self.structure == "dense":
            self._factor = self.block()
        size = nodes.size * n_columns
        super().__init__(np.dtype(np.float64), (size, size))

    def block(self) -> Array:
        """``K_ZZ`` itself."""
        return one_dimensional(self.kernel, self._u, self._r, self._u, self._r)

    def root(self) -> Array:
        """``F`` with ``F F^T = K_ZZ`` to rounding and no more columns than its rank."""
        lam, U = np.linalg.eigh(self.block())
        kept = lam > lam[-1] * lam.size * np.finfo(float).eps
        return (U[:, kept] * np.sqrt(lam[kept]))[:, ::-1]

    def _recognize(self) -> Structure:
        some = np.unique(np.linspace(0, self.nodes.size - 1, 16).astype(int))
        u, r, g = self._u[some], self._r[some], self._diagonal[some]
        K = one_dimensional(self.kernel, u, r, u, r)
        if np.all(np.diff(self._diagonal) > 0) and np.allclose(K, np.minimum.outer(g, g), 1e-12, 0):
            return "cumulative"
        if self.nodes.size > LARGE and np.ptp(np.diff(self._u)) <= 1e-10 * np.ptp(self._u):
            return "toeplitz"
        return "low rank" if isinstance(self.kernel, Chi2) and self.nodes.size > SMALL else "dense"

    def _matmat(self, C: Array) -> Array:
        # columns of the data and of C side by side: nodes x (n_columns * k)
        flat = C.reshape(self.n_columns, self.nodes.size, -1).transpose(1, 0, 2)
        product = self._product(flat.reshape(self.nodes.size, -1))
        return product.reshape(flat.shape).transpose(1, 0, 2).reshape(self.shape[0], -1)

    def _product(self, C: Array) -> Array:
        if self.structure == "cumulative":
            step = np.diff(self._diagonal, prepend=0.0)
            return np.cumsum(step[:, None] * np.cumsum(C[::-1], axis=0)[::-1], axis=0)
        if self.structure == "toeplitz":
            first = self.kernel.profile(np.abs(self._u - self._u[0]))
            return self._r[:, None] * matmul_toeplitz(first, self._r[:, None] * C)
        if self.structure == "low rank":
            return self._factor @ (self._factor.T @ C)
        return self._factor @ C

    def _matvec(self, c: Array) -> Array:
        return self._matmat(c.reshape(-1, 1)).ravel()

    def _adjoint(self) -> LinearOperator:
        return self
