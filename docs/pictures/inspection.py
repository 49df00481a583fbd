"""Why a tumor is called malignant: what its features add to the score."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from hilbin.estimators import IntersectionSVC
from hilbin.plot import explanation

cancer = load_breast_cancer(as_frame=True)
labels = cancer.target_names[cancer.target]
model = IntersectionSVC().fit(cancer.data[:300], labels[:300])
axes = plt.figure(figsize=(6.5, 4)).gca()
explanation(model, cancer.data[305:306], class_="benign", top=10, ax=axes)
