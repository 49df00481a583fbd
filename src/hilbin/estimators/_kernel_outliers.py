r"""What the outlier detectors share: a problem over rows whose coefficients sum to one.

:math:`0 \le c_i \le w_i / (\nu W)` and :math:`\sum_i c_i = 1`, with weights :math:`w` of sum
:math:`W`: at most a share :math:`\nu` of the rows lies outside, and at least that share has a
coefficient.
"""

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import validate_data

from hilbin._arrays import Array
from hilbin.estimators._kernel_machine import ACCEPTED, STEPS, KernelMachine, Training
from hilbin.estimators._progress import Watch
from hilbin.solvers import Result, smo

FEW = 0.2  # share of the rows that may be outside for which few are support vectors
ROUNDING = 4  # times the precision of kernel values


class OutlierMachine(OutlierMixin, KernelMachine):
    """Base of the detectors."""

    nu: Any
    offset_: float

    def _check_parameters(self) -> None:
        super()._check_parameters()
        number = isinstance(self.nu, Real) and not isinstance(self.nu, bool)
        if not (number and 0 < self.nu <= 1):
            raise ValueError(
                f"nu must be a number > 0 and <= 1, the largest share of outliers, got {self.nu!r}"
            )

    def _enclose(
        self, X: Any, sample_weight: Any, linear: Callable[[Array], Array]
    ) -> tuple[Training, Result, Watch]:
        """Train; ``linear`` makes the linear part of the diagonal of the Gram matrix."""
        self._check_parameters()
        rows = validate_data(self, X, **ACCEPTED)
        zeros = np.zeros(rows.shape[0])
        rows, targets, weights, index = self._counted(rows, zeros, sample_weight)
        training = self._train_on(rows, targets, weights, index, few=self.nu <= FEW)
        gram = training.gram
        high = weights / (self.nu * weights.sum())
        scale = self._scale(training)

        def solve(_: int, *, tol: float, **course: Any) -> Result:
            t = linear(gram.rows.norms)
            return smo(gram.rows, t, 0 * high, high, total=1.0, tol=tol * scale, **course)

        (result,), watch = self._run(solve, ["fit"], (X, None), STEPS, gram)
        return training, self._with_border_inside(training, result, high, linear), watch

    def _with_border_inside(
        self, training: Training, result: Result, high: Array, linear: Callable[[Array], Array]
    ) -> Result:
        """The bias so much higher that no row on the border is outside by rounding."""
        gram, coef = training.gram, result.coef
        free = np.flatnonzero((coef > 0) & (coef < high))
        if not free.size:
            return result
        support, norms = np.flatnonzero(coef), gram.rows.norms
        scores = gram.between(free, support) @ coef[support]
        deficit = max(0.0, float(np.max(linear(norms)[free] - scores)) - float(result.bias))
        rounding = ROUNDING * np.finfo(gram.dtype).eps * float(norms.max())
        return replace(result, bias=float(result.bias) + deficit + rounding)

    def _scale(self, training: Training) -> float:
        """By what scores differ, to measure violations in; no less than where LIBSVM stops."""
        size = float(np.average(training.gram.rows.norms, weights=training.weights))
        mean = training.gram.mean(training.weights)
        count = float(training.weights.sum() / training.weights.max())
        least = size / max(1.0, self.nu * count)
        return max(min(abs(mean), size - mean), least) or 1.0

    def _keep_single(
        self, training: Training, result: Result, watch: Watch, times: float = 1.0
    ) -> None:
        """Store the model; the objective is reported so many times."""
        result = replace(result, objective=times * result.objective, gap=times * result.gap)
        bias = np.array([float(result.bias)])
        self._keep(training, result.coef[:, None], bias, [result], watch)
