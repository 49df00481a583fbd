"""The page in a real browser: no errors, no requests, the matrix filters, it fits a phone."""

from functools import partial

import numpy as np
import pytest
from scenes import scene, write_scenes

from hilbin.detect import DeformableDetector, ImageBoxes, evaluate_detector
from hilbin.report import write_detector_report, write_report

LUMINANCES = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const table = document.querySelector("#matrix"), found = [];
  const measure = (node, back) => {
    const colors = [getComputedStyle(node).color, getComputedStyle(back).backgroundColor];
    const [a, b] = colors.map(luminance);
    found.push((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  };
  for (const kind of "de") for (let level = 1; level <= 9; level++) {
    const cell = table.tBodies[0].rows[0].cells[1];
    cell.className = kind + level;
    measure(cell, cell);
  }
  const texts = ".lead, .yes, .no, .facts dt, figcaption bdi, nav a, h1, #told";
  for (const node of document.querySelectorAll(texts)) {
    measure(node, node.closest(".card") ?? document.body);
  }
  return found;
}"""


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens a page and, at the end, looks for errors and for requests that left the file."""
    pages = []

    def open_(evidence, *, hash_="", width=1280, height=900, scheme="light", write=write_report):
        path = write(evidence, tmp_path / f"report{len(pages)}.html")
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        page = context.new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(path.as_uri() + hash_)
        pages.append(page)
        return page

    yield open_
    for page in pages:
        assert page.said == []
        outside = [u for u in page.asked if not u.startswith(("file:", "data:"))]
        assert outside == []
        assert len([u for u in page.asked if u.startswith("file:")]) == 1
        page.context.close()


def shown(page):
    """Labels of the images that are seen: pairs of true and predicted class."""
    return page.eval_on_selector_all(
        ".gallery figure",
        "all => all.filter(f => f.offsetParent).map(f => [+f.dataset.t, +f.dataset.p])",
    )


def cell(page, truth, predicted):
    return page.locator(f"#matrix tbody tr:nth-child({truth + 1}) td:nth-child({predicted + 2})")


def fullest_mistake(evidence):
    counts = np.zeros((len(evidence.classes),) * 2, int)
    np.add.at(counts, (evidence.truth, evidence.scores.argmax(axis=1)), 1)
    np.fill_diagonal(counts, 0)
    t, p = np.unravel_index(counts.argmax(), counts.shape)
    return int(t), int(p), int(counts.max())


def test_a_cell_filters_and_show_all_restores(evidence_of, open_page):
    evidence = evidence_of(60, 4, right=1.0)
    page = open_page(evidence)
    before = shown(page)
    assert len(before) == 12
    t, p, count = fullest_mistake(evidence)
    assert 0 < count <= 12
    cell(page, t, p).click()
    page.wait_for_function(f"location.hash === '#cell={t}-{p}'")
    assert shown(page) == [[t, p]] * count
    assert page.inner_text("#filter") == f"class {t} predicted as class {p}: {count} images"
    assert "chosen" in cell(page, t, p).get_attribute("class")
    page.click("#show-all")
    page.wait_for_function("location.hash === '#all'")
    assert shown(page) == before
    assert page.inner_text("#filter") == "All 60 images"
    page.click("#show-mistakes")
    page.wait_for_function("location.hash === '#mistakes-only'")
    assert all(a != b for a, b in shown(page))
    page.go_back()
    page.go_back()
    page.wait_for_function(f"location.hash === '#cell={t}-{p}'")
    assert shown(page) == [[t, p]] * count


def test_more_are_shown_on_demand(evidence_of, open_page):
    page = open_page(evidence_of(60, 4))
    page.click("#more")
    assert len(shown(page)) == 60
    assert page.is_hidden("#more")


def test_the_address_holds_the_filter(evidence_of, open_page):
    evidence = evidence_of(60, 4)
    page = open_page(evidence, hash_="#cell=2-2")
    assert set(map(tuple, shown(page))) == {(2, 2)}
    page = open_page(evidence, hash_="#cell=99-0")
    assert len(shown(page)) == 12
    page = open_page(evidence, hash_="#words")
    assert len(shown(page)) == 12


def test_an_empty_cell_says_so(evidence_of, open_page):
    page = open_page(evidence_of(20, 4, right=50.0))
    cell(page, 0, 1).click()
    page.wait_for_function("location.hash === '#cell=0-1'")
    assert shown(page) == []
    assert page.inner_text("#filter") == "class 0 predicted as class 1: 0 images"


def test_by_keyboard(evidence_of, open_page):
    evidence = evidence_of(60, 4)
    page = open_page(evidence)
    cell(page, 0, 0).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    here = page.evaluate(
        "[document.activeElement.parentNode.rowIndex, document.activeElement.cellIndex]"
    )
    assert here == [2, 2]
    assert page.inner_text("#told").startswith("class 1, correct: ")
    page.keyboard.press("Enter")
    page.wait_for_function("location.hash === '#cell=1-1'")
    assert set(map(tuple, shown(page))) == {(1, 1)}
    assert page.locator("#matrix [tabindex='0']").count() == 1


@pytest.mark.parametrize(("n", "c", "images"), [(60, 4, True), (400, 102, True), (80, 2, False)])
def test_it_fits_a_phone(evidence_of, open_page, n, c, images):
    long = "unbroken" * 40
    evidence = evidence_of(
        n, c, images=images, title=long, names=[f"{long}{i}" for i in range(n)],
        classes=[f"{long}{k}" for k in range(c)], provenance={"command": long},
        unreadable=[(long, long)], exact_note=long, baselines={long: 0.5},
    )  # fmt: skip
    page = open_page(evidence, width=360, height=740)
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    cell(page, 0, 0).click()
    page.wait_for_function("location.hash === '#cell=0-0'")
    page.evaluate("document.querySelector('#rest').open = true")
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_themes_have_contrast(evidence_of, open_page, scheme):
    page = open_page(evidence_of(), scheme=scheme)
    back = "getComputedStyle(document.body).backgroundColor"
    first = page.evaluate(back)
    assert first == {"light": "rgb(250, 249, 246)", "dark": "rgb(20, 22, 25)"}[scheme]
    assert min(page.evaluate(LUMINANCES)) >= 4.5
    page.click("#theme")
    assert page.evaluate(back) != first
    assert min(page.evaluate(LUMINANCES)) >= 4.5
    page.reload()
    assert page.evaluate(back) != first  # it is remembered
    page.asked.pop()  # the page itself, once more
    page.click("#theme")
    assert page.evaluate(back) == first


def test_classes_are_sorted(evidence_of, open_page):
    page = open_page(evidence_of(5, 7))  # two classes without test images
    head = page.locator("#classes-table thead th", has_text="recall").first
    values = "rows => rows.map(r => r.cells[3].dataset.v)"
    orders = []
    for direction in ("ascending", "descending"):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == direction
        found = page.eval_on_selector_all("#classes-table tbody tr", values)
        assert found[-2:] == ["", ""]
        orders.append([float(v) for v in found[:-2]])
    assert orders[0] == sorted(orders[0])
    assert orders[1] == sorted(orders[1], reverse=True)


def test_names_are_listed_where_there_are_no_pictures(evidence_of, open_page):
    evidence = evidence_of(80, 3, images=False, right=1.0)
    page = open_page(evidence)
    t, p, count = fullest_mistake(evidence)
    cell(page, t, p).click()
    page.wait_for_function(f"location.hash === '#cell={t}-{p}'")
    wanted = {
        evidence.names[i]
        for i in range(80)
        if (evidence.truth[i], evidence.scores[i].argmax()) == (t, p)
    }
    assert {*page.locator("#rest bdi").all_inner_texts()} == wanted
    assert len(wanted) == count


def test_a_script_in_a_name_does_not_run(evidence_of, open_page):
    evil = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
    evidence = evidence_of(30, 3, classes=[evil + str(k) for k in range(3)], names=[evil] * 30)
    page = open_page(evidence)
    cell(page, 0, 0).click()
    page.wait_for_function("location.hash === '#cell=0-0'")
    assert page.title() == "Stripes"
    assert page.inner_text("#filter").startswith("<img src=x onerror=")


def test_print(evidence_of, open_page):
    page = open_page(evidence_of(), scheme="dark")
    page.emulate_media(media="print")
    assert page.is_hidden("nav")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 30, 33)"


@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_of_a_detector(open_page, tmp_path, width):
    records = write_scenes(tmp_path / "photos<script>alert(1)</script>", 3)
    images, boxes = zip(*[scene(seed)[:2] for seed in range(4)], strict=True)
    detector = DeformableDetector(area=1600, random_state=0).fit(images, boxes)
    wrong = [one.only([0]) for one in records]
    missed = [ImageBoxes(one.path, [*one.boxes, [0, 0, 30, 30]]) for one in wrong]
    evaluation = evaluate_detector(detector, missed)
    write = partial(write_detector_report, detector=detector, about={"command": "x" * 300})
    page = open_page(evaluation, width=width, write=write)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#misses .card").count() == len(evaluation.misses()) > 0
    assert page.locator("#alarms .card").count() == len(evaluation.false_alarms()) > 0
    assert page.locator("#filters .card img").count() == 2
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.click("text=False alarms")
    assert page.url.endswith("#alarms")
