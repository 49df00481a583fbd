"""Auto: classifiers of images and tables that choose their features, kernel and parameters.

:class:`ImageClassifier` takes images or folders of them, :class:`TableClassifier` arrays, data
frames and files. The model is chosen by
cross-validation (:func:`choose`) among candidates (:func:`row_candidates`), trained on all rows,
and gives calibrated probabilities and reasons.
"""

from hilbin.auto import exporting as _exporting  # noqa: F401 - enters its classes for to_onnx
from hilbin.auto.candidates import row_candidates
from hilbin.auto.channels import ChannelMap, ChannelWeights
from hilbin.auto.choice import Candidate, Choice, choose
from hilbin.auto.dual import DualRidgeClassifier, DualSVC
from hilbin.auto.evaluation import Evaluation, Mistake
from hilbin.auto.image_classifier import ImageClassifier
from hilbin.auto.table_classifier import TableClassifier

__all__ = [
    "Candidate",
    "ChannelMap",
    "ChannelWeights",
    "Choice",
    "DualRidgeClassifier",
    "DualSVC",
    "Evaluation",
    "ImageClassifier",
    "Mistake",
    "TableClassifier",
    "choose",
    "row_candidates",
]
