"""Zarr arrays as sources; whole chunks of the array are read where the memory allows it."""

import functools
from pathlib import Path
from typing import Any

import numpy as np

from hilbin.stream.chunks import ChunkError, optional
from hilbin.stream.sources import (
    WEIGHTS,
    Columns,
    Kind,
    Rows,
    Source,
    Sources,
    concatenated,
    mark_of,
)

ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")


class ZarrSource(Source):
    """Rows of a Zarr array."""

    def __init__(self, array: Any):
        self.array = array
        self.name = str(getattr(array, "store_path", None) or getattr(array, "name", "zarr"))
        self.name = self.name.removeprefix("file://")
        if array.ndim not in (1, 2):
            raise ChunkError(self.name, f"has shape {array.shape}, not rows of features")
        self.n_rows = array.shape[0]
        self.width = array.shape[1] if array.ndim == 2 else None
        self.dtype = np.dtype(array.dtype)
        self.row_bytes = self.dtype.itemsize * (1 if self.width is None else self.width)
        self.grain = array.chunks[0]

    def read(self, begin: int, end: int) -> Rows:
        """Read a part of the array."""
        return Rows(np.asarray(self.array[begin:end]))

    def mark(self) -> dict[str, Any]:
        """Return the first and last rows, which stand for the many files of the array."""
        return self._mark

    @functools.cached_property
    def _mark(self) -> dict[str, Any]:
        ends = [self.array[: min(2, self.n_rows)], self.array[max(0, self.n_rows - 2) :]]
        shape = {"shape": list(self.array.shape), "chunks": list(self.array.chunks)}
        return {"name": self.name, **shape, "ends": mark_of(np.concatenate(ends))}


def is_zarr(path: Path) -> bool:
    """Return whether a folder is a Zarr array or group."""
    return any((path / name).is_file() for name in ZARR_FILES)


def zarr_sources(source: Any) -> tuple[Source, Source | None, Source | None]:
    """Return rows, targets and weights of an array, or of a group with X, y and weight."""
    if isinstance(source, Path):
        zarr = optional("zarr", "reading a Zarr array")
        source = zarr.open(str(source), mode="r")
    if hasattr(source, "shape"):
        return ZarrSource(source), None, None
    if "X" not in source:
        name = getattr(source, "store_path", None) or getattr(source, "name", "zarr")
        raise ChunkError(str(name), f"has no array X; it has {', '.join(source) or 'none'}")
    weight = next((name for name in WEIGHTS if name in source), None)
    return (
        ZarrSource(source["X"]),
        ZarrSource(source["y"]) if "y" in source else None,
        ZarrSource(source[weight]) if weight else None,
    )


def zarr_folders(folder: Path) -> list[Path] | None:
    """Find the Zarr arrays and groups in a folder; it may be one itself."""
    if is_zarr(folder):
        return [folder]
    return sorted(path for path in folder.iterdir() if path.is_dir() and is_zarr(path)) or None


def open_zarr(found: Any, columns: Columns) -> Sources:
    """Open an array, a group, or folders of them."""
    each = found if isinstance(found, list) else [found]
    return concatenated([zarr_sources(one) for one in each])


ZARR = Kind(
    ".zarr",
    open_zarr,
    is_object=lambda X: type(X).__module__.startswith("zarr."),
    is_file=is_zarr,
    in_folder=zarr_folders,
)
