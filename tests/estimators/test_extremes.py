"""Numbers far from 1: every fit ends with finite numbers, or an error or warning that says why."""

import warnings
from inspect import signature

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hilbin.estimators import (
    SVDD,
    HistogramBinner,
    IntersectionSVC,
    IntersectionSVR,
    KernelOneClass,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    MapRidge,
    MapRidgeClassifier,
    MapSVC,
    MapSVR,
    StreamPCA,
)
from hilbin.estimators.kernel.machine import STEPS
from hilbin.kernels import Chi2, Hellinger, Intersection, JensenShannon, Linear
from hilbin.maps import AdditiveMap, SparseMap
from hilbin.solvers import Problem, gram_rows, icd, smo

VALUES = [0.0, 1e-308, 1e-200, 1e-160, 1e-30, 1.0, 2.0, 1e30, 1e160, 1e200, 1e308]
SINGLE = [0.0, 1e-45, 1e-38, 1e-20, 1.0, 2.0, 1e20, 3e38]
WEIGHTS = [1e-308, 1e-160, 1e-5, 1.0, 1e5, 1e160, 1e308]
SIZES = [1e-300, 1e-100, 1e-5, 1.0, 1e5, 1e100, 1e300]
FEW = {"max_iter": 20_000}
CLASSIFIERS = [
    *(KernelSVC(k, **FEW) for k in (Linear(), Hellinger())),
    KernelSVC(Linear(), multi_class="crammer_singer", max_iter=500),
    KernelSVC(Intersection(), penalize_intercept=True, max_iter=500),
    IntersectionSVC(),
    IntersectionSVC("auto", n_bins=None, multi_class="crammer_singer"),
    IntersectionSVC(1.0, loss="hinge", strategy="quantile", solver="gram"),
    MapSVC(),
    MapSVC(loss="squared_hinge"),
    MapRidgeClassifier(alpha=1.0),
    MapRidgeClassifier(SparseMap(Intersection(), orthonormal=True), alpha="auto"),
]
REGRESSIONS = [
    KernelSVR(Linear(), **FEW),
    KernelRidge(Linear()),
    KernelRidge(Intersection(), alpha="auto"),
    IntersectionSVR(),
    IntersectionSVR(1.0, n_bins=None, scope="all"),
    KernelRidge(Linear(), alpha=[1.0, 10.0]),
    MapRidge(alpha=1.0),
    MapRidge(AdditiveMap(Chi2()), alpha="auto"),
    MapSVR(),
]
OTHERS = [
    KernelOneClass(Linear(), **FEW),
    SVDD(Intersection(), **FEW),
    HistogramBinner(),
    HistogramBinner(10, strategy="quantile"),
    HistogramBinner(None, scope="all"),
    StreamPCA(1),
]
MAPS = [
    AdditiveMap(Chi2()),
    AdditiveMap(Intersection()),
    SparseMap(Chi2(), spacing="log"),
    SparseMap(Intersection(), spacing="quantile"),
    SparseMap(JensenShannon(), spacing="uniform", orthonormal=True),
]
# what an error is about
SAID = ("too ", "not finite", "finite number", "not a number", "outside the range of float")


def rows_of(draw, n):
    """Draw rows of few values, exact or spread, dense or sparse, single or double."""
    single = draw(st.booleans())
    few = draw(st.lists(st.sampled_from(SINGLE if single else VALUES), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    X = rng.choice(few, (n, draw(st.integers(1, 4))))
    if draw(st.booleans()):
        X = X * rng.random(X.shape)
    X = X.astype(np.float32 if single else np.float64)
    return sp.csr_array(X) if draw(st.booleans()) else X, rng


def assert_finite(model, X):
    for name in ("decision_function", "predict", "transform"):
        if hasattr(model, name):
            found = getattr(model, name)(X)
            values = found.data if sp.issparse(found) else np.asarray(found)
            assert values.dtype.kind != "f" or np.isfinite(values).all(), name
    names = ("intercept_", "objective_", "coef_", "scale_", "explained_variance_", "alpha_")
    for name in (*names, "loo_errors_", "loo_predictions_"):
        if isinstance(getattr(model, name, None), (float, np.ndarray)):
            assert np.isfinite(getattr(model, name)).all(), name


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_fits_end_with_finite_numbers_or_say_why_not(data):
    model = clone(data.draw(st.sampled_from(CLASSIFIERS + REGRESSIONS + OTHERS + MAPS)))
    n = data.draw(st.sampled_from([2, 5, 20]))
    X, rng = rows_of(data.draw, n)
    if hasattr(model, "C") and not isinstance(model.C, str):
        model.set_params(C=data.draw(st.sampled_from(SIZES)))
    y = rng.integers(0, 3, n)
    y[:2] = 0, 1
    if any(type(model) is type(other) for other in REGRESSIONS):
        y = rng.choice(data.draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3)), n)
    weights = None
    if data.draw(st.booleans()):
        some = data.draw(st.lists(st.sampled_from(WEIGHTS), min_size=1, max_size=2))
        weights = rng.choice(some, n)
    given = (X,) if any(type(model) is type(other) for other in OTHERS + MAPS) else (X, y)
    options = (
        {"sample_weight": weights} if "sample_weight" in signature(model.fit).parameters else {}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "n_components=|alpha_=.* is not chosen|the Gram matrix")
        try:
            model.fit(*given, **options)
        except ValueError as error:
            assert any(word in str(error) for word in SAID), error  # noqa: PT017
            return
        try:
            assert_finite(model, X)
        except ValueError as error:
            assert "of X is not finite" in str(error)  # noqa: PT017


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), power=st.integers(-330, 330))
def test_solvers_know_no_unit(seed, power):
    """A kernel times a number, with bounds over it, has the same scores."""
    rng = np.random.default_rng(seed)
    size = 2.0**power
    Z = rng.normal(size=(12, 3))
    K, y = Z @ Z.T, np.where(rng.random(12) < 0.5, -1.0, 1.0)
    y[:2] = -1, 1
    low, high = np.minimum(0, 10 * y), np.maximum(0, 10 * y)
    for solver, of in ((smo, {"total": 0.0}), (icd, {"constant": 1.0})):
        one = solver(gram_rows(K), Problem(y, low, high, **of), tol=1e-9, max_iter=100_000)
        if "constant" in of:
            of = {"constant": size}
        problem = Problem(y, low / size, high / size, **of)
        other = solver(gram_rows(K * size), problem, tol=1e-9, max_iter=100_000)
        assert one.converged
        assert other.converged
        scores = [k @ r.coef + r.intercept for k, r in ((K, one), (K * size, other))]
        np.testing.assert_allclose(*scores, atol=1e-6)


def test_a_descent_ends_when_its_steps_change_nothing():
    """Equal rows of both classes have no separating plane: coefficients would grow for ever."""
    X, y = np.repeat(np.eye(3), 4, axis=0), np.arange(12) % 2
    model = KernelSVC(Linear(), C=1e200)
    with pytest.warns(ConvergenceWarning, match="steps no longer change anything but rounding"):
        model.fit(X, y)
    assert model.n_iter_ < STEPS[0] / 100
    assert np.isfinite(model.decision_function(X)).all()


def test_tiny_values_and_huge_weights_make_a_common_problem():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.integers(0, 2, 20)
    plain = KernelSVC(Linear(), C=1.0).fit(X, y)
    odd = KernelSVC(Linear(), C=1.0).fit(X * 2.0**-400, y, np.full(20, 2.0**800))
    assert odd.converged_
    scores = odd.decision_function(X * 2.0**-400)
    np.testing.assert_allclose(scores, plain.decision_function(X), atol=1e-6)


@pytest.mark.parametrize(
    ("fit", "match"),
    [
        (lambda X, y: KernelSVC().fit(X, y, np.full(20, 1e308)), "sample_weight is up to 1e.308"),
        (lambda X, y: KernelSVC(C=1e300).fit(X, y), "C times sample_weight is 1e.300"),
        (lambda X, y: KernelSVR(C=1e-300).fit(X, y), "C times sample_weight over .* too small"),
        (lambda X, y: KernelSVC(Intersection()).fit(X * 1e300, y), r"k\(x, x\) is .* too large"),
        (lambda X, y: KernelRidge().fit(X, 1e307 * (y + 1)), r"y\[\d+\] is of size"),
        (lambda X, y: MapSVC().fit(X * 1e200, y), "the square of a gradient"),
        (lambda X, y: MapSVR().fit(X, 1e308 * y, 3.0 + y), "features, targets or weights"),
        (lambda X, y: StreamPCA(1).fit(X * 1e200), "too large|finite number"),
    ],
)
def test_errors_name_what_is_too_large(fit, match):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=match):
        fit(rng.random((20, 3)), rng.integers(0, 2, 20))


@pytest.mark.parametrize(
    "model", [KernelSVC(Linear()), KernelRidge(Linear()), MapRidge(), MapSVC()], ids=repr
)
def test_rows_too_large_to_score_are_named(model):
    X, y = np.random.default_rng(0).random((20, 2)), np.arange(20) % 2
    rows = np.array([[0.0, 1.0], [2.0, 1.0], [1e308, 1e308]])
    model = clone(model).fit(100 * X, y)
    score = getattr(model, "decision_function", model.predict)
    assert np.isfinite(score(rows[:1])).all()
    coef = np.array([3.0, 3.0])
    if hasattr(model, "coef_"):
        model.coef_ = coef if model.coef_.ndim == 1 else coef[None]
    with pytest.raises(ValueError, match=r"the score of row 2 of X is not finite"):
        score(rows)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.sampled_from([1e-150, 1e100, 1e240]))
def test_the_size_of_weights_does_not_matter_to_a_binner(seed, scale):
    rng = np.random.default_rng(seed)
    X, weights = rng.lognormal(size=(40, 2)), rng.choice([1e-100, 1.0], 40)
    weights[0] = 1.0
    for strategy in ("uniform", "quantile"):
        binner = HistogramBinner(10, strategy=strategy)
        one, other = (clone(binner).fit(X, sample_weight=w) for w in (weights, scale * weights))
        np.testing.assert_allclose([one.low_, one.high_], [other.low_, other.high_])


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n=st.sampled_from([12, 40, 100, 400]),
    C=st.sampled_from([1e-3, 1e-2]),
    tol=st.sampled_from([1e-12, 1e-14]),
    loss=st.sampled_from(["hinge", "squared_hinge"]),
)
def test_a_tolerance_below_rounding_is_reached(seed, n, C, tol, loss):
    """Look-up tables drift: what no sweep improves any more has converged."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((n, 3)), rng.integers(0, 2, n)
    y[:2] = 0, 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = IntersectionSVC(C, tol=tol, loss=loss, max_iter=3000).fit(X, y)
    optimal = model.gap_[0] <= 1e-12 * model.objective_[0]
    assert optimal or loss == "hinge"
    assert model.converged_ or not optimal


@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
def test_a_choice_without_freedom_is_told(penalty):
    """Weights count rows: those that sum to 1 are one row, which a fit follows freely."""
    rng = np.random.default_rng(0)
    X, y = rng.random((30, 3)), rng.random(30)
    model = MapRidge(alpha=[0.1, 1.0], penalty=penalty)
    with pytest.warns(UserWarning, match="weights sum to 1 rows. Scale sample_weight"):
        model.fit(X, y, sample_weight=np.full(30, 1 / 30))
    assert np.isinf(model.errors_).all()


def test_a_row_that_has_all_the_weight_cannot_be_left_out():
    X, y, weights = np.full((5, 4), 1e160), np.arange(5.0), [1.0, *[1e-308] * 4]
    with pytest.raises(ValueError, match=r"leaving out row 0 leaves none: .* too small"):
        KernelRidge(Intersection(), alpha="auto").fit(X, y, weights)


@pytest.mark.filterwarnings("ignore:n_components=")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_denormal_values_have_finite_features(dtype):
    least = np.finfo(dtype).smallest_subnormal
    X = np.array([[least, 1.0], [0.0, 3 * least], [np.finfo(dtype).tiny, 2.0]], dtype)
    for model in MAPS:
        features = clone(model).fit(X).transform(X)
        assert np.isfinite(features.data if sp.issparse(features) else features).all()
