"""Pages of clusters and montages: what is on them, and in a real browser."""

import json
import re

import numpy as np
import pytest

from hilbin.report import ClusterCard, write_clusters, write_montage

SHAPE, HOLE = (3, 4), (1, 2)
CELLS = np.array([c for c in np.argwhere(np.ones(SHAPE, bool)) if tuple(c) != HOLE])
NAMES = [f"<i>{i}</i>.jpg" for i in range(len(CELLS))]


def picture(i):
    return np.full((20, 30, 3), [20 * i, 200 - 10 * i, 90], np.uint8)


def data_of(page):
    text = re.search(r'id="data">(.*?)</script>', page.read_text(), re.S)[1]
    return json.loads(text)


@pytest.fixture
def wall(tmp_path):
    links = [f"photos/{i}#?.jpg" for i in range(len(CELLS))]
    path = tmp_path / "wall.html"
    return write_montage(picture, CELLS, path, shape=SHAPE, names=NAMES, links=links, title="<b>")


@pytest.fixture
def clusters(tmp_path):
    patches = [np.zeros((16, 16), np.uint8)]
    cards = [
        ClusterCard("Cluster 1", 7, [("a/<x>.jpg", picture(3))], [("sift word 3", 1.5, patches)]),
        ClusterCard("Cluster 2", 1, [], [("width", -0.5, [])], ["row 3"], "row"),
    ]
    return write_clusters(cards, tmp_path / "clusters.html", title="<b>", lead="8 things")


def test_the_data_of_a_montage(wall):
    data = data_of(wall)
    assert data["names"] == NAMES
    assert data["at"][1 * 4 + 2] == -1
    assert sorted(data["at"]) == [-1, *range(11)]
    assert data["links"][0] == "./photos/0%23%3F.jpg"
    page = wall.read_text()
    assert "<title>&lt;b&gt;</title>" in page
    assert "<i>0" not in page
    side = data["side"]
    hole = f'<i style="left:{2 * side}px;top:{side}px;width:{side}px;height:{side}px">'
    assert page.count("<i style") == page.count(hole) == 1


def test_many_pictures_are_small_and_on_several_sheets(tmp_path):
    shape = (40, 50)
    cells, calls = np.argwhere(np.ones(shape, bool)), []
    page = write_montage(
        lambda i: None if i == 5 else picture(i % 9), cells, tmp_path / "w.html",
        shape=shape, names=[str(i) for i in range(2000)], callback=calls.append,
    )  # fmt: skip
    data = data_of(page)
    assert 16 <= data["side"] < 128
    assert page.read_text().count("data:image/jpeg") == len(calls) > 1
    assert calls[-1] == 2000
    assert data["links"] is None


def test_clusters_say_what_sets_them_apart(clusters):
    page = clusters.read_text()
    for text in (
        "2 clusters",
        "7 images",
        "87.5 %",
        "1 row,",
        "sift word 3",
        "+1.5 sd",
        "8 things",
    ):
        assert text in page
    assert "a/<wbr>&lt;x&gt;.jpg" in page
    assert page.count("data:image/jpeg") == 2


@pytest.fixture
def opened(browser):
    """Opens a page and, at the end, looks for errors and for requests that left the file."""
    pages = []

    def open_(path, width, touch=False):
        size = {"width": width, "height": 800}
        page = browser.new_context(viewport=size, has_touch=touch).new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield open_
    for page in pages:
        assert page.said == []
        assert [u for u in page.asked if not u.startswith("data:")] == [page.url.split("#")[0]]
        page.context.close()


SCALE = "() => new DOMMatrix(getComputedStyle(document.querySelector('#wall')).transform).a"
BOX = """() => { const r = document.querySelector('#wall').getBoundingClientRect(),
  v = document.querySelector('#view').getBoundingClientRect();
  return [r.left - v.left, r.top - v.top, r.width, r.height, v.width, v.height]; }"""


@pytest.mark.parametrize("width", [1280, 400])
def test_a_montage_fits_and_keys_move(wall, opened, width):
    page = opened(wall, width)
    left, top, w, h, room, height = page.evaluate(BOX)
    assert left >= -1
    assert left + w <= room + 1
    assert top + h <= height + 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.focus("#view")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#told") in NAMES
    for _ in range(6):
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowLeft")
    assert page.inner_text("#told") == NAMES[0]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")  # over the hole
    assert page.inner_text("#told") == NAMES[6]
    assert page.get_attribute("#told a", "href") == "./photos/6%23%3F.jpg"
    before = page.evaluate(SCALE)
    page.keyboard.press("+")
    assert page.evaluate(SCALE) > before
    page.keyboard.press("0")
    assert page.evaluate(SCALE) == pytest.approx(before)


def test_a_montage_is_zoomed_moved_and_tapped(wall, opened):
    page = opened(wall, 900)
    before = page.evaluate(SCALE)
    box = page.locator("#view").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.wheel(0, -900)
    page.wait_for_function(f"({SCALE})() > {before}")
    left, top = page.evaluate(BOX)[:2]
    page.mouse.down()
    page.mouse.move(x + 60, y + 40, steps=4)
    page.mouse.up()
    moved = page.evaluate(BOX)
    assert (moved[0] - left, moved[1] - top) == pytest.approx((60, 40), abs=2)
    assert page.is_visible("#help")  # a drag chooses nothing
    page.mouse.click(x - 100, y)
    assert page.inner_text("#told") in NAMES
    page.click("#out")
    page.click("#fit")
    assert page.evaluate(SCALE) == pytest.approx(before)


def test_a_montage_is_touched(wall, opened):
    page = opened(wall, 400, touch=True)
    before = page.evaluate(SCALE)
    box = page.locator("#wall").bounding_box()
    page.touchscreen.tap(box["x"] + 10, box["y"] + 10)
    assert page.inner_text("#told") == NAMES[0]
    session = page.context.new_cdp_session(page)

    def touch(kind, *apart):
        y = box["y"] + box["height"] / 2
        points = [{"x": 200 + d, "y": y, "id": i} for i, d in enumerate(apart)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", -30, 30)
    for far in (50, 80, 110):
        touch("touchMove", -far, far)
    touch("touchEnd")
    assert page.evaluate(SCALE) > 2 * before


@pytest.mark.parametrize("width", [1280, 400])
def test_clusters_fit(clusters, opened, width):
    page = opened(clusters, width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") in ("light", "dark")
    page.click("nav a")
    assert page.url.endswith("#cluster-1")
