"""The choice of a model: folds, samples, the preference, and that plain candidates bound it."""

import time
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.pipeline import Pipeline

from hilbin.auto import choose, row_candidates
from hilbin.auto.base import Stopwatch
from hilbin.auto.candidates import climb
from hilbin.auto.choice import Choice, folds_of, held_out_scores, stratified_sample


@dataclass
class Told:
    """A candidate that is right about given rows."""

    name: str
    right: np.ndarray
    explainable: bool = True
    baseline: bool = False
    calls: int = 0

    def held_out(self, rows, y, folds, seed):
        self.calls += 1
        places = rows[:, 0].astype(int)
        answer = np.where(self.right[places], y, (y + 1) % 2)
        scores = np.where(answer[:, None] == np.arange(2), 1.0, -1.0)
        scores[folds < 0] = np.nan
        return scores

    def make(self):
        return None


def right(n, wrong):
    found = np.ones(n, bool)
    found[wrong] = False
    return found


def rows_and_labels(n):
    return np.arange(n, dtype=float)[:, None], np.arange(n) % 2


@given(st.lists(st.sampled_from("abcdef"), min_size=1), st.integers(0, 3))
def test_folds(labels, seed):
    labels = np.array(labels)
    folds = folds_of(labels, seed)
    counts = {c: (labels == c).sum() for c in "abcdef"}
    assert np.array_equal(folds == -1, [counts[c] == 1 for c in labels])
    sizes = np.bincount(folds[folds >= 0])
    if sizes.size:
        assert sizes.size == min(5, max(counts.values()))
        assert np.ptp(sizes) <= 1
    for fold in range(sizes.size):
        assert set(labels[folds != fold]) == set(labels)  # no class is missing from training
    for c, count in counts.items():
        if count > 1:
            assert np.ptp(np.bincount(folds[labels == c], minlength=sizes.size)) <= 1


def test_folds_leave_every_class_to_train_on():
    labels = np.repeat(["a", "b", "c", "d"], [1, 2, 4, 20])
    folds = folds_of(labels, seed=1, n_folds=3)
    assert folds[0] == -1
    assert (folds[1:] >= 0).all()
    for fold in range(3):
        assert {*labels[folds != fold]} == {"a", "b", "c", "d"}
    np.testing.assert_array_equal(folds, folds_of(labels, seed=1, n_folds=3))


def test_samples_are_stratified_and_nested():
    codes = np.repeat([0, 1, 2], [900, 90, 3])
    small, large = (stratified_sample(codes, n, seed=0) for n in (100, 300))
    counts = np.bincount(codes[small])
    assert counts[0] in (90, 91)
    assert counts[1] == 9
    assert counts[2] == 2
    assert {*small} <= {*large}
    assert stratified_sample(codes, None, 0).size == codes.size


def test_the_most_accurate_is_chosen_and_the_first_of_equals():
    X, y = rows_and_labels(200)
    good, same, bad = (Told(n, right(200, w)) for n, w in (("a", [1]), ("b", [2]), ("c", range(9))))
    choice = choose([bad, good, same], X, y)
    assert choice.best is good
    assert [entry["name"] for entry in choice.table] == ["a", "b", "c"]
    assert choice.table[0]["mean"] == pytest.approx(199 / 200)
    assert choice.table[0]["n_rows"] == 200
    assert choice.cost_of_preference == 0


@pytest.mark.parametrize(("wrong", "chosen"), [(1, "plain"), (40, "opaque")])
def test_an_explainable_one_is_preferred_within_one_standard_error(wrong, chosen):
    X, y = rows_and_labels(200)
    plain, opaque = Told("plain", right(200, range(wrong))), Told("opaque", right(200, []), False)
    choice = choose([plain, opaque], X, y)
    assert choice.best.name == chosen
    assert choice.cost_of_preference == pytest.approx(wrong / 200 if chosen == "plain" else 0)
    assert choose([plain, opaque], X, y, prefer="accurate").best is opaque


def test_the_best_few_are_compared_on_more_rows():
    X, y = rows_and_labels(3000)
    rng = np.random.default_rng(0)
    all_of_them = [Told(f"{p}", rng.random(3000) < p) for p in (0.5, 0.6, 0.7, 0.8, 0.9)]
    choice = choose(all_of_them, X, y, max_rows=300)
    assert [c.calls for c in all_of_them] == [1, 1, 2, 2, 2]
    assert choice.best.name == "0.9"
    assert [entry["n_rows"] for entry in choice.table] == [900, 900, 900, 300, 300]
    assert choice.tested.size == 900
    assert np.isnan(choice.scores).all(axis=1).sum() == 2100


@dataclass
class ByDivision(Told):
    """A candidate that is right about the rows of some folds, whichever they are."""

    folds: tuple = ()

    def held_out(self, rows, y, folds, seed):
        self.right = ~np.isin(folds, self.folds)
        return super().held_out(rows, y, folds, seed)


def test_few_rows_are_divided_several_times_for_those_that_are_close():
    X, y = rows_and_labels(400)
    steady, lucky = Told("steady", right(400, range(130))), ByDivision("lucky", [], folds=(2,))
    far = Told("far", right(400, range(300)))
    choice = choose([steady, lucky, far], X, y)
    assert (steady.calls, lucky.calls, far.calls) == (5, 5, 1)
    # in every division another third of the rows is wrong: a row is right two times in three
    means = [np.mean(~np.isin(folds_of(y, seed, 3), 2)) for seed in range(5)]
    entry = next(e for e in choice.table if e["name"] == "lucky")
    assert entry["mean"] == pytest.approx(np.mean(means))
    assert entry["standard_error"] < np.sqrt(2 / 9 / 400) * 0.75
    assert choose([Told("a", right(2500, [])), Told("b", right(2500, []))],
                  *rows_and_labels(2500), max_rows=None).best.calls == 1  # fmt: skip


def test_the_best_explainable_one_is_among_the_last():
    X, y = rows_and_labels(3000)
    rng = np.random.default_rng(0)
    opaque = [Told(f"{p}", rng.random(3000) < p, False) for p in (0.9, 0.91, 0.92, 0.93)]
    plain = Told("plain", rng.random(3000) < 0.8)
    choose([*opaque, plain], X, y, max_rows=300)
    assert plain.calls == 2


def test_weights_count_in_the_accuracy():
    X, y = rows_and_labels(100)
    ones = Told("ones", y == 1)
    zeros = Told("zeros", y == 0)
    weights = np.where(y == 1, 3.0, 1.0)
    assert choose([zeros, ones], X, y).best is zeros
    choice = choose([zeros, ones], X, y, sample_weight=weights)
    assert choice.best is ones
    assert choice.table[0]["mean"] == pytest.approx(0.75)


def test_callbacks_are_told_and_may_interrupt():
    X, y = rows_and_labels(20)
    told = []

    def callback(*args):
        told.append(args)
        if args[1] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        choose([Told("a", right(20, [])), Told("b", right(20, []))], X, y, callback=callback)
    assert told == [("a", 0, 2), ("b", 1, 2)]


@pytest.mark.parametrize("wrong", [{"prefer": "pretty"}, {"n_folds": 1}])
def test_bad_options(wrong):
    X, y = rows_and_labels(20)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        choose([Told("a", right(20, []))], X, y, **wrong)


def test_climbing():
    tried = []

    def evaluate(x):
        tried.append(x)
        return -abs(x - 2), x * 10

    assert climb([1, 2, 3, 4, 5], 3, evaluate) == (2, 20)
    assert tried == [4, 5, 3, 2, 1]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("data", ["dense", "negative", "sparse"])
def test_candidates_score_rows_that_are_left_out_as_their_models_do(data):
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:150] if data != "negative" else X[:150] - 4.0, y[:150]
    X = sp.csr_array(X) if data == "sparse" else X
    folds = folds_of(y, 0, 3)
    for candidate in row_candidates(X, y):
        scores = candidate.held_out(X, y, folds, 0)
        made = candidate.make()
        assert isinstance(made, Pipeline)
        found = held_out_scores(candidate.make, X, y, folds)
        if candidate.name == "majority":
            continue
        assert (scores.argmax(axis=1) == y).mean() > 0.9
        agree = (scores.argmax(axis=1) == found.argmax(axis=1)).mean()
        assert agree > 0.97, candidate.name
        again = candidate.held_out(X, y, folds, 0)  # settled parameters stay
        assert (again.argmax(axis=1) == scores.argmax(axis=1)).mean() > 0.97


def test_never_worse_than_the_plain_candidates():
    X, y = load_breast_cancer(return_X_y=True)
    choice = choose(row_candidates(X, y), X, y)
    assert set(choice.baselines) == {"square roots + LinearSVC", "scaled LinearSVC", "majority"}
    best = max(entry["mean"] for entry in choice.table)
    chosen = next(e["mean"] for e in choice.table if e["name"] == choice.best.name)
    assert chosen == pytest.approx(best - choice.cost_of_preference)
    assert chosen >= max(choice.baselines.values()) - choice.cost_of_preference


def test_large_tables_get_fourier_features(monkeypatch):
    monkeypatch.setattr("hilbin.auto.candidates.EXACT_ROWS", 100)
    monkeypatch.setattr("hilbin.auto.candidates.EXACT_COST", 100)
    monkeypatch.setattr("hilbin.auto.candidates.FOURIER_COMPONENTS", 256)
    X, y = load_digits(n_class=3, return_X_y=True)
    folds = folds_of(y[:200], 0, 3)
    gaussian = next(c for c in row_candidates(X, y) if c.name.startswith("Gaussian"))
    first = gaussian.held_out(X[:200], y[:200], folds, 0)
    second = gaussian.held_out(X[:200], y[:200], folds, 0)
    assert (first.argmax(axis=1) == y[:200]).mean() > 0.95
    assert (second.argmax(axis=1) == y[:200]).mean() > 0.95
    model = gaussian.make().fit(X[:200], y[:200])
    assert type(model[-1]).__name__ == "MapRidgeClassifier"
    assert model.score(X[200:], y[200:]) > 0.95


def test_class_weights_reach_every_candidate():
    rng = np.random.default_rng(0)
    X = rng.random((120, 3))
    y = np.where(np.arange(120) < 20, "rare", "often")  # nothing to learn
    folds = folds_of(y, 0, 3)
    codes = (y == "rare").astype(int)
    for candidate in row_candidates(X, y, class_weight={"rare": 1000.0, "often": 1e-3}):
        scores = candidate.held_out(X, codes, folds, 0)
        assert (scores.argmax(axis=1) == 1).mean() > 0.8, candidate.name
        assert (candidate.make().fit(X, y).predict(X) == "rare").mean() > 0.8, candidate.name


def test_time_of_training_is_guessed_from_the_folds():
    class Best:
        name, explainable = "b", True

    table = [
        {"name": "a", "seconds": 9.0, "n_rows": 1},
        {"name": "b", "seconds": 6.0, "n_rows": 300},
    ]
    choice = Choice(Best(), table, np.zeros((800, 2)), np.zeros(800))
    assert choice.expected_seconds(3) == pytest.approx(8)  # 2 s for 200 rows
    Best.explainable = False
    assert choice.expected_seconds(3) == pytest.approx(32)


def test_the_clock_tells_how_much_is_done():
    told = []
    watch = Stopwatch(lambda name, done, total: told.append((name, done, total)))
    with watch.timed_stage("training", 1.0):
        deadline = time.monotonic() + 20
        while len(told) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
    assert {(name, total) for name, _, total in told} == {("training", 100)}
    done = [d for _, d, _ in told]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, 100)
    assert 0 < done[1] <= 99
    assert "training" in watch.seconds
