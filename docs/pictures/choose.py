"""A flow chart: from data to a kernel, a map and an estimator."""

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

QUESTION, ANSWER = "#e8eef7", "#e3f1e3"
figure, axes = plt.subplots(figsize=(9, 6.4))
axes.set(xlim=(0, 100), ylim=(0, 100))
axes.axis("off")


def box(x: float, y: float, text: str, color: str, width: float = 26) -> None:
    """Draw a box around its center."""
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - 4), width, 8, boxstyle="round,pad=0.4", fc=color, ec="#445566"
        )
    )
    axes.text(x, y, text, ha="center", va="center", fontsize=8.5, color="#111111")


def arrow(start: tuple[float, float], end: tuple[float, float], text: str = "") -> None:
    """Draw an arrow with a word beside it."""
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "#445566", "lw": 1.2})
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    axes.text(
        x, y, text, fontsize=8, ha="center", va="center", color="#111111",
        bbox={"fc": "white", "ec": "none", "pad": 1},
    )  # fmt: skip


box(20, 94, "Labels, numbers or boxes?", QUESTION)
box(76, 94, "ImageCollection, TableCollection", ANSWER, 38)
arrow((33.5, 94), (56.5, 94), "none")
box(20, 78, "What are the data?", QUESTION)
arrow((20, 89.5), (20, 82.5), "yes")
box(76, 82, "ImageClassifier", ANSWER, 38)
arrow((33.5, 79), (56.5, 82), "labeled photographs")
box(76, 70, "DeformableDetector", ANSWER, 38)
arrow((33.5, 77), (56.5, 70), "photographs with boxes")
box(20, 60, "Choose by\ncross-validation?", QUESTION)
arrow((20, 73.5), (20, 64.5), "rows")
box(76, 58, "TableClassifier", ANSWER, 38)
arrow((33.5, 60), (56.5, 58), "yes")
box(20, 42, "Histograms or counts,\nnon-negative?", QUESTION)
arrow((20, 55.5), (20, 46.5), "no, your own model")
box(76, 46, "StandardScaler + KernelSVC(Gaussian)", ANSWER, 38)
arrow((33.5, 42), (56.5, 46), "no, signed values")
box(20, 24, "How many rows?", QUESTION)
arrow((20, 37.5), (20, 28.5), "yes")
box(76, 34, "KernelSVC(Exponential(Chi2))", ANSWER, 38)
arrow((33.5, 25.5), (56.5, 33), "up to tens of thousands")
box(76, 22, "IntersectionSVC or MapSVC(AdditiveMap)", ANSWER, 38)
arrow((33.5, 24), (56.5, 22), "many, or exact reasons")
box(76, 10, "MapRidgeClassifier(FourierMap) on files", ANSWER, 38)
arrow((33.5, 22.5), (56.5, 11), "more than memory")
