"""An interrupted ``hilbin detect train`` resumes, and gives the same detector."""

import os
import signal
import subprocess
import sys

import pytest
from scenes import write_scenes

from hilbin.cache import ArrayCache
from hilbin.cli.detect.train import DetectOptions, train_detector
from hilbin.detect import checkpoint, write_boxes

# the real command line, killed when the n-th state is about to get its name
KILLED = """
import os, signal, sys
import hilbin.files
from hilbin.cli import main
from hilbin.detect import checkpoint

checkpoint.EVERY = 0
replace, left = os.replace, [int(sys.argv.pop(1))]

def killing(source, target):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)

hilbin.files.os.replace = killing
main()
"""
SETTINGS = {"parts": {"parts": 1}, "words": {"words": 16}}


@pytest.fixture(autouse=True)
def every_state(monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume")
    write_boxes(write_scenes(folder / "train", 5), folder / "train.xml")
    return folder / "train.xml"


@pytest.fixture(scope="module", params=SETTINGS)
def uninterrupted(boxes, request):
    """Options, the bytes of the detector, and how many states the training keeps."""
    stored, original = [], ArrayCache.store

    def counting(self, name, arrays):
        stored.append(name)
        original(self, name, arrays)

    options = {"area": 1600.0, "jobs": 1, **SETTINGS[request.param]}
    output = boxes.parent / f"{request.param}.hilbin"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "EVERY", 0.0)
        patch.setattr(ArrayCache, "store", counting)
        trained = train_detector(DetectOptions(boxes, output, **options))
    return options, state_of(trained.detector), len(stored)


def state_of(detector):
    """All numbers of a detector, bit for bit."""
    templates = [
        (t.root.tobytes(), t.parts.tobytes(), t.deformation.tobytes(), t.bias, t.least)
        for t in detector.templates_
    ]
    fitted = detector.threshold_, detector.n_iter_, float(detector.gap_[0])
    return templates, fitted, detector.calibration_.predict_proba([0.1, 0.7]).tobytes()


def words_of(options, boxes, output):
    named = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return ["detect", "train", str(boxes), "-o", str(output), *named]


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_killed_and_continued(boxes, tmp_path, uninterrupted, share):
    options, expected, count = uninterrupted
    output = tmp_path / "m.hilbin"
    nth = max(2, round(share * count))
    words = words_of(options, boxes, output)
    done = subprocess.run([sys.executable, "-c", KILLED, str(nth), *words], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not output.exists()
    assert list((tmp_path / "m.hilbin.cache").glob(".hilbin-*.part"))  # was being written
    trained = train_detector(DetectOptions(boxes, output, **options))
    assert state_of(trained.detector) == expected
    assert not (tmp_path / "m.hilbin.cache").exists()


def test_interrupted_and_continued(boxes, tmp_path, uninterrupted, cli, monkeypatch):
    options, _, count = uninterrupted
    original, calls = ArrayCache.store, []

    def interrupting(self, name, arrays):
        calls.append(name)
        if len(calls) == count - 1:
            signal.raise_signal(signal.SIGINT)
        original(self, name, arrays)

    words = words_of(options, boxes, tmp_path / "m.hilbin")
    with monkeypatch.context() as patch:
        patch.setattr(ArrayCache, "store", interrupting)
        result = cli(*words, code=130)
    assert "interrupted: run the same command again to continue" in result.stderr
    assert not (tmp_path / "m.hilbin").exists()
    said = cli(*words).stderr
    assert "learning: resumed at" in said
    assert "calibrating: resumed at" in said


def test_what_is_kept_follows_files_boxes_and_settings(boxes, tmp_path, cli):
    records = write_scenes(tmp_path / "train", 4)
    write_boxes(records, tmp_path / "b.csv")
    words = ("detect", "train", tmp_path / "b.csv", "-o", tmp_path / "m", "--force")
    words = (*words, "--area", "1600", "--jobs", "1", "--keep-cache")
    assert "resumed" not in cli(*words).stderr
    assert "learning: resumed at" in cli(*words).stderr
    assert "resumed" not in cli(*words, "--seed", "1").stderr
    assert "resumed" not in cli(*words, "--no-mirror").stderr
    os.utime(records[0].path, (1, 1))
    assert "resumed" not in cli(*words).stderr
    with (tmp_path / "b.csv").open("a") as file:
        file.write('"train/scene 0.png",9,9,49,49,face,0\n')
    assert "resumed" not in cli(*words).stderr
    for entry in (tmp_path / "m.cache").iterdir():
        entry.write_bytes(entry.read_bytes()[:-7])
    assert "resumed" not in cli(*words).stderr  # damaged
