r"""Explicit features of additive kernels.

:math:`K(x, y) = \sum_d k(x_d, y_d) \approx \sum_d \langle \varphi(x_d), \varphi(y_d) \rangle` with
:math:`\varphi` of a few dimensions, so that a linear learner on the features is a kernel learner,
at linear cost. Methods to find :math:`\varphi`:

- *series*: chi-squared has a series with geometric convergence (Li, Lebanon and Sminchisescu, *A
  Linear Approximation to the chi-squared Kernel with Geometric Convergence*);
- *nystroem*: projection on values :math:`z`, :math:`\varphi(x) = B^T k(z, x)` with
  :math:`B B^T = K_{zz}^{-1}`;
- *eigen*: the same on all bins of the data with the leading eigenvectors of
  :math:`W^{1/2} K W^{1/2}` alone, which has the least mean square error any :math:`N` features can
  have;
- *harmonic*: the spectrum :math:`\kappa` of the profile sampled at multiples of :math:`L`,
  :math:`\varphi(x) = r(x) \sqrt{2 L \kappa(jL)} \{\cos, \sin\}(j L u(x))` (Vedaldi and Zisserman,
  2012);
- *chebyshev*: a reconstruction of the baseline that the paper of the series compares with, the
  Fourier basis in the variable in which the spectrum of chi-squared is uniform.
"""

import warnings
from dataclasses import KW_ONLY, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from hilbin._arrays import Array, Function, Matrix
from hilbin._parameters import estimator, require_choice, require_positive, require_whole
from hilbin._state import require, require_attributes
from hilbin.kernels import AdditiveKernel, Chi2
from hilbin.maps import series
from hilbin.maps.base import MapError, ValueMap, measured, over_domain, root_mean_square
from hilbin.maps.density import GAPS, Density, density, one_dimensional
from hilbin.maps.expansion import (
    Cubics,
    Expansion,
    RankOne,
    SeriesTerms,
    expand,
    expand_values,
    make_cells,
    require_in_range,
)
from hilbin.parallel import blas_threads

PARAMETERS = ("fit", "universal", "zolotarev", "greedy", "greedy-density")
MOST_COMPONENTS = 64
PREFERENCE = 1.25  # how much larger the error of a simpler map may be for it to be chosen
ROUNDING = 1e-12  # errors that do not matter for the choice
CHI2_HALF_WIDTH = 2 * np.arccosh(2.0)  # where 1 / cosh(t / 2) is 1/2


@estimator
class AdditiveMap(ValueMap):
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
        error is within 1.25 of that of eigen, which no map of this size can beat, else eigen;
        both on the data and with one value in 10,000 from anywhere in the domain.
    parameters : {"fit", "universal", "zolotarev", "greedy", "greedy-density"} or array of floats
        Parameters of the series. ``"fit"``: least expected error on the data, 5 % of the mass
        spread evenly;
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

    Attributes
    ----------
    error_ : MapError
        The error: expected on the data, worst for a pair of values of ``domain_``, whether the data
        has them or not. The worst case of the series is guaranteed, and holds down to 0.
    method_ : str
        The method in use; ``"exact"`` for a kernel of rank one.
    n_components_ : int
        Features per value.
    parameters_ : ndarray
        Parameters of the series; empty for the other methods.

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

    n_components: int = 5
    _: KW_ONLY
    method: str = "auto"
    parameters: Any = "fit"
    tol: float | None = None

    def _fit(self, rows: Matrix) -> None:
        values = density(self._additive, rows, self.domain)
        with blas_threads(1):  # on small matrices more threads mostly wait
            if self.tol is None:
                chosen = self._choose(values, int(self.n_components))
            else:
                chosen = self._smallest(values, self.tol)
            self.method_, self.parameters_ = chosen.method, chosen.parameters
            self._expansion = self._expanded(chosen, values)
            self.error_ = self._stated_error(values)
        self.n_components_ = self._expansion.n_components
        self.domain_ = (values.low, values.high)
        self._warn_if_fewer()

    def _features(self, rows: Matrix) -> Any:
        return expand(rows, self._expansion, self._additive.keeps_zero, self.n_jobs)

    @property
    def _features_per_value(self) -> int:
        return self.n_components_

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the parts of a loaded map do not fit together."""
        if require_attributes(self, parameters_="float64[*]", n_components_="=c"):
            expansion = vars(self).get("_expansion")
            known = isinstance(expansion, SeriesTerms | RankOne | Cubics)
            require(known, "_expansion is missing")
            right = expansion is not None and expansion.n_components == self.n_components_
            require(right, "n_components_ is not that of the features")

    def _check_parameters(self) -> None:
        if not isinstance(self._additive, AdditiveKernel):
            raise TypeError(
                f"AdditiveMap takes an additive kernel, got {self.kernel!r}; FourierMap takes "
                "exponentials of additive kernels and NystroemMap any kernel"
            )
        require_choice("method", self.method, ("auto", "series", *METHODS))
        if isinstance(self.parameters, str):
            require_choice("parameters", self.parameters, PARAMETERS)
        if self.method in ("series", "chebyshev") and not isinstance(self._additive, Chi2):
            raise ValueError(f'method="{self.method}" is for Chi2 alone, got {self.kernel!r}')
        self._check_domain()
        if self.tol is not None:
            require_positive("tol", self.tol)
            return
        require_whole("n_components", self.n_components, 1)
        if self.n_components > MOST_COMPONENTS:
            raise ValueError(
                f"n_components must be at most {MOST_COMPONENTS}, got {self.n_components}; "
                "SparseMap takes any number of nodes at the same cost"
            )

    def _choose(self, values: Density, n: int) -> "Candidate":
        """Make the features by the method asked for."""
        span = max(1.0, values.edges[1] - values.edges[0])
        if np.ptp(self._additive.profile(np.linspace(0, span, 64))) == 0:
            size = np.sqrt(self._additive.profile(np.zeros(1)))
            return Candidate("exact", values, lambda x: self._additive.weight(x)[:, None] * size)
        fitted = isinstance(self.parameters, str) and self.parameters == "fit"
        simple = "series" if isinstance(self._additive, Chi2) else "nystroem"
        if self._additive.nonnegative and simple != "series":
            require_in_range(values.high)
        if self.method != "auto" or not fitted:
            return self._made(values, n, self.method if self.method != "auto" else simple)
        first, best = self._made(values, n, simple), self._made(values, n, "eigen")
        return first if first.is_near(best) else best

    def _made(self, values: Density, n: int, method: str) -> "Candidate":
        if method != "series":
            return Candidate(method, values, METHODS[method](values, n))
        k = self._series_parameters(values, n)
        return Candidate(method, values, lambda x: series.terms(x, k), k)

    def _expanded(self, chosen: "Candidate", values: Density) -> Expansion:
        """Return the features as something that runs compiled."""
        if chosen.method == "exact":
            return RankOne(self._additive)
        if chosen.method == "series":
            return SeriesTerms(chosen.parameters)
        cells = make_cells(values.low, values.high, nonnegative=self._additive.nonnegative)
        return Cubics(cells, cells.cubics(chosen.features))

    def _stated_error(self, values: Density) -> MapError:
        if self.method_ == "exact":
            return MapError(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "guaranteed", "value")
        finer = values.finer

        def approximation(x: Array, pairs: bool = True) -> Array:
            phi = expand_values(self._expansion, x)
            return phi @ phi.T if pairs else np.vecdot(phi, phi)

        error = measured(finer.kernel_matrix(), approximation(finer.x), finer.mass, per="value")
        if self.method_ != "series":
            return over_domain(error, values, approximation)
        worst, relative = series.worst_case(self.parameters_, values.low, values.high)
        return replace(error, worst=worst, worst_relative=relative, kind="guaranteed")

    def _series_parameters(self, values: Density, n: int) -> Array:
        if not isinstance(self.parameters, str):
            return _own_parameters(self.parameters)
        if self.parameters == "universal":
            return series.universal(values.high, n)
        if self.parameters == "zolotarev":
            return series.zolotarev(values.low, values.high, n)
        if self.parameters == "fit":
            return series.fitted(values, n)
        return series.greedy(values, n, "mass" if self.parameters == "greedy" else "density")

    def _smallest(self, values: Density, tol: float) -> "Candidate":
        """Find the fewest components between a power of two that fails and one that holds."""
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
                stacklevel=4,
            )


class Candidate:
    """The features of values made by a method, and their expected relative errors.

    ``expected`` is that on the data, ``everywhere`` that with a share of the mass on the gaps.
    """

    def __init__(
        self, method: str, values: Density, features: Function, parameters: Array | None = None
    ) -> None:
        self.method, self.features = method, features
        self.parameters = np.empty(0) if parameters is None else parameters
        everywhere = values.everywhere
        K, phi = everywhere.kernel_matrix(), features(everywhere.x)
        E = K - phi @ phi.T
        self.expected, self.everywhere = (
            root_mean_square(E, mass) / (root_mean_square(K, mass) or 1.0)
            for mass in (everywhere.mass, everywhere.with_floor(GAPS))
        )

    def is_near(self, best: "Candidate") -> bool:
        """Return whether both errors are about those of the ``best`` features."""
        if self.everywhere > PREFERENCE * best.everywhere + ROUNDING / GAPS:
            return False
        return self.expected <= PREFERENCE * best.expected + ROUNDING


def _own_parameters(parameters: Any) -> Array:
    """Check parameters that the user gives."""
    k = np.atleast_1d(np.asarray(parameters, np.float64))
    if k.ndim != 1 or not 1 <= k.size <= MOST_COMPONENTS or not np.all(np.isfinite(k) & (k > 0)):
        raise ValueError(
            f"parameters must be 1 to {MOST_COMPONENTS} numbers > 0, got {parameters!r}"
        )
    return k


def nystroem(values: Density, n: int) -> Function:
    """Project on the parameters of the fitted chi-squared series."""
    homogeneous = values.kernel.nonnegative
    scale = 1.0 if homogeneous else CHI2_HALF_WIDTH / half_width(values.kernel)
    u = series.landmarks(values, n, scale)[::-1] / scale
    r = values.kernel.weight(values.kernel.value(u))
    lam, U = np.linalg.eigh(one_dimensional(values.kernel, u, r, u, r))
    kept = lam > lam[-1] * u.size * np.finfo(float).eps
    return _projection(values.kernel, u, r, (U[:, kept] / np.sqrt(lam[kept]))[:, ::-1])


def eigen(values: Density, n: int) -> Function:
    """Project on the leading ``n`` directions of all bins, empty ones included."""
    values = values.everywhere
    root = np.sqrt(values.with_floor(GAPS))
    lam, U = np.linalg.eigh(root[:, None] * values.kernel_matrix() * root)
    lam, U = lam[::-1][:n], U[:, ::-1][:, :n]
    kept = lam > lam[0] * root.size * np.finfo(float).eps
    directions = root[:, None] * U[:, kept] / np.sqrt(lam[kept])
    return _projection(values.kernel, values.u, values.weight, directions)


def _projection(kernel: AdditiveKernel, u: Array, r: Array, directions: Array) -> Function:
    def features(x: Array) -> Array:
        return one_dimensional(kernel, kernel.coordinate(x), kernel.weight(x), u, r) @ directions

    return features


def harmonic(values: Density, n: int) -> Function:
    """Sample the spectrum at the step that has the least mean square error."""
    kernel, K, w = values.kernel, values.kernel_matrix(), values.mass
    spectrum = spectrum_of(kernel)

    def error(log_step: float) -> float:
        phi = _waves(kernel, spectrum, float(np.exp(log_step)), n)(values.x)
        return float(w @ np.square(K - phi @ phi.T) @ w)

    longest = np.log(2 * np.pi / half_width(kernel))
    grid = longest - np.linspace(0, 5, 40)
    best = int(np.argmin([error(step) for step in grid]))
    near = (grid[min(best + 1, grid.size - 1)], grid[max(best - 1, 0)])
    step = minimize_scalar(error, bounds=near, method="bounded").x
    return _waves(kernel, spectrum, float(np.exp(step)), n)


def _waves(kernel: AdditiveKernel, spectrum: Function, step: float, n: int) -> Function:
    """Return ``n`` waves: pairs at multiples of ``step`` around 0 or, if even, half a step."""
    frequencies = step * (np.arange(1, n // 2 + 1) - (0.5 if n % 2 == 0 else 0))
    size = np.sqrt(2 * step * np.maximum(spectrum(frequencies), 0))
    constant = np.sqrt(step * np.maximum(spectrum(np.zeros(n % 2)), 0))

    def features(x: Array) -> Array:
        angle = kernel.coordinate(x)[:, None] * frequencies
        pairs = np.stack([size * np.cos(angle), size * np.sin(angle)], axis=2)
        first = np.broadcast_to(constant, (x.size, constant.size))
        return kernel.weight(x)[:, None] * np.hstack([first, pairs.reshape(x.size, 2 * size.size)])

    return features


def spectrum_of(kernel: AdditiveKernel) -> Function:
    r"""Integrate :math:`\kappa(\omega) = \frac1\pi \int_0^\infty P(t) \cos \omega t\, dt`."""
    width = half_width(kernel)
    ends = width * 2.0 ** np.arange(1, 12)
    small = np.abs(kernel.profile(ends)) <= 1e-10 * np.abs(kernel.profile(np.zeros(1)))
    if not small.any():
        raise ValueError(
            f"the harmonic method needs a profile that falls to 0; {kernel!r}'s does not"
        )
    end = ends[np.argmax(small)]
    at, weight = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(0, end, 129)
    t = (edges[:-1, None] + (at + 1) / 2 * np.diff(edges)[:, None]).ravel()
    mass = np.tile(weight, 128) * end / 256 * kernel.profile(t) / np.pi
    return lambda frequencies: np.cos(np.multiply.outer(frequencies, t)) @ mass


def half_width(kernel: AdditiveKernel) -> float:
    """Return the smallest ``t`` found with ``P(t) <= P(0) / 2``."""
    t = np.geomspace(1e-6, 1e9, 1501)
    below = kernel.profile(t) <= kernel.profile(np.zeros(1)) / 2
    if not below.any():
        raise ValueError(f"the profile of {kernel!r} never falls to half its value at 0")
    return float(t[np.argmax(below)])


def chebyshev(values: Density, n: int) -> Function:
    """Take the Fourier basis in ``theta = gd(pi omega)``, integrated by the midpoint rule."""
    theta = (np.arange(1001) + 0.5) / 1001 * np.pi - np.pi / 2
    omega = np.arctanh(np.tan(theta / 2)) * 2 / np.pi
    order = np.array([(i + 1) // 2 * (1 if i % 2 else -1) for i in range(n)])
    basis = np.exp(-2j * np.multiply.outer(theta, order)) / theta.size

    def features(x: Array) -> Array:
        some = np.array_split(np.log(x), 1 + x.size // 1000)  # the waves of all fill the memory
        waves = [np.exp(1j * np.multiply.outer(few, omega)) @ basis for few in some]
        return np.sqrt(x)[:, None] * np.concatenate(waves).real

    return features


METHODS = {"harmonic": harmonic, "chebyshev": chebyshev, "nystroem": nystroem, "eigen": eigen}
