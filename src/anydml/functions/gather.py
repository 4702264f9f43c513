"""Elements gathered along an axis, by indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..device import Device
from ._apply import apply
from ._documentation import documented
from ._operand_adapter import Shape, adapter_for


@documented("GATHER")
def gather(
    x: Any,
    indices: Any,
    axis: int = 0,
    *,
    index_dimensions: int | None = None,
    out: Any = None,
    device: Device | str | None = None,
) -> Any:
    """Copies the elements that indices along an axis name, as numpy.take does: DML_OPERATOR_GATHER.

    The dimensions of the indices stand where the axis stood. The result has as many dimensions as x, with 1s before
    those that there are, and without leading 1s that would be too many.

    Args:
        x: an array or an expression of any of DirectML's data types.
        indices: likewise, int32, int64, uint32 or uint64; negative ones count from the end of the axis.
        axis: the dimension that the indices are of; negative counts from the last.
        index_dimensions: how many of the last dimensions of the indices there are, of which those before are 1; all
            where None, 0 for one index that takes the axis away.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type; a copy of bits.

    >>> gather([[1, 2, 3], [4, 5, 6]], [2, -3], axis=1)
    array([[3, 1],
           [6, 4]])
    """
    name = "GATHER"
    if index_dimensions is None:
        side = adapter_for(name, [x, indices], out, device)
        index_dimensions = len(side.look("indices", indices).shape)
    operands = {"InputTensor": x, "IndicesTensor": indices}
    return apply(name, out, device, spread=_of_one_rank, **operands, Axis=axis, IndexDimensions=index_dimensions)


def _of_one_rank(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    missing = len(shapes["InputTensor"]) - len(shapes["IndicesTensor"])
    return {"IndicesTensor": (1,) * missing + shapes["IndicesTensor"]}
