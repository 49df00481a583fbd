"""Rows that exported models are compared on."""

import numpy as np
import pytest


@pytest.fixture
def rows():
    """Rows to train on, and others that have zeros, and values beyond the training range."""
    rng = np.random.default_rng(0)
    train, test = rng.gamma(0.4, size=(90, 12)), rng.gamma(0.4, size=(60, 12))
    test[rng.uniform(size=test.shape) < 0.2] = 0
    test[0], test[1] = 1e6, 1e-9
    return train, test
