"""The law that every kernel keeps, written once."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state

from hilbin._arrays import Array, to_dense
from hilbin.kernels.additive import AdditiveKernel, HomogeneousKernel
from hilbin.kernels.base import Kernel, NotPositiveDefiniteWarning
from hilbin.kernels.pairwise import pairwise_sum


def check_kernel(
    kernel: Kernel, X: object | None = None, *, feature_map: Any = None, random_state: Any = 0
) -> None:
    """Raise ``AssertionError`` naming the first law that ``kernel`` breaks.

    The laws are symmetry, positive semi-definiteness (unless ``psd`` is False), diagonal,
    rectangular part of the whole, float32, tiles, products without the matrix, CSR = dense, scalars
    = matrix, cloning; for additive kernels that their compiled function is their profile; for
    homogeneous ones that scaling the data scales the matrix; for a ``feature_map`` that its
    features keep to the error it states.

    Parameters
    ----------
    kernel : Kernel
        The kernel, with numbers for its parameters, no rules.
    X : array-like of shape (n, d), optional
        Rows to test on; by default 40 sparse random rows of 12 columns, with duplicates, near
        duplicates, an empty row and very different scales among them.
    feature_map : transformer, optional
        A map of this kernel (:mod:`hilbin.maps`) to fit to the rows.
    random_state : int, RandomState or None
        Random seed of the default rows.

    Examples
    --------
    >>> from hilbin.kernels import Chi2, check_kernel
    >>> check_kernel(Chi2())
    """
    rows = _default_rows(random_state) if X is None else np.asarray(X, dtype=np.float64)
    K = to_dense(kernel.gram(rows))
    scale = np.sqrt(np.maximum(kernel.diag(rows), 0))
    size = np.outer(scale, scale) + 1e-12 * max(1.0, scale.max() ** 2)

    def same(a: Any, b: Any, law: str, tolerance: float = 1e-9) -> None:
        error = np.max(np.abs(to_dense(a) - b) / size[: b.shape[0], : b.shape[1]])
        assert error <= tolerance, f"{kernel!r} breaks the law of {law}: error {error:.1e}"

    same(K.T, K, "symmetry", 0)
    same(np.diag(K)[:, None], kernel.diag(rows)[:, None], "the diagonal")
    if kernel.psd:
        eigenvalues = np.linalg.eigvalsh(K)
        assert eigenvalues[0] >= -1e-9 * eigenvalues[-1], (
            f"{kernel!r} breaks the law of positive definiteness: eigenvalue {eigenvalues[0]:.1e}"
        )
    same(kernel.gram(rows, rows[:7]), K[:, :7], "parts")
    same(kernel._against(rows, None)(rows[:7]), K[:7], "prepared rows")
    same(kernel.gram(np.asfortranarray(rows)), K, "memory order")
    same(kernel.gram(rows, n_jobs=2), K, "threads")
    same(kernel.gram(rows.astype(np.float32)), K, "float32", 2e-5)
    same(np.concatenate([to_dense(k) for _, k in kernel.tiles(rows, memory=1e-3)]), K, "tiles")
    V = np.random.default_rng(0).standard_normal((rows.shape[0], 2))
    same(kernel.lazy(rows) @ V, K @ V, "lazy products", 1e-8 * rows.shape[0])
    same(kernel.lazy(rows, rows[:7]).T @ V, K[:, :7].T @ V, "lazy products", 1e-8 * rows.shape[0])
    same(kernel.gram(sp.csr_array(rows)), K, "CSR = dense", 1e-7)
    same(kernel.gram(sp.csr_array(rows), sp.csr_array(rows[:7])), K[:, :7], "CSR = dense", 1e-7)
    same(kernel(rows), K, "calls")
    same(np.array([[kernel(rows[0], rows[1])]]), K[:1, 1:2], "scalars")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPositiveDefiniteWarning)
        assert clone(kernel) == kernel, f"{kernel!r} breaks the law of cloning"
    _check_families(kernel, rows, K, same)
    if feature_map is not None:
        _check_map(feature_map, rows, K)


def _check_families(kernel: Kernel, rows: Array, K: Array, same: Callable[..., None]) -> None:
    """Check what additive and homogeneous kernels keep to besides."""
    if isinstance(kernel, AdditiveKernel):
        by_profile = pairwise_sum(kernel.tabulated(rows), rows, None, None)
        same(by_profile, K, "function = profile")
        single = rows.astype(np.float32)
        same(
            pairwise_sum(kernel.tabulated(single), single, None, None), K, "profile, float32", 2e-5
        )
    if isinstance(kernel, HomogeneousKernel):
        same(kernel.gram(3.0 * rows) / 3.0**kernel.degree, K, "homogeneity")


def _check_map(feature_map: Any, rows: Array, K: Array) -> None:
    """Check that features keep to the stated error, alike for dense, CSR and float32 rows."""
    fitted = clone(feature_map).fit(rows)
    Z = fitted.transform(rows)
    inner = getattr(fitted, "inner_", None)
    if inner is None or getattr(fitted, "orthonormal", False):
        product = to_dense(Z @ Z.T)
    else:
        product = Z @ (inner @ to_dense(Z.T))
    terms = rows.shape[1] if fitted.error_.per == "value" else 1
    error, bound = np.max(np.abs(product - K)), terms * fitted.error_.worst
    assert error <= bound + 1e-7 * K.max(), (
        f"{feature_map!r} states an error of {bound:.1e}: {error:.1e}"
    )
    scale = np.max(np.abs(to_dense(Z)))
    others = {"CSR = dense": sp.csr_array(rows), "float32": rows.astype(np.float32)}
    for law, other in others.items():
        apart = np.max(np.abs(to_dense(fitted.transform(other)) - to_dense(Z))) / scale
        assert apart <= 2e-5, f"{feature_map!r} breaks the law of {law}: {apart:.1e}"


def _default_rows(random_state: Any) -> Array:
    rng = check_random_state(random_state)
    rows = rng.gamma(0.5, size=(40, 12)) * (rng.uniform(size=(40, 12)) < 0.6)
    rows[:30] /= rows[:30].sum(axis=1, keepdims=True) + 1e-3
    rows[1] = rows[0]
    rows[2] = rows[0] * (1 + 1e-9)
    rows[3] = 0
    rows[4] *= 1e-6
    rows[5] *= 1e3
    return rows
