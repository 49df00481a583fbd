"""What is saved comes back as it was: every public estimator, map and kernel, and pipelines."""

import warnings
from dataclasses import is_dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import KERNELS
from saved import PIPELINES, VARIANTS, public_estimators, takes_numbers
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.linear_model import LinearRegression, Ridge, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    LabelBinarizer,
    LabelEncoder,
)
from sklearn.svm import LinearSVR

from hilbin.estimators import (
    HistogramBinner,
    IntersectionSVC,
)
from hilbin.kernels import (
    Chi2,
    Intersection,
)
from hilbin.maps import (
    AdditiveMap,
    SparseMap,
)
from hilbin.persist import info, load, save


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def answers(model, X):
    """Everything a model says about rows, which are no more those it was fitted to."""
    X = X.copy()
    names = ("transform", "predict", "decision_function", "predict_proba", "explain")
    said = [getattr(model, name)(X) for name in names if hasattr(model, name)]
    if not said:  # what knows no new rows has labels, or learns a kernel
        said = [model.labels_ if hasattr(model, "labels_") else model.kernel_(X)]
    return [a.toarray() if sp.issparse(a) else np.asarray(a) for a in said]


def assert_same_answers(one, other, X):
    for a, b in zip(answers(one, X), answers(other, X), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def again(model, path, **given):
    save(model, path, **given)
    return load(path, **given)


@pytest.fixture
def labels():
    return np.array(["ape", "bee", "cat"])[np.random.default_rng(1).integers(0, 3, 70)]


def check_estimator_survives(model, X, y, path):
    model = fitted(model, X, y)
    loaded = again(model, path)
    assert type(loaded) is type(model)
    assert_same_answers(model, loaded, X)
    assert_same_answers(model, loaded, X.astype(np.float32))
    first = path.read_bytes()
    save(model, path)  # after it has been used, and filled its caches
    assert path.read_bytes() == first
    save(loaded, path)
    assert path.read_bytes() == first
    save(model, path, compact=True)  # arrays of few numbers are not rounded
    assert_same_answers(model, load(path), X)
    assert repr(clone(loaded)) == repr(clone(model))
    assert set(loaded.get_params()) == set(model.get_params())
    fitted(loaded, X, y)
    assert answers(loaded, X)


@pytest.mark.parametrize("model", [*public_estimators(), *VARIANTS], ids=lambda m: repr(m)[:60])
def test_estimators(model, histograms, labels, tmp_path):
    y = np.arange(70.0) if takes_numbers(model) else labels
    check_estimator_survives(model, histograms, y, tmp_path / "model.hilbin")


@pytest.mark.parametrize("model", [*public_estimators()], ids=lambda m: type(m).__name__)
def test_unfitted_estimators(model, tmp_path):
    loaded = again(model, tmp_path / "model.hilbin")
    assert type(loaded) is type(model)
    assert repr(loaded) == repr(model)
    assert vars(loaded).keys() == vars(model).keys()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels(kernel, histograms, tmp_path):
    loaded = again(kernel, tmp_path / "kernel.hilbin")
    assert loaded == kernel
    assert hash(loaded) == hash(kernel)
    np.testing.assert_array_equal(loaded(histograms), kernel(histograms))


def test_public_values(tmp_path):
    """Dataclasses of the packages that are no kernels, such as the error of a map."""
    error = AdditiveMap(Chi2()).fit([[0.5, 1.0]]).error_
    assert is_dataclass(error)
    assert again(error, tmp_path / "error.hilbin") == error


@pytest.mark.parametrize("model", PIPELINES, ids=lambda m: repr(m).replace("\n", "")[:80])
def test_pipelines(model, histograms, labels, tmp_path):
    check_estimator_survives(model, histograms, labels, tmp_path / "model.hilbin")


@pytest.mark.parametrize("model", [Ridge(), LinearSVR(), RidgeCV(), LinearRegression()], ids=repr)
def test_regressors(model, histograms, tmp_path):
    model = make_pipeline(AdditiveMap(Chi2()), model)
    check_estimator_survives(model, histograms, np.arange(70.0), tmp_path / "model.hilbin")


def test_labels(tmp_path):
    for labels in (["b", "a"], [3, 1], np.array(["x", "y"], object), [True, False]):
        for coder in (LabelEncoder(), LabelBinarizer()):
            loaded = again(coder.fit(labels), tmp_path / "coder.hilbin")
            assert loaded.classes_.dtype == coder.classes_.dtype
            np.testing.assert_array_equal(loaded.classes_, coder.classes_)
            np.testing.assert_array_equal(loaded.transform(labels), coder.transform(labels))


def test_data_frames_keep_their_names(histograms, labels, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(histograms, columns=[f"word {i}" for i in range(33)])
    model = IntersectionSVC().fit(frame, labels)
    loaded = again(model, tmp_path / "model.hilbin")
    assert [f.name for f in loaded.shape_functions_] == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.iloc[:, ::-1])


def test_read_only_arrays_predict(histograms, labels):
    """As a memory-mapped model has, or one shared between processes by joblib."""

    def freeze(value, seen):
        if id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        elif isinstance(value, (list, tuple)):
            for part in value:
                freeze(part, seen)
        elif hasattr(value, "__dict__"):
            for part in vars(value).values():
                freeze(part, seen)

    for model in [*public_estimators(), *VARIANTS]:
        if takes_numbers(model):
            continue
        model = fitted(clone(model), histograms, labels)
        expected = answers(model, histograms)
        freeze(model, set())
        for a, b in zip(answers(model, histograms), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_one_object_stays_one(tmp_path):
    kernel, array = Chi2(), np.arange(1000.0)
    first, second, third, fourth = again(
        [kernel, kernel, array, array], path := tmp_path / "list.hilbin"
    )
    assert first is second
    assert third is fourth
    assert path.stat().st_size < 1.2 * array.nbytes


def test_the_model_keeps_one_binner(histograms, labels, tmp_path):
    loaded = again(IntersectionSVC().fit(histograms, labels), tmp_path / "model.hilbin")
    assert loaded.binner_ is loaded._lookup.binner


def test_caches_of_this_machine_are_left_out(histograms, tmp_path):
    model = AdditiveMap(Intersection()).fit(histograms)
    model.transform(histograms)
    assert model._expansion._arguments
    assert again(model, tmp_path / "map.hilbin")._expansion._arguments == {}


def test_what_scipy_adds_to_operators_is_left_out(histograms, tmp_path):
    model = SparseMap(Intersection()).fit(histograms)
    fresh = set(vars(model.inner_))
    vars(model.inner_).update(_xp=np, ndim=2)  # as SciPy 1.18 does, where a file may come from
    back = again(model, tmp_path / "map.hilbin").inner_
    assert set(vars(back)) == fresh
    np.testing.assert_array_equal(back @ np.eye(*back.shape), model.inner_ @ np.eye(*back.shape))


class Halver(TransformerMixin, BaseEstimator):
    """A class of a user."""

    def __init__(self, by=2):
        self.by = by

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X / self.by

    def __setstate__(self, state):
        raise AssertionError("loading runs no method")


def test_classes_of_a_user(histograms, labels, tmp_path):
    model = make_pipeline(Halver(4), IntersectionSVC()).fit(histograms, labels)
    loaded = again(model, tmp_path / "model.hilbin", classes=[Halver])
    assert type(loaded[0]) is Halver
    assert_same_answers(model, loaded, histograms)


def test_no_method_of_a_class_runs(tmp_path, monkeypatch):
    model = HistogramBinner().fit([[1.0], [2.0]])
    save(model, tmp_path / "model.hilbin")

    def forbidden(*args, **kwargs):
        raise AssertionError("loading runs no method")

    for name in ("__init__", "__setstate__", "__reduce__", "__setattr__"):
        monkeypatch.setattr(HistogramBinner, name, forbidden)
    assert load(tmp_path / "model.hilbin").n_bins == 100


def test_info_reads_the_header_alone(histograms, tmp_path, monkeypatch):
    notes = {"classes": ["ape", "bee"], "seed": 3, "nested": {"hash": None, "x": 0.5}}
    path = tmp_path / "model.hilbin"
    save(HistogramBinner().fit(histograms), path, metadata=notes)
    found = info(path)
    assert found.metadata == notes
    assert found.class_name == "hilbin.estimators.HistogramBinner"
    assert found.n_bytes == path.stat().st_size
    assert set(found.versions) == {"hilbin", "numpy", "scikit-learn"}


def test_random_states_are_parameters(histograms, labels, tmp_path):
    model = IntersectionSVC(random_state=np.random.RandomState(3)).fit(histograms, labels)
    loaded = again(model, tmp_path / "model.hilbin")
    assert_same_answers(model.fit(histograms, labels), loaded.fit(histograms, labels), histograms)
