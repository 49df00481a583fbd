"""The compiled loops, at the highest instruction level this processor has.

The same C++ source is built for the baseline of the architecture and for AVX2 with FMA
(x86-64-v3). Functions are single-threaded, release the GIL, take arrays and fill arrays;
:mod:`hilbin.parallel` alone knows threads. ``HILBIN_CORE=baseline`` in the environment forces the
baseline build.
"""

import importlib
import os
from types import ModuleType


def _choose() -> ModuleType:
    baseline = importlib.import_module("hilbin._core._baseline")
    if os.environ.get("HILBIN_CORE", "") == "baseline" or not baseline.supports_avx2():
        return baseline
    return importlib.import_module("hilbin._core._avx2")


core = _choose()

__all__ = ["core"]
