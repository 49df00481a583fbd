"""Private classes say themselves that files may hold them."""

import numpy as np
import pytest

from hilbin import _state
from hilbin.persist import UnsupportedModelError, load, save


@pytest.fixture
def stored(monkeypatch):
    """A registry that forgets what a test adds."""
    monkeypatch.setattr(_state, "STORED", known := {})
    monkeypatch.setattr("hilbin.persist.registry.STORED", known)
    return known


def private(module, **content):
    return type("Inner", (), {"__module__": module, **content})


def test_the_name_is_that_of_the_package(stored, tmp_path):
    cls = private("hilbin.maps.deep.inside")
    value = cls()
    value.a = 3
    with pytest.raises(UnsupportedModelError, match="Inner"):
        save(value, tmp_path / "a")
    assert _state.stored(cls) is cls
    assert stored == {"hilbin.maps.Inner": cls}
    save(value, tmp_path / "a")
    loaded = load(tmp_path / "a")
    assert type(loaded) is cls
    assert loaded.a == 3


def test_two_classes_of_one_package_need_two_names(stored):
    _state.stored(private("hilbin.maps.a"))
    _state.stored(private("hilbin.maps.a"))  # the module was imported again
    _state.stored(private("hilbin.kernels.a"))
    with pytest.raises(TypeError, match=r"hilbin\.maps\.Inner is stored twice"):
        _state.stored(private("hilbin.maps.b"))


def test_other_packages_are_not_searched(stored, tmp_path):
    cls = _state.stored(private("hilbin.solvers.icd"))
    with pytest.raises(UnsupportedModelError, match="Inner"):
        save(cls(), tmp_path / "a")


@pytest.mark.parametrize(
    ("offsets", "match"),
    [
        ([0, 2, 1, 4], "out of range"),
        ([0, 1, 2, 5], "out of range"),
        ([1, 2, 3, 4], "not 3 runs"),
        ([0, 1, 4], "not 3 runs"),
        (np.array([0.0, 1, 2, 4]), "not a vector of int64"),
        ([[0, 1, 2, 4]], "not a vector"),
        (None, "not a vector"),
    ],
)
def test_offsets(offsets, match):
    _state.require_offsets(np.array([0, 1, 1, 4]), 3, 4)
    given = np.array(offsets) if isinstance(offsets, list) else offsets
    with pytest.raises(ValueError, match=match):
        _state.require_offsets(given, 3, 4)
