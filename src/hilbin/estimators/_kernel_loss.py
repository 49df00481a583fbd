"""Kernel machines that weigh a loss by ``C``: their bias, and paths over ``C``."""

from typing import Any, Self

import numpy as np
from sklearn.base import clone

from hilbin._arrays import Array
from hilbin._parameters import require_positive
from hilbin.estimators._kernel_machine import KernelMachine, Training

BIAS = ("free", "penalized")


class LossMachine(KernelMachine):
    r"""Minimizes :math:`\tfrac12 \|w\|^2 + \sum_i C_i \ell_i(f(x_i) + b)`."""

    C: float
    bias: Any
    warm_start: bool

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """What :meth:`_solve` needs; keeps what does not depend on ``C``."""
        raise NotImplementedError

    def _solve(self, training: Training, start: list[Array] | None, data: Any) -> list[Array]:
        """Train, keep the model; returns the dual variables of every machine."""
        raise NotImplementedError

    def _last(self, shapes: list[tuple[int, ...]]) -> list[Array] | None:
        """The dual variables of the last fit, if they are to be used and of these shapes."""
        duals = getattr(self, "_duals", None) if self.warm_start else None
        return duals if duals is not None and [d.shape for d in duals] == shapes else None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("C", self.C)
        if not (isinstance(self.bias, str) and self.bias in BIAS):
            require_positive(f"bias, if not one of {BIAS},", self.bias, or_zero=True)

    @property
    def _is_free(self) -> bool:
        return isinstance(self.bias, str) and self.bias == "free"

    def _constant(self, training: Training) -> float:
        """What is added to the kernel, for a bias that is penalized."""
        if not isinstance(self.bias, str):
            return float(self.bias)
        norms = training.gram.rows.norms
        return float(np.average(norms, weights=training.weights)) or 1.0

    def path(self, X: Any, y: Any, Cs: Any, sample_weight: Any = None) -> list[Self]:
        """One model for every ``C``, each trained from where the next smaller one ended.

        The Gram matrix is computed once.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        Cs : array-like of float
            Weights of the loss, in any order.

        Returns
        -------
        models : list of estimators
            Fitted, in the order of ``Cs``.
        """
        first = clone(self)
        training = first._prepare(X, y, sample_weight)
        return self._along(first, training, Cs, (X, y))

    def _along(self, first: Self, training: Training, Cs: Any, data: Any) -> list[Self]:
        """Models for every ``C``, from what ``first`` has prepared."""
        known = {name: value for name, value in vars(first).items() if name.endswith("_")}
        models: dict[float, Self] = {}
        duals: list[Array] | None = None
        last = 1.0
        for C in np.unique(np.asarray(Cs, np.float64)):
            model = clone(self).set_params(C=float(C))
            model._check_parameters()
            vars(model).update(known)
            start = None if duals is None else [dual * (C / last) for dual in duals]
            duals, last = model._solve(training, start, data), C
            models[float(C)] = model
        return [models[float(C)] for C in Cs]
