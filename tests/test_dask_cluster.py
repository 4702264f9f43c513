"""Functions of Dask arrays on a cluster of processes, one of which is killed on the way."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import anydml

da = pytest.importorskip("dask.array", reason="needs Dask: pip install 'anydml[dask]'")
distributed = pytest.importorskip("distributed", reason="needs Dask's cluster: pip install distributed")

X = np.random.default_rng(3).standard_normal((6, 3, 24, 24)).astype(np.float32)
LINES = X.reshape(6, -1)
IMAGE = np.arange(2 * 24 * 8, dtype=np.uint8).reshape(1, 2, 24, 8)

CALLS: dict[str, tuple[np.ndarray, Any, Callable[[Any], Any]]] = {
    "element by element": (LINES, (1, 1728), anydml.sigmoid),
    "independent dimensions": (LINES, (1, 1728), lambda x: anydml.top_k(x, 3)[1]),
    "running sums along chunks": (LINES, (1, 1728), lambda x: anydml.cumulative_summation(x, 0)),
    "running products along chunks": (LINES, (1, 1728), lambda x: anydml.cumulative_product(x, 0)),
    "joined": (LINES, (1, 1728), lambda x: anydml.join([x, x], 1)),
    "windows": (IMAGE, (1, 2, 4, 8), lambda x: anydml.max_pooling(x, 3, strides=2)),
    "reduced over chunks": (LINES, (1, 1728), lambda x: anydml.reduce(x, "MAX", axes=0)),
    "normalised over chunks": (LINES, (1, 1728), lambda x: anydml.softmax(x, axes=0)),
    "a product of matrices": (LINES, (1, 1728), lambda x: anydml.gemm(x, x, trans_b=True)),
}
"""One function of each rule: an array, its chunks, and what is computed of it."""


def slowly(block: np.ndarray) -> np.ndarray:
    time.sleep(0.02)
    return block


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing() -> None:
    sources = {name: da.from_array(array, chunks=chunks) for name, (array, chunks, _) in CALLS.items()}
    lazy = [call(sources[name].map_blocks(slowly, dtype=array.dtype)) for name, (array, _, call) in CALLS.items()]
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        futures = client.compute(lazy)
        distributed.wait(futures[0])
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        results = client.gather(futures)
    for (name, (array, _, call)), result in zip(CALLS.items(), results, strict=True):
        expected = call(array)
        assert result.dtype == expected.dtype, name
        if name in ("normalised over chunks", "a product of matrices"):
            np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-4, err_msg=name)
        else:
            np.testing.assert_array_equal(result, expected, err_msg=name)
