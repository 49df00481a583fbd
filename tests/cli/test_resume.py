"""An interrupted training resumes, and gives the same model."""

import errno
import os
import signal
import subprocess
import sys

import pytest

import hilbin.files
from hilbin.auto import image_data
from hilbin.auto.image_data import Cache
from hilbin.cli.train import TrainOptions, train

# the real command line, with chunks of four images, killed when a file is about to get its name
KILLED = """
import os, signal, sys
from pathlib import Path
import hilbin.files
from hilbin.auto import image_data
from hilbin.cli import main

image_data.CHUNK = 4
replace, left = os.replace, [int(sys.argv.pop(1))]
suffix = sys.argv.pop(1)

def killing(source, target):
    left[0] -= str(target).endswith(suffix)
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)

hilbin.files.os.replace = killing
main()
"""


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(image_data, "CHUNK", 4)


@pytest.fixture
def words(photos, tmp_path):
    words = ("train", photos, "-o", tmp_path / "m.hilbin", "--force", "--jobs", 1)
    return (*words, "--features", "sift+color")


@pytest.fixture(scope="module")
def uninterrupted(photos, tmp_path_factory):
    """The model file of an uninterrupted training."""
    output = tmp_path_factory.mktemp("uninterrupted") / "m.hilbin"
    train(TrainOptions(photos, output, features="sift+color", jobs=1))
    return output


@pytest.fixture
def assert_same(content_of):
    """Compare two model files, but for where they are."""

    def compare(first, second):
        (about, model), (other_about, other_model) = content_of(first), content_of(second)
        assert about == other_about
        assert model == other_model

    return compare


@pytest.mark.parametrize(("nth", "suffix"), [(3, ".rows"), (1, "m.hilbin")])
def test_killed_and_continued(words, tmp_path, cli, assert_same, uninterrupted, nth, suffix):
    output = tmp_path / "m.hilbin"
    script = [sys.executable, "-c", KILLED, str(nth), suffix, *map(str, words)]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not output.exists()
    assert list(tmp_path.rglob(".hilbin-*.part"))  # was being written
    kept = len(list(tmp_path.glob("m.hilbin.cache/*.rows")))
    assert kept == (2 if suffix == ".rows" else 5)
    result = cli(*words)
    assert f"resumed: {min(4 * kept, 18)} of 18 images" in result.stderr
    assert not (tmp_path / "m.hilbin.cache").exists()
    assert_same(output, uninterrupted)


def test_interrupted_and_continued(words, tmp_path, cli, assert_same, uninterrupted, monkeypatch):
    original, calls = Cache.store, []

    def interrupting(self, name, arrays):
        calls.append(name)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        original(self, name, arrays)

    with monkeypatch.context() as patch:
        patch.setattr(Cache, "store", interrupting)
        result = cli(*words, code=130)
    assert "interrupted: run the same command again to continue" in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "m.hilbin").exists()
    assert "resumed: 8 of 18 images" in cli(*words).stderr
    assert_same(tmp_path / "m.hilbin", uninterrupted)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_damaged_cache_is_made_again(words, tmp_path, cli, content_of, damage):
    output, folder = tmp_path / "m.hilbin", tmp_path / "m.hilbin.cache"
    cli(*words, "--keep-cache")
    expected = content_of(output)
    for entry in folder.iterdir():
        content = bytearray(entry.read_bytes())
        content[len(content) // 2] ^= 1
        spoiled = {"cut": content[:-7], "flip": content, "empty": b""}[damage]
        entry.write_bytes(bytes(spoiled))
    result = cli(*words)
    assert "resumed" not in result.stderr
    assert content_of(output) == expected


def test_cache_follows_files_and_settings(own_photos, tmp_path, cli):
    words = ("train", own_photos, "-o", tmp_path / "m.hilbin", "--keep-cache", "--jobs", 1)
    words = (*words, "--force")
    centrist = (*words, "--features", "centrist")
    cli(*centrist)
    assert "resumed: 18 of 18 images" in cli(*centrist).stderr
    assert "resumed: 18 of 18 images" in cli(*centrist, "--kernel", "hellinger").stderr
    assert "resumed" not in cli(*centrist, "--max-side", 32).stderr
    assert "resumed" not in cli(*centrist, "--virtual", "flip").stderr
    assert "resumed" not in cli(*words, "--features", "lbp").stderr
    touched = own_photos / "across" / "pic 0.png"
    os.utime(touched, (1, 1))
    assert "resumed: 14 of 18 images" in cli(*centrist).stderr


def test_the_cache_may_be_a_folder_with_other_files(photos, tmp_path, cli):
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "mine.hilbin").write_text("precious")
    cli("train", photos, "-o", tmp_path / "m", "--features", "centrist", "--cache", folder)
    assert [p.name for p in folder.iterdir()] == ["mine.hilbin"]


@pytest.mark.parametrize("after", [0, 4, 7])
def test_full_disk(words, tmp_path, cli, assert_same, uninterrupted, monkeypatch, after):
    written = []

    def full(descriptor):
        written.append(descriptor)
        if len(written) > after:
            raise OSError(errno.ENOSPC, "No space left on device")

    output = tmp_path / "m.hilbin"
    output.write_text("the old one")
    with monkeypatch.context() as patch:
        patch.setattr(hilbin.files.os, "fsync", full)
        result = cli(*words, code=2)
    assert "the disk is full" in result.stderr
    assert result.stdout == ""
    assert output.read_text() == "the old one"
    assert not list(tmp_path.rglob("*.part"))
    cli(*words)
    assert_same(output, uninterrupted)
