r"""Kernel discriminants: directions in which classes are far apart and narrow.

With the images :math:`\phi(x)` centered, :math:`S_b = \sum_c n_c m_c m_c^\top` the scatter of the
means of the classes and :math:`S_w = S - S_b` that within them, discriminants are the directions of
largest :math:`w^\top S_b w / w^\top (S_w + rI) w`; there are at most :math:`C - 1`. The penalty is
:math:`r = \mathrm{reg} \cdot \mathrm{tr}(S) / n`, a share of the variance, so that no factor of the
kernel matters.

**Algorithm.** With :math:`Y` one-hot and :math:`B = Y \mathrm{diag}(n_c)^{-1/2}`, one Cholesky
decomposition gives :math:`A = (K_c + rI)^{-1} B`, and the matrix of size :math:`C`

.. math:: T = B^\top (B - rA) = V\,\mathrm{diag}(\theta)\,V^\top

has :math:`0 \le \theta < 1`; the coefficients are :math:`A V \mathrm{diag}(n / (\theta (1 -
\theta)))^{1/2}` and the ratio of the scatters is :math:`\theta / (1 - \theta)`. The scatter within
classes plus penalty is then :math:`n` in every direction, as in scikit-learn's
:class:`~sklearn.discriminant_analysis.LinearDiscriminantAnalysis`. For features :math:`Z_c = U
\mathrm{diag}(\mu)^{1/2} W^\top` the same is :math:`T = B^\top U \mathrm{diag}(\mu / (\mu + r))
U^\top B`.

**Prediction.** The class of highest :math:`-\tfrac12 \|t - m_c\|^2 + \ln(n_c / n)` in the
coordinates :math:`t`. In a feature space of many dimensions these are no logarithms of
probabilities: with ``probability=True`` those are learned from rows that are left out, as in every
classifier of the library, here by another fit without them.

**References.** S. Mika et al., *Fisher Discriminant Analysis with Kernels*, 1999. G. Baudat and
F. Anouar, *Generalized Discriminant Analysis Using a Kernel Approach*, 2000. Chapter 7 of
C. Lampert, *Kernel Methods in Computer Vision*.
"""

from contextlib import suppress
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from scipy.linalg import LinAlgError, eigh
from sklearn.base import clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_positive, require_whole
from hilbin._state import require_attributes
from hilbin.estimators._fit import check_classes, checked_weights
from hilbin.estimators.probability import ProbabilityClassifier, row_keys, separate_keys
from hilbin.estimators.reduction.base import Centered, KernelTransformer, signs
from hilbin.parallel import blas_threads
from hilbin.solvers.ridge import solve_definite

LEAST_REG = 1e-8  # below, coefficients of a singular matrix are rounding
LEAST = 1e-10  # eigenvalues below, of the features over the largest, or of T, are rounding
ONE = 1 - 1e-13  # a direction with no scatter within classes


@estimator
class KernelDiscriminant(ProbabilityClassifier, KernelTransformer):
    r"""Discriminants of two or more classes in the feature space of any kernel; also a classifier.

    Coordinates maximize the scatter between classes over :math:`S_w + rI`, the scatter within them
    and a penalty. With the linear kernel and a small penalty they are those of
    :class:`sklearn.discriminant_analysis.LinearDiscriminantAnalysis`, up to signs: the largest
    coordinate of a training row is positive.

    Parameters
    ----------
    reg : float, default=1e-3
        Penalty as a share of the variance, :math:`r = \mathrm{reg} \cdot \mathrm{tr}(S) / n`. At
        least 1e-8 for a kernel; 0 is allowed for an explicit map.
    n_components : int, optional
        Number of coordinates that ``transform`` gives; by default all, at most one less than there
        are classes. Prediction uses all.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    eigenvalues_ : ndarray of shape (n_directions,)
        Ratios of the scatter between classes to that within, falling.
    explained_variance_ratio_ : ndarray of shape (n_directions,)
        Their shares.
    means_ : ndarray of shape (n_classes, n_directions)
        Means of the classes in the coordinates.
    priors_ : ndarray of shape (n_classes,)
        Shares of the classes among the training rows.
    reg_ : float
        The penalty :math:`r`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import KernelDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelDiscriminant().fit(X, y)
    >>> model.transform(X).shape
    (150, 2)
    >>> model.score(X, y) > 0.97
    True
    """

    reg: float = 1e-3
    _: KW_ONLY
    n_components: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("reg", self.reg, or_zero=True)
        if self.reg < LEAST_REG and not self._explicit:
            raise ValueError(
                f"reg must be at least {LEAST_REG:g} for a kernel, as the scatter within classes "
                f"is singular in its feature space, got {self.reg!r}"
            )
        if self.n_components is not None:
            require_whole("n_components, if not None,", self.n_components, 1)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the discriminants.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples, or their Gram matrix.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice.

        Returns
        -------
        self : KernelDiscriminant
        """
        rows, y = self._checked(X, y)
        check_classification_targets(y)
        weights = None if sample_weight is None else checked_weights(sample_weight, rows)
        present = y if weights is None else y[weights > 0]
        self.classes_ = check_classes(np.unique(present), sample_weight)
        found = self._center(rows, weights)
        B = (y[:, None] == self.classes_) * np.sqrt(found.weights)[:, None]
        sizes = np.square(B).sum(axis=0)
        B /= np.sqrt(sizes)
        with blas_threads(self.n_jobs):
            A, T = self._solved(found, B)
            theta, V = (part[..., ::-1] for part in eigh(T))
        coef, theta = self._directions(A, theta, V, sizes.sum())
        coordinates = found.values @ coef
        sign = signs(found.unweighted(coordinates))
        self._keep(found, coef * sign)
        self.eigenvalues_ = theta / (1 - theta)
        self.explained_variance_ratio_ = self.eigenvalues_ / self.eigenvalues_.sum()
        self.means_ = (B / np.sqrt(sizes)).T @ coordinates * sign
        self.priors_ = sizes / sizes.sum()
        self._forget_calibration()
        if self.probability:
            self._learn_probabilities(rows, y, weights)
        return self

    def _learn_probabilities(self, rows: Any, y: Array, weights: Array | None) -> None:
        """Fit again without some of the rows, and keep a calibration of their scores."""
        shares = np.ones(y.size) if weights is None else weights
        used = np.flatnonzero(shares > 0)
        y, shares = y[used], shares[used]

        def part(of: Array, beside: Array) -> Any:
            return rows[used[of]][:, used[beside]] if self._precomputed else rows[used[of]]

        def scores_without(left_out: Array) -> Array:
            # a class all of whose rows are left out cannot be learned: they stay, unscored
            kept = ~left_out | ~np.isin(y, y[~left_out])
            model: Any = clone(self).set_params(probability=False)
            model.fit(part(kept, kept), y[kept], shares[kept])
            found = model.decision_function(part(~kept, kept)).reshape(np.count_nonzero(~kept), -1)
            scores = np.full((y.size, found.shape[1]), np.nan)
            scores[~kept] = found
            return scores[left_out]

        # columns of a given matrix change with the rows, so these have no numbers of their own
        keys = separate_keys(y.size) if self._precomputed else row_keys(rows)[used]
        self._learn_calibration(keys, np.searchsorted(self.classes_, y), shares, scores_without)

    def _solved(self, found: Centered, B: Array) -> tuple[Array, Array]:
        """Return coefficients of the classes, and the matrix T of their scatters."""
        self.reg_ = float(self.reg * found.total / found.weights.sum())
        if not self._explicit:
            penalized = found.values.copy()
            penalized[np.diag_indices(len(B))] += self.reg_
            with suppress(LinAlgError):  # else the matrix is indefinite
                A = solve_definite(penalized, B, overwrite=True)
                return A, B.T @ (B - self.reg_ * A)
        mu, U, coef = self._spectrum(found, None, LEAST)
        inner = U.T @ B
        shrunk = inner / (mu + self.reg_)[:, None]
        return coef @ (np.sqrt(mu)[:, None] * shrunk), inner.T @ (mu[:, None] * shrunk)

    def _directions(self, A: Array, theta: Array, V: Array, n: float) -> tuple[Array, Array]:
        """Return the coefficients of the directions that tell classes apart."""
        most = theta.size - 1
        rank = int(np.count_nonzero(theta[:most] > LEAST))
        if not rank:
            raise ValueError("the means of all classes are equal: no direction separates them")
        if self.n_components is not None and self.n_components > rank:
            raise ValueError(
                f"n_components={self.n_components} is more than {rank}, the rank of the means of "
                f"{theta.size} classes"
            )
        theta = theta[:rank]
        if theta[0] >= ONE:
            raise ValueError(
                "the scatter within classes is singular: all rows of a class agree in some "
                f"direction. Take a larger reg than {self.reg!r}"
            )
        return A @ V[:, :rank] * np.sqrt(n / (theta * (1 - theta))), theta

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self, "coef_")
        T = self._project(X)
        own = np.log(self.priors_) - np.square(self.means_).sum(axis=1) / 2
        scores: Array = T @ self.means_.T + own
        return scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the arrays of a loaded model do not fit together."""
        super()._check_state()
        require_attributes(
            self,
            coef_="float64[*, m]",
            eigenvalues_="float64[m]",
            explained_variance_ratio_="float64[m]",
            means_="float64[c, m]",
            priors_="float64[c]",
            classes_="labels[c]",
            reg_="float",
        )

    @property
    def _n_features_out(self) -> int:
        return self.eigenvalues_[: self.n_components].size
