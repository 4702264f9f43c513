"""TOP_K1 on rows of any length and layout: what is chosen is there, in order, and nothing left out comes before.

That is all that an order without ties allows, and so it is compared with no other way of choosing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import anydml
from anydml.core.strided_layout import DATA_TYPES

TYPES = [dtype.name for dtype in DATA_TYPES if dtype.name != "float64"]
LENGTHS = (1, 2, 15, 16, 17, 63, 64, 65, 130, 255, 256, 257, 319, 321, 700, 1023, 3000)


def values(dtype: str, shape: Sequence[int], seed: int = 0) -> np.ndarray:
    """Many that are equal, the ends of the type, and of floats what is special."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        x = (rng.standard_normal(shape) * 8).round(rng.integers(0, 3)).astype(dtype)
        special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 6e-8, -6e-8], dtype)
    else:
        info = np.iinfo(kind)
        x = rng.integers(0, 100, shape).astype(dtype)
        special = np.array([info.min, info.max, info.min + 1, info.max - 1, info.max // 2], dtype)
    is_special = rng.random(shape) < 0.1
    x[is_special] = rng.choice(special, is_special.sum())
    return x


def order_of(x: np.ndarray) -> np.ndarray:
    """Numbers that compare as elements do: places among the distinct ones, of which NaN is the last."""
    numbers = x[~np.isnan(x)] if x.dtype.kind == "f" else x
    return np.searchsorted(np.sort(numbers, axis=None), x, side="left") + (x != x)


def assert_chosen(x: np.ndarray, k: int, axis: int, largest: bool, found: Sequence[Any]) -> None:
    chosen, indices = (np.moveaxis(np.asarray(each), axis, -1) for each in found)
    x = np.moveaxis(x, axis, -1)
    bits = f"u{x.itemsize}"
    indices = indices.astype(np.int64)
    taken = np.take_along_axis(x, indices, -1)
    assert np.ascontiguousarray(chosen).view(bits).tolist() == np.ascontiguousarray(taken).view(bits).tolist()
    order = order_of(x) * (-1 if largest else 1)
    # What comes later has a larger key and index.
    keys = np.take_along_axis(order, indices, -1)
    later = (keys[..., 1:] > keys[..., :-1]) | (
        (keys[..., 1:] == keys[..., :-1]) & (indices[..., 1:] > indices[..., :-1])
    )
    assert later.all()
    comes_before = order < keys[..., -1:]
    comes_before |= (order == keys[..., -1:]) & (np.arange(x.shape[-1]) <= indices[..., -1:])
    assert (comes_before.sum(-1) == k).all()


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
def test_rows_of_any_length(dtype: str, largest: bool) -> None:
    for length in LENGTHS:
        x = values(dtype, (3, length), length)
        for k in sorted({1, 2, 5, 60, 100, length // 3, length - 1, length}):
            if 1 <= k <= length:
                assert_chosen(x, k, 1, largest, anydml.top_k(x, k, largest=largest))


@pytest.mark.parametrize("k", [1, 3, 40, 200])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
def test_any_layout(dtype: str, axis: int, k: int) -> None:
    shape = [5, 6, 7]
    shape[axis] = 300
    whole = values(dtype, [2 * size for size in shape])
    packed = values(dtype, shape)
    for x in (
        packed,
        packed.T.copy().T,
        packed[::-1, :, ::-1],
        np.moveaxis(np.moveaxis(packed, axis, 0).copy(), 0, axis),
        whole[::2, ::-2, 1::2],
        np.broadcast_to(packed[:1] if axis else packed[:, :1], shape),
    ):
        out = [np.empty((n := [*x.shape[:axis], k, *x.shape[axis + 1 :]])[::-1], x.dtype).T, np.empty(n, np.uint64)]
        found = anydml.top_k(x, k, axis, out=out, indices_dtype="uint64")
        assert_chosen(x, k, axis, True, found)
        assert_chosen(x, k, axis, False, anydml.top_k(x, k, axis, largest=False))


@pytest.mark.parametrize("k", [1, 100, 3000, 50_000])
@pytest.mark.parametrize("rows", [1, 3])
def test_long_rows(rows: int, k: int) -> None:
    for dtype in ("float32", "int16", "uint64"):
        x = values(dtype, (rows, 400_001))
        assert_chosen(x, k, 1, True, anydml.top_k(x, k))
        assert_chosen(x.T, k, 0, False, anydml.top_k(x.T, k, 0, largest=False))


@pytest.mark.parametrize("k", [1, 10, 500, 20_000])
def test_rows_that_raise_the_threshold_always(k: int) -> None:
    """And such that never do."""
    ascending = np.arange(40_000, dtype=np.float32)
    for x in (ascending, ascending[::-1], np.zeros(40_000, np.float32), np.full(40_000, np.nan, np.float32)):
        assert_chosen(x, k, 0, True, anydml.top_k(x, k))
        assert_chosen(x, k, 0, False, anydml.top_k(x, k, largest=False))


def test_many_short_rows() -> None:
    for shape, axis in (((7001, 10), 1), ((10, 7001), 0), ((1001, 9, 31), 1)):
        x = values("float32", shape)
        assert_chosen(x, 4, axis, True, anydml.top_k(x, 4, axis))
