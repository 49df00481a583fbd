"""Training on product-quantized codes: against BLAS on the uncompressed matrix, one thread."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
from fisher import fisher_vectors
from harness import claim, compare

from hilbin._core import core
from hilbin.maps import PQCodes, ProductQuantizer
from hilbin.solvers import Hinge, Risk, bundle
from hilbin.solvers.coded import PQLookup, PQRows
from hilbin.solvers.risk import MatrixRows

G, WORDS, CLASSES = 8, 256, 20
LAM = 1e-5  # of the mean loss: far from solved after the passes that are timed
KINDS = ("delayed", "immediate", "BLAS")
TEXT = (
    "5000 rows of 40,960 float32 numbers, as large as Fisher vectors: 5120 parts of 8 "
    "components, 256 words each, random; and the Fisher vectors of all 4485 images of scene15, "
    "16,384 numbers each, with the words of a product quantizer. The matrix of the peer is what "
    "the codes decode to, so that all solve the same problem. One thread, best of interleaved "
    "rounds. Scoring is look-ups in tables that are there, against sgemv; the gradient is sums "
    "into tables, against the transposed sgemv. A product with the words, forwards (expansion) "
    "and backwards (reduction), is a row of its own, and part of what is called whole. An "
    "iteration of the bundle solver has all of that and the solver's own work; the three kinds of "
    "rows make the same iterations. Immediate expansion decodes tiles of 512 rows x 256 numbers "
    "and multiplies them by BLAS. Per value the codes are an eighth of a byte instead of four: "
    "BLAS waits for memory, look-ups for the first cache. The words take as much as 8192 rows of "
    "codes, however many rows there are: memory is given without and with them."
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
    """PQCodes, what they decode to, and random classes."""

    codes: PQCodes
    X: Any
    Y: Any

    @classmethod
    def of(cls, rows: int, blocks: int, classes: int = CLASSES) -> "Setting":
        """At random; the classes depend on the rows a little."""
        rng = np.random.default_rng(0)
        words = rng.normal(size=(blocks, WORDS, G)).astype(np.float32)
        words /= np.float32(np.sqrt(G * blocks))
        groups = rng.integers(0, WORDS, (-(-blocks // 32), rows, 32)).astype(np.uint8)
        groups[-1, :, (blocks - 1) % 32 + 1 :] = 0
        codes = PQCodes(groups, words, G * blocks)
        X = codes.decode()
        scores = X @ rng.normal(size=(X.shape[1], classes)).astype(np.float32)
        return cls(codes, X, np.where(scores + rng.normal(size=scores.shape) > 0, 1.0, -1.0))

    @classmethod
    def of_images(cls, folder: Path | None, quick: bool) -> "Setting | None":
        """Fisher vectors, every class against the others; None without the images."""
        split = fisher_vectors(folder, 6 if quick else None)
        if split is None:
            return None
        quantizer = ProductQuantizer(G, n_words=16 if quick else WORDS, random_state=0)
        codes = quantizer.fit(split.X).transform(np.concatenate([split.X, split.X_test]))
        y = np.concatenate([split.y, split.y_test])
        return cls(codes, codes.decode(), np.where(y[:, None] == np.unique(y), 1.0, -1.0))

    def rows(self, kind: str) -> PQRows | MatrixRows:
        """As the solver sees them."""
        if kind == "BLAS":
            return MatrixRows(self.X)
        return PQRows(self.codes.groups, self.codes.words, self.X.shape[1], expansion=kind)  # type: ignore[arg-type]

    def passes(self, kind: str, classes: int, count: int) -> Callable[[], object]:
        """So many iterations of the solver, from the start."""
        rows, n = self.rows(kind), len(self.X)
        risk = Risk(rows, Hinge(), self.Y[:, :classes], 1 / n)

        def run() -> None:
            done = bundle(risk, LAM, tol=1e-12, max_iter=count).n_iter
            assert done == count, f"{done} passes instead of {count}"

        return run


def parts(setting: Setting, sizes: Sizes, classes: int) -> dict[str, dict[str, float]]:
    """Seconds of every part of an iteration."""
    rng = np.random.default_rng(1)
    codes, X = setting.codes, setting.X
    V = rng.normal(size=(classes, X.shape[1])).astype(np.float32)
    S = rng.normal(size=(len(X), classes)).astype(np.float32)
    columns = np.ascontiguousarray(codes.words.swapaxes(1, 2))
    tables = PQLookup(codes.words, V).products[0]
    width = tables.shape[2]
    weights = np.zeros((len(columns), G, width), np.float32)
    out = np.zeros((len(X), width), np.float32)
    rows, none = setting.rows("delayed"), codes.groups[:, :0]
    calls: dict[str, Callable[[], object]] = {
        "look-ups": lambda: core.word_scores(codes.groups, tables, out),
        "expansion": lambda: core.expand_words(columns, weights, tables),
        "reduction": lambda: core.coded_sums(none, out[:0], columns, weights),
        "scores, whole": lambda: rows.scores(V),
        "gradient, whole": lambda: rows.gradient(S),
        "BLAS scores": lambda: X @ V.T,
        "BLAS gradient": lambda: S.T @ X,
    }
    times = compare(calls, 3 * sizes.rounds, patience=60)
    return {name: {"ms": 1e3 * t.best} for name, t in times.items()}


def ratios(table: dict[str, dict[str, float]]) -> dict[str, float]:
    """How much faster than BLAS."""
    ms = {name: row["ms"] for name, row in table.items()}
    blas, own = ms["BLAS scores"] + ms["BLAS gradient"], ms["scores, whole"] + ms["gradient, whole"]
    return {
        "scores": ms["BLAS scores"] / ms["look-ups"],
        "scores, whole": ms["BLAS scores"] / ms["scores, whole"],
        "gradient": ms["BLAS gradient"] / (ms["gradient, whole"] - ms["reduction"]),
        "gradient, whole": ms["BLAS gradient"] / ms["gradient, whole"],
        "both, whole": blas / own,
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


def measured(name: str, setting: Setting, sizes: Sizes) -> tuple[dict[str, Any], list[Any]]:
    """Tables and claims of one setting."""
    many = setting.Y.shape[1]
    tables = {c: parts(setting, sizes, c) for c in (1, many)}
    faster = {c: ratios(table) for c, table in tables.items()}
    solver = {c: iterations(setting, sizes, c) for c in (1, many)}
    codes, plain = setting.codes, setting.X.nbytes
    figures: dict[str, Any] = {
        f"{name}: parts, classes: {c}": table for c, table in tables.items()
    } | {
        f"{name}: faster than BLAS": {f"classes: {c}": row for c, row in faster.items()},
        f"{name}: an iteration of the solver, ms": {f"classes: {c}": r for c, r in solver.items()},
        f"{name}: memory, MB": {
            "float32": plain / 1e6, "codes": codes.nbytes / 1e6, "words": codes.words.nbytes / 1e6,
            "times smaller, with the words": plain / (codes.nbytes + codes.words.nbytes),
        },
    }  # fmt: skip
    one, all_ = solver[1], solver[many]
    claims = [
        claim(f"{name}, scores", faster[1]["scores"], 4, against="sgemv"),
        claim(f"{name}, gradient", faster[1]["gradient"], 2.7, against="sgemv"),
        claim(f"{name}, scores of {many} classes", faster[many]["scores, whole"], 3,
              against="sgemm"),
        claim(f"{name}, an iteration of the bundle solver", one["BLAS"] / one["delayed"], 2.7,
              against="the same solver on BLAS", headline=True),
        claim(f"{name}, an iteration, {many} classes", all_["BLAS"] / all_["delayed"], 3,
              against="the same solver on BLAS"),
        claim(f"{name}, delayed expansion, an iteration", one["immediate"] / one["delayed"], 10,
              against="blocked immediate expansion"),
        claim(f"{name}, memory of the rows", plain / codes.nbytes, 32, against="float32"),
    ]  # fmt: skip
    return figures, claims


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sizes = QUICK if args.quick else Sizes()
    figures: dict[str, Any] = dict(sizes._asdict())
    claims: list[Any] = []
    with harness.threads(1):
        for name, make in (
            ("Random codes", lambda: Setting.of(sizes.rows, sizes.blocks)),
            ("Codes of Fisher vectors", lambda: Setting.of_images(args.data, args.quick)),
        ):
            setting = make()
            if setting is not None:
                tables, held = measured(name, setting, sizes)
                figures |= tables
                claims += held
            del setting
        grown = {what: growth(what, sizes) for what in ("rows", "blocks", "classes")}
    plots = [plot_of(what, *each) for what, each in grown.items()]
    harness.record("pq", figures, claims, title="Product quantization: speed", text=TEXT,
                   plots=plots, quick=args.quick)  # fmt: skip


if __name__ == "__main__":
    main()
