"""Local descriptors: descriptors of many patches of an image, on regular grids of places."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from hilbin._arrays import Array
from hilbin.images._once import once
from hilbin.images.read import Pixels, as_sources, read_image


@dataclass(frozen=True)
class LocalGrid:
    """Descriptors on a grid of places.

    Parameters
    ----------
    features : float32 array of shape (rows, columns, d)
    ys, xs : arrays of shape (rows,) and (columns,)
        Centers in pixels; the middle of the first pixel is 0.
    size : float
        Side of the square that a descriptor covers, in pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.images import LocalGrid
    >>> grid = LocalGrid(np.zeros((2, 3, 128)), np.array([6, 14]), np.array([6, 14, 22]), 16)
    """

    features: Array
    ys: Array
    xs: Array
    size: float


class LocalDescriptor(BaseEstimator):
    """Base of the local descriptors. A subclass gives :meth:`local` and ``n_dimensions``."""

    n_dimensions: int

    @property
    def _uses_color(self) -> bool:
        """Whether images are read in color."""
        return False

    def local(self, image: Pixels) -> list[LocalGrid]:
        """Return the grids of descriptors of one image."""
        raise NotImplementedError

    def grids(self, image: Pixels) -> list[LocalGrid]:
        """Return :meth:`local` of the image, computed once where several transformers share it."""
        settings = tuple(sorted((k, repr(v)) for k, v in self.get_params().items()))
        return once(image, (type(self), settings), lambda: self.local(image))

    def points(self, image: Pixels) -> Array:
        """Return all descriptors of one image, shape (n, n_dimensions)."""
        flat = [grid.features.reshape(-1, self.n_dimensions) for grid in self.grids(image)]
        return np.concatenate(flat) if flat else np.empty((0, self.n_dimensions), np.float32)

    def sets(self, images: Any, *, max_side: int | None = None) -> list[Array]:
        """Return the descriptors of every image, for kernels on sets.

        Parameters
        ----------
        images : sequence of paths or arrays
        max_side : int, optional
            Larger images are reduced so that the longer side has this many pixels.

        Returns
        -------
        sets : list of float32 arrays of shape (n_i, n_dimensions)
        """
        color = self._uses_color
        return [
            self.points(read_image(source, max_side=max_side, color=color))
            for source in as_sources(images)
        ]
