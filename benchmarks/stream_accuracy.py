"""How well models that learn from sums classify, on random features of exponential chi-squared.

With principal components and without, and against scikit-learn's learners of large sets.
"""

import json
import math
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array, arrays
from harness import claim
from images import clothes
from sets import Labeled, labeled_sets
from sklearn.decomposition import IncrementalPCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import AdditiveChi2Sampler, Nystroem, RBFSampler
from sklearn.linear_model import RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline

from hilbin.estimators import MapRidgeClassifier
from hilbin.images import FHOG
from hilbin.kernels import Chi2, Exponential
from hilbin.maps import FourierMap

KERNEL = Exponential(Chi2(), gamma="mean")
SETS = ("usps", "mfeat", "fashion_mnist", "shuttle", "ijcnn1")
OVERSAMPLED = 3  # times the dimensions, before PCA
PLAIN, ORTHOGONAL, PCA, JOINED, ALL = "D", "D, orthogonal", "PCA", "PCA, test rows too", "3D"
ACCURACY, GAINS, PEERS = "PCA: accuracy, %", "PCA: points gained", "Peers: fashion_mnist"
GAIN, JOINED_GAIN = "PCA over D", "test rows over PCA"
SIDE, CELL = 56, 8
THREADS = 1
PENALTY = 0.1
SGD_ALPHA = 1e-5
PATIENCE = 60  # seconds of a fit that is not repeated
OWN = "hilbin"
TEXT = (
    "PCA: MapRidgeClassifier, alpha='auto', on FourierMap(Exponential(Chi2(), gamma='mean')) "
    "with independent frequencies: D features; 3D features reduced to D dimensions by PCA; the "
    "same with the test rows, unlabeled, in the PCA (the map is the same, fitted to the training "
    "rows); and, for comparison, D features of orthogonal frequencies, and all 3D features. A "
    "model on D components of 3D features costs as much per prediction as one on 3D. Mean and "
    "standard deviation of 5 seeds, gains paired by seed; a claim is about the least gain among "
    "the D below the number of training rows. At most 10000 random rows to train on and to test "
    "on; every column scaled to [0, 1] by the training rows, and test values below cut off. "
    "leaves100: its three descriptions side by side, every other leaf to train on. (mfeat has two "
    "training rows twice: there, on more features than rows, generalized cross-validation takes "
    "the smallest penalty, which costs the 1200 features of D = 400 some 3 points.) "
    "Peers: all 60000 training images of fashion_mnist, as pixels over 255 and as Felzenszwalb's "
    "HOG of the image at 56 x 56 pixels, cells of 8; rows in float32, one thread for all. Seconds "
    "are those of the fit to these rows, the better of two rounds in turn if it takes less than a "
    "minute. hilbin: MapRidgeClassifier, alpha=0.1, on FourierMap of structured frequencies "
    "and the same kernel as above. scikit-learn's Nystroem has that kernel, its gamma given, or "
    "RBF with the gamma of SVC's 'scale', then SGDClassifier(alpha=1e-5); 1e-6 takes twice the "
    "time and gains 0.3 points at most. IncrementalPCA, then RidgeClassifier: of the rows (300 "
    "components, default penalty), or of AdditiveChi2Sampler and RBFSampler (1250 features of the "
    "same kernel, 500 components, penalty 0.1). Scales and penalties of hilbin and of Nystroem "
    "were chosen on 10000 of the training rows; those of IncrementalPCA were not tuned. A claim "
    "holds if a hilbin model is both more accurate and faster; the figure is how many times as "
    "fast the fastest is that is more accurate, and 0 if there is none."
)

Table = dict[str, dict[str, Any]]


class Sizes(NamedTuple):
    """How much is measured."""

    dimensions: tuple[int, ...] = (200, 400, 800)
    seeds: int = 5
    most_rows: int = 10_000
    per_class: int | None = None
    own: tuple[int, ...] = (1250, 2500, 3000, 4000)
    landmarks: tuple[int, ...] = (300, 1000)
    components: int = 300
    features: int = 1250
    feature_components: int = 500
    rounds: int = 2


QUICK = Sizes((50, 100), 2, 500, 100, (100, 300), (50, 100), 30, 100, 50, 1)


def leaves(folder: Path | None) -> dict[str, Labeled]:
    """Margin, texture and shape of leaves, sorted by class; none if they are not there."""
    z = arrays(folder, "leaves100")
    if not z:
        return {}
    X, y = np.hstack([z[f"X_{view}"] for view in ("margin", "texture", "shape")]), z["y"]
    return {"leaves100": Labeled(X[::2], y[::2], X[1::2], y[1::2])}


def ready(s: Labeled, rows: int) -> Labeled:
    """At most that many rows, not negative; classes from 0 on, since -1 stands for none."""
    s = s.sample(rows, rows).scaled()
    labels, y = np.unique(s.y, return_inverse=True)
    return Labeled(s.X, y, np.maximum(s.X_test, 0), np.searchsorted(labels, s.y_test))


def trial(s: Labeled, dimensions: int, seed: int) -> dict[str, float]:
    """Per cent of test rows that every contender classifies correctly."""

    def drawn(count: int, kind: str = "gaussian") -> FourierMap:
        return FourierMap(KERNEL, count, kind=kind, random_state=seed)

    def model(features: Any, components: int | None = None) -> MapRidgeClassifier:
        return MapRidgeClassifier(features, "auto", n_components=components)

    reduced = model(drawn(OVERSAMPLED * dimensions), dimensions).fit(s.X, s.y)
    same = FrozenEstimator(reduced.transformers_[0][2])
    both, some = np.vstack([s.X, s.X_test]), np.append(s.y, np.full(s.y_test.size, -1))
    models = {
        PLAIN: model(drawn(dimensions)).fit(s.X, s.y),
        ORTHOGONAL: model(drawn(dimensions, "orthogonal")).fit(s.X, s.y),
        PCA: reduced,
        JOINED: model(same, dimensions).fit(both, some, unlabeled=True),
        ALL: model(same).fit(s.X, s.y),
    }
    return {name: 100 * m.score(s.X_test, s.y_test) for name, m in models.items()}


def shown(trials: Array) -> str:
    """Mean ± standard deviation."""
    return f"{np.mean(trials):.2f} ± {np.std(trials, ddof=1):.2f}"


def measure_pca(folder: Path | None, sizes: Sizes) -> dict[str, Table]:
    """Accuracies as text, and differences of those of the same seed."""
    tables: dict[str, Table] = {ACCURACY: {}, GAINS: {}}
    with harness.threads(THREADS):
        for name, stored in (labeled_sets(folder, SETS) | leaves(folder)).items():
            s = ready(stored, sizes.most_rows)
            for d in [d for d in sizes.dimensions if d < s.y.size]:
                trials = [trial(s, d, seed) for seed in range(sizes.seeds)]
                each = {who: np.array([t[who] for t in trials]) for who in trials[0]}
                row = f"{name}, D = {d}"
                tables[ACCURACY][row] = {who: shown(values) for who, values in each.items()}
                tables[GAINS][row] = gains(each)
                print(row, tables[ACCURACY][row], flush=True)
    return tables


def gains(each: dict[str, Array]) -> dict[str, float]:
    """Differences of contenders, mean and deviation."""
    found = {}
    for name, over, under in ((GAIN, PCA, PLAIN), (JOINED_GAIN, JOINED, PCA)):
        gap = each[over] - each[under]
        found |= {name: float(gap.mean()), f"{name}, ±": float(gap.std(ddof=1))}
    return found


def claim_pca(table: Table) -> list[dict[str, Any]]:
    """That PCA loses nothing."""
    by_set: dict[str, list[float]] = defaultdict(list)
    for row, found in table.items():
        by_set[row.partition(",")[0]].append(found[GAIN])
    least = {name: min(found) for name, found in by_set.items()}
    return [
        claim("Sets on which PCA from 3D to D dimensions loses nothing, at any D",
              sum(gain >= 0 for gain in least.values()), 3, against="D random features", unit="",
              headline=True),
        *harness.by_set("Least points gained by PCA from 3D to D dimensions", least, 0,
                        against="D random features", unit="", headline=False),
    ]  # fmt: skip


def own(count: int) -> MapRidgeClassifier:
    """A model of ours."""
    features = FourierMap(KERNEL, count, kind="structured", random_state=0)
    return MapRidgeClassifier(features, PENALTY)


def peers(X: Array, sizes: Sizes) -> dict[str, Any]:
    """Pipelines of scikit-learn for these rows."""
    kernel: Any = KERNEL.resolve(X, random_state=0)
    gamma = kernel.gamma / 2  # scikit-learn's distance is twice ours
    few, many = sizes.components, sizes.feature_components
    found = {
        f"IncrementalPCA {few} + Ridge": make_pipeline(IncrementalPCA(few), RidgeClassifier()),
        f"exp-χ² features {sizes.features} + IncrementalPCA {many} + Ridge": make_pipeline(
            AdditiveChi2Sampler(),
            RBFSampler(gamma=gamma, n_components=sizes.features, random_state=0),
            IncrementalPCA(many),
            RidgeClassifier(PENALTY),
        ),
    }
    kernels = {"RBF": ("rbf", 1 / (X.shape[1] * float(X.var()))), "exp-χ²": ("chi2", gamma)}
    for name, (formula, scale) in kernels.items():
        for count in sizes.landmarks:
            found[f"Nystroem {name} {count} + SGD"] = make_pipeline(
                Nystroem(formula, gamma=scale, n_components=count, random_state=0),
                SGDClassifier(alpha=SGD_ALPHA, random_state=0),
            )
    return found


def rows_of_clothes(folder: Path | None, per_class: int | None) -> dict[str, Labeled]:
    """Fashion-MNIST as pixels and as HOG; nothing if it is not there."""
    images = clothes(folder, per_class)
    if images is None:
        return {}
    cells = FHOG(CELL, (SIDE, SIDE), color=False).fit(images.train)
    described: dict[str, Callable[[Any], Array]] = {
        "pixels": lambda part: np.stack(part).reshape(len(part), -1) / np.float32(255),
        "HOG": cells.transform,
    }
    return {
        name: Labeled(of(images.train), images.y, of(images.test), images.y_test)
        for name, of in described.items()
    }


def race(s: Labeled, sizes: Sizes) -> Table:
    """Seconds and accuracies of all contenders on the same rows."""
    models = {f"{OWN} {count}": own(count) for count in sizes.own} | peers(s.X, sizes)
    table: Table = {name: {"fit, s": math.inf} for name in models}
    for _ in range(sizes.rounds):
        for name, model in models.items():
            row = table[name]
            if PATIENCE < row["fit, s"] < math.inf:
                continue
            took = harness.seconds(lambda m=model: m.fit(s.X, s.y))
            row["fit, s"] = min(row["fit, s"], took)
            row["accuracy, %"] = 100 * float(model.score(s.X_test, s.y_test))
            print(f"{name}: {took:.1f} s, {row['accuracy, %']:.2f} %", flush=True)
    return table


def measure_peers(folder: Path | None, sizes: Sizes) -> dict[str, Table]:
    """A table for both descriptions."""
    with harness.threads(THREADS), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tables = {
            description: race(s, sizes)
            for description, s in rows_of_clothes(folder, sizes.per_class).items()
        }
    return {f"{PEERS}, {description}": table for description, table in tables.items()}


def claim_peers(description: str, table: Table) -> list[dict[str, Any]]:
    """That a model of ours is both more accurate and faster than each peer."""
    ours = [row for name, row in table.items() if name.startswith(OWN)]
    ratios = {}
    for name, peer in table.items():
        if not name.startswith(OWN):
            better = [o["fit, s"] for o in ours if o["accuracy, %"] > peer["accuracy, %"]]
            ratios[name] = peer["fit, s"] / min(better, default=math.inf)
    return [
        claim(f"Times as fast, and more accurate, fashion_mnist {description}", ratio, 1, ">",
              against=f"scikit-learn {name}", headline=ratio == min(ratios.values()))
        for name, ratio in ratios.items()
    ]  # fmt: skip


PARTS: dict[str, Callable[[Path | None, Sizes], dict[str, Table]]] = {
    "PCA": measure_pca,
    "peers": measure_peers,
}


def recorded() -> dict[str, Any]:
    """What was measured before."""
    path = harness.RESULTS / "stream_accuracy.json"
    return json.loads(path.read_text(encoding="utf-8"))["figures"] if path.exists() else {}


def main() -> None:
    """Measure, claim and record."""
    parser = harness.parser(__doc__)
    parser.add_argument("--only", choices=PARTS, help="the figures of the other part stay")
    args = parser.parse_args()
    sizes = QUICK if args.quick else Sizes()
    figures = recorded() if args.only and not args.quick else {}
    for name in [args.only] if args.only else PARTS:
        figures |= PARTS[name](args.data, sizes)
    claims = claim_pca(figures[GAINS]) if GAINS in figures else []
    for name, table in figures.items():
        if name.startswith(PEERS):
            claims += claim_peers(name.removeprefix(f"{PEERS}, "), table)
    harness.record("stream_accuracy", figures, claims, title="Bigger than memory: accuracy",
                   text=TEXT, quick=args.quick)  # fmt: skip


if __name__ == "__main__":
    main()
