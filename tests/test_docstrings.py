"""Every public name is documented, with an example that the doctests run."""

import inspect
import re
from pathlib import Path

import pytest

import hilbin
import hilbin.auto
import hilbin.dependence
import hilbin.detect
import hilbin.estimators
import hilbin.kernels
import hilbin.maps
import hilbin.plot
import hilbin.solvers

NO_EXAMPLE = {
    "Candidate",
    "Kernel",
    "AdditiveKernel",
    "HomogeneousKernel",
    "StationaryKernel",
    "NotPositiveDefiniteWarning",
    "KernelMap",
    "UnreadableImageWarning",
    "ModelFileError",
    "UnsupportedModelError",
    "Shape",
    "CheckpointError",
    "Statistic",
    "LeftOutWarning",
    "BoxWarning",
}
PUBLIC = [getattr(hilbin.kernels, n) for n in hilbin.kernels.__all__]
PUBLIC += [getattr(hilbin.maps, n) for n in hilbin.maps.__all__]
PUBLIC += [getattr(hilbin.solvers, n) for n in hilbin.solvers.__all__]
PUBLIC += [getattr(hilbin.estimators, n) for n in hilbin.estimators.__all__]
PUBLIC += [getattr(hilbin.dependence, n) for n in hilbin.dependence.__all__]
PUBLIC += [getattr(hilbin.detect, n) for n in hilbin.detect.__all__]
PUBLIC += [getattr(hilbin.auto, n) for n in hilbin.auto.__all__]
PUBLIC += [getattr(hilbin.images, n) for n in hilbin.images.__all__]
PUBLIC += [getattr(hilbin.inspection, n) for n in hilbin.inspection.__all__]
PUBLIC += [getattr(hilbin.persist, n) for n in hilbin.persist.__all__]
PUBLIC += [getattr(hilbin.report, n) for n in hilbin.report.__all__]
PUBLIC += [getattr(hilbin.stats, n) for n in hilbin.stats.__all__]
PUBLIC += [getattr(hilbin.stream, n) for n in hilbin.stream.__all__]
PUBLIC += [getattr(hilbin.plot, n) for n in hilbin.plot.__all__] + [hilbin.show_versions]


@pytest.mark.parametrize("thing", PUBLIC, ids=lambda t: t.__name__)
def test_documented(thing):
    text = inspect.getdoc(thing)
    assert text
    assert not re.search(r"\S -{4,}", text), "the heading of a section is in a line of text"
    if thing.__name__ in NO_EXAMPLE:
        return
    assert "Examples\n--------\n>>> " in text
    for name in inspect.signature(thing).parameters:
        assert name in text, f"{thing.__name__} does not say what {name} is"


def test_the_reference_lists_every_public_name_once():
    text = (Path(__file__).parents[1] / "docs" / "api.rst").read_text()
    parts = re.split(r"^\.\. (?:current)?module:: ([\w.]+)$", text, flags=re.M)[1:]
    listed = [
        f"{package}.{name}"
        for package, part in zip(parts[::2], parts[1::2], strict=True)
        for name in re.findall(r"^   (\w+)$", part, re.M)
    ]
    packages = (hilbin.kernels, hilbin.maps, hilbin.solvers, hilbin.estimators, hilbin.images)
    packages += (
        hilbin.auto,
        hilbin.dependence,
        hilbin.detect,
        hilbin.inspection,
        hilbin.persist,
        hilbin.report,
        hilbin.stats,
        hilbin.stream,
        hilbin.plot,
    )
    public = [f"{package.__name__}.{n}" for package in packages for n in package.__all__]
    assert sorted(n for n in public if listed.count(n) != 1) == []
