"""Names of kernels to classifiers on rows.

The intersection kernel has a machine of its own; the other kernels become features of their own,
for ridge regression on the labels +1 and -1, which for a few thousand rows of tens of thousands of
columns is a matrix product and a Cholesky factorization. Tables have few columns, of any scale:
there one decomposition judges several penalties, and the best is taken.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from hilbin.cli._outcome import InputError
from hilbin.estimators import IntersectionSVC, MapRidgeClassifier
from hilbin.kernels import AdditiveKernel, Chi2, Exponential, Hellinger, JensenShannon, Linear
from hilbin.maps import AdditiveMap, FourierMap

INTERSECTION, LINEAR = "intersection", "linear"
KERNELS: dict[str, Any] = {
    INTERSECTION: None,
    "chi2": Chi2(),
    "js": JensenShannon(),
    "hellinger": Hellinger(),
    "exp-chi2": Exponential(Chi2(), gamma="mean"),
    LINEAR: Linear(),
}
DEFAULT_C = 1e-3
BINS = {True: 16, False: 100}  # of images (more make larger files, not better ones), of tables
COMPONENTS = 3
COMPONENTS_IN_EXPONENT = 2
FOURIER_COMPONENTS = {True: 16384, False: 2048}  # of images, of tables
PENALTY = 0.3  # of the ridge, in parts of the mean square of the rows
PARTS = np.logspace(-3, 0, 7)  # of it, to choose from; smaller ones are chosen by accident
MOST_COLUMNS = 500  # of a table whose features are decomposed


def check_kernel_name(kernel: str) -> None:
    """Complain about a name that is not known."""
    if kernel not in KERNELS:
        raise InputError(f"--kernel: {kernel!r} is not known; known are {', '.join(KERNELS)}")


def classifier(
    kernel: str,
    rows: Any,
    *,
    of_images: bool,
    strength: float = 1.0,
    seed: int = 0,
    class_weight: str | None = None,
) -> Any:
    """A classifier for rows like these, not fitted yet.

    Parameters
    ----------
    kernel : str
        A name of ``KERNELS``.
    rows : array or CSR of shape (n, d)
        The training rows, whose scale the penalty is taken from.
    of_images : bool
        Whether the rows are histograms as they are, or columns of a table to be scaled.
    strength : float, default=1
        How much more the training rows weigh against the penalty than by default.
    seed : int, default=0
        Random seed.
    class_weight : "balanced", optional
        As in scikit-learn.
    """
    if kernel == INTERSECTION:
        bins = BINS[of_images]
        C = DEFAULT_C * strength
        return IntersectionSVC(C, n_bins=bins, class_weight=class_weight, random_state=seed)
    scaler = None if of_images else _scaler(kernel, rows)
    scaled = rows if scaler is None else scaler.fit_transform(rows)
    scale = float(np.mean(KERNELS[kernel].diag(scaled))) if kernel != "exp-chi2" else 1.0
    penalty = PENALTY * (scale if scale > 0 else 1.0) / strength
    steps = [] if scaler is None else [("scale", scaler)]
    if kernel == "exp-chi2":
        steps.append(("map", _fourier_map(FOURIER_COMPONENTS[of_images], seed)))
    elif kernel != LINEAR:
        steps.append(("map", AdditiveMap(KERNELS[kernel], COMPONENTS)))
    ridge: Any = RidgeClassifier(alpha=penalty, class_weight=class_weight)
    narrow = not of_images and rows.shape[1] <= MOST_COLUMNS
    if narrow and isinstance(KERNELS[kernel], AdditiveKernel):
        ridge = MapRidgeClassifier(alpha=(PARTS * penalty).tolist(), class_weight=class_weight)
    return Pipeline([*steps, ("linear", ridge)]) if steps else ridge


def _fourier_map(n_components: int, seed: int) -> FourierMap:
    """Structured frequencies: a model of tens of thousands of columns stays small."""
    return FourierMap(
        KERNELS["exp-chi2"],
        n_components,
        kind="structured",
        feature_map=AdditiveMap(Chi2(), COMPONENTS_IN_EXPONENT),
        random_state=seed,
    )


def _scaler(kernel: str, rows: Any) -> Any:
    """How the columns of a table are scaled; non-negative ones are histograms to most kernels."""
    sparse = sp.issparse(rows)
    if kernel == LINEAR:
        return MaxAbsScaler() if sparse else StandardScaler()
    least = rows.data.min(initial=0.0) if sparse else rows.min()
    if least >= 0:
        return None
    if sparse:
        raise InputError(
            f"--kernel {kernel} takes no negative values in a sparse table; try intersection"
        )
    return MinMaxScaler(clip=True)
