r"""A few of the largest eigenvalues of a large symmetric matrix, with certified residuals.

**Problem.** The :math:`m` largest eigenvalues of a dense symmetric :math:`A` of size :math:`n`, and
their vectors, for :math:`m` far below :math:`n`.

**Algorithm.** Block Lanczos without restarts. With an orthonormal random block :math:`Q_1`, the
step :math:`j` takes the part of :math:`A Q_j` that is orthogonal to all earlier blocks, and
:math:`Q_{j+1} R_{j+1}` is its QR decomposition. The largest eigenpairs :math:`(\theta, y)` of
:math:`Q^\top A Q` give :math:`\theta` and :math:`Q y`. A product with a block reads the matrix
once, where Lanczos' method with single vectors reads it for every column. Blocks are orthogonalized
twice, so that no eigenvalue comes back as a copy.

**Stopping rule.** The residual is known without a product, :math:`\|A Q y - \theta Q y\| =
\|R_{j+1} y_j\|` with :math:`y_j` the last part of :math:`y`. Steps end where it is at most
:math:`10^{-13}` of the largest entry of :math:`Q^\top A Q` for all pairs: some eigenvalue is within
so much of every :math:`\theta`, and :math:`\theta` itself within the square of it over the gap.
Where the blocks have found all that the start has to offer, as in a matrix of low rank, or one with
more copies of an eigenvalue than a block has columns, random columns take the place of those that
vanish, and steps end only if they brought nothing.

**References.** G. Golub and R. Underwood, *The Block Lanczos Method for Computing Eigenvalues*,
1977. Y. Saad, *Numerical Methods for Large Eigenvalue Problems*, chapter 6.
"""

import numpy as np
from scipy.linalg import eigh, qr

from hilbin._arrays import Array

BLOCK = 16  # columns: a product with fewer waits for memory
TOLERANCE = 1e-13  # of residuals, over the largest eigenvalue
SHORT = 1e-8  # columns that are so short lose digits when they are scaled
EVERY = 2  # steps, the residuals are computed
LARGEST = 1 / 2  # of n: a basis of more columns is slower than LAPACK


def lanczos(A: Array, count: int) -> tuple[Array, Array] | None:
    """Return the largest eigenvalues, falling, and their vectors as columns.

    Parameters
    ----------
    A : array of shape (n, n)
        A symmetric matrix.
    count : int
        Number of eigenvalues.

    Returns
    -------
    pair : (array of shape (count,), array of shape (n, count)) or None
        None if a basis of n / 2 columns is not enough.
    """
    n, random = len(A), np.random.default_rng(0)
    most = int(n * LARGEST) // BLOCK * BLOCK
    Q, H = np.empty((n, most), order="F"), np.zeros((most, most))
    block = qr(random.normal(size=(n, BLOCK)), mode="economic")[0]
    exhausted_at = -np.inf
    for begin in range(0, most, BLOCK):
        end = begin + BLOCK
        Q[:, begin:end] = block
        basis, product = Q[:, :end], A @ block
        H[:end, begin:end] = _subtract(product, basis)
        H[begin:end, :end] = H[:end, begin:end].T
        size = np.abs(H[:end, begin:end]).max()
        _subtract(product, basis)
        block, R, rank = _next_block(product, basis, size, random)
        exhausted = rank < BLOCK
        if end >= count + BLOCK and (exhausted or end // BLOCK % EVERY == 0):
            values, Y = eigh(H[:end, :end], subset_by_index=(end - count, end - 1))
            residual = np.linalg.norm(R @ Y[begin:], axis=0).max()
            found = values.sum() <= exhausted_at + TOLERANCE * np.abs(values).sum()
            if residual <= TOLERANCE * np.abs(values).max() and (found or not exhausted):
                return values[::-1], (basis @ Y)[:, ::-1]
            exhausted_at = values.sum() if exhausted else exhausted_at
    return None


def _subtract(block: Array, basis: Array) -> Array:
    """Subtract from a block, in place, what lies in a basis; return its coordinates there."""
    coordinates: Array = basis.T @ block
    block -= basis @ coordinates
    return coordinates


def _next_block(
    rest: Array, basis: Array, size: float, random: np.random.Generator
) -> tuple[Array, Array, int]:
    """Return an orthonormal block, ``R`` such that ``rest`` is their product, and its rank.

    Columns beyond the rank are random.
    """
    block, R, order = qr(rest, mode="economic", pivoting=True, check_finite=False)
    R = R[:, np.argsort(order)]
    lengths = np.linalg.norm(R, axis=1)
    rank = int(np.count_nonzero(lengths > TOLERANCE * size))
    if lengths.min() <= SHORT * size:
        block[:, rank:] = random.normal(size=(len(block), BLOCK - rank))
        for _ in range(2):
            _subtract(block, basis)
            signs = np.sign(np.diag(qr(block, mode="r")[0]))
            block = qr(block, mode="economic")[0] * signs
    return block, R, rank
