"""
Your own kernel
===============

A homogeneous additive kernel is one even function, its profile. This one is

.. math:: K(x, y) = \\sum_d x_d y_d \\frac{\\ln x_d - \\ln y_d}{x_d - y_d},

the product of two values over their logarithmic mean. With :math:`t = |\\ln x_d - \\ln y_d|` a term
is :math:`\\sqrt{x_d y_d}\\,P(t)` with :math:`P(t) = (t/2) / \\sinh(t/2)`. The Fourier transform of
:math:`P` is positive, so the kernel is positive definite.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from hilbin.kernels import (
    Chi2,
    Exponential,
    Hellinger,
    HomogeneousKernel,
    Intersection,
    JensenShannon,
    check_kernel,
)


# %%
# The profile is written so that nothing overflows and 0/0 does not occur.
@dataclass(frozen=True, repr=False)
class Logarithmic(HomogeneousKernel):
    """x y / (logarithmic mean of x and y), summed over bins."""

    def profile(self, t):
        t = np.maximum(t, 1e-8)
        return t * np.exp(-t / 2) / -np.expm1(-t)


# %%
# ``check_kernel`` tests the laws of kernels, and raises an error that names the first broken one.
check_kernel(Logarithmic())

# %%
# Its profile lies between those of Hellinger's kernel and the chi-squared kernel: two bins count as
# similar over a wider range of ratios than for chi-squared.
ratio = np.geomspace(1, 100, 200)
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for kernel in (Hellinger(), Logarithmic(), JensenShannon(), Chi2(), Intersection()):
    own = isinstance(kernel, Logarithmic)
    ax.plot(
        ratio,
        kernel.profile(np.log(ratio)),
        label=type(kernel).__name__,
        color="black" if own else None,
        linewidth=2.5 if own else 1.5,
    )
ax.set(xscale="log", xlabel="ratio of the two values", ylabel="profile", ylim=(0, 1.05))
ax.legend()
plt.show()

# %%
# A support vector machine takes it like any other kernel, alone or inside another one.
X, y = load_digits(return_X_y=True)
X = normalize(X, norm="l1")
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

for kernel in (Logarithmic(), Exponential(Logarithmic(), gamma="median").resolve(X_train)):
    score = SVC(kernel=kernel, C=10).fit(X_train, y_train).score(X_test, y_test)
    print(f"{kernel!r}: accuracy {score:.1%}")
