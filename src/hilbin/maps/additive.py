r"""Explicit features of additive kernels.

:math:`K(x, y) = \sum_d k(x_d, y_d) \approx \sum_d \langle \varphi(x_d), \varphi(y_d) \rangle` with
:math:`\varphi` of a few dimensions, so that a linear learner on the features is a kernel learner,
at linear cost. Chi-squared has a series with geometric convergence (Li, Lebanon and Sminchisescu,
*A Linear Approximation to the chi-squared Kernel with Geometric Convergence*); every other kernel
is projected on few values or on the leading eigenfunctions over the data.
"""

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, Function, Matrix
from hilbin.kernels import AdditiveKernel, Chi2
from hilbin.maps import _methods, _series
from hilbin.maps._base import KernelMap, MapError, measured, require_count
from hilbin.maps._cells import Cubics, make_cells
from hilbin.maps._density import Density, density
from hilbin.maps._expand import Expansion, RankOne, SeriesTerms, expand, expand_values
from hilbin.parallel import blas_threads

METHODS = ("auto", "series", "harmonic", "chebyshev", "nystroem", "eigen")
PARAMETERS = ("fit", "universal", "zolotarev", "greedy", "greedy-density")
MOST_COMPONENTS = 64
PREFERENCE = 1.25  # how much larger the error of a simpler map may be for it to be chosen


class AdditiveMap(KernelMap):
    r"""Features whose inner products approximate an additive kernel.

    Every value :math:`x_d` becomes ``n_components`` features side by side. Rows are mapped one by
    one, zeros of a histogram kernel map to zeros, CSR stays CSR, float32 stays float32.

    Parameters
    ----------
    kernel : AdditiveKernel
        ``Chi2()``, ``JensenShannon()``, ``Intersection()``, ``Hellinger()`` or one of your own.
    n_components : int, default 5
        Features per value, at most 64. A kernel of rank one (Hellinger) has one, and is exact.
    method : {"auto", "series", "harmonic", "chebyshev", "nystroem", "eigen"}
        ``"series"``: the closed form of chi-squared, whose error is guaranteed. ``"nystroem"``:
        projection on as many values, placed as the fitted series places its parameters.
        ``"eigen"``: the eigenfunctions over the histogram of the data; least mean square error, any
        kernel. ``"harmonic"``: samples of the spectrum (Vedaldi and Zisserman), step by search.
        ``"chebyshev"``: a reconstruction of an earlier baseline for chi-squared. ``"auto"``: by the
        error measured in ``fit``, the series (chi-squared) or nystroem (others) if its expected
        error is within 1.25 of that of eigen, which no map of this size can beat, else eigen.
    parameters : {"fit", "universal", "zolotarev", "greedy", "greedy-density"} or array of floats
        Of the series. ``"fit"``: least expected error on the data, 5 % of the mass spread evenly;
        ``"universal"``: least worst error on ``[0, high]`` whatever the data; ``"zolotarev"``:
        least worst relative error on ``[low, high]``; ``"greedy"``: Algorithm 1 of the paper, by
        the mass or the density of bins. With anything but ``"fit"``, ``"auto"`` means the series.
    tol : float, optional
        If given, the smallest number of components whose expected relative error is at most ``tol``
        is taken, and ``n_components`` is ignored.
    domain : (low, high), optional
        Smallest and largest value to serve; by default those that count in the data. Above ``high``
        the error grows but stays below ``sqrt(k(x, x) k(y, y))``; below ``low`` it stays below
        ``sqrt(k(x, x) k(y, y))`` too, which is small there.
    n_jobs : int, optional
        Threads of ``transform``, as in joblib.

    Attributes
    ----------
    error_ : MapError
        For a pair of values of ``domain_``; the worst case of the series holds down to 0.
    method_ : str
        The method in use; ``"exact"`` for a kernel of rank one.
    n_components_ : int
        Features per value.
    parameters_ : ndarray
        Of the series; empty for the other methods.
    domain_ : (float, float)

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.kernels import Chi2
    >>> from hilbin.maps import AdditiveMap
    >>> X = np.random.default_rng(0).dirichlet(np.ones(20), 100)
    >>> feature_map = AdditiveMap(Chi2(), method="series").fit(X)
    >>> Z = feature_map.transform(X)
    >>> Z.shape
    (100, 100)
    >>> K = Chi2().gram(X)
    >>> bool(np.linalg.norm(Z @ Z.T - K) < 1e-3 * np.linalg.norm(K))
    True
    >>> feature_map.error_.kind
    'guaranteed'
    """

    kernel: AdditiveKernel

    def __init__(
        self,
        kernel: AdditiveKernel,
        n_components: int = 5,
        *,
        method: str = "auto",
        parameters: Any = "fit",
        tol: float | None = None,
        domain: tuple[float, float] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.method = method
        self.parameters = parameters
        self.tol = tol
        self.domain = domain
        self.n_jobs = n_jobs

    def fit(self, X: object, y: object = None) -> Self:
        """Choose the features for the values of ``X``.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)
        y : ignored
        """
        self._check_parameters()
        values = density(self.kernel, self._rows(X, reset=True), self.domain)
        with blas_threads(1):  # on small matrices more threads mostly wait
            if self.tol is None:
                chosen = self._choose(values, require_count("n_components", self.n_components))
            else:
                chosen = self._smallest(values, self.tol)
            self.method_, self.parameters_ = chosen.method, chosen.parameters
            self._expansion = self._expanded(chosen, values)
            self.error_ = self._stated_error(values)
        self.n_components_ = self._expansion.n_components
        self.domain_ = (values.low, values.high)
        self._warn_if_fewer()
        return self

    def transform(self, X: object) -> Any:
        """Features of ``X``.

        Parameters
        ----------
        X : array-like or CSR of shape (n, d)

        Returns
        -------
        Z : ndarray or CSR
            Of shape ``(n, d * n_components_)``.
        """
        check_is_fitted(self)
        return self._features(self._rows(X))

    def _features(self, rows: Matrix) -> Any:
        """Of rows that have been checked."""
        keeps_zero = bool(self.kernel.weight(np.zeros(1))[0] == 0)
        return expand(rows, self._expansion, keeps_zero, self.n_jobs)

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """``<name>_0, <name>_1, ...`` for every feature that came in."""
        check_is_fitted(self)
        return self._names_per_value(input_features, self.n_components_)

    def _check_parameters(self) -> None:
        if not isinstance(self.kernel, AdditiveKernel):
            raise TypeError(
                f"AdditiveMap takes an additive kernel, got {self.kernel!r}; FourierMap takes "
                "exponentials of additive kernels and NystroemMap any kernel"
            )
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {METHODS}, got {self.method!r}")
        if isinstance(self.parameters, str) and self.parameters not in PARAMETERS:
            raise ValueError(f"parameters must be one of {PARAMETERS}, got {self.parameters!r}")
        if self.method in ("series", "chebyshev") and not isinstance(self.kernel, Chi2):
            raise ValueError(f'method="{self.method}" is for Chi2 alone, got {self.kernel!r}')
        if self.tol is not None and not self.tol > 0:
            raise ValueError(f"tol must be a number > 0, got {self.tol!r}")
        if self.tol is None and require_count("n_components", self.n_components) > MOST_COMPONENTS:
            raise ValueError(
                f"n_components must be at most {MOST_COMPONENTS}, got {self.n_components}; "
                "SparseMap takes any number of nodes at the same cost"
            )
        self._check_domain()

    def _choose(self, values: Density, n: int) -> "Candidate":
        """The features by the method asked for."""
        span = max(1.0, values.edges[1] - values.edges[0])
        if np.ptp(self.kernel.profile(np.linspace(0, span, 64))) == 0:
            size = np.sqrt(self.kernel.profile(np.zeros(1)))
            return Candidate("exact", values, lambda x: self.kernel.weight(x)[:, None] * size)
        fitted = isinstance(self.parameters, str) and self.parameters == "fit"
        simple = "series" if isinstance(self.kernel, Chi2) else "nystroem"
        if self.method != "auto" or not fitted:
            return self._made(values, n, self.method if self.method != "auto" else simple)
        first, best = self._made(values, n, simple), self._made(values, n, "eigen")
        return first if first.expected <= PREFERENCE * best.expected + 1e-12 else best

    def _made(self, values: Density, n: int, method: str) -> "Candidate":
        if method != "series":
            return Candidate(method, values, getattr(_methods, method)(values, n))
        k = self._series_parameters(values, n)
        return Candidate(method, values, lambda x: _series.terms(x, k), k)

    def _expanded(self, chosen: "Candidate", values: Density) -> Expansion:
        """The features as something that runs compiled."""
        if chosen.method == "exact":
            return RankOne(self.kernel)
        if chosen.method == "series":
            return SeriesTerms(chosen.parameters)
        cells = make_cells(values.low, values.high, nonnegative=self.kernel.nonnegative)
        return Cubics(cells, cells.cubics(chosen.features))

    def _stated_error(self, values: Density) -> MapError:
        if self.method_ == "exact":
            return MapError(0.0, 0.0, 0.0, 0.0, "guaranteed", "value")
        finer = values.finer()
        phi = expand_values(self._expansion, finer.x)
        error = measured(finer.kernel_matrix(), phi @ phi.T, finer.mass, per="value")
        if self.method_ != "series":
            return error
        worst, relative = _series.worst_case(self.parameters_, values.low, values.high)
        return replace(error, worst=worst, worst_relative=relative, kind="guaranteed")

    def _series_parameters(self, values: Density, n: int) -> Array:
        if not isinstance(self.parameters, str):
            return _own_parameters(self.parameters)
        if self.parameters == "universal":
            return _series.universal(values.high, n)
        if self.parameters == "zolotarev":
            return _series.zolotarev(values.low, values.high, n)
        if self.parameters == "fit":
            return _series.fitted(values, n)
        return _series.greedy(values, n, "mass" if self.parameters == "greedy" else "density")

    def _smallest(self, values: Density, tol: float) -> "Candidate":
        """By bisection between the last power of two that fails and the first that holds."""
        low, high, found = 0, 1, self._choose(values, 1)
        while found.expected > tol:
            if high == MOST_COMPONENTS:
                raise ValueError(
                    f"tol={tol:g} needs more than {MOST_COMPONENTS} components for "
                    f"{self.kernel!r}: those have an error of {found.expected:.1e}; "
                    "SparseMap takes any number of nodes"
                )
            low, high = high, 2 * high
            found = self._choose(values, high)
        while high - low > 1:
            middle = (low + high) // 2
            other = self._choose(values, middle)
            low, high = (low, middle) if other.expected <= tol else (middle, high)
            found = other if other.expected <= tol else found
        return found

    def _warn_if_fewer(self) -> None:
        rank, asked = self.n_components_, self.n_components
        chosen = self.tol is not None or not isinstance(self.parameters, str)
        if rank < asked and self.method_ != "exact" and not chosen:
            warnings.warn(
                f"n_components={asked} is more than the rank {rank} of {self.kernel!r} on these "
                f"values; {rank} features per value are used",
                UserWarning,
                stacklevel=3,
            )


class Candidate:
    """Features of values made by a method, and their expected relative error."""

    def __init__(
        self, method: str, values: Density, features: Function, parameters: Array | None = None
    ) -> None:
        self.method, self.features = method, features
        self.parameters = np.empty(0) if parameters is None else parameters
        phi = features(values.x)
        error = measured(values.kernel_matrix(), phi @ phi.T, values.mass, per="value")
        self.expected = error.expected_relative


def _own_parameters(parameters: Any) -> Array:
    k = np.atleast_1d(np.asarray(parameters, np.float64))
    if k.ndim != 1 or not 1 <= k.size <= MOST_COMPONENTS or not np.all(np.isfinite(k) & (k > 0)):
        raise ValueError(
            f"parameters must be 1 to {MOST_COMPONENTS} numbers > 0, got {parameters!r}"
        )
    return k
