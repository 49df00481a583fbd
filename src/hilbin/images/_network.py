"""A network in an ONNX file, ready to run on images.

What values a network wants is rarely written in its file. If the file has ONNX's metadata
``Image.NominalPixelRange`` or ``Image.BitmapPixelFormat``, or if the graph begins by centering its
input, that is followed. Everything else that does not fit, such as an input that is no image or
an output that is NaN, is an error that names the file.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.images._base import FeatureError

PIXEL_RANGES = {  # of ONNX's metadata
    "normalized_0_1": "0..1",
    "normalized_1_1": "-1..1",
    "nominalrange_0_255": "0..255",
}
DTYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
}
USUAL_SIDE = 224


class Network:
    """A network that is ready to run.

    Parameters
    ----------
    content : bytes
    name : str
        The file, for messages.
    """

    def __init__(self, content: bytes, name: str) -> None:
        self._name = name
        self._session = _session(content, name)
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            listed = ", ".join(repr(node.name) for node in inputs)
            raise ValueError(f"{name} has {len(inputs)} inputs ({listed}), not one image")
        self._input = inputs[0]
        shape = self._input.shape
        wrong = f"input {self._input.name!r} of {name}"
        if self._input.type not in DTYPES:
            raise ValueError(f"{wrong} is a {self._input.type}, not floats or bytes of an image")
        if len(shape) != 4 or (_known(shape[1]) not in (None, 3) and _known(shape[3]) != 3):
            raise ValueError(
                f"{wrong} has the shape {_shown(shape)}; an image has (n, 3, height, width) or "
                "(n, height, width, 3)"
            )
        self._channels_last = _known(shape[3]) == 3 and _known(shape[1]) != 3
        self._sides = tuple(_known(n) for n in (shape[1:3] if self._channels_last else shape[2:]))
        self.batch = _known(shape[0])
        self.output_names: list[str] = [node.name for node in self._session.get_outputs()]
        about = self._session.get_modelmeta().custom_metadata_map
        self._about = {key.lower(): text.lower() for key, text in about.items()}

    def size_for(self, wanted: tuple[int, int] | None) -> tuple[int, int]:
        """Return the height and width of images: what is wanted, if the network takes it."""
        sides = zip(self._sides, wanted or (None, None), strict=True)
        height, width = (fixed or asked or USUAL_SIDE for fixed, asked in sides)
        if wanted is not None and (height, width) != tuple(wanted):
            raise ValueError(
                f"{self._name} takes images of {height} x {width} pixels, not size={wanted!r}"
            )
        return int(height), int(width)

    def maps(self) -> list[str]:
        """Return the names of the outputs that have rows and columns of places."""
        return [node.name for node in self._session.get_outputs() if len(node.shape) == 4]

    def input_range(self, content: bytes) -> str | None:
        """Return the normalization that the file, of this content, tells of, or None."""
        told = PIXEL_RANGES.get(self._about.get("image.nominalpixelrange", ""))
        if told is None and self._input.type == "tensor(uint8)":
            return "0..255"
        return told or _range_of_first_steps(content, self._input.name)

    def run(self, values: Array, names: list[str], batch_size: int) -> list[Array]:
        """Return the named outputs: channels, or maps of shape (channels, rows, columns).

        Parameters
        ----------
        values : float32 array of shape (n_images, height, width, 3)
        names : list of str
        batch_size : int
            Images per run, unless the network says how many.
        """
        if self._about.get("image.bitmappixelformat", "").startswith("bgr"):
            values = values[..., ::-1]
        if not self._channels_last:
            values = values.transpose(0, 3, 1, 2)
        dtype = DTYPES[self._input.type]
        values = np.rint(values).clip(0, 255) if dtype == np.uint8 else values
        size = self.batch or batch_size
        found = []
        for begin in range(0, len(values), size):
            given = np.ascontiguousarray(values[begin : begin + size], dtype)
            n = len(given)
            if self.batch and n < size:
                given = np.concatenate([given, np.repeat(given[-1:], size - n, axis=0)])
            found.append(self._run(given, n, names, begin))
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]

    def _run(self, given: Array, n: int, names: list[str], begin: int) -> list[Array]:
        try:
            outputs = self._session.run(names, {self._input.name: given})
        except Exception as error:  # onnxruntime's errors have no base class of their own
            raise ValueError(
                f"{self._name} cannot be run on an input of the shape {given.shape}: "
                f"{_first_line(error)}"
            ) from None
        return [
            self._checked(*pair, len(given), n, begin) for pair in zip(names, outputs, strict=True)
        ]

    def _checked(self, name: str, values: Any, size: int, n: int, begin: int) -> Array:
        """Return the first ``n`` of ``size`` images' values of one output, channels first."""
        shape = getattr(values, "shape", None)
        if shape is None or len(shape) not in (2, 4) or shape[0] != size or 0 in shape:
            raise ValueError(
                f"output {name!r} of {self._name} has the shape {shape}; features have "
                f"({size}, channels) or ({size}, channels, rows, columns)"
            )
        found: Array = np.asarray(values[:n], np.float32)
        if found.ndim == 4 and self._channels_last:
            found = found.transpose(0, 3, 1, 2)
        finite = np.isfinite(found).reshape(n, -1).all(axis=1)
        if not finite.all():
            place = int(finite.argmin())
            odd = "NaN" if np.isnan(found[place]).any() else "infinite values"
            raise FeatureError(begin + place, f"output {name!r} of {self._name} has {odd}")
        return found


def _session(content: bytes, name: str) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise ImportError('OnnxFeatures needs onnxruntime: pip install "hilbin[onnx]"') from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the images are spread over threads
    options.log_severity_level = 4  # errors are raised, not printed as well
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no base class of their own
        if "external data" in str(error).lower():
            raise ValueError(
                f"{name} has its weights in another file; put them into it: "
                f"onnx.save(onnx.load({name!r}), {name!r})"
            ) from None
        raise ValueError(
            f"{name} is not a network that onnxruntime can read, or it is cut off: "
            f"{_first_line(error)}"
        ) from None


def _range_of_first_steps(content: bytes, name: str) -> str | None:
    """Return the range of values that a graph centers or scales in its first steps, or None.

    The steps are ``scale * x + shift`` with constants. If the ``x`` that becomes 0 is well within
    [0, 1] or [0, 255], that is the range; so it is if 255 becomes 1.
    """
    try:
        import onnx
    except ImportError:
        return None
    graph = onnx.load_model_from_string(content).graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    constants |= {n.output[0]: n.attribute[0].t for n in graph.node if n.op_type == "Constant"}
    scale, shift = np.ones(1), np.zeros(1)
    for node in _first_steps(graph.node, name):
        if node.op_type in ("Identity", "Cast", "Transpose"):
            continue
        if node.op_type not in ("Sub", "Add", "Mul", "Div") or node.input[1] not in constants:
            break
        value = onnx.numpy_helper.to_array(constants[node.input[1]]).astype(float).ravel()
        if value.size not in (1, 3):
            break
        if node.op_type in ("Sub", "Add"):
            shift = shift + (value if node.op_type == "Add" else -value)
        else:
            factor = value if node.op_type == "Mul" else 1 / value
            scale, shift = scale * factor, shift * factor
    zero = -shift / scale
    for low, high, found in ((0.2, 0.8, "0..1"), (50, 205, "0..255")):
        if ((zero > low) & (zero < high)).all():
            return found
    return "0..255" if np.allclose(255 * scale + shift, 1, atol=0.01) else None


def _first_steps(nodes: Sequence[Any], name: str) -> Iterator[Any]:
    """Yield the nodes that follow each other from the input to where it is used twice."""
    while True:
        users = [node for node in nodes if name in node.input]
        if len(users) != 1 or users[0].input[0] != name:
            return
        yield users[0]
        name = users[0].output[0]


def _known(length: Any) -> int | None:
    return length if isinstance(length, int) and length >= 1 else None


def _shown(shape: Sequence[Any]) -> str:
    return f"({', '.join('?' if n is None else str(n) for n in shape)})"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
