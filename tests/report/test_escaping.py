"""Nothing that comes from a file name or a label becomes part of the page's code."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilbin.inspection import Duplicate, Suspicion, VisualWord
from hilbin.report.markup import Html, file_name, fill, short

EVIL = '<script>alert("1")</script>&\'"</title>'


def test_nothing_comes_from_outside(evidence_of, page_of):
    page = page_of(evidence_of())
    assert "http:" not in page.raw
    assert "https:" not in page.raw
    assert "@import" not in page.raw
    assert all(g["src"].startswith("data:image/jpeg;base64,") for g in page.all("img"))
    policy = next(g["content"] for g in page.all("meta") if "http-equiv" in g)
    script = re.search(r"<script>(.*?)</script>", page.raw, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert f"script-src 'sha256-{digest}'" in policy


def test_everything_is_escaped(evidence_of, page_of):
    base = evidence_of(30, 3)
    evil = [f"{EVIL}{k}" for k in range(3)]
    shape = replace(base.words[0].shape, name=EVIL)
    picture = base.picture(0)
    page = page_of(
        replace(
            base,
            title=EVIL,
            classes=evil,
            names=[f"{EVIL}/{i}.png" for i in range(30)],
            exact_note=EVIL,
            baselines={EVIL: 0.5},
            words=[VisualWord(shape, 0, [picture])],
            features=[shape],
            suspicious=[Suspicion(EVIL, EVIL, EVIL, 1.0, picture)],
            duplicates=[Duplicate(EVIL, EVIL, 0.99, EVIL, EVIL, picture, picture)],
            unreadable=[(EVIL, EVIL)],
            provenance={EVIL: EVIL},
            timings={EVIL: 1.0},
        )
    )
    assert len(page.all("script")) == 2
    assert "<script>alert" not in page.raw
    assert page.raw.count("</title>") == 1
    assert page.words.count('<script>alert("1")') > 50
    assert page.data["classes"] == evil


@pytest.mark.parametrize(
    "name",
    [
        "日本語/ζῷον 🐦.jpg",
        "caf\udce9.jpg",  # a byte that is not UTF-8, as the file system gives it
        "line\nbreak\x00\x1b[31m.png",
        "\u202egnp.exe",
        "x" * 5000 + ".jpg",
        "",
    ],
)
def test_odd_names(evidence_of, page_of, name):
    page = page_of(replace(evidence_of(3, 3), names=[name] * 3, unreadable=[(name, name)]))
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", page.raw)
    assert short(name) in page.raw or "/" in name
    assert "x" * 200 not in page.raw


@given(st.text(), st.integers(3, 50))
def test_short_names_are_clean_and_short(text, longest):
    cut = short(text, longest)
    assert cut.encode().decode() == cut
    assert not re.search("[\x00-\x1f\u202e]", cut)
    assert short("a" * 99, longest) == "a" * ((longest - 1) // 2) + "…" + "a" * (longest // 2)
    if text.isascii() and text.isprintable() and len(text) <= longest:
        assert cut == text


@given(text=st.text(st.characters(codec="utf-8", exclude_categories=["Cc"])))
def test_filling_escapes(parse, text):
    filled = fill("<p>{x}</p>{y}", x=text, y=Html("<b></b>"))
    page = parse(filled)
    assert [tag for tag, _ in page.tags] == ["p", "b"]
    assert "".join(page.text) == text
    assert parse(file_name(text)).tags[0][0] == "bdi"
