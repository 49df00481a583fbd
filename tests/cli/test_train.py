"""``hilbin train``: what it writes, says and tries."""

import hashlib
import json

import numpy as np
import pytest
from PIL import Image

from hilbin import ImageClassifier, TableClassifier, persist
from hilbin.auto import image_classifier
from hilbin.auto.image_data import resolve, transformer
from hilbin.cli._outcome import InputError
from hilbin.cli.train import TrainOptions, seconds_of, train
from hilbin.images import find_images, read_image
from hilbin.images.descriptors import ImageSample
from hilbin.inspection import difference_hash

LABELS = ["across", "down", "dötted plain"]


def test_the_file_says_how_it_was_made(trained, photos):
    about = persist.info(trained.output).metadata
    assert about == trained.metadata
    assert json.loads(json.dumps(about, allow_nan=False)) == about
    assert about["kind"] == "images"
    assert about["classes"] == LABELS
    assert about["features"] == "centrist+color"
    assert about["model"].startswith("intersection")
    assert about["data"]["per_class"] == dict.fromkeys(LABELS, 6)
    assert about["data"]["n"] == 18
    assert about["command"].startswith("hilbin train ")
    assert about["unreadable"] == []
    assert set(about["versions"]) >= {"hilbin", "numpy", "scikit-learn"}
    assert {"describing images", "choosing", "training"} <= set(about["seconds"])
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


def test_the_model_is_a_classifier_of_images(trained, photos):
    model = persist.load(trained.output)
    assert isinstance(model, ImageClassifier)
    paths = find_images(photos)
    assert model.predict(paths).tolist() == [p.parent.name for p in paths]
    assert model.predict_proba(paths).shape == (18, 3)


def test_same_seed_same_model(photos, tmp_path, content_of):
    first, second = tmp_path / "1.hilbin", tmp_path / "2.hilbin"
    for path, jobs in ((first, 1), (second, 2)):
        train(TrainOptions(photos, path, features="sift", jobs=jobs))
    assert content_of(first) == content_of(second)


def test_compact_files(trained, photos, tmp_path, cli):
    """The same model but for rounding, in a smaller file that says so."""
    path = tmp_path / "small.hilbin"
    cli(
        "train",
        photos,
        "-o",
        path,
        "--features",
        "centrist+color",
        "--kernel",
        "intersection",
        "--compact",
    )
    assert path.stat().st_size < trained.n_bytes / 2
    about = persist.info(path)
    assert about.metadata["command"].endswith(" --compact")
    assert len(about.rounded) == 1
    ((place, change),) = about.rounded.items()
    said = f"compact file; rounded: {place} by at most {change:.1e}"
    assert said in cli("info", path).stdout.splitlines()
    assert "compact" not in cli("info", trained.output).stdout
    images = find_images(photos)
    exact, found = (persist.load(f).decision_function(images) for f in (trained.output, path))
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-3 * exact.std())
    assert (found != exact).any()


@pytest.mark.parametrize("options", [{}, {"kernel": "chi2", "virtual": "flip", "max_side": 32}])
def test_python_gives_the_same_model_of_images(photos, tmp_path, cli, content_of, options):
    words = [w for k, v in options.items() for w in (f"--{k.replace('_', '-')}", v)]
    one, other = tmp_path / "command.hilbin", tmp_path / "python.hilbin"
    cli("train", photos, "-o", one, "--features", "sift+color", *words)
    ImageClassifier("sift+color", **options).fit(str(photos)).save(other)
    assert content_of(one) == content_of(other)


def test_python_gives_the_same_model_of_tables(tmp_path, cli, content_of):
    rng = np.random.default_rng(0)
    table = tmp_path / "data.csv"
    lines = [f"{a:.3f},{b:.3f},{'ab'[int(a + b > 1)]}" for a, b in rng.random((90, 2))]
    table.write_text("\n".join(["first,second,kind", *lines]))
    one, other = tmp_path / "command.hilbin", tmp_path / "python.hilbin"
    cli("train", table, "-o", one, "--target", "kind", "--class-weight", "balanced", "--seed", 3)
    model = TableClassifier(class_weight="balanced", random_state=3)
    model.fit(str(table), target="kind").save(other)
    assert content_of(one) == content_of(other)


@pytest.mark.parametrize("features", ["auto", "lbp", "hog+centrist"])
def test_features(photos, tmp_path, cli_json, features):
    found = cli_json("train", photos, "-o", tmp_path / "m.hilbin", "--features", features)
    expected = "sift+fisher+centrist+color+hog+lbp" if features == "auto" else features
    assert found["features"] == expected
    assert found["cv"]["accuracy"] > 0.6
    assert [p.name for p in tmp_path.iterdir()] == ["m.hilbin"]  # no cache is left


def test_auto_leaves_out_what_does_not_suit(tmp_path):
    gray = tmp_path / "gray.png"
    Image.fromarray(np.tile(np.arange(64, dtype=np.uint8), (64, 1))).save(gray)
    tiny = tmp_path / "tiny.png"
    Image.new("RGB", (5, 5), (200, 10, 10)).save(tiny)
    assert "color" not in resolve("auto", ImageSample.read([gray] * 50, 256))
    small = ImageSample.read([tiny], 256)
    assert resolve("auto", small).startswith("centrist+color")
    with pytest.raises(ValueError, match="too small for sift"):
        transformer("sift", small, seed=0, max_side=256)


@pytest.mark.parametrize("kernel", [k for k in image_classifier.KERNELS if k != "auto"])
def test_kernels(photos, tmp_path, cli_json, kernel):
    words = ("train", photos, "-o", tmp_path / "m.hilbin", "--features", "centrist")
    found = cli_json(*words, "--kernel", kernel)
    assert found["cv"]["accuracy"] > 0.6
    assert kernel in found["model"]
    assert "square roots + LinearSVC" in found["baselines"]


def test_virtual_samples_are_trained_on_but_not_tested(photos, tmp_path, cli_json, monkeypatch):
    seen = []
    original = image_classifier.image_candidates

    def watched(rows, kernel):
        seen.append(rows)
        return original(rows, kernel)

    monkeypatch.setattr(image_classifier, "image_candidates", watched)
    words = ("train", photos, "-o", tmp_path / "m.hilbin", "--features", "centrist")
    found = cli_json(*words, "--virtual", "shift,flip,copies=2")
    assert found["virtual"] == "shift,flip,copies=2"
    assert found["cv"]["n"] == 18
    assert found["data"]["n"] == 18
    data = seen[0]
    assert data.rows.shape[0] == 54
    assert np.array_equal(data.origin, np.repeat(np.arange(18), 3))
    assert np.array_equal(data.is_copy, np.tile([False, True, True], 18))
    rows = data.rows.reshape(18, 3, -1)
    assert not np.array_equal(rows[:, 0], rows[:, 1])
    assert not np.array_equal(rows[:, 1], rows[:, 2])


@pytest.mark.filterwarnings("ignore:.* does not say which values its input takes")
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


def test_a_budget_that_is_too_small(photos, tmp_path, cli, cli_json):
    words = ("train", photos, "-o", tmp_path / "m.hilbin", "--features", "centrist", "--force")
    unlimited = cli_json(*words)
    assert unlimited["skipped"] == []
    found = cli_json(*words, "--budget", "0.0001s")
    assert len(found["choice"]) == 1
    assert len(found["skipped"]) == len(unlimited["choice"]) - 1
    lines = cli(*words, "--budget", "0.0001s").stdout
    assert f"not compared, for lack of time: {found['skipped'][0]}" in lines


def test_a_wrong_label_is_suspected(own_photos, tmp_path, cli, cli_json):
    (own_photos / "down" / "pic 0.png").rename(own_photos / "across" / "wrong.png")
    words = ("train", own_photos, "-o", tmp_path / "m.hilbin", "--features", "centrist")
    suspicious = cli_json(*words, "--max-side", 32)["suspicious"]
    assert suspicious[0]["name"] == "across/wrong.png"
    assert suspicious[0]["label"] == "across"
    assert suspicious[0]["suggested"] == "down"
    assert suspicious[0]["margin"] >= 1
    lines = cli(*words, "--max-side", 32, "--force").stdout
    assert "looks wrong; hilbin info lists it" in lines


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
    assert "3 classes, 18 images, centrist" in result.stdout
    assert "by cross-validation" in result.stdout
    assert "describing images: " in result.stderr
    quiet = cli("train", photos, "-o", output, "--features", "centrist", "--quiet", "--force")
    assert quiet.stderr == ""
    assert quiet.stdout == result.stdout
