"""What of an object goes into a file: its attributes, without what can be found again.

Left out are cached properties, callbacks, and caches that depend on the machine (the width of its
vectors); after loading they are as in an object that has not cached anything yet.
"""

import functools
from typing import Any

CALLBACKS = ("_skl_callbacks", "_parent_callback_ctx")
# class -> attributes that are caches; a factory says what a fresh object has there
CACHES: dict[str, dict[str, Any]] = {
    "hilbin.maps.Cubics": {"_arguments": dict},
    "hilbin.maps.TwoNodes": {"_arguments": dict},
    "sklearn.linear_model.SGDClassifier": {"_loss_function_": None},
    "sklearn.linear_model.SGDRegressor": {"_loss_function_": None},
}


def is_left_out(cls: type, name: str, attribute: str) -> bool:
    """Whether an attribute of the class with this ``name`` in files is not saved, nor loaded."""
    cached = isinstance(getattr(cls, attribute, None), functools.cached_property)
    return cached or attribute in CALLBACKS or attribute in CACHES.get(name, {})


def state_of(value: Any, name: str) -> dict[str, Any]:
    """The attributes to save."""
    cls = type(value)
    return {a: v for a, v in vars(value).items() if not is_left_out(cls, name, a)}


def rebuild(cls: type, name: str, state: dict[str, Any]) -> Any:
    """An object with these attributes; no method of its class is called."""
    value: Any = object.__new__(cls)
    kept = {a: v for a, v in state.items() if not is_left_out(cls, name, a)}
    fresh = {a: make() for a, make in CACHES.get(name, {}).items() if make is not None}
    value.__dict__.update(kept | fresh)
    return value
