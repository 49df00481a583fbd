"""How close features of single values come to additive kernels, by the number of features.

Against scikit-learn, the harmonic map and the least error that any map can have. Errors, no times.
"""

import warnings
from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array, real_histograms
from harness import by_set, claim
from sklearn.kernel_approximation import AdditiveChi2Sampler

from hilbin.kernels import AdditiveKernel, Chi2, Intersection, JensenShannon
from hilbin.maps import AdditiveMap
from hilbin.maps.density import Density, density

PEER = "scikit-learn AdditiveChi2Sampler"
DEFAULT, BOUND = "hilbin, default", "eigenvalue bound"
SYNTHETIC = "log-uniform"
FEATURES = 5  # per value, what is claimed for
SETTINGS: dict[str, dict[str, Any]] = {
    "harmonic": {"method": "harmonic"},
    "chebyshev": {"method": "chebyshev"},
    "series, greedy": {"parameters": "greedy"},
    "series, greedy-density": {"parameters": "greedy-density"},
    "series, zolotarev": {"parameters": "zolotarev"},
    "series, universal": {"parameters": "universal"},
    "series, fit": {"method": "series"},
    "nystroem": {"method": "nystroem"},
    "eigen": {"method": "eigen"},
    DEFAULT: {},
}
TEXT = (
    "Rows sum to 1. A map is fitted to a random half of a set. RMS is its error of k(x, y) for two "
    "independent values of that half, zeros left out, over 300 bins of log x. Frobenius is the "
    "relative error of the Gram matrix of up to 800 rows of the other half. Log-uniform is 400 "
    "values in [1e-4, 1], fitted and measured on all. AdditiveChi2Sampler has one step for all "
    "data; the harmonic map, the same samples of the spectrum at the step that is best for the "
    "data, is compared too, and is the peer of the kernels the sampler does not have. The bound, "
    "the root of the sum of the squared eigenvalues beyond the first N over the same bins, is the "
    "least RMS that N features per value can have. The default is next to it, so it gains what the "
    "kernel allows. That is little for Intersection, whose eigenvalues fall as 1 / j²: the default "
    "misses the 20× asked for. Its RMS is the least that 5 features per value can have, and that "
    'is below the harmonic map by no more than the column "harmonic / bound" says. SparseMap is '
    "the way to accuracy there: its nodes cost no time. The chebyshev map is a reconstruction."
)

Table = dict[str, dict[str, Any]]


class Sizes(NamedTuple):
    """How much is measured."""

    rows: int = 8000
    gram_rows: int = 800
    most_features: int = 9


class Split(NamedTuple):
    """Rows to fit on and rows to measure on."""

    fit: Array
    held: Array


class Errors(NamedTuple):
    """Of single values, and of the Gram matrix of rows."""

    rms: float
    frobenius: float


ByFeatures = dict[str, dict[int, Errors]]


def halves(real: dict[str, Array], rows: int) -> dict[str, Split]:
    """The synthetic values, and every real set in two halves."""
    column = np.geomspace(1e-4, 1, 400)[:, None]
    return {SYNTHETIC: Split(column, column)} | {
        name: Split(X[: len(X) // 2], X[len(X) // 2 :][:rows]) for name, X in real.items()
    }


def frobenius(K: Array, Z: Array) -> float:
    """Relative error of the inner products of ``Z``."""
    return float(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))


def bounds(values: Density) -> Array:
    """At index ``n`` the least RMS error of ``n`` features per value."""
    root = np.sqrt(values.mass)
    lam = np.linalg.eigvalsh(root[:, None] * values.kernel_matrix() * root)
    return np.sqrt(np.cumsum(lam**2))[::-1]


def map_errors(
    kernel: AdditiveKernel, n: int, split: Split, settings: dict[str, Any]
) -> tuple[Errors, str]:
    """Both errors of an AdditiveMap, and its method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # fewer features where the rank is less
        fitted = AdditiveMap(kernel, n, **settings).fit(split.fit)
    error = frobenius(kernel.gram(split.held), fitted.transform(split.held))
    return Errors(fitted.error_.expected, error), fitted.method_


def peer_errors(steps: int, split: Split) -> Errors:
    """Both errors of AdditiveChi2Sampler, ``2 steps - 1`` features per value."""
    sampler, values = AdditiveChi2Sampler(sample_steps=steps), density(Chi2(), split.fit)
    phi = sampler.fit_transform(values.x[:, None])
    squares = np.square(values.kernel_matrix() - phi @ phi.T)
    rms = float(np.sqrt(values.mass @ squares @ values.mass))
    return Errors(rms, frobenius(Chi2().gram(split.held), sampler.fit_transform(split.held)))


def chi2_by_features(split: Split, most: int) -> ByFeatures:
    """Errors of all methods for chi-squared at 1 .. ``most`` features per value."""
    found: ByFeatures = {PEER: {2 * s - 1: peer_errors(s, split) for s in (1, 2, 3)}}
    for name, settings in SETTINGS.items():
        found[name] = {n: map_errors(Chi2(), n, split, settings)[0] for n in range(1, most + 1)}
    return found


def five_features(kernel: AdditiveKernel, split: Split) -> dict[str, Any]:
    """What the claims are about."""
    own, method = map_errors(kernel, FEATURES, split, {})
    waves, _ = map_errors(kernel, FEATURES, split, SETTINGS["harmonic"])
    bound = bounds(density(kernel, split.fit))[FEATURES]
    peer = peer_errors(3, split).frobenius if isinstance(kernel, Chi2) else None
    return {
        "sampler, Frobenius": peer,
        "harmonic, Frobenius": waves.frobenius,
        "default, Frobenius": own.frobenius,
        "sampler / default, Frobenius": peer / own.frobenius if peer else None,
        "harmonic / default, Frobenius": waves.frobenius / own.frobenius,
        "default, RMS": own.rms,
        "default / bound, RMS": own.rms / bound,
        "harmonic / bound, RMS": waves.rms / bound,
        "default is": method,
    }


def make_claims(five: dict[str, Table]) -> list[dict[str, Any]]:
    """What is promised, beside what was measured."""
    claims = []
    for kernel, rows in five.items():
        what = f"AdditiveMap({kernel}), {FEATURES} features"
        peer = PEER if kernel == "Chi2" else "harmonic map"
        column = f"{'sampler' if kernel == 'Chi2' else 'harmonic'} / default, Frobenius"
        gains = {name: row[column] for name, row in rows.items() if name != SYNTHETIC}
        claims += by_set(f"{what}, less error", gains, 20, against=f"{peer}, as many features",
                         headline=kernel != "JensenShannon")  # fmt: skip
        worst = max(row["default / bound, RMS"] for row in rows.values())
        claims.append(
            claim(f"{what}, RMS error, worst of {len(rows)} sets", worst, 1.3, "<=",
                  against="the least any map can have")
        )  # fmt: skip
    return claims


def make_plot(table: Table, counts: list[int]) -> dict[str, Any]:
    """Curves for :mod:`render`, one panel for each set."""
    panels: Table = {}
    for label, row in table.items():
        name, curve = label.split(": ")
        panels.setdefault(name, {})[curve] = [row.get(str(n)) for n in counts]
    return {
        "name": "maps-chi2",
        "title": "Chi2 by explicit features: error of single values",
        "axis": "features per value",
        "height": "RMS error",
        "x": counts,
        "panels": panels,
        "strong": [DEFAULT],
        "bounds": [BOUND],
    }


def chi2_tables(splits: dict[str, Split], most: int) -> tuple[Table, Table]:
    """RMS and Frobenius errors, a row for each set and method, a column for each number."""
    rms: Table = {}
    whole: Table = {}
    for name, split in splits.items():
        limits = bounds(density(Chi2(), split.fit))
        for method, errors in chi2_by_features(split, most).items():
            rms[f"{name}: {method}"] = {str(n): e.rms for n, e in errors.items()}
            whole[f"{name}: {method}"] = {str(n): e.frobenius for n, e in errors.items()}
        rms[f"{name}: {BOUND}"] = {str(n): float(limits[n]) for n in range(1, most + 1)}
    return rms, whole


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    sizes = Sizes(rows=400, gram_rows=100, most_features=5) if args.quick else Sizes()
    real = {name: X[: sizes.rows] for name, X in real_histograms(args.data).items()}
    splits = halves(real, sizes.gram_rows)
    five = {
        type(kernel).__name__: {name: five_features(kernel, s) for name, s in splits.items()}
        for kernel in (Chi2(), JensenShannon(), Intersection())
    }
    rms, whole = chi2_tables(splits, sizes.most_features)
    figures = {
        **sizes._asdict(),
        **{f"{kernel}, 5 features per value": rows for kernel, rows in five.items()},
        "Chi2, RMS error by features per value": rms,
        "Chi2, Frobenius error by features per value": whole,
    }
    harness.record(
        "maps",
        figures,
        make_claims(five),
        title="Features of additive kernels: accuracy",
        text=TEXT,
        plots=[make_plot(rms, list(range(1, sizes.most_features + 1)))],
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
