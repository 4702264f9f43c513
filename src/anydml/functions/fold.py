"""Blocks of a sliding window, put back."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ..operators import spec
from ._apply import apply
from ._arguments import as_shape
from ._call import data_type_of
from ._documentation import documented
from ._names import REQUIRED, refuse_unknown
from ._operand_adapter import adapter_for
from ._types import Operand, Output, Result
from ._weak_operands import as_listed


@documented("FOLD")
def fold(
    x: Operand,
    output_sizes: int | Sequence[int] = REQUIRED,
    window_sizes: int | Sequence[int] = REQUIRED,
    *,
    strides: int | Sequence[int] | None = None,
    dilations: int | Sequence[int] | None = None,
    start_padding: int | Sequence[int] | None = None,
    end_padding: int | Sequence[int] | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Puts the blocks of a sliding window back in their places, and sums what overlaps: DML_OPERATOR_FOLD.

    Args:
        x: an array or an expression of any of DirectML's data types, of shape (N, C * elements of the window, blocks).
        output_sizes: the spatial sizes of the result, for each dimension; a number for one dimension.
        window_sizes: the window's, for each spatial dimension or one number for all.
        strides: steps of the window; 1 where None.
        dilations: distance of the window's elements; 1 where None.
        start_padding: padding before the result, which is left out; 0 where None.
        end_padding: padding behind the result; 0 where None, whatever start_padding is.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type, of shape (N, C, output_sizes...). Sums of floats are held wide, rounded once.

    >>> fold([[[1, 2, 3], [10, 20, 30]]], 4, 2)
    array([[[ 1, 12, 23, 30]]])
    """
    name = "FOLD"
    if others or output_sizes is REQUIRED or window_sizes is REQUIRED:
        refuse_unknown(fold, name, others, output_sizes=output_sizes, window_sizes=window_sizes)
    sizes = as_shape(name, output_sizes, "output_sizes")
    side = adapter_for(name, [x], None, device)
    x = as_listed(side, spec(name), "InputTensor", x)
    seen = side.look("x", x)
    taps = as_shape(name, window_sizes, "window_sizes")
    elements = prod(taps * len(sizes) if len(taps) == 1 else taps)
    batch, rows = seen.shape[-3:-1] if len(seen.shape) > 2 else (1, 1)
    # Of what does not divide, the operator's own rule tells.
    channels = max(rows // max(elements, 1), 1)
    output = DML_BUFFER_TENSOR_DESC(DataType=data_type_of(name, "x", seen), Sizes=(batch, channels, *sizes))
    return apply(
        name,
        out,
        device,
        InputTensor=x,
        OutputTensor=output,
        WindowSizes=window_sizes,
        Strides=strides,
        Dilations=dilations,
        StartPadding=start_padding,
        EndPadding=end_padding,
    )
