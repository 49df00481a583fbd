"""How fast images become words and descriptors: the compiled loops against other libraries.

One thread, images of 256 x 256. VLFeat is called through its shared library, so that no Python of a
wrapper is in its time; the loops of hilbin fill arrays that are there, as VLFeat's do.
"""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

import harness
import numpy as np
import vlfeat
from data import Array
from harness import Timing, claim, compare

from hilbin._core import core

try:
    import faiss
except ImportError:
    faiss = None
try:
    from skimage.feature import local_binary_pattern
except ImportError:
    local_binary_pattern = None

SIFT = ((4, 8), (8, 8), (4, 4))  # bin size, step
CELLS = (8, 4)
WORDS, DIMENSION = 1024, 128
OURS = "hilbin"
TEXT = (
    "One thread, float32 or bytes, best of interleaved rounds over a batch of images of 256 x 256 "
    "whose spectrum falls as that of photographs does. Smoothing before dense SIFT is in nobody's "
    "time. VLFeat makes the same descriptors (checked in the run): dense SIFT with a flat window, "
    "HOG of the variant UoCTTI. CENTRIST is the census transform and its histogram, of the whole "
    "image or of 4 x 4 cells; scikit-image's uniform LBP is the nearest thing it has, without a "
    "histogram. The nearest of 1024 centers in 128 dimensions is compared with faiss IndexFlatL2; "
    "the centers are packed in every call. What is not installed is left out."
)

Times = dict[str, Timing]


class Sizes(NamedTuple):
    """How much is measured."""

    side: int = 256
    images: int = 2
    points: tuple[int, ...] = (1000, 4096, 100_000)
    rounds: int = 60


QUICK = Sizes(side=64, images=2, points=(100, 500), rounds=2)


def scenes(count: int, side: int, channels: int = 1) -> Array:
    """Noise whose amplitude falls as one over the frequency, in bytes."""
    rng = np.random.default_rng(0)
    rows, columns = np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)
    falling = 1 / np.maximum(np.hypot(rows, columns), 1 / side)
    noise = np.fft.rfft2(rng.normal(size=(count, channels, side, side))) * falling
    waves = np.fft.irfft2(noise, s=(side, side))
    scaled = 128 + 45 * waves / waves.std(axis=(2, 3), keepdims=True)
    made = np.moveaxis(np.clip(scaled, 0, 255).astype(np.uint8), 1, 3)
    return np.ascontiguousarray(made[..., 0] if channels == 1 else made)


def for_each(call: Callable[[Any], object], images: Any) -> Callable[[], None]:
    def run() -> None:
        for image in images:
            call(image)

    return run


def measure_sift(
    vl: vlfeat.VLFeat | None, images: Array, bin_size: int, step: int, n: int
) -> Times:
    """Dense SIFT of all images."""
    shape = images.shape[1], images.shape[2]
    frames = int(np.prod(core.dense_sift_grid(*shape, bin_size, step)))
    descriptors, norms = np.empty((frames, 128), np.float32), np.empty(frames, np.float32)

    def ours(image: Array) -> None:
        core.dense_sift(image, bin_size, step, descriptors, norms)

    calls = {OURS: for_each(ours, images)}
    if vl:
        theirs = vl.dense_sift(shape, bin_size, step)
        theirs.process(images[0])
        ours(images[0])
        if np.vecdot(theirs.descriptors(), descriptors).mean() < 0.9999:
            raise RuntimeError("VLFeat's descriptors are others")
        calls["VLFeat"] = for_each(theirs.process, images)
    return compare(calls, n)


def measure_hog(vl: vlfeat.VLFeat | None, images: Array, cell: int, rounds: int) -> Times:
    """FHOG of all images, gray or in color; HOG beside it."""
    rows, columns = core.hog_grid(*images.shape[1:3], cell)
    cells = np.empty((rows, columns, 31), np.float32)
    blocks = np.empty((rows - 1, columns - 1, 36), np.float32)
    calls = {
        OURS: for_each(lambda image: core.fhog(image, cell, cells), images),
        "hilbin, HOG": for_each(lambda image: core.hog(image, cell, blocks), images),
    }
    if vl:
        planes = [np.ascontiguousarray(np.moveaxis(np.atleast_3d(i), 2, 0)) for i in images]
        theirs = vl.fhog(planes[0], cell)
        core.fhog(images[0], cell, cells)
        np.testing.assert_allclose(np.moveaxis(theirs, 0, 2), cells, atol=1e-3)
        calls["VLFeat"] = for_each(lambda image: vl.fhog(image, cell), planes)
    return compare(calls, rounds)


def measure_codes(images: Array, rounds: int) -> Times:
    """Pixel words and their histograms."""
    side = images.shape[1] - 2
    codes = np.empty((side, side), np.uint8)
    zeros = np.zeros(side, np.int32)
    grid = (np.arange(side, dtype=np.int32) * 4) // side
    one, cells = np.zeros((1, 256), np.float32), np.zeros((16, 256), np.float32)
    parts: dict[str, Callable[[Array], None]] = {
        "census": lambda image: core.census(image, codes),
        "histogram": lambda image: core.count_cells(codes, zeros, zeros, 1, 256, one),
        "16 histograms": lambda image: core.count_cells(codes, grid, grid, 4, 256, cells),
        "uniform LBP": lambda image: core.lbp(image, codes, True),
    }

    def both(first: str, second: str) -> Callable[[], None]:
        return for_each(lambda image: (parts[first](image), parts[second](image)), images)

    calls = {name: for_each(call, images) for name, call in parts.items()}
    calls["CENTRIST"] = both("census", "histogram")
    calls["CENTRIST, 4 x 4 cells"] = both("census", "16 histograms")
    if local_binary_pattern is not None:
        calls["scikit-image LBP"] = for_each(
            lambda image: local_binary_pattern(image, 8, 1, method="nri_uniform"), images
        )
    return compare(calls, rounds, patience=60)


def measure_nearest(points: int, rounds: int) -> Times:
    """The nearest center, and the five nearest, of every point."""
    rng = np.random.default_rng(0)
    P = rng.random((points, DIMENSION), np.float32)
    C = rng.random((WORDS, DIMENSION), np.float32)
    half_norms = np.vecdot(C, C) / 2
    words, scores = np.empty(points, np.int32), np.empty(points, np.float32)
    few = np.empty((points, 5), np.int32), np.empty((points, 5), np.float32)
    calls: dict[str, Callable[[], object]] = {
        OURS: lambda: core.nearest(P, C, half_norms, words, scores),
        "hilbin, 5 nearest": lambda: core.nearest_few(P, C, half_norms, 5, *few),
    }
    if faiss is not None:
        faiss.omp_set_num_threads(1)
        index = faiss.IndexFlatL2(DIMENSION)
        index.add(C)
        core.nearest(P, C, half_norms, words, scores)
        if (index.search(P, 1)[1][:, 0] != words).mean() > 1e-3:
            raise RuntimeError("faiss finds other centers")
        calls["faiss"] = lambda: index.search(P, 1)
        calls["faiss, 5 nearest"] = lambda: index.search(P, 5)
    return compare(calls, rounds, patience=40)


def rate_table(measured: dict[str, tuple[Times, int]], unit: str) -> dict[str, dict[str, Any]]:
    """How many a second, for every contender of every setting."""
    return {
        f"{what}: {name}": {unit: done / t.best, f"{unit} (median)": done / t.median}
        for what, (times, done) in measured.items()
        for name, t in times.items()
    }


def against(measured: dict[str, tuple[Times, int]], peer: str, title: str) -> list[dict[str, Any]]:
    """At least as fast as the peer in every setting."""
    ratios = {
        what: times[peer].best / times[OURS].best
        for what, (times, _) in measured.items()
        if peer in times
    }
    return harness.by_set(title, ratios, 1, against=peer, kind="settings")


def make_claims(sift: Any, hog: Any, codes: Times, nearest: Any, images: int) -> Any:
    """What is promised, beside what was measured."""
    claims = [
        *against(sift, "VLFeat", "Dense SIFT"),
        *against(hog, "VLFeat", "FHOG"),
        *against(nearest, "faiss", "Nearest of 1024 centers"),
    ]
    for what, (times, done) in hog.items():
        if what.endswith("cell 8"):
            claims.append(claim(f"FHOG, {what}", done / times[OURS].best, 500, unit=" images/s"))
    for what in ("CENTRIST", "CENTRIST, 4 x 4 cells"):
        claims.append(claim(what, images / codes[what].best, 2000, unit=" images/s"))
    return claims


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sizes = QUICK if args.quick else Sizes()
    vl = vlfeat.find()
    gray, color = (scenes(sizes.images, sizes.side, channels) for channels in (1, 3))
    floats = {"gray": gray.astype(np.float32), "color": color.astype(np.float32)}
    n, rounds = sizes.images, sizes.rounds
    with harness.threads(1):
        sift = {
            f"bin {b}, step {s}": (measure_sift(vl, floats["gray"], b, s, rounds), n)
            for b, s in SIFT
        }
        hog = {
            f"{kind}, cell {cell}": (measure_hog(vl, images, cell, rounds), n)
            for kind, images in floats.items()
            for cell in CELLS
        }
        codes = measure_codes(gray, rounds)
        nearest = {f"{p} points": (measure_nearest(p, rounds), p) for p in sizes.points}
    figures = {
        **sizes._asdict(),
        "VLFeat": "0.9.21" if vl else "not there",
        "faiss": version("faiss-cpu") if faiss is not None else "not there",
        "scikit-image": version("scikit-image") if local_binary_pattern else "not there",
        "Dense SIFT": rate_table(sift, "images / s"),
        "FHOG": rate_table(hog, "images / s"),
        "Codes of pixels": rate_table({"256 x 256": (codes, n)}, "images / s"),
        "Nearest centers": rate_table(nearest, "points / s"),
    }
    harness.record(
        "images_speed",
        figures,
        make_claims(sift, hog, codes, nearest, n),
        title="Words and descriptors of images: speed",
        text=TEXT,
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
