r"""Landmarks from data of any size: centers of k-means, a pass for every round.

A round moves every center :math:`c_j` to the mean of the rows nearest to it, which lowers
:math:`\sum_i w_i \min_j \|x_i - c_j\|^2` (S. Lloyd, *Least Squares Quantization in PCM*, 1982). The
sums of a round are those of :class:`~hilbin.stats.ClusterSums`, so the centers do not depend on how
the rows are cut into chunks. The start is k-means++ on a random sample of the rows. For smooth
kernels such as the Gaussian that sum bounds the error of the Nyström map (K. Zhang, I. Tsang and J.
Kwok, *Improved Nyström Low-Rank Approximation and Error Analysis*, 2008).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import kmeans_plusplus

from hilbin._arrays import Array, to_dense
from hilbin._parameters import require_positive, require_whole
from hilbin.estimators._fit import random_seed
from hilbin.estimators.linear.passes import Passes, Survey
from hilbin.stats import ClusterSums
from hilbin.stream import Chunk, as_chunks

ROWS_PER_LANDMARK = 16  # of the sample


def stream_landmarks(
    X: Any,
    n_landmarks: int,
    *,
    sample_weight: Any = None,
    rounds: int = 5,
    n_jobs: int | None = None,
    client: Any = None,
    checkpoint: Any = None,
    memory: float | None = None,
    callback: Callable[[str, int, int | None], object] | None = None,
    random_state: Any = 0,
) -> Array:
    """Find landmarks for :class:`~hilbin.maps.NystroemMap` in data that do not fit into memory.

    Landmarks are the centers of k-means, by squared distance of the rows as they are. A center is a
    mean of rows, so that of histograms is a histogram again. The sample for the start, 16 rows for
    a landmark, is held in memory.

    Parameters
    ----------
    X : anything that :func:`hilbin.stream.as_chunks` takes
        Rows.
    n_landmarks : int
        Number of landmarks.
    sample_weight : array-like of shape (n_samples,), optional
        A weight of 2 counts as two rows.
    rounds : int, default=5
        Rounds of k-means, a pass over the data each; 0 gives the start, which are rows of ``X``.
    n_jobs : int, optional
        Number of chunks that threads compute side by side.
    client : distributed.Client, optional
        The Dask cluster to compute on.
    checkpoint : path, optional
        Folder for the running sums, from which a job that was killed resumes. It is removed at the
        end.
    memory : float, optional
        MiB for rows in memory at a time; scikit-learn's ``working_memory`` by default.
    callback : callable, optional
        Function that is called with the name of the pass, the rows done, and all rows or None.
    random_state : int, RandomState or None, default=0
        Random seed of the sample and the start.

    Returns
    -------
    landmarks : ndarray of shape (n_landmarks, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from hilbin.estimators import MapRidgeClassifier, stream_landmarks
    >>> from hilbin.kernels import Gaussian
    >>> from hilbin.maps import NystroemMap
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> chunks = [(X[i : i + 300], y[i : i + 300]) for i in range(0, 1500, 300)]
    >>> landmarks = stream_landmarks(chunks, 200)
    >>> nystroem = NystroemMap(Gaussian(5e-4), landmarks=landmarks)
    >>> model = MapRidgeClassifier(nystroem, alpha=0.1).fit(chunks)
    >>> bool(model.score(X[1500:], y[1500:]) > 0.93)
    True
    """
    require_whole("n_landmarks", n_landmarks, 1)
    require_whole("rounds", rounds, 0)
    if memory is not None:
        require_positive("memory, if not None,", memory)
    chunks = as_chunks(X, None, sample_weight, memory=memory)
    seed = random_seed(random_state)
    with Passes(chunks, n_jobs, client, checkpoint, callback) as passes:
        sample = passes.fold("survey", Survey(ROWS_PER_LANDMARK * n_landmarks, seed))[0].rows
        if sample.shape[0] < n_landmarks:
            raise ValueError(
                f"n_landmarks={n_landmarks} is more than the {sample.shape[0]} different rows of a "
                "weight above 0"
            )
        # in float32, k-means++ draws other rows
        sample = sample.astype(np.float64, copy=False)
        start, _ = kmeans_plusplus(sample, n_landmarks, random_state=seed, n_local_trials=1)
        centers = to_dense(start)
        for number in range(1, rounds + 1):
            centers = passes.fold(f"round {number}", Cluster(centers)).mean
    return centers


@dataclass(frozen=True)
class Cluster:
    """The sums of the rows that are nearest to every center."""

    centers: Array

    def __call__(self, chunk: Chunk) -> ClusterSums:
        """Return the sums of a chunk."""
        return ClusterSums.of(chunk.X, self.centers, chunk.weight)
