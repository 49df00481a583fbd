"""One or more instances of every public kernel; the law runs on all of them.

A kernel that needs no parameters is found by itself; others are listed here.
"""

import warnings
from dataclasses import MISSING, fields

import hilbin.kernels as hk
from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Gaussian,
    Intersection,
    JensenShannon,
    Laplace,
    Linear,
    Normalized,
    NotPositiveDefiniteWarning,
    Polynomial,
    Power,
    PValue,
    SymmetricKL,
    WeightedSum,
)


def public_kernels():
    """Every class a user can make: what discovery finds, less the bases."""
    names = (getattr(hk, name) for name in hk.__all__)
    classes = {c for c in names if isinstance(c, type) and issubclass(c, hk.Kernel)}
    bases = {hk.Kernel, hk.AdditiveKernel, hk.HomogeneousKernel, hk.StationaryKernel}
    # these fix the number of columns; their own tests run the law on them
    fixed = {hk.OnColumns, hk.TransformIntegration, hk.MatchDistance, hk.TangentDistance}
    return classes - bases - fixed


def by_default():
    """The kernels that need no parameters."""
    classes = sorted(public_kernels(), key=lambda c: c.__name__)
    return [c() for c in classes if all(f.default is not MISSING for f in fields(c))]


with warnings.catch_warnings():
    warnings.simplefilter("ignore", NotPositiveDefiniteWarning)
    KERNELS = [
        *by_default(),
        Intersection(beta=0.5),
        SymmetricKL(gamma=0.5, smoothing=1e-3),
        Polynomial(degree=3, offset=0.5),
        Gaussian(gamma=0.3),
        Laplace(gamma=0.3),
        Laplace(gamma=0.3, p=2),
        GCS(radius=1.0),
        GCS(radius=2.0, dim=64),
        PValue(dof=1, gamma=0.5),
        PValue(dof=2),
        PValue(dof=5),
        Exponential(Chi2(), gamma=0.7),
        Exponential(JensenShannon()),
        Exponential(Intersection()),
        Chi2() + Linear(),
        GCS(radius=1.0) + GCS(radius=3.0),
        GCS(radius=1.0) + Chi2(),
        Chi2() * Gaussian(),
        GCS(radius=2.0) * Laplace(gamma=0.5, p=2),
        Gaussian() * GCS(radius=2.0),
        GCS(radius=2.0) * GCS(radius=3.0),
        2.5 * Chi2(),
        0.5 * GCS(radius=1.0),
        Normalized(Chi2()),
        Normalized(Intersection() + GCS(radius=1.0)),
        Normalized(3 * GCS(radius=1.0)),
        Power(Laplace(gamma=0.5), 0.25),
        Power(GCS(radius=2.0) * Laplace(gamma=0.5, p=2), 0.25),
        Power(Exponential(Chi2()), 0.5),
        WeightedSum([Chi2(), Gaussian(), Laplace()], [0.3, 0.0, 2]),
        WeightedSum([GCS(radius=1.0), GCS(radius=3.0)], [0.5, 1.5]),
        WeightedSum([GCS(radius=1.0), Chi2()], [0.5, 1.5]),
    ]
