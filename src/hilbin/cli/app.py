"""The commands of ``hilbin``: each parses its arguments, calls a function, and prints the result.

What a command needs is imported when it runs, so that ``hilbin --help`` is quick.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hilbin.cli import _arguments as arguments
from hilbin.cli._console import Console
from hilbin.cli._help import Command, Group
from hilbin.cli._outcome import (
    DONE,
    FAILED,
    SOME_UNREADABLE,
    command,
    complain,
    complain_of,
    require_output,
    write_text,
)
from hilbin.cli.detect.app import app as detect_app

app = typer.Typer(
    name="hilbin",
    cls=Group,
    help="Classify photographs and tables by learning with kernels on histograms.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        import hilbin

        print(f"hilbin {hilbin.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:  # fmt: skip
    pass


@app.command("train", cls=Command)
@command
def train_command(
    source: arguments.Source,
    output: arguments.Output,
    target: arguments.Target = None,
    features: arguments.Features = "auto",
    network: arguments.Network = None,
    combine: arguments.Combine = "accuracy",
    kernel: arguments.KernelName = "auto",
    prefer: arguments.Prefer = "explainable",
    budget: arguments.Budget = None,
    virtual: arguments.Virtual = None,
    seed: arguments.Seed = 0,
    jobs: arguments.Jobs = -1,
    max_side: arguments.MaxSide = 256,
    cache: arguments.CacheFolder = None,
    keep_cache: arguments.KeepCache = False,
    force: arguments.Force = False,
    id_column: arguments.Id = None,
    drop: arguments.Drop = None,
    class_weight: arguments.ClassWeight = None,
    compact: arguments.Compact = False,
    as_json: arguments.AsJson = False,
    quiet: arguments.Quiet = False,
) -> int:
    """Train a classifier on images or a table."""
    from hilbin.cli.train import TrainOptions, summary, train

    wanted = (target, features, network, combine, kernel, prefer, budget, virtual)
    settings = (seed, jobs, max_side, cache, keep_cache, force)
    columns = (id_column, tuple(drop or ()))
    options = TrainOptions(source, output, *wanted, *settings, *columns, class_weight, compact)
    trained = train(options, Console(quiet))
    unreadable = trained.metadata["unreadable"]
    _complain_of(unreadable)
    if as_json:
        about = {k: v for k, v in trained.metadata.items() if k != "train"}
        print(json.dumps({"model": str(trained.output), "bytes": trained.n_bytes, **about}))
    else:
        print(summary(trained))
    return SOME_UNREADABLE if unreadable else DONE


@app.command("eval", cls=Command)
@command
def eval_command(
    model: arguments.ModelFile,
    source: arguments.Source,
    report: arguments.ReportFile = None,
    csv_file: arguments.MistakesFile = None,
    jobs: arguments.Jobs = -1,
    as_json: arguments.AsJson = False,
    quiet: arguments.Quiet = False,
) -> int:
    """Evaluate a model on labeled images or a table that it has not seen."""
    from hilbin.cli.eval import as_csv, complaints, evaluate

    require_output(csv_file, (model, source))
    outcome = evaluate(model, source, report=report, jobs=jobs, console=Console(quiet))
    for line in complaints(outcome):
        complain(line)
    if csv_file is not None:
        write_text(csv_file, as_csv(outcome.mistakes))
    if as_json:
        print(json.dumps({"accuracy": outcome.accuracy, **asdict(outcome)}))
    else:
        print(outcome.summary())
        for written in filter(None, (report, csv_file)):
            print(written)
    return SOME_UNREADABLE if outcome.unreadable else DONE


@app.command("predict", cls=Command)
@command
def predict_command(
    model: arguments.ModelFile,
    paths: arguments.Paths,
    top: arguments.Top = 1,
    reject: arguments.Reject = None,
    sort_into: arguments.SortInto = None,
    csv_file: arguments.CsvFile = None,
    jobs: arguments.Jobs = -1,
    as_json: arguments.AsJson = False,
    quiet: arguments.Quiet = False,
) -> int:
    """Predict the labels of images or table rows."""
    from hilbin.cli.predict import as_csv, as_lines, predict

    require_output(csv_file, (model, *paths))
    found = predict(
        model, paths, top=top, reject=reject, sort_into=sort_into, jobs=jobs, console=Console(quiet)
    )
    complain_of(found.unreadable)
    if csv_file is not None:
        write_text(csv_file, as_csv(found))
    if as_json:
        print(json.dumps(asdict(found)))
    elif found.predictions:
        print(as_lines(found))
    if not found.predictions:
        return FAILED
    return SOME_UNREADABLE if found.unreadable else DONE


@app.command("explain", cls=Command)
@command
def explain_command(
    model: arguments.ModelFile,
    example: arguments.Example,
    output: arguments.PictureFile = None,
    label: arguments.ClassName = None,
    versus: arguments.Versus = None,
    row: arguments.RowNumber = None,
    force: arguments.Force = False,
    jobs: arguments.Jobs = -1,
    as_json: arguments.AsJson = False,
) -> int:
    """Explain the predicted label of an image or a table row."""
    from hilbin.cli.explain import explain
    from hilbin.images import ImageError

    require_output(output, (model, example), force=force)
    try:
        why = explain(model, example, label=label, versus=versus, row=row, output=output, jobs=jobs)
    except ImageError as error:
        complain(f"cannot be read: {error}")
        return FAILED
    if as_json:
        told = {k: v for k, v in asdict(why).items() if k not in ("heat", "name")}
        written = None if output is None else str(output)
        kind = "csv" if row is not None else "picture"
        print(json.dumps({"path": why.name, **told, "picture": None, "csv": None, kind: written}))
    else:
        print("\n".join([why.summary(), *([] if output is None else [str(output)])]))
    return DONE


@app.command("similar", cls=Command)
@command
def similar_command(
    source: arguments.SearchSource,
    examples: arguments.Examples = None,
    among: arguments.Among = None,
    top: arguments.Neighbors = 10,
    row: arguments.RowNumber = None,
    approximate: arguments.Approximate = False,
    output: arguments.IndexFile = None,
    features: arguments.Features = "auto",
    network: arguments.Network = None,
    max_side: arguments.MaxSide = 256,
    cache: arguments.CacheFolder = None,
    keep_cache: arguments.KeepCache = False,
    id_column: arguments.Id = None,
    drop: arguments.Drop = None,
    seed: arguments.Seed = 0,
    jobs: arguments.Jobs = -1,
    force: arguments.Force = False,
    as_json: arguments.AsJson = False,
    quiet: arguments.Quiet = False,
) -> int:
    """Find the images or table rows most similar to given ones."""
    from hilbin.cli import similar as verb
    from hilbin.cli._collections import CollectionOptions

    require_output(output, (source, among, network, *(examples or ())), force=force)
    images = (features, network, max_side, cache, keep_cache)
    options = CollectionOptions(source, *images, id_column, tuple(drop or ()), seed, jobs, among)
    found = verb.similar(
        options, examples or [], top=top, row=row, approximate=approximate, output=output,
        console=Console(quiet),
    )  # fmt: skip
    _complain_of([*found.unreadable, *found.refused])
    if as_json:
        print(json.dumps(verb.as_json(found)))
    else:
        for lines in filter(None, (verb.as_lines(found), found.index)):
            print(lines)
    if found.refused and not found.queries:
        return FAILED
    return SOME_UNREADABLE if found.unreadable or found.refused else DONE


@app.command("cluster", cls=Command)
@command
def cluster_command(
    source: arguments.CollectionSource,
    clusters: arguments.Clusters = None,
    report: arguments.ClusterReport = None,
    sort_into: arguments.ClusterFolder = None,
    csv_file: arguments.ClusterCsv = None,
    features: arguments.Features = "auto",
    network: arguments.Network = None,
    max_side: arguments.MaxSide = 256,
    cache: arguments.CacheFolder = None,
    keep_cache: arguments.KeepCache = False,
    id_column: arguments.Id = None,
    drop: arguments.Drop = None,
    seed: arguments.Seed = 0,
    jobs: arguments.Jobs = -1,
    as_json: arguments.AsJson = False,
    quiet: arguments.Quiet = False,
) -> int:
    """Divide images or table rows into clusters, without labels."""
    from hilbin.cli import cluster as verb
    from hilbin.cli._collections import CollectionOptions
    from hilbin.files import write_whole

    require_output(csv_file, (source,))
    images = (features, network, max_side, cache, keep_cache)
    options = CollectionOptions(source, *images, id_column, tuple(drop or ()), seed, jobs)
    found = verb.cluster(
        options, n_clusters=clusters, report=report, sort_into=sort_into, console=Console(quiet)
    )
    _complain_of(found.unreadable)
    if csv_file is not None:
        write_whole(csv_file, verb.as_csv(found).encode(errors="surrogateescape"))
    if as_json:
        print(json.dumps(verb.as_json(found)))
    else:
        print(verb.as_lines(found))
        for written in filter(None, (report, csv_file)):
            print(written)
    return SOME_UNREADABLE if found.unreadable else DONE


@app.command("montage", cls=Command)
@command
def montage_command(
    source: arguments.CollectionSource,
    output: arguments.WallFile,
    features: arguments.Features = "auto",
    network: arguments.Network = None,
    max_side: arguments.MaxSide = 256,
    cache: arguments.CacheFolder = None,
    keep_cache: arguments.KeepCache = False,
    seed: arguments.Seed = 0,
    jobs: arguments.Jobs = -1,
    force: arguments.Force = False,
    as_json: arguments.AsJson = False,
    quiet: arguments.Quiet = False,
) -> int:
    """Put all images on one zoomable page, similar ones side by side."""
    from hilbin.cli._collections import CollectionOptions
    from hilbin.cli.montage import montage, summary

    images = (features, network, max_side, cache, keep_cache)
    options = CollectionOptions(source, *images, seed=seed, jobs=jobs)
    found = montage(options, output, force=force, console=Console(quiet))
    _complain_of(found.unreadable)
    print(json.dumps(asdict(found)) if as_json else summary(found))
    return SOME_UNREADABLE if found.unreadable else DONE


@app.command("duplicates", cls=Command)
@command
def duplicates_command(
    source: arguments.CollectionSource,
    id_column: arguments.Id = None,
    drop: arguments.Drop = None,
    jobs: arguments.Jobs = -1,
    as_json: arguments.AsJson = False,
    quiet: arguments.Quiet = False,
) -> int:
    """Find images that are nearly identical, or equal table rows."""
    from hilbin.cli._collections import CollectionOptions
    from hilbin.cli.duplicates import as_lines, duplicates

    options = CollectionOptions(source, id=id_column, drop=tuple(drop or ()), jobs=jobs)
    console = Console(quiet)
    found = duplicates(options, console)
    _complain_of(found.unreadable)
    if as_json:
        print(json.dumps(asdict(found)))
    elif found.groups:
        print(as_lines(found))
    else:
        console.say("no duplicates")
    return SOME_UNREADABLE if found.unreadable else DONE


def _complain_of(unreadable: list[dict[str, str]]) -> None:
    """Name the images that cannot be read, on standard error."""
    for file in unreadable:
        complain(f"cannot be read: {file['name']}: {file['reason']}")


@app.command("info", cls=Command)
@command
def info_command(model: arguments.ModelFile, as_json: arguments.AsJson = False) -> int:
    """Show what a model file contains and how it was made."""
    from hilbin.cli.info import as_text, info

    found = info(model)
    if as_json:
        print(json.dumps({"model": str(model), **vars(found)}))
    else:
        print(as_text(model, found))
    return DONE


@app.command("demo", cls=Command)
@command
def demo_command(
    out: arguments.OutFolder = Path("hilbin-demo"),
    seed: arguments.Seed = 0,
    jobs: arguments.Jobs = -1,
    as_json: arguments.AsJson = False,
    quiet: arguments.Quiet = False,
) -> int:
    """Train, evaluate and explain a model on photographs from scikit-image."""
    from hilbin.cli.demo import demo, summary

    shown = demo(out, seed=seed, jobs=jobs, console=Console(quiet))
    print(json.dumps(asdict(shown)) if as_json else summary(shown))
    return DONE


app.add_typer(detect_app)
