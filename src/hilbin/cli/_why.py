"""What an explanation says, in numbers and in words."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Why:
    """Why an example has its score.

    Parameters
    ----------
    path : str
    predicted, label : str
        Class of the highest score, and the class that is explained.
    versus : str or None
        The class that it is compared with.
    score : float
        Of the class, less that of the other.
    intercept, shares : float or None
        Constant part of the score, and sum of the parts; None if scores are no sums.
    exact : bool
        Whether ``intercept + shares`` is the score.
    note : str
        How the parts were made.
    scores : dict from str to float
        Of all classes.
    features : list of dict
        ``feature``, ``value``, ``adds``: those with the largest parts, words summed over all cells
        of the image; none if scores are no sums and the example is an image.
    places : list of dict
        ``x``, ``y``, ``width``, ``height``, ``adds``: the parts of an image that add or take most.
    heat : array of shape (h, w) or None
        Of an image.
    """

    path: str
    predicted: str
    label: str
    versus: str | None
    score: float
    intercept: float | None
    shares: float | None
    exact: bool
    note: str
    scores: dict[str, float]
    features: list[dict[str, Any]]
    places: list[dict[str, Any]]
    heat: Array | None = None


def caption(why: Why) -> tuple[str, list[str], tuple[str, str]]:
    """Title, lines below, and what blue and red stand for."""
    title = f"Why {why.label}?"
    lines = [f"{why.label}: score {why.scores[why.label]:+.3f}"]
    ends = (f"against {why.label}", f"for {why.label}")
    if why.versus is not None:
        title = f"Why {why.label} rather than {why.versus}?"
        other = f"{why.versus}: score {why.scores[why.versus]:+.3f}"
        lines = [f"{lines[0]}; {other}; difference {why.score:+.3f}"]
        ends = (f"for {why.versus}", f"for {why.label}")
    if why.label != why.predicted:
        lines[0] += f". The prediction is {why.predicted} ({why.scores[why.predicted]:+.3f})."
    return title, [*lines, *sums(why)], ends


def sums(why: Why) -> list[str]:
    """What the parts and the intercept sum to, if they do."""
    if why.intercept is None or why.shares is None:
        return [f"Not exact. {why.note}"]
    total = why.shares + why.intercept
    return [
        f"Exact: parts {why.shares:+.6f}, constant {why.intercept:+.6f}, together {total:+.6f}; "
        f"off the score by {abs(total - why.score):.0e}.",
        why.note,
    ]


def summary(why: Why) -> str:
    """What the command prints."""
    _, lines, _ = caption(why)
    listed = [(f["feature"], f"{f['value']:.6g}", f"{f['adds']:+.4f}") for f in why.features]
    if listed:
        listed.insert(0, ("feature", "value", "adds"))
        wide = [max(len(row[k]) for row in listed) for k in range(3)]
        lines += [f"{a:<{wide[0]}}  {b:>{wide[1]}}  {c:>{wide[2]}}" for a, b, c in listed]
    return "\n".join([why.path, *lines])
