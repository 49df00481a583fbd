"""Arguments and options of the commands, each with its help.

Nothing but typer is imported here, so that ``hilbin --help`` is quick.
"""

from pathlib import Path
from typing import Annotated

import typer

FEATURES = (
    "auto, or joined by +: sift (dense SIFT, visual words), fisher (dense SIFT, Fisher vectors), "
    "centrist (census transform), color (color histogram), hog (oriented gradients), lbp (local "
    "binary patterns), edges (census transform of edges), onnx:FILE (maps of your own network)."
)
KERNELS = "auto, intersection, chi2, js, hellinger, linear or exp-chi2; for tables also gaussian."

ModelFile = Annotated[Path, typer.Argument(help="Model file.")]
Jobs = Annotated[int, typer.Option(help="Number of threads; -1 is all processors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Do not show progress.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output if it exists.")]
Seed = Annotated[int, typer.Option(help="Random seed.")]

# of train
Source = Annotated[
    Path,
    typer.Argument(help="Folder with one folder per class, CSV of path,label, or a table."),
]
Output = Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")]
Target = Annotated[str | None, typer.Option(help="Column of a table that holds the labels.")]
Id = Annotated[
    str | None,
    typer.Option("--id", help="Column of a table that names the rows; it is not a feature."),
]
Drop = Annotated[
    list[str] | None, typer.Option(help="Column of a table to leave out; may be repeated.")
]
Features = Annotated[str, typer.Option(help=FEATURES)]
Network = Annotated[
    Path | None,
    typer.Option(help="ONNX file of a neural network to use as one more feature."),
]
Combine = Annotated[
    str,
    typer.Option(
        help="Weights of several features: accuracy, average, alignment, multiple or auto."
    ),
]
Prefer = Annotated[
    str,
    typer.Option(
        help="explainable (exact reasons unless another model is clearly better) or accurate."
    ),
]
KernelName = Annotated[str, typer.Option(help=KERNELS)]
ClassWeight = Annotated[
    str | None, typer.Option(help="balanced: every class counts the same, however few its samples.")
]
Budget = Annotated[
    str | None,
    typer.Option(help="Time limit for comparing models: 90s, 5m, 1h."),
]
Virtual = Annotated[str | None, typer.Option(help="Data augmentation: shift,rotate=15,flip.")]
MaxSide = Annotated[
    int, typer.Option(min=16, help="Largest side of an image in pixels; larger images are reduced.")
]
CacheFolder = Annotated[Path | None, typer.Option(help="Cache folder for extracted features.")]
KeepCache = Annotated[bool, typer.Option("--keep-cache", help="Keep the cache folder.")]
Compact = Annotated[
    bool,
    typer.Option("--compact", help="Write a file of a quarter of the size; scores are rounded."),
]

# of eval
ReportFile = Annotated[Path | None, typer.Option("--report", help="HTML report to write.")]
MistakesFile = Annotated[
    Path | None, typer.Option("--csv", help="CSV file of the misclassified samples to write.")
]

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

# of explain
Example = Annotated[Path, typer.Argument(help="Image, or table for a model of tables.")]
PictureFile = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Picture (PNG) of the heat map, or CSV for a table row, to write."
    ),
]
ClassName = Annotated[
    str | None,
    typer.Option("--class", help="Class whose score is explained; the predicted one by default."),
]
Versus = Annotated[str | None, typer.Option(help="Explain the lead over this class.")]
RowNumber = Annotated[
    int | None, typer.Option("--row", min=1, help="Number of the table row, from 1.")
]

# of collections
CollectionSource = Annotated[
    Path, typer.Argument(help="Folder of images, table, or collection saved by hilbin similar -o.")
]
SearchSource = Annotated[
    Path,
    typer.Argument(
        help="Folder of images, table, collection saved by -o, or a model of hilbin train."
    ),
]
Among = Annotated[
    Path | None,
    typer.Option("--among", help="Folder or table to search by the features of a model."),
]
Examples = Annotated[
    list[Path] | None, typer.Argument(help="Images to compare with, or tables of such rows.")
]
Neighbors = Annotated[int, typer.Option("--top", min=1, help="Number of neighbors.")]
Approximate = Annotated[
    bool, typer.Option("--approximate", help="Skip the exact comparison of the nearest images.")
]
IndexFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File to save the collection to, for later searches."),
]
Clusters = Annotated[
    int | None, typer.Option("--clusters", min=1, help="Number of clusters; by default at most 20.")
]
ClusterReport = Annotated[
    Path | None, typer.Option("--report", help="HTML page of the clusters to write.")
]
ClusterFolder = Annotated[
    Path | None,
    typer.Option("--sort-into", help="Folder into which images are copied, by cluster."),
]
ClusterCsv = Annotated[
    Path | None, typer.Option("--csv", help="CSV file of names and clusters to write.")
]
WallFile = Annotated[Path, typer.Option("--output", "-o", help="HTML page to write.")]

# of demo
OutFolder = Annotated[Path, typer.Option("--out", help="Output folder.")]

# of detect
BoxesFile = Annotated[
    Path,
    typer.Argument(help="Boxes: imglab or VOC (XML), COCO (JSON), YOLO (folder), or CSV."),
]
DetectorOutput = Annotated[Path, typer.Option("--output", "-o", help="Detector file to write.")]
DetectorFile = Annotated[Path, typer.Argument(help="Detector file.")]
Label = Annotated[str | None, typer.Option(help="Label of the boxes, if there are several.")]
Components = Annotated[
    int, typer.Option(min=1, max=100, help="Number of templates, for things of several shapes.")
]
Parts = Annotated[int, typer.Option(min=0, max=100, help="Number of parts that may move a little.")]
CellWords = Annotated[
    int | None,
    typer.Option(
        "--words",
        min=2,
        max=256,
        help="Number of words to compress cells to, which saves memory and time.",
    ),
]
Area = Annotated[float, typer.Option(help="Area of the template, in pixels.")]
Upsample = Annotated[
    int | None,
    typer.Option(
        min=-8, max=3, help="Number of times images are doubled; by default chosen from the boxes."
    ),
]
Mirror = Annotated[bool, typer.Option("--mirror/--no-mirror", help="Learn from mirror images too.")]
TrainingBudget = Annotated[
    str | None, typer.Option("--budget", help="Time limit for training: 90s, 5m, 1h.")
]
TrainingCache = Annotated[
    Path | None, typer.Option("--cache", help="Folder for progress, so that training can resume.")
]
Images = Annotated[list[Path], typer.Argument(help="Images, or folders of images.")]
Threshold = Annotated[
    float | None, typer.Option(help="Minimum score of a detection; calibrated by default.")
]
DrawFolder = Annotated[
    Path | None, typer.Option("--draw", help="Folder for copies of the images with boxes.")
]
BoxesCsv = Annotated[Path | None, typer.Option("--csv", help="CSV file of the boxes to write.")]
BoxesXml = Annotated[
    Path | None, typer.Option("--xml", help="XML file of the boxes (imglab) to write.")
]
DetectionMistakes = Annotated[
    Path | None, typer.Option("--csv", help="CSV file of misses and false alarms to write.")
]
