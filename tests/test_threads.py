"""Fitted models may be asked by several threads, and models fitted side by side."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from hilbin.estimators import IntersectionSVC, KernelSVC, MapRidgeClassifier, MapSVC
from hilbin.kernels import Chi2, Intersection
from hilbin.maps import AdditiveMap, SparseMap

THREADS = 4
MODELS = [
    IntersectionSVC(n_jobs=2),
    IntersectionSVC(n_bins=None, n_jobs=2),
    KernelSVC(Chi2(), n_jobs=2),
    MapSVC(SparseMap(Intersection(), orthonormal=True), n_jobs=2),
    MapRidgeClassifier(AdditiveMap(Chi2()), n_jobs=2),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_predict_and_fit_by_several_threads(model):
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(60, 9)) * (rng.uniform(size=(60, 9)) < 0.8)
    y = np.arange(60) % 3
    fitted = type(model)(**model.get_params(deep=False)).fit(X, y)
    dense, stored = fitted.decision_function(X), fitted.decision_function(sp.csr_array(X))

    def ask(number):
        if number % 3 == 0:
            return fitted.decision_function(X)
        if number % 3 == 1:
            return fitted.decision_function(sp.csr_array(X))
        return type(model)(**model.get_params(deep=False)).fit(X, y).decision_function(X)

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(ask, range(2 * THREADS)))
    for number, answer in enumerate(answers):
        np.testing.assert_allclose(answer, stored if number % 3 == 1 else dense, rtol=1e-9)
