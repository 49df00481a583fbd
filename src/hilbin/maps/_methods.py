r"""Ways to make explicit features of a one-dimensional kernel, each a function of values.

*Projection* (Nystroem) on values :math:`z`: :math:`\varphi(x) = B^T k(z, x)` with
:math:`B B^T = K_{zz}^{-1}`. *Eigen*: the same on all bins of the data with the leading eigenvectors
of :math:`W^{1/2} K W^{1/2}` alone, which has the least mean square error any :math:`N` features can
have. *Harmonic* (Vedaldi and Zisserman, 2012): the spectrum :math:`\kappa` of the profile sampled
at multiples of :math:`L`, :math:`\varphi(x) = r(x) \sqrt{2 L \kappa(jL)} \{\cos, \sin\}(j L u(x))`.
*Chebyshev*: a reconstruction of the baseline that the paper of the series compares with, the
Fourier basis in the variable in which the spectrum of chi-squared is uniform.
"""

import numpy as np
from scipy.optimize import minimize_scalar

from hilbin._arrays import Array, Function
from hilbin.kernels import AdditiveKernel
from hilbin.maps._density import Density, one_dimensional
from hilbin.maps._series import landmarks

EIGEN_FLOOR = 1e-3
CHI2_HALF_WIDTH = 2 * np.arccosh(2.0)  # where 1 / cosh(t / 2) is 1/2


def nystroem(values: Density, n: int) -> Function:
    """Projection on the parameters of the fitted chi-squared series."""
    homogeneous = values.kernel.nonnegative
    scale = 1.0 if homogeneous else CHI2_HALF_WIDTH / half_width(values.kernel)
    u = landmarks(values, n, scale)[::-1] / scale
    r = values.kernel.weight(values.kernel.value(u))
    lam, U = np.linalg.eigh(one_dimensional(values.kernel, u, r, u, r))
    kept = lam > lam[-1] * u.size * np.finfo(float).eps
    return _projection(values.kernel, u, r, (U[:, kept] / np.sqrt(lam[kept]))[:, ::-1])


def eigen(values: Density, n: int) -> Function:
    """Projection on all bins, leading ``n`` directions."""
    root = np.sqrt(values.with_floor(EIGEN_FLOOR))
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
    """Samples of the spectrum at the step that has the least mean square error."""
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
    """``n`` features: pairs at multiples of ``step`` around 0, or, if even, around half a step."""
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
    r""":math:`\kappa(\omega) = \frac1\pi \int_0^\infty P(t) \cos \omega t\, dt`, by quadrature."""
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
    """Smallest ``t`` found with ``P(t) <= P(0) / 2``."""
    t = np.geomspace(1e-6, 1e9, 1501)
    below = kernel.profile(t) <= kernel.profile(np.zeros(1)) / 2
    if not below.any():
        raise ValueError(f"the profile of {kernel!r} never falls to half its value at 0")
    return float(t[np.argmax(below)])


def chebyshev(values: Density, n: int) -> Function:
    """Fourier basis in ``theta = gd(pi omega)``, integrated by the midpoint rule."""
    theta = (np.arange(1001) + 0.5) / 1001 * np.pi - np.pi / 2
    omega = np.arctanh(np.tan(theta / 2)) * 2 / np.pi
    order = np.array([(i + 1) // 2 * (1 if i % 2 else -1) for i in range(n)])
    basis = np.exp(-2j * np.multiply.outer(theta, order)) / theta.size

    def features(x: Array) -> Array:
        blocks = np.array_split(np.log(x), 1 + x.size // 1000)  # their waves fill the memory
        waves = [np.exp(1j * np.multiply.outer(block, omega)) @ basis for block in blocks]
        return np.sqrt(x)[:, None] * np.concatenate(waves).real

    return features
