"""Arrays enlarged at their ends."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from ..core.enums import PaddingMode
from ..core.tensor_desc import SINGLE_END, plain, single
from ..device import Device
from ._apply import apply
from ._call import data_type_of
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import adapter_for
from ._types import Operand, Output, Result


@documented("PADDING", "PADDING1")
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

    With a value that x's type holds, and single precision does not, it is DML_OPERATOR_PADDING1.

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
    members = {"InputTensor": x, "PaddingMode": mode, "StartPadding": start_padding, "EndPadding": end_padding}
    number = plain(value)
    if type(number) in (int, float) and isfinite(number) and (single(number) != number or abs(number) >= SINGLE_END):
        seen = adapter_for("PADDING1", [x], out, device).look("x", x)
        if type(number) is int or seen.dtype == np.float64:
            data_type = data_type_of("PADDING1", "x", seen)
            return apply("PADDING1", out, device, **members, PaddingValueDataType=data_type, PaddingValue=number)
    return apply("PADDING", out, device, **members, PaddingValue=value)
