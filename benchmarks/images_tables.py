"""Tables 1 and 2 of Li, Lebanon and Sminchisescu, redrawn on photographs of objects.

How well maps of the exponential of chi-squared classify, by the dimensions they have, if
chi-squared itself is approximated in one way or another. No times.
"""

import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array
from harness import claim
from pictures import Pictures, pictures
from scipy.linalg import cho_solve, cholesky, eigh, get_lapack_funcs
from scipy.optimize import brentq
from sets import Labeled, random_rows
from sklearn.kernel_approximation import SkewedChi2Sampler
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from hilbin.images import FHOG, BagOfWords, DenseSIFT, HistogramNormalizer
from hilbin.kernels import Chi2, Exponential
from hilbin.maps import AdditiveMap, FourierMap

THREADS = 2  # BLAS has one, but both descriptions are measured side by side
WORDS, SIDE, CELL = 300, 56, 8
PER_BIN = 5  # features of chi-squared inside the random ones
METHODS = {"Chebyshev": "chebyshev", "VZ": "harmonic", "Direct": "series"}
ADDITIVE, SKEWED, ORTHOGONAL, EXACT = "Chi2", "Chi2-Skewed", "Direct, orthogonal", "Exact exp-χ²"
OVERSAMPLED = 3  # times the dimensions, before PCA
PENALTIES = (0.03, 0.1, 0.3, 1.0)
SKEW_ROWS = 100  # from which the skewedness is told
LIMIT, TITLE = "limit", "Features of exponential kernels: photographs"
TEXT = (
    "The paper classifies segments of PASCAL VOC by an SVM; here it is Caltech-101 (30 images of "
    "each of 102 classes to train on, 1712 to test on, mean per-class accuracy) and one-vs-rest "
    "ridge regression with an intercept. Its penalty, of 0.03, 0.1, 0.3 and 1, has the least "
    "leave-one-out errors on the training rows, in the first trial for a kernel and a number of "
    "dimensions, and is then kept for all seeds and for Chebyshev, VZ and Direct alike. (One "
    "that is best for the exact kernel is too small for noisy features: with about as many "
    "dimensions as rows they fit their noise, and may lose half of their accuracy.) "
    f"Words are of dense SIFT (grid of 4 pixels, bins of 3, 4 and 6 pixels; {WORDS} words as in "
    f"the paper, whole image), HOG is Felzenszwalb's at {SIDE} x {SIDE} pixels (1519 numbers; "
    "about 1700 in the paper); rows sum to 1. Gamma is the inverse of the mean distance of "
    "training rows. Chi2: the series alone, as many features per bin as the dimensions allow. "
    "Chi2-Skewed: scikit-learn's SkewedChi2Sampler, its skewedness such that the mean of -log k "
    "is 1, as the rule for gamma has it. Chebyshev, VZ and Direct: 5 features per bin by "
    "AdditiveMap's methods chebyshev, harmonic and series, then independent random frequencies, "
    "the same ones for all three; fewer dimensions are the first of more. Direct, orthogonal: "
    "FourierMap at its default kind. PCA: of 3 times the dimensions, fitted on the 3060 training "
    "rows, so that PCA to 5000 or 7000 dimensions loses nothing of what a linear learner sees: "
    "those cells are maps of 15000 and 21000 dimensions, and only at 3000 is something cut, the "
    "last 60 directions. Mean and standard deviation of 5 seeds; of 3 for orthogonal. "
    "Column limit: what endless dimensions would give, the kernel that 5 features per bin make "
    "(Chi2: all). Errors are relative Frobenius errors of the centered Gram matrix of the training "
    "rows; they tell maps apart whose accuracies do not."
)


class Sizes(NamedTuple):
    """How much is measured."""

    dimensions: tuple[int, ...] = (3000, 5000, 7000)
    seeds: int = 5
    slow_seeds: int = 3  # of orthogonal frequencies
    per_class: int | None = None


class Ridge:
    """One-vs-rest ridge regression with an intercept, by centered Gram matrices of the rows."""

    def __init__(self, data: Labeled) -> None:
        self.data = data
        self.classes, codes = np.unique(data.y, return_inverse=True)
        targets = np.eye(self.classes.size, dtype=np.float32)[codes]
        self.base = targets.mean(axis=0)
        self.targets = targets - self.base

    def left_out(self, K: Array, penalty: float) -> float:
        """Share of training rows classified correctly by a model of all the others."""
        factor = self._factor(K, penalty)
        residuals = penalty * cho_solve((factor, True), self.targets)
        inverse = get_lapack_funcs("potri", (factor,))(factor, lower=1)[0]
        weights = penalty * inverse.diagonal() - 1 / len(K)
        scores = self.targets + self.base - residuals / weights[:, None]
        return float(np.mean(self.classes[scores.argmax(axis=1)] == self.data.y))

    def coefficients(self, K: Array, penalty: float, kept: int) -> Array:
        """Of the rows; within the leading ``kept`` principal components alone."""
        targets = self.targets
        if kept < len(K):
            cut = eigh(K, subset_by_index=[0, len(K) - kept - 1])[1]
            targets = targets - cut @ (cut.T @ targets)
        return cho_solve((self._factor(K, penalty), True), targets)

    def _factor(self, K: Array, penalty: float) -> Array:
        return cholesky(K + np.eye(len(K), dtype=K.dtype) * K.dtype.type(penalty), lower=True)

    def accuracy(self, scores: Array) -> float:
        """Per cent, mean over classes, of scores of test rows."""
        guess = self.classes[(scores + self.base).argmax(axis=1)]
        return 100 * float(balanced_accuracy_score(self.data.y_test, guess))


def centered(K: Array, fit: Array) -> Array:
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

    def __init__(self, name: str, data: Labeled, sizes: Sizes) -> None:
        self.name, self.data, self.sizes = name, data, sizes
        self.ridge = Ridge(data)
        self.kernel: Any = Exponential(Chi2(), gamma="mean").resolve(data.X, random_state=0)
        self.skew = skewedness(data.X)
        self.accuracies, self.errors = (defaultdict(lambda: defaultdict(list)) for _ in range(2))
        self.penalties: dict[str, float] = {}
        K, K_test = self.grams(self.kernel)
        self.K = centered(K, K)
        self.by_kernel(EXACT, K, K_test, EXACT)

    def grams(self, kernel: Any) -> tuple[Array, Array]:
        """Of the training rows, and of the test rows with them."""
        X, _, X_test, _ = self.data
        return kernel.gram(X, n_jobs=THREADS), kernel.gram(X_test, X, n_jobs=THREADS)

    def note(self, row: str, column: str, K: Array, scores: Array) -> None:
        """Add the outcome of one trial."""
        accuracy = self.ridge.accuracy(scores)
        error = float(np.linalg.norm(K - self.K) / np.linalg.norm(self.K))
        self.accuracies[row][column].append(accuracy)
        self.errors[row][column].append(error)
        print(f"{self.name}, {row}, {column}: {accuracy:.2f} %, {error:.3f}", flush=True)

    def penalty(self, key: str, K: Array) -> float:
        """With the least leave-one-out errors for the first Gram matrix of this key."""
        if key not in self.penalties:
            self.penalties[key] = max(PENALTIES, key=lambda p: self.ridge.left_out(K, p))
        return self.penalties[key]

    def by_kernel(self, row: str, K: Array, K_test: Array, key: str) -> None:
        """A trial of a kernel itself."""
        inner = centered(K, K)
        alpha = self.ridge.coefficients(inner, self.penalty(key, inner), len(K))
        self.note(row, LIMIT, inner, centered(K_test, K) @ alpha)

    def features(self, unfitted: Any, parts: int) -> list[Array]:
        """Of training and test rows, of shape (rows, parts, columns)."""
        fitted = unfitted.fit(self.data.X)
        made = [fitted.transform(X) for X in (self.data.X, self.data.X_test)]
        return [Z.astype(np.float32, copy=False).reshape(len(Z), parts, -1) for Z in made]

    def by_features(self, unfitted: Any, cells: dict[int, tuple[str, int]], key: str) -> None:
        """Trials of the first features, for every number of them a cell: its row and dimension."""
        parts = 2 if isinstance(unfitted, FourierMap) else 1  # cosines and sines
        Z, Z_test = self.features(unfitted, parts)
        mean = Z.mean(axis=0)
        Z -= mean
        Z_test -= mean
        K, begin = np.zeros((len(Z), len(Z)), np.float32), 0
        for count, (row, dimension) in sorted(cells.items()):
            end = count // parts
            scale = np.float32(Z.shape[2] / end)
            for part in range(parts):
                K += Z[:, part, begin:end] @ Z[:, part, begin:end].T
            inner, kept = K * scale, dimension if row.startswith("PCA") else len(Z)
            alpha = self.ridge.coefficients(inner, self.penalty(f"{key}, {count}", inner), kept)
            scores = np.zeros((len(Z_test), alpha.shape[1]), np.float32)
            for part in range(parts):
                scores += Z_test[:, part, :end] @ (Z[:, part, :end].T @ alpha) * scale
            self.note(row, str(dimension), inner, scores)
            begin = end

    def limit(self, row: str) -> None:
        """The kernel of a map of chi-squared, without random frequencies."""
        chi2 = AdditiveMap(Chi2(), PER_BIN, method=METHODS[row])
        P, P_test = (normalize(Z[:, 0]) for Z in self.features(chi2, 1))
        K, K_test = (np.exp(self.kernel.gamma * (Z @ P.T - 1)) for Z in (P, P_test))
        self.by_kernel(row, K, K_test, EXACT)

    def fourier(self, row: str, dimensions: int, seed: int, **options: Any) -> FourierMap:
        """Random frequencies on a map of chi-squared."""
        chi2 = AdditiveMap(Chi2(), PER_BIN, method=METHODS[row])
        return FourierMap(self.kernel, dimensions, feature_map=chi2, random_state=seed, **options)

    def run(self) -> None:
        """Fill the tables, in the order of the paper's rows."""
        (dimensions, seeds, slow_seeds, _), bins = self.sizes, self.data.X.shape[1]
        for d, n in ((d, max(1, d // bins)) for d in dimensions):
            series = AdditiveMap(Chi2(), n, method="series")
            self.by_features(series, {n * bins: (ADDITIVE, d)}, ADDITIVE)
        self.by_kernel(ADDITIVE, *self.grams(Chi2()), ADDITIVE)
        for seed in range(seeds):
            options = {"n_components": max(dimensions), "random_state": seed}
            sampler = SkewedChi2Sampler(skewedness=self.skew, **options)
            self.by_features(sampler, {d: (SKEWED, d) for d in dimensions}, SKEWED)
        for row in METHODS:
            for seed in range(seeds):
                cells = {d: (row, d) for d in dimensions}
                cells |= {OVERSAMPLED * d: (f"PCA-{row}", d) for d in dimensions}
                unfitted = self.fourier(row, max(cells), seed, kind="gaussian")
                self.by_features(unfitted, cells, "independent frequencies")
            self.limit(row)
        for seed in range(slow_seeds):
            for d in dimensions:
                self.by_features(self.fourier("Direct", d, seed), {d: (ORTHOGONAL, d)}, ORTHOGONAL)


def describe(photographs: Pictures) -> dict[str, Labeled]:
    """Rows of the two descriptions, in the order of the paper's tables."""
    words = BagOfWords(DenseSIFT(4, (3, 4, 6)), WORDS, random_state=0, n_jobs=THREADS)
    cells, found = FHOG(CELL, (SIDE, SIDE), n_jobs=THREADS), {}
    for name, features in (("Words of SIFT", words), ("HOG", cells)):
        rows = make_pipeline(features, HistogramNormalizer()).fit(photographs.train)
        X, X_test = rows.transform(photographs.train), rows.transform(photographs.test)
        found[name] = Labeled(X, photographs.y, X_test, photographs.y_test)
    return found


def make_tables(benches: list[Bench]) -> dict[str, Any]:
    """Accuracies as text, mean and deviation, and errors."""
    tables = {}
    for b in benches:
        columns = [*map(str, b.sizes.dimensions), LIMIT]
        tables[f"{b.name}: accuracy by dimensions, %"] = {
            row: {c: shown(cells[c]) for c in columns if c in cells}
            for row, cells in b.accuracies.items()
        }
        tables[f"{b.name}: error of the Gram matrix"] = {
            row: {c: float(np.mean(cells[c])) for c in columns if c in cells}
            for row, cells in b.errors.items()
            if row in (*METHODS, ORTHOGONAL)
        }
        penalties = {f"penalty: {key}": penalty for key, penalty in b.penalties.items()}
        scales = {"gamma": b.kernel.gamma, "skewedness": b.skew}
        tables[f"{b.name}: parameters"] = {"bins": b.data.X.shape[1], **scales, **penalties}
    return tables


def shown(trials: list[float]) -> str:
    """Mean ± standard deviation, if there is chance in it."""
    return f"{np.mean(trials):.2f}" + (f" ± {np.std(trials, ddof=1):.2f}" if trials[1:] else "")


def make_claims(bench: Bench) -> list[dict[str, Any]]:
    """What the paper finds, beside what was measured."""
    dimensions = [str(d) for d in bench.sizes.dimensions]

    def mean(row: str, columns: list[str]) -> float:
        return float(np.mean([np.mean(bench.accuracies[row][c]) for c in columns]))

    lost = mean(EXACT, [LIMIT]) - mean("PCA-Direct", dimensions[-1:])
    what = f"Points lost by PCA-Direct at {dimensions[-1]} dimensions, {bench.name}"
    claims = [claim(what, lost, 1, "<=", against=EXACT, unit="")]
    for row, peer in (("Direct", "Chebyshev"), ("PCA-Direct", "Direct")):
        gain = mean(row, dimensions) - mean(peer, dimensions)
        what = f"Points gained by {row}, mean over dimensions, {bench.name}"
        claims.append(claim(what, gain, 0, against=peer, unit=""))
    return claims


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    sizes = Sizes((300, 500, 700), 2, 1, 3) if args.quick else Sizes()
    with tempfile.TemporaryDirectory() as scratch, harness.threads(1):
        stored = pictures(args.data, "caltech101", Path(scratch))
        sets = describe(stored.sample(sizes.per_class)) if stored else {}
    with harness.threads(1), ThreadPoolExecutor(THREADS) as pool:
        benches = [Bench(name, data, sizes) for name, data in sets.items()]
        list(pool.map(Bench.run, benches))
    claims = [c for bench in benches for c in make_claims(bench)]
    if benches:
        harness.record("images_tables", make_tables(benches), claims, title=TITLE, text=TEXT,
                       quick=args.quick)  # fmt: skip


if __name__ == "__main__":
    main()
