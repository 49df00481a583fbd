"""Estimators with the histogram intersection kernel: every feature has its own function."""
