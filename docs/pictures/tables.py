"""Shape functions of a column whose middle matters and of two columns of noise."""

import numpy as np

from hilbin.estimators import IntersectionSVC
from hilbin.plot import shapes

X = np.random.default_rng(0).gamma(2.0, size=(400, 3))
labels = (X[:, 0] > 1.5) & (X[:, 0] < 3)
model = IntersectionSVC(C=10.0).fit(X, np.where(labels, "middle", "outside"))
shapes(model, X=X)
