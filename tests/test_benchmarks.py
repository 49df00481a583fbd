"""What benchmarks record, and what the pages of results make of old and new records."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "docs" / "_ext")]
harness = pytest.importorskip("harness")
render = pytest.importorskip("render", exc_type=ImportError)
run = pytest.importorskip("run", exc_type=ImportError)

LOADS = {"load_before": [0.5, 0.4, 0.3], "load_after": [0.5, 0.4, 0.3]}
OLD = {"cpu": "a processor", "cores": 2, "level": "avx2", **LOADS}
POINTS = {"a loop": [0.5, 1.0], "another": [100.0, 30.0]}
ROOFLINE = {
    "name": "made", "title": "Ceilings", "points": POINTS,
    "slopes": {"memory": 10.0}, "tops": {"multiply and add": 100.0},
}  # fmt: skip


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """What a benchmark has recorded in a folder of its own."""
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    monkeypatch.setattr(harness, "THREAD_COUNTS", [])
    with harness.threads(1), harness.threads(2):
        figures = {"rows": 3, "By size": {"small": {"s": 0.5}, "large": {"s": 1234.5}}}
        harness.record("made", figures, [], title="Made", plots=[ROOFLINE])
    return json.loads((tmp_path / "made.json").read_text(encoding="utf-8"))


def test_records_have_the_date_and_the_threads(recorded):
    assert len(recorded["machine"]["date"].split("-")) == 3
    assert recorded["machine"]["threads"] == "1 or 2"
    shown = render.section(recorded)
    assert f"Measured on {recorded['machine']['date']}: " in shown
    assert "threads 1 or 2, core" in shown


def test_records_without_them_are_shown(recorded):
    shown = render.machine_text(recorded | {"machine": OLD})
    assert shown.startswith("a processor, 2 cores, core `avx2`, load 0.50 → 0.50.")


def test_threads_without_limits_are_those_of_the_pools(monkeypatch):
    monkeypatch.setattr(harness, "THREAD_COUNTS", [])
    assert int(harness.used_threads()) >= 1


def test_ceilings_are_drawn(recorded, tmp_path):
    render.draw_all([recorded])
    assert (tmp_path / "made.png").stat().st_size > 1000


def test_every_benchmark_is_run():
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    recording = {name for name in scripts if "harness.record(" in source(name)}
    alone = {"papers"}  # has a target of its own
    assert recording - set(run.SCRIPTS) == alone
    assert set(run.SCRIPTS) <= scripts


def source(name):
    return (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")


def test_scripts_that_break_are_named(monkeypatch, capsys):
    monkeypatch.setattr(run, "SCRIPTS", ("no_such_script",))
    monkeypatch.setattr(sys, "argv", ["run.py", "--quick"])
    assert run.main() == 1
    assert "broken: no_such_script" in capsys.readouterr().out


def test_another_clock_is_used():
    ticks = iter(range(100))
    times = harness.compare({"a": lambda: None}, 2, clock=lambda: float(next(ticks)))
    assert times["a"].best == 1.0


def test_tables_of_results_are_made_for_the_docs(recorded, tmp_path, monkeypatch):
    core = pytest.importorskip("docutils.core")
    measured = pytest.importorskip("measured", exc_type=ImportError)
    from docutils.parsers.rst import directives

    folder = tmp_path / "benchmarks" / "results"
    folder.mkdir(parents=True)
    (folder / "made.json").write_text(json.dumps(recorded), encoding="utf-8")
    monkeypatch.setattr(measured, "ROOT", tmp_path)
    directives.register_directive("measured", measured.Measured)
    page = core.publish_doctree(".. measured:: made, By size\n").astext()
    assert "large" in page
    assert "1,234" in page
    assert recorded["machine"]["date"] in page
