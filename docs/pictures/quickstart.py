"""The features that matter most to a classifier of wines."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from hilbin import TableClassifier, inspection
from hilbin.plot import importances

X, y = load_wine(return_X_y=True, as_frame=True)
model = TableClassifier(kernel="chi2").fit(X[::2], y[::2])
axes = plt.figure(figsize=(6, 3.2)).gca()
importances(inspection.importances(model.model_, X[1::2]), ax=axes)
