"""Rows of every kind of storage, mostly broken, for everything that takes rows."""

import warnings

import numpy as np
import scipy.sparse as sp
from catalogue import KERNELS
from fuzzing import FaultError, names_something
from oracles import sparse_fault
from saved import public_estimators
from sklearn.base import clone, is_regressor

from hilbin.estimators import HistogramBinner, IntersectionSVC, KernelSVC, MapSVC
from hilbin.kernels import Chi2, Intersection
from hilbin.maps import AdditiveMap, SparseMap

COLUMNS = 6
CALLS = ("transform", "predict", "decision_function", "explain")
FITS = (HistogramBinner(), HistogramBinner(None), AdditiveMap(Chi2()), SparseMap(Intersection()))
FITS += (IntersectionSVC(max_iter=3, tol=10.0), KernelSVC(Chi2(), tol=1.0), MapSVC(max_iter=3))


def prepare(folder):
    """Nothing: fitting is quick."""


def opened(folder):
    """Everything that takes rows: a name and a function of them."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(20, COLUMNS)) * (rng.uniform(size=(20, COLUMNS)) < 0.8)
    labels, numbers = np.arange(20) % 3, np.arange(20.0)
    doors = []
    for model in public_estimators():
        known = model.get_params(deep=False)
        few = {"n_components": 4, "landmarks": 4, "n_nonzero": 2, "part_size": 2}
        model.set_params(**{n: v for n, v in few.items() if isinstance(known.get(n), int)})
        model.fit(X, numbers if is_regressor(model) else labels)
        name = type(model).__name__
        doors += [(f"{name}.{c}", getattr(model, c)) for c in CALLS if hasattr(model, c)]
    small = [k for k in KERNELS if not hasattr(k, "transforms") and not hasattr(k, "shape")]
    for kernel in small:
        doors += [(f"{kernel!r}.gram", kernel.gram), (f"{kernel!r}.diag", kernel.diag)]
        doors += [(f"{kernel!r} with known rows", lambda Y, k=kernel: k.gram(X, Y))]
    doors += [(f"fit of {m!r}", _fitting(m)) for m in FITS]
    return doors


def _fitting(model):
    return lambda X: clone(model).fit(
        X, np.arange(len(X) if isinstance(X, list) else X.shape[0]) % 2
    )


def attempt(doors, seed):
    """Give one thing to one door: a broken one must be refused, by a message that says where."""
    rng = np.random.default_rng(seed)
    X = made(rng)
    name, door = doors[int(rng.integers(len(doors)))]
    broken = sparse_fault(X)
    try:
        with np.errstate(all="ignore"):
            door(X)
    except (ValueError, TypeError) as error:
        if not names_something(error, ("array", "matrix", "Complex", "kernel")):
            raise FaultError(f"{name}: {error!r} names nothing, for {shown(X)}") from error
        return "refused"
    if broken:
        raise FaultError(f"{name} takes a matrix that is broken: {broken}, {shown(X)}")
    return "answered"


def shown(X):
    """A matrix in a message."""
    if not sp.issparse(X):
        return f"{type(X).__name__} {np.shape(X) if isinstance(X, np.ndarray) else ''}"
    return f"{type(X).__name__} {X.shape} {X.dtype}"


def made(rng):
    """Rows that are fine, or dense ones that are odd, or sparse ones with an array changed."""
    n = int(rng.integers(1, 8))
    X = rng.gamma(0.5, size=(n, COLUMNS)) * (rng.uniform(size=(n, COLUMNS)) < 0.6)
    choice = rng.uniform()
    if choice < 0.1:
        return X.astype(rng.choice(["f4", "f8", "i4", "u1", "f2"]))
    return _odd(X, rng) if choice < 0.2 else _changed(X, rng)


def _odd(X, rng):
    bad = X.copy()
    bad[int(rng.integers(len(X))), int(rng.integers(COLUMNS))] = rng.choice(
        [np.nan, np.inf, -np.inf, -1.0, 1e308, 5e-324, 1e-300]
    )
    return [
        bad,
        np.asfortranarray(bad).astype("f4"),
        X[:, : int(rng.integers(0, COLUMNS))],
        X[:0],
        X[None],
        X[0],
        X.astype(object),
        X.astype(str),
        X.astype(complex),
        np.repeat(X, 2, axis=0)[::2, ::-1],
        X.astype(">f8"),
        X[:, ::-1].T,
        [[1.0, 2.0], [3.0]],
    ][int(rng.integers(13))]


def _changed(X, rng):
    """A sparse matrix with up to two of its arrays changed behind SciPy's back."""
    kind = [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, sp.bsr_array][
        int(rng.choice(5, p=[0.5, 0.2, 0.1, 0.1, 0.1]))
    ]
    Z = kind(X.astype(rng.choice(["f8", "f4", "i8"], p=[0.6, 0.3, 0.1])))
    if Z.format != "coo" and rng.uniform() < 0.3:
        Z.indices, Z.indptr = Z.indices.astype(np.int64), Z.indptr.astype(np.int64)
    for _ in range(int(rng.integers(0, 3))):
        _spoil(Z, rng)
    if rng.uniform() < 0.3:
        Z.has_canonical_format = True
    return Z


def _spoil(Z, rng):
    names = ("row", "col", "data") if Z.format == "coo" else ("indices", "indptr", "indptr", "data")
    name = names[int(rng.integers(len(names)))]
    old, kind = getattr(Z, name), int(rng.integers(7))
    array = np.array(old)
    if kind <= 2 and array.ndim == 1 and array.size:
        values = [-1, 0, 1, COLUMNS, 1000, 2**31 - 1, -(2**31)]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            value = np.asarray(values[int(rng.integers(7))]).astype(array.dtype)
            array[int(rng.integers(array.size))] = value
    elif kind == 3:
        array = array[:-1]
    elif kind == 4:
        array = np.concatenate([array, array[-1:]])
    elif kind == 5:
        array = array[rng.permutation(len(array))]
    elif kind == 6 and array.ndim == 1 and name != "data":
        array = array.astype(rng.choice(["i8", "f8", "u4"]))
    if Z.format == "coo" and name != "data":
        axis = ("row", "col").index(name)
        Z.coords = tuple(array if i == axis else c for i, c in enumerate(Z.coords))
    else:
        setattr(Z, name, array)
