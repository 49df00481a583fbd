"""Which configuration to train: one, or the best of those that a budget of time leaves room for.

Configurations are compared by cross-validated accuracy. The first is always tried; then, as long
as the estimated time fits: other weights of the training error, other kernels, further features.
What was given by name is kept.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from hilbin.cli._classifiers import INTERSECTION, LINEAR, classifier
from hilbin.cli._console import Console
from hilbin.cli._cross import FOLDS, HeldOut, cross_validate
from hilbin.cli._features import MORE
from hilbin.cli._material import ImageMaterial, TableMaterial
from hilbin.cli._options import AUTO, TrainOptions

STRENGTHS = (10.0, 0.1)
OTHER_KERNELS = ("chi2", "exp-chi2")
# time of a cross-validation, in those of the intersection kernel
COSTS = {INTERSECTION: 1.0, LINEAR: 1.0}
COST = 3.0

Material = TableMaterial | ImageMaterial


@dataclass(frozen=True)
class Trial:
    """A configuration.

    Parameters
    ----------
    features : str
        Empty for a table.
    kernel : str
    strength : float, default=1
        Weight of the training error, in units of the usual one.
    """

    features: str
    kernel: str
    strength: float = 1.0

    def __str__(self) -> str:
        weight = "" if self.strength == 1 else f", C x {self.strength:g}"
        return f"{self.features or 'table'}, {self.kernel}{weight}"


@dataclass(frozen=True)
class Tried:
    """What came of a trial.

    Parameters
    ----------
    trial : Trial
    held_out : HeldOut or None
        None if every class has a single example.
    seconds : float
        Of the cross-validation.
    """

    trial: Trial
    held_out: HeldOut | None
    seconds: float

    @property
    def accuracy(self) -> float:
        """What trials are compared by."""
        return self.held_out.accuracy if self.held_out else 0.0


def make(
    trial: Trial, material: Material, seed: int, class_weight: str | None = None
) -> Callable[[], Any]:
    """What gives classifiers of a configuration."""
    rows = material.examples(trial.features).rows
    return lambda: classifier(
        trial.kernel,
        rows,
        of_images=material.of_images,
        strength=trial.strength,
        seed=seed,
        class_weight=class_weight,
    )


def attempt(
    trial: Trial, material: Material, options: TrainOptions, console: Console, stage: str
) -> Tried:
    """Cross-validate a configuration."""
    examples = material.examples(trial.features)
    begin = time.monotonic()
    with console.stage(stage, FOLDS) as advance:
        made = make(trial, material, options.seed, options.class_weight)
        held_out = cross_validate(made, examples, options.seed, advance)
    return Tried(trial, held_out, time.monotonic() - begin)


def search(
    options: TrainOptions, material: Material, console: Console, left: Callable[[], float]
) -> tuple[Tried, list[dict[str, Any]]]:
    """The best configuration, and all that were tried.

    Parameters
    ----------
    options : TrainOptions
    material : TableMaterial or ImageMaterial
    console : Console
    left : callable
        Seconds of the budget that are left.
    """
    kernel = INTERSECTION if options.kernel == AUTO else options.kernel
    first = Trial(material.features, kernel)
    best = attempt(first, material, options, console, "cross-validation")
    tried = [_told(best)]
    if options.budget is None or best.held_out is None:
        return best, tried
    describing = sum(console.seconds.get(s, 0) for s in ("learning features", "describing images"))
    unit = best.seconds / COSTS.get(kernel, COST)
    for phase in (_strengths, _kernels, _features):
        for trial in phase(best.trial, first, options):
            expected = unit * COSTS.get(trial.kernel, COST)
            expected += 0 if trial.features == best.trial.features else describing + best.seconds
            if expected + best.seconds > left():  # the winner is still to be trained
                tried.append({"configuration": str(trial), "accuracy": None})
                console.say(f"not tried, for lack of time: {trial}")
                continue
            other = attempt(trial, material, options, console, f"trying {trial}")
            tried.append(_told(other))
            best = max(best, other, key=lambda t: t.accuracy)
    return best, tried


def _told(tried: Tried) -> dict[str, Any]:
    accuracy = tried.held_out.accuracy if tried.held_out else None
    return {"configuration": str(tried.trial), "accuracy": accuracy}


def _strengths(best: Trial, first: Trial, options: TrainOptions) -> Iterator[Trial]:
    return (replace(best, strength=s) for s in STRENGTHS)


def _kernels(best: Trial, first: Trial, options: TrainOptions) -> Iterator[Trial]:
    others = OTHER_KERNELS if options.kernel == AUTO else ()
    return (Trial(best.features, kernel) for kernel in others)


def _features(best: Trial, first: Trial, options: TrainOptions) -> Iterator[Trial]:
    more = MORE if options.features == AUTO and first.features else ()
    return (replace(best, features=f"{first.features}+{name}") for name in more)
