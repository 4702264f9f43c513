"""Averages and norms in a sliding window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..device import Device
from ._apply import apply
from ._arguments import as_dtype, per_channel
from ._call import data_type_of
from ._documentation import documented
from ._names import REQUIRED, refuse_unknown
from ._operand_adapter import adapter_for, are_arrays
from ._types import DataTypeLike, Operand, Output, Result


@documented("AVERAGE_POOLING", "AVERAGE_POOLING1")
def average_pooling(
    x: Operand,
    window_size: int | Sequence[int] = REQUIRED,
    *,
    strides: int | Sequence[int] | None = None,
    start_padding: int | Sequence[int] | None = None,
    end_padding: int | Sequence[int] | None = None,
    dilations: int | Sequence[int] | None = None,
    include_padding: bool = False,
    output_sizes: int | Sequence[int] | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """The average of the elements in a sliding window: DML_OPERATOR_AVERAGE_POOLING.

    With dilations it is DML_OPERATOR_AVERAGE_POOLING1.

    Args:
        x: an array or an expression, float32 or float16 of shape (N, C, H, W) or (N, C, D, H, W).
        window_size: taps for each spatial dimension, or one number for all.
        strides: steps of the window; 1 where None.
        start_padding: padding before the input; 0 where None.
        end_padding: padding behind the input; 0 where None, whatever start_padding is.
        dilations: distance of taps; 1 where None.
        include_padding: whether padding, which counts as 0, counts in the divisor too.
        output_sizes: the spatial sizes of the result, rounded down (as where None) or up.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type.

    >>> average_pooling([[[[1.0, 3.0, 5.0]]]], (1, 2))
    array([[[[2., 4.]]]], dtype=float32)
    """
    if others or window_size is REQUIRED:
        refuse_unknown(average_pooling, "AVERAGE_POOLING", others, window_size=window_size)
    revision, options = ("", {}) if dilations is None else ("1", {"Dilations": dilations})
    return apply(
        f"AVERAGE_POOLING{revision}",
        out,
        device,
        output_sizes=output_sizes,
        InputTensor=x,
        Strides=strides,
        WindowSize=window_size,
        StartPadding=start_padding,
        EndPadding=end_padding,
        **options,
        IncludePadding=include_padding,
    )


@documented("LP_POOLING", "LP_POOLING1")
def lp_pooling(
    x: Operand,
    window_size: int | Sequence[int] = REQUIRED,
    *,
    p: int = 2,
    strides: int | Sequence[int] | None = None,
    start_padding: int | Sequence[int] | None = None,
    end_padding: int | Sequence[int] | None = None,
    dilations: int | Sequence[int] | None = None,
    output_sizes: int | Sequence[int] | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """(|x1|^p + ... + |xn|^p)^(1/p) of the elements in a sliding window: DML_OPERATOR_LP_POOLING.

    With dilations it is DML_OPERATOR_LP_POOLING1.

    Args:
        x: an array or an expression, float32 or float16 of shape (N, C, H, W) or (N, C, D, H, W).
        window_size: taps for each spatial dimension, or one number for all.
        p: the exponent; 1 for the sum of absolute values, 2 for the Euclidean norm.
        strides: steps of the window; 1 where None.
        start_padding: padding before the input, which counts as 0; 0 where None.
        end_padding: padding behind the input; 0 where None, whatever start_padding is.
        dilations: distance of taps; 1 where None.
        output_sizes: the spatial sizes of the result, rounded down (as where None) or up.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type.

    >>> lp_pooling([[[[3.0, 4.0, 0.0]]]], (1, 2))
    array([[[[5., 4.]]]], dtype=float32)
    """
    if others or window_size is REQUIRED:
        refuse_unknown(lp_pooling, "LP_POOLING", others, window_size=window_size)
    revision, options = ("", {}) if dilations is None else ("1", {"Dilations": dilations})
    return apply(
        f"LP_POOLING{revision}",
        out,
        device,
        output_sizes=output_sizes,
        InputTensor=x,
        Strides=strides,
        WindowSize=window_size,
        StartPadding=start_padding,
        EndPadding=end_padding,
        **options,
        P=p,
    )


@documented("QUANTIZED_LINEAR_AVERAGE_POOLING")
def quantized_linear_average_pooling(
    x: Operand,
    input_scale: Operand | float,
    input_zero_point: Operand | float | None = None,
    *,
    output_scale: Operand | float,
    output_zero_point: Operand | float | None = None,
    window_size: int | Sequence[int] = REQUIRED,
    strides: int | Sequence[int] | None = None,
    start_padding: int | Sequence[int] | None = None,
    end_padding: int | Sequence[int] | None = None,
    dilations: int | Sequence[int] | None = None,
    include_padding: bool = False,
    output_sizes: Sequence[int] | None = None,
    output_dtype: DataTypeLike | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Averages of quantised values in a sliding window: DML_OPERATOR_QUANTIZED_LINEAR_AVERAGE_POOLING.

    Args:
        x: an array or an expression, int8 or uint8 of shape (N, C, H, W) or (N, C, D, H, W).
        input_scale: a number, or one for each channel; greater than 0.
        input_zero_point: an integer, or one for each channel, of x's type or of int32 or int64; 0 where None.
        output_scale: as input_scale.
        output_zero_point: as input_zero_point.
        window_size: taps for each spatial dimension, or one number for all.
        strides: steps of the window; 1 where None.
        start_padding: padding before the input; 0 where None.
        end_padding: padding behind the input; 0 where None, whatever start_padding is.
        dilations: distance of taps; 1 where None.
        include_padding: whether padding counts in the divisor.
        output_sizes: the spatial sizes of the result, rounded down (as where None) or up.
        output_dtype: int8 or uint8; where None that of `out`, else of a typed output_zero_point, else of x.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of output_dtype: round_half_even((S * input_scale) / (count * output_scale)) +
        output_zero_point, saturated, S being the sum of (x - input_zero_point) over the taps counted.

    >>> import numpy as np
    >>> x = np.array([[[[1, 3], [5, 7]]]], np.uint8)
    >>> quantized_linear_average_pooling(x, 0.5, output_scale=0.25, window_size=2)
    array([[[[8]]]], dtype=uint8)
    """
    if others or window_size is REQUIRED:
        refuse_unknown(
            quantized_linear_average_pooling, "QUANTIZED_LINEAR_AVERAGE_POOLING", others, window_size=window_size
        )
    name = "QUANTIZED_LINEAR_AVERAGE_POOLING"
    side = adapter_for(name, [x, input_scale, input_zero_point, output_scale, output_zero_point], out, device)
    shape, x_dtype = side.look("x", x)
    is_typed = output_zero_point is not None and not isinstance(output_zero_point, (int, list, tuple))
    if output_dtype is not None:
        dtype = as_dtype(name, "output_dtype", output_dtype, "int8 or uint8")
    elif out is not None:
        dtype = side.memory.import_array(name, "out", out).dtype
    else:
        typed = side.look("output_zero_point", output_zero_point).dtype if is_typed else x_dtype
        dtype = typed if typed.itemsize == 1 else x_dtype
    quantisation = {
        f"{member}Tensor": value
        if not are_arrays([value])
        else per_channel(side.memory, name, where, value, kind, shape[1] if len(shape) > 1 else 1, len(shape))
        for member, where, value, kind in (
            ("InputScale", "input_scale", input_scale, np.dtype(np.float32)),
            ("InputZeroPoint", "input_zero_point", input_zero_point, x_dtype),
            ("OutputScale", "output_scale", output_scale, np.dtype(np.float32)),
            ("OutputZeroPoint", "output_zero_point", output_zero_point, dtype),
        )
    }
    return apply(
        name,
        out,
        device,
        output_sizes=output_sizes,
        InputTensor=x,
        **quantisation,
        OutputTensor=data_type_of(name, "out", np.empty(0, dtype)),
        Strides=strides,
        WindowSize=window_size,
        StartPadding=start_padding,
        EndPadding=end_padding,
        Dilations=dilations,
        IncludePadding=include_padding,
    )
