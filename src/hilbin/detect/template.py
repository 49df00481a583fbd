r"""A template: a root filter on cells, and parts on nodes that may move a little.

.. math:: s(Y, X) = b + \langle F_0, X_8[Y, X] \rangle + \sum_p \max_{|dx|, |dy| \le 4}
          \langle F_p, X_4[2Y + a_p + dy, 2X + b_p + dx] \rangle
          - d_p^\top (dx^2, dx, dy^2, dy) .

The bounded maximum is one over rows and then one over columns, for any :math:`d`
(``_core/deform.hpp``). Parts are computed only around places whose root score reaches ``least``,
the least of a training positive; elsewhere the score is :math:`-\infty`.

With the parts at their best places the score is linear: it is the product of all weights with the
cells under root and parts, the displacements and a constant, the *features* of the window.

**Reference.** P. Felzenszwalb, R. Girshick, D. McAllester and D. Ramanan, *Object Detection with
Discriminatively Trained Part-Based Models*, 2010.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hilbin._arrays import Array
from hilbin._core import core
from hilbin._state import require, require_attributes
from hilbin.detect.pyramid import CHANNELS, Levels, Shape, mirror_order

CONTEXT = 1  # cells around the object that a template sees
REACH = 4  # nodes that a part may move along an axis
PART_SIDE = 6  # nodes along the side of a part
BIAS = 10.0  # feature of the bias, so that its weight is hardly regularized


@dataclass(frozen=True, eq=False)
class Template:
    """A filter of the object as a whole, and filters of its parts.

    Parameters
    ----------
    root : float32 array of shape (rows, 32, columns)
        Weights of the cells of the window, with one cell of context around the object.
    bias : float
        Constant of the score.
    parts : float32 array of shape (n_parts, 6, 32, 6)
        Weights of the nodes of every part.
    anchors : int32 array of shape (n_parts, 2)
        Row and column of the first node of every part, from that of the window.
    deformation : float32 array of shape (n_parts, 4)
        Costs of ``dx ** 2``, ``dx``, ``dy ** 2`` and ``dy``.
    least : float
        Parts are not computed where the root has a lower score.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import CellPyramid, Template
    >>> image = np.random.default_rng(0).integers(0, 256, (80, 120, 3), np.uint8)
    >>> pyramid = CellPyramid.of(image, smallest=(6, 6))
    >>> weights = np.append(np.ones(8 * 32 * 8), -1.0)
    >>> template = Template.rigid(weights, (8, 8))
    >>> template.shape, template.bias, template.n_parts
    ((8, 8), -10.0, 0)
    >>> template.scores(pyramid).shape
    (304,)
    """

    root: Array
    bias: float
    parts: Array
    anchors: Array
    deformation: Array
    least: float = -np.inf

    @classmethod
    def rigid(cls, weights: Array, shape: Shape) -> "Template":
        """Return a template without parts, of weights and the weight of the bias feature."""
        root = np.ascontiguousarray(weights[:-1], np.float32)
        return cls(
            root.reshape(shape[0], CHANNELS, shape[1]),
            BIAS * float(weights[-1]),
            np.zeros((0, PART_SIDE, CHANNELS, PART_SIDE), np.float32),
            np.zeros((0, 2), np.int32),
            np.zeros((0, 4), np.float32),
        )

    def _check_state(self) -> None:
        axes = require_attributes(
            self,
            root="float32[h, 32, w]",
            bias="float",
            parts="float32[p, 6, 32, 6]",
            anchors="int32[p, 2]",
            deformation="float32[p, 4]",
            least="float",
        )
        require(min(axes["h"], axes["w"]) >= 3, "a root is smaller than its context")
        require(max(axes["h"], axes["w"]) <= 1 << 10, "a root is too large")
        for name in ("root", "parts", "deformation", "bias"):
            require(np.isfinite(getattr(self, name)).all(), f"{name} of a template is not finite")
        last = 2 * np.array(self.shape) + 1 - PART_SIDE
        within = (self.anchors >= 0).all() and (self.anchors <= last).all()
        require(within, "a part lies outside of its template")
        require(not np.isnan(self.least), "least of a template is NaN")

    @property
    def shape(self) -> Shape:
        """Rows and columns of cells of the root."""
        return self.root.shape[0], self.root.shape[2]

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.parts)

    def with_parts(self, pyramid: Levels, roots: Array, *, exact: bool = False) -> Array:
        """Return the scores of all windows of an image, of the scores of their roots.

        Parameters
        ----------
        pyramid : CellPyramid or CodedPyramid
            The image, with nodes if the template has parts.
        roots : float32 array of shape (n_places,)
            Scores of the root without the bias.
        exact : bool, default=False
            Whether to compute parts everywhere.
        """
        scores: Array = roots + np.float32(self.bias)
        if self.n_parts:
            arrays = self.parts, self.anchors, self.deformation
            least = -np.inf if exact else self.least
            shapes = pyramid.node_shapes, pyramid.shapes
            core.add_parts(pyramid.nodes, *shapes, *self.shape, *arrays, REACH, least, scores)
        return scores

    def scores(self, pyramid: Levels, *, exact: bool = False) -> Array:
        """Return the scores of all windows of an image."""
        return self.with_parts(pyramid, pyramid.filter_scores(self.root[None])[0], exact=exact)

    def mirrored(self) -> "Template":
        """Return the template that finds in an image what this one finds in its mirror image."""
        side = (PART_SIDE, PART_SIDE)
        parts = self.parts.reshape(self.n_parts, PART_SIDE * CHANNELS * PART_SIDE)
        parts = parts[:, mirror_order(side)]
        last = 2 * self.shape[1] + 1 - PART_SIDE
        return replace(
            self,
            root=self.root.ravel()[mirror_order(self.shape)].reshape(self.root.shape),
            parts=np.ascontiguousarray(parts).reshape(self.parts.shape),
            anchors=np.stack([self.anchors[:, 0], last - self.anchors[:, 1]], axis=1),
            deformation=self.deformation * np.array([1, -1, 1, 1], np.float32),
        )

    @property
    def weights(self) -> Array:
        """All weights as one vector, in the order of :meth:`features`."""
        flat = self.root.ravel(), self.parts.ravel(), self.deformation.ravel()
        return np.concatenate([*flat, [np.float32(self.bias / BIAS)]])

    def with_weights(self, weights: Array) -> "Template":
        """Return the same template with other weights."""
        ends = np.cumsum([self.root.size, self.parts.size, self.deformation.size])
        root, parts, deformation, bias = np.split(np.asarray(weights, np.float32), ends)
        return replace(
            self,
            root=root.reshape(self.root.shape),
            parts=parts.reshape(self.parts.shape),
            deformation=deformation.reshape(self.deformation.shape),
            bias=BIAS * float(bias[0]),
        )

    def placements(self, pyramid: Levels, which: Array) -> Array:
        """Return the best displacements (n, n_parts, 2), down and across, of the parts of windows.

        Parameters
        ----------
        pyramid : CellPyramid or CodedPyramid
            The image, with nodes.
        which : int array of shape (n,)
            Numbers of windows.
        """
        level, y, x = pyramid.places(which, self.shape)
        moved = np.zeros((len(which), self.n_parts, 2), np.int64)
        for number in np.unique(level) if self.n_parts else ():
            own = np.flatnonzero(level == number)
            for p in range(self.n_parts):
                nodes = 2 * y[own] + self.anchors[p, 0], 2 * x[own] + self.anchors[p, 1]
                down, across = self._best_moves(pyramid, int(number), p)
                moved[own, p, 0], moved[own, p, 1] = down[nodes], across[nodes]
        return moved

    def _best_moves(self, pyramid: Levels, level: int, part: int) -> tuple[Array, Array]:
        """Return the best displacements of a part at all nodes of a level, down and across."""
        begin = CHANNELS * int(pyramid.node_shapes[:level].prod(axis=1).sum())
        shape = pyramid.node_shapes[level : level + 1]
        grid = tuple(shape[0] - PART_SIDE + 1)
        scores = np.empty((1, grid[0] * grid[1]), np.float32)
        core.filter_scores(pyramid.nodes[begin:], shape, self.parts[part : part + 1], scores)
        best, down, across = (np.empty(grid, dtype) for dtype in (np.float32, np.int8, np.int8))
        core.deform(scores.reshape(grid), self.deformation[part], REACH, best, down, across)
        return down, across

    def features(self, pyramid: Levels, which: Array, moved: Array | None = None) -> Array:
        """Return the features of windows with their parts at their best places, or at given ones.

        The product with :attr:`weights` is the score.

        Parameters
        ----------
        pyramid : CellPyramid or CodedPyramid
            The image, with nodes if the template has parts.
        which : int array of shape (n,)
            Numbers of windows.
        moved : int array of shape (n, n_parts, 2), optional
            Displacements of the parts, as :meth:`placements` returns them.

        Returns
        -------
        features : float32 array of shape (n, n_weights)
        """
        out = np.empty((len(which), self.weights.size), np.float32)
        level, ys, xs = pyramid.places(which, self.shape)
        moved = self.placements(pyramid, which) if moved is None else moved
        for i, (number, y, x) in enumerate(zip(level, ys, xs, strict=True)):
            under = [pyramid.window(number, y, x, self.shape).ravel()]
            for p, (dy, dx) in enumerate(moved[i]):
                top = 2 * y + self.anchors[p, 0] + dy
                left = 2 * x + self.anchors[p, 1] + dx
                nodes = pyramid.node_level(number)
                under.append(nodes[top : top + PART_SIDE, :, left : left + PART_SIDE].ravel())
            bent = [-np.array([dx * dx, dx, dy * dy, dy]) for dy, dx in moved[i]]
            out[i] = np.concatenate([*under, *bent, [BIAS]])
        return out

    def mirrored_features(self, features: Array) -> Array:
        """Return the features that the mirror images of windows have, of the mirrored template."""
        out = features.copy()
        root, part = self.root.size, PART_SIDE * CHANNELS * PART_SIDE
        out[:, :root] = features[:, mirror_order(self.shape)]
        for p in range(self.n_parts):
            begin = root + p * part
            own = features[:, begin : begin + part]
            out[:, begin : begin + part] = own[:, mirror_order((PART_SIDE, PART_SIDE))]
            out[:, root + self.n_parts * part + 4 * p + 1] *= -1
        return out


def smallest_object(shapes: Sequence[Shape]) -> Shape:
    """Return the rows and columns of cells of the object that every template fits in."""
    rows, columns = np.min(shapes, axis=0) - 2 * CONTEXT
    return int(rows), int(columns)
