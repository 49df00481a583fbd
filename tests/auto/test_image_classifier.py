"""ImageClassifier: from images to a model with probabilities, reasons and a report."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier

import hilbin
from hilbin.auto import ImageClassifier
from hilbin.auto.dual import Dual
from hilbin.auto.image_candidates import (
    ImageRows,
    IntersectionChannels,
    RidgeCandidate,
    SquareRoots,
    SupportCandidate,
)
from hilbin.auto.image_data import (
    Cache,
    check_features,
    described,
    files,
    fingerprint,
    open_images,
    resolve,
)
from hilbin.images import Centrist, ImageError, UnreadableImageWarning
from hilbin.images.descriptors import ImageSample
from hilbin.inspection import additive
from hilbin.kernels import Chi2

PIL = pytest.importorskip("PIL.Image")


def picture(kind, rng):
    """Return stripes of a direction, in random colors."""
    y, x = np.mgrid[:40, :40]
    waves = {"across": y, "along": x, "slanted": x + y}[kind] * rng.uniform(0.4, 0.8)
    gray = 128 + 90 * np.sin(waves) + rng.normal(0, 20, (40, 40))
    tint = rng.uniform(0.3, 1, 3)
    return np.clip(gray[..., None] * tint, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return folders of training and test images, one file of which is none."""
    root, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for part, n in (("train", 8), ("test", 3)):
        for kind in ("across", "along", "slanted"):
            (root / part / kind).mkdir(parents=True)
            for i in range(n):
                PIL.fromarray(picture(kind, rng)).save(root / part / kind / f"{i}.png")
    (root / "train" / "along" / "broken.png").write_bytes(b"no image")
    return root


@pytest.fixture(scope="module")
def model(folder):
    """Return a trained classifier."""
    with pytest.warns(UnreadableImageWarning, match=r"along/broken\.png"):
        return ImageClassifier("centrist+color").fit(folder / "train")


def held_out(folder):
    """Return the test images and their labels."""
    data = open_images(folder / "test")
    return data.images, np.array(data.labels)


def test_it_learns_a_folder(model, folder):
    images, labels = held_out(folder)
    assert model.score(images, labels) > 0.8
    assert model.classes_.tolist() == ["across", "along", "slanted"]
    assert model.decision_function(images).shape == (9, 3)
    assert model.metadata_["data"]["n"] == 24
    assert model.metadata_["unreadable"][0]["name"] == "along/broken.png"


def test_probabilities(model, folder):
    probabilities = model.predict_proba(held_out(folder)[0])
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert (probabilities >= 0).all()


def test_paths_and_labels_or_a_table_give_the_same_model(model, folder, tmp_path):
    data = open_images(folder / "train")
    table = tmp_path / "labels.csv"
    lines = [f"{p},{label}" for p, label in zip(data.images, data.labels, strict=True)]
    table.write_text("\n".join(["path,label", *lines]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreadableImageWarning)
        one = ImageClassifier("centrist+color").fit(data.images, data.labels)
        two = ImageClassifier("centrist+color", n_jobs=2).fit(table)
    for other in (one, two):
        assert np.array_equal(other.model_[1][-1].coef_, model.model_[1][-1].coef_)
        assert np.array_equal(other.calibration_.coef_, model.calibration_.coef_)


def test_the_choice_is_told(model):
    names = [one["name"] for one in model.choice_.table]
    assert len(names) == 5
    assert model.choice_.best.name in names
    assert model.choice_.best.data is None  # the training rows are no part of the model
    assert {"majority", "square roots + LinearSVC"} <= model.choice_.baselines.keys()
    assert all(one["name"] in model.summary() for one in model.choice_.table)
    assert model.metadata_["cv"]["n"] == 24


def test_channels_are_told(model, folder, tmp_path):
    about = model.metadata_["channels"]
    assert [one["name"] for one in about["each"]] == model.features_.split("+")
    assert np.isclose(sum(one["weight"] for one in about["each"]), 1)
    assert about["rules"].keys() == {"accuracy", "average"}
    assert f"plain average {about['rules']['average']:.1%}" in model.summary()
    page = model.report(folder / "test", path=tmp_path / "page.html").read_text()
    assert "How useful each description is" in page
    assert "rule: accuracy" in page


@pytest.mark.filterwarnings("ignore::hilbin.images.UnreadableImageWarning")
@pytest.mark.parametrize("combine", ["average", "auto"])
def test_weights_by_another_rule(folder, combine):
    model = ImageClassifier("centrist+lbp+hog", combine=combine).fit(folder / "train")
    about = model.metadata_["channels"]
    assert len(about["rules"]) == (1 if combine == "average" else 4)
    assert about["rules"][about["rule"]] == max(about["rules"].values())
    assert model.score(*held_out(folder)) > 0.6


def test_heat_maps_sum_to_the_score(model, folder):
    image = held_out(folder)[0][0]
    why = model.explain(image, class_="across", versus="along")
    assert why.exact
    scores = model.decision_function([image])[0]
    assert np.isclose(why.score, scores[0] - scores[1], atol=1e-6)
    assert np.isclose(why.heat.sum() + why.intercept, why.score, atol=1e-6)


def test_report(model, folder, tmp_path):
    page = model.report(folder / "test", path=tmp_path / "page.html")
    assert page.stat().st_size > 10_000
    images, labels = held_out(folder)
    assert model.report(images, labels, tmp_path / "two.html").exists()
    with pytest.raises(ValueError, match="no example of a class"):
        model.report(images, ["other"] * 9, tmp_path / "three.html")


def test_saved_and_loaded(model, folder, tmp_path):
    model.save(tmp_path / "m.hilbin")
    loaded = hilbin.load(tmp_path / "m.hilbin")
    images = held_out(folder)[0]
    assert np.array_equal(loaded.predict_proba(images), model.predict_proba(images))
    assert loaded.summary() == model.summary()
    assert hilbin.persist.info(tmp_path / "m.hilbin").metadata["kind"] == "images"


def test_an_interrupted_fit_resumes(folder, tmp_path, monkeypatch):
    data = open_images(folder / "test")
    cache = tmp_path / "cache"

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Dual, "solve", stop)
        with pytest.raises(KeyboardInterrupt):
            ImageClassifier("centrist", cache=cache).fit(data.images, data.labels)
    assert list(cache.glob("hilbin-*.rows"))
    with monkeypatch.context() as patch:
        patch.setattr("hilbin.auto.image_data._chunk", stop)  # no image is described again
        with pytest.raises(KeyboardInterrupt):
            ImageClassifier("centrist").fit(data.images, data.labels)
        resumed = ImageClassifier("centrist", cache=cache).fit(data.images, data.labels)
    plain = ImageClassifier("centrist").fit(data.images, data.labels)
    assert np.array_equal(resumed.model_[1][-1].coef_, plain.model_[1][-1].coef_)
    Cache(cache).remove()
    assert not cache.exists()


@pytest.mark.parametrize("kernel", ["chi2", "intersection", "exp-chi2", "hellinger"])
def test_a_kernel_by_name(folder, kernel, tmp_path):
    data = open_images(folder / "test")
    model = ImageClassifier("centrist", kernel=kernel, virtual="shift,flip")
    model.fit(data.images, data.labels)
    assert kernel in model.choice_.best.name
    assert "square roots + LinearSVC" in model.choice_.baselines
    assert model.explain(data.images[0]).exact == (kernel != "exp-chi2")
    model.save(tmp_path / "m.hilbin")
    assert np.array_equal(
        hilbin.load(tmp_path / "m.hilbin").predict(data.images), model.predict(data.images)
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("candidate", [RidgeCandidate, SupportCandidate])
@pytest.mark.parametrize("power", [None, 2.0])
def test_a_model_from_gram_matrices_is_that_of_a_fit(candidate, n_classes, power):
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    X = (rng.dirichlet(np.ones(20), 60) + 0.1 * np.eye(20)[y]).astype(np.float32)
    channels = [("a", 0, 8), ("b", 8, 20)]
    data = ImageRows(X, y, np.arange(60), np.zeros(60, bool), channels)
    one = candidate("one", data, Chi2())
    scores = one.held_out(np.arange(60), y, np.arange(60) // n_classes % 3, 0)
    assert scores.shape == (60, n_classes)
    assert np.mean(scores.argmax(axis=1) == y) > 0.8
    one.power = power or one.power
    fitted = one.make().fit(X, y)
    assert np.allclose(one.train().decision_function(X), fitted.decision_function(X), atol=2e-3)


def test_weighted_channels_are_additive_and_the_baseline_does_not_depend_on_their_scale():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = (rng.dirichlet(np.ones(20), 60) + 0.1 * np.eye(20)[y]).astype(np.float32)
    channels = [("a", 0, 8), ("b", 8, 20)]
    scores = []
    for factor in (1, 1024):
        Z = X * np.where(np.arange(20) < 8, np.float32(factor), 1)
        data = ImageRows(Z, y, np.arange(60), np.zeros(60, bool), channels)
        one = SquareRoots("roots", data)
        scores.append(one.held_out(np.arange(60), y, np.arange(60) // 3 % 3, 0))
        for candidate in (one, IntersectionChannels("intersection", data, factors=[1.0, 2.0])):
            fitted = candidate.make().fit(Z, y)
            expected = fitted.decision_function(Z)
            np.testing.assert_allclose(additive(fitted).scores(Z), expected, atol=1e-5)
    np.testing.assert_allclose(*scores, atol=1e-3)


def test_two_classes_of_arrays():
    rng = np.random.default_rng(1)
    images = np.array([picture(kind, rng) for kind in ("along", "across") * 6])
    y = np.array([1, 0] * 6)
    model = clone(ImageClassifier("centrist")).fit(images, y)
    assert model.decision_function(images).shape == (12,)
    assert (model.predict(images) == y).all()
    assert model.predict_proba(images).shape == (12, 2)


def test_a_class_of_one_image():
    rng = np.random.default_rng(1)
    images = [picture(kind, rng) for kind in ("along", "across") * 4] + [picture("slanted", rng)]
    model = ImageClassifier("centrist").fit(images, [*["a", "b"] * 4, "c"])
    assert model.metadata_["cv"]["n"] == 8
    assert model.predict_proba(images).shape == (9, 3)
    alone = ImageClassifier("centrist").fit(images[:2] + images[-1:], ["a", "b", "c"])
    assert alone.metadata_["cv"] is None
    assert alone.predict_proba(images) == pytest.approx(1 / 3)  # nothing is known
    with pytest.raises(ValueError, match="no training example could be held out"):
        alone.score_threshold(0.1)


def test_unreadable_images_in_use(model, folder):
    broken = folder / "train" / "along" / "broken.png"
    scores, errors = model.scores_with_errors([broken, held_out(folder)[0][0]])
    assert scores.shape == (2, 3)
    assert isinstance(errors[0], ImageError)
    with pytest.warns(UnreadableImageWarning, match="broken"):
        model.predict([broken])


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"features": "sift+nonsense"}, "nonsense"),
        ({"features": "sift+sift"}, "twice"),
        ({"network": "missing.onnx"}, "no file"),
        ({"kernel": "cubic"}, "kernel"),
        ({"prefer": "nothing"}, "prefer"),
        ({"combine": "product"}, "combine"),
        ({"random_state": -1}, "random_state"),
        ({"virtual": "melt"}, "melt"),
    ],
)
def test_wrong_parameters_are_refused(folder, given, match):
    with pytest.raises(ValueError, match=match):
        ImageClassifier(**given).fit(folder / "test")


def test_wrong_images_are_refused(folder, tmp_path):
    images = held_out(folder)[0]
    with pytest.raises(ValueError, match="labels are missing"):
        ImageClassifier().fit(images)
    with pytest.raises(ValueError, match="9 images but 2 labels"):
        ImageClassifier().fit(images, ["a", "b"])
    with pytest.raises(ValueError, match="only the class 'a'"):
        ImageClassifier().fit(images, ["a"] * 9)
    with pytest.raises(ValueError, match="its own labels"):
        ImageClassifier().fit(folder / "test", ["a"])
    (tmp_path / "x.png").write_bytes(b"")
    with pytest.raises(ValueError, match="none of the 2 images can be read"):
        ImageClassifier().fit([tmp_path / "x.png"] * 2, ["a", "b"])


def test_names_of_features(tmp_path):
    color = ImageSample([np.tile(np.array([[[255, 0, 0]]], np.uint8), (64, 64, 1))], 10)
    grays = ImageSample([np.full((64, 64, 3), 7, np.uint8)], 10)
    assert resolve("auto", color) == "sift+fisher+centrist+color+hog+lbp"
    assert "color" not in resolve("auto", grays)
    assert resolve("lbp", grays) == "lbp"
    network = tmp_path / "n.onnx"
    network.write_bytes(b"")
    check_features(f"onnx:{network}")
    assert resolve(f"onnx:{network}", grays) == f"onnx:{network}+" + resolve("auto", grays)
    assert files(f"onnx:{network}+sift") == [network]


def test_a_damaged_entry_of_the_cache_is_computed_again(folder, tmp_path):
    images = held_out(folder)[0]
    cache, features = Cache(tmp_path), Centrist().fit(images)
    first = described(features, images, cache)
    assert described(features, images, cache).n_resumed == len(images)
    (entry,) = tmp_path.glob("hilbin-*.rows")
    entry.write_bytes(entry.read_bytes()[:-7])
    again = described(features, images, cache)
    assert again.n_resumed == 0
    assert np.array_equal(again.rows, first.rows)
    assert fingerprint(1, "a") != fingerprint(1, "b")


def test_the_cache(tmp_path):
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


def test_progress_is_told(folder):
    told = []
    images, labels = held_out(folder)
    ImageClassifier("centrist").fit(
        images, labels, callback=lambda stage, done, total: told.append((stage, done, total))
    )
    stages = {stage for stage, _, _ in told}
    assert stages == {"learning features", "describing images", "choosing", "training"}
    assert all(0 <= done <= total for _, done, total in told)
