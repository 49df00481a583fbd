"""A model file in use: from images or rows to scores of named classes.

The file is one that ``hilbin train`` wrote, or that ``save`` of an
:class:`~hilbin.auto.ImageClassifier` or a :class:`~hilbin.auto.TableClassifier` wrote.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from hilbin import persist
from hilbin._arrays import Array
from hilbin.auto import ImageClassifier, TableClassifier, table_data
from hilbin.auto.table_data import TableEncoder
from hilbin.cli._outcome import InputError
from hilbin.cli._tables import SUFFIXES, Table, read_table
from hilbin.images import ImageError
from hilbin.inspection import class_scores

KINDS = ("images", "table")


@dataclass(frozen=True)
class Model:
    """A classifier of images or of table rows.

    Parameters
    ----------
    path : Path
        Its file.
    pipeline : Pipeline
        ``features`` (images only) and ``classifier``.
    metadata : dict
        See :mod:`hilbin.cli._metadata`.
    calibration : ScoreCalibration, optional
        From scores to probabilities.
    id : str, optional
        Column of a table that names the rows.
    """

    path: Path
    pipeline: Pipeline
    metadata: dict[str, Any]
    calibration: Any = None
    id: str | None = None

    @property
    def classes(self) -> list[str]:
        """Names, in the order of the scores."""
        return [str(c) for c in self.classifier.classes_]

    @property
    def of_images(self) -> bool:
        """Whether it takes images, or rows of a table."""
        return bool(self.metadata["kind"] == "images")

    @property
    def features(self) -> Any:
        """The transformer from images to rows."""
        return self.pipeline.named_steps["features"]

    @property
    def classifier(self) -> Any:
        """The classifier of rows."""
        if isinstance(self.pipeline[0], TableEncoder):
            return self.pipeline[1:]
        return self.pipeline.named_steps["classifier"]

    def scores(self, rows: Any) -> Array:
        """Scores of all classes for rows, shape (n, n_classes)."""
        return class_scores(self.classifier, rows)

    def image_scores(self, paths: Sequence[Path]) -> tuple[Array, dict[int, ImageError]]:
        """Scores of all classes for images, and which images cannot be read."""
        rows, unreadable = self.features.transform_with_errors(paths)
        return self.scores(rows), unreadable

    def probabilities(self, scores: Array) -> Array | None:
        """Return the probabilities that belong to scores of all classes, if there are some."""
        if self.calibration is None:
            return None
        two = scores.shape[1] == 2
        found: Array = self.calibration.predict_proba(scores[:, 1] if two else scores)
        return found

    def table(self, path: Path) -> Table:
        """Read a table in the columns that the model takes, with labels if it has them.

        Parameters
        ----------
        path : Path
            The file.
        """
        suffix = Path(path.name.lower().removesuffix(".gz")).suffix
        if suffix not in table_data.SUFFIXES:
            listed = ", ".join(SUFFIXES)
            raise InputError(f"{path}: not a table ({listed}); this model is of tables")
        about = self.metadata["table"]
        encoder = self.pipeline[0]
        if not isinstance(encoder, TableEncoder):
            wanted = {"columns": about["columns"], "n_features": about["n_features"]}
            return read_table(path, about["target"], **wanted, id=self.id)
        if suffix in (*table_data.SVMLIGHT, ".npz"):
            found, labels = table_data.labeled_rows(path, about["target"])
        else:
            found, labels = table_data.read_table(path), None
            if about["target"] in (found.names or []):
                labels = table_data.label_texts(found.column(about["target"]), str(path))
        ids = found.column(self.id) if self.id in (found.names or []) else None
        return Table(
            encoder.transform(found),
            None if labels is None or not len(labels) else labels.tolist(),
            encoder.get_feature_names_out().tolist(),
            None if ids is None else [str(value) for value in ids],
        )

    def columns(self, n_features: int) -> list[str]:
        """Return the names of the features of table rows."""
        if isinstance(self.pipeline[0], TableEncoder):
            names: list[str] = self.pipeline[0].get_feature_names_out().tolist()
            return names
        known = self.metadata["table"]["columns"]
        return known or [f"column {j + 1}" for j in range(n_features)]

    def threshold(self, share: float) -> float:
        """The score below which this share of correctly classified held-out examples lies."""
        quantiles = (self.metadata["cv"] or {}).get("winning_quantiles")
        if quantiles is None:
            raise InputError(f"{self.path}: no cross-validation to take the threshold from")
        return float(np.interp(100 * share, np.arange(101), quantiles))


def load_model(path: str | Path) -> Model:
    """The model in a file.

    Parameters
    ----------
    path : path
    """
    require_file(path)
    metadata = persist.info(path).metadata
    pipeline = persist.load(path)
    if isinstance(pipeline, ImageClassifier | TableClassifier):
        id_column = getattr(pipeline, "id", None)
        return Model(
            Path(path), pipeline.model_, complete(metadata), pipeline.calibration_, id_column
        )
    if metadata.get("kind") not in KINDS or not isinstance(pipeline, Pipeline):
        raise InputError(f"{path}: holds {type(pipeline).__name__}, not made by hilbin train")
    return Model(Path(path), pipeline, metadata, id=metadata.get("table", {}).get("id"))


def complete(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a classifier of ``hilbin.auto`` as those that ``hilbin train`` writes.

    Parameters
    ----------
    metadata : dict
        As its ``save`` wrote them.
    """
    seconds = metadata["seconds"]
    python = {"images": "ImageClassifier", "table": "TableClassifier"}[metadata["kind"]]
    common: dict[str, Any] = {
        "command": f"hilbin.{python}",
        "features": None,
        "kernel": metadata.get("model"),
        "seed": None,
        "created": "at a time that is not known",
        "unreadable": [],
    }
    found = {**common, **metadata}
    found["seconds"] = seconds if isinstance(seconds, dict) else {"fit": seconds}
    found["data"] = {"sha256": "not known", **metadata["data"]}
    found["suspicious"] = [
        {**one, "label": one.get("label", one.get("given"))} for one in metadata["suspicious"]
    ]
    return found


def require_file(path: str | Path) -> None:
    """Complain unless there is such a file."""
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such model file")
