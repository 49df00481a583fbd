"""Code of the pages runs or parses, commands exist, pictures have a text, versions agree."""

import ast
import re
import shlex
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = sorted(DOCS.glob("*.rst"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TEXTS = [*PAGES, README, *sorted((ROOT / "examples").glob("*/README.md"))]
pytestmark = pytest.mark.skipif(not PAGES, reason="not beside the package")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the language and the text of every code block."""
    text = read(path)
    if path.suffix == ".md":
        yield from re.findall(r"^```(\w+)\n(.*?)^```", text, re.M | re.S)
        return
    pattern = r"^( *)(?:\.\. code-block:: (\w+)|[^\n.].*::|::)\n((?:\1 +:.*\n)*(?:\n|\1 +.*\n)+)"
    for _, language, body in re.findall(pattern, text + "\n", re.M):
        yield language or "literal", textwrap.dedent(body)


def commands(path: Path) -> Iterator[str]:
    for language, body in blocks(path):
        if language in ("sh", "console", "literal"):
            for line in body.splitlines():
                for part in line.removeprefix("$ ").split(" && "):
                    if part.split("#")[0].strip().startswith("hilbin "):
                        yield part


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_prompts_run(page: Path) -> None:
    if ">>> " in read(page):
        assert f"docs/{page.name}" in PROJECT["tool"]["pytest"]["ini_options"]["testpaths"]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_commands_exist(path: Path) -> None:
    import typer.main

    from hilbin.cli.app import app

    root = typer.main.get_command(app)
    for line in commands(path):
        words = shlex.split(line, comments=True)[1:]
        command: click.Command = root
        while isinstance(getattr(command, "commands", None), dict) and words:
            if words[0].startswith("-"):
                break
            assert words[0] in command.commands, line  # type: ignore[attr-defined]
            command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
        known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        known |= {"--help"}
        for word in words:
            if word.startswith("-") and not re.match(r"-\d", word):
                assert word.split("=")[0] in known, line


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_python_parses(path: Path) -> None:
    for language, body in blocks(path):
        if language == "python" or (language == "literal" and re.search(r"^from \w+", body, re.M)):
            ast.parse(body)


def test_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's Python, with photographs of noise: smooth ones and rough ones."""
    rng = np.random.default_rng(0)
    for place in ("photos/rough", "photos/smooth", "held_out/rough", "held_out/smooth", "new"):
        (tmp_path / place).mkdir(parents=True)
        for number in range(1, 9):
            side = 64 if place.endswith("rough") else 8
            noise = Image.fromarray(rng.integers(0, 255, (side, side, 3), np.uint8))
            noise.resize((64, 64), Image.Resampling.BICUBIC).save(
                tmp_path / place / f"{number}.jpg"
            )
    monkeypatch.chdir(tmp_path)
    codes = [body for language, body in blocks(README) if language == "python"]
    assert codes
    for code in codes:
        exec(
            compile(
                code.replace("ImageClassifier()", 'ImageClassifier("color+lbp")'), "README", "exec"
            ),
            {},
        )
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pictures_have_a_text(page: Path) -> None:
    text = read(page)
    for directive in re.findall(r"^ *\.\. (?:image|figure|plot):: .*\n(?: +:.*\n)*", text, re.M):
        assert ":alt: " in directive, directive


def test_every_guide_has_a_picture() -> None:
    for name in re.findall(r"^   (\w+)$", read(DOCS / "guides.rst"), re.M):
        assert re.search(r"^\.\. (?:image|plot)::", read(DOCS / f"{name}.rst"), re.M), name


def test_readme_pictures() -> None:
    for alt, target in re.findall(r"!\[(.*?)\]\((.*?)\)", read(README)):
        assert alt
        assert target.startswith("https://") or (ROOT / target).exists() or "docs/images" in target


NEEDS = {  # what a page uses: what it must say to install, unless all of it
    r"^>>> .*(hilbin\.(images|detect) import|import Image|ImageCollection)": ("images", "cli"),
    r"^>>> .*hilbin\.plot import": ("plot",),
    r"^>>> .*(onnxruntime|to_onnx\()": ("onnx",),
    r"^   hilbin ": ("cli",),
}


def installs(text: str) -> set[str]:
    """Return the extras that a page says to install."""
    found = re.findall(r'pip install "(?:hilbin|\.)\[(.*?)\]"', text)
    return {extra for extras in found for extra in extras.split(",")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_say_what_they_need(page: Path) -> None:
    text = read(page)
    said = installs(text)
    for pattern, extras in NEEDS.items():
        if re.search(pattern, text, re.M):
            assert said & {*extras, "all"}, f"{page.name} uses what {extras[0]} installs"
    if re.search(r"^>>> .*(as_frame=True|import pandas)", text, re.M):
        assert "pandas" in text.replace("import pandas", "") or "all" in said


def test_cited_papers_agree() -> None:
    """Titles and years of the five papers, in CITATION.cff and in the paper's references."""

    def plain(text: str) -> str:
        return re.sub(r"[^a-z0-9]", "", text.replace(r"$\chi^2$", "χ²").lower())

    cited = re.findall(r"^    title: (.+)\n    year: (\d+)", read(ROOT / "CITATION.cff"), re.M)
    bib = next((ROOT / "paper").glob("*.bib"))
    entries = {
        plain(title): year
        for title, year in re.findall(
            r"title = \{(.+?)\},\n.*?year = \{(\d+)\}", read(bib), re.S | re.M
        )
    }
    assert len(cited) == 5
    for title, year in cited:
        assert entries.get(plain(title)) == year, title


def test_every_paper_has_a_page() -> None:
    """Each page says what the paper claims, where it is, what was found, and links to the rest."""
    cited = re.findall(r"^  - type: article\n    title: (.+)$", read(ROOT / "CITATION.cff"), re.M)
    pages = {page: read(page) for page in PAGES if page.stem.startswith("paper_")}
    assert len(cited) == len(pages) == 5
    for title in cited:
        words = re.findall(r"[a-z]{4,}", title.lower())
        (page,) = [
            p for p in pages if all(w in pages[p].lower().split("what it says")[0] for w in words)
        ]
        for heading in ("What it says", "In the library", "What we found"):
            assert f"\n{heading}\n---" in pages[page], (page, heading)
        for target in re.findall(r"<((?:errata|reproduce)-[\w-]+)>", pages[page]):
            assert f".. _{target}:" in read(DOCS / f"{target.split('-')[0]}.rst")
        assert f"   {page.stem}\n" in read(DOCS / "papers.rst")


def test_versions_agree() -> None:
    cited = re.search(r"^version: (.+)$", read(ROOT / "CITATION.cff"), re.M)
    assert cited is not None
    assert cited[1] == PROJECT["project"]["version"]


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub makes of the headings of a Markdown file."""
    heads = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```", "", read(path), flags=re.M | re.S), re.M
    )
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_links_of_the_repository() -> None:
    folders = [ROOT / "examples", ROOT / "paper", ROOT / "benchmarks", ROOT / ".github"]
    for path in [*ROOT.glob("*.md"), *(p for one in folders for p in one.glob("**/*.md"))]:
        for target in re.findall(r"\]\(([^) ]+)", read(path)):
            if target.startswith(("http", "mailto:")):
                continue
            name, _, anchor = target.partition("#")
            where = path.parent / name if name else path
            left_out = "benchmarks/results" in target or "docs/images" in target  # of the sdist
            assert where.exists() or left_out, f"{path.name}: {target}"
            if anchor and where.suffix == ".md":
                assert anchor in anchors(where), f"{path.name}: {target}"


def test_addresses_are_well_formed() -> None:
    """Addresses have no stray ends, and the project has one of each kind."""
    found = set()
    for path in [*PAGES, *ROOT.glob("*.md"), ROOT / "pyproject.toml", ROOT / "CITATION.cff"]:
        found |= set(re.findall(r"https?://[^\s)>\"'`\]]+", read(path)))
    for address in found:
        assert re.fullmatch(r"https?://[\w.-]+(:\d+)?(/[\w%./~#?=&+-]*)?", address), address
        assert not address.endswith((".", ",", ".git", "/hilbin/")), address
    ours = {
        re.sub(r"(/hilbin/hilbin|github\.io/hilbin).*", r"\1", a) for a in found if "hilbin" in a
    }
    assert ours == {"https://github.com/hilbin/hilbin", "https://hilbin.github.io/hilbin"}


def test_formulas_become_mathml(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS / "_ext")
    from mathml import _mathml

    half = re.sub(r"\s", "", _mathml(r"\tfrac12 \|w\|^2", block=False))
    assert re.search(r"<mfrac[^>]*><mn>1</mn><mn>2</mn></mfrac>", half)
    for page in PAGES:
        for formula in re.findall(r":math:`([^`]+)`", read(page)):
            _mathml(formula, block=False)


def test_every_public_name_has_a_guide(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS / "_ext")
    from api_pages import PACKAGES, guide_table, guides

    assert guides("hilbin.estimators", "IntersectionSVC")[0] == "intersection"
    assert guides("hilbin.plot", "no_such_name") == ["inspection"]
    for page in PACKAGES.values():
        assert (DOCS / f"{page}.rst").exists()
    table = guide_table()
    assert len(table) > 200
    assert all(table.values())


def test_pages_name_what_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS / "_ext")
    from api_pages import inherited_table

    table = inherited_table()
    assert "get_params" in table["hilbin.estimators.IntersectionSVC"]
    assert "fit_transform" in table["hilbin.maps.AdditiveMap"]
    assert not table["hilbin.detect.iou"]


def test_measured_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS / "_ext")
    from measured import readme_rows

    rows = readme_rows()
    assert len(rows) == 9
    assert all(len(row) == 3 for row in rows)
