"""What moves, repeats, converts and makes elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
import torch

from ....core.enums import InterpolationMode, PaddingMode
from ....core.strided_layout import DTYPES, Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.depth_space import is_depth_first
from ....operators.specs.gather_nd import dimensions_of
from ....operators.specs.padding import constant_of
from ....operators.specs.slice import starts_of
from ....operators.specs.unfold import blocks_of
from ...base import Declined
from . import NO_CALLS, Run, Tensors
from .values import LOWEST, bits, double, store, widened


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run | Declined:
    make = _PLANS.get(spec.name)
    return Declined(NO_CALLS) if make is None else make(desc)


# Copies of bits


def _slice(desc: Any) -> Run:
    windows = zip(desc.Offsets, desc.Sizes, desc.Strides, strict=True)
    places = tuple([slice(start, start + (size - 1) * step + 1, step) for start, size, step in windows])
    return lambda read, written: bits(written[0]).copy_(bits(read[0])[places])


def _windows(desc: Any, sizes: Sequence[int]) -> tuple[tuple[slice, ...], list[int]]:
    """The places of so many elements, in their order in the whole, and the dimensions that have the opposite one."""
    places, backward = [], []
    windows = zip(starts_of(desc), desc.InputWindowStrides, sizes, strict=True)
    for axis, (start, stride, size) in enumerate(windows):
        end = start + (size - 1) * stride
        places.append(slice(min(start, end), max(start, end) + 1, abs(stride)))
        if stride < 0:
            backward.append(axis)
    return tuple(places), backward


def _slice1(desc: Any) -> Run:
    places, backward = _windows(desc, desc.OutputTensor.Sizes)

    def run(read: Tensors, written: Tensors) -> None:
        x = bits(read[0])[places]
        bits(written[0]).copy_(x.flip(backward) if backward else x)

    return run


def _slice_grad(desc: Any) -> Run:
    places, backward = _windows(desc, desc.InputGradientTensor.Sizes)

    def run(read: Tensors, written: Tensors) -> None:
        x = bits(read[0])
        bits(written[0]).zero_()
        bits(written[0])[places].copy_(x.flip(backward) if backward else x)

    return run


def _depth_to_space(desc: Any) -> Run:
    deep, order = _depth(desc, desc.OutputTensor.Sizes[1])
    # That order's inverse: of the dimensions of depth, those of space.
    inverse = [order.index(axis) for axis in range(len(order))]

    def run(read: Tensors, written: Tensors) -> None:
        _blocks(written[0], desc.BlockSize).copy_(bits(read[0]).unflatten(1, deep).permute(inverse))

    return run


def _space_to_depth(desc: Any) -> Run:
    deep, order = _depth(desc, desc.InputTensor.Sizes[1])

    def run(read: Tensors, written: Tensors) -> None:
        bits(written[0]).unflatten(1, deep).copy_(_blocks(read[0], desc.BlockSize).permute(order))

    return run


def _blocks(image: Any, block: int) -> Any:
    """An image as {N, C, H / B, B, W / B, B}."""
    return bits(image).unflatten(3, (-1, block)).unflatten(2, (-1, block))


def _depth(desc: Any, channels: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What the channels of depth are made of, and the order in which depth has the dimensions of blocks."""
    block = desc.BlockSize
    if is_depth_first(desc):
        return (block, block, channels), (0, 3, 5, 1, 2, 4)
    return (channels, block, block), (0, 1, 3, 5, 2, 4)


def _unfold(desc: Any) -> Run:
    rank, blocks = len(desc.WindowSizes), blocks_of(desc)
    ends = zip(desc.StartPadding, desc.EndPadding, strict=True)
    padding = [each for both in reversed([*ends]) for each in both]
    windows = list(zip(desc.WindowSizes, desc.Strides, desc.Dilations, strict=True))
    # Of the batch, the channels, the blocks of each dimension, the taps of each.
    order = (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))

    def run(read: Tensors, written: Tensors) -> None:
        x = torch.nn.functional.pad(bits(read[0]), padding)
        for axis, (taps, stride, dilation) in enumerate(windows, 2):
            x = x.unfold(axis, (taps - 1) * dilation + 1, stride)[..., ::dilation]
        y = bits(written[0]).unflatten(2, blocks).unflatten(1, (-1, *desc.WindowSizes))
        y.copy_(x.permute(order))

    return run


def _reverse_subsequences(desc: Any) -> Run:
    size, axis = desc.InputTensor.Sizes[desc.Axis], desc.Axis
    behind = (1,) * (len(desc.InputTensor.Sizes) - 1 - axis)

    def run(read: Tensors, written: Tensors) -> None:
        x, lengths = bits(read[0]), widened(read[1])
        # Lengths from 2^63 on are negative ones of 64 bits.
        lengths = torch.where(lengths < 0, size, lengths.clamp(max=size))
        i = torch.arange(size, device=x.device).reshape(-1, *behind)
        bits(written[0]).copy_(x.gather(axis, torch.where(i < lengths, lengths - 1 - i, i)))

    return run


def _split(desc: Any) -> Run:
    sizes = [tensor.Sizes[desc.Axis] for tensor in desc.OutputTensors]
    starts = [0, *accumulate(sizes)]

    def run(read: Tensors, written: Tensors) -> None:
        x = bits(read[0])
        for out, start, size in zip(written, starts, sizes, strict=False):
            bits(out).copy_(x.narrow(desc.Axis, start, size))

    return run


def _there_and_back(i: Any, period: int, shift: int) -> Any:
    return torch.minimum(i % period, (-i - shift) % period)


_SOURCES: Mapping[PaddingMode, Callable[[Any, int], Any]] = {
    PaddingMode.EDGE: lambda i, size: i.clamp(0, size - 1),
    PaddingMode.REFLECTION: lambda i, size: _there_and_back(i, max(2 * size - 2, 1), 0),
    PaddingMode.SYMMETRIC: lambda i, size: _there_and_back(i, 2 * size, 1),
    PaddingMode.WRAP: lambda i, size: i % size,
}
"""The element, of so many, that stands at the places i of a padded axis, of which 0 is the first element's own."""


def _padding(desc: Any) -> Run:
    ends = list(zip(desc.InputTensor.Sizes, desc.StartPadding, desc.EndPadding, strict=True))
    if desc.PaddingMode == PaddingMode.CONSTANT:
        value = _as_bits(constant_of(desc))
        places = tuple([slice(start, start + size) for size, start, _ in ends])

        def run_constant(read: Tensors, written: Tensors) -> None:
            bits(written[0]).fill_(value)
            bits(written[0])[places].copy_(bits(read[0]))

        return run_constant

    def run(read: Tensors, written: Tensors) -> None:
        x = bits(read[0])
        for axis, (size, start, end) in enumerate(ends):
            if start or end:
                i = torch.arange(-start, size + end, device=x.device)
                x = x.index_select(axis, _SOURCES[desc.PaddingMode](i, size))
        bits(written[0]).copy_(x)

    return run


def _clamped(indices: Any, size: int) -> Any:
    """Indices of a dimension, counted from its begin. One that it does not have is nobody's element; here it is an
    end's, as GPUs give up a process that reads elsewhere. The device "cpu", and a GPU's with debug, refuse it."""
    i = widened(indices)
    return torch.where(i < 0, i + size, i).clamp(0, size - 1)


def _gather(desc: Any) -> Run:
    size, axis = desc.InputTensor.Sizes[desc.Axis], desc.Axis

    def run(read: Tensors, written: Tensors) -> None:
        i = _clamped(read[1].reshape(-1), size)
        bits(written[0]).copy_(bits(read[0]).index_select(axis, i).reshape(written[0].shape))

    return run


def _gather_elements(desc: Any) -> Run:
    size, axis = desc.InputTensor.Sizes[desc.Axis], desc.Axis
    return lambda read, written: bits(written[0]).copy_(bits(read[0]).gather(axis, _clamped(read[1], size)))


def _latest(shape: Sequence[int], axis: int, i: Any) -> Any:
    """The number of the last index along an axis that points to each place; -1 where none does. A maximum, as the order
    in which a GPU writes is not known."""
    numbers = torch.arange(i.shape[axis], device=i.device).reshape(-1, *(1,) * (i.ndim - axis - 1))
    latest = torch.full(tuple(shape), -1, dtype=torch.int64, device=i.device)
    return latest.scatter_reduce_(axis, i, numbers.expand(i.shape), "amax")


def _scatter_elements(desc: Any) -> Run:
    size, axis = desc.InputTensor.Sizes[desc.Axis], desc.Axis

    def run(read: Tensors, written: Tensors) -> None:
        latest = _latest(read[0].shape, axis, _clamped(read[1], size))
        updates = bits(read[2]).gather(axis, latest.clamp(min=0))
        bits(written[0]).copy_(torch.where(latest < 0, bits(read[0]), updates))

    return run


def _linear(desc: Any, indices: Any) -> Any:
    """For each batch the tuples, as indices of all that they may point to."""
    batch, indexed, _, tuples = dimensions_of(desc)
    sizes, count = desc.InputTensor.Sizes, prod(desc.IndicesTensor.Sizes[i] for i in tuples[: len(batch)])
    linear: Any = 0
    for coordinate, dimension in enumerate(indexed):
        linear = linear * sizes[dimension] + _clamped(indices[..., coordinate], sizes[dimension])
    return linear.reshape(count, -1)


def _gather_nd(desc: Any) -> Run:
    _, indexed, slices, _ = dimensions_of(desc)
    pointed, size = (prod(desc.InputTensor.Sizes[i] for i in each) for each in (indexed, slices))

    def run(read: Tensors, written: Tensors) -> None:
        i = _linear(desc, read[1])
        x = bits(read[0]).reshape(-1, pointed, size)
        y = x.gather(1, i[:, :, None].expand(-1, -1, size))
        bits(written[0]).copy_(y.reshape(written[0].shape))

    return run


def _scatter_nd(desc: Any) -> Run:
    _, indexed, slices, _ = dimensions_of(desc)
    pointed, size = (prod(desc.InputTensor.Sizes[i] for i in each) for each in (indexed, slices))

    def run(read: Tensors, written: Tensors) -> None:
        latest = _latest([pointed], 0, _linear(desc, read[1])[0])
        updates = bits(read[2]).reshape(-1, size).index_select(0, latest.clamp(min=0))
        y = torch.where(latest[:, None] < 0, bits(read[0]).reshape(pointed, size), updates)
        bits(written[0]).copy_(y.reshape(written[0].shape))

    return run


def _one_hot(desc: Any) -> Run:
    size, axis = desc.OutputTensor.Sizes[desc.Axis], desc.Axis
    is_signed = DTYPES[desc.IndicesTensor.DataType].kind == "i"

    def run(read: Tensors, written: Tensors) -> None:
        i, values = widened(read[0]), bits(read[1]).reshape(-1)
        place = torch.arange(size, device=i.device).reshape([-1 if d == axis else 1 for d in range(i.ndim)])
        i = torch.where(i < 0, i + size, i) if is_signed else i
        bits(written[0]).copy_(torch.where(i == place, values[1], values[0]))

    return run


# Values


def _as_bits(value: Any) -> int:
    """A NumPy scalar as the integer that `bits` sees: a signed one, but of 8 bits."""
    item = value.dtype.itemsize
    return int(value.view(np.dtype("u1" if item == 1 else f"i{item}")))


def _cast(desc: Any) -> Run:
    source, target = (DTYPES[tensor.DataType] for tensor in (desc.InputTensor, desc.OutputTensor))
    if source == target:
        return lambda read, written: bits(written[0]).copy_(bits(read[0]))
    if source.kind != "f" and target.kind == "f":
        # PyTorch's own conversion, which knows unsigned integers.
        return lambda read, written: written[0].copy_(read[0])
    return lambda read, written: store(read[0] if source.kind == "f" else widened(read[0]), written[0])


def _value(value: float, data_type: Any) -> Any:
    dtype = DTYPES[data_type]
    with np.errstate(over="ignore"):
        return np.array(value if dtype.kind == "f" else int(value)).astype(dtype)


def _constant(desc: Any) -> Run:
    value = _as_bits(_value(desc.Value, desc.ValueDataType))
    return lambda read, written: bits(written[0]).fill_(value)


def _sequence(desc: Any) -> Run:
    start, delta = (_value(each, desc.ValueDataType) for each in (desc.ValueStart, desc.ValueDelta))
    is_float = start.dtype.kind == "f"
    # Integers modulo 2^64, as signed ones.
    first, step = (float(x) if is_float else (int(x) - LOWEST) % 2**64 + LOWEST for x in (start, delta))

    def run(read: Tensors, written: Tensors) -> None:
        out = written[0]
        dtype = torch.float64 if is_float else torch.int64
        y = torch.arange(out.numel(), dtype=torch.int64, device=out.device).to(dtype) * step + first
        y[0].fill_(first)
        store(y.reshape(out.shape), out)

    return run


# Images


def _upsample(desc: Any) -> Run:
    height, width = desc.ScaleSize.Height, desc.ScaleSize.Width
    if desc.InterpolationMode == InterpolationMode.NEAREST_NEIGHBOR:

        def run_nearest(read: Tensors, written: Tensors) -> None:
            out = bits(written[0]).unflatten(-1, (-1, width)).unflatten(-3, (-1, height))
            out.copy_(bits(read[0])[..., :, None, :, None].expand(out.shape))

        return run_nearest

    def run(read: Tensors, written: Tensors) -> None:
        y = _between(_between(double(read[0]), -2, height), -1, width)
        store(y / float(4 * height * width), written[0])

    return run


def _between(x: Any, axis: int, scale: int) -> Any:
    """Interpolated along an axis, times 2 * scale: weights are whole, and one division rounds at the end."""
    size = x.shape[axis]
    # (o + 1/2) / scale - 1/2 = i + k / (2 * scale)
    at = 2 * torch.arange(size * scale, device=x.device) + 1 - scale
    i, k = at.div(2 * scale, rounding_mode="floor"), (at % (2 * scale)).reshape(-1, *(1,) * (-axis - 1))
    low, high = (x.index_select(axis, each.clamp(0, size - 1)) for each in (i, i + 1))
    return torch.where(k == 0, low * (2 * scale), low * (2 * scale - k) + high * k)


def _value_scale(desc: Any) -> Run:
    def run(read: Tensors, written: Tensors) -> None:
        y = double(read[0]) * desc.Scale
        for channel, bias in enumerate(desc.Bias):
            y[:, channel] += bias
        store(y, written[0])

    return run


def _tile(desc: Any) -> Run:
    """Along each dimension the output is two, of which the input has the second, and repeats it along the first."""

    def run(read: Tensors, written: Tensors) -> None:
        x, y = bits(read[0]), bits(written[0])
        for axis in reversed(range(x.ndim)):
            x, y = x.unsqueeze(axis), y.unflatten(axis, (desc.Repeats[axis], x.shape[axis]))
        y.copy_(x)

    return run


_PLANS: dict[str, Callable[[Any], Run]] = {
    "SLICE": _slice,
    "SLICE1": _slice1,
    "SLICE_GRAD": _slice_grad,
    "DEPTH_TO_SPACE": _depth_to_space,
    "DEPTH_TO_SPACE1": _depth_to_space,
    "SPACE_TO_DEPTH": _space_to_depth,
    "SPACE_TO_DEPTH1": _space_to_depth,
    "UNFOLD": _unfold,
    "REVERSE_SUBSEQUENCES": _reverse_subsequences,
    "SPLIT": _split,
    "PADDING": _padding,
    "PADDING1": _padding,
    "TILE": _tile,
    "GATHER": _gather,
    "GATHER_ELEMENTS": _gather_elements,
    "SCATTER_ELEMENTS": _scatter_elements,
    "GATHER_ND": _gather_nd,
    "GATHER_ND1": _gather_nd,
    "SCATTER_ND": _scatter_nd,
    "ONE_HOT": _one_hot,
    "CAST": _cast,
    "FILL_VALUE_CONSTANT": _constant,
    "FILL_VALUE_SEQUENCE": _sequence,
    "UPSAMPLE_2D": _upsample,
    "VALUE_SCALE_2D": _value_scale,
}
