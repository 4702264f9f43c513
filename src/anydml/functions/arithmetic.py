"""Arithmetic of two operands, which broadcast."""

from __future__ import annotations

from typing import Any

from ..device import Device
from ..operators.schema import OperatorDesc
from ._apply import apply, broadcast_all
from ._documentation import documented
from ._names import refuse_unknown
from ._pointwise import functions_of
from ._types import Operand, Output, Result


@documented("ELEMENT_WISE_ADD", "ELEMENT_WISE_ADD1")
def add(
    a: Operand | float,
    b: Operand | float,
    *,
    activation: OperatorDesc | str | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """a + b for each pair of elements: DML_OPERATOR_ELEMENT_WISE_ADD.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.
        activation: the desc of an activation, without tensors, or its name, that is applied to the sum; none where
            None.

    Returns:
        An array like `a`; integers wrap.

    >>> add([[1.0], [2.0]], [10.0, 20.0])
    array([[11., 21.],
           [12., 22.]], dtype=float32)
    """
    if others:
        refuse_unknown(add, "ELEMENT_WISE_ADD", others)
    operator, options = "ELEMENT_WISE_ADD", {}
    if activation is not None:
        operator, options = "ELEMENT_WISE_ADD1", {"FusedActivation": activation}
    return apply(operator, out, device, spread=broadcast_all, ATensor=a, BTensor=b, **options)


globals().update(functions_of("arithmetic", globals()))
