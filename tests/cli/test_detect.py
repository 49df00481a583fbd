"""``hilbin detect``: from a file of boxes to a detector, boxes and a page."""

import csv
import json

import numpy as np
import pytest
from cli_results import only_line
from PIL import Image
from scenes import write_scenes

from hilbin.detect import iou, read_boxes, write_boxes

SMALL = ("--area", "1600", "--jobs", "1", "--quiet")


@pytest.fixture(scope="session")
def drawn(tmp_path_factory):
    """Files of boxes of drawn faces, to learn from and to test on; not to be changed."""
    folder = tmp_path_factory.mktemp("detect")
    write_boxes(write_scenes(folder / "train", 8, squares=True), folder / "train.xml")
    write_boxes(write_scenes(folder / "test", 3, first=100, squares=True), folder / "test.json")
    return folder


@pytest.fixture(scope="session")
def model(drawn):
    """A detector of these faces."""
    from hilbin.cli.detect.train import DetectOptions, train_detector

    options = {"label": "face", "area": 1600.0, "jobs": 1}
    output = drawn / "faces.hilbin"
    return train_detector(DetectOptions(drawn / "train.xml", output, **options)).output


def test_train_run_eval(drawn, tmp_path, cli, cli_json):
    output = tmp_path / "m.hilbin"
    words = ("detect", "train", drawn / "train.xml", "-o", output, "--label", "face", *SMALL)
    said = cli(*words).stdout
    assert "a detector of face, 7 by 7 cells, learned from 16 boxes in 8 images" in said
    about = cli_json("info", output)["metadata"]
    assert about["label"] == "face"
    assert about["command"].endswith("--label face --area 1600.0")
    told = cli_json("detect", "eval", output, drawn / "test.json", "--quiet")
    assert told["average_precision"] == 1
    assert (told["images"], told["boxes"]) == (3, 6)


def test_run_prints_and_writes_boxes(drawn, model, tmp_path, cli, cli_json):
    truth = read_boxes(drawn / "test.json", labels="face")
    files = {name: tmp_path / f"found.{name}" for name in ("csv", "xml")}
    options = ("--csv", files["csv"], "--xml", files["xml"], "--draw", tmp_path / "drawn")
    told = cli_json("detect", "run", model, drawn / "test", *options, "--quiet")
    assert told["unreadable"] == []
    assert [one["path"] for one in told["images"]] == [str(one.path) for one in truth]
    for image, expected in zip(told["images"], truth, strict=True):
        boxes = [one["box"] for one in image["boxes"]]
        assert iou(expected.boxes, boxes).max(axis=1).min() > 0.5
        assert {one["label"] for one in image["boxes"]} == {"face"}
    count = sum(len(one["boxes"]) for one in told["images"])
    rows = list(csv.DictReader(files["csv"].read_text().splitlines()))
    assert len(rows) == count
    for file in files.values():
        again = read_boxes(file)
        assert sum(len(one.boxes) for one in again) == count
        assert again[0].scores[0] == pytest.approx(told["images"][0]["boxes"][0]["score"])
    assert len(list((tmp_path / "drawn").glob("scene *-boxes.jpg"))) == 3
    lines = cli("detect", "run", model, drawn / "test", "--quiet").stdout.splitlines()
    assert len(lines) == count
    assert lines[0].split("\t")[0] == str(truth[0].path)
    assert lines[0].split("\t")[5] == "face"


def test_a_lower_threshold_finds_more(drawn, model, cli_json):
    count = []
    for threshold in (-2, 50):
        told = cli_json("detect", "run", model, drawn / "test", "--threshold", threshold, "--quiet")
        count.append(sum(len(one["boxes"]) for one in told["images"]))
    assert count[0] > 6
    assert count[1] == 0


def test_nothing_found_is_said(drawn, model, tmp_path, cli):
    words = ("--threshold", "50", "--csv", tmp_path / "none.csv", "--quiet")
    said = cli("detect", "run", model, drawn / "test", *words).stdout
    assert [len(one.boxes) for one in read_boxes(tmp_path / "none.csv")] == [0, 0, 0]
    assert [line.split("\t")[1] for line in said.splitlines()] == ["nothing found"] * 3


def test_an_image_smaller_than_the_template_has_nothing(model, tmp_path, cli_json):
    Image.new("L", (9, 7)).save(tmp_path / "tiny.png")
    told = cli_json("detect", "run", model, tmp_path / "tiny.png", "--quiet")
    assert told["images"] == [{"path": str(tmp_path / "tiny.png"), "boxes": []}]


def test_an_image_given_twice_is_told_twice(model, drawn, cli_json):
    one = drawn / "test" / "scene 100.png"
    told = cli_json("detect", "run", model, one, one, "--quiet")["images"]
    assert [len(image["boxes"]) for image in told] == [2, 2]


def test_copies_of_one_name_are_numbered(model, drawn, tmp_path, cli):
    one = drawn / "test" / "scene 100.png"
    for _ in range(2):  # and written again
        cli("detect", "run", model, one, one, "--draw", tmp_path, "--quiet")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["scene 100-boxes-2.jpg", "scene 100-boxes.jpg"]


def test_the_page_and_the_mistakes(model, drawn, tmp_path, cli):
    records = read_boxes(drawn / "test.json")
    swapped = [one.only(one.labels == "square") for one in records]
    for one in swapped:
        one.labels[:] = "face"
    write_boxes(swapped, tmp_path / "wrong.csv")
    page, table = tmp_path / "p.html", tmp_path / "mistakes.csv"
    words = ("--report", page, "--csv", table, "--quiet")
    said = cli("detect", "eval", model, tmp_path / "wrong.csv", *words).stdout
    assert said.splitlines()[-2:] == [str(page), str(table)]
    rows = list(csv.DictReader(table.read_text().splitlines()))
    kinds = [row["kind"] for row in rows]
    assert kinds.count("miss") == 3
    assert kinds.count("false alarm") == 6
    assert "Every box was found" not in page.read_text()
    assert "detect train" in page.read_text()


def test_the_label_is_that_of_the_detector(model, drawn, tmp_path, cli, cli_json):
    without = [one.only(one.labels == "face") for one in read_boxes(drawn / "test.json")]
    for one in without:
        one.labels[:] = ""
    write_boxes(without, tmp_path / "plain.csv")
    assert cli_json("detect", "eval", model, tmp_path / "plain.csv")["boxes"] == 6
    other = cli_json("detect", "eval", model, drawn / "test.json", "--label", "square")
    assert other["boxes"] == 3
    for one in without:
        one.labels[:] = "nose"
    write_boxes(without, tmp_path / "noses.csv")
    line = only_line(cli("detect", "eval", model, tmp_path / "noses.csv", "--quiet", code=2))
    assert "no box has the label face; there are: nose" in line


def test_progress_is_told(drawn, tmp_path, cli):
    words = ("detect", "train", drawn / "train.xml", "-o", tmp_path / "m", "--label", "face")
    said = cli(*words, "--area", "1600", "--jobs", "1").stderr
    stages = [line.split(":")[0] for line in said.splitlines()]
    assert stages == ["reading images", "learning", "calibrating"]


# wrong input


def test_several_labels_need_a_choice(drawn, tmp_path, cli):
    words = ("detect", "train", drawn / "train.xml", "-o", tmp_path / "m.hilbin")
    line = only_line(cli(*words, code=2))
    assert "several labels, choose by --label: face (16), square (8)" in line
    assert "no box has the label nose" in only_line(cli(*words, "--label", "nose", code=2))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("b.csv", "path,xmin,ymin,xmax,ymax\na.png,,,,\n", "there is no box in it"),
        ("b.xml", "<!DOCTYPE a><dataset/>", "has a DOCTYPE"),
        ("b.json", "{", "not valid JSON"),
        ("b.csv", "path,xmin,ymin,xmax,ymax\ngone.png,0,0,9,9\n", "none of the 1 images can be"),
    ],
)
def test_nothing_to_learn_from(tmp_path, cli, name, text, message):
    (tmp_path / name).write_text(text)
    output = tmp_path / "m.hilbin"
    words = ("detect", "train", tmp_path / name, "-o", output, "--quiet")
    assert message in only_line(cli(*words, code=2))
    assert not output.exists()


@pytest.mark.filterwarnings("default")  # the command prints them
def test_boxes_and_images_that_cannot_be_used_are_named(tmp_path, cli):
    records = write_scenes(tmp_path, 6)
    records[5].path.write_text("no image")
    write_boxes(records, tmp_path / "b.csv")
    with (tmp_path / "b.csv").open("a") as file:
        file.write('"scene 0.png",9,9,9,9,face,0\n"scene 1.png",900,9,950,60,face,0\n')
    words = ("detect", "train", tmp_path / "b.csv", "-o", tmp_path / "m.hilbin", *SMALL)
    lines = cli(*words, code=1).stderr.splitlines()
    assert sum("scene 0.png: box 2, [9, 9, 9, 9], is empty" in line for line in lines) == 1
    assert sum("scene 1.png: box 2" in line and "outside" in line for line in lines) == 1
    assert sum("scene 5.png" in line and "cannot be read" in line for line in lines) == 1


@pytest.mark.filterwarnings("default")  # the command prints them
def test_boxes_of_one_image(tmp_path, cli):
    write_boxes(write_scenes(tmp_path, 1), tmp_path / "b.csv")
    words = ("detect", "train", tmp_path / "b.csv", "-o", tmp_path / "m.hilbin", *SMALL)
    result = cli(*words)
    assert "one image" in result.stderr
    assert "threshold 0, not calibrated: one image" in result.stdout


@pytest.mark.filterwarnings("default")
def test_a_budget_ends_the_training(drawn, tmp_path, cli, cli_json):
    words = ("detect", "train", drawn / "train.xml", "-o", tmp_path / "m", "--label", "face")
    result = cli(*words, *SMALL, "--budget", "0.001s")
    assert "has not converged" in result.stderr
    assert "training was cut short" in result.stdout
    assert not cli_json("info", tmp_path / "m")["metadata"]["converged"]


def test_unreachable_boxes_are_listed(tmp_path, cli, cli_json):
    records = write_scenes(tmp_path, 10)
    write_boxes(records, tmp_path / "b.csv")
    with (tmp_path / "b.csv").open("a") as file:
        file.write('"scene 2.png",3,3,150,9,face,0\n' * 11)  # lines
    words = ("detect", "train", tmp_path / "b.csv", "-o", tmp_path / "m.hilbin", *SMALL)
    said = cli(*words).stdout
    assert "not learned from: box 2 of " in said
    assert said.count("scene 2.png, which no window meets") == 10
    assert "and 1 more, which" in said
    told = cli_json(*words, "--force")
    assert [one["box"] for one in told["unreachable"]] == list(range(2, 13))


def test_images_that_cannot_be_read(model, drawn, tmp_path, cli, cli_json):
    bad = tmp_path / "bad.png"
    bad.write_text("no image")
    one = drawn / "test" / "scene 100.png"
    result = cli("detect", "run", model, one, bad, "--quiet", code=1)
    assert result.stderr.startswith(f"hilbin: cannot be read: {bad}: not an image")
    result = cli("detect", "run", model, bad, "--quiet", code=2)
    assert result.stdout == ""
    text = f"{bad},0,0,9,9,face\n"
    (tmp_path / "bad.csv").write_text(text)
    assert "none of its 1 images" in only_line(
        cli("detect", "eval", model, tmp_path / "bad.csv", "--quiet", code=2)
    )
    (tmp_path / "some.csv").write_text(text + f"{one},0,0,9,9,face\n")
    told = cli_json("detect", "eval", model, tmp_path / "some.csv", "--quiet", code=1)
    assert [one["path"] for one in told["unreadable"]] == [str(bad)]
    assert told["average_precision"] == 0


def test_model_files_of_other_kinds(trained, drawn, model, tmp_path, cli):
    line = only_line(cli("detect", "run", trained.output, drawn / "test", code=2))
    assert "holds ImageClassifier, not a fitted DeformableDetector" in line
    line = only_line(cli("predict", model, drawn / "test", code=2))
    assert "holds DeformableDetector" in line
    assert "no such model file" in only_line(cli("detect", "run", tmp_path / "x", drawn, code=2))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--area", "-5"), "area must be a number > 0"),
        (("--budget", "soon"), "--budget: 'soon' is not a time"),
        (("--seed", "-1"), "--seed must be from 0"),
    ],
)
def test_wrong_options_are_named(drawn, tmp_path, cli, words, message):
    command = ("detect", "train", drawn / "train.xml", "-o", tmp_path / "m", "--label", "face")
    assert message in only_line(cli(*command, *words, "--quiet", code=2))


def test_wrong_thresholds_and_outputs(model, drawn, tmp_path, cli):
    line = only_line(cli("detect", "run", model, drawn / "test", "--threshold", "nan", code=2))
    assert "--threshold must be a finite number" in line
    for option in ("--csv", "--xml"):
        words = ("detect", "run", model, drawn / "test", option, tmp_path / "no" / "x")
        assert "no such folder" in only_line(cli(*words, code=2))
    words = ("detect", "eval", model, drawn / "test.json", "--report", tmp_path / "no" / "x")
    assert "no such folder" in only_line(cli(*words, code=2))
    line = only_line(cli("detect", "train", drawn / "train.xml", "-o", model, code=2))
    assert "--force overwrites it" in line


def test_the_same_boxes_in_every_format_give_the_same_detector(drawn, tmp_path, cli):
    records = read_boxes(drawn / "train.xml", labels="face")
    sources = [tmp_path / name for name in ("b.xml", "b.json", "b.csv")]
    contents = []
    for source in sources:
        write_boxes(records, source)
        output = source.with_suffix(".hilbin")
        cli("detect", "train", source, "-o", output, *SMALL)
        from hilbin import load

        contents.append(load(output).filters_[0])
        output.unlink()
    for other in contents[1:]:
        np.testing.assert_array_equal(other, contents[0])


def test_json_is_json(model, drawn, cli):
    said = cli("detect", "eval", model, drawn / "test.json", "--json", "--quiet").stdout
    assert json.loads(said)["mistakes"] == []


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "I;16", "turned"])
def test_images_of_every_kind(model, drawn, tmp_path, cli_json, mode):
    plain = Image.open(drawn / "test" / "scene 100.png")
    path = tmp_path / "one.png"
    if mode == "I;16":
        Image.fromarray(np.asarray(plain).astype(np.uint16) * 257).save(path)
    elif mode == "turned":  # stored on its side, with a note that says so
        exif = Image.Exif()
        exif[0x0112] = 6
        plain.transpose(Image.Transpose.ROTATE_90).save(path, exif=exif)
    else:
        plain.convert(mode).save(path)
    told = cli_json("detect", "run", model, drawn / "test" / "scene 100.png", path, "--quiet")
    first, second = ([one["box"] for one in image["boxes"]] for image in told["images"])
    assert len(first) == 2
    np.testing.assert_allclose(first, second)
