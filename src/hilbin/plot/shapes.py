"""Shape functions: what an additive model has learned, feature by feature.

The score of an additive model is an intercept and a sum of functions of one feature each. So the
whole model can be drawn, by :func:`shapes`, and every score is a sum, which
:func:`hilbin.plot.explanation` draws.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array
from hilbin.plot.matrix import pyplot_or_error

MOST_FEATURES, MOST_CLASSES, MOST_COLUMNS = 12, 4, 4
MARGIN = 0.05  # of the axis, around what is drawn
HISTOGRAM_HEIGHT, HISTOGRAM_BINS = 0.15, 40
LONGEST_NAME = 26
UP, DOWN, GRAY = "#009e73", "#d55e00", "#a0a0a0"
KINDS = {
    "rising": UP,
    "mostly rising": "#7fd4b8",
    "mixed": "#4d4d4d",
    "mostly falling": "#f2b07c",
    "falling": DOWN,
    "no effect": GRAY,
}
MONOTONE = {"rising", "falling"}
MOSTLY = 0.9  # share of all ups and downs that go one way
CLASS_COLORS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00"),
    *("#56b4e9", "#882255", "#999933", "#332288", "#4d4d4d"),
)
THICK, NORMAL, THIN = 2.2, 1.6, 1.1


def shapes(
    model: Any, features: Any = None, *, classes: Any = None, X: Any = None, axes: Any = None
) -> Array:
    """Draw what features contribute to the score, as functions of their values.

    All panels have the same vertical axis, so that important features look important. With one
    score a line has the color of its trend: rising, falling, mostly so (nine tenths of all ups and
    downs go that way), mixed, or no effect. With several there is a line per class, thick if it is
    monotone.

    Parameters
    ----------
    model : IntersectionSVC or IntersectionSVR
        Fitted model; any one with ``shape_functions_`` will do.
    features : sequence of int or str, optional
        Features to draw, by number or name. By default the 12 with the largest range in the classes
        drawn, largest first.
    classes : sequence of labels, optional
        Classes to draw, if there are more than two; by default the 4 for which the features matter
        most.
    X : array-like or sparse of shape (n_samples, n_features), optional
        Rows whose values are drawn as a histogram below each function. Values beyond the ends of
        the function are counted at the ends.
    axes : array of matplotlib Axes, optional
        Axes to draw on, at least one for each feature; a new figure by default.

    Returns
    -------
    axes : ndarray of matplotlib Axes
        One for each feature, in the order drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import IntersectionSVC
    >>> from hilbin.plot import shapes
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = IntersectionSVC().fit(X, y == 1)
    >>> axes = shapes(model, ["petal length (cm)", "petal width (cm)"], X=X)
    >>> axes[0].get_title(), axes[0].get_ylim() == axes[1].get_ylim()
    ('petal length (cm)', True)
    """
    pyplot = pyplot_or_error()
    functions = _functions(model)
    chosen = _numbers(functions, features)
    labels, columns = _chosen_classes(model, [functions[j] for j in chosen], classes)
    lines = {j: _per_class(functions[j], columns) for j in chosen}
    if features is None:
        chosen.sort(key=lambda j: -max(line.range for line in lines[j]))
        chosen = chosen[:MOST_FEATURES]
    values = None if X is None else _columns(X, len(functions), chosen)
    panels = _panels(pyplot, len(chosen)) if axes is None else _given_axes(axes, len(chosen))
    colors = {label: CLASS_COLORS[k % len(CLASS_COLORS)] for k, label in enumerate(labels)}
    for k, (ax, j) in enumerate(zip(panels, chosen, strict=True)):
        _draw(ax, lines[j], list(colors.values()))
        if values is not None:
            _draw_histogram(ax, values[k])
    drawn = [line for j in chosen for line in lines[j]]
    _same_height(panels, drawn, 0 if values is None else HISTOGRAM_HEIGHT)
    _add_labels(panels, model, _legend(drawn, colors), own=axes is None)
    return panels


def short(name: str) -> str:
    """Return the name, or its beginning if it is long."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _functions(model: Any) -> Sequence[Any]:
    check_is_fitted(model)
    functions: Sequence[Any] | None = getattr(model, "shape_functions_", None)
    if functions is None:
        raise TypeError(
            "model must have shape_functions_, as IntersectionSVC has; "
            f"{type(model).__name__} has not"
        )
    return functions


def _numbers(functions: Sequence[Any], features: Any) -> list[int]:
    """Return the numbers of the given features, or of all."""
    if features is None:
        return list(range(len(functions)))
    names = {f.name: j for j, f in enumerate(functions)}
    chosen = []
    for feature in [features] if np.isscalar(features) else features:
        number = names.get(feature) if isinstance(feature, str) else feature
        if not (isinstance(number, (int, np.integer)) and 0 <= number < len(functions)):
            raise ValueError(
                f"features has {feature!r}, which is neither the name of a feature nor a number "
                f"from 0 to {len(functions) - 1}"
            )
        chosen.append(int(number))
    if not chosen:
        raise ValueError("features is empty")
    return chosen


def _chosen_classes(model: Any, functions: list[Any], classes: Any) -> tuple[list[Any], list[int]]:
    """Return the labels of the classes to draw and their columns; none if there is one score."""
    if functions[0].contributions.ndim == 1:
        if classes is not None:
            raise ValueError("classes are for three or more; this model has a single score")
        return [], []
    known = list(model.classes_)
    if classes is None:
        matter = np.sum([np.ptp(f.contributions, axis=0) for f in functions], axis=0)
        columns = sorted(np.argsort(-matter, kind="stable")[:MOST_CLASSES].tolist())
        return [known[c] for c in columns], columns
    labels = [classes] if np.isscalar(classes) else list(classes)
    if not labels:
        raise ValueError("classes is empty")
    for label in labels:
        if label not in known:
            raise ValueError(f"classes has {label!r}, which is not a class of the model")
    return labels, [known.index(label) for label in labels]


def _per_class(function: Any, columns: list[int]) -> list[Any]:
    """Return the function of every class, each with a range and a trend of its own."""
    if not columns:
        return [function]
    return [replace(function, contributions=function.contributions[:, c]) for c in columns]


def _columns(X: Any, n_features: int, chosen: list[int]) -> list[Array]:
    """Return the values of every chosen feature in ``X``."""
    X = X.tocsc() if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.shape[1] != n_features:
        raise ValueError(f"X must have rows of {n_features} features, got the shape {X.shape}")
    return [X[:, [j]].toarray().ravel() if sp.issparse(X) else X[:, j] for j in chosen]


def _panels(pyplot: Any, count: int) -> Array:
    columns = min(count, MOST_COLUMNS)
    rows = -(-count // columns)
    figure, grid = pyplot.subplots(
        rows,
        columns,
        figsize=(max(2.4 * columns, 4), 1.9 * rows + 0.6),
        layout="constrained",
        sharey=True,
        squeeze=False,
    )
    for ax in grid.flat[count:]:
        figure.delaxes(ax)
    return np.array(grid.ravel()[:count])


def _given_axes(axes: Any, count: int) -> Array:
    given = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if given.size < count:
        raise ValueError(f"axes must be at least {count}, one for each feature; got {given.size}")
    return given[:count]


def _draw(ax: Any, lines: list[Any], colors: list[str]) -> None:
    """Draw the functions of one feature, in the ``colors`` of the classes if there are several."""
    points = lines[0].values
    pad = MARGIN * (float(np.ptp(points)) or 1.0)
    x = np.concatenate(([points[0] - pad], points, [points[-1] + pad]))
    ax.axhline(0, color="0.85", linewidth=0.8, zorder=0)
    kinds = [_kind(line) for line in lines]
    for k, (line, kind) in enumerate(zip(lines, kinds, strict=True)):
        y = line.contributions
        ax.plot(
            x,
            np.concatenate((y[:1], y, y[-1:])),
            color=colors[k] if colors and kind != "no effect" else KINDS[kind],
            drawstyle="steps-post" if line.stepped else "default",
            linewidth=NORMAL if not colors else THICK if kind in MONOTONE else THIN,
        )
    none = {*kinds} == {"no effect"}
    ax.set_title(short(lines[0].name), fontsize=9, color=GRAY if none else "black")
    if none:
        ax.text(0.5, 0.6, "no effect", ha="center", color=GRAY, fontsize=8, transform=ax.transAxes)
    if points.size == 1:
        ax.set_xticks(points)
    ax.set_xlim(x[0], x[-1])
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)


def _kind(line: Any) -> str:
    """Return the trend of a function, and which way a mixed one mostly goes."""
    if line.trend != "mixed":
        return "no effect" if line.trend == "flat" else str(line.trend)
    steps = np.diff(line.contributions)
    up = steps[steps > 0].sum() / np.abs(steps).sum()
    return "mostly rising" if up >= MOSTLY else "mostly falling" if up <= 1 - MOSTLY else "mixed"


def _draw_histogram(ax: Any, values: Array) -> None:
    """Draw a histogram of the values, gray, at the bottom of the panel."""
    low, high = ax.get_xlim()
    counts, edges = np.histogram(np.clip(values, low, high), HISTOGRAM_BINS, (low, high))
    heights = HISTOGRAM_HEIGHT * counts / max(1, counts.max())
    ax.stairs(heights, edges, fill=True, color="0.82", zorder=0, transform=ax.get_xaxis_transform())


def _same_height(panels: Array, lines: list[Any], below: float) -> None:
    """Give all panels one vertical range, with a share ``below`` for histograms."""
    low = min(float(line.contributions.min()) for line in lines)
    high = max(float(line.contributions.max()) for line in lines)
    margin = MARGIN * (high - low) or 1.0
    for ax in panels:
        ax.set_ylim(low - margin - below * (high - low), high + margin)


def _legend(lines: list[Any], colors: dict[Any, str]) -> dict[str, tuple[str, float]]:
    """Return the color and the width of every entry of the legend."""
    drawn = {_kind(line) for line in lines}
    if not colors:
        return {kind: (color, NORMAL) for kind, color in KINDS.items() if kind in drawn}
    entries = {f"class {label}": (color, NORMAL) for label, color in colors.items()}
    if drawn & MONOTONE:
        entries["monotone"] = "black", THICK
    if drawn - MONOTONE - {"no effect"}:
        entries["mixed"] = "black", THIN
    return entries


def _add_labels(
    panels: Array, model: Any, entries: dict[str, tuple[str, float]], *, own: bool
) -> None:
    """Add the label of the vertical axis and the legend."""
    from matplotlib.lines import Line2D

    known = getattr(model, "classes_", None)
    label = "contribution to the prediction" if known is None else "contribution to the score"
    if known is not None and len(known) == 2:
        label += f" of {known[1]}"
    lines = [Line2D([], [], color=color, linewidth=width) for color, width in entries.values()]
    if own:
        figure = panels[0].figure
        figure.supylabel(label, fontsize=9)
        place: dict[str, Any] = {"loc": "outside lower center", "ncols": len(lines)}
        figure.legend(lines, [*entries], **place, fontsize=8, frameon=False)
    else:
        panels[0].set_ylabel(label, fontsize=8)
        panels[0].legend(lines, [*entries], fontsize=7)
