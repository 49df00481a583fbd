"""Solvers: pure functions, numbers in, a :class:`Result` with a certificate out."""

from hilbin.solvers._bundle import bundle
from hilbin.solvers._codes import Levels, drop_unused, rank_values
from hilbin.solvers._crammer_singer import crammer_singer
from hilbin.solvers._gram_rows import GramRows, PartRows, SparseGramRows
from hilbin.solvers._icd import classification, icd, regression
from hilbin.solvers._kernel_ridge import KernelRidgePath, kernel_ridge, kernel_ridge_path
from hilbin.solvers._lasso import group_lasso, lasso, lasso_path
from hilbin.solvers._lazy_rows import LazyRows
from hilbin.solvers._losses import (
    EpsilonInsensitive,
    Hinge,
    Logistic,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from hilbin.solvers._node_rows import NodeRows
from hilbin.solvers._pca import Components, pca
from hilbin.solvers._result import Result
from hilbin.solvers._ridge import RidgePath, ridge, ridge_grid, ridge_path, unproject
from hilbin.solvers._risk import MatrixRows, Risk
from hilbin.solvers._risk_bundle import bundle_risk
from hilbin.solvers._rows import TableRows
from hilbin.solvers._smo import smo
from hilbin.solvers._sparse_kernel_ridge import sparse_kernel_ridge
from hilbin.solvers._word_rows import WordRows
from hilbin.solvers._word_tables import WordTables

__all__ = [
    "Components",
    "EpsilonInsensitive",
    "GramRows",
    "Hinge",
    "KernelRidgePath",
    "LazyRows",
    "Levels",
    "Logistic",
    "MatrixRows",
    "NodeRows",
    "PartRows",
    "Result",
    "RidgePath",
    "Risk",
    "SparseGramRows",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "TableRows",
    "WordRows",
    "WordTables",
    "bundle",
    "bundle_risk",
    "classification",
    "crammer_singer",
    "drop_unused",
    "group_lasso",
    "icd",
    "kernel_ridge",
    "kernel_ridge_path",
    "lasso",
    "lasso_path",
    "pca",
    "rank_values",
    "regression",
    "ridge",
    "ridge_grid",
    "ridge_path",
    "smo",
    "sparse_kernel_ridge",
    "unproject",
]
