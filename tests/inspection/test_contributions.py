"""Contributions: exact sums for every additive model, and none for others."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

from hilbin.estimators import IntersectionSVC, KernelSVC, MapRidgeClassifier, MapSVC
from hilbin.images import HistogramNormalizer
from hilbin.inspection import additive, class_scores, contributions, shape_functions
from hilbin.kernels import Chi2, Exponential, Hellinger
from hilbin.maps import AdditiveMap, FourierMap, ProductQuantizer, SparseMap

CHI2_MAP = AdditiveMap(Chi2(), 3)


def rows_and_labels(n_classes=3, n=60, d=6):
    rng = np.random.default_rng(n_classes)
    X = rng.gamma(0.7, size=(n, d)) * (rng.uniform(size=(n, d)) < 0.8)
    y = np.array([f"c{k}" for k in np.arange(n) % n_classes])
    X[:, 0] += np.arange(n) % n_classes
    return X, y


class Doubled(TransformerMixin, BaseEstimator):
    """A transformer that says which column each of its outputs is made from."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        self.input_columns_ = np.tile(np.arange(X.shape[1]), 2)
        return self

    def transform(self, X):
        return np.hstack([X, X**2])


ADDITIVE = {
    "intersection": IntersectionSVC(),
    "scaled intersection": make_pipeline(MinMaxScaler(), IntersectionSVC()),
    "logistic": LogisticRegression(),
    "ridge": RidgeClassifier(),
    "linear svc": make_pipeline(StandardScaler(), LinearSVC()),
    "sgd": make_pipeline(RobustScaler(), SGDClassifier(random_state=0)),
    "lda": LinearDiscriminantAnalysis(),
    "map and ridge": make_pipeline(CHI2_MAP, RidgeClassifier()),
    "map ridge": MapRidgeClassifier(feature_map=CHI2_MAP),
    "map ridge without map": MapRidgeClassifier(),
    "map ridge of groups": MapRidgeClassifier(
        column_groups=[("a", [0, 2], CHI2_MAP), ("b", [1, 3, 4], None)]
    ),
    "map svc": MapSVC(CHI2_MAP),
    "map svc without map": MapSVC(),
    "map svc of sparse map": MapSVC(SparseMap(Chi2(), 8)),
    "map svc of a pipeline": MapSVC(make_pipeline(MinMaxScaler(clip=True), CHI2_MAP)),
    "map svc of a frozen map": MapSVC(FrozenEstimator(AdditiveMap(Hellinger()).fit(np.eye(6)))),
    "map svc of codes": MapSVC(ProductQuantizer(3, n_words=8, random_state=0)),
    "square roots": make_pipeline(FunctionTransformer(np.sqrt), LinearSVC()),
    "power": make_pipeline(PowerTransformer(), LogisticRegression()),
    "quantiles": make_pipeline(QuantileTransformer(n_quantiles=20), LogisticRegression()),
    "splines": make_pipeline(SplineTransformer(), RidgeClassifier()),
    "bins": make_pipeline(KBinsDiscretizer(4, subsample=None), RidgeClassifier()),
    "selected": make_pipeline(SelectKBest(k=3), VarianceThreshold(), LogisticRegression()),
    "imputed": make_pipeline(SimpleImputer(), LogisticRegression()),
    "union": make_pipeline(
        FeatureUnion([("a", MinMaxScaler()), ("b", CHI2_MAP)]), LogisticRegression()
    ),
    "columns": make_pipeline(
        ColumnTransformer(
            [("a", MinMaxScaler(), [1, 3]), ("b", CHI2_MAP, slice(4, 6))], remainder="passthrough"
        ),
        IntersectionSVC(),
    ),
    "own transformer": make_pipeline(Doubled(), LogisticRegression()),
    "nested": make_pipeline(MinMaxScaler(), make_pipeline(CHI2_MAP, LinearSVC())),
    "search": GridSearchCV(make_pipeline(CHI2_MAP, LinearSVC()), {"linearsvc__C": [0.1, 1]}, cv=2),
    "tf-idf": make_pipeline(TfidfTransformer(), LinearSVC()),
    "unit length": make_pipeline(Normalizer(), LogisticRegression()),
    "histograms": make_pipeline(HistogramNormalizer(power=0.5, norm="l2"), IntersectionSVC()),
}
ROWS_TOGETHER = {"tf-idf", "unit length", "histograms"}
PRODUCTS = FourierMap(Exponential(Chi2(), gamma=1.0), 64, random_state=0)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ADDITIVE)
def test_contributions_sum_to_the_scores(name, n_classes):
    X, y = rows_and_labels(n_classes)
    model = ADDITIVE[name].fit(X, y)
    found = contributions(model, X[:9])
    assert found.values.shape == (9, 6, n_classes)
    rounding = 2e-4 if "sparse map" in name else 1e-5  # whose features are rounded in prediction
    assert found.scores == pytest.approx(class_scores(model, X[:9]), abs=rounding)
    parts = additive(model)
    assert found.scores == pytest.approx(parts.scores(X[:9]), abs=1e-10)
    assert parts.has_shapes == (name not in ROWS_TOGETHER)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", [n for n in ADDITIVE if n not in ROWS_TOGETHER])
def test_a_contribution_depends_on_its_column_alone(name):
    X, y = rows_and_labels()
    parts = additive(ADDITIVE[name].fit(X, y))
    before = parts.contributions(X[:1])[0]
    for j in range(6):
        other = X[:1].copy()
        other[0, j] += 0.4
        changed = np.abs(parts.contributions(other)[0] - before).max(axis=1) > 1e-12
        assert not np.delete(changed, j).any()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ["intersection", "logistic", "map and ridge", "map svc", "tf-idf"])
def test_sparse_rows(name, n_classes):
    X, y = rows_and_labels(n_classes)
    X = sp.csr_array(X)
    model = ADDITIVE[name].fit(X, y)
    found = contributions(model, X[:5])
    assert found.values.shape == (5, 6, n_classes)
    assert found.scores == pytest.approx(class_scores(model, X[:5]), abs=1e-5)


def test_frames_with_categories():
    X, y = rows_and_labels()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["kind"] = np.where(X[:, 1] > 0.5, "much", "little")
    encoder = ColumnTransformer(
        [("kinds", OneHotEncoder(), ["kind"]), ("numbers", MinMaxScaler(), list("bc"))]
    )
    model = make_pipeline(encoder, LogisticRegression()).fit(frame, y)
    found = contributions(model, frame[:7])
    assert found.values.shape == (7, 7, 3)
    assert found.scores == pytest.approx(model.decision_function(frame[:7]))
    assert not found.values[:, [0, 3, 4, 5]].any()  # dropped
    assert found.values[:, 6].any()


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, random_state=0),
        SVC(),
        SVC(kernel="linear"),
        KernelSVC(Exponential(Chi2(), gamma=1.0)),
        make_pipeline(PCA(3), LogisticRegression()),
        make_pipeline(FunctionTransformer(np.cumsum), LogisticRegression()),
        make_pipeline(PRODUCTS, LinearSVC()),
        MapSVC(PRODUCTS),
        MapRidgeClassifier(feature_map=PRODUCTS),
    ],
    ids=lambda m: type(m[-1] if hasattr(m, "steps") else m).__name__,
)
def test_models_that_are_no_sums(model):
    X, y = rows_and_labels()
    if "cumsum" in str(model):
        model.set_params(functiontransformer__func=lambda rows: rows.cumsum(axis=1))
    model.fit(X, y)
    assert additive(model) is None
    with pytest.raises(TypeError, match="not sums over the columns; leave_column_out"):
        contributions(model, X)


def test_shape_functions_are_the_contributions():
    X, y = rows_and_labels()
    for model in (MapSVC(CHI2_MAP).fit(X, y), IntersectionSVC().fit(X, y)):
        shape, _ = shape_functions(model, [3, 0], ["third", "first"], X.min(axis=0), X.max(axis=0))
        expected = contributions(model, X[:5]).values[:, 3]
        assert shape(X[:5, 3]) == pytest.approx(expected, abs=0.05)
    with pytest.raises(TypeError, match="not a sum of functions of one column"):
        shape_functions(ADDITIVE["tf-idf"].fit(X, y), [0], ["x"], X.min(axis=0), X.max(axis=0))


def test_scores_of_any_model():
    X, y = rows_and_labels(2)
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    assert (class_scores(forest, X) == forest.predict_proba(X)).all()
    linear = LinearSVC().fit(X, y)
    assert (class_scores(linear, X)[:, 1] == linear.decision_function(X)).all()
    assert (class_scores(linear, X)[:, 0] == -linear.decision_function(X)).all()
    X, y = rows_and_labels(4)
    pairs = SVC(decision_function_shape="ovo").fit(X, y)
    with pytest.raises(ValueError, match="no score per class"):
        class_scores(pairs, X)
    with pytest.raises(TypeError, match="neither decision_function nor predict_proba"):
        class_scores(StandardScaler().fit(X), X)
