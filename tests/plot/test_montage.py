"""Pictures in the cells of a grid."""

import numpy as np
import pytest
from matplotlib import pyplot

from hilbin.plot import montage

GRAY = np.arange(6.0).reshape(2, 3)


def drawn(*args, **options):
    ax = montage(*args, **options)
    pixels = np.ma.filled(ax.images[0].get_array(), np.nan)
    pyplot.close(ax.figure)
    return pixels


def test_pictures_are_in_their_cells():
    pixels = drawn([GRAY, GRAY + 10], [[0, 1], [1, 0]])
    assert pixels.shape == (2 * 3 + 1, 2 * 4 + 1)
    np.testing.assert_array_equal(pixels[1:3, 5:8], GRAY)
    np.testing.assert_array_equal(pixels[4:6, 1:4], GRAY + 10)
    assert np.isnan(pixels[1:3, 1:4]).all()


def test_shapes_and_colors_may_differ():
    color = np.full((4, 4, 3), 51, np.uint8)
    pixels = drawn([GRAY, color], [[0, 0], [0, 1]], gap=0)
    assert pixels.shape == (4, 8, 3)
    np.testing.assert_allclose(pixels[:, 4:], 0.2)
    np.testing.assert_allclose(pixels[1:3, :3, 1], GRAY / 5)
    np.testing.assert_allclose(pixels[0, :4], 1)


def test_large_pictures_are_shrunk():
    pixels = drawn([np.ones((200, 100))], [[0, 0]], size=20, gap=0)
    assert pixels.shape == (20, 10)


def test_draws_on_given_axes():
    _, ax = pyplot.subplots()
    assert montage([GRAY], [[0, 0]], ax=ax) is ax
    pyplot.close(ax.figure)


@pytest.mark.parametrize(
    ("images", "cells", "message"),
    [
        ([GRAY], [[0, 0], [0, 1]], r"cells must be whole numbers >= 0 of shape \(1, 2\)"),
        ([GRAY], [[0.5, 0]], "cells must be whole numbers"),
        ([GRAY, GRAY], [[0, 0], [0, 0]], "cells must differ"),
        ([GRAY, np.ones(3)], [[0, 0], [0, 1]], r"images\[1\] must be of shape"),
        ([], np.empty((0, 2), int), "cells must be"),
    ],
)
def test_what_is_refused(images, cells, message):
    with pytest.raises(ValueError, match=message):
        montage(images, cells)
