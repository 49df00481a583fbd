"""Solvers: pure functions, numbers in, a :class:`Result` with a certificate out."""

from hilbin.solvers._codes import Codes, drop_unused, rank_values
from hilbin.solvers._crammer_singer import crammer_singer
from hilbin.solvers._icd import classification, icd, regression
from hilbin.solvers._result import Result
from hilbin.solvers._rows import GramRows, TableRows

__all__ = [
    "Codes",
    "GramRows",
    "Result",
    "TableRows",
    "classification",
    "crammer_singer",
    "drop_unused",
    "icd",
    "rank_values",
    "regression",
]
