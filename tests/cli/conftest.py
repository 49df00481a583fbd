import json
import zlib

import numpy as np
import pytest
from PIL import Image

from hilbin import persist
from hilbin.cli.train import TrainOptions, train

CLASSES = {"across": (0.0, 0.9), "down": (0.9, 0.0), "dötted plain": (0.7, 0.7)}


def draw(label, seed, shape=(40, 44), color=True):
    """Waves across, down, or both, and some noise."""
    rng = np.random.default_rng([seed, len(label)])
    y, x = np.mgrid[: shape[0], : shape[1]]
    a, b = CLASSES[label]
    waves = np.sin(a * x + rng.uniform(0, 6)) + np.sin(b * y + rng.uniform(0, 6))
    waves = np.clip((waves + 0.3 * rng.normal(size=shape)) / 5 + 0.5, 0, 1)
    gray = (255 * waves).astype(np.uint8)
    return np.stack([gray, gray // 2, 255 - gray], axis=2) if color else gray


def fill(root, per_class=6, color=True, seed=0):
    for label in CLASSES:
        folder = root / label
        folder.mkdir(parents=True)
        for i in range(per_class):
            Image.fromarray(draw(label, seed + i, color=color)).save(folder / f"pic {i}.png")
    return root


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """A folder with three folders of six small images; not to be changed."""
    return fill(tmp_path_factory.mktemp("cli") / "photos")


@pytest.fixture
def own_photos(tmp_path):
    """The same, to be changed."""
    return fill(tmp_path / "photos")


@pytest.fixture(scope="session")
def trained(photos, tmp_path_factory):
    """What training on the photos gave."""
    output = tmp_path_factory.mktemp("cli_model") / "m.hilbin"
    options = {"features": "centrist+color", "kernel": "intersection", "jobs": 1}
    return train(TrainOptions(photos, output, **options))


@pytest.fixture
def cli():
    """Run the command line in this process."""
    from typer.testing import CliRunner

    from hilbin.cli.app import app

    def run(*words, code=0):
        result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
        assert result.exit_code == code, result.stderr
        assert "Traceback" not in result.stderr
        return result

    return run


@pytest.fixture
def cli_json(cli):
    """Run the command line with ``--json``, return what it printed."""
    return lambda *words, code=0: json.loads(cli(*words, "--json", code=code).stdout)


def undated(about):
    """All that a model says about itself but when it was made and how long that took."""
    about = {k: v for k, v in about.items() if k not in ("created", "seconds", "command")}
    return {**about, "choice": [{**one, "seconds": 0} for one in about["choice"]]}


@pytest.fixture
def content_of(tmp_path):
    """All that is in a model file but when it was made, by what, and how long that took."""

    def content(path):
        about, model = persist.info(path).metadata, persist.load(path)
        assert about == model.metadata_
        model.metadata_ = undated(about)
        for one in model.choice_.table:
            one["seconds"] = 0
        plain = tmp_path / "plain.hilbin"
        persist.save(model, plain)
        return undated(about), plain.read_bytes()

    return content


def chunk(kind, content):
    """A chunk of a PNG file."""
    check = zlib.crc32(kind + content).to_bytes(4, "big")
    return len(content).to_bytes(4, "big") + kind + content + check


@pytest.fixture
def bad_images():
    """Put files that are no images, each in another way, into a folder; returns the reasons."""

    def put(folder):
        good = (folder / "pic 0.png").read_bytes()
        (folder / "text.png").write_text("not an image")
        (folder / "empty.jpg").write_bytes(b"")
        (folder / "cut.png").write_bytes(good[: len(good) // 2])
        size = (30000).to_bytes(4, "big")
        header = chunk(b"IHDR", size + size + b"\x08\x00\x00\x00\x00")
        body = chunk(b"IDAT", zlib.compress(b"little")) + chunk(b"IEND", b"")
        (folder / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + header + body)
        (folder / "gone.png").symlink_to(folder / "nowhere.png")
        return {
            "text.png": "not an image",
            "empty.jpg": "empty",
            "cut.png": "decoded",
            "bomb.png": "pixels",
            "gone.png": "no such file",
        }

    return put
