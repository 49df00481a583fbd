"""Formats of files of boxes, a module each; :mod:`hilbin.detect.annotations` chooses."""
