"""Tables of all four kinds, in and out."""

import csv

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from hilbin import TableClassifier, persist
from hilbin.auto import candidates
from hilbin.auto.table_data import read_labeled

KERNELS = [k for k in candidates.KERNELS if k != "auto"]
COLUMNS = ["wide", "with, comma", "third"]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = np.repeat([3, 5, 10], 20)
    X = rng.uniform(size=(60, 3)).round(3) + 0.001
    X[np.arange(60), np.repeat([0, 1, 2], 20)] += 1
    return X, y


def write(path, X, y):
    if path.suffix == ".csv":
        lines = ['wide,kind,"with, comma",third']
        lines += [f"{a},{label},{b},{c}" for (a, b, c), label in zip(X, y, strict=True)]
        path.write_text("\n".join(lines))
    elif path.suffix == ".npz":
        np.savez(path, X=X, kind=y)
    elif path.suffix == ".parquet":
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        columns = dict(zip(COLUMNS, X.T, strict=True)) | {"kind": y.astype(str)}
        parquet.write_table(pa.table(columns), path)
    else:
        dump_svmlight_file(X, y, str(path), zero_based=False)


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet", ".svmlight", ".libsvm", ".txt"])
def test_train_and_predict(data, tmp_path, cli, cli_json, suffix):
    table, model = tmp_path / f"data{suffix}", tmp_path / "m.hilbin"
    write(table, *data)
    target = [] if suffix in (".svmlight", ".libsvm", ".txt") else ["--target", "kind"]
    about = cli_json("train", table, "-o", model, *target)
    assert about["kind"] == "table"
    assert about["classes"] == ["10", "3", "5"]
    assert about["data"]["per_class"] == {"10": 20, "3": 20, "5": 20}
    assert about["cv"]["accuracy"] > 0.9
    named = suffix in (".csv", ".parquet")
    assert about["table"]["columns"] == (COLUMNS if named else None)
    assert about["table"]["n_features"] == 3
    found = cli_json("predict", model, table)["predictions"]
    assert [p["path"] for p in found] == [f"{table}:{i}" for i in range(1, 61)]
    assert np.mean([p["label"] == str(y) for p, y in zip(found, data[1], strict=True)]) > 0.9
    loaded = persist.load(model)
    assert isinstance(loaded, TableClassifier)
    assert loaded.predict(table).tolist() == [p["label"] for p in found]
    assert "3 classes of rows of a table" in cli("info", model).stdout


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("low", [0, -2])
def test_kernels(data, tmp_path, cli_json, kernel, low):
    table = tmp_path / "data.npz"
    write(table, data[0] + low, data[1])
    words = ("train", table, "-o", tmp_path / "m.hilbin", "--target", "kind", "--kernel", kernel)
    assert cli_json(*words)["cv"]["accuracy"] > 0.85


def test_columns_go_by_name(data, tmp_path, cli, cli_json):
    table, other, model = (tmp_path / n for n in ("a.csv", "b.csv", "m.hilbin"))
    write(table, *data)
    cli("train", table, "-o", model, "--target", "kind")
    X, _ = data
    lines = ['third,note,"with, comma",wide', *(f"{c},x,{b},{a}" for a, b, c in X)]
    other.write_text("\n".join(lines))
    first, second = (cli_json("predict", model, t)["predictions"] for t in (table, other))
    assert [p["score"] for p in first] == [p["score"] for p in second]
    other.write_text("wide,third\n1,2\n")
    result = cli("predict", model, other, code=2)
    assert "no column 'with, comma', which the model takes" in result.stderr


def test_wrong_tables_for_a_model(data, tmp_path, cli, photos):
    table, model = tmp_path / "data.npz", tmp_path / "m.hilbin"
    write(table, *data)
    cli("train", table, "-o", model, "--target", "kind")
    np.savez(tmp_path / "wide.npz", X=np.ones((2, 4)))
    result = cli("predict", model, tmp_path / "wide.npz", code=2)
    assert "has 4 features, but TableEncoder is expecting 3" in result.stderr
    (tmp_path / "wide.svmlight").write_text("1 7:1\n")
    assert "wide.svmlight" in cli("predict", model, tmp_path / "wide.svmlight", code=2).stderr
    assert "not a table" in cli("predict", model, photos, code=2).stderr
    result = cli("predict", model, table, "--sort-into", tmp_path / "x", code=2)
    assert "this model is of tables" in result.stderr
    assert "this model is of tables" in cli("eval", model, photos, code=2).stderr
    (tmp_path / "few.csv").write_text("a,b\n1,2\n")
    assert "this model" not in cli("eval", model, tmp_path / "few.csv", code=2).stderr


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.csv", "", "name the columns"),
        ("a.csv", "a,a,y\n1,2,3\n", "each differently"),
        ("a.csv", "a,b,y\n", "empty"),
        ("a.csv", "y\n1\n2\n", "no column but 'y'"),
        ("a.csv", "a,b\n1,2\n", "no column 'y'; there are 'a', 'b'"),
        ("a.csv", "a,y\n1,x\n2\n", "row 2: 1 values for 2 columns"),
        ("a.csv", "a,y\n1,x\n2,x\n3,z\n4,z\n5,x\nred,z\n", "row 6: 'red'"),
        ("a.csv", "a,y\n1,x\ninf,z\n", "row 2: inf"),
        ("a.csv", "a,y\n1,x\n2,\n", "row 2: there is no label"),
        ("a.csv", "a,y\n1,x\n2,x\n", "only the class 'x'"),
        ("a.csv", "a,y\n1,0.5\n2,1.25\n", "fractions"),
        ("a.npz", "text", "not a NumPy archive"),
        ("a.parquet", "text", "not a Parquet file"),
        ("a.svmlight", "text", "not an svmlight file"),
        ("a.xlsx", "text", "neither a folder nor a table"),
    ],
)
def test_bad_tables(tmp_path, cli, name, content, complaint):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    table = tmp_path / name
    table.write_text(content)
    words = ("train", table, "-o", tmp_path / "m.hilbin", "--target", "y")
    result = cli(*words, code=2)
    assert complaint in result.stderr
    assert name in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_missing_values_have_a_feature_of_their_own(tmp_path, cli_json):
    table = tmp_path / "a.csv"
    lines = [f"{i % 5},{'' if i % 2 else 1.5},{'ab'[i % 2]}" for i in range(40)]
    table.write_text("\n".join(["x,maybe,y", *lines]))
    found = cli_json("train", table, "-o", tmp_path / "m.hilbin", "--target", "y")
    assert found["cv"]["accuracy"] == 1
    why = cli_json("explain", tmp_path / "m.hilbin", table, "--row", 2)
    assert why["features"][0]["feature"] == "maybe is missing"


def test_bad_archives(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=np.ones((3, 2)), y=np.ones(2))
    with pytest.raises(ValueError, match=r"shape \(2,\) for 3 rows"):
        read_labeled(path, "y")
    with pytest.raises(ValueError, match="no array 'z'; there are X, y"):
        read_labeled(path, "z")
    np.savez(path, A=np.ones((3, 2)), B=np.ones((3, 2)), y=np.arange(3))
    with pytest.raises(ValueError, match="found A, B"):
        read_labeled(path, "y")
    np.savez(path, X=np.array([["a"]]), y=np.arange(1))
    with pytest.raises(ValueError, match="not numbers"):
        read_labeled(path, "y")
    np.savez(path, X=np.array([[object()]]), y=np.arange(1))
    with pytest.raises(ValueError, match="plain arrays"):
        read_labeled(path, "y")


def test_the_place_of_labels_must_be_said(data, tmp_path, cli):
    for suffix in (".npz", ".csv"):
        write(tmp_path / f"a{suffix}", *data)
        result = cli("train", tmp_path / f"a{suffix}", "-o", tmp_path / "m", code=2)
        assert "--target" in result.stderr


def test_labels_are_texts(tmp_path):
    path = tmp_path / "a.svmlight"
    path.write_text("-1 1:1\n2.0 1:2\n3 2:1\n")
    assert read_labeled(path, None)[1].tolist() == ["-1", "2", "3"]
    np.savez(tmp_path / "a.npz", X=np.ones((2, 1)), y=[True, False])
    assert read_labeled(tmp_path / "a.npz", "y")[1].tolist() == ["True", "False"]


@pytest.fixture
def named(tmp_path, data):
    """A table whose rows have names, and a note."""
    table = tmp_path / "named.csv"
    lines = ["name,wide,kind,second,third,note"]
    for i, ((a, b, c), label) in enumerate(zip(*data, strict=True)):
        lines.append(f"row-{i},{a},{label},{b},{c},seen")
    table.write_text("\n".join(lines))
    return table


def test_rows_keep_their_id(named, tmp_path, cli, cli_json):
    model, written = tmp_path / "m.hilbin", tmp_path / "out.csv"
    words = ("--target", "kind", "--id", "name", "--drop", "note")
    about = cli_json("train", named, "-o", model, *words)
    assert about["left_out"] == {"note": "as asked", "name": "it names the rows"}
    assert about["command"].endswith("--target kind --id name --drop note")
    found = cli_json("predict", model, named)["predictions"]
    assert [p["id"] for p in found] == [f"row-{i}" for i in range(60)]
    assert cli("predict", model, named, "--csv", written).stdout.split("\t")[1] == "row-0"
    assert written.read_text().startswith("path,id,label,score,probability\n")
    mistaken = named.read_text().splitlines()
    mistaken[8] = mistaken[8].replace(",3,", ",5,", 1)
    named.write_text("\n".join(mistaken))
    cli("eval", model, named, "--csv", written)
    first = next(csv.DictReader(written.read_text().splitlines()))
    assert (first["id"], first["true"], first["predicted"]) == ("row-7", "5", "3")
    named.write_text("wide,second,third\n1,2,3\n")
    assert cli_json("predict", model, named)["predictions"][0]["id"] is None


def test_columns_that_are_not_there(named, data, tmp_path, cli):
    words = ("train", named, "-o", tmp_path / "m.hilbin", "--target", "kind")
    assert "no column 'nom'; there are 'name', 'wide'" in cli(*words, "--id", "nom", code=2).stderr
    assert "no column 'x'" in cli(*words, "--drop", "x", code=2).stderr
    write(tmp_path / "a.npz", *data)
    words = ("train", tmp_path / "a.npz", "-o", tmp_path / "m.hilbin", "--target", "kind")
    assert "no column 'n'; there are no named columns" in cli(*words, "--id", "n", code=2).stderr


def test_models_of_table_classifier(named, tmp_path, cli, cli_json):
    """What Python saved is a model of the command line too."""
    model, page = tmp_path / "m.hilbin", tmp_path / "page.html"
    trained = TableClassifier(id="name", drop="note").fit(named, target="kind")
    trained.save(model)
    found = cli_json("predict", model, named, "--top", 3)["predictions"]
    assert [p["label"] for p in found] == trained.predict(named).tolist()
    assert [p["id"] for p in found] == [f"row-{i}" for i in range(60)]
    expected = np.sort(trained.predict_proba(named), axis=1)[:, ::-1]
    assert np.allclose([p["probabilities"] for p in found], expected)
    line = cli("predict", model, named).stdout.splitlines()[0].split("\t")
    assert line[2:] == [found[0]["label"], f"{found[0]['probabilities'][0]:.1%}"]
    assert "3 classes of rows of a table" in cli("info", model).stdout
    outcome = cli_json("eval", model, named, "--report", page)
    assert outcome["accuracy"] == trained.score(named, np.repeat(["3", "5", "10"], 20))
    assert f"{named.name}:1, row-0" in page.read_text()
    why = cli_json("explain", model, named, "--row", 2)
    assert why["predicted"] == found[1]["label"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_class_weight(data, tmp_path, cli, kernel):
    X, y = data
    few = np.r_[0:20, 20:24, 40:60]
    write(tmp_path / "a.npz", X[few], y[few])
    models = [tmp_path / "plain.hilbin", tmp_path / "balanced.hilbin"]
    words = ("train", tmp_path / "a.npz", "--target", "kind", "--kernel", kernel)
    cli(*words, "-o", models[0])
    cli(*words, "-o", models[1], "--class-weight", "balanced")
    plain, balanced = (persist.load(m) for m in models)
    rare = list(plain.classes_).index("5")
    middle = np.full((1, 3), X.mean())
    higher = (m.decision_function(middle)[0, rare] for m in (balanced, plain))
    assert next(higher) > next(higher)
    said = cli(*words, "-o", tmp_path / "m", "--class-weight", "heavy", code=2).stderr
    assert "--class-weight: 'heavy' is not 'balanced'" in said


def test_explanations_of_rows_are_written(named, tmp_path, cli, cli_json):
    model, output = tmp_path / "m.hilbin", tmp_path / "why.csv"
    cli("train", named, "-o", model, "--target", "kind", "--id", "name", "--drop", "note")
    why = cli_json("explain", model, named, "--row", 3, "-o", output)
    assert why["picture"] is None
    assert why["csv"] == str(output)
    lines = output.read_text().splitlines()
    assert lines[0] == "feature,value,adds"
    assert sum(float(line.split(",")[2]) for line in lines[1:]) == pytest.approx(why["shares"])
    assert len(lines) == 4
