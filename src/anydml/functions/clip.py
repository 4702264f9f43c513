"""Limits to an interval, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.tensor_desc import DML_SCALE_BIAS, plain, single
from ..device import Device
from ._apply import apply, broadcast_all
from ._call import data_type_of
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import adapter_for
from ._pointwise import functions_of
from ._types import Operand, Output, Result


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
    ends = {"Min": plain(min), "Max": plain(max)}
    seen = adapter_for("ELEMENT_WISE_CLIP", [x], out, device).look("x", x)
    if not _are_long(ends, seen.dtype):
        return apply("ELEMENT_WISE_CLIP", out, device, InputTensor=x, ScaleBias=scale_bias, **ends)
    # It takes the other one of ends that are crossed.
    ends["Min"] = sorted(ends.values())[0]
    ends["MinMaxDataType"] = data_type_of("ELEMENT_WISE_CLIP1", "x", seen)
    return apply("ELEMENT_WISE_CLIP1", out, device, InputTensor=x, ScaleBias=scale_bias, **ends)


@documented("ELEMENT_WISE_CLIP_GRAD", "ELEMENT_WISE_CLIP_GRAD1")
def clip_grad(
    x: Operand | float,
    input_gradient: Operand | float,
    min: float,
    max: float,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """The gradients of :func:`clip`: DML_OPERATOR_ELEMENT_WISE_CLIP_GRAD.

    0 for each element where x <= min or x >= max, else the incoming gradient. Of integers, ends that single
    precision does not hold are taken exactly, by DML_OPERATOR_ELEMENT_WISE_CLIP_GRAD1.

    Args:
        x: an array or an expression of float32, float16 or an integer type, or a number beside one.
        input_gradient: likewise, of the same type; both broadcast as NumPy's do.
        min: the lower end.
        max: the upper end.

    Returns:
        An array like `x`, of its type and broadcast shape.

    >>> clip_grad([1, 2, 5, 7], [10, 20, 30, 40], 2, 7)
    array([ 0,  0, 30,  0])
    """
    if others:
        refuse_unknown(clip_grad, "ELEMENT_WISE_CLIP_GRAD", others)
    name, operands = "ELEMENT_WISE_CLIP_GRAD", {"InputTensor": x, "InputGradientTensor": input_gradient}
    ends = {"Min": plain(min), "Max": plain(max)}
    where, typed = ("input_gradient", input_gradient) if type(x) in (int, float) else ("x", x)
    seen = adapter_for(name, operands.values(), out, device).look(where, typed)
    if _are_long(ends, seen.dtype):
        name, ends["MinMaxDataType"] = f"{name}1", data_type_of(f"{name}1", where, seen)
    return apply(name, out, device, spread=broadcast_all, **operands, **ends)


def _are_long(ends: dict[str, Any], dtype: np.dtype[Any]) -> bool:
    """Whether ends of integers are such that single precision does not hold."""
    are_integers = dtype.kind != "f" and {*map(type, ends.values())} == {int}
    return are_integers and any(single(end) != end for end in ends.values())


globals().update(functions_of("clip", globals()))
