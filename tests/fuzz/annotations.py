"""Damaged files of boxes of every format: read, or refused by a message that names the file."""

import warnings

import numpy as np
from fuzzing import FaultError
from PIL import Image

from hilbin.detect import ImageBoxes, read_boxes, write_boxes

FILES = ("b.xml", "b.json", "b.csv", "voc/a.xml", "yolo/a.txt", "yolo/classes.txt", "list.txt")
ODD = (
    *(b"<", b">", b'"', b"'", b"&amp;", b"&x;", b"\0", b"\xff", b",", b";", b"\n", b"{", b"]"),
    *(b"nan", b"-inf", b"1e999", b"-1", b"9" * 400, b"null", b"true", b"[[[[", b"<!DOCTYPE a>"),
    *("é".encode("utf-16"), b"../../../etc/passwd", b"0x10", b" " * 50),
)


def prepare(folder):
    """Write the same boxes in every format."""
    (folder / "yolo").mkdir()
    for name in ("a.png", "b.png"):
        Image.new("L", (60, 40)).save(folder / "yolo" / name)
    records = [
        ImageBoxes(folder / "yolo" / "a.png", [[1, 2, 30, 20], [0, 0, 9, 9]], ["cat", "dog"]),
        ImageBoxes(folder / "yolo" / "b.png", np.empty((0, 4))),
    ]
    for name in FILES[:3]:
        write_boxes(records, folder / name)
    write_boxes(records, folder / "voc", format="voc")
    write_boxes(records, folder / "yolo", format="yolo")
    (folder / "list.txt").write_text("yolo/a.png\nyolo/b.png\n")


def opened(folder):
    """Read the files once, and make a folder in which a worker damages them."""
    return folder, {name: (folder / name).read_bytes() for name in FILES}


def attempt(state, seed):
    """Damage one file, and read it."""
    folder, contents = state
    rng = np.random.default_rng(seed)
    name = FILES[int(rng.integers(len(FILES)))]
    (folder / name).write_bytes(damaged(contents[name], rng))
    source = folder / "yolo" if name == "yolo/classes.txt" else folder / name
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = read_boxes(source)
    except ValueError as error:
        if str(folder) not in str(error):
            raise FaultError(f"{name}: {error!r} does not name the file") from error
        return "refused"
    finally:
        (folder / name).write_bytes(contents[name])
    for record in found:
        if not (
            np.isfinite(record.boxes).all() and (record.boxes[:, 2:] > record.boxes[:, :2]).all()
        ):
            raise FaultError(f"{name}: boxes that cannot be used: {record.boxes}")
    return "answered"


def damaged(content, rng):
    """Cut, change, repeat or insert bytes in a few places."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at, to = np.sort(rng.integers(len(data) + 1, size=2))
        kind = int(rng.integers(5))
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data[at:at] = ODD[int(rng.integers(len(ODD)))]
        elif kind == 2:
            data[at : min(to, at + 20)] = b""
        elif kind == 3:
            data[at:at] = data[at : min(to, at + 60)]
        elif len(data):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
    return bytes(data)
