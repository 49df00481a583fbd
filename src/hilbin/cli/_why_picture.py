"""The picture of an explanation: photograph, heat map, scale, and what the numbers are."""

import io
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilbin.images import in_color
from hilbin.report import overlay
from hilbin.report.pictures import heat_scale

PANEL = 480  # longer side of the photograph
MARGIN, GAP = 32, 24
NARROWEST = 640  # of the texts, beside photographs that are much higher than wide
PAPER, INK, FAINT = (250, 249, 246), (28, 30, 33), (95, 99, 104)
TITLE, TEXT, SMALL = 26, 16, 14
SCALE_HEIGHT = 12

Array = NDArray[Any]


def why_picture(
    picture: Array,
    heat: Array,
    title: str,
    lines: Sequence[str],
    ends: tuple[str, str],
    unit: str,
) -> bytes:
    """A PNG file of a photograph beside its heat map.

    Parameters
    ----------
    picture : uint8 array of shape (h, w) or (h, w, 3)
    heat : array of shape (h', w')
    title : str
        Above.
    lines : sequence of str
        Below.
    ends : (str, str)
        What blue and red stand for.
    unit : str
        Of the heat.
    """
    from PIL import Image, ImageDraw

    photograph = _enlarged(in_color(picture))
    height, width = photograph.shape[:2]
    across = max(2 * width + GAP, NARROWEST)
    fonts = {size: font(size) for size in (TITLE, TEXT, SMALL)}
    heads = _wrapped(title, fonts[TITLE], across)
    body = [part for line in lines for part in _wrapped(line, fonts[TEXT], across)]
    top = MARGIN + len(heads) * (TITLE + 10) + 10
    key = top + height + 18
    below = key + SCALE_HEIGHT + 40
    size = (across + 2 * MARGIN, below + len(body) * (TEXT + 9) + MARGIN)
    sheet = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(sheet)
    for i, text in enumerate(heads):
        draw.text((MARGIN, MARGIN - 6 + i * (TITLE + 10)), text, INK, fonts[TITLE])
    sheet.paste(Image.fromarray(photograph), (MARGIN, top))
    right = MARGIN + width + GAP
    sheet.paste(Image.fromarray(overlay(photograph, heat)), (right, top))
    _draw_scale(sheet, draw, (right, key), width, (heat_scale(heat), unit), ends, fonts[SMALL])
    for i, text in enumerate(body):
        draw.text((MARGIN, below + i * (TEXT + 9)), text, INK if i == 0 else FAINT, fonts[TEXT])
    file = io.BytesIO()
    sheet.save(file, "PNG")
    return file.getvalue()


def _draw_scale(
    sheet: Any,
    draw: Any,
    corner: tuple[int, int],
    width: int,
    end: tuple[float, str],
    ends: tuple[str, str],
    font: Any,
) -> None:
    """A bar from blue to red with its ends in numbers, and what the colors stand for."""
    from PIL import Image

    x, y = corner
    ramp = np.tile(np.linspace(-1, 1, width), (SCALE_HEIGHT, 1))
    gray = np.full(ramp.shape, 170, np.uint8)
    sheet.paste(Image.fromarray(overlay(gray, ramp, scale=1.0)), (x, y))
    below = y + SCALE_HEIGHT + 5
    texts = (f"{-end[0]:.1e}", "0", f"+{end[0]:.1e} per {end[1]}")
    if width < 300:
        texts = ("", "0", "")
    for text, at, anchor in zip(texts, (x, x + width // 2, x + width), "lmr", strict=True):
        draw.text((at, below), text, FAINT, font, anchor=f"{anchor}a")
    left = corner[0] - GAP - width
    draw.text((left, y - 2), f"blue {ends[0]}, red {ends[1]}", FAINT, font)


def _enlarged(picture: Array) -> Array:
    from PIL import Image

    factor = PANEL / max(picture.shape[:2])
    size = [max(1, round(side * factor)) for side in picture.shape[1::-1]]
    how = Image.Resampling.BICUBIC if factor > 1 else Image.Resampling.LANCZOS
    return np.asarray(Image.fromarray(picture).resize((size[0], size[1]), how))


def font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _wrapped(text: str, font: Any, width: int) -> list[str]:
    """Lines that are no wider; words that are, are cut."""
    lines: list[str] = []
    for word in text.split():
        for piece in _pieces(word, font, width):
            longer = f"{lines[-1]} {piece}" if lines else piece
            if lines and font.getlength(longer) <= width:
                lines[-1] = longer
            else:
                lines.append(piece)
    return lines


def _pieces(word: str, font: Any, width: int) -> list[str]:
    pieces = []
    while font.getlength(word) > width:
        longest = range(1, len(word))
        fits = max(1, bisect_right(longest, width, key=lambda n: font.getlength(word[:n])))
        pieces.append(word[:fits])
        word = word[fits:]
    return [*pieces, word]
