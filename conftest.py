"""Examples in docs run in an empty folder; pictures are drawn without a window, and closed."""

import matplotlib as mpl
import pytest

mpl.use("agg")


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    from matplotlib import pyplot as plt

    plt.close("all")


@pytest.fixture(autouse=True)
def _empty_folder(request, monkeypatch, tmp_path_factory):
    if request.node.path.suffix == ".rst":
        monkeypatch.chdir(tmp_path_factory.mktemp("page"))
