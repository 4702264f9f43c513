"""Arrays enlarged at their ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.enums import PaddingMode
from ..device import Device
from ._apply import apply
from ._documentation import documented
from ._names import refuse_unknown
from ._types import Operand, Output, Result


@documented("PADDING")
def padding(
    x: Operand,
    start_padding: int | Sequence[int],
    end_padding: int | Sequence[int],
    *,
    mode: PaddingMode | str = PaddingMode.CONSTANT,
    value: float = 0.0,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Puts elements before and behind those of an array: DML_OPERATOR_PADDING.

    Args:
        x: an array or an expression of any of DirectML's data types.
        start_padding: elements before x's, for each dimension or one number for all.
        end_padding: likewise behind them.
        mode: a PaddingMode or its name: a constant, or what x holds itself: EDGE, REFLECTION, SYMMETRIC, WRAP.
        value: what CONSTANT pads with.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type.

    >>> padding([1, 2, 3], 2, 1, mode=PaddingMode.REFLECTION)
    array([3, 2, 1, 2, 3, 2])
    """
    if others:
        refuse_unknown(padding, "PADDING", others)
    ends = {"StartPadding": start_padding, "EndPadding": end_padding}
    return apply("PADDING", out, device, InputTensor=x, PaddingMode=mode, PaddingValue=value, **ends)
