import signal

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("hilbin", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("hilbin")

# In the background of a shell, or under nohup, SIGINT is ignored, and tests of it would fail.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def histograms():
    """Sparse rows that sum to 1, with duplicates and an empty row."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.4, size=(70, 33)) * (rng.uniform(size=(70, 33)) < 0.7)
    X /= X.sum(axis=1, keepdims=True)
    X[5] = X[4]
    X[6] = 0
    return X
