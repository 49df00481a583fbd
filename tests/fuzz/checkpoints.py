"""Checkpoints of sums that were damaged or changed: the sum goes on, or the file is refused."""

import contextlib
import io
import json
import os
import shutil

import numpy as np
from fuzzing import FaultError
from images import damaged

from hilbin.stats import Moments
from hilbin.stream import as_chunks, fold
from hilbin.stream.folding import ABOUT, FILE, CheckpointError

X = np.random.default_rng(0).normal(size=(12, 3))


def of_array(chunk):
    """A sum that is an array."""
    return chunk.X.T @ chunk.X


def of_moments(chunk):
    """A sum that is a statistic."""
    return Moments.of(chunk.X)


SUMS = {"array": of_array, "moments": of_moments}


def prepare(folder):
    """Interrupt sums after two chunks."""
    for name, of in SUMS.items():

        def stopping(chunk, of=of):
            if chunk.begin >= 8:
                raise RuntimeError
            return of(chunk)

        with contextlib.suppress(RuntimeError):
            fold(_chunks(), stopping, checkpoint=folder / name, key={"of": name}, every=0)


def _chunks():
    return as_chunks(X, rows=4)


def opened(folder):
    """The bytes of the checkpoints."""
    own = folder / f"resumed-{os.getpid()}"
    return {name: (folder / name / FILE).read_bytes() for name in SUMS}, own


def attempt(state, seed):
    """Damage bytes, or change arrays and write them well; go on with the sum."""
    files, folder = state
    rng = np.random.default_rng(seed)
    name = ("array", "moments")[int(rng.integers(2))]
    forged = bool(rng.integers(2))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    content = _changed(files[name], rng) if forged else damaged(files[name], rng)
    (folder / FILE).write_bytes(content)
    try:
        found = fold(_chunks(), SUMS[name], checkpoint=folder, key={"of": name})
    except CheckpointError as error:
        if str(folder / FILE) not in str(error):
            raise FaultError(f"a refusal does not name the file: {error}") from error
        return "refused"
    total = found if name == "array" else found.scatter
    if np.shape(total) != (3, 3):
        raise FaultError(f"the sum has become one of shape {np.shape(total)}")
    if not forged and name == "array" and not np.allclose(total, X.T @ X):
        raise FaultError("a damaged checkpoint has changed the sum")
    return "answered"


def _changed(content, rng):
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(arrays[ABOUT].tobytes())
    names = [name for name in arrays if name != ABOUT]
    name, kind = names[int(rng.integers(len(names)))], int(rng.integers(6))
    array = arrays[name]
    if kind == 0:
        arrays.pop(name)
    elif kind == 1:
        arrays[name] = [array[None], array.ravel()[:-1], array.astype("U3"), array.astype(bool)][
            int(rng.integers(4))
        ]
    elif kind == 2:
        about["progress"][int(rng.integers(2))] = [-1, 0, 99, "x", None, 1.5][int(rng.integers(6))]
    elif kind == 3:
        about.pop(str(rng.choice(list(about))))
    elif kind == 4:
        about = [[], {}, 7, {**about, "progress": 3}, {**about, "done": "x"}][int(rng.integers(5))]
    else:
        arrays[f"={rng.integers(9)}"] = arrays.pop(name)
    arrays[ABOUT] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()
