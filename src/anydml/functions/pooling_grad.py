"""Gradients of averages and of maxima in a sliding window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ._apply import apply
from ._arguments import as_shape
from ._call import data_type_of
from ._documentation import documented
from ._names import REQUIRED, refuse_unknown
from ._operand_adapter import adapter_for
from ._types import Operand, Output, Result


@documented("AVERAGE_POOLING_GRAD")
def average_pooling_grad(
    input_gradient: Operand,
    output_sizes: int | Sequence[int] = REQUIRED,
    window_size: int | Sequence[int] = REQUIRED,
    *,
    strides: int | Sequence[int] | None = None,
    start_padding: int | Sequence[int] | None = None,
    end_padding: int | Sequence[int] | None = None,
    include_padding: bool = False,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """The gradients of :func:`average_pooling`: each window's, in equal shares: DML_OPERATOR_AVERAGE_POOLING_GRAD.

    Args:
        input_gradient: the gradients of what average_pooling returned, an array or an expression, float32 or float16 of
            shape (N, C, H, W) or (N, C, D, H, W).
        output_sizes: the spatial sizes of what average_pooling was given, or one number for all.
        window_size: taps for each spatial dimension, or one number for all.
        strides: steps of the window; 1 where None.
        start_padding: padding before what was averaged; 0 where None.
        end_padding: padding behind it; 0 where None, whatever start_padding is.
        include_padding: whether padding counted in the divisor.
        out: where to write, of any strides; no memory shared with input_gradient. Returned.

    Returns:
        An array like `input_gradient`, of its type, of shape (N, C, output_sizes...). Sums are held in double precision
        and rounded once.

    >>> average_pooling_grad([[[[2.0, 4.0]]]], (1, 3), (1, 2))
    array([[[[1., 3., 2.]]]], dtype=float32)
    """
    name = "AVERAGE_POOLING_GRAD"
    if others or output_sizes is REQUIRED or window_size is REQUIRED:
        refuse_unknown(average_pooling_grad, name, others, output_sizes=output_sizes, window_size=window_size)
    sizes = as_shape(name, output_sizes, "output_sizes")
    seen = adapter_for(name, [input_gradient], out, device).look("input_gradient", input_gradient)
    sizes = sizes * (len(seen.shape) - 2) if len(sizes) == 1 else sizes
    output = DML_BUFFER_TENSOR_DESC(
        DataType=data_type_of(name, "input_gradient", seen), Sizes=(*seen.shape[:2], *sizes)
    )
    return apply(
        name,
        out,
        device,
        InputGradientTensor=input_gradient,
        OutputGradientTensor=output,
        Strides=strides,
        WindowSize=window_size,
        StartPadding=start_padding,
        EndPadding=end_padding,
        IncludePadding=include_padding,
    )


@documented("MAX_POOLING_GRAD")
def max_pooling_grad(
    x: Operand,
    input_gradient: Operand,
    window_size: int | Sequence[int] = REQUIRED,
    *,
    strides: int | Sequence[int] | None = None,
    start_padding: int | Sequence[int] | None = None,
    end_padding: int | Sequence[int] | None = None,
    dilations: int | Sequence[int] | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """The gradients of :func:`max_pooling`: each window's at its first maximum: DML_OPERATOR_MAX_POOLING_GRAD.

    Args:
        x: what max_pooling was given, an array or an expression, float32 or float16 of shape (N, C, H, W).
        input_gradient: the gradients of what it returned, of x's type.
        window_size: taps for each spatial dimension, or one number for both.
        strides: steps of the window; 1 where None.
        start_padding: padding before the input, which is never the maximum; 0 where None.
        end_padding: padding behind the input; 0 where None, whatever start_padding is.
        dilations: distance of taps; 1 where None.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type and shape. Sums are held in double precision and rounded once. NaNs of x beside
        numbers are passed over.

    >>> max_pooling_grad([[[[1.0, 5.0, 3.0, 4.0]]]], [[[[1.0, 2.0, 3.0]]]], (1, 2))
    array([[[[0., 3., 0., 3.]]]], dtype=float32)
    """
    if others or window_size is REQUIRED:
        refuse_unknown(max_pooling_grad, "MAX_POOLING_GRAD", others, window_size=window_size)
    return apply(
        "MAX_POOLING_GRAD",
        out,
        device,
        InputTensor=x,
        InputGradientTensor=input_gradient,
        Strides=strides,
        WindowSize=window_size,
        StartPadding=start_padding,
        EndPadding=end_padding,
        Dilations=dilations,
    )
