"""Errors of saving, loading and exporting."""


class ModelFileError(ValueError):
    """The file cannot be loaded: it is no model file, truncated, corrupted, too new, or forged."""


class UnsupportedModelError(TypeError):
    """The model has a part that cannot be saved or exported; the message says which."""
