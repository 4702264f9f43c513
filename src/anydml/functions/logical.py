"""Logical functions, comparisons, and the choice by a condition."""

from __future__ import annotations

from typing import Any

from ..device import Device
from ._apply import apply, broadcast_all
from ._documentation import documented
from ._names import refuse_unknown
from ._pointwise import functions_of
from ._types import Operand, Output, Result


@documented("ELEMENT_WISE_IF")
def if_(
    condition: Operand,
    a: Operand | float,
    b: Operand | float,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """a where the condition is true, and b elsewhere, bit by bit: DML_OPERATOR_ELEMENT_WISE_IF.

    It is NumPy's where, and has that name, too. All three broadcast as NumPy's arrays do.

    Args:
        condition: an array or an expression of truth values or uint8, true where it is not 0.
        a: an array or an expression of truth values or any of DirectML's data types, or a number.
        b: likewise, of the same type.

    Returns:
        An array like `condition`, of the type of a and b.

    >>> if_([True, False], [1.0, 2.0], 9)
    array([1., 9.], dtype=float32)
    """
    if others:
        refuse_unknown(if_, "ELEMENT_WISE_IF", others)
    return apply("ELEMENT_WISE_IF", out, device, spread=broadcast_all, ConditionTensor=condition, ATensor=a, BTensor=b)


where = if_

globals().update(functions_of("logical", globals()))
