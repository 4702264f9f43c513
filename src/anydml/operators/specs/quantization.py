"""Linear quantisation, element by element: real = (quantised - zero point) * scale.

Decisions where the pages are silent:

1. QUANTIZE_LINEAR divides in single precision, as ONNX Runtime does: x and scale as FLOAT32, their quotient rounded
   once. Exact quotients would round otherwise where they lie next to a half.
2. Quotients are rounded to the nearest integer, halves to the even one. Then the zero point is added to the integer, and
   the sum is saturated to the output's type. To add before rounding would be 1 off at halves with an odd zero point.
3. A quotient that is NaN counts as 0, so that the zero point is the result; infinities, those of a scale of 0 too, which
   the pages call undefined, saturate. No value is refused.
4. DEQUANTIZE_LINEAR subtracts exactly, and multiplies in double precision, rounded once to the output's type: of 8 and 16
   bits the product in FLOAT32.
5. QUANTIZED_LINEAR_ADD computes (a - za) * sa + (b - zb) * sb in double precision, in which both products are exact, and
   its quotient by the output's scale, too.
6. A zero point that is absent is 0. Scales and zero points of QUANTIZED_LINEAR_ADD have one element, as its page says,
   while ATensor, BTensor and OutputTensor have the same sizes, which it does not say.
7. Results have another type than elements: nothing runs in-place, as no page says that it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.enums import FeatureLevel, TensorDataType
from ...core.strided_layout import DTYPES, Array
from ..constraints import rounded
from ..pointwise import Pointwise
from ..schema import ConstraintFailure, LevelRequirement


def _zero_point_level(desc: Any) -> Iterator[LevelRequirement]:
    if desc.ZeroPointTensor is None:
        yield LevelRequirement(FeatureLevel.LEVEL_6_2, "ZeroPointTensor", "None", "a tensor")


def _check_scale(desc: Any) -> Iterator[ConstraintFailure]:
    found, of_input = desc.ScaleTensor.DataType, desc.InputTensor.DataType
    wanted = TensorDataType.FLOAT32 if of_input == TensorDataType.INT32 else of_input
    if found != wanted:
        expected = f"{wanted.name}, as InputTensor is {of_input.name}"
        yield ConstraintFailure("(C3)", "ScaleTensor.DataType", found.name, expected)


_OF_ADD = tuple([f"{side}{what}Tensor" for side in ("A", "B", "Output") for what in ("Scale", "ZeroPoint")])


def _check_scalars(desc: Any) -> Iterator[ConstraintFailure]:
    for name in _OF_ADD:
        tensor = getattr(desc, name)
        if tensor is not None and any(size != 1 for size in tensor.Sizes):
            yield ConstraintFailure("(C3)", f"{name}.Sizes", str(list(tensor.Sizes)), "1 in each dimension")


def _zero(zero_point: Array | None) -> Any:
    return 0 if zero_point is None else zero_point.astype(np.float64)


def _quantised(desc: Any, quotient: Array, zero_point: Array | None) -> Array:
    """clamp(round(q) + zero point), in double precision, which holds every sum that does not saturate."""
    dtype = DTYPES[desc.OutputTensor.DataType]
    limits = np.iinfo(dtype)
    whole = np.where(np.isnan(quotient), 0, np.rint(quotient)).astype(np.float64)
    quantised: Array = np.clip(whole + _zero(zero_point), limits.min, limits.max).astype(dtype)
    return quantised


def _quantize(desc: Any, x: Array, scale: Array, zero_point: Array | None) -> Array:
    with np.errstate(all="ignore"):
        return _quantised(desc, x.astype(np.float32) / scale.astype(np.float32), zero_point)


def _dequantize(desc: Any, x: Array, scale: Array, zero_point: Array | None) -> Array:
    with np.errstate(all="ignore"):
        return rounded((x.astype(np.float64) - _zero(zero_point)) * scale.astype(np.float64), scale.dtype)


def _add(
    desc: Any,
    a: Array,
    a_scale: Array,
    a_zero_point: Array | None,
    b: Array,
    b_scale: Array,
    b_zero_point: Array | None,
    scale: Array,
    zero_point: Array | None,
) -> Array:
    with np.errstate(all="ignore"):
        left = (a.astype(np.float64) - _zero(a_zero_point)) * a_scale.astype(np.float64)
        right = (b.astype(np.float64) - _zero(b_zero_point)) * b_scale.astype(np.float64)
        return _quantised(desc, (left + right) / scale.astype(np.float64), zero_point)


def _quantised_by_torch(quotient: Any, zero_point: Any) -> Any:
    """In single precision: what is beyond 1024 is saturated whatever the zero point."""
    whole = quotient.round().float()
    whole = whole.masked_fill(whole.isnan(), 0).clamp(-1024, 1024)
    return whole if zero_point is None else whole + zero_point.float()


def _dequantised_by_torch(x: Any, scale: Any, zero_point: Any) -> Any:
    return (x if zero_point is None else x - zero_point) * scale


def _add_by_torch(
    torch: Any, desc: Any, a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, scale: Any, zero: Any
) -> Any:
    total = _dequantised_by_torch(a, a_scale, a_zero) + _dequantised_by_torch(b, b_scale, b_zero)
    return _quantised_by_torch(total / scale, zero)


_BYTES = np.array([[[[0, 10, 20], [100, 128, 255]]]], np.uint8)
_SCALE, _ZERO_POINT = np.full_like(_BYTES, 1, np.float32) / 2, np.full_like(_BYTES, 128)
"""What small examples compute with."""

ELEMENT_WISE_QUANTIZE_LINEAR = Pointwise(
    summary="clamp(round(x / scale) + zero point) for each element x, to the range of the output's type.",
    inputs=("InputTensor", "ScaleTensor", "ZeroPointTensor"),
    members={
        "InputTensor": "the real numbers x.",
        "ScaleTensor": "the scale of each; what 0 gives is undefined in DirectML.",
        "ZeroPointTensor": "the zero point of each, 0 where absent. Not absent below feature level 6.2.",
        "OutputTensor": "the quantised numbers.",
    },
    same_types=(("OutputTensor", "ZeroPointTensor"),),
    constraints={"(C3)": "ScaleTensor has the DataType of InputTensor, or FLOAT32 where that is INT32."},
    check=_check_scale,
    level_requirements=_zero_point_level,
    in_place=False,
    reference=_quantize,
    native="QUANTIZE_LINEAR",
    torch=lambda torch, desc, x, scale, zero: _quantised_by_torch(x.float() / scale.float(), zero),
    example={"ScaleTensor": _SCALE, "ZeroPointTensor": _ZERO_POINT},
    support="""
        DML_FEATURE_LEVEL_6_2 and above
        InputTensor     | Input          | 1 to 8 | FLOAT32, FLOAT16, INT32
        ScaleTensor     | Input          | 1 to 8 | FLOAT32, FLOAT16
        ZeroPointTensor | Optional input | 1 to 8 | INT8, UINT8
        OutputTensor    | Output         | 1 to 8 | INT8, UINT8
        DML_FEATURE_LEVEL_6_0 and above
        InputTensor     | Input          | 1 to 8 | FLOAT32, FLOAT16, INT32
        ScaleTensor     | Input          | 1 to 8 | FLOAT32, FLOAT16
        ZeroPointTensor | Input          | 1 to 8 | INT8, UINT8
        OutputTensor    | Output         | 1 to 8 | INT8, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor     | Input          | 1 to 8 | FLOAT32, INT32
        ScaleTensor     | Input          | 1 to 8 | FLOAT32
        ZeroPointTensor | Input          | 1 to 8 | INT8, UINT8
        OutputTensor    | Output         | 1 to 8 | INT8, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor     | Input          | 4      | FLOAT32, INT32
        ScaleTensor     | Input          | 4      | FLOAT32
        ZeroPointTensor | Input          | 4      | INT8, UINT8
        OutputTensor    | Output         | 4      | INT8, UINT8
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor     | Input          | 4      | FLOAT32
        ScaleTensor     | Input          | 4      | FLOAT32
        ZeroPointTensor | Input          | 4      | UINT8
        OutputTensor    | Output         | 4      | UINT8
    """,
)

ELEMENT_WISE_DEQUANTIZE_LINEAR = Pointwise(
    summary="(x - zero point) * scale for each element x.",
    inputs=("InputTensor", "ScaleTensor", "ZeroPointTensor"),
    members={
        "InputTensor": "the quantised numbers x.",
        "ScaleTensor": "the scale of each.",
        "ZeroPointTensor": "the zero point of each, 0 where absent. Not absent below feature level 6.2.",
        "OutputTensor": "the real numbers.",
    },
    same_types=(("InputTensor", "ZeroPointTensor"), ("ScaleTensor", "OutputTensor")),
    level_requirements=_zero_point_level,
    in_place=False,
    reference=_dequantize,
    native="DEQUANTIZE_LINEAR",
    torch=lambda torch, desc, x, scale, zero: _dequantised_by_torch(x, scale, zero),
    example={"InputTensor": _BYTES, "ScaleTensor": _SCALE, "ZeroPointTensor": _ZERO_POINT},
    support="""
        DML_FEATURE_LEVEL_6_2 and above
        InputTensor     | Input          | 1 to 8 | INT32, INT16, INT8, UINT32, UINT16, UINT8
        ScaleTensor     | Input          | 1 to 8 | FLOAT32, FLOAT16
        ZeroPointTensor | Optional input | 1 to 8 | INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor    | Output         | 1 to 8 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_6_0 and above
        InputTensor     | Input          | 1 to 8 | INT32, INT16, INT8, UINT32, UINT16, UINT8
        ScaleTensor     | Input          | 1 to 8 | FLOAT32, FLOAT16
        ZeroPointTensor | Input          | 1 to 8 | INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor    | Output         | 1 to 8 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor     | Input          | 1 to 8 | INT32, INT16, INT8, UINT32, UINT16, UINT8
        ScaleTensor     | Input          | 1 to 8 | FLOAT32
        ZeroPointTensor | Input          | 1 to 8 | INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor    | Output         | 1 to 8 | FLOAT32
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor     | Input          | 4      | INT32, INT16, INT8, UINT32, UINT16, UINT8
        ScaleTensor     | Input          | 4      | FLOAT32
        ZeroPointTensor | Input          | 4      | INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor    | Output         | 4      | FLOAT32
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor     | Input          | 4      | UINT8
        ScaleTensor     | Input          | 4      | FLOAT32
        ZeroPointTensor | Input          | 4      | UINT8
        OutputTensor    | Output         | 4      | FLOAT32
    """,
)

ELEMENT_WISE_QUANTIZED_LINEAR_ADD = Pointwise(
    summary="a + b for each pair of quantised numbers: dequantised, added, and quantised again.",
    inputs=("ATensor", *_OF_ADD[:2], "BTensor", *_OF_ADD[2:]),
    members={name: "the scale." if "Scale" in name else "the zero point; 0 where absent." for name in _OF_ADD}
    | {"OutputTensor": "the sums, quantised."},
    same_types=tuple([(f"{side}Tensor", f"{side}ZeroPointTensor") for side in ("A", "B", "Output")]),
    scalars=_OF_ADD,
    constraints={"(C3)": "Scales and zero points have one element: each size is 1."},
    check=_check_scalars,
    in_place=False,
    reference=_add,
    native="QUANTIZED_LINEAR_ADD",
    torch=_add_by_torch,
    example={"ATensor": _BYTES, "BTensor": _BYTES[..., ::-1, :].copy()}
    | {name: (_SCALE if "Scale" in name else _ZERO_POINT)[..., :1, :1] for name in _OF_ADD},
    support="""
        DML_FEATURE_LEVEL_4_0 and above
        ATensor               | Input          | 1 to 8 | INT8, UINT8
        AScaleTensor          | Input          | 1 to 8 | FLOAT32
        AZeroPointTensor      | Optional input | 1 to 8 | INT8, UINT8
        BTensor               | Input          | 1 to 8 | INT8, UINT8
        BScaleTensor          | Input          | 1 to 8 | FLOAT32
        BZeroPointTensor      | Optional input | 1 to 8 | INT8, UINT8
        OutputScaleTensor     | Input          | 1 to 8 | FLOAT32
        OutputZeroPointTensor | Optional input | 1 to 8 | INT8, UINT8
        OutputTensor          | Output         | 1 to 8 | INT8, UINT8
    """,
)
