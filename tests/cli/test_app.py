"""The commands themselves: help, version, completion."""

import subprocess
import sys
from pathlib import Path

import pytest

import hilbin
from hilbin.auto import candidates, image_candidates
from hilbin.cli import _arguments
from hilbin.images import DESCRIPTORS

HEAVY = ("numpy", "scipy", "sklearn", "PIL", "joblib")


@pytest.mark.parametrize(
    "words", [["--help"], ["train", "--help"], ["detect", "train", "--help"], ["--version"]]
)
def test_help_imports_nothing_heavy(words):
    script = (
        "import sys; from hilbin.cli import main\n"
        "try: main()\n"
        f"except SystemExit: assert not {{*{HEAVY}}} & {{*sys.modules}}, sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_click_is_not_imported():
    """It is not of the extra; typer may have a copy of its own."""
    for path in Path(hilbin.__file__).with_name("cli").glob("*.py"):
        assert "import click" not in path.read_text()


def test_version(cli):
    assert cli("--version").stdout == f"hilbin {hilbin.__version__}\n"


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "hilbin", "--version"], capture_output=True)
    assert done.stdout.startswith(b"hilbin ")


@pytest.mark.parametrize(
    "words", [[], ["train"], ["eval"], ["predict"], ["explain"], ["demo"], ["detect", "run"]]
)
def test_flags_have_no_type(cli, words):
    shown = cli(*words, "--help").stdout
    assert "--help" in shown
    assert "<bool>" not in shown


def test_completion(cli):
    assert "--install-completion" in cli("--help").stdout


def test_the_help_names_all_features_and_kernels():
    for name in DESCRIPTORS:
        assert f" {name}" in _arguments.FEATURES
    for name in {*candidates.KERNELS, *image_candidates.KERNELS}:
        assert f" {name}" in f" {_arguments.KERNELS}"


@pytest.mark.parametrize("existing", ["file", "link"])
def test_outputs_are_not_overwritten(trained, photos, tmp_path, cli, existing):
    photo = photos / "down" / "pic 1.png"
    output = tmp_path / "out"
    if existing == "file":
        output.write_text("precious")
    else:
        output.symlink_to(tmp_path / "nowhere")
    for words in (("train", photos), ("explain", trained.output, photo)):
        said = cli(*words, "-o", output, code=2).stderr
        assert "out: exists already; --force overwrites it" in said
    if existing == "file":
        assert output.read_text() == "precious"
    cli("explain", trained.output, photo, "-o", output, "--force")
    assert output.read_bytes().startswith(b"\x89PNG")


def test_long_stages_say_what_is_left(monkeypatch, capsys):
    from hilbin.cli import _console

    now = [0.0]
    monkeypatch.setattr(_console.time, "monotonic", lambda: now[0])
    console = _console.Console()
    with console.stage("counting", 10) as advance:
        for _ in range(10):
            now[0] += 1.5
            advance(1)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "counting: 20%, 12 s left",
        "counting: 90%, 2 s left",
        "counting: 15.0 s",
    ]


def test_stages_of_a_fit_are_followed(capsys):
    from hilbin.cli._console import Console

    console = Console()
    with console.following() as callback:
        for done in (0, 1):
            callback("learning", done, 1)
        for done in (0, 4, 6, 3, 8, 8):  # a later round begins anew
            callback("describing", done, 8)
        callback("resumed", 4, 8)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["learning: 0.0 s", "describing: 0.0 s", "resumed: 4 of 8 images"]
    assert list(console.seconds) == ["learning", "describing"]


def test_progress(monkeypatch, capsys):
    from hilbin.cli._console import Console

    console = Console()
    with console.stage("thinking", 2) as advance:
        advance(2)
    assert capsys.readouterr().err.startswith("thinking: 0.")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with console.stage("thinking", 2) as advance:
        advance(1)
    assert list(console.seconds) == ["thinking"]
    assert capsys.readouterr().out == ""
