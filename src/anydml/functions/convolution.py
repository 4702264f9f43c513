"""Convolutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.enums import ConvolutionDirection, ConvolutionMode
from ..device import Device
from ..operators.schema import OperatorDesc
from ._apply import apply, over_channels
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import Shape
from ._types import Operand, Output, Result


@documented("CONVOLUTION")
def convolution(
    x: Operand,
    filter: Operand,
    bias: Operand | None = None,
    *,
    mode: ConvolutionMode | str = ConvolutionMode.CROSS_CORRELATION,
    direction: ConvolutionDirection | str = ConvolutionDirection.FORWARD,
    strides: int | Sequence[int] | None = None,
    dilations: int | Sequence[int] | None = None,
    start_padding: int | Sequence[int] | None = None,
    end_padding: int | Sequence[int] | None = None,
    output_padding: int | Sequence[int] | None = None,
    group_count: int = 1,
    activation: OperatorDesc | str | None = None,
    output_sizes: int | Sequence[int] | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """A convolution with a filter, in groups of channels: DML_OPERATOR_CONVOLUTION.

    Args:
        x: an array or an expression, float32 or float16 of shape (N, C, W), (N, C, H, W) or (N, C, D, H, W).
        filter: likewise, of shape (output channels, C / group_count, ...); BACKWARD (C, output channels / group_count,
            ...).
        bias: likewise, of shape (output channels,) or (1, output channels, 1, ...); none where None.
        mode: a ConvolutionMode or its name: CROSS_CORRELATION takes the filter as it is, CONVOLUTION turns it round.
        direction: a ConvolutionDirection or its name: FORWARD, or BACKWARD for a transposed convolution.
        strides: steps of the filter, for each spatial dimension or one number for all; 1 where None.
        dilations: distance of taps; 1 where None.
        start_padding: padding before the input, BACKWARD what is cut off before the output; 0 where None.
        end_padding: likewise behind it; 0 where None, whatever start_padding is.
        output_padding: zeros behind the result; 0 where None.
        group_count: groups that the channels are divided into.
        activation: the desc of an activation, without tensors, or its name, that is applied to the result; none where
            None.
        output_sizes: the spatial sizes of the result, of which BACKWARD several may be right; the least where None.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type.

    >>> convolution([[[1.0, 2.0, 3.0, 4.0]]], [[[1.0, 10.0]]], strides=2)
    array([[[21., 43.]]], dtype=float32)
    """
    if others:
        refuse_unknown(convolution, "CONVOLUTION", others)
    return apply(
        "CONVOLUTION",
        out,
        device,
        spread=_with_bias,
        output_sizes=output_sizes,
        InputTensor=x,
        FilterTensor=filter,
        BiasTensor=bias,
        Mode=mode,
        Direction=direction,
        Strides=strides,
        Dilations=dilations,
        StartPadding=start_padding,
        EndPadding=end_padding,
        OutputPadding=output_padding,
        GroupCount=group_count,
        FusedActivation=activation,
    )


def _with_bias(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    return over_channels(name, {label: shape for label, shape in shapes.items() if label != "FilterTensor"})
