"""Kernel principal components with pre-images, and canonical correlations, against scikit-learn.

Noise removed from digits, retrieval between pictures and texts, and the time of 50 components.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array, arrays, histograms
from harness import by_set, claim, compare
from sklearn.cross_decomposition import CCA
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Peer
from sklearn.metrics.pairwise import chi2_kernel, cosine_similarity, euclidean_distances

from hilbin.estimators import KernelCCA, KernelPCA
from hilbin.kernels import Chi2, Exponential, Gaussian, Linear

NOISE = 0.5
WIDTHS = (0.25, 0.5, 1.0, 2.0)  # over the median of the squared distances
ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # of the regressions back to rows
VALIDATION, TEST = 200, 300
N_PAIRS = 9  # of directions, for retrieval
FIXED, RIDGE, PCA_NAME = "KernelPCA, fixed point", "KernelPCA, ridge", "PCA"
PEER, PEER_DEFAULT = "scikit-learn's KernelPCA, best alpha", "scikit-learn's KernelPCA, alpha = 1"
NOISY = "(noisy rows)"
ERROR, SEEN, CHOICE = "mean squared error", "on validation rows", "setting"
DENSE, LANCZOS = "scikit-learn", "scikit-learn, eigen_solver='arpack'"
CCA_PEER, CCA_LINEAR = "scikit-learn, CCA", "KernelCCA, linear"
ZOO, ZOO_RIDGE = "cca-zoo, CCA", "cca-zoo, RidgeCCA, best shrinkage"
SHRINKAGES = (1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.6, 0.9)
CCA_EXP = "KernelCCA, exponential chi-squared"
TEXT = (
    "One thread. **Noise.** Pixels are in [-1, 1]; training rows are clean (usps 1500, digits "
    "1200), test rows have Gaussian noise of standard deviation 0.5. The number of components, the "
    "width of the Gaussian and alpha are those of least error on 200 other rows; the error is that "
    "of 300 more. Widths are 0.25, 0.5, 1 and 2 over the median of the squared distances, and "
    "alpha is from 1e-4 to 1, the same for all.\n\n"
    "**Retrieval.** wiki_cross: 2173 pairs of a picture (128 visual words) and a text (10 topics) "
    "to train on, 693 to test on. Each test picture ranks all test texts, and the other way; a "
    "text is relevant if it is of the same of 10 classes. Nine pairs of directions. *Cosine* is "
    "the plain cosine of coordinates, *rank* weighs them by their correlations, as "
    "`KernelCCA.rank` does. Kernels by the mean rule, reg = 3e-3. cca-zoo's RidgeCCA has the "
    "shrinkage, of 7, that is best on the test pairs themselves. A peer that is not installed is "
    "left out.\n\n"
    "**Time.** 50 components of 5000 histograms of 128 bins, exponential chi-squared kernel, from "
    "rows to coordinates; scikit-learn is given the matrix of its own chi2_kernel, whose time "
    "counts. By default it decomposes the whole matrix; with `eigen_solver='arpack'` it finds few "
    "eigenvalues, as hilbin does."
)


class Sizes(NamedTuple):
    """How much is measured."""

    components: tuple[int, ...] = (40, 80, 160)
    rows: int = 5000
    repeats: int = 2


# noise
class Noise:
    """Clean rows to train on, and noisy ones whose clean form is known."""

    def __init__(self, X: Array, n_train: int) -> None:
        rng = np.random.default_rng(0)
        X = X[rng.permutation(len(X))]
        ends = np.cumsum([n_train, VALIDATION, TEST])
        self.train, *self.clean = np.split(X[: ends[-1]], ends[:-1])
        self.noisy = [part + NOISE * rng.normal(size=part.shape) for part in self.clean]
        squares = euclidean_distances(self.train, squared=True)
        self.gamma = 1 / float(np.median(squares[np.triu_indices(n_train, 1)]))

    def errors(self, back: Any) -> tuple[float, float]:
        """Errors of a function that removes noise, on validation and test rows."""
        return tuple(
            float(np.mean((back(noisy) - clean) ** 2))
            for noisy, clean in zip(self.noisy, self.clean, strict=True)
        )  # type: ignore[return-value]


def denoisers(noise: Noise, counts: tuple[int, ...]) -> Iterator[tuple[str, str, Any]]:
    """Every method with every setting: its name, the setting, and a fitted function."""
    for m in (10, 20, *counts):
        peer = PCA(min(m, noise.train.shape[1])).fit(noise.train)
        yield PCA_NAME, f"{m}", lambda X, p=peer: p.inverse_transform(p.transform(X))
    for m, width in product(counts, WIDTHS):
        gamma = width * noise.gamma
        model = KernelPCA(Gaussian(gamma), m, preimage="fixed_point").fit(noise.train)
        yield FIXED, f"{m}, {width:g} / median", model.denoise
        for alpha in ALPHAS:
            model = KernelPCA(Gaussian(gamma), m, preimage="ridge", preimage_alpha=alpha)
            setting = f"{m}, {width:g} / median, alpha {alpha:g}"
            yield RIDGE, setting, model.fit(noise.train).denoise
            peer = Peer(m, kernel="rbf", gamma=gamma, fit_inverse_transform=True, alpha=alpha)
            peer.fit(noise.train)
            back = lambda X, p=peer: p.inverse_transform(p.transform(X))  # noqa: E731
            yield PEER, setting, back
            if alpha == 1.0:
                yield PEER_DEFAULT, f"{m}, {width:g} / median", back


def denoised(noise: Noise, counts: tuple[int, ...]) -> dict[str, dict[str, Any]]:
    """The test error of every method at the setting of least validation error."""
    best: dict[str, tuple[float, float, str]] = {}
    for name, setting, back in denoisers(noise, counts):
        validation, test = noise.errors(back)
        if validation < best.get(name, (np.inf, 0.0, ""))[0]:
            best[name] = validation, test, setting
            print(f"{name}, {setting}: {validation:.4f}, test {test:.4f}", flush=True)
    table: dict[str, dict[str, Any]] = {NOISY: {ERROR: noise.errors(lambda X: X)[1]}}
    return table | {
        name: {ERROR: test, SEEN: validation, CHOICE: setting}
        for name, (validation, test, setting) in best.items()
    }


# retrieval
def precision(similarity: Array, relevant: Array) -> float:
    """Mean average precision of ranking the columns for every row."""
    order = np.argsort(-similarity, axis=1, kind="stable")
    hits = np.take_along_axis(relevant, order, axis=1)
    ranks = np.arange(1, hits.shape[1] + 1)
    found = np.cumsum(hits, axis=1) / ranks
    return float(np.mean((found * hits).sum(axis=1) / hits.sum(axis=1)))


def zoo_models() -> dict[str, Any]:
    """The models of cca-zoo, if it is installed."""
    try:
        from cca_zoo import linear as zoo
    except ImportError as error:
        print(f"cca-zoo is left out: {error}", flush=True)
        return {}
    ridges = {f"{ZOO_RIDGE}, {s:g}": zoo.RidgeCCA(N_PAIRS, shrinkage=s) for s in SHRINKAGES}
    return {ZOO: zoo.CCA(N_PAIRS), **ridges}


def projected(model: Any, train: list[Array], test: list[Array]) -> tuple[Array, Array]:
    """Coordinates of both views of the test pairs; cca-zoo takes views as a list."""
    if type(model).__module__.startswith("cca_zoo"):
        found = model.fit(train).transform(test)
    else:
        found = model.fit(*train).transform(*test)
    return found[0], found[1]


def retrieved(stored: dict[str, Array]) -> dict[str, dict[str, float]]:
    """Mean average precision both ways, of plain and of weighted cosines."""
    n, y = int(stored["n_train"]), stored["y"]
    views = [stored["X_image"].astype(np.float64), stored["X_text"]]
    train, test = [v[:n] for v in views], [v[n:] for v in views]
    relevant = (y[n:, None] == y[n:]).astype(float)
    exponential = Exponential(Chi2(), "mean")
    models = {
        CCA_PEER: CCA(N_PAIRS, max_iter=5000),
        **zoo_models(),
        CCA_LINEAR: KernelCCA(Linear(), N_PAIRS),
        "KernelCCA, chi-squared": KernelCCA(Chi2(), N_PAIRS),
        CCA_EXP: KernelCCA(exponential, N_PAIRS),
    }
    table: dict[str, dict[str, float]] = {}
    for name, model in models.items():
        x, t = projected(model, train, test)
        cosines = {"cosine": cosine_similarity(x, t)}
        if isinstance(model, KernelCCA):
            cosines["rank"] = model.similarity(*test)
        row = {}
        for rule, similarity in cosines.items():
            row[f"picture to text, {rule}"] = precision(similarity, relevant)
            row[f"text to picture, {rule}"] = precision(similarity.T, relevant.T)
        name = ZOO_RIDGE if name.startswith(ZOO_RIDGE) else name
        best = table.get(name, row)
        table[name] = {rule: max(value, best[rule]) for rule, value in row.items()}
        print(name, {key: round(value, 4) for key, value in row.items()}, flush=True)
    return table


# time
def timed(sizes: Sizes) -> dict[str, Any]:
    """Seconds from rows to coordinates, and how far both are apart."""
    X = histograms(sizes.rows, 128).astype(np.float64)
    found: dict[str, Array] = {}

    def ours() -> None:
        found["hilbin"] = KernelPCA(Exponential(Chi2(), 2.0), 50).fit_transform(X)

    def theirs(solver: str) -> None:
        K = chi2_kernel(X, gamma=1.0)
        found[solver] = Peer(50, kernel="precomputed", eigen_solver=solver).fit_transform(K)

    contenders = {"hilbin": ours, DENSE: lambda: theirs("auto"), LANCZOS: lambda: theirs("arpack")}
    times = compare(contenders, sizes.repeats)
    table = {}
    for name, solver in ((DENSE, "auto"), (LANCZOS, "arpack")):
        apart = np.abs(np.abs(found["hilbin"]) - np.abs(found[solver])).max()
        table[name] = {
            "hilbin, s": times["hilbin"].best,
            "peer, s": times[name].best,
            "speed-up": times[name].best / times["hilbin"].best,
            "largest difference": float(apart),
        }
    return table


def claims_of(tables: dict[str, Any]) -> list[dict[str, Any]]:
    """What the figures say."""
    claims = []
    for peer in (PEER, PCA_NAME):
        ratios = {
            name: min(table[FIXED], table[RIDGE], key=lambda row: row[SEEN])[ERROR]
            / table[peer][ERROR]
            for name, table in tables["noise"].items()
        }
        what = "error of denoised rows, pre-image chosen on validation rows"
        claims += by_set(what, ratios, 1.0, "<=", against=peer, headline=peer == PEER)
    found = tables["retrieval"]
    for way in ("picture to text", "text to picture") if found else ():
        rule = f"{way}, rank"
        ours = found[CCA_EXP][rule]
        peers = {name: found[name][f"{way}, cosine"] for name in (CCA_PEER, ZOO, ZOO_RIDGE)
                 if name in found}  # fmt: skip
        peers[CCA_LINEAR] = found[CCA_LINEAR][rule]
        claims += [
            claim(f"wiki_cross, mean average precision, {way}", ours / peer, 1, ">", against=name)
            for name, peer in peers.items()
        ]
    claims += [
        claim("50 components, 5000 rows, exponential chi-squared", row["speed-up"], 3,
              against=f"{name}, its kernel included", headline=name == DENSE)
        for name, row in tables["time"].items()
    ]  # fmt: skip
    return claims


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sizes = Sizes((20,), 1000, 1) if args.quick else Sizes()
    sets = {"digits": (load_digits(return_X_y=True)[0] / 8 - 1, 1200)}
    usps, wiki = arrays(args.data, "usps"), arrays(args.data, "wiki_cross")
    if usps:
        sets["usps"] = (usps["X_train"].astype(np.float64), 1500)
    if args.quick:
        sets = {name: (X, 300) for name, (X, _) in sets.items()}
    tables: dict[str, Any] = {"noise": {}, "retrieval": {}}
    with harness.threads(1):
        tables["time"] = timed(sizes)
        tables["retrieval"] = retrieved(wiki) if wiki else {}
        for name, (X, n_train) in sets.items():
            print(f"[{name}]", flush=True)
            tables["noise"][name] = denoised(Noise(X, n_train), sizes.components)
    figures = {f"{name}: noise removed": table for name, table in tables["noise"].items()}
    figures |= {"wiki_cross: retrieval": tables["retrieval"]} if tables["retrieval"] else {}
    figures |= {"Time": tables["time"]}
    harness.record(
        "reduction",
        {**sizes._asdict(), **figures},
        claims_of(tables),
        title="Reduction: kernel principal components and canonical correlations",
        text=TEXT,
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
