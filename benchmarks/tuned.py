"""What scikit-learn offers, each with its scaling, C and gamma by 5-fold cross-validation."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from data import Array
from sets import Labeled
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from trials import Outcome, Task, by_row, listed

FOLDS = 5
TUNING_ROWS = 4000  # C and gamma come from at most as many training rows, stratified
CS = tuple(10.0**k for k in range(-3, 4))
RBF_CS = (0.1, 1.0, 10.0, 100.0, 1000.0)
GAMMAS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)  # over 1 / (features times variance)
PATIENCE = 2  # worse values of C, after which larger ones are not tried
SCALED, ROOTS, TFIDF = "scaled LinearSVC", "√ + LinearSVC", "tf-idf + LinearSVC"
LOGISTIC, RBF = "logistic regression", "RBF SVC"
PEERS = (SCALED, ROOTS, TFIDF, LOGISTIC, RBF)
FOREST, BOOSTED = "random forest", "HistGradientBoosting"


class UnitNorm(TransformerMixin, BaseEstimator):
    """Division by the mean norm of the training rows."""

    def fit(self, X: Any, y: Any = None) -> "UnitNorm":
        squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else (X * X).sum(axis=1)
        self.norm_ = float(np.sqrt(squares).mean()) or 1.0
        return self

    def transform(self, X: Any) -> Any:
        return X / self.norm_


class Choice(NamedTuple):
    """A fitted model, and the parameters it got."""

    model: Any
    chosen: str


def tuning_rows(s: Labeled) -> tuple[Any, Array]:
    """The training rows that C and gamma are told from."""
    if s.y.size <= TUNING_ROWS:
        return s.X, s.y
    classes, counts = np.unique(s.y, return_counts=True)
    many = np.isin(s.y, classes[counts > 1])
    rows = train_test_split(
        np.flatnonzero(many), train_size=TUNING_ROWS, stratify=s.y[many], random_state=0
    )[0]
    return s.X[np.sort(rows)], s.y[np.sort(rows)]


def folds(y: Array) -> list[tuple[Array, Array]]:
    """Stratified; classes of fewer rows than folds are in some of them."""
    found = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y)
    return [(train, test) for train, test in found if np.unique(y[train]).size > 1]


def scalings(s: Labeled, *names: str) -> dict[str, Any]:
    """Those that suit the rows."""
    sparse = sp.issparse(s.X)
    made = {
        "standardized": StandardScaler(with_mean=not sparse),
        "to [0, 1]": MaxAbsScaler() if sparse else MinMaxScaler(),
        "unit norm": UnitNorm(),
    }
    return {name: made[name] for name in names}


def linear_search(model: Any, X: Any, y: Array) -> tuple[float, float]:
    """The best accuracy and its C, the smallest of equals; fits start from those of a smaller C."""
    parts = [(X[a], y[a], X[b], y[b], clone(model)) for a, b in folds(y)]
    best, best_c, worse = -1.0, CS[0], 0
    for c in CS:
        rates = [np.mean(m.set_params(C=c).fit(A, u).predict(B) == v) for A, u, B, v, m in parts]
        worse = 0 if np.mean(rates) > best else worse + 1
        if not worse:
            best, best_c = float(np.mean(rates)), c
        if worse == PATIENCE:
            break
    return best, best_c


def linear(model: Any, s: Labeled, *scaled: str, first: Callable[[], Any] | None = None) -> Choice:
    """A linear model on scaled rows, the scaling and C by cross-validation."""
    X, y = tuning_rows(s)
    found = []
    for name, scaling in scalings(s, *scaled).items():
        steps = make_pipeline(*([first()] if first else []), scaling)
        found.append((*linear_search(model, steps.fit_transform(X), y), name, steps))
    _, c, name, steps = max(found, key=lambda each: each[0])
    final = Pipeline([*clone(steps).steps, ("model", clone(model).set_params(C=c))])
    return Choice(final.fit(s.X, s.y), f"{name}, C={c:g}")


def liblinear() -> LinearSVC:
    """With LIBLINEAR's own tolerance."""
    return LinearSVC(dual="auto", tol=0.01, random_state=0)


def scaled_svc(s: Labeled) -> Choice:
    return linear(liblinear(), s, "standardized", "to [0, 1]")


def root_svc(s: Labeled) -> Choice | None:
    if s.X.min() < 0:
        return None
    roots = lambda: FunctionTransformer(_roots, accept_sparse=True)  # noqa: E731
    return linear(liblinear(), s, "unit norm", "standardized", first=roots)


def _roots(X: Any) -> Any:
    return np.sqrt(X if sp.issparse(X) else np.maximum(X, 0))


def tfidf_svc(s: Labeled) -> Choice | None:
    if not sp.issparse(s.X):
        return None
    return linear(liblinear(), s, "unit norm", first=TfidfTransformer)


def logistic(s: Labeled) -> Choice:
    model = LogisticRegression(max_iter=200, warm_start=True)
    return linear(model, s, "standardized", "to [0, 1]", "unit norm")


def rbf_svc(s: Labeled) -> Choice:
    """The scaling at C=10 and gamma='scale', then C and gamma."""
    X, y = tuning_rows(s)
    scaled = {
        name: (each, each.fit_transform(X))
        for name, each in scalings(s, "standardized", "to [0, 1]").items()
    }
    rates = {name: rbf_search(A, y, (10.0,), (1.0,))[0] for name, (_, A) in scaled.items()}
    name = max(rates, key=rates.__getitem__)
    _, c, gamma = rbf_search(scaled[name][1], y, RBF_CS, GAMMAS)
    model = SVC(C=c, gamma=gamma, cache_size=1000)
    final = make_pipeline(clone(scaled[name][0]), model).fit(s.X, s.y)
    return Choice(final, f"{name}, C={c:g}, gamma={gamma:.3g}")


def rbf_search(
    X: Any, y: Array, Cs: tuple[float, ...], gammas: tuple[float, ...]
) -> tuple[float, float, float]:
    """The best accuracy, its C and its gamma; Gram matrices are shared by folds and C."""
    squares = euclidean_distances(X, squared=True)
    mean = X.multiply(X).mean() if sp.issparse(X) else (X * X).mean()
    unit = 1 / (X.shape[1] * (mean - X.mean() ** 2))
    found = []
    for factor in gammas:
        K = np.exp(-factor * unit * squares)
        for a, b in folds(y):
            A, B = K[np.ix_(a, a)], K[np.ix_(b, a)]
            for c in Cs:
                model = SVC(C=c, kernel="precomputed", cache_size=1000).fit(A, y[a])
                found.append(np.mean(model.predict(B) == y[b]))
    rates = np.array(found).reshape(len(gammas), -1, len(Cs)).mean(axis=1)
    ties = np.isclose(rates, rates.max())
    i, j = np.unravel_index(np.argmax(np.where(ties, _around(rates), -1)), rates.shape)
    return float(rates[i, j]), Cs[j], gammas[i] * unit


def _around(rates: Array) -> Array:
    """Means of the rates next to each, which tell between ties."""
    wide = np.pad(rates, 1, mode="edge")
    n, m = rates.shape
    return sum(wide[i : i + n, j : j + m] for i in range(3) for j in range(3)) / 9


def forest(s: Labeled) -> Choice:
    return Choice(RandomForestClassifier(random_state=0).fit(s.X, s.y), "")


def boosted(s: Labeled) -> Choice | None:
    if sp.issparse(s.X):
        return None
    return Choice(HistGradientBoostingClassifier(random_state=0).fit(s.X, s.y), "")


CONTENDERS: dict[str, Callable[[Labeled], Choice | None]] = {
    SCALED: scaled_svc,
    ROOTS: root_svc,
    TFIDF: tfidf_svc,
    LOGISTIC: logistic,
    RBF: rbf_svc,
    FOREST: forest,
    BOOSTED: boosted,
}


def measure(contender: Callable[[Labeled], Choice | None], task: Task) -> Outcome | None:
    """A contender on all splits; None if the rows do not suit it."""
    hits, choices, fit, predict = [], [], 0.0, 0.0
    for trial in task.trials:
        begin = time.perf_counter()
        choice = contender(trial.data)
        if choice is None:
            return None
        middle = time.perf_counter()
        hits.append(choice.model.predict(trial.data.X_test) == trial.data.y_test)
        fit, predict = fit + middle - begin, predict + time.perf_counter() - middle
        choices.append(choice.chosen)
    return Outcome(by_row(task.trials, hits), fit, predict, listed(choices))
