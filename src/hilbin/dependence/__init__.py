"""Dependence of two descriptions of the same rows: measures, tests, and sorting by it."""

from hilbin.dependence.criterion import HSICTest, cka, hsic, hsic_scores, hsic_test
from hilbin.dependence.grid import GridSorting, sort_to_grid
from hilbin.dependence.sorting import Sorting, kernelized_sorting

__all__ = [
    "GridSorting",
    "HSICTest",
    "Sorting",
    "cka",
    "hsic",
    "hsic_scores",
    "hsic_test",
    "kernelized_sorting",
    "sort_to_grid",
]
