"""Words of an image: counted per cell, shared out over the pixels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import drawn
from sklearn.base import clone

from hilbin.images import (
    DESCRIPTORS,
    FHOG,
    HOG,
    LBP,
    BagOfWords,
    Centrist,
    ColorHistogram,
    DenseSIFT,
    ImageFeatures,
    SpatialPyramid,
    WordGrid,
)
from hilbin.images.descriptors import ImageSample
from hilbin.images.words import count, lazebnik_weights, paint
from hilbin.kernels import Intersection

PICTURES = [drawn(i, (40 + 4 * (i % 3), 52), color=True) for i in range(5)]
SMALL_BAG = BagOfWords(DenseSIFT(4, (3, 4)), 12, random_state=0)
SOFT_BAG = BagOfWords(DenseSIFT(4, (3,)), 12, assignment="soft", n_nearest=3, random_state=0)
TRANSFORMERS = {
    "centrist": Centrist(),
    "edges": Centrist(edges=True),
    "lbp": LBP(),
    "lbp256": LBP(uniform=False),
    "lab": ColorHistogram(),
    "hsv": ColorHistogram("hsv", (6, 2, 1)),
    "bag": SMALL_BAG,
    "soft": SOFT_BAG,
    "fhog": FHOG(4, (32, 24)),
    "hog": HOG(4, (32, 24), color=False),
    "pyramid": SpatialPyramid(SMALL_BAG, 3),
    "soft pyramid": SpatialPyramid(SOFT_BAG, 2),
    "listed": SpatialPyramid(Centrist(), [(3, 1), (1, 2)], weights=[1, 0.5]),
    "colors": SpatialPyramid(ColorHistogram("rgb", 3), 2, weights=[1, 1]),
    "both": ImageFeatures(
        [("a", SpatialPyramid(Centrist(), 2)), ("b", ColorHistogram())], {"b": 0.5}
    ),
}
# and all that can be asked for by name
TRANSFORMERS |= {
    f"named {name}": named.make(ImageSample(PICTURES, len(PICTURES)), 0)
    for name, named in DESCRIPTORS.items()
    if named.argument is None
}


def counted_slowly(grids, shape, cut, n_words):
    counts = np.zeros((cut[0] * cut[1], n_words))
    for grid in grids:
        for i, y in enumerate(grid.ys):
            for j, x in enumerate(grid.xs):
                row, column = int((y + 0.5) * cut[0] / shape[0]), int((x + 0.5) * cut[1] / shape[1])
                for m, word in enumerate(np.atleast_1d(grid.ids[i, j])):
                    weight = 1 if grid.weights is None else grid.weights[i, j, m]
                    counts[row * cut[1] + column, word] += weight
    return counts


@pytest.fixture(scope="module", params=TRANSFORMERS, ids=str)
def fitted(request):
    return clone(TRANSFORMERS[request.param]).fit(PICTURES)


@given(st.integers(0, 99), st.sampled_from([(1, 1), (2, 2), (4, 3)]), st.booleans())
def test_counts_are_those_of_a_loop(seed, cut, soft):
    rng = np.random.default_rng(seed)
    shape = (rng.integers(3, 30), rng.integers(3, 30))
    ys, xs = np.arange(1, shape[0] - 1), np.arange(0, shape[1], 2)
    size = (len(ys), len(xs), 2) if soft else (len(ys), len(xs))
    ids = rng.integers(0, 7, size).astype(np.int32)
    weights = rng.uniform(size=size).astype(np.float32) if soft else None
    grids = [WordGrid(ids, ys, xs, 3, weights)]
    expected = counted_slowly(grids, shape, cut, 7)
    np.testing.assert_allclose(count(grids, shape, cut, 7), expected, rtol=1e-5)


@given(st.integers(0, 99))
def test_painting_keeps_every_share_in_its_square(seed):
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(4, 20)), int(rng.integers(4, 20)))
    ys, xs = np.sort(rng.uniform(0, shape[0] - 1, 3)), np.sort(rng.uniform(0, shape[1] - 1, 2))
    share = rng.normal(size=(3, 2))
    grid = WordGrid(np.zeros((3, 2), int), ys, xs, float(rng.uniform(0.5, 9)))
    heat = paint(shape, [grid], [share])
    assert heat.sum() == pytest.approx(share.sum(), abs=1e-9)
    one = np.zeros((3, 2))
    one[1, 1] = 1
    where = np.argwhere(paint(shape, [grid], [one]) > 1e-12)
    assert (np.abs(where - [ys[1], xs[1]]) <= grid.size / 2 + 1).all()


def test_rows_are_those_of_single_images(fitted):
    rows = fitted.transform(PICTURES)
    assert rows.dtype == np.float32
    assert rows.shape == (len(PICTURES), len(fitted.get_feature_names_out()))
    assert (rows >= 0).all()
    for picture, row in zip(PICTURES, rows, strict=True):
        np.testing.assert_array_equal(row, fitted.transform_image(fitted.read(picture)))


def test_rows_do_not_depend_on_threads_or_layout(fitted):
    rows = fitted.transform(PICTURES * 3)
    again = clone(fitted).set_params(n_jobs=2).fit(PICTURES)
    np.testing.assert_array_equal(again.transform(PICTURES * 3), rows)
    if "sparse_output" in fitted.get_params():
        sparse = clone(fitted).set_params(sparse_output=True).fit(PICTURES)
        np.testing.assert_array_equal(sparse.transform(PICTURES * 3).toarray(), rows)


def test_shares_of_pixels_sum_to_the_contributions(fitted):
    rng = np.random.default_rng(0)
    image = fitted.read(PICTURES[1])
    contributions = rng.normal(size=len(fitted.get_feature_names_out()))
    heat = fitted.to_pixels(image, contributions)
    assert heat.shape == image.shape[:2]
    assert heat.sum() == pytest.approx(contributions.sum(), rel=1e-9, abs=1e-9)


def test_shares_lie_where_the_word_is():
    image = np.zeros((40, 40), np.uint8)
    image[8:12, 30:34] = np.random.default_rng(0).integers(1, 255, (4, 4))
    pyramid = SpatialPyramid(Centrist(), 3).fit([image])
    row = pyramid.transform_image(image)
    heat = pyramid.to_pixels(image, np.where(row > 0, row, 0) * (np.arange(row.size) % 256 != 255))
    outside = heat.copy()
    outside[5:15, 27:37] = 0
    assert heat.sum() > 0
    assert np.abs(outside).max() < 1e-12


def test_pyramid_is_the_weighted_match_of_its_cells():
    pyramid = SpatialPyramid(Centrist(), 3).fit(PICTURES)
    a, b = pyramid.transform(PICTURES[:2])
    parts = []
    for picture in PICTURES[:2]:
        image = pyramid.read(picture)
        words = Centrist().words(image)
        n = words[0].ids.size
        parts.append([counted_slowly(words, image.shape, c, 256) / n for c in pyramid.cuts_])
    match = sum(
        w * np.minimum(p, q).sum() for w, p, q in zip(lazebnik_weights(3), *parts, strict=True)
    )
    assert Intersection().gram(a[None], b[None])[0, 0] == pytest.approx(match, rel=1e-5)


def test_lazebnik_weights_are_the_pyramid_match():
    np.testing.assert_array_equal(lazebnik_weights(1), [1])
    np.testing.assert_array_equal(lazebnik_weights(4), [1 / 8, 1 / 8, 1 / 4, 1 / 2])


def test_image_features_are_their_parts_side_by_side():
    both = TRANSFORMERS["both"]
    rows = clone(both).fit(PICTURES).transform(PICTURES)
    first = SpatialPyramid(Centrist(), 2).fit(PICTURES).transform(PICTURES)
    second = ColorHistogram().fit(PICTURES).transform(PICTURES)
    np.testing.assert_array_equal(rows, np.hstack([first, 0.5 * second]))


def test_output_as_a_frame(fitted):
    frame = clone(fitted).set_output(transform="pandas").fit(PICTURES)
    if "sparse_output" not in fitted.get_params():
        assert list(frame.transform(PICTURES).columns) == list(fitted.get_feature_names_out())


def test_tiny_images_give_rows(fitted):
    for shape in ((1, 1), (2, 9), (5, 5, 3)):
        row = fitted.transform([np.full(shape, 9, np.uint8)])[0]
        assert np.isfinite(row).all()
        image = fitted.read(np.full(shape, 9, np.uint8))
        assert fitted.to_pixels(image, row).sum() == pytest.approx(row.sum(), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    ("transformer", "said"),
    [
        (ColorHistogram("xyz"), "space"),
        (ColorHistogram(bins=(1, 2)), "bins"),
        (ColorHistogram(bins=0), "bins"),
        (SpatialPyramid(Centrist(), 0), "levels"),
        (SpatialPyramid(Centrist(), []), "levels"),
        (SpatialPyramid(Centrist(), [(0, 1)]), "levels"),
        (SpatialPyramid(Centrist(), weights=[1, -1, 1]), "weights"),
        (SpatialPyramid(Centrist(), weights=[1]), "weights"),
        (SpatialPyramid(Centrist(), max_side=0), "max_side"),
        (FHOG(1), "cell"),
        (HOG(8, (8, 64)), "size"),
        (ImageFeatures([]), "parts"),
        (ImageFeatures([("a", LBP()), ("a", LBP())]), "parts"),
        (ImageFeatures([("a", LBP())], {"b": 1}), "weights"),
        (ImageFeatures([("a", LBP())], {"a": -1}), "weights"),
        (BagOfWords(assignment="none"), "assignment"),
        (BagOfWords(n_words=10**6), "n_words"),
        (BagOfWords(DenseSIFT(0)), "step"),
    ],
)
def test_bad_parameters_are_named(transformer, said):
    with pytest.raises(ValueError, match=said):
        transformer.fit(PICTURES)


@pytest.mark.parametrize(
    "transformer",
    [SpatialPyramid(DenseSIFT()), BagOfWords(Centrist()), ImageFeatures([("a", DenseSIFT())])],
)
def test_wrong_kinds_of_parts(transformer):
    with pytest.raises(TypeError, match="must be"):
        transformer.fit(PICTURES)


def test_nothing_to_learn_from():
    with pytest.raises(ValueError, match="empty"):
        BagOfWords().fit([])
    with pytest.raises(ValueError, match="could be read"):
        BagOfWords().fit(["none.jpg"])


def test_images_are_no_metadata(fitted):
    assert not hasattr(fitted, "set_fit_request")
    assert not hasattr(fitted, "set_transform_request")
