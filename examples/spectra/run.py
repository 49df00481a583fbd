"""Tell minerals apart by drawn spectra, and find their lines: python run.py [FOLDER]."""

import csv
import sys
from pathlib import Path

import numpy as np

from hilbin import TableClassifier

LINES = {  # position and height of the lines of four minerals that do not exist
    "albrite": ((210, 1.0), (480, 0.5), (640, 0.3)),
    "borolite": ((210, 0.5), (480, 1.0), (700, 0.3)),
    "cerusite": ((350, 0.8), (520, 0.8)),
    "dormite": ((350, 0.8), (545, 0.8)),
}
WAVES = np.arange(150, 800, 5)


def spectra(each: int, rng: np.random.Generator) -> tuple[np.ndarray, list[str]]:
    """Draw counts of photons: lines, a background, and another brightness for every sample."""
    rows, labels = [], []
    for mineral, lines in LINES.items():
        for _ in range(each):
            light = 0.15 + 0.1 * rng.random() * WAVES / 800
            for place, height in lines:
                shift = rng.normal(0, 4)
                light = light + height * np.exp(-0.5 * ((WAVES - place - shift) / 9) ** 2)
            rows.append(rng.poisson(rng.uniform(2, 20) * light))
            labels.append(mineral)
    return np.array(rows), labels


def write(path: Path, rows: np.ndarray, labels: list[str]) -> None:
    """Write a CSV file with a line for each sample."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow([*(f"nm {wave}" for wave in WAVES), "mineral"])
        table.writerows([*row, label] for row, label in zip(rows.tolist(), labels, strict=True))


def main(folder: Path, each: int = 80) -> float:
    """Train on a CSV file, evaluate, explain and save; return the accuracy."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for name in ("train.csv", "test.csv"):
        write(folder / name, *spectra(each, rng))
    model = TableClassifier().fit(folder / "train.csv", target="mineral")
    print(model.summary())
    found = model.evaluate(folder / "test.csv")
    print(found.summary())
    print(model.explain(folder / "test.csv", row=0).summary())
    model.report(folder / "test.csv", path=folder / "report.html")
    model.save(folder / "minerals.hilbin")
    print(f"report.html and minerals.hilbin are in {folder}")
    return found.accuracy


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
