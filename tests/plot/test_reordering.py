import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib import pyplot

from hilbin.kernels import GCS, reorder
from hilbin.plot import reordering


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture
def gram():
    return GCS(0.3).gram(np.random.default_rng(0).uniform(0, 9, size=(60, 1)))


@pytest.mark.parametrize("form", [sp.csr_array, lambda K: K.toarray()])
def test_before_and_after(gram, form):
    axes = reordering(form(gram))
    before, after = (ax.images[0].get_array() for ax in axes)
    pattern = gram.toarray() != 0
    order = reorder(gram).order
    np.testing.assert_array_equal(before, pattern)
    np.testing.assert_array_equal(after, pattern[np.ix_(order, order)])
    assert f"band of {reorder(gram).bandwidth}:" in axes[1].get_title()
    assert axes[0].get_title() == f"as given\n{100 * (1 - pattern.mean()):.0f} % zeros"


def test_the_lines_enclose_the_band(gram):
    axes = reordering(gram)
    band = reorder(gram).bandwidth
    assert not axes[0].lines
    ends = [line.get_xydata().tolist() for line in axes[1].lines]
    assert ends == [[[band, 0], [60, 60 - band]], [[0, band], [60 - band, 60]]]


def test_a_big_matrix_is_averaged(gram, monkeypatch):
    monkeypatch.setattr("hilbin.plot.matrix.MAX_PIXELS", 6)
    pixels = reordering(gram)[0].images[0].get_array()
    pattern = (gram.toarray() != 0).reshape(6, 10, 6, 10)
    np.testing.assert_allclose(pixels, pattern.mean(axis=(1, 3)))


def test_given_axes(gram):
    _, given = pyplot.subplots(1, 2)
    assert reordering(gram, axes=given)[1] is given[1]
    with pytest.raises(ValueError, match="axes must be two, got 1"):
        reordering(gram, axes=given[0])
    with pytest.raises(ValueError, match="square"):
        reordering(np.ones((2, 3)))
