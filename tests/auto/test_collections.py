"""Collections without labels: search, clusters, montages and duplicates of images and rows."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import hilbin
from hilbin.auto import ImageClassifier, ImageCollection, TableCollection, duplicate_images
from hilbin.auto.arrangement import arrange
from hilbin.auto.row_index import PART, RowIndex, _balanced
from hilbin.kernels import Chi2, Hellinger

RNG = np.random.default_rng(0)
DIGITS, KINDS = load_digits(return_X_y=True)
ROWS = (DIGITS[:400] / DIGITS[:400].sum(axis=1, keepdims=True)).astype(np.float32)


def waves(angle, seed, side=32):
    """A picture of waves in one direction, with noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side]
    turned = np.cos(angle) * x + np.sin(angle) * y
    picture = np.sin(0.9 * turned + rng.uniform(0, 6)) / 3 + 0.5 + 0.1 * rng.normal(size=x.shape)
    return (255 * np.clip(picture, 0, 1)).astype(np.uint8)


PICTURES = [waves(k * np.pi / 3, 10 * k + i) for k in range(3) for i in range(8)]
TRUTH = np.repeat([0, 1, 2], 8)


@pytest.fixture(scope="module")
def collection():
    return ImageCollection("centrist+hog").fit(PICTURES)


@pytest.fixture
def folder(tmp_path):
    """A folder of pictures in two folders, one that cannot be read, and a copy."""
    for i, picture in enumerate(PICTURES):
        path = tmp_path / "photos" / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(path)
    (tmp_path / "photos" / "broken.jpg").write_bytes(b"no image")
    copy = tmp_path / "photos" / "copy.png"
    copy.write_bytes((tmp_path / "photos" / "a" / "0.png").read_bytes())
    return tmp_path / "photos"


# the index
def index_of(rows, kernel=None, n_components=16):
    index = RowIndex(rows, [("all", 0, rows.shape[1])], kernel or Hellinger(), n_components, 0)
    return index.keep(*index.embed(index.features(rows)), 0)


@pytest.mark.parametrize("kernel", [Hellinger(), Chi2()])
def test_all_components_give_the_distances_of_the_kernel(kernel):
    rows = ROWS[:100]  # fewer than words: codes are exact
    index = index_of(rows, kernel, n_components=1000)
    Z = index.features(rows)
    numbers, distances = index.nearest(Z[3], 100)
    expected = cdist(Z, Z[3:4])[:, 0]
    np.testing.assert_allclose(distances, expected[numbers], atol=2e-2)
    assert numbers[0] == 3


def test_few_components_and_what_they_leave_rank_nearly_as_all_do():
    rows = (DIGITS / DIGITS.sum(axis=1, keepdims=True)).astype(np.float32)
    index = index_of(rows, n_components=16)
    Z = index.features(rows)
    found = 0
    for i in range(0, 1000, 20):
        true = np.argsort(cdist(Z, Z[i : i + 1])[:, 0])[:10]
        found += np.isin(true, index.nearest(Z[i], 50)[0]).sum()
    assert found > 0.95 * 500


def test_residuals_are_what_components_leave():
    index = index_of(ROWS, n_components=8)
    Z = index.features(ROWS)
    E, left = index.embed(Z)
    total = np.square(Z - index.mean).sum(axis=1)
    np.testing.assert_allclose(np.square(E).sum(axis=1) + left, total, rtol=1e-4)
    assert (left >= 0).all()


def test_effects_are_differences_of_means():
    rows = ROWS[:100]
    index = index_of(rows, n_components=1000)
    inside = np.arange(100) % 3 == 0
    Z = index.features(rows)
    expected = Z[inside].mean(axis=0) - Z[~inside].mean(axis=0)
    spread = Z.std(axis=0)
    varied = spread > 0
    got = index.effects(inside)
    np.testing.assert_allclose(got[varied], expected[varied] / spread[varied], atol=0.02)
    assert (got[~varied] == 0).all()


@given(n=st.integers(1, 40), seed=st.integers(0, 100))
def test_parts_have_balanced_variances(n, seed):
    variances = np.exp(-np.sort(np.random.default_rng(seed).uniform(0, 5, n)))
    order = _balanced(variances)
    assert sorted(order) == [*range(n)]
    if n % PART == 0:
        sums = np.log(variances[order]).reshape(-1, PART).sum(axis=1)
        plain = np.log(variances).reshape(-1, PART).sum(axis=1)
        assert np.ptp(sums) <= np.ptp(plain) + 1e-12


def test_rows_that_are_all_equal_have_an_index():
    index = index_of(np.ones((30, 5), np.float32))
    numbers, distances = index.nearest(index.features(np.ones((1, 5)))[0], 3)
    assert numbers.size == 3
    assert (distances == 0).all()


# arrangement
def test_blocks_are_sorted_within_regions(monkeypatch):
    monkeypatch.setattr("hilbin.auto.arrangement.BLOCK", 60)
    rows = RNG.uniform(size=(200, 2))
    told = []
    sorting = arrange(rows, callback=lambda done, n: told.append((done, n)))
    assert len(np.unique(sorting.cells, axis=0)) == 200
    assert (sorting.cells < sorting.shape).all()
    assert told[-1] == (200, 200)
    assert len(told) > 2
    near = np.abs(sorting.cells[:, None] - sorting.cells).sum(axis=2) == 1
    apart = cdist(rows, rows)
    assert apart[near].mean() < 0.4 * apart.mean()


@pytest.mark.parametrize("n", [2, 3, 7])
def test_few_or_equal_rows_are_arranged(n):
    for rows in (np.ones((n, 3)), RNG.normal(size=(n, 3))):
        assert len(np.unique(arrange(rows).cells, axis=0)) == n


# images
def test_the_most_similar_image_is_itself(collection):
    distances, numbers = collection.kneighbors(PICTURES, 3)
    assert (numbers[:, 0] == np.arange(len(PICTURES))).all()
    np.testing.assert_allclose(distances[:, 0], 0, atol=1e-3)
    assert (np.diff(distances, axis=1) >= 0).all()
    assert (TRUTH[numbers[:, 1]] == TRUTH).mean() > 0.9


def test_exact_distances_are_those_of_all_features(collection):
    distances, numbers = collection.kneighbors(PICTURES[:2], len(PICTURES))
    Z = collection.index_.features(collection.model_.transform(PICTURES))
    expected = cdist(Z[:2], Z)
    np.testing.assert_allclose(distances, np.sort(expected, axis=1), atol=1e-3)
    rough, others = collection.kneighbors(PICTURES[:2], 3, exact=False)
    assert (others[:, 0] == numbers[:, 0]).all()
    assert rough.shape == (2, 3)


def test_clusters_are_the_kinds_of_pictures(collection):
    found = collection.cluster(3)
    assert adjusted_rand_score(TRUTH, found.labels) == 1
    assert [len(m) for m in found.members] == [8, 8, 8]
    for k, members in enumerate(found.members):
        assert (found.labels[members] == k).all()
        assert found.differences[k][0].name.startswith("centrist word")
        assert found.differences[k][0].effect > 0
    assert found.typical(0, 2) == [found.names[i] for i in found.members[0][:2]]


def test_a_column_that_sets_a_cluster_apart_is_more_in_it(collection):
    found = collection.cluster(3)
    rows = collection.model_.transform(PICTURES)
    for k in range(3):
        column = rows[:, found.differences[k][0].column]
        assert column[found.labels == k].mean() > column[found.labels != k].mean()


def test_a_folder(folder, tmp_path):
    with pytest.warns(hilbin.images.UnreadableImageWarning, match=r"broken\.jpg"):
        collection = ImageCollection("centrist", cache=tmp_path / "cache").fit(folder)
    assert "copy.png" in collection.names_
    assert "a/0.png" in collection.names_
    assert len(collection.names_) == 25
    assert [u["name"] for u in collection.unreadable_] == ["broken.jpg"]
    assert {"a/0.png", "copy.png"} <= {*collection.duplicates()[0]}
    (near,) = collection.similar([folder / "a" / "0.png"], 2)
    assert {one.name for one in near} == {"a/0.png", "copy.png"}
    assert collection.path_of(near[0].number).is_file()


def test_many_images_are_described_in_parts(folder, monkeypatch):
    (folder / "broken.jpg").unlink()
    whole = ImageCollection("centrist").fit(folder)
    monkeypatch.setattr("hilbin.auto.collection.SAMPLE", 20)
    monkeypatch.setattr("hilbin.auto.image_collection.AT_ONCE", 2)
    parts = ImageCollection("centrist").fit(folder)
    assert parts.names_ == whole.names_
    assert parts.hashes_ == whole.hashes_
    _, numbers = parts.kneighbors([folder / "b" / "1.png"], 1)
    assert parts.names_[numbers[0, 0]] == "b/1.png"


def test_a_fit_that_was_interrupted_resumes(folder, tmp_path):
    told = []

    def stop(stage, done, _):
        if stage == "making codes":
            raise KeyboardInterrupt

    collection = ImageCollection("centrist", cache=tmp_path / "cache")
    with pytest.raises(KeyboardInterrupt):
        collection.fit(folder, callback=stop)
    assert not hasattr(collection, "index_")
    with pytest.warns(hilbin.images.UnreadableImageWarning):
        collection.fit(folder, callback=lambda *stage: told.append(stage))
    assert ("resumed", 26, 26) in told


def test_saved_and_loaded(collection, tmp_path):
    collection.save(tmp_path / "c.hilbin")
    loaded = hilbin.load(tmp_path / "c.hilbin")
    assert loaded.names_ == collection.names_
    for mine, other in zip(
        collection.kneighbors(PICTURES[:3]), loaded.kneighbors(PICTURES[:3]), strict=True
    ):
        np.testing.assert_array_equal(mine, other)
    np.testing.assert_array_equal(collection.cluster(3).labels, loaded.cluster(3).labels)
    np.testing.assert_array_equal(collection.arrange().cells, loaded.arrange().cells)
    assert clone(loaded).get_params() == collection.get_params()


def test_features_of_a_classifier():
    classifier = ImageClassifier("centrist+hog", kernel="hellinger").fit(PICTURES, TRUTH.tolist())
    found = ImageCollection().fit(PICTURES[::2], model=classifier)
    assert found.features_ == classifier.features_
    rows = classifier.model_["features"].transform(PICTURES[:1])
    np.testing.assert_array_equal(found.model_.transform(PICTURES[:1]), rows)
    assert [one.name for one in found.similar(PICTURES[2:3], 1)[0]] == ["image 2"]
    with pytest.raises(ValueError, match="model must be an ImageClassifier, got int"):
        ImageCollection().fit(PICTURES, model=3)
    with pytest.raises(ValueError, match="model must be a TableClassifier, got ImageClassifier"):
        TableCollection().fit([[0.0, 1.0], [1.0, 2.0]], model=classifier)


def test_an_index_is_a_fraction_of_the_features(tmp_path):
    rows = RNG.gamma(0.3, size=(4000, 512)).astype(np.float32)
    index = index_of(rows, n_components=64)
    per_row = index.codes.nbytes / len(rows) + index.residuals.itemsize
    assert 32 * per_row <= rows.nbytes / len(rows)
    hilbin.save(index, tmp_path / "i.hilbin")
    assert (tmp_path / "i.hilbin").stat().st_size * 16 < rows.nbytes


def test_pages(folder, tmp_path):
    with pytest.warns(hilbin.images.UnreadableImageWarning):
        collection = ImageCollection("centrist").fit(folder)
    sorting = collection.montage(tmp_path / "wall.html")
    page = (tmp_path / "wall.html").read_text()
    assert len(sorting.cells) == 25
    assert "a/0.png" in page
    assert "./photos/a/0.png" in page
    collection.cluster(2, report=tmp_path / "clusters.html")
    page = (tmp_path / "clusters.html").read_text()
    assert page.count("data:image/jpeg") > 10
    assert "centrist word" in page
    for text in ((tmp_path / "wall.html").read_text(), page):
        assert not re.search(r"(src|href)=\"(https?:)?//", text)


def test_files_that_are_gone(folder, tmp_path):
    with pytest.warns(hilbin.images.UnreadableImageWarning):
        collection = ImageCollection("centrist").fit(folder)
    query = PICTURES[5]
    before = collection.similar([query], 5)[0]
    (folder / "b" / "7.png").unlink()
    after = collection.similar([query], 25)[0]
    assert before[0].name == after[0].name
    assert "b/7.png" in [one.name for one in after]
    collection.montage(tmp_path / "wall.html")
    collection.cluster(2, report=tmp_path / "clusters.html")


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([], "no image; a collection needs two"),
        (PICTURES[:1], "only one image; a collection needs two"),
        (["nothing.jpg", "none.jpg"], "none of the 2 images can be read.*nothing.jpg"),
        ([PICTURES[0], "none.jpg"], "1 image can be read, and a collection needs two; none.jpg"),
    ],
)
def test_too_few_images(images, message):
    with pytest.raises(ValueError, match=message):
        ImageCollection("centrist").fit(images)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "cosine"}, "kernel must be"),
        ({"n_components": 0}, "n_components must be"),
        ({"features": "sofa"}, "'sofa' is not known"),
        ({"random_state": -1}, "random_state must be"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        ImageCollection(**{"features": "centrist", **options}).fit(PICTURES)


def test_bad_numbers(collection):
    with pytest.raises(ValueError, match="n_clusters=25 is more than the 24 images"):
        collection.cluster(25)
    with pytest.raises(ValueError, match="n_neighbors must be"):
        collection.kneighbors(PICTURES[:1], 0)


def test_pictures_that_are_all_alike(tmp_path):
    collection = ImageCollection("centrist+color").fit([np.full((20, 20, 3), 99, np.uint8)] * 5)
    with pytest.raises(ValueError, match="n_clusters=2, but of the 5 images only 1 is different"):
        collection.cluster(2)
    assert collection.cluster().labels.tolist() == [0] * 5
    assert collection.cluster(1).labels.tolist() == [0] * 5
    assert collection.duplicates() == [[f"image {i}" for i in range(1, 6)]]
    assert len(collection.montage(tmp_path / "wall.html").cells) == 5
    assert collection.kneighbors([np.full((20, 20, 3), 99, np.uint8)], 2)[0].max() < 1e-3


def test_duplicates_need_no_features(folder):
    groups, unreadable = duplicate_images(folder)
    assert {"a/0.png", "copy.png"} <= {*groups[0]}
    assert [one["name"] for one in unreadable] == ["broken.jpg"]
    with pytest.raises(ValueError, match="there is no image"):
        duplicate_images([])


# tables
def test_neighbors_of_rows_are_those_of_scaled_columns():
    X = RNG.normal(size=(300, 5)) * [1, 10, 100, 1, 1]
    found = TableCollection().fit(X)
    distances, numbers = found.kneighbors(X[:20], 4)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = np.argsort(cdist(scaled[:20], scaled), axis=1)[:, :4]
    np.testing.assert_array_equal(numbers, expected)
    scale = cdist(scaled[:20], scaled)[0, expected[0, 1]] / distances[0, 1]
    assert scale == pytest.approx(np.sqrt(5), rel=1e-3)


def test_columns_set_clusters_apart(tmp_path):
    X = RNG.normal(size=(200, 4))
    X[:60, 2] -= 8
    X[60:120, 1] += 8
    found = TableCollection().fit(X).cluster(3, report=tmp_path / "page.html")
    truth = np.repeat([0, 1, 2], [60, 60, 80])
    assert adjusted_rand_score(truth, found.labels) == 1
    low = next(d for k, d in enumerate(found.differences) if (truth[found.members[k]] == 0).all())
    assert (low[0].name, low[0].effect < 0) == ("column 3", True)
    assert "column 3" in (tmp_path / "page.html").read_text()


def test_tables_of_texts(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("name,color,size\nx,red,1\ny,red,1\nz,blue,9\nw,blue,8\n")
    found = TableCollection("name").fit(table)
    assert found.duplicates() == [["x", "y"]]
    assert [one.name for one in found.similar(table, 2)[2]] == ["z", "w"]
    found.save(tmp_path / "t.hilbin")
    assert hilbin.load(tmp_path / "t.hilbin").duplicates() == [["x", "y"]]


def test_histograms_take_their_kernel():
    found = TableCollection(kernel="hellinger").fit(ROWS)
    expected = np.argsort(cdist(np.sqrt(ROWS[:5]), np.sqrt(ROWS)), axis=1)[:, :3]
    np.testing.assert_array_equal(found.kneighbors(ROWS[:5], 3)[1], expected)
    with pytest.raises(ValueError, match=r"row 2.*-1 in column 1 is negative"):
        TableCollection(kernel="chi2").fit([[0.0, 1.0], [-1.0, 2.0]])


@parametrize_with_checks([TableCollection()])
def test_sklearn(estimator, check):
    check(estimator)
