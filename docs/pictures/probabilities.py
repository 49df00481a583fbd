"""Are probabilities right? Predicted and observed, of the digits."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from hilbin import inspection
from hilbin.estimators import IntersectionSVC
from hilbin.plot import reliability

X, y = load_digits(return_X_y=True)
model = IntersectionSVC(probability=True).fit(X[:1000], y[:1000])
axes = plt.figure(figsize=(4.2, 3.6)).gca()
reliability(inspection.reliability(model.predict_proba(X[1000:]), y[1000:]), ax=axes)
