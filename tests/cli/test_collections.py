"""The commands similar, cluster, montage and duplicates."""

import json

import numpy as np
import pytest
from PIL import Image

FAST = ["--features", "centrist", "--jobs", "1", "--quiet"]
IMAGES = ["--features", "centrist"]


@pytest.fixture
def flawed(own_photos):
    """A folder with an image that cannot be read, and a copy of another."""
    (own_photos / "broken.png").write_bytes(b"nothing")
    copy = (own_photos / "across" / "pic 0.png").read_bytes()
    (own_photos / "copy.png").write_bytes(copy)
    return own_photos


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,width,height\na,1,1\nb,9,7\nc,1,2\nd,9,7\n")
    return path


def test_similar_images(cli, photos):
    query = photos / "down" / "pic 2.png"
    done = cli("similar", photos, query, "--top", "4", *FAST)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(lines) == 4
    assert lines[0] == [str(query), "0.000", str(query)]
    assert all("down" in line[2] for line in lines)


def test_similar_by_the_features_of_a_classifier(cli, photos, trained, tmp_path):
    query, index = photos / "down" / "pic 2.png", tmp_path / "index.hilbin"
    found = cli("similar", trained.output, query, "--among", photos, "--top", "4", "-o", index)
    assert [line.split("\t")[2] for line in found.stdout.splitlines()[:1]] == [str(query)]
    assert "centrist+color" in cli("info", index).stdout


def test_rows_by_the_columns_of_a_classifier(cli, tmp_path):
    table, model = tmp_path / "t.csv", tmp_path / "m.hilbin"
    rows = [f"{i % 7},{i // 7},{'ab'[i % 7 > 3]},{i}" for i in range(42)]
    table.write_text("\n".join(["x,y,label,number", *rows]))
    cli("train", table, "--target", "label", "--drop", "number", "-o", model, "--jobs", "1")
    found = cli("similar", model, "--among", table, "--row", "9", "--top", "3", "--jobs", "1")
    names = [line.split("\t")[2] for line in found.stdout.splitlines()]
    assert names[0] == "row 9"
    assert set(names[1:]) <= {"row 2", "row 8", "row 10", "row 16"}  # beside it in x and y


def test_a_saved_collection_answers_the_same(cli, flawed, tmp_path):
    index, query = tmp_path / "index.hilbin", flawed / "down" / "pic 2.png"
    first = cli("similar", flawed, query, "-o", index, "--json", *FAST, code=1)
    assert "broken.png" in first.stderr
    told = json.loads(first.stdout)
    assert told["index"] == str(index)
    assert [one["name"] for one in told["unreadable"]] == ["broken.png"]
    assert not (tmp_path / "index.hilbin.cache").exists()
    again = cli("similar", index, query, "--json", "--jobs", "1")
    assert json.loads(again.stdout)["queries"] == told["queries"]
    rough = cli("similar", index, query, "--approximate", "--json", "--jobs", "1")
    names = [one["name"] for one in json.loads(rough.stdout)["queries"][0]["neighbors"]]
    assert names[0] == "down/pic 2.png"
    assert "such as" in cli("cluster", index).stdout
    assert "copy.png" in cli("duplicates", index).stdout
    assert "19 images" in cli("montage", index, "-o", tmp_path / "wall.html").stdout
    assert "19 images" in cli("info", index).stdout


def test_cluster_writes_page_csv_and_copies(cli, photos, tmp_path):
    page, csv, copies = tmp_path / "page.html", tmp_path / "c.csv", tmp_path / "copies"
    done = cli(
        "cluster", photos, "--clusters", "3", "--report", page, "--csv", csv, "--sort-into",
        copies, "--json", *FAST,
    )  # fmt: skip
    clusters = json.loads(done.stdout)["clusters"]
    assert [one["size"] for one in clusters] == [6, 6, 6]
    assert all(len({name.split("/")[0] for name in one["members"]}) == 1 for one in clusters)
    assert clusters[0]["differences"][0]["effect"] > 0
    assert len(csv.read_text().splitlines()) == 19
    assert sorted(f.name for f in copies.iterdir()) == ["cluster 1", "cluster 2", "cluster 3"]
    assert len([*copies.rglob("*.png")]) == 18
    assert "Cluster 3" in page.read_text()
    assert not (tmp_path / "page.html.cache").exists()
    plain = cli("cluster", photos, "--clusters", "3", *FAST).stdout
    assert "cluster 1: 6 images, such as" in plain


def test_montage(cli, cli_json, flawed, tmp_path):
    wall = tmp_path / "wall.html"
    done = cli("montage", flawed, "-o", wall, *FAST, code=1)
    assert "cannot be read: broken.png" in done.stderr
    assert "19 images on a grid of 5 by 4" in done.stdout
    assert "across/pic 0.png" in wall.read_text()
    assert "--force" in cli("montage", flawed, "-o", wall, *FAST, code=2).stderr
    told = cli_json("montage", flawed, "-o", wall, "--force", *FAST, code=1)
    assert told["n_images"] == 19
    assert told["shape"] == [4, 5]


def test_a_cache_that_is_kept_resumes(cli, photos, tmp_path):
    options = ["--cache", tmp_path / "rows", "--keep-cache", *IMAGES, "--jobs", "1"]
    cli("montage", photos, "-o", tmp_path / "1.html", *options)
    again = cli("cluster", photos, *options)
    assert "resumed: 18 of 18 images" in again.stderr


def test_duplicates(cli, cli_json, flawed):
    done = cli("duplicates", flawed, "--quiet", code=1)
    assert any("copy.png" in line for line in done.stdout.splitlines())
    groups = cli_json("duplicates", flawed, "--quiet", code=1)["groups"]
    assert any({"copy.png", "across/pic 0.png"} <= {*group} for group in groups)


def test_no_duplicates(cli, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("width,height\n1,1\n9,7\n")
    done = cli("duplicates", table)
    assert done.stdout == ""
    assert "no duplicates" in done.stderr


def test_tables(cli, table, tmp_path):
    done = cli("similar", table, "--row", "1", "--id", "id", "--top", "2", "--quiet")
    assert [line.split("\t")[2] for line in done.stdout.splitlines()] == ["a", "c"]
    done = cli("similar", table, table, "--id", "id", "--top", "1", "--quiet", "--json")
    found = [q["neighbors"][0]["name"] for q in json.loads(done.stdout)["queries"]]
    assert found[0] == "a"
    assert found[2] == "c"
    assert {*found[1::2]} <= {"b", "d"}
    assert cli("duplicates", table, "--id", "id", "--quiet").stdout == "b\td\n"
    done = cli("cluster", table, "--id", "id", "--clusters", "2", "--report", tmp_path / "p.html")
    assert "2 rows" in done.stdout
    assert "width" in (tmp_path / "p.html").read_text()


def constant(folder):
    folder.mkdir()
    for i in range(3):
        Image.fromarray(np.full((20, 20, 3), 80, np.uint8)).save(folder / f"{i}.png")
    return folder


def one(folder):
    folder.mkdir()
    Image.fromarray(np.zeros((20, 20), np.uint8)).save(folder / "only.png")
    return folder


@pytest.mark.parametrize("verb", ["similar", "cluster", "montage", "duplicates"])
def test_an_empty_folder(cli, tmp_path, verb):
    (tmp_path / "empty").mkdir()
    more = {"similar": ["x.png"], "montage": ["-o", tmp_path / "w.html"]}.get(verb, [])
    done = cli(verb, tmp_path / "empty", *more, code=2)
    assert done.stderr.count("\n") == 1
    assert "no image" in done.stderr


def test_bad_input(cli, photos, table, trained, tmp_path):
    photo = photos / "down" / "pic 2.png"
    wall = ["-o", tmp_path / "w.html"]
    cases = [
        (["cluster", tmp_path / "nowhere"], "there is no such file or folder"),
        (["cluster", one(tmp_path / "one"), *FAST], "only one image"),
        (["montage", tmp_path / "one", *wall, *FAST], "only one image"),
        (["cluster", photos, "--clusters", "19", *FAST], "more than the 18 images"),
        (["cluster", constant(tmp_path / "same"), "--clusters", "2", *FAST], "only 1 is"),
        (["similar", photos, *FAST], "pass images to compare with"),
        (["similar", photos, photo, "--row", "1", *FAST], "--row is for tables"),
        (["similar", photos, tmp_path / "no.png", *FAST], "cannot be read"),
        (["similar", trained.output, photo], "with --among"),
        (["similar", trained.output, photo, "--among", tmp_path / "no"], "no such file or folder"),
        (["similar", trained.output, photo, "--among", photo], "neither a folder"),
        (["similar", trained.output, "--among", table], "needs the features of TableClassifier"),
        (["similar", trained.output, photo, "--among", photos, *FAST], "features are those of"),
        (["similar", table], "by --row"),
        (["similar", table, "--row", "9"], "has 4 rows, not 9"),
        (["similar", table, "--row", "1", "--network", "n.onnx"], "--network is for folders"),
        (["cluster", photos, "--id", "x"], "--id is for tables"),
        (["cluster", table, "--sort-into", tmp_path / "x"], "--sort-into copies images"),
        (["montage", table, *wall], "a montage is of images"),
        (["cluster", photos, "--features", "sofa"], "'sofa' is not known"),
        (["cluster", photo], "not a hilbin model; needed is a folder of images, a table, or"),
    ]
    for arguments, message in cases:
        done = cli(*arguments, code=2)
        assert message in done.stderr
        assert done.stdout == ""


def test_equal_images_are_one_cluster(cli, tmp_path):
    done = cli("cluster", constant(tmp_path / "same"), *FAST)
    assert done.stdout.startswith("cluster 1: ")
    assert done.stdout.count("\n") == 1
