"""CONVOLUTION_INTEGER and QUANTIZED_LINEAR_CONVOLUTION: forward convolutions of integers.

Decisions where the pages are silent or contradict themselves; S is the sum of (x - zero point of the input) * (w - zero
point of the filter) over the taps that lie on elements:

1. CONVOLUTION_INTEGER gives S modulo 2^32, as INT32.
2. QUANTIZED_LINEAR_CONVOLUTION adds the bias to S exactly, as that is quantised by InputScale * FilterScale and a zero
   point of 0, and requantises the sum as QUANTIZED_LINEAR_MATRIX_MULTIPLY does: decisions 2 and 3 of integer_gemm.py.
   ONNX Runtime, which rounds a quotient of scales and a product by it to FLOAT32, may be 1 off at halves and next to them.
3. Padding is the real number 0, as if it held the input's zero point.
4. DimensionCount is 2 in the text of both pages; CONVOLUTION_INTEGER has 3-D tensors in its table from feature level 4.0
   on, and then is 1.
5. Scales and zero points of fewer dimensions than the input have its last ones, so that {C} would be the width. Beside
   3-D tensors {1, C, 1} and {1, C, 1, 1}, the page's shape, both mean the channels.
6. Nothing runs in-place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import DTYPES, Array, Layout
from ..constraints import same
from ..requantization import Along, aligned, differences, lined_up, requantised, wrong_parameters, wrong_types
from ..schema import (
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
from .convolution import convolved, filter_constraints, infer_sizes, output_channels

_COUNTED = ("Strides", "Dilations", "StartPadding", "EndPadding")


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_CONVOLUTION_INTEGER_OPERATOR_DESC(OperatorDesc):
    """The convolution of (input - zero point) with (filter - zero point), in groups of channels.

    Along each spatial dimension, with s = Strides, p = StartPadding, d = Dilations and taps k of the filter w, y[o] is
    the sum of w[k] * x[o * s - p + k * d], to which taps on padding add nothing. Sums are exact modulo 2^32. Not
    in-place.

    Args:
        InputTensor: {BatchCount, InputChannelCount, Height, Width}, only Width in 3-D.
        InputZeroPointTensor: {1, 1, 1, 1}; None for 0.
        FilterTensor: {OutputChannelCount, InputChannelCount / GroupCount, Height, Width}.
        FilterZeroPointTensor: {1, 1, 1, 1} for one zero point, {1, OutputChannelCount, 1, 1} for one for each channel;
            None for 0.
        OutputTensor: {BatchCount, OutputChannelCount, Height, Width}.
        DimensionCount: the number of spatial dimensions, 1 or 2; derived from the arrays that follow.
        Strides: steps of the filter, for each spatial dimension.
        Dilations: distance of neighbouring taps; 1 for a dense filter.
        StartPadding: elements of padding before the input.
        EndPadding: elements of padding behind the input.
        GroupCount: groups that the channels are divided into, each with its own part of the filter.

    Constraints:
        (C1) InputTensor, FilterTensor and OutputTensor have the same DimensionCount.
        (C2) A zero point has the DataType of what it is for.
        (C3) DimensionCount is 2 less than the DimensionCount of InputTensor.
        (C4) Strides, Dilations and GroupCount are at least 1.
        (C5) GroupCount divides the channels of InputTensor and of OutputTensor.
        (C6) FilterTensor has the input channels of a group.
        (C7) The zero point of the input is one value, that of the filter one, or one for each output channel. Fewer
            dimensions than the input's are its last ones.
        (C8) With an extent of (filter size - 1) * Dilation + 1, the filter's extent is at most the padded size.
        (C9) OutputTensor has the sizes of the batch and of the output's channels, and in each spatial dimension
            floor((padded size - extent) / Stride) + 1.
        (C10) Zero points have the same DimensionCount.

    Source: the page of DML_CONVOLUTION_INTEGER_OPERATOR_DESC; since feature level 2.1.
    """

    InputTensor: Tensor
    InputZeroPointTensor: OptionalTensor = None
    FilterTensor: Tensor
    FilterZeroPointTensor: OptionalTensor = None
    OutputTensor: Tensor
    DimensionCount: Count = None
    Strides: UINTs
    Dilations: UINTs
    StartPadding: UINTs
    EndPadding: UINTs
    GroupCount: UINT

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"DimensionCount": _COUNTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC(OperatorDesc):
    """The convolution of a quantised input with a quantised filter, plus a bias, quantised, in groups of channels.

    With the exact sum S of (x - zero point) * (w - zero point) over the taps on elements, and of the bias, an element is
    S * InputScale * FilterScale / OutputScale, rounded to the nearest integer, a half to the even one, plus the zero
    point, saturated. Not in-place.

    Args:
        InputTensor: {BatchCount, InputChannelCount, Height, Width}.
        InputScaleTensor: {1, 1, 1, 1}.
        InputZeroPointTensor: likewise; None for 0.
        FilterTensor: {OutputChannelCount, InputChannelCount / GroupCount, Height, Width}.
        FilterScaleTensor: {1, 1, 1, 1} for one scale, {1, OutputChannelCount, 1, 1} for one for each channel.
        FilterZeroPointTensor: likewise; None for 0.
        BiasTensor: {1, OutputChannelCount, 1, 1}, in units of InputScale * FilterScale; None for none.
        OutputScaleTensor: {1, 1, 1, 1}.
        OutputZeroPointTensor: likewise; None for 0.
        OutputTensor: {BatchCount, OutputChannelCount, Height, Width}.
        DimensionCount: the number of spatial dimensions, 2; derived from the arrays that follow.
        Strides: steps of the filter, for each spatial dimension.
        Dilations: distance of neighbouring taps; 1 for a dense filter.
        StartPadding: elements of padding before the input.
        EndPadding: elements of padding behind the input.
        GroupCount: groups that the channels are divided into, each with its own part of the filter.

    Constraints:
        (C1) BiasTensor has a size of OutputChannelCount at index 1, and of 1 elsewhere.
        (C2) A zero point has the DataType of what it is for.
        (C3) DimensionCount is 2 less than the DimensionCount of InputTensor.
        (C4) Strides, Dilations and GroupCount are at least 1.
        (C5) GroupCount divides the channels of InputTensor and of OutputTensor.
        (C6) FilterTensor has the input channels of a group.
        (C7) Scales and zero points of the input and of the output are one value, those of the filter one, or one for
            each output channel.
        (C8) With an extent of (filter size - 1) * Dilation + 1, the filter's extent is at most the padded size.
        (C9) OutputTensor has the sizes of the batch and of the output's channels, and in each spatial dimension
            floor((padded size - extent) / Stride) + 1.

    Source: the page of DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC; since feature level 2.1.
    """

    InputTensor: Tensor
    InputScaleTensor: Tensor
    InputZeroPointTensor: OptionalTensor = None
    FilterTensor: Tensor
    FilterScaleTensor: Tensor
    FilterZeroPointTensor: OptionalTensor = None
    BiasTensor: OptionalTensor = None
    OutputScaleTensor: Tensor
    OutputZeroPointTensor: OptionalTensor = None
    OutputTensor: Tensor
    DimensionCount: Count = None
    Strides: UINTs
    Dilations: UINTs
    StartPadding: UINTs
    EndPadding: UINTs
    GroupCount: UINT

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"DimensionCount": _COUNTED}


def _along(desc: Any) -> Along:
    members = desc.__dataclass_fields__
    along: dict[str, tuple[int, int]] = {}
    for side in ("Input", "Filter", "Output"):
        place = (1 - len(desc.InputTensor.Sizes), output_channels(desc)) if side == "Filter" else (-1, 1)
        along |= {name: place for name in (f"{side}ScaleTensor", f"{side}ZeroPointTensor") if name in members}
    return along


def _constraints(desc: DML_CONVOLUTION_INTEGER_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DimensionCount", "InputTensor", "FilterTensor", "OutputTensor")
    yield from _of_parameters(desc, "(C2)", "(C7)")
    yield from filter_constraints(desc, "(C3)", "(C4)", ("(C5)", "(C6)", ""), "(C8)")
    if desc.InputZeroPointTensor is not None and desc.FilterZeroPointTensor is not None:
        yield from same(desc, "(C10)", "DimensionCount", "InputZeroPointTensor", "FilterZeroPointTensor")


def _constraints_of_quantised(desc: DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from _of_parameters(desc, "(C2)", "(C7)")
    yield from filter_constraints(desc, "(C3)", "(C4)", ("(C5)", "(C6)", "(C1)"), "(C8)")


def _of_parameters(desc: Any, types: str, sizes: str) -> Iterator[ConstraintFailure]:
    """Those of scales and zero points, each by its label."""
    yield from wrong_types(desc, types)
    if len(desc.InputTensor.Sizes) == len(desc.FilterTensor.Sizes) >= 3:
        yield from wrong_parameters(desc, sizes, _along(desc), len(desc.InputTensor.Sizes))


def _align(desc: Any, inputs: Sequence[Layout | None]) -> list[Layout | None]:
    return aligned(desc, inputs, _along(desc), len(desc.InputTensor.Sizes))


def _independent(desc: Any) -> Independence:
    """The batch, and of a single group the output's channels, which the filter has first."""
    rank = len(desc.InputTensor.Sizes)
    spatial = [None] * (rank - 2)
    channels = 1 if desc.GroupCount == 1 else None
    parameters = lined_up(desc, _along(desc), rank)
    if channels is None:
        parameters = {name: [None] * len(places) for name, places in parameters.items()}
    bias = {} if getattr(desc, "BiasTensor", None) is None else {"BiasTensor": [None, channels, *spatial]}
    return {
        "InputTensor": [0, None, *spatial],
        "FilterTensor": [channels, None, *spatial],
        "OutputTensor": [0, channels, *spatial],
        **bias,
        **parameters,
    }


def _sums(desc: Any, x: Array, x_zero_point: Array | None, w: Array, w_zero_point: Array | None) -> Array:
    """Modulo 2^64."""
    of_input = None if x_zero_point is None else x_zero_point.reshape(())
    of_filter: Array | None = None
    if w_zero_point is not None:
        each = np.broadcast_to(w_zero_point.reshape(-1), (w.shape[0],))
        of_filter = each.reshape(desc.GroupCount, -1, 1)
    return convolved(
        desc,
        x,
        w,
        np.dtype(np.int64),
        lambda elements: differences(elements, of_input),
        lambda weights: differences(weights, of_filter),
    )


def _reference(desc: Any, x: Array, x_zero_point: Array | None, w: Array, w_zero_point: Array | None) -> Array:
    return _sums(desc, x, x_zero_point, w, w_zero_point).astype(np.int32)


def _quantised(
    desc: Any,
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    w: Array,
    w_scale: Array,
    w_zero_point: Array | None,
    bias: Array | None,
    scale: Array,
    zero_point: Array | None,
) -> Array:
    total = _sums(desc, x, x_zero_point, w, w_zero_point)
    if bias is not None:
        total += bias
    with np.errstate(all="ignore"):
        factor = x_scale.astype(np.float64) * w_scale.astype(np.float64)
    return requantised(total, factor, scale, zero_point, DTYPES[desc.OutputTensor.DataType])


CONVOLUTION_INTEGER = OperatorSpec(
    operator_type=OperatorType.CONVOLUTION_INTEGER,
    desc=DML_CONVOLUTION_INTEGER_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=infer_sizes,
    sizes_rule="(C9)",
    reference=_reference,
    independent=_independent,
    align=_align,
    support=support_table("""
        DML_FEATURE_LEVEL_4_0 and above
        InputTensor           | Input          | 3 to 4 | INT8, UINT8
        InputZeroPointTensor  | Optional input | 1 to 4 | INT8, UINT8
        FilterTensor          | Input          | 3 to 4 | INT8, UINT8
        FilterZeroPointTensor | Optional input | 1 to 4 | INT8, UINT8
        OutputTensor          | Output         | 3 to 4 | INT32
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor           | Input          | 4      | INT8, UINT8
        InputZeroPointTensor  | Optional input | 4      | INT8, UINT8
        FilterTensor          | Input          | 4      | INT8, UINT8
        FilterZeroPointTensor | Optional input | 4      | INT8, UINT8
        OutputTensor          | Output         | 4      | INT32
    """),
)

QUANTIZED_LINEAR_CONVOLUTION = OperatorSpec(
    operator_type=OperatorType.QUANTIZED_LINEAR_CONVOLUTION,
    desc=DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC,
    constraints=_constraints_of_quantised,
    infer_sizes=infer_sizes,
    sizes_rule="(C9)",
    reference=_quantised,
    independent=_independent,
    align=_align,
    support=support_table("""
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor           | Input          | 4      | INT8, UINT8
        InputScaleTensor      | Input          | 4      | FLOAT32
        InputZeroPointTensor  | Optional input | 4      | INT8, UINT8
        FilterTensor          | Input          | 4      | INT8, UINT8
        FilterScaleTensor     | Input          | 4      | FLOAT32
        FilterZeroPointTensor | Optional input | 4      | INT8, UINT8
        BiasTensor            | Optional input | 4      | INT32
        OutputScaleTensor     | Input          | 4      | FLOAT32
        OutputZeroPointTensor | Optional input | 4      | INT8, UINT8
        OutputTensor          | Output         | 4      | INT8, UINT8
    """),
)
