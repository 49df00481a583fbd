"""A classifier of tables that chooses its model by cross-validation."""

import hashlib
import os
import warnings
from dataclasses import KW_ONLY
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_is_fitted, validate_data

from hilbin._arrays import Array, Matrix, to_dense
from hilbin._parameters import estimator, require_whole
from hilbin._state import require
from hilbin.auto.base import AutoClassifier, Callback, Stopwatch, counted
from hilbin.auto.candidates import KERNELS, row_candidates
from hilbin.auto.choice import Choice, choose, few_per_class, stratified_sample
from hilbin.auto.evaluation import Tested, known_labels
from hilbin.auto.table_data import Table, as_table, label_texts, read_labeled
from hilbin.auto.table_encoder import TableEncoder, column_groups
from hilbin.estimators import ScoreCalibration
from hilbin.estimators._fit import class_factors, outer_level, random_seed
from hilbin.inspection import Explanation, additive, class_scores, explain_row

BACKGROUND = 100  # training rows that explanations of models that are not sums compare with
MOST_SHIFT = 10.0  # times the largest score


@estimator
class TableClassifier(AutoClassifier):
    r"""Classifier of tables: it encodes the columns, chooses a model, and gives probabilities.

    Numbers are used as they are, texts are treated as categories, missing values get a feature of
    their own, and columns that number the rows are left out. Models are compared by
    cross-validation on the training rows: the intersection SVM; linear SVMs on the features of
    :math:`\chi^2`, on square roots, standardized columns or tf-idf weights; and kernel SVMs with
    the exponential of :math:`\chi^2` and the Gaussian. An additive model, which can be explained
    exactly, is preferred unless another is better by more than one standard error.

    Parameters
    ----------
    kernel : str, default="auto"
        Kernel of the model: ``"intersection"``, ``"chi2"``, ``"js"`` (Jensen-Shannon),
        ``"hellinger"``, ``"linear"``, ``"exp-chi2"`` or ``"gaussian"``; ``"auto"`` chooses.
    drop : str, int or list of these, optional
        Columns to leave out, by name or number.
    id : str or int, optional
        Column that identifies the rows; it is not used as a feature.
    max_rows : int or None, default=2000
        Number of rows on which models are compared: all candidates are compared on this many rows,
        and the best three on three times as many. None compares all candidates on all rows.
    n_folds : int, default=3
        Folds of the cross-validation.

    Attributes
    ----------
    model_ : Pipeline
        The chosen classifier, trained on all rows, behind the encoder of the table.
    target_ : str or None
        Name of the column with the labels, if ``fit`` was given one.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if they have some.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from hilbin.auto import TableClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = TableClassifier().fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.93)
    True
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    """

    _: KW_ONLY
    kernel: str = "auto"
    drop: Any = None
    id: Any = None
    max_rows: int | None = 2000
    n_folds: int = 3

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        target: str | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Choose a model, and train it on all rows.

        Parameters
        ----------
        X : array-like, sparse, data frame, or path of a file
            The table. A file is CSV or TSV (maybe ``.gz``) with the names of the columns in the
            first line, Parquet, a NumPy archive, or svmlight.
        y : array-like of shape (n_samples,), optional
            Labels.
        target : str, optional
            Instead of ``y``: the column of the file or data frame that holds the labels.
        callback : callable, optional
            Called with the name of a stage, how much of it is done, and how much there is.

        Returns
        -------
        self : TableClassifier
        """
        self._check_parameters()
        watch = Stopwatch(callback, self.verbose)
        with watch.stage("reading the table"):
            table, labels = self._labeled(X, y, target)
            classes = _require_two_classes(labels, table.source)
            encoder = TableEncoder(self.drop, self.id).fit(table)
            rows = encoder.transform(table)
        _tell_left_out(encoder)
        named = table.names is not None
        groups = column_groups(encoder.get_feature_names_out().tolist()) if named else None
        choice = self._choose(rows, labels, groups, watch)
        with few_per_class(), watch.timed_stage("training", choice.expected_seconds(self.n_folds)):
            chosen = choice.best.make().fit(rows, labels)
        factors = _factors(self.class_weight, classes, labels)
        scores = choice.scores[:, 1] if classes.size == 2 else choice.scores
        calibration = ScoreCalibration().fit(scores, labels, factors, classes=classes)
        agree(chosen[-1], calibration, choice)
        # kept together at the end: an interrupt before leaves the estimator as it was
        self.model_ = Pipeline([("table", encoder), *chosen.steps])
        self.choice_, self.calibration_, self.classes_ = choice, calibration, classes
        self.target_ = target
        self._keep_columns(X, table)
        self.background_ = None
        if not choice.best.explainable:
            codes = np.searchsorted(classes, labels)
            some = rows[stratified_sample(codes, BACKGROUND, 0)[:BACKGROUND]]
            self.background_ = to_dense(some)
        self.metadata_ = self._about(
            "table", labels, choice.scores, None,
            {"source": table.source, "sha256": _digest(X, rows)}, watch,
            table={"columns": table.names, "target": target, "id": self.id,
                   "n_features": table.n_columns},
            left_out=encoder.left_out_,
        )  # fmt: skip
        watch.say(self.summary())
        return self

    def decision_function(self, X: Any) -> Array:
        """Compute the scores of rows.

        Parameters
        ----------
        X : array-like, sparse, data frame, or path of a file
            The table, with the columns of ``fit``.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Score of ``classes_[1]`` for two classes, else of every class.
        """
        check_is_fitted(self, "model_")
        scores: Array = self.model_.decision_function(self._table(X))
        return scores

    def explain(
        self, X: Any, row: int = 0, *, class_: Any = None, versus: Any = None, top: int = 8
    ) -> Explanation:
        """Explain the score of a row.

        Parameters
        ----------
        X : array-like, sparse, data frame, or path of a file
            The table, with the columns of ``fit``.
        row : int, default=0
            Number of the row.
        class_ : label, optional
            The class to explain; by default the predicted one.
        versus : label, optional
            Explain the lead over this class instead of the score.
        top : int, default=8
            How many features are listed.

        Returns
        -------
        explanation : hilbin.inspection.Explanation
            What every feature adds to the score: exactly, if the model is additive.
        """
        check_is_fitted(self, "model_")
        encoder = self.model_[0]
        rows = encoder.transform(self._table(X))
        if not -rows.shape[0] <= row < rows.shape[0]:
            raise ValueError(f"row must be one of {rows.shape[0]} rows, got {row}")
        place = row % rows.shape[0]
        one = rows[place : place + 1]
        inner = self._classifier
        probabilities = self.class_probabilities(class_scores(inner, one))[0]
        if self.background_ is not None:  # what is typical of a column
            one = np.vstack([to_dense(one), self.background_])
        return explain_row(
            inner, one, 0, class_=class_, versus=versus, top=top,
            feature_names=encoder.get_feature_names_out().tolist(), name=f"row {place + 1}",
            probabilities=probabilities,
        )  # fmt: skip

    def row_names(self, X: Any) -> list[str] | None:
        """Return the texts of the column ``id``; None if there is no such column.

        Parameters
        ----------
        X : array-like, sparse, data frame, or path of a file
            The table.
        """
        table = as_table(X)
        known = isinstance(self.id, str) and self.id in (table.names or [])
        return [str(value) for value in table.column(self.id)] if known else None

    def _check_parameters(self) -> None:
        self._check_choice(KERNELS, self.kernel)
        require_whole("n_folds", self.n_folds, 2)
        if self.max_rows is not None:
            require_whole("max_rows, if not None,", self.max_rows, 4)

    def _labeled(self, X: Any, y: Any, target: str | None) -> tuple[Table, Array]:
        """Return a table and its labels."""
        if y is not None and target is not None:
            raise ValueError("give y or target=, not both")
        left_out = [self.drop] if isinstance(self.drop, str | int) else list(self.drop or [])
        if target is not None and target in [self.id, *left_out]:
            raise ValueError(f"drop or id names the column {target!r}, which holds the labels")
        if y is None and isinstance(X, str | os.PathLike):
            return read_labeled(X, target)
        table = as_table(X)
        if y is None and target is not None:
            return table.without(target), label_texts(table.column(target), table.source)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        labels = _check_y(_without_missing(y, table.source), multi_output=False)
        with few_per_class():
            check_classification_targets(labels)
        check_consistent_length(np.empty(table.n_rows), labels)
        return table, labels

    def _table(self, X: Any) -> Table:
        """Return a table to predict, with the columns of ``fit``."""
        table = as_table(X)
        if not isinstance(X, Table | str | os.PathLike):
            if self.target_ is not None and hasattr(X, "columns"):
                return table.without(self.target_)
            validate_data(self, X, reset=False, skip_check_array=True)
        return table

    def _keep_columns(self, X: Any, table: Table) -> None:
        """Store number and names of the columns, as scikit-learn does."""
        if self.target_ is None and not isinstance(X, str | os.PathLike):
            validate_data(self, X, skip_check_array=True)
            return
        self.n_features_in_ = table.n_columns
        if table.names is not None:
            self.feature_names_in_ = np.array(table.names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    @few_per_class()
    def _choose(self, rows: Any, labels: Array, groups: Any, watch: Stopwatch) -> Choice:
        how: dict[str, Any] = {"class_weight": self.class_weight, "n_jobs": self.n_jobs}
        candidates = row_candidates(rows, labels, kernel=self.kernel, groups=groups, **how)
        names = {c.name for c in candidates}
        plain = [
            c for c in row_candidates(rows, labels, **how)
            if getattr(c, "baseline", False) and c.name not in names
        ]  # fmt: skip
        n = rows.shape[0]
        first = n if self.max_rows is None else min(n, self.max_rows)
        finals = "" if first == n else ", then the best three on more"
        limit = "" if self.max_time is None else f", in at most {self.max_time:g} s"
        watch.say(
            f"choosing among {counted(len(candidates), 'candidate')} by {self.n_folds}-fold "
            f"cross-validation on {first:,} of {n:,} rows{finals}{limit}"
        )
        total = len(candidates) + len(plain)
        with watch.stage("choosing", total) as tell:

            def told(name: str, done: int, of: int) -> None:
                watch.say(f"[{done + 1}/{of}] {name}")
                tell(total * done // of)

            return choose(
                candidates, rows, labels,
                prefer=self.prefer, seed=random_seed(self.random_state), max_rows=self.max_rows,
                n_folds=self.n_folds, max_time=self.max_time, baselines=plain,
                sample_weight=_factors(self.class_weight, np.unique(labels), labels),
                callback=told,
            )  # fmt: skip

    # evaluation
    @property
    def _classifier(self) -> Any:
        return self.model_[1:]

    @property
    def _input(self) -> str:
        return counted(self.model_[0].input_columns_.size, "feature")

    def _tested(self, X: Any, y: Any, watch: Stopwatch) -> Tested:
        check_is_fitted(self, "model_")
        with watch.stage("scoring rows"):
            table, labels = self._labeled(X, y, self.target_ if y is None else None)
            kept, truth, unknown = known_labels(labels, self.classes_, table.source)
            rows = self.model_[0].transform(self._table(table))
            digest = _digest(X, rows)
            rows = rows[kept]
            parts = additive(self._classifier)
            scores = class_scores(self._classifier, rows) if parts is None else parts.scores(rows)
        whence = f"{Path(X).name}:" if isinstance(X, str | os.PathLike) else "row "
        paths = [f"{whence}{i + 1}" for i in kept]
        ids = self.row_names(table)
        ids = None if ids is None else [ids[i] for i in kept]
        names = paths if ids is None else [f"{p}, {i}" for p, i in zip(paths, ids, strict=True)]
        return Tested(rows, names, paths, truth, scores, table.source, digest, unknown, ids=ids)

    def _shown(self, tested: Tested) -> dict[str, Any]:
        return {"feature_names": self.model_[0].get_feature_names_out().tolist()}

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the attributes of a loaded classifier do not fit together."""
        if not hasattr(self, "model_"):
            return
        steps = isinstance(self.model_, Pipeline) and isinstance(self.model_[0], TableEncoder)
        require(steps, "model_ is not a pipeline behind an encoder of tables")
        require(hasattr(self.model_[-1], "decision_function"), "model_ gives no scores")
        require(isinstance(self.calibration_, ScoreCalibration), "calibration_ is not one")
        rows = self.background_
        known = isinstance(rows, np.ndarray) and rows.dtype.kind == "f" and rows.ndim == 2
        width = len(self.model_[0].get_feature_names_out())
        fits = rows is None or (known and rows.shape[1] == width)
        require(fits, f"background_ is no array of {width} columns")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def agree(classifier: Any, calibration: ScoreCalibration, choice: Choice) -> None:
    """Shift scores so that the highest one belongs to the most probable class.

    Probabilities are a softmax, or a sigmoid, of ``a s + b``. The scores ``s + b / a`` have the
    same order, so ``b / a`` is added to the intercept of the classifier and to the held-out scores,
    and ``b`` becomes 0. Contributions of features do not change.

    Parameters
    ----------
    classifier : fitted classifier
        Its ``intercept_`` is changed.
    calibration : ScoreCalibration
        Sigmoid or softmax; its ``intercept_`` is changed.
    choice : Choice
        Its ``scores`` are changed.
    """
    slopes = calibration.coef_
    if not (slopes > 0).all():  # the scores say nothing
        return
    shift = calibration.intercept_ / slopes
    tested = choice.scores[choice.tested]
    if np.abs(shift).max() > MOST_SHIFT * np.abs(tested).max(initial=0.0):
        return
    classifier.intercept_ = classifier.intercept_ + shift
    calibration.intercept_ = np.zeros_like(shift)
    two = shift.size == 1  # scores of both classes are -f and f
    choice.scores = choice.scores + (np.array([-shift[0], shift[0]]) if two else shift)


def _factors(class_weight: Any, classes: Array, labels: Array) -> Array | None:
    """Return the weight of every row by its class."""
    if class_weight is None:
        return None
    codes = np.searchsorted(classes, labels)
    return class_factors(class_weight, classes, codes, np.ones(codes.size))


def _require_two_classes(labels: Array, source: str) -> Array:
    classes = np.unique(labels)
    if not classes.size:
        raise ValueError(f"{source}: there are no labels; name their column with target=")
    if classes.size < 2:
        raise ValueError(
            f"{source}: only the class {str(classes[0])!r}; a classifier needs at least two "
            "classes, but y has 1 class"
        )
    if classes.dtype.kind == "U" and _are_fractions(classes):
        raise ValueError(
            f"{source}: the labels are fractions such as {labels[0]}; a classifier learns classes"
        )
    check_classification_targets(labels)  # warns of many classes, once
    return classes


def _are_fractions(texts: Array) -> bool:
    """Tell whether all texts are numbers, and some are not whole."""
    try:
        return any(not float(text).is_integer() for text in texts)
    except (ValueError, OverflowError):  # words, or infinite
        return False


def _digest(X: Any, rows: Matrix) -> str:
    """Return the SHA-256 of a file, or of rows."""
    if isinstance(X, str | os.PathLike):
        return hashlib.sha256(Path(X).read_bytes()).hexdigest()
    found = hashlib.sha256(f"{rows.shape} {rows.dtype} ".encode())
    for part in (rows.data, rows.indices, rows.indptr) if sp.issparse(rows) else (rows,):
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


def _without_missing(y: Any, source: str) -> Any:
    """Return labels, none of which is None."""
    if not hasattr(y, "dtype") or y.dtype.kind == "O":
        for i, label in enumerate(np.asarray(y, object).ravel().tolist(), 1):
            if label is None:
                raise ValueError(f"{source}, row {i}: there is no label")
    return y


def _tell_left_out(encoder: TableEncoder) -> None:
    """Warn of columns that are left out although nobody asked for it."""
    for name, reason in encoder.left_out_.items():
        if reason.startswith("an "):
            warnings.warn(
                f"column {name!r} is left out: {reason}; id= names such a column, and drop= others",
                UserWarning,
                stacklevel=outer_level(),
            )
