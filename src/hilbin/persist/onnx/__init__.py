"""Export fitted models as ONNX graphs, which run where Python does not."""

import os
from importlib.metadata import version
from typing import Any

from sklearn.utils.validation import check_is_fitted

from hilbin._parameters import require_choice
from hilbin.files import write_whole
from hilbin.persist.errors import UnsupportedModelError
from hilbin.persist.onnx.exporters import OF_IMAGES

__all__ = ["to_onnx"]


def to_onnx(
    model: Any,
    path: str | os.PathLike[str],
    *,
    input_dtype: str = "float64",
    from_features: bool = False,
) -> None:
    """Write a fitted model as an ONNX graph.

    The graph takes ``X``, one row or more of **float64**, and computes in float64 as hilbin does:
    scores agree to rounding and labels are equal. Values are not checked: NaN and, where a kernel
    forbids them, negative values give meaningless results instead of an error.

    The outputs are those of the model, in float64:

    - a classifier has ``label`` and ``scores``, the values of ``decision_function``, and
      ``probabilities``, the values of ``predict_proba``, if it has learned them; scikit-learn's
      ``CalibratedClassifierCV`` has no scores;
    - a detector of outliers has ``label``, 1 or -1, and ``scores``;
    - a regressor has ``value``;
    - a transformer has ``features``, dense.

    Parameters
    ----------
    model : estimator
        Most estimators and maps of hilbin, linear models and scalers of scikit-learn, and a
        ``Pipeline``, ``FeatureUnion`` or ``CalibratedClassifierCV`` of these; the user guide has
        the list (:doc:`/saving`).
    path : path-like
        Path of the file; an existing one is replaced.
    input_dtype : {"float64", "float32"}, default="float64"
        Type of ``X``. The graph widens float32 to float64 and then computes in float64, so it
        agrees with the model on the widened rows. A value that was rounded to float32 beside the
        edge of a bin may fall into the next bin; a model without bins changes by the rounding of
        its input alone.
    from_features : bool, default=False
        Export what follows the features of an :class:`~hilbin.ImageClassifier`: ``X`` is then
        ``model.model_["features"].transform(images)``. How features are computed from images is not
        exported, so that such a model is refused otherwise.

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
        from hilbin.persist.onnx import machines, maps, steps  # noqa: F401 - they fill the tables
        from hilbin.persist.onnx.graph import Graph
        from hilbin.persist.onnx.outputs import n_features_of, outputs_of
    except ImportError as error:
        raise ImportError('to_onnx needs onnx: pip install "hilbin[onnx]"') from error
    require_choice("input_dtype", input_dtype, ("float64", "float32"))
    check_is_fitted(model)
    of_images = type(model) in OF_IMAGES
    if of_images and not from_features:
        raise UnsupportedModelError(
            f"model is an {type(model).__name__}, and how its features ({model.features_}) are "
            "computed from images is not exported to ONNX: with from_features=True the graph takes "
            'the rows of model.model_["features"].transform(images)'
        )
    if from_features and not of_images:
        raise ValueError("from_features=True is for classifiers of images; leave it out")
    graph = Graph(input_dtype)
    outputs = outputs_of(graph, model, graph.rows, "model")
    said = {"producer_name": "hilbin", "producer_version": version("hilbin")}
    write_whole(path, graph.model(n_features_of(model), outputs, **said))
