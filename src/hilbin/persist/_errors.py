"""What can go wrong with models and files."""


class ModelFileError(ValueError):
    """A file that cannot be loaded: no model, cut off, corrupted, too new, or of other classes."""


class UnsupportedModelError(TypeError):
    """A model with a part that cannot be saved or exported; the message says which."""
