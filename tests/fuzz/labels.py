"""Targets and weights of every kind, mostly wrong ones, for everything that is fitted to some."""

import numpy as np
import scipy.sparse as sp
from fuzzing import FaultError, names_something
from saved import public_estimators
from sklearn.base import clone, is_classifier, is_regressor

ROWS = 12
WORDS = {"label", "labels", "class", "classes", "target", "targets", "sample_weight", "weight"}
WORDS |= {"weights", "Input", "array", "Complex", "sparse", "multioutput", "multiclass", "unknown"}


def prepare(folder):
    """Nothing: all is small."""


def opened(folder):
    """Everything that learns from targets."""
    models = [m for m in public_estimators() if is_classifier(m) or is_regressor(m)]
    for model in models:
        known = model.get_params(deep=False)
        few = {"max_iter": 20, "tol": 0.1, "max_time": 2.0}
        model.set_params(**{name: value for name, value in few.items() if name in known})
    return np.random.default_rng(0).gamma(0.5, size=(ROWS, 4)), models


def attempt(state, seed):
    """Fit one model to odd targets, and predict."""
    X, models = state
    rng = np.random.default_rng(seed)
    model = clone(models[int(rng.integers(len(models)))])
    y, weight = targets(rng), weights(rng)
    try:
        with np.errstate(all="ignore"):
            fitted = model.fit(X, y) if weight is None else model.fit(X, y, sample_weight=weight)
            found = fitted.predict(X)
    except (ValueError, TypeError) as error:
        if not names_something(error, WORDS):
            shown = f"y={y!r}, sample_weight={weight!r}"[:300]
            raise FaultError(f"{model!r}: {error!r} names nothing, for {shown}") from error
        return "refused"
    if len(found) != ROWS:
        raise FaultError(f"{model!r} has {len(found)} answers for {ROWS} rows")
    return "answered"


def targets(rng):
    """Targets that are fine, or of the wrong length, type or value."""
    plain = np.arange(ROWS) % int(rng.integers(1, 5))
    odd = plain.astype(float)
    odd[int(rng.integers(ROWS))] = rng.choice([np.nan, np.inf, -np.inf, 1e308, 0.5])
    mixed = np.array(["a", 1, None, 2.5, b"x", True] * (ROWS // 6), object)
    return [
        plain,
        plain.astype(rng.choice(["f4", "i1", "u8", "U3", "S3", "?", "O", "c16"])),
        odd,
        mixed,
        plain[: int(rng.integers(ROWS))],
        np.tile(plain, 2),
        plain[:, None],
        np.column_stack([plain, plain]),
        [str(v) for v in plain],
        [[v] * int(rng.integers(1, 3)) for v in plain],
        np.array([2**62, -(2**62)] * (ROWS // 2)),
        np.array(["a\0b", "a", "", " "] * (ROWS // 4)),
        sp.csr_array(plain[:, None]),
        None,
        "text",
        np.arange(ROWS).astype("M8[s]"),
    ][int(rng.integers(16))]


def weights(rng):
    """No weights in half of the cases, else some that may be wrong."""
    ones = np.ones(ROWS)
    bad = ones.copy()
    bad[int(rng.integers(ROWS))] = rng.choice([np.nan, np.inf, -1.0, 0.0, 1e308, 5e-324])
    few = [ones, bad, 0 * ones, ones[:-1], ones[:, None], ["a"] * ROWS, 3.0, ones.astype(object)]
    return None if rng.uniform() < 0.5 else few[int(rng.integers(len(few)))]
