"""Scans of shapes that reach what small ones do not: blocks, windows, strips, several threads, and floats whose
products leave the range of the type that holds their accumulator."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from anydml import cumulative_product, cumulative_summation
from exact import check_last, check_tally
from harness import bits

pytestmark = [pytest.mark.native, pytest.mark.slow]

BLOCK = 1024
FUNCTIONS = {"sum": cumulative_summation, "product": cumulative_product}
T = TypeVar("T")
INTEGERS = (np.int32, np.uint32, np.int64, np.uint64)
SHAPES = [
    *[((n,), 0) for n in (15, 16, 17, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5, 100_003)],
    *[((50, n), 1) for n in (1, 5, 15, 16, 33, 127, 128, 200, 255, 256, BLOCK // 2, BLOCK // 2 + 1, BLOCK + 2)],
    *[((300, columns), 0) for columns in (3, 8, 9, 65, 100, 128, 129, 200, 256, 257, BLOCK, 2 * BLOCK + 17)],
    *[((7, 40, columns), 1) for columns in (2, 8, 33, 700)],
]

rng = np.random.default_rng(3)


def assert_equal(found: np.ndarray, expected: np.ndarray) -> None:
    """In one pass where they are equal; what differs is said by NumPy, whose own comparison takes several."""
    if not np.array_equal(found, expected):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("operation", FUNCTIONS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_integers(operation: str, dtype: type, shape: tuple[int, ...], axis: int) -> None:
    """Against NumPy, which wraps too; new memory, in place, unaligned, transposed."""
    x = rng.integers(0, 2**31, shape).astype(dtype) | dtype(1)
    ufunc = np.add if operation == "sum" else np.multiply
    expected = ufunc.accumulate(x, axis=axis, dtype=dtype)
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(dtype).reshape(shape)
    unaligned[...] = x
    for given in (x, np.asfortranarray(x), unaligned):
        assert_equal(FUNCTIONS[operation](given, axis, device="cpu"), expected)
    assert_equal(FUNCTIONS[operation](unaligned, axis, out=unaligned, device="cpu"), expected)
    backward = FUNCTIONS[operation](np.flip(x, axis), axis, reverse=True, exclusive=True, device="cpu")
    before = np.roll(expected, 1, axis)
    before[(slice(None),) * axis + (0,)] = ufunc.identity
    assert_equal(np.flip(backward, axis), before)


STREAMED = 17 << 20
"""Bytes of outputs that go around the caches."""


@pytest.mark.parametrize(("dtype", "reverse", "exclusive"), [(np.int32, False, False), (np.int64, True, True)])
@pytest.mark.parametrize(
    ("tail", "axis"),
    [
        ((), 0),
        ((3,), 0),
        ((7,), 1),
        ((31,), 1),
        ((31,), 0),
        ((256,), 1),
        ((300,), 0),
        ((700,), 0),
        ((9 * BLOCK,), 0),
        ((9 * BLOCK + 5,), 0),
        ((5, 1029), 1),
        ((2 * BLOCK + 77,), 1),
        ((40, 3), 1),
        ((13, 17), 1),
    ],
)
def test_streamed_integers(dtype: type, reverse: bool, exclusive: bool, tail: tuple[int, ...], axis: int) -> None:
    """Against NumPy: new memory, in place, unaligned; input transposed, with gaps between rows and elements."""
    length = STREAMED // np.dtype(dtype).itemsize // max(int(np.prod(tail)), 1) + 5
    x = rng.integers(0, 2**31, (length, *tail)).astype(dtype)
    step = slice(None, None, -1) if reverse else slice(None)
    along = (*[slice(None)] * axis, step)
    expected = np.add.accumulate(x[along], axis=axis, dtype=dtype)[along]
    if exclusive:
        expected = expected - x
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(dtype).reshape(x.shape)
    unaligned[...] = x
    wide = np.zeros((*x.shape[:-1], x.shape[-1] + 3), dtype)
    wide[..., :-3] = x
    spread = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), dtype)
    spread[..., ::2] = x
    options = {"reverse": reverse, "exclusive": exclusive, "device": "cpu"}
    for given in (x, np.asfortranarray(x), unaligned, wide[..., :-3], spread[..., ::2]):
        assert_equal(cumulative_summation(given, axis, **options), expected)
    assert_equal(cumulative_summation(unaligned, axis, out=unaligned, **options), expected)


def exact(
    operation: str, dtype: type, shape: tuple[int, ...], axis: int, reverse: bool, exclusive: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Values whose scans any order of combining finds exactly, and these: from -1 to 1, or of products a half to 2;
    of integers 1 and -1."""
    scans = rng.integers(-1, 2, shape).astype(np.int8)
    if operation == "product" and np.dtype(dtype).kind != "f":
        scans |= np.int8(1)
        earlier = np.roll(scans, 1, axis)
        earlier[(slice(None),) * axis + (0,)] = 1
        x, expected = (scans * earlier).astype(dtype), scans.astype(dtype)
    else:
        steps = np.diff(scans, axis=axis, prepend=np.int8(0))
        # By a table, as half precision is slow to compute.
        values = (np.arange(-2.0, 3) if operation == "sum" else np.exp2(np.arange(-2.0, 3))).astype(dtype)
        x, expected = (np.take(values, each + np.int8(2)) for each in (steps, scans))
    if exclusive:
        expected = np.roll(expected, 1, axis)
        expected[(slice(None),) * axis + (0,)] = dtype(operation == "product")
    if reverse:
        x, expected = (np.ascontiguousarray(np.flip(each, axis)) for each in (x, expected))
    return x, expected


@pytest.mark.parametrize("operation", FUNCTIONS)
@pytest.mark.parametrize(("dtype", "reverse", "exclusive"), [(np.float32, False, False), (np.float16, True, True)])
@pytest.mark.parametrize(
    ("tail", "axis"),
    [
        ((), 0),
        ((3,), 0),
        ((31,), 1),
        ((300,), 0),
        ((1021,), 1),
        ((2 * BLOCK,), 1),
        ((13, 17), 1),
        ((29, 7), 1),
        ((29, 9), 1),
        ((1021, 3), 1),
        ((29, 65), 1),
        ((9 * BLOCK + 5,), 0),
        ((5, 1283), 1),
    ],
)
def test_streamed_floats(
    operation: str, dtype: type, reverse: bool, exclusive: bool, tail: tuple[int, ...], axis: int
) -> None:
    """Of scans that any order of combining finds exactly: new memory, in place, unaligned, gapped, transposed."""
    length = STREAMED // np.dtype(dtype).itemsize // max(int(np.prod(tail)), 1) + 5
    x, expected = exact(operation, dtype, (length, *tail), axis, reverse, exclusive)
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(dtype).reshape(x.shape)
    unaligned[...] = x
    wide = np.zeros((*x.shape[:-1], x.shape[-1] + 3), dtype)
    wide[..., :-3] = x
    options = {"reverse": reverse, "exclusive": exclusive, "device": "cpu"}
    for given in (x, unaligned, wide[..., :-3], np.asfortranarray(x)):
        assert_equal(FUNCTIONS[operation](given, axis, **options), expected)
    assert_equal(FUNCTIONS[operation](unaligned, axis, out=unaligned, **options), expected)


KINDS = (np.float32, np.float16, np.int32, np.int64)


def two_of(ways: Sequence[T], dtype: type, number: int) -> Sequence[T]:
    """Of four ways every other one, such that each meets each shape, by its number, and each type."""
    return ways[(KINDS.index(dtype) + number) % 2 :: 2]


ROWS = (16, 17, 23, 31, 100, 1000, 1021, 3 * BLOCK + 5)


@pytest.mark.parametrize("operation", FUNCTIONS)
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("size", ROWS)
def test_streamed_rows_that_begin_anywhere(operation: str, dtype: type, size: int) -> None:
    """Some elements from where memory is aligned, one behind the other or with gaps, which stay as they are."""
    rows = STREAMED // np.dtype(dtype).itemsize // size + 3
    ways = ((1, 0, False, False), (3, 0, True, True), (2, 1, True, False), (5, 8, False, True))
    for start, gap, reverse, exclusive in two_of(ways, dtype, ROWS.index(size)):
        x, expected = exact(operation, dtype, (rows, size), 1, reverse, exclusive)
        around = np.full(rows * (size + gap) + 64, 77, dtype)
        out = around[start : start + rows * (size + gap)].reshape(rows, size + gap)[:, :size]
        FUNCTIONS[operation](x, 1, out=out, reverse=reverse, exclusive=exclusive, device="cpu")
        assert_equal(out, expected)
        out[...] = 77
        assert (around == 77).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("operation", FUNCTIONS)
@pytest.mark.parametrize(("reverse", "exclusive"), [(False, False), (True, True)])
@pytest.mark.parametrize("columns", range(2, 9))
def test_few_columns(operation: str, dtype: type, reverse: bool, exclusive: bool, columns: int) -> None:
    """Of scans that any order of combining finds exactly, and rows that end within a vector, or within a pair: in
    place, with gaps, and cut into blocks."""
    options = {"reverse": reverse, "exclusive": exclusive, "device": "cpu"}
    for length in (1, 2, 3, 5, 8, 341, 1021, 40_000):
        x, expected = exact(operation, dtype, (3, length, columns), 1, reverse, exclusive)
        wide = np.full((3, length, columns + 1), np.nan, dtype)
        wide[..., :-1] = x
        for given, out in ((x, None), (wide[..., :-1], None), (x, x), (wide[..., :-1], wide[..., :-1])):
            assert_equal(FUNCTIONS[operation](given, 1, out=out, **options), expected)
        assert np.isnan(wide[..., -1]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("operation", FUNCTIONS)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((70, 3 * BLOCK), 1), ((3 * BLOCK, 70), 0), ((9 * BLOCK, 5), 0), ((90, 300), 1), ((523, 4 * BLOCK), 1)],
)
def test_layouts_of_floats(operation: str, dtype: type, shape: tuple[int, ...], axis: int) -> None:
    """However the input lies, the last of each line keeps the promise."""
    x = (1 + rng.standard_normal(shape) / 64).astype(dtype)
    spread = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)
    spread[..., ::2] = x
    checked: list[bytes] = []
    for given in (x, np.asfortranarray(x), spread[..., ::2]):
        y = FUNCTIONS[operation](given, axis, device="cpu")
        last = np.moveaxis(y, axis, -1)[:6, ..., -1]
        # Exact sums and products take long; the same bits as before are as right.
        if last.tobytes() not in checked:
            check_last(operation, np.moveaxis(x, axis, -1)[:6], last)
            checked.append(last.tobytes())


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("exponent", [-14, -3, 3, 14])
def test_products_that_come_back(dtype: type, exponent: int) -> None:
    """Out of the accumulator's range for most of a block, or so far that lines are skipped, and in it again."""
    base = dtype(2.0**exponent)
    size = 4 * BLOCK
    x = np.where(np.arange(size) % 2000 < 1000, base, 1 / base).astype(dtype)
    zero = x.copy()
    zero[3 * BLOCK + 7] = 0
    for row in (x, x[::-1].copy(), zero):
        for end in range(1000, size, 331):
            check_last("product", row[None, :end], cumulative_product(row[:end], device="cpu")[-1:])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_far_below(dtype: type, value: float) -> None:
    """Where a product is nothing but 0 for long: whichever of infinity and NaN follows, it stays."""
    for size, place in ((900, 700), (900, 703), (3 * BLOCK, 2 * BLOCK + 5)):
        x = np.full(size, 2.0**-14, dtype)
        x[place] = value
        for exclusive in (False, True):
            y = cumulative_product(x, exclusive=exclusive, device="cpu")
            first = place + exclusive
            assert (y[40:first] == 0).all()
            assert not np.isfinite(y[first:]).any()


def extremes(dtype: type, size: int) -> dict[str, np.ndarray]:
    """Factors whose products come near the limits of their scans, or go beyond."""
    big = 1e30 if dtype is np.float32 else 6e4
    tiny = float(np.finfo(dtype).smallest_subnormal)
    mixed = np.where(rng.random(size) < 0.5, big, 1 / big)
    zero, infinite, nan = (np.where(rng.random(size) < 0.5, 1.25, -0.75) for _ in range(3))
    zero[size * 2 // 3] = 0
    infinite[size - 2] = np.inf
    nan[size // 2] = np.nan
    return {
        "alternating": np.tile([big, 1 / big], size)[:size],
        "mixed": mixed,
        "rising and falling": np.concatenate([np.full(size // 2, big), np.full(size - size // 2, 1 / big)]),
        "falling and rising": np.concatenate([np.full(size // 2, 1 / big), np.full(size - size // 2, big)]),
        "subnormal": np.tile([tiny, 1, 1, 1, 1, big], size)[:size],
        "zero among large": np.where(np.arange(size) == 33, 0, big),
        "zero": zero,
        "infinite": infinite,
        "nan": nan,
    }


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("operation", FUNCTIONS)
def test_extreme_floats(operation: str, dtype: type, reverse: bool) -> None:
    for size in (18, 70):
        for values in extremes(dtype, size).values():
            x = values.astype(dtype)[::-1].copy() if reverse else values.astype(dtype)
            for exclusive in (False, True):
                y = FUNCTIONS[operation](x, reverse=reverse, exclusive=exclusive, device="cpu")
                check_tally(operation, x, y, 0, reverse, exclusive)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("operation", FUNCTIONS)
@pytest.mark.parametrize("size", [BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_extreme_floats_across_blocks(operation: str, dtype: type, size: int) -> None:
    x = np.stack(list(extremes(dtype, size).values())).astype(dtype)
    check_last(operation, x, FUNCTIONS[operation](x, device="cpu")[:, -1])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("operation", FUNCTIONS)
@pytest.mark.parametrize("size", [BLOCK - 1, BLOCK + 37, 3 * BLOCK + 37])
def test_in_place_gives_the_same_bits(operation: str, dtype: type, size: int) -> None:
    """Of one row, whose last block does not fill a line; in range, and where a product leaves it."""
    for values in (rng.uniform(0.9, 1.1, size), *extremes(dtype, size).values()):
        x = values.astype(dtype)
        for reverse, exclusive in product((False, True), repeat=2):
            mode = {"reverse": reverse, "exclusive": exclusive, "device": "cpu"}
            y = FUNCTIONS[operation](x, **mode)
            written = x.copy()
            FUNCTIONS[operation](written, out=written, **mode)
            assert_equal(written.view(bits(y)), y.view(bits(y)))


@pytest.mark.parametrize("place", [BLOCK - 1, BLOCK, BLOCK + 1])
@pytest.mark.parametrize(("value", "then"), [(0.0, 0.0), (np.inf, np.inf), (np.nan, np.nan)])
def test_what_never_ends(place: int, value: float, then: float) -> None:
    """From a zero, an infinity or a NaN on, at the border of a block, a product is that."""
    x = np.where(np.arange(3 * BLOCK) % 2, 2, 0.5).astype(np.float32)
    x[place] = value
    y = cumulative_product(x, device="cpu")
    assert np.isin(y[:place], [0.5, 1]).all()
    assert_equal(y[place:], np.full(3 * BLOCK - place, then, np.float32))


HASH = """
import hashlib, numpy as np
from anydml import cumulative_product, cumulative_summation
rng, digest = np.random.default_rng(7), hashlib.sha256()
for dtype in (np.float32, np.float16):
    for shape, axis in (((700_001,), 0), ((3, 70_000), 1), ((999, 77), 1), ((500, 333), 0), ((9, 50, 40), 1),
                        ((9, 5000, 17), 1), ((1000, 9221), 0), ((200_001, 3), 0), ((9, 1021, 7), 1)):
        x = rng.standard_normal(shape).astype(dtype)
        for reverse in (False, True):
            for y in (cumulative_summation(x, axis, reverse=reverse, device="cpu"),
                      cumulative_product(1 + x / 64, axis, reverse=reverse, device="cpu")):
                digest.update(y.tobytes())
        digest.update(cumulative_summation(x, axis, out=x, device="cpu").tobytes())
    # Wherever rows begin, between lines of the caches.
    x = 1 + rng.standard_normal((700, 333)).astype(dtype) / 64
    for first in range(64 // x.itemsize):
        y = np.empty(x.size + first, dtype)[first:].reshape(x.shape)
        digest.update(cumulative_product(x, 0, out=y, device="cpu").tobytes())
print(digest.hexdigest())
"""


def test_same_bits_for_every_thread_count_and_instruction_set() -> None:
    source = str(Path(sys.modules["anydml"].__file__).parents[1])
    hashes = set()
    for settings in (*({"OMP_NUM_THREADS": n} for n in ("1", "3", "11")), {"ANYDML_CPU": "baseline"}):
        environment = {**os.environ, "PYTHONPATH": source, **settings}
        done = subprocess.run([sys.executable, "-c", HASH], env=environment, capture_output=True, text=True, check=True)
        hashes.add(done.stdout)
    assert len(hashes) == 1


COLUMNS = (*((70, n) for n in (2, 3, 7, 8, 9, 15, 17, 31, 33, 64, 65, 130, 513)), (20_011, 3), (20_011, 7))


@pytest.mark.parametrize("operation", FUNCTIONS)
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(("rows", "width"), COLUMNS)
def test_streamed_columns_that_begin_anywhere(operation: str, dtype: type, rows: int, width: int) -> None:
    """Columns side by side, in planes that follow each other, also cut into blocks: what lies around these stays as it
    is."""
    planes = STREAMED // np.dtype(dtype).itemsize // width // rows + 1
    ways = ((0, False, True), (1, False, False), (3, True, True), (8, False, False))
    for start, reverse, exclusive in two_of(ways, dtype, COLUMNS.index((rows, width))):
        x, expected = exact(operation, dtype, (planes, rows, width), 1, reverse, exclusive)
        around = np.full(x.size + 64, 77, dtype)
        out = around[start : start + x.size].reshape(x.shape)
        FUNCTIONS[operation](x, 1, out=out, reverse=reverse, exclusive=exclusive, device="cpu")
        assert_equal(out, expected)
        out[...] = 77
        assert (around == 77).all()
