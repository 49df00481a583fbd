"""Visual words: what columns stand for, which words matter, and where they are in an image."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

from hilbin.estimators import IntersectionSVC
from hilbin.images import (
    FHOG,
    Centrist,
    OnnxFeatures,
)
from hilbin.images.onnx_features import NetworkOutput
from hilbin.inspection import (
    ImageColumn,
    Importances,
    additive,
    image_column,
    importances,
    sum_by_word,
    visual_words,
)
from hilbin.inspection.words import (
    best_place,
    cut_out,
    most_important_words,
    rise,
    whole_image_words,
)
from hilbin.kernels import Chi2
from hilbin.maps import AdditiveMap


def test_columns_are_words_in_cells(features, photos):
    image = features.read(photos / "down" / "pic 0.png")
    row = features.transform_image(image)
    for j in np.flatnonzero(row):
        what = image_column(features, int(j), "")
        grids = what.words.words(image)
        count = total = 0
        for grid in grids:
            here = grid.cell_numbers(image.shape, what.cut) == what.cell
            count += int(((grid.ids == what.word) & here).sum())
            total += grid.ids.size
        assert row[j] == pytest.approx(what.weight * count / total, rel=1e-5)
    mask = whole_image_words(features)
    assert [str(image_column(features, int(j), "")) for j in np.flatnonzero(mask)] == [
        *(f"sift word {w}, whole image" for w in range(12)),
        *(f"color word {w}, whole image" for w in range(27)),
    ]


def test_columns_of_networks_are_channels_in_cells():
    """The names are those of the transformer, with the place of a cell in words."""
    outputs = [
        NetworkOutput("map", 3, True, ((1, 1), (2, 2)), (1.0, 1.0)),
        NetworkOutput("mid", 2, False, ((1, 1), (3, 1)), (1.0, 1.0)),
    ]
    net = OnnxFeatures("net.onnx")
    net.outputs_ = outputs
    names = net.get_feature_names_out().tolist()
    found = [image_column(net, j, "onnx") for j in range(len(names))]
    for name, column in zip(names, found, strict=True):
        assert str(replace(column, cut=(1, 1))).split()[-1] == str(column.word)
        assert name.split(",")[0].split()[:2] == [*column.part.split()[1:2], str(column.word)]
        assert ("negative" in name) == ("negative" in column.part)
        row, place = divmod(column.cell, column.cut[1])
        where = f"row {row + 1} of {column.cut[0]}, column {place + 1} of {column.cut[1]}"
        assert (where in name) == (column.cut != (1, 1))
    assert str(found[0]) == "onnx map 0"
    assert str(found[-1]) == "onnx mid 1, row 3 of 3, column 1 of 1"
    values = np.arange(len(names), dtype=float)
    sums = sum_by_word(net, values, "onnx")
    assert len(sums) == 3 * 2 + 2
    ours = [j for j, name in enumerate(names) if name.startswith("map 1 negative")]
    assert sums["onnx map negative 1"] == values[ours].sum()


def test_words_are_summed_over_cells(features):
    values = np.arange(12 * 5 + 27.0)
    found = sum_by_word(features, values, "")
    assert len(found) == 12 + 27
    assert found["sift word 3"] == values[3:60:12].sum()
    assert found["color word 26"] == values[-1]
    assert sum(found.values()) == values.sum()


def test_rise_by_hand():
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(40, 7))
    parts = additive(
        make_pipeline(AdditiveMap(Chi2(), 3), RidgeClassifier()).fit(X, np.arange(40) % 3)
    )
    found = rise(parts, importances(parts, X))
    for j in range(7):
        end = np.zeros((1, 7))
        end[0, j] = X[:, j].max()
        expected = parts.contributions(end)[0, j] - parts.contributions(np.zeros((1, 7)))[0, j]
        assert found[j] == pytest.approx(expected)


def test_every_word_once_and_every_class_seldom():
    by_class = np.array([[9.0, 8.0], [7.0, 0.5], [6.0, 1.0], [5.0, 0.1], [4.0, 0.2]])
    used = Importances([""] * 5, by_class, exact=True)
    column = lambda j: ImageColumn("sift", None, j // 2)  # noqa: E731 - 0 and 1 are the same word
    everywhere, rises = np.ones(5, bool), np.ones((5, 2))
    assert most_important_words(used, rises, everywhere, column, most=2) == [(0, 0), (2, 1)]
    everywhere[0] = False
    assert most_important_words(used, rises, everywhere, column, most=2) == [(1, 0), (2, 1)]
    assert most_important_words(used, -rises, everywhere, column) == []


def test_patches_are_where_the_word_is():
    image = np.full((60, 80), 100, np.uint8)
    image[30:40, 50:60] = np.arange(100, 200).reshape(10, 10)
    codes = Centrist().words(image)[0].ids
    rare = int(codes[34, 54])
    assert (codes == rare).sum() < codes.size / 10
    y, x, side = best_place(ImageColumn("centrist", Centrist(), rare), image)
    assert (abs(y - 35) < 8, abs(x - 55) < 8, side) == (True, True, 16)
    assert best_place(ImageColumn("centrist", Centrist(), rare, (2, 2), 0), image) is None
    assert cut_out(image, y, x, side).max() > 150
    assert cut_out(image, 0, 79, 16).shape == (16, 16)
    assert cut_out(image[:10], 0, 79, 16).shape == (10, 10)


def test_words_of_a_model(features, photos):
    paths = sorted(photos.rglob("*.png"))
    rows, labels = features.transform(paths), [p.parent.name for p in paths]
    found = visual_words(features, IntersectionSVC().fit(rows, labels), paths, max_words=5)
    assert 1 <= len(found) <= 5
    names = [word.shape.name for word in found]
    assert len(set(names)) == len(names)
    for word in found:
        assert word.shape.contributions[-1, word.label] > word.shape.contributions[0, word.label]
        assert 1 <= len(word.patches) <= 16
    forest = RandomForestClassifier(5).fit(rows, labels)
    assert visual_words(features, forest, paths) == []
    hog = FHOG(size=(32, 32)).fit(paths)
    model = IntersectionSVC().fit(hog.transform(paths), labels)
    assert visual_words(hog, model, paths) == []
