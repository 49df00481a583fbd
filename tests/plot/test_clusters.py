"""Clusters as points, or as lines of pictures."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")

from hilbin.plot import clusters  # noqa: E402

T = np.array([[0.0, 0.0], [0.1, 0.0], [0.3, 0.0], [5.0, 5.0], [5.2, 5.0], [9.0, 9.0]])
LABELS = np.array([0, 0, 0, 2, 2, -1])


def test_points():
    ax = clusters(T, LABELS)
    assert [text.get_text() for text in ax.texts] == ["0", "2"]
    assert ax.texts[0].get_position() == (0.1, 0.0)
    assert sorted(len(c.get_offsets()) for c in ax.collections) == [1, 2, 3]
    assert clusters(T, LABELS, ax=ax) is ax


def test_the_most_typical_pictures_come_first():
    images = [np.eye(16)[i].reshape(4, 4) for i in range(6)]  # one bright pixel each
    ax = clusters(T, LABELS, images=images, n_images=2)
    canvas = np.asarray(ax.images[0].get_array(), float)
    assert canvas.shape[0] == 11  # two lines of pictures, and gaps
    pictures = [canvas[i : i + 4, j : j + 4] for i in (1, 6) for j in (1, 6)]
    assert [int(picture.argmax()) for picture in pictures] == [1, 0, 3, 4]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ((T[:, :1], LABELS), "two columns or more"),
        ((T, LABELS[1:]), "labels have shape"),
        ((T, np.full(6, -1)), "labels have no cluster"),
        ((T * np.nan, LABELS), "not finite"),
    ],
)
def test_bad_input(given, complaint):
    with pytest.raises(ValueError, match=complaint):
        clusters(*given)
    with pytest.raises(ValueError, match="1 images for 6 rows"):
        clusters(T, LABELS, images=[T])
