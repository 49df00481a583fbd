"""Linear machines on the features of a map: against LIBLINEAR and LinearSVC, whole fits."""

import warnings
from collections.abc import Callable
from typing import Any

import harness
import numpy as np
import scipy.sparse as sp
from harness import by_set, claim, compare
from sets import labeled_sets, one_class
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from svms import LIBLINEAR, Linear, liblinear_is_here

from hilbin.estimators import MapSVC
from hilbin.kernels import Chi2
from hilbin.maps import AdditiveMap
from hilbin.solvers import Hinge, Logistic

SETS = ("usps", "mfeat", "reuters_money")
LOSSES: dict[str, Any] = {
    "hinge": Hinge(), "squared_hinge": Hinge(squared=True), "logistic": Logistic()
}  # fmt: skip
SOLVERS = {"hinge": ("-s 3",), "squared_hinge": ("-s 1", "-s 2"), "logistic": ("-s 0", "-s 7")}
TOLERANCES = (0.1, 0.01, 1e-3, 1e-4)  # of the peers, from the loosest on
CS = (0.01, 1.0)
ENOUGH = 1e-3  # of the objective: the tolerance of MapSVC
ROWS, PATIENCE = 4000, 6
TEXT = (
    f"Whole fits on the same features, without intercept: MapSVC (tol={ENOUGH:g}, float32) against "
    f"LIBLINEAR {LIBLINEAR}, with the time to make its problem of a matrix, and scikit-learn's "
    "LinearSVC (LogisticRegression with solver liblinear). Features: AdditiveMap of chi2, 5 "
    f"features per value, each row over its norm, at most {ROWS} rows; reuters_money as counts. A "
    "peer gets the best of its solvers (dual -s 3; dual -s 1 and primal -s 2; primal -s 0 and dual "
    f"-s 7), each with the loosest tolerance of {TOLERANCES} whose objective is within {ENOUGH:g} "
    "of the best known; where none is, the tightest is timed, and its objective is in the table. One "
    "thread, best of interleaved rounds."
)

Row = dict[str, Any]


class Task:
    """One problem: features, labels, loss and cost, and the objective of weights.

    Parameters
    ----------
    Z : array or CSR
    y : array
        Labels.
    loss : str
    C : float
    """

    def __init__(self, Z: Any, y: Any, loss: str, C: float):
        self.Z, self.y, self.loss, self.C = Z, y, loss, C
        classes = np.unique(y)
        columns = classes[1:] if classes.size == 2 else classes
        self.T = np.where(y[:, None] == columns, 1.0, -1.0)

    def objective(self, W: Any) -> float:
        """Sum over all classes."""
        W = np.asarray(W, np.float64)
        losses = LOSSES[self.loss].value(self.T, self.Z.astype(np.float64) @ W.T).sum()
        return float(0.5 * np.square(W).sum() + self.C * losses)

    def own(self) -> Any:
        """Weights by MapSVC."""
        return (
            MapSVC(C=self.C, loss=self.loss, fit_intercept=False, tol=ENOUGH)
            .fit(self.Z, self.y)
            .coef_
        )

    def liblinear(self, solver: str, tol: float) -> Any:
        """Weights by LIBLINEAR."""
        model = Linear(self.Z, self.y).train(solver, f"-c {self.C} -e {tol}")
        W = model.weights.T
        return (
            W[np.argsort(model.labels)]
            if len(W) > 1
            else W * (1 if model.labels[0] == self.y.max() else -1)
        )

    def sklearn(self, dual: bool, tol: float) -> Any:
        """Weights by scikit-learn."""
        options: dict[str, Any] = {
            "C": self.C,
            "tol": tol,
            "fit_intercept": False,
            "max_iter": 3000,
            "random_state": 0,
        }
        if self.loss != "logistic":
            return LinearSVC(loss=self.loss, dual=dual, **options).fit(self.Z, self.y).coef_
        one = LogisticRegression(solver="liblinear", dual=dual, **options)
        return np.vstack([one.fit(self.Z, t).coef_ for t in self.T.T])

    def peers(self) -> dict[str, Callable[[float], Any]]:
        """Every solver of every peer, by its tolerance."""
        found: dict[str, Callable[[float], Any]] = {}
        if liblinear_is_here():
            for solver in SOLVERS[self.loss]:
                found[f"LIBLINEAR {solver}"] = lambda tol, s=solver: self.liblinear(s, tol)
        for dual in (True,) if self.loss == "hinge" else (True, False):
            name = f"scikit-learn, {'dual' if dual else 'primal'}"
            found[name] = lambda tol, d=dual: self.sklearn(d, tol)
        return found


def measure(task: Task, rounds: int) -> Row:
    """Seconds of all contenders at equal objectives, and these."""
    weights: dict[str, Any] = {"MapSVC": task.own()}
    values = {"MapSVC": task.objective(weights["MapSVC"])}
    calls: dict[str, Callable[[], Any]] = {"MapSVC": task.own}
    tolerances: dict[str, float] = {}
    for name, solve in task.peers().items():
        for tol in TOLERANCES:
            values[name], tolerances[name] = task.objective(solve(tol)), tol
            if values[name] <= (1 + ENOUGH) * min(values.values()):
                break
        calls[name] = lambda s=solve, t=tolerances[name]: s(t)
    times = compare(calls, rounds, patience=PATIENCE)
    best = min(values.values())
    row: Row = {f"{name}, s": t.best for name, t in times.items()}
    row |= {f"{name}, above the best": values[name] / best - 1 for name in values}
    row |= {f"{name}, tolerance": tol for name, tol in tolerances.items()}
    reached = [n for n in times if values[n] <= (1 + 2 * ENOUGH) * best]
    for peer in ("LIBLINEAR", "scikit-learn"):
        its = [times[n].best for n in times if n.startswith(peer)]
        equal = [times[n].best for n in reached if n.startswith(peer)]
        if its:
            row[f"faster than {peer}"] = min(equal or its) / times["MapSVC"].best
    return row


def tasks(data: Any, quick: bool) -> dict[str, Task]:
    """All problems by name."""
    found = {}
    for name, s in labeled_sets(data, SETS).items():
        rows = s.scaled().sample(300 if quick else ROWS)
        Z: Any = rows.X.astype(np.float32)
        if not sp.issparse(Z):
            Z = AdditiveMap(Chi2()).fit_transform(Z).astype(np.float32)
            Z /= np.linalg.norm(Z, axis=1, keepdims=True)
        for loss in LOSSES:
            for C in CS:
                label = f"{name}, {loss}, C={C:g}"
                found[f"{label}, binary"] = Task(Z, one_class(rows.y), loss, C)
            if np.unique(rows.y).size > 2:
                found[f"{name}, {loss}, C=1, one-vs-rest"] = Task(Z, rows.y, loss, 1.0)
    return found


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    warnings.simplefilter("ignore")
    table: dict[str, Row] = {}
    with harness.threads(1):
        for name, task in tasks(args.data, args.quick).items():
            table[name] = measure(task, 1 if args.quick else 7)
            print(name, {k: float(f"{v:.3g}") for k, v in table[name].items()}, flush=True)
    claims = []
    for peer in ("LIBLINEAR", "scikit-learn"):
        faster = {
            k: r[f"faster than {peer}"] for k, r in table.items() if f"faster than {peer}" in r
        }
        claims += by_set("MapSVC on features in memory, whole fit", faster, 1,
                         against=f"{peer}'s better solver at the same objective", kind="tasks",
                         headline=peer == "LIBLINEAR")  # fmt: skip
    above = max(r["MapSVC, above the best"] for r in table.values())
    claims.append(claim("MapSVC, objective above the best known, worst of all", above, ENOUGH, "<=",
                        unit="", against="LIBLINEAR, LinearSVC"))  # fmt: skip
    harness.record("linear_speed", {"whole fits": table}, claims,
                   title="Linear machines on features", text=TEXT, quick=args.quick)  # fmt: skip


if __name__ == "__main__":
    harness.keep_memory()
    main()
