"""Properties of every engine, over random shapes, strides and values, against exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import anydml
from anydml import (
    DML_BUFFER_TENSOR_DESC,
    DML_CUMULATIVE_PRODUCT_OPERATOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    AxisDirection,
)
from anydml.core.strided_layout import DATA_TYPES
from exact import check_join, check_last, check_pooling, check_tally
from harness import ENGINES, POISONS, Memory, bits, compiled, run

pytestmark = pytest.mark.slow

TALLIED = [np.float32, np.float16, np.int32, np.uint32, np.int64, np.uint64]
property_test = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
engine = pytest.mark.parametrize("engine", ENGINES)


@st.composite
def shapes(draw: st.DrawFn, most: int = 300) -> tuple[int, ...]:
    """1 to 8 dimensions of odd and even sizes, ones among them."""
    sizes: list[int] = []
    for _ in range(draw(st.integers(1, 8))):
        left = most // prod(sizes)
        sizes.append(
            draw(st.sampled_from([n for n in (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 67, 130, 300) if n <= left]))
        )
    return tuple(draw(st.permutations(sizes)))


@st.composite
def strides(draw: st.DrawFn, sizes: Sequence[int], broadcast: bool = False) -> tuple[int, ...] | None:
    """Packed, or the dimensions in any order with gaps between elements and rows; where asked, some of them 0."""
    if draw(st.integers(0, 3)) == 0:
        return None
    result = [0] * len(sizes)
    step = draw(st.integers(1, 3))
    for i in draw(st.permutations(range(len(sizes)))):
        if broadcast and draw(st.integers(0, 3)) == 0:
            continue
        result[i] = step
        step = step * sizes[i] + draw(st.integers(0, 2))
    return tuple(result)


def values(dtype: Any, shape: Sequence[int], seed: int, kind: str) -> np.ndarray:
    """Ordinary numbers, or ones of every size, or with all that is special mixed in."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        if kind == "ordinary":
            return rng.integers(-3 if limits.min else 0, 4, shape).astype(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    limits = np.finfo(dtype)
    if kind == "ordinary":
        return rng.uniform(-2, 2, shape).astype(dtype)
    exponents = rng.integers(limits.minexp - limits.nmant, limits.maxexp, shape, endpoint=True)
    with np.errstate(all="ignore"):
        result = np.ldexp(rng.uniform(0.5, 1, shape) * rng.choice([-1.0, 1.0], shape), exponents).astype(dtype)
    result[np.isinf(result)] = limits.max
    if kind == "special":
        special = np.array(
            [0, -0.0, np.inf, -np.inf, np.nan, limits.max, -limits.max, limits.tiny, limits.smallest_subnormal]
        )
        chosen = rng.random(shape) < 0.15
        result[chosen] = rng.choice(special, shape).astype(dtype)[chosen]
    return result


def tally_desc(
    operation: str, x: DML_BUFFER_TENSOR_DESC, y: DML_BUFFER_TENSOR_DESC, axis: int, reverse: bool, exclusive: bool
):
    members = {
        "InputTensor": x,
        "OutputTensor": y,
        "Axis": axis,
        "AxisDirection": AxisDirection.DECREASING if reverse else AxisDirection.INCREASING,
    }
    if operation == "sum":
        return DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(**members, HasExclusiveSum=exclusive)
    return DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(**members, HasExclusiveProduct=exclusive)


@engine
@pytest.mark.parametrize("operation", ["sum", "product"])
@property_test
@given(data=st.data())
def test_tallies(engine: str, operation: str, data: st.DataObject) -> None:
    shape = data.draw(shapes())
    dtype = data.draw(st.sampled_from(TALLIED))
    axis = data.draw(st.integers(0, len(shape) - 1))
    reverse, exclusive, in_place = (data.draw(st.booleans()) for _ in range(3))
    written = data.draw(strides(shape))
    read = written if in_place else data.draw(strides(shape, broadcast=True))
    x, y = (
        DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[np.dtype(dtype)], Sizes=shape, Strides=s) for s in (read, written)
    )
    given_values = values(
        dtype, shape, data.draw(st.integers(0, 2**32)), data.draw(st.sampled_from(["ordinary", "any", "special"]))
    )
    # What a broadcast stride makes of the values.
    seen = Memory(x, 0, given_values).array.copy()
    desc = tally_desc(operation, x, y, axis, reverse, exclusive)
    if in_place:
        operator = compiled(engine, desc)
        results = []
        for poison in POISONS:
            memory = Memory(y, poison, seen)
            operator.dispatch([memory.array], [memory.array])
            memory.assert_only_elements_changed()
            results.append(memory.array.copy())
        np.testing.assert_array_equal(*(each.view(bits(each)) for each in results))
        result = results[0]
    else:
        (result,) = run(engine, desc, [seen])
    check_tally(operation, seen, result, axis, reverse, exclusive)


@engine
@pytest.mark.parametrize("operation", ["sum", "product"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("kind", ["ordinary", "any", "special"])
def test_long_tallies(engine: str, operation: str, dtype: type, kind: str) -> None:
    """Rows long enough to be cut into blocks, were the order of combining not kept."""
    for seed, length in enumerate((1000, 1025, 4097)):
        x = values(dtype, (2, length), seed, kind)
        if operation == "product" and kind == "ordinary":
            x = (1 + x / 64).astype(dtype)
        y = getattr(anydml, f"cumulative_{'summation' if operation == 'sum' else 'product'}")(x, device=engine)
        check_tally(operation, x[:, :64], y[:, :64], 1)
        for end in (65, 257, 700, length):
            check_last(operation, x[:, :end], y[:, end - 1])


@engine
@property_test
@given(data=st.data())
def test_join(engine: str, data: st.DataObject) -> None:
    shape = data.draw(shapes(100))
    axis = data.draw(st.integers(0, len(shape) - 1))
    dtype = data.draw(st.sampled_from(list(DATA_TYPES)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    pieces, tensors = [], []
    for _ in range(data.draw(st.integers(1, 6))):
        sizes = (*shape[:axis], data.draw(st.integers(1, 5)), *shape[axis + 1 :])
        tensor = DML_BUFFER_TENSOR_DESC(
            DataType=DATA_TYPES[dtype], Sizes=sizes, Strides=data.draw(strides(sizes, broadcast=True))
        )
        random_bits = np.frombuffer(rng.bytes(prod(sizes) * dtype.itemsize), dtype).reshape(sizes)
        pieces.append(Memory(tensor, 0, random_bits).array.copy())
        tensors.append(tensor)
    sizes = (*shape[:axis], sum(piece.shape[axis] for piece in pieces), *shape[axis + 1 :])
    out = DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[dtype], Sizes=sizes, Strides=data.draw(strides(sizes)))
    (result,) = run(engine, DML_JOIN_OPERATOR_DESC(InputTensors=tensors, OutputTensor=out, Axis=axis), pieces)
    check_join(pieces, result, axis)


SCALES = [1.0, 0.5, 0.25, 2.0, 3.0, 0.1, 0.0071, 1e-3, 123.456, 1e30, 1e-30, 2.0**-149, 3.4e38]


@engine
@property_test
@given(data=st.data())
def test_pooling(engine: str, data: st.DataObject) -> None:
    draw = data.draw
    spatial = draw(st.sampled_from([2, 2, 3]))
    kinds = [draw(st.sampled_from([np.uint8, np.int8])) for _ in range(2)]
    batch, channels = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    sizes, window, steps, start, end, dilations, out_sizes = [], [], [], [], [], [], []
    for _ in range(spatial):
        sizes.append(draw(st.integers(1, 6)))
        window.append(draw(st.integers(1, 4)))
        steps.append(draw(st.integers(1, 4)))
        dilations.append(draw(st.integers(1, 3)))
        extent = (window[-1] - 1) * dilations[-1] + 1
        start.append(draw(st.integers(0, 4)))
        missing = max(0, extent - sizes[-1] - start[-1])
        end.append(missing + draw(st.integers(0, 3)))
        whole, rest = divmod(sizes[-1] + start[-1] + end[-1] - extent, steps[-1])
        out_sizes.append(whole + 1 + (draw(st.integers(0, 1)) if rest else 0))
    include_padding = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x_sizes = (batch, channels, *sizes)

    def tensor(dtype: Any, sizes: Sequence[int], broadcast: bool = True) -> DML_BUFFER_TENSOR_DESC:
        return DML_BUFFER_TENSOR_DESC(
            DataType=DATA_TYPES[np.dtype(dtype)], Sizes=sizes, Strides=draw(strides(sizes, broadcast))
        )

    def every(dtype: Any, shape: Sequence[int]) -> np.ndarray:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)

    def quantisation(dtype: Any) -> tuple[DML_BUFFER_TENSOR_DESC | None, np.ndarray | None, np.ndarray]:
        """A desc, its values, and one value for each channel."""
        optional = dtype != np.float32
        if optional and draw(st.integers(0, 3)) == 0:
            return None, None, np.zeros(channels, dtype)
        count = draw(st.sampled_from([1, channels]))
        shape = draw(
            st.sampled_from([(1, count, 1, 1), (1, count, *[1] * spatial), *([(1,), (1, 1)] if count == 1 else [])])
        )
        found = (
            every(dtype, shape)
            if optional
            else np.array(draw(st.lists(st.sampled_from(SCALES), min_size=count, max_size=count)), np.float32).reshape(
                shape
            )
        )
        if not optional and draw(st.booleans()):
            found = np.full(shape, 2.0 ** draw(st.integers(-3, 3)), np.float32)  # ties are exact
        desc = tensor(dtype, shape, False)
        return desc, found, np.broadcast_to(found.ravel(), channels)

    scale, zero, out_scale, out_zero = (quantisation(kind) for kind in (np.float32, kinds[0], np.float32, kinds[1]))
    x_tensor = tensor(kinds[0], x_sizes)
    x = Memory(x_tensor, 0, every(kinds[0], x_sizes)).array.copy()
    if draw(st.booleans()):
        x = (x % 5).astype(kinds[0])  # many ties
        x = Memory(x_tensor, 0, x).array.copy()
    desc = DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(
        InputTensor=x_tensor,
        InputScaleTensor=scale[0],
        InputZeroPointTensor=zero[0],
        OutputScaleTensor=out_scale[0],
        OutputZeroPointTensor=out_zero[0],
        OutputTensor=tensor(kinds[1], (batch, channels, *out_sizes), False),
        Strides=steps,
        WindowSize=window,
        StartPadding=start,
        EndPadding=end,
        Dilations=dilations,
        IncludePadding=include_padding,
    )
    (y,) = run(engine, desc, [x, scale[1], zero[1], out_scale[1], out_zero[1]])
    check_pooling(
        x, y, scale[2], zero[2], out_scale[2], out_zero[2], window, steps, start, end, dilations, include_padding
    )


@st.composite
def views(draw: st.DrawFn, shape: Sequence[int], dtype: Any, seed: int) -> np.ndarray:
    """An array of a shape with strides that no desc has: backward, stepped, transposed, unaligned."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 2, -1, -2])) for _ in shape]
    base_shape = [shape[i] * abs(steps[i]) for i in order]
    item = np.dtype(dtype).itemsize
    offset = draw(st.sampled_from([0, 0, 1, 3]))
    memory = np.zeros(offset + prod(base_shape) * item, np.uint8)
    base = np.ndarray(base_shape, dtype, memory, offset).transpose(np.argsort(order))
    view = base[tuple(slice(None, None, step) for step in steps)]
    assert view.shape == tuple(shape)
    view[...] = values(dtype, shape, seed, draw(st.sampled_from(["ordinary", "special"])))
    return view


@engine
@pytest.mark.parametrize("operation", ["sum", "product"])
@property_test
@given(data=st.data())
def test_tallies_of_any_array(engine: str, operation: str, data: st.DataObject) -> None:
    """The functions, on arrays that no desc describes, into such arrays, and in-place."""
    shape = data.draw(shapes(100))
    dtype = data.draw(st.sampled_from(TALLIED))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    reverse, exclusive = data.draw(st.booleans()), data.draw(st.booleans())
    x = data.draw(views(shape, dtype, data.draw(st.integers(0, 2**32))))
    before = x.copy()
    out = data.draw(st.sampled_from(["new", "view", "in-place"]))
    target = {"new": None, "view": data.draw(views(shape, dtype, 0)), "in-place": x}[out]
    call = anydml.cumulative_summation if operation == "sum" else anydml.cumulative_product
    y = call(x, axis, exclusive=exclusive, reverse=reverse, out=target, device=engine)
    assert target is None or y is target
    if out != "in-place":
        np.testing.assert_array_equal(x.copy().view(bits(x)), before.view(bits(x)))
    check_tally(operation, before, np.ascontiguousarray(y), axis % len(shape), reverse, exclusive)
