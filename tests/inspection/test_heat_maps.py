"""Heat maps that sum to the score, and what is lost by covering."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from hilbin.estimators import IntersectionSVC, MapSVC
from hilbin.images import FourierMagnitude
from hilbin.inspection import ImageExplainer, class_scores, heat_map, occlusion
from hilbin.inspection.heat_maps import CELLS
from hilbin.kernels import Chi2
from hilbin.maps import AdditiveMap

MODELS = {
    "intersection": IntersectionSVC(),
    "logistic": LogisticRegression(),
    "map": make_pipeline(AdditiveMap(Chi2(), 3), LogisticRegression()),
    "map svc": MapSVC(AdditiveMap(Chi2(), 3)),
}


@pytest.fixture
def rows(features, photos):
    paths = sorted(photos.rglob("*.png"))
    return features.transform(paths), np.array([p.parent.name for p in paths]), paths


@pytest.mark.parametrize("name", MODELS)
def test_heat_maps_sum_to_the_scores(features, rows, name):
    X, y, paths = rows
    model = MODELS[name].fit(X, y)
    explainer = ImageExplainer(features, model)
    assert explainer.exact
    scores = class_scores(model, X)
    for i in (0, 7, 17):
        for k, label in enumerate(model.classes_):
            heat = heat_map(features, model, paths[i], class_=label)
            assert heat.shape == features.read(paths[i]).shape[:2]
            assert heat.sum() + explainer.intercept[k] == pytest.approx(scores[i, k], abs=1e-5)
        first, second = model.classes_[:2]
        lead = heat_map(features, model, paths[i], class_=first, versus=second)
        each = [heat_map(features, model, paths[i], class_=label) for label in (first, second)]
        assert lead == pytest.approx(each[0] - each[1], abs=1e-9)


def test_the_predicted_class_is_explained(features, rows):
    X, y, paths = rows
    model = IntersectionSVC().fit(X, y)
    found = heat_map(features, model, paths[3])
    assert (found == heat_map(features, model, paths[3], class_=model.predict(X[3:4])[0])).all()
    for options, message in (
        ({"class_": "zebra"}, "class_: the model does not know 'zebra'; it knows across"),
        ({"versus": "zebra"}, "versus: the model does not know 'zebra'"),
        ({"class_": "down", "versus": "down"}, "'down' is the class that is explained"),
    ):
        with pytest.raises(ValueError, match=message):
            heat_map(features, model, paths[3], **options)


def test_other_models_are_covered_cell_by_cell(features, rows):
    X, y, paths = rows
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    explainer = ImageExplainer(features, forest)
    assert not explainer.exact
    assert explainer.intercept is None
    assert "is covered" in explainer.note
    assert heat_map(features, forest, paths[0]).shape == (CELLS, CELLS)


def test_features_that_know_no_pixels(photos):
    paths = sorted(photos.rglob("*.png"))
    features = FourierMagnitude().fit(paths)
    model = LogisticRegression().fit(features.transform(paths), [p.parent.name for p in paths])
    explainer = ImageExplainer(features, model)
    assert not explainer.exact
    assert heat_map(features, model, paths[0]).shape == (CELLS, CELLS)


class MeanOfCorner:
    """Features that see the upper left corner alone; as a classifier, its brightness."""

    def transform_image(self, image):
        return np.array([image[:8, :8].mean()], np.float32)

    def decision_function(self, rows):
        return np.column_stack([rows[:, 0], -rows[:, 0], 0 * rows[:, 0]])


def test_what_is_lost_by_covering():
    image = np.zeros((64, 64), np.uint8)
    image[:8, :8] = 200
    model = MeanOfCorner()
    found = occlusion(model, model, image)
    assert found.shape == (CELLS, CELLS, 3)
    blank = round(200 / 64)
    assert found[0, 0].tolist() == [200 - blank, blank - 200, 0]
    found[0, 0] = 0
    assert not found.any()
    assert occlusion(model, model, image[:3, :5]).shape == (3, 5, 3)
