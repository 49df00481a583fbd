"""Image files with damaged bytes: each is read, or refused by a message with its name."""

import os

import numpy as np
from fuzzing import FaultError
from pictures import drawn
from PIL import Image

from hilbin.images import HOG, ImageError, read_image

FORMATS = ("jpg", "png", "bmp", "gif", "tiff", "webp", "ppm", "tga", "ico", "pcx")


def prepare(folder):
    """Write pictures in many formats."""
    for number in range(3):
        picture = Image.fromarray(drawn(number, (24 + 8 * number, 40), color=number > 0))
        for ending in FORMATS:
            picture.save(folder / f"{number}.{ending}")
    Image.fromarray(drawn(0, (24, 24))).convert("P").save(folder / "palette.png")
    Image.fromarray(drawn(0).astype(np.uint16) * 200).save(folder / "deep.png")
    Image.fromarray(drawn(0, color=True)).convert("RGBA").save(folder / "clear.png")


def opened(folder):
    """The bytes of all files."""
    files = sorted(p for p in folder.iterdir() if not p.name.startswith("damaged"))
    own = folder / f"damaged-{os.getpid()}"
    return [(p.read_bytes(), own.with_suffix(p.suffix)) for p in files], HOG().fit([])


def attempt(state, seed):
    """Damage a file, and read it in gray or in color, large or small."""
    files, hog = state
    rng = np.random.default_rng(seed)
    content, path = files[int(rng.integers(len(files)))]
    path.write_bytes(damaged(content, rng))
    options = {"color": bool(rng.integers(2)), "max_side": [None, 16][int(rng.integers(2))]}
    try:
        image = read_image(path, **options)
    except ImageError as error:
        if str(path) not in str(error):
            raise FaultError(f"a refusal does not name the file: {error}") from error
        return "refused"
    fits = image.dtype == np.uint8 and image.ndim == (3 if options["color"] else 2)
    if not fits or 0 in image.shape or (options["max_side"] and max(image.shape[:2]) > 16):
        raise FaultError(f"{path.name} became {image.dtype} {image.shape} with {options}")
    if image.size < 1 << 16:
        hog.transform([image])
    return "read"


def damaged(content, rng):
    """Bytes with a few flipped, cut off, doubled, taken out, or replaced by a run."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(max(1, len(data))))
        at = int(rng.integers(min(64, max(1, len(data))))) if rng.uniform() < 0.3 else at
        length, kind = int(rng.integers(1, 32)), int(rng.integers(6))
        if kind <= 1 and data:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            data[at:at] = data[at : at + length]
        elif kind == 4:
            del data[at : at + length]
        else:
            data[at : at + length] = bytes([int(rng.choice([0, 255, 127, 128]))]) * length
    return bytes(data)
