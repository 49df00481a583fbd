"""Detectors of gradient cells against dlib's, which are of the same kind.

Faces (dlib's own example), people (mosaics of windows of inria_windows), and blood cells (bccd).
"""

import json
import tarfile
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array
from harness import claim
from PIL import Image

from hilbin.detect import (
    Boxes,
    BoxWarning,
    DeformableDetector,
    average_precision,
    match_boxes,
    read_boxes,
    run_all,
)

try:
    import dlib
except ImportError:
    dlib = None
    print("dlib is left out: pip install dlib")

COSTS = (2, 5, 10, 20)  # dlib's C
LOW, OWN_LOW = -1.0, -1.5  # thresholds for average precision, dlib's and ours
OWN, PARTS, WORDS, PEER = "root", "root and 6 parts", "root, 256 words", "dlib"
CELLS: dict[str, dict[str, Any]] = {
    "WBC": {"images": None, "parameters": {}},
    "RBC": {"images": 100, "parameters": {"n_words": 256}},
    "Platelets": {"images": 100, "parameters": {"n_words": 256}},
}
MANY = 20
DLIB_IMAGES = 20  # of platelets, of which dlib takes minutes
TEXT = (
    "One thread. dlib's simple_object_detector has its window of 80 x 80 pixels, mirrored images, "
    "and the best of C = 2, 5, 10 and 20 by average precision on the test images; ours has its "
    "defaults. People: windows of 64 x 128 pixels in mosaics of 6 x 3, 204 people and 84 others to "
    "learn from, 150 and 300 to test, box [16, 16, 48, 112) of each person; dlib gets images "
    "doubled, as its window is larger. Seconds of training are of the processor, of one run, "
    "threshold and probabilities included for ours. "
    "Milliseconds are of whole calls on all test images, arrays to boxes, at a fixed threshold, "
    "the least of several rounds in turn. Blood cells: 292 images for WBC, the first 100, and 256 "
    "words, for the others, 72 to test; what dlib says of the boxes. Many at once: five "
    "detectors, each four times; of 46 ms for 20 detectors 11 are look-ups, so that 16-bit tables, "
    "if they halve these, gain a factor of 1.13, and are left out. The threshold is that of best "
    "smoothed F1 of five folds over the training images."
)
PLATELETS_TEXT = " Platelets, whose boxes alone dlib takes: both learn from the first 20 images."


class Scenes(NamedTuple):
    """Images and their boxes."""

    images: list[Array]
    boxes: list[Array]


class Task(NamedTuple):
    """Images to learn from and to find things in; how often dlib doubles them to find them."""

    train: Scenes
    test: Scenes
    doubled: int


def unpacked(folder: Path | None, name: str, target: Path) -> Path | None:
    """The folder of a set, unpacked; None, and a line that says so, if it is missing."""
    archive = (folder or Path()) / name / f"{name}.tar.gz"
    if folder is None or not archive.exists():
        print(f"{name} is left out: " + (f"no {archive}" if folder else "no --data"))
        return None
    with tarfile.open(archive) as packed:
        packed.extractall(target, filter="data")
    return target / name


def read(path: Path) -> Array:
    """The pixels of an image."""
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


def faces(folder: Path) -> Task:
    """dlib's example."""
    parts = []
    for part in ("training", "testing"):
        records = read_boxes(folder / f"{part}.xml")
        images = [read(record.path) for record in records]
        parts.append(Scenes(images, [np.asarray(record.boxes) for record in records]))
    return Task(*parts, doubled=1)


def mosaics(folder: Path, people: int, others: int, seed: int = 0) -> Scenes:
    """Windows with and without people side by side, in random order."""
    rng = np.random.default_rng(seed)
    windows = []
    for kind, count in (("pos", people), ("neg", others)):
        paths = sorted((folder / kind).iterdir())
        paths = paths[::2] if kind == "pos" else paths  # every other one is a mirror image
        windows += [(paths[i], kind == "pos") for i in rng.permutation(len(paths))[:count]]
    order = rng.permutation(len(windows))
    scenes = Scenes([], [])
    for begin in range(0, len(order) - 17, 18):
        image, boxes = np.zeros((3 * 128, 6 * 64, 3), np.uint8), []
        for place, i in enumerate(order[begin : begin + 18]):
            y, x = 128 * (place // 6), 64 * (place % 6)
            path, person = windows[i]
            image[y : y + 128, x : x + 64] = read(path)
            if person:
                boxes.append([x + 16, y + 16, x + 48, y + 112])
        scenes.images.append(image)
        scenes.boxes.append(np.array(boxes, float).reshape(-1, 4))
    return scenes


def blood(folder: Path, part: str, label: str, most: int | None) -> Scenes:
    """Cells of one kind."""
    wanted = (folder / "ImageSets" / "Main" / f"{part}.txt").read_text().split()[:most]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoxWarning)  # two boxes are empty
        records = {Path(r.path).stem: r for r in read_boxes(folder / "Annotations")}
    scenes = Scenes([], [])
    for name in wanted:
        chosen = np.asarray(records[name].labels) == label
        scenes.images.append(read(folder / "JPEGImages" / f"{name}.jpg"))
        scenes.boxes.append(np.asarray(records[name].boxes, float).reshape(-1, 4)[chosen])
    return scenes


def processor_seconds(call: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the seconds of the processor that it took."""
    begin = time.process_time()
    result = call()
    return result, time.process_time() - begin


def dlib_options(C: float) -> Any:
    """Mirrored images, one thread."""
    options = dlib.simple_object_detector_training_options()
    options.C, options.num_threads, options.add_left_right_image_flips = C, 1, True
    return options


def train_dlib(scenes: Scenes, options: Any) -> Any:
    """dlib's detector."""
    boxes = [
        [dlib.rectangle(int(b[0]), int(b[1]), int(b[2]) - 1, int(b[3]) - 1) for b in own]
        for own in scenes.boxes
    ]
    return dlib.train_simple_object_detector(scenes.images, boxes, options)


def dlib_runner(detector: Any) -> Any:
    """The same detector with scores."""
    with tempfile.NamedTemporaryFile(suffix=".svm") as file:
        detector.save(file.name)
        return dlib.fhog_object_detector(file.name)


def dlib_boxes(runner: Any, image: Array, doubled: int) -> Boxes:
    """What dlib finds."""
    found, scores, _ = runner.run(image, doubled, LOW)
    coordinates = [[r.left(), r.top(), r.right() + 1, r.bottom() + 1] for r in found]
    return Boxes(np.array(coordinates, float).reshape(-1, 4), scores=np.array(scores))


def best_of_dlib(task: Task) -> tuple[dict[str, float], Any]:
    """Figures of dlib's detector of the best C, and what runs it."""
    best: tuple[dict[str, float], Any] = ({"AP": -1.0}, None)
    for C in COSTS:
        detector, seconds = processor_seconds(lambda C=C: train_dlib(task.train, dlib_options(C)))
        runner = dlib_runner(detector)
        found = [dlib_boxes(runner, image, task.doubled) for image in task.test.images]
        figures = {"AP": average_precision(found, task.test.boxes), "training, s": seconds, "C": C}
        print(f"dlib, C={C}: {figures}", flush=True)
        best = max(best, (figures, runner), key=lambda pair: pair[0]["AP"])
    return best


def trained(task: Task, **parameters: Any) -> tuple[dict[str, float], DeformableDetector]:
    """Figures of one of our detectors, and itself."""
    model = DeformableDetector(random_state=0, **parameters)
    _, seconds = processor_seconds(lambda: model.fit(*task.train))
    matches = match_boxes(model.predict(task.test.images, OWN_LOW), task.test.boxes)
    precision, recall = matches.at(model.threshold_)
    figures = {
        "AP": matches.average_precision,
        "precision at the threshold": precision,
        "recall there": recall,
        "training, s": seconds,
        "cells, MB": model.memory_ / 1e6,
        "unreachable boxes": len(model.unreachable_),
    }
    print(f"{parameters}: {figures}", flush=True)
    return figures, model


def compare(task: Task, repeats: int) -> dict[str, dict[str, float]]:
    """A row for each of ours and for dlib."""
    kinds: dict[str, dict[str, Any]] = {OWN: {}, PARTS: {"n_parts": 6}, WORDS: {"n_words": 256}}
    rows: dict[str, dict[str, float]] = {}
    contenders: dict[str, Callable[[], object]] = {}
    images = task.test.images
    for name, parameters in kinds.items():
        rows[name], model = trained(task, **parameters)
        contenders[name] = lambda model=model: [model.predict([image]) for image in images]
    if dlib is not None:
        rows[PEER], runner = best_of_dlib(task)
        contenders[PEER] = lambda: [runner.run(image, task.doubled, 0.0) for image in images]
    for name, timing in harness.compare(contenders, repeats).items():
        rows[name]["finding, ms"] = 1e3 * timing.best / len(images)
    return rows


def claims_of(
    name: str, rows: dict[str, dict[str, float]], training: float
) -> list[dict[str, Any]]:
    """What is required of a comparison."""
    own, words = rows[OWN], rows[WORDS]
    claims = [
        claim(f"AP lost by 256 words, {name}", own["AP"] - words["AP"], 0.02, "<=", unit=""),
        claim(f"AP lost by parts, {name}", own["AP"] - rows[PARTS]["AP"], 0.01, "<=", unit=""),
        claim(f"memory of cells, {name}", own["cells, MB"] / words["cells, MB"], 120, unit="×"),
    ]
    if PEER in rows:
        peer = rows[PEER]
        speed = {OWN: 0.8, PARTS: 1.2}
        claims += [
            claim(f"time to find, {kind}, {name}", rows[kind]["finding, ms"] / peer["finding, ms"],
                  most, "<=", against=PEER, headline=kind == OWN)
            for kind, most in speed.items()
        ]  # fmt: skip
        claims += [
            claim(f"training time, {name}", own["training, s"] / peer["training, s"], training,
                  "<=", against=PEER),
            claim(f"AP, {name}", own["AP"] - peer["AP"], -0.01, against=PEER, unit=" more"),
        ]  # fmt: skip
    return claims


def refused(scenes: Scenes) -> str:
    """Whether dlib takes boxes: it looks at them first, and then has nothing to reach."""
    options = dlib_options(1)
    options.epsilon = 1e9
    try:
        train_dlib(scenes, options)
    except RuntimeError as error:
        return " ".join(str(error).split())
    return "accepted"


def blood_cells(folder: Path, quick: bool) -> dict[str, dict[str, Any]]:
    """Average precision of all kinds of cells, and what dlib says of their boxes."""
    table = {}
    for label, setting in CELLS.items():
        most = 20 if quick else setting["images"]
        train = blood(folder, "trainval", label, most)
        test = blood(folder, "test", label, 20 if quick else None)
        figures, _ = trained(Task(train, test, 0), **setting["parameters"])
        boxes_of = Scenes(train.images[:40], train.boxes[:40]) if most else train
        table[label] = figures | {"dlib": "not run" if dlib is None else refused(boxes_of)}
    return table


def many_at_once(task: Task, repeats: int) -> float:
    """How many times faster many detectors are at once than one after the other."""
    costs = (0.01, 0.02, 0.03, 0.04, 0.05)
    some = [DeformableDetector(C=C, n_words=256, random_state=0).fit(*task.train) for C in costs]
    models = [some[k % len(some)] for k in range(MANY)]
    image = task.test.images[0]
    times = harness.compare(
        {
            "at once": lambda: run_all(models, image),
            "each": lambda: [model.predict([image]) for model in models],
        },
        repeats,
    )
    return times["each"].best / times["at once"].best


def platelets(folder: Path, quick: bool) -> dict[str, dict[str, Any]]:
    """The cells whose boxes dlib takes: both detectors learned from the same images."""
    train = blood(folder, "trainval", "Platelets", 4 if quick else DLIB_IMAGES)
    task = Task(train, blood(folder, "test", "Platelets", 20 if quick else None), 1)
    rows: dict[str, dict[str, Any]] = {OWN: trained(task)[0]}
    if dlib is not None:
        rows[PEER] = best_of_dlib(task)[0]
    return rows


class Measured(NamedTuple):
    """What one part of the benchmark has found."""

    figures: dict[str, Any]
    claims: list[dict[str, Any]]


def of_faces(folder: Path, quick: bool) -> Measured:
    """Faces, and many detectors at once."""
    repeats = 2 if quick else 7
    task = faces(folder)
    rows = compare(task, repeats)
    claims = claims_of("faces", rows, 1.0)
    claims.append(claim("AP, faces", rows[OWN]["AP"], 0.99, unit=""))
    faster = many_at_once(task, repeats)
    claims.append(claim(f"{MANY} detectors at once", faster, 5, against="one after the other"))
    return Measured({"faces": rows}, claims)


def of_people(folder: Path, quick: bool) -> Measured:
    """People."""
    people, others = ((24, 12), (24, 12)) if quick else ((204, 84), (150, 300))
    train, test = mosaics(folder / "train", *people), mosaics(folder / "test", *others)
    rows = compare(Task(train, test, 1), 2 if quick else 7)
    return Measured({"people": rows}, claims_of("people", rows, 0.5))


def of_blood(folder: Path, quick: bool) -> Measured:
    """All blood cells."""
    table = blood_cells(folder, quick)
    claims = [claim("AP, white blood cells", table["WBC"]["AP"], 0.8, unit="")]
    return Measured({"blood cells": table}, claims)


def of_platelets(folder: Path, quick: bool) -> Measured:
    """Platelets against dlib."""
    rows = platelets(folder, quick)
    claims = []
    if PEER in rows:
        own, peer = rows[OWN], rows[PEER]
        claims = [
            claim("AP, platelets", own["AP"] - peer["AP"], -0.01, against=PEER, unit=" more"),
            claim("training time, platelets", own["training, s"] / peer["training, s"], 0.5, "<=",
                  against=PEER),
        ]  # fmt: skip
    return Measured({"platelets": rows}, claims)


PARTS_OF_RUN: dict[str, tuple[str, Callable[[Path, bool], Measured]]] = {
    "faces": ("dlib_faces", of_faces),
    "people": ("inria_windows", of_people),
    "blood": ("bccd", of_blood),
    "platelets": ("bccd", of_platelets),
}


def with_recorded(found: Measured) -> Measured:
    """What was measured now, in the place of the same of the last run."""
    path = harness.RESULTS / "detect.json"
    last = json.loads(path.read_text("utf-8")) if path.exists() else {"figures": {}, "claims": []}
    known = {(c["what"], c["against"]): c for c in last["claims"]}
    known |= {(c["what"], c["against"]): c for c in found.claims}
    return Measured(last["figures"] | found.figures, [*known.values()])


def main() -> None:
    """Measure and record."""
    parser = harness.parser(__doc__)
    parser.add_argument("--part", choices=PARTS_OF_RUN, help="measure this alone, keep the rest")
    args = parser.parse_args()
    harness.keep_memory()
    found = Measured({}, [])
    with harness.threads(1), tempfile.TemporaryDirectory() as name:
        for part, (data, measure) in PARTS_OF_RUN.items():
            folder = unpacked(args.data, data, Path(name)) if args.part in (None, part) else None
            if folder:
                own = measure(folder, args.quick)
                found = Measured(found.figures | own.figures, found.claims + own.claims)
    if args.part:
        found = with_recorded(found)
    text = TEXT + (PLATELETS_TEXT if "platelets" in found.figures else "")
    harness.record("detect", *found, title="Detectors", text=text, quick=args.quick)


if __name__ == "__main__":
    main()
