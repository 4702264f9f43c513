"""Functions of bits, which of truth values are logical."""

from __future__ import annotations

from typing import Any

from ..core.truth_values import is_bool
from ..device import Device
from ._apply import apply
from ._documentation import documented
from ._names import refuse_unknown
from ._pointwise import functions_of
from ._types import Operand, Output, Result


@documented("ELEMENT_WISE_BIT_NOT")
def bit_not(
    x: Operand,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """~x for each element x, the bits that it has not: DML_OPERATOR_ELEMENT_WISE_BIT_NOT.

    Args:
        x: an array or an expression of any of DirectML's data types; or of truth values, of which it is LOGICAL_NOT.

    Returns:
        An array like `x`, of its type and shape.

    >>> bit_not([0, 5])
    array([-1, -6])
    """
    if others:
        refuse_unknown(bit_not, "ELEMENT_WISE_BIT_NOT", others)
    operator = "ELEMENT_WISE_LOGICAL_NOT" if is_bool(x) else "ELEMENT_WISE_BIT_NOT"
    return apply(operator, out, device, InputTensor=x)


globals().update(functions_of("bits", globals()))
