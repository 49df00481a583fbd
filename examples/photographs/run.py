"""Tell brick, grass and gravel apart: python run.py [FOLDER]."""

import sys
from pathlib import Path

from PIL import Image
from skimage import data

import hilbin
from hilbin import ImageClassifier
from hilbin.report import overlay

SIDE = 64


def cut(folder: Path, every: int = 1) -> tuple[Path, Path]:
    """Cut photographs of 512 by 512 pixels into squares: upper halves to train, lower to test."""
    for name in ("brick", "grass", "gravel"):
        image = getattr(data, name)()
        for number in range(0, 64, every):
            row, column = divmod(number, 8)
            where = folder / ("train" if row < 4 else "test") / name
            where.mkdir(parents=True, exist_ok=True)
            square = image[SIDE * row : SIDE * (row + 1), SIDE * column : SIDE * (column + 1)]
            Image.fromarray(square).save(where / f"{number:02}.png")
    return folder / "train", folder / "test"


def main(folder: Path, every: int = 1) -> float:
    """Train, evaluate, explain and save; return the accuracy."""
    train, test = cut(folder, every)
    model = ImageClassifier("centrist+lbp").fit(train)
    print(model.summary())
    found = model.evaluate(test)
    print(found.summary())
    model.report(test, path=folder / "report.html")
    one = next((test / "brick").iterdir())
    why = model.explain(one)
    print(why.summary())
    Image.fromarray(overlay(hilbin.images.read_image(one), why.heat)).save(folder / "heat_map.png")
    model.save(folder / "textures.hilbin")
    print(f"report.html, heat_map.png and textures.hilbin are in {folder}")
    return found.accuracy


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
