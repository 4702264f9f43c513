"""Circular and hyperbolic functions and their inverses, f(x); where there is a ScaleBias f(g(x)), g(x) = x * Scale + Bias.

Decisions where the pages are silent: floats are computed in double precision, f and g together, and rounded once; an
engine may give a FLOAT32 that is within 1 unit in the last place. Angles are radians, and those that are large are
reduced by the exact pi. Zeros and infinities, and what has no value, are as in C: SIN, COS and TAN of an infinity, ASIN
and ACOS beyond 1, ACOSH below 1 and ATANH beyond 1 are NaN, odd functions keep the sign of 0. ATAN_YX of two zeros,
which its page leaves open, is a zero or pi by their signs, as C's atan2 is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.strided_layout import Array
from ..constraints import rounded
from ..pointwise import Pointwise, in_double

_BELOW_1: Array = np.array([[[[-0.75, -0.5, -0.25], [0, 0.25, 0.75]]]], np.float32)
_FROM_1: Array = np.array([[[[1, 1.25, 2], [4, 9, 10]]]], np.float32)
"""What small examples compute with."""


def _angle(desc: Any, y: Array, x: Array) -> Array:
    return rounded(np.arctan2(y.astype(np.float64), x.astype(np.float64)), y.dtype)


_TABLE_1 = """
    3.0 | 1 to 8 | FLOAT32, FLOAT16
    1.0 | 4      | FLOAT32, FLOAT16
"""

_TABLE_2 = """
    3.0 | 1 to 8 | FLOAT32, FLOAT16
    2.0 | 4      | FLOAT32, FLOAT16
"""

ELEMENT_WISE_ACOS = Pointwise(
    summary="The arccosine of each element, from 0 to pi; NaN of what is below -1 or above 1.",
    scale_bias=True,
    reference=in_double(lambda desc, x: np.arccos(x)),
    native="ACOS",
    torch="acos",
    example={"InputTensor": _BELOW_1},
    doctest="""
        >>> acos([1.0, 0.0])
        array([0.       , 1.5707964], dtype=float32)
    """,
    support=_TABLE_1,
)

ELEMENT_WISE_ASIN = Pointwise(
    summary="The arcsine of each element, from -pi/2 to pi/2; NaN of what is below -1 or above 1.",
    scale_bias=True,
    reference=in_double(lambda desc, x: np.arcsin(x)),
    native="ASIN",
    torch="asin",
    example={"InputTensor": _BELOW_1},
    doctest="""
        >>> asin([0.0, 1.0])
        array([0.       , 1.5707964], dtype=float32)
    """,
    support=_TABLE_1,
)

ELEMENT_WISE_ATAN = Pointwise(
    summary="The arctangent of each element, from -pi/2 to pi/2.",
    scale_bias=True,
    reference=in_double(lambda desc, x: np.arctan(x)),
    native="ATAN",
    torch="atan",
    doctest="""
        >>> atan([0.0, 0.5])
        array([0.       , 0.4636476], dtype=float32)
    """,
    support=_TABLE_1,
)

ELEMENT_WISE_COS = Pointwise(
    summary="The cosine of each element.",
    scale_bias=True,
    reference=in_double(lambda desc, x: np.cos(x)),
    native="COS",
    torch="cos",
    doctest="""
        >>> cos([0.0, 1.0])
        array([1.       , 0.5403023], dtype=float32)
    """,
    support=_TABLE_1,
)

ELEMENT_WISE_SIN = Pointwise(
    summary="The sine of each element.",
    scale_bias=True,
    reference=in_double(lambda desc, x: np.sin(x)),
    native="SIN",
    torch="sin",
    doctest="""
        >>> sin([0.0, 1.0])
        array([0.        , 0.84147096], dtype=float32)
    """,
    support=_TABLE_1,
)

ELEMENT_WISE_TAN = Pointwise(
    summary="The tangent of each element.",
    scale_bias=True,
    reference=in_double(lambda desc, x: np.tan(x)),
    native="TAN",
    torch="tan",
    doctest="""
        >>> tan([0.0, 1.0])
        array([0.       , 1.5574077], dtype=float32)
    """,
    support=_TABLE_1,
)

ELEMENT_WISE_SINH = Pointwise(
    summary="The hyperbolic sine of each element: (e^x - e^-x) / 2.",
    scale_bias=True,
    reference=in_double(lambda desc, x: np.sinh(x)),
    native="SINH",
    torch="sinh",
    doctest="""
        >>> sinh([0.0, 1.0])
        array([0.       , 1.1752012], dtype=float32)
    """,
    support=_TABLE_2,
)

ELEMENT_WISE_COSH = Pointwise(
    summary="The hyperbolic cosine of each element: (e^x + e^-x) / 2.",
    scale_bias=True,
    reference=in_double(lambda desc, x: np.cosh(x)),
    native="COSH",
    torch="cosh",
    doctest="""
        >>> cosh([0.0, 1.0])
        array([1.       , 1.5430807], dtype=float32)
    """,
    support=_TABLE_2,
)

ELEMENT_WISE_TANH = Pointwise(
    summary="The hyperbolic tangent of each element. It is ACTIVATION_TANH, with a ScaleBias.",
    scale_bias=True,
    reference=in_double(lambda desc, x: np.tanh(x)),
    native="TANH",
    torch="tanh",
    support=_TABLE_2,
)

ELEMENT_WISE_ASINH = Pointwise(
    summary="The inverse hyperbolic sine of each element: ln(x + sqrt(x^2 + 1)).",
    scale_bias=True,
    reference=in_double(lambda desc, x: np.arcsinh(x)),
    native="ASINH",
    torch="asinh",
    doctest="""
        >>> asinh([0.0, 1.0])
        array([0.       , 0.8813736], dtype=float32)
    """,
    support=_TABLE_2,
)

ELEMENT_WISE_ACOSH = Pointwise(
    summary="The inverse hyperbolic cosine of each element, ln(x + sqrt(x^2 - 1)); NaN of what is below 1.",
    scale_bias=True,
    reference=in_double(lambda desc, x: np.arccosh(x)),
    native="ACOSH",
    torch="acosh",
    example={"InputTensor": _FROM_1},
    doctest="""
        >>> acosh([1.0, 2.0])
        array([0.      , 1.316958], dtype=float32)
    """,
    support=_TABLE_2,
)

ELEMENT_WISE_ATANH = Pointwise(
    summary="The inverse hyperbolic tangent of each element, ln((1 + x) / (1 - x)) / 2; NaN of what is below -1 or above 1.",
    scale_bias=True,
    reference=in_double(lambda desc, x: np.arctanh(x)),
    native="ATANH",
    torch="atanh",
    example={"InputTensor": _BELOW_1},
    doctest="""
        >>> atanh([0.0, 0.5])
        array([0.        , 0.54930615], dtype=float32)
    """,
    support=_TABLE_2,
)

ELEMENT_WISE_ATAN_YX = Pointwise(
    summary="The angle, from -pi to pi, of the point with the coordinates y = a and x = b, for each pair of elements.",
    inputs=("ATensor", "BTensor"),
    members={
        "ATensor": "the coordinates y.",
        "BTensor": "the coordinates x.",
        "OutputTensor": "the angles, of the same type and sizes.",
    },
    reference=_angle,
    native="ATAN_YX",
    torch="atan2",
    doctest="""
        >>> atan_yx([1.0, -1.0], [1.0, 0.0])
        array([ 0.7853982, -1.5707964], dtype=float32)
    """,
    support="""
        3.1 | 1 to 8 | FLOAT32, FLOAT16
    """,
)
