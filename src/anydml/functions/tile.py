"""Arrays repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..device import Device
from ._apply import apply
from ._arguments import is_several, per_dimension
from ._documentation import documented
from ._names import REQUIRED, refuse_unknown
from ._operand_adapter import adapter_for
from ._types import Operand, Output, Result


@documented("TILE")
def tile(
    x: Operand,
    repeats: int | Sequence[int] = REQUIRED,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Copies an array so many times along each dimension, one copy behind the other: DML_OPERATOR_TILE.

    Args:
        x: an array or an expression of any of DirectML's data types but float64.
        repeats: the copies along each dimension; where there are fewer numbers, or one, along the last dimensions.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type; a copy of bits.

    >>> tile([[1, 2], [3, 4]], 2)
    array([[1, 2, 1, 2],
           [3, 4, 3, 4]])
    """
    if others or repeats is REQUIRED:
        refuse_unknown(tile, "TILE", others, repeats=repeats)
    rank = len(adapter_for("TILE", [x], out, device).look("x", x).shape)
    given: Any = repeats if is_several(repeats) else [repeats]
    numbers = per_dimension("TILE", "repeats", [*[1] * (rank - len(given)), *given], rank)
    return apply("TILE", out, device, InputTensor=x, Repeats=numbers)
