"""What moves, repeats, converts and makes elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from ....core.enums import InterpolationMode, PaddingMode
from ....core.strided_layout import DTYPES, Layout
from ....operators.constraints import rounded
from ....operators.schema import OperatorDesc, OperatorSpec
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


def _slice1(desc: Any) -> Run:
    places, backward = [], []
    windows = zip(desc.InputWindowOffsets, desc.InputWindowSizes, desc.InputWindowStrides, strict=True)
    for axis, ((offset, window, stride), size) in enumerate(zip(windows, desc.OutputTensor.Sizes, strict=True)):
        span = (size - 1) * abs(stride)
        start = offset if stride > 0 else offset + window - 1 - span
        places.append(slice(start, start + span + 1, abs(stride)))
        if stride < 0:
            backward.append(axis)

    def run(read: Tensors, written: Tensors) -> None:
        x = bits(read[0])[tuple(places)]
        bits(written[0]).copy_(x.flip(backward) if backward else x)

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
        dtype = DTYPES[desc.OutputTensor.DataType]
        with np.errstate(over="ignore"):
            value = _as_bits(rounded(np.array(desc.PaddingValue), dtype))
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


def _gather(desc: Any) -> Run:
    size, axis = desc.InputTensor.Sizes[desc.Axis], desc.Axis

    def run(read: Tensors, written: Tensors) -> None:
        x, i = bits(read[0]), widened(read[1]).reshape(-1)
        # An index that the axis does not have is nobody's element; here it is an end's, as GPUs give up a process
        # that reads elsewhere. The device "cpu", and a GPU's with debug, refuse it.
        i = torch.where(i < 0, i + size, i).clamp(0, size - 1)
        bits(written[0]).copy_(x.index_select(axis, i).reshape(written[0].shape))

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
        y[0] = first
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
    "SPLIT": _split,
    "PADDING": _padding,
    "TILE": _tile,
    "GATHER": _gather,
    "ONE_HOT": _one_hot,
    "CAST": _cast,
    "FILL_VALUE_CONSTANT": _constant,
    "FILL_VALUE_SEQUENCE": _sequence,
    "UPSAMPLE_2D": _upsample,
    "VALUE_SCALE_2D": _value_scale,
}
