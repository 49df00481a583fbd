r"""How well Gram matrices agree with targets, and the sum of them that agrees best.

With :math:`H = I - 11^T/n`, :math:`K_c = HKH` and :math:`L = TT^T` the Gram matrix of the targets,
the alignment of a kernel is

.. math:: A(K) = \frac{\langle K_c, L \rangle}{\|K_c\|_F \|L\|_F} \in [-1, 1],
    \qquad
    \frac{\partial A}{\partial K} =
    \frac{1}{\|K_c\|\,\|L\|} \Big( L - \frac{\langle K_c, L \rangle}{\|K_c\|^2} K_c \Big) .

Columns of :math:`T` are the centered one-hot labels, or the centered targets of regression. For two
classes the one-hot labels say the same as labels of :math:`\pm 1`; for more, those would not be the
Gram matrix of anything.

**Weights.** ``"alignf"`` finds the sum :math:`\sum_j u_j K_j` with :math:`u \ge 0` of largest
alignment. With :math:`M_{ij} = \langle K_{ic}, K_{jc} \rangle` and :math:`a_j = \langle K_{jc}, L
\rangle` it is, up to its size, the solution of :math:`\min_{u \ge 0} u^T M u - 2 u^T a`, which is a
problem of non-negative least squares. A ridge of ``1e-8`` on :math:`M`, with every :math:`K_{jc}`
at norm 1, makes it unique: equal kernels share their weight. ``"independent"`` takes weights in
proportion to the alignments, those below 0 as 0.

**References.** N. Cristianini, J. Shawe-Taylor, A. Elisseeff and J. Kandola, *On Kernel-Target
Alignment*, 2001. C. Cortes, M. Mohri and A. Rostamizadeh, *Algorithms for Learning Kernels Based on
Centered Alignment*, 2012. Section 10.1 of C. Lampert, *Kernel Methods in Computer Vision*, has the
form that is not centered.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import type_of_target

from hilbin._arrays import Array
from hilbin._parameters import require_choice
from hilbin.kernels.scaling import centered as centered_gram
from hilbin.kernels.scaling import square

TASKS = ("auto", "classification", "regression")
METHODS = ("alignf", "independent")
RIDGE = 1e-8
CONSTANT = 1e-12  # norm of a centered matrix, in units of the matrix's, that is rounding
NONE_AGREES = "no kernel agrees with the labels: all alignments are 0 or below"


def kernel_alignment(K: object, y: object, *, centered: bool = True, task: str = "auto") -> float:
    r"""Compute the alignment of a Gram matrix with targets, between -1 and 1.

    It is :math:`\langle HKH, L \rangle_F / (\|HKH\|_F \|L\|_F)` with :math:`H = I - 11^T/n` and
    :math:`L` the Gram matrix of the centered targets: one-hot labels, or numbers to regress.

    Parameters
    ----------
    K : array-like or sparse of shape (n, n)
        Gram matrix.
    y : array-like of shape (n,), or (n, n_targets) for regression
        Class labels, at least two classes, or targets of regression.
    centered : bool, default True
        Whether the kernel and the targets are centered. If not, two classes are :math:`y = \pm 1`,
        and the alignment is :math:`y^T K y / (n \|K\|_F)`; more classes have no such form.
    task : {"auto", "classification", "regression"}
        What ``y`` is. ``"auto"`` takes floats that are not whole for targets of regression, and
        anything else for labels, as scikit-learn does.

    Examples
    --------
    >>> from hilbin.kernels import kernel_alignment
    >>> K = [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    >>> kernel_alignment(K, [0, 0, 1]).__round__(6)
    1.0
    >>> kernel_alignment(K, [0, 0, 1], centered=False).__round__(6)
    0.745356
    """
    K = square(K)
    T = targets(y, len(K), task=task, center=centered)
    A = centered_gram(K) if centered else K
    norm = float(np.linalg.norm(A))
    if norm <= CONSTANT * np.linalg.norm(K):  # a constant matrix has nothing to agree with
        return 0.0
    return float(np.sum(T * (A @ T))) / (norm * _size(T))


def alignment_gradient(K: object, y: object, *, task: str = "auto") -> Array:
    r"""Compute the derivative of the centered alignment by the entries of the Gram matrix.

    It is :math:`(L - \langle K_c, L \rangle / \|K_c\|^2\, K_c) / (\|K_c\| \|L\|)`, with
    :math:`K_c = HKH`. For a kernel with a parameter, the derivative of the alignment is the sum of
    the products of these entries and the derivatives of the kernel's.

    Parameters
    ----------
    K : array-like or sparse of shape (n, n)
        Gram matrix, which must not be constant.
    y, task
        As in :func:`kernel_alignment`.

    Returns
    -------
    gradient : ndarray of shape (n, n)

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.kernels import Gaussian, alignment_gradient, kernel_alignment
    >>> X, y = np.array([[0.0], [0.3], [1.0], [1.2]]), [0, 0, 1, 1]
    >>> D = (X - X.T) ** 2
    >>> slope = -np.sum(alignment_gradient(Gaussian(2.0).gram(X), y) * D * np.exp(-2 * D))
    >>> h = 1e-6
    >>> near = [kernel_alignment(Gaussian(2 + s * h).gram(X), y) for s in (1, -1)]
    >>> bool(abs(slope - (near[0] - near[1]) / (2 * h)) < 1e-8)
    True
    """
    K = square(K)
    return aligned(K, targets(y, len(K), task=task))[1]


def align_weights(
    grams: Sequence[Any], y: object, *, method: str = "alignf", task: str = "auto"
) -> Array:
    r"""Compute non-negative weights of kernels from their alignment with the targets.

    Parameters
    ----------
    grams : sequence of array-like or sparse of shape (n, n)
        Gram matrices, none of them constant. They are weighted as they are: bring them to one size
        first (:func:`kernel_scale`) to compare weights.
    y, task
        As in :func:`kernel_alignment`.
    method : {"alignf", "independent"}
        ``"alignf"`` maximizes the centered alignment of the sum. ``"independent"`` takes the
        alignment of every kernel by itself, or 0 if that is negative, for its weight.

    Returns
    -------
    weights : ndarray of shape (n_kernels,)
        Weights >= 0 that sum to 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.kernels import Gaussian, OnColumns, align_weights
    >>> X, y = load_iris(return_X_y=True)
    >>> kernels = [OnColumns(Gaussian("median"), [j]).resolve(X) for j in range(4)]
    >>> align_weights([kernel.gram(X) for kernel in kernels], y).round(4)
    array([0.    , 0.    , 0.2769, 0.7231])
    """
    require_choice("method", method, METHODS)
    matrices = check_grams(grams)
    M, a = inner_products(matrices, targets(y, len(matrices[0]), task=task))
    norms = np.sqrt(np.diag(M))
    if method == "independent":
        u = np.maximum(a / norms, 0)
    else:
        R = cholesky(M / np.outer(norms, norms) + RIDGE * np.eye(len(M)))
        u = nnls(R, solve_triangular(R, a / norms, trans=1))[0] / norms
    if not u.any():
        raise ValueError(NONE_AGREES)
    weights: Array = u / u.sum()
    return weights


def aligned(K: Array, T: Array) -> tuple[float, Array]:
    """Return the centered alignment of a matrix with centered targets, and its gradient."""
    Kc = centered_gram(K)
    norm = _norm(Kc, K, "K")
    size = norm * _size(T)
    product = float(np.sum(T * (Kc @ T)))
    gradient = T @ T.T
    gradient -= product / norm**2 * Kc
    gradient /= size
    return product / size, gradient


def targets(y: Any, n: int, *, task: str = "auto", center: bool = True) -> Array:
    """Return the columns of ``T``: one-hot labels, or labels of -1 and 1, or numbers."""
    require_choice("task", task, TASKS)
    if task == "auto":
        task = "regression" if type_of_target(y).startswith("continuous") else "classification"
    if task == "regression":
        T = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y").reshape(len(y), -1)
    else:
        labels = column_or_1d(y)
        classes = np.unique(labels)
        if classes.size < 2:
            raise ValueError(f"y has one class only, {classes[0]!r}: alignment needs two")
        if not center and classes.size > 2:
            raise ValueError(
                f"y has {classes.size} classes: alignment that is not centered is for two"
            )
        T = (labels[:, None] == classes).astype(np.float64)
        if not center:
            T = 2 * T[:, 1:] - 1
    check_consistent_length(np.empty(n), T)
    if center:
        T = T - T.mean(axis=0)
    if not T.any():
        raise ValueError("y is the same for all rows: nothing can agree with it")
    return T


def check_grams(grams: Any) -> list[Array]:
    """Return Gram matrices of one size as dense ones in float64."""
    matrices = [square(K, f"grams[{j}]") for j, K in enumerate(grams)]
    if not matrices:
        raise ValueError("grams must be one or more Gram matrices, got none")
    for j, K in enumerate(matrices):
        if K.shape != matrices[0].shape:
            raise ValueError(f"grams[{j}] has {len(K)} rows, but grams[0] has {len(matrices[0])}")
    return matrices


def inner_products(grams: Sequence[Array], T: Array) -> tuple[Array, Array]:
    """Return those of the centered matrices with each other, and with that of the targets."""
    M, a = np.empty((len(grams), len(grams))), np.empty(len(grams))
    for i, K in enumerate(grams):
        Kc = centered_gram(K)
        a[i] = np.sum(T * (Kc @ T))
        M[i, i] = _norm(Kc, K, f"grams[{i}]") ** 2
        for j in range(i):  # it is enough that one of two is centered
            M[i, j] = M[j, i] = np.vdot(Kc, grams[j])
    return M, a


def _size(T: Array) -> float:
    """Return the norm of ``T T^T``."""
    return float(np.linalg.norm(T.T @ T))


def _norm(Kc: Array, K: Array, name: str) -> float:
    norm = float(np.linalg.norm(Kc))
    if norm <= CONSTANT * np.linalg.norm(K):
        raise ValueError(f"{name} is constant: it has nothing to agree with the labels")
    return norm
