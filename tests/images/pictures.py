"""Small pictures drawn by code."""

import numpy as np


def drawn(seed=0, shape=(48, 56), color=False):
    """Smooth waves and a bright bar, so that gradients, pixel words and colors all vary."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    channels = []
    for _ in range(3 if color else 1):
        a, b, c = rng.uniform(-0.4, 0.4, 3)
        waves = np.sin(a * x + b * y + 6 * c) + 0.3 * rng.normal(size=shape)
        waves[:, shape[1] // 3 : shape[1] // 3 + 4] += 2
        channels.append((255 * (waves - waves.min()) / np.ptp(waves)).astype(np.uint8))
    return np.stack(channels, axis=2) if color else channels[0]
