"""
Shape functions of an intersection SVM
======================================

The score of an intersection SVM is a sum of functions of one feature each. So the whole model can
be drawn, and every score is a sum of contributions. This example shows what such a model has
learned about tumors, why it confuses digits, and whether a linear SVM is as accurate.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import train_test_split

from hilbin.estimators import IntersectionSVC, compare_with_linear
from hilbin.plot import explanation, shapes

# %%
# Thirty measurements of cells, and whether the tumor is malignant. Features are used as they are:
# each is measured in hundredths of its range, so none needs scaling.
cancer = load_breast_cancer(as_frame=True)
labels = cancer.target_names[cancer.target]
X_train, X_test, y_train, y_test = train_test_split(
    cancer.data, labels, test_size=0.5, random_state=0, stratify=labels
)
model = IntersectionSVC().fit(X_train, y_train)
print(f"accuracy {model.score(X_test, y_test):.1%} after {model.n_iter_} sweeps over the rows")

# %%
# These are the twelve features that can change the score most. The score is that of "malignant",
# ``classes_[1]``: where a line rises, larger values make it more likely. Several are flat at the
# end: beyond some size larger values change nothing, which a linear model cannot express. Gray bars
# are the values of the training rows; where they are few, a function is uncertain.
shapes(model, X=X_train)
plt.show()

# %%
# This is the test row about which the model is least certain. The bars are read from below: the
# intercept, the features that matter little, then feature by feature up to the score.
scores = model.decision_function(X_test)
doubtful = np.argmin(np.abs(scores))
print("label:", y_test[doubtful])
explanation(model, X_test.iloc[doubtful], top=12)
plt.show()

# %%
# With several classes, the lead of one class over another is explained. These are four of the
# handwritten digits that the model gets wrong: the predicted digit against the true one. Green
# pixels raise the score of the wrong digit, brown ones that of the right one; the line is the
# outline of the digit.
digits = load_digits()
images_train, images_test, y_train, y_test = train_test_split(
    digits.data, digits.target, test_size=0.5, random_state=0, stratify=digits.target
)
model = IntersectionSVC().fit(images_train, y_train)
print(f"accuracy {model.score(images_test, y_test):.1%}")
wrong = np.flatnonzero(model.predict(images_test) != y_test)[:4]

fig, axes = plt.subplots(2, 2, figsize=(8, 7), layout="constrained")
for ax, row in zip(axes.flat, wrong, strict=True):
    explanation(model, images_test[row], versus=y_test[row], shape=(8, 8), ax=ax)
plt.show()

# %%
# The pixels that distinguish 3 from 8 contribute as functions of their gray value.
shapes(model, classes=[3, 8], X=images_train)
plt.show()

# %%
# Whether a linear SVM is as accurate can be measured in seconds: both are cross-validated on the
# same rows. The difference counts if it is more than twice its standard error.
for name, load in (("digits", load_digits), ("iris", load_iris), ("tumors", load_breast_cancer)):
    found = compare_with_linear(*load(return_X_y=True))
    print(
        f"{name:8} intersection {found.intersection:.1%}, linear {found.linear:.1%}, "
        f"gain {found.gain:+.1%} ± {found.standard_error:.1%}: {found.verdict}"
    )

# %%
# On the pixels of digits and on the tumors a linear SVM is as accurate: the functions above are not
# straight, but that hardly matters. On the irises it does: the petals of one species are neither
# the largest nor the smallest, and no linear score is highest in the middle.
