"""What a model file may hold: classes under fixed names, and which of their attributes.

A name is a package and a class of it, as ``hilbin.maps.AdditiveMap``; in which module of the
package the class is defined does not matter. Known are the classes that a package of hilbin lists
in ``__all__``, the private classes marked by :func:`hilbin._state.stored`, some of scikit-learn's,
and those a user gives. Nothing else leads from a name to a class: a file cannot have anything
imported.
"""

import functools
import importlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from hilbin._state import STORED, require, require_vector

PACKAGES = (
    "hilbin.auto",
    "hilbin.estimators",
    "hilbin.images",
    "hilbin.kernels",
    "hilbin.kernels.sets",
    "hilbin.maps",
)
SKLEARN = {
    "sklearn.calibration": (
        "CalibratedClassifierCV",
        "_CalibratedClassifier",
        "_SigmoidCalibration",
    ),
    "sklearn.compose": ("ColumnTransformer", "TransformedTargetRegressor"),
    "sklearn.decomposition": ("PCA", "TruncatedSVD"),
    "sklearn.feature_extraction.text": ("TfidfTransformer",),
    "sklearn.feature_selection": ("VarianceThreshold",),
    "sklearn.frozen": ("FrozenEstimator",),
    "sklearn.impute": ("SimpleImputer",),
    "sklearn.linear_model": (
        "LinearRegression",
        "LogisticRegression",
        "LogisticRegressionCV",
        "Ridge",
        "RidgeCV",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "SGDClassifier",
        "SGDRegressor",
    ),
    "sklearn.multiclass": ("OneVsRestClassifier",),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing": (
        "FunctionTransformer",
        "LabelBinarizer",
        "LabelEncoder",
        "MaxAbsScaler",
        "MinMaxScaler",
        "Normalizer",
        "OneHotEncoder",
        "OrdinalEncoder",
        "PowerTransformer",
        "QuantileTransformer",
        "RobustScaler",
        "StandardScaler",
    ),
    "sklearn.svm": ("SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR"),
}
CALLBACKS = ("_skl_callbacks", "_parent_callback_ctx")


class Registry:
    """The way from classes to names and back, with a user's ``classes`` added."""

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self.user: dict[str, type] = {}
        for cls in classes:
            if not isinstance(cls, type):
                raise TypeError(f"classes must be classes, got {cls!r}")
            reason = why_not(cls)
            if reason:
                raise TypeError(f"classes has {cls.__qualname__}, {reason}")
            if self.user.setdefault(f"user.{cls.__name__}", cls) is not cls:
                raise ValueError(f"classes has two classes of the name {cls.__name__}")

    def name_of(self, cls: type) -> str | None:
        """Return the name of a class, or None if it has none."""
        name = f"user.{cls.__name__}"
        if self.user.get(name) is cls:
            return name
        packages = (p for p in (*PACKAGES, *SKLEARN) if cls.__module__.startswith(p))
        names = (f"{package}.{cls.__name__}" for package in packages)
        return next((name for name in names if _known(name) is cls), None)

    def class_of(self, name: Any) -> type | None:
        """Return the class of a name, or None if there is none."""
        if not isinstance(name, str):
            return None
        return self.user.get(name) or _known(name)


def _known(name: str) -> type | None:
    """Return the class of hilbin or scikit-learn that has this name."""
    package, _, last = name.rpartition(".")
    if package in SKLEARN:
        public = SKLEARN[package]
    elif package in PACKAGES:
        public = importlib.import_module(package).__all__
    else:
        return None
    found = STORED.get(name)
    if last in public:
        found = getattr(importlib.import_module(package), last, None)
    return found if isinstance(found, type) and not issubclass(found, BaseException) else None


def why_not(cls: type) -> str | None:
    """Say why objects of a class cannot be rebuilt from their attributes, if they cannot."""
    if any(vars(base).get("__slots__") for base in cls.__mro__):
        return "which keeps its attributes in __slots__"
    try:
        object.__new__(cls)
    except TypeError:
        return "which is more than its attributes, or abstract"
    return None


def saved_attributes(cls: type, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that belong in a file.

    Left out are cached properties, callbacks, and a compiled loss that scikit-learn makes anew:
    after loading they are as in an object that has not cached anything yet.
    """
    return {a: v for a, v in attributes.items() if not _is_left_out(cls, a)}


def _is_left_out(cls: type, attribute: str) -> bool:
    cached = isinstance(getattr(cls, attribute, None), functools.cached_property)
    loss = attribute == "_loss_function_" and issubclass(cls, SGDClassifier | SGDRegressor)
    return cached or loss or attribute in CALLBACKS


def check_state(value: Any) -> None:
    """Raise ``ValueError`` if the attributes of a loaded object do not fit together.

    A class of hilbin checks its own by ``_check_state``, which is taken from the class: a file may
    hold an attribute of that name.
    """
    check = getattr(type(value), "_check_state", None)
    if check is not None:
        check(value)
    if isinstance(value, SVC | NuSVC | SVR | NuSVR) and hasattr(value, "support_"):
        _check_svm(value)


def _check_svm(model: Any) -> None:
    """LIBSVM trusts these arrays, and would read beyond their ends."""
    support = require_vector(model.support_, np.int32, "support_")
    counts = require_vector(model._n_support, np.int32, "_n_support")
    n, (n_fit, n_columns) = support.size, model.shape_fit_
    classifies = isinstance(model, SVC | NuSVC)
    k = counts.size if classifies else 2
    dual = model._dual_coef_
    stored = dual.data.size if sp.issparse(dual) else dual.size
    require(dual.shape == (k - 1, n) and stored == (k - 1) * n, "_dual_coef_ has the wrong shape")
    whole = counts.min(initial=0) >= 0 and counts.sum() == n
    require(not classifies or (k >= 2 and whole), "_n_support is out of range")
    pairs = k * (k - 1) // 2
    for name, sizes in (("_intercept_", (pairs,)), ("_probA", (0, pairs)), ("_probB", (0, pairs))):
        size = require_vector(getattr(model, name), np.float64, name).size
        require(size in sizes, f"{name} has {size} values for {pairs} pairs of classes")
    if not isinstance(model.kernel, str) or model.kernel == "precomputed":
        rows = getattr(model, "_BaseLibSVM__Xfit", None)
        inside = support.min(initial=0) >= 0 and support.max(initial=-1) < n_fit
        require(inside, "support_ is out of range")
        require(rows is None or rows.shape[0] == n_fit, "rows of the kernel are missing")
    else:
        shape = model.support_vectors_.shape
        require(shape == (n, n_columns), "support_vectors_ has the wrong shape")
        require(model.n_features_in_ == n_columns, "n_features_in_ is not that of the fit")
