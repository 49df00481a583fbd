"""Files that are no model, or were; full disks and ended processes."""

import errno
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hilbin.estimators import HistogramBinner
from hilbin.kernels import Chi2
from hilbin.persist import (
    ModelFileError,
    container,
    info,
    load,
    save,
)

START = container.START


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.hilbin"


def model():
    return make_pipeline(StandardScaler(), HistogramBinner(4, negative="shift")).fit(
        np.arange(12.0).reshape(4, 3)
    )


def refused(path, match):
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_every_flipped_byte_is_noticed(path):
    save(model(), path, metadata={"classes": ["a", "b"]})
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        with pytest.raises(ModelFileError):
            load(path)


def test_every_flipped_bit_of_the_header_is_noticed_without_the_arrays(path):
    save(model(), path)
    content = path.read_bytes()
    length = int.from_bytes(content[16:24], "little")
    for place in range(0, START + length, 3):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        with pytest.raises(ModelFileError):
            info(path)


def test_a_truncated_file_says_what_is_missing(path):
    save(model(), path)
    content = path.read_bytes()
    for end in [*range(1, START + 64), *range(START + 64, len(content), 13)]:
        path.write_bytes(content[:end])
        refused(path, "truncated")
    path.write_bytes(content[:-5])
    refused(path, f"truncated: 5 of {len(content)} bytes are missing")


def test_a_file_with_more_behind_it(path):
    save(model(), path)
    path.write_bytes(path.read_bytes() + b"more")
    refused(path, "corrupted")


def test_flipped_arrays_are_told_from_flipped_headers(path):
    save(model(), path)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    refused(path, "corrupted: its arrays")
    content[-1] ^= 1
    content[START] ^= 1
    path.write_bytes(content)
    refused(path, "corrupted: its header")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty"),
        (b"label,path\n", "not a hilbin model"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "not a hilbin model"),
        (pickle.dumps([1]), "is a pickle"),
        (pickle.dumps([1], 2) * 100, "is a pickle"),
        (bytes(1000), "not a hilbin model"),
    ],
)
def test_other_files(path, content, match):
    path.write_bytes(content)
    refused(path, match)
    with pytest.raises(ModelFileError, match=match):
        info(path)


def test_no_file(path, tmp_path):
    with pytest.raises(FileNotFoundError):
        load(path)
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


def test_a_full_disk_leaves_the_old_file(path, monkeypatch):
    save(Chi2(), path)
    before = path.read_bytes()
    opened = os.fdopen

    class Full:
        def __init__(self, file):
            self.file, self.room = file, 100

        def write(self, data):
            if len(data) > self.room:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.room -= len(data)
            return self.file.write(data)

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *failed):
            self.file.close()

    monkeypatch.setattr(os, "fdopen", lambda *given: Full(opened(*given)))
    with pytest.raises(OSError, match="No space left"):
        save(model(), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full device")
def test_the_device_that_is_always_full(path, monkeypatch):
    save(Chi2(), path)
    before = path.read_bytes()
    opened = os.fdopen

    def full(handle, mode):
        os.close(handle)
        return opened(os.open("/dev/full", os.O_WRONLY), mode)

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(OSError, match="No space left"):
        save(model(), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_killed_save_leaves_the_old_file(path):
    """The process ends, without any clean-up, in the middle of the arrays."""
    save(Chi2(), path)
    before = path.read_bytes()
    code = f"""
import os
import numpy as np
from hilbin.persist import container, save

def pieces(arrays, real=container._pieces, calls=[]):
    calls.append(1)
    for i, piece in enumerate(real(arrays)):
        if len(calls) == 2 and i == 4:
            os.kill(os.getpid(), 9)
        yield piece

container._pieces = pieces
save([np.zeros(100_000), np.ones(100_000), np.ones(3)], {str(path)!r})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == -9
    assert path.read_bytes() == before
    assert load(path) == Chi2()


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        save(Chi2(), tmp_path / "nowhere" / "model.hilbin")
