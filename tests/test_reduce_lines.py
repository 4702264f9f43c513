"""Reductions of lines: products next to the limits of numbers, segments that lie apart, results past the caches."""

from __future__ import annotations

import numpy as np
import pytest

import anydml
from anydml import ReduceFunction

pytestmark = [pytest.mark.native, pytest.mark.slow]

MARGIN = 3


@pytest.mark.parametrize(("dtype", "least", "most"), [("float32", -149, 127), ("float16", -24, 15)])
@pytest.mark.parametrize("length", [3, 8, 11, 16, 33, 64, 65, 130, 700, 5000])
def test_products_of_the_smallest_and_the_largest(dtype: str, least: int, most: int, length: int) -> None:
    """Of powers of two, which are exact. Runs of the smallest or the largest leave the range of doubles on the way."""
    rng = np.random.default_rng(length)
    exponents = rng.integers(least, most + 1, (40, length))
    exponents[:10, : length // 2] = least
    exponents[10:20, length // 2 :] = most
    for line in exponents:  # until the product is a number
        while not least <= (total := int(line.sum())) <= most:
            at = rng.integers(length)
            line[at] = np.clip(line[at] - np.clip(total, -300, 300), least, most)
    x = np.ldexp(rng.integers(0, 2, exponents.shape) * 2.0 - 1, exponents).astype(dtype)
    negative = np.count_nonzero(x < 0, axis=1) % 2
    expected = np.ldexp(1.0 - 2 * negative, exponents.sum(1)).astype(dtype)
    np.testing.assert_array_equal(anydml.reduce(x, "MULTIPLY", 1)[:, 0], expected)
    np.testing.assert_array_equal(anydml.reduce(np.asfortranarray(x), "MULTIPLY", 1)[:, 0], expected)
    np.testing.assert_array_equal(anydml.reduce(np.ascontiguousarray(x.T), "MULTIPLY", 0)[0], expected)
    x[::2, 0] = 0
    x[1::4, length // 2] = np.inf
    x[3::4, length - 1] = np.nan
    found = anydml.reduce(x, "MULTIPLY", 1)[:, 0]
    assert (found[::2][np.isfinite(x[::2]).all(1)] == 0).all()
    assert np.isinf(found[1::4]).all()
    assert np.isnan(found[3::4]).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
@pytest.mark.parametrize("shape", [(1200, 64, 32), (130, 3, 61), (700, 5, 17), (40, 70, 600), (33, 200, 16)])
def test_segments_of_lines(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(-1, 2, shape).astype(dtype)
    x[rng.random(shape) < 0.99] = 0
    np.testing.assert_array_equal(anydml.reduce(x, "SUM", (0, 2))[0, :, 0], x.astype("float64").sum((0, 2)))
    np.testing.assert_array_equal(anydml.reduce(x, "MAX", (0, 2))[0, :, 0], x.max((0, 2)))
    lines = x.transpose(1, 0, 2).reshape(shape[1], -1)
    np.testing.assert_array_equal(anydml.argmax(x, (0, 2))[0, :, 0], lines.argmax(1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "int32", "uint8"])
@pytest.mark.parametrize("shape", [(9, 16, 17, 18), (1, 3001, 5, 7), (3, 200, 1, 3), (2, 4, 90, 23), (2, 700, 60, 5)])
@pytest.mark.parametrize("gap", [0, 3])
def test_short_segments_in_rows(dtype: str, shape: tuple[int, ...], gap: int) -> None:
    """Whose elements are columns of their own, until they are put together; what lies between segments is of no row,
    and nothing lies behind the last one."""
    rng = np.random.default_rng(4)
    x = spread(rng.integers(0, 4, shape).astype(dtype), gap)
    lines = x.transpose(0, 2, 1, 3).reshape(shape[0], shape[2], -1)
    for function, expected in ((ReduceFunction.MAX, lines.max(2)), (ReduceFunction.MIN, lines.min(2))):
        np.testing.assert_array_equal(anydml.reduce(x, function, (1, 3))[:, 0, :, 0], expected)
    np.testing.assert_array_equal(anydml.argmax(x, (1, 3))[:, 0, :, 0], lines.argmax(2))
    np.testing.assert_array_equal(anydml.argmin(x, (1, 3))[:, 0, :, 0], lines.argmin(2))
    if dtype != "uint8":
        x -= 1
        x[rng.random(shape) < 0.9] = 0
        np.testing.assert_array_equal(anydml.reduce(x, "SUM", (1, 3))[:, 0, :, 0], x.astype("float64").sum((1, 3)))
        signs = spread(np.where(x < 0, -1, 1).astype(dtype), gap)
        np.testing.assert_array_equal(anydml.reduce(signs, "MULTIPLY", (1, 3)), signs.prod((1, 3), keepdims=True))


def spread(x: np.ndarray, gap: int) -> np.ndarray:
    """The same with so many of the largest numbers between the last axis's elements and the next ones."""
    rows, columns = x.size // x.shape[-1], x.shape[-1]
    memory = np.full(rows * (columns + gap) - gap, np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).max, x.dtype)
    strides = ((columns + gap) * x.itemsize, x.itemsize)
    np.lib.stride_tricks.as_strided(memory, (rows, columns), strides)[:] = x.reshape(rows, columns)
    outer = tuple(stride // columns * (columns + gap) for stride in x.strides[:-1])
    return np.lib.stride_tricks.as_strided(memory, x.shape, (*outer, x.itemsize))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
@pytest.mark.parametrize("shape", [(3001, 5), (70, 1), (5000, 17), (100, 100), (17, 13)])
def test_few_columns_with_little_between_rows(dtype: str, shape: tuple[int, int]) -> None:
    """Which is accumulated beside them."""
    for gap in (1, 6):
        x = spread(np.random.default_rng(gap).integers(0, 2, shape).astype(dtype), gap)
        np.testing.assert_array_equal(anydml.argmax(x, 0)[0], x.argmax(0))
        np.testing.assert_array_equal(anydml.argmin(x, 0, reverse=True)[0], len(x) - 1 - x[::-1].argmin(0))
        np.testing.assert_array_equal(anydml.reduce(x, "MIN", 0)[0], x.min(0))
        if dtype != "uint8":
            np.testing.assert_array_equal(anydml.reduce(x, "SUM", 0)[0], x.sum(0, np.float64).astype(dtype))
            ones = spread(np.ones(shape, dtype), gap)
            np.testing.assert_array_equal(anydml.reduce(ones, "MULTIPLY", 0)[0], 1)


@pytest.mark.parametrize("length", [2, 3, 9])
def test_results_past_the_caches(length: int) -> None:
    """At an odd address, between other elements."""
    rows = 2**22 + 77
    x = np.random.default_rng(length).integers(-9, 9, (rows, length)).astype(np.float32)
    memory = np.full(rows + 2 * MARGIN, 99, np.float32)
    out = memory[MARGIN:-MARGIN].reshape(rows, 1)
    for function, expected in ((ReduceFunction.SUM, x.sum(1)), (ReduceFunction.MIN, x.min(1))):
        anydml.reduce(x, function, 1, out=out)
        np.testing.assert_array_equal(out[:, 0], expected)
        np.testing.assert_array_equal(memory[:MARGIN], 99)
        np.testing.assert_array_equal(memory[-MARGIN:], 99)
    np.testing.assert_array_equal(anydml.argmin(x, 1)[:, 0], x.argmin(1))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "int32", "float32", "int64"])
@pytest.mark.parametrize("gap", [0, 1, 5])
def test_short_lines(dtype: str, gap: int) -> None:
    """Of every length about those that are transposed; packed ones end where the memory does."""
    rng = np.random.default_rng(gap)
    item = np.dtype(dtype).itemsize
    for length in (*range(1, 20), 23, 31, 47, 96 // item, 96 // item + 1, 160 // item, 160 // item + 1):
        for lines in (17, 64, 1029):
            memory = np.empty(lines * (length + gap) - gap, dtype)
            x = np.lib.stride_tricks.as_strided(memory, (lines, length), ((length + gap) * item, item))
            x[:] = rng.integers(0, 9, x.shape)
            np.testing.assert_array_equal(anydml.reduce(x, "MAX", 1)[:, 0], x.max(1))
            np.testing.assert_array_equal(anydml.argmin(x, 1)[:, 0], x.argmin(1))
            if item >= 4 or dtype == "float16":
                np.testing.assert_array_equal(anydml.reduce(x, "SUM", 1)[:, 0], x.sum(1, dtype=dtype))
