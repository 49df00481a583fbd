"""A model file in use: what ``hilbin train``, or ``save`` in Python, has written."""

from pathlib import Path
from typing import Any

from hilbin import persist
from hilbin.auto import ImageClassifier, TableClassifier
from hilbin.cli._outcome import InputError

Model = ImageClassifier | TableClassifier


def load_model(path: str | Path) -> Model:
    """Load a classifier of images or tables.

    Parameters
    ----------
    path : path
        The model file.
    """
    require_file(path)
    model = persist.load(path)
    if not isinstance(model, ImageClassifier | TableClassifier) or not hasattr(model, "model_"):
        raise InputError(
            f"{path}: holds {type(model).__name__}, not a trained ImageClassifier or "
            "TableClassifier, which hilbin train writes"
        )
    return model


def of_images(model: Model) -> bool:
    """Tell whether a model takes images, or rows of a table."""
    return isinstance(model, ImageClassifier)


def known_class(model: Model, name: str | None, option: str) -> Any:
    """Return the class of a name; None for None.

    Parameters
    ----------
    model : ImageClassifier or TableClassifier
        The model.
    name : str or None
        Its name, as an option of the command line has it.
    option : str
        What errors call the option.
    """
    known = {str(c): c for c in model.classes_.tolist()}
    if name is not None and name not in known:
        raise InputError(f"{option}: the model does not know {name!r}; it knows {', '.join(known)}")
    return None if name is None else known[name]


def require_file(path: str | Path) -> None:
    """Raise unless there is such a file."""
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such model file")
