"""Photographs that lie inside the installed scikit-image, cut into patches: data without a network.

Every photograph is a class. It is cut into squares; those of the left half are for training, those
of the right half for testing, so that no pixel is in both. Squares of nearly one shade, which could
be of any photograph, are left out. Half of the photographs are gray, so all are made gray: color
would give them away.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hilbin.cli._outcome import InputError
from hilbin.files import written_whole
from hilbin.images import read_image

SIDE = 64
MOST = 32  # patches of a photograph for training, and as many for testing
LEAST_CONTRAST = 4  # standard deviation of the gray values
TRAIN, TEST = "train", "test"
PHOTOGRAPHS = {
    "astronaut": "astronaut.png",
    "brick": "brick.png",
    "cameraman": "camera.png",
    "cat": "chelsea.png",
    "coffee": "coffee.png",
    "coins": "coins.png",
    "galaxies": "hubble_deep_field.jpg",
    "grass": "grass.png",
    "gravel": "gravel.png",
    "moon": "moon.png",
    "motorcycle": "motorcycle_left.png",
    "page": "page.png",
    "retina": "retina.jpg",
    "rocket": "rocket.jpg",
    "tissue": "ihc.png",
}

Array = NDArray[np.uint8]
Squares = dict[tuple[int, int], Array]  # by row and column


def photographs() -> dict[str, Path]:
    """Names and files of the photographs that are installed; nothing is downloaded."""
    found = find_spec("skimage")
    if found is None or found.origin is None:
        raise InputError('the demo needs scikit-image: pip install "hilbin[demo]"')
    folder = Path(found.origin).parent / "data"
    there = {name: folder / file for name, file in PHOTOGRAPHS.items()}
    there = {name: file for name, file in there.items() if file.is_file()}
    if len(there) < 2:
        raise InputError(f"{folder}: the photographs that come with scikit-image are not there")
    return there


def halves(picture: Array, side: int = SIDE, most: int = MOST) -> dict[str, Squares]:
    """The squares for training and for testing, evenly over each half.

    Parameters
    ----------
    picture : uint8 array of shape (h, w)
    side : int, default=64
        Of a square.
    most : int, default=32
        Squares of a kind.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.cli._patches import halves
    >>> noise = np.random.default_rng(0).integers(0, 256, (130, 200), np.uint8)
    >>> {part: list(squares) for part, squares in halves(noise).items()}
    {'train': [(0, 0), (0, 1), (1, 0), (1, 1)], 'test': [(0, 2), (1, 2)]}
    """
    rows, columns = (length // side for length in picture.shape)
    middle = (columns + 1) // 2
    found: dict[str, Squares] = {}
    for part, across in ((TRAIN, range(middle)), (TEST, range(middle, columns))):
        cut = {
            (y, x): picture[y * side : (y + 1) * side, x * side : (x + 1) * side]
            for y in range(rows)
            for x in across
        }
        varied = [place for place, square in cut.items() if square.std() >= LEAST_CONTRAST]
        chosen = np.linspace(0, len(varied) - 1, min(most, len(varied))).astype(int)
        found[part] = {varied[i]: cut[varied[i]] for i in np.unique(chosen)}
    return found


def write_patches(folder: Path) -> dict[str, int]:
    """Write the patches as PNG files, a folder for every photograph in ``train`` and ``test``.

    Parameters
    ----------
    folder : Path
        Made if it is not there. Folders ``train`` and ``test`` with other files are refused.

    Returns
    -------
    counts : dict
        How many patches there are for training and for testing.
    """
    from PIL import Image

    wanted: dict[Path, Array] = {}
    counts = dict.fromkeys((TRAIN, TEST), 0)
    for name, file in photographs().items():
        for part, squares in halves(read_image(file)).items():
            counts[part] += len(squares)
            for (y, x), square in squares.items():
                wanted[folder / part / name / f"r{y + 1}c{x + 1}.png"] = square
    _refuse_others(folder, set(wanted))
    for path, square in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as patch:
            Image.fromarray(square).save(patch, "PNG")
    return counts


def _refuse_others(folder: Path, wanted: set[Path]) -> None:
    for part in (TRAIN, TEST):
        for path in sorted((folder / part).rglob("*")):
            if path.is_file() and path not in wanted:
                raise InputError(f"{path}: not of the demo; name another folder by --out")
