"""Elements by an index for each of them, along an axis."""

from __future__ import annotations

from typing import Any

from ..device import Device
from ._apply import apply
from ._by_bytes import by_bytes
from ._documentation import documented
from ._names import refuse_unknown
from ._types import Operand, Output, Result


@documented("GATHER_ELEMENTS")
def gather_elements(
    x: Operand,
    indices: Operand,
    axis: int = 0,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Copies an element for each index along an axis, as numpy.take_along_axis does: DML_OPERATOR_GATHER_ELEMENTS.

    Args:
        x: an array or an expression of any of DirectML's data types, of truth values, complex numbers or bfloat16.
        indices: likewise, int32, int64, uint32 or uint64, of x's shape but along the axis; negative ones count from the
            end of the axis.
        axis: the dimension that the indices are of; negative counts from the last.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type and of the indices' shape; a copy of bits.

    >>> gather_elements([[1, 2, 3], [4, 5, 6]], [[2, 0], [-1, -1]], axis=1)
    array([[3, 1],
           [6, 6]])
    """
    if others:
        refuse_unknown(gather_elements, "GATHER_ELEMENTS", others)
    name = "GATHER_ELEMENTS"
    copied = by_bytes(
        name, [x], out, lambda values, out: gather_elements(values[0], indices, axis, out=out, device=device)
    )
    if copied is not None:
        return copied
    return apply(name, out, device, InputTensor=x, IndicesTensor=indices, Axis=axis)


@documented("SCATTER_ELEMENTS")
def scatter_elements(
    x: Operand,
    indices: Operand,
    updates: Operand,
    axis: int = 0,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """A copy of x in which an element is set for each index along an axis: DML_OPERATOR_SCATTER_ELEMENTS.

    It is what numpy.put_along_axis does to a copy.

    Args:
        x: an array or an expression of any of DirectML's data types, of truth values, complex numbers or bfloat16.
        indices: likewise, int32, int64, uint32 or uint64, of x's shape but along the axis; negative ones count from the
            end of the axis. Where two name the same element, the last one counts.
        updates: what the elements are set to, of x's type and the indices' shape.
        axis: the dimension that the indices are of; negative counts from the last.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type and shape; a copy of bits.

    >>> scatter_elements([0, 1, 2, 3, 4], [3, 1, 3, 0], [5, 6, 7, 8])
    array([8, 6, 2, 7, 4])
    """
    if others:
        refuse_unknown(scatter_elements, "SCATTER_ELEMENTS", others)
    name = "SCATTER_ELEMENTS"

    def copy(values: list[Any], out: Any) -> Any:
        return scatter_elements(values[0], indices, values[1], axis, out=out, device=device)

    copied = by_bytes(name, [x, updates], out, copy)
    if copied is not None:
        return copied
    return apply(name, out, device, InputTensor=x, IndicesTensor=indices, UpdatesTensor=updates, Axis=axis)
