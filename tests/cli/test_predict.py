"""``hilbin predict``: labels, scores, copies, rejection."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hilbin import ImageClassifier, persist
from hilbin.cli._models import load_model
from hilbin.cli._sorting import copy_into, folder_names
from hilbin.cli.info import info
from hilbin.cli.predict import predict
from hilbin.images import find_images


def test_labels_and_scores(trained, photos):
    found = predict(trained.output, [photos], top=3, jobs=1)
    paths = find_images(photos)
    assert [p.path for p in found.predictions] == [str(p) for p in paths]
    model = persist.load(trained.output)
    scores = model.decision_function(paths)
    for one, row, path in zip(found.predictions, scores, paths, strict=True):
        assert one.label == path.parent.name
        assert one.score == row.max()
        assert [label for label, _ in one.top] == model.classes_[np.argsort(-row)].tolist()
        assert [s for _, s in one.top] == sorted(row, reverse=True)


def test_all_forms_agree(trained, photos, tmp_path, cli, cli_json):
    words = (
        "predict",
        trained.output,
        photos / "down",
        photos / "across" / "pic 1.png",
        "--top",
        2,
    )
    found = cli_json(*words)["predictions"]
    assert [p["label"] for p in found] == ["down"] * 6 + ["across"]
    rows = [line.split("\t") for line in cli(*words).stdout.splitlines()]
    assert [r[0] for r in rows] == [p["path"] for p in found]
    assert [r[1] for r in rows] == [p["label"] for p in found]
    assert [r[2] for r in rows] == [f"{p['probabilities'][0]:.1%}" for p in found]
    assert [r[3] for r in rows] == [p["top"][1][0] for p in found]
    cli(*words, "--csv", tmp_path / "out.csv")
    written = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text("utf-8"))))
    assert [float(r["score"]) for r in written] == [p["score"] for p in found]
    assert [r["label_2"] for r in written] == [p["top"][1][0] for p in found]


@pytest.fixture
def noise(tmp_path):
    """An image of no class."""
    path = tmp_path / "noise.png"
    values = np.random.default_rng(0).integers(0, 256, (40, 44, 3), np.uint8)
    Image.fromarray(values).save(path)
    return path


def test_reject(trained, photos, noise, cli_json):
    words = ("predict", trained.output, photos, noise, "--reject")
    found = cli_json(*words, 0.05)["predictions"]
    assert found[-1]["rejected"]
    assert found[-1]["label"] == "unknown"
    assert not any(p["rejected"] for p in found[:-1])
    assert not any(p["rejected"] for p in cli_json(*words, 0)["predictions"][:-1])
    everything = cli_json(*words, 1)["predictions"]
    threshold = max(trained.metadata["cv"]["winning_quantiles"])
    assert [p["rejected"] for p in everything] == [p["score"] < threshold for p in everything]


@pytest.mark.parametrize("share", [0, 0.005, 0.02, 0.5, 1])
def test_threshold_is_a_quantile(trained, share):
    quantiles = trained.metadata["cv"]["winning_quantiles"]
    position = 100 * share
    low = int(position)
    high = min(low + 1, 100)
    expected = quantiles[low] + (position - low) * (quantiles[high] - quantiles[low])
    assert load_model(trained.output).score_threshold(share) == pytest.approx(expected)


def test_bad_shares(trained, photos, cli):
    for share in ("-0.1", "1.5", "nan"):
        result = cli("predict", trained.output, photos, "--reject", share, code=2)
        assert "--reject must be from 0 to 1" in result.stderr


def test_sort_into(trained, photos, tmp_path, cli, cli_json):
    sorted_ = tmp_path / "sorted"
    words = ("predict", trained.output, photos, "--sort-into", sorted_)
    found = cli_json(*words)["predictions"]
    for label in ("across", "down", "dötted plain"):
        copies = sorted((sorted_ / label).iterdir())
        assert [c.read_bytes() for c in copies] == [
            p.read_bytes() for p in find_images(photos / label)
        ]
    assert len(find_images(photos)) == 18  # copied, not moved
    assert cli_json(*words)["predictions"] == found  # nothing is copied twice
    assert len(find_images(sorted_)) == 18


def test_sort_unknown_images(trained, noise, tmp_path, cli):
    cli("predict", trained.output, noise, "--reject", 0.5, "--sort-into", tmp_path / "all")
    assert [p.name for p in (tmp_path / "all").iterdir()] == ["unknown"]
    assert (tmp_path / "all" / "unknown" / noise.name).read_bytes() == noise.read_bytes()


def test_unreadable_files(trained, photos, own_photos, tmp_path, cli, cli_json, bad_images):
    reasons = bad_images(own_photos / "down")
    words = ("predict", trained.output, own_photos, tmp_path / "none.jpg")
    found = cli_json(*words, code=1)
    assert len(found["predictions"]) == 18
    listed = {u["path"].rpartition("/")[2]: u["reason"] for u in found["unreadable"]}
    for name, reason in (reasons | {"none.jpg": "no such file"}).items():
        assert reason in listed[name]
    result = cli("predict", trained.output, tmp_path / "none.jpg", code=2)
    assert "none.jpg: there is no such file" in result.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "there is no image" in cli("predict", trained.output, empty, code=2).stderr


def test_names_clash(tmp_path):
    sources = []
    for i in range(3):
        (tmp_path / str(i)).mkdir()
        sources.append(tmp_path / str(i) / "same.png")
        sources[-1].write_bytes(b"abc"[: i + 1])
    target = tmp_path / "to"
    names = [copy_into(target, s).name for s in sources]
    assert names == ["same.png", "same-2.png", "same-3.png"]
    assert [copy_into(target, s).name for s in sources] == names
    assert [(target / n).read_bytes() for n in names] == [b"a", b"ab", b"abc"]


def test_copies_are_not_written_through_links(tmp_path):
    precious = tmp_path / "precious"
    precious.write_bytes(b"mine")
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "a.png").symlink_to(precious)
    (tmp_path / "to" / "a-2.png").symlink_to(tmp_path / "nowhere")
    (tmp_path / "a.png").write_bytes(b"new")
    assert copy_into(tmp_path / "to", tmp_path / "a.png").name == "a-3.png"
    assert precious.read_bytes() == b"mine"


def test_very_long_names(tmp_path):
    for i, content in enumerate((b"a", b"b")):
        (tmp_path / str(i)).mkdir()
        source = tmp_path / str(i) / ("é" * 120 + ".png")
        source.write_bytes(content)
        assert copy_into(tmp_path / "to", source).read_bytes() == content
    assert len(list((tmp_path / "to").iterdir())) == 2


@given(st.lists(st.text(), unique=True, max_size=20))
def test_folders_of_labels_stay_where_they_belong(labels):
    names = folder_names(labels)
    assert list(names) == labels
    assert len({name.casefold() for name in names.values()}) == len(labels)
    for name in names.values():
        assert not name.startswith(".")
        assert not set(name) & set("/\\\0")
        assert 0 < len(name.encode(errors="surrogateescape")) < 256


def test_labels_cannot_lead_elsewhere(trained, photos, tmp_path, cli):
    table = tmp_path / "list.csv"
    lines = [f"{photos}/across/pic {i}.png,../../out" for i in range(3)]
    lines += [f"{photos}/down/pic {i}.png,/tmp/out" for i in range(3)]
    table.write_text("\n".join(["path,label", *lines]), encoding="utf-8")
    model = tmp_path / "m.hilbin"
    cli("train", table, "-o", model, "--features", "centrist")
    cli("predict", model, photos / "across", photos / "down", "--sort-into", tmp_path / "in")
    assert sorted(p.name for p in (tmp_path / "in").iterdir()) == ["_._.._out", "_tmp_out"]
    assert {p.name for p in tmp_path.iterdir()} == {"list.csv", "m.hilbin", "in"}


def test_info(trained, cli, cli_json):
    assert info(trained.output).metadata == trained.metadata
    found = cli_json("info", trained.output)
    assert found["metadata"] == trained.metadata
    assert found["n_bytes"] == trained.n_bytes
    lines = cli("info", trained.output).stdout
    assert "across (6), down (6), dötted plain (6)" in lines
    assert "features: centrist+color; model: intersection" in lines
    assert trained.metadata["data"]["sha256"] in lines
    assert trained.metadata["command"] in lines


def test_info_reads_the_header_alone(trained, tmp_path, cli):
    content = trained.output.read_bytes()
    spoiled = tmp_path / "spoiled.hilbin"
    spoiled.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))  # in the arrays
    assert "3 classes" in cli("info", spoiled).stdout
    assert "spoiled.hilbin" in cli("predict", spoiled, tmp_path, code=2).stderr


def test_models_of_image_classifier(photos, tmp_path, cli, cli_json):
    """What Python saved is a model of the command line too."""
    model, page = tmp_path / "m.hilbin", tmp_path / "page.html"
    trained = ImageClassifier("centrist").fit(photos)
    trained.save(model)
    found = cli_json("predict", model, photos)["predictions"]
    paths = find_images(photos)
    assert [p["label"] for p in found] == trained.predict(paths).tolist()
    expected = trained.predict_proba(paths).max(axis=1)
    assert np.allclose([p["probabilities"][0] for p in found], expected)
    assert cli("predict", model, paths[0]).stdout == (
        f"{paths[0]}\t{found[0]['label']}\t{expected[0]:.1%}\n"
    )
    assert "3 classes of images" in cli("info", model).stdout
    assert cli_json("eval", model, photos, "--report", page)["accuracy"] > 0.8
    assert page.exists()
    why = cli_json("explain", model, paths[0], "-o", tmp_path / "why.png")
    assert why["predicted"] == found[0]["label"]
