"""Element-wise operators of one operand, and powers: every type, what is special about floats, and ends of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import DML_SCALE_BIAS, RoundingMode
from anydml.operators import OPERATORS
from anydml.operators.schema import OperatorDesc
from support_tables import ALL, ALL_32, ALL_BUT_DOUBLE, FLOATS, SIGNED_32, SIGNED_64, Rows, Support

from . import Case, Negative, alike, bad, negatives_of_alike, pointwise

INF, NAN = np.inf, np.nan


def _case(
    id: str, operator: str, inputs: Sequence[np.ndarray], y: Any, strides: Sequence[int] | None = None, **options: Any
) -> Case:
    return pointwise(id, f"ELEMENT_WISE_{operator}", inputs, y, strides, **options)


def _floats() -> list[Case]:
    cases = []
    for dtype in (np.float32, np.float16):
        largest, unit = np.finfo(dtype).max, np.finfo(dtype).eps
        kind = np.dtype(dtype).name
        x = np.array([-2, -0.5, 0, 0.25, 1, 9, INF, -INF, NAN], dtype)
        alone = {
            "IDENTITY": x,
            "ABS": [2, 0.5, 0, 0.25, 1, 9, INF, INF, NAN],
            "NEGATE": [2, 0.5, 0, -0.25, -1, -9, -INF, INF, NAN],
            "RECIP": [-0.5, -2, INF, 4, 1, dtype(1) / dtype(9), 0, 0, NAN],
            "SQRT": [NAN, NAN, 0, 0.5, 1, 3, INF, NAN, NAN],
            "CEIL": [-2, 0, 0, 1, 1, 9, INF, -INF, NAN],
            "FLOOR": [-2, -1, 0, 0, 1, 9, INF, -INF, NAN],
            # NaN is neither below nor above 0.
            "SIGN": [-1, -1, 0, 1, 1, 1, 1, -1, 0],
        }
        cases += [_case(kind, operator, [x], y) for operator, y in alone.items()]
        # 0.6065306597126334, 2.718281828459045, 8103.083927575384 and 0.1353352832366127 rounded
        cases.append(_case(kind, "EXP", [x], [0.1353352832366127, 0.6065306597126334, 1, 1.2840254166877414,
            2.718281828459045, 8103.083927575384, INF, 0, NAN]))  # fmt: skip
        cases.append(
            _case(kind, "LOG", [x], [NAN, NAN, -INF, -1.3862943611198906, 0, 2.1972245773362196, INF, NAN, NAN])
        )
        errors = [-0.9953222650189527, -0.5204998778130465, 0, 0.27632639016823696, 0.8427007929497149, 1, 1, -1, NAN]
        cases.append(_case(kind, "ERF", [x], errors))
        scaled = {"ScaleBias": DML_SCALE_BIAS(Scale=0.5, Bias=0.25)}
        three = np.array([-1, 0, 1], dtype)
        errors = [-0.27632639016823696, 0.27632639016823696, 0.7111556336535151]
        cases.append(_case(f"{kind}-scaled", "ERF", [three], errors, **scaled))
        cases.append(_case(f"{kind}-scaled", "CEIL", [three], [0, 1, 1], **scaled))
        cases.append(_case(f"{kind}-scaled", "FLOOR", [three], [-1, 0, 0], **scaled))
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
        base = np.array([2, -2, -2, 4, 0, 0, NAN, 9], dtype)
        exponent = np.array([3, 3, 0.5, -0.5, 0, -1, 0, INF], dtype)
        cases.append(_case(kind, "POW", [base, exponent], [8, -8, NAN, 0.5, 1, INF, 1, INF]))
        cases.append(_case(f"{kind}-of-integers", "POW", [base, np.array([3, 3, 0, -1, 1, 2, 1, 2], np.int8)],
            [8, -8, 1, 0.25, 0, 0, NAN, 81]))  # fmt: skip
        base = np.array([-8, -0.5, -0.0, 0, 0.25, 1, 9, INF, -INF, NAN], dtype)
        third = 0.3333333432674408  # in single precision
        powers: dict[float, list[float]] = {
            0: [1] * 10,
            1: base.tolist(),
            2: [64, 0.25, 0, 0, 0.0625, 1, 81, INF, INF, NAN],
            3: [-512, -0.125, 0, 0, 0.015625, 1, 729, INF, -INF, NAN],
            -1: [-0.125, -2, -INF, INF, 4, 1, 1 / 9, 0, 0, NAN],
            0.5: [NAN, NAN, 0, 0, 0.5, 1, 3, INF, INF, NAN],
            1.5: [NAN, NAN, 0, 0, 0.125, 1, 27, INF, INF, NAN],
            third: [NAN, NAN, 0, 0, 0.25**third, 1, 9**third, INF, INF, NAN],
            INF: [INF, 0, 0, 0, 0, 1, INF, INF, INF, NAN],
            NAN: [NAN, NAN, NAN, NAN, NAN, 1, NAN, NAN, NAN, NAN],
        }
        for i, (each, y) in enumerate(powers.items()):
            cases.append(_case(f"{kind}-{i}", "CONSTANT_POW", [base], y, Exponent=each))
        cases.append(_case(f"{kind}-scaled", "CONSTANT_POW", [three], [1 / 16, 1 / 16, 9 / 16], Exponent=2, **scaled))
    return cases


def _integers() -> list[Case]:
    cases = []
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        dtype = np.dtype(name)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        ones = -1 if low else high
        x = np.array([0, 3, 100, high, low], dtype)
        cases.append(_case(name, "IDENTITY", [x], x))
        cases.append(_case(name, "SIGN", [x], np.array([0, 1, 1, 1, -1 if low else 0], dtype)))
        if low:
            negative = [0, -3, -100, -high, low]
            cases.append(_case(name, "NEGATE", [x], np.array(negative, dtype)))
            cases.append(_case(name, "ABS", [np.array(negative, dtype)], x))
        if dtype.itemsize < 8:
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
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = np.array([1.5, -2], np.float16)
    return [
        _case(
            "broadcast", "CONSTANT_POW", [np.array([[1, 2, 3]] * 2, np.float32)], [[1, 4, 9]] * 2, (0, 1), Exponent=2
        ),
        _case("tiny", "ERF", [np.array([1e-20], np.float32)], [1.1283791312869893e-20]),
        _case("transposed", "NEGATE", [a], -a, strides=(1, 2)),
        _case("float16-scaled", "ABS", [x], [4, 3], ScaleBias=DML_SCALE_BIAS(Scale=2, Bias=1)),
        _case("double", "IDENTITY", [np.array([1e300, -0.1])], [1e300, -0.1]),
        _case("nan-payload", "IDENTITY", [np.array([0x7FC12345], np.uint32).view(np.float32)], [NAN]),
    ]


CASES = [*_floats(), *_integers(), *_layouts()]

OPERATORS_HERE = [name for name, op in OPERATORS.items() if op.family == "element_wise"]


def element_wise(operator: str, **members: Any) -> OperatorDesc:
    return alike(f"ELEMENT_WISE_{operator}", **members)


RIGHT = [alike(name) for name in OPERATORS_HERE]
NEGATIVES = [
    *negatives_of_alike(OPERATORS_HERE),
    Negative(
        "(C2)", element_wise("POW", ExponentTensor=bad(Sizes=(2,))), "ExponentTensor.DimensionCount", "1", "2, that of"
    ),
    Negative("(C2)", element_wise("POW", ExponentTensor=bad(Sizes=(2, 1))), "ExponentTensor.Sizes", "(2, 1)", "(2, 3)"),
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
    "ELEMENT_WISE_EXP": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
    "ELEMENT_WISE_LOG": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
    "ELEMENT_WISE_POW": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, ALL_32)],
    "ELEMENT_WISE_RECIP": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
    "ELEMENT_WISE_SQRT": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
    "ELEMENT_WISE_CEIL": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
    "ELEMENT_WISE_FLOOR": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
    "ELEMENT_WISE_CONSTANT_POW": [("1.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
    "ELEMENT_WISE_ERF": [("2.0", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
    "ELEMENT_WISE_SIGN": [
        ("2.0", 4, 4, FLOATS),
        ("2.1", 4, 4, ALL_32),
        ("3.0", 1, 8, ALL_32),
        ("4.1", 1, 8, ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_NEGATE": [("5.0", 1, 8, SIGNED_64)],
    "ELEMENT_WISE_ROUND": [("2.1", 4, 4, FLOATS), ("3.0", 1, 8, FLOATS)],
}

KERNELS = {
    "ELEMENT_WISE_IDENTITY": "copy|linear",
    "ELEMENT_WISE_POW": "(extend, extend, integer |linear, )?(precise )?pow",
    "ELEMENT_WISE_ROUND": "round even|round away|truncate",
}
