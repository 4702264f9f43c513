"""Arithmetic of two operands: every type, what is special about floats, and what integers do at their ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml import TensorDataType
from anydml.operators import OPERATORS
from support_tables import ALL_32, ALL_BUT_DOUBLE, ARITHMETIC_32, ARITHMETIC_64, FLOATS, Rows, Support

from . import Case, Negative, alike, bad, negatives_of_alike, pointwise

INF, NAN = np.inf, np.nan


def _case(
    id: str, operator: str, inputs: Sequence[np.ndarray], y: Any, strides: Sequence[int] | None = None, **options: Any
) -> Case:
    return pointwise(id, f"ELEMENT_WISE_{operator}", inputs, y, strides, **options)


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
                "MODULUS_FLOOR": [1, 1, 0, NAN, NAN, NAN, 0, 0, NAN],
                "DIFFERENCE_SQUARE": [25, 81, 25, NAN, INF, NAN, 0, INF, NAN],
            }
        kind = np.dtype(dtype).name
        cases += [_case(kind, operator, [a, b], y) for operator, y in expected.items()]
        cases.append(_case(f"{kind}-rounds-once", "ADD", near, [1, 1 + unit, 4]))
        a = np.array([7, -7, 7, -7, 5.5, 5, -5, 5, -5, -0.5, 3, -3], dtype)
        b = np.array([3, 3, -3, -3, -2, INF, INF, -INF, -INF, 1, 0, 0], dtype)
        # As Python's 7 % 3, -7 % 3 and so on.
        y = [1, 2, -2, -1, -0.5, 5, INF, -INF, -5, 0.5, NAN, NAN]
        cases.append(_case(f"{kind}-signs", "MODULUS_FLOOR", [a, b], y))
        y = [1, -1, 1, -1, 1.5, 5, -5, 5, -5, -0.5, NAN, NAN]
        cases.append(_case(f"{kind}-signs", "MODULUS_TRUNCATE", [a, b], y))
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
                "MODULUS_FLOOR": [1, 1, -1, -1, 0, 0, 0, ones],
                "MAX": [7, 2, 7, -2, high, -1, 1, 5],
                "MIN": [2, -7, -2, -7, 1, low, low, 0],
            }
            mean = [4, -2, 2, -4, (high + 1) // 2, -((-low + 1) // 2), -((-low - 1) // 2), 2]
            # (2^31 - 2)^2, (1 - 2^31)^2 and (-2^31 - 1)^2 modulo 2^32
            square = [25, 81, 81, 25, 4, 1, 1, 25]
        else:
            a, b = [7, high, 0, high, 5], [2, 1, 1, high, 0]
            expected = {
                "ADD": [9, 0, 1, high - 1, 5],
                "SUBTRACT": [5, high - 1, high, 0, 5],
                "MULTIPLY": [14, high, 0, 1, 0],
                "DIVIDE": [3, high, 0, 1, ones],
                "MODULUS_TRUNCATE": [1, 0, 0, 0, ones],
                "MODULUS_FLOOR": [1, 0, 0, 0, ones],
                "MAX": [7, high, 1, high, 5],
                "MIN": [2, 1, 0, high, 0],
            }
            mean = [4, (high + 1) // 2, 0, high, 2]
            square = [25, 4, 1, 0, 25]
        pair = [np.array(a, dtype), np.array(b, dtype)]
        cases += [_case(name, operator, pair, np.array(y, dtype)) for operator, y in expected.items()]
        if dtype.itemsize == 4:
            cases.append(_case(name, "MEAN", pair, np.array(mean, dtype)))
            cases.append(_case(name, "DIFFERENCE_SQUARE", pair, np.array(square, dtype)))
    return cases


def _halves_next_to_ties() -> list[Case]:
    """Squares that singles round to the middle between two halves, from where they would go to the even one."""
    a, b = np.float16([-0.05554, -0.614, -1.511, -0.587]), np.float16([0.4446, 1.387, 2.49, 0.4133])
    return [_case("next to ties", "DIFFERENCE_SQUARE", [a, b], np.float16([0.2502, 4.004, 16.02, 1.001]))]


def _layouts() -> list[Case]:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[10, 10, 10], [20, 20, 20]], np.float32)
    return [
        _case("broadcast", "ADD", [a, b], a + b, strides=(1, 0)),
        _case("broadcast", "MODULUS_FLOOR", [-a, np.array([[4] * 3] * 2, np.float32)], [[0, 3, 2], [1, 0, 3]], (0, 0)),
        _case("transposed", "DIFFERENCE_SQUARE", [a, b], (a - b) ** 2, strides=(1, 2)),
    ]


CASES = [*_floats(), *_integers(), *_halves_next_to_ties(), *_layouts()]

OPERATORS_HERE = [name for name, op in OPERATORS.items() if op.family == "arithmetic"]

RIGHT = [alike(name) for name in OPERATORS_HERE]
NEGATIVES = [
    *negatives_of_alike(OPERATORS_HERE),
    *(
        Negative("(C1)", alike(operator, BTensor=bad(DataType=TensorDataType.INT8)), "BTensor.DataType", "INT8", "of A")
        for operator in ("ELEMENT_WISE_ADD", "ELEMENT_WISE_MODULUS_FLOOR")
    ),
    Negative(
        "(C2)", alike("ELEMENT_WISE_ADD", BTensor=bad(Sizes=(3, 2))), "BTensor.Sizes", "(3, 2)", "(2, 3), that of"
    ),
]

_REMAINDER = [("2.1", 4, 4, ALL_32), ("3.0", 1, 8, ALL_32), ("6.0", 1, 8, ALL_BUT_DOUBLE)]
SUPPORT: dict[str, Rows | Support] = {
    "ELEMENT_WISE_ADD": [
        ("1.0", 4, 5, FLOATS),
        ("2.1", 4, 5, ARITHMETIC_32),
        ("3.0", 1, 8, ARITHMETIC_32),
        ("4.1", 1, 8, ARITHMETIC_64),
        ("5.1", 1, 8, ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_DIVIDE": [
        ("1.0", 4, 4, FLOATS),
        ("2.1", 4, 4, ARITHMETIC_32),
        ("3.0", 1, 8, ARITHMETIC_32),
        ("5.1", 1, 8, ALL_32),
        ("6.0", 1, 8, ALL_BUT_DOUBLE),
    ],
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
    "ELEMENT_WISE_SUBTRACT": [
        ("1.0", 4, 4, FLOATS),
        ("2.1", 4, 4, ARITHMETIC_32),
        ("3.0", 1, 8, ARITHMETIC_32),
        ("4.1", 1, 8, ARITHMETIC_64),
        ("5.1", 1, 8, ALL_BUT_DOUBLE),
    ],
    "ELEMENT_WISE_MODULUS_TRUNCATE": _REMAINDER,
    "ELEMENT_WISE_MODULUS_FLOOR": _REMAINDER,
    "ELEMENT_WISE_ADD1": [("2.0", 4, 5, FLOATS), ("3.0", 1, 8, FLOATS)],
    "ELEMENT_WISE_DIFFERENCE_SQUARE": [("3.1", 1, 8, ARITHMETIC_32)],
}
