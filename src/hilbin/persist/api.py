"""Save and load models, and read what a file says about itself."""

import json
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from sklearn.exceptions import InconsistentVersionWarning

from hilbin.files import require_regular
from hilbin.persist import container
from hilbin.persist.codec import Decoder, Encoder, UnknownNameError
from hilbin.persist.errors import ModelFileError, UnsupportedModelError
from hilbin.persist.registry import Registry

PACKAGES = ("hilbin", "numpy", "scikit-learn")
MALFORMED = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)


@dataclass(frozen=True)
class ModelInfo:
    """What the header of a model file says.

    Parameters
    ----------
    format : int
        Version of the file format.
    class_name : str
        What the file holds, such as ``"hilbin.maps.AdditiveMap"``.
    versions : dict of str
        Versions of hilbin, NumPy and scikit-learn when it was saved.
    metadata : dict
        The metadata given to :func:`save`.
    n_bytes : int
        Size of the file.
    rounded : dict of float
        For a compact file, the arrays that are rounded, and the largest change of their numbers.

    Examples
    --------
    >>> from hilbin.persist import ModelInfo
    >>> ModelInfo(1, "hilbin.kernels.Chi2", {"hilbin": "0.1.0"}, {}, 256).class_name
    'hilbin.kernels.Chi2'
    """

    format: int
    class_name: str
    versions: dict[str, str]
    metadata: dict[str, Any]
    n_bytes: int
    rounded: dict[str, float] = field(default_factory=dict)


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    metadata: dict[str, Any] | None = None,
    classes: Iterable[type] = (),
    compact: bool = False,
) -> None:
    """Write a model to one file, whole or not at all.

    The same model gives the same bytes. Caches and callbacks are not saved.

    Parameters
    ----------
    model : object
        An estimator, map, kernel or image transformer of hilbin, fitted or not; a scikit-learn
        ``Pipeline`` or ``FeatureUnion`` of these and of scikit-learn's scalers, decompositions
        and linear models; or a list, tuple or dict of such.
    path : path-like
        Path of the file, conventionally ``*.hilbin``. An existing file is replaced.
    metadata : dict, optional
        Notes that :func:`info` returns: anything that JSON can hold.
    classes : iterable of class, optional
        Classes of your own that the model contains. Their objects are saved by their attributes;
        :func:`load` needs the same classes, and tells them apart by their names.
    compact : bool, default=False
        Whether to write a file of about a quarter of the size or less. Look-up tables and weights
        of many features are rounded to multiples of a power of two, as small as the size allows and
        at most 1/512 of their root mean square, and all arrays are compressed; whatever else the
        model has is kept to the last bit. Scores typically change by less than a thousandth of
        their standard deviation (:doc:`/saving`). Prediction is as fast as before, loading takes
        longer.

    Raises
    ------
    UnsupportedModelError
        If the model holds something that cannot be saved, such as a function.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.kernels import Chi2
    >>> from hilbin.maps import AdditiveMap
    >>> from hilbin.persist import load, save
    >>> chi2_map = AdditiveMap(Chi2(), n_components=3).fit([[0.1, 0.9], [0.5, 0.5]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(chi2_map, Path(folder) / "map.hilbin")
    ...     loaded = load(Path(folder) / "map.hilbin")
    >>> bool((loaded.transform([[0.2, 0.8]]) == chi2_map.transform([[0.2, 0.8]])).all())
    True
    """
    registry = Registry(classes)
    notes = _checked_metadata(metadata)
    encoder = Encoder(registry, compact=compact)
    try:
        root = encoder.value(model, "model")
    except RecursionError:
        raise UnsupportedModelError("model is nested too deeply to be saved") from None
    header = {
        "class": registry.name_of(type(model)) or type(model).__name__,
        "versions": {package: version(package) for package in PACKAGES},
        "metadata": notes,
        "nodes": encoder.nodes,
        "model": root,
    }
    if compact:
        header["rounded"] = encoder.rounded
    container.write(path, header, encoder.arrays, encoder.steps if compact else None)


def load(path: str | os.PathLike[str], *, classes: Iterable[type] = ()) -> Any:
    """Read a model that :func:`save` wrote.

    Nothing in the file is run: objects of known classes are made, get their attributes, and check
    them. What is not as :func:`save` writes it, to the last bit, is refused.

    Parameters
    ----------
    path : path-like
        Path of the file.
    classes : iterable of class, optional
        The classes of your own that were given to :func:`save`.

    Returns
    -------
    model : object
        The model as it was saved: it predicts the same, and can be cloned and fitted.

    Raises
    ------
    ModelFileError
        If the file is not a hilbin model, is truncated or corrupted, has another format, or names
        an unknown class.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.kernels import Chi2, Exponential
    >>> from hilbin.persist import load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Exponential(Chi2(), gamma=2.0), Path(folder) / "kernel.hilbin")
    ...     load(Path(folder) / "kernel.hilbin")
    Exponential(Chi2(), gamma=2.0)
    """
    registry = Registry(classes)
    require_regular(path)
    with open(path, "rb") as file:
        header = container.read_header(file)
        try:
            arrays = container.read_arrays(file, header)
            decoder = Decoder(registry, arrays)
            model = decoder.decode(header["nodes"], header["model"])
            saved_with = header["versions"]["scikit-learn"]
        except (ModelFileError, MemoryError):
            raise
        except UnknownNameError as error:
            container.refuse(file, f"is refused: {error}")
        except MALFORMED as error:
            container.refuse(file, f"is malformed: {error}")
    _warn_of_version(decoder.names, saved_with)
    return model


def info(path: str | os.PathLike[str]) -> ModelInfo:
    """Read what a model file says about itself, without its arrays.

    Parameters
    ----------
    path : path-like
        Path of the file.

    Returns
    -------
    info : ModelInfo

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.kernels import Chi2
    >>> from hilbin.persist import info, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Chi2(), Path(folder) / "kernel.hilbin", metadata={"seed": 7})
    ...     found = info(Path(folder) / "kernel.hilbin")
    >>> found.class_name, found.metadata
    ('hilbin.kernels.Chi2', {'seed': 7})
    """
    require_regular(path)
    with open(path, "rb") as file:
        header = container.read_header(file)
        size = os.fstat(file.fileno()).st_size
        try:
            said = header["class"], header["versions"], header["metadata"]
        except KeyError as error:
            container.refuse(file, f"is malformed: it does not say its {error}")
        rounded = header.get("rounded", {})
        if not isinstance(rounded, dict) or not {*map(type, rounded.values())} <= {float}:
            container.refuse(file, "is malformed: it does not say what is rounded")
    return ModelInfo(header["format"], *said, size, rounded)


def _checked_metadata(metadata: Any) -> dict[str, Any]:
    notes = {} if metadata is None else metadata
    try:
        same = isinstance(notes, dict) and json.loads(json.dumps(notes, allow_nan=False)) == notes
    except (TypeError, ValueError) as error:
        raise TypeError(f"metadata must be a dict of what JSON can hold: {error}") from None
    if not same:
        raise TypeError(
            "metadata must be a dict of what JSON can hold: texts as keys, and lists, no tuples"
        )
    return notes


def _warn_of_version(names: list[str], saved_with: str) -> None:
    theirs = [name for name in names if name.startswith("sklearn.")]
    current = version("scikit-learn")
    if theirs and saved_with != current:
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name=theirs[0].rpartition(".")[2],
                current_sklearn_version=current,
                original_sklearn_version=saved_with,
            ),
            stacklevel=3,
        )
