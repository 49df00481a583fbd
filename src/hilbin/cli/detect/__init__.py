"""``hilbin detect``: a detector from files of boxes, what it finds in images, and how good it is.

The commands are :class:`~hilbin.detect.DeformableDetector`, :func:`~hilbin.detect.detect_files` and
:func:`~hilbin.detect.evaluate_detector` with files.
"""
