"""Division by a norm along an axis."""

from __future__ import annotations

from typing import Any

from ..device import Device
from ._apply import apply
from ._documentation import documented
from ._names import refuse_unknown
from ._types import Operand, Output, Result


@documented("LP_NORMALIZATION")
def lp_normalization(
    x: Operand,
    axis: int = -1,
    *,
    p: int = 2,
    epsilon: float = 1e-5,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """x / max(norm, epsilon), the norm of the elements along an axis: DML_OPERATOR_LP_NORMALIZATION.

    Args:
        x: an array or an expression, float32 or float16 of 4 dimensions.
        axis: the dimension along which norms are taken; negative counts from the last.
        p: the norm's exponent, 1 or 2.
        epsilon: the least that is divided by, so that it is not 0.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type and shape.

    >>> lp_normalization([[[[3.0, 4.0], [0.0, 0.0]]]])
    array([[[[0.6, 0.8],
             [0. , 0. ]]]], dtype=float32)
    """
    if others:
        refuse_unknown(lp_normalization, "LP_NORMALIZATION", others)
    return apply("LP_NORMALIZATION", out, device, InputTensor=x, Axis=axis, Epsilon=epsilon, P=p)
