"""What a model file says about how it came to be.

======================  ========================================================================
``kind``                ``"images"`` or ``"table"``
``classes``             names, in the order of the scores
``command``, ``seed``   what asks for the same model again
``features``            names joined by ``+``; None for a table
``kernel``, ``strength``  name, and weight of the training error in units of the usual one
``max_side``, ``virtual``  as given
``cv``                  None, or ``n``, ``accuracy``, ``mean_class_accuracy``, ``linear_accuracy``,
                        ``majority_accuracy``, ``winning_quantiles`` (101 numbers)
``suspicious``          list of ``name``, ``label``, ``suggested``, ``margin``
``unreadable``          list of ``name``, ``reason``
``tried``               list of ``configuration``, ``accuracy`` (None: no time)
``data``                ``source``, ``n``, ``per_class``, ``sha256``
``train``               images: ``names``, ``labels``, ``hashes`` of those that were read
``table``               tables: ``columns`` (or None), ``target``, ``n_features``
``versions``, ``created``, ``seconds``  of packages, in UTC, per stage
======================  ========================================================================
"""

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from hilbin.cli._options import TrainOptions
from hilbin.cli._search import Material, Tried

PACKAGES = ("hilbin", "numpy", "scipy", "scikit-learn", "Pillow")


def about_model(
    options: TrainOptions,
    material: Material,
    best: Tried,
    linear: Tried,
    tried: list[dict[str, Any]],
    seconds: dict[str, float],
) -> dict[str, Any]:
    """All of it but the names of the classes."""
    trial = best.trial
    return {
        "kind": material.kind,
        "command": options.command(),
        "seed": options.seed,
        "features": trial.features or None,
        "kernel": trial.kernel,
        "strength": trial.strength,
        "max_side": options.max_side if material.of_images else None,
        "virtual": options.virtual,
        "cv": _about_folds(best, linear),
        "suspicious": _suspicions(best, material),
        "unreadable": material.unreadable,
        "tried": tried,
        **material.about(),
        "versions": _versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": {stage: round(took, 3) for stage, took in seconds.items()},
    }


def _about_folds(best: Tried, linear: Tried) -> dict[str, Any] | None:
    found = best.held_out
    if found is None:
        return None
    return {
        "n": int(found.tested.size),
        "accuracy": found.accuracy,
        "mean_class_accuracy": found.class_accuracy,
        "linear_accuracy": linear.accuracy,
        "majority_accuracy": found.majority,
        "winning_quantiles": found.winning_quantiles(),
    }


def _suspicions(best: Tried, material: Material) -> list[dict[str, Any]]:
    found = best.held_out
    if found is None:
        return []
    examples = material.examples(best.trial.features)
    return [
        {
            "name": material.name(int(examples.origin[row])),
            "label": str(found.classes[label]),
            "suggested": str(found.classes[other]),
            "margin": margin,
        }
        for row, label, other, margin in found.suspicions()
    ]


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except ImportError:
            continue
    return found


def accuracy_line(cv: dict[str, Any] | None) -> str:
    """What cross-validation says, in a line."""
    if cv is None:
        return "accuracy not known: every class has a single example"
    linear = cv["linear_accuracy"]
    compared = "" if linear is None else f"linear {linear:.1%}, "
    return (
        f"accuracy {cv['accuracy']:.1%} by cross-validation (mean per class "
        f"{cv['mean_class_accuracy']:.1%}; {compared}"
        f"always the largest class {cv['majority_accuracy']:.1%})"
    )
