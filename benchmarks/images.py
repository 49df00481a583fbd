"""How well photographs are classified: words of images and the intersection kernel.

Against a linear SVM and scikit-learn's RBF SVM on the same rows.
"""

import json
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
import scipy.sparse as sp
from harness import claim
from pictures import Pictures, pictures
from sets import labeled_sets
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import balanced_accuracy_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from hilbin.estimators import IntersectionSVC
from hilbin.images import FHOG, BagOfWords, Centrist, DenseSIFT, ImageFeatures, SpatialPyramid

OWN, LINEAR, RBF = "IntersectionSVC", "LinearSVC", "RBF SVC"
THREADS = 2
BINS = 16  # of IntersectionSVC on words: a sixth of the default's memory, and no less accurate
GRAM_ROWS = 10_000  # the RBF SVM gets Nyström features above
TOLERANCE = 0.01  # of LinearSVC: LIBLINEAR's own; scikit-learn's takes many times longer
TEXT = (
    "The standard split of every set; mean per-class accuracy for scenes and objects, plain "
    f"accuracy otherwise. IntersectionSVC has its defaults, but n_bins={BINS} for words. "
    "LinearSVC (C=1, tol=0.01) gets every feature scaled to [0, 1] by the training rows. RBF SVC "
    "is scikit-learn's SVC on the Gram matrix of rbf_kernel, gamma='scale', C=10, of rows scaled "
    f"the same way; above {GRAM_ROWS} rows Nyström features (1000) and LinearSVC. Seconds are "
    "of one fit, the Gram matrix included; two threads for descriptors, IntersectionSVC and BLAS "
    "(SVC and LinearSVC use one). Scenes: SIFT on a grid of 6 pixels, bins of 4 and 8 pixels, "
    "1024 words, pyramid of 3 levels; CENTRIST, pyramid of 3 levels. Objects: grid of 4 pixels, "
    "bins of 3, 4 and 6 pixels. Windows with people: CENTRIST of the edges, and of the gray "
    "values, pyramid of 3 levels. Clothes: Felzenszwalb's HOG of the image at 56 x 56 pixels, "
    "cells of 8."
)


class Task(NamedTuple):
    """One description of one set, and what is required of it."""

    data: str
    name: str
    features: Any
    required: float | None = None  # per cent
    error_ratio: float | None = None  # to the linear SVM's
    bins: int = BINS


def pyramid(words: Any) -> SpatialPyramid:
    """Three levels."""
    return SpatialPyramid(words, 3, max_side=None)


def tasks() -> list[Task]:
    """All that is measured."""
    sift = pyramid(BagOfWords(DenseSIFT(6, (4, 8)), 1024, random_state=0))
    small = pyramid(BagOfWords(DenseSIFT(4, (3, 4, 6)), 1024, random_state=0))
    centrist, edges = pyramid(Centrist()), pyramid(Centrist(edges=True))
    cells = FHOG(8, (56, 56), color=False)

    def both(**parts: Any) -> ImageFeatures:
        return ImageFeatures(list(parts.items()), max_side=None)

    return [
        Task("scene15", "SIFT", sift, 79),
        Task("scene15", "CENTRIST", centrist, 76),
        Task("scene15", "SIFT and CENTRIST", both(sift=sift, centrist=centrist), 82),
        Task("caltech101", "SIFT", small, 52),
        Task("caltech101", "CENTRIST", centrist),
        Task("inria_windows", "CENTRIST of edges", edges, error_ratio=0.4),
        Task("inria_windows", "CENTRIST", centrist),
        Task("fashion_mnist", "HOG", cells, 90.5, bins=100),
    ]


def scaled(A: Any, B: Any) -> tuple[Any, Any]:
    """Features over their largest value, as CSR."""
    top = A.max(axis=0)
    top = top.toarray().ravel() if sp.issparse(top) else top
    factor = sp.diags_array(1 / np.where(top > 0, top, 1))
    return sp.csr_matrix(sp.csr_array(A) @ factor), sp.csr_matrix(sp.csr_array(B) @ factor)


def rbf(A: Any, y: Any, B: Any) -> Callable[[], Any]:
    """A fit of scikit-learn's RBF SVM, which then predicts."""
    mean = A.mean()
    gamma = 1 / (A.shape[1] * (A.multiply(A).mean() - mean**2))

    def fit() -> Any:
        if A.shape[0] > GRAM_ROWS:
            model = make_pipeline(Nystroem(gamma=gamma, n_components=1000, random_state=0),
                                  LinearSVC(dual="auto", tol=TOLERANCE))  # fmt: skip
            model.fit(A, y)
            return lambda: model.predict(B)
        svm = SVC(kernel="precomputed", C=10).fit(rbf_kernel(A, gamma=gamma), y)
        return lambda: svm.predict(rbf_kernel(B, A, gamma=gamma))

    return fit


def own(A: Any, y: Any, B: Any, bins: int) -> Callable[[], Any]:
    """A fit of IntersectionSVC, which then predicts."""

    def fit() -> Any:
        model = IntersectionSVC(n_bins=bins, n_jobs=THREADS).fit(A, y)
        return lambda: model.predict(B)

    return fit


def linear(A: Any, y: Any, B: Any) -> Callable[[], Any]:
    """A fit of LinearSVC, which then predicts."""

    def fit() -> Any:
        model = LinearSVC(dual="auto", tol=TOLERANCE, random_state=0).fit(A, y)
        return lambda: model.predict(B)

    return fit


def measure(task: Task, data: Pictures) -> dict[str, Any]:
    """Accuracies and seconds of all contenders, and how quickly images become rows."""
    features = task.features.set_params(n_jobs=THREADS)
    rows: list[Any] = []
    learning = harness.seconds(lambda: features.fit(data.train))
    describing = harness.seconds(
        lambda: rows.extend([features.transform(data.train), features.transform(data.test)])
    )
    A, B = rows
    unit = scaled(A, B)
    plain = task.data in ("inria_windows", "fashion_mnist")
    found: dict[str, Any] = {"features": A.shape[1]}
    for name, contender in (
        (OWN, own(A, data.y, B, task.bins)),
        (LINEAR, linear(unit[0], data.y, unit[1])),
        (RBF, rbf(unit[0], data.y, unit[1])),
    ):
        predict: list[Any] = []
        found[f"{name}, s"] = harness.seconds(lambda c=contender, p=predict: p.append(c()))
        guess = predict[0]()
        rate = (
            np.mean(guess == data.y_test) if plain else balanced_accuracy_score(data.y_test, guess)
        )
        found[f"{name}, %"] = 100 * float(rate)
        print(f"{task.data} {task.name}: {name} {found[f'{name}, %']:.2f} %", flush=True)
    found["codebook, s"] = learning
    found["images / s"] = (len(data.train) + len(data.test)) / describing
    return found


def clothes(folder: Path | None, few: int | None) -> Pictures | None:
    """Fashion-MNIST as images."""
    stored = labeled_sets(folder, ("fashion_mnist",))
    if "fashion_mnist" not in stored:
        return None
    s = stored["fashion_mnist"]
    parts = [X.reshape(-1, 28, 28).astype(np.uint8) for X in (s.X, s.X_test)]
    return Pictures(list(parts[0]), s.y, list(parts[1]), s.y_test).sample(few)


def load(folder: Path | None, name: str, scratch: Path, few: int | None) -> Pictures | None:
    """One of the sets."""
    if name == "fashion_mnist":
        return clothes(folder, few)
    stored = pictures(folder, name, scratch)
    return stored.sample(few) if stored else None


def make_claims(task: Task, found: dict[str, Any]) -> list[dict[str, Any]]:
    """What is promised, beside what was measured."""
    claims = []
    where, accuracy = f"{task.data}, {task.name}", found[f"{OWN}, %"]
    if task.required is not None:
        claims.append(
            claim(f"Accuracy, {where}", accuracy, task.required, unit=" %", headline=True)
        )
    for peer in (LINEAR, RBF):
        gain = accuracy - found[f"{peer}, %"]
        claims.append(claim(f"Points above, {where}", gain, 0, against=peer, unit=""))
    if task.error_ratio is not None:
        ratio = (100 - accuracy) / (100 - found[f"{LINEAR}, %"])
        claims.append(
            claim(f"Errors, {where}", ratio, task.error_ratio, "<=", against=LINEAR, headline=True)
        )
    return claims


def recorded() -> dict[str, Any]:
    """What was measured before, for tasks that are not measured now."""
    path = harness.RESULTS / "images.json"
    return json.loads(path.read_text(encoding="utf-8"))["figures"]["Sets"] if path.exists() else {}


def main() -> None:
    """Measure, claim and record."""
    parser = harness.parser(__doc__)
    parser.add_argument("--only", help="a set; the figures of the others stay as they are")
    args = parser.parse_args()
    few = 6 if args.quick else None
    table = recorded() if args.only else {}
    warnings.simplefilter("ignore", ConvergenceWarning)
    sets: dict[str, Pictures | None] = {}
    with tempfile.TemporaryDirectory() as scratch, harness.threads(THREADS):
        for task in tasks():
            if args.only not in (None, task.data):
                continue
            if task.data not in sets:
                sets[task.data] = load(args.data, task.data, Path(scratch), few)
            data = sets[task.data]
            if data is not None:
                table[f"{task.data}, {task.name}"] = measure(task, data)
    names = {f"{task.data}, {task.name}": task for task in tasks()}
    claims = [c for name, found in table.items() for c in make_claims(names[name], found)]
    harness.record("images", {"Sets": table}, claims, title="Photographs: accuracy", text=TEXT,
                   quick=args.quick)  # fmt: skip


if __name__ == "__main__":
    main()
