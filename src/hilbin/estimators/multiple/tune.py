r"""Bandwidths and weights of a kernel by gradient steps.

**Problem.** A kernel has parameters :math:`\theta_1, \dots, \theta_p > 0`: the :math:`\gamma` of
every :math:`e^{-\gamma d}` in it, the weights of its sums. Find those of largest centered alignment
with the targets (:mod:`hilbin.kernels.alignment`), or of least leave-one-out error of kernel ridge
regression (:mod:`hilbin.solvers.kernel_ridge`), whose penalty :math:`\alpha` is then found, too.

Both criteria give derivatives by the entries of the Gram matrix, and
:mod:`hilbin.estimators.multiple.differentiable` those by the parameters.

**Algorithm and stopping rule.** L-BFGS-B on :math:`\ln \theta`, from the parameters that the kernel
has, until the criterion changes by less than rounding or ``max_iter`` is reached. Every
:math:`\ln \gamma` stays between 12 below and 5 above that of the median rule; weights stay as near
to where they were. The criteria have many optima: this is a search near the start, which never ends
below it. Of more than ``max_samples`` rows a sample is taken, with the classes in proportion.

**References.** C. Cortes, M. Mohri and A. Rostamizadeh, *Algorithms for Learning Kernels Based on
Centered Alignment*, 2012. O. Chapelle, V. Vapnik, O. Bousquet and S. Mukherjee, *Choosing Multiple
Parameters for Support Vector Machines*, 2002.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.model_selection import train_test_split

from hilbin._arrays import Array, check_rows
from hilbin._parameters import require_choice, require_positive, require_whole
from hilbin.estimators.kernel.ridge import AUTO
from hilbin.estimators.multiple.differentiable import BELOW, Node, differentiable
from hilbin.kernels import Kernel
from hilbin.kernels.alignment import NONE_AGREES, aligned, targets
from hilbin.parallel import blas_threads
from hilbin.solvers.kernel_ridge import kernel_ridge_path, loo_error_gradient

CRITERIA = ("alignment", "leave_one_out")
TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Tuning:
    """What :func:`tune` found.

    Parameters
    ----------
    kernel : Kernel
        The kernel with the parameters that were found.
    before, after : float
        Value of the criterion with the first and the last parameters, on the rows that were
        looked at: the alignment, or the mean squared leave-one-out error.
    n_iter : int
        Steps taken.
    converged : bool
        Whether the steps ended before ``max_iter``.
    alpha : float or None
        The penalty of kernel ridge regression, if ``by="leave_one_out"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import tune
    >>> from hilbin.kernels import Gaussian
    >>> found = tune(Gaussian("median"), *load_iris(return_X_y=True))
    >>> round(found.before, 3), round(found.after, 3)
    (0.787, 0.795)
    """

    kernel: Kernel
    before: float
    after: float
    n_iter: int
    converged: bool
    alpha: float | None = None


def tune(
    kernel: Kernel,
    X: Any,
    y: Any,
    *,
    by: str = "alignment",
    alpha: float | str = "auto",
    task: str = "auto",
    max_iter: int = 60,
    max_samples: int = 3000,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Tuning:
    r"""Improve the bandwidths and weights of a kernel, starting from those that it has.

    It changes every ``gamma`` of a kernel :math:`e^{-\gamma d}`, the weights of
    :class:`~hilbin.kernels.WeightedSum` that are not 0 and the factors of
    :class:`~hilbin.kernels.Scaled`, wherever they are inside sums, products,
    :class:`~hilbin.kernels.OnColumns`, :class:`~hilbin.kernels.Normalized` and
    :class:`~hilbin.kernels.Power`. Other parameters stay.

    Parameters
    ----------
    kernel : Kernel
        Where to start. Rules such as ``gamma="median"`` become numbers first.
    X : array-like or CSR of shape (n, d)
        Rows.
    y : array-like of shape (n,), or (n, n_targets) for regression
        Class labels or targets.
    by : {"alignment", "leave_one_out"}
        The criterion: the largest centered alignment with the targets, or the least squared error
        of kernel ridge regression for rows that are left out; labels are then one-hot targets.
    alpha : float or "auto", default "auto"
        Penalty of kernel ridge regression to start with; ``"auto"`` takes the best of a grid for
        the kernel as it is.
    task : {"auto", "classification", "regression"}
        What ``y`` is. ``"auto"`` takes floats that are not whole for targets of regression.
    max_iter : int, default 60
        Limit of the steps.
    max_samples : int, default 3000
        Rows to look at. Of more, so many are drawn.
    random_state : int, RandomState or None, default 0
        Random seed of the rows that are drawn.
    n_jobs : int, optional
        Threads, as in joblib.

    Returns
    -------
    found : Tuning
        The kernel, and the criterion before and after.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import tune
    >>> from hilbin.kernels import Gaussian, OnColumns, product_kernel
    >>> X, y = load_iris(return_X_y=True)
    >>> sepal, petal = OnColumns(Gaussian("mean"), [0, 1]), OnColumns(Gaussian("mean"), [2, 3])
    >>> found = tune(product_kernel([sepal, petal], X), X, y)
    >>> round(found.before, 3), round(found.after, 3)
    (0.715, 0.848)
    """
    require_choice("by", by, CRITERIA)
    if alpha != "auto":
        require_positive('alpha, if not "auto",', alpha)
    require_whole("max_iter", max_iter, 1)
    require_whole("max_samples", max_samples, 2)
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a kernel of hilbin.kernels, got {kernel!r}")
    kernel = kernel.resolve(X, random_state)
    rows = check_rows(X, "X", nonnegative=kernel._demand())
    T = targets(y, rows.shape[0], task=task)
    chosen = sample(T, max_samples, random_state)
    node = differentiable(kernel, rows[chosen].astype(np.float64), n_jobs)
    if not node.start.size:
        raise ValueError(f"{kernel!r} has no parameters that can be tuned: no gamma and no weights")
    T = T[chosen] - T[chosen].mean(axis=0)
    with blas_threads(n_jobs):
        if by == "alignment":
            return _by_alignment(node, T, max_iter)
        return _by_leaving_out(node, T, alpha, max_iter)


def sample(T: Array, size: int, random_state: Any) -> Array:
    """Return at most ``size`` places of rows, of all classes in proportion if there are classes."""
    every = np.arange(len(T))
    if len(T) <= size:
        return every
    _, classes, counts = np.unique(T, axis=0, return_inverse=True, return_counts=True)
    few = counts.min() > 1 and counts.size <= min(size, len(T) - size)
    return np.sort(
        train_test_split(
            every,
            train_size=size,
            stratify=classes.ravel() if few else None,
            random_state=random_state,
        )[0]
    )


def _by_alignment(node: Node, T: Array, max_iter: int) -> Tuning:
    def misses(logs: Array) -> tuple[float, Array]:
        value, G = aligned(node.gram(logs), T)
        return -value, -node.slopes(G)

    logs, before, after, n_iter, converged = _minimized(misses, node.start, node.bounds, max_iter)
    if after >= 0:
        raise ValueError(NONE_AGREES)
    return Tuning(node.kernel(logs), -before, -after, n_iter, converged)


def _by_leaving_out(node: Node, T: Array, alpha: float | str, max_iter: int) -> Tuning:
    def log_error(logs: Array) -> tuple[float, Array]:
        penalty = float(np.exp(logs[-1]))
        error, G = loo_error_gradient(node.gram(logs[:-1]), T, penalty)
        error = max(error, TINY)
        slopes = np.append(node.slopes(G), penalty * np.trace(G))
        return float(np.log(error)), slopes / error

    if alpha == "auto":
        K = node.gram(node.start)
        alpha = kernel_ridge_path(K, T, AUTO * np.diag(K).mean()).best_alpha
    own = float(np.log(alpha))
    start, bounds = np.append(node.start, own), [*node.bounds, (own - BELOW, own + BELOW)]
    logs, before, after, n_iter, converged = _minimized(log_error, start, bounds, max_iter)
    errors = float(np.exp(before)), float(np.exp(after))
    return Tuning(node.kernel(logs[:-1]), *errors, n_iter, converged, float(np.exp(logs[-1])))


def _minimized(
    function: Callable[[Array], tuple[float, Array]],
    start: Array,
    bounds: Sequence[tuple[float, float]],
    max_iter: int,
) -> tuple[Array, float, float, int, bool]:
    """Return the best place, the values at the start and there, the steps, and whether they end."""
    before = function(start)[0]
    options = {"maxiter": max_iter}
    found = minimize(function, start, method="L-BFGS-B", jac=True, bounds=bounds, options=options)
    better = found.fun <= before
    place, after = (found.x, float(found.fun)) if better else (start, before)
    return place, before, after, int(found.nit), bool(found.nit < max_iter)
