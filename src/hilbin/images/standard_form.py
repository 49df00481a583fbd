"""Images in a standard form: contrast, place, size and direction of what they show are undone.

Lampert, *Kernel Methods in Computer Vision*, section 3.2: brightness and contrast are normalized by
stretching the values, equation (3.1); place, size and direction by moments, (3.2) to (3.4).
"""

from typing import Any

import numpy as np
from scipy import ndimage

from hilbin._arrays import Array

REACH = 3.0  # standard deviations from the middle to the border of an image normalized by moments
TRIANGLE = 1 / 6  # variance of the triangle that linear interpolation makes of a pixel
SYMMETRIC = 1e-6  # skewness below which an axis has no direction


def normalize_contrast(image: Any) -> Array:
    """Stretch the values to the whole range, each channel by itself: (3.1).

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, channels)

    Returns
    -------
    image : array of the same shape
        0 to 255 for whole numbers (as uint8), 0 to 1 for others. A flat channel becomes 0.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import normalize_contrast
    >>> normalize_contrast(np.array([[100, 110, 120]], np.uint8))
    array([[  0, 128, 255]], dtype=uint8)
    """
    given = _checked(image)
    values = given.astype(np.float64)
    low = values.min(axis=(0, 1))
    span = values.max(axis=(0, 1)) - low
    stretched = (values - low) / np.where(span > 0, span, 1)
    return _like(given, stretched * 255 if given.dtype.kind in "iub" else stretched)


def normalize_moments(image: Any, size: int | None = None) -> Array:
    """Shift, turn and scale an image so that its mass is centered, upright and round: (3.2)-(3.4).

    The gray value is mass. In the result its mean is the middle, the mixed second moment is 0 and
    the other two are equal, one standard deviation being a sixth of the side; what lies farther
    than three of them from the middle is cut off. Two turns, half a turn apart, do this; it is the
    one with a positive third moment along the first axis. How the image was
    shifted, turned, enlarged or stretched is gone. Bright things on a dark background are meant;
    take the negative of others. The turn is unreliable where the second moments are nearly alike
    in all directions.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, channels)
        Its values are >= 0.
    size : int >= 1, optional
        Side of the result; the longer side of the image by default.

    Returns
    -------
    image : array of shape (size, size) or (size, size, channels)
        uint8 for whole numbers, else float64. Black if the image is.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import normalize_moments
    >>> image = np.zeros((40, 50))
    >>> image[5:9, 10:30] = image[5:20, 10:14] = 1
    >>> turned = np.rot90(image)
    >>> bool(np.allclose(normalize_moments(image), normalize_moments(turned)))
    True
    """
    given = _checked(image)
    side = max(given.shape[:2]) if size is None else size
    if not (isinstance(side, (int, np.integer)) and side >= 1):
        raise ValueError(f"size must be a whole number >= 1, got {size!r}")
    values = given.astype(np.float64).reshape(*given.shape[:2], -1)
    if values.min() < 0:
        raise ValueError(f"image has the negative value {values.min():g}: mass is >= 0")
    center, axes = _frame(values.mean(axis=2))
    step = axes * (2 * REACH / side)
    fine = max(1, int(np.ceil(np.abs(step).sum(axis=0).max())))  # samples per pixel and axis
    middle = (side * fine - 1) / 2
    step = step / fine
    offset = center - step @ np.full(2, middle)
    planes = [
        ndimage.affine_transform(
            values[:, :, c], step, offset, (side * fine,) * 2, order=1, mode="grid-constant"
        )
        for c in range(values.shape[2])
    ]
    means = np.stack(planes, 2).reshape(side, fine, side, fine, -1).mean(axis=(1, 3))
    return _like(given, means.reshape(side, side, *given.shape[2:]))


def _frame(mass: Array) -> tuple[Array, Array]:
    """Return the center of mass, and as columns the principal axes, a standard deviation long."""
    total = mass.sum()
    if total == 0:
        return np.zeros(2), np.eye(2)
    i, j = np.indices(mass.shape)
    center = np.array([(mass * i).sum(), (mass * j).sum()]) / total
    i, j = i - center[0], j - center[1]
    m_ii, m_jj, m_ij = ((mass * a * b).sum() / total for a, b in ((i, i), (j, j), (i, j)))
    angle = np.arctan2(2 * m_ij, m_ii - m_jj) / 2
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    half, root = (m_ii + m_jj) / 2 + TRIANGLE, np.hypot((m_ii - m_jj) / 2, m_ij)
    axes = turn * np.sqrt([half + root, half - root])
    skews = [(mass * ((v[0] * i + v[1] * j) / (v @ v)) ** 3).sum() / total for v in axes.T]
    skew = skews[0] if abs(skews[0]) > SYMMETRIC else skews[1]
    return center, -axes if skew < 0 else axes


def _checked(image: Any) -> Array:
    values = np.asarray(image)
    if values.ndim not in (2, 3) or not values.size or values.dtype.kind not in "iufb":
        raise ValueError(
            "image must be a numeric array of shape (height, width[, channels]), "
            f"got {values.dtype} of {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("image has values that are not finite")
    return values


def _like(given: Array, values: Array) -> Array:
    if given.dtype.kind in "iub":
        return np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return values
