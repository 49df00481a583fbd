"""Dependence of two descriptions of the same rows: measures, tests, and sorting by it."""

from hilbin.dependence.criterion import HSICTest, cka, hsic, hsic_scores, hsic_test
from hilbin.dependence.sorting import GridSorting, Sorting, kernelized_sorting, sort_to_grid

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
