"""Channels: scales, weights, the dual ridge and its held-out scores."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from hilbin import persist
from hilbin.auto import ChannelMap, ChannelWeights, DualRidgeClassifier
from hilbin.auto.channels import check_channels
from hilbin.auto.dual import RULES, ChannelGrams, Dual, class_targets
from hilbin.auto.image_rows import ChannelWorth
from hilbin.inspection import contributions
from hilbin.kernels import Chi2, Hellinger, Intersection

CHANNELS = [("signal", 0, 12), ("noise", 12, 40)]


def rows(n=90, seed=0):
    """Histograms of three classes; the second channel says nothing, at another scale."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    shape = np.ones((3, 12))
    shape[np.arange(3), np.arange(3)] = 6
    signal = np.array([rng.dirichlet(shape[c]) for c in y])
    noise = 300 * rng.dirichlet(np.ones(28), n)
    return np.hstack([signal, noise]).astype(np.float32), y


def test_every_channel_has_the_same_variance_without_labels():
    X, _ = rows()
    features = ChannelMap(CHANNELS).fit(X)
    Z = features.transform(X).astype(np.float64)
    owner = features.input_columns_
    total = [Z[:, (owner >= b) & (owner < e)].var(axis=0).sum() for _, b, e in CHANNELS]
    assert np.allclose(total, 0.5, rtol=1e-4)
    assert np.allclose(features.weights_, 0.5)


def test_the_scale_of_a_channel_does_not_matter():
    X, y = rows()
    scaled = X.copy()
    scaled[:, 12:] *= 1e-4
    first, second = (ChannelMap(CHANNELS).fit(A, y) for A in (X, scaled))
    assert np.allclose(first.transform(X), second.transform(scaled), atol=2e-3)


def test_a_channel_that_says_more_gets_more_weight():
    X, y = rows()
    weights = ChannelMap(CHANNELS).fit(X, y).weights_
    assert weights[0] > 0.8
    assert np.isclose(weights.sum(), 1)


@pytest.mark.parametrize("kernel", [Chi2(), Hellinger(), Intersection()])
def test_features_give_the_kernel_of_a_channel(kernel):
    X, _ = rows()
    features = ChannelMap([("all", 0, 12)], kernel=kernel, n_components=8).fit(X[:, :12])
    Z = features.transform(X[:, :12]).astype(np.float64) / features.factors_[0]
    K = kernel.gram(X[:, :12])
    assert np.linalg.norm(Z @ Z.T - K) < 0.05 * np.linalg.norm(K)


def test_grams_are_those_of_the_features():
    X, y = rows()
    features = ChannelMap(CHANNELS).fit(X, y)
    grams = features.grams(X)
    Z = features.transform(X).astype(np.float64)
    Z -= Z.mean(axis=0)
    combined = ChannelGrams(grams, y, y, y).combined(features.weights_)
    assert np.allclose(Z @ Z.T, combined, atol=1e-5)
    assert np.allclose([np.trace(K) / len(X) for K in grams], 1, rtol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("rule", RULES)
def test_rules_for_the_weights(rule, n_classes):
    X, y = rows()
    X, y = X[y < n_classes], y[y < n_classes]
    data = ChannelGrams(
        ChannelMap(CHANNELS).fit(X).grams(X), class_targets(y, n_classes),
        np.ones(len(X)), np.arange(len(X)),
    )  # fmt: skip
    weights = data.channel_weights(rule, data.accuracies())
    assert np.isclose(weights.sum(), 1)
    assert weights.min() >= 0
    if rule == "average":
        assert np.allclose(weights, 0.5)
    elif rule != "multiple":
        assert weights[0] > 0.6  # the second channel says nothing
    worth = ChannelWorth.of(data, rule)
    assert worth.rule == rule
    assert worth.rules.keys() == {rule, "average"}
    assert np.array_equal(worth.weights, weights)
    assert worth.rules[rule] == data.accuracy(data.combined(weights))


def test_the_rule_of_highest_accuracy():
    X, y = rows()
    n = len(X)
    grams = ChannelMap(CHANNELS).fit(X).grams(X)
    data = ChannelGrams(grams, class_targets(y, 3), np.ones(n), np.arange(n))
    worth = ChannelWorth.of(data, "auto")
    assert worth.rules.keys() == set(RULES)
    assert worth.rules[worth.rule] == max(worth.rules.values())
    alone = ChannelGrams(grams[:1], data.targets, data.weights, data.groups)
    assert ChannelWorth.of(alone, "accuracy").weights == [1]


def test_threads_change_nothing():
    X, y = rows()
    one, two = (ChannelMap(CHANNELS, n_jobs=n).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.transform(X), two.transform(X))


def test_a_channel_with_negative_values_is_linear():
    X, _ = rows()
    X[:, 12:] -= 5
    features = ChannelMap(CHANNELS).fit(X)
    assert features.maps_[1] is None
    assert np.allclose(features.transform(X)[:, 36:], X[:, 12:] * features.factors_[1], rtol=1e-5)


def test_an_empty_channel_does_no_harm():
    X, y = rows()
    X[:, 12:] = 0
    model = make_pipeline(ChannelMap(CHANNELS), DualRidgeClassifier()).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    ("channels", "match"),
    [
        ([("a", 0, 12), ("a", 12, 40)], "same name"),
        ([("a", 0, 12), ("b", 13, 40)], "follow each other"),
        ([("a", 0, 39)], "follow each other"),
        ([], "follow each other"),
    ],
)
def test_channels_that_do_not_fit_are_refused(channels, match):
    with pytest.raises(ValueError, match=match):
        check_channels(channels, 40)


def without(K, targets, alpha, weights, left):
    """Scores of rows by a fit without them, the slow way: ridge regression on a square root."""
    values, vectors = np.linalg.eigh(K)
    Z = vectors * np.sqrt(np.maximum(values, 0))
    kept = np.setdiff1d(np.arange(len(K)), left)
    model = Ridge(alpha=alpha).fit(Z[kept], targets[kept], sample_weight=weights[kept])
    return model.predict(Z[left]).reshape(len(left), -1)


@pytest.mark.parametrize("weighted", [False, True])
def test_held_out_scores_are_those_of_fits_without_the_rows(weighted):
    X, y = rows(40)
    K = ChannelMap(CHANNELS).fit(X).grams(X)[0]
    targets = class_targets(y, 3)
    weights = np.random.default_rng(0).uniform(0.5, 2, 40) if weighted else np.ones(40)
    dual = Dual.solve(K, targets, 0.1, weights)
    groups = np.arange(40)
    groups[[3, 7, 11]] = 3  # left out together
    groups[20] = -1  # never left out
    found = dual.held_out(groups)
    assert np.isnan(found[20]).all()
    assert np.allclose(found[[5]], without(K, targets, 0.1, weights, [5]))
    assert np.allclose(found[[3, 7, 11]], without(K, targets, 0.1, weights, [3, 7, 11]))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_ridge_is_the_primal_one(n_classes):
    X, y = rows()
    y = np.minimum(y, n_classes - 1)
    Z = ChannelMap(CHANNELS).fit(X, y).transform(X).astype(np.float64)
    model = DualRidgeClassifier([0.1]).fit(Z, y)
    unit = Z.var(axis=0).sum()
    other = Ridge(alpha=0.1 * unit).fit(Z, class_targets(y, n_classes))
    assert np.allclose(model.coef_, other.coef_, atol=1e-7)
    assert np.allclose(model.intercept_, other.intercept_)
    assert model.held_out_scores_.shape == (len(X), n_classes)


def test_weights_are_repetitions():
    X, y = rows(30)
    Z = X[:, :12].astype(np.float64)
    weights = np.ones(30)
    weights[:5], weights[5:8] = 2, 0
    one = DualRidgeClassifier([0.1]).fit(Z, y, sample_weight=weights)
    kept = np.r_[np.arange(5), np.arange(5), np.arange(8, 30)]
    two = DualRidgeClassifier([0.1]).fit(Z[kept], y[kept])
    assert np.allclose(one.coef_, two.coef_, atol=1e-8)
    assert np.allclose(one.intercept_, two.intercept_)


def test_class_weight_shifts_the_decision():
    X, y = rows()
    model = DualRidgeClassifier([1.0], class_weight={0: 20.0}).fit(X[:, :12], y)
    plain = DualRidgeClassifier([1.0]).fit(X[:, :12], y)
    assert np.mean(model.predict(X[:, :12]) == 0) > np.mean(plain.predict(X[:, :12]) == 0)


def test_contributions_sum_to_the_score():
    X, y = rows()
    model = make_pipeline(ChannelMap(CHANNELS), DualRidgeClassifier()).fit(X, y)
    found = contributions(model, X[:4])
    assert found.values.shape == (4, 40, 3)
    assert np.allclose(found.scores, model.decision_function(X[:4]), atol=1e-6)


def test_it_learns_and_is_saved(tmp_path):
    X, y = rows(180)
    model = make_pipeline(ChannelMap(CHANNELS), DualRidgeClassifier()).fit(X[:90], y[:90])
    assert model.score(X[90:], y[90:]) > 0.9
    persist.save(model, tmp_path / "m.hilbin")
    loaded = persist.load(tmp_path / "m.hilbin")
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    assert clone(model).get_params().keys() == model.get_params().keys()


def test_the_same_rows_give_the_same_bits():
    X, y = rows()
    one, two = (make_pipeline(ChannelMap(CHANNELS), DualRidgeClassifier()).fit(X, y)[1].coef_
                for _ in range(2))  # fmt: skip
    assert np.array_equal(one, two)


def test_wrong_parameters_are_refused():
    X, y = rows(30)
    with pytest.raises(ValueError, match="alphas"):
        DualRidgeClassifier([0.0]).fit(X, y)
    with pytest.raises(ValueError, match="two classes"):
        DualRidgeClassifier().fit(X, np.zeros(30))
    with pytest.raises(ValueError, match="n_components"):
        ChannelMap(CHANNELS, n_components=0).fit(X)


def test_too_many_rows_are_refused(monkeypatch):
    monkeypatch.setattr("hilbin.auto.dual.MOST_ROWS", 20)
    X, y = rows(30)
    with pytest.raises(ValueError, match="at most 20 rows"):
        DualRidgeClassifier().fit(X, y)


def test_channel_weights_multiply_columns(tmp_path):
    X, _ = rows(10)
    weigh = ChannelWeights(CHANNELS, [1.0, 0.25]).fit(X)
    assert np.allclose(weigh.transform(X)[:, 12:], 0.25 * X[:, 12:])
    persist.save(weigh, tmp_path / "w.hilbin")
    assert np.array_equal(persist.load(tmp_path / "w.hilbin").transform(X), weigh.transform(X))
