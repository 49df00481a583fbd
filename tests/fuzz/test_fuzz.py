"""A few hundred experiments of every kind; ``make fuzz`` does many more."""

import fuzzing
import pytest

COUNTS = {"models": 400, "arrays": 400, "images": 200, "labels": 150, "checkpoints": 150}
COUNTS |= {"annotations": 300}
NEEDS = {"annotations": "PIL", "images": "PIL", "models": "PIL", "networks": "onnxruntime"}


@pytest.mark.parametrize("target", fuzzing.TARGETS)
def test_nothing_crashes_and_refusals_have_names(target, tmp_path):
    if target in NEEDS:
        pytest.importorskip(NEEDS[target])
    fuzzing.prepared(target, tmp_path)
    report = fuzzing.run(target, range(COUNTS.get(target, 50)), tmp_path)
    assert report.faults == []
    assert report.count == COUNTS.get(target, 50)
    assert report.outcomes["refused"] > 0
    assert len(report.outcomes) > 1  # not all are refused


def test_crashes_and_hangs_are_counted(tmp_path, monkeypatch):
    """By a target that does what must not happen."""
    (tmp_path / "bad.py").write_text(
        "import os, time, fuzzing\n"
        "def opened(folder): return None\n"
        "def attempt(state, seed):\n"
        "    if seed == 1: os.kill(os.getpid(), 11)\n"
        "    if seed == 3: time.sleep(60)\n"
        "    if seed == 4: raise fuzzing.FaultError('said')\n"
        "    if seed == 5: raise MemoryError\n"
        "    return 'answered'\n"
    )
    monkeypatch.setattr(fuzzing, "PATIENCE", 0.5)
    monkeypatch.setattr(fuzzing, "TARGETS", ("bad",))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    report = fuzzing.run("bad", range(7), tmp_path)
    assert [(seed, kind) for seed, kind, _ in report.faults] == [
        (1, "crash"),
        (3, "hang"),
        (4, "fault"),
        (5, "fault"),
    ]
    assert report.outcomes == {"answered": 3, "crash": 1, "hang": 1, "fault": 2}
    assert "SIGSEGV" in report.faults[0][2]
