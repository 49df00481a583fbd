"""The projects in ``examples/`` run, on a part of their data."""

import importlib.util
import json
import shutil
import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path
from types import ModuleType

import pytest

import hilbin

EXAMPLES = Path(__file__).parent.parent / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="not beside the package")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name.replace("/", "_"), EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "less", "least"),
    [
        ("photographs", {"every": 4}, 0.8),
        ("text", {"most": 60}, 0.5),
        ("spectra", {"each": 20}, 0.8),
        ("out_of_core", {"shards": 2, "rows": 1000, "features": 100}, 0.6),
        ("detection", {}, 0.9),
    ],
)
def test_project(
    name: str,
    less: dict[str, int],
    least: float,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert script(f"{name}/run").main(tmp_path, **less) >= least
    assert capsys.readouterr().out


def test_every_folder_is_described() -> None:
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for folder in EXAMPLES.iterdir():
        if folder.is_dir() and folder.name not in ("gallery", "__pycache__"):
            assert (folder / "README.md").exists()
            assert f"]({folder.name})" in listed


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    script("deploy/train").main(folder)
    return folder


def test_server(digits: Path) -> None:
    sent = json.loads((digits / "rows.json").read_text(encoding="utf-8"))
    server = script("deploy/serve").server(hilbin.load(digits / "digits.hilbin"), 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        with urllib.request.urlopen(address, json.dumps({"rows": sent["rows"]}).encode()) as reply:
            assert json.load(reply)["labels"] == sent["labels"]
        bad = json.dumps({"rows": [[float("nan")] * 64]}).encode()
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(address, bad)
        assert "X[0, 0] = nan" in json.load(refused.value)["error"]
        refused.value.close()
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(address, b"[[1, 2]]")
        assert "the request must be" in json.load(refused.value)["error"]
        refused.value.close()
    finally:
        server.shutdown()
        server.server_close()


def test_javascript(digits: Path) -> None:
    """Runs where Node.js finds onnxruntime-node, as after ``npm install -g onnxruntime-node``."""
    node = shutil.which("node")
    probe = "import('onnxruntime-node').then(() => 0, () => process.exit(1))"
    if node is None or subprocess.run([node, "-e", probe], cwd=EXAMPLES / "deploy").returncode:
        pytest.skip("needs Node.js and onnxruntime-node")
    shown = subprocess.run(
        [node, str(EXAMPLES / "deploy" / "predict.mjs"), "digits.onnx", "rows.json"],
        cwd=digits, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    labels = json.loads((digits / "rows.json").read_text(encoding="utf-8"))["labels"]
    assert [int(line.split()[0]) for line in shown.splitlines()] == labels
