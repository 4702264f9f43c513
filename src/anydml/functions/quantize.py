"""Real numbers quantised by blocks, to 8 bits and to 4, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.enums import QuantizationType, TensorDataType
from ..core.errors import kind_of, refuse
from ..core.packed_array import LIMITS, PackedArray, as_ml_dtypes, as_packed, four_bits_of, unpacked_dtype
from ..core.strided_layout import DATA_TYPES
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..device import Device
from ._apply import apply, leading
from ._arguments import as_dtype, as_parameter
from ._documentation import documented
from ._names import refuse_unknown
from ._operand_adapter import OperandAdapter, Shape, adapter_for, are_arrays
from ._quantisation import along, is_untyped, shape_along
from ._types import DataTypeLike, Operand, Output, PackedOperand, Result

_REAL = (TensorDataType.FLOAT16, TensorDataType.FLOAT32)


@documented("QUANTIZE")
def quantize(
    x: Operand,
    scale: Operand | float,
    zero_point: PackedOperand | float | None = None,
    *,
    axis: int = 1,
    output_dtype: DataTypeLike | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Real numbers as quantised ones, by blocks: DML_OPERATOR_QUANTIZE.

    clamp(round(x / scale) + zero_point) for each element x, to the range of the result's type; halves are rounded to
    the even integer, and a NaN counts as 0. :func:`quantize_linear` is older, has no blocks, and no types of 4 bits.

    Args:
        x: an array or an expression of float32 or float16.
        scale: a number; one for each block along the axis; or an array whose sizes divide x's, with a number for each
            block: along a dimension of 6 elements 6, 3 or 2 numbers, or 1 for all. Of x's type.
        zero_point: likewise, integers that the result's type holds; 0 where None.
        axis: along which a scale or a zero point of one dimension lies.
        output_dtype: int8, uint8, "int4" or "uint4", or ml_dtypes' type of that name; where None that of `out`, else of
            a typed zero_point, else uint8.
        out: where to write, of any strides; a PackedArray where the type is of 4 bits. Returned.

    Returns:
        An array like `x`, of output_dtype. Of 4 bits a :class:`anydml.PackedArray`, or an array of ml_dtypes where
        output_dtype or zero_point is of that package.

    >>> quantize([[0.0, 1.25, 100.0, 40.0]], [[0.5, 20.0]], output_dtype="int8")
    array([[0, 2, 5, 2]], dtype=int8)
    >>> quantize([-1.0, 0.5, 9.0], 0.5, output_dtype="int4").unpack()
    array([-2,  1,  7], dtype=int8)
    """
    if others:
        refuse_unknown(quantize, "QUANTIZE", others)
    name = "QUANTIZE"
    side = adapter_for(name, [x, scale, zero_point], out, device)
    shape, of_x = _shape_of(side, "x", x), _data_type(side, "x", x)
    data_type = _output_type(side, name, output_dtype, out, zero_point)
    parameters = _parameters(side, name, scale, of_x, zero_point, data_type, shape, axis)
    result = apply(name, out, device, InputTensor=x, **parameters, OutputTensor=data_type)
    is_ml_dtypes = _is_ml_dtypes(output_dtype if output_dtype is not None else getattr(zero_point, "dtype", None))
    return as_ml_dtypes(result) if is_ml_dtypes and isinstance(result, PackedArray) and out is None else result


@documented("DEQUANTIZE")
def dequantize(
    x: PackedOperand,
    scale: Operand | float,
    zero_point: PackedOperand | float | None = None,
    *,
    axis: int = 1,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Quantised numbers as real ones, by blocks, (x - zero_point) * scale: DML_OPERATOR_DEQUANTIZE.

    Args:
        x: an array or an expression of int8 or uint8; or of 4 bits, a :class:`anydml.PackedArray` or an array of
            ml_dtypes' int4 or uint4.
        scale: a number; one for each block along the axis; or an array whose sizes divide x's, with a number for each
            block, of float32 or float16.
        zero_point: likewise, integers that x's type holds; 0 where None.
        axis: along which a scale or a zero point of one dimension lies.

    Returns:
        An array like `x`, of the type of an array that is the scale, or else of `out`; float32 where there is neither.

    >>> dequantize(PackedArray.pack([[1, -8, 7, 2]], "INT4"), [[0.5, 2.0]])
    array([[ 0.5, -4. , 14. ,  4. ]], dtype=float32)
    """
    if others:
        refuse_unknown(dequantize, "DEQUANTIZE", others)
    name = "DEQUANTIZE"
    side = adapter_for(name, [x, scale, zero_point], out, device)
    shape, of_x = _shape_of(side, "x", x), _data_type(side, "x", x)
    of_scale = None if is_untyped(scale) else _data_type(side, "scale", scale)
    if of_scale is None and out is not None:
        of_scale = DATA_TYPES.get(side.memory.import_array(name, "out", out).dtype)
    real = of_scale if of_scale in _REAL else TensorDataType.FLOAT32
    parameters = _parameters(side, name, scale, real, zero_point, of_x, shape, axis)
    return apply(name, out, device, InputTensor=x, **parameters, OutputTensor=real)


def _parameters(
    side: OperandAdapter,
    name: str,
    scale: Any,
    real: TensorDataType | None,
    zero_point: Any,
    data_type: TensorDataType | None,
    shape: Shape,
    axis: int,
) -> dict[str, Any]:
    """The members that say how numbers are quantised."""
    of_scale = np.dtype(np.float16 if real == TensorDataType.FLOAT16 else np.float32)
    tensors = [along(side, name, "scale", scale, of_scale, shape, axis)]
    if zero_point is not None:
        kind = data_type or TensorDataType.UINT8
        if kind in LIMITS:
            tensors.append(_packed(side, name, zero_point, kind, shape, axis))
        else:
            of_integers = np.dtype(np.int8 if kind == TensorDataType.INT8 else np.uint8)
            tensors.append(along(side, name, "zero_point", zero_point, of_integers, shape, axis))
    kinds = (QuantizationType.SCALE, QuantizationType.SCALE_ZERO_POINT)
    tensors = [_reshaped(each, leading(tuple(each.shape), len(shape))) for each in tensors]
    return {"QuantizationType": kinds[len(tensors) - 1], "QuantizationTensors": tensors}


def _packed(side: OperandAdapter, name: str, value: Any, data_type: TensorDataType, shape: Shape, axis: int) -> Any:
    """A zero point of 4 bits; an expression as it is. Rule (A9)."""
    found = as_packed(value)
    if found is None and are_arrays([value]):
        low, high = LIMITS[data_type]
        given = as_parameter(side.memory, name, "zero_point", value, unpacked_dtype(data_type))
        array = given if isinstance(given, np.ndarray) else given.numpy()
        if array.size and not low <= array.min() <= array.max() <= high:
            expected = f"{low} to {high}, which {data_type.name.lower()} holds"
            refuse(name, "(A9)", "zero_point", kind_of(value), expected)
        found = PackedArray.pack(array, data_type)
    parameter = value if found is None else found
    return _reshaped(parameter, shape_along(name, tuple(parameter.shape), shape, axis))


def _reshaped(parameter: Any, shape: Shape) -> Any:
    if isinstance(parameter, PackedArray):
        return PackedArray(parameter.data, parameter.data_type, shape)
    return parameter if tuple(parameter.shape) == shape else parameter.reshape(shape)


def _shape_of(side: OperandAdapter, where: str, value: Any) -> Shape:
    tensor = getattr(value, "tensor", None)
    return tuple(tensor.Sizes) if isinstance(tensor, DML_BUFFER_TENSOR_DESC) else side.look(where, value).shape


def _data_type(side: OperandAdapter, where: str, value: Any) -> TensorDataType | None:
    """Of an operand; None where it is of no data type, which is refused later."""
    tensor = getattr(value, "tensor", None)
    if isinstance(tensor, DML_BUFFER_TENSOR_DESC):
        return tensor.DataType
    packed = as_packed(value)
    return DATA_TYPES.get(side.look(where, value).dtype) if packed is None else packed.data_type


def _output_type(side: OperandAdapter, name: str, given: Any, out: Any, zero_point: Any) -> TensorDataType:
    """Of quantised results."""
    if given is not None:
        return four_bits_of(given) or DATA_TYPES[as_dtype(name, "output_dtype", given, "int8, uint8, int4 or uint4")]
    if out is not None:
        packed = isinstance(out, PackedArray)
        found = out.data_type if packed else DATA_TYPES.get(side.memory.import_array(name, "out", out).dtype)
        return found or TensorDataType.UINT8
    typed = None if is_untyped(zero_point) else _data_type(side, "zero_point", zero_point)
    return typed if typed is not None and typed.bits <= 8 else TensorDataType.UINT8


def _is_ml_dtypes(dtype: Any) -> bool:
    """Whether a data type of 4 bits is one of NumPy's, as the package's are."""
    is_numpy = isinstance(dtype, (type, np.dtype))
    return is_numpy and four_bits_of(dtype) is not None
