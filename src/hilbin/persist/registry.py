"""What a model file may hold: classes under fixed names, and which of their attributes.

A name is a package and a class of it, as ``hilbin.maps.AdditiveMap``; in which module of the
package the class is defined does not matter. Known are the classes that a package of hilbin lists
in ``__all__``, the private classes marked by :func:`hilbin._state.stored`, some of scikit-learn's,
and those a user gives. Nothing else leads from a name to a class: a file cannot have anything
imported.
"""

import functools
import importlib
import inspect
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from scipy.sparse.linalg import LinearOperator
from sklearn.linear_model import SGDClassifier, SGDRegressor

from hilbin._state import STORED, require, require_attributes, require_parameters
from hilbin.persist.foreign import STATES, check_foreign

PACKAGES = (
    "hilbin.auto",
    "hilbin.detect",
    "hilbin.estimators",
    "hilbin.images",
    "hilbin.kernels",
    "hilbin.kernels.sets",
    "hilbin.maps",
)
CALLBACKS = ("_skl_callbacks", "_parent_callback_ctx")
OPERATOR = ("_xp", "ndim")  # what SciPy 1.18 adds to its operators; older ones would refuse it


class Registry:
    """The way from classes to names and back, with a user's ``classes`` added."""

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self.user: dict[str, type] = {}
        for cls in classes:
            if not isinstance(cls, type):
                raise TypeError(f"classes must be classes, got {cls!r}")
            reason = why_not(cls)
            if reason:
                raise TypeError(f"classes has {cls.__qualname__}, {reason}")
            if self.user.setdefault(f"user.{cls.__name__}", cls) is not cls:
                raise ValueError(f"classes has two classes of the name {cls.__name__}")

    def name_of(self, cls: type) -> str | None:
        """Return the name of a class, or None if it has none."""
        name = f"user.{cls.__name__}"
        if self.user.get(name) is cls:
            return name
        packages = (p for p in (*PACKAGES, *STATES) if cls.__module__.startswith(p))
        names = (f"{package}.{cls.__name__}" for package in packages)
        return next((name for name in names if _known(name) is cls), None)

    def class_of(self, name: Any) -> type | None:
        """Return the class of a name, or None if there is none."""
        if not isinstance(name, str):
            return None
        return self.user.get(name) or _known(name)


def _known(name: str) -> type | None:
    """Return the class of hilbin or scikit-learn that has this name."""
    package, _, last = name.rpartition(".")
    public: Iterable[str]
    if package in STATES:
        public = STATES[package]
    elif package in PACKAGES:
        public = importlib.import_module(package).__all__
    else:
        return None
    found = STORED.get(name)
    if last in public:
        found = getattr(importlib.import_module(package), last, None)
    return found if isinstance(found, type) and not issubclass(found, BaseException) else None


def why_not(cls: type) -> str | None:
    """Say why objects of a class cannot be rebuilt from their attributes, if they cannot."""
    if any(vars(base).get("__slots__") for base in cls.__mro__):
        return "which keeps its attributes in __slots__"
    try:
        object.__new__(cls)
    except TypeError:
        return "which is more than its attributes, or abstract"
    return None


def saved_attributes(cls: type, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that belong in a file.

    Left out are cached properties, callbacks, and a compiled loss that scikit-learn makes anew:
    after loading they are as in an object that has not cached anything yet. What SciPy derives from
    the shape of an operator is left out too; the ``_check_state`` of its class derives it again.
    """
    return {a: v for a, v in attributes.items() if not _is_left_out(cls, a)}


def _is_left_out(cls: type, attribute: str) -> bool:
    cached = isinstance(getattr(cls, attribute, None), functools.cached_property)
    loss = attribute == "_loss_function_" and issubclass(cls, SGDClassifier | SGDRegressor)
    operator = attribute in OPERATOR and issubclass(cls, LinearOperator)
    return cached or loss or operator or attribute in CALLBACKS


def check_state(value: Any) -> None:
    """Raise ``ValueError`` if the attributes of a loaded object do not fit together.

    Parameters are compared with their annotations. Then every class of hilbin checks the attributes
    that it adds to those of its bases, by ``_check_state``.
    """
    cls = type(value)
    _require_no_override(cls, vars(value))
    output = vars(value).get("_sklearn_output_config", {})  # of set_output
    require(isinstance(output, dict), "_sklearn_output_config is no dict")
    if cls.__module__.startswith("sklearn."):
        check_foreign(value)
        return
    require_parameters(value)
    if "classes_" in vars(value):
        require_attributes(value, classes_="labels[k]")
    for base in reversed(cls.__mro__):
        if "_check_state" in vars(base):
            vars(base)["_check_state"](value)


def _require_no_override(cls: type, attributes: Iterable[str]) -> None:
    """Refuse attributes that would be found before a method of the class."""
    own = {field.name for field in fields(cls)} if is_dataclass(cls) else set()
    for name in attributes:
        hidden = name not in own and inspect.getattr_static(cls, name, own) is not own
        require(not hidden, f"{name} is an attribute that would hide one of {cls.__name__}")
