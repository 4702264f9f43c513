"""Activations of each element, which other functions take as descs, to apply them to their results."""

from __future__ import annotations

from typing import Any

from ..core.tensor_desc import DML_SCALE_BIAS
from ..device import Device
from ._apply import apply
from ._documentation import documented
from ._names import refuse_unknown
from ._pointwise import functions_of
from ._types import Operand, Output, Result


@documented("ACTIVATION_TANH", "ELEMENT_WISE_TANH")
def tanh(
    x: Operand,
    *,
    scale_bias: DML_SCALE_BIAS | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """The hyperbolic tangent of each element: DML_OPERATOR_ACTIVATION_TANH.

    With a scale_bias it is DML_OPERATOR_ELEMENT_WISE_TANH.

    Args:
        x: an array or an expression of float32 or float16.
        scale_bias: a DML_SCALE_BIAS, applied to each element first; none where None.

    Returns:
        An array like `x`, of its type and shape.

    >>> tanh([0.0, 1.0])
    array([0.       , 0.7615942], dtype=float32)
    """
    if others:
        refuse_unknown(tanh, "ACTIVATION_TANH", others)
    if scale_bias is None:
        return apply("ACTIVATION_TANH", out, device, InputTensor=x)
    return apply("ELEMENT_WISE_TANH", out, device, InputTensor=x, ScaleBias=scale_bias)


globals().update(functions_of("activation", globals()))
