"""The commands ``hilbin detect train``, ``run`` and ``eval``."""

import json

import typer

from hilbin.cli import _arguments as arguments
from hilbin.cli._console import Console
from hilbin.cli._help import Command, Group
from hilbin.cli._outcome import (
    DONE,
    FAILED,
    SOME_UNREADABLE,
    command,
    complain_of,
    require_output,
    write_text,
)

app = typer.Typer(
    name="detect",
    cls=Group,
    help="Find things in photographs: learn from boxes, find, evaluate.",
    no_args_is_help=True,
)


@app.command("train", cls=Command)
@command
def train_command(
    source: arguments.BoxesFile,
    output: arguments.DetectorOutput,
    label: arguments.Label = None,
    components: arguments.Components = 1,
    parts: arguments.Parts = 0,
    words: arguments.CellWords = None,
    area: arguments.Area = 6400.0,
    upsample: arguments.Upsample = None,
    mirror: arguments.Mirror = True,
    budget: arguments.TrainingBudget = None,
    seed: arguments.Seed = 0,
    jobs: arguments.Jobs = -1,
    force: arguments.Force = False,
    cache: arguments.TrainingCache = None,
    keep_cache: arguments.KeepCache = False,
    as_json: arguments.AsJson = False,
    quiet: arguments.Quiet = False,
) -> int:
    """Learn a detector from boxes in images."""
    from hilbin.cli.detect.train import DetectOptions, summary, train_detector

    template = (components, parts, words, area, upsample, mirror)
    options = DetectOptions(
        source, output, label, *template, budget, seed, jobs, force, cache, keep_cache
    )
    trained = train_detector(options, Console(quiet))
    if as_json:
        files = {"model": str(trained.output), "bytes": trained.n_bytes}
        print(json.dumps({**files, **trained.about, "unreachable": trained.detector.unreachable_}))
    else:
        print(summary(trained))
    return SOME_UNREADABLE if trained.unreadable else DONE


@app.command("run", cls=Command)
@command
def run_command(
    model: arguments.DetectorFile,
    paths: arguments.Images,
    threshold: arguments.Threshold = None,
    draw: arguments.DrawFolder = None,
    csv_file: arguments.BoxesCsv = None,
    xml_file: arguments.BoxesXml = None,
    jobs: arguments.Jobs = -1,
    as_json: arguments.AsJson = False,
    quiet: arguments.Quiet = False,
) -> int:
    """Find things in images."""
    from hilbin.cli.detect.run import as_csv, as_lines, as_values, run_detector
    from hilbin.detect import write_boxes

    for file in filter(None, (csv_file, xml_file)):
        require_output(file, (model, *paths))
    found = run_detector(
        model, paths, threshold=threshold, draw=draw, jobs=jobs, console=Console(quiet)
    )
    complain_of(found.unreadable)
    if csv_file is not None:
        write_text(csv_file, as_csv(found))
    if xml_file is not None:
        write_boxes(found.images, xml_file, format="imglab")
    if as_json:
        print(json.dumps(as_values(found)))
    elif found.images:
        print(as_lines(found))
    if not found.images:
        return FAILED
    return SOME_UNREADABLE if found.unreadable else DONE


@app.command("eval", cls=Command)
@command
def eval_command(
    model: arguments.DetectorFile,
    source: arguments.BoxesFile,
    label: arguments.Label = None,
    report: arguments.ReportFile = None,
    csv_file: arguments.DetectionMistakes = None,
    jobs: arguments.Jobs = -1,
    as_json: arguments.AsJson = False,
    quiet: arguments.Quiet = False,
) -> int:
    """Evaluate a detector on boxes that it has not seen."""
    from hilbin.cli.detect.eval import as_csv, as_values, evaluate

    require_output(csv_file, (model, source))
    found = evaluate(model, source, label=label, report=report, jobs=jobs, console=Console(quiet))
    complain_of(found.unreadable)
    if csv_file is not None:
        write_text(csv_file, as_csv(found))
    if as_json:
        print(json.dumps(as_values(found)))
    else:
        print(found.summary())
        for written in filter(None, (report, csv_file)):
            print(written)
    return SOME_UNREADABLE if found.unreadable else DONE
