"""Features of a user's own frozen network.

The network is an ONNX file that takes one image and gives a vector, or features at many places.
Negative outputs are cut off, so that the row is a histogram of what the network has seen and how
strongly; features at many places are averaged, which keeps the explanation exact: every place takes
the part of a feature's contribution that it has in the average.
"""

import functools
import weakref
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice
from hilbin.images._base import ImageTransformer
from hilbin.images.read import Pixels, in_color, resized
from hilbin.images.words import WordGrid, paint

_sessions: "weakref.WeakKeyDictionary[OnnxFeatures, Any]" = weakref.WeakKeyDictionary()


@estimator
class OnnxFeatures(ImageTransformer):
    """Output of a network in an ONNX file.

    Parameters
    ----------
    path : path-like
        The file; it is read when the transformer is fitted and kept with it.
    output : str, optional
        Name of the output to take; the first by default.
    size : (int, int), default=(224, 224)
        Height and width of the images for the network.
    mean, std : float or three floats, default=0 and 1
        ``(value - mean) / std`` of values within [0, 1] goes into the network.
    pool : {"avg", "max"}, default="avg"
        How to pool over the places if the output has some.
    max_side : int or None, default=512
        Larger images are reduced first, and shown in this size in explanations.

    Attributes
    ----------
    network_ : uint8 array
        The bytes of the file.
    n_outputs_ : int
        Length of a row.

    Examples
    --------
    >>> from hilbin.images import OnnxFeatures
    >>> features = OnnxFeatures("network.onnx", mean=(0.485, 0.456, 0.406), std=0.225)
    """

    _uses_color = True

    path: Any
    _: KW_ONLY
    output: str | None = None
    size: tuple[int, int] = (224, 224)
    mean: Any = 0.0
    std: Any = 1.0
    pool: str = "avg"
    max_side: int | None = 512

    def _check(self) -> None:
        super()._check()
        require_choice("pool", self.pool, ("avg", "max"))

    def _learn(self, sources: Sequence[Any], y: Any) -> None:
        """Read the network and try it once."""
        with open(self.path, "rb") as file:
            self.network_ = np.frombuffer(file.read(), np.uint8)
        _sessions.pop(self, None)
        self.n_outputs_ = self._outputs(np.zeros((*self.size, 3), np.uint8)).shape[0]

    def transform_image(self, image: Pixels) -> Array:
        """Return the pooled features of one image."""
        features = self._outputs(image).reshape(self.n_outputs_, -1)
        pooled = features.mean(axis=1) if self.pool == "avg" else features.max(axis=1)
        return np.asarray(pooled, np.float32)

    def to_pixels(self, image: Pixels, contributions: Array) -> Array:
        """Distribute the contributions over the places where the features were seen."""
        features = self._outputs(image).astype(np.float64)
        if features.ndim == 1:
            features = features[:, None, None]
        flat = features.reshape(self.n_outputs_, -1)
        if self.pool == "max":
            flat = (flat == flat.max(axis=1, keepdims=True)).astype(np.float64)
        total = flat.sum(axis=1, keepdims=True)
        parts = np.where(total > 0, flat / np.where(total > 0, total, 1), 1 / flat.shape[1])
        height, width = features.shape[1:]
        share = (np.asarray(contributions)[:, None] * parts).sum(axis=0).reshape(height, width)
        ys = (np.arange(height) + 0.5) * (image.shape[0] / height) - 0.5
        xs = (np.arange(width) + 0.5) * (image.shape[1] / width) - 0.5
        side = max(image.shape[0] / height, image.shape[1] / width)
        return paint(image.shape, [WordGrid(share, ys, xs, side)], [share])

    def _outputs(self, image: Pixels) -> Array:
        """Run the network; return its features, perhaps by places, negative values cut off."""
        session = self._session()
        node = session.get_inputs()[0]
        values = np.asarray(resized(in_color(image), self.size), np.float32) / np.float32(255)
        values = (values - np.float32(self.mean)) / np.float32(self.std)
        channels_last = len(node.shape) == 4 and node.shape[3] == 3
        given = values[None] if channels_last else values.transpose(2, 0, 1)[None]
        name = self.output or session.get_outputs()[0].name
        found = session.run([name], {node.name: np.ascontiguousarray(given)})[0]
        if found.ndim not in (2, 4):
            raise ValueError(
                f"output {name!r} of {self.path} has shape {found.shape}; expected "
                "(1, features) or (1, features, rows, columns)"
            )
        found = found[0].transpose(2, 0, 1) if channels_last and found.ndim == 4 else found[0]
        return np.maximum(found, 0)

    def _session(self) -> Any:
        if self not in _sessions:
            try:
                import onnxruntime
            except ImportError:
                raise ImportError(
                    'OnnxFeatures needs onnxruntime: pip install "hilbin[onnx]"'
                ) from None
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1  # the images are spread over threads
            start = functools.partial(onnxruntime.InferenceSession, sess_options=options)
            _sessions[self] = start(self.network_.tobytes(), providers=["CPUExecutionProvider"])
        return _sessions[self]

    @property
    def _n_features_out(self) -> int:
        return self.n_outputs_
