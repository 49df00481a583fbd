import sys
from dataclasses import replace

import numpy as np
import pytest

from hilbin.inspection import VisualWord
from hilbin.report import write_report


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": ["one"]}, "classes must be at least two"),
        ({"truth": [0, 1, 4]}, r"truth\[2\] = 4 is no index of the 4 classes"),
        ({"truth": [0, 1, -1]}, r"truth\[2\] = -1"),
        ({"truth": [0.5, 1, 2]}, "truth must be a non-empty vector of whole numbers"),
        ({"truth": []}, "truth must be a non-empty"),
        ({"scores": np.zeros((3, 2))}, r"scores must have the shape \(3, 4\), got \(3, 2\)"),
        ({"scores": np.full((3, 4), np.nan)}, r"scores\[0\] is not finite"),
        ({"names": ["a"]}, "names must be 3"),
        ({"intercept": [0.0]}, r"intercept must have the shape \(4,\)"),
    ],
)
def test_bad_evidence(evidence_of, changes, message):
    with pytest.raises(ValueError, match=message):
        evidence_of(3, 4, **changes)


def test_bad_words_and_pictures(evidence_of, tmp_path):
    base = evidence_of(3, 4)
    with pytest.raises(ValueError, match="label 4 of 'word 0' is no class"):
        replace(base, words=[VisualWord(base.words[0].shape, 4)])
    with pytest.raises(ValueError, match="picture must be a uint8 array"):
        write_report(replace(base, picture=lambda i: np.zeros((4, 4))), tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == []


def test_an_old_page_is_replaced_whole(evidence_of, tmp_path):
    target = tmp_path / "page.html"
    target.write_text("old")
    bad = evidence_of(picture=lambda i: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(bad, target)
    assert target.read_text() == "old"
    assert write_report(evidence_of(), str(target)) == target
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_without_pillow(evidence_of, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    write_report(evidence_of(images=False), tmp_path / "table.html")
    with pytest.raises(ImportError, match=r"hilbin\[images\]"):
        write_report(evidence_of(), tmp_path / "images.html")
