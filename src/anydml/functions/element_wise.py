"""Element-wise functions of one operand, and powers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from ..core.tensor_desc import DML_SCALE_BIAS
from ..device import Device
from ._apply import apply, broadcast_all
from ._by_bytes import by_bytes
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import adapter_for
from ._pointwise import functions_of
from ._types import Operand, Output, Result


@documented("ELEMENT_WISE_IDENTITY")
def identity(
    x: Operand,
    *,
    scale_bias: DML_SCALE_BIAS | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Copies each element: DML_OPERATOR_ELEMENT_WISE_IDENTITY.

    It does what DML_OPERATOR_ACTIVATION_IDENTITY does, too.

    Args:
        x: an array or an expression of float64, float32, float16 or an integer type; without a scale_bias of truth
            values, complex numbers or bfloat16 too.
        scale_bias: a DML_SCALE_BIAS, applied to each element first; none where None.

    Returns:
        An array like `x`, of its type and shape; without a scale_bias a copy of bits.

    >>> identity([1.0, 2.0], scale_bias=DML_SCALE_BIAS(Scale=10, Bias=1))
    array([11., 21.], dtype=float32)
    """
    if others:
        refuse_unknown(identity, "ELEMENT_WISE_IDENTITY", others)
    name = "ELEMENT_WISE_IDENTITY"
    if scale_bias is None and not (type(x) is ndarray and x.dtype.kind in "fiu"):
        copied = by_bytes(name, [x], out, lambda values, out: identity(values[0], out=out, device=device))
        if copied is not None:
            return copied
    return apply(name, out, device, InputTensor=x, ScaleBias=scale_bias)


@documented("ELEMENT_WISE_POW", "ELEMENT_WISE_CONSTANT_POW")
def pow(
    x: Operand | float,
    exponent: Operand | float,
    *,
    scale_bias: DML_SCALE_BIAS | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """x to the power of exponent for each pair of elements: DML_OPERATOR_ELEMENT_WISE_POW.

    NaN where x is below 0 and exponent no integer. Where both are integers the result is exact, truncated and modulo
    2^n; 0 to a power below 0 gives all bits 1. Where one is a float, it is computed in double precision, and becomes an
    integer again by truncation, saturated. One number beside floats is the exponent of all, in single precision, of
    DML_OPERATOR_ELEMENT_WISE_CONSTANT_POW.

    Args:
        x: an array or an expression of float32, float16 or an integer type of at most 32 bits, or a number beside one.
        exponent: likewise, of any of these types; both broadcast as NumPy's do.
        scale_bias: a DML_SCALE_BIAS, applied to each element first; none where None.

    Returns:
        An array like `x`, of its type and broadcast shape.

    >>> pow([2.0, 3.0], [[1.0], [2.0]])
    array([[2., 3.],
           [4., 9.]], dtype=float32)
    """
    if others:
        refuse_unknown(pow, "ELEMENT_WISE_POW", others)
    if type(exponent) in (int, float) and type(x) not in (int, float):
        seen = adapter_for("ELEMENT_WISE_POW", [x], out, device).look("x", x)
        if seen.dtype in _CONSTANT_POW_TYPES:
            options = {"InputTensor": x, "ScaleBias": scale_bias, "Exponent": exponent}
            return apply("ELEMENT_WISE_CONSTANT_POW", out, device, **options)
    options = {"InputTensor": x, "ExponentTensor": exponent, "ScaleBias": scale_bias}
    return apply("ELEMENT_WISE_POW", out, device, spread=broadcast_all, **options)


_CONSTANT_POW_TYPES = (np.float32, np.float16)


globals().update(functions_of("element_wise", globals()))
