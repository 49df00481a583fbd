"""Tests of independence: level, power and speed against hyppo, on its own simulations."""

import inspect
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import harness
import numpy as np
from data import Array
from harness import claim, compare

from hilbin.dependence import hsic_test

LEVEL = 0.05
INDEPENDENT = "multimodal_independence"
GAMMA, PERMUTATION = "hilbin, gamma", "hilbin, permutations"
CHI2, PEER = "hyppo, chi-squared", "hyppo, permutations"
TEXT = (
    "One thread, the default allocator. HSIC with Gaussian kernels, both libraries by their own "
    "median rules. **Level and "
    "power**: shares of {runs} samples of {rows} rows whose independence is rejected at 0.05, of "
    "every simulation of hyppo in one dimension, with its noise where it has some. Permutation "
    "tests have {permutations} permutations. The last simulation has independent sides: its share "
    "is the level. **Speed**: a test of one sample of the spiral, 1000 permutations."
)


class Sizes(NamedTuple):
    """How much is measured."""

    rows: int = 50
    runs: int = 100
    level_runs: int = 1000
    permutations: int = 200
    repeats: int = 5
    lengths: tuple[int, ...] = (100, 300, 1000)


def sample(simulate: Callable[..., tuple[Array, Array]], rows: int, seed: int) -> tuple[Array, ...]:
    """Rows of a simulation, which draws from NumPy's global generator."""
    np.random.seed(seed)  # noqa: NPY002
    options = {"noise": True} if "noise" in inspect.signature(simulate).parameters else {}
    return simulate(rows, 1, **options)


def tests(permutations: int) -> dict[str, Callable[[Array, Array], float]]:
    """p-values of every test."""
    from hyppo.independence import Hsic

    return {
        GAMMA: lambda x, y: hsic_test(x, y, method="gamma").pvalue,
        PERMUTATION: lambda x, y: (
            hsic_test(x, y, method="permutation", n_permutations=permutations).pvalue
        ),
        CHI2: lambda x, y: float(Hsic().test(x, y).pvalue),
        PEER: lambda x, y: float(Hsic().test(x, y, reps=permutations, auto=False).pvalue),
    }


def powers(sizes: Sizes, simulations: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Shares of rejected samples, by simulation and test."""
    table: dict[str, dict[str, float]] = {}
    for name, simulate in simulations.items():
        row = {}
        for test, pvalue in tests(sizes.permutations).items():
            runs = sizes.runs
            if name == INDEPENDENT and test != PEER:
                runs = sizes.level_runs
            each = [pvalue(*sample(simulate, sizes.rows, seed)) for seed in range(runs)]
            row[test] = float(np.mean(np.array(each) <= LEVEL))
        table[name] = row
        print(name, {test: round(share, 3) for test, share in row.items()}, flush=True)
    return table


def speeds(sizes: Sizes, simulate: Any) -> dict[str, dict[str, float]]:
    """Seconds of one test, by number of rows."""
    table = {}
    for rows in sizes.lengths:
        x, y = sample(simulate, rows, 0)
        timed: dict[str, float] = {}
        for pair in ((GAMMA, CHI2), (PERMUTATION, PEER)):
            some = tests(1000)
            contenders = {name: partial(some[name], x, y) for name in pair}
            times = compare(contenders, sizes.repeats, patience=60)
            timed |= {name: timing.best for name, timing in times.items()}
        table[f"{rows} rows"] = timed
        print(rows, {name: f"{s:.4f} s" for name, s in timed.items()}, flush=True)
    return table


def claims_of(power: dict[str, Any], speed: dict[str, Any], sizes: Sizes) -> list[dict[str, Any]]:
    """What must hold."""
    dependent = {name: row for name, row in power.items() if name != INDEPENDENT}
    means = {
        test: float(np.mean([row[test] for row in dependent.values()]))
        for test in (GAMMA, PERMUTATION, CHI2, PEER)
    }
    allowed = LEVEL + 2 * np.sqrt(LEVEL * (1 - LEVEL) / sizes.level_runs)
    claims = []
    for test, peer in ((PERMUTATION, PEER), (GAMMA, PEER), (GAMMA, CHI2)):
        if peer == PEER:
            share = power[INDEPENDENT][test]
            claims.append(claim(f"level at 0.05, {test}", share, allowed, "<=", unit=""))
        above = means[test] - means[peer]
        claims.append(claim(f"mean power above, {test}", above, -0.02, against=peer, unit=""))
        for rows, times in speed.items():
            ratio = times[peer] / times[test]
            headline = test == PERMUTATION and rows == "300 rows"
            claims.append(
                claim(f"speed of a test, {test}, {rows}", ratio, 5, against=peer, headline=headline)
            )
    return claims


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    try:
        from hyppo.tools import SIMULATIONS
    except ImportError as error:
        print(f"hyppo cannot be imported ({error}): nothing is measured")
        return
    warnings.simplefilter("ignore")
    sizes = Sizes(30, 5, 20, 50, 1, (100,)) if args.quick else Sizes()
    with harness.threads(1):
        speed = speeds(sizes, SIMULATIONS["spiral"])
        power = powers(sizes, SIMULATIONS)
    harness.record(
        "dependence",
        {**sizes._asdict(), "Level and power": power, "Speed, seconds": speed},
        claims_of(power, speed, sizes),
        title="Tests of independence",
        text=TEXT.format(**sizes._asdict()),
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
