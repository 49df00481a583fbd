"""Evidence with drawn pictures: stripes whose direction and color tell the class."""

import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

from hilbin.estimators import ShapeFunction
from hilbin.inspection import Duplicate, Evidence, Suspicion, VisualWord
from hilbin.report import write_report

VOID = {"meta", "link", "img", "br", "wbr"}


def stripes(label, seed, side=48):
    rng = np.random.default_rng([label, seed])
    y, x = np.mgrid[:side, :side]
    wave = np.sin((np.cos(label) * x + np.sin(label) * y) / (2 + label % 5))
    color = np.random.default_rng(label).uniform(60, 250, 3)
    noise = rng.normal(0, 12, (side, side, 1))
    return np.clip((0.6 + 0.4 * wave)[:, :, None] * color + noise, 0, 255).astype(np.uint8)


def make_shape(name, n_classes):
    values = np.linspace(0, 1, 20)
    curves = np.stack([np.sin(values * (k + 1)) for k in range(n_classes)], axis=1)
    return ShapeFunction(name, values, curves[:, 0] if n_classes == 2 else curves, False)


def pictured(truth, classes):
    """What evidence about images has beside the scores."""
    c = len(classes)
    return {
        "picture": lambda i: stripes(int(truth[i]), i),
        "words": [
            VisualWord(make_shape(f"word {j}", c), j % c, [stripes(j, s, 16) for s in range(9)])
            for j in range(3)
        ],
        "suspicious": [Suspicion("odd.png", classes[0], classes[1], 1.25, stripes(1, 99))],
        "duplicates": [
            Duplicate(
                "train/a.png",
                "test/b.png",
                0.9987,
                classes[0],
                classes[1],
                *2 * [stripes(0, 5)],
            )
        ],
    }


def make_evidence(n=60, c=4, *, images=True, seed=0, right=2.0, **changes):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % c
    scores = rng.normal(0, 1, (n, c))
    scores[np.arange(n), truth] += right
    classes = [f"class {k}" for k in range(c)]
    intercept = rng.normal(0, 0.1, c)

    def heat(i, k):
        rough = np.random.default_rng([i, k]).normal(0, 1, (12, 12))
        return rough + (scores[i, k] - intercept[k] - rough.sum()) / rough.size

    given = {
        "title": "Stripes",
        "classes": classes,
        "truth": truth,
        "scores": scores,
        "names": [f"test/class {truth[i]}/{i:04d}.png" for i in range(n)],
        "baselines": {"linear": 0.6, "majority": 1 / c},
        "unreadable": [("broken.jpg", "truncated")],
        "provenance": {"command": "hilbin eval", "seed": "0"},
        "timings": {"train": 0.5, "describe": 200.0},
    }
    if images:
        given |= pictured(truth, classes) | {"heat": heat, "intercept": intercept}
    else:
        given["features"] = [make_shape(f"feature {j}", c) for j in range(3)]
    return Evidence(**given | changes)


@pytest.fixture
def evidence_of():
    return make_evidence


class Page(HTMLParser):
    """Checks that elements nest, and collects what the tests ask for."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.text = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append((tag, given))
        if "id" in given:
            self.ids.append(given["id"])
        assert not any(name.startswith("on") for name in given)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.text.append(data)

    def all(self, tag):
        return [given for name, given in self.tags if name == tag]


@pytest.fixture
def page_of(tmp_path):
    def write(evidence, **options):
        path = write_report(evidence, tmp_path / "report.html", **options)
        text = path.read_bytes().decode()
        page = Page(text)
        page.raw, page.words = text, re.sub("[ \n]+", " ", " ".join(page.text))
        assert len(page.ids) == len(set(page.ids))
        anchors = [given["href"] for given in page.all("a")]
        assert {a.removeprefix("#") for a in anchors} <= set(page.ids)
        assert all(given.get("alt") for given in page.all("img"))
        page.data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
        return page

    return write


@pytest.fixture(scope="session")
def parse():
    return Page


@pytest.fixture(scope="session")
def browser():
    """A real browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    names = ("chromium", "google-chrome", "chromium-browser")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("needs Chromium or Chrome on the path")
    with playwright.sync_playwright() as running:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        chromium = running.chromium.launch(executable_path=found, args=arguments)
        yield chromium
        chromium.close()
