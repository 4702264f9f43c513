"""Sliding blocks as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..device import Device
from ._apply import apply
from ._documentation import documented
from ._names import refuse_unknown
from ._types import Operand, Output, Result


@documented("UNFOLD")
def unfold(
    x: Operand,
    window_sizes: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    *,
    dilations: int | Sequence[int] = 1,
    start_padding: int | Sequence[int] = 0,
    end_padding: int | Sequence[int] = 0,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Copies the blocks under a sliding window, each into a column, as PyTorch's unfold does: DML_OPERATOR_UNFOLD.

    Args:
        x: an array or an expression of any of DirectML's data types, of shape (N, C, ...), 1 to 6 spatial dimensions.
        window_sizes: the window's elements, for each spatial dimension or one number for all.
        strides: the steps of the window.
        dilations: the distance of its elements; 1 for neighbours.
        start_padding: zeros before x's elements.
        end_padding: zeros behind them.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type and of shape (N, C * elements of a window, blocks).

    >>> unfold([[[1, 2, 3, 4]]], 3)
    array([[[1, 2],
            [2, 3],
            [3, 4]]])
    """
    if others:
        refuse_unknown(unfold, "UNFOLD", others)
    padding = {"StartPadding": start_padding, "EndPadding": end_padding}
    windows = {"WindowSizes": window_sizes, "Strides": strides, "Dilations": dilations}
    return apply("UNFOLD", out, device, InputTensor=x, **windows, **padding)
