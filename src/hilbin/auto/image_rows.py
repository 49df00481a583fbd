r"""The rows of training images, and what all candidates compute from them.

The Gram matrices of the channels are computed once for every kernel. From them follow the weights
of the channels, by a rule, and what the weights are worth beside the plain average.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin.auto.channels import Channel, ChannelMap
from hilbin.auto.dual import MOST_ROWS, RULES, ChannelGrams, class_targets
from hilbin.estimators._fit import class_factors
from hilbin.kernels import AdditiveKernel, Chi2

COMPONENTS = 3  # features per value


@dataclass(frozen=True)
class ChannelWorth:
    """What the channels are worth, alone and together, by leave-one-out accuracy of a ridge.

    Parameters
    ----------
    accuracies : ndarray of shape (n_channels,)
        Accuracy of every channel alone.
    rules : dict from str to float
        Accuracy of the weighted sum by every rule that was tried, and of the plain average.
    rule : str
        The rule in use.
    weights : ndarray of shape (n_channels,)
        Its weights; they sum to 1.
    """

    accuracies: Array
    rules: dict[str, float]
    rule: str
    weights: Array

    @classmethod
    def of(cls, data: ChannelGrams, combine: str) -> "ChannelWorth":
        """Try the rule, or all rules if ``combine`` is ``"auto"``, and the plain average."""
        accuracies = data.accuracies()
        tried: tuple[str, ...] = RULES if combine == "auto" else (combine, "average")
        if len(data.grams) == 1:
            tried = ("average",)
        weights = {rule: data.channel_weights(rule, accuracies) for rule in tried}
        rules = {rule: data.accuracy(data.combined(w)) for rule, w in weights.items()}
        best = max(rules, key=lambda rule: rules[rule]) if combine == "auto" else tried[0]
        return cls(accuracies, rules, best, weights[best])


@dataclass
class ImageRows:
    """The rows of training images, and what all candidates compute from them.

    Parameters
    ----------
    rows : float32 array of shape (n_rows, n_features)
        Rows of images and of distorted copies.
    labels : array of shape (n_rows,)
        Labels.
    origin : int array of shape (n_rows,)
        Image that a row describes, numbered from 0 on.
    is_copy : bool array of shape (n_rows,)
        Whether the row is that of a copy.
    channels : list of (str, int, int)
        The channels.
    class_weight : dict or "balanced", optional
        Factor of the weights of the rows of each class.
    seed : int, default=0
        Random seed.
    n_jobs : int, optional
        Threads.
    combine : str, default="accuracy"
        Rule for the weights of the channels, or ``"auto"``.
    """

    rows: Array
    labels: Array
    origin: Array
    is_copy: Array
    channels: list[Channel]
    class_weight: Any = None
    seed: int = 0
    n_jobs: int | None = None
    combine: str = "accuracy"
    maps: dict[str, ChannelMap] = field(default_factory=dict)
    grams: dict[str, ChannelGrams] = field(default_factory=dict)
    _worth: dict[str, "ChannelWorth"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.classes, self.codes = np.unique(self.labels, return_inverse=True)
        ones = np.ones(self.codes.size)
        self.weights = class_factors(self.class_weight, self.classes, self.codes, ones)
        self.sample = self._sampled()

    def _sampled(self) -> Array:
        """Return the rows whose Gram matrices are computed: all, or evenly chosen images."""
        n = len(self.rows)
        if n <= MOST_ROWS:
            return np.arange(n)
        n_images = int(self.origin.max()) + 1
        share = MOST_ROWS / 2 / n
        order = np.argsort(self.codes[~self.is_copy], kind="stable")
        chosen = order[np.linspace(0, n_images - 1, int(share * n_images)).astype(int)]
        return np.flatnonzero(np.isin(self.origin, chosen))

    @property
    def nonnegative(self) -> bool:
        """Whether no value is below 0."""
        return bool(self.rows.min(initial=0) >= 0)

    @property
    def complete(self) -> bool:
        """Whether the Gram matrices are those of all rows."""
        return self.sample.size == len(self.rows)

    def of_kernel(self, kernel: AdditiveKernel | None) -> tuple[ChannelMap, ChannelGrams, Array]:
        """Return the features of a kernel, the Gram matrices, and the weights of the channels."""
        key = repr(kernel)
        if key not in self.maps:
            some = self.rows[self.sample]
            made = ChannelMap(
                self.channels, kernel=kernel, n_components=COMPONENTS, n_jobs=self.n_jobs
            ).fit_values(some)
            targets = class_targets(self.codes[self.sample], self.classes.size)
            data = ChannelGrams(
                made.grams(some), targets, self.weights[self.sample], self.origin[self.sample]
            )
            self.maps[key], self.grams[key] = made, data
            self._worth[key] = ChannelWorth.of(data, self.combine)
        return self.maps[key], self.grams[key], self._worth[key].weights

    def about_channels(self) -> dict[str, Any] | None:
        """Return what the channels are worth by the first kernel that was tried, if any was."""
        if len(self.channels) < 2 or not self._worth:
            return None
        worth = next(iter(self._worth.values()))
        parts = zip(self.channels, worth.accuracies, worth.weights, strict=True)
        return {
            "rule": worth.rule,
            "rules": worth.rules,
            "each": [
                {"name": name, "columns": end - begin, "accuracy": float(a), "weight": float(w)}
                for (name, begin, end), a, w in parts
            ],
        }

    def factors(self) -> list[float]:
        """Return the factors of the channels' columns that weigh homogeneous kernels."""
        made, _, weights = self.of_kernel(Chi2())
        found = weights * np.square(made.factors_) / made.weights_  # over the variance
        return [float(f) for f in found / found.max()]

    def places(self, images: Array) -> tuple[Array, Array]:
        """Return the rows of some images, copies included, and the place of each one's image."""
        place = np.full(int(self.origin.max()) + 1, -1)
        place[images] = np.arange(images.size)
        rows = np.flatnonzero(place[self.origin] >= 0)
        return rows, place[self.origin[rows]]
