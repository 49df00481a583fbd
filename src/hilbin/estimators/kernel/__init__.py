"""Estimators with any kernel: sums of kernel values to training rows."""
