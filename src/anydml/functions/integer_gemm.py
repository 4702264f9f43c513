"""Products of matrices of integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.enums import TensorDataType
from ..core.strided_layout import DATA_TYPES
from ..device import Device
from ._apply import apply
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import Shape, adapter_for
from ._quantisation import is_untyped, laid_along, quantised_dtype, vector_parameter
from ._types import DataTypeLike, Operand, Output, Result

_FLOAT32, _FLOAT16 = np.dtype(np.float32), np.dtype(np.float16)


@documented("MATRIX_MULTIPLY_INTEGER")
def matrix_multiply_integer(
    a: Operand,
    b: Operand,
    a_zero_point: Operand | int | None = None,
    b_zero_point: Operand | int | None = None,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """(a - a_zero_point) x (b - b_zero_point), a product of matrices of integers: DML_OPERATOR_MATRIX_MULTIPLY_INTEGER.

    Args:
        a: an array or an expression, int8 or uint8 of shape (..., M, K).
        b: likewise, of shape (..., K, N), of either type. The dimensions before these two broadcast, as NumPy's do.
        a_zero_point: an integer, or one for each of the M rows; of a's type, or of int32 or int64. 0 where None.
        b_zero_point: likewise for b, or one for each of the N columns.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `a`, of int32 and shape (..., M, N). Sums are exact, modulo 2^32.

    >>> import numpy as np
    >>> a, b = np.array([[11, 7], [10, 12]], np.uint8), np.array([[1, -2], [3, 4]], np.int8)
    >>> matrix_multiply_integer(a, b, 10)
    array([[ -8, -14],
           [  6,   8]], dtype=int32)
    """
    if others:
        refuse_unknown(matrix_multiply_integer, "MATRIX_MULTIPLY_INTEGER", others)
    name = "MATRIX_MULTIPLY_INTEGER"
    side = adapter_for(name, [a, b, a_zero_point, b_zero_point], out, device)
    of_a, of_b = side.look("a", a).dtype, side.look("b", b).dtype
    return apply(
        name,
        out,
        device,
        spread=_matrices,
        ATensor=a,
        AZeroPointTensor=vector_parameter(side, name, "a_zero_point", a_zero_point, of_a),
        BTensor=b,
        BZeroPointTensor=vector_parameter(side, name, "b_zero_point", b_zero_point, of_b),
        OutputTensor=TensorDataType.INT32,
    )


@documented("QUANTIZED_LINEAR_MATRIX_MULTIPLY")
def quantized_linear_matrix_multiply(
    a: Operand,
    a_scale: Operand | float,
    b: Operand,
    b_scale: Operand | float,
    *,
    output_scale: Operand | float,
    a_zero_point: Operand | int | None = None,
    b_zero_point: Operand | int | None = None,
    output_zero_point: Operand | int | None = None,
    output_dtype: DataTypeLike | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Products of quantised matrices, quantised: DML_OPERATOR_QUANTIZED_LINEAR_MATRIX_MULTIPLY.

    Args:
        a: an array or an expression, int8 or uint8 of shape (..., M, K).
        a_scale: a number, or one for each of the M rows.
        b: as a, of shape (..., K, N), of either type. The dimensions before these two broadcast, as NumPy's do.
        b_scale: a number, or one for each of the N columns.
        output_scale: a number, or one for each of the M rows.
        a_zero_point: an integer, or one for each row, of a's type or of int32 or int64; 0 where None.
        b_zero_point: likewise for b, or one for each column.
        output_zero_point: likewise for the result, or one for each row.
        output_dtype: int8 or uint8; where None that of `out`, else of a typed output_zero_point, else of a.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `a`, of output_dtype: round(S * a_scale * b_scale / output_scale) + output_zero_point, saturated,
        with S the exact sum of (a - a_zero_point) * (b - b_zero_point). What is rounded is the exact quotient, halves
        to the even integer.

    >>> import numpy as np
    >>> a, b = np.array([[1, 2]], np.uint8), np.array([[3], [4]], np.int8)
    >>> quantized_linear_matrix_multiply(a, 0.5, b, 0.5, output_scale=0.5, output_zero_point=100)
    array([[106]], dtype=uint8)
    """
    if others:
        refuse_unknown(quantized_linear_matrix_multiply, "QUANTIZED_LINEAR_MATRIX_MULTIPLY", others)
    name = "QUANTIZED_LINEAR_MATRIX_MULTIPLY"
    every = [a, a_scale, a_zero_point, b, b_scale, b_zero_point, output_scale, output_zero_point]
    side = adapter_for(name, every, out, device)
    of_a, of_b = side.look("a", a).dtype, side.look("b", b).dtype
    dtype = quantised_dtype(side, name, output_dtype, out, "output_zero_point", output_zero_point, of_a)
    return apply(
        name,
        out,
        device,
        spread=_matrices,
        ATensor=a,
        AScaleTensor=vector_parameter(side, name, "a_scale", a_scale, _FLOAT32),
        AZeroPointTensor=vector_parameter(side, name, "a_zero_point", a_zero_point, of_a),
        BTensor=b,
        BScaleTensor=vector_parameter(side, name, "b_scale", b_scale, _FLOAT32),
        BZeroPointTensor=vector_parameter(side, name, "b_zero_point", b_zero_point, of_b),
        OutputScaleTensor=vector_parameter(side, name, "output_scale", output_scale, _FLOAT32),
        OutputZeroPointTensor=vector_parameter(side, name, "output_zero_point", output_zero_point, dtype),
        OutputTensor=DATA_TYPES.get(dtype),
    )


@documented("MATRIX_MULTIPLY_INTEGER_TO_FLOAT")
def matrix_multiply_integer_to_float(
    a: Operand,
    a_scale: Operand | float,
    b: Operand,
    b_scale: Operand | float,
    bias: Operand | float | None = None,
    *,
    a_zero_point: Operand | int | None = None,
    b_zero_point: Operand | int | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Products of quantised matrices as real numbers: DML_OPERATOR_MATRIX_MULTIPLY_INTEGER_TO_FLOAT.

    Args:
        a: an array or an expression of integers of at most 32 bits and shape (..., M, K).
        a_scale: a number, or one for each of the M rows; float32 or float16.
        b: as a, of shape (..., K, N), of any of those types. The dimensions before these two broadcast, as NumPy's do.
        b_scale: a number, or one for each of the N columns.
        bias: what is added, of what broadcasts to the result; nothing where None.
        a_zero_point: an integer, or one for each row, of a's type or of int32 or int64; 0 where None.
        b_zero_point: likewise for b, or one for each column.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `a`, of the type of an array that is a scale, or else of `out`, float32 where there is neither:
        S * (a_scale * b_scale) + bias, in double precision, rounded once, S being the exact sum of
        (a - a_zero_point) * (b - b_zero_point).

    >>> import numpy as np
    >>> a, b = np.array([[1, 2]], np.uint8), np.array([[3], [4]], np.int8)
    >>> matrix_multiply_integer_to_float(a, 0.5, b, 0.25, 1.0)
    array([[2.375]], dtype=float32)
    """
    if others:
        refuse_unknown(matrix_multiply_integer_to_float, "MATRIX_MULTIPLY_INTEGER_TO_FLOAT", others)
    name = "MATRIX_MULTIPLY_INTEGER_TO_FLOAT"
    side = adapter_for(name, [a, a_scale, a_zero_point, b, b_scale, b_zero_point, bias], out, device)
    of_a, of_b = side.look("a", a).dtype, side.look("b", b).dtype
    typed = [
        side.look(where, each).dtype
        for where, each in (("a_scale", a_scale), ("b_scale", b_scale))
        if not is_untyped(each)
    ]
    if not typed and out is not None:
        typed = [side.memory.import_array(name, "out", out).dtype]
    real = _FLOAT16 if _FLOAT16 in typed else _FLOAT32
    return apply(
        name,
        out,
        device,
        spread=_matrices,
        ATensor=a,
        AScaleTensor=vector_parameter(side, name, "a_scale", a_scale, real),
        AZeroPointTensor=vector_parameter(side, name, "a_zero_point", a_zero_point, of_a),
        BTensor=b,
        BScaleTensor=vector_parameter(side, name, "b_scale", b_scale, real),
        BZeroPointTensor=vector_parameter(side, name, "b_zero_point", b_zero_point, of_b),
        BiasTensor=None if bias is None else vector_parameter(side, name, "bias", bias, real),
        OutputTensor=DATA_TYPES[real],
    )


_OF_ROWS = ("AScaleTensor", "AZeroPointTensor", "OutputScaleTensor", "OutputZeroPointTensor")
_OF_COLUMNS = ("BScaleTensor", "BZeroPointTensor")


def _matrices(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """Matrices broadcast, a bias to the result; scales and zero points lie along rows or columns."""
    a, b = shapes["ATensor"], shapes["BTensor"]
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
        rows, columns = a[-2], b[-1]
        wanted = {"ATensor": (*batch, *a[-2:]), "BTensor": (*batch, *b[-2:])}
        result = (*batch, rows, columns)
        if "BiasTensor" in shapes and np.broadcast_shapes(shapes["BiasTensor"], result) == result:
            wanted["BiasTensor"] = result
    except (ValueError, IndexError):
        return {}  # the operator's own rules say what is wrong
    for labels, axis in ((_OF_ROWS, -2), (_OF_COLUMNS, -1)):
        for label in labels:
            if label in shapes:
                wanted[label] = laid_along(shapes[label], axis, len(result))
    return wanted
