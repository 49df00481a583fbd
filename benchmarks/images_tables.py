"""Tables 1 and 2 of Li, Lebanon and Sminchisescu, redrawn on photographs of objects.

How well maps of the exponential of chi-squared classify, by the dimensions they have, if
chi-squared itself is approximated in one way or another. No times.
"""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array
from harness import claim
from pictures import Pictures, pictures
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import brentq
from sets import Labelled, random_rows
from sklearn.kernel_approximation import SkewedChi2Sampler
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline

from hilbin.images import FHOG, BagOfWords, DenseSIFT, HistogramNormalizer
from hilbin.kernels import Chi2, Exponential
from hilbin.maps import AdditiveMap, FourierMap

THREADS = 2
WORDS, SIDE, CELL = 300, 56, 8
PER_BIN = 5  # features of chi-squared inside the random ones
METHODS = {"Chebyshev": "chebyshev", "VZ": "harmonic", "Direct": "series"}
ADDITIVE, SKEWED, ORTHOGONAL, EXACT = "Chi2", "Chi2-Skewed", "Direct, orthogonal", "Exact exp-χ²"
OVERSAMPLED = 3  # times the dimensions, before PCA
LIMIT = "limit"
PENALTIES = 10.0 ** np.arange(-3, 1.01, 0.5)
SKEW_ROWS = 100
TEXT = (
    "The paper classifies segments of PASCAL VOC by an SVM; here it is Caltech-101 (30 images of "
    "each of 102 classes to train on, 1712 to test on, mean per-class accuracy) and one-vs-rest "
    "ridge regression with an intercept. Its penalty has the least leave-one-out errors on the "
    "training rows with the exact kernel, and is then the same for all. The words are of dense "
    f"SIFT (grid of 4 pixels, bins of 3, 4 and 6 pixels; {WORDS} words as in the paper, whole "
    f"image), HOG is Felzenszwalb's at {SIDE} x {SIDE} pixels (1519 numbers; about 1700 in the "
    "paper); rows sum to 1. Gamma of exp-χ² is the inverse of the mean distance of training rows. "
    "Chi2: the series alone, as many features per bin as the dimensions allow. Chi2-Skewed: "
    "scikit-learn's SkewedChi2Sampler, its skewedness such that the mean of -log k is 1, which is "
    "what the rule for gamma does. Chebyshev, VZ and Direct: 5 features per bin by "
    "AdditiveMap's methods chebyshev, harmonic and series, then independent random frequencies, "
    "the same ones for all three; fewer dimensions are the first of more. Direct, orthogonal: "
    "FourierMap at its default kind. PCA: of 3 times the dimensions, fitted on the training rows. "
    "These have 3060 rows, so PCA to 5000 or 7000 dimensions loses nothing of what a linear "
    "learner sees: those cells are maps of 15000 and 21000 dimensions, and only at 3000 is "
    "something cut, the last 60 of 3060 directions. Column limit: what endless dimensions would "
    "give, that is, the kernel itself of 5 features per bin (Chi2: of all). The second table of "
    "each description is the relative Frobenius error of the centred Gram matrix of the training "
    "rows; it tells maps apart whose accuracies chance does not."
)

Table = dict[str, dict[str, list[float]]]


class Sizes(NamedTuple):
    """How much is measured."""

    dimensions: tuple[int, ...] = (3000, 5000, 7000)
    seeds: int = 5
    per_class: int | None = None


class Ridge:
    """One-vs-rest ridge regression with an intercept, solved by the Gram matrix of the rows."""

    def __init__(self, data: Labelled, K: Array) -> None:
        self.data = data
        self.classes, codes = np.unique(data.y, return_inverse=True)
        targets = np.eye(self.classes.size, dtype=np.float32)[codes]
        self.base = targets.mean(axis=0)
        self.targets = targets - self.base
        self.K = centred(K, K)
        right = [self._left_out(penalty) for penalty in PENALTIES]
        self.penalty = float(PENALTIES[int(np.argmax(right))])

    def _left_out(self, penalty: float) -> float:
        """Share of training rows classified correctly by a model of all the others."""
        n = len(self.K)
        factor = cho_factor(self.K + penalty * np.eye(n))
        residuals = penalty * cho_solve(factor, np.eye(n), overwrite_b=True) - 1 / n
        targets = self.targets + self.base
        scores = targets - residuals @ targets / residuals.diagonal()[:, None]
        return float(np.mean(self.classes[scores.argmax(axis=1)] == self.data.y))

    def coefficients(self, K: Array, kept: int) -> Array:
        """Of the rows; within the leading ``kept`` principal components alone."""
        targets = self.targets
        if kept < len(K):
            cut = eigh(K, subset_by_index=[0, len(K) - kept - 1])[1]
            targets = targets - cut @ (cut.T @ targets)
        factor = cho_factor(K + self.penalty * np.eye(len(K), dtype=K.dtype), overwrite_a=True)
        return cho_solve(factor, targets)

    def accuracy(self, scores: Array) -> float:
        """Per cent, mean over classes, of scores of test rows."""
        guess = self.classes[(scores + self.base).argmax(axis=1)]
        return 100 * float(balanced_accuracy_score(self.data.y_test, guess))

    def by_kernel(self, K: Array, K_test: Array) -> tuple[float, float]:
        """Accuracy, and the error of the centred Gram matrix."""
        inner = centred(K, K)
        scores = centred(K_test, K) @ self.coefficients(inner, len(K))
        return self.accuracy(scores), self.error(inner)

    def error(self, K: Array) -> float:
        """Relative to the exact kernel's."""
        return float(np.linalg.norm(K - self.K) / np.linalg.norm(self.K))

    def by_features(self, Z: Array, Z_test: Array, steps: dict[int, int]) -> Any:
        """Accuracies and errors of the first columns, by how many there are.

        Features are of shape (rows, parts, columns): cosines and sines are two parts. ``steps``
        says for each number of columns how many principal components are kept.
        """
        mean = Z.mean(axis=0, dtype=np.float64).astype(Z.dtype)
        Z -= mean
        Z_test -= mean
        n, parts, columns = Z.shape
        K = np.zeros((n, n), Z.dtype)
        begin, found = 0, {}
        for end, kept in steps.items():
            scale = columns / end
            for part in range(parts):
                block = Z[:, part, begin:end]
                K += block @ block.T
            inner = K * Z.dtype.type(scale)
            alpha = self.coefficients(inner, kept)
            scores = scale * sum(
                Z_test[:, part, :end] @ (Z[:, part, :end].T @ alpha) for part in range(parts)
            )
            found[end] = self.accuracy(scores), self.error(inner)
            begin = end
        return found


def centred(K: Array, fit: Array) -> Array:
    """Gram matrix with the rows of ``fit`` once their mean is 0."""
    return K - K.mean(axis=1, keepdims=True) - fit.mean(axis=0) + fit.mean()


def skewedness(X: Array) -> float:
    """At which the mean of -log of the skewed kernel is 1, on few rows."""
    rows = X[random_rows(len(X), SKEW_ROWS)].astype(np.float64)
    pairs = np.triu_indices(len(rows), k=1)

    def excess(log_c: float) -> float:
        A, B = (rows[some] + np.exp(log_c) for some in pairs)
        gaps = np.log((A + B) / 2) - (np.log(A) + np.log(B)) / 2
        return float(gaps.sum(axis=1).mean() - 1)

    return float(np.exp(brentq(excess, np.log(1e-6), np.log(1e3), rtol=1e-4)))


class Bench:
    """All methods on one description of the images."""

    def __init__(self, name: str, data: Labelled, sizes: Sizes) -> None:
        self.name, self.data, self.sizes = name, data, sizes
        self.kernel: Any = Exponential(Chi2(), gamma="mean").resolve(data.X, random_state=0)
        self.skew = skewedness(data.X)
        self.accuracies: Table = {}
        self.errors: Table = {}
        K, K_test = self.grams(self.kernel)
        self.ridge = Ridge(data, K)
        self.note(EXACT, LIMIT, self.ridge.by_kernel(K, K_test))

    def grams(self, kernel: Any) -> tuple[Array, Array]:
        """Of the training rows, and of the test rows with them."""
        X, X_test = self.data.X, self.data.X_test
        return kernel.gram(X, n_jobs=THREADS), kernel.gram(X_test, X, n_jobs=THREADS)

    def note(self, row: str, column: Any, found: tuple[float, float]) -> None:
        """Add the outcome of one trial; its error only if exp-χ² is what it approximates."""
        for table, value in zip((self.accuracies, self.errors), found, strict=True):
            table.setdefault(row, {}).setdefault(str(column), []).append(value)
        print(f"{self.name}, {row}, {column}: {found[0]:.2f} %, {found[1]:.3f}", flush=True)

    def features(self, unfitted: Any, parts: int) -> tuple[Array, Array]:
        """Of the training and the test rows."""
        fitted = unfitted.fit(self.data.X)
        made = [fitted.transform(X) for X in (self.data.X, self.data.X_test)]
        return tuple(Z.astype(np.float32, copy=False).reshape(len(Z), parts, -1) for Z in made)

    def additive(self) -> None:
        """Chi-squared without its exponential; no chance."""
        bins = self.data.X.shape[1]
        for dimension in self.sizes.dimensions:
            chi2 = AdditiveMap(Chi2(), max(1, dimension // bins), method="series", n_jobs=THREADS)
            Z, Z_test = self.features(chi2, 1)
            found = self.ridge.by_features(Z, Z_test, {Z.shape[2]: len(Z)})
            self.note(ADDITIVE, dimension, found[Z.shape[2]])
        self.note(ADDITIVE, LIMIT, self.ridge.by_kernel(*self.grams(Chi2())))

    def skewed(self, seed: int) -> None:
        """Another kernel, near chi-squared, whose random features need no map."""
        sampler = SkewedChi2Sampler(
            skewedness=self.skew, n_components=max(self.sizes.dimensions), random_state=seed
        )
        Z, Z_test = self.features(sampler, 1)
        steps = dict.fromkeys(self.sizes.dimensions, len(Z))
        for dimension, found in self.ridge.by_features(Z, Z_test, steps).items():
            self.note(SKEWED, dimension, found)

    def limit(self, row: str) -> None:
        """The kernel of the map of chi-squared, without random frequencies."""
        chi2 = AdditiveMap(Chi2(), PER_BIN, method=METHODS[row], n_jobs=THREADS)
        P, P_test = (Z[:, 0] for Z in self.features(chi2, 1))
        P, P_test = (Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (P, P_test))
        K, K_test = (np.exp(self.kernel.gamma * (Z @ P.T - 1)) for Z in (P, P_test))
        self.note(row, LIMIT, self.ridge.by_kernel(K, K_test))

    def random(self, row: str, seed: int) -> None:
        """Independent frequencies on a map of chi-squared, and PCA of more of them."""
        chi2 = AdditiveMap(Chi2(), PER_BIN, method=METHODS[row])
        most = OVERSAMPLED * max(self.sizes.dimensions)
        fourier = FourierMap(
            self.kernel, most, kind="gaussian", map=chi2, n_jobs=THREADS, random_state=seed
        )
        Z, Z_test = self.features(fourier, 2)
        plain = {d // 2: (row, d, len(Z)) for d in self.sizes.dimensions}
        cut = {OVERSAMPLED * d // 2: (f"PCA-{row}", d, d) for d in self.sizes.dimensions}
        trials = dict(sorted((plain | cut).items()))
        steps = {columns: min(kept, len(Z)) for columns, (_, _, kept) in trials.items()}
        for columns, found in self.ridge.by_features(Z, Z_test, steps).items():
            self.note(*trials[columns][:2], found)

    def orthogonal(self, seed: int) -> None:
        """What the library does if it is not told otherwise."""
        for dimension in self.sizes.dimensions:
            chi2 = AdditiveMap(Chi2(), PER_BIN, method="series")
            fourier = FourierMap(
                self.kernel, dimension, map=chi2, n_jobs=THREADS, random_state=seed
            )
            Z, Z_test = self.features(fourier, 2)
            found = self.ridge.by_features(Z, Z_test, {Z.shape[2]: len(Z)})
            self.note(ORTHOGONAL, dimension, found[Z.shape[2]])

    def run(self) -> None:
        """Fill both tables, in the order of the paper's rows."""
        self.additive()
        for seed in range(self.sizes.seeds):
            self.skewed(seed)
        for row in METHODS:
            for seed in range(self.sizes.seeds):
                self.random(row, seed)
            self.limit(row)
        for seed in range(self.sizes.seeds):
            self.orthogonal(seed)


def describe(photographs: Pictures) -> dict[str, Labelled]:
    """Rows of the two descriptions, in the order of the paper's tables."""
    words = BagOfWords(DenseSIFT(4, (3, 4, 6)), WORDS, random_state=0, n_jobs=THREADS)
    found = {}
    for name, features in (("Words of SIFT", words), ("HOG", FHOG(CELL, (SIDE, SIDE)))):
        rows = make_pipeline(features, HistogramNormalizer()).fit(photographs.train)
        X, X_test = rows.transform(photographs.train), rows.transform(photographs.test)
        found[name] = Labelled(X, photographs.y, X_test, photographs.y_test)
    return found


def make_tables(benches: list[Bench]) -> dict[str, Any]:
    """Accuracies as text, mean and deviation, and errors."""
    tables: dict[str, Any] = {}
    for b in benches:
        columns = [*map(str, b.sizes.dimensions), LIMIT]
        tables[f"{b.name}: accuracy by dimensions, %"] = {
            row: {c: shown(cells.get(c)) for c in columns} for row, cells in b.accuracies.items()
        }
        tables[f"{b.name}: error of the Gram matrix"] = {
            row: {c: float(np.mean(cells[c])) for c in columns if c in cells}
            for row, cells in b.errors.items()
            if row in (*METHODS, ORTHOGONAL)
        }
        tables[f"{b.name}: parameters"] = {
            "bins": b.data.X.shape[1],
            "gamma": b.kernel.gamma,
            "skewedness": b.skew,
            "penalty": b.ridge.penalty,
        }
    return tables


def shown(trials: list[float] | None) -> str | None:
    """Mean ± standard deviation, if there is chance in it."""
    if not trials:
        return None
    deviation = f" ± {np.std(trials, ddof=1):.2f}" if len(trials) > 1 else ""
    return f"{np.mean(trials):.2f}{deviation}"


def make_claims(benches: list[Bench]) -> list[dict[str, Any]]:
    """What the paper finds, beside what was measured."""
    claims = []
    for b in benches:
        most = str(max(b.sizes.dimensions))
        mean = {
            row: {c: float(np.mean(trials)) for c, trials in cells.items()}
            for row, cells in b.accuracies.items()
        }
        lost = mean[EXACT][LIMIT] - mean["PCA-Direct"][most]
        what = f"{b.name}, points lost by PCA-Direct at {most} dimensions"
        claims.append(claim(what, lost, 1, "<=", against="exact kernel", unit="", headline=True))
        for row, peer in (("Direct", "Chebyshev"), ("PCA-Direct", "Direct")):
            gains = [mean[row][str(d)] - mean[peer][str(d)] for d in b.sizes.dimensions]
            what = f"{b.name}, points gained by {row}, mean over dimensions"
            claims.append(claim(what, float(np.mean(gains)), 0, against=peer, unit=""))
    return claims


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    sizes = Sizes((300, 500, 700), 2, 6) if args.quick else Sizes()
    benches = []
    with tempfile.TemporaryDirectory() as scratch, harness.threads(THREADS):
        stored = pictures(args.data, "caltech101", Path(scratch))
        sets = describe(stored.sample(sizes.per_class)) if stored else {}
        for name, data in sets.items():
            bench = Bench(name, data, sizes)
            bench.run()
            benches.append(bench)
    if benches:
        harness.record("images_tables", {"seeds": sizes.seeds, **make_tables(benches)},
                       make_claims(benches), title="Features of exponential kernels: photographs",
                       text=TEXT, quick=args.quick)  # fmt: skip


if __name__ == "__main__":
    main()
