"""Virtual samples: every image again, a little distorted, under the same label.

A classifier can be taught an invariance by examples (Lampert, *Kernel Methods in Computer Vision*,
section 3.2.1; Decoste and Schölkopf, 2002). The assumption, which nothing here can check, is that
the distortion does not change the label: a mirrored photograph of a beach is a beach, but a
mirrored "b" is a "d", and a "6" turned by 180 degrees a "9". Only training images are to be
distorted, after test images have been set aside: a copy of a test image in the training set makes
any accuracy look good.
"""

from typing import Any

import numpy as np
from scipy import ndimage
from sklearn.utils import check_random_state

from hilbin._arrays import Array
from hilbin._parameters import require_whole
from hilbin.images.read import Pixels, as_sources, read_image

# what a bare name means in parse_transforms
USUAL: dict[str, Any] = {
    "shift": 0.1,
    "rotate": 10.0,
    "scale": 0.1,
    "flip": True,
    "noise": 8.0,
    "contrast": 0.25,
    "blur": 1.0,
}
MOST = {"shift": 1, "rotate": 180, "scale": 10, "noise": 255, "contrast": 1, "blur": 100}


def augment(
    images: Any,
    y: Any = None,
    *,
    shift: float = 0.0,
    rotate: float = 0.0,
    scale: float = 0.0,
    flip: bool = False,
    noise: float = 0.0,
    contrast: float = 0.0,
    blur: float = 0.0,
    copies: int = 1,
    color: bool = False,
    random_state: Any = None,
) -> Any:
    """Return images and randomly distorted copies of them.

    The label of a copy is that of its image: choose distortions that keep it.

    Parameters
    ----------
    images : sequence of paths or arrays
        As :func:`read_image` takes them.
    y : array-like of shape (n_images,), optional
        Labels.
    shift : float from 0 to 1, default=0
        Largest shift along either axis, in parts of the side.
    rotate : float from 0 to 180, default=0
        Largest turn either way, in degrees.
    scale : float from 0 to 10, default=0
        Sizes from ``1 / (1 + scale)`` to ``1 + scale``.
    flip : bool, default=False
        Whether every other copy, by chance, is mirrored from left to right.
    noise : float from 0 to 255, default=0
        Standard deviation of the noise added to every value.
    contrast : float from 0 to 1, default=0
        Differences from the mean are multiplied by ``1 - contrast`` to ``1 + contrast``.
    blur : float from 0 to 100, default=0
        Largest standard deviation, in pixels, of a Gaussian blur.
    copies : int >= 0, default=1
        Number of copies of every image.
    color : bool, default=False
        Whether images are read, and returned, in color.
    random_state : int, RandomState or None
        Random seed.

    Returns
    -------
    images : list of uint8 arrays
        The images as they are, then the first copies of all, the second copies of all, ...
    labels : ndarray of shape ((1 + copies) * n_images,)
        Only if ``y`` is given.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import augment
    >>> digits = np.eye(8)[None].repeat(3, axis=0)
    >>> images, labels = augment(digits, ["a", "b", "c"], shift=0.1, rotate=10, random_state=0)
    >>> len(images), labels.tolist()
    (6, ['a', 'b', 'c', 'a', 'b', 'c'])
    """
    require_whole("copies", copies, 0)
    how: dict[str, Any] = {"shift": shift, "rotate": rotate, "scale": scale, "flip": flip}
    how |= {"noise": noise, "contrast": contrast, "blur": blur}
    _check(how)
    originals = [read_image(source, color=color) for source in as_sources(images)]
    labels = None if y is None else np.asarray(y)
    if labels is not None and len(labels) != len(originals):
        raise ValueError(f"y has {len(labels)} labels for {len(originals)} images")
    seeds = check_random_state(random_state).randint(2**31 - 1, size=(copies, len(originals)))
    made = list(originals)
    for row in seeds:
        made += [
            distort(image, **how, random_state=int(seed))
            for image, seed in zip(originals, row, strict=True)
        ]
    return made if labels is None else (made, np.concatenate([labels] * (1 + copies)))


def distort(
    image: Pixels,
    *,
    shift: float = 0.0,
    rotate: float = 0.0,
    scale: float = 0.0,
    flip: bool = False,
    noise: float = 0.0,
    contrast: float = 0.0,
    blur: float = 0.0,
    random_state: Any = None,
) -> Pixels:
    """Return a randomly distorted copy of an image, as :func:`augment` makes them.

    What a shift or a turn uncovers is filled by the mirror image of what is beside it.

    Parameters
    ----------
    image : uint8 array of shape (height, width) or (height, width, 3)
    shift, rotate, scale, flip, noise, contrast, blur
        As in :func:`augment`.
    random_state : int, RandomState or None
        Random seed.

    Returns
    -------
    copy : uint8 array of the same shape

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import distort
    >>> distort(np.full((2, 2), 100, np.uint8), noise=5, random_state=0)
    array([[106,  97],
           [113, 105]], dtype=uint8)
    """
    rng = check_random_state(random_state)
    across, down, angle, size, stretch, sigma = rng.uniform(-1, 1, size=6)
    mirrored = rng.uniform() < 0.5
    values = image.astype(np.float32)
    if flip and mirrored:
        values = values[:, ::-1]
    if shift or rotate or scale:
        moves = shift * np.array([down * image.shape[0], across * image.shape[1]])
        values = _moved(values, np.deg2rad(rotate * angle), (1 + scale) ** size, moves)
    if blur:
        widths = [blur * abs(sigma)] * 2 + [0] * (image.ndim - 2)
        values = ndimage.gaussian_filter(values, widths)
    if contrast:
        values = (values - values.mean()) * (1 + contrast * stretch) + values.mean()
    if noise:
        values = values + rng.normal(0, noise, size=values.shape)
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def _moved(values: Array, angle: float, size: float, moves: Array) -> Array:
    """Turn and enlarge about the middle, then move; bilinear, mirrored at the border."""
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]) / size
    middle = (np.array(values.shape[:2]) - 1) / 2
    offset = middle - turn @ (middle + moves)
    planes = values[:, :, None] if values.ndim == 2 else values
    moved = [
        ndimage.affine_transform(planes[:, :, c], turn, offset, order=1, mode="reflect")
        for c in range(planes.shape[2])
    ]
    return np.stack(moved, axis=2).reshape(values.shape)


def parse_transforms(text: str) -> dict[str, Any]:
    """Parse keyword arguments of :func:`augment` from text such as ``"shift,rotate=15,flip"``.

    Parameters
    ----------
    text : str
        Names separated by commas, each with its usual amount or with ``=`` and another one;
        ``copies=3`` may be among them.

    Returns
    -------
    arguments : dict

    Examples
    --------
    >>> from hilbin.images import parse_transforms
    >>> parse_transforms("shift,rotate=15,flip")
    {'shift': 0.1, 'rotate': 15.0, 'flip': True}
    """
    found: dict[str, Any] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, amount = (part.strip() for part in item.partition("="))
        if name not in (*USUAL, "copies"):
            raise ValueError(
                f"{name!r} is no transformation: known are {', '.join(USUAL)}, and copies=N"
            )
        if equals and name != "flip":
            found[name] = _number(name, amount)
        elif equals or name == "copies":
            takes = "a whole number, copies=N" if name == "copies" else "no amount"
            raise ValueError(f"{name} takes {takes}; got {item!r}")
        else:
            found[name] = USUAL[name]
    if not found.keys() & USUAL.keys():
        raise ValueError(f"{text!r} names no transformation: known are {', '.join(USUAL)}")
    _check({name: value for name, value in found.items() if name != "copies"})
    return found


def _number(name: str, amount: str) -> float:
    try:
        return int(amount) if name == "copies" else float(amount)
    except ValueError:
        kind = "a whole number" if name == "copies" else "a number"
        raise ValueError(f"{name} takes {kind}, got {amount!r}") from None


def _check(how: dict[str, Any]) -> None:
    for name, value in how.items():
        if name == "flip":
            if not isinstance(value, (bool, np.bool_)):
                raise ValueError(f"flip must be True or False, got {value!r}")
        elif not (isinstance(value, (int, float, np.number)) and 0 <= value <= MOST[name]):
            raise ValueError(f"{name} must be a number from 0 to {MOST[name]}, got {value!r}")
