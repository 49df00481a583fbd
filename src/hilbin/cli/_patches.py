"""Photographs that lie inside the installed scikit-image, cut into patches: data without a network.

Every photograph is a class. It is cut into squares like a chessboard; the white ones are for
training, the black ones for testing, so that no pixel is in both.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from hilbin.cli._outcome import InputError
from hilbin.files import written_whole

SIDE = 64
MOST = 32  # patches of a photograph for training, and as many for testing
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

Squares = list[tuple[int, int]]


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


def chessboard(height: int, width: int, side: int = SIDE, most: int = MOST) -> dict[str, Squares]:
    """Rows and columns of the squares for training and for testing, evenly over the photograph.

    Parameters
    ----------
    height, width : int
        Of the photograph.
    side : int, default=64
        Of a square.
    most : int, default=32
        Squares of a kind.

    Examples
    --------
    >>> from hilbin.cli._patches import chessboard
    >>> chessboard(130, 200)
    {'train': [(0, 0), (0, 2), (1, 1)], 'test': [(0, 1), (1, 0), (1, 2)]}
    """
    found: dict[str, Squares] = {}
    for color, part in enumerate((TRAIN, TEST)):
        squares = [
            (y, x)
            for y in range(height // side)
            for x in range(width // side)
            if (x + y) % 2 == color
        ]
        chosen = np.linspace(0, len(squares) - 1, min(most, len(squares))).astype(int)
        found[part] = [squares[i] for i in np.unique(chosen)]
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

    wanted: dict[Path, tuple[Path, tuple[int, int, int, int]]] = {}
    counts = dict.fromkeys((TRAIN, TEST), 0)
    for name, file in photographs().items():
        with Image.open(file) as picture:
            width, height = picture.size
        for part, squares in chessboard(height, width).items():
            counts[part] += len(squares)
            for y, x in squares:
                box = (x * SIDE, y * SIDE, (x + 1) * SIDE, (y + 1) * SIDE)
                wanted[folder / part / name / f"row {y + 1}, column {x + 1}.png"] = file, box
    _refuse_others(folder, set(wanted))
    opened: dict[Path, Image.Image] = {}
    for target, (file, box) in wanted.items():
        if file not in opened:
            opened[file] = Image.open(file).convert("RGB")
        target.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(target) as patch:
            opened[file].crop(box).save(patch, "PNG")
    return counts


def _refuse_others(folder: Path, wanted: set[Path]) -> None:
    for part in (TRAIN, TEST):
        for path in sorted((folder / part).rglob("*")):
            if path.is_file() and path not in wanted:
                raise InputError(f"{path}: not of the demo; name another folder by --out")
