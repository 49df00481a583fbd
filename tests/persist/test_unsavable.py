"""Models that cannot be saved are refused by the place of what cannot, and leave no file."""

import sys
import threading

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from hilbin.estimators import HistogramBinner
from hilbin.kernels import Chi2
from hilbin.persist import (
    ModelFileError,
    UnsupportedModelError,
    codec,
    load,
    save,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.hilbin"


def model():
    return make_pipeline(StandardScaler(), HistogramBinner(4, negative="shift")).fit(
        np.arange(12.0).reshape(4, 3)
    )


def refused(path, match):
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    assert str(path) in str(caught.value)


class Mine(BaseEstimator):
    pass


class Slotted:
    __slots__ = ("a",)


class Text(str):
    """More than its attributes."""


def refuses(value, path, match, kind=UnsupportedModelError):
    with pytest.raises(kind, match=match):
        save(value, path)
    assert not path.exists()


def test_functions_are_refused_by_their_place(path):
    steps = Pipeline([("scale", StandardScaler()), ("root", FunctionTransformer(np.sqrt))])
    refuses(steps, path, r"model\.steps\[1\]\[1\]\.func is the function sqrt")
    refuses({"a": [lambda x: x]}, path, r"model\['a'\]\[0\] is the function .*lambda")
    refuses([len], path, r"model\[0\] is the function len")
    refuses([model().transform], path, r"model\[0\] is the function")


def test_unknown_classes_are_refused_by_their_place(path):
    refuses(make_pipeline(Mine()), path, r"model\.steps\[0\]\[1\] is a .*Mine, .*classes=\[Mine\]")
    refuses([Slotted()], path, "__slots__")
    refuses([Text()], path, "more than its attributes")
    refuses([object()], path, "builtins.object")
    refuses([threading.Lock()], path, r"model\[0\] is a _thread.lock")
    refuses(Mine, path, "the class Mine")
    refuses(np.array([Mine()], object), path, r"flat\[0\]")
    refuses(np.array(["2020"], "M8[D]"), path, "datetime64")
    refuses(np.zeros(1, [("a", "f8")]), path, "dtype")
    refuses(np.ma.array([1.0], mask=[True]), path, "MaskedArray")
    refuses(1j, path, "complex")


def test_classes_must_be_given_to_load_too(path):
    save(Mine(), path, classes=[Mine])
    refused(path, r"'user.Mine'.*classes=\[Mine\]")
    assert isinstance(load(path, classes=[Mine]), Mine)


def test_bad_classes(path):
    other = type("Mine", (), {})
    for given, kind, match in [
        ([Mine, other], ValueError, "two classes of the name Mine"),
        (["Mine"], TypeError, "classes must be classes"),
        ([Slotted], TypeError, "__slots__"),
        ([Text], TypeError, "more than its attributes"),
    ]:
        with pytest.raises(kind, match=match):
            save(Mine(), path, classes=given)
        with pytest.raises(kind, match=match):
            load(path, classes=given)


def test_cycles_are_refused(path):
    loop = [1]
    loop.append({"again": loop})
    refuses(loop, path, r"model\[1\]\['again'\] contains itself")
    own = Mine()
    own.parent_ = own
    with pytest.raises(UnsupportedModelError, match=r"model\.parent_ contains itself"):
        save(own, path, classes=[Mine])


def test_nesting_has_an_end(path):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    refuses(deep, path, "nested too deeply")
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(10**6)
        few = ()
        for _ in range(codec.MOST_DEPTH - 2):
            few = (few,)
        save(few, path)
        assert load(path) == few
        path.unlink()
        refuses([[few]], path, "nested too deeply")
    finally:
        sys.setrecursionlimit(limit)
    kernel = Chi2()
    for _ in range(100):
        kernel = kernel + Chi2()
    save(kernel, path)
    assert load(path) == kernel


@pytest.mark.parametrize(
    "metadata", [7, [1], {1: "a"}, {"a": (1, 2)}, {"a": float("nan")}, {"a": np.zeros(2)}], ids=repr
)
def test_metadata_is_json(path, metadata):
    with pytest.raises(TypeError, match="metadata must be a dict"):
        save(Chi2(), path, metadata=metadata)
    assert not path.exists()
