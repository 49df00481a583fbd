"""Find things in photographs: boxes, their files, and the detectors that find them.

A box is ``[x0, y0, x1, y1)``: pixels from the left and the top, half-open, so that its width is
``x1 - x0``.
"""

from hilbin.detect.annotations import read_boxes, write_boxes
from hilbin.detect.boxes import Boxes, BoxWarning, iou, sound_boxes, suppress
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
from hilbin.detect.many import run_all
from hilbin.detect.matching import Matches, average_precision, match_boxes
from hilbin.detect.pyramid import CellPyramid, CodedPyramid
from hilbin.detect.reasons import BoxReasons, explain_box
from hilbin.detect.template import Template
from hilbin.detect.windows import CodedWindowRows, WindowRows

__all__ = [
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
    "average_precision",
    "detect_files",
    "evaluate_detector",
    "explain_box",
    "iou",
    "match_boxes",
    "read_boxes",
    "run_all",
    "sound_boxes",
    "suppress",
    "write_boxes",
]
