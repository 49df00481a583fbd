"""Versions of what is installed, for bug reports."""

import platform
from importlib.metadata import PackageNotFoundError, version


def show_versions() -> None:
    """Print the versions of hilbin and its dependencies, and which compiled core runs.

    Examples
    --------
    >>> import hilbin
    >>> hilbin.show_versions()
    hilbin...
    """
    import scipy.linalg  # noqa: F401 - loads BLAS, to be listed below
    from threadpoolctl import threadpool_info

    from hilbin._core import core

    for package in ("hilbin", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl"):
        print(f"{package:14s} {_version(package)}")
    print(f"{'python':14s} {platform.python_version()}")
    print(f"{'platform':14s} {platform.platform()}")
    print(f"{'core':14s} {core.level} (compiled by {core.compiler})")
    for pool in threadpool_info():
        print(f"{pool['user_api']:14s} {pool['internal_api']}, {pool['num_threads']} threads")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
