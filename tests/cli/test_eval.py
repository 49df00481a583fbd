"""``hilbin eval``: figures, mistakes, classes that are missing, evidence for the page."""

import csv
import re
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image
from scipy.stats import norm

from hilbin import ImageClassifier, persist
from hilbin.auto import row_candidates
from hilbin.cli.eval import evaluate
from hilbin.inspection import additive, class_scores, shape_functions

ADDITIVE = ["intersection", "chi2", "js", "hellinger", "linear"]
NOT_ADDITIVE = "exp-chi2"


def classifier(kernel, X, y):
    """A classifier of a kernel, trained on rows."""
    return row_candidates(X, y, kernel=kernel)[0].make().fit(X, y)


@pytest.fixture
def held_out(own_photos):
    """Photos of which two lie in the folder of another class."""
    for i in (1, 2):
        shutil.move(own_photos / "across" / f"pic {i}.png", own_photos / "down" / f"astray {i}.png")
    return own_photos


def test_figures(trained, held_out, cli, cli_json):
    found = cli_json("eval", trained.output, held_out)
    assert (found["n"], found["right"]) == (18, 16)
    assert found["accuracy"] == 16 / 18
    low, high = found["interval"]
    assert low < 16 / 18 < high
    for end in (low, high):  # where the score test of 16 among 18 is just at the 95 % of a normal
        statistic = abs(16 / 18 - end) / np.sqrt(end * (1 - end) / 18)
        assert statistic == pytest.approx(norm.ppf(0.975), rel=1e-9)
    assert found["mean_class_accuracy"] == pytest.approx((1 + 6 / 8 + 1) / 3)
    assert found["majority_accuracy"] == 8 / 18
    assert found["majority_class"] == "down"
    assert found["per_class"]["down"] == {"n": 8, "right": 6}
    assert found["cv"]["linear_accuracy"] == trained.metadata["cv"]["linear_accuracy"]
    lines = cli("eval", trained.output, held_out).stdout
    for text in ("accuracy 88.9%", "67.2% to 96.9%", "16 of 18", "always down 44.4%", "linear "):
        assert text in lines


def test_mistakes(trained, held_out, tmp_path, cli_json):
    listed = tmp_path / "mistakes.csv"
    found = cli_json("eval", trained.output, held_out, "--csv", listed)["mistakes"]
    model = persist.load(trained.output)
    assert {m["path"] for m in found} == {
        str(held_out / "down" / f"astray {i}.png") for i in (1, 2)
    }
    for one in found:
        scores = dict(zip(model.classes_, model.decision_function([one["path"]])[0], strict=True))
        assert (one["true"], one["predicted"]) == ("down", "across")
        assert one["true_score"] == pytest.approx(scores["down"], abs=1e-6)
        assert one["predicted_score"] == pytest.approx(scores["across"], abs=1e-6)
        assert one["margin"] == pytest.approx(scores["across"] - scores["down"], abs=1e-6)
    assert found[0]["margin"] >= found[1]["margin"] > 0
    with open(listed, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    numbers = ("margin", "true_score", "predicted_score")
    # images have no IDs: the file has no column of them
    assert [{**r, **{k: float(r[k]) for k in numbers}, "id": None} for r in rows] == found
    assert "id" not in rows[0]


def test_classes_live_in_the_model(trained, held_out, cli, cli_json):
    shutil.rmtree(held_out / "across")
    (held_out / "zebra").mkdir()
    for i in range(3):
        shutil.copy(held_out / "down" / "pic 0.png", held_out / "zebra" / f"{i}.png")
    found = cli_json("eval", trained.output, held_out)
    assert found["unknown"] == {"zebra": 3}
    assert (found["n"], found["right"]) == (14, 12)
    assert found["per_class"]["across"] == {"n": 0, "right": 0}
    assert {m["predicted"] for m in found["mistakes"]} == {"across"}
    said = cli("eval", trained.output, held_out).stderr
    assert "left out, because the model does not know these classes: zebra (3)" in said
    assert "no examples of these classes: across" in said


def test_one_class_is_enough(trained, own_photos, cli, cli_json):
    shutil.rmtree(own_photos / "across")
    shutil.rmtree(own_photos / "down")
    found = cli_json("eval", trained.output, own_photos)
    assert (found["n"], found["right"], found["mean_class_accuracy"]) == (6, 6, 1)
    (own_photos / "dötted plain").rename(own_photos / "zebra")
    said = cli("eval", trained.output, own_photos, code=2).stderr
    assert "no example of a class that the model knows" in said
    assert "zebra" in said


def test_unreadable_files(trained, own_photos, tmp_path, cli, cli_json, bad_images):
    reasons = bad_images(own_photos / "down")
    found = cli_json("eval", trained.output, own_photos, code=1)
    assert found["n"] == 18
    listed = {u["path"].rpartition("/")[2]: u["reason"] for u in found["unreadable"]}
    assert all(reason in listed[name] for name, reason in reasons.items())
    (tmp_path / "bad" / "down").mkdir(parents=True)
    (tmp_path / "bad" / "down" / "a.png").write_text("no image")
    said = cli("eval", trained.output, tmp_path / "bad", code=2).stderr
    assert "none of the 1 images can be read" in said


def test_a_list_of_images(trained, photos, tmp_path, cli_json):
    lines = [f"{photos}/{c}/pic {i}.png,{c}" for c in ("down", "dötted plain") for i in range(4)]
    table = tmp_path / "list.csv"
    table.write_text("\n".join(["path,label", *lines]), encoding="utf-8")
    found = cli_json("eval", trained.output, table)
    assert (found["n"], found["right"]) == (8, 8)


def test_bad_sources(trained, photos, tmp_path, cli):
    (tmp_path / "empty").mkdir()
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    for source, message in (
        ("nowhere", "there is no such file or folder"),
        ("empty", "no image in any folder"),
        ("table.csv", "this model is of images"),
    ):
        assert message in cli("eval", trained.output, tmp_path / source, code=2).stderr
    report = tmp_path / "no" / "r.html"
    said = cli("eval", trained.output, photos, "--report", report, code=2).stderr
    assert "there is no such folder to write to" in said


def test_the_report(trained, held_out, tmp_path, cli):
    page = tmp_path / "report.html"
    cli("eval", trained.output, held_out, "--report", page)
    text = page.read_text(encoding="utf-8")
    assert page.stat().st_size < 5_000_000
    assert "Exact: the heat map of a class sums to its score" in text
    assert "square roots + LinearSVC" in text
    assert "Compared models" in text
    assert "hilbin train" in text
    assert trained.metadata["data"]["sha256"] in text
    assert text.count("Heat map for ") >= 4
    assert re.search(r"(centrist|color) word \d+, whole image", text)
    assert "nearly a training example makes the accuracy look better" in text  # they are copies
    assert "http:" not in text.replace("http://www.w3.org", "")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "data.csv"
    lines = ["good,kind,noise"]
    for label in ("low", "high"):
        values = rng.uniform(size=30).round(3) + (label == "high")
        lines += [f"{v},{label},{n:.3f}" for v, n in zip(values, rng.normal(size=30), strict=True)]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("kernel", ["intersection", "chi2", "exp-chi2"])
def test_tables(table, tmp_path, cli, cli_json, kernel):
    model, page = tmp_path / "m.hilbin", tmp_path / "r.html"
    cli("train", table, "-o", model, "--target", "kind", "--kernel", kernel)
    found = cli_json("eval", model, table, "--report", page)
    predicted = cli_json("predict", model, table)["predictions"]
    truth = [line.split(",")[1] for line in table.read_text().splitlines()[1:]]
    assert found["n"] == 60
    assert found["right"] == sum(p["label"] == t for p, t in zip(predicted, truth, strict=True))
    assert found["right"] > 55
    assert all(re.fullmatch(r"data\.csv:\d+", m["path"]) for m in found["mistakes"])
    text = page.read_text(encoding="utf-8")
    assert ("What good adds to the scores" in text) == (kernel != "exp-chi2")
    assert "no column 'kind'" in _without_labels(model, table, cli)


def _without_labels(model, table, cli):
    table.write_text("good,noise\n1,2\n")
    return cli("eval", model, table, code=2).stderr


# contributions


def rows_and_labels(n_classes, negative=False, sparse=False):
    rng = np.random.default_rng(n_classes)
    X = rng.gamma(0.5, size=(40, 7)) * (rng.uniform(size=(40, 7)) < 0.8)
    X = X - 0.5 if negative else X
    y = np.array([f"c{k}" for k in np.arange(40) % n_classes])
    return (sp.csr_array(X) if sparse else X), y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", ADDITIVE)
@pytest.mark.parametrize("kind", ["float32", "negative", "sparse"])
def test_contributions_sum_to_the_scores(kernel, n_classes, kind):
    X, y = rows_and_labels(n_classes, negative=kind == "negative", sparse=kind == "sparse")
    X = X.astype(np.float32) if kind == "float32" else X
    model = classifier(kernel, X, y)
    parts = additive(model)
    expected = class_scores(model, X)
    assert parts.scores(X) == pytest.approx(expected, abs=1e-5)
    for i in range(5):
        given = parts.contributions(X[i : i + 1])[0]
        assert given.shape == (7, n_classes)
        assert given.sum(axis=0) + parts.intercept == pytest.approx(expected[i], abs=1e-6)
        assert given.sum(axis=0) + parts.intercept == pytest.approx(parts.scores(X)[i], abs=1e-12)


@pytest.mark.parametrize("kernel", ADDITIVE)
def test_a_contribution_depends_on_its_feature_alone(kernel):
    X, y = rows_and_labels(3)
    parts = additive(classifier(kernel, X, y))
    before = parts.contributions(X[:1])[0]
    other = X[:1].copy()
    other[0, 2] += 0.3
    changed = np.any(parts.contributions(other)[0] != before, axis=1)
    assert changed.tolist() == [j == 2 for j in range(7)]


def test_exponentials_are_not_additive():
    X, y = rows_and_labels(3)
    assert additive(classifier(NOT_ADDITIVE, X, y)) is None


@pytest.mark.parametrize("n_classes", [2, 3])
def test_shapes_are_the_contributions(n_classes):
    X, y = rows_and_labels(n_classes)
    parts = additive(classifier("chi2", X, y))
    (shape,) = shape_functions(parts, [3], ["third"], X.min(axis=0), X.max(axis=0))
    for i in range(5):
        expected = parts.contributions(X[i : i + 1])[0, 3]
        assert shape(X[i, 3]) == pytest.approx(
            expected[1] if n_classes == 2 else expected, abs=0.02
        )


# evidence


@pytest.fixture(scope="module")
def model_of(photos):
    """A model with a kernel, trained on the photos."""
    known = {}

    def make(kernel):
        if kernel not in known:
            known[kernel] = ImageClassifier("sift+color", kernel=kernel).fit(photos)
        return known[kernel]

    return make


@pytest.fixture
def evidence_of(model_of, held_out):
    return lambda kernel: model_of(kernel).evidence(held_out)


@pytest.mark.parametrize("kernel", ADDITIVE)
def test_heat_maps_sum_to_the_scores(evidence_of, kernel):
    shown = evidence_of(kernel)
    assert shown.exact
    for i in (0, 7, 17):
        for k in range(3):
            heat = shown.heat(i, k)
            assert heat.shape == shown.picture(i).shape[:2]
            assert heat.sum() + shown.intercept[k] == pytest.approx(shown.scores[i, k], abs=1e-6)


def test_heat_maps_that_are_not_exact(evidence_of):
    shown = evidence_of(NOT_ADDITIVE)
    assert not shown.exact
    assert shown.intercept is None
    assert "is covered" in shown.exact_note
    assert shown.heat(0, 1).shape == (8, 8)
    assert len(shown.words) == 0


def test_words_of_the_page(evidence_of, model_of):
    shown = evidence_of("intersection")
    assert 3 <= len(shown.words) <= 12
    model = model_of("intersection")
    parts = additive(model.model_[1])
    groups = model.model_[0].column_groups_
    names = [word.shape.name for word in shown.words]
    assert len(set(names)) == len(names)
    for word in shown.words:
        part, number = re.fullmatch(
            r"(sift|color) word (\d+), whole image", word.shape.name
        ).groups()
        column = int(number) + groups[part].start
        row = np.zeros((1, groups["color"].stop), np.float32)
        levels = dict(model.model_[0].parts)[part].levels
        row[0, column] = word.shape.values[-1] / 2 ** (levels - 1)  # the weight of the level
        expected = parts.contributions(row)[0, column]
        assert word.shape.contributions[-1] == pytest.approx(expected, abs=1e-7)
        assert word.shape.contributions[-1, word.label] > word.shape.contributions[0, word.label]
        assert 1 <= len(word.patches) <= 16
        assert all(p.shape[0] == p.shape[1] >= 8 and p.shape[2] == 3 for p in word.patches)


def test_duplicates_of_the_page(evidence_of):
    found = evidence_of("linear").duplicates
    assert len(found) == 18  # the held-out photos are the training photos
    for pair in found:
        assert pair.similarity == 1
        assert pair.train.endswith(pair.test.rpartition("/")[2].replace("astray", "pic"))
        assert (pair.train_picture == pair.test_picture).all()
    assert sum(pair.train_label != pair.test_label for pair in found) == 2


def test_suspicions_of_the_page(photos, held_out, tmp_path):
    model = ImageClassifier("color").fit(photos)
    odd = {"name": "down/pic 1.png", "label": "down", "suggested": "across", "margin": 1.5}
    model.metadata_["suspicious"] = [odd, {**odd, "name": "down/gone.png"}]
    first, second = model.evidence(held_out).suspicious
    assert (first.name, first.given, first.suggested, first.margin) == tuple(odd.values())
    assert (first.picture == np.asarray(Image.open(photos / "down" / "pic 1.png"))).all()
    assert second.picture is None


def test_baselines_of_the_page(trained, held_out, tmp_path):
    page = tmp_path / "r.html"
    evaluate(trained.output, held_out, report=page, baselines={"other": 0.5}, jobs=1)
    text = page.read_text(encoding="utf-8")
    assert ">other<" in text
    assert "cross-validated" not in text
