"""Strided windows of an array, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ._apply import apply
from ._arguments import as_shape, per_dimension
from ._by_bytes import by_bytes
from ._call import data_type_of
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import adapter_for
from ._types import Operand, Output, Result


@documented("SLICE", "SLICE1")
def slice(
    x: Operand,
    offsets: int | Sequence[int],
    sizes: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Copies every so many elements of a window, backward where a stride is negative: DML_OPERATOR_SLICE1.

    Where all strides are 1 it is DML_OPERATOR_SLICE.

    Args:
        x: an array or an expression of any of DirectML's data types, of truth values, complex numbers or bfloat16.
        offsets: the first element of the window, for each dimension or one number for all.
        sizes: the elements of the window.
        strides: the distance of neighbours in x; of a negative one the first is the window's last.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type; a copy of bits.

    >>> slice([0, 1, 2, 3, 4, 5], 1, 5, -2)
    array([5, 3, 1])
    """
    if others:
        refuse_unknown(slice, "SLICE", others)
    copied = by_bytes(
        "SLICE1", [x], out, lambda values, out: slice(values[0], offsets, sizes, strides, out=out, device=device)
    )
    if copied is not None:
        return copied
    side = adapter_for("SLICE1", [x], out, device)
    steps = per_dimension("SLICE1", "strides", strides, len(side.look("x", x).shape))
    if all(step == 1 for step in steps):
        return apply("SLICE", out, device, InputTensor=x, Offsets=offsets, Sizes=sizes, Strides=steps)
    window = {"InputWindowOffsets": offsets, "InputWindowSizes": sizes, "InputWindowStrides": steps}
    return apply("SLICE1", out, device, InputTensor=x, **window)


@documented("SLICE_GRAD")
def slice_grad(
    input_gradient: Operand,
    shape: int | Sequence[int],
    offsets: int | Sequence[int],
    sizes: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """The gradients of :func:`slice`: each element where it was taken from, and 0 elsewhere: DML_OPERATOR_SLICE_GRAD.

    Args:
        input_gradient: the gradients of what slice returned, an array or an expression of any of DirectML's data types.
        shape: that of what slice was given.
        offsets: the first element of the window, for each dimension or one number for all.
        sizes: the elements of the window.
        strides: the distance of neighbours in the result; of a negative one the first is the window's last.
        out: where to write, of any strides; no memory shared with input_gradient. Returned.

    Returns:
        An array like `input_gradient`, of its type.

    >>> slice_grad([1, 2, 3], 6, 1, 5, -2)
    array([0, 3, 0, 2, 0, 1])
    """
    name = "SLICE_GRAD"
    if others:
        refuse_unknown(slice_grad, name, others)
    seen = adapter_for(name, [input_gradient], out, device).look("input_gradient", input_gradient)
    tensor = DML_BUFFER_TENSOR_DESC(DataType=data_type_of(name, "input_gradient", seen), Sizes=as_shape(name, shape))
    window = {"InputWindowOffsets": offsets, "InputWindowSizes": sizes, "InputWindowStrides": strides}
    return apply(name, out, device, InputGradientTensor=input_gradient, OutputGradientTensor=tensor, **window)
