r"""A support vector machine for outputs of any kind: labels, sequences, segmentations, boxes.

**Problem.** The prediction for :math:`x` is :math:`\arg\max_z \langle w, \Phi(x, z) \rangle`, with
joint features :math:`\Phi` of an example and an output, which a model defines, and a loss
:math:`\Delta(y, z) \ge 0` of the output :math:`z` where :math:`y` is right:

.. math:: \min_w \tfrac12 \|w\|^2 + C \sum_i \max_z \big[ \Delta(y_i, z)
          + \langle w, \Phi(x_i, z) - \Phi(x_i, y_i) \rangle \big] .

With ``rescaling="slack"`` the loss is a factor, :math:`\Delta (1 + \langle \cdot \rangle)`: outputs
of a small loss then need no margin as large as that of the others.

**Algorithm and stopping rule.** Cutting planes (:func:`hilbin.solvers.bundle`); a pass asks the
model for the worst output of every example. It stops within ``tol`` of the optimum.

**Reference.** I. Tsochantaridis et al., *Large Margin Methods for Structured and Interdependent
Output Variables*, JMLR 2005.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hilbin import parallel
from hilbin._arrays import Array, validate_data
from hilbin._parameters import estimator, require_choice, require_positive, require_whole
from hilbin._state import require, require_attributes
from hilbin.estimators._fit import CallbackSupportMixin, Fit, checked_weights, with_callbacks
from hilbin.estimators.structured.models import MulticlassModel
from hilbin.estimators.structured.slack import worst_by_slack
from hilbin.solvers import Bounded, StructuredRisk, bundle
from hilbin.solvers.structured import RESCALINGS

METHODS = ("joint", "loss", "best")
BOUNDED = "the model only bounds how bad its worst outputs are, and no step lowers these bounds"
EXAMPLES_PER_TASK = 8


@estimator
class StructuredSVM(CallbackSupportMixin, BaseEstimator):
    r"""Support vector machine whose outputs are structures.

    It minimizes :math:`\tfrac12 \|w\|^2 + C \sum_i s_i \max_z [\Delta(y_i, z) + \langle w,
    \Phi(x_i, z) - \Phi(x_i, y_i) \rangle]` with sample weights :math:`s`, and predicts
    :math:`\arg\max_z \langle w, \Phi(x, z) \rangle`.

    Parameters
    ----------
    model : object, optional
        What outputs are: :class:`MulticlassModel` (the default), :class:`ChainModel`,
        :class:`GridModel`, :class:`hilbin.detect.BoxModel`, or an object of yours with three
        methods. ``joint(x, y)`` returns the vector :math:`\Phi(x, y)`, always of the same length.
        ``loss(y, z)`` returns the loss of ``z`` if ``y`` is right, >= 0. ``best(x, w, y=None)``
        returns the output ``z`` of the highest :math:`\langle w, \Phi(x, z) \rangle`, with
        ``loss(y, z)`` added if ``y`` is given; it may be a :class:`hilbin.solvers.Bounded` with an
        upper bound, if the search was cut short.

        These are optional: ``best_slack(x, w, y)``, the output of the highest
        :math:`\Delta (1 + \langle w, \Phi(x, z) - \Phi(x, y) \rangle)`, for slack rescaling, which
        otherwise asks ``best`` with several multiples of ``w``, and bounds the maximum;
        ``for_data(X, y)``, which returns the model that knows the sizes of these examples;
        ``nonnegative``, numbers of the weights that must not be negative; and ``rows = True``, if
        ``X`` is an array of one row per example and outputs are labels.
    C : float, default=1.0
        Weight of the losses.
    rescaling : {"margin", "slack"}, default="margin"
        Whether the loss of an output is added to its margin, or multiplied with it. Both are the
        same if all losses are 0 or 1.
    tol : float, default=1e-3
        Largest gap between the objective and its lower bound, relative to it.
    max_iter : int, default=1000
        Largest number of passes over the examples.
    max_time : float, optional
        Seconds after which training stops, with a usable model.
    cache : int, default=8
        Number of outputs of every example that are kept to search along lines without asking the
        model; 0 is no search.
    warm_start : bool, default=False
        Whether to start from the weights of the last fit, if they are as many.
    n_jobs : int, optional
        Threads that ask the model; they gain if it releases the GIL.
    verbose : int, default=0
        1 prints how the fit ended, 2 every pass as well.

    Attributes
    ----------
    coef_ : ndarray of shape (n_joint_features,)
        Weights :math:`w`.
    model_ : object
        The model that knows the sizes of the examples.
    objective_, gap_ : float
        Value of the problem, and how far it can be above the optimum.
    n_iter_ : int
        Number of passes over the examples.
    converged_ : bool
        Whether the tolerance was reached.

    See Also
    --------
    MapSVC : Binary problems, one for each class, on the features of a kernel map.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from hilbin.estimators import ChainModel, StructuredSVM

    Digits in sequences, in which every digit follows the one before:

    >>> X, y = load_digits(return_X_y=True)
    >>> rng = np.random.default_rng(0)
    >>> starts = rng.integers(0, 10, 60)
    >>> labels = [(s + np.arange(6)) % 10 for s in starts]
    >>> images = [np.stack([X[rng.choice(np.flatnonzero(y == c))] for c in l]) for l in labels]
    >>> noisy = [x / 16 + rng.normal(0, 0.3, x.shape) for x in images]
    >>> model = StructuredSVM(ChainModel()).fit(noisy[:40], labels[:40])
    >>> model.score(noisy[40:], labels[40:]) > -0.05  # share of wrong digits
    True
    >>> model.predict(noisy[:1])[0] - labels[0]
    array([0, 0, 0, 0, 0, 0])
    """

    model: Any = None
    C: float = 1.0
    _: KW_ONLY
    rescaling: str = "margin"
    tol: float = 1e-3
    max_iter: int = 1000
    max_time: float | None = None
    cache: int = 8
    warm_start: bool = False
    n_jobs: int | None = None
    verbose: int = 0

    def _check_parameters(self) -> None:
        require_positive("C", self.C)
        require_choice("rescaling", self.rescaling, RESCALINGS)
        require_positive("tol", self.tol)
        require_whole("max_iter", self.max_iter, 1)
        require_whole("cache", self.cache, 0)
        if self.max_time is not None:
            require_positive("max_time, if not None,", self.max_time)
        missing = [name for name in METHODS if not hasattr(self._model, name)]
        if missing:
            raise ValueError(f"model is a {type(self._model).__name__} without {missing[0]}")

    @property
    def _model(self) -> Any:
        return MulticlassModel() if self.model is None else self.model

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train. An interrupt (Ctrl-C) leaves a usable model, marked as not converged.

        Parameters
        ----------
        X : sequence of examples
            What the model takes: rows of an array, arrays of the letters of words, images.
        y : sequence of outputs
            The right output of every example.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the example twice, one of 0 as no example.

        Returns
        -------
        self : StructuredSVM
        """
        self._check_parameters()
        examples, outputs = self._checked(X, y)
        weights = checked_weights(sample_weight, examples)
        used = [int(i) for i in np.flatnonzero(weights)]
        examples, outputs = [examples[i] for i in used], [outputs[i] for i in used]
        model = self._model
        if hasattr(model, "for_data"):
            model = model.for_data(examples, outputs)
        risk = self._risk(model, examples, outputs, float(self.C) * weights[used])
        start = vars(self).get("coef_") if self.warm_start else None
        if start is not None:
            start = start[None] if start.size == risk.size else None
        with Fit(self, X, y, ["all examples"], unit="pass") as fit:
            fit.max_iter = self.max_iter
            with fit.problem(0) as callback, parallel.blas_threads(self.n_jobs):
                limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
                result = bundle(risk, start=start, callback=callback, **limits)
            fit.say(0, result)
            fit.keep([result])
            if fit.stalled and risk.bounded:
                fit.reason = fit.reason or BOUNDED
            self.objective_, self.gap_ = (float(np.sum(v)) for v in (result.objective, result.gap))
            self.coef_, self.model_ = risk.allowed(result.coef[0]), model
        return self

    def _risk(self, model: Any, X: list[Any], y: list[Any], weights: Array) -> StructuredRisk:
        oracle: Callable[[Any, Array, Any], Any] = model.best
        if self.rescaling == "slack":
            oracle = getattr(model, "best_slack", None) or partial(worst_by_slack, model)
        return StructuredRisk(
            oracle,
            model.joint,
            model.loss,
            X,
            y,
            weights=weights,
            rescaling=self.rescaling,
            nonnegative=getattr(model, "nonnegative", ()),
            cache=self.cache,
            n_jobs=self.n_jobs,
        )

    def _checked(self, X: Any, y: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return examples and outputs of one length."""
        if getattr(self._model, "rows", False):
            rows, labels = validate_data(self, X, y, dtype=np.float64)
            return rows, labels
        if y is None:
            raise ValueError("StructuredSVM requires y to be passed, but the target y is None")
        if len(X) != len(y) or len(X) == 0:
            raise ValueError(f"X has {len(X)} examples, but y has {len(y)} outputs")
        return X, y

    def predict(self, X: Any) -> Any:
        """Predict the output of the highest score.

        Parameters
        ----------
        X : sequence of examples

        Returns
        -------
        outputs : list, or ndarray of labels if examples are rows of an array
        """
        check_is_fitted(self, "coef_")
        rows = getattr(self.model_, "rows", False)
        if rows:
            X = validate_data(self, X, dtype=np.float64, reset=False)
        outputs: list[Any] = [None] * len(X)

        def task(begin: int, end: int) -> None:
            for i in range(begin, end):
                try:
                    output = self.model_.best(X[i], self.coef_)
                except ValueError as error:
                    raise ValueError(f"example {i}: {error}") from error
                outputs[i] = output.output if isinstance(output, Bounded) else output

        parallel.run(task, parallel.ranges(len(X), EXAMPLES_PER_TASK), self.n_jobs)
        return np.array(outputs) if rows else outputs

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the mean loss of the predictions, at most 0.

        Parameters
        ----------
        X : sequence of examples
        y : sequence of outputs
            The right ones.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the examples.

        Returns
        -------
        score : float
        """
        outputs = self.predict(X)
        if len(outputs) != len(y):
            raise ValueError(f"X has {len(outputs)} examples, but y has {len(y)} outputs")
        losses = [self.model_.loss(right, z) for right, z in zip(y, outputs, strict=True)]
        return -float(np.average(losses, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        rows = bool(getattr(self._model, "rows", False))
        tags.target_tags.required = True
        tags.input_tags.two_d_array = rows
        tags.no_validation = not rows
        return tags

    def _check_state(self) -> None:
        """Raise ``ValueError`` if weights and model of a loaded machine do not fit together."""
        self._check_parameters()
        found = require_attributes(
            self,
            coef_="float64[d]",
            objective_="float",
            gap_="float",
            n_iter_="int",
            converged_="bool",
            n_features_in_="int?",
            feature_names_in_="labels[*]?",
        )
        if found:
            model: Any = vars(self).get("model_")
            require(all(hasattr(model, name) for name in METHODS), "model_ is no model")
            require(np.isfinite(self.coef_).all(), "coef_ is not finite")
            size = getattr(model, "size", self.coef_.size)
            require(size == self.coef_.size, f"model_ has {size} weights, not {self.coef_.size}")
            rows = getattr(model, "rows", False)
            features = vars(self).get("n_features_in_") if rows else None
            require(features == (model.n_features if rows else None), "n_features_in_ is wrong")
