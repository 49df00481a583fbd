"""Explain the score of one row by an additive model: its sum, bar by bar or pixel by pixel."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from hilbin._arrays import Array, to_dense
from hilbin.plot.matrix import pyplot_or_error
from hilbin.plot.shapes import DOWN, GRAY, UP, short

PAD = 0.17  # share of the axis on both sides, for the numbers


def explanation(
    model: Any,
    x: Any,
    *,
    class_: Any = None,
    versus: Any = None,
    top: int = 15,
    shape: tuple[int, int] | None = None,
    ax: Any = None,
) -> Any:
    """Draw what the features of one row contribute to its score.

    Bars are read from below: the intercept, then the features, each beginning where the one before
    ended. The last one ends at the score.

    Parameters
    ----------
    model : IntersectionSVC or IntersectionSVR
        Fitted model; any one with ``explain`` and ``intercept_`` will do.
    x : array-like or sparse of shape (n_features,) or (1, n_features)
        Row whose score is explained.
    class_ : label, optional
        Class whose score is explained. By default ``classes_[1]`` of two classes, as in
        ``decision_function``, or the predicted one of more.
    versus : label, optional
        Class whose score is subtracted, if there are more than two. If neither ``class_`` nor
        ``versus`` is given, the one with the second highest score: why this class and not that?
    top : int, default=15
        Number of features with a bar of their own; the others share one.
    shape : (int, int), optional
        Height and width, if the row is an image: the contributions are drawn as an image too, under
        the outline of the row.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import IntersectionSVC
    >>> from hilbin.plot import explanation
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = IntersectionSVC().fit(X, y)
    >>> ax = explanation(model, X.iloc[70])
    >>> ax.get_title().split(":")[0], ax.get_yticklabels()[-1].get_text()
    ('score of 2 over 1', 'petal width (cm) = 1.8')
    """
    pyplot = pyplot_or_error()
    row = _one_row(x)
    values = to_dense(row)
    values = values.ravel().astype(np.float64)
    each, intercept, title = _parts(model, row, class_, versus)
    if shape is not None and (len(shape) != 2 or shape[0] * shape[1] != values.size):
        raise ValueError(f"shape={shape!r} does not have {values.size} pixels, one per feature")
    if shape is not None:
        ax = pyplot.subplots(figsize=(4.6, 4), layout="constrained")[1] if ax is None else ax
        _draw_image(ax, each.reshape(shape), values.reshape(shape))
        ax.set_title(f"{title}\nof that the intercept: {intercept:+.2g}", fontsize=10)
        return ax
    names, widths = _bars(each, values, getattr(model, "feature_names_in_", None), top)
    if ax is None:
        size = 6.4, 0.26 * len(names) + 1.2
        ax = pyplot.subplots(figsize=size, layout="constrained")[1]
    _draw_bars(ax, ["intercept", *names], np.array([intercept, *widths]))
    ax.set_title(title, fontsize=10)
    return ax


def _one_row(x: Any) -> Any:
    if hasattr(x, "to_frame"):  # a row of a data frame
        x = x.to_frame().T
    if sp.issparse(x):
        x = x.reshape(1, -1) if x.ndim == 1 else x
    elif not hasattr(x, "columns"):
        x = np.atleast_2d(np.asarray(x))
    if x.ndim != 2 or x.shape[0] != 1:
        raise ValueError(f"x must be one row, got the shape {x.shape}")
    return x


def _parts(model: Any, row: Any, class_: Any, versus: Any) -> tuple[Array, float, str]:
    """Return the contributions of features and intercept, and what they sum up to in words."""
    check_is_fitted(model)
    if not hasattr(model, "explain"):
        raise TypeError(
            f"model must have explain, as IntersectionSVC has; {type(model).__name__} has not"
        )
    each = model.explain(row)
    each = each.toarray()[0] if sp.issparse(each) else each[0]
    each = each.reshape(each.shape[0], -1)
    intercept = np.ravel(model.intercept_)
    known = list(getattr(model, "classes_", ()))
    for name, label in (("class_", class_), ("versus", versus)):
        if label is not None and label not in known:
            raise ValueError(f"{name}={label!r} is not a class of the model")
    if not known:
        factors, what = np.ones(1), "prediction"
    elif each.shape[1] == 1:
        factors, what = _of_two(known, class_, versus)
    else:
        scores = each.sum(axis=0) + intercept
        factors, what = _of_many(known, scores, class_, versus)
    each, offset = each @ factors, float(intercept @ factors)
    total = float(each.sum()) + offset
    return each, offset, f"{what}: {total:.4g}" if not known else f"{what}: {total:+.3g}"


def _of_two(known: list[Any], class_: Any, versus: Any) -> tuple[Array, str]:
    first = class_ is not None and known.index(class_) == 0
    if class_ is None and versus is not None:
        first = known.index(versus) == 1
    if versus is not None and known.index(versus) == (0 if first else 1):
        raise ValueError(f"versus={versus!r} is the class that is explained")
    return np.array([-1.0 if first else 1.0]), f"score of {known[0 if first else 1]}"


def _of_many(known: list[Any], scores: Array, class_: Any, versus: Any) -> tuple[Array, str]:
    ranked = np.argsort(-scores, kind="stable")
    own = int(ranked[0]) if class_ is None else known.index(class_)
    factors = np.zeros(len(known))
    factors[own] = 1
    if versus is None and class_ is not None:
        return factors, f"score of {known[own]}"
    other = int(ranked[1]) if versus is None else known.index(versus)
    if other == own:
        raise ValueError(f"versus={versus!r} is the class that is explained")
    factors[other] = -1
    return factors, f"score of {known[own]} over {known[other]}"


def _bars(each: Array, values: Array, names: Any, top: int) -> tuple[list[str], list[float]]:
    """Return labels and contributions of the bars, from the shared one to the largest."""
    if isinstance(top, bool) or not isinstance(top, (int, np.integer)) or top < 1:
        raise ValueError(f"top must be a whole number >= 1, got {top!r}")
    shown = np.argsort(-np.abs(each), kind="stable")[:top]
    shown = shown[each[shown] != 0][::-1]
    rest = each.size - shown.size
    labels = [
        f"{short(names[j] if names is not None else f'x{j}')} = {values[j]:.4g}" for j in shown
    ]
    widths = each[shown].tolist()
    if rest:
        labels.insert(0, f"{rest} other feature{'s' if rest > 1 else ''}")
        widths.insert(0, float(np.delete(each, shown).sum()))
    return labels, widths


def _draw_bars(ax: Any, names: list[str], widths: Array) -> None:
    ends = np.cumsum(widths)
    begins = ends - widths
    places = np.arange(widths.size)
    colors = [GRAY, *(UP if w > 0 else DOWN for w in widths[1:])]
    decimals = max(0, 2 - int(np.floor(np.log10(np.abs(widths[1:]).max(initial=0) or 1.0))))
    ax.barh(places, widths, left=begins, color=colors, height=0.7)
    for k, (begin, end, width) in enumerate(zip(begins, ends, widths, strict=True)):
        right = width >= 0
        ax.annotate(
            f"{width:+.{decimals}f}".replace("-", "−") if width else "0",
            (end, k),
            (3 if right else -3, 0),
            textcoords="offset points",
            ha="left" if right else "right",
            va="center_baseline",
            fontsize=8,
        )
        if k:
            ax.plot([begin, begin], [k - 1.35, k + 0.35], color="0.6", linewidth=0.7)
    ax.axvline(ends[-1], color="0.6", linewidth=0.9, linestyle=":", zorder=0)
    low, high = float(ends.min()), float(ends.max())
    if not abs(widths[0]) > 2 * (high - low) > 0:  # else a bar from 0 would dwarf the others
        low, high = min(low, 0.0), max(high, 0.0)
        ax.axvline(0, color="0.85", linewidth=0.8, zorder=0)
    pad = PAD * (high - low) or 1.0
    ax.set_xlim(low - pad, high + pad)
    ax.set_yticks(places, names, fontsize=8)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=8)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _draw_image(ax: Any, each: Array, values: Array) -> None:
    most = float(np.abs(each).max()) or 1.0
    image = ax.imshow(each, cmap="BrBG", vmin=-most, vmax=most, interpolation="nearest")
    low, high = float(values.min()), float(values.max())
    if low < high:
        framed = np.pad(values, 1, constant_values=low)  # so that every outline is closed
        across, down = (np.arange(-1, n + 1) for n in values.shape[::-1])
        ax.contour(across, down, framed, [(low + high) / 2], colors="black", linewidths=0.9)
        ax.set(xlim=(-0.5, values.shape[1] - 0.5), ylim=(values.shape[0] - 0.5, -0.5))
    ax.set_xticks([])
    ax.set_yticks([])
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
    bar.ax.tick_params(labelsize=8)
    bar.set_label("contribution", fontsize=8)
