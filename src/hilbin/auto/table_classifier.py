"""A classifier of tables that chooses its model by cross-validation."""

import os
import time
import warnings
from collections import Counter
from dataclasses import KW_ONLY
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_is_fitted, validate_data

from hilbin import persist
from hilbin._arrays import Array, to_dense
from hilbin._parameters import estimator, require_choice, require_whole
from hilbin._state import require
from hilbin.auto.candidates import row_candidates
from hilbin.auto.choice import PREFER, Choice, choose, stratified_sample
from hilbin.auto.table_data import Table, TableEncoder, as_table, label_texts, read_labeled
from hilbin.estimators import ScoreCalibration
from hilbin.estimators._fit import ScoreClassifier, class_factors, outer_level, random_seed
from hilbin.inspection import (
    Explanation,
    Suspicion,
    collect_evidence,
    explain_row,
    suspicious_labels,
)
from hilbin.report import write_report

PACKAGES = ("hilbin", "numpy", "scipy", "scikit-learn")
BACKGROUND = 100  # training rows that explanations of models that are no sums compare with
MOST_SHIFT = 10.0  # times the largest score
LINEAR = "scaled LinearSVC"


@estimator
class TableClassifier(ScoreClassifier, BaseEstimator):
    r"""Classifier of tables: it encodes the columns, chooses a model, and gives probabilities.

    Numbers stay as they are, texts are categories, missing values have a feature of their own, and
    columns that number the rows are left out. Models are compared by cross-validation on the
    training rows: the intersection kernel, linear machines on the features of :math:`\chi^2`, on
    square roots, standardized columns or tf-idf weights, and the exponential of :math:`\chi^2` and
    the Gaussian. An additive model, whose reasons are exact, is preferred unless another is better
    by more than one standard error.

    Parameters
    ----------
    prefer : {"explainable", "accurate"}, default="explainable"
        Whether an additive model is taken unless another is better by more than one standard error
        of the difference, or the most accurate one.
    drop : str, int or list of these, optional
        Columns to leave out, by name or number.
    id : str or int, optional
        Column that names the rows; it is not learned from.
    class_weight : dict or "balanced", optional
        Factor of the weight of the rows of each class, in training and in accuracies.
    max_rows : int or None, default=2000
        Budget of the choice: all candidates are compared on this many rows, and the best three on
        three times as many. None compares all candidates on all rows.
    n_folds : int, default=3
        Folds of the cross-validation.
    n_jobs : int, optional
        Threads; ``None`` is 1, -1 all processors.
    random_state : int, RandomState or None, default=0
        Random seed of folds and samples.
    verbose : int, default=0
        1 prints the budget of the choice, every candidate, and the outcome.

    Attributes
    ----------
    model_ : Pipeline
        The chosen classifier, trained on all rows, behind the encoder of the table.
    choice_ : Choice
        The choice: all candidates with accuracy and standard error, the held-out scores of the
        best, baselines, and what the preference for additive models cost.
    calibration_ : ScoreCalibration
        Probabilities of the scores, learned on the held-out scores of the choice.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    metadata_ : dict
        How the model was made, as JSON can hold it.
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
    prefer: str = "explainable"
    drop: Any = None
    id: Any = None
    class_weight: Any = None
    max_rows: int | None = 2000
    n_folds: int = 3
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, *, target: str | None = None) -> Self:
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

        Returns
        -------
        self : TableClassifier
        """
        begin = time.monotonic()
        self._check_parameters()
        table, labels = self._labeled(X, y, target)
        classes = _require_two_classes(labels)
        encoder = TableEncoder(self.drop, self.id).fit(table)
        _tell_left_out(encoder)
        rows = encoder.transform(table)
        choice = self._choose(rows, labels)
        self._say(f"training {choice.best.name} on {table.n_rows:,} rows")
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
        self.metadata_ = self._about(table, labels, time.monotonic() - begin)
        if self.verbose:
            print(self.summary())
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

    def predict_proba(self, X: Any) -> Array:
        """Compute the probabilities of classes.

        Parameters
        ----------
        X : array-like, sparse, data frame, or path of a file
            The table, with the columns of ``fit``.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        probabilities: Array = self.calibration_.predict_proba(scores)
        return probabilities

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
        inner = self.model_[1:]
        scores = inner.decision_function(one)
        if self.background_ is not None:  # what is typical of a column
            one = np.vstack([to_dense(one), self.background_])
        return explain_row(
            inner, one, 0, class_=class_, versus=versus, top=top,
            feature_names=encoder.get_feature_names_out().tolist(), name=f"row {place + 1}",
            probabilities=self.calibration_.predict_proba(scores)[0],
        )  # fmt: skip

    def report(self, X: Any, y: Any = None, path: str | os.PathLike[str] = "report.html") -> Path:
        """Write a page about the model and its results on test rows.

        Parameters
        ----------
        X : array-like, sparse, data frame, or path of a file
            The test table.
        y : array-like of shape (n_samples,), optional
            Labels; by default the column that ``fit`` took them from.
        path : path, default="report.html"
            The file to write; it is written whole or not at all.

        Returns
        -------
        path : Path
        """
        check_is_fitted(self, "model_")
        table, labels = self._labeled(X, y, self.target_ if y is None else None)
        encoder, inner = self.model_[0], self.model_[1:]
        rows = encoder.transform(self._table(table))
        about = self.metadata_
        evidence = collect_evidence(
            inner, rows, labels,
            title=f"{Path(about['data']['source']).stem or 'Table'}: {about['model']}",
            feature_names=encoder.get_feature_names_out().tolist(),
            probabilities=self.calibration_.predict_proba(inner.decision_function(rows)),
            baselines={f"{k} (training rows)": v for k, v in about["baselines"].items()},
            suspicious=self.suspicious_,
            provenance=self._provenance(),
            timings={"fit": about["seconds"]},
        )  # fmt: skip
        return write_report(evidence, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, whole or not at all; :func:`hilbin.load` reads it.

        Parameters
        ----------
        path : path
            The file, conventionally ``*.hilbin``.
        """
        check_is_fitted(self, "model_")
        persist.save(self, path, metadata=self.metadata_)

    def summary(self) -> str:
        """Return the choice, the runners-up, the baselines and the columns, in words."""
        check_is_fitted(self, "model_")
        about = self.metadata_
        data, n_features = about["data"], self.model_[0].input_columns_.size
        lines = [
            f"{about['model']}: {_count(len(about['classes']), 'class', 'classes')}, "
            f"{_count(data['n'], 'row', 'rows')}, {_count(n_features, 'feature', 'features')}",
            *_accuracy_lines(about),
        ]
        for one in about["choice"]:
            kind = "additive" if one["explainable"] else "not additive"
            mean, error = f"{one['mean']:6.1%}", f"± {one['standard_error']:.1%}"
            lines.append(f"  {mean} {error}  {one['name']} ({kind}, {one['n_rows']:,} rows)")
        lines += [f"left out: {name}: {reason}" for name, reason in about["left_out"].items()]
        count = len(about["suspicious"])
        if count:
            lines.append("1 label looks wrong" if count == 1 else f"{count} labels look wrong")
        return "\n".join(lines)

    @property
    def suspicious_(self) -> list[Any]:
        """Training rows whose label looks wrong, by their held-out scores."""
        return [_suspicion(one) for one in self.metadata_["suspicious"]]

    def _check_parameters(self) -> None:
        require_choice("prefer", self.prefer, PREFER)
        require_whole("n_folds", self.n_folds, 2)
        if self.max_rows is not None:
            require_whole("max_rows, if not None,", self.max_rows, 4)

    def _labeled(self, X: Any, y: Any, target: str | None) -> tuple[Table, Array]:
        """Return a table and its labels."""
        if y is not None and target is not None:
            raise ValueError("give y or target=, not both")
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

    def _choose(self, rows: Any, labels: Array) -> Choice:
        candidates = row_candidates(
            rows, labels, class_weight=self.class_weight, n_jobs=self.n_jobs
        )
        n = rows.shape[0]
        first = n if self.max_rows is None else min(n, self.max_rows)
        finals = "" if first == n else ", then the best three on more"
        self._say(
            f"choosing among {len(candidates)} candidates by {self.n_folds}-fold cross-validation "
            f"on {first:,} of {n:,} rows{finals}"
        )
        factors = _factors(self.class_weight, np.unique(labels), labels)
        return choose(
            candidates, rows, labels,
            prefer=self.prefer, seed=random_seed(self.random_state), max_rows=self.max_rows,
            n_folds=self.n_folds, sample_weight=factors,
            callback=lambda name, done, total: self._say(f"[{done + 1}/{total}] {name}"),
        )  # fmt: skip

    def _say(self, line: str) -> None:
        if self.verbose:
            print(line, flush=True)

    def _about(self, table: Table, labels: Array, seconds: float) -> dict[str, Any]:
        """Return how the model was made."""
        choice, encoder = self.choice_, self.model_[0]
        found = suspicious_labels(choice.scores, labels, self.classes_)
        per_class = Counter(str(label) for label in labels.tolist())
        return {
            "kind": "table",
            "classes": [str(c) for c in self.classes_],
            "model": choice.best.name,
            "explainable": bool(choice.best.explainable),
            "prefer": self.prefer,
            "choice": choice.table,
            "baselines": choice.baselines,
            "cost_of_preference": choice.cost_of_preference,
            "cv": _about_folds(choice, labels, self.classes_),
            "suspicious": [
                {"name": s.name, "label": s.given, "suggested": s.suggested, "margin": s.margin}
                for s in found
            ],
            "data": {
                "source": table.source,
                "n": table.n_rows,
                "per_class": dict(sorted(per_class.items())),
            },
            "table": {
                "columns": table.names,
                "target": self.target_,
                "n_features": table.n_columns,
            },
            "left_out": encoder.left_out_,
            "versions": _versions(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(seconds, 3),
        }

    def _provenance(self) -> dict[str, str]:
        about = self.metadata_
        told = {"Model": about["model"], "Training rows": str(about["data"]["n"])}
        told["Choice"] = "; ".join(_accuracy_lines(about))
        told |= {f"{k} version": v for k, v in about["versions"].items()}
        return told | {"Created": about["created"]}

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the attributes of a loaded classifier do not fit together."""
        if not hasattr(self, "model_"):
            return
        steps = isinstance(self.model_, Pipeline) and isinstance(self.model_[0], TableEncoder)
        require(steps, "model_ is not a pipeline behind an encoder of tables")
        require(isinstance(self.calibration_, ScoreCalibration), "calibration_ is not one")

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


def _require_two_classes(labels: Array) -> Array:
    classes = np.unique(labels)
    if classes.size < 2:
        raise ValueError(
            f"a classifier needs at least two classes, but y has {classes.size} class: "
            f"{classes.tolist()}"
        )
    return classes


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


def _about_folds(choice: Choice, labels: Array, classes: Array) -> dict[str, Any] | None:
    """Return what cross-validation says about the chosen model."""
    tested = choice.tested
    if not tested.size:
        return None
    truth = np.searchsorted(classes, labels[tested])
    scores = choice.scores[tested]
    correct = scores.argmax(axis=1) == truth
    shares = [float(correct[truth == k].mean()) for k in np.unique(truth)]
    winning = scores.max(axis=1)[correct]
    quantiles = np.percentile(winning, np.arange(101)).tolist() if winning.size else None
    return {
        "n": int(tested.size),
        "accuracy": float(correct.mean()),
        "mean_class_accuracy": float(np.mean(shares)),
        "linear_accuracy": choice.baselines.get(LINEAR),
        "majority_accuracy": choice.baselines["majority"],
        "winning_quantiles": quantiles,
    }


def _accuracy_lines(about: dict[str, Any]) -> list[str]:
    cv = about["cv"]
    if cv is None:
        return ["accuracy not known: every class has a single row"]
    baselines = ", ".join(f"{name} {value:.1%}" for name, value in about["baselines"].items())
    lines = [
        f"accuracy {cv['accuracy']:.1%} by cross-validation (mean per class "
        f"{cv['mean_class_accuracy']:.1%}); baselines: {baselines}"
    ]
    cost = about["cost_of_preference"]
    if cost > 0:
        lines.append(f"an additive model was preferred; the most accurate one is {cost:.1%} better")
    return lines


def _suspicion(one: dict[str, Any]) -> Any:
    return Suspicion(one["name"], one["label"], one["suggested"], one["margin"])


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"
