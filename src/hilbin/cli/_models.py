"""A model file in use: from images or rows to scores of named classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from hilbin import persist
from hilbin.cli._outcome import InputError
from hilbin.images import ImageError
from hilbin.inspection import class_scores

KINDS = ("images", "table")


@dataclass(frozen=True)
class Model:
    """A classifier that ``hilbin train`` wrote.

    Parameters
    ----------
    path : Path
    pipeline : Pipeline
        ``features`` (images only) and ``classifier``.
    metadata : dict
        See :mod:`hilbin.cli._metadata`.
    """

    path: Path
    pipeline: Pipeline
    metadata: dict[str, Any]

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
        return self.pipeline.named_steps["classifier"]

    def scores(self, rows: Any) -> NDArray[np.float64]:
        """Scores of all classes for rows, shape (n, n_classes)."""
        return class_scores(self.classifier, rows)

    def image_scores(
        self, paths: Sequence[Path]
    ) -> tuple[NDArray[np.float64], dict[int, ImageError]]:
        """Scores of all classes for images, and which images cannot be read."""
        rows, unreadable = self.features.transform_with_errors(paths)
        return self.scores(rows), unreadable

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
    if metadata.get("kind") not in KINDS or not isinstance(pipeline, Pipeline):
        raise InputError(f"{path}: holds {type(pipeline).__name__}, not made by hilbin train")
    return Model(Path(path), pipeline, metadata)


def require_file(path: str | Path) -> None:
    """Complain unless there is such a file."""
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such model file")
