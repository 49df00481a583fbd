import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilbin.inspection import Evidence, VisualWord
from hilbin.report import write_report
from hilbin.report.charts import ticks
from hilbin.report.context import Caps, Context
from hilbin.report.learned import duration
from hilbin.report.markup import shown_of
from hilbin.report.measures import Measures
from hilbin.report.mistakes import order_of_display
from hilbin.report.pictures import Pictures


def test_every_section_is_there(evidence_of, page_of):
    page = page_of(evidence_of())
    sections = [given["id"] for given in page.all("section")]
    assert sections == [
        *("headline", "confusion", "classes", "mistakes", "words", "labels", "duplicates"),
        *("reject", "unreadable", "provenance"),
    ]
    m = Measures(evidence_of())
    for said in (
        f"{100 * m.accuracy:.1f}\u202f%",
        "linear",
        "majority",
        "checked on those below",
        "word 0",
        "odd.png",
        "the labels differ",
        "broken.jpg",
        "3 min 20 s",
        "hilbin eval",
    ):
        assert said in page.words, said
    cells = [int(c) for c in re.findall(r'<td class="[de]\d">(\d+)</td>', page.raw)]
    assert sum(cells) == m.n
    assert len([g for g in page.all("figure") if "data-t" in g]) == m.n


def test_the_page_stays_small(evidence_of, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (80, 80, 3), dtype=np.uint8)
    asked = []

    def picture(i):
        asked.append(i)
        return noise

    evidence = evidence_of(900, 5, picture=picture, heat=None)
    page = write_report(evidence, tmp_path / "a.html", max_bytes=1_000_000)
    assert 500_000 < page.stat().st_size <= 1_000_000
    found = re.search(r"(\d+) of 900 images are shown", page.read_text(encoding="utf-8"))
    shown = page.read_text(encoding="utf-8").count("<figure data-t=")
    assert int(found[1]) == shown
    assert 50 < shown < 360
    assert len(asked) <= 2 * len(set(asked))  # a picture is made once per size
    smaller = write_report(evidence, tmp_path / "b.html", max_bytes=200_000)
    assert smaller.stat().st_size <= 200_000
    with pytest.raises(ValueError, match="max_bytes=1000"):
        write_report(evidence, tmp_path / "c.html", max_bytes=1000)
    assert not (tmp_path / "c.html").exists()


def test_every_cell_has_a_picture_before_any_has_two(evidence_of):
    evidence = evidence_of(400, 5, right=1.0)
    context = Context(evidence, Measures(evidence), Pictures(), Caps())
    order = order_of_display(context)
    assert sorted(order) == list(range(400))
    cells = evidence.truth * 5 + context.measures.predicted
    n_cells = np.unique(cells).size
    assert np.unique(cells[order[:n_cells]]).size == n_cells
    first = order[:n_cells]
    assert (np.diff(context.measures.right[first].astype(int)) >= 0).all()  # mistakes first


def test_a_table_without_pictures(evidence_of, page_of):
    page = page_of(evidence_of(images=False))
    assert page.all("img") == []
    sections = {given["id"] for given in page.all("section")}
    assert "features" in sections
    assert not {"words", "labels", "duplicates"} & sections
    assert "test rows" in page.words
    assert len(page.data["rest"]) == 60


def test_reasons_of_rows(evidence_of, page_of):
    asked = []

    def reasons(i, a, b):
        asked.append((i, a, b))
        return [{"feature": "<hue>", "value": 0.25, "adds": -1.5}]

    evidence = evidence_of(images=False, reasons=reasons, exact_note="Told of parts.")
    page = page_of(evidence)
    assert "&lt;hue&gt;" in page.raw
    assert page.words.count("-1.5") == len(asked) > 0
    assert "Told of parts." in page.words
    for i, a, b in asked:
        assert a == evidence.scores[i].argmax() != b
        assert evidence.truth[i] in (a, b)
    assert "<hue>" not in page_of(evidence_of(images=False)).raw


def test_pictures_without_heat_maps(evidence_of, page_of):
    page = page_of(evidence_of(heat=None))
    assert "against" in page.words
    assert "Heat map" not in page.raw
    assert "Exact" not in page.words


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "off by at most"),
        (
            {"intercept": None},
            "Exact: the heat map of a class sums to its score minus the intercept.",
        ),
        (
            {"intercept": np.ones(4)},
            "Not exact: the sums of the heat maps below miss the scores by up to",
        ),
        ({"exact": False, "exact_note": "An exp kernel."}, "to the scores. An exp kernel."),
    ],
)
def test_it_says_whether_the_maps_are_exact(evidence_of, page_of, changes, said):
    assert said in page_of(evidence_of(**changes)).words


@pytest.mark.parametrize("images", [True, False])
@pytest.mark.parametrize(("n", "c"), [(1, 2), (2, 3), (19, 2), (25, 20), (300, 21), (400, 102)])
def test_sizes(evidence_of, page_of, n, c, images):
    page = page_of(evidence_of(n, c, images=images))
    kind = next(g["class"] for g in page.all("table") if g.get("id") == "matrix").split()[1]
    assert kind == {2: "roomy", 3: "roomy", 20: "normal", 21: "small", 102: "tiny"}[c]
    assert ("reject" in page.ids) == (n >= 20)
    if n < c:
        noun = "class" if c - n == 1 else "classes"
        assert f" {noun} without test {'images' if images else 'rows'}" in page.words


def test_one_of_a_thing_is_singular(evidence_of, page_of):
    page = page_of(evidence_of(1, 2, scores=[[0.0, 1.0]], heat=None))
    assert "test image 1 mistake 1 classes 2 class without test images 1 " in page.words
    assert "1 of 1 mistake," in page.words
    assert shown_of(1, 5, "words").startswith("1 of 5 words is shown")


def test_very_many_classes(evidence_of, page_of):
    page = page_of(evidence_of(600, 300, images=False))
    assert "Shown are the 200 of 300 classes with most mistakes." in page.words
    assert page.raw.count('<th scope="row" data-k=') == 200


def test_no_mistakes(evidence_of, page_of):
    page = page_of(evidence_of(right=50.0))
    assert "Least certain predictions" in page.words
    assert "No mistakes among 60 images" in page.words
    assert not re.search(r'<td class="e\d', page.raw)


def test_all_scores_equal(evidence_of, page_of):
    page = page_of(evidence_of(40, 4, scores=np.zeros((40, 4)), heat=None))
    assert "25.0" in page.words


def test_looked_for_and_not_found(evidence_of, page_of):
    page = page_of(evidence_of(suspicious=[], duplicates=[], unreadable=[]))
    assert "No label looks wrong" in page.words
    assert "No test example is a near-duplicate" in page.words
    assert "All files could be read" in page.words
    page = page_of(evidence_of(suspicious=None, duplicates=None, unreadable=None, provenance={}))
    assert not {"labels", "duplicates", "unreadable"} & set(page.ids)
    assert "provenance" in page.ids  # for the timings


def test_long_lists_say_what_is_left_out(evidence_of, page_of):
    base = evidence_of()
    page = page_of(
        replace(
            base,
            suspicious=base.suspicious * 100,
            duplicates=base.duplicates * 100,
            unreadable=base.unreadable * 1000,
            words=base.words * 10,
        )
    )
    for said in (
        "24 of 100 suspicious labels",
        "12 of 100 pairs",
        "400 of 1,000 files",
        "12 of 30 words",
    ):
        assert said in page.words


def test_a_word_against_a_class(evidence_of, page_of):
    base = evidence_of(20, 2)
    word = base.words[0]  # one curve: for the second class, so against the first
    page = page_of(replace(base, words=[VisualWord(word.shape, 0), VisualWord(word.shape, 1)]))
    assert re.search("word 0 against class 0", page.words)
    assert re.search("word 0 for class 1", page.words)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 5))
def test_ticks_are_few_round_and_inside(low, width, wanted):
    high = low + width
    found = ticks(low, high, wanted)
    assert len(found) <= 2 * wanted + 1
    assert all(low - 1e-6 * width <= t <= high + 1e-6 * width for t in found)
    steps = np.diff(found)
    assert np.allclose(steps, steps[:1].sum(), rtol=1e-4)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0314, "31 ms"), (12.34, "12.3 s"), (200, "3 min 20 s")]
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_only_shown_pictures_are_asked_for(tmp_path):
    asked = []

    def picture(i):
        asked.append(i)
        return np.zeros((8, 8), np.uint8)

    n = 2000
    evidence = Evidence(
        title="many",
        classes=["a", "b"],
        truth=np.zeros(n, int),
        scores=np.stack([np.ones(n), np.zeros(n)], axis=1),
        names=[str(i) for i in range(n)],
        picture=picture,
    )
    write_report(evidence, tmp_path / "x.html")
    assert len(set(asked)) <= Caps().gallery + Caps().mistakes
