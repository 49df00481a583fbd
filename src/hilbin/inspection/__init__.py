"""Inspection: what a fitted model did, and why, for any classifier.

Every function takes a fitted classifier with ``decision_function`` or ``predict_proba``. What can
be shown depends on the model. If its scores are sums over the features (:func:`additive`), the
parts of an explanation sum to the score: :func:`contributions`, :func:`explain_row`,
:func:`explain_image`, :func:`heat_map`, :func:`visual_words`. Otherwise columns are left out, or
parts of images covered, one at a time: :func:`leave_column_out`, :func:`occlusion`.

:func:`collect_evidence` puts all of it into an :class:`Evidence`, from which
:func:`hilbin.report.write_report` makes a page.
"""

from hilbin.inspection.additive import (
    AdditiveModel,
    Contributions,
    additive,
    contributions,
    shape_functions,
)
from hilbin.inspection.collect import collect_evidence
from hilbin.inspection.duplicates import (
    difference_hash,
    duplicate_groups,
    find_duplicates,
    hash_distances,
    near_duplicates,
)
from hilbin.inspection.evidence import Duplicate, Evidence, Shape, Suspicion, VisualWord
from hilbin.inspection.explanation import Explanation, explain_image, explain_row
from hilbin.inspection.heat_maps import ImageExplainer, heat_map, occlusion
from hilbin.inspection.importances import Importances, importances, leave_column_out
from hilbin.inspection.labels import suspicious_labels
from hilbin.inspection.reliability import Reliability, reliability
from hilbin.inspection.scores import class_probabilities, class_scores
from hilbin.inspection.words import ImageColumn, image_column, sum_by_word, visual_words

__all__ = [
    "AdditiveModel",
    "Contributions",
    "Duplicate",
    "Evidence",
    "Explanation",
    "ImageColumn",
    "ImageExplainer",
    "Importances",
    "Reliability",
    "Shape",
    "Suspicion",
    "VisualWord",
    "additive",
    "class_probabilities",
    "class_scores",
    "collect_evidence",
    "contributions",
    "difference_hash",
    "duplicate_groups",
    "explain_image",
    "explain_row",
    "find_duplicates",
    "hash_distances",
    "heat_map",
    "image_column",
    "importances",
    "leave_column_out",
    "near_duplicates",
    "occlusion",
    "reliability",
    "shape_functions",
    "sum_by_word",
    "suspicious_labels",
    "visual_words",
]
