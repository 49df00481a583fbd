r"""Weights of kernels by their alignment with the targets.

Kernels :math:`k_1, \dots, k_m` are brought to one size on the training rows
(:func:`~hilbin.kernels.kernel_scale`), then :func:`~hilbin.kernels.align_weights` gives
non-negative weights: those of the sum of largest centered alignment, by non-negative least squares
without iterations of its own, or of every kernel by itself. The sum is a kernel like any other, for
any estimator: two stages, of which the first does not know the second (C. Cortes, M. Mohri and
A. Rostamizadeh, *Algorithms for Learning Kernels Based on Centered Alignment*, 2012).
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from hilbin._arrays import ACCEPTED, Array, check_rows, validate_data
from hilbin._parameters import estimator, require_choice, require_whole
from hilbin._state import require, require_attributes
from hilbin.estimators.kernel.gram import resolved
from hilbin.estimators.multiple.tune import sample
from hilbin.kernels import (
    Gaussian,
    Kernel,
    Quantile,
    WeightedSum,
    align_weights,
    kernel_alignment,
    kernel_scale,
)
from hilbin.kernels.alignment import METHODS, TASKS, targets
from hilbin.kernels.scaling import RULES, square
from hilbin.parallel import blas_threads

QUANTILES = (0.1, 0.5, 0.9)  # of the distances, for the Gaussians that are taken by default


@estimator
class AlignedKernel(BaseEstimator):
    r"""A sum of kernels with weights learned from their alignment with the targets.

    ``kernel_`` is for any estimator that takes a kernel. Look at ``average_alignment_``, too: the
    plain average is often as good for prediction, and weights are then for reading, and for fewer
    kernels to compute.

    Parameters
    ----------
    kernels : sequence of Kernel, optional
        The kernels, on all or some columns (:class:`~hilbin.kernels.OnColumns`). Rules such as
        ``gamma="median"`` become numbers on the training rows. By default three Gaussians, with
        widths at the 0.1, 0.5 and 0.9 quantiles of the distances.
    method : {"alignf", "independent"}
        ``"alignf"``: the weights for which the sum has the largest alignment; several are often 0.
        ``"independent"``: the alignment of every kernel by itself.
    scale : {"variance", "diagonal", "norm"} or None, default "variance"
        Size that every kernel is brought to first, as in :func:`~hilbin.kernels.kernel_scale`.
        ``None`` leaves kernels as they are.
    task : {"auto", "classification", "regression"}
        What ``y`` is. ``"auto"`` takes floats that are not whole for targets of regression.
    max_samples : int, default 3000
        Rows to look at. Of more, so many are drawn, of all classes in proportion.
    random_state : int, RandomState or None, default 0
        Random seed of the rows that are drawn.
    n_jobs : int, optional
        Threads, as in joblib.

    Attributes
    ----------
    kernel_ : WeightedSum
        The sum; its weights are ``weights_ * scales_``.
    weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels at one size, >= 0. They sum to 1.
    scales_ : ndarray of shape (n_kernels,)
        Factors that bring the kernels to one size.
    alignments_ : ndarray of shape (n_kernels,)
        Alignment of every kernel alone.
    average_alignment_ : float
        Alignment of the plain average of the kernels at one size.
    alignment_ : float
        Alignment of the sum.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray
        Their names, if ``X`` has some.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import AlignedKernel, KernelSVC
    >>> from hilbin.kernels import Gaussian, OnColumns
    >>> X, y = load_iris(return_X_y=True)
    >>> each = [OnColumns(Gaussian("median"), [j]) for j in range(4)]
    >>> aligned = AlignedKernel(each, scale="diagonal").fit(X, y)
    >>> aligned.weights_.round(3)
    array([0.   , 0.   , 0.277, 0.723])
    >>> aligned.alignments_.round(3)
    array([0.438, 0.223, 0.806, 0.836])
    >>> round(aligned.average_alignment_, 3), round(aligned.alignment_, 3)
    (0.754, 0.841)
    >>> KernelSVC(aligned.kernel_).fit(X, y).score(X, y) > 0.9
    True
    """

    kernels: Sequence[Kernel] | None = None
    _: KW_ONLY
    method: str = "alignf"
    scale: str | None = "variance"
    task: str = "auto"
    max_samples: int = 3000
    random_state: Any = 0
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : array-like or CSR of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for regression
            Class labels or targets.

        Returns
        -------
        self : AlignedKernel
        """
        self._check_parameters()
        rows, y = validate_data(self, X, y, multi_output=True, **ACCEPTED)
        rows = check_rows(rows, "X", nonnegative=self._demand())
        T = targets(y, rows.shape[0], task=self.task)
        random, names = check_random_state(self.random_state), vars(self).get("feature_names_in_")
        kernels = tuple(resolved(kernel, rows, random, names) for kernel in self._kernels())
        chosen = sample(T, self.max_samples, random)
        some = rows[chosen]
        grams = [square(kernel.gram(some, n_jobs=self.n_jobs)) for kernel in kernels]
        scales = [self._factor(K, f"kernels[{j}]") for j, K in enumerate(grams)]
        for K, factor in zip(grams, scales, strict=True):
            K *= factor
        with blas_threads(self.n_jobs):
            self._learn(grams, T[chosen])
        self.scales_ = np.array(scales)
        self.kernel_ = WeightedSum(kernels, (self.weights_ * self.scales_).tolist())
        return self

    def _learn(self, grams: list[Array], T: Array) -> None:
        """Keep the weights and the alignments; columns of one-hot labels are targets, too."""
        self.weights_ = align_weights(grams, T, method=self.method, task="regression")
        both = zip(self.weights_, grams, strict=True)
        learned, average = sum(w * K for w, K in both if w), sum(grams)
        alone = [kernel_alignment(K, T, task="regression") for K in grams]
        self.alignments_ = np.array(alone)
        self.average_alignment_ = kernel_alignment(average, T, task="regression")
        self.alignment_ = kernel_alignment(learned, T, task="regression")

    def _factor(self, K: Array, name: str) -> float:
        if self.scale is None:
            return 1.0
        try:
            return kernel_scale(K, rule=self.scale)
        except ValueError as error:
            raise ValueError(f"{name} cannot be brought to size: {error}") from error

    def _kernels(self) -> Sequence[Kernel]:
        if self.kernels is not None:
            return self.kernels
        return [Gaussian(Quantile(q)) for q in QUANTILES]

    def _demand(self) -> str | None:
        kernels = self._kernels() if isinstance(self._kernels(), Sequence) else ()
        demands = (kernel._demand() for kernel in kernels if isinstance(kernel, Kernel))
        return next(filter(None, demands), None)

    def _check_parameters(self) -> None:
        require_choice("method", self.method, METHODS)
        require_choice("task", self.task, TASKS)
        require_whole("max_samples", self.max_samples, 2)
        if self.scale is not None:
            require_choice("scale, if not None,", self.scale, RULES)
        kernels = self._kernels()
        listed = isinstance(kernels, Sequence) and len(kernels) > 0
        if not listed or not all(isinstance(kernel, Kernel) for kernel in kernels):
            raise ValueError(f"kernels must be a list of one or more kernels, got {kernels!r}")

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the attributes of a loaded object do not fit together."""
        self._check_parameters()
        vectors = dict.fromkeys(("weights_", "scales_", "alignments_"), "float64[m]")
        found = require_attributes(
            self, **vectors, kernel_=WeightedSum, average_alignment_="float", alignment_="float"
        )
        if found:
            require(len(self.kernel_.kernels) == found["m"], "kernel_ has other kernels")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self._demand() is not None
        tags.target_tags.required = True
        return tags
