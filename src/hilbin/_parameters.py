"""Parameters of estimators: declared once, documented once, checked in ``fit``.

A class under :func:`estimator` lists its parameters as annotated fields with defaults, and has a
constructor that stores them, as scikit-learn wants it. Fields and their descriptions are inherited:
what two estimators share stands in their common base class alone. ::

    @estimator
    class Machine(BaseEstimator):
        '''Base of the machines.

        Parameters
        ----------
        tol : float, default=1e-3
            Tolerance on the gradient.
        '''

        _: KW_ONLY
        tol: float = 1e-3

    @estimator
    class Classifier(ClassifierMixin, Machine):
        '''A classifier.

        Parameters
        ----------
        C : float, default=1.0
            Weight of the loss.
        '''

        C: float = 1.0

makes ``Classifier(C=1.0, *, tol=0.001)``, whose help describes both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import cleandoc, signature
from numbers import Integral, Real
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)


@dataclass_transform(eq_default=False)
def estimator(cls: Class) -> Class:
    """Make a constructor of the annotated fields, and add the inherited descriptions.

    Annotations without a default are parameters that must be given. Attributes that ``fit`` sets
    are not annotated in the class body.
    """
    own = cls.__dict__.get("__doc__")
    made: Any = dataclass(eq=False, repr=False)(cls)
    bases = [base.__doc__ for base in cls.__mro__[1:] if hasattr(base, "__dataclass_fields__")]
    if own:
        names = [*signature(made).parameters]
        made.__doc__ = _described(cleandoc(own), [cleandoc(doc or "") for doc in bases], names)
    return made


def _described(doc: str, bases: list[str], names: list[str]) -> str:
    """``doc`` with the parameters ``names``, and the attributes, that only ``bases`` describe."""
    for title in ("Parameters", "Attributes"):
        before, own, after = _section(doc, title)
        for base in bases:
            known = {name for entry in own for name in _names(entry)}
            own += [entry for entry in _section(base, title)[1] if not known & {*_names(entry)}]
        if title == "Parameters":
            place = {name: i for i, name in enumerate(names)}
            own = [entry for entry in own if place.keys() & {*_names(entry)}]
            own.sort(key=lambda entry: min(place.get(n, len(place)) for n in _names(entry)))
        if own:
            lines = [*before, title, "-" * len(title), *(line for entry in own for line in entry)]
            doc = "\n".join([*lines, "", *after]).rstrip()
    return doc


def _section(doc: str, title: str) -> tuple[list[str], list[list[str]], list[str]]:
    """Lines before a section, its entries, and lines after; a missing one is before the next."""
    lines = doc.splitlines()
    heads = [i for i in range(len(lines) - 1) if lines[i] and lines[i + 1] == "-" * len(lines[i])]
    found = next((i for i in heads if lines[i] == title), None)
    if found is None:
        others = [i for i in heads if lines[i] != "Parameters"]
        end = others[0] if others else len(lines)
        before = lines[:end] if end < len(lines) else [*lines, ""]
        return before, [], lines[end:]
    end = next((i for i in heads if i > found), len(lines))
    entries: list[list[str]] = []
    for line in lines[found + 2 : end]:
        if line and not line.startswith(" "):
            entries.append([])
        if entries:
            entries[-1].append(line)
    for entry in entries:
        while not entry[-1]:
            entry.pop()
    return lines[:found], entries, lines[end:]


def _names(entry: list[str]) -> list[str]:
    return [name.strip() for name in entry[0].split(" : ")[0].split(",")]


def require_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """``value`` is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {tuple(choices)}, got {value!r}")


def require_positive(
    name: str, value: Any, *, or_zero: bool = False, most: float | None = None
) -> None:
    """``value`` is a finite number above zero, and at most ``most``."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    above = number and (0 < value < float("inf") or (or_zero and value == 0))
    if not (above and (most is None or value <= most)):
        least, upto = ">= 0" if or_zero else "> 0", "" if most is None else f" and <= {most}"
        raise ValueError(f"{name} must be a number {least}{upto}, got {value!r}")


def require_whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    """``value`` is a whole number from ``least`` to ``most``."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not (whole and least <= value and (most is None or value <= most)):
        upto = "" if most is None else f" and <= {most}"
        raise ValueError(f"{name} must be a whole number >= {least}{upto}, got {value!r}")


def require_norm(value: Any) -> None:
    """The parameter ``norm`` of weights is a number from 1 to infinity."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and value >= 1):
        raise ValueError(
            f"norm must be a number >= 1, or numpy.inf for equal weights, got {value!r}"
        )
