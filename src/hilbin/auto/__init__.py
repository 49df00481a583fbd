"""Auto: images and tables, with labels and without.

:class:`ImageClassifier` takes images or folders of them, :class:`TableClassifier` arrays, data
frames and files. The model is chosen by
cross-validation (:func:`choose`) among candidates (:func:`row_candidates`), trained on all rows,
and gives calibrated probabilities and reasons. :class:`ImageCollection` and
:class:`TableCollection` need no labels: they find similar examples, duplicates and clusters.
"""

from hilbin.auto import exporting as _exporting  # noqa: F401 - enters its classes for to_onnx
from hilbin.auto.candidates import row_candidates
from hilbin.auto.channels import ChannelMap, ChannelWeights
from hilbin.auto.choice import Candidate, Choice, choose
from hilbin.auto.collection import Clustering, Difference, Neighbor
from hilbin.auto.dual import DualRidgeClassifier, DualSVC
from hilbin.auto.duplicate_images import duplicate_images
from hilbin.auto.evaluation import Evaluation, Mistake
from hilbin.auto.image_classifier import ImageClassifier
from hilbin.auto.image_collection import ImageCollection
from hilbin.auto.table_classifier import TableClassifier
from hilbin.auto.table_collection import TableCollection

__all__ = [
    "Candidate",
    "ChannelMap",
    "ChannelWeights",
    "Choice",
    "Clustering",
    "Difference",
    "DualRidgeClassifier",
    "DualSVC",
    "Evaluation",
    "ImageClassifier",
    "ImageCollection",
    "Mistake",
    "Neighbor",
    "TableClassifier",
    "TableCollection",
    "choose",
    "duplicate_images",
    "row_candidates",
]
