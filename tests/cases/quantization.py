"""Linear quantisation: every type, halves, NaN and infinities, zero points at the ends, scales of 0, and strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import DML_BUFFER_TENSOR_DESC
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from support_tables import BYTES, FLOATS, Shape, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan
_CODES = "INT32 INT16 INT8 UINT32 UINT16 UINT8"


def _tensor(x: np.ndarray | None, strides: Sequence[int] | None = None) -> DML_BUFFER_TENSOR_DESC | None:
    return None if x is None else tensor_of(x, strides)


def _case(
    id: str,
    operator: str,
    inputs: Sequence[Any],
    y: np.ndarray,
    strides: Sequence[Sequence[int] | None] = (),
    out_strides: Sequence[int] | None = None,
) -> Case:
    """Of a number as a scale or a zero point its tensor has strides of 0. `strides` are those of the inputs."""
    found = spec(f"ELEMENT_WISE_{operator}")
    arrays: list[np.ndarray | None] = []
    layouts: list[Sequence[int] | None] = [*strides, *[None] * (len(inputs) - len(strides))]
    for i, given in enumerate(inputs):
        is_number = isinstance(given, np.generic)
        arrays.append(np.broadcast_to(given, inputs[0].shape).copy() if is_number else given)
        if is_number:
            layouts[i] = (0,) * inputs[0].ndim
    tensors = {name: _tensor(x, steps) for name, x, steps in zip(found.pointwise.inputs, arrays, layouts, strict=True)}
    desc = found.desc(**tensors, OutputTensor=tensor_of(y, out_strides))
    return Case(f"{operator.lower()}-{id}", desc, arrays, [y])


def _quantized() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        x = np.array([0, 0.25, 0.75, 1.25, -0.25, -0.75, 3, 1000, -1000, NAN, INF, -INF], dtype)
        name, half = np.dtype(dtype).name, dtype(0.5)
        # Halves go to the even integer before the odd zero point is added.
        signed = np.array([3, 3, 5, 5, 3, 1, 9, 127, -128, 3, 127, -128], np.int8)
        unsigned = np.array([3, 3, 5, 5, 3, 1, 9, 255, 0, 3, 255, 0], np.uint8)
        cases += [
            _case(f"{name}-to-int8", "QUANTIZE_LINEAR", [x, half, np.int8(3)], signed),
            _case(f"{name}-to-uint8", "QUANTIZE_LINEAR", [x, half, np.uint8(3)], unsigned),
            _case(
                f"{name}-no-zero-point",
                "QUANTIZE_LINEAR",
                [x, half, None],
                np.array([0, 0, 2, 2, 0, -2, 6, 127, -128, 0, 127, -128], np.int8),
            ),
            _case(
                f"{name}-below-0",
                "QUANTIZE_LINEAR",
                [x[:7], -half, np.uint8(255)],
                np.array([255, 255, 253, 253, 255, 255, 249], np.uint8),
            ),
            _case(
                f"{name}-scale-of-0",
                "QUANTIZE_LINEAR",
                [x[:5], dtype(0), np.uint8(7)],
                np.array([7, 255, 255, 255, 0], np.uint8),
            ),
        ]
    whole = np.array([0, 1, 3, -1, -3, 2**31 - 1, -(2**31), 2**24 + 1], np.int32)
    cases += [
        _case(
            "int32-to-int8",
            "QUANTIZE_LINEAR",
            [whole, np.float32(2), np.int8(-5)],
            np.array([-5, -5, -3, -5, -7, 127, -128, 127], np.int8),
        ),
        # 2^24 + 1 is 2^24 as FLOAT32, and 2^31 - 1 is 2^31.
        _case(
            "int32-as-float32", "QUANTIZE_LINEAR", [whole[5:], np.float32(2**24), np.uint8(0)], np.uint8([128, 0, 1])
        ),
        # Exactly they are not halves: the quotients in FLOAT32 are.
        _case(
            "quotients-of-float32",
            "QUANTIZE_LINEAR",
            [np.float32([0.15, 0.25, 0.35, 0.45]), np.float32(0.1), None],
            np.int8([2, 2, 4, 4]),
        ),
        _case(
            "scale-for-each",
            "QUANTIZE_LINEAR",
            [
                np.float32([[1, 2, 3], [4, 5, 6]]),
                np.float32([[1, 1, 1], [2, 2, 2]]),
                np.int8([[0, 10, 20], [0, 10, 20]]),
            ],
            np.int8([[1, 12, 23], [2, 12, 23]]),
            (None, (1, 0), (0, 1)),
            (4, 1),
        ),
    ]
    return cases


def _dequantized() -> list[Case]:
    cases = []
    for name in ("int32", "int16", "int8", "uint32", "uint16", "uint8"):
        dtype = np.dtype(name)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        x, zero_point = np.array([0, 1, 100, low, high], dtype), dtype.type(3)
        differences = [-3.0, -2.0, 97.0, float(low) - 3, float(high) - 3]
        for kind in (np.float32, np.float16):
            with np.errstate(over="ignore"):
                y = (np.array(differences) * 0.25).astype(kind)
                plain = (x.astype(np.float64) * 0.25).astype(kind)
            id = f"{name}-to-{np.dtype(kind).name}"
            cases.append(_case(id, "DEQUANTIZE_LINEAR", [x, kind(0.25), zero_point], y))
            cases.append(_case(f"{id}-no-zero-point", "DEQUANTIZE_LINEAR", [x, kind(0.25), None], plain))
    # What the type of the elements does not hold: low - high.
    ends = np.array([-(2**31), 2**31 - 1], np.int32)
    cases += [
        _case(
            "beyond-int32",
            "DEQUANTIZE_LINEAR",
            [ends, np.float32(1), ends[::-1].copy()],
            np.float32([-(2.0**32), 2.0**32]),
        ),
        _case(
            "scales",
            "DEQUANTIZE_LINEAR",
            [np.int8([1, 1, 1, 0, 0]), np.float32([INF, NAN, -0.5, INF, 3]), None],
            np.float32([INF, NAN, -0.5, NAN, 0]),
        ),
        _case(
            "scale-for-each",
            "DEQUANTIZE_LINEAR",
            [np.uint8([[1, 2, 3], [4, 5, 6]]), np.float32([[1, 1, 1], [2, 2, 2]]), np.uint8([[0, 1, 2], [0, 1, 2]])],
            np.float32([[1, 1, 1], [8, 8, 8]]),
            (None, (1, 0), (0, 1)),
            (4, 1),
        ),
    ]
    return cases


def _one(value: Any, dtype: type[np.generic]) -> np.ndarray:
    return np.array([[value]], dtype)


def _added() -> list[Case]:
    float32 = np.float32
    a, b = np.array([[0, 1, 3], [128, 200, 255]], np.uint8), np.array([[-128, -1, 0], [1, 5, 127]], np.int8)
    scales = _one(0.5, float32), _one(0.25, float32), _one(0.5, float32)
    # (a - 1) / 2 + (b + 2) / 4, over 1 / 2, is a - 1 + (b + 2) / 2: -64, 0.5, 3, 128.5, 202.5 and 318.5.
    of_uint8 = np.uint8([[0, 7, 10], [135, 209, 255]])
    zero_points = _one(1, np.uint8), _one(-2, np.int8)
    return [
        _case(
            "to-uint8",
            "QUANTIZED_LINEAR_ADD",
            [a, scales[0], zero_points[0], b, scales[1], zero_points[1], scales[2], _one(7, np.uint8)],
            of_uint8,
        ),
        _case(
            "to-int8",
            "QUANTIZED_LINEAR_ADD",
            [a, scales[0], zero_points[0], b, scales[1], zero_points[1], scales[2], _one(-7, np.int8)],
            np.int8([[-71, -7, -4], [121, 127, 127]]),
        ),
        # a + b / 2
        _case(
            "no-zero-points",
            "QUANTIZED_LINEAR_ADD",
            [a, scales[0], None, b, scales[1], None, scales[2], None],
            np.uint8([[0, 0, 3], [128, 202, 255]]),
        ),
        _case(
            "nan",
            "QUANTIZED_LINEAR_ADD",
            [a, _one(INF, float32), zero_points[0], b, scales[1], None, scales[2], _one(9, np.uint8)],
            np.uint8([[0, 9, 255], [255, 255, 255]]),
        ),
        _case(
            "scale-of-0",
            "QUANTIZED_LINEAR_ADD",
            [a, scales[0], zero_points[0], a, scales[0], zero_points[0], _one(0, float32), _one(9, np.int8)],
            np.int8([[-128, 9, 127], [127, 127, 127]]),
        ),
        _case(
            "strides",
            "QUANTIZED_LINEAR_ADD",
            [a, scales[0], None, np.broadcast_to(np.int8([2, 4, 6]), (2, 3)), scales[0], None, scales[0], None],
            np.uint8([[2, 5, 9], [130, 204, 255]]),
            ((1, 2), None, None, (0, 1)),
            (4, 1),
        ),
    ]


CASES = [*_quantized(), *_dequantized(), *_added()]


def _right(operator: str, **members: Any) -> OperatorDesc:
    """On {2, 3}, quantised as UINT8."""
    found = spec(f"ELEMENT_WISE_{operator}")

    def kind(name: str) -> str:
        is_real = "Scale" in name or name == {"QUANTIZE_LINEAR": "InputTensor"}.get(operator, "OutputTensor")
        return "FLOAT32" if is_real and (operator != "QUANTIZED_LINEAR_ADD" or "Scale" in name) else "UINT8"

    sizes = {name: (1, 1) if name in found.pointwise.scalars else (2, 3) for name in found.tensors}
    return found.desc(**{**{name: tensor(sizes[name], kind(name)) for name in found.tensors}, **members})


_LINEAR = ("QUANTIZE_LINEAR", "DEQUANTIZE_LINEAR")
RIGHT = [
    *(_right(name) for name in (*_LINEAR, "QUANTIZED_LINEAR_ADD")),
    *(_right(name, ZeroPointTensor=None) for name in _LINEAR),
    _right("QUANTIZED_LINEAR_ADD", AZeroPointTensor=None, BZeroPointTensor=None, OutputZeroPointTensor=None),
]


def _negatives() -> list[Negative]:
    found = []
    for operator in (*_LINEAR, "QUANTIZED_LINEAR_ADD"):
        kind = "FLOAT32" if operator == "DEQUANTIZE_LINEAR" else "UINT8"
        first = spec(f"ELEMENT_WISE_{operator}").pointwise.inputs[0]
        longer, wider = tensor((2, 3, 1), kind), tensor((2, 4), kind)
        found += [
            Negative(
                "(C2)", _right(operator, OutputTensor=longer), "OutputTensor.DimensionCount", "3", f"2, that of {first}"
            ),
            Negative("(C2)", _right(operator, OutputTensor=wider), "OutputTensor.Sizes[1]", "4", "3"),
        ]
    signed, half = tensor((2, 3), "INT8"), tensor((2, 3), "FLOAT16")
    one = {"Sizes": (1, 1)}
    add, quantize, dequantize = "QUANTIZED_LINEAR_ADD", *_LINEAR
    return [
        *found,
        Negative(
            "(C1)",
            _right(quantize, ZeroPointTensor=signed),
            "ZeroPointTensor.DataType",
            "INT8",
            "UINT8, that of OutputTensor",
        ),
        Negative(
            "(C3)",
            _right(quantize, ScaleTensor=half),
            "ScaleTensor.DataType",
            "FLOAT16",
            "FLOAT32, as InputTensor is FLOAT32",
        ),
        Negative(
            "(C3)",
            _right(quantize, InputTensor=tensor((2, 3), "INT32"), ScaleTensor=half),
            "ScaleTensor.DataType",
            "FLOAT16",
            "FLOAT32, as InputTensor is INT32",
        ),
        Negative(
            "(C2)", _right(quantize, ScaleTensor=tensor((2, 1))), "ScaleTensor.Sizes", "1)", "3), that of InputTensor"
        ),
        Negative(
            "(C1)",
            _right(dequantize, ZeroPointTensor=signed),
            "ZeroPointTensor.DataType",
            "INT8",
            "UINT8, that of InputTensor",
        ),
        Negative(
            "(C1)",
            _right(dequantize, ScaleTensor=half),
            "OutputTensor.DataType",
            "FLOAT32",
            "FLOAT16, that of ScaleTensor",
        ),
        Negative(
            "(C2)",
            _right(dequantize, ZeroPointTensor=tensor((1, 3), "UINT8")),
            "ZeroPointTensor.Sizes",
            "(1",
            "(2, 3), that of InputTensor",
        ),
        Negative(
            "(C1)",
            _right(add, AZeroPointTensor=tensor(one["Sizes"], "INT8")),
            "AZeroPointTensor.DataType",
            "INT8",
            "UINT8, that of ATensor",
        ),
        Negative("(C2)", _right(add, BTensor=tensor((2, 1), "UINT8")), "BTensor.Sizes", "1)", "3), that of ATensor"),
        Negative("(C2)", _right(add, BScaleTensor=tensor((1,))), "BScaleTensor.DimensionCount", "1", "2"),
        Negative(
            "(C3)", _right(add, OutputScaleTensor=tensor((1, 3))), "OutputScaleTensor.Sizes", "[1, 3]", "1 in each"
        ),
    ]


NEGATIVES = _negatives()


def _others(operator: str, name: str, shape: Shape) -> dict[str, Shape]:
    """Of types that go with the one given, wherever there are such."""
    found = spec(operator)
    usual = {each: found.tensors[each].data_types[-1] for each in found.tensors}
    real = {"ScaleTensor", "InputTensor" if operator.endswith("_QUANTIZE_LINEAR") else "OutputTensor"}
    group = real if name in real and operator != "ELEMENT_WISE_QUANTIZED_LINEAR_ADD" else found.pointwise.group_of(name)
    if operator == "ELEMENT_WISE_QUANTIZE_LINEAR":
        usual |= dict.fromkeys(real, found.tensors["ScaleTensor"].data_types[0])
    if operator == "ELEMENT_WISE_DEQUANTIZE_LINEAR":
        usual |= dict.fromkeys(real, found.tensors["ScaleTensor"].data_types[0])
    if (operator, name, shape[1].name) == ("ELEMENT_WISE_QUANTIZE_LINEAR", "InputTensor", "INT32"):
        group = ()
    return {each: (shape[0], shape[1] if each in group else usual[each]) for each in found.tensors} | {name: shape}


_EARLY = [("1.0", 4, 4, "FLOAT32"), ("2.1", 4, 4, "FLOAT32"), ("3.0", 1, 8, "FLOAT32"), ("6.0", 1, 8, FLOATS)]
_BYTES = [("1.0", 4, 4, "UINT8"), ("2.1", 4, 4, BYTES), ("3.0", 1, 8, BYTES)]
_INTEGERS = [("1.0", 4, 4, "UINT8"), ("2.1", 4, 4, _CODES), ("3.0", 1, 8, _CODES)]
_INPUT = [
    ("1.0", 4, 4, "FLOAT32"),
    ("2.1", 4, 4, "FLOAT32 INT32"),
    ("3.0", 1, 8, "FLOAT32 INT32"),
    ("6.0", 1, 8, "FLOAT32 FLOAT16 INT32"),
]
SUPPORT = {
    "ELEMENT_WISE_QUANTIZE_LINEAR": Support(
        {"InputTensor": _INPUT, "ScaleTensor": _EARLY, "ZeroPointTensor": _BYTES, "OutputTensor": _BYTES},
        others=_others,
    ),
    "ELEMENT_WISE_DEQUANTIZE_LINEAR": Support(
        {"InputTensor": _INTEGERS, "ScaleTensor": _EARLY, "ZeroPointTensor": _INTEGERS, "OutputTensor": _EARLY},
        others=_others,
    ),
    "ELEMENT_WISE_QUANTIZED_LINEAR_ADD": Support(
        {
            name: [("4.0", 1, 8, "FLOAT32" if "Scale" in name else BYTES)]
            for name in spec("ELEMENT_WISE_QUANTIZED_LINEAR_ADD").tensors
        },
        others=_others,
    ),
}

KERNELS = {
    "ELEMENT_WISE_QUANTIZE_LINEAR": "quantize linear",
    "ELEMENT_WISE_DEQUANTIZE_LINEAR": "dequantize linear|(subtract, )?multiply",
    "ELEMENT_WISE_QUANTIZED_LINEAR_ADD": "quantized linear add",
}
