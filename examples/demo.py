"""Six kernels on handwritten digits: their Gram matrices, and how well an SVM does with each."""

from pathlib import Path

import matplotlib as mpl
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hilbin.kernels import (
    GCS,
    Chi2,
    Exponential,
    Hellinger,
    Intersection,
    JensenShannon,
    kernel_alignment,
)
from hilbin.plot import kernel_matrix

PICTURE = Path("demo/kernels.png")

KERNELS = {
    "intersection": Intersection(),
    "χ²": Chi2(),
    "Jensen–Shannon": JensenShannon(),
    "Hellinger": Hellinger(),
    "exp-χ²": Exponential(Chi2(), "median"),
    "GCS": GCS(radius=0.5),
}


def main() -> None:
    mpl.use("agg")
    from matplotlib import pyplot

    X, y = load_digits(return_X_y=True)
    X = X / X.sum(axis=1, keepdims=True)  # each image as a histogram of ink
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    figure, axes = pyplot.subplots(2, 3, figsize=(13, 8), layout="constrained")
    print(f"digits, {len(train)} to train on, {len(test)} to test on\n")
    print(f"{'SVM with kernel':18s} alignment  accuracy")
    for ax, (name, kernel) in zip(axes.flat, KERNELS.items(), strict=True):
        kernel = kernel.resolve(train, random_state=0)
        K = kernel.gram(train)
        kernel_matrix(K, y_train, ax=ax, title=name)
        accuracy = SVC(kernel=kernel, C=100).fit(train, y_train).score(test, y_test)
        print(f"{name:18s} {kernel_alignment(K, y_train):9.3f}  {accuracy:8.1%}")
    for name, svm in {"linear": SVC(kernel="linear", C=100), "RBF": SVC(C=100)}.items():
        model = make_pipeline(StandardScaler(), svm).fit(train, y_train)
        print(f"{name:18s} {'':9s}  {model.score(test, y_test):8.1%}")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=100)
    print(f"\nGram matrices, sorted by digit: {PICTURE}")


if __name__ == "__main__":
    main()
