"""What cannot be used is named, in one line, with an exit code."""

import csv
import os
import subprocess
import sys

import pytest
from cli_results import only_line
from PIL import Image


def test_nothing_to_learn_from(tmp_path, cli, photos):
    output = tmp_path / "m.hilbin"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no image" in only_line(cli("train", empty, "-o", output, code=2))
    assert "no such" in only_line(cli("train", tmp_path / "none", "-o", output, code=2))
    loose = only_line(cli("train", photos / "down", "-o", output, code=2))
    assert "6 images lie in it without a folder" in loose
    (empty / "one").symlink_to(photos / "down")
    assert "only the class 'one'" in only_line(cli("train", empty, "-o", output, code=2))
    assert not output.exists()
    assert not (tmp_path / "m.hilbin.cache").exists()


def test_some_images_are_unreadable(own_photos, tmp_path, cli, cli_json, bad_images):
    reasons = bad_images(own_photos / "down")
    words = ("train", own_photos, "-o", tmp_path / "m.hilbin", "--features", "sift+color")
    result = cli(*words, "--quiet", code=1)
    for name, reason in reasons.items():
        lines = [line for line in result.stderr.splitlines() if f"down/{name}" in line]
        assert len(lines) == 1
        assert reason in lines[0]
    found = cli_json("info", tmp_path / "m.hilbin")["metadata"]
    assert {u["name"].removeprefix("down/") for u in found["unreadable"]} == set(reasons)
    assert found["data"]["n"] == 18
    assert found["cv"]["n"] == 18
    assert "pic 5.png" in found["train"]["names"][11]
    assert found["seconds"].keys() >= {"training"}


def test_only_unreadable_images(tmp_path, cli):
    for label in ("a", "b"):
        (tmp_path / "all" / label).mkdir(parents=True)
        (tmp_path / "all" / label / "x.png").write_text("nothing")
    line = only_line(cli("train", tmp_path / "all", "-o", tmp_path / "m.hilbin", code=2))
    assert "none of the 2 images can be read" in line


def test_one_class_is_readable(tmp_path, cli, photos):
    (tmp_path / "all" / "bad").mkdir(parents=True)
    (tmp_path / "all" / "bad" / "x.png").write_text("nothing")
    (tmp_path / "all" / "good").symlink_to(photos / "down")
    words = ("train", tmp_path / "all", "-o", tmp_path / "m.hilbin", "--features", "centrist")
    result = cli(*words, "--quiet", code=2)
    assert "images that can be read: only the class 'good'" in only_line(result)


def test_odd_images_are_read(own_photos, tmp_path, cli):
    first = own_photos / "across" / "pic 0.png"
    with Image.open(first) as picture:
        picture.convert("P").save(own_photos / "across" / "palette.png")
        picture.convert("CMYK").save(own_photos / "across" / "cmyk.jpg")
        picture.convert("I;16").save(own_photos / "across" / "deep.png")
        picture.convert("RGBA").save(own_photos / "across" / ("very long " * 24 + ".png"))
        picture.convert("L").save(own_photos / "across" / "ユニコード 🐦.png")
        picture.resize((1, 1)).save(own_photos / "across" / "one pixel.png")
    result = cli("train", own_photos, "-o", tmp_path / "m.hilbin", "--quiet")
    assert "3 classes, 24 images" in result.stdout


def test_list_of_images(photos, tmp_path, cli):
    table = tmp_path / "list.csv"
    lines = ["path,label"]
    lines += [f"{photos}/{c}/pic {i}.png,{c}/{c}" for c in ("across", "down") for i in range(4)]
    table.write_text("\n".join([*lines, "gone.png,down/down"]), encoding="utf-8")
    words = ("train", table, "-o", tmp_path / "m.hilbin", "--features", "centrist")
    result = cli(*words, code=1)
    assert "gone.png: there is no such file" in result.stderr
    assert "2 classes, 8 images" in result.stdout


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "path and label"),
        (b"path,label\n", "no line after"),
        (b"path,label\na.png,\n", "line 2"),
        (b"a,b\n1,2\n", "--target"),
        (b"path,label\n\xff\xfe,a\n", "UTF-8"),
        (b"path,label\na.png,x\nb.png,x\n", "only the class 'x'"),
    ],
)
def test_bad_lists_of_images(tmp_path, cli, content, complaint):
    table = tmp_path / "list.csv"
    table.write_bytes(content)
    line = only_line(cli("train", table, "-o", tmp_path / "m.hilbin", code=2))
    assert complaint in line
    assert "list.csv" in line


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--features", "surf"], "'surf' is not known"),
        (["--features", "sift+"], "'' is not known"),
        (["--features", "sift+sift"], "twice"),
        (["--features", "onnx:none.onnx"], "none.onnx"),
        (["--kernel", "rbf"], "kernel must be one of"),
        (["--budget", "soon"], "'soon' is not a time"),
        (["--virtual", "melt"], "'melt' is no transformation"),
        (["--seed", "-1"], "--seed"),
        (["--target", "y"], "--target is for tables"),
    ],
)
def test_bad_options(photos, tmp_path, cli, words, complaint):
    assert complaint in only_line(cli("train", photos, "-o", tmp_path / "m.hilbin", *words, code=2))
    assert not list(tmp_path.iterdir())


def test_bad_outputs(photos, tmp_path, cli):
    assert "is a folder" in only_line(cli("train", photos, "-o", tmp_path, code=2))
    nowhere = tmp_path / "none" / "m.hilbin"
    assert "no such folder" in only_line(cli("train", photos, "-o", nowhere, code=2))


def test_outputs_are_tried_before_the_work(trained, photos, cli):
    """No line says that anything was read, and no cache is begun."""
    place = "/proc/new"
    for words in (
        ("train", photos, "-o", place),
        ("eval", trained.output, photos, "--report", place),
        ("eval", trained.output, photos, "--csv", place),
        ("predict", trained.output, photos, "--csv", place),
        ("explain", trained.output, next(photos.rglob("*.png")), "-o", place),
    ):
        assert "/proc: cannot write there" in only_line(cli(*words, code=2))


def test_inputs_are_never_overwritten(trained, photos, tmp_path, cli):
    """Neither by --force nor by the files that need none, whatever the path to them."""
    table, image = tmp_path / "t.csv", next(photos.rglob("*.png"))
    table.write_text("width,y\n" + "1,thin\n9,thick\n" * 3)
    (tmp_path / "link").symlink_to(table)
    model = tmp_path / "m.hilbin"
    cli("train", table, "--target", "y", "-o", model, "--jobs", "1")
    before = {path: path.read_bytes() for path in (table, model, image, trained.output)}
    for words in (
        ("train", table, "--target", "y", "--force", "-o", table),
        ("train", table, "--target", "y", "--force", "-o", tmp_path / "link"),
        ("eval", model, table, "--csv", table),
        ("eval", model, table, "--report", model),
        ("predict", model, table, "--csv", table),
        ("explain", trained.output, image, "--force", "-o", image),
        ("cluster", table, "--csv", table),
        ("cluster", table, "--report", table),
        ("similar", table, "--force", "-o", table),
    ):
        assert "is an input of this command" in only_line(cli(*words, code=2))
    assert before == {path: path.read_bytes() for path in before}


@pytest.mark.parametrize("verb", ["predict", "info"])
def test_bad_model_files(trained, tmp_path, cli, photos, verb):
    more = [photos] if verb == "predict" else []
    assert "no such model file" in only_line(cli(verb, tmp_path / "none", *more, code=2))
    other = tmp_path / "other.hilbin"
    other.write_bytes(b"\x80\x04cos\nsystem\n(S'true'\ntR.")  # a pickle that runs a command
    assert "other.hilbin" in only_line(cli(verb, other, *more, code=2))
    content = bytearray(trained.output.read_bytes())
    content[100] ^= 1
    other.write_bytes(bytes(content))
    assert "other.hilbin" in only_line(cli(verb, other, *more, code=2))


def test_models_that_are_no_classifier(tmp_path, cli, photos):
    from hilbin import persist
    from hilbin.kernels import Chi2

    persist.save(Chi2(), tmp_path / "k.hilbin", metadata={"note": "mine"})
    line = only_line(cli("predict", tmp_path / "k.hilbin", photos, code=2))
    assert "holds Chi2, not a trained ImageClassifier or TableClassifier" in line
    assert "note: mine" in cli("info", tmp_path / "k.hilbin").stdout


def test_usage(cli):
    assert "train" in cli("--help").stdout
    assert "Missing" in cli("train", code=2).stderr
    assert "No such command" in cli("fly", code=2).stderr


def run(*words, **more):
    return subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, **more
    )


def test_as_a_module(trained):
    done = run("-m", "hilbin.cli", "info", trained.output)
    assert done.returncode == 0, done.stderr
    assert "3 classes of images" in done.stdout


def test_names_that_are_no_text(trained, photos, tmp_path):
    name = os.fsdecode(b"caf\xe9.png")
    try:
        (tmp_path / name).write_bytes((photos / "down" / "pic 1.png").read_bytes())
    except OSError:
        pytest.skip("the file system takes only valid names")
    done = run("-m", "hilbin.cli", "predict", trained.output, tmp_path, "--csv", tmp_path / "o.csv")
    assert done.returncode == 0, done.stderr
    assert "caf\\udce9.png\tdown" in done.stdout
    assert b"caf\xe9.png,down" in (tmp_path / "o.csv").read_bytes()


def test_without_the_extra(monkeypatch, capsys):
    from hilbin.cli import main

    for name in [n for n in sys.modules if n.startswith("hilbin.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert 'pip install "hilbin[cli]"' in capsys.readouterr().err


# pipes, odd names, bugs
def test_pipes_are_not_waited_for(own_photos, trained, tmp_path, cli, cli_json):
    pipe = own_photos / "down" / "pipe.png"
    os.mkfifo(pipe)
    words = ("train", own_photos, "-o", tmp_path / "m.hilbin", "--features", "centrist")
    assert "pipe.png: is a pipe, not a file" in cli(*words, code=1).stderr
    found = cli_json("predict", trained.output, own_photos / "down", code=1)
    assert [u["reason"] for u in found["unreadable"]] == ["is a pipe, not a file"]
    for name in ("list.csv", "table.parquet", "model.hilbin"):
        os.mkfifo(tmp_path / name)
    assert "is a pipe" in only_line(
        cli("train", tmp_path / "list.csv", "-o", tmp_path / "n", code=2)
    )
    words = ("train", tmp_path / "table.parquet", "-o", tmp_path / "n", "--target", "y")
    assert "table.parquet" in only_line(cli(*words, code=2))
    for verb in ("predict", "info"):
        more = [own_photos] if verb == "predict" else []
        assert "no such model file" in only_line(
            cli(verb, tmp_path / "model.hilbin", *more, code=2)
        )
    out = tmp_path / "out"
    os.mkfifo(out)
    words = ("predict", trained.output, own_photos / "down" / "pic 0.png", "--csv", out)
    assert "out: is a pipe, not a file" in cli(*words, code=2).stderr
    words = ("train", own_photos, "-o", out, "--force", "--features", "centrist", "--quiet")
    assert "out: is a pipe, not a file" in cli(*words, code=2).stderr


@pytest.mark.parametrize("name", ["two\nlines.png", "tab\there.png", "=cmd.png", "@at.png"])
def test_a_line_for_every_file_whatever_its_name(name, trained, photos, tmp_path, cli, monkeypatch):
    content = (photos / "down" / "pic 1.png").read_bytes()
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    lines = cli("predict", trained.output, name, "--csv", "out.csv").stdout.splitlines()
    assert len(lines) == 1
    assert len(lines[0].split("\t")) == 3
    with open("out.csv", newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["path"] == (f"'{name}" if name[0] in "=@" else name)


def test_long_fields_and_names_with_nul(tmp_path, cli):
    listed = tmp_path / "list.csv"
    listed.write_text("path,label\n" + "x" * 140_000 + ",a\nb.png,b\n")
    assert "field limit" in only_line(cli("train", listed, "-o", tmp_path / "m", code=2))
    table = tmp_path / "table.csv"
    table.write_text("x,y\n" + "x" * 140_000 + ",a\n1,b\n")
    words = ("train", table, "-o", tmp_path / "m", "--target", "y")
    assert "table.csv" in only_line(cli(*words, code=2))
    listed.write_bytes(b"path,label\na\0b.png,a\nb.png,b\n")
    assert cli("train", listed, "-o", tmp_path / "m", code=2).stderr.startswith("hilbin: ")


def test_a_bug_is_a_line_that_says_so(trained, photos, cli, monkeypatch):
    def broken(*args, **options):
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("hilbin.auto.ImageClassifier.evaluate", broken)
    line = only_line(cli("eval", trained.output, photos, "--quiet", code=70))
    assert "a bug in hilbin: ZeroDivisionError: by nothing (in broken, test_bad_input.py:" in line
    assert "please report it" in line
