"""Collections without labels: search by codes, montages, clusters; time, memory and quality."""

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array, histograms
from harness import claim
from pictures import pictures
from scipy.optimize import linear_sum_assignment
from sets import Labeled, labeled_sets, random_rows
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

from hilbin.auto import ImageCollection, TableCollection
from hilbin.auto.arrangement import arrange
from hilbin.dependence import cka
from hilbin.dependence.grid import default_shape

NEIGHBORS = 10
OURS, PEER = "kernelized sorting", "t-SNE and assignment"
TEXT = (
    "One thread. Search: 100,000 histograms, the 60,000 training pictures of fashion_mnist as "
    "pixels that sum to 1 and 40,000 of them with noise, in the feature space of the Hellinger "
    "kernel; queries are test pictures, one at a time, and the neighbors are exact for "
    "NearestNeighbors by brute force on the same features. Sorting: digits, and scene15 in the "
    "components of the features that ImageCollection takes by itself; the same rows for both. CKA "
    "is that of the rows and their cells under Gaussian kernels of median width; labels are those "
    "of two cells side by side, mean over seeds. Montages: photographs of scene15; and pictures of "
    "fashion_mnist as arrays, 20,000 of them, in a process of its own whose memory is the peak of "
    "features, clusters and the written page. Times are those of the processor, without the "
    "computation of features."
)


class Sizes(NamedTuple):
    """How much is measured."""

    rows: int = 100_000
    queries: int = 100
    repeats: int = 3
    seeds: int = 2
    photographs: int = 2000
    large: int = 20_000


def seconds(call: Callable[[], object]) -> float:
    """Seconds of the processor, one thread: what else the machine does hardly counts."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def fashion_mnist(folder: Path | None) -> Labeled | None:
    """The pictures as rows of pixels from 0 to 255, if they are there."""
    return labeled_sets(folder, ("fashion_mnist",)).get("fashion_mnist")


def searched(folder: Path | None, sizes: Sizes) -> tuple[Array, Array]:
    """Histograms to search, and to search for."""
    rng, fashion = np.random.default_rng(0), fashion_mnist(folder)
    if fashion is None:
        X = histograms(sizes.rows + sizes.queries, 784, density=0.5)
        return X[sizes.queries :], X[: sizes.queries]
    real = fashion.X[: sizes.rows]
    some = rng.integers(len(real), size=max(0, sizes.rows - len(real)))
    noisy = np.clip(real[some] * rng.uniform(0.7, 1.3, (some.size, real.shape[1])), 0, 255)
    X, Q = np.vstack([real, noisy]).astype(np.float32), fashion.X_test[: sizes.queries]
    return X / X.sum(axis=1, keepdims=True), Q / Q.sum(axis=1, keepdims=True)


def search(folder: Path | None, sizes: Sizes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Time of a query, and how many of the exact neighbors are found."""
    X, Q = searched(folder, sizes)
    found = TableCollection(kernel="hellinger").fit(X)
    Z = found.index_.features(found.rows_)
    ZQ = found.index_.features(found.encoder_.transform(Q).astype(np.float32))
    brute = NearestNeighbors(n_neighbors=NEIGHBORS, algorithm="brute").fit(Z)
    exact = brute.kneighbors(ZQ, return_distance=False)

    def each(ask: Any) -> Any:
        return lambda: [ask(i) for i in range(len(Q))]

    contenders = {
        "codes, then exact": each(lambda i: found.kneighbors(Q[i : i + 1], NEIGHBORS)),
        "codes alone": each(lambda i: found.kneighbors(Q[i : i + 1], NEIGHBORS, exact=False)),
        "NearestNeighbors, brute": each(lambda i: brute.kneighbors(ZQ[i : i + 1])),
    }
    rounds = [
        {name: seconds(ask) for name, ask in contenders.items()} for _ in range(sizes.repeats)
    ]
    times = {name: min(one[name] for one in rounds) for name in contenders}
    numbers = {
        "codes, then exact": found.kneighbors(Q, NEIGHBORS)[1],
        "codes alone": found.kneighbors(Q, NEIGHBORS, exact=False)[1],
        "NearestNeighbors, brute": exact,
    }
    table = {
        name: {
            "ms per query": 1e3 * times[name] / len(Q),
            "recall of 10": float(np.mean([np.isin(a, b).mean() for a, b in
                                           zip(exact, numbers[name], strict=True)])),
        }
        for name in times
    }  # fmt: skip
    kept = found.index_.codes.nbytes + found.index_.residuals.nbytes
    smaller = Z.nbytes / kept
    ours, brute_time = table["codes, then exact"], table["NearestNeighbors, brute"]["ms per query"]
    claims = [
        claim(f"query among {len(X):,} rows", ours["ms per query"], 20, "<=", unit="ms"),
        claim("query, speed", brute_time / ours["ms per query"], 1, ">=",
              against="NearestNeighbors, brute"),
        claim("recall of the 10 nearest, after re-ranking", ours["recall of 10"], 0.95, unit=""),
        claim("features are larger than codes", smaller, 32),
    ]  # fmt: skip
    return {"Search": table}, claims


def agreement(cells: Array, shape: tuple[int, int], y: Array) -> float:
    """Share of pairs of cells side by side whose labels are equal."""
    grid = np.full(shape, -1)
    grid[tuple(cells.T)] = np.unique(y, return_inverse=True)[1]
    pairs = [(grid[1:], grid[:-1]), (grid[:, 1:], grid[:, :-1])]
    return float(np.concatenate([(a == b)[(a >= 0) & (b >= 0)] for a, b in pairs]).mean())


def tsne_cells(rows: Array, shape: tuple[int, int], seed: int) -> Array:
    """Cells by an assignment to the places of t-SNE."""
    found = TSNE(random_state=seed).fit_transform(rows)[:, ::-1]
    found = (found - found.min(axis=0)) / np.ptp(found, axis=0)
    cells = np.argwhere(np.ones(shape, bool))
    apart = np.square(found[:, None] - cells / (np.array(shape) - 1)).sum(axis=2)
    found_cells: Array = cells[linear_sum_assignment(apart)[1]]
    return found_cells


def sorting(name: str, rows: Array, y: Array, seeds: int) -> tuple[dict[str, Any], list[Any]]:
    """Alignment and agreement of both ways to fill a grid."""
    shape, table = default_shape(len(rows)), {}
    methods = {
        OURS: lambda seed: arrange(rows, seed=seed).cells,
        PEER: lambda seed: tsne_cells(rows, shape, seed),
    }
    for method, sort in methods.items():
        begin = time.process_time()
        each = [sort(seed) for seed in range(seeds)]
        took = time.process_time() - begin
        table[method] = {
            "CKA": float(np.mean([cka(rows, cells.astype(float)) for cells in each])),
            "labels agree": float(np.mean([agreement(cells, shape, y) for cells in each])),
            "s": took / seeds,
        }
    mine, theirs = table[OURS], table[PEER]
    claims = [
        claim(f"CKA of rows and cells, {name}", mine["CKA"] / theirs["CKA"], 1, ">", against=PEER),
        claim(f"labels of neighbors agree, {name}", mine["labels agree"] - theirs["labels agree"],
              -0.02, against=PEER, unit=""),
    ]  # fmt: skip
    return {f"Sorting, {name}": table}, claims


def photographs(folder: Path | None, sizes: Sizes) -> tuple[dict[str, Any], list[Any]]:
    """A montage of photographs, and both ways to fill its grid."""
    with tempfile.TemporaryDirectory() as scratch:
        found = pictures(folder, "scene15", Path(scratch))
        if found is None:
            return {}, []
        files, y = [*found.train, *found.test], np.concatenate([found.y, found.y_test])
        some = random_rows(len(files), sizes.photographs)
        collection = ImageCollection().fit([files[i] for i in some])
        montage = seconds(lambda: collection.montage(Path(scratch) / "wall.html"))
        clusters = seconds(lambda: collection.cluster())
    figures, claims = sorting("scene15", collection.index_.decoded(), y[some], sizes.seeds)
    n = len(collection.names_)
    figures["Photographs"] = {f"{n:,} of scene15": {"montage, s": montage, "clusters, s": clusters}}
    return figures, [claim(f"montage of {n:,} photographs", montage, 60, "<=", unit="s"), *claims]


def large(images: Array, n: int) -> dict[str, float]:
    """Clusters and a montage of many pictures; in a process of its own, for its memory."""
    with harness.threads(1), tempfile.TemporaryDirectory() as scratch:
        collection = ImageCollection("centrist+hog").fit(images[:n])
        clusters = seconds(lambda: collection.cluster(report=Path(scratch) / "c.html"))
        montage = seconds(lambda: collection.montage(Path(scratch) / "wall.html"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"clusters, s": clusters, "montage, s": montage, "memory, GB": peak}


def many(folder: Path | None, sizes: Sizes) -> tuple[dict[str, Any], list[Any]]:
    """Time and memory of many pictures."""
    fashion = fashion_mnist(folder)
    if fashion is None:
        return {}, []
    images = fashion.X.reshape(-1, 28, 28).astype(np.uint8)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        found = pool.submit(large, images[: sizes.large], sizes.large).result()
    what = f"clusters and montage of {sizes.large:,} pictures, memory"
    figures = {"Many pictures": {f"{sizes.large:,} of fashion_mnist": found}}
    return figures, [claim(what, found["memory, GB"], 2, "<=", unit="GB")]


def main() -> None:
    """Measure and record."""
    args = harness.parser(__doc__).parse_args()
    sizes = Sizes(3000, 20, 1, 1, 60, 300) if args.quick else Sizes()
    figures: dict[str, Any] = {}
    claims: list[dict[str, Any]] = []
    with harness.threads(1):
        X, y = load_digits(return_X_y=True)
        digits = TableCollection(kernel="hellinger").fit(X / X.sum(axis=1, keepdims=True))
        for figure, claimed in (
            search(args.data, sizes),
            sorting("digits", digits.index_.decoded(), y, sizes.seeds),
            photographs(args.data, sizes),
            many(args.data, sizes),
        ):
            figures |= figure
            claims += claimed
    harness.record(
        "unlabeled", figures, claims, title="Without labels: search, montages and clusters",
        text=TEXT, quick=args.quick,
    )  # fmt: skip


if __name__ == "__main__":
    main()
