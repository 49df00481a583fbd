"""What the ICD benchmarks compare: the solver without the binning, LIBLINEAR and LIBSVM."""

from copy import copy
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from data import Array
from sklearn.base import clone
from sklearn.svm import SVC

from hilbin.estimators import IntersectionSVC
from hilbin.kernels import Intersection
from hilbin.solvers import Hinge, Problem, Result, icd
from hilbin.solvers.icd import packed, start_random
from hilbin.solvers.lookup import Levels, LookupRows

try:
    import liblinear.liblinear as LL  # noqa: N812

    LIBLINEAR = f"{version('liblinear-official')}"
except ImportError:
    LL, LIBLINEAR = None, ""

SOLVER = {"squared_hinge": "-s 1", "hinge": "-s 3"}  # in the dual
SOLVERS = {"squared_hinge": ("-s 1", "-s 2"), "hinge": ("-s 3",)}  # all that LIBLINEAR has
TOLERANCE = {"-s 1": 0.1, "-s 2": 0.01, "-s 3": 0.1}  # of LIBLINEAR, by default
EXACT = {"squared_hinge": "-s 2 -e 0.0001", "hinge": "-s 3 -e 0.001"}
ONE_PASS = "-e 1e10"
PAPER_C = 1e-3  # of ICD, whatever the default of IntersectionSVC is


def liblinear_is_here() -> bool:
    """Whether it is installed; a line that says so if not."""
    if LL is None:
        print("LIBLINEAR is left out: pip install liblinear-official")
    return LL is not None


class Coded:
    """Training of an IntersectionSVC on rows that are levels already.

    Parameters
    ----------
    X, y : rows and their classes
    parameters
        Of the IntersectionSVC; by default the paper's C, and a range for every feature, so that
        solvers are compared on the same problems whatever the defaults are.
    """

    def __init__(self, X: Any, y: Array, **parameters: Any):
        self.model = IntersectionSVC(**{"C": PAPER_C, "scope": "feature", **parameters})
        self.training = self.model._prepare(X, y, None)
        self.binner, self.labels = self.training.binner, self.training.targets
        self.encoded = self.encode(X)
        self._given = copy(self.binner)  # hands out the levels that are there
        self._given.encode = lambda _, **options: self.encoded

    def encode(self, X: Any) -> Any:
        """Levels of any rows that are float64 already."""
        return self.binner.encode(X)

    @cached_property
    def values(self) -> Any:
        """The rows in the unit of the kernel, as float64."""
        return self.encoded.astype(np.float64) * self.binner.step_

    def levels(self) -> Levels:
        """With nothing computed from them yet."""
        return self._given.levels(None)

    def problems(self) -> list[Problem]:
        """One class against the rest, for every class, or the one problem of two classes."""
        classes = range(self.labels.max() + 1) if self.labels.max() > 1 else (1,)
        loss = Hinge(squared=self.model.loss == "squared_hinge")
        given = {"weights": self.model.C, "constant": self.training.constant}
        return [loss.problem(np.where(self.labels == k, 1.0, -1.0), **given) for k in classes]

    def pack(self, *, exact: bool = False) -> Any:
        """Look-up tables or a Gram matrix, as the estimator chooses; ``exact`` in float64."""
        problems = 1 if self.labels.max() == 1 else self.labels.max() + 1
        model = clone(self.model).set_params(tol=1e-6) if exact else self.model
        return model._solver_rows(self.levels(), problems)

    def solve(self, rows: Any = None, **course: Any) -> list[Result]:
        """All that ``fit`` does between the binning and the model: packing, descent, gaps."""
        rows = self.pack() if rows is None else rows
        course = {"tol": self.model.tol, "max_iter": self.model.max_iter} | course
        return [icd(rows, p, seed=self.training.seed, **course) for p in self.problems()]

    def sweep(self, rows: LookupRows, count: int = 1) -> None:
        """Whole sweeps of the first problem from zero, and the diagonal, of packed rows."""
        rows.norms = replace(rows.levels).norms  # computed, not remembered
        problem = self.problems()[0]
        n = problem.linear.size
        samples = packed(problem, rows.norms)
        sweep = rows.start(np.zeros(n), np.float32, None)
        order, totals, random = (
            np.arange(n, dtype=np.int32),
            np.zeros(3),
            start_random(self.training.seed),
        )
        for _ in range(count):
            sweep(samples, order, n, np.inf, -np.inf, 0.0, problem.constant, totals, random)


class LinearModel(NamedTuple):
    """Weights of every class, and in how many problems the dual was left after 300 sweeps.

    LIBLINEAR then goes on in the primal with the squared hinge loss, and stops with the hinge.
    """

    weights: Array
    labels: Array
    capped: int

    def score(self, X: Any, y: Array) -> float:
        """Accuracy."""
        scores = X @ self.weights
        best = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] <= 0).astype(int)
        return float(np.mean(self.labels[best] == y))

    def objective(self, X: Any, y: Array, *, squared: bool) -> float:
        """Sum of the primal objectives of all problems, C=1."""
        signs = np.where(y[:, None] == self.labels[: self.weights.shape[1]], 1.0, -1.0)
        losses = np.maximum(0, 1 - signs * (X @ self.weights))
        return float((self.weights**2).sum() / 2 + (losses ** (2 if squared else 1)).sum())


class Linear:
    """A problem of LIBLINEAR, built once.

    Parameters
    ----------
    X, y : rows and their classes
        Zeros are not stored.
    """

    def __init__(self, X: Any, y: Array):
        self.features = X.shape[1]
        self.problem = LL.problem(y.astype(np.float64), sp.csr_matrix(X))
        self._said: list[bytes] = []
        self._listen = LL.PRINT_STRING_FUN(self._said.append)

    def train(self, *options: str) -> LinearModel:
        """With its defaults (C=1, a tolerance of 0.1, no bias), except for the options."""
        parameter = LL.parameter(" ".join(options))
        LL.liblinear.set_print_string_function(self._listen)
        self._said.clear()
        model = LL.toPyModel(LL.liblinear.train(self.problem, parameter))
        columns = 1 if model.nr_class == 2 else model.nr_class
        weights = np.ctypeslib.as_array(model.w, (self.features, columns)).copy()
        capped = b"".join(self._said).count(b"reaching max number of iterations")
        return LinearModel(weights, np.array(model.get_labels()), capped)


def libsvm(K: Array, y: Array, **parameters: Any) -> SVC:
    """LIBSVM on a Gram matrix, with the C of IntersectionSVC."""
    return SVC(kernel="precomputed", C=PAPER_C, **parameters).fit(K, y)


def intersection(coded: Coded, rows: Any = None) -> Array:
    """Gram matrix of the training rows, or of other rows with them, in float64."""
    if rows is None:
        return Intersection().gram(coded.values)
    return Intersection().gram(coded.encode(rows) * coded.binner.step_, coded.values)
