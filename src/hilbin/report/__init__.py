"""A report on a classifier: one HTML page that shows how good it is and why it decides so.

:func:`hilbin.inspection.collect_evidence` collects the evidence; :func:`write_report` makes one
HTML file of it that needs no network, no other file and no server. :func:`write_detector_report`
does so for a detector of :mod:`hilbin.detect`, :func:`write_clusters` and :func:`write_montage` for
collections that have no labels. :func:`overlay` draws a heat map over a photograph. Pictures need
Pillow (``pip install "hilbin[images]"``); a report on a table does not.
"""

from hilbin.report.clusters import ClusterCard, write_clusters
from hilbin.report.detector_page import write_detector_report
from hilbin.report.montage import write_montage
from hilbin.report.page import write_report
from hilbin.report.pictures import overlay

__all__ = [
    "ClusterCard",
    "overlay",
    "write_clusters",
    "write_detector_report",
    "write_montage",
    "write_report",
]
