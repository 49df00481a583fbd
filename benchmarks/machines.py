"""Kernel machines on sparse Gram matrices, and on one that does not fit in memory.

Measured for ``kernel_machines.py``; run as a program, this file trains the big task alone.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import numpy as np
from data import Array, color_histograms
from gcs import peak, reset_peak
from harness import compare
from sets import labeled_sets, one_class
from sklearn.svm import SVC

from hilbin.estimators import KernelSVC
from hilbin.kernels import GCS, Chi2, Exponential, Sparsity
from hilbin.solvers import gram_rows

CACHE = 4096  # MiB of the big task


def fitting(model: Any, X: Any, y: Array) -> Callable[[], object]:
    """A fit to be timed."""
    return lambda: model.fit(X, y)


def exp_chi2(X: Array) -> Exponential:
    """Of median width."""
    return Exponential(Chi2(), gamma="median").resolve(X, random_state=0)


def sparse_rows(folder: Path | None, rows: int) -> dict[str, tuple[Array, Array]]:
    """Rows and signs for GCS: color-like histograms, and real sets of few and many columns."""
    X = color_histograms(rows)
    signs = np.where(X[:, 3] + X[:, 17] > np.median(X[:, 3] + X[:, 17]), 1, -1)
    found = {"color-like histograms": (X, signs)}
    for name, s in labeled_sets(folder, ("usps", "shuttle", "ijcnn1")).items():
        some = s.sample(rows).scaled()
        found[name] = np.ascontiguousarray(some.X, np.float64), one_class(some.y)
    return found


def sparse_training(X: Array, y: Array, rounds: int) -> dict[str, float]:
    """The same GCS matrix as CSR and dense: time of the fit, bytes of the matrix."""
    K = GCS(Sparsity(0.902)).resolve(X, random_state=0).gram(X)
    full = K.toarray()
    model = KernelSVC("precomputed", 10.0)
    libsvm = SVC(kernel="precomputed", C=10.0, cache_size=1000)
    calls = {
        "sparse": fitting(model, K, y),
        "dense": fitting(model, full, y),
        "LIBSVM": fitting(libsvm, full, y),
    }
    times = compare(calls, rounds)
    stored = K.data.nbytes + K.indices.nbytes + K.indptr.nbytes
    dense_scores = model.fit(full, y).decision_function(full)
    apart = np.abs(model.fit(K, y).decision_function(K) - dense_scores).max()
    reading = scattered(K, model)
    return {
        "zeros": 1 - K.nnz / K.shape[0] ** 2,
        "sparse, s": times["sparse"].best,
        "dense, s": times["dense"].best,
        "speed-up": times["dense"].best / times["sparse"].best,
        "LIBSVM, dense, s": times["LIBSVM"].best,
        "speed-up over LIBSVM": times["LIBSVM"].best / times["sparse"].best,
        "bytes / dense": stored / full.nbytes,
        "scores, largest difference": float(apart),
        "entries that steps read, s at the rate of a bare loop": reading,
        "share of the fit": reading / times["sparse"].best,
        "speed-up if nothing else took time": times["dense"].best / reading,
    }


def scattered(K: Any, model: Any) -> float:
    """Seconds that the entries which a fit must read take in a loop that does nothing else.

    A step reads a row to choose its partner and adds two rows to the gradient; the products of the
    certificate read those of the support vectors once more. The loop adds some rows to a vector.
    """
    rows = np.random.default_rng(0).permutation(model.support_)[: len(model.support_) // 3]
    coef = np.zeros(K.shape[0])
    coef[rows] = 1.0
    gram = gram_rows(K)
    seconds = compare({"loop": lambda: gram.scores(coef)}, 5)["loop"].best
    return seconds / rows.size * (3 * model.n_iter_ + len(model.support_))


def big_task(folder: Path | None, rows: int) -> dict[str, float] | None:
    """Trained in a process of its own."""
    if folder is None:
        return None
    command = [sys.executable, __file__, str(folder), str(rows)]
    usual = {name: value for name, value in os.environ.items() if name not in harness.KEPT_MEMORY}
    answer = subprocess.run(command, check=True, capture_output=True, text=True, env=usual)
    return json.loads(answer.stdout)


def report_big_task(folder: Path, rows: int) -> None:
    """What that process does."""
    found = labeled_sets(folder, ("fashion_mnist",)).get("fashion_mnist")
    if found is None:
        print("null")
        return
    s = found.sample(rows).scaled()
    X, y = s.X.astype(np.float32), np.where(s.y == 6, 1, -1)
    test, signs = s.X_test.astype(np.float32), np.where(s.y_test == 6, 1, -1)
    del s, found
    model = KernelSVC(exp_chi2(X), 10.0, memory=CACHE, n_jobs=1)
    with harness.threads(1):
        before = reset_peak()
        seconds = harness.seconds(lambda: model.fit(X, y))
        grown = peak() - before
    print(
        json.dumps(
            {
                "rows": len(X),
                "seconds": seconds,
                "steps": model.n_iter_,
                "support vectors": len(model.support_),
                "gap / objective": float(model.gap_[0] / model.objective_[0]),
                "converged": model.converged_,
                "whole matrix, GiB": len(X) ** 2 * 4 / 2**30,
                "peak above the data, GiB": grown / 2**30,
                "accuracy": float(model.score(test, signs)),
            }
        )
    )


if __name__ == "__main__":
    report_big_task(Path(sys.argv[1]), int(sys.argv[2]))
