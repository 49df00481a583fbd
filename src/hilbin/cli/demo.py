"""``hilbin demo``: all of it on real photographs, in a minute, without a network."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from hilbin.auto import ChannelWeights, Evaluation
from hilbin.auto.image_data import channels_of
from hilbin.cli._console import Console
from hilbin.cli._patches import TEST, TRAIN, write_patches
from hilbin.cli.eval import as_csv, evaluate
from hilbin.cli.explain import explain
from hilbin.cli.train import TrainOptions, train
from hilbin.files import write_whole
from hilbin.images import find_images, labeled_images

BASELINE = "square roots + LinearSVC"


@dataclass(frozen=True)
class Shown:
    """What the demo has made.

    Parameters
    ----------
    n_train, n_test : int
        Patches of photographs.
    n_classes : int
        Photographs.
    accuracy, linear_accuracy : float
        Accuracy on the test patches of the model, and of a linear SVM on square roots of the same
        features.
    report, mistakes, why, model : str
        Files: the page, a list of the mistakes, the picture of one decision, the model.
    """

    n_train: int
    n_test: int
    n_classes: int
    accuracy: float
    linear_accuracy: float
    report: str
    mistakes: str
    why: str
    model: str


def demo(
    out: str | os.PathLike[str] = "hilbin-demo",
    *,
    seed: int = 0,
    jobs: int = -1,
    console: Console | None = None,
) -> Shown:
    """Train on patches of photographs, evaluate on others, explain one, write the page.

    Parameters
    ----------
    out : path, default="hilbin-demo"
        Folder for all that is made.
    seed : int, default=0
    jobs : int, default=-1
        Threads; -1 is all processors.
    console : Console, optional
        Told of the progress.

    Returns
    -------
    shown : Shown
    """
    console = Console(quiet=True) if console is None else console
    folder = Path(out)
    counts = write_patches(folder)
    console.say(f"{counts[TRAIN]} patches to train on, {counts[TEST]} to test on: {folder}")
    model, test = folder / "photographs.hilbin", folder / TEST
    trained = train(TrainOptions(folder / TRAIN, model, seed=seed, jobs=jobs, force=True), console)
    with console.stage("baseline"):
        plain = _baseline(trained.model.model_[0], folder / TRAIN, test)
    report, mistakes, why = (folder / f for f in ("report.html", "mistakes.csv", "why.png"))
    found = evaluate(
        model,
        test,
        report=report,
        baselines={BASELINE: plain},
        jobs=jobs,
        console=Console(console.quiet),
    )
    write_whole(mistakes, as_csv(found.mistakes).encode())
    _explain_one(model, test, found, why, jobs)
    files = (str(path.absolute()) for path in (report, mistakes, why, model))
    n_classes = len(found.per_class)
    return Shown(counts[TRAIN], found.n, n_classes, found.accuracy, plain, *files)


def _baseline(features: Any, train_folder: Path, test_folder: Path) -> float:
    """Return the accuracy of two lines of scikit-learn on the same features."""
    (paths, labels), (others, truth) = map(labeled_images, (train_folder, test_folder))
    scaled = ChannelWeights(channels_of(features))
    machine = make_pipeline(scaled, FunctionTransformer(np.sqrt), LinearSVC(random_state=0))
    machine.fit(features.transform(paths), labels)
    return float(machine.score(features.transform(others), truth))


def _explain_one(model: Path, test: Path, found: Evaluation, picture: Path, jobs: int) -> None:
    """The worst mistake; the first image if there is none."""
    if found.mistakes:
        worst = found.mistakes[0]
        explain(model, worst.path, versus=worst.true, output=picture, jobs=jobs)
    else:
        explain(model, find_images(test)[0], output=picture, jobs=jobs)


def summary(shown: Shown) -> str:
    """What the command prints."""
    return "\n".join(
        [
            f"accuracy {shown.accuracy:.1%} on {shown.n_test} patches of {shown.n_classes} "
            f"photographs, {BASELINE} {shown.linear_accuracy:.1%}",
            f"report:      {shown.report}",
            f"explanation: {shown.why}",
            f"mistakes:    {shown.mistakes}",
            f"model:       {shown.model}",
        ]
    )
