"""``hilbin info``: what a model file says about itself, from its header alone."""

from pathlib import Path
from typing import Any

from hilbin import persist
from hilbin.auto.base import accuracy_lines, counted
from hilbin.cli._models import require_file
from hilbin.persist.container import COMPACT_VERSION


def info(model: str | Path) -> persist.ModelInfo:
    """Read what a model file says about itself.

    Parameters
    ----------
    model : path

    Returns
    -------
    info : ModelInfo

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hilbin.cli.info import info
    >>> from hilbin.kernels import Chi2
    >>> from hilbin.persist import save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Chi2(), Path(folder) / "kernel.hilbin")
    ...     info(Path(folder) / "kernel.hilbin").class_name
    'hilbin.kernels.Chi2'
    """
    require_file(model)
    return persist.info(model)


def as_text(path: str | Path, found: persist.ModelInfo) -> str:
    """Return the same in lines for people."""
    about = found.metadata
    lines = [f"{path}: {found.class_name}, {found.n_bytes / 1e6:.1f} MB"]
    if found.format == COMPACT_VERSION or found.rounded:
        changes = [f"{place} by at most {change:.1e}" for place, change in found.rounded.items()]
        lines.append(f"compact file; rounded: {'; '.join(changes) or 'nothing'}")
    if "kind" not in about:  # neither an ImageClassifier nor a TableClassifier
        notes = [f"{key}: {value}" for key, value in about.items()]
        return "\n".join([*lines, *notes, _versions(found.versions)])
    per_class = about["data"]["per_class"]
    listed = ", ".join(f"{name} ({per_class.get(name, 0)})" for name in about["classes"])
    of_images = about["kind"] == "images"
    things = "images" if of_images else "rows of a table"
    number = counted(about["data"]["n"], "image" if of_images else "row")
    lines += [
        f"{counted(len(about['classes']), 'class')} of {things}: {listed}",
        f"features: {about.get('features', 'the columns of the table')}; model: {about['model']}",
        *accuracy_lines(about),
        f"made {about['created']} by: {about['command']}",
        f"data: {about['data']['source']}, {number}, sha256 {about['data']['sha256']}",
        _versions(about["versions"]),
    ]
    lines += [f"could not be read: {f['name']}: {f['reason']}" for f in about["unreadable"]]
    lines += [
        f"looks wrong: {s['name']} is labeled {s['label']}, but {s['suggested']} scores higher "
        f"(by {s['margin']:.2f})"
        for s in about["suspicious"]
    ]
    return "\n".join(lines)


def _versions(versions: dict[str, Any]) -> str:
    return "versions: " + ", ".join(f"{name} {number}" for name, number in versions.items())
