"""Find coins: learn from two strips of a photograph, find in two others: python run.py [FOLDER]."""

import shutil
import sys
from pathlib import Path

from PIL import Image, ImageDraw
from skimage import data

import hilbin
from hilbin.detect import DeformableDetector, evaluate_detector, read_boxes

HERE = Path(__file__).parent
STRIPS = ((0, 86), (87, 151), (151, 224), (225, 303))


def main(folder: Path) -> float:
    """Train, evaluate, draw and save; return the average precision."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (top, bottom) in enumerate(STRIPS):
        Image.fromarray(data.coins()[top:bottom]).save(folder / f"coins_{number}.png")
    shutil.copy(HERE / "boxes.csv", folder)
    records = read_boxes(folder / "boxes.csv")
    train, test = records[:2], records[2:]
    detector = DeformableDetector(area=1600, random_state=0)
    detector.fit([one.path for one in train], [one.boxes for one in train])
    found = evaluate_detector(detector, test)
    print(f"average precision {found.average_precision:.3f}")
    for one, boxes in zip(test, detector.predict([one.path for one in test]), strict=True):
        image = Image.open(one.path).convert("RGB")
        for box in boxes.coordinates.tolist():
            ImageDraw.Draw(image).rectangle(box, outline="orange", width=2)
        image.save(folder / f"found_{one.path.name}")
    hilbin.save(detector, folder / "coins.hilbin")
    print(f"found_*.png and coins.hilbin are in {folder}")
    return found.average_precision


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
