"""Real numbers quantised, linearly, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.strided_layout import DATA_TYPES
from ..device import Device
from ._apply import apply, broadcast_all, leading
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import Shape, adapter_for
from ._quantisation import along, is_untyped, quantisation_parameter, quantised_dtype
from ._types import DataTypeLike, Operand, Output, Result

_FLOAT32, _FLOAT16, _UINT8 = np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.uint8)


@documented("ELEMENT_WISE_QUANTIZE_LINEAR")
def quantize_linear(
    x: Operand,
    scale: Operand | float,
    zero_point: Operand | float | None = None,
    *,
    axis: int = 1,
    output_dtype: DataTypeLike | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Real numbers as quantised ones: DML_OPERATOR_ELEMENT_WISE_QUANTIZE_LINEAR.

    clamp(round(x / scale) + zero_point) for each element x, to the range of the result's type; halves are rounded to
    the even integer, and a NaN counts as 0.

    Args:
        x: an array or an expression of float32, float16 or int32.
        scale: a number; one for each element along the axis; or an array that broadcasts as NumPy's do. Of x's type, or
            of float32 where that is int32.
        zero_point: likewise, integers of the result's type or of int32 or int64; 0 where None.
        axis: along which a scale or a zero point of one dimension lies.
        output_dtype: int8 or uint8; where None that of `out`, else of a typed zero_point, else uint8.

    Returns:
        An array like `x`, of output_dtype.

    >>> quantize_linear([0.0, 1.25, 100.0], 0.5, 128)
    array([128, 130, 255], dtype=uint8)
    """
    if others:
        refuse_unknown(quantize_linear, "ELEMENT_WISE_QUANTIZE_LINEAR", others)
    name = "ELEMENT_WISE_QUANTIZE_LINEAR"
    side = adapter_for(name, [x, scale, zero_point], out, device)
    shape, of_x = side.look("x", x)
    dtype = quantised_dtype(side, name, output_dtype, out, "zero_point", zero_point, _UINT8)
    return apply(
        name,
        out,
        device,
        spread=broadcast_all,
        InputTensor=x,
        ScaleTensor=along(side, name, "scale", scale, of_x if of_x == _FLOAT16 else _FLOAT32, shape, axis),
        ZeroPointTensor=along(side, name, "zero_point", zero_point, dtype, shape, axis),
        OutputTensor=DATA_TYPES[dtype],
    )


@documented("ELEMENT_WISE_DEQUANTIZE_LINEAR")
def dequantize_linear(
    x: Operand,
    scale: Operand | float,
    zero_point: Operand | float | None = None,
    *,
    axis: int = 1,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Quantised numbers as real ones, (x - zero_point) * scale: DML_OPERATOR_ELEMENT_WISE_DEQUANTIZE_LINEAR.

    Args:
        x: an array or an expression of an integer type of at most 32 bits.
        scale: a number; one for each element along the axis; or an array that broadcasts as NumPy's do, of float32 or
            float16.
        zero_point: likewise, integers of x's type or of int32 or int64; 0 where None.
        axis: along which a scale or a zero point of one dimension lies.

    Returns:
        An array like `x`, of the type of an array that is the scale, or else of `out`; float32 where there is neither.

    >>> import numpy as np
    >>> dequantize_linear(np.array([128, 130, 255], np.uint8), 0.5, 128)
    array([ 0. ,  1. , 63.5], dtype=float32)
    """
    if others:
        refuse_unknown(dequantize_linear, "ELEMENT_WISE_DEQUANTIZE_LINEAR", others)
    name = "ELEMENT_WISE_DEQUANTIZE_LINEAR"
    side = adapter_for(name, [x, scale, zero_point], out, device)
    shape, of_x = side.look("x", x)
    typed = _FLOAT32 if is_untyped(scale) else side.look("scale", scale).dtype
    if is_untyped(scale) and out is not None:
        typed = side.memory.import_array(name, "out", out).dtype
    return apply(
        name,
        out,
        device,
        spread=broadcast_all,
        InputTensor=x,
        ScaleTensor=along(side, name, "scale", scale, typed if typed == _FLOAT16 else _FLOAT32, shape, axis),
        ZeroPointTensor=along(side, name, "zero_point", zero_point, of_x, shape, axis),
    )


@documented("ELEMENT_WISE_QUANTIZED_LINEAR_ADD")
def quantized_linear_add(
    a: Operand,
    a_scale: Operand | float,
    b: Operand,
    b_scale: Operand | float,
    *,
    output_scale: Operand | float,
    a_zero_point: Operand | float | None = None,
    b_zero_point: Operand | float | None = None,
    output_zero_point: Operand | float | None = None,
    output_dtype: DataTypeLike | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Sums of quantised numbers, quantised: DML_OPERATOR_ELEMENT_WISE_QUANTIZED_LINEAR_ADD.

    Args:
        a: an array or an expression of int8 or uint8.
        a_scale: a number.
        b: as a; both broadcast as NumPy's arrays do.
        b_scale: a number.
        output_scale: a number.
        a_zero_point: an integer that a's type holds; 0 where None.
        b_zero_point: likewise for b.
        output_zero_point: likewise for the result.
        output_dtype: int8 or uint8; where None that of `out`, else of a typed output_zero_point, else of a.

    Returns:
        An array like `a`, of output_dtype: round((a - a_zero_point) * a_scale + (b - b_zero_point) * b_scale) /
        output_scale) + output_zero_point, with halves to even, saturated.

    >>> import numpy as np
    >>> a, b = np.array([1, 2, 200], np.uint8), np.array([4, 5, 6], np.uint8)
    >>> quantized_linear_add(a, 1.0, b, 0.5, output_scale=0.5, output_zero_point=10)
    array([ 16,  19, 255], dtype=uint8)
    """
    if others:
        refuse_unknown(quantized_linear_add, "ELEMENT_WISE_QUANTIZED_LINEAR_ADD", others)
    name = "ELEMENT_WISE_QUANTIZED_LINEAR_ADD"
    side = adapter_for(
        name, [a, a_scale, b, b_scale, output_scale, a_zero_point, b_zero_point, output_zero_point], out, device
    )
    of_a, of_b = side.look("a", a).dtype, side.look("b", b).dtype
    dtype = quantised_dtype(side, name, output_dtype, out, "output_zero_point", output_zero_point, of_a)
    sides = {"A": (a_scale, a_zero_point, of_a), "B": (b_scale, b_zero_point, of_b)}
    members: dict[str, Any] = {}
    for which, (scale, zero_point, kind) in {**sides, "Output": (output_scale, output_zero_point, dtype)}.items():
        word = which.lower()
        members[f"{which}ScaleTensor"] = quantisation_parameter(side, name, f"{word}_scale", scale, _FLOAT32)
        members[f"{which}ZeroPointTensor"] = quantisation_parameter(side, name, f"{word}_zero_point", zero_point, kind)
    return apply(
        name, out, device, spread=_beside_a_and_b, ATensor=a, BTensor=b, **members, OutputTensor=DATA_TYPES.get(dtype)
    )


def _beside_a_and_b(name: str, shapes: Mapping[str, Shape]) -> Mapping[str, Shape]:
    """Of the two operands, which broadcast, and of the parameters, which have one element, dimensions as many."""
    both = broadcast_all(name, {label: shapes[label] for label in ("ATensor", "BTensor")})
    rank = len(both["ATensor"])
    return {label: both.get(label, leading(shape, rank)) for label, shape in shapes.items()}
