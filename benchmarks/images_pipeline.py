"""From image files to rows: the features that ImageClassifier takes by default, end to end.

Photographs are drawn by code (their spectrum falls as that of photographs does) and saved as JPEG.
"""

import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import harness
from harness import claim, compare
from images_speed import scenes
from PIL import Image

from hilbin.auto.image_data import described, resolve, transformer
from hilbin.images import ImageFeatures
from hilbin.images.descriptors import ImageSample

SIDE, THREADS, MANY = 220, 2, 2000
TEXT = (
    f"JPEG files in color, the longer side {SIDE} pixels, every second one 3/4 as high. The "
    "features are those that ImageClassifier takes by default for 2,000 such files: words of SIFT "
    "and Fisher vectors at three scales, CENTRIST, colors, HOG and local binary patterns, "
    "sub-histograms of pyramids included, one row of all of them per image. Whole: reading, "
    "decoding, describing, digests of the files. Parts are timed alone, so that both kinds that "
    "need SIFT compute it; together they share it. Processor time, of all threads together, leaves "
    "out what other programs take; the claim about it is 60 images a second on two free cores. "
    "Learning is what has to be learned from the "
    "images before, codebook and mixture, with few descriptors: its time depends on their number "
    "and not on that of the images."
)


class Sizes(NamedTuple):
    """How much is measured."""

    images: int = 64
    descriptors: int = 20_000
    rounds: int = 4


QUICK = Sizes(8, 2000, 1)


def photographs(folder: Path, count: int) -> list[Path]:
    """JPEG files of two shapes."""
    files = []
    for i, scene in enumerate(scenes(count, SIDE, 3)):
        files.append(folder / f"{i:03}.jpg")
        Image.fromarray(scene[: SIDE * 3 // 4] if i % 2 else scene).save(files[-1], quality=90)
    return files


def learned(files: list[Path], sizes: Sizes) -> ImageFeatures:
    """The default features of many such files, learned from these."""
    sample = ImageSample(ImageSample.read(files).images, MANY)
    made: ImageFeatures = transformer(resolve("auto", sample), sample, seed=0, max_side=256)
    given = {"sift": "words__n_samples", "fisher": "n_samples"}
    for name, part in made.parts:
        if name in given:
            part.set_params(**{given[name]: sizes.descriptors})
    return made.set_params(n_jobs=THREADS).fit(files)


def part_table(features: ImageFeatures, files: list[Path], rounds: int) -> dict[str, Any]:
    """Processor milliseconds per image of reading and of every part alone, one thread."""
    images = [features.read(file) for file in files]
    calls: dict[str, Any] = {"reading": lambda: [features.read(file) for file in files]}
    for name, part in features.parts_:
        calls[name] = lambda p=part: [p.transform_image(image) for image in images]
    times = compare(calls, rounds, clock=time.thread_time)
    columns = {name: part._n_features_out for name, part in features.parts_}
    return {
        name: {"ms per image": 1e3 * t.best / len(files), "columns": columns.get(name)}
        for name, t in times.items()
    }


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    sizes = QUICK if args.quick else Sizes()
    with tempfile.TemporaryDirectory() as scratch:
        files = photographs(Path(scratch), sizes.images)
        with harness.threads(THREADS):
            features: list[ImageFeatures] = []
            learning = harness.seconds(lambda: features.append(learned(files, sizes)))
            calls = {
                f"{n} threads": lambda n=n: described(features[0], files, n_jobs=n)
                for n in (1, THREADS)
            }
            whole = compare(calls, sizes.rounds)
            busy = compare(calls, sizes.rounds, clock=time.process_time)
        with harness.threads(1):
            parts = part_table(features[0], files, sizes.rounds)
    rates = {name: sizes.images / t.best for name, t in whole.items()}
    ms = {name: row["ms per image"] for name, row in parts.items()}
    whole_ms = {name: 1e3 * t.best / sizes.images for name, t in busy.items()}
    claims = [
        claim("Default features of photographs of 220 pixels, two threads",
              rates[f"{THREADS} threads"], 60, unit=" images/s", headline=True),
        claim("Default features of photographs of 220 pixels, processor time of an image",
              whole_ms[f"{THREADS} threads"], 1e3 * THREADS / 60, "<=", unit=" ms"),
        claim("Default features, two threads", rates["2 threads"] / rates["1 threads"], 1.6,
              against="one"),
        claim("Color histogram, pyramid of 2 levels", ms["color"], 1, "<=", unit=" ms"),
        claim("Color histogram, time", ms["color"] / ms["centrist"], 4, "<=",
              against="CENTRIST, pyramid of 3 levels"),
    ]  # fmt: skip
    figures = {
        **sizes._asdict(),
        "columns": features[0]._n_features_out,
        "learning, s": learning,
        "Whole, images/s": rates,
        "Whole, processor time, ms per image": whole_ms,
        "Parts alone, one thread": parts,
    }
    harness.record(
        "images_pipeline", figures, claims, title="Photographs: from files to rows", text=TEXT,
        quick=args.quick,
    )  # fmt: skip
    print(rates, {name: round(value, 3) for name, value in ms.items()})


if __name__ == "__main__":
    main()
