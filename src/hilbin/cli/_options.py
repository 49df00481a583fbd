"""What ``hilbin train`` is asked for."""

import os
import re
import shlex
from dataclasses import dataclass, fields
from pathlib import Path

from hilbin.cli._outcome import InputError

AUTO = "auto"
BALANCED = "balanced"
UNITS = {"s": 1, "m": 60, "h": 3600}
# do not change the model
SILENT = ("source", "output", "quiet", "jobs", "cache", "keep_cache", "force")


@dataclass(frozen=True)
class TrainOptions:
    """Arguments of :func:`hilbin.cli.train.train`.

    Parameters
    ----------
    source : path
        A folder with a folder for every class, a CSV file with the columns ``path`` and ``label``,
        or a table.
    output : path
        Where the model goes.
    target : str, optional
        Column of a table that holds the labels.
    features : str, default="auto"
        Names joined by ``+``; see :mod:`hilbin.cli._features`.
    kernel : str, default="auto"
        Intersection; within a budget, others are tried too.
    budget : str, optional
        Time for trying further configurations, such as ``90s``, ``5m``, ``1h``.
    virtual : str, optional
        Distortions of the training images, such as ``shift,rotate=15,flip``.
    seed : int, default=0
    jobs : int, default=-1
        Threads; -1 is all processors.
    max_side : int, default=256
        Larger images are reduced so that the longer side is this long.
    cache : path, optional
        Cache folder for extracted features until the model is written; beside the output by
        default.
    keep_cache : bool, default=False
        Whether to keep the cache afterwards.
    force : bool, default=False
        Whether to overwrite the output.
    id : str, optional
        Column of a table that names the rows; it is not a feature.
    drop : tuple of str
        Columns of a table to leave out.
    class_weight : "balanced", optional
        Every class counts the same, however few its samples are.

    Examples
    --------
    >>> from hilbin.cli._options import TrainOptions
    >>> TrainOptions("photos", "m.hilbin", seed=3).command()
    'hilbin train photos -o m.hilbin --seed 3'
    """

    source: str | os.PathLike[str]
    output: str | os.PathLike[str]
    target: str | None = None
    features: str = AUTO
    kernel: str = AUTO
    budget: str | None = None
    virtual: str | None = None
    seed: int = 0
    jobs: int = -1
    max_side: int = 256
    cache: str | os.PathLike[str] | None = None
    keep_cache: bool = False
    force: bool = False
    id: str | None = None
    drop: tuple[str, ...] = ()
    class_weight: str | None = None

    def command(self) -> str:
        """The command line that asks for the same model."""
        words = ["hilbin", "train", os.fspath(self.source), "-o", os.fspath(self.output)]
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name not in SILENT and value != option.default:
                for one in value if isinstance(value, tuple) else (value,):
                    words += [f"--{option.name.replace('_', '-')}", str(one)]
        return shlex.join(words)

    def cache_folder(self) -> Path:
        """Return the cache folder for extracted features."""
        return Path(f"{os.fspath(self.output)}.cache" if self.cache is None else self.cache)


def seconds_of(budget: str) -> float:
    """Seconds of a budget.

    Examples
    --------
    >>> from hilbin.cli._options import seconds_of
    >>> seconds_of("90s"), seconds_of("1.5m"), seconds_of("1h")
    (90.0, 90.0, 3600.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh])\s*", budget)
    if match is None or float(match[1]) == 0:
        raise InputError(f"--budget: {budget!r} is no time such as 90s, 5m or 1h")
    return float(match[1]) * UNITS[match[2]]
