"""Kernel machines refuse what is wrong by its place, and take what is strange but right."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits

from hilbin.estimators import SVDD, IntersectionSVC, KernelSVC, MapRidgeClassifier, MapSVC
from hilbin.kernels import Chi2, Gaussian, NotPositiveDefiniteWarning

DIGITS, LABELS = load_digits(return_X_y=True)
X = DIGITS[:300] / DIGITS[:300].sum(axis=1, keepdims=True)  # more rows than are solved to rounding
TWO = (LABELS[:300] > 4).astype(int)
FEW = LABELS[:300] % 4  # four classes
KERNEL = Gaussian(20.0)
SCHEMES = ["ovr", "ovo", "dag", "ecoc", "crammer_singer"]


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"kernel": "rbf"}, "kernel must be a kernel of hilbin.kernels"),
        ({"kernel": Chi2}, r"the class Chi2: make one, Chi2\(\)"),
        ({"C": 0}, "C must be a number > 0"),
        ({"C": np.nan}, "C must be a number > 0"),
        ({"intercept_scaling": "none"}, "intercept_scaling, if not a number,"),
        ({"intercept_scaling": -1.0}, "intercept_scaling must be a number > 0"),
        ({"multi_class": "all"}, "multi_class must be one of"),
        ({"tol": 0}, "tol must be"),
        ({"max_iter": 0}, "max_iter, if not None, must be"),
        ({"max_time": -1}, "max_time, if not None, must be"),
        ({"memory": 0}, "memory must be"),
        ({"class_weight": {7: 1.0}}, "class_weight names 7"),
        ({"kernel": lambda A, B: A @ B.T[:, 1:]}, "kernel returned a matrix of shape"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, "kernel returned.* finite"),
        ({"kernel": lambda A, B: A[:, 20:21] - B[:, 20] + 1}, "kernel returned is not symmetric"),
    ],
)
def test_bad_parameters(parameters, match):
    with pytest.raises(ValueError, match=match):
        KernelSVC(**parameters).fit(X, FEW)


def test_bad_rows():
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"X\[3, 1\] = nan is not finite"):
        KernelSVC().fit(bad, FEW)
    with pytest.raises(ValueError, match="needs values >= 0"):
        KernelSVC(Chi2()).fit(-X, FEW)
    for model in (KernelSVC(), IntersectionSVC(), MapSVC(), MapRidgeClassifier()):
        with pytest.raises(ValueError, match=r"two classes, but y has 1 class: \[0.0\]"):
            model.fit(X, np.zeros(300))
    with pytest.raises(
        ValueError, match="among the rows whose sample_weight is not 0 y has 1 class"
    ):
        KernelSVC().fit(X, TWO, sample_weight=TWO)
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        KernelSVC().fit(X, TWO, sample_weight=0 * TWO)
    with pytest.raises(ValueError, match=r"sample_weight\[0\] = -1"):
        KernelSVC().fit(X, TWO, sample_weight=-np.ones(300))


@pytest.mark.parametrize("change", [np.asarray, sp.csr_array])
def test_bad_matrices(change):
    K = KERNEL.gram(X[:50])
    model = KernelSVC("precomputed").fit(change(K), TWO[:50])

    def refuses(i, j, value, match):
        bad = K.copy()
        bad[i, j] = value
        with pytest.raises(ValueError, match=match):
            clone(model).fit(change(bad), TWO[:50])

    refuses(3, 7, 0.5, r"not symmetric: X\[3, 7\] = 0.5.*but X\[7, 3\]|X\[7, 3\].*but X\[3, 7\]")
    refuses(4, 4, -1.0, r"X\[4, 4\] = -1.0 is negative")
    refuses(range(50), range(50), 0.0, r"X\[0, 0\] is 0, or not stored.*neighbors")
    refuses(2, 5, np.nan, r"X\[2, 5\] = nan")
    with pytest.raises(ValueError, match=r"square.*\(50, 40\)"):
        clone(model).fit(change(K[:, :40]), TWO[:50])
    with pytest.raises(ValueError, match="X has 40 features, but KernelSVC is expecting 50"):
        model.predict(change(K[:, :40]))
    indefinite = K.copy()
    indefinite[2, 5] = indefinite[5, 2] = 3.0
    with pytest.warns(NotPositiveDefiniteWarning, match=r"X\[2, 5\] = 3.0.*repair_psd"):
        clone(model).fit(change(indefinite), TWO[:50])


@pytest.fixture(scope="module")
def large():
    """A Gram matrix of more rows than are looked at one by one, and signs."""
    Z = np.random.default_rng(0).normal(size=(2100, 2))
    return Gaussian(1.0).gram(Z), np.where(np.hypot(*Z.T) > 1, 1, -1)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_large_matrices_are_looked_at_in_places(large, make):
    K, y = large
    model = KernelSVC("precomputed").fit(make(K), y)
    lopsided = K * np.linspace(1, 1.5, len(K))
    with pytest.raises(ValueError, match=r"X is not symmetric: X\[\d+, \d+\]"):
        KernelSVC("precomputed").fit(make(lopsided), y)
    wrong = K.copy()
    i = model.support_[0]
    wrong[i, 7] = wrong[7, i] = np.nan
    with pytest.raises(ValueError, match=r"X\[\d+, \d+\] = nan is not finite|not symmetric"):
        KernelSVC("precomputed").fit(make(wrong), y)


@pytest.mark.parametrize("multi_class", SCHEMES)
def test_all_rows_alike(multi_class):
    rows, y = np.full((30, 2), 0.5), np.arange(30) % 3 * (np.arange(30) > 3)
    common = np.bincount(y).argmax()
    model = KernelSVC(multi_class=multi_class, class_weight={common: 3.0}).fit(rows, y)
    assert (model.predict(rows) == common).all()


def test_an_indefinite_kernel_still_ends():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(60, 60))
    K = K + K.T + 12 * np.eye(60)
    assert np.linalg.eigvalsh(K)[0] < -1
    model = KernelSVC("precomputed").fit(K, TWO[:60])
    assert model.converged_
    assert model.score(K, TWO[:60]) > 0.7


def test_weights_and_diagonals_are_routed():
    with config_context(enable_metadata_routing=True):
        model = KernelSVC().set_fit_request(sample_weight=True)
        assert model.get_metadata_routing().fit.requests == {"sample_weight": True}
        ball = SVDD("precomputed").set_predict_request(diagonal=True)
        assert ball.get_metadata_routing().predict.requests == {"diagonal": True}


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"bin {j}" for j in range(64)])
    model = KernelSVC(KERNEL).fit(frame, TWO)
    assert model.feature_names_in_[3] == "bin 3"
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.iloc[:, ::-1])


@pytest.mark.parametrize("noise", [0.0, 1.0], ids=["few support vectors", "many"])
def test_two_classes_compute_the_rows_they_need(noise):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(2100, 2))
    y = np.where(np.hypot(*Z.T) + noise * rng.normal(size=2100) > 1, 1, -1)
    kernel = Gaussian(1.0)
    by_rows, whole = KernelSVC(kernel).fit(Z, y), KernelSVC("precomputed").fit(kernel.gram(Z), y)
    assert by_rows.objective_ == pytest.approx(whole.objective_, rel=1e-3)
    scores = by_rows.decision_function(Z), whole.decision_function(kernel.gram(Z))
    np.testing.assert_allclose(*scores, atol=5e-3)
    detector, given = SVDD(kernel, nu=0.1).fit(Z), SVDD("precomputed", nu=0.1).fit(kernel.gram(Z))
    assert detector.radius_ == pytest.approx(given.radius_, rel=1e-2)
