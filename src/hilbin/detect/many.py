"""Many detectors on one image.

What detectors have in common is computed once: the pixels, the pyramid of cells for each
``upsample_``, and, for templates of one shape, the pass over the cells.

If a detector has words (``n_words``), its words are those of all: cells are coded once, and a
look-up per cell of a template replaces 32 products, for eight templates at a time. A score of words
is off by a few tenths, so it only tells which windows are candidates: those within ``MARGIN`` below
the threshold are scored again from the numbers. So what is found has the same scores as by
``predict``, and a window is missed only if coding takes more than the margin from it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilbin._arrays import Array
from hilbin._core import core
from hilbin.detect.boxes import Boxes
from hilbin.detect.detector import DeformableDetector, with_probabilities
from hilbin.detect.finding import all_roots, all_scores, find
from hilbin.detect.pyramid import CellPyramid
from hilbin.detect.template import Template, smallest_object
from hilbin.images import read_image

MARGIN = 0.6  # how much lower than a score that of its words may be
FEW = 8  # templates without parts from which look-ups pay


def run_all(
    models: Sequence[DeformableDetector], image: Any, threshold: float | None = None
) -> list[Boxes]:
    """Find what several detectors look for in one image.

    Parameters
    ----------
    models : sequence of DeformableDetector
        Fitted detectors.
    image : path or array
        The image.
    threshold : float, optional
        Least score, ``threshold_`` of every detector by default.

    Returns
    -------
    found : list of Boxes
        What ``predict`` of every detector finds in the image.

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.detect import DeformableDetector, run_all
    >>> images = np.random.default_rng(0).integers(0, 80, (3, 96, 128), np.uint8)
    >>> images[:, 20:60, 30:70] += 120
    >>> boxes = [[[30, 20, 70, 60]]] * 3
    >>> small, large = (DeformableDetector(area=area, random_state=0) for area in (900, 1600))
    >>> models = [small.fit(images, boxes), large.fit(images, boxes)]
    >>> found = run_all(models, images[0])
    >>> [np.array_equal(f, m.predict(images[:1])[0]) for f, m in zip(found, models)]
    [True, True]
    """
    pixels = read_image(image, color=True)
    found: dict[int, Boxes] = {}
    for upsample in sorted({model.upsample_ for model in models}):
        own = [k for k, model in enumerate(models) if model.upsample_ == upsample]
        found |= _run_some({k: models[k] for k in own}, pixels, upsample, threshold)
    return [found[k] for k in range(len(models))]


def _run_some(
    models: dict[int, DeformableDetector], pixels: Array, upsample: int, threshold: float | None
) -> dict[int, Boxes]:
    """Return what the detectors of one scale find."""
    templates = [t for model in models.values() for t in model.templates_]
    limits = {k: m.threshold_ if threshold is None else threshold for k, m in models.items()}
    least = [limits[k] for k, model in models.items() for _ in model.templates_]
    pyramid = CellPyramid.of(
        pixels,
        smallest=smallest_object([template.shape for template in templates]),
        upsample=upsample,
        nodes=any(template.n_parts for template in templates),
    )
    words = next((model.words_ for model in models.values() if model.words_ is not None), None)
    if words is None or len(templates) < FEW:
        scores = all_scores(templates, pyramid)
    else:
        scores = _screened(templates, pyramid, words, least)
    found, begin = {}, 0
    for k, model in models.items():
        end = begin + len(model.templates_)
        own = _as_alone(scores[begin:end], model, pyramid)
        boxes = find(own, model.templates_, pyramid, limits[k], model.overlap_).boxes
        found[k] = with_probabilities(boxes, model.calibration_)
        begin = end
    return found


def _as_alone(
    scores: Sequence[Array], model: DeformableDetector, pyramid: CellPyramid
) -> list[Array]:
    """Return scores without those of levels that the detector would not compute by itself."""
    least = np.array(smallest_object([template.shape for template in model.templates_]))
    inside = pyramid.inner_shapes
    levels = int(np.all(inside >= least, axis=1).sum())  # the first ones
    counts = [
        int(pyramid.grids(template.shape)[:levels].prod(axis=1).sum())
        for template in model.templates_
    ]
    return [own[:count] for own, count in zip(scores, counts, strict=True)]


def _screened(
    templates: Sequence[Template], pyramid: CellPyramid, words: Array, least: Sequence[float]
) -> list[Array]:
    """Return scores of the windows whose words are promising, and -infinity elsewhere."""
    coded = pyramid.encoded(words)
    out = []
    for template, limit, rough in zip(templates, least, all_roots(templates, coded), strict=True):
        lowest = min(limit, template.least) if template.n_parts else limit
        places = np.flatnonzero(rough + np.float32(template.bias) >= lowest - MARGIN)
        roots = np.full(len(rough), -np.inf, np.float32)
        exact = np.empty((1, len(places)), np.float32)
        arrays = pyramid.cells, pyramid.shapes, places
        core.filter_scores_at(*arrays, template.root[None], exact)
        roots[places] = exact[0]
        out.append(template.with_parts(pyramid, roots))
    return out
