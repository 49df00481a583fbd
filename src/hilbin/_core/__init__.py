"""The compiled loops, at the highest instruction level this processor has.

The same C++ source is built for the baseline of the architecture, for AVX2 with FMA (x86-64-v3)
and for AVX-512 (x86-64-v4). Functions are single-threaded, release the GIL, take arrays and fill
arrays; :mod:`hilbin.parallel` alone knows threads. ``HILBIN_CORE=baseline`` or ``HILBIN_CORE=avx2``
in the environment forces a lower level.
"""

import importlib
import os
from types import ModuleType

_baseline = importlib.import_module("hilbin._core._baseline")
_all_levels = ["baseline", "avx2", "avx512"]
LEVELS = _all_levels[
    : _all_levels.index(_baseline.highest_level()) + 1
]  # of this processor, the highest last


def _choose() -> ModuleType:
    wanted = os.environ.get("HILBIN_CORE", "")
    return importlib.import_module(f"hilbin._core._{wanted if wanted in LEVELS else LEVELS[-1]}")


core = _choose()

__all__ = ["LEVELS", "core"]
