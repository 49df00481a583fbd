import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilbin.report import overlay
from hilbin.report.pictures import heat_scale, mosaic, shrink

GREY = np.full((8, 10), 120, np.uint8)


def test_zero_is_neutral():
    for picture in (GREY, np.repeat(GREY[:, :, None], 3, axis=2)):
        image = overlay(picture, np.zeros((8, 10)))
        assert image.shape == (8, 10, 3)
        assert image.dtype == np.uint8
        assert np.unique(image).size == 1


@given(st.floats(0.01, 1e6))
def test_sign_is_color_and_the_scale_is_symmetric(size):
    heat = np.zeros((8, 10))
    heat[:, 0], heat[:, 1] = size, -size
    image = overlay(GREY, heat).astype(int)
    red, blue = image[0, 0], image[0, 1]
    assert red[0] > red[2] + 60
    assert blue[2] > blue[0] + 60
    np.testing.assert_array_equal(overlay(GREY, -heat)[0, 0], blue)
    np.testing.assert_array_equal(overlay(GREY, 7 * heat), image)  # only its own scale counts
    assert (overlay(GREY, heat, scale=1e9)[0, 0].astype(int) - image[0, 5] < red - image[0, 5])[0]


def test_heat_takes_the_size_of_the_picture():
    heat = np.zeros((2, 2))
    heat[:, 0] = 1.0
    image = overlay(GREY, heat).astype(int)
    assert image.shape == (8, 10, 3)
    assert (image[:, 0, 0] - image[:, 0, 2] > 60).all()
    assert (image[:, -1, 0] == image[:, -1, 2]).all()


def test_a_common_scale():
    small, large = np.full((2, 2), 0.5), np.full((2, 2), -2.0)
    assert heat_scale(small, large) == 2.0
    assert heat_scale(np.zeros((3, 3))) == 1.0


@pytest.mark.parametrize(
    ("picture", "heat", "scale", "message"),
    [
        (GREY.astype(float), np.ones((2, 2)), None, "picture must be a uint8"),
        (np.zeros((3, 3, 4), np.uint8), np.ones((2, 2)), None, "picture must be"),
        (np.zeros((0, 3), np.uint8), np.ones((2, 2)), None, "picture must be"),
        (GREY, np.ones(4), None, "heat must be a matrix"),
        (GREY, np.full((2, 2), np.nan), None, "heat must be finite"),
        (GREY, np.ones((2, 2)), 0.0, "scale must be positive"),
    ],
)
def test_bad_input(picture, heat, scale, message):
    with pytest.raises(ValueError, match=message):
        overlay(picture, heat, scale=scale)


@given(st.integers(1, 700), st.integers(1, 700))
def test_shrink_keeps_the_aspect(height, width):
    small = shrink(np.zeros((height, width), np.uint8), 256)
    assert max(small.shape[:2]) == min(256, max(height, width))
    if max(height, width) > 256:
        wanted = max(1, round(min(height, width) * 256 / max(height, width)))
        assert min(small.shape[:2]) == wanted


def test_mosaic():
    patches = [np.full((5, 7), value, np.uint8) for value in (10, 90, 170)]
    sheet = mosaic(patches, 8, 2)
    assert sheet.shape == (18, 18, 3)
    assert [sheet[4, 4, 0], sheet[4, 14, 0], sheet[14, 4, 0], sheet[14, 14, 0]] == [
        10,
        90,
        170,
        255,
    ]
