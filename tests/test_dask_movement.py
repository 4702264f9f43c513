"""Movement over chunks: the same bits as in memory, most chunks passed on as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anydml
from anydml.core.enums import PaddingMode
from dask_chunks import chunked, da, same_bits, tasks_per_chunk, untouchable

SEEDS = range(2)
DTYPES = ["float32", "int8", "float64", "bool", "complex64", "complex128"]


def elements(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    size = np.dtype(dtype).itemsize
    bits = rng.integers(0, 2 if dtype == "bool" else 256, (*shape[:-1], shape[-1] * size)).astype(np.uint8)
    return bits.view(dtype)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_join_and_split(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    pieces = [elements(rng, 5, int(rng.integers(1, 9)), 6, dtype=dtype) for _ in range(3)]
    expected = anydml.join(pieces, 1)
    same_bits(anydml.join([chunked(rng, piece) for piece in pieces], 1), expected)
    same_bits(anydml.join([pieces[0], chunked(rng, pieces[1]), pieces[2]], 1), expected)
    sizes = [piece.shape[1] for piece in pieces]
    same_bits(anydml.split(chunked(rng, expected), sizes, 1), pieces)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_slices(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    x = elements(rng, 7, 1, 30, dtype=dtype)
    offsets, sizes = [2, 0, 3], [4, 1, 25]
    for strides in ([1, 1, 1], [-1, 1, 3], [2, 1, -4], [-3, -2, -1]):
        found = anydml.slice(chunked(rng, x), offsets, sizes, strides)
        same_bits(found, anydml.slice(x, offsets, sizes, strides))


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_of_slices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = elements(rng, 4, 1, 9)
    for strides in ([1, 1, 1], [-1, 1, 3], [2, 1, -2], [-3, -2, -1], [1, -1, -3]):
        options = (12, 1, 40), [1, 0, 2], [11, 1, 33], strides
        same_bits(anydml.slice_grad(chunked(rng, x), *options), anydml.slice_grad(x, *options))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", PaddingMode)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_padding(seed: int, mode: PaddingMode, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    x = elements(rng, 6, 11, dtype=dtype)
    for high in (5, 30):
        start, end = rng.integers(0, high, 2).tolist(), rng.integers(0, high, 2).tolist()
        options = {"mode": mode, "value": 3}
        same_bits(anydml.padding(chunked(rng, x), start, end, **options), anydml.padding(x, start, end, **options))
    value = 2**53 + 1 if dtype == np.int64 else 0.1
    options = {"mode": mode, "value": value}
    same_bits(anydml.padding(chunked(rng, x), 3, 2, **options), anydml.padding(x, 3, 2, **options))


def test_padding_many_times_as_long() -> None:
    x = elements(np.random.default_rng(0), 1, 3)
    for mode in PaddingMode:
        found = anydml.padding(da.from_array(x, chunks=2), [0, 500], [300, 0], mode=mode)
        same_bits(found, anydml.padding(x, [0, 500], [300, 0], mode=mode))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [0, 100, 2**20])
def test_tiles(seed: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several copies make up a chunk, which is small or not."""
    monkeypatch.setattr("anydml.frontends.dask.movement._BYTES", size)
    rng = np.random.default_rng(seed)
    x = elements(rng, 3, 1, 10)
    for repeats in ([1, 1, 7], [3, 5, 2], [2, 1, 1]):
        same_bits(anydml.tile(chunked(rng, x), repeats), anydml.tile(x, repeats))


@pytest.mark.parametrize("seed", SEEDS)
def test_depth_and_space(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = elements(rng, 2, 12, 6, 18, dtype=np.int16)
    for block in (1, 2, 3):
        same_bits(anydml.space_to_depth(chunked(rng, x), block), anydml.space_to_depth(x, block))
    for order in ("DEPTH_COLUMN_ROW", "COLUMN_ROW_DEPTH"):
        found = anydml.depth_to_space(chunked(rng, x), 2, order=order)
        same_bits(found, anydml.depth_to_space(x, 2, order=order))


@pytest.mark.parametrize("dtype", ["bool", "complex64", "complex128"])
def test_elements_of_no_directml_type_are_copied_lazily(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, indices = elements(rng, 6, 8, dtype=dtype), rng.integers(0, 6, (3, 8))
    lazy = untouchable(x.shape, dtype, 3)
    made = [
        anydml.join([lazy, x], 0),
        *anydml.split(lazy, 2, 1),
        anydml.slice(lazy, 1, 4, -2),
        anydml.identity(lazy),
        anydml.gather(lazy, [1, 2], 0),
        anydml.gather_elements(lazy, indices, 0),
        anydml.gather_nd(lazy, indices[:, :1]),
        anydml.scatter_elements(lazy, indices, x[:3], 0),
        anydml.scatter_nd(lazy, np.array([[1], [4]]), x[:2]),
    ]
    assert all(isinstance(each, da.Array) and each.dtype == np.dtype(dtype) for each in made)
    known = chunked(rng, x)
    same_bits(anydml.identity(known), x)
    same_bits(anydml.gather(known, [1, 2], 0), x[[1, 2]])
    same_bits(anydml.gather_elements(known, indices, 0), np.take_along_axis(x, indices, 0))
    same_bits(anydml.gather_nd(known, indices[:, :1]), x[indices[:, 0]])
    same_bits(anydml.scatter_elements(known, indices, x[:3], 0), anydml.scatter_elements(x, indices, x[:3], 0))
    changed = x.copy()
    changed[[1, 4]] = x[:2]
    same_bits(anydml.scatter_nd(known, np.array([[1], [4]]), x[:2]), changed)


def test_chunks_are_passed_on() -> None:
    x = da.zeros((100, 1000), dtype=np.float32, chunks=(10, 10))
    joined = anydml.join([x, x], 1)
    assert joined.chunks == (x.chunks[0], 2 * x.chunks[1])
    assert tasks_per_chunk(joined, x) == 1
    assert anydml.padding(x, [0, 3], [0, 3]).npartitions == x.npartitions
    assert anydml.slice(x, [0, 10], [100, 900]).chunks == (x.chunks[0], x.chunks[1][:90])
    assert anydml.split(x, 2, 1)[1].chunks == (x.chunks[0], x.chunks[1][50:])
    assert anydml.tile(x[:, :10], [1, 1000]).npartitions == 10
    images = da.zeros((1, 4, 64, 64), dtype=np.float32, chunks=(1, 4, 8, 8))
    assert tasks_per_chunk(anydml.space_to_depth(images, 4), images) == 1
    assert tasks_per_chunk(anydml.depth_to_space(images, 2), images) == 1


def test_empty_pieces_are_skipped() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    empty = np.empty((0, 3), np.float32)
    same_bits(anydml.join([da.from_array(x, chunks=1), empty], 0), x)
    same_bits(anydml.join([da.from_array(empty, chunks=-1), da.from_array(x, chunks=2)], 0), x)
    for axis, none in ((0, empty), (1, empty.reshape(2, 0))):
        for pieces in ([none, x], [x, none], [none, x, none], [none, none]):
            expected = anydml.join(pieces, axis)
            for i, piece in enumerate(pieces):
                lazy = da.from_array(piece, chunks=2)
                same_bits(anydml.join([*pieces[:i], lazy, *pieces[i + 1 :]], axis), expected)


def test_pieces_that_do_not_fit_are_told_as_those_in_memory_are() -> None:
    for pieces in ([(0, 3), (4, 0)], [(2, 3), (2, 4)], [(2, 3), (2, 3, 1)]):
        arrays = [np.zeros(shape, np.float32) for shape in pieces]
        told = []
        for given in (arrays, [da.from_array(arrays[0], chunks=2), arrays[1]]):
            with pytest.raises(anydml.DMLError) as raised:
                anydml.join(given, 0)
            told.append(str(raised.value))
        assert told[0] == told[1]
        assert "arrays[1]" in told[0]


def test_nothing_is_computed_while_the_graph_is_made() -> None:
    x = untouchable((4, 8, 6, 6), np.float32, 2)
    made = [
        anydml.join([x, x]),
        *anydml.split(x, 4),
        anydml.slice(x, 1, 3, -2),
        anydml.slice_grad(x, (8, 16, 12, 12), 0, (8, 16, 12, 12), 2),
        anydml.padding(x, 1, 2, mode="SYMMETRIC"),
        anydml.tile(x, 2),
        anydml.space_to_depth(x, 2),
        anydml.depth_to_space(x, 2),
    ]
    assert all(isinstance(each, da.Array) for each in made)
