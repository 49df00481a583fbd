"""Pictures of tests and of the examples in docs are drawn without a window, and closed."""

import matplotlib as mpl
import pytest

mpl.use("agg")


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    from matplotlib import pyplot as plt

    plt.close("all")
