"""Export fitted models as ONNX graphs, which run where Python does not."""

import os
from importlib.metadata import version
from typing import Any

from sklearn.utils.validation import check_is_fitted

from hilbin.files import write_whole

__all__ = ["to_onnx"]


def to_onnx(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model as an ONNX graph.

    The graph takes ``X``, rows of **float64**, and computes in float64 as hilbin does: scores
    agree to rounding and labels are equal. Rows in float32 must be widened: a value near the edge
    of a bin would fall into another one. Values are not checked: NaN and, where a kernel forbids
    them, negative values give meaningless results instead of an error.

    The outputs are those of the model:

    - a classifier has ``label`` and ``scores``, the values of ``decision_function``, and
      ``probabilities``, the values of ``predict_proba``, if it has learned them;
    - a regressor has ``value``;
    - a transformer has ``features``, dense.

    Parameters
    ----------
    model : estimator
        :class:`~hilbin.estimators.IntersectionSVC`,
        :class:`~hilbin.estimators.IntersectionSVR`, a map
        (:class:`~hilbin.maps.AdditiveMap`, :class:`~hilbin.maps.FourierMap`,
        :class:`~hilbin.maps.NystroemMap`, :class:`~hilbin.maps.SparseMap`), a
        :class:`~hilbin.estimators.HistogramBinner`, a linear model or scaler of scikit-learn, a
        ``Pipeline`` of these, or :class:`~hilbin.estimators.MapRidge`,
        :class:`~hilbin.estimators.MapRidgeClassifier` and
        :class:`~hilbin.estimators.StreamPCA` with such maps.
    path : path-like
        Path of the file; an existing one is replaced.

    Raises
    ------
    UnsupportedModelError
        If a step of the model has no export; the message names it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from hilbin.estimators import IntersectionSVC
    >>> from hilbin.persist import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_onnx(IntersectionSVC().fit(X, y), Path(folder) / "iris.onnx")
    ...     (Path(folder) / "iris.onnx").exists()
    True
    """
    try:
        from hilbin.persist.onnx.graph import Graph
        from hilbin.persist.onnx.steps import n_features_of, outputs_of
    except ImportError as error:
        raise ImportError('to_onnx needs onnx: pip install "hilbin[onnx]"') from error
    check_is_fitted(model)
    graph = Graph()
    outputs = outputs_of(graph, model, "X", "model")
    said = {"producer_name": "hilbin", "producer_version": version("hilbin")}
    write_whole(path, graph.model(n_features_of(model), outputs, **said))
