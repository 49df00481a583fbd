"""Solvers: functions of arrays that return a solution with its certificate, a :class:`Result`.

A solver knows no kernel, no estimator and no file. Every module opens with the problem that it
solves, the algorithm, the stopping rule and the reference; the guide to all of them is
``docs/solvers.rst``.
"""

from hilbin.solvers.bundle import bundle
from hilbin.solvers.crammer_singer import crammer_singer
from hilbin.solvers.gram import gram_rows
from hilbin.solvers.icd import icd
from hilbin.solvers.kernel_ridge import kernel_ridge
from hilbin.solvers.lasso import lasso
from hilbin.solvers.linear import linear
from hilbin.solvers.multiple import multiple
from hilbin.solvers.problem import Problem, Result
from hilbin.solvers.ridge import pca, ridge
from hilbin.solvers.risk import EpsilonInsensitive, Hinge, Logistic, Risk
from hilbin.solvers.smo import smo
from hilbin.solvers.structured import Bounded, StructuredRisk

__all__ = [
    "Bounded",
    "EpsilonInsensitive",
    "Hinge",
    "Logistic",
    "Problem",
    "Result",
    "Risk",
    "StructuredRisk",
    "bundle",
    "crammer_singer",
    "gram_rows",
    "icd",
    "kernel_ridge",
    "lasso",
    "linear",
    "multiple",
    "pca",
    "ridge",
    "smo",
]
