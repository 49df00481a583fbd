"""Find things in photographs: boxes, their files, and the detectors that find them.

A box is ``[x0, y0, x1, y1)``: pixels from the left and the top, half-open, so that its width is
``x1 - x0``.
"""

from hilbin.detect.annotations import read_boxes, write_boxes
from hilbin.detect.box_model import BoxModel
from hilbin.detect.boxes import Boxes, BoxWarning, iou, sound_boxes, suppress
from hilbin.detect.cells import WordCells, restriction_kernel
from hilbin.detect.detector import DeformableDetector
from hilbin.detect.evaluation import (
    Detected,
    DetectorEvaluation,
    FalseAlarm,
    Miss,
    detect_files,
    evaluate_detector,
)
from hilbin.detect.formats.records import ImageBoxes
from hilbin.detect.localizer import BoxExplanation, BoxLocalizer
from hilbin.detect.many import run_all
from hilbin.detect.matching import Matches, average_precision, match_boxes
from hilbin.detect.pyramid import CellPyramid, CodedPyramid
from hilbin.detect.reasons import BoxReasons, explain_box
from hilbin.detect.search import BestBox, best_box
from hilbin.detect.template import Template
from hilbin.detect.windows import CodedWindowRows, WindowRows

__all__ = [
    "BestBox",
    "BoxExplanation",
    "BoxLocalizer",
    "BoxModel",
    "BoxReasons",
    "BoxWarning",
    "Boxes",
    "CellPyramid",
    "CodedPyramid",
    "CodedWindowRows",
    "DeformableDetector",
    "Detected",
    "DetectorEvaluation",
    "FalseAlarm",
    "ImageBoxes",
    "Matches",
    "Miss",
    "Template",
    "WindowRows",
    "WordCells",
    "average_precision",
    "best_box",
    "detect_files",
    "evaluate_detector",
    "explain_box",
    "iou",
    "match_boxes",
    "read_boxes",
    "restriction_kernel",
    "run_all",
    "sound_boxes",
    "suppress",
    "write_boxes",
]
