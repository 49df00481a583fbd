"""What was compared: accuracies of the candidates for the wines, with standard errors."""

import re

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from hilbin import TableClassifier

X, y = load_wine(return_X_y=True, as_frame=True)
model = TableClassifier(random_state=0).fit(X[::2], y[::2])
line = r"\s*([\d.]+)% ± ([\d.]+)%  (.+?) \("
found = [re.match(line, text) for text in model.summary().splitlines()]
rows = [match.groups() for match in found if match][::-1]
axes = plt.figure(figsize=(7, 3.2)).gca()
values, errors = ([float(row[i]) for row in rows] for i in (0, 1))
axes.errorbar(values, range(len(rows)), xerr=errors, fmt="o", ms=4)
axes.set_yticks(range(len(rows)), [row[2] for row in rows])
axes.set_xlabel("accuracy by cross-validation, % ± standard error")
