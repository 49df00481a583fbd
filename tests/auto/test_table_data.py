"""Tables: what columns become, which are left out, files in all forms, and clear errors."""

import gzip
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from hilbin.auto.table_data import as_table, parsed, read_labeled, read_table
from hilbin.auto.table_encoder import TableEncoder
from hilbin.persist import load, save


def texts(*values):
    column = np.empty(len(values), object)
    column[:] = values
    return column


def encoded(X, **options):
    encoder = TableEncoder(**options).fit(X)
    return encoder.transform(X), encoder


# columns
@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (("1", " 2.5 ", "-3e2"), [1, 2.5, -300]),
        (("1,5", "2", "1.234,5"), [1.5, 2, 1234.5]),
        (("1,234", "0,5", "1234,567"), [1.234, 0.5, 1234.567]),
        (("1,234,567", "999", "12,345.5"), [1234567, 999, 12345.5]),
        (("", "NA", "7"), [np.nan, np.nan, 7]),
        ((1, None, 2.5), [1, np.nan, 2.5]),
        ((True, False, True), [1, 0, 1]),
        (("True", "false", "", " TRUE "), [1, 0, np.nan, 1]),
    ],
)
def test_numbers_are_understood(values, numbers):
    np.testing.assert_array_equal(parsed(texts(*values), "t", "'a'"), numbers)


@pytest.mark.parametrize(
    "values",
    [("red", "blue", "1"), ("true", "false", "maybe"), ("1_000", "x", "y"), ("1,2,3", "a", "b")],
)
def test_other_columns_are_categories(values):
    assert parsed(texts(*values), "t", "'a'").tolist() == [*values]


def test_a_comma_that_may_be_one_of_thousands_is_told():
    with pytest.warns(
        UserWarning, match="'12,345' in column 'a' is read as 12.345, with a decimal"
    ):
        found = parsed(texts("950", "12,345", "-1,200"), "t.csv", "'a'")
    assert found.tolist() == [950, 12.345, -1.2]


def test_a_text_among_numbers_is_an_error_that_names_the_cell():
    values = texts(*[str(i) for i in range(20)], "1o", "21")
    with pytest.raises(ValueError, match=r"t\.csv, row 21: '1o' in column 'width' is not a number"):
        parsed(values, "t.csv", "'width'")


def test_text_columns_become_one_column_per_category():
    frame = pd.DataFrame({"color": ["red", "blue", "red", "blue"], "size": [1, 2, 3, 9]})
    rows, encoder = encoded(frame)
    np.testing.assert_array_equal(rows, [[0, 1, 1], [1, 0, 2], [0, 1, 3], [1, 0, 9]])
    assert [*encoder.get_feature_names_out()] == ["color = blue", "color = red", "size"]
    assert encoder.input_columns_.tolist() == [0, 0, 1]
    other = pd.DataFrame({"color": ["red", "green", None], "size": [1, 1, 1]})
    said = r"DataFrame, row 2: 'green' in column 'color', and 1 more of its values, did not"
    with pytest.warns(UserWarning, match=said):
        rows = encoder.transform(other)
    np.testing.assert_array_equal(rows, [[0, 1, 1], [0, 0, 1], [0, 0, 1]])


def test_categories_are_rare_without_a_warning():
    """Where the training table has categories without a feature, others are not worth a word."""
    _, encoder = encoded(pd.DataFrame({"color": [*"aabbc"], "size": [1, 2, 3, 9, 4]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = encoder.transform(pd.DataFrame({"color": [*"ad"], "size": [1, 1]}))
    np.testing.assert_array_equal(rows, [[1, 0, 1], [0, 0, 1]])


def test_missing_values_have_a_column_of_their_own():
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0, 5.0], "b": ["x", None, "x", "y"]})
    rows, encoder = encoded(frame)
    assert [*encoder.get_feature_names_out()] == ["a", "a is missing", "b = x", "b is missing"]
    np.testing.assert_array_equal(rows[1], [3, 1, 0, 1])
    np.testing.assert_array_equal(rows[3], [5, 0, 0, 0])  # y occurs once


def test_missing_values_only_in_new_rows_are_filled():
    _, encoder = encoded(np.array([[1.0, 2.0], [3.0, 7.0], [2.0, 3.0]]))
    np.testing.assert_array_equal(encoder.transform([[np.nan, 4.0]]), [[2, 4]])


@pytest.mark.parametrize("kind", [np.float32, np.float64, int])
def test_arrays_of_numbers_stay_as_they_are(kind):
    X = (np.arange(12).reshape(4, 3) ** 2 % 7).astype(kind)
    rows, encoder = encoded(X)
    np.testing.assert_array_equal(rows, X)
    assert rows.dtype == (np.float64 if kind is int else kind)
    assert encoder.left_out_ == {}


def test_sparse_stays_sparse():
    X = sp.csr_array(np.eye(4))
    rows, encoder = encoded(X)
    assert sp.issparse(rows)
    np.testing.assert_array_equal(encoder.transform(np.eye(4)).toarray(), np.eye(4))
    rows, _ = encoded(X, drop=0)
    assert rows.shape == (4, 3)


def test_dense_model_takes_sparse_rows():
    X = np.arange(12.0).reshape(4, 3) ** 2 % 7
    _, encoder = encoded(X)
    np.testing.assert_array_equal(encoder.transform(sp.csr_array(X)), X)


# columns left out
def number_table(n=12):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.random(n), "b": rng.integers(0, 3, n)})


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("n", range(12), "an index"),
        ("n", [*range(12, 0, -1)], "an index"),
        ("Unnamed: 0", [*range(5, 17)], "an identifier"),
        ("patient_id", [*range(100, 112)], "an identifier"),
        ("who", [f"name {i}" for i in range(12)], "an identifier"),
        ("one", [7] * 12, "constant"),
        ("same", ["x"] * 12, "constant"),
        ("none", [None] * 12, "empty"),
    ],
)
def test_columns_that_say_nothing_are_left_out(name, values, reason):
    frame = number_table()
    frame.insert(0, name, values)
    rows, encoder = encoded(frame)
    assert rows.shape[1] == 2
    assert encoder.left_out_[name].startswith(reason)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("year", [*range(2000, 2012)]),
        ("x", [*np.linspace(0, 11.5, 12)]),
        ("width", [float(i) for i in range(11)] + [10.0]),
        ("fluid", [*range(5, 17)]),
    ],
)
def test_other_columns_stay(name, values):
    frame = number_table()
    frame[name] = values
    assert encoded(frame)[1].left_out_ == {}


def test_index_of_an_array_is_left_out():
    X = np.column_stack([np.arange(1, 31), np.random.default_rng(0).random((30, 2))])
    rows, encoder = encoded(X)
    assert rows.shape == (30, 2)
    assert [*encoder.left_out_] == ["column 1"]


def test_the_only_column_is_never_left_out():
    assert encoded(np.arange(30.0)[:, None])[0].shape == (30, 1)
    assert encoded(np.ones((30, 2)))[0].shape == (30, 2)


def test_drop_and_id():
    frame = number_table()
    frame["c"], frame["name"] = 1.5 * frame["a"], [*"aabbccddeeff"]
    rows, encoder = encoded(frame, drop=["b", 2], id="name")
    np.testing.assert_array_equal(rows[:, 0], frame["a"])
    assert encoder.left_out_ == {"b": "as asked", "c": "as asked", "name": "it names the rows"}
    with pytest.raises(ValueError, match="no column 'z'; there are 'a'"):
        TableEncoder(drop="z").fit(frame)
    with pytest.raises(ValueError, match="column 9 of 4"):
        TableEncoder(drop=9).fit(frame)
    with pytest.raises(ValueError, match="leave no column"):
        TableEncoder(drop=[0, 1, 2, 3]).fit(frame)


# files
CSV = "width,color,y\n1.5,red,a\n2.5,blue,b\n,red,a\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", CSV),
        ("t.csv", "\ufeff" + CSV),
        ("t.csv", CSV.replace("\n", "\r\n") + "\r\n"),
        ("t.csv", 'width;color;y\n"1,5";red;a\n"2,5";blue;b\n;red;a\n'),
        ("t.tsv", CSV.replace(",", "\t")),
        ("t.csv", CSV.replace(",", "\t")),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_text_files(tmp_path, name, text, packed):
    file = tmp_path / (name + ".gz" if packed else name)
    data = text.encode()
    file.write_bytes(gzip.compress(data) if packed else data)
    table, labels = read_labeled(file, "y")
    assert labels.tolist() == ["a", "b", "a"]
    rows, encoder = encoded(table)
    assert encoder.names_ == ["width", "color"]
    np.testing.assert_array_equal(rows[:, :2], [[1.5, 0], [2.5, 0], [2, 1]])
    np.testing.assert_array_equal(encoder.transform(file), rows)  # y is ignored


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"w": [1.5, None, 2.0], "c": ["x", "y", "x"], "y": [1, 2, 1]})
    frame.to_parquet(tmp_path / "t.parquet")
    table, labels = read_labeled(tmp_path / "t.parquet", "y")
    assert labels.tolist() == ["1", "2", "1"]
    assert [*encoded(table)[1].get_feature_names_out()] == ["w", "w is missing", "c = x"]


def test_archives_and_svmlight(tmp_path):
    X = np.eye(3)
    np.savez(tmp_path / "t.npz", X=X, y=[1, 2, 1])
    table, labels = read_labeled(tmp_path / "t.npz", "y")
    np.testing.assert_array_equal(table.columns, X)
    assert labels.tolist() == ["1", "2", "1"]
    (tmp_path / "t.svmlight").write_text("1 1:1\n2 2:1\n1 3:1\n")
    table, labels = read_labeled(tmp_path / "t.svmlight", None)
    np.testing.assert_array_equal(table.columns.toarray(), X)
    (tmp_path / "few.svmlight").write_text("1 1:1\n")
    encoder = TableEncoder().fit(table)
    assert encoder.transform(tmp_path / "few.svmlight").shape == (1, 3)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "a,b\n1,2\n3\n", r"t\.csv, row 2: 1 values for 2 columns"),
        ("t.csv", "a,b,a\n1,2,3\n", "the columns, each differently, but two have the name 'a'"),
        ("t.csv", "a,,\n1,2,3\n", "each differently, but two have no name"),
        ("t.csv", "", "the file is empty; its first line must name the columns"),
        ("t.csv", "a,b\n", "the table is empty: 0 rows"),
        ("t.parquet", "nonsense", "not a Parquet file"),
        ("t.npz", "nonsense", "not a NumPy archive"),
        ("t.svmlight", "1 a:b\n", "not an svmlight file"),
        ("t.jpg", "x", r"not a table \("),
        ("t.csv.gz", "not packed", "cannot be read"),
        ("t.csv", "a,b\n\udce9,2\n", "not a text in UTF-8"),
    ],
)
def test_bad_files(tmp_path, name, text, message):
    (tmp_path / name).write_text(text, errors="surrogateescape")
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / name)


def test_text_files_and_parquet_files_of_a_table_are_the_same(tmp_path):
    frame = pd.DataFrame({"ok": [True, False] * 3, "size": [1.0, 2, 4, 3, 5, 2.5]})
    days = pd.to_datetime(["2024-05-01", "2024-05-02"] * 3)
    for labels in (days, [1.0, 0.0] * 3, [1, 0] * 3, [True, False] * 3, ["a", "b"] * 3):
        frame["label"] = labels
        frame.to_csv(tmp_path / "t.csv", index=False)
        frame.to_parquet(tmp_path / "t.parquet")
        tables, found = zip(
            *(read_labeled(tmp_path / name, "label") for name in ("t.csv", "t.parquet")),
            strict=True,
        )
        np.testing.assert_array_equal(*found)
        encoder = TableEncoder().fit(tables[0])
        assert [*encoder.get_feature_names_out()] == ["ok", "size"]
        np.testing.assert_array_equal(*map(encoder.transform, tables))


def test_empty_lines_at_the_end_are_no_rows(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,u\n,v\n,\n\n,\n")
    table, labels = read_labeled(tmp_path / "t.csv", "y")
    assert labels.tolist() == ["u", "v"]
    assert table.n_rows == 2


def test_labels_with_a_point_and_no_fraction(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,1.0\n2,-2.00\n3,1.05\n4,v1.0\n")
    labels = read_labeled(tmp_path / "t.csv", "y")[1]
    assert labels.tolist() == ["1", "-2", "1.05", "v1.0"]


def test_files_that_lack_something(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,u\n2,\n")
    with pytest.raises(ValueError, match=r"row 2: there is no label"):
        read_labeled(tmp_path / "t.csv", "y")
    with pytest.raises(ValueError, match=r"no column 'z'; there are 'a', 'y'"):
        read_labeled(tmp_path / "t.csv", "z")
    with pytest.raises(ValueError, match="with target="):
        read_labeled(tmp_path / "t.csv", None)
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_table(tmp_path / "missing.csv")


# new rows
def test_columns_are_found_by_name_and_errors_name_them():
    frame = number_table()
    _, encoder = encoded(frame)
    turned = frame[["b", "a"]].assign(more=1)
    np.testing.assert_array_equal(encoder.transform(turned), frame.to_numpy())
    with pytest.raises(ValueError, match="no column 'b', which the model takes"):
        encoder.transform(frame[["a"]])
    with pytest.raises(ValueError, match="3 features, but TableEncoder is expecting 2"):
        encoder.transform(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"row 2: 'big' in column 'a' is not a number"):
        encoder.transform(pd.DataFrame({"a": [1, "big"], "b": [1, 2]}))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_values_are_refused(value):
    X = np.array([[1.0, 2.0], [3.0, value], [4.0, 1.0]])
    with pytest.raises(ValueError, match=r"row 2: -?inf in column 'column 2' is not finite"):
        encoded(X)


def test_dates_and_nested_cells_are_refused():
    with pytest.raises(ValueError, match="column 'd' holds dates or times"):
        encoded(pd.DataFrame({"d": pd.to_datetime(["2020-01-01", "2020-01-03"])}))
    with pytest.raises(TypeError, match="argument must be"):
        as_table(np.array([[{"a": 1}, 1]], object))
    with pytest.raises(ValueError, match="two columns have the name 'a'"):
        as_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_many_categories_are_bounded():
    values = [f"c{i // 2}" for i in range(600)]
    rows, encoder = encoded(pd.DataFrame({"c": values, "x": np.arange(600) % 7}))
    assert rows.shape == (600, 101)
    assert encoder.left_out_ == {}


def test_encoders_are_saved(tmp_path):
    frame = number_table()
    frame["c"] = [*"xxyyzzxxyyz", None]
    rows, encoder = encoded(frame)
    save(encoder, tmp_path / "e.hilbin")
    np.testing.assert_array_equal(load(tmp_path / "e.hilbin").transform(frame), rows)
