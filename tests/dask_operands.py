"""Random chunkings for tests of Dask arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def cut(rng: np.random.Generator, size: int, most: int = 5) -> tuple[int, ...]:
    """Sizes of chunks, of 0 and 1 among them."""
    cuts = sorted(map(int, rng.integers(0, size + 1, rng.integers(0, most + 1))))
    return tuple(end - start for start, end in zip([0, *cuts], [*cuts, size], strict=True))


def chunked(rng: np.random.Generator, x: np.ndarray, most: int = 6) -> Any:
    """At most so many cuts, which fewer dimensions share."""
    import dask.array as da

    return da.from_array(x, chunks=tuple(cut(rng, size, max(1, most // x.ndim)) for size in x.shape))


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return (rng.standard_normal(shape) * 3).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(max(limits.min, -300), min(limits.max, 300), shape).astype(dtype)
