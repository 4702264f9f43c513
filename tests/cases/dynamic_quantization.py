"""DYNAMIC_QUANTIZE_LINEAR: the range with 0 in it, constants, NaN and infinities. Numbers are worked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC
from anydml.operators.schema import OperatorDesc
from support_tables import BYTES, FLOATS, Shape, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan


def _case(
    id: str,
    x: Any,
    y: Any,
    scale: float,
    zero_point: int,
    dtype: Any = np.float32,
    kind: Any = np.uint8,
    strides: Sequence[Sequence[int] | None] = (None, None),
) -> Case:
    x, y = np.array(x, dtype), np.array(y, kind)
    one = (1,) * x.ndim
    outputs = [y, np.full(one, scale, np.float32), np.full(one, zero_point, kind)]
    desc = DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC(
        InputTensor=tensor_of(x, strides[0]),
        OutputTensor=tensor_of(y, strides[1]),
        OutputScaleTensor=tensor_of(outputs[1]),
        OutputZeroPointTensor=tensor_of(outputs[2]),
    )
    return Case(f"dynamic-quantize-{id}", desc, [x], outputs)


# Of 0 to 510 the scale is 2.
_UP, _STEPS = [0, 1, 2, 3, 5, 510], [0, 0, 1, 2, 2, 255]

CASES = [
    *(_case(f"{np.dtype(dtype).name}-to-uint8", _UP, _STEPS, 2, 0, dtype) for dtype in (np.float32, np.float16)),
    *(
        _case(f"{np.dtype(dtype).name}-to-int8", _UP, np.subtract(_STEPS, 128), 2, -128, dtype, np.int8)
        for dtype in (np.float32, np.float16)
    ),
    # ONNX's examples
    _case("onnx", [0, 2, -3, -2.5, 1.34, 0.5], [153, 255, 0, 26, 221, 179], 5 / 255, 153),
    _case("onnx-below-0", [-1, -2.1, -1.3, -2.5, -3.34, -4], [191, 121, 172, 96, 42, 0], 4 / 255, 255),
    _case(
        "onnx-above-0", [[1, 2.1, 1.3, 2.5], [3.34, 4, 1.5, 2.6]], [[64, 134, 83, 159], [213, 255, 96, 166]], 4 / 255, 0
    ),
    # From -127 to 128: Min + 127
    _case("both-sides", [-127, 0, 128, 0.5, 1.5], [0, 127, 255, 127, 129], 1, 127),
    _case("both-sides-int8", [-127, 0, 128, 0.5, 1.5], [-128, -1, 127, -1, 1], 1, -1, kind=np.int8),
    # Halves of the zero point go to the even integer: from -0.5 to 254.5, and from -1.5
    _case("zero-point-of-a-half", [-0.5, 254.5, 0], [0, 254, 0], 1, 0),
    _case("zero-point-of-more", [-1.5, 253.5, 0], [0, 255, 2], 1, 2),
    _case("nothing-below-0", [255, 254], [255, 254], 1, 0),
    _case("nothing-above-0", [-255, -254], [0, 1], 1, 255),
    _case("zeros", [0, -0.0], [0, 0], 1, 0),
    _case("zeros-int8", [0, 0], [-128, -128], 1, -128, kind=np.int8),
    _case("constant", [51], [255], 0.2, 0),
    _case("nan", [NAN, 0, 255], [0, 0, 255], 1, 0),
    _case("nan-is-the-zero-point", [NAN, -1, 254], [1, 0, 255], 1, 1),
    _case("nan-alone", [NAN, NAN], [0, 0], 1, 0),
    _case("infinities", [INF, 1, -INF], [0, 0, 0], INF, 0),
    _case("infinity-int8", [INF, -1], [-128, -128], INF, -128, kind=np.int8),
    # The difference is beyond FLOAT32, its part of 255 is not.
    _case("largest", [-3e38, 3e38, 0], [0, 255, 128], 2 * float(np.float32(3e38)) / 255, 128),
    # 2^-149 / 255 is 0 in FLOAT32.
    _case("least", [2.0**-149], [0], 1, 0),
    _case("half-largest", [65504, -65504, 0], [255, 0, 128], 2 * 65504 / 255, 128, np.float16),
    _case("one-element", [[[[[[[[-51]]]]]]]], [[[[[[[[0]]]]]]]], 0.2, 255),
    _case("strided", [[0, 1, 2], [3, 5, 510]], [[0, 0, 1], [2, 2, 255]], 2, 0, strides=((1, 4), (7, 2))),
    _case("broadcast", [[510, 510], [510, 510]], [[255, 255], [255, 255]], 2, 0, strides=((0, 0), None)),
]


def _right(**members: Any) -> OperatorDesc:
    right = {
        "InputTensor": tensor((2, 3)),
        "OutputTensor": tensor((2, 3), "UINT8"),
        "OutputScaleTensor": tensor((1, 1)),
        "OutputZeroPointTensor": tensor((1, 1), "UINT8"),
    }
    return DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC(**{**right, **members})


NEGATIVES = [
    Negative("(C1)", _right(OutputTensor=tensor((2, 3, 1), "UINT8")), "OutputTensor.DimensionCount", "3", "2, that of"),
    Negative(
        "(C1)", _right(OutputScaleTensor=tensor((1,))), "OutputScaleTensor.DimensionCount", "1", "2, that of Input"
    ),
    Negative(
        "(C1)",
        _right(OutputZeroPointTensor=tensor((1,), "UINT8")),
        "OutputZeroPointTensor.DimensionCount",
        "1",
        "2, that",
    ),
    Negative(
        "(C2)",
        _right(OutputZeroPointTensor=tensor((1, 1), "INT8")),
        "OutputZeroPointTensor.DataType",
        "INT8",
        "UINT8, that of OutputTensor",
    ),
    Negative("(C3)", _right(OutputTensor=tensor((2, 4), "UINT8")), "OutputTensor.Sizes[1]", "4", "3"),
    Negative("(C3)", _right(OutputScaleTensor=tensor((1, 3))), "OutputScaleTensor.Sizes[1]", "3", "1"),
    Negative("(C3)", _right(OutputZeroPointTensor=tensor((2, 1), "UINT8")), "OutputZeroPointTensor.Sizes[0]", "2", "1"),
]

RIGHT = [_right()]


def _others(operator: str, name: str, shape: Shape) -> dict[str, Shape]:
    count, data_type = shape
    kinds = {each: value.DataType for each, value in zip(_TENSORS, _right_tensors(), strict=True)}
    if name in ("OutputTensor", "OutputZeroPointTensor"):
        kinds |= dict.fromkeys(("OutputTensor", "OutputZeroPointTensor"), data_type)
    return {**{each: (count, kind) for each, kind in kinds.items()}, name: shape}


_TENSORS = ("InputTensor", "OutputTensor", "OutputScaleTensor", "OutputZeroPointTensor")


def _right_tensors() -> list[Any]:
    return [getattr(RIGHT[0], name) for name in _TENSORS]


SUPPORT = {
    "DYNAMIC_QUANTIZE_LINEAR": Support(
        {
            "InputTensor": [("4.0", 1, 8, FLOATS)],
            "OutputTensor": [("4.0", 1, 8, BYTES)],
            "OutputScaleTensor": [("4.0", 1, 8, "FLOAT32")],
            "OutputZeroPointTensor": [("4.0", 1, 8, BYTES)],
        },
        others=_others,
    )
}
KERNELS = {"DYNAMIC_QUANTIZE_LINEAR": "dynamic quantisation of float(32|16) to u?int8"}
