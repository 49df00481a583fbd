"""``hilbin train``: what it writes, says and tries."""

import hashlib
import json

import numpy as np
import pytest
from PIL import Image
from sklearn.pipeline import Pipeline

from hilbin import persist
from hilbin.cli import _search
from hilbin.cli._classifiers import KERNELS, classifier
from hilbin.cli._features import look, resolve, transformer
from hilbin.cli._options import TrainOptions, seconds_of
from hilbin.cli._outcome import InputError
from hilbin.cli.train import train
from hilbin.images import find_images, read_image
from hilbin.inspection import class_scores, difference_hash

LABELS = ["across", "down", "dötted plain"]


def test_the_file_says_how_it_was_made(trained, photos):
    about = persist.info(trained.output).metadata
    assert about == trained.metadata
    assert json.loads(json.dumps(about, allow_nan=False)) == about
    assert about["kind"] == "images"
    assert about["classes"] == LABELS
    assert about["features"] == "centrist+color"
    assert about["kernel"] == "intersection"
    assert about["data"]["per_class"] == dict.fromkeys(LABELS, 6)
    assert about["data"]["n"] == 18
    assert about["command"].startswith("hilbin train ")
    assert about["unreadable"] == []
    assert set(about["versions"]) >= {"hilbin", "numpy", "scikit-learn"}
    assert {"describing images", "cross-validation", "training"} <= set(about["seconds"])
    assert trained.n_bytes == trained.output.stat().st_size


def test_cross_validation_is_told(trained):
    cv = trained.metadata["cv"]
    assert cv["n"] == 18
    assert cv["accuracy"] > 0.8
    assert cv["mean_class_accuracy"] == pytest.approx(cv["accuracy"])  # classes of the same size
    assert cv["majority_accuracy"] == pytest.approx(1 / 3)
    assert 0 <= cv["linear_accuracy"] <= 1
    assert len(cv["winning_quantiles"]) == 101
    assert np.all(np.diff(cv["winning_quantiles"]) >= 0)


def test_the_training_images_are_listed_with_hashes(trained, photos):
    listed = trained.metadata["train"]
    paths = find_images(photos)
    assert listed["names"] == [p.relative_to(photos).as_posix() for p in paths]
    assert listed["labels"] == [p.parent.name for p in paths]
    image = read_image(paths[3], color=True, max_side=256)
    assert listed["hashes"][3] == difference_hash(image)


def test_the_digest_is_of_names_labels_and_contents(trained, photos):
    listing = hashlib.sha256()
    for path in find_images(photos):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        name = path.relative_to(photos).as_posix()
        listing.update(f"{name}\0{path.parent.name}\0{content}\n".encode())
    assert trained.metadata["data"]["sha256"] == listing.hexdigest()


def test_the_model_is_a_pipeline_from_images_to_labels(trained, photos):
    model = persist.load(trained.output)
    assert isinstance(model, Pipeline)
    assert list(model.named_steps) == ["features", "classifier"]
    paths = find_images(photos)
    assert model.predict(paths).tolist() == [p.parent.name for p in paths]


def test_same_seed_same_model(photos, tmp_path, content_of):
    first, second = tmp_path / "1.hilbin", tmp_path / "2.hilbin"
    for path, jobs in ((first, 1), (second, 2)):
        train(TrainOptions(photos, path, features="sift", jobs=jobs))
    (about, model), (other_about, other) = content_of(first), content_of(second)
    assert model == other
    assert {**about, "command": ""} == {**other_about, "command": ""}


@pytest.mark.parametrize("features", ["auto", "lbp", "hog+centrist"])
def test_features(photos, tmp_path, cli_json, features):
    found = cli_json("train", photos, "-o", tmp_path / "m.hilbin", "--features", features)
    expected = "sift+centrist+color" if features == "auto" else features
    assert found["features"] == expected
    assert found["cv"]["accuracy"] > 0.6
    assert [p.name for p in tmp_path.iterdir()] == ["m.hilbin"]  # no cache is left


def test_auto_leaves_out_what_does_not_suit(tmp_path):
    gray = tmp_path / "gray.png"
    Image.fromarray(np.tile(np.arange(64, dtype=np.uint8), (64, 1))).save(gray)
    tiny = tmp_path / "tiny.png"
    Image.new("RGB", (5, 5), (200, 10, 10)).save(tiny)
    assert resolve("auto", look([gray] * 50, 256)) == "sift+centrist"
    assert resolve("auto", look([tiny], 256)) == "centrist+color"
    with pytest.raises(InputError, match="too small for sift"):
        transformer("sift", look([tiny], 256), seed=0, max_side=256)


def test_parts_have_the_same_scale(photos):
    seen = look(find_images(photos), 256)
    rows = transformer("hog+centrist", seen, seed=0, max_side=256).fit_transform(seen.images)
    n_hog = rows.shape[1] - 21 * 256
    assert rows[:, :n_hog].sum(axis=1).mean() == pytest.approx(1, rel=1e-3)
    assert rows[:, n_hog:].sum(axis=1).mean() == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(kernel):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 20)
    X = rng.dirichlet(np.ones(30), 60).astype(np.float32)
    X[np.arange(60), np.repeat([0, 1, 2], 20)] += 0.5
    for strength in (0.1, 1, 10):
        model = classifier(kernel, X, of_images=True, strength=strength).fit(X, y)
        assert (model.predict(X) == y).mean() > 0.9
        assert class_scores(model, X).shape == (60, 3)
    two = classifier(kernel, X, of_images=True).fit(X[:40], y[:40])
    scores = class_scores(two, X[:40])
    assert scores.shape == (40, 2)
    assert np.array_equal(two.classes_[scores.argmax(axis=1)], two.predict(X[:40]))


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k != "intersection"])
def test_the_penalty_follows_the_scale_of_histograms(kernel):
    rng = np.random.default_rng(0)
    X, y = rng.dirichlet(np.ones(30), 60), np.repeat(["a", "b", "c"], 20)
    scores = [
        class_scores(classifier(kernel, c * X, of_images=True).fit(c * X, y), c * X)
        for c in (1.0, 1024.0)
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-3, atol=1e-3)


def test_virtual_samples_are_trained_on_but_not_tested(photos, tmp_path, cli_json, monkeypatch):
    seen = []
    original = _search.cross_validate

    def watched(make, examples, seed, advance):
        seen.append(examples)
        return original(make, examples, seed, advance)

    monkeypatch.setattr(_search, "cross_validate", watched)
    words = ("train", photos, "-o", tmp_path / "m.hilbin", "--features", "centrist")
    found = cli_json(*words, "--virtual", "shift,flip,copies=2")
    assert found["virtual"] == "shift,flip,copies=2"
    assert found["cv"]["n"] == 18
    assert found["data"]["n"] == 18
    examples = seen[0]
    assert examples.rows.shape[0] == 54
    assert np.array_equal(examples.origin, np.repeat(np.arange(18), 3))
    assert np.array_equal(examples.is_copy, np.tile([False, True, True], 18))
    rows = examples.rows.reshape(18, 3, -1)
    assert not np.array_equal(rows[:, 0], rows[:, 1])
    assert not np.array_equal(rows[:, 1], rows[:, 2])


@pytest.mark.filterwarnings("ignore:.* does not say what values its input takes")
def test_onnx_features(photos, tmp_path, cli_json):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    pool = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[7, 7], strides=[7, 7])
    graph = helper.make_graph(
        [pool, helper.make_node("Flatten", ["y"], ["z"])],
        "small",
        [helper.make_tensor_value_info("x", kind, [1, 3, 224, 224])],
        [helper.make_tensor_value_info("z", kind, [1, 3072])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    network = tmp_path / "small.onnx"
    onnx.save(model, network)
    words = ("train", photos, "-o", tmp_path / "m.hilbin", "--features", f"centrist+onnx:{network}")
    assert cli_json(*words)["features"].endswith("small.onnx")
    network.unlink()  # the model has it inside
    assert len(cli_json("predict", tmp_path / "m.hilbin", photos)["predictions"]) == 18


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("5m", 300), ("1h", 3600), (" 0.5m ", 30)]
)
def test_budgets(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "0s", "5 days", "nan"])
def test_budgets_that_are_none(text):
    with pytest.raises(InputError, match="90s, 5m or 1h"):
        seconds_of(text)


def test_a_budget_is_for_further_configurations(photos, tmp_path, cli_json):
    words = ("train", photos, "-o", tmp_path / "m.hilbin", "--budget")
    tried = cli_json(*words, "30m", "--features", "centrist", "--kernel", "hellinger")["tried"]
    assert [t["configuration"] for t in tried] == [
        "centrist, hellinger",
        "centrist, hellinger, C x 10",
        "centrist, hellinger, C x 0.1",
    ]
    assert all(t["accuracy"] is not None for t in tried)


def test_a_budget_that_is_too_small(photos, tmp_path, cli, cli_json):
    words = ("train", photos, "-o", tmp_path / "m.hilbin", "--force", "--budget", "0.01s")
    tried = cli_json(*words)["tried"]
    assert [t["accuracy"] is None for t in tried] == [False] + [True] * 6
    lines = cli(*words).stdout.splitlines()
    assert lines[2].startswith("tried: sift+centrist+color, intersection: ")
    assert lines[3].endswith("C x 10: not, for lack of time")


def test_the_best_of_the_budget_is_kept(photos, tmp_path, monkeypatch):
    original = _search.attempt
    accuracies = {"centrist, chi2": 0.9}

    def fixed(trial, *rest):
        tried = original(trial, *rest)
        wanted = accuracies.get(str(trial), 0.5)
        wrong = round(18 * (1 - wanted))
        scores = np.eye(3)[(tried.held_out.truth + (np.arange(18) < wrong)) % 3]
        held_out = type(tried.held_out)(
            tried.held_out.tested, scores, tried.held_out.truth, tried.held_out.classes
        )
        return type(tried)(trial, held_out, tried.seconds)

    monkeypatch.setattr(_search, "attempt", fixed)
    options = TrainOptions(photos, tmp_path / "m.hilbin", features="centrist", budget="1h", jobs=1)
    found = train(options)
    assert found.metadata["kernel"] == "chi2"
    assert found.metadata["strength"] == 1
    assert len(found.metadata["tried"]) == 5


def test_a_wrong_label_is_suspected(own_photos, tmp_path, cli_json):
    (own_photos / "down" / "pic 0.png").rename(own_photos / "across" / "wrong.png")
    words = ("train", own_photos, "-o", tmp_path / "m.hilbin", "--features", "centrist")
    suspicious = cli_json(*words, "--max-side", 32)["suspicious"]
    assert suspicious[0]["name"] == "across/wrong.png"
    assert suspicious[0]["label"] == "across"
    assert suspicious[0]["suggested"] == "down"
    assert suspicious[0]["margin"] >= 1


def test_classes_of_one_image(tmp_path, photos, cli_json):
    few = tmp_path / "few"
    for label, count in (("across", 3), ("down", 1)):
        (few / label).mkdir(parents=True)
        for i in range(count):
            source = photos / label / f"pic {i}.png"
            (few / label / source.name).write_bytes(source.read_bytes())
    words = ("train", few, "-o", tmp_path / "m.hilbin", "--features", "centrist")
    found = cli_json(*words)
    assert found["cv"]["n"] == 3
    assert found["classes"] == ["across", "down"]
    for i in (1, 2):
        (few / "across" / f"pic {i}.png").unlink()
    assert cli_json(*words, "--force")["cv"] is None


def test_result_for_people(photos, tmp_path, cli):
    output = tmp_path / "m.hilbin"
    result = cli("train", photos, "-o", output, "--features", "centrist")
    assert "3 classes, 18 images, centrist, intersection" in result.stdout
    assert "by cross-validation" in result.stdout
    assert "describing images: 18" in result.stderr
    quiet = cli("train", photos, "-o", output, "--features", "centrist", "--quiet", "--force")
    assert quiet.stderr == ""
    assert quiet.stdout == result.stdout
