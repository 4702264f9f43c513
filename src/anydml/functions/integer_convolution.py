"""Convolutions of integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.enums import TensorDataType
from ..core.strided_layout import DATA_TYPES
from ..device import Device
from ._apply import apply
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import Shape, adapter_for
from ._quantisation import laid_along, quantised_dtype, vector_parameter
from ._types import DataTypeLike, Operand, Output, Result

_FLOAT32, _INT32 = np.dtype(np.float32), np.dtype(np.int32)


@documented("CONVOLUTION_INTEGER")
def convolution_integer(
    x: Operand,
    filter: Operand,
    input_zero_point: Operand | int | None = None,
    filter_zero_point: Operand | int | None = None,
    *,
    strides: int | Sequence[int] | None = None,
    dilations: int | Sequence[int] | None = None,
    start_padding: int | Sequence[int] | None = None,
    end_padding: int | Sequence[int] | None = None,
    group_count: int = 1,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """The convolution of (x - input_zero_point) with (filter - filter_zero_point): DML_OPERATOR_CONVOLUTION_INTEGER.

    Args:
        x: an array or an expression, int8 or uint8 of shape (N, C, W) or (N, C, H, W).
        filter: likewise, of either type, of shape (output channels, C / group_count, ...).
        input_zero_point: an integer, of x's type or of int32 or int64; 0 where None.
        filter_zero_point: an integer, or one for each output channel, of filter's type or of int32 or int64; 0 where
            None.
        strides: steps of the filter, for each spatial dimension or one number for all; 1 where None.
        dilations: distance of taps; 1 where None.
        start_padding: padding before the input; 0 where None.
        end_padding: padding behind the input; 0 where None, whatever start_padding is.
        group_count: groups that the channels are divided into.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of int32. Sums are exact, modulo 2^32; taps on padding add nothing.

    >>> import numpy as np
    >>> convolution_integer(np.array([[[11, 12, 13]]], np.uint8), np.array([[[1, -1]]], np.int8), 10, end_padding=1)
    array([[[-1, -1,  3]]], dtype=int32)
    """
    if others:
        refuse_unknown(convolution_integer, "CONVOLUTION_INTEGER", others)
    name = "CONVOLUTION_INTEGER"
    side = adapter_for(name, [x, filter, input_zero_point, filter_zero_point], out, device)
    of_x, of_filter = side.look("x", x).dtype, side.look("filter", filter).dtype
    return apply(
        name,
        out,
        device,
        spread=_over_channels,
        InputTensor=x,
        InputZeroPointTensor=vector_parameter(side, name, "input_zero_point", input_zero_point, of_x),
        FilterTensor=filter,
        FilterZeroPointTensor=vector_parameter(side, name, "filter_zero_point", filter_zero_point, of_filter),
        OutputTensor=TensorDataType.INT32,
        Strides=strides,
        Dilations=dilations,
        StartPadding=start_padding,
        EndPadding=end_padding,
        GroupCount=group_count,
    )


@documented("QUANTIZED_LINEAR_CONVOLUTION")
def quantized_linear_convolution(
    x: Operand,
    input_scale: Operand | float,
    filter: Operand,
    filter_scale: Operand | float,
    bias: Operand | None = None,
    *,
    output_scale: Operand | float,
    input_zero_point: Operand | int | None = None,
    filter_zero_point: Operand | int | None = None,
    output_zero_point: Operand | int | None = None,
    strides: int | Sequence[int] | None = None,
    dilations: int | Sequence[int] | None = None,
    start_padding: int | Sequence[int] | None = None,
    end_padding: int | Sequence[int] | None = None,
    group_count: int = 1,
    output_dtype: DataTypeLike | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """The convolution of quantised numbers, quantised: DML_OPERATOR_QUANTIZED_LINEAR_CONVOLUTION.

    Args:
        x: an array or an expression, int8 or uint8 of shape (N, C, H, W).
        input_scale: a number.
        filter: as x, of either type, of shape (output channels, C / group_count, ...).
        filter_scale: a number, or one for each output channel.
        bias: int32, of shape (output channels,) or (1, output channels, 1, 1), in units of input_scale * filter_scale;
            none where None.
        output_scale: a number.
        input_zero_point: an integer, of x's type or of int32 or int64; 0 where None.
        filter_zero_point: likewise for filter, or one for each output channel.
        output_zero_point: an integer for the result.
        strides: steps of the filter, for each spatial dimension or one number for all; 1 where None.
        dilations: distance of taps; 1 where None.
        start_padding: padding before the input; 0 where None.
        end_padding: padding behind the input; 0 where None, whatever start_padding is.
        group_count: groups that the channels are divided into.
        output_dtype: int8 or uint8; where None that of `out`, else of a typed output_zero_point, else of x.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of output_dtype: round(S * input_scale * filter_scale / output_scale) + output_zero_point,
        saturated, S being the exact sum of the products and of the bias. What is rounded is the exact quotient, halves
        to the even integer.

    >>> import numpy as np
    >>> x, filter = np.array([[[[11, 12, 13]]]], np.uint8), np.array([[[[1, 2]]]], np.int8)
    >>> quantized_linear_convolution(x, 0.5, filter, 0.5, [4], output_scale=0.5, input_zero_point=10)
    array([[[[4, 6]]]], dtype=uint8)
    """
    if others:
        refuse_unknown(quantized_linear_convolution, "QUANTIZED_LINEAR_CONVOLUTION", others)
    name = "QUANTIZED_LINEAR_CONVOLUTION"
    every = [x, input_scale, input_zero_point, filter, filter_scale, filter_zero_point, bias]
    side = adapter_for(name, [*every, output_scale, output_zero_point], out, device)
    of_x, of_filter = side.look("x", x).dtype, side.look("filter", filter).dtype
    dtype = quantised_dtype(side, name, output_dtype, out, "output_zero_point", output_zero_point, of_x)
    return apply(
        name,
        out,
        device,
        spread=_over_channels,
        InputTensor=x,
        InputScaleTensor=vector_parameter(side, name, "input_scale", input_scale, _FLOAT32),
        InputZeroPointTensor=vector_parameter(side, name, "input_zero_point", input_zero_point, of_x),
        FilterTensor=filter,
        FilterScaleTensor=vector_parameter(side, name, "filter_scale", filter_scale, _FLOAT32),
        FilterZeroPointTensor=vector_parameter(side, name, "filter_zero_point", filter_zero_point, of_filter),
        BiasTensor=None if bias is None else vector_parameter(side, name, "bias", bias, _INT32),
        OutputScaleTensor=vector_parameter(side, name, "output_scale", output_scale, _FLOAT32),
        OutputZeroPointTensor=vector_parameter(side, name, "output_zero_point", output_zero_point, dtype),
        OutputTensor=DATA_TYPES.get(dtype),
        Strides=strides,
        Dilations=dilations,
        StartPadding=start_padding,
        EndPadding=end_padding,
        GroupCount=group_count,
    )


def _over_channels(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """Scales, zero points and a bias lie along the channels."""
    rank = len(shapes["InputTensor"])
    parameters = {label: shape for label, shape in shapes.items() if label not in ("InputTensor", "FilterTensor")}
    return {label: laid_along(shape, 1 - rank, rank) for label, shape in parameters.items()}
