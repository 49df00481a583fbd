"""Histograms made comparable."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilbin.images.normalize import HistogramNormalizer

VARIANTS = [
    HistogramNormalizer(),
    HistogramNormalizer("l2", power=0.5),
    HistogramNormalizer(None, tfidf=True),
    HistogramNormalizer("l2", power=2, tfidf=True, binarize=0.5),
]


@parametrize_with_checks(VARIANTS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def slow(X, norm, power, tfidf, threshold, idf):
    """Every step as the documentation has it, value by value."""
    rows = []
    for row in np.asarray(X, float):
        values = [float(v > threshold) if threshold is not None else v for v in row]
        values = [v**power if v else 0.0 for v in values]
        if tfidf:
            values = [v * w for v, w in zip(values, idf, strict=True)]
        size = {"l1": sum(values), "l2": sum(v * v for v in values) ** 0.5, None: 1}[norm]
        rows.append([v / (size or 1) for v in values])
    return np.array(rows)


@pytest.mark.parametrize("norm", ["l1", "l2", None])
@pytest.mark.parametrize("power", [1, 0.5, 2])
@pytest.mark.parametrize("tfidf", [False, True])
@pytest.mark.parametrize("threshold", [None, 0.0, 0.02])
def test_steps(norm, power, tfidf, threshold, histograms):
    made = HistogramNormalizer(norm, power=power, tfidf=tfidf, binarize=threshold)
    made.fit(histograms)
    expected = slow(histograms, norm, power, tfidf, threshold, getattr(made, "idf_", None))
    got = made.transform(histograms)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert (got[6] == 0).all()  # an empty row
    csr = made.transform(sp.csr_array(histograms))
    assert sp.issparse(csr)
    np.testing.assert_allclose(csr.toarray(), expected, rtol=1e-12)
    single = made.transform(sp.csr_matrix(histograms.astype(np.float32)))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.toarray(), expected, rtol=1e-5, atol=1e-7)


def test_agrees_with_scikit_learn(histograms):
    for norm in ("l1", "l2"):
        np.testing.assert_allclose(
            HistogramNormalizer(norm).fit_transform(histograms), normalize(histograms, norm)
        )
        counts = sp.csr_array(np.floor(histograms * 50))
        peer = TfidfTransformer(norm=norm).fit(counts)
        made = HistogramNormalizer(norm, tfidf=True).fit(counts)
        np.testing.assert_allclose(made.idf_, peer.idf_)
        np.testing.assert_allclose(
            made.transform(counts).toarray(), peer.transform(counts).toarray(), rtol=1e-12
        )


sizes = st.tuples(st.integers(1, 5), st.integers(1, 6))
values = st.one_of(st.just(0.0), st.floats(1e-300, 1e300))


@given(X=arrays(np.float64, sizes, elements=values), power=st.sampled_from([0.5, 1, 1.5]))
def test_no_size_of_values_breaks_the_norm(X, power):
    rows = HistogramNormalizer("l2", power=power).fit_transform(X)
    norms = np.sqrt((rows**2).sum(axis=1))
    np.testing.assert_allclose(norms, (X > 0).any(axis=1).astype(float), rtol=1e-12)
    np.testing.assert_allclose(
        HistogramNormalizer("l2", power=power).fit_transform(X / 8), rows, rtol=1e-9, atol=1e-300
    )


def test_the_input_is_left_alone(histograms):
    kept = histograms.copy()
    csr = sp.csr_array(histograms)
    for variant in VARIANTS:
        variant.fit_transform(histograms)
        variant.fit_transform(csr)
    np.testing.assert_array_equal(histograms, kept)
    np.testing.assert_array_equal(csr.toarray(), kept)


def test_zeros_are_not_stored():
    rows = HistogramNormalizer(binarize=2.0).fit_transform(sp.csr_array([[1.0, 3.0, 0.0]]))
    assert rows.nnz == 1


@pytest.mark.parametrize(
    ("parameters", "X", "message"),
    [
        ({"norm": "max"}, [[1.0]], "norm must be 'l1', 'l2' or None, got 'max'"),
        ({"power": 0}, [[1.0]], "power must be a number > 0"),
        ({"power": "half"}, [[1.0]], "power must be a number > 0"),
        ({"binarize": -1}, [[1.0]], "binarize must be a number >= 0"),
        ({}, [[1.0, 2.0], [1.0, -2.0]], r"X\[1, 1\] = -2.0 is negative, but HistogramNormalizer"),
        ({}, [[np.inf]], r"X\[0, 0\] = inf is not finite"),
    ],
)
def test_complaints(parameters, X, message):
    with pytest.raises(ValueError, match=message):
        HistogramNormalizer(**parameters).fit(X)
