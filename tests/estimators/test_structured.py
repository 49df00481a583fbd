"""Structured SVMs: exact best outputs, known optima, and models of a user."""

import pickle
import warnings

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hilbin import load, save
from hilbin.estimators import ChainModel, GridModel, MulticlassModel, StructuredSVM
from hilbin.estimators.structured.grid import foreground
from hilbin.estimators.structured.models import viterbi
from hilbin.estimators.structured.slack import worst_by_slack
from hilbin.solvers import Bounded, crammer_singer, gram_rows

FIXED = np.array([[0, 1, 5], [1, 0, 1], [5, 1, 0]])  # costs


@pytest.fixture(scope="module")
def chains():
    """Sequences of noisy digits, each the one before plus one."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    labels = [(s + np.arange(n)) % 10 for s, n in zip(*rng.integers(2, 8, (2, 40)), strict=True)]
    rows = [np.stack([X[rng.choice(np.flatnonzero(y == c))] for c in z]) / 16 for z in labels]
    return [x + rng.normal(0, 0.3, x.shape) for x in rows], labels


@pytest.fixture(scope="module")
def masks():
    """Noisy images of an ellipse, with its pixels."""
    rng = np.random.default_rng(0)
    ys, xs = np.mgrid[:12, :16]
    images, labels = [], []
    for _ in range(12):
        (cy, ry), (cx, rx) = rng.uniform(4, 8, 2), rng.uniform(4, 10, 2)
        mask = (((ys - cy) / min(ry, 5)) ** 2 + ((xs - cx) / min(rx, 5)) ** 2 < 1).astype(int)
        gray = 0.8 * mask + rng.normal(0, 0.7, mask.shape)
        images.append(np.stack([gray, np.ones_like(gray)], axis=2))
        labels.append(mask)
    return images, labels


# the best output
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 10_000))
def test_chains_equal_enumeration(length, n_labels, seed):
    rng = np.random.default_rng(seed)
    model = ChainModel(n_labels, 2)
    x, w = rng.normal(size=(length, 2)), rng.normal(size=model.size)
    y = rng.integers(0, n_labels, length)

    def score(z):
        return w @ model.joint(x, z)

    def margin(z):
        return model.loss(y, z) + score(z)

    def slack(z):
        return model.loss(y, z) * (1 + score(z) - score(y))

    found = (model.best(x, w), model.best(x, w, y), model.best_slack(x, w, y))
    for z, value in zip(found, (score, margin, slack), strict=True):
        best = oracles.best_labels(value, length, n_labels)
        np.testing.assert_allclose(value(z), value(best), atol=1e-12)


def test_viterbi_on_ten_labels():
    rng = np.random.default_rng(0)
    places, pairs = rng.normal(size=(3, 10)), rng.normal(size=(10, 10))

    def score(z):
        return places[np.arange(3), z].sum() + pairs[z[:-1], z[1:]].sum()

    best = oracles.best_labels(score, 3, 10)
    np.testing.assert_array_equal(viterbi(places, pairs), best)


@pytest.mark.parametrize("pair", [0.0, 0.2, 0.7, 3.0])
def test_cuts_equal_enumeration(pair):
    scores = np.random.default_rng(0).normal(size=(3, 4))

    def value(m):
        unequal = np.sum(m[1:] != m[:-1]) + np.sum(m[:, 1:] != m[:, :-1])
        return np.sum(scores * m) - pair * unequal

    best = oracles.best_labels(value, (3, 4), 2)
    np.testing.assert_array_equal(foreground(scores, pair), best)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 10_000))
def test_grids_equal_enumeration(rows, columns, seed):
    rng = np.random.default_rng(seed)
    model = GridModel(2)
    x, y = rng.normal(size=(rows, columns, 2)), rng.integers(0, 2, (rows, columns))
    w = np.append(rng.normal(size=2), abs(rng.normal()))

    def score(z):
        return w @ model.joint(x, z)

    def margin(z):
        return model.loss(y, z) + score(z)

    for z, value in ((model.best(x, w), score), (model.best(x, w, y), margin)):
        best = oracles.best_labels(value, (rows, columns), 2)
        np.testing.assert_allclose(value(z), value(best), atol=1e-8)


class Doubtful(GridModel):
    """The model with bounds that are a little too high."""

    def best(self, x, w, y=None):
        output = super().best(x, w, y)
        return Bounded(
            output, w @ self.joint(x, output) + 0.01 + (y is not None) * self.loss(y, output)
        )


@given(st.booleans(), st.integers(1, 3), st.integers(1, 3), st.integers(0, 10_000))
def test_slack_by_questions_about_margins(doubtful, rows, columns, seed):
    rng = np.random.default_rng(seed)
    model = (Doubtful if doubtful else GridModel)(2)
    x, y = rng.normal(size=(rows, columns, 2)), rng.integers(0, 2, (rows, columns))
    w = np.append(rng.normal(size=2), abs(rng.normal())) * rng.choice([0, 0.1, 1, 10])

    def slack(z):
        return model.loss(y, z) * (1 + w @ (model.joint(x, z) - model.joint(x, y)))

    found = worst_by_slack(model, x, w, y)
    output, bound = (found.output, found.bound) if isinstance(found, Bounded) else (found, None)
    highest = slack(oracles.best_labels(slack, (rows, columns), 2))
    assert -1e-9 <= slack(output) <= highest + 1e-9
    assert (slack(output) if bound is None else bound) >= highest - 1e-7 * (1 + highest)


@given(st.integers(1, 12), st.integers(2, 5), st.integers(0, 10_000))
def test_slack_by_questions_about_chains(length, n_labels, seed):
    rng = np.random.default_rng(seed)
    model = ChainModel(n_labels, 2)
    x, y = rng.normal(size=(length, 2)), rng.integers(0, n_labels, length)
    w = rng.normal(size=model.size) * rng.choice([0.1, 1, 10])

    def point(z):
        return model.loss(y, z), 1 + w @ (model.joint(x, z) - model.joint(x, y))

    found = worst_by_slack(model, x, w, y)
    exact = float(np.prod(point(model.best_slack(x, w, y))))
    if isinstance(found, Bounded):  # lines above all outputs bound it as well
        lines = {f: point(model.best(x, f * w, y)) for f in np.geomspace(1e-3, 1e3, 100)}
        hull = min((loss + f * gain) ** 2 / (4 * f) for f, (loss, gain) in lines.items())
        assert exact - 1e-9 <= found.bound <= hull + 1e-9
    else:
        np.testing.assert_allclose(np.prod(point(found)), exact, atol=1e-8)


def test_a_cut_with_a_negative_weight():
    with pytest.raises(ValueError, match="a cut needs one >= 0"):
        foreground(np.ones((2, 2)), -0.1)


@given(st.integers(0, 10_000))
def test_classes_equal_enumeration(seed):
    rng = np.random.default_rng(seed)
    model = MulticlassModel(FIXED, ["a", "b", "c"]).for_data(np.zeros((1, 2)), ["a"])
    x, w, y = rng.normal(size=2), rng.normal(size=6), rng.choice(["a", "b", "c"])
    scores = {z: w @ model.joint(x, z) for z in "abc"}
    margins = {z: scores[z] + model.loss(y, z) for z in "abc"}
    slacks = {z: model.loss(y, z) * (1 + scores[z] - scores[y]) for z in "abc"}
    assert model.best(x, w) == max("abc", key=scores.get)
    assert model.best(x, w, y) == max("abc", key=margins.get)
    assert model.best_slack(x, w, y) == max("abc", key=slacks.get)


# the machine
def test_classes_are_the_machine_of_crammer_and_singer():
    X, y = load_iris(return_X_y=True)
    found = StructuredSVM(C=0.1, tol=1e-5).fit(X, y)
    limits = {"n_classes": 3, "tol": 1e-8, "max_iter": 10**6}
    other = crammer_singer(gram_rows(X @ X.T), y, np.full(len(X), 0.1), **limits)
    assert found.objective_ - found.gap_ <= other.objective
    assert other.objective - other.gap <= found.objective_
    scores = X @ found.coef_.reshape(3, -1).T
    value = oracles.crammer_singer_objective(found.coef_ @ found.coef_, scores, y, 0.1)
    np.testing.assert_allclose(found.objective_, value)
    np.testing.assert_array_equal(found.predict(X), scores.argmax(axis=1))


def test_slack_is_margin_if_losses_are_0_and_1():
    X, y = load_iris(return_X_y=True)
    one, other = (
        StructuredSVM(C=0.1, tol=1e-5, rescaling=r).fit(X, y) for r in ("margin", "slack")
    )
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=2e-5)
    costly = StructuredSVM(MulticlassModel(FIXED), C=0.1, rescaling="slack").fit(X, y)
    assert costly.objective_ > one.objective_


def test_chains_learn_what_follows(chains):
    X, y = chains
    model = StructuredSVM(ChainModel()).fit(X[:30], y[:30])
    assert model.converged_
    assert model.gap_ <= 1e-3 * model.objective_
    assert model.model_.n_features == 64
    alone = StructuredSVM().fit(np.concatenate(X[:30]), np.concatenate(y[:30]))
    rows = np.concatenate(X[30:]), np.concatenate(y[30:])
    assert model.score(X[30:], y[30:]) > alone.score(*rows) + 0.1
    slack = StructuredSVM(ChainModel(), rescaling="slack").fit(X[:30], y[:30])
    assert slack.score(X[30:], y[30:]) > alone.score(*rows) + 0.1


def test_the_objective_is_that_of_the_weights(chains):
    X, y = chains[0][:12], chains[1][:12]
    for rescaling in ("margin", "slack"):
        found = StructuredSVM(ChainModel(), C=0.3, rescaling=rescaling).fit(X, y)
        model, w, total = found.model_, found.coef_, 0.0
        for x, labels in zip(X, y, strict=True):
            worst = model.best if rescaling == "margin" else model.best_slack
            z = worst(x, w, labels)
            cost, score = model.loss(labels, z), w @ (model.joint(x, z) - model.joint(x, labels))
            total += max(0, cost + score if rescaling == "margin" else cost * (1 + score))
        np.testing.assert_allclose(found.objective_, 0.5 * w @ w + 0.3 * total)


def test_grids_smooth_their_labels(masks):
    X, y = masks
    model = StructuredSVM(GridModel(), C=100.0).fit(X[:8], y[:8])
    assert model.converged_
    assert model.coef_[-1] > 0
    pixelwise = clone(model).fit(X[:8], y[:8])
    pixelwise.coef_ = model.coef_ * [1, 1, 0]
    assert model.score(X[8:], y[8:]) > pixelwise.score(X[8:], y[8:])


def test_grids_with_slack_rescaling(masks):
    X, y = masks
    model = StructuredSVM(GridModel(), C=100.0, rescaling="slack").fit(X[:8], y[:8])
    assert model.gap_ <= 2e-3 * model.objective_
    margin = clone(model).set_params(rescaling="margin").fit(X[:8], y[:8])
    assert model.score(X[8:], y[8:]) > margin.score(X[8:], y[8:]) - 0.03


def test_the_weight_of_pairs_is_not_negative(masks):
    """Labels like a chessboard would make it so."""
    X, _ = masks
    board = np.indices((12, 16)).sum(axis=0) % 2
    images = [np.stack([board + x[:, :, 0], x[:, :, 1]], axis=2) for x in X[:4]]
    model = StructuredSVM(GridModel(), C=10.0).fit(images, [board] * 4)
    assert model.converged_
    assert model.coef_[-1] == 0
    assert model.score(images, [board] * 4) > -0.3


class Threshold:
    """A user's model: the output is how many numbers are taken, from the largest on."""

    def joint(self, x, y):
        return np.array([np.sort(x)[::-1][:y].sum(), -y]) / len(x)

    def loss(self, y, z):
        return abs(y - z) / 10

    def best(self, x, w, y=None):
        scores = [w @ self.joint(x, z) for z in range(len(x) + 1)]
        if y is not None:
            scores = [s + self.loss(y, z) for z, s in enumerate(scores)]
        return int(np.argmax(scores))


def test_a_model_of_three_methods(tmp_path):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=rng.integers(3, 9)) for _ in range(30)]
    y = [int((x > 0.4).sum()) for x in X]
    model = StructuredSVM(Threshold(), C=100.0).fit(X[:20], y[:20])
    assert model.score(X[20:], y[20:]) > -0.03
    assert 0.2 < model.coef_[1] / model.coef_[0] < 0.6
    slack = clone(model).set_params(rescaling="slack")
    with pytest.warns(ConvergenceWarning, match="the model only bounds"):
        slack.fit(X[:20], y[:20])
    assert slack.score(X[20:], y[20:]) > -0.03
    save(model, tmp_path / "model.hilbin", classes=[Threshold])
    loaded = load(tmp_path / "model.hilbin", classes=[Threshold])
    assert loaded.predict(X) == model.predict(X)
    assert pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)


@pytest.mark.parametrize("kind", ["chain", "grid"])
def test_saved(kind, chains, masks, tmp_path):
    (X, y), model = {"chain": (chains, ChainModel()), "grid": (masks, GridModel())}[kind]
    found = StructuredSVM(model).fit(X[:6], y[:6])
    save(found, tmp_path / "model.hilbin")
    loaded = load(tmp_path / "model.hilbin")
    for one, other in zip(found.predict(X), loaded.predict(X), strict=True):
        np.testing.assert_array_equal(one, other)


def test_in_scikit_learn(chains):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = make_pipeline(StandardScaler(), StructuredSVM()).fit(X, names)
    assert model.predict(X).dtype == names.dtype
    search = GridSearchCV(StructuredSVM(ChainModel()), {"C": [0.01, 1.0]}, cv=2)
    assert search.fit(chains[0][:16], chains[1][:16]).best_params_ == {"C": 1.0}


def test_weights_are_repetitions(chains):
    X, y = chains[0][:10], chains[1][:10]
    counts = np.array([0, 2, 1, 3, 1, 1, 0, 1, 2, 1])
    weighted = StructuredSVM(ChainModel(10), tol=1e-6).fit(X, y, sample_weight=counts)
    repeated = np.repeat(np.arange(10), counts)
    again = StructuredSVM(ChainModel(10), tol=1e-6).fit(
        [X[i] for i in repeated], [y[i] for i in repeated]
    )
    np.testing.assert_allclose(weighted.objective_, again.objective_, rtol=2e-6)
    np.testing.assert_allclose(weighted.coef_, again.coef_, atol=2e-3)
    scores = [model.score(X, y, sample_weight=counts) for model in (weighted, again)]
    np.testing.assert_allclose(scores[0], scores[1])


def test_warm_start(chains):
    X, y = chains[0][:10], chains[1][:10]
    model = StructuredSVM(ChainModel(), warm_start=True, tol=1e-4).fit(X, y)
    first, passes = model.objective_, model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ < passes
    np.testing.assert_allclose(model.objective_, first, rtol=2e-4)
    model.set_params(model=None).fit(X[0], y[0])  # another number of weights
    assert model.converged_


def test_threads_change_nothing(chains):
    X, y = chains[0][:10], chains[1][:10]
    one, two = (StructuredSVM(ChainModel(), n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_limits(chains):
    X, y = chains
    with pytest.warns(ConvergenceWarning, match="max_iter=3 passes"):
        few = StructuredSVM(ChainModel(), max_iter=3).fit(X, y)
    assert (few.n_iter_, few.converged_) == (3, False)
    assert few.score(X, y) > -1
    with pytest.warns(ConvergenceWarning, match="max_time"):
        StructuredSVM(ChainModel(), max_time=1e-6).fit(X, y)


def test_verbose(chains, capsys):
    StructuredSVM(ChainModel(), verbose=2).fit(chains[0][:4], chains[1][:4])
    text = capsys.readouterr().out
    assert "[all examples] pass 1: violation" in text
    assert "duality gap" in text


class Bad(Threshold):
    """The model with one method changed."""

    def __init__(self, **changed):
        for name, function in changed.items():
            setattr(self, name, function)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Bad(loss=lambda y, z: -1), "example 0: the loss .* -1"),
        (Bad(joint=lambda x, y: np.zeros(len(x))), "example 1: joint .* shape"),
        (Bad(joint=lambda x, y: np.full(2, np.nan)), "example 0: .* not finite"),
        (Bad(best=lambda x, w, y=None: 0), r"example \d: .* not the worst"),
    ],
)
def test_errors_name_the_example(model, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(model, C=10.0).fit([np.array([1.0, -1.0]), np.array([1.0, 2.0, 3.0])], [1, 2])


@pytest.mark.parametrize(
    ("given", "X", "y", "message"),
    [
        ({"model": ChainModel()}, [np.zeros((2, 3)), np.zeros((2, 4))], [[0, 1]] * 2, "example 1"),
        ({"model": ChainModel()}, [np.zeros((2, 3))], [[0, 1, 1]], "example 0: its labels"),
        ({"model": ChainModel()}, [np.zeros((2, 3))], [[0, -1]], "example 0: its labels"),
        ({"model": GridModel()}, [np.zeros((2, 2, 1))], [np.zeros((2, 3))], "example 0: its"),
        ({"model": GridModel()}, [np.zeros((2, 2))], [np.zeros((2, 2))], "example 0: a grid"),
        ({"model": object()}, [], [], "without joint"),
        ({"model": ChainModel()}, [np.zeros((2, 3))], [], "1 examples, but y has 0"),
        ({"model": ChainModel()}, [np.zeros((2, 3))], None, "requires y"),
        ({"rescaling": "none"}, [[1.0]], [1], "rescaling must be one of"),
        ({"C": 0.0}, [[1.0]], [1], "C must be"),
        ({"cache": -1}, [[1.0]], [1], "cache must be"),
        ({"model": MulticlassModel(np.ones((2, 2)))}, [[1.0], [2.0]], [0, 1], "0 on the diagonal"),
        ({"model": MulticlassModel(np.zeros((3, 3)))}, [[1.0], [2.0]], [0, 1], "cost must have"),
        ({"model": MulticlassModel(classes=[0, 1])}, [[1.0], [2.0]], [0, 2], "not one of the"),
    ],
)
def test_bad_input(given, X, y, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(**given).fit(X, y)


def test_bad_input_of_predict(chains):
    model = StructuredSVM(ChainModel()).fit(chains[0][:4], chains[1][:4])
    with pytest.raises(ValueError, match=r"example 1: a chain must have the shape \(length, 64\)"):
        model.predict([chains[0][0], np.zeros((2, 3))])
    with pytest.raises(ValueError, match="2 examples, but y has 1"):
        model.score(chains[0][:2], chains[1][:1])


def test_no_warnings_for_one_class():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = StructuredSVM().fit([[1.0], [2.0]], ["a", "a"])
    np.testing.assert_array_equal(model.predict([[3.0]]), ["a"])


class Interrupted(Threshold):
    """The model whose user presses Ctrl-C in the fourth pass."""

    def __init__(self):
        self.calls = 0

    def best(self, x, w, y=None):
        self.calls += 1
        if self.calls == 35:
            raise KeyboardInterrupt
        return super().best(x, w, y)


def test_an_interrupt_leaves_a_model():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=5) for _ in range(10)]
    y = [int((x > 0.4).sum()) for x in X]
    model = StructuredSVM(Interrupted(), C=100.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert (model.n_iter_, model.converged_) == (3, False)
    assert len(model.predict(X)) == 10
