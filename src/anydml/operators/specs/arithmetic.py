"""Arithmetic of two operands, f(a, b) for each pair of elements.

Decisions where the pages are silent: floats are computed in the next wider type, and rounded once; integers modulo 2^n.
A division of integers by 0 gives all bits 1, quotient and both remainders, as in Direct3D. Of a NaN and a number, the
larger and the smaller is the number, as there. MODULUS_FLOOR of floats is what Python's % is: fmod, which is exact, and
the divisor once more where the signs differ; so of a finite and an infinite number of the other sign it is the infinite
one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.strided_layout import Array
from ..fused_activation import activated
from ..pointwise import Pointwise, in_wider_type


def _quotient(desc: Any, a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.divide(a, b)
    divisor = np.where(b == 0, b.dtype.type(1), b)
    quotient = a // divisor
    # NumPy's is rounded down.
    quotient += ((quotient < 0) & (quotient * divisor != a)).astype(a.dtype)
    return np.where(b == 0, ~np.zeros((), a.dtype), quotient)


def _remainder(desc: Any, a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    return np.where(b == 0, ~np.zeros((), a.dtype), np.fmod(a, np.where(b == 0, b.dtype.type(1), b)))


def _floored_remainder(desc: Any, a: Array, b: Array) -> Any:
    if a.dtype.kind == "f":
        return np.mod(a, b)
    return np.where(b == 0, ~np.zeros((), a.dtype), np.mod(a, np.where(b == 0, b.dtype.type(1), b)))


def _mean(desc: Any, a: Array, b: Array) -> Array:
    # Halves of 32 bits are exact in float64, and truncated by the rounding.
    return (a.astype(np.float64) + b) / 2


def _difference_square(desc: Any, a: Array, b: Array) -> Any:
    # Singles do not hold the squares of halves' differences, which would be rounded twice.
    difference = np.subtract(a, b, dtype=np.float64) if a.dtype.kind == "f" else a - b
    return difference * difference


_TABLE_1 = """
    5.1 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    4.1 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
    3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
    2.1 | 4 to 5 | FLOAT32, FLOAT16, INT32, UINT32
    1.0 | 4 to 5 | FLOAT32, FLOAT16
"""

_TABLE_2 = """
    5.0 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    2.1 | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    1.0 | 4      | FLOAT32, FLOAT16
"""

_TABLE_3 = """
    6.0 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    2.1 | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
"""

ELEMENT_WISE_ADD = Pointwise(
    summary="a + b for each pair of elements. Integers wrap modulo 2^n.",
    inputs=("ATensor", "BTensor"),
    reference=in_wider_type(lambda desc, a, b: a + b),
    native="ADD",
    torch="add",
    torch_in_own_type="all",
    support=_TABLE_1,
)

ELEMENT_WISE_DIVIDE = Pointwise(
    summary=(
        "a / b for each pair of elements. Integer quotients are truncated; of a division by 0 all bits are 1, "
        "and the lowest integer divided by -1 is itself."
    ),
    inputs=("ATensor", "BTensor"),
    reference=in_wider_type(_quotient),
    native="DIVIDE",
    torch="div",
    torch_in_own_type="floats",
    doctest="""
        >>> divide([7, -7], 2)
        array([ 3, -3])
    """,
    support="""
        6.0 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        5.1 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        2.1 | 4      | FLOAT32, FLOAT16, INT32, UINT32
        1.0 | 4      | FLOAT32, FLOAT16
    """,
)

ELEMENT_WISE_MAX = Pointwise(
    summary="The larger of each pair of elements, the number of a number and a NaN.",
    inputs=("ATensor", "BTensor"),
    reference=in_wider_type(lambda desc, a, b: np.fmax(a, b)),
    native="MAX",
    torch="fmax",
    torch_in_own_type="floats",
    doctest="""
        >>> max([1.0, 5.0], 3)
        array([3., 5.], dtype=float32)
    """,
    support=_TABLE_2,
)

ELEMENT_WISE_MEAN = Pointwise(
    summary="(a + b) / 2 for each pair of elements. Of integers the exact sum is halved, and truncated.",
    inputs=("ATensor", "BTensor"),
    reference=in_wider_type(_mean),
    native="MEAN",
    torch=lambda torch, desc, a, b: (a + b) / 2,
    doctest="""
        >>> mean([1.0, 5.0], [2.0, 6.0])
        array([1.5, 5.5], dtype=float32)
    """,
    support="""
        3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        2.1 | 4      | FLOAT32, FLOAT16, INT32, UINT32
        1.0 | 4      | FLOAT32, FLOAT16
    """,
)

ELEMENT_WISE_MIN = Pointwise(
    summary="The smaller of each pair of elements, the number of a number and a NaN.",
    inputs=("ATensor", "BTensor"),
    reference=in_wider_type(lambda desc, a, b: np.fmin(a, b)),
    native="MIN",
    torch="fmin",
    torch_in_own_type="floats",
    doctest="""
        >>> min([1.0, 5.0], 3)
        array([1., 3.], dtype=float32)
    """,
    support=_TABLE_2,
)

ELEMENT_WISE_MULTIPLY = Pointwise(
    summary="a * b for each pair of elements. Integers wrap modulo 2^n.",
    inputs=("ATensor", "BTensor"),
    reference=in_wider_type(lambda desc, a, b: a * b),
    native="MULTIPLY",
    torch="mul",
    torch_in_own_type="all",
    doctest="""
        >>> multiply([3, 4], [[1], [2]])
        array([[3, 4],
               [6, 8]])
    """,
    support=_TABLE_1,
)

ELEMENT_WISE_SUBTRACT = Pointwise(
    summary="a - b for each pair of elements. Integers wrap modulo 2^n.",
    inputs=("ATensor", "BTensor"),
    reference=in_wider_type(lambda desc, a, b: a - b),
    native="SUBTRACT",
    torch="sub",
    torch_in_own_type="all",
    doctest="""
        >>> subtract([3.0, 4.0], 1)
        array([2., 3.], dtype=float32)
    """,
    support="""
        5.1 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        4.1 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
        3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        2.1 | 4      | FLOAT32, FLOAT16, INT32, UINT32
        1.0 | 4      | FLOAT32, FLOAT16
    """,
)

ELEMENT_WISE_ADD1 = Pointwise(
    summary="f(a + b) for each pair of elements, with an activation f.",
    inputs=("ATensor", "BTensor"),
    members={
        "FusedActivation": "OptionalActivation | the activation, its tensors None; the sum itself where absent.",
    },
    reference=in_wider_type(lambda desc, a, b: activated(desc.FusedActivation, a + b)),
    native="ADD",
    torch="add",
    torch_in_own_type="all",
    example={"FusedActivation": ("ACTIVATION_LEAKY_RELU", {"Alpha": 0.25})},
    support="""
        3.0 | 1 to 8 | FLOAT32, FLOAT16
        2.0 | 4 to 5 | FLOAT32, FLOAT16
    """,
)

ELEMENT_WISE_MODULUS_TRUNCATE = Pointwise(
    summary=(
        "The remainder a - b * trunc(a / b) for each pair of elements, of the sign of a. Of a division by 0 "
        "all bits are 1 for integers, and NaN for floats."
    ),
    inputs=("ATensor", "BTensor"),
    reference=in_wider_type(_remainder),
    native="REMAINDER",
    torch="fmod",
    doctest="""
        >>> modulus_truncate([7, -7], 3)
        array([ 1, -1])
    """,
    support=_TABLE_3,
)

ELEMENT_WISE_MODULUS_FLOOR = Pointwise(
    summary=(
        "The remainder a - b * floor(a / b) for each pair of elements, of the sign of b, as Python's % has it. Of a "
        "division by 0 all bits are 1 for integers, and NaN for floats."
    ),
    inputs=("ATensor", "BTensor"),
    reference=in_wider_type(_floored_remainder),
    native="MODULUS_FLOOR",
    torch="remainder",
    doctest="""
        >>> modulus_floor([7, -7], 3)
        array([1, 2])
    """,
    support=_TABLE_3,
)

ELEMENT_WISE_DIFFERENCE_SQUARE = Pointwise(
    summary="(a - b) * (a - b) for each pair of elements. Integers wrap modulo 2^n.",
    inputs=("ATensor", "BTensor"),
    reference=in_wider_type(_difference_square),
    native="DIFFERENCE_SQUARE",
    torch=lambda torch, desc, a, b: (a - b) * (a - b),
    doctest="""
        >>> difference_square([1.0, 5.0], 3)
        array([4., 4.], dtype=float32)
    """,
    support="""
        3.1 | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
    """,
)
