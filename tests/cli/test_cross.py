"""Cross-validation and the cache, on their own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import RidgeClassifier

from hilbin.auto.choice import folds_of
from hilbin.auto.image_data import Cache
from hilbin.cli._console import Console
from hilbin.cli._cross import Examples, HeldOut, cross_validate


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


def test_held_out_scores_are_of_models_that_have_not_seen_the_example():
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c"], [7, 6, 1])
    X = rng.normal(size=(14, 3))
    origin = np.repeat(np.arange(14), 2)
    is_copy = np.tile([False, True], 14)
    examples = Examples(np.repeat(X, 2, axis=0) + is_copy[:, None], labels[origin], origin, is_copy)
    steps = []
    found = cross_validate(RidgeClassifier, examples, 3, steps.append)
    folds = folds_of(labels, 3)
    assert steps == [1] * 5
    assert (found.tested // 2).tolist() == list(range(13))
    for row, scores in zip(found.tested, found.scores, strict=True):
        train = folds[origin] != folds[row // 2]
        model = RidgeClassifier().fit(examples.rows[train], examples.labels[train])
        expected = model.decision_function(examples.rows[[row]])[0]
        np.testing.assert_allclose(scores, expected, atol=1e-12)
    assert found.classes[found.truth].tolist() == labels[:13].tolist()


def test_nothing_can_be_held_out():
    examples = Examples.plain(np.eye(3), ["a", "b", "c"])
    assert cross_validate(RidgeClassifier, examples, 0, lambda _: None) is None


@pytest.fixture
def held_out():
    scores = np.array([[2.0, 1, 0], [0, 1, 3], [1, 0.5, 0], [5, 1, 0], [0, 1.2, 1], [0.5, 0, 0]])
    truth = np.array([0, 2, 1, 2, 1, 0])
    return HeldOut(np.arange(10, 16), scores, truth, np.array(["a", "b", "c"]))


def test_measures(held_out):
    assert held_out.accuracy == pytest.approx(4 / 6)
    assert held_out.class_accuracy == pytest.approx((1 + 1 / 2 + 1 / 2) / 3)
    assert held_out.majority == pytest.approx(2 / 6)
    quantiles = held_out.winning_quantiles()
    assert quantiles == pytest.approx(np.quantile([2, 3, 1.2, 0.5], np.linspace(0, 1, 101)))
    all_wrong = HeldOut(np.arange(2), np.eye(2), np.array([1, 0]), np.array(["a", "b"]))
    assert all_wrong.winning_quantiles() is None


def test_suspicions(held_out):
    assert held_out.suspicions() == [(13, 2, 0, 5.0)]  # the margin of row 12 is small
    many = HeldOut(
        np.arange(99), np.eye(2)[np.zeros(99, int)] * 2, np.ones(99, int), np.array(["a", "b"])
    )
    assert len(many.suspicions()) == 50


def test_cache(tmp_path):
    cache = Cache(tmp_path / "deep" / "cache")
    assert cache.load("a") is None
    assert cache.load_model("a") is None
    cache.store("a", {"x": np.arange(3)})
    assert cache.load("a")["x"].tolist() == [0, 1, 2]
    model = RidgeClassifier(alpha=2.5)
    cache.store_model("a", model)
    assert cache.load_model("a").alpha == 2.5
    assert cache.fingerprint_of(model) == cache.fingerprint_of(RidgeClassifier(alpha=2.5))
    assert cache.fingerprint_of(model) != cache.fingerprint_of(RidgeClassifier(alpha=3))
    assert len(list(cache.folder.iterdir())) == 2
    cache.remove()
    assert not cache.folder.exists()


def test_progress(monkeypatch, capsys):
    console = Console()
    with console.stage("thinking", 2) as advance:
        advance(2)
    assert capsys.readouterr().err.startswith("thinking: 2, 0.")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with console.stage("thinking", 2) as advance:
        advance(1)
    assert list(console.seconds) == ["thinking"]
    assert capsys.readouterr().out == ""
