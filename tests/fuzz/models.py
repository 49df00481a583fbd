"""Model files with something in them changed and their checksums redone, and what uses them."""

import hashlib
import json
import os
import warnings

import numpy as np
import scipy.sparse as sp
from catalogue import KERNELS
from fuzzing import FaultError, names_something
from pictures import drawn
from saved import NAMES, PIPELINES, ROWS, VARIANTS, made, public_estimators, takes_numbers
from scenes import scene
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from hilbin.auto import ImageCollection, TableClassifier, TableCollection
from hilbin.detect import BoxLocalizer, DeformableDetector
from hilbin.estimators import ShapeFunction
from hilbin.images import LBP
from hilbin.maps import ProductQuantizer
from hilbin.persist import ModelFileError, container, load, packing, save

CALLS = ("transform", "predict", "decision_function", "predict_proba", "explain", "decode", "gram")
CALLS += ("kneighbors",)
ASKED = ("cluster", "duplicates", "arrange")  # of a collection, without rows
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    255,
    256,
    65536,
    2**31 - 1,
    2**31,
    -(2**31),
    2**62,
    0.0,
    -1.0,
    0.5,
    1e-300,
)
NUMBERS += (1e300, True, False, None, "", "x", "auto", "precomputed")
EXTREMES = (
    0,
    1,
    -1,
    2,
    127,
    255,
    2**15,
    2**31 - 1,
    -(2**31),
    2**62,
    np.nan,
    np.inf,
    -np.inf,
    1e300,
)
SWAPS = {1: "|b1 |i1 |u1", 2: "<i2 <u2 <f2", 4: "<i4 <u4 <f4 <U1", 8: "<i8 <u8 <f8 <c8 <U2"}


def prepare(folder):
    """Fit small models, and save them."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(24, 6)) * (rng.uniform(size=(24, 6)) < 0.8)
    X /= X.sum(axis=1, keepdims=True) + 1e-9
    labels, numbers = np.array(["ape", "bee", "cat"])[np.arange(24) % 3], np.arange(24.0)
    pictures = [drawn(seed, (20, 24), color=True) for seed in range(4)]
    models = []
    for model in [*public_estimators(), *VARIANTS, *PIPELINES]:
        model = _smaller(clone(model))
        models.append((model.fit(X, numbers if takes_numbers(model) else labels), "rows"))
    models.append((type(models[0][0])().fit(X), "rows"))
    for name in NAMES:
        if name not in ("DenseSIFT", "OnnxFeatures"):
            given = X if name in ROWS else pictures
            models.append((made(name).fit(given), "rows" if name in ROWS else "pictures"))
    boxes = [[2, 3, 12, 16]] * len(pictures)
    models.append((BoxLocalizer(LBP(), cell=4).fit(pictures, boxes), "pictures"))
    scenes, faces, _ = zip(*(scene(seed) for seed in range(4)), strict=True)
    for given in ({}, {"n_parts": 2}, {"n_words": 16}):
        detector = DeformableDetector(area=900, random_state=0, **given)
        models.append((detector.fit([*scenes], [*faces]), "scenes"))
    quantizer = ProductQuantizer(part_size=2, n_words=5, random_state=0).fit(X)
    models += [
        (quantizer.transform(X), "codes"),
        (TableClassifier(n_folds=2).fit(X, labels), "rows"),
        (TableCollection().fit(X), "rows"),
        (TableCollection(kernel="chi2", n_components=3).fit(X), "rows"),
        (ImageCollection("color", max_side=24).fit(pictures), "pictures"),
    ]
    models += [(ShapeFunction("a", np.arange(4.0), np.arange(4.0), stepped=True), "rows")]
    models += [(kernel, "kernel") for kernel in KERNELS]
    for number, (model, kind) in enumerate(models):
        save(model, folder / f"{number:03d}-{kind}.hilbin")
        load(folder / f"{number:03d}-{kind}.hilbin")
    np.save(folder / "rows.npy", X)


def _smaller(model):
    """The same model with fewer numbers in it."""
    few = {
        "n_components": 4,
        "n_nodes": 4,
        "n_quantiles": 4,
        "landmarks": 4,
        "part_size": 2,
        "n_nonzero": 2,
    }
    steps = dict(getattr(model, "steps", ())) or {"": model}
    for step in steps.values():
        if hasattr(step, "get_params"):
            known = step.get_params(deep=False)
            given = {n: v for n, v in few.items() if isinstance(known.get(n), int)}
            if isinstance(known.get("landmarks"), sp.csr_array):
                given["landmarks"] = sp.csr_array(np.eye(6)[:4])
            frozen = known.get("feature_map")
            if hasattr(frozen, "estimator"):
                given["feature_map"] = type(frozen)(clone(frozen.estimator).fit(np.eye(6)))
            step.set_params(**given)
    return model


def opened(folder):
    """The headers and arrays of all files, and rows to ask about."""
    X = np.load(folder / "rows.npy")
    files = sorted(folder.glob("[0-9]*.hilbin"))
    pictures = [drawn(seed, (20, 24), color=True) for seed in range(2)]
    given = {"rows": [X[:5], X[:5].astype(np.float32), sp.csr_array(X[:5])], "pictures": [pictures]}
    given["scenes"] = [[scene(9)[0]]]
    own = folder / f"mutated-{os.getpid()}.hilbin"
    return [(*_unpacked(path), path.stem.split("-")[1]) for path in files], given, own


def _unpacked(path):
    content = path.read_bytes()
    length = int.from_bytes(content[16:24], "little")
    text, at, arrays = (
        content[container.START : container.START + length],
        container.START + length,
        [],
    )
    for dtype, shape, order in json.loads(text)["arrays"]:
        size = np.dtype(dtype).itemsize * int(np.prod(shape))
        flat = np.frombuffer(content[at : at + size], dtype)
        arrays.append(flat.reshape(shape, order=order))
        at += size + -size % container.ALIGN
    return text, arrays


def attempt(state, seed):
    """Change a file in one to three places, load it, and use what comes out."""
    files, given, path = state
    rng = np.random.default_rng(seed)
    text, arrays, kind = files[int(rng.integers(len(files)))]
    header, arrays = json.loads(text), list(arrays)
    described = [[None, None, a] for a in arrays]  # dtype and shape are those of the array if None
    for _ in range(int(rng.integers(1, 4))):
        if arrays and rng.uniform() < 0.45:
            _change_array(described, rng)
        else:
            _change_header(header, rng)
    _pack(path, header, described, compact=rng.uniform() < 0.3)
    nodes = [*header["nodes"], *json.loads(text)["nodes"]]
    words = {a for node in nodes if isinstance(node, list) for a in _attributes(node)}
    words |= {"decision_function", "predict_proba"}  # that a part of the model lacks
    try:
        model = load(path)
    except ModelFileError as error:
        if str(path) not in str(error):
            raise FaultError(f"a refusal does not name the file: {error}") from error
        return "refused"
    return use(model, kind, given, rng, words)


def _attributes(node):
    return [
        a[0]
        for a in node[2:]
        if node[0] == "object" and isinstance(a, list) and isinstance(a[0], str)
    ]


def use(model, kind, given, rng, words):
    """Ask a loaded model everything it can be asked."""
    rows = given[kind if kind in given and hasattr(model, "fit") else "rows"]
    X = rows[int(rng.integers(len(rows)))]
    outcome = "answered"
    for name in (*CALLS, *ASKED):
        try:
            call = getattr(model, name, None)
            if callable(call) and name in (*ASKED, "decode"):
                if name != "decode" or kind == "codes":
                    call()
            elif callable(call):
                call(X)
        except NotFittedError:
            outcome = "declined"
        except (ValueError, TypeError, AttributeError, NotImplementedError) as error:
            if not names_something(error, words):
                place = _place(error)
                raise FaultError(
                    f"{type(model).__name__}.{name}: {error!r} names nothing, {place}"
                ) from error
            outcome = "declined"
    repr(model)
    return outcome


def _place(error):
    frame = error.__traceback__
    while frame.tb_next is not None:
        frame = frame.tb_next
    return f"{frame.tb_frame.f_code.co_filename[-50:]}:{frame.tb_lineno}"


def _change_header(header, rng):
    nodes = header["nodes"]
    at = int(rng.integers(len(nodes)))
    node, kind = nodes[at], rng.choice(9, p=[0.5, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05])
    objects = [n for n in nodes if n[0] == "object" and len(n) > 1]
    if kind == 0:
        _change_value(header, nodes, at, rng)
    elif kind == 1 and len(node) > 2:
        del node[int(rng.integers(2, len(node)))]
    elif kind == 2 and objects:
        _swap_attributes(objects[int(rng.integers(len(objects)))], rng)
    elif kind == 3:
        node[0] = str(
            rng.choice(["list", "tuple", "dict", "set", "object", "array", "bytes", "objects"])
        )
    elif kind == 4 and len(objects) > 1:
        a, b = rng.choice(len(objects), 2, replace=False)
        objects[a][1] = objects[b][1]
    elif kind == 5:
        nodes.insert(at, json.loads(json.dumps(node)))
    elif kind == 6 and objects:
        name = str(
            rng.choice(["predict", "_check_state", "n_features_in_", "shape", "__class__", "coef_"])
        )
        objects[int(rng.integers(len(objects)))].append([name, _number(rng)])
    elif kind == 7 and len(nodes) > 1:
        other = int(rng.integers(len(nodes)))
        nodes[at], nodes[other] = nodes[other], node
    else:
        nodes.append(["float", str(rng.choice(["nan", "inf", "-inf"]))])
        header["model"] = (
            [int(rng.integers(len(nodes)))] if rng.uniform() < 0.2 else header["model"]
        )


def _swap_attributes(node, rng):
    if len(node) > 4:
        a, b = (node[place] for place in rng.choice(np.arange(2, len(node)), 2, replace=False))
        if isinstance(a, list) and isinstance(b, list) and min(len(a), len(b)) > 1:
            a[1], b[1] = b[1], a[1]


def _number(rng):
    return NUMBERS[int(rng.integers(len(NUMBERS)))]


def _change_value(header, nodes, at, rng):
    """Replace one value of a node."""
    node = nodes[at]
    places = [(node, i) for i in range(1, len(node))]
    places += [
        (part, 1)
        for part in node[2:]
        if node[0] == "object" and isinstance(part, list) and len(part) > 1
    ]
    if not places:
        return
    owner, i = places[int(rng.integers(len(places)))]
    old, choice = owner[i], rng.uniform()
    if isinstance(old, int | float) and not isinstance(old, bool) and choice < 0.5:
        owner[i] = [old + 1, old - 1, -old, 2 * old, float(old)][int(rng.integers(5))]
    elif isinstance(old, bool) and choice < 0.5:
        owner[i] = not old
    elif choice < 0.6 and at:
        owner[i] = [int(rng.integers(at))]
    else:
        owner[i] = _number(rng)


def _change_array(described, rng):
    """Change numbers, shape or type of an array."""
    entry = described[int(rng.integers(len(described)))]
    array, kind = entry[2], int(rng.integers(8))
    flat = np.array(array).ravel()
    if kind <= 2 and flat.size and flat.dtype.kind in "iufb":
        for _ in range(int(rng.integers(1, 4))):
            value = EXTREMES[int(rng.integers(len(EXTREMES)))]
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                flat[int(rng.integers(flat.size))] = np.asarray(value).astype(flat.dtype)
        entry[2] = flat.reshape(array.shape)
    elif kind == 3 and flat.size:
        entry[2] = flat[rng.permutation(flat.size)].reshape(array.shape)
    elif kind == 4 and array.ndim:
        axis, more = int(rng.integers(array.ndim)), rng.uniform() < 0.5
        every = np.arange(array.shape[axis])
        entry[2] = np.take(array, np.append(every, every[-1:]) if more else every[:-1], axis)
    elif kind == 5:
        entry[2] = [flat, array.T, array[None], array[..., :0] if array.ndim else flat][
            int(rng.integers(4))
        ]
    elif kind == 6 and array.dtype.itemsize in SWAPS:
        names = SWAPS[array.dtype.itemsize].split()
        entry[0] = names[int(rng.integers(len(names)))]
    elif array.dtype.kind in "iufb":
        to = ["<f4", "<f8", "<i4", "<i8", "|u1"][int(rng.integers(5))]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            entry[2] = array.astype(to)


def _pack(path, header, described, *, compact):
    """Write a file whose checksums are right, whatever it says."""
    data, arrays = b"", []
    for dtype, shape, array in described:
        order = "C" if array.flags.c_contiguous else "F"
        content, said = array.tobytes(order=order), []
        if compact:
            content, coding = packing.pack(array, 0.5 if array.dtype == np.float64 else None)
            said = [len(content), coding]
        arrays.append([dtype or array.dtype.str, shape or list(array.shape), order, *said])
        data += content + bytes(-len(content) % container.ALIGN)
    header = {**header, "arrays": arrays, "data": [len(data), hashlib.sha256(data).hexdigest()]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % container.ALIGN)
    total = container.START + len(text) + len(data)
    version = container.COMPACT_VERSION if compact else container.VERSION
    preamble = container.PREAMBLE.pack(container.MAGIC, version, 0, len(text), total)
    path.write_bytes(preamble + hashlib.sha256(preamble + text).digest() + text + data)
