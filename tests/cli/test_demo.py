"""``hilbin demo``: photographs that are here, patches that share no pixel, all files made."""

import csv
import socket
from importlib import metadata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hilbin.cli import _patches
from hilbin.cli._patches import PHOTOGRAPHS, halves, photographs, write_patches
from hilbin.cli.demo import BASELINE, Shown, summary

pytest.importorskip("skimage", reason="needs scikit-image")
FEW = ("brick", "grass", "page")


@pytest.fixture
def few(monkeypatch):
    """Three photographs, few patches, no network."""

    def refuse(*arguments, **options):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(_patches, "PHOTOGRAPHS", {n: PHOTOGRAPHS[n] for n in FEW})


def test_photographs_come_with_the_package():
    found = photographs()
    assert set(found) == set(PHOTOGRAPHS)
    shipped = {str(file) for file in metadata.files("scikit-image")}
    for path in found.values():
        assert f"skimage/data/{path.name}" in shipped


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9), st.integers(1, 12))
def test_patches_share_no_pixel(height, width, side, most):
    # every pixel differs from all others, and no square is flat
    picture = (np.arange(height * width) * 97 % 1601 + 100).reshape(height, width)
    found = halves(picture, side, most)
    pixels = []
    for squares in found.values():
        assert len(squares) <= most
        for (y, x), square in squares.items():
            assert (square == picture[y * side :, x * side :][:side, :side]).all()
            pixels += square.ravel().tolist()
    assert len(set(pixels)) == len(pixels)
    columns = [{x for _, x in squares} for squares in found.values()]
    assert not columns[0] or not columns[1] or max(columns[0]) < min(columns[1])


def test_flat_squares_are_left_out():
    picture = np.random.default_rng(0).integers(0, 256, (128, 256), np.uint8)
    picture[:64, :64] = 7
    found = halves(picture)
    assert list(found["train"]) == [(0, 1), (1, 0), (1, 1)]
    assert len(found["test"]) == 4


def test_patches_are_written(few, tmp_path):
    counts = write_patches(tmp_path)
    for part, count in counts.items():
        written = sorted((tmp_path / part).rglob("*.png"))
        assert len(written) == count
        assert {p.parent.name for p in written} == set(FEW)
    with Image.open(tmp_path / "train" / "brick" / "r1c1.png") as patch:
        original = Image.open(photographs()["brick"]).convert("L").crop((0, 0, 64, 64))
        assert np.array_equal(np.asarray(patch), np.asarray(original))
    assert write_patches(tmp_path) == counts  # again


def test_the_demo(few, tmp_path, monkeypatch, cli_json):
    monkeypatch.setattr(_patches.halves, "__defaults__", (64, 6))
    out = tmp_path / "demo"
    found = cli_json("demo", "--out", out, "--jobs", 1)
    assert (found["n_classes"], found["n_train"]) == (3, 18)
    assert found["accuracy"] > 0.8
    assert 0 < found["linear_accuracy"] <= 1
    files = {"report.html", "mistakes.csv", "why.png", "photographs.hilbin"}
    assert {p.name for p in out.iterdir()} == {*files, "train", "test"}
    text = (out / "report.html").read_text(encoding="utf-8")
    assert found["report"] == str(out / "report.html")
    assert "square roots" in text
    assert f"{100 * found['accuracy']:.1f}" in text
    with open(out / "mistakes.csv", newline="", encoding="utf-8") as file:
        assert len(list(csv.reader(file))) - 1 == round(found["n_test"] * (1 - found["accuracy"]))
    with Image.open(out / "why.png") as picture:
        assert picture.format == "PNG"
    lines = summary(Shown(**found))
    assert str(out / "report.html") in lines
    assert f"{BASELINE} {found['linear_accuracy']:.1%}" in lines


def test_files_of_others_are_kept(few, tmp_path, cli):
    mine = tmp_path / "train" / "holiday" / "beach.png"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    said = cli("demo", "--out", tmp_path, code=2).stderr
    assert "beach.png: not of the demo; name another folder by --out" in said
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [mine]


def test_without_scikit_image(monkeypatch, tmp_path, cli):
    monkeypatch.setattr(_patches, "find_spec", lambda name: None)
    said = cli("demo", "--out", tmp_path / "demo", code=2).stderr
    assert 'the demo needs scikit-image: pip install "hilbin[demo]"' in said
    assert not (tmp_path / "demo").exists()
