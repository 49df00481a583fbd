"""The page that compares the papers with what was measured: its parts, and what is there."""

import importlib
import inspect
import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "benchmarks" / "results" / "papers.json"


@pytest.fixture
def redrawn(monkeypatch):
    """Import a module of benchmarks/redrawn, and forget it and its like afterwards.

    Modules of tests that are called like one of the benchmarks are put aside meanwhile.
    """
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    for file in (ROOT / "benchmarks").glob("*.py"):
        monkeypatch.delitem(sys.modules, file.stem, raising=False)
    before = dict(sys.modules)
    yield lambda name: importlib.import_module(f"redrawn.{name}")
    for name in set(sys.modules) - set(before):
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(str(ROOT / "benchmarks")):
            del sys.modules[name]


@pytest.fixture
def items(redrawn):
    made = redrawn("items")
    table = {"a": {"x": 1.0, "y": "2 ± 1"}, "b": {"x": None}}
    picture = made.Picture("p.png", "A picture.")
    return [
        made.Item("Table 1", "about", "1", "2", made.SAME, "why", {"All": table}, (picture,)),
        made.Item("Table 10", "more", "3", "4", made.NOT, "so", {"All": {"c": {"z": 3}}}),
    ]


def test_recorded_items_are_restored(redrawn, items):
    page = redrawn("page")
    figures = json.loads(json.dumps(page.flattened("paper 1", items)))
    assert page.restored("paper 1", figures) == items


def test_page_has_every_item(redrawn, items):
    text = redrawn("page").page("paper 1", items)
    for part in ("Table 1: about\n~~~~", "images/papers/p.png", ":alt: A picture.", "2 ± 1", "why"):
        assert part in text
    assert text.count("**Verdict**") == 2


def test_wide_tables_are_turned(redrawn):
    page = redrawn("page")
    wide = {"row": {f"c{k}": k for k in range(page.LONGEST + 1)}}
    assert "   * - c3\n     - 3" in page.numbers(wide)
    assert "   * - row\n     - 0" in page.numbers({"row": {"c0": 0}})


@pytest.mark.skipif(not RECORDED.exists(), reason="the results are not in this copy")
def test_committed_pages_are_those_of_the_record(redrawn, tmp_path):
    page, made = redrawn("page"), redrawn("items")
    figures = json.loads(RECORDED.read_text(encoding="utf-8"))["figures"]
    papers = tuple(f"paper {k}" for k in range(1, 6))
    page.write(figures, papers, tmp_path)
    for paper in papers:
        name = f"{paper.replace(' ', '')}.inc"
        committed = (ROOT / "docs" / "reproduce" / name).read_text(encoding="utf-8")
        assert committed == (tmp_path / name).read_text(encoding="utf-8")
        for item in page.restored(paper, figures):
            assert item.verdict in made.VERDICTS
            for picture in item.pictures:
                file = ROOT / "docs" / "images" / "papers" / picture.name
                assert 0 < file.stat().st_size < made.LARGEST


@pytest.mark.skipif(not RECORDED.exists(), reason="the results are not in this copy")
@pytest.mark.parametrize("paper", range(1, 6))
def test_items_read_what_benchmarks_record(redrawn, paper):
    made, module = redrawn("items"), redrawn(f"paper{paper}")
    for make in vars(module).values():
        recorded = inspect.isfunction(make) and make.__annotations__ == {"return": made.Item}
        if recorded:
            assert make().verdict in made.VERDICTS
