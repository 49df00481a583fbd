"""``hilbin explain``: parts that sum to the score, the picture, rows of tables."""

import io

import numpy as np
import pytest
from PIL import Image

from hilbin import persist
from hilbin.cli._why_picture import MARGIN, PANEL, why_picture
from hilbin.cli.explain import explain


@pytest.fixture
def photo(photos):
    return photos / "down" / "pic 3.png"


@pytest.fixture(scope="module")
def inexact(photos, tmp_path_factory):
    """A model whose scores are not sums."""
    from hilbin.cli.train import TrainOptions, train

    output = tmp_path_factory.mktemp("inexact") / "m.hilbin"
    return train(TrainOptions(photos, output, features="color", kernel="exp-chi2", jobs=1)).output


def test_the_parts_sum_to_the_score(trained, photo):
    model = persist.load(trained.output)
    scores = dict(zip(model.classes_, model.decision_function([photo])[0], strict=True))
    why = explain(trained.output, photo, jobs=1)
    assert why.scores == pytest.approx(scores, abs=1e-6)
    assert (why.label, why.predicted, why.versus) == ("down", "down", None)
    assert why.score == pytest.approx(scores["down"], abs=1e-6)
    assert why.exact
    assert why.shares + why.intercept == pytest.approx(scores["down"], abs=1e-6)
    assert why.heat.sum() == pytest.approx(why.shares)


def test_another_class_and_differences(trained, photo, cli_json):
    words = ("explain", trained.output, photo, "--class", "across")
    one = cli_json(*words)
    assert (one["label"], one["predicted"]) == ("across", "down")
    other = cli_json("explain", trained.output, photo, "--class", "down")
    both = cli_json(*words, "--versus", "down")
    assert both["score"] == pytest.approx(one["scores"]["across"] - one["scores"]["down"])
    for key in ("score", "intercept", "shares"):
        assert both[key] == pytest.approx(one[key] - other[key], abs=1e-9)
    assert both["shares"] + both["intercept"] == pytest.approx(both["score"], abs=1e-6)


def test_what_adds_most(trained, photo, cli, cli_json):
    found = cli_json("explain", trained.output, photo)
    sizes = [abs(f["adds"]) for f in found["features"]]
    assert len(sizes) == 8
    assert sizes == sorted(sizes, reverse=True)
    assert all(f["feature"].split(" word ")[0] in ("centrist", "color") for f in found["features"])
    places = found["places"]
    assert [abs(p["adds"]) for p in places] == sorted(
        (abs(p["adds"]) for p in places), reverse=True
    )
    heat = explain(trained.output, photo, jobs=1).heat
    assert heat.shape == (40, 44)
    best = places[0]
    row, column = round(best["y"] / 5), round(best["x"] / 5.5)
    part = np.array_split(np.array_split(heat, 8, axis=0)[row], 8, axis=1)[column]
    assert best["adds"] == pytest.approx(part.sum())
    lines = cli("explain", trained.output, photo).stdout
    assert found["features"][0]["feature"] in lines
    assert "Exact: contributions" in lines


def test_the_picture(trained, photo, tmp_path, cli, cli_json):
    target = tmp_path / "why.png"
    assert cli("explain", trained.output, photo, "-o", target).stdout.endswith(f"{target}\n")
    with Image.open(target) as picture:
        assert picture.format == "PNG"
        width, height = picture.size
    assert width == 2 * PANEL + 24 + 2 * MARGIN
    assert height > PANEL
    for label in ("down", "across"):
        why = explain(trained.output, photo, label=label, output=target, jobs=1)
        drawn = np.asarray(Image.open(target).convert("RGB")).astype(int)
        feature_map_ = drawn[78 : 78 + 436, width // 2 + 12 : -MARGIN]  # below a title of one line
        redness = (feature_map_[:, :, 0] - feature_map_[:, :, 2])[5::11, 5::11]
        heat = np.asarray(Image.fromarray(why.heat).resize(feature_map_.shape[1::-1]))[5::11, 5::11]
        strong = np.abs(heat) > np.abs(heat).max() / 5
        assert (np.sign(redness) == np.sign(heat))[strong].mean() > 0.95
        assert strong.sum() > 20
    assert cli_json("explain", trained.output, photo, "-o", target, "--force")["picture"] == str(
        target
    )
    assert cli_json("explain", trained.output, photo)["picture"] is None


def test_pictures_of_all_shapes():
    rng = np.random.default_rng(0)
    for shape in ((3, 200), (200, 3), (1, 1), (900, 700)):
        heat = rng.normal(size=(5, 4))
        long = "unbroken" * 60
        picture = rng.integers(0, 256, shape, np.uint8)
        made = why_picture(picture, heat, long, [long, "", "短い"], ("against", long), "pixel")
        with Image.open(io.BytesIO(made)) as drawn:
            assert min(drawn.size) > 2 * MARGIN


def test_where_it_is_not_exact(inexact, photo, tmp_path, cli, cli_json):
    found = cli_json("explain", inexact, photo, "-o", tmp_path / "why.png")
    assert not found["exact"]
    assert found["intercept"] is None
    assert found["shares"] is None
    assert found["features"] == []
    assert len(found["places"]) == 8
    assert "Not exact." in cli("explain", inexact, photo).stdout
    with Image.open(tmp_path / "why.png") as picture:
        assert picture.size[0] == 2 * PANEL + 24 + 2 * MARGIN


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "data.csv"
    lines = ["good,kind,noise"]
    lines += [f"{rng.uniform() + k:.3f},{'ab'[k]},{rng.uniform():.3f}" for k in (0, 1) * 30]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("kernel", ["intersection", "chi2", "linear", "exp-chi2"])
def test_rows_of_tables(table, tmp_path, cli, cli_json, kernel):
    model = tmp_path / "m.hilbin"
    cli("train", table, "-o", model, "--target", "kind", "--kernel", kernel)
    found = cli_json("explain", model, table, "--row", 4)
    assert found["path"] == f"{table}:4"
    assert found["features"][0]["feature"] == "good"
    assert found["features"][0]["value"] == float(table.read_text().splitlines()[4].split(",")[0])
    assert found["exact"] == (kernel != "exp-chi2")
    if found["exact"]:
        assert found["shares"] + found["intercept"] == pytest.approx(found["score"], abs=1e-6)
        assert sum(f["adds"] for f in found["features"]) == pytest.approx(found["shares"])
    predicted = cli_json("predict", model, table)["predictions"][3]
    assert found["predicted"] == predicted["label"]
    assert found["score"] == pytest.approx(predicted["score"], abs=1e-6)
    lines = cli("explain", model, table, "--row", 4).stdout.splitlines()
    assert any(line.split()[:1] == ["good"] for line in lines)


def test_bad_rows(table, trained, photo, tmp_path, cli):
    model = tmp_path / "m.hilbin"
    cli("train", table, "-o", model, "--target", "kind")
    for words, message in (
        ((model, table), "with --row"),
        ((model, table, "--row", 61), "has 60 rows"),
        ((model, photo, "--row", 1), "not a table"),
        ((trained.output, photo, "--row", 1), "--row is for tables"),
    ):
        assert message in cli("explain", *words, code=2).stderr


def test_bad_images_and_classes(trained, photo, tmp_path, cli):
    (tmp_path / "text.png").write_text("no image")
    for words, message in (
        ((tmp_path / "text.png",), "text.png: not an image"),
        ((tmp_path / "none.png",), "none.png: there is no such file"),
        ((photo, "--class", "zebra"), "--class: the model does not know 'zebra'; it knows across"),
        ((photo, "--versus", "zebra"), "--versus: the model does not know 'zebra'"),
        ((photo, "--versus", "down"), "'down' is the class that is explained"),
        ((photo, "-o", tmp_path / "no" / "why.png"), "there is no such folder to write to"),
    ):
        assert message in cli("explain", trained.output, *words, code=2).stderr
    assert {p.name for p in tmp_path.iterdir()} == {"text.png"}
