"""Evidence: test results of a classifier, pictures of them, and what the model has learned.

It is what a report is made from. Nothing here is computed: ``collect_evidence`` has the model and
the files, the report has neither. Pictures are asked for one at a time, and only those that are
shown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from hilbin._arrays import Array
from hilbin.inspection.importances import Importances


class Shape(Protocol):
    """What one feature adds to a score, as a function of its value.

    :class:`hilbin.estimators.ShapeFunction` is one. ``contributions`` has the shape ``(n_points,)``
    if there are two classes (what is added to the score of the second), otherwise ``(n_points,
    n_classes)``; between two of the ``values`` the function is constant if ``stepped``, else
    linear.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import ShapeFunction
    >>> from hilbin.inspection import Shape
    >>> width: Shape = ShapeFunction("width", np.array([0.0, 1.0]), np.array([0.0, 2.0]), False)
    >>> width.name
    'width'
    """

    @property
    def name(self) -> str:
        """Name of the feature."""

    @property
    def values(self) -> Array:
        """Values at which the function is given."""

    @property
    def contributions(self) -> Array:
        """What is added to the score there."""

    @property
    def stepped(self) -> bool:
        """Whether the function is constant between two values, or linear."""


@dataclass(frozen=True, eq=False)
class VisualWord:
    """A visual word of the codebook, shown by patches that were assigned to it.

    Parameters
    ----------
    shape : Shape
        What the word adds to the scores, as a function of how often it occurs.
    label : int
        Class for which the word matters, as an index of ``Evidence.classes``.
    patches : sequence of uint8 arrays of shape (h, w) or (h, w, 3)
        Patches of images with this word; the first 16 are shown.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import ShapeFunction
    >>> from hilbin.inspection import VisualWord
    >>> shape = ShapeFunction("word 17", np.array([0.0, 1.0]), np.array([0.0, 2.0]), False)
    >>> VisualWord(shape, label=1, patches=[np.zeros((16, 16), np.uint8)]).shape.name
    'word 17'
    """

    shape: Shape
    label: int
    patches: Sequence[Array] = ()


@dataclass(frozen=True, eq=False)
class Suspicion:
    """An example whose label looks wrong.

    Parameters
    ----------
    name : str
        File name, or another name of the example.
    given : str
        Label that it has.
    suggested : str
        Class with the highest score by a model that was not trained on this example.
    margin : float
        Score of the suggested class minus that of the given one.
    picture : uint8 array of shape (h, w) or (h, w, 3), optional
        The image.
    index : int, optional
        Place of the example among those that were looked at.

    Examples
    --------
    >>> from hilbin.inspection import Suspicion
    >>> Suspicion("heron/17.jpg", given="heron", suggested="egret", margin=1.2).suggested
    'egret'
    """

    name: str
    given: str
    suggested: str
    margin: float
    picture: Array | None = None
    index: int | None = None


@dataclass(frozen=True, eq=False)
class Duplicate:
    """A test example that is a near-duplicate of a training example.

    Parameters
    ----------
    train, test : str
        Names of the two.
    similarity : float
        Similarity of the two, by whatever measure they were found; 1 if they are the same.
    train_label, test_label : str
        Their labels.
    train_picture, test_picture : uint8 array of shape (h, w) or (h, w, 3), optional
        The images.

    Examples
    --------
    >>> from hilbin.inspection import Duplicate
    >>> pair = Duplicate("a.jpg", "b.jpg", 0.998, train_label="heron", test_label="egret")
    >>> pair.train_label == pair.test_label
    False
    """

    train: str
    test: str
    similarity: float
    train_label: str
    test_label: str
    train_picture: Array | None = None
    test_picture: Array | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """Everything that a report shows.

    Parameters
    ----------
    title : str
        Title of the page.
    classes : sequence of str
        Names of the classes, at least two.
    truth : array-like of int of shape (n,)
        The class of every test example, as an index of ``classes``.
    scores : array-like of shape (n, n_classes)
        Scores of the classes; the highest is the prediction. A model with one score ``f`` for two
        classes gives ``-f`` and ``f``.
    names : sequence of str
        File names of the test examples, or other names.
    probabilities : array-like of shape (n, n_classes), optional
        Probabilities of the classes. With them, the report shows per cent instead of scores, and
        how reliable they are.
    picture : callable, optional
        ``picture(i)`` is test image ``i`` as a uint8 array of shape (h, w) or (h, w, 3). Without
        it, the examples are rows of a table.
    heat : callable, optional
        ``heat(i, k)`` is the heat map of class ``k`` on image ``i``, which distributes the score
        over the pixels: a float array of shape (h, w), of any size.
    reasons : callable, optional
        ``reasons(i, a, b)`` are the columns of row ``i`` that matter most for the lead of class
        ``a`` over class ``b``: a sequence of mappings with ``feature``, ``value`` and ``adds``.
    intercept : array-like of shape (n_classes,), optional
        What a score has beside the sum of its heat map. With it, the page checks the sums.
    exact : bool, default=True
        Whether the heat maps are meant to sum to the scores minus the intercept, or what all
        columns add to a lead to that lead.
    exact_note : str, default=""
        A sentence on how the heat maps were made, or why they are not exact.
    baselines : mapping of str to float, optional
        Accuracies of simpler models, such as ``{"linear": 0.71}``; a name says on what, if not
        on the test examples.
    words : sequence of VisualWord, optional
        Visual words, the most important first.
    features : sequence of Shape, optional
        Shape functions of the columns of a table, the most important first.
    importances : Importances, optional
        How much every column of a table matters.
    suspicious : sequence of Suspicion, optional
        Labels that look wrong, the most suspicious first; ``None`` if nobody looked, as for the
        next two.
    duplicates : sequence of Duplicate, optional
        Near-duplicates, the most similar first.
    unreadable : sequence of (str, str), optional
        Files that could not be read, and why.
    candidates : sequence of mappings, optional
        Models that were compared by cross-validation: ``name``, ``mean`` (accuracy), and where
        known ``standard_error`` and ``explainable``.
    candidates_note : str, default=""
        A sentence on how one of them was chosen.
    channels : mapping, optional
        What several descriptions of the examples are worth: ``each``, a list of mappings with
        ``name``, ``columns``, ``accuracy`` alone and ``weight``; ``rules``, the accuracy of their
        sum by rules for the weights, ``"average"`` among them; and the ``rule`` in use.
    provenance : mapping of str to str, optional
        How the model was made: command, seed, versions, hash of the data.
    timings : mapping of str to float, optional
        Duration of each step in seconds.

    Examples
    --------
    >>> from hilbin.inspection import Evidence
    >>> evidence = Evidence(
    ...     title="Birds",
    ...     classes=["egret", "heron"],
    ...     truth=[0, 1, 1],
    ...     scores=[[0.3, -0.3], [-1.0, 1.0], [0.1, -0.1]],
    ...     names=["1.jpg", "2.jpg", "3.jpg"],
    ... )
    >>> evidence.scores.shape
    (3, 2)
    """

    title: str
    classes: Sequence[str]
    truth: Any
    scores: Any
    names: Sequence[str]
    probabilities: Any = None
    picture: Callable[[int], Array] | None = None
    heat: Callable[[int, int], Array] | None = None
    reasons: Callable[[int, int, int], Sequence[Mapping[str, Any]]] | None = None
    intercept: Any = None
    exact: bool = True
    exact_note: str = ""
    baselines: Mapping[str, float] = field(default_factory=dict)
    words: Sequence[VisualWord] = ()
    features: Sequence[Shape] = ()
    importances: Importances | None = None
    suspicious: Sequence[Suspicion] | None = None
    duplicates: Sequence[Duplicate] | None = None
    unreadable: Sequence[tuple[str, str]] | None = None
    candidates: Sequence[Mapping[str, Any]] = ()
    candidates_note: str = ""
    channels: Mapping[str, Any] | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        c = len(self.classes)
        if c < 2:
            raise ValueError(f"classes must be at least two, got {c}")
        truth = np.asarray(self.truth)
        if truth.ndim != 1 or truth.size == 0 or truth.dtype.kind not in "iu":
            raise ValueError("truth must be a non-empty vector of whole numbers")
        if truth.min() < 0 or truth.max() >= c:
            at = int(np.flatnonzero((truth < 0) | (truth >= c))[0])
            raise ValueError(f"truth[{at}] = {truth[at]} is no index of the {c} classes")
        object.__setattr__(self, "truth", truth.astype(np.int64))
        self._set_checked("scores", (truth.size, c))
        if len(self.names) != truth.size:
            raise ValueError(f"names must be {truth.size}, one per test example")
        for word in self.words:
            if not 0 <= word.label < c:
                raise ValueError(f"words: label {word.label} of {word.shape.name!r} is no class")
        if self.intercept is not None:
            self._set_checked("intercept", (c,))
        if self.probabilities is not None:
            self._set_checked("probabilities", (truth.size, c))
            if self.probabilities.min() < 0 or self.probabilities.max() > 1 + 1e-9:
                raise ValueError("probabilities must lie between 0 and 1")

    def _set_checked(self, name: str, shape: tuple[int, ...]) -> None:
        """Store an array of numbers as float64, after checking its shape and values."""
        values = np.asarray(getattr(self, name), np.float64)
        if values.shape != shape:
            raise ValueError(f"{name} must have the shape {shape}, got {values.shape}")
        if not np.isfinite(values).all():
            at = int(np.argwhere(~np.isfinite(values))[0][0])
            raise ValueError(f"{name}[{at}] is not finite")
        object.__setattr__(self, name, values)
