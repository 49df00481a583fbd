"""Files that were made to do harm: their checksums are right, what they say is not."""

import hashlib
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from forging import pack
from pictures import drawn
from sklearn.decomposition import PCA
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, RidgeClassifierCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier

from hilbin.auto import TableClassifier
from hilbin.estimators import (
    HistogramBinner,
    IntersectionSVC,
    MapRidgeClassifier,
    ScoreCalibration,
    StreamKMeans,
    StreamPCA,
)
from hilbin.images import BagOfWords
from hilbin.kernels import Chi2, Exponential
from hilbin.maps import AdditiveMap, FourierMap, ProductQuantizer
from hilbin.persist import (
    ModelFileError,
    UnsupportedModelError,
    container,
    info,
    load,
    save,
)

START = container.START


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.hilbin"


def model():
    return make_pipeline(StandardScaler(), HistogramBinner(4, negative="shift")).fit(
        np.arange(12.0).reshape(4, 3)
    )


def unpacked(path):
    """The header of a file, and what follows it."""
    content = path.read_bytes()
    length = int.from_bytes(content[16:24], "little")
    return json.loads(content[START : START + length]), content[START + length :]


def forged(path, nodes, model=None, arrays=(), data=b""):
    header = {"class": "x", "versions": {"scikit-learn": "1.9"}, "metadata": {}}
    model = [len(nodes) - 1] if model is None else model
    pack(path, {**header, "nodes": nodes, "model": model, "arrays": list(arrays)}, data)


def refused(path, match):
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_a_newer_format(path):
    pack(path, {"anything": 1}, version=7)
    refused(path, "format 7.*newer hilbin")
    with pytest.raises(ModelFileError, match="format 7"):
        info(path)


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_a_pickle_inside_is_not_run(path, tmp_path):
    bomb = pickle.dumps(Bomb(tmp_path / "ran"))
    path.write_bytes(bomb)
    refused(path, "is a pickle")
    forged(path, [["bytes", bomb.hex()]])
    assert load(path) == bomb  # bytes are bytes
    data = bomb + bytes(-len(bomb) % 64)
    for dtype in ("|O", "|O8", "O", "<V8", "|V16", "f8, O", "<M8[ns]", "|T16", "|u1, |u1"):
        forged(path, [["array", 0]], arrays=[[dtype, [len(data) // 8], "C"]], data=data)
        refused(path, "malformed")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "posix.system",
        "builtins.eval",
        "builtins.object",
        "subprocess.Popen",
        "hilbin.persist.load",
        "hilbin.estimators.os.system",
        "hilbin.estimators.compare_with_linear",
        "hilbin.estimators.importlib",
        "hilbin.kernels.NotPositiveDefiniteWarning",
        "sklearn.svm.os",
        "sklearn.pipeline.make_pipeline",
        "sklearn.ensemble.RandomForestClassifier",
        "user.Mine",
        "",
        "..",
        None,
        7,
    ],
)
def test_other_classes_are_refused_by_name(path, name):
    forged(path, [["object", name, ["args", "echo"]]])
    refused(path, "names the class")
    if name:
        refused(path, str(name))


def test_nothing_is_imported_for_a_file(path):
    forged(path, [["object", "antigravity.Something"], ["object", "this.Zen"]])
    code = f"""
import sys
from hilbin.persist import ModelFileError, load
before = set(sys.modules)
try:
    load({str(path)!r})
except ModelFileError:
    print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "nodes",
    [
        [["call", "os.system", "echo"]],
        [["list", [0]]],
        [["list", [1]], ["list", [0]]],
        [["list", [-1]]],
        [["list", [True]]],
        [["list", [0, 0]]],
        [["list", {"a": 1}]],
        [["dict", [[0], 1]]],
        [["list"], ["dict", [[0], 1]]],
        [["array", 0]],
        [["array", "x"]],
        [["float", "1e5"]],
        [["int", "9**9**9"]],
        [["int", "0x" + "f" * 8 + "q"]],
        [["bytes", "xyz"]],
        [["scalar", "<f8", "00"]],
        [["scalar", "|O", "00" * 8]],
        [["dtype", "O"]],
        [["dtype", "<f8,<f8"]],
        [["objects", [2], 1]],
        [["list"], ["objects", [1], [0]]],
        [["sparse", "csr_array", [1, 1], 1, 2, 3]],
        [["sparse", "eval", [1, 1], 1, 2, 3]],
        [["operator", 1]],
        [["random state", 1, 2, 3, 4.0]],
        [["slice", 1]],
        [["object"]],
        [["object", "hilbin.kernels.Chi2", [1, 2]]],
        [["object", "hilbin.kernels.Chi2", ["a"]]],
        [[]],
        [7],
        7,
        {"a": 1},
        None,
    ],
    ids=repr,
)
def test_malformed_nodes(path, nodes):
    header = {"class": "x", "versions": {"scikit-learn": "1.9"}, "metadata": {}, "arrays": []}
    pack(path, {**header, "nodes": nodes, "model": [0]})
    refused(path, "malformed")


def test_deep_tuples_do_not_end_the_process(path):
    """To hash them would overflow the stack."""
    deep = [["tuple"], *(["tuple", [i]] for i in range(200_000))]
    forged(path, [*deep, ["set", [len(deep) - 1]]])
    refused(path, "nested too deeply")


@pytest.mark.parametrize("missing", ["versions", "nodes", "model", "arrays"])
def test_missing_parts(path, missing):
    header = {"class": "x", "versions": {"scikit-learn": "1"}, "metadata": {}, "arrays": []}
    header |= {"nodes": [], "model": 1}
    pack(path, header)
    assert load(path) == 1
    del header[missing]
    pack(path, header)
    refused(path, "malformed")


def test_headers_that_are_no_header(path):
    pack(path, {})
    with pytest.raises(ModelFileError, match="malformed"):
        info(path)
    for text in (b"[]", b"{", b'{"a": NaN}', b"[" * 100_000, b"\xff"):
        text += b" " * (-len(text) % 64)
        given = (container.MAGIC, container.VERSION, 0, len(text), START + len(text))
        preamble = container.PREAMBLE.pack(*given)
        path.write_bytes(preamble + hashlib.sha256(preamble + text).digest() + text)
        refused(path, "malformed")


@pytest.mark.parametrize(
    "described",
    [
        ["<f8", [2**40], "C"],
        ["<f8", [2**62, 2**62], "C"],
        ["<U999999999", [2], "C"],
        ["<f8", [-1], "C"],
        ["<f8", [1.5], "C"],
        ["<f8", "x", "C"],
        ["<f8", [True], "C"],
        ["<f8", [1], "A"],
        ["<f8", [1] * 70, "C"],
        ["<f8", [0, 2**62], "C"],
        [8, [1], "C"],
        ["<f8"],
    ],
    ids=repr,
)
def test_absurd_arrays_take_no_memory(path, described):
    forged(path, [["array", 0]], arrays=[described], data=bytes(64))
    refused(path, "malformed")


def test_absurd_lengths_take_no_memory(path):
    save(model(), path)
    content = bytearray(path.read_bytes())
    content[16:24] = (2**63).to_bytes(8, "little")
    path.write_bytes(content)
    refused(path, "corrupted")


def test_values_that_are_none_of_their_dtype(path):
    forged(path, [["array", 0]], arrays=[["|b1", [64], "C"]], data=bytes([2] * 64))
    refused(path, "truth value")
    forged(path, [["array", 0]], arrays=[["<U1", [16], "C"]], data=bytes([255] * 64))
    refused(path, "character")


def test_sparse_matrices_are_checked(path):
    save(sp.csr_array(np.eye(3)), path)
    header, data = unpacked(path)
    broken = bytearray(data)
    indices = data.index(np.arange(3, dtype=np.int32).tobytes())
    broken[indices : indices + 4] = (99).to_bytes(4, "little")
    pack(path, header, bytes(broken))
    refused(path, "malformed")


def rewritten(path, change):
    """The file with its header changed, and its checksums right."""
    header, data = unpacked(path)
    change(header)
    pack(path, header, data)


def attributes(header, name):
    """The attributes of the first object of a class."""
    return next(n for n in header["nodes"] if n[:2] == ["object", name])[2:]


@pytest.mark.parametrize("n_bins", [4, None])
def test_forged_lookups_are_refused(path, n_bins):
    """The core would read beyond them."""
    X = np.random.default_rng(0).uniform(size=(300, 3))
    strategy = "uniform" if n_bins is None else "quantile"
    fitted = IntersectionSVC(n_bins=n_bins, strategy=strategy).fit(X, X[:, 0] > 0.5)
    original = vars(fitted._lookup).copy(), vars(fitted.binner_).copy()
    forgeries = [(0, "offsets", fitted._lookup.offsets + 1000)]
    forgeries += [(0, "offsets", fitted._lookup.offsets[::-1].copy())]
    forgeries += [(0, "offsets", fitted._lookup.offsets[:-1])]
    forgeries += [(0, "offsets", fitted._lookup.offsets.astype(np.float64))]
    forgeries += [(0, "lookup", fitted._lookup.lookup[:-1])]
    forgeries += [(0, "binner", None)]
    forgeries += [(1, "low_", np.zeros(2)), (1, "scale_", "x")]
    if n_bins is None:
        forgeries += [(0, "levels", np.zeros(1)), (0, "levels", None)]
    else:
        forgeries += [(1, "last_", np.array([4, 4, 70])), (1, "last_", np.array([4, 4, -1]))]
        forgeries += [(1, "offsets_", fitted.binner_.offsets_ + 1), (1, "edges_", np.zeros(1))]
    for which, name, value in forgeries:
        target = (fitted._lookup, fitted.binner_)[which]
        setattr(target, name, value)
        save(fitted, path)
        refused(path, "malformed")
        fitted._lookup.__dict__.update(original[0])
        fitted.binner_.__dict__.update(original[1])
    fitted.n_features_in_ = 4
    save(fitted, path)
    refused(path, "malformed")


def test_forged_probabilities_are_refused(path):
    random = np.random.default_rng(0)
    scores = random.normal(size=(6000, 3))
    y = (2 * scores + random.gumbel(size=scores.shape)).argmax(axis=1)
    forgeries = [("coef_", np.zeros(2)), ("intercept_", "x"), ("method_", "os"), ("classes_", 3)]
    forgeries += [("classes_", np.arange(2))]
    for name, value in forgeries:
        calibration = ScoreCalibration().fit(scores, y)
        setattr(calibration, name, value)
        save(calibration, path)
        refused(path, "malformed")
    for name in ("scores_", "probabilities_", "offsets_"):
        calibration = ScoreCalibration("isotonic").fit(scores, y)
        save(calibration, path)
        np.testing.assert_array_equal(
            load(path).predict_proba(scores), calibration.predict_proba(scores)
        )
        setattr(calibration, name, getattr(calibration, name)[:-1])
        save(calibration, path)
        refused(path, "malformed")


def test_a_file_cannot_replace_methods(path):
    """An attribute of the object would be found before the method of its class."""
    fitted = HistogramBinner(4).fit(np.arange(12.0).reshape(4, 3))
    for name in ("_check_state", "transform", "__class__"):
        save(fitted, path)
        rewritten(path, lambda header, name=name: _binner(header).append([name, 1]))
        refused(path, f"malformed: {name} is an attribute that would hide")


def _binner(header):
    return next(
        n for n in header["nodes"] if n[:2] == ["object", "hilbin.estimators.HistogramBinner"]
    )


def test_more_columns_than_bins(path):
    """Rows with a column that has no bins would read beyond the bins of the last."""
    X = np.arange(12.0).reshape(4, 3)
    fitted = HistogramBinner(4).fit(X)
    fitted.n_features_in_ = 4000
    save(fitted, path)
    refused(path, "n_features_in_")
    wide = sp.csr_array((np.ones(1), ([0], [3999])), shape=(1, 4000))
    for rows in (wide, wide.toarray()):
        with pytest.raises(ValueError, match="4000 columns, but the bins are those of 3"):
            fitted.transform(rows)


def test_codes_beyond_the_words(path):
    X = np.random.default_rng(0).normal(size=(40, 4))
    codes = ProductQuantizer(part_size=2, n_words=5, random_state=0).fit_transform(X)
    save(codes, path)
    np.testing.assert_array_equal(load(path).decode(), codes.decode())
    codes.groups[0, 7, 1] = 200
    save(codes, path)
    refused(path, "the code 200, but there are 5 words")
    with pytest.raises(ValueError, match="beyond the words"):
        codes.decode()


def test_a_lookup_without_columns(path):
    X = np.random.default_rng(0).uniform(size=(30, 3))
    fitted = IntersectionSVC(n_bins=4).fit(X, X[:, 0] > 0.5)
    for name, value in (("lookup", fitted._lookup.lookup[:, :0].copy()), ("n_outputs", 0)):
        forged_model = load_changed(fitted, path, "_lookup", name, value)
        assert "malformed" in forged_model


def load_changed(fitted, path, part, name, value):
    """What loading says about a model with an attribute of a part changed."""
    target = getattr(fitted, part)
    original = getattr(target, name)
    setattr(target, name, value)
    save(fitted, path)
    setattr(target, name, original)
    with pytest.raises(ModelFileError) as caught:
        load(path)
    return str(caught.value)


FITTED = {
    "classes": (lambda: MapRidgeClassifier(), "classes_"),
    "table": (lambda: TableClassifier(n_folds=2), "classes_"),
    "transformers": (lambda: MapRidgeClassifier(), "transformers_"),
    "components": (lambda: StreamPCA(2), "transformers_"),
}


@pytest.mark.parametrize("name", FITTED)
def test_what_fit_leaves_is_never_none(path, name):
    """An attribute that is there and None is not that of a model that is not fitted."""
    make, attribute = FITTED[name]
    X = np.random.default_rng(0).uniform(size=(30, 3))
    fitted = make().fit(X, np.arange(30) % 3)
    setattr(fitted, attribute, None)
    save(fitted, path)
    refused(path, attribute)


@pytest.mark.parametrize("kind", ["orthogonal", "structured"])
def test_a_fitted_map_whose_frequencies_are_all_gone(path, kind):
    fitted = FourierMap(Exponential(Chi2()), n_components=4, kind=kind, random_state=0).fit(
        np.eye(4)
    )
    fitted.frequencies_ = fitted.signs_ = fitted.rows_ = None
    save(fitted, path)
    refused(path, "frequencies_ are missing")


def test_a_classifier_whose_last_step_gives_no_scores(path):
    X = np.random.default_rng(0).uniform(size=(30, 3))
    fitted = TableClassifier(n_folds=2).fit(X, np.arange(30) % 3)
    fitted.model_ = Pipeline([*fitted.model_.steps[:-1], ("classifier", StandardScaler().fit(X))])
    save(fitted, path)
    refused(path, "scores")


@pytest.mark.parametrize("shape", [(2, 3, 1), (4, 2), (3,)])
def test_typical_rows_of_a_table_have_its_columns(path, shape):
    X = np.random.default_rng(0).uniform(size=(30, 3))
    fitted = TableClassifier(kernel="gaussian", n_folds=2).fit(X, np.arange(30) % 3)
    assert fitted.background_.shape[1] == 3
    save(fitted, path)
    assert load(path).background_.shape == fitted.background_.shape
    fitted.background_ = np.zeros(shape)
    save(fitted, path)
    refused(path, "background_")


def test_offsets_whose_differences_wrap_around(path):
    X = np.random.default_rng(0).uniform(size=(30, 6))
    fitted = IntersectionSVC(n_bins=4).fit(X, X[:, 0] > 0.5)
    offsets = fitted._lookup.offsets.copy()
    offsets[4], offsets[5] = np.iinfo(np.int64).min, -1
    assert (np.diff(offsets) >= 1).all()
    assert "offsets is out of range" in load_changed(fitted, path, "_lookup", "offsets", offsets)


@pytest.mark.parametrize(
    "model", [LogisticRegression(), LinearSVC(), RidgeClassifier(), Ridge()], ids=repr
)
def test_linear_models_of_sklearn_have_an_intercept_for_every_row(path, model):
    X, y = np.random.default_rng(0).uniform(size=(30, 4)), np.arange(30) % 3
    fitted = model.fit(X, y if hasattr(model, "decision_function") else np.eye(3)[y])
    save(fitted, path)
    np.testing.assert_array_equal(load(path).predict(X), fitted.predict(X))
    fitted.coef_ = fitted.coef_[0]
    save(fitted, path)
    refused(path, "intercept_ is not one of coef_")


@pytest.mark.parametrize(
    ("make", "attribute", "value"),
    [
        (lambda: RidgeClassifierCV(), "classes_", ("a", "b")),
        (lambda: RidgeClassifierCV(), "intercept_", np.zeros((1, 1))),
        (lambda: PCA(2), "_fit_svd_solver", np.arange(3.0)),
        (lambda: StandardScaler(), "_sklearn_output_config", 1.5),
    ],
    ids=["classes", "intercept", "solver", "output"],
)
def test_odd_attributes_of_sklearn_are_refused(path, make, attribute, value):
    X = np.random.default_rng(0).random((30, 3))
    fitted = make().fit(X, np.arange(30) % 3)
    save(fitted, path)
    load(path)
    if isinstance(getattr(type(fitted), attribute, None), property):
        pytest.skip("this version of scikit-learn computes it")
    setattr(fitted, attribute, value)
    save(fitted, path)
    refused(path, attribute.removeprefix("_fit_"))


def test_centers_of_other_columns_are_named(path):
    X = np.random.default_rng(0).random((30, 3))
    fitted = StreamKMeans(2).fit(X)
    fitted.cluster_centers_ = np.zeros((2, 5))
    save(fitted, path)
    with pytest.raises(ValueError, match="cluster_centers_"):
        load(path).predict(X)


def test_forged_parameters_of_transformers_are_refused(path):
    union = FeatureUnion([("one", StandardScaler())]).fit(np.eye(3))
    union.n_jobs = np.arange(3)
    save(union, path)
    refused(path, "n_jobs is no number")
    bag = BagOfWords(n_words=2, random_state=0).fit([drawn(0, (40, 48))])
    bag.n_words = 1
    save(bag, path)
    refused(path, "codebook_ has not n_words words")


@pytest.mark.parametrize(
    "model", [SVC(), SVR(), NuSVC(), OneHotEncoder(), DecisionTreeClassifier()], ids=repr
)
def test_compiled_models_of_sklearn_are_not_on_the_list(path, model):
    """LIBSVM and trees trust their arrays; the error says what a file may hold instead."""
    with pytest.raises(
        UnsupportedModelError, match=r"of scikit-learn can be: .*LinearSVC.*Pipeline"
    ):
        save(model, path)
    name = f"sklearn.{type(model).__module__.split('.')[1]}.{type(model).__name__}"
    forged(path, [["object", name, ["_impl", "epsilon_svr"]]])
    refused(path, "names the class .* it knows .*LinearSVC")


def test_row_pointers_that_wrap_around(path):
    """SciPy's own check converts them to 32 bits before it looks at them."""
    good = sp.csr_array(np.eye(3))
    good.indptr = np.array([0, 1, 2**32 + 2, 3])
    good.indices = good.indices.astype(np.int64)
    save(good, path)
    refused(path, "row 1")


def test_shared_tuples_take_no_time(path):
    """To hash them would take two to the power of their depth."""
    nodes = [["tuple", 1], *(["tuple", [i], [i]] for i in range(60))]
    forged(path, [*nodes, ["set", [len(nodes) - 1]]])
    refused(path, "contain each other too many times")


def test_a_kernel_is_as_good_as_a_new_one(path):
    save(Exponential(Chi2(), gamma=2.0), path)
    for value in (-1.0, "x", None):
        rewritten(path, lambda header, v=value: header["nodes"][-1][-1].__setitem__(1, v))
        refused(path, "gamma")


def test_forged_random_states_are_refused(path):
    save(np.random.RandomState(0), path)
    rewritten(path, lambda header: header["nodes"][-1].__setitem__(2, 10**6))
    refused(path, "random state")


def test_a_cache_in_a_file_is_not_used(path):
    fitted = AdditiveMap(Chi2(), 2, method="eigen").fit([[0.1, 0.9], [0.5, 0.2]])
    save(fitted, path)

    def add_cache(header):
        place = next(i for i, n in enumerate(header["nodes"]) if n[1:2] == ["hilbin.maps.Cubics"])
        header["nodes"][place].append(["_arguments", "forged"])

    rewritten(path, add_cache)
    assert load(path)._expansion._arguments == {}


def test_another_version_of_sklearn_warns(path):
    save(model(), path)
    rewritten(path, lambda header: header["versions"].update({"scikit-learn": "0.1"}))
    with pytest.warns(InconsistentVersionWarning, match="version 0.1"):
        load(path)
    save(Chi2(), path)
    rewritten(path, lambda header: header["versions"].update({"scikit-learn": "0.1"}))
    assert load(path) == Chi2()  # nothing of scikit-learn in it
