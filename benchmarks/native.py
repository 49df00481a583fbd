"""What only benchmarks compare with, compiled from ``native.cpp`` when it is first used."""

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from data import Array

from hilbin._core import core
from hilbin.solvers.lookup import BLOCK, HINGE, Levels, LookupRows, lay_out

SOURCE = Path(__file__).with_name("native.cpp")
HEADERS = SOURCE.parents[1] / "src" / "hilbin" / "_core"
LEVEL = {  # as CMakeLists.txt has it
    "avx2": ["-march=x86-64-v3", "-mtune=generic"],
    "avx512": ["-march=x86-64-v4", "-mtune=generic", "-mprefer-vector-width=512"],
}


@cache
def compiled(source: Path) -> Any:
    """The compiled functions of a file, or ``None`` and a line if there is no compiler."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        print(f"Comparisons with {source.name} are left out: there is no C++ compiler")
        return None
    folder = tempfile.mkdtemp()
    made = Path(folder) / "native.so"
    options = ["-std=c++17", "-O3", "-fPIC", "-shared", *LEVEL.get(core.level, [])]
    subprocess.run([compiler, *options, f"-I{HEADERS}", str(source), "-o", str(made)], check=True)
    loaded = ctypes.CDLL(str(made))
    shutil.rmtree(folder)  # what is loaded stays
    return loaded


@cache
def library() -> Any:
    """The functions of ``native.cpp``, or ``None`` if there is no compiler."""
    loaded = compiled(SOURCE)
    if loaded is not None:
        loaded.peak_minimum.restype = ctypes.c_double
        loaded.peak_minimum.argtypes = [ctypes.c_int64]
    return loaded


class Course(ctypes.Structure):
    """What a sweep of ``native.cpp`` reads and changes."""

    _fields_ = (
        ("codes", ctypes.c_void_p),
        ("width", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("second", "levels", "places", "cells")),
        *((name, ctypes.c_void_p) for name in ("samples", "order")),
        ("active", ctypes.c_int64),
        *((name, ctypes.c_double) for name in ("above", "below", "epsilon", "constant")),
        *((name, ctypes.c_void_p) for name in ("totals", "random")),
        *((name, ctypes.c_double) for name in ("highest", "lowest")),
    )


class OtherRows(LookupRows):
    """Look-up tables stored in a way that the package does not have, in float32.

    Parameters
    ----------
    levels : Levels
        The rows.
    kind : {"plain", "fenwick"}
        The table of the paper, or Fenwick pairs.
    dense : bool, optional
        How the rows are kept; by default as the package chooses.
    """

    def __init__(
        self, levels: Levels, kind: Literal["plain", "fenwick"], *, dense: bool | None = None
    ):
        super().__init__(levels, lay_out(levels, kind=HINGE, dense=dense))
        sizes = np.diff(levels.offsets)
        sizes = sizes[sizes > 1]
        self.cells_per_level = 2 if kind == "fenwick" else 1
        begin, at = self.layout.places.reshape(-1, 2).T
        lengths = sizes if kind == "fenwick" else -(-sizes // BLOCK) * BLOCK
        self.places = np.column_stack([begin * self.cells_per_level, at, lengths])
        self._sweep = getattr(library(), f"sweep_{kind}")

    @property
    def n_cells(self) -> int:
        """The number of cells of all tables."""
        return self.layout.n_cells * self.cells_per_level

    def start(self, coef: Array, dtype: Any, gains: Any) -> Any:
        """A function that runs one sweep, from coefficients that are zero."""
        assert not coef.any()
        codes, second = self.layout.rows
        levels, cells = self.layout.levels.astype(np.float32), np.zeros(self.n_cells, np.float32)
        kept = (codes, second, levels, self.places, cells)
        first = (codes.shape[1] if codes.ndim == 2 else 0, codes.itemsize)

        def sweep(samples: Array, order: Array, active: int, *course: Any) -> tuple[Any, ...]:
            *limits, totals, random = course
            given = (array.ctypes.data for array in (*kept[1:], samples, order))
            arrays = (totals.ctypes.data, random.ctypes.data)
            run = Course(kept[0].ctypes.data, *first, *given, active, *limits, *arrays)
            self._sweep(ctypes.byref(run))
            return run.active, run.highest, run.lowest, -1

        return sweep
