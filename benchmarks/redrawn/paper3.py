"""Vedaldi and Zisserman: sparse kernel approximations, product quantization, detectors."""

import math

import numpy as np
from data import Array

from hilbin.kernels import Chi2
from redrawn.items import (
    COLORS,
    DIRECTION,
    NOT,
    SAME,
    Item,
    Plan,
    Table,
    Work,
    panels,
    recorded,
    shared_legend,
)

NODES = 4
WORDS = 256
FISHER = "Fisher vectors of scene15"
ROWS = 1500  # of the recorded Fisher vectors
SIZES = (1, 4, 6, 8)  # of the parts of a quantizer, in the paper


def figure_1(work: Work) -> Item:
    """The feature of a value, and its projections on nodes."""
    x, z = np.geomspace(0.01, 1, 400), np.geomspace(0.01, 1, NODES)
    K = Chi2().gram(z[:, None])
    exact = Chi2().gram(x[:, None])
    lam, U = np.linalg.eigh(exact)
    plane = U[:, :-3:-1] * np.sqrt(lam[:-3:-1])
    dense = np.linalg.solve(K, Chi2().gram(z[:, None], x[:, None])).T
    sparse = neighbors(x, z)
    nodes = np.array([plane[np.abs(x - node).argmin()] for node in z])
    figure, axes = panels(2, height=2.9)
    axes[0].plot(*plane.T, color="#333333", label="exact")
    axes[0].plot(*(dense @ nodes).T, "--", color=COLORS[0], label="dense, all nodes")
    axes[0].plot(*(sparse @ nodes).T, color=COLORS[1], label="sparse, two nodes")
    axes[0].plot(*nodes.T, "o", color="#333333", markersize=4, label="nodes")
    axes[0].set(xlabel="first component", ylabel="second component", title="feature of x")
    axes[0].legend()
    residuals = {
        "sparse, two nodes": x - np.einsum("ij,jk,ik->i", sparse, K, sparse),
        "dense, all nodes": x - np.einsum("ij,jk,ik->i", dense, K, dense),
        "principal components": x - (U[:, -NODES:] ** 2) @ lam[-NODES:],
    }
    for name, color in zip(residuals, (COLORS[1], COLORS[0], COLORS[2]), strict=True):
        axes[1].plot(x, np.maximum(residuals[name] / x, 1e-16), color=color, label=name)
    axes[1].set(xscale="log", yscale="log", ylim=(1e-9, 1), xlabel="x",
                title="relative residual of k(x, x)")  # fmt: skip
    axes[1].legend()
    for place in axes:
        place.grid()
    means = {name: float(np.mean(r / x)) for name, r in residuals.items()}
    text = "The chi-squared feature of a value in two components, with dense and sparse projections"
    ordered = means["sparse, two nodes"] > means["dense, all nodes"]
    return Item(
        "Figure 1",
        "Features as projections on representative points",
        "dense: on the span of all points; sparse: on that of the nearest few; Nyström's: on "
        "principal components",
        f"χ² on [0.01, 1], {NODES} nodes at equal ratios: mean relative residual "
        + ", ".join(f"{name} {value:.1g}" for name, value in means.items()),
        SAME if ordered else NOT,
        "A drawing without numbers in the paper. Nodes at equal steps, which it uses for all "
        "kernels, would be far worse for χ² (errata).",
        {"Mean relative residual of k(x, x)": {k: {"residual": v} for k, v in means.items()}},
        (work.save(figure, "sparse-figure1", text),),
    )


def neighbors(x: Array, z: Array) -> Array:
    """Coefficients of every value on the two nodes around it."""
    found = np.zeros((x.size, z.size))
    place = np.clip(np.searchsorted(z, x, side="right") - 1, 0, z.size - 2)
    for row, (value, i) in enumerate(zip(x, place, strict=True)):
        pair = z[i : i + 2, None]
        found[row, i : i + 2] = np.linalg.solve(
            Chi2().gram(pair), Chi2().gram(pair, [[value]])[:, 0]
        )
    return found


def figure_2(work: Work) -> Item:
    """Codes of Fisher vectors, as recorded: accuracy, memory and time over bits."""
    table = recorded("pq_accuracy")[FISHER]
    plain, rows = table["plain"], {k: r for k, r in table.items() if k != "plain"}
    figure, axes = panels(3, height=2.7)
    heights = {
        "accuracy, %": ("accuracy, %",),
        "memory of the rows, MB": ("MB",),
        "training, s (dashed: delayed)": ("immediate, s", "delayed, s"),
    }
    for place, (title, columns) in zip(axes, heights.items(), strict=True):
        for style, column in zip(("-", "--") if len(columns) > 1 else ("-",), columns, strict=True):
            for color, size in zip(COLORS, SIZES, strict=False):
                own = [r for k, r in rows.items() if k.startswith(f"G={size},")]
                place.plot([r["bits"] for r in own], [r[column] for r in own], style, color=color,
                           marker="o", markersize=3, label=f"G = {size}")  # fmt: skip
        level = plain["delayed, s" if "training" in title else columns[0]]
        place.axhline(level, color="#333333", linewidth=1.5, label="plain")
        place.set(title=title, xscale="log", xlabel="bits per number")
        place.set_xticks([0.125, 0.5, 2, 8], ["0.125", "0.5", "2", "8"])
        place.set_xticks([], minor=True)
        place.grid()
    axes[1].set_yscale("log")
    axes[2].set_yscale("log")
    shared_legend(figure, axes[0], 5)
    forty = rows["G=10, 256 words"]
    lost = plain["accuracy, %"] - forty["accuracy, %"]
    speed = [r["immediate, s"] / r["delayed, s"] for r in rows.values()]
    text = "Accuracy, memory and training time of codes of Fisher vectors over bits per number."
    return Item(
        "Figure 2",
        "Product quantization for classification",
        "more than 40 times smaller for 1 % of mAP; delayed expansion 5 to 10 times as fast as "
        "immediate, and not faster than plain",
        f"40 times smaller for {lost:.2f} points; a whole training with delayed expansion is "
        f"{min(speed):.1f} to {max(speed):.1f} times as fast as with immediate, and "
        f"{plain['delayed, s'] / forty['delayed, s']:.1f} times as fast as on plain rows",
        DIRECTION,
        "Fisher vectors of scene15 (1500 rows of 16,384 numbers, accuracy) stand for those of "
        "PASCAL VOC 2007 (5000 rows, mAP). MapSVC trains on rows as few as these from their Gram "
        "matrix, which is computed once and costs the same with either expansion; the paper's "
        "cutting planes pass over the rows again and again, and a pass with delayed expansion is "
        "several times as fast (Equation 16). Memory is that of the rows; "
        "the words are the same for any number of rows, and with so few rows they are larger. "
        "Recorded by benchmarks/pq_accuracy.py.",
        pictures=(work.save(figure, "sparse-figure2", text),),
    )


def equation_16() -> Item:
    """What delayed expansion should gain, and gains."""
    rows = recorded("pq_accuracy")[FISHER]
    table: Table = {}
    for name, row in rows.items():
        if name == "plain" or not name.endswith("256 words"):
            continue
        size = int(name.split(",")[0].removeprefix("G="))
        table[name] = {
            "(16) says": 1 / (WORDS / ROWS + 1 / size),
            "measured": row["immediate, s"] / row["delayed, s"],
        }
    big = recorded("pq")["Random codes: an iteration of the solver, ms"]["classes: 1"]
    said = 1 / (WORDS / 5000 + 1 / 8)
    table["G=8, 5000 random rows, one class"] = {
        "(16) says": said,
        "measured": big["immediate"] / big["delayed"],
    }
    gained = table["G=8, 5000 random rows, one class"]["measured"]
    return Item(
        "Equation (16)",
        "Speed of delayed expansion",
        "roughly G times as fast as immediate expansion, for many rows",
        f"with 5000 rows and G = 8: {said:.1f} times by the formula, {gained:.1f} times measured; "
        "with 1500 rows and 15 classes 3 to 5 times",
        SAME if gained > said else DIRECTION,
        "The formula counts products alone; decoding itself takes time, too, so one class gains "
        "more. With several classes a decoded row is used for all of them, and the gain is "
        "smaller. The printed fraction is mangled in the text: it is 2^(bG)/n + 1/G.",
        {"Times as fast as immediate expansion": table},
    )


def figure_3() -> Item:
    """Detectors on gradients and on their words, as recorded."""
    found = recorded("detect")
    columns = {"AP": "AP", "training, s": "training, s", "cells, MB": "cells of images, MB",
               "finding, ms": "finding, ms per image"}  # fmt: skip
    rows = {"standard": "root", "256 words": "root, 256 words", "6 parts": "root and 6 parts"}
    table = {
        f"{kind}, {name}": {head: found[kind][row][c] for c, head in columns.items()}
        for kind in ("people", "faces")
        for name, row in rows.items()
    }

    def ratios(column: str) -> list[float]:
        return [table[f"{k}, standard"][column] / table[f"{k}, 256 words"][column]
                for k in ("people", "faces")]  # fmt: skip

    lost = [100 * (table[f"{k}, standard"]["AP"] - table[f"{k}, 256 words"]["AP"])
            for k in ("people", "faces")]  # fmt: skip
    saved, faster = ratios("cells of images, MB"), ratios("training, s")
    return Item(
        "Figure 3",
        "Product quantization for detectors",
        "about 3 % less mAP; cells 10 times smaller as stored, 113 times by count of bits (512 "
        "words); mining and finding twice as fast, the solver three times",
        f"people {-lost[0]:+.1f} and faces {-lost[1]:+.1f} points of AP; cells {saved[0]:.0f} "
        f"times smaller; training {min(faster):.1f} to {max(faster):.1f} times as fast",
        DIRECTION,
        "People in mosaics of INRIA windows and faces of dlib's example stand for the twenty "
        "classes of PASCAL VOC 2007, whose images are not here. A byte for a cell instead of 32 "
        f"numbers of 4 bytes is {32 * 4} times smaller; with 512 words and bits counted it is "
        f"{1024 / math.log2(512):.1f} times, where the paper has 113. Here only mining uses words: "
        "the template is learned from the gradients of the windows that were found hard, so the "
        "solver gains nothing, and a single detector finds by gradients. Many detectors at once "
        "find by words, at least 5 times as fast as one after the other. The two columns of the "
        "figure are detectors without parts here; detectors with 6 parts are in the table, but "
        "not with words. Recorded by benchmarks/detect.py; seconds are of the processor, of one "
        "run.",
        {"Detectors": table},
    )


def maps() -> Item:
    """Sections 2 and 4: sparse maps against dense ones, as recorded."""
    table = {
        name: {c: row[c] for c in ("components", "sparse, accuracy, %", "dense, accuracy, %",
                                   "sparse, s", "dense, s", "faster")}
        for name, row in recorded("pq_accuracy")["Sparse and dense maps"].items()
    }  # fmt: skip
    gains = {name: row["faster"] for name, row in table.items()}
    inter, chi2 = (
        [v for k, v in gains.items() if k.endswith(kind)] for kind in ("intersection", "chi2")
    )
    return Item(
        "Sections 2 and 4",
        "Sparse maps of additive kernels with the bundle solver",
        "D / P times less memory, and faster if P n + D² < D n",
        f"20 nodes against dense maps of equal error: intersection {min(inter):.1f} to "
        f"{max(inter):.1f} times as fast, χ² {min(chi2):.1f} to {max(chi2):.1f} times",
        DIRECTION if min(chi2) > 1 else NOT,
        "The comparison of the paper is with a dense map of as many features as there are nodes, "
        "by the same solver. A dense map of equal error needs only 4 features per value for χ², "
        "and here dense rows in memory are trained by a dual descent with a quarter of the passes. "
        "Recorded by benchmarks/pq_accuracy.py.",
        {"Training with maps of equal error": table},
    )


def plan(work: Work) -> Plan:
    """All figures, in the order of the paper; it has no tables."""
    return {
        "Figure 1": lambda: figure_1(work),
        "Sections 2 and 4": maps,
        "Equation (16)": equation_16,
        "Figure 2": lambda: figure_2(work),
        "Figure 3": figure_3,
    }
