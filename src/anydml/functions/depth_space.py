"""Channels as blocks of an image, and back."""

from __future__ import annotations

from typing import Any

from ..core.enums import DepthSpaceOrder
from ..device import Device
from ._apply import apply
from ._documentation import documented
from ._names import as_member, refuse_unknown
from ._types import Operand, Output, Result


@documented("DEPTH_TO_SPACE", "DEPTH_TO_SPACE1")
def depth_to_space(
    x: Operand,
    block_size: int,
    order: DepthSpaceOrder | str = DepthSpaceOrder.DEPTH_COLUMN_ROW,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Makes blocks of an image of channels: DML_OPERATOR_DEPTH_TO_SPACE.

    In COLUMN_ROW_DEPTH, the order of PyTorch's pixel_shuffle, it is DML_OPERATOR_DEPTH_TO_SPACE1.

    Args:
        x: an array or an expression of shape (N, C, H, W), of any of DirectML's data types.
        block_size: the height and the width of a block, whose square divides the channels.
        order: a DepthSpaceOrder or its name: whether channels of a result follow each other in x, or those of a block.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type; a copy of bits.

    >>> depth_to_space([[[[1]], [[2]], [[3]], [[4]]]], 2)
    array([[[[1, 2],
             [3, 4]]]])
    """
    if others:
        refuse_unknown(depth_to_space, "DEPTH_TO_SPACE1", others)
    return _rearranged("DEPTH_TO_SPACE", x, block_size, order, out, device)


@documented("SPACE_TO_DEPTH", "SPACE_TO_DEPTH1")
def space_to_depth(
    x: Operand,
    block_size: int,
    order: DepthSpaceOrder | str = DepthSpaceOrder.DEPTH_COLUMN_ROW,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Makes channels of the places in the blocks of an image: DML_OPERATOR_SPACE_TO_DEPTH.

    In COLUMN_ROW_DEPTH, the order of PyTorch's pixel_unshuffle, it is DML_OPERATOR_SPACE_TO_DEPTH1.

    Args:
        x: an array or an expression of shape (N, C, H, W), of any of DirectML's data types.
        block_size: the height and the width of a block, which divides those of x.
        order: a DepthSpaceOrder or its name: whether channels of x follow each other in a result, or those of a block.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type; a copy of bits.

    >>> space_to_depth([[[[1, 2], [3, 4]]]], 2).ravel()
    array([1, 2, 3, 4])
    """
    if others:
        refuse_unknown(space_to_depth, "SPACE_TO_DEPTH1", others)
    return _rearranged("SPACE_TO_DEPTH", x, block_size, order, out, device)


def _rearranged(name: str, x: Any, block_size: Any, order: Any, out: Any, device: Any) -> Any:
    if as_member(f"{name}1", "order", order, "enums.DepthSpaceOrder") is DepthSpaceOrder.DEPTH_COLUMN_ROW:
        return apply(name, out, device, InputTensor=x, BlockSize=block_size)
    return apply(f"{name}1", out, device, InputTensor=x, BlockSize=block_size, Order=order)
