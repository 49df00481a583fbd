"""Reading: every kind of file becomes 8-bit values, or an error that names it."""

import struct
import sys
import zlib

import numpy as np
import pytest
from pictures import drawn
from PIL import Image

from hilbin.images import Centrist, ImageError, UnreadableImageWarning, gray, read_image
from hilbin.images.read import as_sources, image_size


def save(array, path, **how):
    Image.fromarray(array).save(path, **how)
    return path


def png_header(path, width, height):
    """A PNG that claims a size and holds nothing."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + data)
    return path


def test_gray_and_color_of_a_file(tmp_path):
    picture = drawn(color=True)
    path = save(picture, tmp_path / "a.png")
    np.testing.assert_array_equal(read_image(path, color=True), picture)
    np.testing.assert_array_equal(read_image(str(path)), gray(picture))


def test_array_and_file_agree(tmp_path):
    picture = drawn(color=True, shape=(100, 80))
    path = save(picture, tmp_path / "a.png")
    for color in (False, True):
        np.testing.assert_array_equal(
            read_image(path, max_side=33, color=color),
            read_image(picture, max_side=33, color=color),
        )


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_of_the_camera_is_applied(tmp_path, orientation):
    picture = drawn(shape=(20, 30))
    exif = Image.Exif()
    exif[0x0112] = orientation
    upright = {
        1: picture,
        2: picture[:, ::-1],
        3: picture[::-1, ::-1],
        4: picture[::-1],
        5: picture.T,
        6: np.rot90(picture, -1),
        7: picture[::-1, ::-1].T,
        8: np.rot90(picture),
    }[orientation]
    path = save(picture, tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(read_image(path), upright)


def test_large_jpeg_is_reduced(tmp_path):
    picture = np.kron(drawn(shape=(60, 80)), np.ones((10, 10), np.uint8))
    path = save(picture, tmp_path / "a.jpg", quality=95)
    small = read_image(path, max_side=80)
    assert small.shape == (60, 80)
    assert np.abs(small.astype(float) - drawn(shape=(60, 80))).mean() < 6


def test_modes(tmp_path):
    picture = drawn()
    deep = picture.astype(np.uint16) * 257
    np.testing.assert_array_equal(read_image(save(deep, tmp_path / "deep.png")), picture)
    palette = Image.fromarray(drawn(color=True)).convert("P")
    palette.save(tmp_path / "palette.png")
    np.testing.assert_array_equal(
        read_image(tmp_path / "palette.png", color=True), np.array(palette.convert("RGB"))
    )
    ink = Image.fromarray(drawn(color=True)).convert("CMYK")
    ink.save(tmp_path / "ink.tif")
    np.testing.assert_array_equal(
        read_image(tmp_path / "ink.tif", color=True), np.array(ink.convert("RGB"))
    )
    Image.fromarray(picture > 128).save(tmp_path / "bits.png")
    np.testing.assert_array_equal(read_image(tmp_path / "bits.png"), 255 * (picture > 128))


def test_transparent_is_white(tmp_path):
    picture = np.dstack([drawn(color=True), np.zeros((48, 56), np.uint8)])
    assert read_image(save(picture, tmp_path / "a.png")).min() == 255


def test_arrays_of_other_types():
    picture = drawn()
    for array in (picture / 255, picture.astype(np.uint16) * 257, picture[:, :, None]):
        np.testing.assert_array_equal(read_image(array), picture)
    np.testing.assert_array_equal(read_image(picture > 99), 255 * (picture > 99))


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.full((4, 4), -0.5), "within"),
        (np.full((4, 4), np.nan), "within"),
        (np.full((4, 4), 70000), "65535"),
        (np.zeros((4, 4, 2)), "shape"),
        (np.zeros((0, 4)), "empty"),
        (np.array([["a"]]), "not numbers"),
    ],
)
def test_bad_arrays(array, said):
    with pytest.raises(ImageError, match=said):
        read_image(array)


def test_bad_files(tmp_path):
    cut = save(drawn(shape=(200, 200)), tmp_path / "cut.jpg")
    cut.write_bytes(cut.read_bytes()[:900])
    (tmp_path / "text.png").write_text("this is a text")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "folder.png").mkdir()
    bomb = png_header(tmp_path / "bomb.png", 30_000, 30_000)
    large = png_header(tmp_path / "large.png", 11_000, 10_000)
    told = {
        cut: "decoded",
        tmp_path / "text.png": "not an image",
        tmp_path / "empty.png": "empty",
        tmp_path / "folder.png": "is a folder, not a file",
        tmp_path / "none.png": "no such file",
        bomb: "too large|more than max_pixels",
        large: "too large|more than max_pixels",
    }
    for path, reason in told.items():
        with pytest.raises(ImageError, match=reason) as caught:
            read_image(path)
        assert caught.value.source == str(path)


def test_unreadable_files_are_named_and_never_fatal(tmp_path):
    good = save(drawn(), tmp_path / "good.png")
    (tmp_path / "bad ü.png").write_text("text")
    files = [good, tmp_path / "bad ü.png", good]
    with pytest.warns(UnreadableImageWarning, match="bad ü.png"):
        rows = Centrist().fit_transform(files)
    assert rows[1].sum() == 0
    np.testing.assert_array_equal(rows[0], rows[2])
    done = []
    _, unreadable = Centrist().transform_with_errors(files, callback=done.append)
    assert list(unreadable) == [1]
    assert sum(done) == 3


def test_many_images_not_one():
    for one in ("photo.jpg", np.zeros((4, 4)), 5):
        with pytest.raises(ValueError, match="list of files"):
            as_sources(one)


@pytest.mark.parametrize("source", ["cat.jpg", np.zeros((4, 4)), np.zeros((4, 4, 3))], ids=str)
def test_without_pillow_the_error_says_what_to_install(source, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)  # as if it were not installed
    with pytest.raises(ImportError, match=r'images need Pillow: pip install "hilbin\[images\]"'):
        read_image(source)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_size_is_that_of_the_image_that_is_read(tmp_path, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "a.jpg"
    Image.new("RGB", (30, 20)).save(path, exif=exif)
    assert image_size(path) == read_image(path).shape[::-1]


def test_the_size_of_no_image(tmp_path):
    (tmp_path / "a.jpg").write_text("no image")
    for name, reason in (("a.jpg", "not an image"), ("gone.jpg", "no such file")):
        with pytest.raises(ImageError, match=reason):
            image_size(tmp_path / name)
