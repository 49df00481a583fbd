"""Digits sorted on a page so that neighbors look alike."""

from sklearn.datasets import load_digits

from hilbin.dependence import sort_to_grid
from hilbin.plot import montage

digits = load_digits()
sorting = sort_to_grid(digits.data[:400], (16, 25))
montage(16 - digits.images[:400], sorting.cells)
