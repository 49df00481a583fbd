"""Chapter 3 of Lampert's tutorial: what kernels see of images.

Pictures are of scikit-learn's digits and of its two photographs.
"""

from typing import Any

import numpy as np
from data import Array
from scipy import ndimage
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_sample_images
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score

from hilbin.estimators import KernelSVC
from hilbin.images import ColorHistogram, DenseSIFT, distort, normalize_moments
from hilbin.kernels import Gaussian, kernel_alignment
from redrawn.items import COLORS, DIRECTION, NOT, SAME, UNCHECKED, Item, Work, panels

SIDE = 32
TURNS = 36


def digits(label: int, count: int) -> list[Array]:
    """Images of one digit, enlarged."""
    stored = load_digits()
    found = stored.images[stored.target == label][:count]
    return [enlarged(image) for image in found]


def enlarged(image: Array) -> Array:
    """A digit of 8 x 8 pixels with a border, as a larger image of whole numbers."""
    big = ndimage.zoom(np.pad(image * 255 / 16, 2), SIDE / 12, order=1)
    return np.clip(big, 0, 255).astype(np.uint8)


def show(axes: Any, image: Array, title: str = "") -> None:
    """An image without ticks."""
    axes.imshow(image, cmap="gray", interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=7)


def variability(work: Work) -> Item:
    """Figures 3.1 to 3.3: digits, distorted copies, and their standard form."""
    fours = digits(4, 6)
    changes: dict[str, dict[str, Any]] = {
        "shift": {"shift": 0.2},
        "turn": {"rotate": 40},
        "noise": {"noise": 40},
        "blur": {"blur": 2},
        "contrast": {"contrast": 0.7},
        "size": {"scale": 0.3},
    }
    figure, axes = panels(6, 3, 1.25)
    for ax, image in zip(axes, fours, strict=False):
        show(ax, image, "3.1")
    for ax, (name, options) in zip(axes[6:], changes.items(), strict=False):
        show(ax, distort(fours[0], random_state=1, **options), f"3.2: {name}")
    turned = [ndimage.rotate(fours[0], angle, reshape=False, order=1) for angle in (0, 25, -40)]
    for k, image in enumerate(turned):
        show(axes[12 + 2 * k], image, "3.3: before")
        show(axes[13 + 2 * k], normalize_moments(image), "3.3: after")
    before, after = (
        mean_distance(images) for images in (turned, [normalize_moments(t) for t in turned])
    )
    text = "Digits 4, distorted copies of one, and turned copies before and after normalization."
    return Item(
        "Figures 3.1 to 3.3",
        "Variability, virtual samples, normalization",
        "transforming an image to a standard representation can remove the effect of variability",
        f"mean distance of turned copies {before:.1f} before, {after:.1f} after (gray values, root "
        "mean square)",
        SAME if after < before / 2 else DIRECTION if after < before else NOT,
        "Digits of scikit-learn, enlarged; the tutorial has its own.",
        pictures=(work.save(figure, "lampert-digits", text),),
    )


def mean_distance(images: list[Array]) -> float:
    """Root mean square difference of pairs."""
    rows = np.array([image.ravel() for image in images], float)
    pairs = [(i, j) for i in range(len(rows)) for j in range(i)]
    return float(np.mean([np.sqrt(np.mean((rows[i] - rows[j]) ** 2)) for i, j in pairs]))


def normalized_kernel(work: Work) -> Item:
    """Figure 3.4: kernel matrices of distorted digits, before and after normalization."""
    rng, images, y = np.random.default_rng(0), [], []
    for label in (0, 1, 4, 7):
        for image in digits(label, 10 if work.quick else 25):
            angle, (dx, dy) = rng.uniform(-45, 45), rng.uniform(-4, 4, 2)
            turned = ndimage.rotate(image, angle, reshape=False, order=1)
            images.append(ndimage.shift(turned, (dy, dx), order=1))
            y.append(label)
    rows = {
        "raw": np.array([i.ravel() / 255 for i in images]),
        "normalized": np.array([normalize_moments(i).ravel() / 255 for i in images]),
    }
    figure, axes = panels(2, height=2.9)
    found = {}
    for ax, (name, X) in zip(axes, rows.items(), strict=True):
        kernel = Gaussian("median").resolve(X)
        K = kernel.gram(X)
        alignment = kernel_alignment(K, np.array(y))
        rate = 100 * cross_val_score(KernelSVC(kernel, 10), X, np.array(y), cv=5).mean()
        found[name] = {"alignment": alignment, "accuracy by cross-validation, %": rate}
        ax.imshow(K, cmap="viridis", interpolation="nearest")
        ax.set(title=f"{name}: alignment {alignment:.2f}", xlabel="image", ylabel="image")
    text = "Gaussian kernel matrices of turned and shifted digits, raw and normalized."
    raw, after = (row["alignment"] for row in found.values())
    return Item(
        "Figure 3.4",
        "Effect of normalization on a Gaussian kernel matrix",
        "the kernel of raw images is not informative, that of normalized ones is more so",
        f"alignment with the classes {raw:.2f} raw, {after:.2f} normalized; accuracy "
        + ", ".join(f"{row['accuracy by cross-validation, %']:.0f} %" for row in found.values()),
        SAME if after > raw else NOT,
        "Four digits, turned by up to 45 degrees and shifted by up to an eighth of the side.",
        {"Gaussian kernel of median width": found},
        (work.save(figure, "lampert-normalized-kernel", text),),
    )


def integrated(image: Array) -> Array:
    """Mean of turned copies."""
    angles = np.arange(TURNS) * 360 / TURNS
    return np.mean(
        [ndimage.rotate(image.astype(float), a, reshape=False, order=1) for a in angles], axis=0
    )


def rotation(work: Work) -> Item:
    """Figure 3.5: averages over turns."""
    four = digits(4, 1)[0]
    images = {
        "a: 4": four,
        "b: 4, turned": ndimage.rotate(four, 70, reshape=False, order=1),
        "c: 2": digits(2, 1)[0],
    }
    figure, axes = panels(6, height=1.5)
    means = {}
    for k, (name, image) in enumerate(images.items()):
        means[name] = integrated(image)
        show(axes[k], image, name)
        show(axes[3 + k], means[name], f"{name[0]}': averaged")
    a, b = list(images.values())[:2]
    p, q, r = means.values()
    same, other = mean_distance([p, q]), mean_distance([p, r])
    raw = mean_distance([a, b])
    text = "A digit 4, the same turned, a digit 2, and their averages over all turns."
    return Item(
        "Figure 3.5",
        "Rotation invariant features by integration",
        "averages over turns of the two digits 4 are very similar, that of the 2 is clearly other",
        f"distance of the two 4: {raw:.1f} raw, {same:.1f} averaged; of 4 and 2 averaged "
        f"{other:.1f}",
        SAME if same < other / 2 and same < raw / 2 else DIRECTION if same < other else NOT,
        f"{TURNS} turns; distances are root mean squares of gray values.",
        pictures=(work.save(figure, "lampert-rotation", text),),
    )


def edges(work: Work) -> Item:
    """Figure 3.6: edges do not see the brightness."""
    gray = load_sample_images().images[0][::4, ::4].mean(axis=2)
    images = {"image": gray, "darker": gray * 0.5, "brighter": 128 + gray * 0.5}

    def detected(image: Array) -> Array:
        size = ndimage.gaussian_gradient_magnitude(image, 1.5)
        found: Array = size > 0.2 * size.max()
        return found

    figure, axes = panels(3, 2, 1.6)
    found = {}
    for k, (name, image) in enumerate(images.items()):
        found[name] = detected(image)
        axes[k].imshow(image, cmap="gray", vmin=0, vmax=255)
        axes[k].set(title=name, xticks=[], yticks=[])
        show(axes[3 + k], ~found[name], "edges")
    raw = mean_distance([images["darker"], images["brighter"]])
    changed = float(np.mean(found["darker"] != found["brighter"]))
    text = "A photograph, darker and brighter, and its edges, which are the same."
    return Item(
        "Figure 3.6",
        "Edges as an invariant",
        "differentiation and thresholding remove global variations of intensity",
        f"dark and bright differ by {raw:.0f} gray values, their edges in {changed:.1%} of the "
        "pixels",
        SAME if changed < 0.01 else NOT,
        "A photograph that comes with scikit-learn (China, by Jialiang Gao, CC BY); the threshold "
        "is relative to the strongest edge.",
        pictures=(work.save(figure, "lampert-edges", text),),
    )


def colors(work: Work) -> Item:
    """Figures 3.7 and 3.8: histograms of a moved object, and histograms in cells."""
    image = load_sample_images().images[1][:, 100:527][::2, ::2]
    moved = ndimage.rotate(image, 20, reshape=False, order=1, mode="reflect")
    shuffled = blocks(image, np.random.default_rng(0))
    pictures = {"image": image, "turned": moved, "shuffled": shuffled}
    whole = ColorHistogram("rgb", 4)
    figure, axes = panels(3, height=2.2)
    for ax, (name, picture) in zip(axes, pictures.items(), strict=True):
        ax.imshow(picture)
        ax.set(title=name, xticks=[], yticks=[])
    table = {}
    for name in ("turned", "shuffled"):
        pair = [image, pictures[name]]
        pixels = np.array([p.reshape(-1) / 255.0 for p in pair])
        table[name] = {
            "pixels": relative(pixels),
            "histogram": relative(whole.fit_transform(pair)),
            "histograms in 3 x 3 cells": relative(gridded(pair)),
        }
    text = "A photograph of a flower, the same turned, and its blocks shuffled."
    turned, mixed = table["turned"], table["shuffled"]
    own = turned["histogram"] < 0.5 * turned["pixels"]
    told = mixed["histograms in 3 x 3 cells"] > 3 * mixed["histogram"]
    return Item(
        "Figures 3.7 and 3.8",
        "Color histograms, whole and in cells",
        "of views of an object the images differ as vectors, the histograms hardly; a histogram "
        "ignores places, histograms in the cells of a grid do not",
        f"relative distance to the turned image: pixels {turned['pixels']:.2f}, histogram "
        f"{turned['histogram']:.2f}; to the shuffled one: histogram {mixed['histogram']:.2f}, in "
        f"cells {mixed['histograms in 3 x 3 cells']:.2f}",
        SAME if own and told else DIRECTION if own or told else NOT,
        "A photograph that comes with scikit-learn (flower, by dany13, CC BY), turned by 20 "
        "degrees, stands for objects of the Columbia library, which is not here.",
        {"Distance over the root of the product of the norms": table},
        (work.save(figure, "lampert-colors", text),),
    )


def gridded(images: list[Array]) -> Array:
    """Histograms of the nine cells of a grid, side by side."""
    whole = ColorHistogram("rgb", 4)
    rows = []
    for image in images:
        cells = [c for strip in np.array_split(image, 3) for c in np.array_split(strip, 3, axis=1)]
        rows.append(np.concatenate(whole.fit_transform(cells)))
    return np.array(rows)


def relative(rows: Array) -> float:
    """Distance of two rows over their size."""
    a, b = np.asarray(rows, float)
    return float(np.linalg.norm(a - b) / np.sqrt(np.linalg.norm(a) * np.linalg.norm(b)))


def blocks(image: Array, rng: Any) -> Array:
    """The same pixels in other places: a grid of blocks, permuted."""
    size = 21
    rows, columns = image.shape[0] // size, image.shape[1] // size
    cut = image[: rows * size, : columns * size].copy()
    tiles = [
        cut[i * size : (i + 1) * size, j * size : (j + 1) * size].copy()
        for i in range(rows)
        for j in range(columns)
    ]
    for place, k in enumerate(rng.permutation(len(tiles))):
        i, j = divmod(place, columns)
        cut[i * size : (i + 1) * size, j * size : (j + 1) * size] = tiles[k]
    out = image.copy()
    out[: rows * size, : columns * size] = cut
    return out


def codebooks(work: Work) -> Item:
    """Figure 3.10: a grid and a codebook of descriptors."""
    image = load_sample_images().images[0]
    rows = DenseSIFT(8, (4,)).local(image)[0].features.reshape(-1, 128)
    Z = PCA(2, random_state=0).fit_transform(np.asarray(rows, float))
    low, high = Z.min(axis=0), Z.max(axis=0)
    side = 5
    cells = np.clip(((Z - low) / (high - low) * side).astype(int), 0, side - 1)
    number = cells[:, 0] * side + cells[:, 1]
    model = KMeans(side * side, n_init=3, random_state=0).fit(Z)
    centers = np.array([Z[number == k].mean(axis=0) for k in np.unique(number)])
    filled = np.unique(number, return_inverse=True)[1]
    words = model.cluster_centers_[model.labels_]
    errors = [float(((Z - c) ** 2).sum(axis=1).mean()) for c in (centers[filled], words)]
    empty = side * side - len(centers)
    figure, axes = panels(2, height=2.7)
    for ax, labels, title in (
        (axes[0], number, f"grid: {empty} of {side * side} cells empty"),
        (axes[1], model.labels_, f"k-means: {side * side} words"),
    ):
        ax.scatter(*Z.T, c=labels % 7, cmap=listed(), s=3, linewidths=0)
        ax.set(title=title, xlabel="first component", ylabel="second component")
    text = "SIFT descriptors of a photograph in two components, divided by a grid and by k-means."
    return Item(
        "Figure 3.10",
        "Descriptor codebooks",
        "descriptors form clusters; a regular grid leaves cells empty and cuts clusters, a "
        "codebook respects them",
        f"{side * side} cells: {empty} of the grid are empty; mean square error {errors[0]:.3g} by "
        f"the grid, {errors[1]:.3g} by k-means",
        SAME if empty > 0 and errors[1] < errors[0] else NOT,
        "Dense SIFT of a photograph of scikit-learn, two principal components.",
        pictures=(work.save(figure, "lampert-codebooks", text),),
    )


def listed() -> Any:
    """The colors of all plots as a color map."""
    from matplotlib.colors import ListedColormap

    return ListedColormap(COLORS)


def classes(work: Work) -> Item:
    """Figure 3.9: photographs of dogs."""
    return Item(
        "Figure 3.9",
        "One class, many appearances",
        "photographs of dogs",
        "not drawn",
        UNCHECKED,
        "Photographs only, with no figure to compare.",
    )


FIGURES = {
    "Figures 3.1 to 3.3": variability,
    "Figure 3.4": normalized_kernel,
    "Figure 3.5": rotation,
    "Figure 3.6": edges,
    "Figures 3.7 and 3.8": colors,
    "Figure 3.9": classes,
    "Figure 3.10": codebooks,
}
