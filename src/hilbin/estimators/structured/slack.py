r"""The worst output with slack rescaling, of any model that finds it with margin rescaling.

**Problem.** With the loss :math:`\Delta` of an output and its gain
:math:`u = 1 + \langle w, \Phi(x, z) - \Phi(x, y) \rangle`, find the output of the highest
:math:`\Delta u`. A model says which output has the highest :math:`\Delta + \mu u` for a factor
:math:`\mu \ge 0`: that is its ``best`` with the weights :math:`\mu w`.

**Algorithm.** If no output has :math:`\Delta + \mu u` above :math:`v`, none has :math:`\Delta u`
above :math:`v^2 / 4 \mu`. Let one output have a larger loss and another a larger gain than the
best. The factor for which both have the same :math:`\Delta + \mu u` is asked next; the output that
is found takes the place of one of the two, until none lies above the line through both. Some ten
questions bound :math:`\Delta u` by its maximum over the convex hull of all outputs.

**Certificate.** The best output need not be on that hull. The one that is returned is the best of
those that were found, with the bound (:class:`~hilbin.solvers.Bounded`).

**Reference.** H. Choi, O. Meshi and N. Srebro, *Fast and Scalable Structural SVM with Slack
Rescaling*, AISTATS 2016.
"""

from typing import Any, NamedTuple

from hilbin._arrays import Array
from hilbin.solvers import Bounded

MOST_QUESTIONS = 50
ROUNDING = 1e-9


class _Point(NamedTuple):
    """An output, its loss, one plus the difference of its score, and a bound."""

    output: Any
    loss: float
    gain: float
    top: float = 0.0  # of what was asked for: no output has more

    @property
    def value(self) -> float:
        return self.loss * self.gain


def worst_by_slack(model: Any, x: Any, w: Array, y: Any) -> Any:
    """Return the output of the highest loss times gain, as :class:`Bounded` if it may be another.

    Parameters
    ----------
    model : object
        A model of :class:`~hilbin.estimators.StructuredSVM`.
    x, y : objects
        An example, and its right output.
    w : array of shape (size,)
        Weights.
    """
    asked = _Asked(model, x, w, y)
    costly, gainful = asked.highest(0.0), asked.highest_score()
    best = max(_Point(y, 0.0, 1.0), costly, gainful, key=lambda point: point.value)
    bound = costly.top * max(gainful.top, 0.0)
    for _ in range(MOST_QUESTIONS):
        least = best.value + ROUNDING * (1 + bound)
        if bound <= least or costly.loss <= gainful.loss or costly.gain >= gainful.gain:
            break
        factor = (costly.loss - gainful.loss) / (gainful.gain - costly.gain)
        found = asked.highest(factor)
        best = max(best, found, key=lambda point: point.value)
        bound = min(bound, max(found.top, 0.0) ** 2 / (4 * factor))
        if found.top <= (costly.loss + factor * costly.gain) * (1 + ROUNDING) + ROUNDING:
            if asked.exact:  # the hull has its highest value between the two
                gain = min(max(found.top / (2 * factor), costly.gain), gainful.gain)
                bound = min(bound, max(best.value, gain * (found.top - factor * gain)))
            break
        costly, gainful = (found, gainful) if found.loss > factor * found.gain else (costly, found)
        if asked.exact:
            bound = min(bound, max(best.value, costly.loss * gainful.gain))
    close = bound <= best.value + ROUNDING * (1 + bound)
    return best.output if close else Bounded(best.output, bound)


class _Asked:
    """The answers of a model about one example, with its loss and without."""

    def __init__(self, model: Any, x: Any, w: Array, y: Any) -> None:
        self.model, self.x, self.w, self.y = model, x, w, y
        self.right = model.joint(x, y)
        self.exact = True

    def highest(self, factor: float) -> _Point:
        """Return the output of the highest loss plus factor times gain."""
        return self._point(self.model.best(self.x, factor * self.w, self.y), 1.0, factor)

    def highest_score(self) -> _Point:
        """Return the output of the highest gain."""
        return self._point(self.model.best(self.x, self.w), 0.0, 1.0)

    def _point(self, answer: Any, of_loss: float, of_gain: float) -> _Point:
        """Return the point of the answer for the highest ``of_loss * loss + of_gain * gain``."""
        output = answer.output if isinstance(answer, Bounded) else answer
        loss = float(self.model.loss(self.y, output))
        gain = 1 + float(self.w @ (self.model.joint(self.x, output) - self.right))
        top = of_loss * loss + of_gain * gain
        if isinstance(answer, Bounded):
            top, self.exact = answer.bound + of_gain * (1 - float(self.w @ self.right)), False
        return _Point(output, loss, gain, top)
