"""Element-wise functions of one operand, and of two, which broadcast."""

from __future__ import annotations

from typing import Any

from numpy import ndarray

from ..core.tensor_desc import DML_SCALE_BIAS, plain, single
from ..device import Device
from ..operators.schema import OperatorDesc
from ._apply import apply, broadcast_all
from ._by_bytes import by_bytes
from ._call import data_type_of
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


@documented("ELEMENT_WISE_CLIP", "ELEMENT_WISE_CLIP1")
def clip(
    x: Operand,
    min: float,
    max: float,
    *,
    scale_bias: DML_SCALE_BIAS | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Limits each element to an interval: DML_OPERATOR_ELEMENT_WISE_CLIP.

    f(x) = min(max, max(min, x)), and min of a NaN. Of integers, ends that single precision does not hold are taken
    exactly, by DML_OPERATOR_ELEMENT_WISE_CLIP1.

    Args:
        x: an array or an expression of float32, float16 or an integer type.
        min: the lower end.
        max: the upper end; where it is below min, every result.
        scale_bias: a DML_SCALE_BIAS, applied to each element first; none where None.

    Returns:
        An array like `x`, of its type and shape.

    >>> clip([1, 5, 9], 2, 7)
    array([2, 5, 7])
    """
    if others:
        refuse_unknown(clip, "ELEMENT_WISE_CLIP", others)
    side = adapter_for("ELEMENT_WISE_CLIP", [x], out, device)
    seen = side.look("x", x)
    ends = {"Min": plain(min), "Max": plain(max)}
    is_long = {*map(type, ends.values())} == {int} and any(single(end) != end for end in ends.values())
    if not is_long or seen.dtype.kind == "f":
        return apply("ELEMENT_WISE_CLIP", out, device, InputTensor=x, ScaleBias=scale_bias, **ends)
    # It takes the other one of ends that are crossed.
    ends["Min"] = sorted(ends.values())[0]
    ends["MinMaxDataType"] = data_type_of("ELEMENT_WISE_CLIP1", "x", seen)
    return apply("ELEMENT_WISE_CLIP1", out, device, InputTensor=x, ScaleBias=scale_bias, **ends)


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


globals().update(functions_of("element_wise", globals()))
