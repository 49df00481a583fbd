"""Descriptors of many places of an image."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from hilbin.images._grids import LocalGrid
from hilbin.images.read import Pixels, as_sources, read_image


class LocalDescriptor(BaseEstimator):
    """Base of the local descriptors. A subclass gives :meth:`local` and ``n_dimensions``."""

    n_dimensions: int
    _uses_color: bool = False

    def local(self, image: Pixels) -> list[LocalGrid]:
        """Grids of descriptors of one image."""
        raise NotImplementedError

    def points(self, image: Pixels) -> NDArray[np.float32]:
        """All descriptors of one image, shape (n, n_dimensions)."""
        return stacked(self.local(image), self.n_dimensions)

    def sets(self, images: Any, *, max_side: int | None = None) -> list[NDArray[np.float32]]:
        """The descriptors of every image, for kernels on sets.

        Parameters
        ----------
        images : sequence of paths or arrays
        max_side : int, optional
            Larger images are reduced so that the longer side is this long.

        Returns
        -------
        sets : list of float32 arrays of shape (n_i, n_dimensions)
        """
        sources = as_sources(images)
        color = self._uses_color
        return [self.points(read_image(s, max_side=max_side, color=color)) for s in sources]


def stacked(grids: list[LocalGrid], n_dimensions: int) -> NDArray[np.float32]:
    """The descriptors of all grids, one below the other."""
    flat = [g.features.reshape(-1, n_dimensions) for g in grids]
    return np.concatenate(flat) if flat else np.empty((0, n_dimensions), np.float32)
