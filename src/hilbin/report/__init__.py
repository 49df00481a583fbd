"""A report on a classifier: one HTML page that shows how good it is and why it decides so.

The caller collects an :class:`Evidence`; :func:`write_report` makes one HTML file of it that needs
no network, no other file and no server. :func:`overlay` draws a heat map over a photograph.
Pictures need Pillow (``pip install "hilbin[images]"``); a report on a table does not.
"""

from hilbin.report.evidence import Duplicate, Evidence, Shape, Suspicion, VisualWord
from hilbin.report.page import write_report
from hilbin.report.pictures import overlay

__all__ = [
    "Duplicate",
    "Evidence",
    "Shape",
    "Suspicion",
    "VisualWord",
    "overlay",
    "write_report",
]
