"""Classes of scikit-learn that a model file may hold, and what is checked of their objects.

They are those that hilbin puts into its own models, and linear models, scalers and decompositions:
their state is a few NumPy arrays, whose shapes follow from each other. Classes whose prediction is
compiled code that trusts the arrays (LIBSVM, trees, neighbors) are not on the list, and neither are
those whose state is hard to check; a file with one of them is refused by name.
"""

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.calibration import _CalibratedClassifier, _SigmoidCalibration
from sklearn.preprocessing import LabelBinarizer, StandardScaler

from hilbin._state import require, require_attributes

WIDTH: dict[str, str | type] = {"n_features_in_": "=d", "feature_names_in_": "labels[d]?"}
SCORES: dict[str, str | type] = {
    **WIDTH,
    "coef_": "float[d]|float[1, d]|float[k, d]",
    "intercept_": "float|float[1]|float[k]",
}
CLASSES: dict[str, str | type] = {**SCORES, "classes_": "labels[k]"}
COMPONENTS: dict[str, str | type] = {
    "components_": "float[c, d]",
    "explained_variance_": "float[c]",
    "explained_variance_ratio_": "float[c]",
    "singular_values_": "float[c]",
}
RIDGE: dict[str, str | type] = {
    **SCORES,
    "_label_binarizer": LabelBinarizer,
    "classes_": "labels[k]?",
}
CLASSIFIERS = ("LogisticRegression", "LogisticRegressionCV", "SGDClassifier")
RIDGE_CLASSIFIERS = ("RidgeClassifier", "RidgeClassifierCV")
REGRESSORS = ("LinearRegression", "Ridge", "RidgeCV", "SGDRegressor")
LINEAR = (*CLASSIFIERS, *RIDGE_CLASSIFIERS, *REGRESSORS)
# Attributes that fit leaves, as require_attributes describes them.
STATES: dict[str, dict[str, dict[str, str | type]]] = {
    "sklearn.calibration": {
        "CalibratedClassifierCV": {"calibrated_classifiers_": "list", "classes_": "labels[k]"},
        "_CalibratedClassifier": {"calibrators": "list", "classes": "labels[k]", "method": "str"},
        "_SigmoidCalibration": {"a_": "float", "b_": "float"},
    },
    "sklearn.decomposition": {
        "PCA": {**COMPONENTS, "mean_": "float[d]", "n_components_": "=c", **WIDTH},
        "TruncatedSVD": {**COMPONENTS, **WIDTH},
    },
    "sklearn.feature_extraction.text": {"TfidfTransformer": {"idf_": "float[d]?", **WIDTH}},
    "sklearn.feature_selection": {"VarianceThreshold": {"variances_": "float[d]", **WIDTH}},
    "sklearn.frozen": {"FrozenEstimator": {}},
    "sklearn.impute": {
        "SimpleImputer": {"statistics_": "float[d]", "_fit_dtype": np.dtype, **WIDTH}
    },
    "sklearn.linear_model": {
        **dict.fromkeys(CLASSIFIERS, CLASSES),
        **dict.fromkeys(RIDGE_CLASSIFIERS, RIDGE),
        **dict.fromkeys(REGRESSORS, SCORES),
    },
    "sklearn.pipeline": {"FeatureUnion": {}, "Pipeline": {}},
    "sklearn.preprocessing": {
        "FunctionTransformer": {},
        "LabelBinarizer": {"classes_": "labels[k]", "y_type_": "str", "sparse_input_": "bool"},
        "LabelEncoder": {"classes_": "labels[k]"},
        "MaxAbsScaler": {"scale_": "float[d]", "max_abs_": "float[d]", **WIDTH},
        "MinMaxScaler": {"scale_": "float[d]", "min_": "float[d]", **WIDTH},
        "Normalizer": WIDTH,
        "PowerTransformer": {"lambdas_": "float[d]", **WIDTH},
        "QuantileTransformer": {
            "quantiles_": "float[q, d]",
            "references_": "float[q]",
            "n_quantiles_": "=q",
            **WIDTH,
        },
        "RobustScaler": {"center_": "float[d]?", "scale_": "float[d]?", **WIDTH},
        "StandardScaler": {
            "mean_": "float[d]?",
            "var_": "float[d]?",
            "scale_": "float[d]?",
            **WIDTH,
        },
    },
    "sklearn.svm": {"LinearSVC": CLASSES, "LinearSVR": SCORES},
}


def listed() -> str:
    """Return the names of scikit-learn's classes that a file may hold, for a message."""
    names = (name for package in STATES.values() for name in package if name[0] != "_")
    return ", ".join(sorted(names))


def check_foreign(value: Any) -> None:
    """Raise ``ValueError`` if an object of scikit-learn does not have the state that it needs."""
    cls = type(value)
    for name in getattr(cls, "_get_param_names", list)():
        require(name in vars(value), f"{name} of {cls.__name__} is missing")
    if hasattr(cls, "_parameter_constraints"):
        value._validate_params()
    states = [names[cls.__name__] for names in STATES.values() if cls.__name__ in names]
    require_attributes(value, **states[0])
    more = MORE.get(cls.__name__)
    if more is not None:
        more(value)


def _check_steps(steps: Any, name: str) -> None:
    require(isinstance(steps, list) and len(steps) > 0, f"{name} is not a list of steps")
    for step in steps:
        pair = isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str)
        require(pair, f"{name} has a step that is not a pair of a name and an estimator")
        known = step[1] is None or step[1] in ("passthrough", "drop") or hasattr(step[1], "fit")
        require(known, f"{name} has the step {step[0]!r}, which is no estimator")


def _check_pipeline(model: Any) -> None:
    _check_steps(model.steps, "steps")
    for name, step in model.steps[:-1]:
        maps = step is None or step == "passthrough" or hasattr(step, "transform")
        require(maps, f"steps has the step {name!r}, which does not transform")


def _check_union(union: Any) -> None:
    _check_steps(union.transformer_list, "transformer_list")
    maps = any(hasattr(step, "transform") for _, step in union.transformer_list)
    require(maps, "transformer_list has no transformer")
    weights = union.transformer_weights
    plain = isinstance(weights, dict) and all(isinstance(w, int | float) for w in weights.values())
    require(weights is None or plain, "transformer_weights is not a dict of numbers")
    require(union.n_jobs is None or isinstance(union.n_jobs, Integral), "n_jobs is no number")


def _check_calibrated(model: Any) -> None:
    parts = getattr(model, "calibrated_classifiers_", [])
    require(
        all(isinstance(part, _CalibratedClassifier) for part in parts),
        "calibrated_classifiers_ has something else",
    )


def _check_calibrators(model: Any) -> None:
    fits = all(isinstance(c, _SigmoidCalibration) for c in model.calibrators)
    k = model.classes.size
    require(fits and len(model.calibrators) == (k if k > 2 else 1), "calibrators are others")
    scores = hasattr(model.estimator, "decision_function")
    require(scores or hasattr(model.estimator, "predict_proba"), "estimator is no classifier")
    known = getattr(model.estimator, "classes_", model.classes)
    require(np.isin(known, model.classes).all(), "classes_ of estimator are not among classes")


def _check_scores(model: Any) -> None:
    """Check that there is an intercept for every row of coefficients, and a row for every class."""
    if not hasattr(model, "coef_"):
        return
    rows = model.coef_.shape[0] if model.coef_.ndim == 2 else 1
    shape = np.shape(model.intercept_)
    require(shape in ((), (1,), (rows,)), "intercept_ is not one of coef_")
    names = vars(vars(model).get("_label_binarizer", model))
    several = str(names.get("y_type_", "")).startswith("multilabel")
    if "classes_" in names:
        k = names["classes_"].size
        require(vars(model).get("classes_", names["classes_"]).size == k, "classes_ are others")
        require(rows == k or (rows == 1 and (k == 2 or several)), "coef_ is not one of classes_")


def _check_function(model: Any) -> None:
    plain = model.func is None and model.inverse_func is None
    require(plain and model.kw_args is None, "func is not None: a model file holds no code")


def _check_frozen(model: Any) -> None:
    require(hasattr(vars(model).get("estimator"), "fit"), "estimator of FrozenEstimator is none")


def _check_pca(model: Any) -> None:
    solver = vars(model).get("_fit_svd_solver", model.svd_solver)
    require(isinstance(solver, str), "svd_solver is no text")


def _check_power(model: Any) -> None:
    scaler = isinstance(getattr(model, "_scaler", None), StandardScaler)
    fitted = hasattr(model, "lambdas_")
    require(not fitted or not model.standardize or scaler, "_scaler is no StandardScaler")


def _check_imputer(model: Any) -> None:
    require(getattr(model, "indicator_", None) is None, "indicator_ is not None")


MORE: dict[str, Callable[[Any], None]] = {
    "CalibratedClassifierCV": _check_calibrated,
    "FeatureUnion": _check_union,
    "FrozenEstimator": _check_frozen,
    "FunctionTransformer": _check_function,
    "PCA": _check_pca,
    "Pipeline": _check_pipeline,
    "PowerTransformer": _check_power,
    "SimpleImputer": _check_imputer,
    **dict.fromkeys((*LINEAR, "LinearSVC", "LinearSVR"), _check_scores),
    "_CalibratedClassifier": _check_calibrators,
}
