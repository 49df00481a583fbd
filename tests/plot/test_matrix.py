import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib import pyplot

from hilbin.kernels import Chi2, kernel_alignment
from hilbin.plot import kernel_matrix


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


def test_sorted_by_class(histograms):
    y = np.array(["b", "a"])[np.arange(70) % 2]
    K = Chi2().gram(histograms)
    ax = kernel_matrix(K, y, title="chi2")
    order = np.argsort(y, kind="stable")
    np.testing.assert_array_equal(ax.images[0].get_array(), K[np.ix_(order, order)])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b"]
    assert ax.get_title() == f"chi2, alignment {kernel_alignment(K, y):.2f}"
    assert len(ax.lines) == 2


def test_given_axes_and_sparse():
    _, ax = pyplot.subplots()
    assert kernel_matrix(sp.csr_array(np.eye(6)), [0, 0, 1, 1, 2, 2], ax=ax) is ax
    np.testing.assert_array_equal(ax.images[0].get_array(), np.eye(6))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_big_matrices_are_averaged(form, monkeypatch):
    monkeypatch.setattr("hilbin.plot.matrix.MAX_PIXELS", 4)
    K = np.kron(np.arange(16.0).reshape(4, 4), np.ones((3, 3)))
    K = K + K.T
    pixels = kernel_matrix(form(K), np.repeat([0, 1], 6)).images[0].get_array()
    np.testing.assert_allclose(pixels, K[::3, ::3])


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="square"):
        kernel_matrix(np.ones((2, 3)), [0, 1])
    with pytest.raises(ValueError, match="inconsistent"):
        kernel_matrix(np.eye(3), [0, 1])
