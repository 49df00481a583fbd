"""VLFeat's dense SIFT and HOG through its shared library, where it is installed (0.9.21)."""

import ctypes
import ctypes.util
from ctypes import POINTER, c_double, c_float, c_int, c_size_t, c_void_p

import numpy as np
from data import Array

UOCTTI = 1


class Keypoint(ctypes.Structure):
    _fields_ = [(name, c_double) for name in ("x", "y", "s", "norm")]


class Filter(ctypes.Structure):
    """``VlDsiftFilter``, as far as it is read."""

    _fields_ = [
        *((name, c_int) for name in ("width", "height", "step_x", "step_y")),
        *((name, c_int) for name in ("min_x", "min_y", "max_x", "max_y")),
        *((name, c_int) for name in ("bins_t", "bins_x", "bins_y", "size_x", "size_y")),
        *(("flat_window", c_int), ("window_size", c_double)),
        *(("n_frames", c_int), ("length", c_int)),
        *(("frames", POINTER(Keypoint)), ("descriptors", POINTER(c_float))),
    ]


class DenseSift:
    """A filter for images of one shape, with a flat window."""

    def __init__(self, library: ctypes.CDLL, shape: tuple[int, int], bin_size: int, step: int):
        self.library = library
        self.filter = library.vl_dsift_new_basic(shape[1], shape[0], step, bin_size)
        self.filter.contents.flat_window = 1

    def process(self, image: Array) -> None:
        """Fill the filter's arrays from a float32 image."""
        self.library.vl_dsift_process(self.filter, image.ctypes.data)

    def descriptors(self) -> Array:
        """A copy, one row per frame."""
        f = self.filter.contents
        return np.ctypeslib.as_array(f.descriptors, (f.n_frames, f.length)).copy()

    def norms(self) -> Array:
        f = self.filter.contents
        return np.array([f.frames[i].norm for i in range(f.n_frames)])

    def __del__(self) -> None:
        self.library.vl_dsift_delete(self.filter)


class VLFeat:
    """The functions used, with their types."""

    def __init__(self, library: ctypes.CDLL):
        self.library = library
        library.vl_dsift_new_basic.restype = POINTER(Filter)
        library.vl_dsift_process.argtypes = [POINTER(Filter), c_void_p]
        library.vl_dsift_delete.argtypes = [POINTER(Filter)]
        library.vl_hog_new.argtypes = [c_int, c_size_t, c_int]
        library.vl_hog_new.restype = c_void_p
        library.vl_hog_put_image.argtypes = [c_void_p, c_void_p, *[c_size_t] * 4]
        library.vl_hog_extract.argtypes = [c_void_p, c_void_p]
        library.vl_hog_delete.argtypes = [c_void_p]

    def dense_sift(self, shape: tuple[int, int], bin_size: int, step: int) -> DenseSift:
        return DenseSift(self.library, shape, bin_size, step)

    def fhog(self, planes: Array, cell: int) -> Array:
        """31 planes of cells, from a float32 image as (channels, rows, columns)."""
        channels, height, width = planes.shape
        rows, columns = ((size + cell // 2) // cell for size in (height, width))
        out = np.empty((31, rows, columns), np.float32)
        hog = self.library.vl_hog_new(UOCTTI, 9, 0)
        self.library.vl_hog_put_image(hog, planes.ctypes.data, width, height, channels, cell)
        self.library.vl_hog_extract(hog, out.ctypes.data)
        self.library.vl_hog_delete(hog)
        return out


def find() -> VLFeat | None:
    """VLFeat, if the machine has it."""
    name = ctypes.util.find_library("vl")
    try:
        return VLFeat(ctypes.CDLL(name)) if name else None
    except OSError:
        return None
