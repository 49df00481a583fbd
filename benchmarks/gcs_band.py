"""Whether a sparse Gram matrix should be reordered to a band: memory, products, solving.

Section 4 of Boughorbel, Tarel, Fleuret and Boujemaa reorders the Gram matrix of the GCS kernel by
reverse Cuthill-McKee and keeps the band alone. The peer is the same matrix in CSR. One thread.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import harness
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from data import Array, color_histograms
from harness import claim, compare
from scipy.linalg import blas

from hilbin.kernels import GCS, Reordering, Sparsity, reorder
from hilbin.solvers import kernel_ridge

CSR, BAND, DENSE = "CSR", "band", "dense"
ALPHA = 0.1
ZEROS = (0.9, 0.99, 0.999)
TEXT = (
    "Gram matrices of GCS in float64, radius by the share of zeros. Rows: fourth roots of "
    "color-like histograms in 64 bins, and uniform random points in a square and on a line. The "
    "bandwidth is that after reverse Cuthill-McKee; 'covers' is the share of the matrix within "
    "the band. Memory: 12 bytes per non-zero entry for CSR, 8 n (b + 1) for the symmetric band, "
    "8 n^2 for the dense matrix. A product with a vector is SciPy's for CSR, BLAS dsbmv for the "
    "band and dgemv for the dense matrix. 'Solve' is kernel ridge regression of one target "
    f"with alpha = {ALPHA}: conjugate gradients on CSR to a relative duality gap of 1e-16, "
    "LAPACK's banded Cholesky (dpbsv), dense Cholesky. Best of the rounds."
)


class Sizes(NamedTuple):
    """How much is measured."""

    rows: int = 4000
    rounds: int = 5


def rows_of(kind: str, count: int) -> Array:
    """Rows of one of the kinds."""
    if kind == "64 colors":
        return color_histograms(count)
    return np.random.default_rng(0).uniform(size=(count, {"square": 2, "line": 1}[kind]))


def banded(K: sp.csr_array, found: Reordering) -> Array:
    """The lower band of the reordered matrix, as LAPACK stores it."""
    entries = sp.coo_array(found.apply(K))
    row, column = entries.coords
    below = (row >= column) & (entries.data != 0)  # the table of GCS has zeros near its end
    band = np.zeros((found.bandwidth + 1, K.shape[0]), order="F")
    band[(row - column)[below], column[below]] = entries.data[below]
    return band


def products(K: sp.csr_array, A: Array, band: Array, order: Array) -> dict[str, Any]:
    """Ways to multiply a vector, checked against each other."""
    v = np.random.default_rng(1).normal(size=K.shape[0])
    moved = v[order]
    ways: dict[str, Callable[[], Array]] = {
        CSR: lambda: K @ v,
        BAND: lambda: blas.dsbmv(band.shape[0] - 1, 1.0, band, moved, lower=1),
        DENSE: lambda: A @ v,
    }
    answers = {name: way() for name, way in ways.items()}
    np.testing.assert_allclose(answers[CSR], answers[DENSE], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(answers[CSR][order], answers[BAND], rtol=1e-9, atol=1e-9)
    return ways


def solutions(K: sp.csr_array, A: Array, band: Array, order: Array) -> dict[str, Any]:
    """Ways to solve the equations of kernel ridge regression, checked against each other."""
    t = np.random.default_rng(2).normal(size=K.shape[0])
    shifted = band.copy(order="F")
    shifted[0] += ALPHA

    def dense_solve() -> Array:
        H = A.copy()
        H[np.diag_indices_from(H)] += ALPHA
        return scipy.linalg.solve(H, t, assume_a="pos", overwrite_a=True, check_finite=False)

    ways: dict[str, Callable[[], Array]] = {
        CSR: lambda: kernel_ridge(K, t, ALPHA, fit_intercept=False).coef[:, 0],
        BAND: lambda: scipy.linalg.solveh_banded(shifted, t[order], lower=True, check_finite=False),
        DENSE: dense_solve,
    }
    answers = {name: way() for name, way in ways.items()}
    np.testing.assert_allclose(answers[CSR], answers[DENSE], atol=1e-5)
    np.testing.assert_allclose(answers[CSR][order], answers[BAND], atol=1e-5)
    return ways


def measure(kind: str, zeros: float, sizes: Sizes) -> dict[str, Any]:
    """All figures of one matrix."""
    X = rows_of(kind, sizes.rows)
    K = GCS(Sparsity(zeros)).resolve(X, random_state=0).gram(X)
    found: list[Reordering] = []
    seconds = harness.seconds(lambda: found.append(reorder(K)))
    (best,) = found
    A, band = K.toarray(), banded(K, best)
    with harness.threads(1):
        product = compare(products(K, A, band, best.order), sizes.rounds)
        solve = compare(solutions(K, A, band, best.order), sizes.rounds, patience=60)
    memory = {CSR: 12 * K.nnz, BAND: band.nbytes, DENSE: A.nbytes}
    names = (CSR, BAND, DENSE)
    return (
        {"zeros, %": 100 * (1 - best.density), "bandwidth": best.bandwidth}
        | {"covers, %": 100 * best.coverage, "reorder, ms": 1e3 * seconds}
        | {f"{name}, MB": memory[name] / 1e6 for name in names}
        | {f"{name}, product, ms": 1e3 * product[name].best for name in names}
        | {f"{name}, solve, ms": 1e3 * solve[name].best for name in names}
    )


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    sizes = Sizes(rows=800, rounds=2) if args.quick else Sizes()
    table = {
        f"{kind}, {100 * zeros:g} % zeros": measure(kind, zeros, sizes)
        for kind in ("64 colors", "square", "line")
        for zeros in ZEROS
    }
    worst = {kind: min(row["band, MB"] / row["CSR, MB"] for name, row in table.items()
                       if name.startswith(kind)) for kind in ("64 colors", "square")}  # fmt: skip
    claims = [
        claim(f"Memory of the band, {kind}, least of {len(ZEROS)} shares of zeros", ratio, 1, ">",
              against="CSR")
        for kind, ratio in worst.items()
    ]  # fmt: skip
    harness.record("gcs_band", {**sizes._asdict(), "By rows and share of zeros": table}, claims,
                   title="Reordering sparse Gram matrices", text=TEXT,
                   quick=args.quick)  # fmt: skip


if __name__ == "__main__":
    main()
