"""
A kernel machine that can be read
=================================

The score of an intersection SVM is a sum of functions of one feature each. So the whole model can
be drawn, and every score can be taken apart. Here: what such a model has learnt about tumours, why
it took one digit for another, and whether a linear machine would have done.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import train_test_split

from hilbin.estimators import IntersectionSVC, compare_with_linear
from hilbin.plot import explanation, shapes

# %%
# Thirty measurements of cells, and whether the tumour is malignant. Features are used as they are:
# each is measured in hundredths of its range, so none needs scaling.
cancer = load_breast_cancer(as_frame=True)
labels = cancer.target_names[cancer.target]
X_train, X_test, y_train, y_test = train_test_split(
    cancer.data, labels, test_size=0.5, random_state=0, stratify=labels
)
model = IntersectionSVC().fit(X_train, y_train)
print(f"{model.score(X_test, y_test):.1%} right, after {model.n_iter_} sweeps over the rows")

# %%
# The twelve features that can change the score by most. Where a line rises, more speaks for
# "malignant". Several rise and then stay: beyond a size that is large already more tells nothing
# more, which a linear model cannot say. Gray bars are the values of the training rows. Where there
# are few of them a function rests on little.
shapes(model, X=X_train)
plt.show()

# %%
# The test row about which the model is least certain. Bars are read from below: the intercept, the
# features that matter little, then feature by feature up to the score.
scores = model.decision_function(X_test)
doubtful = np.argmin(np.abs(scores))
print("it is", y_test[doubtful])
explanation(model, X_test.iloc[doubtful], top=12)
plt.show()

# %%
# With several classes the question is why this one and not another. Of the handwritten digits that
# the model gets wrong, here are four: what it took them for, over what they are. Green pixels spoke
# for the wrong digit, brown ones for the right one; the line is the outline of the digit.
digits = load_digits()
images_train, images_test, y_train, y_test = train_test_split(
    digits.data, digits.target, test_size=0.5, random_state=0, stratify=digits.target
)
model = IntersectionSVC().fit(images_train, y_train)
print(f"{model.score(images_test, y_test):.1%} right")
wrong = np.flatnonzero(model.predict(images_test) != y_test)[:4]

fig, axes = plt.subplots(2, 2, figsize=(8, 7), layout="constrained")
for ax, row in zip(axes.flat, wrong, strict=True):
    explanation(model, images_test[row], versus=y_test[row], shape=(8, 8), ax=ax)
plt.show()

# %%
# The pixels that tell 3 from 8, as functions of their gray value.
shapes(model, classes=[3, 8], X=images_train)
plt.show()

# %%
# Is all that worth it, or would a linear SVM do? There is no rule, but asking takes seconds: both
# are cross-validated on the same rows. The difference counts if it is more than twice its standard
# error.
for name, load in (("digits", load_digits), ("iris", load_iris), ("tumours", load_breast_cancer)):
    found = compare_with_linear(*load(return_X_y=True))
    print(
        f"{name:8} intersection {found.intersection:.1%}, linear {found.linear:.1%}, "
        f"gain {found.gain:+.1%} ± {found.standard_error:.1%}: {found.verdict}"
    )

# %%
# On the pixels of digits a linear machine does as well, and on the tumours too: the functions above
# bend, but not so that it matters. With irises it does: the petals of one species are neither the
# largest nor the smallest, and no linear score is highest in the middle.
