"""Pictures of the weights of kernels."""

from types import SimpleNamespace

import numpy as np
import pytest

from hilbin.plot import kernel_weights

MODEL = SimpleNamespace(weights_=np.array([0.2, 0.0, 0.8]), kernel_names_=["a", "b", "c" * 60])


def test_bars_are_the_weights():
    (ax,) = kernel_weights(MODEL)
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.2, 0.0, 0.8])
    assert [text.get_text() for text in ax.get_yticklabels()][:2] == ["a", "b"]
    assert ax.yaxis_inverted()


def test_points_are_the_accuracies():
    left, right = kernel_weights(MODEL, accuracies=[0.5, 0.6, 0.7], combined={"average": 0.8})
    assert np.asarray(right.collections[0].get_offsets())[:, 0] == pytest.approx([50, 60, 70])
    assert right.lines[0].get_xdata()[0] == pytest.approx(80)
    assert "average, 80.0 %" in [text.get_text() for text in right.get_legend().get_texts()]
    again = kernel_weights(MODEL, accuracies=[0.5, 0.6, 0.7], axes=np.array([left, right]))
    assert again[0] is left


def test_classes_are_points_beside_their_mean():
    model = SimpleNamespace(
        weights_=np.array([[0.2, 0.8], [0.4, 0.6]]), gammas_=np.array([1.0, 2.0])
    )
    (ax,) = kernel_weights(model)
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.3, 0.7])
    assert len(ax.collections[0].get_offsets()) == 4
    assert "γ = 2" in ax.get_yticklabels()[1].get_text()


def test_what_is_refused():
    with pytest.raises(ValueError, match="2 numbers for 3 kernels"):
        kernel_weights(MODEL, accuracies=[0.1, 0.2])
    with pytest.raises(ValueError, match="give these as well"):
        kernel_weights(MODEL, combined={"average": 0.5})
    with pytest.raises(ValueError, match="axes must be 2, got 1"):
        kernel_weights(MODEL, accuracies=[0.1, 0.2, 0.3], axes=kernel_weights(MODEL))
