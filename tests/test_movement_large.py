"""Movement where only large or strange tensors reach: layouts of every kind, sizes beyond a tile, threads, streamed
lines, against NumPy's indexing."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import pytest

import anydml
from anydml.core.strided_layout import Array
from harness import GUARD, bits, printed_everywhere

pytestmark = [pytest.mark.native, pytest.mark.slow]

STREAMED = 16 << 20
"""Bytes from which outputs are stored past the caches."""
TYPES = [np.dtype(each) for each in ("uint8", "float16", "int32", "float32", "float64")]
Random = np.random.Generator


def random_bytes(rng: Random, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    return np.frombuffer(rng.bytes(prod(shape) * dtype.itemsize), dtype).reshape(shape)


def fenced(rng: Random, size: int) -> Array:
    """Bytes before or behind which there is no memory to be read, where the system lets that be arranged."""
    pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, pages + 2 * mmap.PAGESIZE), np.uint8)
    if sys.platform == "linux":
        for fence in (0, pages + mmap.PAGESIZE):
            ctypes.CDLL(None).mprotect(ctypes.c_void_p(memory.ctypes.data + fence), mmap.PAGESIZE, 0)
    begin = mmap.PAGESIZE + int(rng.integers(0, 2)) * (pages - size)
    return memory[begin : begin + size]


def laid_out(
    rng: Random, shape: Sequence[int], dtype: np.dtype[Any], broadcasts: bool, guard: int = GUARD
) -> tuple[Array, Array]:
    """A tensor in poisoned memory: packed, or its dimensions in another order, backward, with gaps, or repeated."""
    rank = len(shape)
    order = [*range(rank)] if rng.random() < 0.4 else [*rng.permutation(rank)]
    strides, step = [0] * rank, dtype.itemsize
    low = 0
    for i in reversed(order):
        if broadcasts and rng.random() < 0.1:
            continue
        gap = int(rng.integers(2, 4)) if rng.random() < 0.1 else 1
        strides[i] = step * gap
        step *= shape[i] * gap
        if rng.random() < 0.1:
            low += (shape[i] - 1) * strides[i]
            strides[i] = -strides[i]
    # What a backward dimension reaches is before the first element, and counted in `low`.
    high = low + sum((n - 1) * max(step, 0) for n, step in zip(shape, strides, strict=True)) + dtype.itemsize
    memory = fenced(rng, 2 * guard + high)
    memory[:] = 0xA5
    return memory, np.ndarray(shape, dtype, memory, guard + low, strides)


def drawn(rng: Random, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An input of any layout and bits, at an end of memory."""
    memory, x = laid_out(rng, shape, dtype, broadcasts=True, guard=0)
    memory[:] = np.frombuffer(rng.bytes(len(memory)), np.uint8)
    return x


def assert_computed(rng: Random, expected: Array, compute: Callable[[Array], Any], any_layout: bool = True) -> None:
    """Into an output whose every other byte is watched."""
    if any_layout:
        memory, y = laid_out(rng, expected.shape, expected.dtype, broadcasts=False)
    else:
        memory = np.full(2 * GUARD + expected.nbytes, 0xA5, np.uint8)
        y = np.ndarray(expected.shape, expected.dtype, memory, int(rng.integers(0, GUARD)))
    y.view(bits(y))[...] = ~np.ascontiguousarray(expected).view(bits(y))
    compute(y)
    np.testing.assert_array_equal(y.view(bits(y)), np.ascontiguousarray(expected).view(bits(y)))
    y.view(bits(y))[...] = int.from_bytes(b"\xa5" * y.itemsize, "little")
    assert (memory == 0xA5).all()


def sizes(rng: Random, most: int) -> list[int]:
    """Of some dimensions, which together have at most so many elements, about."""
    rank = int(rng.integers(1, 6))
    found = [int(each) for each in np.exp(rng.uniform(0, np.log(most) * 1.6 / rank, rank))]
    while prod(found) > most:
        longest = int(np.argmax(found))
        found[longest] = found[longest] // 2 + 1
    return [max(1, each) for each in found]


Drawing = tuple[Array, Callable[[Array], Any]]
"""What is expected, and what computes it into an array."""


def a_slice(rng: Random, x: Array) -> Drawing:
    offsets = [int(rng.integers(0, size)) if rng.random() < 0.3 else 0 for size in x.shape]
    windows = [
        int(rng.integers(1, size - offset + 1)) if rng.random() < 0.3 else size - offset
        for size, offset in zip(x.shape, offsets, strict=True)
    ]
    steps = [int(step) for step in rng.choice([1, 1, 1, -1, 2, -2, 3], x.ndim)]
    y = x[tuple([slice(offset, offset + size) for offset, size in zip(offsets, windows, strict=True)])]
    y = y[tuple([slice(None, None, step) for step in steps])]
    return y, lambda out: anydml.slice(x, offsets, windows, steps, out=out)


def a_copy(rng: Random, x: Array) -> Drawing:
    return x, lambda out: anydml.slice(x, 0, x.shape, out=out)


def a_tile(rng: Random, x: Array) -> Drawing:
    x = x.view(np.int64) if x.dtype == np.float64 else x
    repeats = [int(each) for each in rng.choice([1, 1, 2, 3, 17], x.ndim)]
    while prod(repeats) * x.size > 3_000_000:
        repeats[int(np.argmax(repeats))] = 1
    return np.tile(x, repeats), lambda out: anydml.tile(x, repeats, out=out)


def a_padding(rng: Random, x: Array) -> Drawing:
    mode = str(rng.choice(["constant", "edge", "reflection", "symmetric", "wrap"]))
    ends = [[int(each) for each in rng.choice([0, 0, 1, 2, 5, 40], 2)] for _ in x.shape]
    while prod(size + sum(end) for size, end in zip(x.shape, ends, strict=True)) > 3_000_000:
        ends[int(np.argmax([sum(end) for end in ends]))] = [0, 0]
    names = {"reflection": "reflect"}
    options = {"constant_values": x.dtype.type(7)} if mode == "constant" else {}
    # NumPy reflects no single element.
    y = x
    for axis, end in enumerate(ends):
        how = "edge" if mode == "reflection" and x.shape[axis] == 1 else names.get(mode, mode)
        y = np.pad(y, [end if i == axis else (0, 0) for i in range(x.ndim)], how, **options)  # type: ignore[call-overload]
    starts, stops = zip(*ends, strict=True)
    return y, lambda out: anydml.padding(x, starts, stops, mode=mode, value=7, out=out)


def a_split(rng: Random, x: Array) -> Drawing:
    """One of the pieces."""
    axis = int(rng.integers(0, x.ndim))
    cuts = np.unique(rng.integers(0, x.shape[axis] + 1, 4))
    ends = [*(int(each) for each in cuts if 0 < each < x.shape[axis]), x.shape[axis]]
    parts = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    pieces = np.split(x, ends[:-1], axis)
    which = int(rng.integers(0, len(pieces)))
    others = [np.empty(each.shape, x.dtype) for each in pieces]
    return pieces[which], lambda out: anydml.split(x, parts, axis, out=[*others[:which], out, *others[which + 1 :]])


def an_upsampling(rng: Random, x: Array) -> Drawing:
    x = x.view("f2") if x.itemsize == 2 else np.resize(x.view(bits(x)), x.shape).astype("u4").view("f4")
    x = x.reshape((1,) * (4 - x.ndim) + x.shape)
    height, width = (int(each) for each in rng.integers(1, 6, 2))
    y = x.repeat(height, -2).repeat(width, -1)
    return y, lambda out: anydml.upsample_2d(x, (height, width), out=out)


def a_cast(rng: Random, x: Array) -> Drawing:
    """Of numbers that have no limits to leave."""
    x = (x.view(bits(x)) % 100).astype(x.dtype)
    wanted = TYPES[int(rng.integers(0, len(TYPES)))]
    return x.astype(wanted), lambda out: anydml.cast(x, wanted, out=out)


def a_band(rng: Random, x: Array) -> Drawing:
    x = x.reshape(1, -1) if x.ndim < 2 else x[(0,) * max(0, x.ndim - 4)]
    begin, end = (int(each) for each in rng.integers(-x.shape[-2] - 2, x.shape[-1] + 3, 2))
    diagonal = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, np.newaxis]
    is_filled = (begin <= diagonal) & (diagonal < end) if begin <= end else (diagonal < end) | (begin <= diagonal)
    y = x.copy()
    y[..., is_filled] = 7
    ends = {"diagonal_fill_begin": begin, "diagonal_fill_end": end}
    return y, lambda out: anydml.diagonal_matrix(x=x, value=7, **ends, out=out)


def a_gather(rng: Random, x: Array) -> Drawing:
    axis = int(rng.integers(0, x.ndim))
    low = -x.shape[axis] if rng.random() < 0.5 else 0
    kind = str(rng.choice(["int32", "int64"] if low else ["int32", "int64", "uint32", "uint64"]))
    count = int(rng.integers(1, 2 + min(3000, 3_000_000 * x.shape[axis] // x.size)))
    indices = drawn(rng, (count,), np.dtype(kind))
    indices.setflags(write=True)
    indices[...] = rng.integers(low, x.shape[axis], count)
    return np.take(x, indices, axis), lambda out: anydml.gather(x, indices, axis, out=out)


def a_slice_grad(rng: Random, x: Array) -> Drawing:
    """All of x, in a place that is some elements longer at both ends."""
    x = x[tuple([slice(0, 1 + 4_000 // 3 ** min(x.ndim, 6))] * x.ndim)]
    steps = [int(step) for step in rng.choice([1, 1, -1, 2, -2, 3, 20], x.ndim)]
    starts, ends = ([int(each) for each in rng.choice([0, 0, 1, 3], x.ndim)] for _ in range(2))
    windows = [(size - 1) * abs(step) + 1 for size, step in zip(x.shape, steps, strict=True)]
    while prod(windows) > 3_000_000:
        longest = int(np.argmax(windows))
        steps[longest], windows[longest] = 1, x.shape[longest]
    whole = [sum(each) for each in zip(windows, starts, ends, strict=True)]
    y = np.zeros(whole, bits(x))
    window = y[tuple([slice(start, start + size) for start, size in zip(starts, windows, strict=True)])]
    window[tuple([slice(None, None, step) for step in steps])] = x.view(bits(x))
    return y.view(x.dtype), lambda out: anydml.slice_grad(x, whole, starts, windows, steps, out=out)


def of_four_dimensions(x: Array, *parts: int) -> Array:
    """With such sizes that the last dimensions are multiples of these."""
    x = x[(0,) * max(x.ndim - 4, 0)]
    x = x.reshape((1,) * (4 - x.ndim) + x.shape)
    for axis, part in enumerate(parts, 4 - len(parts)):
        x = np.take(x, np.arange(-(-x.shape[axis] // part) * part) % x.shape[axis], axis)
    return x


def a_depth_to_space(rng: Random, x: Array) -> Drawing:
    block, order = int(rng.integers(1, 5)), str(rng.choice(["depth_column_row", "column_row_depth"]))
    x = of_four_dimensions(x, block**2, 1, 1)
    n, c, h, w = x.shape
    y = np.empty((n, c // block**2, h * block, w * block), x.dtype)
    for row, column in np.ndindex(block, block):
        place = row * block + column
        channels = slice(place, None, block**2)
        if order == "depth_column_row":
            channels = slice(place * y.shape[1], (place + 1) * y.shape[1])
        y[:, :, row::block, column::block] = x[:, channels]
    return y, lambda out: anydml.depth_to_space(x, block, order, out=out)


def a_space_to_depth(rng: Random, x: Array) -> Drawing:
    """The channels of each place in a block, one after the other."""
    block = int(rng.integers(1, 5))
    x = of_four_dimensions(x, block, block)
    places = [x[:, :, row::block, column::block] for row, column in np.ndindex(block, block)]
    return np.concatenate(places, 1), lambda out: anydml.space_to_depth(x, block, out=out)


def an_unfolding(rng: Random, x: Array) -> Drawing:
    x = of_four_dimensions(x)[:, :, :300, :300]
    ends = [[int(each) for each in rng.choice([0, 0, 1, 5], 2)] for _ in range(2)]
    padded = np.pad(x.view(bits(x)), [(0, 0), (0, 0), *ends])
    dilations, steps = ([int(each) for each in rng.integers(1, 4, 2)] for _ in range(2))
    most = [(size - 1) // dilation + 1 for size, dilation in zip(padded.shape[2:], dilations, strict=True)]
    taps = [int(rng.integers(1, min(5, each) + 1)) for each in most]
    rows = []
    for row, column in np.ndindex(*taps):
        starts = row * dilations[0], column * dilations[1]
        stops = [
            size - (number - 1 - tap) * dilation
            for size, number, tap, dilation in zip(padded.shape[2:], taps, (row, column), dilations, strict=True)
        ]
        rows.append(padded[:, :, starts[0] : stops[0] : steps[0], starts[1] : stops[1] : steps[1]])
    y = np.stack(rows, 2).reshape(x.shape[0], x.shape[1] * len(rows), -1).view(x.dtype)
    starts, stops = zip(*ends, strict=True)
    options = {"dilations": dilations, "start_padding": starts, "end_padding": stops}
    return y, lambda out: anydml.unfold(x, taps, steps, **options, out=out)


def a_reversal(rng: Random, x: Array) -> Drawing:
    axis = int(rng.integers(0, x.ndim))
    lengths = drawn(rng, (*x.shape[:axis], 1, *x.shape[axis + 1 :]), np.dtype(str(rng.choice(["uint32", "uint64"]))))
    lengths.setflags(write=True)
    # Where a dimension is repeated in memory, so are its lengths.
    lengths[...] = rng.integers(0, x.shape[axis] + 2, lengths.shape)
    y = np.moveaxis(x.copy(), axis, -1)
    for place, length in zip(np.ndindex(y.shape[:-1]), np.moveaxis(lengths, axis, -1).flat, strict=True):
        y[place][: int(length)] = y[place][: int(length)][::-1].copy()
    return np.moveaxis(y, -1, axis), lambda out: anydml.reverse_subsequences(x, lengths, axis, out=out)


def indices_of(rng: Random, shape: Sequence[int], size: int) -> Array:
    """Of any layout, of which some are the same in the memory of one that repeats."""
    low = -size if rng.random() < 0.5 else 0
    kind = str(rng.choice(["int32", "int64"] if low else ["int32", "int64", "uint32", "uint64"]))
    indices = drawn(rng, shape, np.dtype(kind))
    indices.setflags(write=True)
    indices[...] = rng.integers(low, size, shape)
    return indices


def last_set(x: Array, places: Array, updates: Array) -> Array:
    """A copy of x in which the last of the updates of each place is set; places are of x's rows."""
    y = x.copy()
    firsts, which = np.unique(places[::-1], return_index=True)
    y[firsts] = updates[::-1][which]
    return y


def elements_of(rng: Random, x: Array) -> tuple[int, Array]:
    axis = int(rng.integers(0, x.ndim))
    many = list(x.shape)
    many[axis] = int(rng.integers(1, 2 + min(3000, 3_000_000 * x.shape[axis] // x.size)))
    return axis, indices_of(rng, many, x.shape[axis])


def a_gather_of_elements(rng: Random, x: Array) -> Drawing:
    axis, indices = elements_of(rng, x)
    expected = np.take_along_axis(x, indices.astype(np.intp), axis)
    return expected, lambda out: anydml.gather_elements(x, indices, axis, out=out)


def a_scatter_of_elements(rng: Random, x: Array) -> Drawing:
    axis, indices = elements_of(rng, x)
    updates = drawn(rng, indices.shape, x.dtype)
    # Elements in a row, along the axis in the first place: so the last index along it is the last one.
    numbers = np.moveaxis(np.arange(x.size).reshape(x.shape), axis, 0)
    places = np.take_along_axis(numbers, np.moveaxis(indices.astype(np.intp), axis, 0), 0)
    expected = last_set(x.reshape(-1), places.reshape(-1), np.moveaxis(updates, axis, 0).reshape(-1))
    return expected.reshape(x.shape), lambda out: anydml.scatter_elements(x, indices, updates, axis, out=out)


def tuples_of(rng: Random, x: Array, batch: int) -> tuple[Array, list[Array]]:
    """Tuples behind some dimensions of batches, and their coordinates with those of the batch."""
    count = int(rng.integers(1, x.ndim - batch + 1))
    sliced = prod(x.shape[batch + count :]) * prod(x.shape[:batch])
    many = (*x.shape[:batch], int(rng.integers(1, 2 + min(30_000, 1_000_000 // sliced))))
    dtype = np.dtype(str(rng.choice(["int32", "int64"])))
    _, tuples = laid_out(rng, (*many, count), dtype, broadcasts=False, guard=0)
    for i, size in enumerate(x.shape[batch : batch + count]):
        tuples[..., i] = rng.integers(-size, size, many)
    batches = [each[..., None] for each in np.indices(x.shape[:batch], sparse=True)]
    return tuples, [*batches, *np.moveaxis(tuples.astype(np.intp), -1, 0)]


def a_gather_by_tuples(rng: Random, x: Array) -> Drawing:
    batch = int(rng.integers(0, x.ndim)) if rng.random() < 0.5 else 0
    tuples, places = tuples_of(rng, x, batch)
    return x[tuple(places)], lambda out: anydml.gather_nd(x, tuples, batch_dimension_count=batch, out=out)


def a_scatter_by_tuples(rng: Random, x: Array) -> Drawing:
    tuples, places = tuples_of(rng, x, 0)
    slices = x.shape[len(places) :]
    updates = drawn(rng, (*tuples.shape[:-1], *slices), x.dtype)
    numbers = np.arange(prod(x.shape[: len(places)])).reshape(x.shape[: len(places)])[tuple(places)]
    expected = last_set(x.reshape(-1, *slices), numbers, updates)
    return expected.reshape(x.shape), lambda out: anydml.scatter_nd(x, tuples, updates, out=out)


GATHERS = [a_gather_of_elements, a_gather_by_tuples, a_scatter_of_elements, a_scatter_by_tuples]
DRAWINGS = [
    *GATHERS,
    a_band,
    a_slice_grad,
    a_depth_to_space,
    a_space_to_depth,
    an_unfolding,
    a_reversal,
    a_cast,
    a_gather,
    a_slice,
    a_copy,
    a_tile,
    a_padding,
    a_split,
    an_upsampling,
]


@pytest.mark.parametrize("draw", DRAWINGS)
@pytest.mark.parametrize("seed", range(6))
def test_any_layout(draw: Callable[[Random, Array], Drawing], seed: int) -> None:
    """Where a draw has few elements there are many."""
    rng = np.random.default_rng(seed)
    for most in [*[40] * 12, *[1000] * 8, *[30_000] * 4, 400_000]:
        x = drawn(rng, sizes(rng, most), TYPES[int(rng.integers(0, len(TYPES)))])
        y, compute = draw(rng, x)
        assert_computed(rng, y, compute, any_layout=rng.random() < 0.5)


@pytest.mark.parametrize("seed", range(4))
def test_short_rows(seed: int) -> None:
    """Of which several are put together at once, up to the end of memory."""
    rng = np.random.default_rng(seed)
    for width in range(1, 36):
        dtype = TYPES[(seed + width) % len(TYPES)]
        x = drawn(rng, (int(rng.integers(1, 4)), int(rng.integers(1, 70)), width), dtype)
        ends = [(0, 0), *(tuple(int(each) for each in rng.integers(0, 4, 2)) for _ in range(2))]
        mode = ("constant", "edge")[width % 2]
        options = {"constant_values": dtype.type(7)} if mode == "constant" else {}
        y = np.pad(x.view(bits(x)) if mode == "edge" else x, ends, mode, **options).view(dtype)  # type: ignore[call-overload]
        starts, behind = zip(*ends, strict=True)
        assert_computed(
            rng,
            y,
            lambda out, x=x, starts=starts, behind=behind, mode=mode: anydml.padding(  # type: ignore[misc]
                x, starts, behind, mode=mode, value=7, out=out
            ),
            any_layout=rng.random() < 0.3,
        )


@pytest.mark.parametrize("draw", GATHERS)
@pytest.mark.parametrize("shape", [(4099, 1501), (1501, 4099), (3, 2049, 700), (1_400_001, 4), (90_001, 67)])
def test_large_gathers_and_scatters(draw: Callable[[Random, Array], Drawing], shape: Sequence[int]) -> None:
    """Stripes of columns, rows that are prefetched, outputs past the caches, updates that threads share."""
    rng = np.random.default_rng(len(shape))
    for _ in range(3):
        y, compute = draw(rng, streamed(shape, "i4"))
        assert_computed(rng, y, compute, any_layout=False)


@pytest.mark.parametrize("dtype", ["u1", "i8"])
def test_scatters_that_fill_a_large_output(dtype: str) -> None:
    """Elements are stored by parts of the output; of several to one place, in one part or thread or not, the last."""
    rng = np.random.default_rng(0)
    x = streamed((STREAMED // np.dtype(dtype).itemsize + 77,), dtype)
    near, indices = np.split(rng.integers(-x.size, x.size, 1_300_001), [200_000])
    indices = np.concatenate([near % 5000, indices, near % 5000 - x.size])
    updates = drawn(rng, indices.shape, x.dtype)
    y = last_set(x, indices % x.size, updates)
    assert_computed(rng, y, lambda out: anydml.scatter_elements(x, indices, updates, 0, out=out), any_layout=False)


@pytest.mark.parametrize(("dtype", "value"), [("u1", 7), ("u2", 0x707), ("u2", 0x708), ("i4", -1), ("i4", 255)])
def test_fills_of_equal_bytes(dtype: str, value: int) -> None:
    y = np.full(70_001, value, dtype)
    rng = np.random.default_rng(0)
    assert_computed(rng, y, lambda out: anydml.fill_value_constant(y.shape, value, dtype, out=out), any_layout=False)


def streamed(shape: Sequence[int], dtype: Any) -> Array:
    return random_bytes(np.random.default_rng(0), shape, np.dtype(dtype))


def transposed(shape: Sequence[int], order: Sequence[int], dtype: Any) -> Drawing:
    x = streamed(shape, dtype).transpose(order)
    return x, lambda out: anydml.slice(x, 0, x.shape, out=out)


TRANSPOSED = [
    ((2999, 1501), (1, 0), "i4"),
    ((1500, 1501), (1, 0), "i8"),
    ((4099, 4111), (1, 0), "u1"),
    ((2900, 2901), (1, 0), "i2"),
    ((1_400_001, 3), (1, 0), "i4"),
    ((3, 1_400_001), (1, 0), "i4"),
    ((7, 2_400_001), (1, 0), "u1"),
    ((50, 61, 1401), (0, 2, 1), "i4"),
    ((1401, 50, 61), (2, 1, 0), "i4"),
    ((90, 100, 500, 1), (1, 0, 3, 2), "i4"),
    ((300, 301, 12, 4), (1, 0, 2, 3), "i4"),
    ((300, 301, 3, 16), (0, 2, 1, 3), "i4"),
    ((20, 30, 40, 50, 4), (4, 3, 2, 1, 0), "i4"),
    ((100_000, 2, 3, 4, 2), (0, 4, 3, 2, 1), "i4"),
    ((70_000, 61), (1, 0), "i4"),
    ((61, 70_000), (1, 0), "i4"),
]


@pytest.mark.parametrize(("shape", "order", "dtype"), TRANSPOSED)
def test_large_transpositions(shape: Sequence[int], order: Sequence[int], dtype: str) -> None:
    y, compute = transposed(shape, order, dtype)
    assert_computed(np.random.default_rng(1), y, compute, any_layout=False)


def test_large_movement() -> None:
    """Streamed, from any place in a line."""
    rng = np.random.default_rng(2)
    rows = streamed((75_001, 64), "f4")
    wide = streamed((11, 500_001), "f4")
    bytes_ = streamed((35, 500_001), "u1")
    image = streamed((30, 61, 1023, 3), "f4")
    small = streamed((70_001, 5, 9), "f4")
    order, columns = rng.permutation(75_001), rng.integers(0, 500_001, 480_000)
    for y, compute in [
        (rows[:, 3:62], lambda out: anydml.slice(rows, (0, 3), (75_001, 59), out=out)),
        (wide[:, ::-1], lambda out: anydml.slice(wide, (0, 0), wide.shape, (1, -1), out=out)),
        (bytes_[::-1], lambda out: anydml.slice(bytes_, (0, 0), bytes_.shape, (-1, 1), out=out)),
        (np.tile(wide[:1], (9, 1)), lambda out: anydml.tile(wide[:1], (9, 1), out=out)),
        (np.tile(rows[:, :3], (1, 23)), lambda out: anydml.tile(rows[:, :3], (1, 23), out=out)),
        (np.pad(wide, 3), lambda out: anydml.padding(wide, 3, 3, out=out)),
        (np.pad(wide[:2], [(0, 0), (0, 1_900_000)], "symmetric"),
         lambda out: anydml.padding(wide[:2], 0, (0, 1_900_000), mode="symmetric", out=out)),
        (np.pad(wide[0, :3], [(2_000_000, 2_500_000)], "reflect"),
         lambda out: anydml.padding(wide[0, :3], 2_000_000, 2_500_000, mode="reflection", out=out)),
        (np.pad(image, [(0, 0), (1, 1), (2, 2), (0, 0)], "edge"),
         lambda out: anydml.padding(image, (0, 1, 2, 0), (0, 1, 2, 0), mode="edge", out=out)),
        (np.pad(small, [(0, 0), (1, 1), (1, 1)], "reflect"),
         lambda out: anydml.padding(small, (0, 1, 1), (0, 1, 1), mode="reflection", out=out)),
        (image[..., 0].repeat(2, 1).repeat(3, 2), lambda out: anydml.upsample_2d(image[None, ..., 0], (2, 3),
         out=out[None])),
        (np.full((5, 1_000_001), 3.5, "f4"), lambda out: anydml.fill_value_constant((5, 1_000_001), 3.5, out=out)),
        (np.arange(5_000_001, dtype="i4") * 3, lambda out: anydml.fill_value_sequence(5_000_001, 0, 3, "i4", out=out)),
        (np.tri(3000, 2001, 5, "f4"), lambda out: anydml.diagonal_matrix((3000, 2001), diagonal_fill_begin=-(2**31),
         diagonal_fill_end=6, out=out)),
        (np.triu(wide, 3), lambda out: anydml.diagonal_matrix(x=wide, value=0, diagonal_fill_begin=-(2**31),
         diagonal_fill_end=3, out=out)),
        (np.array(anydml.random_generator(1, 5_000_001, device="reference")[0]),
         lambda out: anydml.random_generator(1, 5_000_001, out=[out, np.empty(6, "u4")])),
        (rows[order], lambda out: anydml.gather(rows, order, out=out)),
        (wide[[3, -1, 0, 7, 7, 7, 2, 9, 10]], lambda out: anydml.gather(wide, [3, -1, 0, 7, 7, 7, 2, 9, 10], out=out)),
        (bytes_[:, columns], lambda out: anydml.gather(bytes_, columns, 1, out=out)),
        (np.stack([wide, np.zeros_like(wide)], 2).reshape(11, -1),
         lambda out: anydml.slice_grad(wide, (11, 1_000_002), 0, (11, 1_000_001), (1, 2), out=out)),
        (np.stack([wide[:, :-1], wide[:, 1:]], 1),
         lambda out: anydml.unfold(wide[:, None], 2, out=out)),
        (np.concatenate([wide[:, 300_000::-1], wide[:, 300_001:]], 1),
         lambda out: anydml.reverse_subsequences(wide, 300_001, out=out)),
        (bytes_.astype("i4"), lambda out: anydml.cast(bytes_, "i4", out=out)),
        (bytes_.astype("i8").astype("f2"), lambda out: anydml.cast(bytes_.astype("i8"), "f2", out=out)),
    ]:  # fmt: skip
        assert y.nbytes >= STREAMED
        assert_computed(rng, y, compute, any_layout=False)


SCRIPT = """
import hashlib, numpy as np, anydml
digest = hashlib.sha256()
x = np.frombuffer(np.random.default_rng(0).bytes(4_000_000), "i4").reshape(1000, 1000)
floats = (x / 2**20).astype("f4")
for y in (
    anydml.slice(x.T, 0, (1000, 1000)), anydml.slice(x, 0, 1000, (1, -3)), anydml.padding(x, 3, 5, mode="reflection"),
    anydml.tile(x, (1, 2)), anydml.upsample_2d(floats[None, None], 3), anydml.gather(x, x[0] % 1000, 1),
    *(anydml.gather_elements(x, x % 1000, axis) for axis in (0, 1)),
    *(anydml.scatter_elements(x, x % 1000, x.T, axis) for axis in (0, 1)),
    anydml.scatter_elements(x.reshape(-1), x.reshape(-1) % 1000, x.T.reshape(-1)),
    anydml.gather_nd(x, x.reshape(-1, 2) % 1000), anydml.scatter_nd(x, x.reshape(-1, 2) % 1000, x.reshape(-1)[::2]),
    anydml.scatter_nd(x, x[:, :1] % 1000, x.T),
    anydml.scatter_elements(np.zeros(2**24, "u1"), np.tile(x.reshape(-1), 2) % 2**24, np.tile(x.T.astype("u1"), 2)
      .reshape(-1))[::13],
    anydml.scatter_nd(x.reshape(-1, 8), x.reshape(-1, 1)[:125_000] % 9000, x.T.reshape(-1, 8)),
    *(anydml.cast(each, dtype) for each in (x, floats, floats.astype("f2")) for dtype in ("u1", "i2", "u8", "f8")),
    anydml.fill_value_sequence(1_000_003, 0.5, 0.1, "f2"),
    anydml.depth_to_space(x.reshape(1, 4, 500, 500), 2), anydml.space_to_depth(x[None, None], 5, "column_row_depth"),
    anydml.unfold(x[None, None, :300, :300], 3, start_padding=1, end_padding=1),
    anydml.slice_grad(x[:, :200], (1000, 1000), 0, (1000, 996), (-1, 5)), anydml.reverse_subsequences(x, 777),
    anydml.random_generator(1, 1_000_003)[0],
    anydml.diagonal_matrix(x=x, value=0, diagonal_fill_begin=-5, diagonal_fill_end=500),
    *(anydml.fold(floats.astype(dtype).reshape(4, 50, 5000), (101, 51), (2, 5), dilations=(1, 1), end_padding=(0, 3))
      for dtype in ("f4", "f2", "i8")),
):
    digest.update(np.ascontiguousarray(y).tobytes())
print(digest.hexdigest())
"""


def test_the_same_bytes_on_every_instruction_set_and_number_of_threads() -> None:
    assert len(printed_everywhere(SCRIPT)) == 1


def test_more_elements_than_31_bits_count() -> None:
    """At both ends and where a count of so many bits ends."""
    size = 2**31 + 1000
    x = np.zeros(size, np.uint8)
    places = [0, 1, 2**31 - 2, 2**31 - 1, 2**31, size - 2, size - 1]
    x[places] = range(1, 8)
    y = anydml.slice(x, 0, size, -1)
    assert [y[size - 1 - place] for place in places] == [1, 2, 3, 4, 5, 6, 7]
    assert np.count_nonzero(y) == 7
    np.testing.assert_array_equal(anydml.gather(x, np.array(places)), [1, 2, 3, 4, 5, 6, 7])
