"""AVERAGE_POOLING, LP_POOLING, their revisions and QUANTIZED_LINEAR_AVERAGE_POOLING: averages and norms in a sliding
window.

Decisions where the pages are silent: an output size may be rounded up, but on a strict device, and then a tap beyond the
padded extent is never counted; an average over no tap is 0; norms are of absolute values; averages and norms are held
in double precision, those of FLOAT16 too; dilation widens the window's extent, though the formulas of the revisions have
the sizes of dense windows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array, Layout
from ..constraints import at_least_1, rounded
from ..independence import only, only_of
from ..schema import (
    BOOL,
    UINT,
    ConstraintFailure,
    Count,
    Independence,
    OperatorDesc,
    OperatorSpec,
    OptionalTensor,
    Tensor,
    UINTs,
    support_table,
)
from ..window_math import pooled_sizes, pooling_constraints, pooling_windows, too_large, wrong_dimension_count


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pooling(OperatorDesc):
    InputTensor: Tensor
    OutputTensor: Tensor
    DimensionCount: Count = None
    Strides: UINTs
    WindowSize: UINTs
    StartPadding: UINTs
    EndPadding: UINTs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "DimensionCount": ("Strides", "WindowSize", "StartPadding", "EndPadding")
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _DilatedPooling(_Pooling):
    Dilations: UINTs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "DimensionCount": ("Strides", "WindowSize", "StartPadding", "EndPadding", "Dilations")
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_AVERAGE_POOLING_OPERATOR_DESC(_Pooling):
    """The average of the elements in a sliding window. Not in-place.

    Padding counts as 0, and is counted where IncludePadding is true. Sums are held in double precision; the average is
    rounded once.

    Args:
        InputTensor: {BatchCount, ChannelCount, Height, Width}, or {..., Depth, Height, Width} in 5-D.
        OutputTensor: the averages.
        DimensionCount: the number of spatial dimensions, 2 or 3; derived from the arrays that follow.
        Strides: steps of the window, for each spatial dimension.
        WindowSize: taps of the window.
        StartPadding: elements of padding before the input.
        EndPadding: elements of padding behind the input.
        IncludePadding: whether padding counts in the divisor.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) DimensionCount is 2 less than the DimensionCount of InputTensor.
        (C4) Strides and WindowSize are at least 1.
        (C5) WindowSize is at most the padded size.
        (C6) OutputTensor has the sizes of the batch and the channels, and in each spatial dimension
            floor((padded size - WindowSize) / stride) + 1, or the same rounded up, but on a strict device.

    Source: the page of DML_AVERAGE_POOLING_OPERATOR_DESC; since feature level 1.0.
    """

    IncludePadding: BOOL = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_LP_POOLING_OPERATOR_DESC(_Pooling):
    """(|x1|^P + ... + |xn|^P)^(1/P) of the elements in a sliding window. Padding counts as 0. Not in-place.

    All is computed in double precision, and rounded once.

    Args:
        InputTensor: {BatchCount, ChannelCount, Height, Width}, or {..., Depth, Height, Width} in 5-D.
        OutputTensor: the norms.
        DimensionCount: the number of spatial dimensions, 2 or 3; derived from the arrays that follow.
        Strides: steps of the window, for each spatial dimension.
        WindowSize: taps of the window.
        StartPadding: elements of padding before the input.
        EndPadding: elements of padding behind the input.
        P: the exponent; 1 for the sum of absolute values, 2 for the Euclidean norm.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) DimensionCount is 2 less than the DimensionCount of InputTensor.
        (C4) Strides and WindowSize are at least 1.
        (C5) WindowSize is at most the padded size.
        (C6) OutputTensor has the sizes of the batch and the channels, and in each spatial dimension
            floor((padded size - WindowSize) / stride) + 1, or the same rounded up, but on a strict device.
        (C7) P is at least 1.

    Source: the page of DML_LP_POOLING_OPERATOR_DESC; since feature level 1.0.
    """

    P: UINT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_AVERAGE_POOLING1_OPERATOR_DESC(_DilatedPooling):
    """The average of the elements in a sliding window, whose taps may lie apart. Not in-place.

    Padding counts as 0, and is counted where IncludePadding is true. Sums are held in double precision; the average is
    rounded once.

    Args:
        InputTensor: {BatchCount, ChannelCount, Height, Width}, or {..., Depth, Height, Width} in 5-D.
        OutputTensor: the averages.
        DimensionCount: the number of spatial dimensions, 2 or 3; derived from the arrays that follow.
        Strides: steps of the window, for each spatial dimension.
        WindowSize: taps of the window.
        StartPadding: elements of padding before the input.
        EndPadding: elements of padding behind the input.
        Dilations: distance of neighbouring taps; 1 for a dense window.
        IncludePadding: whether padding counts in the divisor.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) DimensionCount is 2 less than the DimensionCount of InputTensor.
        (C4) Strides, WindowSize and Dilations are at least 1.
        (C5) The window's extent, (WindowSize - 1) * Dilation + 1, is at most the padded size.
        (C6) OutputTensor has the sizes of the batch and the channels, and in each spatial dimension
            floor((padded size - extent) / stride) + 1, or the same rounded up, but on a strict device.

    Source: the page of DML_AVERAGE_POOLING1_OPERATOR_DESC; since feature level 6.2.
    """

    IncludePadding: BOOL = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_LP_POOLING1_OPERATOR_DESC(_DilatedPooling):
    """(|x1|^P + ... + |xn|^P)^(1/P) of the elements in a sliding window, whose taps may lie apart. Not in-place.

    Padding counts as 0. All is computed in double precision, and rounded once.

    Args:
        InputTensor: {BatchCount, ChannelCount, Height, Width}, or {..., Depth, Height, Width} in 5-D.
        OutputTensor: the norms.
        DimensionCount: the number of spatial dimensions, 2 or 3; derived from the arrays that follow.
        Strides: steps of the window, for each spatial dimension.
        WindowSize: taps of the window.
        StartPadding: elements of padding before the input.
        EndPadding: elements of padding behind the input.
        Dilations: distance of neighbouring taps; 1 for a dense window.
        P: the exponent; 1 for the sum of absolute values, 2 for the Euclidean norm.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) DimensionCount is 2 less than the DimensionCount of InputTensor.
        (C4) Strides, WindowSize and Dilations are at least 1.
        (C5) The window's extent, (WindowSize - 1) * Dilation + 1, is at most the padded size.
        (C6) OutputTensor has the sizes of the batch and the channels, and in each spatial dimension
            floor((padded size - extent) / stride) + 1, or the same rounded up, but on a strict device.
        (C7) P is at least 1.

    Source: the page of DML_LP_POOLING1_OPERATOR_DESC; since feature level 6.2.
    """

    P: UINT


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


_Average = DML_AVERAGE_POOLING_OPERATOR_DESC | DML_AVERAGE_POOLING1_OPERATOR_DESC
_Norm = DML_LP_POOLING_OPERATOR_DESC | DML_LP_POOLING1_OPERATOR_DESC


def _constraints(desc: _Pooling) -> Iterator[ConstraintFailure]:
    return pooling_constraints(desc, "(C1)", "(C2)", "(C3)", "(C4)", "(C5)")


def _constraints_of_lp(desc: _Norm) -> Iterator[ConstraintFailure]:
    yield from pooling_constraints(desc, "(C1)", "(C2)", "(C3)", "(C4)", "(C5)")
    if desc.P < 1:
        yield ConstraintFailure("(C7)", "P", str(desc.P), "at least 1")


def _sums(desc: Any, x: Array) -> Array:
    """The sum under the window at each place, along one dimension after the other."""
    for axis, window in enumerate(pooling_windows(desc), 2):
        before = (slice(None),) * axis
        places = range(desc.OutputTensor.Sizes[axis])
        x = np.stack([x[(*before, window.elements(o))].sum(axis=axis) for o in places], axis=axis)
    return x


def _averages(desc: Any, total: Array, scale: Any = 1.0) -> Array:
    """total / (count * scale), in double precision; 0 where nothing is counted."""
    # Python's integers: with padding there may be more than 2^63 taps.
    counts = [
        np.array([window.counted(o, bool(desc.IncludePadding)) for o in range(places)], object)
        for window, places in zip(pooling_windows(desc), desc.OutputTensor.Sizes[2:], strict=True)
    ]
    count = functools.reduce(np.multiply.outer, counts).astype(np.float64)
    with np.errstate(all="ignore"):
        average: Array = np.where(count > 0, total / (count * scale), 0.0)
    return average


def _average(desc: _Average, x: Array) -> Array:
    with np.errstate(all="ignore"):
        return rounded(_averages(desc, _sums(desc, x.astype(np.float64))), x.dtype)


def _norm(desc: _Norm, x: Array) -> Array:
    with np.errstate(all="ignore"):
        return rounded(_sums(desc, np.abs(x.astype(np.float64)) ** desc.P) ** (1 / desc.P), x.dtype)


# QUANTIZED_LINEAR_AVERAGE_POOLING

_Desc = DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC
_QUANTISATION = ("InputScaleTensor", "InputZeroPointTensor", "OutputScaleTensor", "OutputZeroPointTensor")


def _constraints_of_quantized(desc: _Desc) -> Iterator[ConstraintFailure]:
    x, y = desc.InputTensor, desc.OutputTensor
    rank = len(x.Sizes)
    if len(y.Sizes) != rank:
        expected = f"{rank}, that of InputTensor"
        yield ConstraintFailure("(C1)", "OutputTensor.DimensionCount", str(len(y.Sizes)), expected)
    for rule, side, tensor, zero_point in (
        ("(C2)", "Input", x, desc.InputZeroPointTensor),
        ("(C3)", "Output", y, desc.OutputZeroPointTensor),
    ):
        if zero_point is not None and zero_point.DataType != tensor.DataType:
            expected = f"{tensor.DataType.name}, that of {side}Tensor"
            yield ConstraintFailure(rule, f"{side}ZeroPointTensor.DataType", zero_point.DataType.name, expected)
    yield from wrong_dimension_count(desc, "(C4)")
    yield from at_least_1(desc, "(C5)", "Strides", "WindowSize", "Dilations")
    if rank >= 2:
        channels = x.Sizes[1]
        for name in _QUANTISATION:
            tensor = getattr(desc, name)
            if tensor is not None and not _is_per_tensor_or_channel(tensor.Sizes, rank, channels):
                sizes = _braces((1, channels, 1, 1))
                expected = f"{_braces((1, 1, 1, 1))} or {sizes}"
                remedy = f"Fewer dimensions are the input's trailing ones; for one value per channel write {sizes}"
                yield ConstraintFailure("(C6)", f"{name}.Sizes", _braces(tensor.Sizes), expected, remedy)
    yield from too_large("(C7)", pooling_windows(desc), "WindowSize")


def _braces(sizes: Sequence[int]) -> str:
    return "{" + ", ".join(map(str, sizes)) + "}"


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


_SCALES = float(np.finfo(np.float32).smallest_subnormal), float(np.finfo(np.float32).max)
"""The finite ones greater than 0."""


def _value_limits(desc: _Desc) -> dict[str, tuple[float, float]]:
    return dict.fromkeys(("InputScaleTensor", "OutputScaleTensor"), _SCALES)


def _check_values(desc: _Desc, inputs: Sequence[Array | None]) -> Iterator[ConstraintFailure]:
    least, largest = _SCALES
    for name, scale in (("InputScaleTensor", inputs[1]), ("OutputScaleTensor", inputs[3])):
        assert scale is not None
        if scale.size == 1 and least <= scale.item() <= largest:
            continue
        values = scale.ravel()
        for i in np.flatnonzero(~((values >= least) & (values <= largest)))[:1]:
            yield ConstraintFailure("(V1)", name, f"{values[i]} at channel {i}", "a finite scale greater than 0")


def _reference(
    desc: _Desc,
    x: Array,
    input_scale: Array,
    input_zero_point: Array | None,
    output_scale: Array,
    output_zero_point: Array | None,
) -> Array:
    total = x.astype(np.int64) - (0 if input_zero_point is None else input_zero_point.astype(np.int64))
    # q = round_half_even((S * input_scale) / (count * output_scale)) + output_zero_point, saturated
    scaled = _sums(desc, total) * input_scale.astype(np.float64)
    q = np.rint(_averages(desc, scaled, output_scale.astype(np.float64)))
    if output_zero_point is not None:
        q = q + output_zero_point
    dtype = Layout.of_desc(desc.OutputTensor).dtype
    limits = np.iinfo(dtype)
    return np.clip(q, limits.min, limits.max).astype(dtype)


def _independent(desc: _Desc) -> Independence:
    """Of a scale or a zero point the only dimension that may be longer than 1 is the channels'."""
    quantisation = {name: getattr(desc, name) for name in _QUANTISATION if getattr(desc, name) is not None}
    of_channels = {
        name: tuple([1 if size > 1 else None for size in tensor.Sizes]) for name, tensor in quantisation.items()
    }
    tensors = {"InputTensor": desc.InputTensor, "OutputTensor": desc.OutputTensor}
    return {**only_of(tensors, (0, 1)), **of_channels}


def _float(
    operator_type: OperatorType, desc: type[OperatorDesc], constraints: Any, reference: Any, since: str
) -> OperatorSpec:
    return OperatorSpec(
        operator_type=operator_type,
        desc=desc,
        constraints=constraints,
        infer_sizes=pooled_sizes,
        sizes_rule="(C6)",
        reference=reference,
        independent=lambda desc: only(desc, (0, 1)),
        support=support_table(f"""
            {since} and above
            InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16
            OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16
        """),
    )


AVERAGE_POOLING = _float(
    OperatorType.AVERAGE_POOLING, DML_AVERAGE_POOLING_OPERATOR_DESC, _constraints, _average, "DML_FEATURE_LEVEL_1_0"
)
AVERAGE_POOLING1 = _float(
    OperatorType.AVERAGE_POOLING1, DML_AVERAGE_POOLING1_OPERATOR_DESC, _constraints, _average, "DML_FEATURE_LEVEL_6_2"
)
LP_POOLING = _float(
    OperatorType.LP_POOLING, DML_LP_POOLING_OPERATOR_DESC, _constraints_of_lp, _norm, "DML_FEATURE_LEVEL_1_0"
)
LP_POOLING1 = _float(
    OperatorType.LP_POOLING1, DML_LP_POOLING1_OPERATOR_DESC, _constraints_of_lp, _norm, "DML_FEATURE_LEVEL_6_2"
)

QUANTIZED_LINEAR_AVERAGE_POOLING = OperatorSpec(
    operator_type=OperatorType.QUANTIZED_LINEAR_AVERAGE_POOLING,
    desc=DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC,
    constraints=_constraints_of_quantized,
    infer_sizes=pooled_sizes,
    sizes_rule="(C8)",
    reference=_reference,
    independent=_independent,
    check_values=_check_values,
    value_limits=_value_limits,
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
