"""Training on product-quantised codes: against BLAS on the uncompressed matrix, one thread."""

from collections.abc import Callable
from typing import Any, NamedTuple

import harness
import numpy as np
from harness import claim, compare

from hilbin._core import core
from hilbin.maps import Codes
from hilbin.solvers import Hinge, MatrixRows, Risk, WordRows, bundle_risk

G, WORDS, CLASSES = 8, 256, 20
LAM = 1e-5  # of the mean loss: far from solved after the passes that are timed
KINDS = ("delayed", "immediate", "BLAS")
TEXT = (
    "5000 rows of 40,960 float32 numbers, as large as Fisher vectors: 5120 blocks of 8 "
    "components, 256 words each, random. The matrix of the peer is what the codes decode to, so "
    "that all solve the same problem. One thread, best of interleaved rounds. Scoring is look-ups "
    "in tables that are there, against sgemv; the gradient is sums into tables, against the "
    "transposed sgemv; a product with the words, forwards and backwards, is a row of its own. An "
    "iteration of the bundle solver has all of that and the solver's own work; the three kinds of "
    "rows make the same iterations. Immediate expansion decodes blocks of 512 rows x 256 numbers "
    "and multiplies them by BLAS. Per value the codes are an eighth of a byte instead of four: "
    "BLAS waits for memory, look-ups for the first cache."
)


class Sizes(NamedTuple):
    """How much is measured."""

    rows: int = 5000
    blocks: int = 5120
    rounds: int = 5
    passes: int = 8
    by_rows: tuple[int, ...] = (625, 1250, 2500, 5000, 10_000)
    by_blocks: tuple[int, ...] = (320, 640, 1280, 2560, 5120)
    by_classes: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    growth_rows: int = 5000
    growth_blocks: int = 1280


QUICK = Sizes(300, 64, 1, 2, (100, 200), (32, 64), (1, 4), 200, 32)


class Setting(NamedTuple):
    """Codes, what they decode to, and random classes."""

    codes: Codes
    X: Any
    Y: Any

    @classmethod
    def of(cls, rows: int, blocks: int, classes: int = CLASSES) -> "Setting":
        """At random; the classes depend on the rows a little."""
        rng = np.random.default_rng(0)
        words = rng.normal(size=(blocks, WORDS, G)).astype(np.float32)
        words /= np.float32(np.sqrt(G * blocks))
        chunks = rng.integers(0, WORDS, (-(-blocks // 32), rows, 32)).astype(np.uint8)
        chunks[-1, :, (blocks - 1) % 32 + 1 :] = 0
        codes = Codes(chunks, words, G * blocks)
        X = codes.decode()
        scores = X @ rng.normal(size=(X.shape[1], classes)).astype(np.float32)
        return cls(codes, X, np.where(scores + rng.normal(size=scores.shape) > 0, 1.0, -1.0))

    def rows(self, kind: str) -> WordRows | MatrixRows:
        """As the solver sees them."""
        if kind == "BLAS":
            return MatrixRows(self.X)
        return WordRows(self.codes.chunks, self.codes.words, self.X.shape[1], expansion=kind)  # type: ignore[arg-type]

    def passes(self, kind: str, classes: int, count: int) -> Callable[[], object]:
        """So many iterations of the solver, from the start."""
        rows, n = self.rows(kind), len(self.X)
        risk = Risk(rows, Hinge(), self.Y[:, :classes], 1 / n)

        def run() -> None:
            done = bundle_risk(risk, LAM, tol=1e-12, max_iter=count).n_iter
            assert done == count, f"{done} passes instead of {count}"

        return run


def parts(setting: Setting, sizes: Sizes, classes: int) -> dict[str, dict[str, float]]:
    """Seconds of every part of an iteration."""
    rng = np.random.default_rng(1)
    codes, X = setting.codes, setting.X
    n, blocks = len(X), len(codes.words)
    width = 1 if classes == 1 else -(-classes // 8) * 8
    V = rng.normal(size=(classes, X.shape[1])).astype(np.float32)
    S = rng.normal(size=(n, classes)).astype(np.float32)
    weights = np.zeros((blocks, G, width), np.float32)
    weights[:, :, :classes] = V.T.reshape(blocks, G, classes)
    slopes = np.zeros((n, width), np.float32)
    slopes[:, :classes] = S
    columns = np.ascontiguousarray(codes.words.swapaxes(1, 2))
    tables = np.empty((blocks, WORDS, width), np.float32)
    sums, out, reduced = np.zeros_like(tables), np.zeros((n, width), np.float32), weights.copy()
    core.expand_words(columns, weights, tables)
    rows = setting.rows("delayed")
    calls: dict[str, Callable[[], object]] = {
        "look-ups": lambda: core.word_scores(codes.chunks, tables, out),
        "sums": lambda: core.word_sums(codes.chunks, slopes, sums),
        "expansion": lambda: core.expand_words(columns, weights, tables),
        "reduction": lambda: core.reduce_words(columns, sums, reduced),
        "scores, whole": lambda: rows.scores(V),
        "gradient, whole": lambda: rows.gradient(S),
        "BLAS scores": lambda: X @ V.T,
        "BLAS gradient": lambda: S.T @ X,
    }
    times = compare(calls, sizes.rounds, patience=60)
    return {name: {"ms": 1e3 * t.best} for name, t in times.items()}


def ratios(table: dict[str, dict[str, float]]) -> dict[str, float]:
    """How much faster than BLAS."""
    ms = {name: row["ms"] for name, row in table.items()}
    own = ms["look-ups"] + ms["sums"] + ms["expansion"] + ms["reduction"]
    return {
        "scores": ms["BLAS scores"] / ms["look-ups"],
        "scores, whole": ms["BLAS scores"] / ms["scores, whole"],
        "gradient": ms["BLAS gradient"] / ms["sums"],
        "gradient, whole": ms["BLAS gradient"] / ms["gradient, whole"],
        "all four": (ms["BLAS scores"] + ms["BLAS gradient"]) / own,
    }


def iterations(setting: Setting, sizes: Sizes, classes: int) -> dict[str, float]:
    """Milliseconds of an iteration of the solver on every kind of rows."""
    calls = {kind: setting.passes(kind, classes, sizes.passes) for kind in KINDS}
    times = compare(calls, max(1, sizes.rounds // 2), patience=60)
    return {kind: 1e3 * t.best / sizes.passes for kind, t in times.items()}


def growth(what: str, sizes: Sizes) -> tuple[list[int], dict[str, list[float]]]:
    """Milliseconds of an iteration by the number of rows, numbers per row, or classes."""
    x: list[int] = []
    curves: dict[str, list[float]] = {"delayed": [], "BLAS": []}
    for size in getattr(sizes, f"by_{what}"):
        rows = size if what == "rows" else sizes.growth_rows
        blocks = size if what == "blocks" else sizes.growth_blocks
        classes = size if what == "classes" else 1
        setting = Setting.of(rows, blocks, classes)
        calls = {kind: setting.passes(kind, classes, sizes.passes) for kind in curves}
        x.append(size * (G if what == "blocks" else 1))
        for kind, t in compare(calls, max(1, sizes.rounds // 2), patience=20).items():
            curves[kind].append(1e3 * t.best / sizes.passes)
    return x, curves


def plot_of(what: str, x: list[int], curves: dict[str, list[float]]) -> dict[str, Any]:
    """For :mod:`render`."""
    axis = {"rows": "rows", "blocks": "numbers per row", "classes": "classes"}[what]
    return {
        "name": f"pq-{what}",
        "title": f"One iteration of the bundle solver, by {axis}",
        "axis": axis,
        "height": "ms",
        "x": x,
        "log": True,
        "strong": ["delayed"],
        "panels": {"hinge loss": curves},
    }


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sizes = QUICK if args.quick else Sizes()
    figures: dict[str, Any] = dict(sizes._asdict())
    faster: dict[int, dict[str, float]] = {}
    with harness.threads(1):
        setting = Setting.of(sizes.rows, sizes.blocks)
        for classes in (1, CLASSES):
            table = parts(setting, sizes, classes)
            figures[f"Parts, {classes} classes"] = table
            faster[classes] = ratios(table)
        solver = {f"{c} classes": iterations(setting, sizes, c) for c in (1, CLASSES)}
        memory = setting.X.nbytes / setting.codes.nbytes
        del setting
        grown = {what: growth(what, sizes) for what in ("rows", "blocks", "classes")}
    figures["Faster than BLAS"] = {f"{c} classes": row for c, row in faster.items()}
    figures["An iteration of the solver, ms"] = solver
    one, many = solver["1 classes"], solver[f"{CLASSES} classes"]
    claims = [
        claim("Codes, scores", faster[1]["scores"], 4, against="sgemv"),
        claim("Codes, gradient", faster[1]["gradient"], 2.7, against="sgemv"),
        claim("Codes, scores of 20 classes", faster[CLASSES]["scores"], 3, against="sgemm"),
        claim("Codes, an iteration of the bundle solver", one["BLAS"] / one["delayed"], 2.7,
              against="the same solver on BLAS", headline=True),
        claim("Codes, an iteration, 20 classes", many["BLAS"] / many["delayed"], 3,
              against="the same solver on BLAS"),
        claim("Delayed expansion, an iteration", one["immediate"] / one["delayed"], 10,
              against="blocked immediate expansion"),
        claim("Memory of the rows", memory, 32, against="float32"),
    ]  # fmt: skip
    plots = [plot_of(what, *each) for what, each in grown.items()]
    harness.record("pq", figures, claims, title="Product quantisation: speed", text=TEXT,
                   plots=plots, quick=args.quick)  # fmt: skip


if __name__ == "__main__":
    main()
