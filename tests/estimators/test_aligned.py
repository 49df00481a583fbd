"""Weights of kernels by alignment: AlignedKernel."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

import hilbin
from hilbin.estimators import AlignedKernel, KernelSVC
from hilbin.kernels import (
    Chi2,
    Exponential,
    Gaussian,
    Linear,
    OnColumns,
    WeightedSum,
    align_weights,
    kernel_alignment,
)

X, Y = load_iris(return_X_y=True)
EACH = [OnColumns(Gaussian("median"), [j]) for j in range(4)]


def test_iris():
    found = AlignedKernel(EACH, scale="diagonal").fit(X, Y)
    np.testing.assert_allclose(found.weights_, [0, 0, 0.276897, 0.723103], atol=1e-6)
    np.testing.assert_allclose(found.alignments_, [0.4376, 0.2235, 0.8064, 0.8357], atol=5e-5)
    assert found.average_alignment_ == pytest.approx(0.753844, abs=1e-6)
    assert found.alignment_ == pytest.approx(0.841087, abs=1e-6)
    assert found.kernel_.kernels == tuple(kernel.resolve(X) for kernel in EACH)
    K = found.kernel_.gram(X)
    assert kernel_alignment(K, Y) == pytest.approx(found.alignment_)


@pytest.mark.parametrize("method", ["alignf", "independent"])
@pytest.mark.parametrize("scale", ["variance", "diagonal", "norm", None])
@pytest.mark.parametrize("y", [Y, X[:, 0] + 0.01], ids=["labels", "targets"])
def test_it_is_what_its_parts_say(method, scale, y):
    found = AlignedKernel(EACH, method=method, scale=scale).fit(X, y)
    grams = [s * k.gram(X) for s, k in zip(found.scales_, found.kernel_.kernels, strict=True)]
    weights = align_weights(grams, y, method=method)
    np.testing.assert_allclose(found.weights_, weights, atol=1e-10)
    np.testing.assert_allclose(found.kernel_.weights, weights * found.scales_, atol=1e-10)
    assert found.average_alignment_ == pytest.approx(kernel_alignment(sum(grams), y))
    if method == "alignf":
        assert found.alignment_ >= max(*found.alignments_, found.average_alignment_) - 1e-9


@given(factors=st.lists(st.floats(1e-4, 1e4), min_size=4, max_size=4))
@settings(max_examples=20)
def test_scaling_a_kernel_changes_nothing(factors):
    one = AlignedKernel(EACH).fit(X, Y)
    other = AlignedKernel([f * k for f, k in zip(factors, EACH, strict=True)]).fit(X, Y)
    np.testing.assert_allclose(other.weights_, one.weights_, atol=1e-7)
    np.testing.assert_allclose(other.kernel_.gram(X), one.kernel_.gram(X), rtol=1e-6)


def test_equal_kernels_share_and_runs_are_equal():
    found = AlignedKernel([EACH[3], EACH[2], EACH[3]]).fit(X, Y)
    assert found.weights_[0] == pytest.approx(found.weights_[2], abs=1e-6)
    again = AlignedKernel([EACH[3], EACH[2], EACH[3]]).fit(X, Y)
    assert np.array_equal(found.weights_, again.weights_)
    assert found.kernel_ == again.kernel_


def test_names_sparse_rows_and_float32():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    named = AlignedKernel([OnColumns(Gaussian("median"), [c]) for c in "abcd"]).fit(frame, Y)
    plain = AlignedKernel(EACH).fit(X, Y)
    assert named.kernel_ == plain.kernel_
    sparse = AlignedKernel(EACH).fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(sparse.weights_, plain.weights_, atol=1e-7)
    single = AlignedKernel(EACH).fit(X.astype(np.float32), Y)
    np.testing.assert_allclose(single.weights_, plain.weights_, atol=1e-4)


def test_a_sample_is_enough():
    found = AlignedKernel(EACH, max_samples=90, random_state=1).fit(X, Y)
    whole = AlignedKernel(EACH).fit(X, Y)
    np.testing.assert_allclose(found.weights_, whole.weights_, atol=0.15)
    assert found.kernel_.kernels == whole.kernel_.kernels
    targets = AlignedKernel(EACH, max_samples=90).fit(X, X[:, 0] + 0.01)
    assert targets.weights_[0] > 0.5


def test_it_serves_other_estimators_and_files(tmp_path):
    found = AlignedKernel(EACH).fit(X, Y)
    model = KernelSVC(found.kernel_).fit(X, Y)
    hilbin.save(model, tmp_path / "model")
    assert np.array_equal(hilbin.load(tmp_path / "model").predict(X), model.predict(X))
    hilbin.save(found, tmp_path / "kernel")
    loaded = hilbin.load(tmp_path / "kernel")
    assert loaded.kernel_ == found.kernel_
    loaded.kernel_ = WeightedSum((Linear(),), (1.0,))
    hilbin.save(loaded, tmp_path / "forged")
    with pytest.raises(ValueError, match="kernel_ has other kernels"):
        hilbin.load(tmp_path / "forged")


@pytest.mark.parametrize(
    ("given_", "complaint"),
    [
        ({"kernels": []}, "kernels must be a list of one or more kernels"),
        ({"kernels": Gaussian()}, "kernels must be a list of one or more kernels"),
        ({"kernels": [Gaussian, Linear()]}, "kernels must be a list of one or more kernels"),
        ({"kernels": 5}, "kernels must be a list of one or more kernels"),
        ({"method": "best"}, "method must be one of"),
        ({"scale": "trace"}, "scale, if not None, must be one of"),
        ({"task": "ranking"}, "task must be one of"),
        ({"max_samples": 1}, "max_samples must be a whole number >= 2"),
        ({"kernels": [OnColumns(Linear(), [4])]}, "has column 4, but X has 4 columns"),
        ({"kernels": [Linear(), Gaussian(1e-300)]}, r"kernels\[1\] cannot be brought to size"),
    ],
)
def test_bad_parameters(given_, complaint):
    with pytest.raises(ValueError, match=complaint):
        AlignedKernel(**given_).fit(X, Y)


def test_bad_targets():
    with pytest.raises(ValueError, match="y has one class only"):
        AlignedKernel().fit(X, np.zeros(150, int))
    rows = X - X.mean(axis=0)
    with pytest.raises(ValueError, match="is negative, but Exponential needs values >= 0"):
        AlignedKernel([Linear(), Exponential(Chi2())]).fit(rows, Y)
