"""Dask arrays for tests: chunks of random sizes, and chunks that must not be computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

dask = pytest.importorskip("dask", reason="needs Dask: pip install 'anydml[dask]'")
da = pytest.importorskip("dask.array", reason="needs Dask: pip install 'anydml[dask]'")


def chunked(rng: np.random.Generator, array: np.ndarray, most: int = 4) -> Any:
    """An array in up to so many chunks of random sizes along each dimension."""
    chunks = []
    for size in array.shape:
        ends = sorted({*rng.integers(1, max(size, 2), rng.integers(most)).tolist(), size})
        chunks.append(tuple(np.diff([0, *ends]).tolist()))
    return da.from_array(array, chunks=tuple(chunks))


def untouchable(shape: tuple[int, ...], dtype: Any, chunks: Any) -> Any:
    """An array that raises when a chunk is computed."""

    def refuse(block: np.ndarray) -> np.ndarray:
        raise AssertionError("a chunk was computed")

    return da.zeros(shape, dtype=dtype, chunks=chunks).map_blocks(
        refuse, dtype=dtype, meta=np.empty((0,) * len(shape), dtype)
    )


def computed(array: Any) -> np.ndarray:
    """On this thread."""
    found = array.compute(scheduler="sync")
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    return found


def tasks_per_chunk(array: Any, *beside: Any) -> float:
    """Of a result, without those of what it is made of."""
    given = sum(len(each.__dask_graph__()) for each in beside)
    return (len(array.__dask_graph__()) - given) / array.npartitions


def same_bits(actual: Any, expected: Any) -> None:
    """The results of one call or of another, each computed here, have the same type and bits."""
    if isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected)
        for each, other in zip(actual, expected, strict=True):
            same_bits(each, other)
        return
    assert isinstance(actual, da.Array)
    found = computed(actual)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


def cut(rng: np.random.Generator, size: int, most: int = 5) -> tuple[int, ...]:
    """Sizes of chunks, of 0 and 1 among them."""
    cuts = sorted(map(int, rng.integers(0, size + 1, rng.integers(0, most + 1))))
    return tuple(end - start for start, end in zip([0, *cuts], [*cuts, size], strict=True))


def chunked_anyhow(rng: np.random.Generator, x: np.ndarray, most: int = 6) -> Any:
    """Chunks of 0 and 1 among them; at most so many cuts, which fewer dimensions share."""
    return da.from_array(x, chunks=tuple(cut(rng, size, max(1, most // x.ndim)) for size in x.shape))


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return (rng.standard_normal(shape) * 3).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(max(limits.min, -300), min(limits.max, 300), shape).astype(dtype)
