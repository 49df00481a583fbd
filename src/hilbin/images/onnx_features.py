"""A user's own frozen network as a descriptor.

The network is an ONNX file that takes one image and gives a vector, or a map of features over
places. Negative outputs are cut off, so that the row is a histogram of what the network has seen
and how strongly; a map is averaged over its places, which keeps the explanation exact: every place
takes the part of a feature's contribution that it has in the average.
"""

import functools
import weakref
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilbin.images._base import ImageTransformer, Row
from hilbin.images._grids import Array, WordGrid, paint
from hilbin.images.read import Pixels, as_sources, in_color, resized

_sessions: "weakref.WeakKeyDictionary[OnnxFeatures, Any]" = weakref.WeakKeyDictionary()


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
        Over the places, if the output is a map.
    max_side : int, optional
        Larger images are reduced first, and shown in this size in explanations.
    n_jobs : int, optional
        Threads, as in joblib.

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

    def __init__(
        self,
        path: Any,
        *,
        output: str | None = None,
        size: tuple[int, int] = (224, 224),
        mean: Any = 0.0,
        std: Any = 1.0,
        pool: str = "avg",
        max_side: int | None = 512,
        n_jobs: int | None = None,
    ):
        self.path = path
        self.output = output
        self.size = size
        self.mean = mean
        self.std = std
        self.pool = pool
        self.max_side = max_side
        self.n_jobs = n_jobs

    def fit(self, images: Any, y: Any = None) -> Self:
        """Read the network and try it once.

        Parameters
        ----------
        images : sequence of paths or arrays
        y : ignored

        Returns
        -------
        self
        """
        as_sources(images)
        self._check()
        if self.pool not in ("avg", "max"):
            raise ValueError(f"pool must be 'avg' or 'max', got {self.pool!r}")
        with open(self.path, "rb") as file:
            self.network_ = np.frombuffer(file.read(), np.uint8)
        _sessions.pop(self, None)
        self.n_outputs_ = self._map(np.zeros((*self.size, 3), np.uint8)).shape[0]
        return self

    def describe(self, image: Pixels) -> Row:
        """The pooled features of one image."""
        features = self._map(image).reshape(self.n_outputs_, -1)
        pooled = features.mean(axis=1) if self.pool == "avg" else features.max(axis=1)
        return pooled.astype(np.float32)

    def to_pixels(self, image: Pixels, contributions: Array) -> NDArray[np.float64]:
        """Share contributions out over the places where the features were seen."""
        features = self._map(image).astype(np.float64)
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

    def _map(self, image: Pixels) -> NDArray[np.float32]:
        """What the network says, negative values cut off: features, or features by places."""
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")
