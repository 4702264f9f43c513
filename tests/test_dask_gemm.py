"""Products of matrices by blocks, and gathering along chunked axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anydml
from dask_chunks import chunked, computed, da, dask, same_bits, untouchable

SEEDS = range(4)


def matrices(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_whole_numbers_are_exact(seed: int, trans_a: bool, trans_b: bool) -> None:
    rng = np.random.default_rng(seed)
    a = rng.integers(-9, 9, (2, 1, *((70, 13) if trans_a else (13, 70)))).astype(np.float32)
    b = rng.integers(-9, 9, (3, *((11, 70) if trans_b else (70, 11)))).astype(np.float32)
    c = rng.integers(-9, 9, (13, 1)).astype(np.float32)
    options = {"trans_a": trans_a, "trans_b": trans_b, "alpha": 2, "beta": -3, "activation": "relu"}
    found = anydml.gemm(chunked(rng, a), chunked(rng, b), chunked(rng, c), **options)
    same_bits(found, anydml.gemm(a, b, c, **options))
    same_bits(anydml.gemm(chunked(rng, a), b, trans_a=trans_a, trans_b=trans_b), a_times_b(a, b, trans_a, trans_b))


def a_times_b(a: np.ndarray, b: np.ndarray, trans_a: bool, trans_b: bool) -> np.ndarray:
    left, right = (x.swapaxes(-1, -2) if turned else x for x, turned in ((a, trans_a), (b, trans_b)))
    return np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_errors_are_those_of_single_precision(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = matrices(rng, 9, 3000, dtype=dtype), matrices(rng, 3000, 7, dtype=dtype)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    found = computed(anydml.gemm(da.from_array(a, chunks=(4, 100)), da.from_array(b, chunks=(100, 7))))
    bound = 2.0**-24 * 100 * (abs(a.astype(np.float64)) @ abs(b.astype(np.float64)))
    if dtype == np.float16:
        bound = bound + abs(exact) * 2.0**-11
    assert (abs(found - exact) <= bound).all()


def test_sums_beyond_the_range_of_halves_are_taken_together() -> None:
    a = np.full((1, 8), 200, np.float16)
    b = np.array([[200]] * 4 + [[-200]] * 4, np.float16)
    found = anydml.gemm(da.from_array(a, chunks=4), da.from_array(b, chunks=4))
    assert computed(found) == 0


@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
def test_what_needs_rows_whole(activation: str) -> None:
    rng = np.random.default_rng(0)
    a, b = matrices(rng, 9, 20), matrices(rng, 20, 12)
    found = anydml.gemm(da.from_array(a, chunks=4), da.from_array(b, chunks=5), activation=activation)
    expected = anydml.gemm(a, b, activation=activation)
    np.testing.assert_allclose(computed(found), expected, rtol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_integers_wrap_as_in_memory(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.integers(-128, 128, (2, 1, 9, 60)).astype(np.int8)
    b = rng.integers(0, 256, (1, 3, 60, 8)).astype(np.uint8)
    zero_points = rng.integers(-9, 9, (1, 1, 9, 1)).astype(np.int8), rng.integers(0, 9, (1, 1, 1, 8)).astype(np.uint8)
    lazy = chunked(rng, a), chunked(rng, b)
    same_bits(anydml.matrix_multiply_integer(*lazy), anydml.matrix_multiply_integer(a, b))
    options = {"a_zero_point": zero_points[0], "b_zero_point": zero_points[1]}
    same_bits(anydml.matrix_multiply_integer(*lazy, **options), anydml.matrix_multiply_integer(a, b, **options))


def test_tasks_are_as_many_as_products() -> None:
    a = da.zeros((100, 1000), dtype=np.float32, chunks=(10, 10))
    b = da.zeros((1000, 20), dtype=np.float32, chunks=(10, 10))
    found = anydml.gemm(a, b)
    assert found.chunks == (a.chunks[0], b.chunks[1])
    products = 10 * 100 * 2
    (optimised,) = dask.optimize(found)
    made = len(optimised.__dask_graph__()) - len(a.__dask_graph__()) - len(b.__dask_graph__())
    assert made <= 1.3 * products
    assert anydml.gemm(a, b).name == found.name


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
def test_gathering_along_a_chunked_axis(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    x = matrices(rng, 5, 20, 6)
    low = 0 if dtype == np.uint32 else -20
    for shape in [(9,), (3, 4), (1, 5), ()]:
        indices = rng.integers(low, 20, shape).astype(dtype)
        lazy = chunked(rng, x)
        same_bits(anydml.gather(lazy, indices, 1), anydml.gather(x, indices, 1))
        same_bits(anydml.gather(lazy, da.from_array(indices), 1), anydml.gather(x, indices, 1))
    same_bits(anydml.gather(chunked(rng, x), -3, 1), anydml.gather(x, -3, 1))
    indices = rng.integers(0, 20, (1, 1, 4)).astype(dtype)
    expected = anydml.gather(x, indices, 1, index_dimensions=1)
    same_bits(anydml.gather(chunked(rng, x), indices, 1, index_dimensions=1), expected)


def test_only_chunks_that_are_named_are_read() -> None:
    read = []

    def noted(block: np.ndarray, block_info: Any = None) -> np.ndarray:
        read.append(block_info[0]["chunk-location"][0])
        return block

    x = da.from_array(np.arange(100.0), chunks=10).map_blocks(noted, dtype=float, meta=np.empty(0))
    assert computed(anydml.gather(x, [35, 31, -1])).tolist() == [35, 31, 99]
    assert sorted(set(read)) == [3, 9]


def test_wrong_indices_are_refused_when_the_graph_is_made() -> None:
    x = untouchable((4, 100), np.float32, (4, 10))
    with pytest.raises(anydml.DMLError, match=r"GATHER\.indices.*-101.*axis 1 of x"):
        anydml.gather(x, [3, -101], 1)


def test_nothing_is_computed_while_the_graph_is_made() -> None:
    a, b = untouchable((20, 20), np.float32, 5), untouchable((20, 20), np.int8, 5)
    made = [anydml.gemm(a, a, a), anydml.matrix_multiply_integer(b, b), anydml.gather(a, [1, 19, 3])]
    assert all(isinstance(each, da.Array) for each in made)
