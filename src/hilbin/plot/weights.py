"""Pictures of the weights that several kernels have in a model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.plot.inspection import BAR
from hilbin.plot.matrix import pyplot_or_error
from hilbin.plot.shapes import GRAY, short

LINES = ("#d55e00", "#009e73", "#cc79a7", "#e69f00")


def kernel_weights(
    model: Any,
    *,
    accuracies: Sequence[float] | None = None,
    combined: Mapping[str, float] | None = None,
    axes: Any = None,
) -> Array:
    """Draw the weight of every kernel of a model next to the accuracy of each kernel alone.

    Weights that differ between classes are drawn as points, and their mean as a bar.

    Parameters
    ----------
    model : estimator
        A fitted model with ``weights_``, such as :class:`~hilbin.estimators.MultipleKernelSVC`.
    accuracies : sequence of float, optional
        Accuracy of a model with each kernel alone, in the order of ``weights_``.
    combined : dict, optional
        Names and accuracies of models with several kernels, drawn as lines: the plain average
        should be among them. Needs ``accuracies``.
    axes : array of matplotlib Axes, optional
        Axes to draw on, two with ``accuracies``; a new figure by default.

    Returns
    -------
    axes : ndarray of matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import MultipleKernelSVC
    >>> from hilbin.kernels import Gaussian, OnColumns
    >>> from hilbin.plot import kernel_weights
    >>> X, y = load_iris(return_X_y=True)
    >>> parts = {"sepal": slice(0, 2), "petal": slice(2, 4)}
    >>> kernels = {name: OnColumns(Gaussian("median"), part) for name, part in parts.items()}
    >>> model = MultipleKernelSVC(kernels).fit(X, y)
    >>> axes = kernel_weights(model, accuracies=[0.81, 0.96], combined={"average": 0.97})
    >>> [text.get_text() for text in axes[0].get_yticklabels()]
    ['sepal', 'petal']
    """
    pyplot = pyplot_or_error()
    weights = np.atleast_2d(np.asarray(model.weights_, np.float64))
    names = _names(model, weights.shape[1])
    if combined is not None and accuracies is None:
        raise ValueError("combined is drawn beside accuracies: give these as well")
    if accuracies is not None and len(accuracies) != len(names):
        raise ValueError(f"accuracies has {len(accuracies)} numbers for {len(names)} kernels")
    panels = 1 if accuracies is None else 2
    if axes is None:
        size = 3.9 * panels + 0.6, 0.32 * len(names) + 1.4
        axes = pyplot.subplots(1, panels, figsize=size, layout="constrained", sharey=True)[1]
    axes = np.atleast_1d(axes)
    if axes.size != panels:
        raise ValueError(f"axes must be {panels}, got {axes.size}")
    _draw_weights(axes[0], weights, names)
    if accuracies is not None:
        _draw_accuracies(axes[1], np.asarray(accuracies, np.float64), combined or {})
    for ax in axes:
        ax.tick_params(axis="y", length=0)
        ax.tick_params(axis="x", labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    return axes


def _names(model: Any, count: int) -> list[str]:
    """Return the names of kernels, with their ``gamma`` if the model has chosen it."""
    names = getattr(model, "kernel_names_", None) or [f"kernel {j}" for j in range(count)]
    gammas = getattr(model, "gammas_", None)
    if gammas is None:
        return [short(name) for name in names]
    return [f"{short(n)}, γ = {g:.3g}" for n, g in zip(names, gammas, strict=True)]


def _draw_weights(ax: Any, weights: Array, names: list[str]) -> None:
    places = np.arange(len(names))
    ax.barh(places, weights.mean(axis=0), color=BAR, height=0.65)
    if len(weights) > 1:
        ax.scatter(weights.ravel(), np.tile(places, len(weights)), s=10, color=GRAY, zorder=3)
    ax.set_yticks(places, names, fontsize=8)
    if not ax.yaxis_inverted():
        ax.invert_yaxis()
    ax.set_xlim(0, 1.05 * max(float(weights.max()), 1e-12))
    ax.set_xlabel("weight", fontsize=8)


def _draw_accuracies(ax: Any, alone: Array, combined: Mapping[str, float]) -> None:
    places = np.arange(alone.size)
    ax.scatter(100 * alone, places, s=34, color=BAR, zorder=3, label="alone")
    for k, (name, accuracy) in enumerate(combined.items()):
        color, style = LINES[k % len(LINES)], ("-", "--", ":", "-.")[k % 4]
        label = f"{name}, {100 * accuracy:.1f} %"
        ax.axvline(100 * accuracy, color=color, linestyle=style, linewidth=1.4, label=label)
    ax.set_xlabel("accuracy, %", fontsize=8)
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.margins(x=0.08)
    ax.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
