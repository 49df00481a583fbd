"""Features of a frozen network in an ONNX file.

A network takes an image and gives, for each of its outputs, a vector of channels, or a map of them:
a vector at every place of a coarse grid. Channels become non-negative: an output of a ReLU is as it
is, one that has negative values is split into its positive and its negative part. Maps are pooled
over the cells of a spatial pyramid, the whole image and its quarters for example. For the average,
with ``f_c(p)`` the channel ``c`` at the place ``p`` and ``a_k(p)`` the share of the cell ``k`` that
the place covers, the feature is ::

    x_kc = w_k sum_p a_k(p) f_c(p)

so a place takes the part ``w_k a_k(p) f_c(p) / x_kc`` of what the feature contributes to a score,
and heat maps are exact. ``w_k`` is the weight of the level by Lazebnik, divided by its number of
cells, as in :class:`~hilbin.images.SpatialPyramid`.
"""

import functools
import os
import threading
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice, require_whole
from hilbin._state import require, require_vector, stored
from hilbin.images._base import FeatureError, ImageTransformer
from hilbin.images._network import Network
from hilbin.images.descriptors import file_and_options
from hilbin.images.read import ImageError, Pixels, in_color, resized, source_name
from hilbin.images.words import WHOLE, Cut, lazebnik_weights, pyramid_cuts

NORMALIZATIONS: dict[str, tuple[Any, Any]] = {  # mean and deviation of values within [0, 1]
    "0..1": (0.0, 1.0),
    "-1..1": (0.5, 0.5),
    "0..255": (0.0, 1 / 255),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}
PROBES = 8  # images that the network is tried on

_networks: "weakref.WeakKeyDictionary[OnnxFeatures, Network]" = weakref.WeakKeyDictionary()
_opening = threading.Lock()


@stored
@dataclass(frozen=True)
class NetworkOutput:
    """An output of a network, and how it becomes features.

    Columns are ordered by level, cell and channel; in a cell the positive parts of all channels
    precede the negative ones.

    Parameters
    ----------
    name : str
    n_channels : int
    signed : bool
        Whether values are split into positive and negative parts.
    cuts : tuple of (int, int)
        Rows and columns of cells of every level.
    weights : tuple of float
        Factors of the levels.
    """

    name: str
    n_channels: int
    signed: bool
    cuts: tuple[Cut, ...]
    weights: tuple[float, ...]

    def _check_state(self) -> None:
        require(isinstance(self.name, str), "an output of the network has no name")
        require(isinstance(self.cuts, tuple), "the levels of an output are not a tuple")
        numbers = [self.n_channels, *(n for cut in self.cuts for n in cut)]
        require(all(type(n) is int and n >= 1 for n in numbers), "an output has no channels")
        require(0 < len(self.cuts) == len(self.weights), "an output has not one weight per level")

    @property
    def n_features(self) -> int:
        """Number of columns."""
        cells = sum(rows * columns for rows, columns in self.cuts)
        return cells * self.n_channels * (2 if self.signed else 1)

    def feature_names(self) -> list[str]:
        """Return what every column is."""
        signs = (" positive", " negative") if self.signed else ("",)
        return [
            f"{self.name} {channel}{sign}" + (f", {_cell_name(cut, cell)}" if cut != WHOLE else "")
            for cut in self.cuts
            for cell in range(cut[0] * cut[1])
            for sign in signs
            for channel in range(self.n_channels)
        ]

    def pooled(self, maps: Array, pool: str) -> Array:
        """Return the features of maps of shape (n_images, n_channels, rows, columns)."""
        weights = _pooling(self.cuts, self.weights, *maps.shape[2:])
        flat = self._parts(maps.reshape(*maps.shape[:2], -1))
        if pool == "avg":  # no BLAS: sums are the same on any number of threads
            cells = np.einsum("kp,ncp->nkc", weights.astype(flat.dtype), flat)
        else:
            most = [flat[:, :, w > 0].max(axis=2) * w.sum() for w in weights]
            cells = np.stack(most, axis=1)
        return cells.reshape(len(maps), self.n_features)

    def over_places(self, maps: Array, contributions: Array, pool: str) -> Array:
        """Distribute contributions over the places of the maps of one image."""
        weights = _pooling(self.cuts, self.weights, *maps.shape[1:])
        flat = self._parts(maps.reshape(1, len(maps), -1).astype(np.float64))[0]
        share = np.zeros(flat.shape[1])
        for cell, amounts in zip(weights, contributions.reshape(len(weights), -1), strict=True):
            if pool == "avg":
                parts = cell * flat
            else:
                here = np.where(cell > 0, flat, -1.0)
                parts = ((here == here.max(axis=1, keepdims=True)) & (flat > 0)).astype(np.float64)
            total = parts.sum(axis=1)
            rate = np.divide(amounts, total, out=np.zeros(len(total)), where=total > 0)
            absent = amounts[total == 0].sum()  # spread over the cell, as for absent words
            share += rate @ parts + absent * cell / cell.sum()
        return share.reshape(maps.shape[1:])

    def _parts(self, values: Array) -> Array:
        """Return non-negative channels of values of shape (n_images, n_channels, places)."""
        positive = np.maximum(values, 0)
        if not self.signed:
            return positive
        return np.concatenate([positive, np.maximum(-values, 0)], axis=1)


@functools.lru_cache
def _pooling(cuts: tuple[Cut, ...], weights: tuple[float, ...], rows: int, columns: int) -> Array:
    """Return the weight of every place in every cell, of shape (cells, rows * columns)."""
    levels = [
        weight / (cut[0] * cut[1]) * np.kron(_shares(cut[0], rows), _shares(cut[1], columns))
        for cut, weight in zip(cuts, weights, strict=True)
    ]
    return np.vstack(levels)


@functools.lru_cache
def _shares(n: int, m: int) -> Array:
    """Return which share of each of ``n`` pieces of a line each of ``m`` pieces covers."""
    begin, first = np.arange(n)[:, None] / n, np.arange(m)[None, :] / m
    overlap = np.minimum(begin + 1 / n, first + 1 / m) - np.maximum(begin, first)
    overlap = np.where(overlap > 1e-9 / max(n, m), overlap, 0.0)
    shares: Array = overlap / overlap.sum(axis=1, keepdims=True)
    return shares


def _cell_name(cut: Cut, cell: int) -> str:
    row, column = divmod(cell, cut[1])
    return f"row {row + 1} of {cut[0]}, column {column + 1} of {cut[1]}"


@estimator
class OnnxFeatures(ImageTransformer):
    """Outputs of a network in an ONNX file.

    The network has one input, images of three channels: ``(n, 3, height, width)`` or ``(n, height,
    width, 3)``, which holds for maps among its outputs too.

    Parameters
    ----------
    path : path-like
        The file; it is read when the transformer is fitted and kept with it.
    outputs : str or sequence of str, optional
        Names of the outputs to take. By default all maps, or the first output if there are none.
    levels : int or list of (int, int), default=2
        Levels of the pyramid that maps are pooled by, the first of which is the whole image, or
        the rows and columns of cells of every level. Levels that are finer than a map are left out
        for it.
    pool : {"avg", "max"}, default="avg"
        How to pool over the places of a cell.
    normalization : {"0..1", "-1..1", "0..255", "imagenet"} or (mean, std), optional
        Values that the network takes: a range, or ``(value - mean) / std`` of values within
        [0, 1], with one number or three for red, green and blue; ``"imagenet"`` is torchvision's
        mean and deviation. By default what the file says, or ``"0..1"`` and a warning if it says
        nothing.
    size : (int, int), optional
        Height and width of the images for the network. By default what the file says, or 224 by
        224.
    batch_size : int, default=1
        Images per run of a network that takes any number. More are no faster on a processor, where
        ``n_jobs`` threads run images side by side. If the file says how many, that holds.
    max_side : int or None, default=512
        Larger images are reduced first, and shown in this size in explanations.

    Attributes
    ----------
    network_ : uint8 array
        The bytes of the file.
    outputs_ : list of NetworkOutput
        The outputs that are taken, with ``name``, ``n_channels``, ``signed`` and ``cuts``.
    column_groups_ : dict from str to slice
        Columns of every output.
    normalization_ : array of shape (2, 3)
        Mean and deviation that are used.
    size_ : (int, int)
        Height and width that are used.

    Examples
    --------
    >>> from hilbin.images import OnnxFeatures
    >>> features = OnnxFeatures("network.onnx", outputs="map", normalization="imagenet")
    """

    _uses_color = True

    path: Any
    _: KW_ONLY
    outputs: Any = None
    levels: Any = 2
    pool: str = "avg"
    normalization: Any = None
    size: tuple[int, int] | None = None
    batch_size: int = 1
    max_side: int | None = 512

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the transformer of a text such as ``net.onnx,normalization=imagenet``.

        Options after the file are ``outputs``, which may be repeated, ``levels``, ``pool``,
        ``normalization`` by name, and ``size``, such as 192 or 192x256.

        Examples
        --------
        >>> from hilbin.images import OnnxFeatures
        >>> OnnxFeatures.from_text("net.onnx,outputs=map,outputs=mid,size=192")
        OnnxFeatures(outputs=['map', 'mid'], path='net.onnx', size=(192, 192))
        """
        file, options = file_and_options(text)
        given: dict[str, Any] = {}
        for name, value in options:
            if name == "outputs":
                given.setdefault(name, []).append(value)
            elif name in ("levels", "size"):
                numbers = value.split("x")
                if not all(n.isdecimal() for n in numbers) or len(numbers) > 1 + (name == "size"):
                    raise ValueError(f"{name}={value} of {file} is not a number")
                both = (int(numbers[0]), int(numbers[-1]))
                given[name] = both if name == "size" else both[0]
            elif name in ("pool", "normalization"):
                given[name] = value
            else:
                raise ValueError(
                    f"{name!r} is not an option of a network; there are outputs, levels, pool, "
                    "normalization and size"
                )
        return cls(file, **given)

    def _check(self) -> None:
        super()._check()
        require_choice("pool", self.pool, ("avg", "max"))
        require_whole("batch_size", self.batch_size, 1)
        pyramid_cuts(self.levels)
        if self.normalization is not None:
            _mean_and_deviation(self.normalization)
        if self.size is not None and not (len(self.size) == 2 and min(self.size) >= 1):
            raise ValueError(f"size must be (height, width), got {self.size!r}")

    def _learn(self, sources: Sequence[Any], y: Any) -> None:
        with open(self.path, "rb") as file:
            self.network_ = np.frombuffer(file.read(), np.uint8)
        _networks.pop(self, None)
        network = self._network()
        self.size_ = network.size_for(self.size)
        self.normalization_ = _mean_and_deviation(self._normalization(network))
        names = self._wanted(network)
        found = self._probe(network, sources, names)
        if self.outputs is None:
            maps = [name for name in names if found[name][0, 0].size > 1]
            names = maps or names[:1]
        self.outputs_ = [self._output(name, found[name]) for name in names]

    def _normalization(self, network: Network) -> Any:
        if self.normalization is not None:
            return self.normalization
        told = network.input_range(self.network_.tobytes())
        if told is None:
            warnings.warn(
                f"{os.fspath(self.path)} does not say which values its input takes; it gets values "
                "within [0, 1]. If that is right say normalization='0..1', else one of "
                f"{', '.join(map(repr, NORMALIZATIONS))}, or (mean, std)",
                stacklevel=4,
            )
        return told or "0..1"

    def _wanted(self, network: Network) -> list[str]:
        """Return the names of the outputs that may be taken."""
        if self.outputs is None:
            return network.maps() or network.output_names[:1]
        names = [self.outputs] if isinstance(self.outputs, str) else list(self.outputs)
        if not names or len(set(names)) < len(names):
            raise ValueError(f"outputs must be different names, at least one, got {names}")
        if unknown := [name for name in names if name not in network.output_names]:
            raise ValueError(
                f"{os.fspath(self.path)} has no output {', '.join(map(repr, unknown))}; it has "
                f"{', '.join(map(repr, network.output_names))}"
            )
        return names

    def _probe(
        self, network: Network, sources: Sequence[Any], names: list[str]
    ) -> dict[str, Array]:
        """Return the outputs for some of the images, and for noise, black and white."""
        noise = np.random.default_rng(0).integers(0, 256, (*self.size_, 3), np.uint8)
        images = [noise, 0 * noise, 0 * noise + np.uint8(255)]
        labels = ["noise", "a black image", "a white image"]
        for i in np.unique(np.linspace(0, len(sources) - 1, min(PROBES, len(sources))).astype(int)):
            try:
                images.append(self.read(sources[i]))
                labels.append(source_name(sources[i], int(i)))
            except ImageError:
                continue
        try:
            found = network.run(self._values(images), names, self.batch_size)
        except FeatureError as error:
            raise error.named(labels[error.place]) from None
        return dict(zip(names, found, strict=True))

    def _output(self, name: str, values: Array) -> NetworkOutput:
        rows, columns = values.shape[2:] or WHOLE
        cuts = [cut for cut in pyramid_cuts(self.levels) if cut[0] <= rows and cut[1] <= columns]
        cuts = cuts or [WHOLE]
        counted = isinstance(self.levels, int)
        weights = lazebnik_weights(len(cuts)).tolist() if counted else [1.0] * len(cuts)
        signed = bool(values.min() < 0)
        return NetworkOutput(name, values.shape[1], signed, tuple(cuts), tuple(weights))

    def _values(self, images: Sequence[Pixels]) -> Array:
        """Return the images in the size and with the values that the network takes."""
        mean, deviation = self.normalization_
        scale, shift = np.float32(1 / (255 * deviation)), np.float32(-mean / deviation)
        values = np.stack([resized(in_color(image), self.size_) for image in images])
        scaled: Array = values * scale + shift
        return scaled

    def _maps(self, images: Sequence[Pixels]) -> list[Array]:
        """Return every output, of shape (n_images, n_channels, rows, columns)."""
        names = [output.name for output in self.outputs_]
        found = self._network().run(self._values(images), names, self.batch_size)
        return [values.reshape(*values.shape, *WHOLE[values.ndim - 2 :]) for values in found]

    def transform_images(self, images: Sequence[Pixels]) -> Array:
        """Return the pooled features of several images."""
        maps = self._maps(images)
        pooled = [o.pooled(m, self.pool) for o, m in zip(self.outputs_, maps, strict=True)]
        return np.concatenate(pooled, axis=1)

    def transform_image(self, image: Pixels) -> Array:
        """Return the pooled features of one image."""
        row: Array = self.transform_images([image])[0]
        return row

    def to_pixels(self, image: Pixels, contributions: Array) -> Array:
        """Distribute the contributions over the places where the features were seen.

        Every place of a map is a rectangle of the image; outputs without places are spread over the
        whole image.
        """
        height, width = image.shape[:2]
        heat = np.zeros((height, width))
        given = np.asarray(contributions, np.float64)
        for output, maps in zip(self.outputs_, self._maps([image]), strict=True):
            amounts = given[self.column_groups_[output.name]]
            share: Array = output.over_places(maps[0], amounts, self.pool)
            rows, columns = maps.shape[2:]
            heat += _shares(rows, height).T @ share @ _shares(columns, width)
        return heat

    @property
    def column_groups_(self) -> dict[str, slice]:
        """Columns of every output."""
        ends = np.cumsum([output.n_features for output in self.outputs_]).tolist()
        starts = [0, *ends[:-1]]
        return {o.name: slice(*at) for o, *at in zip(self.outputs_, starts, ends, strict=True)}

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the output, the channel and the cell of every column.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : array of str
        """
        return np.array([n for o in self.outputs_ for n in o.feature_names()], object)

    def _network(self) -> Network:
        with _opening:
            if self not in _networks:
                _networks[self] = Network(self.network_.tobytes(), os.fspath(self.path))
            return _networks[self]

    def _check_state(self) -> None:
        if not hasattr(self, "network_"):
            return
        require_vector(self.network_, np.uint8, "network_")
        outputs = self.outputs_
        require(all(isinstance(o, NetworkOutput) for o in outputs), "outputs_ are not outputs")
        normalization = np.asarray(self.normalization_)
        require(normalization.shape == (2, 3), "normalization_ is not three means and deviations")
        sizes = all(type(n) is int and n >= 1 for n in self.size_)
        require(sizes and len(self.size_) == 2, "size_ is not a height and a width")

    @property
    def _images_per_batch(self) -> int:
        return self._network().batch or self.batch_size

    @property
    def _n_features_out(self) -> int:
        return sum(output.n_features for output in self.outputs_)


def _mean_and_deviation(normalization: Any) -> Array:
    """Return the means and the deviations of the three channels, of shape (2, 3)."""
    if isinstance(normalization, str):
        require_choice("normalization", normalization, tuple(NORMALIZATIONS))
        normalization = NORMALIZATIONS[normalization]
    try:
        mean, deviation = normalization
        found = np.array([np.broadcast_to(np.asarray(v, float), 3) for v in (mean, deviation)])
    except (TypeError, ValueError):
        found = np.full((2, 3), np.nan)
    if not (np.isfinite(found).all() and (found[1] > 0).all()):
        raise ValueError(
            f"normalization must be one of {tuple(NORMALIZATIONS)}, or a mean and a deviation > 0, "
            f"each one number or three, got {normalization!r}"
        )
    return found
