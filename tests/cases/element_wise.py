"""The element-wise operators: every type, what is special about floats, and what integers do at their ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import anydml
from anydml import DML_SCALE_BIAS, RoundingMode, TensorDataType
from anydml.operators import OPERATORS
from anydml.operators.schema import OperatorDesc
from support_tables import (
    ALL,
    ALL_32,
    ALL_BUT_DOUBLE,
    ARITHMETIC_32,
    ARITHMETIC_64,
    FLOATS,
    SIGNED_32,
    SIGNED_64,
    Rows,
    Support,
)

from . import Case, Negative, alike, bad, negatives_of_alike, tensor_of

INF, NAN = np.inf, np.nan


def _case(
    id: str, operator: str, inputs: Sequence[np.ndarray], y: Any, strides: Sequence[int] | None = None, **options: Any
) -> Case:
    """`strides` are those of the last input."""
    names = ["InputTensor"] if len(inputs) == 1 else ["ATensor", "BTensor"]
    names = ["InputTensor", "ExponentTensor"] if operator == "POW" else names
    output = np.asarray(y, inputs[0].dtype)
    tensors = {name: tensor_of(x) for name, x in zip(names, inputs, strict=True)}
    tensors[names[-1]] = tensor_of(inputs[-1], strides)
    desc = getattr(anydml, f"DML_ELEMENT_WISE_{operator}_OPERATOR_DESC")
    return Case(
        f"{operator.lower()}-{id}", desc(**tensors, OutputTensor=tensor_of(output), **options), list(inputs), [output]
    )


def _floats() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        lowest, largest = -np.finfo(dtype).max, np.finfo(dtype).max
        a = np.array([7, -7, 0, INF, -INF, NAN, largest, lowest, 3], dtype)
        b = np.array([2, 2, 5, INF, 1, 4, largest, largest, NAN], dtype)
        unit = np.finfo(dtype).eps
        near = np.array([1, 1, 3], dtype), np.array([unit / 2, unit, 1], dtype)
        with np.errstate(all="ignore"):
            expected = {
                "ADD": [9, -5, 5, INF, -INF, NAN, INF, 0, NAN],
                "SUBTRACT": [5, -9, -5, NAN, -INF, NAN, 0, -INF, NAN],
                "MULTIPLY": [14, -14, 0, INF, -INF, NAN, INF, -INF, NAN],
                "DIVIDE": [3.5, -3.5, 0, NAN, -INF, NAN, 1, -1, NAN],
                "MAX": [7, 2, 5, INF, 1, 4, largest, largest, 3],
                "MIN": [2, -7, 0, INF, -INF, 4, largest, lowest, 3],
                # The sum of the largest is held in the wider type.
                "MEAN": [4.5, -2.5, 2.5, INF, -INF, NAN, largest, 0, NAN],
                "MODULUS_TRUNCATE": [1, -1, 0, NAN, NAN, NAN, 0, 0, NAN],
            }
        kind = np.dtype(dtype).name
        cases += [_case(kind, operator, [a, b], y) for operator, y in expected.items()]
        cases.append(_case(f"{kind}-rounds-once", "ADD", near, [1, 1 + unit, 4]))
        x = np.array([-2, -0.5, 0, 0.25, 1, 9, INF, -INF, NAN], dtype)
        alone = {
            "IDENTITY": x,
            "ABS": [2, 0.5, 0, 0.25, 1, 9, INF, INF, NAN],
            "NEGATE": [2, 0.5, 0, -0.25, -1, -9, -INF, INF, NAN],
            "RECIP": [-0.5, -2, INF, 4, 1, dtype(1) / dtype(9), 0, 0, NAN],
            "SQRT": [NAN, NAN, 0, 0.5, 1, 3, INF, NAN, NAN],
        }
        cases += [_case(kind, operator, [x], y) for operator, y in alone.items()]
        # 0.6065306597126334, 2.718281828459045, 8103.083927575384 and 0.1353352832366127 rounded
        cases.append(_case(kind, "EXP", [x], [0.1353352832366127, 0.6065306597126334, 1, 1.2840254166877414,
            2.718281828459045, 8103.083927575384, INF, 0, NAN]))  # fmt: skip
        cases.append(
            _case(kind, "LOG", [x], [NAN, NAN, -INF, -1.3862943611198906, 0, 2.1972245773362196, INF, NAN, NAN])
        )
        halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.75, -0.25, largest, INF, -INF, NAN], dtype)
        rest = [largest, INF, -INF, NAN]
        rounded = {
            RoundingMode.HALVES_TO_NEAREST_EVEN: [0, 2, 2, 0, -2, 1, 0, *rest],
            RoundingMode.TOWARD_ZERO: [0, 1, 2, 0, -1, 0, 0, *rest],
            RoundingMode.TOWARD_INFINITY: [1, 2, 3, -1, -2, 1, 0, *rest],
        }
        cases += [_case(f"{kind}-{mode.name}", "ROUND", [halves], y, RoundingMode=mode) for mode, y in rounded.items()]
        # With a half added in their own type these would be the next integer.
        below, odd = np.array([0.5 - unit / 4], dtype), np.array([1 / unit - 1], dtype)
        for id, each, y in (("below-half", below, [0]), ("odd", odd, odd)):
            cases.append(_case(f"{kind}-{id}", "ROUND", [each], y, RoundingMode=RoundingMode.TOWARD_INFINITY))
        ends = {"Min": -1, "Max": 2.5}
        cases.append(_case(kind, "CLIP", [x], [-1, -0.5, 0, 0.25, 1, 2.5, 2.5, -1, -1], **ends))
        cases.append(_case(f"{kind}-ends-crossed", "CLIP", [x], [-1] * 9, Min=2.5, Max=-1))
        cases.append(_case(kind, "THRESHOLD", [x], [0.5, 0.5, 0.5, 0.5, 1, 9, INF, 0.5, 0.5], Min=0.5))
        kinds = {"MinMaxDataType": TensorDataType.FLOAT32 if dtype == np.float32 else TensorDataType.FLOAT16}
        cases.append(_case(kind, "CLIP1", [x], [-1, -0.5, 0, 0.25, 1, 2.5, 2.5, -1, 2.5], **ends, **kinds))
        cases.append(_case(f"{kind}-ends-crossed", "CLIP1", [x], [2.5] * 9, Min=2.5, Max=-1, **kinds))
        base = np.array([2, -2, -2, 4, 0, 0, NAN, 9], dtype)
        exponent = np.array([3, 3, 0.5, -0.5, 0, -1, 0, INF], dtype)
        cases.append(_case(kind, "POW", [base, exponent], [8, -8, NAN, 0.5, 1, INF, 1, INF]))
        cases.append(_case(f"{kind}-of-integers", "POW", [base, np.array([3, 3, 0, -1, 1, 2, 1, 2], np.int8)],
            [8, -8, 1, 0.25, 0, 0, NAN, 81]))  # fmt: skip
    return cases


def _integers() -> list[Case]:
    cases = []
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        dtype = np.dtype(name)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        ones = -1 if low else high
        if low:
            a, b = [7, -7, 7, -7, high, low, low, 5], [2, 2, -2, -2, 1, -1, 1, 0]
            expected = {
                "ADD": [9, -5, 5, -9, low, high, low + 1, 5],
                "SUBTRACT": [5, -9, 9, -5, high - 1, low + 1, high, 5],
                "MULTIPLY": [14, -14, -14, 14, high, low, low, 0],
                "DIVIDE": [3, -3, -3, 3, high, low, low, ones],
                "MODULUS_TRUNCATE": [1, -1, 1, -1, 0, 0, 0, ones],
                "MAX": [7, 2, 7, -2, high, -1, 1, 5],
                "MIN": [2, -7, -2, -7, 1, low, low, 0],
            }
            mean = [4, -2, 2, -4, (high + 1) // 2, -((-low + 1) // 2), -((-low - 1) // 2), 2]
        else:
            a, b = [7, high, 0, high, 5], [2, 1, 1, high, 0]
            expected = {
                "ADD": [9, 0, 1, high - 1, 5],
                "SUBTRACT": [5, high - 1, high, 0, 5],
                "MULTIPLY": [14, high, 0, 1, 0],
                "DIVIDE": [3, high, 0, 1, ones],
                "MODULUS_TRUNCATE": [1, 0, 0, 0, ones],
                "MAX": [7, high, 1, high, 5],
                "MIN": [2, 1, 0, high, 0],
            }
            mean = [4, (high + 1) // 2, 0, high, 2]
        pair = [np.array(a, dtype), np.array(b, dtype)]
        cases += [_case(name, operator, pair, np.array(y, dtype)) for operator, y in expected.items()]
        if dtype.itemsize == 4:
            cases.append(_case(name, "MEAN", pair, np.array(mean, dtype)))
        x = np.array([0, 3, 100, high, low], dtype)
        cases.append(_case(name, "IDENTITY", [x], x))
        cases.append(_case(name, "CLIP", [x], np.array([3, 3, 99, 99, 3], dtype), Min=2.5, Max=99.5))
        cases.append(_case(f"{name}-beyond", "CLIP", [x], x, Min=-1e30, Max=INF))
        ends = {"MinMaxDataType": TensorDataType[name.upper()], "Min": 3, "Max": 99}
        cases.append(_case(name, "CLIP1", [x], np.array([3, 3, 99, 99, 3], dtype), **ends))
        scaled = {**ends, "Min": 2, "Max": 100, "ScaleBias": DML_SCALE_BIAS(Scale=0.5, Bias=1.75)}
        cases.append(_case(f"{name}-scaled", "CLIP1", [x[:3]], np.array([2, 3, 51], dtype), **scaled))
        if low:
            negative = [0, -3, -100, -high, low]
            cases.append(_case(name, "NEGATE", [x], np.array(negative, dtype)))
            cases.append(_case(name, "ABS", [np.array(negative, dtype)], x))
        if dtype.itemsize < 8:
            cases.append(_case(name, "THRESHOLD", [x], np.array([3, 3, 100, high, 3], dtype), Min=2.5))
            base, power = np.array([3, 2, 1, 0, 0, 2, 5], dtype), np.array([3, 40, -4, 0, -1, -1, 1], np.int8)
            powers = [27, 2**40 & (high - low), 1, 1, ones, 0, 5]
            cases.append(_case(name, "POW", [base, power], np.array(powers, np.int64).astype(dtype)))
    signed = np.array([-1, -1, -2], np.int8)
    cases.append(_case("int8-below-0", "POW", [signed, np.array([-3, -2, -1], np.int8)], np.array([-1, 1, 0], np.int8)))
    # Scaled integers are truncated, and saturated.
    x = np.array([-100, -3, 0, 3, 100], np.int8)
    y = np.array([-128, -4, 0, 4, 127], np.int8)
    cases.append(_case("int8-scaled", "IDENTITY", [x], y, ScaleBias=DML_SCALE_BIAS(Scale=1.5, Bias=0)))
    return cases


def _layouts() -> list[Case]:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[10, 10, 10], [20, 20, 20]], np.float32)
    x = np.array([1.5, -2], np.float16)
    return [
        _case("broadcast", "ADD", [a, b], a + b, strides=(1, 0)),
        _case("transposed", "NEGATE", [a], -a, strides=(1, 2)),
        _case("float16-scaled", "ABS", [x], [4, 3], ScaleBias=DML_SCALE_BIAS(Scale=2, Bias=1)),
        _case("double", "IDENTITY", [np.array([1e300, -0.1])], [1e300, -0.1]),
        _case("nan-payload", "IDENTITY", [np.array([0x7FC12345], np.uint32).view(np.float32)], [NAN]),
    ]


CASES = [*_floats(), *_integers(), *_layouts()]

UINT8 = TensorDataType.UINT8
OPERATORS_HERE = [name for name, op in OPERATORS.items() if op.family == "element_wise"]


def element_wise(operator: str, **members: Any) -> OperatorDesc:
    return alike(f"ELEMENT_WISE_{operator}", **members)


def clip1(data_type: TensorDataType, **members: Any) -> OperatorDesc:
    """On a type of its own."""
    x = bad(DataType=data_type)
    return element_wise("CLIP1", **{"InputTensor": x, "OutputTensor": x, "MinMaxDataType": data_type, **members})


RIGHT = [alike(name) for name in OPERATORS_HERE]
NEGATIVES = [
    *negatives_of_alike(OPERATORS_HERE),
    Negative(
        "(C1)", element_wise("ADD", BTensor=bad(DataType=TensorDataType.INT8)), "BTensor.DataType", "INT8", "of A"
    ),
    Negative("(C2)", element_wise("ADD", BTensor=bad(Sizes=(3, 2))), "BTensor.Sizes", "(3, 2)", "(2, 3), that of A"),
    Negative(
        "(C2)", element_wise("POW", ExponentTensor=bad(Sizes=(2,))), "ExponentTensor.DimensionCount", "1", "2, that of"
    ),
    Negative("(C2)", element_wise("POW", ExponentTensor=bad(Sizes=(2, 1))), "ExponentTensor.Sizes", "(2, 1)", "(2, 3)"),
    Negative("(C3)", element_wise("CLIP1", MinMaxDataType=UINT8), "MinMaxDataType", "UINT8", "FLOAT32, that of Output"),
    Negative("(C4)", clip1(UINT8, Min=-1), "Min", "-1", "an integer from 0 to 255, which UINT8 holds"),
    Negative("(C4)", clip1(UINT8, Max=256), "Max", "256", "an integer from 0 to 255"),
    Negative("(C4)", clip1(UINT8, Max=1.5), "Max", "1.5", "an integer from 0 to 255"),
    Negative("(C4)", clip1(UINT8, Max=np.inf), "Max", "inf", "an integer from 0 to 255"),
    Negative("(C4)", clip1(UINT8, Max=np.nan), "Max", "nan", "an integer from 0 to 255"),
]

SUPPORT: dict[str, Rows | Support] = {
    "ELEMENT_WISE_IDENTITY": [
        ("1.0", 4, 5, FLOATS),
        ("2.1", 4, 5, ALL_32),
        ("3.0", 1, 8, ALL_32),
        ("4.1", 1, 8, ALL),
    ],
    "ELEMENT_WISE_ABS": [
        ("1.0", 4, 4, FLOATS),
        ("2.1", 4, 4, SIGNED_32),
        ("3.0", 1, 8, SIGNED_32),
        ("4.1", 1, 8, SIGNED_64),
    ],
    "ELEMENT_WISE_ADD": [
        ("1.0", 4, 5, FLOATS),
        ("2.1", 4, 5, ARITHMETIC_32),
        ("3.0", 1, 8, ARITHMETIC_32),
        ("4.1", 1, 8, ARITHMETIC_64),
        ("5.1", 1, 8, ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_CLIP": [
        ("1.0", 4, 4, FLOATS),
        ("2.1", 4, 4, ALL_32),
        ("3.0", 1, 8, ALL_32),
        ("5.0", 1, 8, ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_DIVIDE": [
        ("1.0", 4, 4, FLOATS),
        ("2.1", 4, 4, ARITHMETIC_32),
        ("3.0", 1, 8, ARITHMETIC_32),
        ("5.1", 1, 8, ALL_32),
        ("6.0", 1, 8, ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_EXP": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
    "ELEMENT_WISE_LOG": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
    "ELEMENT_WISE_MAX": [
        ("1.0", 4, 4, FLOATS),
        ("2.1", 4, 4, ALL_32),
        ("3.0", 1, 8, ALL_32),
        ("5.0", 1, 8, ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_MEAN": [("1.0", 4, 4, FLOATS), ("2.1", 4, 4, ARITHMETIC_32), ("3.0", 1, 8, ARITHMETIC_32)],
    "ELEMENT_WISE_MIN": [
        ("1.0", 4, 4, FLOATS),
        ("2.1", 4, 4, ALL_32),
        ("3.0", 1, 8, ALL_32),
        ("5.0", 1, 8, ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_MULTIPLY": [
        ("1.0", 4, 5, FLOATS),
        ("2.1", 4, 5, ARITHMETIC_32),
        ("3.0", 1, 8, ARITHMETIC_32),
        ("4.1", 1, 8, ARITHMETIC_64),
        ("5.1", 1, 8, ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_POW": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, ALL_32)],
    "ELEMENT_WISE_RECIP": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
    "ELEMENT_WISE_SQRT": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
    "ELEMENT_WISE_SUBTRACT": [
        ("1.0", 4, 4, FLOATS),
        ("2.1", 4, 4, ARITHMETIC_32),
        ("3.0", 1, 8, ARITHMETIC_32),
        ("4.1", 1, 8, ARITHMETIC_64),
        ("5.1", 1, 8, ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_THRESHOLD": [("1.0", 4, 4, FLOATS), ("2.1", 4, 4, ALL_32), ("3.0", 1, 8, ALL_32)],
    "ELEMENT_WISE_MODULUS_TRUNCATE": [
        ("2.1", 4, 4, ALL_32),
        ("3.0", 1, 8, ALL_32),
        ("6.0", 1, 8, ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_CLIP1": Support(
        [("5.0", 1, 8, ALL_BUT_DOUBLE)], members=lambda output: {"MinMaxDataType": output[1], "Min": 0, "Max": 1}
    ),
    "ELEMENT_WISE_NEGATE": [("5.0", 1, 8, SIGNED_64)],
    "ELEMENT_WISE_ROUND": [("2.1", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
    "ELEMENT_WISE_ADD1": [("2.0", 4, 5, FLOATS), ("3.0", 1, 8, FLOATS)],
}

KERNELS = {
    "ELEMENT_WISE_CLIP": "(linear, )?clip",
    "ELEMENT_WISE_CLIP1": "(linear, )?clip",
    "ELEMENT_WISE_IDENTITY": "copy|linear",
    "ELEMENT_WISE_POW": "(extend, extend, integer |linear, )?pow",
    "ELEMENT_WISE_ROUND": "round|truncate",
    "ELEMENT_WISE_THRESHOLD": "(linear, )?clip",
}
