"""Pictures of importances and of reliability."""

import numpy as np
import pytest

from hilbin.inspection import Importances, reliability
from hilbin.plot import importances
from hilbin.plot import reliability as draw_reliability

FOUND = Importances(["a", "b" * 40, "c"], np.array([[0.1, 0.3], [1.0, 0.0], [0.0, 0.7]]), True)


def test_bars_are_the_importances():
    ax = importances(FOUND)
    assert [text.get_text()[0] for text in ax.get_yticklabels()] == ["b", "c", "a"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.5, 0.35, 0.2])
    assert ax.yaxis_inverted()
    ax = importances(FOUND, class_=1, top=2)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["c", "a"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.7, 0.3])


def test_what_the_bars_are_of_other_models():
    found = Importances(FOUND.names, FOUND.by_class, exact=False)
    assert "change" in importances(found).get_xlabel()
    with pytest.raises(ValueError, match="top must be a whole number"):
        importances(found, top=0)


def test_points_are_the_bins():
    found = reliability([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.05, 0.95]], [0, 1, 1, 1])
    ax = draw_reliability(found)
    points = ax.collections[0].get_offsets()
    assert np.asarray(points) == pytest.approx(np.c_[found.confidence, found.accuracy])
    assert draw_reliability(found, ax=ax) is ax
