"""How a kernel classifier is trained: its machines, one after the other or side by side."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from hilbin._arrays import Array
from hilbin._parameters import require_choice
from hilbin.estimators import _multiclass
from hilbin.estimators._kernel_gram import Gram
from hilbin.estimators._kernel_loss import LossMachine
from hilbin.estimators._kernel_machine import STEPS, SWEEPS, Training
from hilbin.estimators._parameters import class_factors
from hilbin.estimators._progress import Watch
from hilbin.parallel import ranges
from hilbin.solvers import Result, classification, crammer_singer, icd, smo

MULTICLASS = ("ovr", "ovo", "dag", "ecoc", "crammer_singer")
DECODERS = {
    "ovo": _multiclass.by_votes,
    "dag": _multiclass.by_dag,
    "ecoc": _multiclass.by_losses,
}
Machines = tuple[list[Result], Watch, Any]


class ClassMachine(LossMachine):
    """Training and scores of :class:`KernelSVC`."""

    multiclass: str
    codes: Any
    class_weight: Any
    classes_: Array
    codes_: Array | None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("multiclass", self.multiclass, MULTICLASS)

    def _prepare(self, X: Any, y: Any, sample_weight: Any, *, once: bool = False) -> Training:
        """The rows of a fit; ``once`` if the Gram matrix will serve one fit only."""
        rows, y, weights, index = self._examples(X, y, sample_weight)
        check_classification_targets(y)
        labels = self._encode(y)
        few = once and self._is_free and self.codes_ is not None and self.codes_.shape[1] == 1
        return self._train_on(rows, labels, weights, index, few=few)

    def _encode(self, y: Array) -> Array:
        """Labels as numbers; keeps ``classes_`` and ``codes_``."""
        self.classes_, labels = np.unique(y, return_inverse=True)
        n = self.classes_.size
        if n < 2:
            raise ValueError(
                f"a classifier needs at least two classes, but y has {n} class among the rows "
                "whose sample_weight is not 0"
            )
        self.codes_ = None
        if self.multiclass == "ecoc" and self.codes is not None:
            self.codes_ = _multiclass.checked_codes(self.codes, self.classes_)
        elif self.multiclass == "ecoc":
            random = check_random_state(self.random_state)
            self.codes_ = _multiclass.error_correcting(n, random)
        elif self.multiclass == "ovr":
            self.codes_ = _multiclass.one_against_rest(n)
        elif self.multiclass != "crammer_singer":
            self.codes_ = _multiclass.pairs(n)
        return labels

    def _shapes(self, training: Training) -> list[tuple[int, ...]]:
        """Of the dual variables of every machine."""
        if self.codes_ is None:
            return [(training.targets.size, self.classes_.size)]
        return [(int(n),) for n in np.count_nonzero(self.codes_[training.targets], axis=0)]

    def _solve(self, training: Training, start: list[Array] | None, data: Any) -> list[Array]:
        labels, weights = training.targets, training.weights
        factors = class_factors(self.class_weight, self.classes_, labels, weights)
        solve = self._together if self.codes_ is None else self._machines
        results, watch, coef = solve(training, self.C * weights * factors, start, data)
        intercept = np.hstack([r.bias for r in results])
        if self.codes_ is None and self.classes_.size == 2:  # the difference of two scores
            coef, intercept = coef[:, 1:] - coef[:, :1], intercept[1:] - intercept[:1]
        self._keep(training, coef, intercept, results, watch)
        return [r.dual for r in results]

    def _together(
        self, training: Training, C: Array, start: list[Array] | None, data: Any
    ) -> Machines:
        """All classes in one problem."""
        gram, constant = training.gram, self._constant(training)
        if gram.is_lazy:
            megabytes = np.dtype(gram.dtype).itemsize * training.index.size**2 / 2**20
            raise ValueError(
                'multiclass="crammer_singer" needs the whole Gram matrix, '
                f"{megabytes:.1f} MiB: memory={self.memory} is less"
            )

        def solve(
            _: int, *, dual: Array | None = start[0] if start else None, **course: Any
        ) -> Result:
            return crammer_singer(
                gram.rows, training.targets, C, n_classes=self.classes_.size, bias=constant,
                dual=dual, seed=training.seed, **course,
            )  # fmt: skip

        results, watch = self._run(solve, ["all classes"], data, SWEEPS, training.gram)
        return results, watch, results[0].coef

    def _machines(
        self, training: Training, C: Array, start: list[Array] | None, data: Any
    ) -> Machines:
        """A problem per machine, on the rows that it sees."""
        assert self.codes_ is not None
        labels, codes = training.targets, self.codes_.T
        seen = [np.flatnonzero(code[labels]) for code in codes]
        constant = None if self._is_free else self._constant(training)

        def solve(k: int, *, dual: Array | None = None, **course: Any) -> Result:
            rows = seen[k]
            whole = rows.size == labels.size
            gram = training.gram if whole else training.gram.subset(rows)
            if dual is None and start is not None:
                dual = start[k]
            signs = codes[k][labels[rows]]
            return self._binary(gram, signs, C[rows], constant, training.seed, dual=dual, **course)

        limits = STEPS if constant is None else SWEEPS
        results, watch = self._run(solve, self._names(), data, limits, training.gram)
        parts = [(seen[k][r.coef != 0], r.coef[r.coef != 0]) for k, r in enumerate(results)]
        rows = np.concatenate([rows for rows, _ in parts])
        machines = np.repeat(np.arange(len(parts)), [rows.size for rows, _ in parts])
        values = np.concatenate([values for _, values in parts])
        return results, watch, sp.csr_array((values, (rows, machines)), (labels.size, len(parts)))

    def _binary(
        self, gram: Gram, signs: Array, C: Array, constant: float | None, seed: int, **course: Any
    ) -> Result:
        """The problem of one machine."""
        y = signs.astype(np.float64)
        if constant is None:
            return smo(gram.rows, y, np.minimum(y * C, 0), np.maximum(y * C, 0), **course)
        return icd(gram.rows, classification(y, C, "hinge"), bias=constant, seed=seed, **course)

    def _names(self) -> list[str]:
        """Of the machines, by the classes that they tell apart."""
        assert self.codes_ is not None
        classes, codes = self.classes_, self.codes_
        if codes.shape == (2, 1):
            return [str(classes[1])]
        if self.multiclass == "ovr":
            return [str(c) for c in classes]
        if self.multiclass == "ecoc":
            return [f"machine {k}" for k in range(codes.shape[1])]
        return [f"{classes[c.argmin()]} or {classes[c.argmax()]}" for c in codes.T]

    def _decisions(self, scores: Array) -> Array:
        """Scores of machines as scores of classes."""
        if scores.shape[1] == 1:
            return scores[:, 0]
        if self.codes_ is None or self.multiclass == "ovr":
            return scores
        scores = DECODERS[self.multiclass](scores, self.codes_)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _labels(self, scores: Array) -> Array:
        """Scores of machines as labels."""
        scores = self._decisions(scores)
        best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best.astype(np.intp)]

    def _fold_scores(
        self, whole: Self, training: Training, fold: tuple[Array, Array], Cs: Any
    ) -> list[float]:
        """Accuracy on one part of the rows of what was learnt on the other, for every ``C``."""
        place = np.full(training.X.shape[0], -1)
        place[training.index] = np.arange(training.index.size)
        train, test = (place[rows][place[rows] >= 0] for rows in fold)
        labels, weights = whole.classes_[training.targets], training.weights
        first = clone(self)
        vars(first).update({name: v for name, v in vars(whole).items() if name.endswith("_")})
        part = replace(
            training,
            gram=training.gram.subset(train),
            index=training.index[train],
            targets=first._encode(labels[train]),
            weights=weights[train],
        )
        accuracies = []
        for model in self._along(first, part, Cs, (training.X, labels)):
            height, support = model._band_height(), place[model.support_]
            parts = [slice(b, e) for b, e in ranges(test.size, height)]
            bands = ((part, training.gram.between(test[part], support)) for part in parts)
            found = model._labels(model._sums(bands, test.size))
            accuracies.append(accuracy_score(labels[test], found, sample_weight=weights[test]))
        return accuracies
