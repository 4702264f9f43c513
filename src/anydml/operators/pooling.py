"""QUANTIZED_LINEAR_AVERAGE_POOLING: averages of quantised values in a sliding window."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from ..enums import OperatorType
from ..layout import Array, Layout
from ..schema import (
    BOOL,
    Broken,
    Choices,
    Count,
    OperatorDesc,
    OperatorSpec,
    OptionalTensor,
    Tensor,
    UINTs,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(OperatorDesc):
    """Averages quantised values in a sliding window, as if they were dequantised first and the average quantised.

    With S the exact sum of (x - input zero point) over the taps counted, an output is
    round_half_even((S * input_scale) / (count * output_scale)), in double precision, plus the output zero point,
    saturated. Padding counts as the real number 0, and is counted where IncludePadding is true. A tap beyond the
    padded extent (which only an output size rounded up has) is never counted; a window without any tap counted gives
    the output zero point. Not in-place.

    Args:
        InputTensor: {BatchCount, ChannelCount, Height, Width}, or {..., Depth, Height, Width} in 5-D.
        InputScaleTensor: {1, 1, 1, 1} for one scale, {1, ChannelCount, 1, 1} for one per channel.
        InputZeroPointTensor: like the scale; None for 0.
        OutputScaleTensor: like InputScaleTensor, of either shape.
        OutputZeroPointTensor: like the scale; None for 0.
        OutputTensor: the quantised averages.
        DimensionCount: the number of spatial dimensions, 2 or 3; derived from the arrays that follow.
        Strides: steps of the window, for each spatial dimension.
        WindowSize: taps of the window.
        StartPadding: elements of padding before the input.
        EndPadding: elements of padding behind the input.
        Dilations: distance of neighbouring taps; 1 for a dense window.
        IncludePadding: whether padding counts in the divisor.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DimensionCount.
        (C2) InputTensor and InputZeroPointTensor have the same DataType.
        (C3) OutputTensor and OutputZeroPointTensor have the same DataType.
        (C4) DimensionCount is 2 less than the DimensionCount of InputTensor.
        (C5) Strides, WindowSize and Dilations are at least 1.
        (C6) Scales and zero points are per tensor or per channel, each for itself. Fewer dimensions than the
            input's are its trailing ones, so that {ChannelCount} would mean its width.
        (C7) The window's extent, (WindowSize - 1) * Dilation + 1, is at most the padded size.
        (C8) OutputTensor has the sizes of the batch and the channels, and in each spatial dimension
            floor((padded size - extent) / stride) + 1, or the same rounded up, but on a strict device.
        (V1) Scales are greater than 0 and finite.

    Source: the page of DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC; since feature level 6.2. The page is silent
    on dilation's extent, on output sizes rounded up, on negative and infinite scales; what is said of them here is
    this project's decision.
    """

    InputTensor: Tensor
    InputScaleTensor: Tensor
    InputZeroPointTensor: OptionalTensor = None
    OutputScaleTensor: Tensor
    OutputZeroPointTensor: OptionalTensor = None
    OutputTensor: Tensor
    DimensionCount: Count = None
    Strides: UINTs
    WindowSize: UINTs
    StartPadding: UINTs
    EndPadding: UINTs
    Dilations: UINTs
    IncludePadding: BOOL = False

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "DimensionCount": ("Strides", "WindowSize", "StartPadding", "EndPadding", "Dilations")
    }


_Desc = DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC
_QUANTISATION = ("InputScaleTensor", "InputZeroPointTensor", "OutputScaleTensor", "OutputZeroPointTensor")


def _constraints(desc: _Desc) -> Iterator[Broken]:
    x, y = desc.InputTensor, desc.OutputTensor
    rank = len(x.Sizes)
    if len(y.Sizes) != rank:
        expected = f"{rank}, that of InputTensor"
        yield Broken("(C1)", "OutputTensor.DimensionCount", str(len(y.Sizes)), expected)
    for rule, side, tensor, zero_point in (
        ("(C2)", "Input", x, desc.InputZeroPointTensor),
        ("(C3)", "Output", y, desc.OutputZeroPointTensor),
    ):
        if zero_point is not None and zero_point.DataType != tensor.DataType:
            expected = f"{tensor.DataType.name}, that of {side}Tensor"
            yield Broken(rule, f"{side}ZeroPointTensor.DataType", zero_point.DataType.name, expected)
    if rank > 2 and desc.DimensionCount != rank - 2:
        expected = f"{rank - 2}, 2 less than the DimensionCount of InputTensor"
        yield Broken("(C4)", "DimensionCount", str(desc.DimensionCount), expected)
    for name in ("Strides", "WindowSize", "Dilations"):
        for i, value in enumerate(getattr(desc, name)):
            if value < 1:
                yield Broken("(C5)", f"{name}[{i}]", str(value), "at least 1")
    if rank >= 2:
        channels = x.Sizes[1]
        for name in _QUANTISATION:
            tensor = getattr(desc, name)
            if tensor is not None and not _is_per_tensor_or_channel(tensor.Sizes, rank, channels):
                sizes = _braces((1, channels, 1, 1))
                expected = f"{_braces((1, 1, 1, 1))} or {sizes}"
                remedy = f"Fewer dimensions are the input's trailing ones; for one value per channel write {sizes}"
                yield Broken("(C6)", f"{name}.Sizes", _braces(tensor.Sizes), expected, remedy)
    if _is_computable(desc):
        for i, (padded, extent) in enumerate(_extents(desc)):
            if extent > padded:
                found = f"{desc.WindowSize[i]}, with Dilations[{i}] {desc.Dilations[i]} an extent of {extent}"
                yield Broken("(C7)", f"WindowSize[{i}]", found, f"an extent of at most {padded}, the padded size")


def _braces(sizes: Sequence[int]) -> str:
    return "{" + ", ".join(map(str, sizes)) + "}"


def _is_computable(desc: _Desc) -> bool:
    rank = len(desc.InputTensor.Sizes)
    positive = all(value >= 1 for value in (*desc.Strides, *desc.WindowSize, *desc.Dilations))
    return desc.DimensionCount == rank - 2 and positive


def _extents(desc: _Desc) -> Iterator[tuple[int, int]]:
    """The padded size and the window's extent, for each spatial dimension."""
    for size, window, start, end, dilation in zip(
        desc.InputTensor.Sizes[2:],
        desc.WindowSize,
        desc.StartPadding,
        desc.EndPadding,
        desc.Dilations,
        strict=True,
    ):
        yield size + start + end, (window - 1) * dilation + 1


def _infer_sizes(desc: _Desc) -> dict[str, Choices]:
    if not _is_computable(desc) or any(extent > padded for padded, extent in _extents(desc)):
        return {}
    choices: list[tuple[int, ...]] = [(size,) for size in desc.InputTensor.Sizes[:2]]
    for (padded, extent), stride in zip(_extents(desc), desc.Strides, strict=True):
        whole, rest = divmod(padded - extent, stride)
        choices.append((whole + 1, whole + 2) if rest else (whole + 1,))
    return {"OutputTensor": tuple(choices)}


_Dimension = TypeVar("_Dimension")


def _aligned(dimensions: Sequence[_Dimension], rank: int, one: _Dimension) -> Sequence[_Dimension]:
    """Puts the dimensions of a scale or a zero point at their places among the `rank` of the input.

    They are the trailing ones, as everywhere in DirectML; but beside a 5-D input {1, C, 1, 1}, the page's shape, means
    the channels too. `one` is a dimension of size 1.
    """
    if rank == 5 and len(dimensions) == 4 and dimensions[0] == dimensions[2] == dimensions[3] == one:
        return [*dimensions, one]
    return [one] * (rank - len(dimensions)) + list(dimensions)


def _is_per_tensor_or_channel(sizes: Sequence[int], rank: int, channels: int) -> bool:
    aligned = list(_aligned(sizes, rank, 1))
    if len(aligned) > rank and all(size == 1 for size in aligned[:-rank]):
        aligned = aligned[-rank:]
    return len(aligned) == rank and aligned[1] in (1, channels) and all(n == 1 for n in aligned[:1] + aligned[2:])


def _align(desc: _Desc, inputs: Sequence[Layout | None]) -> list[Layout | None]:
    x, *quantisation = inputs
    rank = len(desc.InputTensor.Sizes)
    aligned: list[Layout | None] = [x]
    for layout in quantisation:
        if layout is not None:
            # A stride of 0 lets a kernel step through the channels whether there is one value or one for each.
            dimensions = [(n, step if n > 1 else 0) for n, step in zip(layout.sizes, layout.strides, strict=True)]
            sizes, strides = zip(*_aligned(dimensions, rank, (1, 0))[-rank:], strict=True)
            layout = Layout(layout.type, sizes, strides)
        aligned.append(layout)
    return aligned


def _check_values(desc: _Desc, inputs: Sequence[Array | None]) -> Iterator[Broken]:
    for name, scale in (("InputScaleTensor", inputs[1]), ("OutputScaleTensor", inputs[3])):
        assert scale is not None
        if scale.size == 1 and 0 < scale.item() < math.inf:
            continue
        values = scale.ravel()
        for i in np.flatnonzero(~((values > 0) & np.isfinite(values)))[:1]:
            yield Broken("(V1)", name, f"{values[i]} at channel {i}", "a finite scale greater than 0")


def _taps(desc: _Desc, i: int) -> Iterator[tuple[slice, int]]:
    """For each window along spatial dimension i: the slice of taps inside the input, and how many taps count.

    Window o has its tap k at o * stride - start + k * dilation.
    """
    size, start, end = desc.InputTensor.Sizes[i + 2], desc.StartPadding[i], desc.EndPadding[i]
    window, dilation = desc.WindowSize[i], desc.Dilations[i]
    for o in range(desc.OutputTensor.Sizes[i + 2]):
        origin = o * desc.Strides[i] - start
        first = max(0, -(origin // dilation))
        inside = max(0, min(window, (size - 1 - origin) // dilation + 1) - first)
        begin = origin + first * dilation
        declared = max(0, min(window, (size + end - 1 - origin) // dilation + 1))
        yield slice(begin, begin + inside * dilation, dilation), declared if desc.IncludePadding else inside


def _reference(
    desc: _Desc,
    x: Array,
    input_scale: Array,
    input_zero_point: Array | None,
    output_scale: Array,
    output_zero_point: Array | None,
) -> Array:
    total = x.astype(np.int64) - (0 if input_zero_point is None else input_zero_point.astype(np.int64))
    count = np.ones((1,) * x.ndim, object)  # Python's integers: with padding there may be more than 2^63 taps
    for axis in range(2, x.ndim):
        taps = list(_taps(desc, axis - 2))
        before = (slice(None),) * axis
        total = np.stack([total[(*before, tap)].sum(axis=axis) for tap, _ in taps], axis=axis)
        along = [len(taps) if i == axis else 1 for i in range(x.ndim)]
        count = count * np.array([counted for _, counted in taps], object).reshape(along)
    # q = round_half_even((S * input_scale) / (count * output_scale)) + output_zero_point, saturated
    with np.errstate(invalid="ignore", divide="ignore"):
        q = np.rint(
            (total * input_scale.astype(np.float64)) / (count.astype(np.float64) * output_scale.astype(np.float64))
        )
    q = np.where(count > 0, q, 0)
    if output_zero_point is not None:
        q = q + output_zero_point
    dtype = Layout.of_desc(desc.OutputTensor).dtype
    limits = np.iinfo(dtype)
    return np.clip(q, limits.min, limits.max).astype(dtype)


QUANTIZED_LINEAR_AVERAGE_POOLING = OperatorSpec(
    operator_type=OperatorType.QUANTIZED_LINEAR_AVERAGE_POOLING,
    desc=DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C8)",
    reference=_reference,
    check_values=_check_values,
    align=_align,
    support=support_table("""
        DML_FEATURE_LEVEL_6_2 and above
        InputTensor           | Input          | 4 to 5 | INT8, UINT8
        InputScaleTensor      | Input          | 1 to 5 | FLOAT32
        InputZeroPointTensor  | Optional input | 1 to 5 | INT8, UINT8
        OutputScaleTensor     | Input          | 1 to 5 | FLOAT32
        OutputZeroPointTensor | Optional input | 1 to 5 | INT8, UINT8
        OutputTensor          | Output         | 4 to 5 | INT8, UINT8
    """),
)
