"""Arguments and options of the commands, each with its help."""

from pathlib import Path
from typing import Annotated

import typer

from hilbin.cli import _features
from hilbin.cli._classifiers import KERNELS

ModelFile = Annotated[Path, typer.Argument(help="A model file.")]
Jobs = Annotated[int, typer.Option(help="Threads; -1 is all processors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
Seed = Annotated[int, typer.Option(help="Random seed.")]

# of train
Source = Annotated[
    Path,
    typer.Argument(help="Folder with a folder per class, CSV with path,label, or a table."),
]
Output = Annotated[Path, typer.Option("--output", "-o", help="Where the model goes.")]
Target = Annotated[str | None, typer.Option(help="Column of a table that holds the labels.")]
Features = Annotated[str, typer.Option(help=_features.HELP)]
KernelName = Annotated[str, typer.Option(help=f"auto, or one of {', '.join(KERNELS)}.")]
Budget = Annotated[
    str | None, typer.Option(help="Time to try further configurations: 90s, 5m, 1h.")
]
Virtual = Annotated[
    str | None, typer.Option(help="Train on distorted copies too: shift,rotate=15,flip.")
]
MaxSide = Annotated[int, typer.Option(min=16, help="Larger images are reduced to this.")]
CacheFolder = Annotated[Path | None, typer.Option(help="Cache folder for extracted features.")]
KeepCache = Annotated[bool, typer.Option("--keep-cache", help="Keep the cache afterwards.")]

# of predict
Paths = Annotated[list[Path], typer.Argument(help="Images, folders of images, or tables.")]
Top = Annotated[int, typer.Option(min=1, help="How many labels to give.")]
Reject = Annotated[
    float | None,
    typer.Option(help="Answer unknown below this quantile of the scores of right answers."),
]
SortInto = Annotated[
    Path | None, typer.Option(help="Copy every image into a folder of its label there.")
]
CsvFile = Annotated[Path | None, typer.Option("--csv", help="Write a CSV file too.")]
