"""What collections of images and of table rows share: search, clusters, an order on a grid.

A collection has no labels. ``fit`` describes every example by features of a kernel and keeps codes
of them (:mod:`hilbin.auto.row_index`), from which everything else is answered: the examples nearest
to a new one, clusters and what sets them apart, and cells of a grid in which neighbors are alike.
"""

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.utils.validation import check_is_fitted

from hilbin import parallel, persist
from hilbin._arrays import Array
from hilbin._parameters import estimator, require_choice, require_whole
from hilbin._state import require
from hilbin.auto.arrangement import arrange
from hilbin.auto.base import Callback, Stopwatch, versions
from hilbin.auto.row_index import RowIndex, kernel_distances
from hilbin.dependence import GridSorting
from hilbin.kernels import AdditiveKernel, Chi2, Hellinger, Intersection, JensenShannon
from hilbin.report import ClusterCard, write_clusters

KERNELS: dict[str, AdditiveKernel | None] = {
    "hellinger": Hellinger(),
    "chi2": Chi2(),
    "intersection": Intersection(),
    "js": JensenShannon(),
    "linear": None,
}
SAMPLE = 1000  # rows that components are learned from
CANDIDATES = 50  # neighbors by codes whose distances are computed again, at least
MOST_CLUSTERS = 20  # if their number is not given
STARTS = 5  # of k-means


@dataclass(frozen=True)
class Neighbor:
    """An example that is similar to another one.

    Parameters
    ----------
    name : str
        Its name.
    number : int
        Its place in the collection.
    distance : float
        Distance in the feature space of the kernel; the mean squared distance of an example from
        the center is 1.

    Examples
    --------
    >>> from hilbin.auto import TableCollection
    >>> rows = TableCollection().fit([[0.0, 1.0], [0.1, 1.0], [5.0, 3.0], [5.0, 3.1]])
    >>> [one.name for one in rows.similar([[0.0, 1.1]], 2)[0]]
    ['row 1', 'row 2']
    """

    name: str
    number: int
    distance: float


@dataclass(frozen=True)
class Difference:
    """A column that distinguishes a cluster from all other examples.

    Parameters
    ----------
    name : str
        Name of the column: a feature of a table, or a visual word.
    column : int
        Its number.
    effect : float
        By how many standard deviations the mean of the cluster is above that of the others, in the
        feature space of the kernel.

    Examples
    --------
    >>> from hilbin.auto import Difference
    >>> Difference("width", 0, 1.5).effect
    1.5
    """

    name: str
    column: int
    effect: float


@dataclass(frozen=True)
class Clustering:
    """Clusters of a collection, the largest first.

    Parameters
    ----------
    labels : int array of shape (n_examples,)
        Number of the cluster of every example, from 0.
    members : list of lists of int
        Examples of every cluster, the most typical first: those nearest to its center.
    differences : list of lists of Difference
        What sets every cluster apart, the largest effect first.
    names : list of str
        Names of the examples.

    Examples
    --------
    >>> from hilbin.auto import TableCollection
    >>> rows = TableCollection().fit([[0.0, 1], [0.1, 1], [0.1, 1.2], [5, 3], [5, 3.1]])
    >>> found = rows.cluster(2)
    >>> found.labels.tolist(), found.differences[1][0].name
    ([0, 0, 0, 1, 1], 'column 1')
    """

    labels: Array
    members: list[list[int]]
    differences: list[list[Difference]]
    names: list[str]

    def typical(self, cluster: int, n: int = 5) -> list[str]:
        """Return the names of the most typical examples of a cluster."""
        return [self.names[i] for i in self.members[cluster][:n]]


@estimator
class Collection(BaseEstimator):
    """Base of collections of examples without labels.

    Parameters
    ----------
    n_components : int, default=256
        Largest number of kernel components kept per example; four of them take one byte.
    random_state : int, RandomState or None, default=0
        Random seed of features, samples, codes and clusters.
    n_jobs : int, optional
        Threads; ``None`` is 1 unless in a ``joblib.parallel_config``, -1 all processors.
    verbose : int, default=0
        1 prints every stage.

    Attributes
    ----------
    names_ : list of str
        Names of the examples.
    index_ : object
        Codes of the examples, and the way from rows to codes.
    metadata_ : dict
        How the collection was made; this is saved with the collection.
    """

    _: KW_ONLY
    n_components: int = 256
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: int = 0

    def kneighbors(
        self, X: Any, n_neighbors: int = 10, *, exact: bool = True
    ) -> tuple[Array, Array]:
        """Find the examples nearest to new ones, in the feature space of the kernel.

        Codes give some candidates, whose distances are then computed from all their features.

        Parameters
        ----------
        X
            New examples, as in :meth:`fit`.
        n_neighbors : int, default=10
            Number of examples to find.
        exact : bool, default=True
            Whether the distances of the nearest candidates are computed again. Otherwise all are as
            codes tell them.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            The smallest first.
        indices : int ndarray of shape (n_samples, n_neighbors)
            Places in the collection.
        """
        check_is_fitted(self)
        require_whole("n_neighbors", n_neighbors, 1)
        n = min(n_neighbors, len(self.index_))
        features = self.index_.features(self._new_rows(X))
        distances, numbers = np.empty((len(features), n)), np.empty((len(features), n), np.int64)
        for i, one in enumerate(features):
            found, apart = self.index_.nearest(one, max(2 * n, CANDIDATES) if exact else n)
            if exact:
                apart = self._exact_distances(one, found, apart)
                order = np.argsort(apart, kind="stable")
                found, apart = found[order], apart[order]
            numbers[i], distances[i] = found[:n], apart[:n]
        return distances, numbers

    def similar(self, X: Any, n_neighbors: int = 10, *, exact: bool = True) -> list[list[Neighbor]]:
        """Find the examples nearest to new ones, by name.

        Parameters
        ----------
        X, n_neighbors, exact
            As in :meth:`kneighbors`.

        Returns
        -------
        neighbors : list of lists of Neighbor
            Those of every new example, the nearest first.
        """
        distances, numbers = self.kneighbors(X, n_neighbors, exact=exact)
        return [
            [Neighbor(self.names_[j], int(j), float(d)) for d, j in zip(*pair, strict=True)]
            for pair in zip(distances, numbers, strict=True)
        ]

    def cluster(
        self,
        n_clusters: int | None = None,
        *,
        report: str | os.PathLike[str] | None = None,
        callback: Callback | None = None,
    ) -> Clustering:
        """Divide the examples into clusters, by k-means of their kernel components.

        Parameters
        ----------
        n_clusters : int, optional
            Number of clusters; by default the square root of half the number of examples, but at
            most 20, and no more than there are different examples.
        report : path, optional
            Where to write a page with typical examples of every cluster, and what sets it apart.
        callback : callable, optional
            Called with the name of a stage, how much of it is done, and how much there is.

        Returns
        -------
        clustering : Clustering
        """
        check_is_fitted(self)
        watch = Stopwatch(callback, self.verbose)
        with watch.stage("clustering"):
            found = self._clustering(n_clusters)
        if report is not None:
            cards = []
            with watch.stage("writing the report", len(found.members)) as tell:
                for k in range(len(found.members)):
                    tell(k)
                    cards.append(self._card(found, k))
                write_clusters(cards, report, title=self._title, lead=self._lead)
        return found

    def _clustering(self, n_clusters: int | None) -> Clustering:
        n, E = len(self.index_), self.index_.decoded()
        distinct = len(np.unique(E, axis=0))
        if n_clusters is None:
            n_clusters = min(distinct, MOST_CLUSTERS, max(2, round(np.sqrt(n / 2))))
        require_whole("n_clusters", n_clusters, 1)
        if n_clusters > n:
            raise ValueError(f"n_clusters={n_clusters} is more than the {self._counted(n)}")
        if n_clusters > distinct:
            raise ValueError(
                f"n_clusters={n_clusters}, but of the {self._counted(n)} only {distinct} "
                f"{'is' if distinct == 1 else 'are'} different"
            )
        with parallel.blas_threads(self.n_jobs):
            found = KMeans(n_clusters, n_init=STARTS, random_state=self._seed()).fit(E)
        apart = np.square(E - found.cluster_centers_[found.labels_]).sum(axis=1)
        order = np.argsort(-np.bincount(found.labels_, minlength=n_clusters), kind="stable")
        labels = np.argsort(order)[found.labels_]
        places = [np.flatnonzero(labels == k) for k in range(n_clusters)]
        members = [p[np.argsort(apart[p], kind="stable")].tolist() for p in places]
        differences = [self._differences(labels == k) for k in range(n_clusters)]
        return Clustering(labels, members, differences, self.names_)

    def arrange(self, *, callback: Callback | None = None) -> GridSorting:
        """Put the examples into the cells of a grid in which neighbors are alike.

        Parameters
        ----------
        callback : callable, optional
            Called with the name of the stage, how many examples are done, and how many there are.

        Returns
        -------
        sorting : hilbin.dependence.GridSorting
            ``cells`` are those of the examples.
        """
        check_is_fitted(self)
        with Stopwatch(callback, self.verbose).stage("sorting", len(self.index_)) as tell:
            return arrange(
                self.index_.decoded(), seed=self._seed(), callback=lambda done, _: tell(done)
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the collection to a file, whole or not at all; :func:`hilbin.load` reads it.

        Parameters
        ----------
        path : path
            The file, conventionally ``*.hilbin``.
        """
        check_is_fitted(self)
        persist.save(self, path, metadata=self.metadata_)

    # for the subclasses
    def _new_rows(self, X: Any) -> Array:
        """Return the rows of new examples."""
        raise NotImplementedError

    def _exact_distances(self, features: Array, numbers: Array, known: Array) -> Array:
        """Return the distances of some examples from features; ``known`` is what codes say."""
        raise NotImplementedError

    def _differences(self, inside: Array) -> list[Difference]:
        """Return what sets some examples apart from the others."""
        raise NotImplementedError

    def _card(self, found: Clustering, cluster: int) -> ClusterCard:
        """Return what the page shows of a cluster."""
        raise NotImplementedError

    @property
    def _title(self) -> str:
        """Title of a page."""
        raise NotImplementedError

    @property
    def _lead(self) -> str:
        """What stands below the title."""
        raise NotImplementedError

    def _counted(self, n: int) -> str:
        """Return so many examples in words."""
        raise NotImplementedError

    def _seed(self) -> int:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        require_choice("kernel", self.kernel, tuple(KERNELS))
        require_whole("n_components", self.n_components, 1)

    def _effects(self, inside: Array) -> Array:
        """Return the effect of every feature; nothing without others to compare with."""
        if inside.all() or not inside.any():
            return np.zeros(len(self.index_.input_columns))
        return self.index_.effects(inside)

    def _about(self, source: str, watch: Stopwatch, **own: Any) -> dict[str, Any]:
        """Return the metadata."""
        params = {k: v for k, v in self.get_params().items() if k != "cache"}
        return {
            "collection": f"{self._counted(len(self.names_))} of {source}",
            "command": " ".join(repr(type(self)(**params)).split()),
            **own,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": versions(),
            "seconds": watch.seconds,
        }

    def _check_state(self) -> None:
        """Raise ``ValueError`` if the attributes of a loaded collection do not fit together."""
        if hasattr(self, "index_"):
            require(isinstance(self.index_, RowIndex), "index_ is no index")
            require_texts(getattr(self, "names_", None), len(self.index_), "names_")


def require_texts(texts: Any, n: int, name: str) -> None:
    """Raise unless an attribute is a list of ``n`` texts."""
    fits = isinstance(texts, list) and len(texts) == n and all(isinstance(t, str) for t in texts)
    require(fits, f"{name} are not one text for every example")


def require_two(n: int, source: str, one: str) -> None:
    """Raise unless there are two examples."""
    if n < 2:
        found = f"only one {one}" if n else f"no {one}"
        raise ValueError(f"{source}: {found}; a collection needs two")


def sampled(n: int) -> Array:
    """Return the numbers of the examples that components are learned from, evenly spaced."""
    found: Array = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(int))
    return found


def exact_among(index: RowIndex, features: Array, rows: Array) -> Array:
    """Return the distances of rows from features, from all their own."""
    return kernel_distances(features, index.features(rows))


def strongest(effects: Array, names: Sequence[str], most: int) -> list[Difference]:
    """Return the columns of the largest effects above 0, a few."""
    order = np.argsort(-effects, kind="stable")[:most]
    return [Difference(str(names[j]), int(j), float(effects[j])) for j in order if effects[j] > 0]
