"""Element-wise operators where only large or strange tensors reach: tiles of all shapes, threads, streamed lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anydml import DML_BUFFER_TENSOR_DESC, Device
from anydml.core.strided_layout import DATA_TYPES
from anydml.operators import spec
from harness import GUARD

pytestmark = [pytest.mark.native, pytest.mark.slow]

STREAMED = (16 << 20) + 4096
"""Bytes from which an output is streamed, and some."""
DEVICE = Device("cpu")
RNG = np.random.default_rng(0)


def tensor_like(x: np.ndarray) -> DML_BUFFER_TENSOR_DESC:
    strides = tuple(stride // x.itemsize for stride in x.strides)
    return DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[x.dtype], Sizes=x.shape, Strides=strides)


def computed(operator: str, *arrays: np.ndarray, **options: Any) -> None:
    """The last array is the output."""
    found = spec(operator)
    desc = found.desc(**dict(zip(found.tensors, map(tensor_like, arrays), strict=True)), **options)
    compiled = DEVICE.compile_operator(DEVICE.create_operator(desc))
    assert compiled.engine == "cpu", compiled.explain()
    *inputs, output = arrays
    compiled.dispatch(inputs, [output])


def guarded(shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None, begin: int = 0) -> Any:
    """An output in poisoned memory, which begins so many bytes behind an aligned address; its element strides."""
    item = np.dtype(dtype).itemsize
    steps = strides or tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
    size = (1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))) * item
    memory = np.full(size + 3 * GUARD, 0xA5, np.uint8)
    offset = (begin - memory.ctypes.data) % GUARD + GUARD
    return memory, np.ndarray(shape, dtype, memory, offset, [step * item for step in steps])


def assert_only_elements(memory: np.ndarray, y: np.ndarray) -> None:
    """That all else is still poison."""
    written = y.copy()
    y.view(f"u{y.itemsize}")[...] = int.from_bytes(b"\xa5" * y.itemsize, "little")
    assert (memory == 0xA5).all()
    y[...] = written


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...] | None, tuple[int, ...] | None]] = [
    # sizes, the strides of b, those of the output
    ((1,), None, None),
    ((63,), None, None),
    ((64,), None, None),
    ((1025,), None, None),
    ((5, 1023), (0, 1), None),
    ((7, 2050), (1, 0), None),
    ((130, 3), (3, 1), (5, 1)),
    ((17, 200), None, (211, 1)),
    ((6, 701), (1, 0), (703, 1)),
    ((5, 129), (0, 1), (130, 1)),
    ((9, 600), None, (1300, 2)),
    ((70, 90), (1, 70), None),
    ((70, 90), (1, 70), (1, 70)),
    ((3, 33, 65), (65, 195, 1), None),
    ((4, 31, 40), (1, 4, 124), None),
    ((2, 3, 4, 5, 6), (0, 120, 0, 6, 1), None),
    ((33, 1, 35), (0, 0, 0), None),
    ((999, 77), (154, 2), None),
]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
@pytest.mark.parametrize(("shape", "strides", "out_strides"), SHAPES)
@pytest.mark.parametrize("begin", [0, 8])
def test_layouts(dtype: str, shape: tuple[int, ...], strides: Any, out_strides: Any, begin: int) -> None:
    a = RNG.integers(-50, 50, shape).astype(dtype)
    _, b = guarded(shape, dtype, strides)
    b.base[...] = RNG.integers(-50, 50, len(b.base) // b.itemsize + 1).astype(dtype).view(np.uint8)[: len(b.base)]
    memory, y = guarded(shape, dtype, out_strides, begin)
    computed("ELEMENT_WISE_SUBTRACT", a, b, y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(y, a - b)
    assert_only_elements(memory, y)


@pytest.mark.parametrize("begin", [0, 4, 36])
@pytest.mark.parametrize(("rows", "gap"), [(1, 0), (1000, 0), (1000, 24)])
def test_large_outputs(begin: int, rows: int, gap: int) -> None:
    """Streamed, from any place in a line, in rows with gaps between as well."""
    width = STREAMED // 4 // rows + 1
    a = RNG.standard_normal((rows, width), np.float32)
    b = np.broadcast_to(RNG.standard_normal(width, np.float32), a.shape)
    memory, y = guarded(a.shape, np.float32, (width + gap, 1), begin)
    computed("ELEMENT_WISE_ADD", a, b, y)
    np.testing.assert_array_equal(y, a + b)
    assert_only_elements(memory, y)


@pytest.mark.parametrize("operand", [0, 1])
def test_large_in_place(operand: int) -> None:
    arrays = [RNG.standard_normal(STREAMED // 4 + 7, np.float32) for _ in range(2)]
    expected = arrays[0] - arrays[1]
    computed("ELEMENT_WISE_SUBTRACT", *arrays, arrays[operand])
    np.testing.assert_array_equal(arrays[operand], expected)


@pytest.mark.parametrize("operator", ["ELEMENT_WISE_DIVIDE", "ELEMENT_WISE_MODULUS_TRUNCATE"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint64", "int64"])
def test_divisions_that_processors_refuse(operator: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    b = np.resize(np.array([0, 1, limits.max, limits.min, -1 if limits.min else 2], dtype), 1000)
    a = np.full(1000, limits.min or limits.max, dtype)
    y = np.empty_like(a)
    computed(operator, a, b, y)
    for i in range(5):
        x, d = int(a[i]), int(b[i])
        quotient = abs(x) // abs(d) * (1 if (x < 0) == (d < 0) else -1) if d else 0
        exact = (
            (quotient if operator.endswith("DIVIDE") else x - d * quotient)
            if d
            else limits.max
            if not limits.min
            else -1
        )
        wrapped = (exact - int(limits.min)) % 2**limits.bits + int(limits.min)
        assert (y[i::5] == wrapped).all(), (x, d)


@pytest.mark.parametrize("shape", [(7, 1021), (4, 65), (3001,)])
@pytest.mark.parametrize("strides", [(1, 0), (0, 1)])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_rows_in_place_are_computed_once(dtype: str, shape: tuple[int, ...], strides: tuple[int, int]) -> None:
    memory, y = guarded(shape, dtype, begin=12)
    y[...] = RNG.integers(-20, 20, shape)
    before = y.copy()
    steps = [step * y.itemsize for step in strides[-len(shape) :]]
    b = np.lib.stride_tricks.as_strided(RNG.integers(1, 9, max(shape)).astype(dtype), shape, steps)
    computed("ELEMENT_WISE_ADD", y, b, y)
    np.testing.assert_array_equal(y, before + b)
    assert_only_elements(memory, y)
