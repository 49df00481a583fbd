"""Standard forms of images, and features that do not see some changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import ndimage
from sklearn.base import clone

from hilbin.images import (
    EdgeHistogram,
    FourierMagnitude,
    RadialProfile,
    RotationIntegrated,
    normalize_contrast,
    normalize_moments,
)


def smooth(seed=0, shape=(40, 40)):
    image = ndimage.gaussian_filter(np.random.default_rng(seed).standard_normal(shape), 2)
    return np.uint8(255 * (image - image.min()) / np.ptp(image))


def figure(angle=0.0, size=1.0, across=0.0, down=0.0, side=81, stretch=1.0):
    """A lopsided bright thing on a dark ground, drawn turned, enlarged and moved."""
    i, j = np.indices((side, side)) - (side - 1) / 2
    i, j = i - down, j - across
    c, s = np.cos(angle), np.sin(angle)
    i, j = (c * i + s * j) / size, (c * j - s * i) / size / stretch
    body = np.exp(-(i**2 / 90 + j**2 / 20))
    return body + 0.8 * np.exp(-((i - 12) ** 2 + (j - 4) ** 2) / 10)


def moments(image):
    i, j = np.indices(image.shape)
    total = image.sum()
    i, j = i - (image * i).sum() / total, j - (image * j).sum() / total
    return [(image * a).sum() / total for a in (i * i, j * j, i * j, i**3)]


# contrast
def test_contrast_covers_the_range():
    image = np.array([[50, 60], [70, 90]], np.uint8)
    np.testing.assert_array_equal(normalize_contrast(image), [[0, 64], [128, 255]])
    np.testing.assert_allclose(normalize_contrast(image / 255), [[0, 0.25], [0.5, 1]])
    color = np.stack([image, np.full_like(image, 9), 200 - image], axis=2)
    stretched = normalize_contrast(color)
    np.testing.assert_array_equal(stretched[..., 0], normalize_contrast(image))
    assert (stretched[..., 1] == 0).all()  # flat
    assert stretched[..., 2].max() == 255


@given(
    image=arrays(np.float64, (3, 4), elements=st.floats(0, 1)),
    gain=st.floats(0.1, 10),
    shift=st.floats(-1, 1),
)
def test_contrast_removes_brightness_and_contrast(image, gain, shift):
    if 0 < np.ptp(image) < 1e-3:
        return  # rounding of the shift is what remains of such an image
    once = normalize_contrast(image)
    np.testing.assert_allclose(normalize_contrast(gain * image + shift), once, atol=1e-9)
    np.testing.assert_allclose(normalize_contrast(once), once, atol=1e-12)


# moments
@pytest.mark.parametrize("seed", range(6))
def test_moments_of_the_normalized_image(seed):
    rng = np.random.default_rng(seed)
    image = figure(rng.uniform(0, 7), rng.uniform(0.7, 1.2), *rng.uniform(-10, 10, 2), stretch=1.3)
    made = normalize_moments(np.maximum(image - 0.1, 0), 64)  # without tails, that the frame cuts
    assert made.shape == (64, 64)
    m_ii, m_jj, m_ij, third = moments(made)
    variance = (64 / 6) ** 2
    assert m_ii == pytest.approx(variance, rel=0.01)
    assert m_jj == pytest.approx(variance, rel=0.01)
    assert abs(m_ij) < 0.005 * variance
    assert third > 0
    center = np.array(ndimage.center_of_mass(made))
    np.testing.assert_allclose(center, 31.5, atol=0.1)


@pytest.mark.parametrize("angle", [0.3, 1.5, 3.0, 4.5, 6.0])
def test_moments_remove_place_size_and_direction(angle):
    still = normalize_moments(figure(), 48)
    moved = normalize_moments(figure(angle, 1.3, 5.3, -4.2), 48)
    assert np.abs(moved - still).max() < 0.05 * still.max()
    mirrored = normalize_moments(figure()[:, ::-1], 48)
    assert np.abs(mirrored - still).max() > 0.2 * still.max()


def test_whole_turns_are_exact():
    image = smooth(3, (30, 44))
    for turns in range(4):
        made = normalize_moments(np.rot90(image, turns), 32)
        difference = made.astype(int) - normalize_moments(image, 32)
        assert np.abs(difference).max() <= 1


def test_moments_of_odd_images():
    assert (normalize_moments(np.zeros((5, 9))) == np.zeros((9, 9))).all()
    line = np.zeros((20, 20), np.uint8)
    line[3, 2:15] = 255  # no width: that of a pixel
    made = normalize_moments(line)
    assert made.dtype == np.uint8
    m_ii, m_jj, _, _ = moments(made.astype(float))
    assert m_ii == pytest.approx(m_jj, rel=0.05)
    dot = np.zeros((20, 20))
    dot[3, 2] = 1
    assert np.isfinite(normalize_moments(dot)).all()
    color = np.stack([line, line // 2, 0 * line], axis=2)
    colored = normalize_moments(color, 30)
    assert colored.shape == (30, 30, 3)
    np.testing.assert_allclose(colored[..., 1], colored[..., 0] / 2, atol=1)
    assert (colored[..., 2] == 0).all()


@pytest.mark.parametrize("function", [normalize_contrast, normalize_moments])
@pytest.mark.parametrize("image", [np.ones(3), np.ones((0, 3)), [["a"]], [[np.nan]]], ids=repr)
def test_not_an_image(function, image):
    with pytest.raises(ValueError, match="image"):
        function(image)


def test_complaints_of_moments():
    with pytest.raises(ValueError, match="negative value -1"):
        normalize_moments([[-1.0, 2.0]])
    with pytest.raises(ValueError, match="size must be a whole number >= 1, got 0"):
        normalize_moments([[1.0, 2.0]], 0)


# Fourier
def test_fourier_magnitude():
    image = smooth(0, (16, 16))
    slow = np.zeros((16, 9))
    i, j = np.indices((16, 16))
    for u in range(16):
        for v in range(9):
            wave = np.exp(-2j * np.pi * (u * i + v * j) / 16)
            slow[u, v] = abs((image / 255 * wave).mean())
    row = FourierMagnitude(16).fit_transform([image])[0]
    assert row.dtype == np.float32
    np.testing.assert_allclose(row, slow.ravel(), atol=1e-6)
    assert row[0] == pytest.approx(image.mean() / 255, rel=1e-6)


@given(seed=st.integers(0, 99), down=st.integers(0, 31), across=st.integers(0, 31))
def test_fourier_magnitude_does_not_see_shifts(seed, down, across):
    image = smooth(seed, (32, 32))
    describe = FourierMagnitude().transform_image
    moved = np.roll(image, (down, across), (0, 1))
    np.testing.assert_allclose(describe(moved), describe(image), atol=1e-6)
    assert np.abs(describe(smooth(seed + 1, (32, 32))) - describe(image)).max() > 1e-3


# rotation
def test_radial_profile():
    image = smooth(1, (31, 45))
    i, j = np.indices(image.shape)
    radius = np.hypot(i - 15, j - 22) / 15.5
    slow = [image[(radius >= k / 5) & (radius < (k + 1) / 5)].mean() / 255 for k in range(5)]
    np.testing.assert_allclose(RadialProfile(5).transform_image(image), slow, rtol=1e-5)
    turned = RadialProfile(5).transform_image(np.rot90(image))
    np.testing.assert_allclose(turned, slow, rtol=1e-5)
    about = ndimage.rotate(smooth(1), 33, reshape=False, order=1, mode="reflect")
    np.testing.assert_allclose(
        RadialProfile(6).transform_image(about),
        RadialProfile(6).transform_image(smooth(1)),
        atol=0.03,
    )


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("inner", [EdgeHistogram(), FourierMagnitude(12)], ids=["edges", "fourier"])
def test_integration_over_whole_turns_is_exact(n, inner):
    images = [smooth(0, (20, 28)), smooth(1, (20, 28))]
    made = RotationIntegrated(inner, n).fit(images)
    rows = made.transform(images)
    turned = made.transform([np.rot90(image, 4 // n) for image in images])
    np.testing.assert_allclose(turned, rows, atol=1e-6)
    unturned = np.abs(
        inner.transform_image(np.rot90(images[0])) - inner.transform_image(images[0])
    ).max()
    assert unturned > 1e-4  # the inner features alone do see turns
    mean = np.mean(
        [inner.transform_image(np.rot90(images[0], k)) for k in range(0, 4, 4 // n)], axis=0
    )
    np.testing.assert_allclose(rows[0], mean, atol=1e-6)


def test_integration_over_other_turns_is_near():
    image = smooth(2, (60, 60))
    edges = EdgeHistogram(cells=2)
    made = RotationIntegrated(edges, 12).fit([image])
    by_thirty = ndimage.rotate(image, 30, reshape=False, order=1, mode="nearest")
    apart = np.abs(made.transform_image(by_thirty) - made.transform_image(image)).max()
    plainly = np.abs(edges.transform_image(by_thirty) - edges.transform_image(image)).max()
    assert apart < 0.1 * plainly
    color = np.stack([image, image // 2, image // 3], axis=2)
    assert [v.shape for v in RotationIntegrated(edges, 3)._turned(color)] == [(60, 60, 3)] * 3


def test_integration_complains():
    with pytest.raises(TypeError, match="transformer must be one of images"):
        RotationIntegrated(3).fit([smooth()])
    with pytest.raises(ValueError, match="n_rotations must be a whole number >= 1"):
        RotationIntegrated(EdgeHistogram(), 0).fit([smooth()])


# edges
def test_edges_of_a_turning_step():
    """The histogram's direction is that of the edge's normal; neighbors share."""
    i, j = np.indices((41, 41)) - 20.0
    for angle in (0.0, 20.0, 45.0, 100.0, 157.0):
        theta = np.deg2rad(angle)
        image = np.uint8(255 * (np.cos(theta) * j + np.sin(theta) * i > 0))
        row = EdgeHistogram(18, cells=1, sigma=2, threshold=0.5).transform_image(image)
        place = np.exp(2j * np.pi * np.arange(18) / 18) @ row
        found = np.rad2deg(np.angle(place)) / 2 % 180
        assert min(abs(found - angle), 180 - abs(found - angle)) < 3


def test_edges_do_not_see_light():
    image = smooth(0) // 2
    edges = EdgeHistogram()
    row = edges.transform_image(image)
    np.testing.assert_allclose(edges.transform_image(image + np.uint8(60)), row, atol=1e-7)
    np.testing.assert_allclose(edges.transform_image(2 * image), 2 * row, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(edges.transform_image(127 - image), row, atol=1e-6)  # unsigned
    signed = EdgeHistogram(signed=True)
    difference = np.abs(signed.transform_image(127 - image) - signed.transform_image(image))
    assert difference.max() > 0.3 * row.max()
    assert (edges.transform_image(np.full((9, 9), 77, np.uint8)) == 0).all()


def test_edges_by_cell_and_bin():
    """Pixel by pixel, as the documentation says it."""
    image = smooth(4, (13, 17))
    down = ndimage.gaussian_filter(image / 255, 1.5, order=(1, 0), mode="nearest")
    across = ndimage.gaussian_filter(image / 255, 1.5, order=(0, 1), mode="nearest")
    slow = np.zeros((3, 3, 6))
    for i in range(13):
        for j in range(17):
            at = np.arctan2(down[i, j], across[i, j]) % (2 * np.pi) / (2 * np.pi) * 6
            low = int(at)
            size = np.hypot(down[i, j], across[i, j]) / image.size
            slow[i * 3 // 13, j * 3 // 17, low % 6] += size * (1 - at + low)
            slow[i * 3 // 13, j * 3 // 17, (low + 1) % 6] += size * (at - low)
    row = EdgeHistogram(6, cells=3, sigma=1.5, signed=True).transform_image(image)
    np.testing.assert_allclose(row, slow.ravel(), atol=1e-7)


# all transformers
TRANSFORMERS = [
    FourierMagnitude(8),
    RadialProfile(6),
    EdgeHistogram(cells=2),
    EdgeHistogram(4, cells=3, signed=True, threshold=0.2),
    RotationIntegrated(EdgeHistogram(cells=2), 4),
    RotationIntegrated(RadialProfile(5), 3),
]


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=repr)
def test_rows(transformer):
    images = [smooth(s, (24 + s, 33)) for s in range(5)] + [np.zeros((3, 2), np.uint8)]
    made = clone(transformer).fit(images)
    rows = made.transform(images)
    assert rows.shape == (6, len(made.get_feature_names_out()))
    assert rows.dtype == np.float32
    assert (rows >= 0).all()
    assert np.isfinite(rows).all()
    np.testing.assert_array_equal(
        clone(transformer).set_params(n_jobs=2).fit(images).transform(images), rows
    )
    color = np.repeat(images[0][:, :, None], 3, axis=2)
    np.testing.assert_allclose(made.transform([color])[0], rows[0], atol=1e-5)


@pytest.mark.parametrize("transformer", TRANSFORMERS[1:5], ids=repr)
def test_spread_shares_out_everything(transformer):
    images = [smooth(0, (24, 33)), np.zeros((6, 4), np.uint8)]
    made = clone(transformer).fit(images)
    for image in images:
        contributions = np.random.default_rng(0).standard_normal(made.transform_image(image).size)
        heat = made.to_pixels(image, contributions)
        assert heat.shape == image.shape
        assert heat.sum() == pytest.approx(contributions.sum(), abs=1e-9)


def test_spread_is_where_the_feature_is():
    image = np.zeros((40, 40), np.uint8)
    image[:, 30:] = 255
    edges = EdgeHistogram(4, cells=1).fit([image])
    heat = edges.to_pixels(image, np.array([1.0, 0, 0, 0]))
    assert heat[:, 27:33].sum() > 0.95
    rings = RadialProfile(4).fit([image])
    heat = rings.to_pixels(image, np.array([0, 0, 0, 1.0]))
    assert heat[:, 30:].sum() == pytest.approx(1)
    with pytest.raises(NotImplementedError, match="turned back"):
        RotationIntegrated(rings, 3).fit([image]).to_pixels(image, np.ones(4))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FourierMagnitude(0), "size must be a whole number >= 1"),
        (lambda: RadialProfile(0), "n_rings must be"),
        (lambda: EdgeHistogram(0), "n_directions must be"),
        (lambda: EdgeHistogram(cells=1.5), "cells must be"),
        (lambda: EdgeHistogram(sigma=0), "sigma must be a number > 0"),
        (lambda: EdgeHistogram(threshold=2), "threshold must be a number from 0 to 1"),
    ],
)
def test_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make().fit([smooth()])
