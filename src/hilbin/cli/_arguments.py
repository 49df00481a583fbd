"""Arguments and options of the commands, each with its help."""

from pathlib import Path
from typing import Annotated

import typer

from hilbin.cli import _features
from hilbin.cli._classifiers import KERNELS

ModelFile = Annotated[Path, typer.Argument(help="Model file.")]
Jobs = Annotated[int, typer.Option(help="Number of threads; -1 is all processors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Do not show progress.")]
Seed = Annotated[int, typer.Option(help="Random seed.")]

# of train
Source = Annotated[
    Path,
    typer.Argument(help="Folder with a folder per class, CSV with path,label, or a table."),
]
Output = Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")]
Target = Annotated[str | None, typer.Option(help="Column of a table that holds the labels.")]
Features = Annotated[str, typer.Option(help=_features.HELP)]
KernelName = Annotated[str, typer.Option(help=f"auto, or one of {', '.join(KERNELS)}.")]
Budget = Annotated[
    str | None,
    typer.Option(help="Time limit for the search of further configurations: 90s, 5m, 1h."),
]
Virtual = Annotated[str | None, typer.Option(help="Data augmentation: shift,rotate=15,flip.")]
MaxSide = Annotated[
    int, typer.Option(min=16, help="Largest side of an image in pixels; larger images are reduced.")
]
CacheFolder = Annotated[Path | None, typer.Option(help="Cache folder for extracted features.")]
KeepCache = Annotated[bool, typer.Option("--keep-cache", help="Keep the cache folder.")]

# of predict
Paths = Annotated[list[Path], typer.Argument(help="Images, folders of images, or tables.")]
Top = Annotated[int, typer.Option(min=1, help="Number of labels per sample.")]
Reject = Annotated[
    float | None,
    typer.Option(help="Predict unknown below this quantile of the scores of correct predictions."),
]
SortInto = Annotated[
    Path | None, typer.Option(help="Folder into which images are copied, by predicted label.")
]
CsvFile = Annotated[
    Path | None, typer.Option("--csv", help="CSV file of the predictions to write.")
]
