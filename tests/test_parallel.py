import threading
import time

import numpy as np
import pytest
from joblib import parallel_config
from threadpoolctl import threadpool_info

from hilbin.kernels import Chi2, Linear
from hilbin.parallel import blas_threads, ranges, run, stream


def blas_sizes():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_ranges_cover_once():
    parts = ranges(10, 3)
    assert [i for b, e in parts for i in range(b, e)] == list(range(10))
    assert ranges(0, 3) == []


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
def test_run_does_every_range(n_jobs):
    seen = np.zeros(100, dtype=int)

    def task(begin, end):
        seen[begin:end] += 1

    run(task, ranges(100, 7), n_jobs)
    assert (seen == 1).all()


def test_stream_keeps_the_order():
    assert list(stream(lambda b, e: b, ranges(50, 5), 2)) == list(range(0, 50, 5))


def test_threads_are_used_and_blas_is_held():
    names, sizes = set(), []
    both = threading.Barrier(2, timeout=30)

    def task(begin, end):
        both.wait()  # passes only if two tasks run at once
        names.add(threading.current_thread().name)
        sizes.extend(blas_sizes())

    for _ in stream(task, ranges(4, 2), 2, calls_blas=True):
        pass
    assert len(names) == 2
    assert set(sizes) <= {1}


def test_blas_threads_are_restored():
    before = blas_sizes()
    with blas_threads(1):
        assert set(blas_sizes()) <= {1}
    assert blas_sizes() == before


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("error", [IndexError, KeyboardInterrupt])
def test_an_error_reaches_the_caller_and_ends_the_work(n_jobs, error):
    begun = []

    def task(begin, end):
        begun.append(begin)
        if begin == 5:
            raise error("inside")
        time.sleep(0.001)

    with pytest.raises(error, match="inside"):
        run(task, ranges(1000, 1), n_jobs)
    assert len(begun) < 1000
    begun.clear()
    with pytest.raises(error, match="inside"):
        list(stream(task, ranges(1000, 1), n_jobs))
    assert len(begun) < 1000


@pytest.mark.parametrize("kernel", [Chi2(), Linear()])
def test_parallel_config_reaches_a_call(kernel, histograms):
    alone = kernel(histograms)
    with parallel_config(n_jobs=2):
        np.testing.assert_allclose(kernel(histograms), alone, rtol=1e-12)
