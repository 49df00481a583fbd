"""What a pretrained network says about images, without this library."""

from pathlib import Path
from typing import Any

import numpy as np
from data import Array
from PIL import Image

NETWORK = Path("efficientnet_lite0", "efficientnet_lite0.onnx")
SIDE, BATCH = 224, 16


def pooled(network: Path, files: Any) -> Array:
    """The mean over places of the last maps; images become squares of 224 pixels."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
    parts = []
    for start in range(0, len(files), BATCH):
        images = np.stack([_pixels(file) for file in files[start : start + BATCH]])
        parts += session.run(["pooled"], {"image": images})
    return np.concatenate(parts).astype(np.float64)


def _pixels(file: Any) -> Array:
    with Image.open(file) as image:
        square = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return np.asarray(square, np.float32).transpose(2, 0, 1) / np.float32(255)
