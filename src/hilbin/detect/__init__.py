"""Find things in photographs: boxes, their files, and the detectors that find them.

A box is ``[x0, y0, x1, y1)``: pixels from the left and the top, half-open, so that its width is
``x1 - x0``.
"""

from hilbin.detect.boxes import Boxes, BoxWarning, iou, sound_boxes, suppress
from hilbin.detect.cells import WordCells, restriction_kernel
from hilbin.detect.matching import Matches, average_precision, match_boxes
from hilbin.detect.search import BestBox, best_box

__all__ = [
    "BestBox",
    "BoxWarning",
    "Boxes",
    "Matches",
    "WordCells",
    "average_precision",
    "best_box",
    "iou",
    "match_boxes",
    "restriction_kernel",
    "sound_boxes",
    "suppress",
]
