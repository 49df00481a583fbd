"""Virtual samples."""

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from hilbin.images.augment import USUAL, augment, distort, parse_transforms


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    noise = ndimage.gaussian_filter(rng.standard_normal((3, 40, 52)), (0, 3, 3))
    return [np.uint8(255 * (n - n.min()) / np.ptp(n)) for n in noise]


@pytest.mark.parametrize("copies", [0, 1, 3])
def test_originals_first_then_copies(images, copies):
    made, labels = augment(images, [5, 7, 9], rotate=20, copies=copies, random_state=0)
    assert len(made) == len(labels) == 3 * (1 + copies)
    np.testing.assert_array_equal(labels, np.tile([5, 7, 9], 1 + copies))
    for before, after in zip(images, made, strict=False):
        np.testing.assert_array_equal(after, before)
    for place, image in enumerate(made):
        assert image.dtype == np.uint8
        assert image.shape == (40, 52)
        # a copy resembles its own image more than any other
        near = [np.corrcoef(image.ravel(), other.ravel())[0, 1] for other in images]
        assert np.argmax(near) == place % 3


def test_chance_is_given(images):
    def made(seed):
        return augment(images, shift=0.1, noise=5, flip=True, blur=1, random_state=seed)

    for a, b in zip(made(3), made(3), strict=True):
        np.testing.assert_array_equal(a, b)
    assert any((a != b).any() for a, b in zip(made(3), made(4), strict=True))


def test_nothing_asked_nothing_done(images):
    made = augment(images, random_state=0)
    for before, after in zip(images, made[3:], strict=True):
        np.testing.assert_array_equal(after, before)


def test_flip(images):
    seen = {
        "kept" if (copy == images[0]).all() else "mirrored"
        for copy in augment(images[:1], flip=True, copies=12, random_state=0)
        if (copy == images[0]).all() or (copy == images[0][:, ::-1]).all()
    }
    assert seen == {"kept", "mirrored"}


def test_shift_moves_by_what_is_said(images):
    """The middle of a copy is found in the image, not farther away than asked."""
    spot = np.zeros((61, 81), np.uint8)
    spot[28:33, 38:43] = 200
    places = np.array(
        [ndimage.center_of_mass(c) for c in augment([spot], shift=0.2, copies=60, random_state=0)]
    )
    away = np.abs(places[1:] - places[0])
    assert (away <= 0.2 * np.array([61, 81]) + 0.5).all()
    assert (away.max(axis=0) > 0.15 * np.array([61, 81])).all()


def test_rotation_turns_about_the_middle():
    bar = np.zeros((61, 61), np.uint8)
    bar[29:32, 10:51] = 250
    angles = []
    for copy in augment([bar], rotate=30, copies=60, random_state=1)[1:]:
        np.testing.assert_allclose(ndimage.center_of_mass(copy), [30, 30], atol=0.2)
        i, j = np.nonzero(copy > 100)
        angles.append(np.rad2deg(np.arctan2(np.polyfit(j, i, 1)[0], 1)))
    assert max(angles) <= 31
    assert min(angles) >= -31
    assert max(angles) > 20
    assert min(angles) < -20


def test_scale_enlarges_and_shrinks():
    disc = np.uint8(200 * (np.hypot(*(np.indices((61, 61)) - 30.0)) < 10))
    areas = [(c > 100).sum() for c in augment([disc], scale=0.5, copies=60, random_state=0)]
    ratios = np.sqrt(np.array(areas[1:]) / areas[0])
    assert 1 / 1.55 < ratios.min() < 0.75
    assert 1.35 < ratios.max() < 1.55


def test_contrast_noise_and_blur(images):
    image = images[0]
    low = distort(image, contrast=0.5, random_state=4).astype(float)
    line = np.polyfit(image.ravel(), low.ravel(), 1)
    assert 0.5 <= line[0] <= 1.5
    assert line[0] != pytest.approx(1, abs=0.01)
    assert low.mean() == pytest.approx(image.mean(), abs=2)
    flat = np.full((64, 64), 128, np.uint8)
    noisy = distort(flat, noise=10, random_state=0)
    assert noisy.std() == pytest.approx(10, rel=0.1)
    dot = np.zeros((21, 21), np.uint8)
    dot[10, 10] = 255
    blurred = distort(dot, blur=2, random_state=0)
    assert blurred.max() < 200
    assert blurred.sum() == pytest.approx(255, rel=0.2)


def test_values_are_cut_off_at_black_and_white():
    bright = np.full((16, 16), 250, np.uint8)
    noisy = distort(bright, noise=50, random_state=0)
    assert noisy.max() == 255  # not wrapped round to black
    assert noisy.min() > 50


def test_files_and_colors(tmp_path, images):
    color = np.stack([images[0]] * 3, axis=2) // np.array([1, 2, 4], np.uint8)
    Image.fromarray(color).save(tmp_path / "a.png")
    made = augment([tmp_path / "a.png", color], rotate=5, shift=0.05, color=True, random_state=0)
    assert [m.shape for m in made] == [(40, 52, 3)] * 4
    np.testing.assert_array_equal(made[0], color)
    # channels move together
    assert np.corrcoef(made[2][..., 0].ravel(), made[2][..., 2].ravel())[0, 1] > 0.99
    assert augment([tmp_path / "a.png"], random_state=0)[0].ndim == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shift": 2}, "shift must be a number from 0 to 1, got 2"),
        ({"rotate": -3}, "rotate must be a number from 0 to 180"),
        ({"flip": "yes"}, "flip must be True or False"),
        ({"noise": float("nan")}, "noise must be"),
        ({"copies": -1}, "copies must be a whole number >= 0"),
        ({"y": [1, 2]}, "y has 2 labels for 3 images"),
    ],
)
def test_complaints(arguments, message, images):
    with pytest.raises(ValueError, match=message):
        augment(images, **arguments)


def test_one_image_is_not_many(images):
    with pytest.raises(ValueError, match="images must be a list"):
        augment(images[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shift", {"shift": USUAL["shift"]}),
        (" flip , rotate = 15,", {"flip": True, "rotate": 15.0}),
        ("noise=3,copies=4", {"noise": 3.0, "copies": 4}),
        (",".join(USUAL), USUAL),
    ],
)
def test_parse(text, expected, images):
    found = parse_transforms(text)
    assert found == expected
    assert len(augment(images, **found, random_state=0)) == 3 * (1 + found.get("copies", 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("turn", "'turn' is no transformation: known are shift, rotate, .*, blur, and copies=N"),
        ("", "names no transformation: known are shift"),
        ("copies=2", "names no transformation"),
        ("copies", "copies takes a whole number"),
        ("shift,copies=2.5", "copies takes a whole number, got '2.5'"),
        ("flip=2", "flip takes no amount"),
        ("rotate=much", "rotate takes a number, got 'much'"),
        ("shift=7", "shift must be a number from 0 to 1"),
    ],
)
def test_parse_complains(text, message):
    with pytest.raises(ValueError, match=message):
        parse_transforms(text)
