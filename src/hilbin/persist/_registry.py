"""Which classes may be in a file, each under a fixed name.

A name is the public room of a class and its name there: every class that a room of hilbin lists in
``__all__``, the classes that fitted models hold inside, a list of scikit-learn's, and the classes a
user gives. Only these tables lead from a name to a class; a file cannot have anything imported.
"""

import importlib
from collections.abc import Iterable
from typing import Any

ROOMS = (
    "hilbin.estimators",
    "hilbin.images",
    "hilbin.kernels",
    "hilbin.kernels.sets",
    "hilbin.maps",
)
INTERNAL = {
    "hilbin.estimators.ShapeTables": "hilbin.estimators._shapes",
    "hilbin.maps.Cells": "hilbin.maps._cells",
    "hilbin.maps.Cubics": "hilbin.maps._cells",
    "hilbin.maps.OrthonormalNodes": "hilbin.maps.sparse",
    "hilbin.maps.RankOne": "hilbin.maps._expand",
    "hilbin.maps.SeriesTerms": "hilbin.maps._expand",
    "hilbin.maps.TwoNodes": "hilbin.maps._nodes",
    "hilbin.maps._Spans": "hilbin.maps.projection",
}
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
        """The name of a class, or None if it has none."""
        name = f"user.{cls.__name__}"
        if self.user.get(name) is cls:
            return name
        rooms = (room for room in (*ROOMS, *SKLEARN) if cls.__module__.startswith(room))
        names = (f"{room}.{cls.__name__}" for room in rooms)
        return next((name for name in names if _known(name) is cls), None)

    def class_of(self, name: Any) -> type | None:
        """The class of a name, or None if there is none."""
        if not isinstance(name, str):
            return None
        return self.user.get(name) or _known(name)


def why_not(cls: type) -> str | None:
    """Why objects of a class cannot be rebuilt from their attributes, if they cannot."""
    if any(vars(base).get("__slots__") for base in cls.__mro__):
        return "which keeps its attributes in __slots__"
    try:
        object.__new__(cls)
    except TypeError:
        return "which is more than its attributes, or abstract"
    return None


def _known(name: str) -> type | None:
    """The class of a name in the tables above."""
    room, _, last = name.rpartition(".")
    if room in SKLEARN:
        module = room if last in SKLEARN[room] else None
    elif room in ROOMS:
        public = last in importlib.import_module(room).__all__
        module = room if public else INTERNAL.get(name)
    else:
        return None
    found = getattr(importlib.import_module(module), last, None) if module else None
    return found if isinstance(found, type) and not issubclass(found, BaseException) else None
