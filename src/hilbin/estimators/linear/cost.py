r"""The cost of a fit from sums, known before it is done.

With :math:`n` rows, :math:`D` features and :math:`c` targets a fit takes

.. math::
    T = n \, (p_r\, \rho + p_m\, \mu + \pi_1 D + \pi_2 D^2)
        + \sigma_1 D^2 + \sigma_2 D^3 + \sigma_3 D^2 c + \text{start}

seconds: :math:`p_r` passes read the rows, :math:`p_m` of them map the rows and sum products.
Reading (:math:`\rho` seconds a row), fitting the map to a sample (start) and mapping (:math:`\mu`
seconds a row) are measured on the first rows, since they depend on where the rows lie and on the
map. Products and solutions depend on sizes alone: their coefficients are those that
``benchmarks/scale.py`` has fitted on one machine, times how long a small product and a small
decomposition take here. On :math:`p` workers rows are divided, and sums of :math:`8 D^2` bytes are
added along a tree.
"""

import time
from collections.abc import Callable, Iterable
from functools import cache
from math import ceil, log2
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from hilbin import parallel
from hilbin._arrays import Matrix
from hilbin.estimators.linear.progress import duration
from hilbin.estimators.linear.transformers import (
    TALL,
    Transformer,
    group_features,
    joint_features,
)
from hilbin.stats import Moments
from hilbin.stats.moments import is_thin
from hilbin.stream import Chunk, Chunks, as_chunks

NETWORK = 1e9  # bytes a second between workers: assumed, not measured
FIRST_ROWS, PATIENCE = 1024, 2.0  # rows that are read and mapped, and seconds for reading more
PRODUCT, SOLUTION = (1024, 512), 384  # sizes at which the machine is compared
HELD = 4  # chunks of a source, in memory at a time
COPIES = 4  # of the matrix of sums, at most at a time, while it is decomposed
# Seconds for every unit, on one core of an AMD EPYC (benchmarks/results/scale.json). Those of
# Cholesky were fitted to six problems of 512 to 2,048 features, on a busier day, over the ratio of
# the eigen-decompositions of both days; the cube, a third of a product's, is not seen there.
PRODUCTS = {"n D": 3.2e-9, "n D^2": 2.4e-11}
SOLUTIONS = {
    "eigen": {"D^2": 1.7e-7, "D^3": 1.7e-10, "D^2 c": 2.5e-10},
    "cholesky": {"D^2": 2.5e-8, "D^3": 8.0e-12, "D^2 c": 1.6e-10},
}
MODEL = (
    "reading and mapping measured on the first {rows:,} rows, products and solution by "
    "coefficients of benchmarks/scale.py times {product:.2g} and {solution:.2g}, measured here"
)


class CostEstimate(NamedTuple):
    """The time and memory that a fit is expected to take; ``estimate_cost`` returns it.

    Parameters
    ----------
    seconds : float
        Time of the fit.
    bytes : int
        Memory of chunks, features and sums at the largest moment, besides data that are in memory
        already.
    parts : dict
        Seconds of every part: read, start (fitting maps), map, product, solve, and merge on several
        workers.
    n_rows, n_features_out : int
        The numbers of rows and of features that the estimate is for.
    model : str
        By which model, and from which measurements.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import MapRidge
    >>> cost = MapRidge().estimate_cost(np.random.default_rng(0).random((2000, 50)))
    >>> cost.n_rows, cost.n_features_out, sorted(cost.parts)
    (2000, 50, ['map', 'product', 'read', 'solve', 'start'])
    >>> cost.seconds == sum(cost.parts.values())
    True
    """

    seconds: float
    bytes: int
    parts: dict[str, float]
    n_rows: int
    n_features_out: int
    model: str

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {duration(part)}" for name, part in self.parts.items())
        size = f"{self.n_rows:,} rows, {self.n_features_out:,} features"
        return f"{duration(self.seconds)} ({parts}) and {self.bytes / 1e6:,.0f} MB for {size}"


class Plan(NamedTuple):
    """What a fit does with rows and sums.

    Attributes
    ----------
    read : int
        Passes that read rows and do next to nothing with them.
    sums : tuple of tuples of int
        Widths of the matrices of sums of every other pass, which maps the rows.
    scored : tuple of int
        Multiplications by row of further passes that map rows.
    solution : {"eigen", "cholesky"} or None
        How the sums are solved; None if the number of rounds is not known.
    size, targets : int
        Unknowns and targets of the solution.
    few_rows : bool
        Whether all rows are kept, and their inner products computed instead of sums.
    """

    read: int
    sums: tuple[tuple[int, ...], ...]
    scored: tuple[int, ...]
    solution: str | None
    size: int
    targets: int
    few_rows: bool = False


class FirstRows(NamedTuple):
    """The first rows of the data, and what reading them took.

    ``held`` are bytes of all chunks that are in memory at a time, 0 if the data lie there.
    """

    X: Matrix
    y: Any
    n_rows: int
    held: int
    seconds_per_row: float


class Measured(NamedTuple):
    """What the first rows have shown: seconds for every row, and for fitting the maps."""

    rows: FirstRows
    widths: tuple[int, ...]
    start: float
    map: float
    product: float | None


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and what it returns."""
    begin = time.perf_counter()
    found = call()
    return time.perf_counter() - begin, found


def read_first(X: Any, wanted: int, n_rows: int | None, budget: int) -> FirstRows:
    """Read rows from the beginning of a source: ``wanted``, or as many as two seconds allow.

    A fit will hold chunks of ``budget`` bytes, unless they are cut already.
    """
    part, parts = first_part(X)
    chunks = as_chunks(part, rows=wanted)
    found: list[Chunk] = []
    begin = time.perf_counter()
    for unread in chunks.unread():
        found.append(unread.read())
        took = time.perf_counter() - begin
        if took > PATIENCE or sum(chunk.X.shape[0] for chunk in found) >= wanted:
            break
    rows = sum(chunk.X.shape[0] for chunk in found)
    if not rows:
        raise ValueError("X has no rows")
    n_rows = counted(X, chunks, parts) if n_rows is None else n_rows
    matrices = [chunk.X for chunk in found]
    sparse = sp.issparse(matrices[0])
    joined = sp.csr_array(sp.vstack(matrices)) if sparse else np.concatenate(matrices)
    targets = [chunk.y for chunk in found if chunk.y is not None]
    y = np.concatenate(targets) if len(targets) == len(found) else None
    row_bytes = matrix_bytes(joined) / rows
    largest = max(chunk.X.shape[0] for chunk in found) * row_bytes
    held = int(min(HELD * largest if chunks is X else budget, n_rows * row_bytes))
    return FirstRows(joined[:wanted], y, n_rows, held, took / rows)


def first_part(X: Any) -> tuple[Any, int]:
    """Return a source whose size is known, and how many such parts there are.

    Dask data frames and arrays of unknown length would have to be computed to be counted: their
    first partition stands for the others.
    """
    if hasattr(X, "to_dask_array"):
        return X.partitions[0], X.npartitions
    if hasattr(X, "__dask_graph__") and np.isnan(X.shape[0]):
        return X.blocks[0], X.numblocks[0]
    return X, 1


def counted(X: Any, chunks: Chunks, parts: int) -> int:
    """Return the number of rows of a source, if it tells."""
    if chunks.length is not None:
        return chunks.length * parts
    if isinstance(X, list | tuple):
        matrices: Iterable[Any] = (chunk[0] if isinstance(chunk, tuple) else chunk for chunk in X)
        return sum(np.shape(matrix)[0] for matrix in matrices)
    raise ValueError("the number of rows of X is not known: pass n_rows")


def number_kept(n_components: Any, width: int) -> int:
    """Return the number of components, at most; a share of the variance may be all."""
    whole = isinstance(n_components, Integral)
    return min(int(n_components), width) if whole else width


def matrix_bytes(X: Matrix) -> int:
    """Return the memory of a dense or sparse matrix."""
    return int(X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes)


def measure(rows: FirstRows, fit: Callable[[Matrix], list[Transformer]]) -> Measured:
    """Fit the maps to the first rows, as ``fit`` does, and map some of them."""
    start, transformers = timed(lambda: fit(rows.X))
    some = rows.X[:FIRST_ROWS]
    group_features(transformers, some[:1])
    mapped, groups = timed(lambda: group_features(transformers, some))
    Z = joint_features(transformers, some)
    n, product = some.shape[0], None
    if sp.issparse(Z) and is_thin(Z, None, n):
        product = timed(lambda: Moments.of(Z))[0] / n
    bare = all(feature_map is None for _, _, feature_map in transformers)
    widths = tuple(group.shape[1] for group in groups)
    return Measured(rows, widths, start, 0.0 if bare else mapped / n, product)


@cache
def speeds(threads: int | None) -> tuple[float, float]:
    """Return how long products and solutions take here, over what the coefficients say."""
    random = np.random.default_rng(0)
    Z = random.normal(size=PRODUCT)
    H = Z[:, :SOLUTION].T @ Z[:, :SOLUTION]
    with parallel.blas_threads(threads):
        product = min(timed(lambda: Moments.of(Z).scatter)[0] for _ in range(3))
        eigen = min(timed(lambda: eigh(H))[0] for _ in range(2))
    return product / by_row(PRODUCT[1]) / len(Z), eigen / solution_seconds("eigen", SOLUTION, 0)


def by_row(width: int) -> float:
    """Return the seconds of the products of a row with itself, by the coefficients."""
    return PRODUCTS["n D"] * width + PRODUCTS["n D^2"] * width**2


def solution_seconds(kind: str, size: int, targets: int) -> float:
    """Return the seconds of a solution, by the coefficients."""
    terms = SOLUTIONS[kind]
    return terms["D^2"] * size**2 + terms["D^3"] * size**3 + terms["D^2 c"] * size**2 * targets


def estimated(
    plan: Plan, measured: Measured, budget: float, jobs: int, n_workers: int
) -> CostEstimate:
    """Return the cost of a plan, on ``jobs`` threads of each of some workers."""
    n, D = measured.rows.n_rows, sum(measured.widths)
    product_speed, solution_speed = speeds(1 if jobs * n_workers > 1 else None)
    together = jobs * n_workers
    maps = len(plan.sums) + len(plan.scored)
    product = sum(by_row(width) for widths in plan.sums for width in widths) * product_speed
    if plan.few_rows:  # inner products of rows, and directions from them
        product = 2 * PRODUCTS["n D^2"] * n * D * (2 if plan.solution == "eigen" else 1)
        product *= product_speed
    elif measured.product is not None:
        product = measured.product * len(plan.sums)
    product += sum(plan.scored) * PRODUCTS["n D^2"] * product_speed
    parts = {
        "read": n * measured.rows.seconds_per_row * (plan.read + maps) / together,
        "start": measured.start,
        "map": n * measured.map * maps / together,
        "product": n * product / together,
        "solve": 0.0,
    }
    if plan.solution is not None:
        seconds = solution_seconds(plan.solution, plan.size, plan.targets)
        parts["solve"] = seconds * solution_speed
    if n_workers > 1:
        parts["merge"] = ceil(log2(n_workers)) * 8 * D**2 / NETWORK
    about = MODEL.format(
        rows=measured.rows.X.shape[0], product=product_speed, solution=solution_speed
    )
    if plan.solution is None:
        about += "; the rounds of the solver are not known beforehand and not counted"
    size = memory(plan, measured, budget, jobs)
    return CostEstimate(sum(parts.values()), size, parts, n, D, about)


def memory(plan: Plan, measured: Measured, budget: float, jobs: int) -> int:
    """Return the bytes of chunks and features, and of sums or the rows kept instead."""
    n, D = measured.rows.n_rows, sum(measured.widths)
    features = min(budget, 8 * D * min(n, max(D, TALL)))
    if plan.few_rows:
        return int(measured.rows.held + 3 * 8 * n * D + COPIES * 8 * n * n)
    largest = max(sum(width**2 for width in widths) for widths in plan.sums)
    summing = measured.rows.held + jobs * (2 * features + 8 * largest) + 8 * largest
    solving = COPIES * 8 * max(plan.size**2, largest) + 3 * 8 * D * plan.targets
    return int(max(summing, solving))
