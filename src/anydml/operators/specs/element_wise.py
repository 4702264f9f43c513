"""Element-wise operators of one operand, f(x), and powers; where there is a ScaleBias f(g(x)), g(x) = x * Scale + Bias.

Decisions where the pages are silent: floats are computed in the next wider type, f and g together, and rounded once;
EXP, LOG, powers and ERF in double precision, but for those of FLOAT32 without a ScaleBias, which are within 1 unit in
the last place. Integers that have a ScaleBias are computed in double precision, truncated and saturated.
What CEIL, FLOOR and ROUND give keeps infinities, NaN and the sign of x, as C's do. SIGN of NaN is 0, as its page's
formula has 0 for all that is neither below nor above 0. Powers of infinities and NaN are C's: 1 is the power 0 of
anything, and every power of 1. CONSTANT_POW is of floats alone, as its page says; the feature level history has its
integers in 3.0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.enums import RoundingMode, TensorDataType
from ...core.strided_layout import Array
from ...core.tensor_desc import DML_SCALE_BIAS
from ..constraints import rounded, scaled
from ..pointwise import POSITIVE, Constants, Pointwise, in_double, in_wider_type


def _identity(desc: Any, x: Array) -> Array:
    return x if desc.ScaleBias is None else in_wider_type(lambda desc, x: x)(desc, x)


def _round(desc: Any, x: Array) -> Any:
    """Of the mode TOWARD_INFINITY sign(x) * floor(|x| + 1/2), which the wider type holds exactly."""
    if desc.RoundingMode == RoundingMode.TOWARD_INFINITY:
        return np.copysign(np.floor(np.abs(x) + 0.5), x)
    return np.rint(x) if desc.RoundingMode == RoundingMode.HALVES_TO_NEAREST_EVEN else np.trunc(x)


_ROUND_OPCODES = {
    RoundingMode.HALVES_TO_NEAREST_EVEN: "ROUND_EVEN",
    RoundingMode.TOWARD_ZERO: "TRUNCATE",
    RoundingMode.TOWARD_INFINITY: "ROUND_AWAY",
}


def _round_code(desc: Any, data_type: TensorDataType) -> Constants:
    return _ROUND_OPCODES[desc.RoundingMode], ()


def _round_by_torch(torch: Any, desc: Any, x: Any) -> Any:
    if desc.RoundingMode == RoundingMode.TOWARD_INFINITY:
        return torch.copysign((x.abs() + 0.5).floor(), x)
    return x.round() if desc.RoundingMode == RoundingMode.HALVES_TO_NEAREST_EVEN else x.trunc()


def _sign(desc: Any, x: Array) -> Any:
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


def _sign_by_torch(torch: Any, desc: Any, x: Any) -> Any:
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


def _power(desc: Any, x: Array, e: Array) -> Array:
    with np.errstate(all="ignore"):
        if x.dtype.kind != "f" and e.dtype.kind != "f" and desc.ScaleBias is None:
            return _integer_power(x, e.astype(np.int64))
        return rounded(np.power(scaled(desc, x).astype(np.float64), e.astype(np.float64)), x.dtype)


def _constant_power(desc: Any, x: Array) -> Array:
    # An array of exponents: of a number NumPy makes a root or a product, which are not C's power at infinities.
    return _power(desc, x, np.full(x.shape, desc.Exponent))


def _integer_power(x: Array, e: Array) -> Array:
    """Exponentiation by squaring, modulo 2^n; below 0, where 1 / x^-e truncated is 0 but for 1 and -1."""
    power, square, rest = np.ones_like(x), x.copy(), np.abs(e)
    while rest.any():
        power = np.where(rest & 1, power * square, power)
        square = square * square
        rest = rest >> 1
    is_unit = np.abs(x.astype(np.int64)) == 1
    inverse = np.where(x == 0, ~np.zeros((), x.dtype), np.where(is_unit, power, x.dtype.type(0)))
    return np.where(e < 0, inverse, power)


_TABLE = """
    3.0 | 1 to 8 | FLOAT32, FLOAT16
    1.0 | 4      | FLOAT32, FLOAT16
"""

ELEMENT_WISE_IDENTITY = Pointwise(
    summary=(
        "Copies each element: f(x) = x. Strides may differ, which changes a tensor's layout. Without a "
        "ScaleBias it is a copy of bits."
    ),
    members={
        "InputTensor": "what is copied.",
        "OutputTensor": "the copy, of the same type and sizes.",
    },
    scale_bias=True,
    reference=_identity,
    native="COPY",
    torch=lambda torch, desc, x: x,
    example={"ScaleBias": DML_SCALE_BIAS(Scale=2, Bias=10)},
    support="""
        4.1 | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        2.1 | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        1.0 | 4 to 5 | FLOAT32, FLOAT16
    """,
)

ELEMENT_WISE_ABS = Pointwise(
    summary="The absolute value of each element; of the lowest integer, which has none, that integer.",
    scale_bias=True,
    reference=in_wider_type(lambda desc, x: np.abs(x)),
    native="ABS",
    torch="abs",
    torch_in_own_type="all",
    doctest="""
        >>> abs([-1.5, 2.0])
        array([1.5, 2. ], dtype=float32)
    """,
    support="""
        4.1 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8
        3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8
        2.1 | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8
        1.0 | 4      | FLOAT32, FLOAT16
    """,
)

ELEMENT_WISE_CEIL = Pointwise(
    summary="The smallest integer that is not below each element.",
    scale_bias=True,
    reference=in_wider_type(lambda desc, x: np.ceil(x)),
    native="CEIL",
    torch="ceil",
    torch_in_own_type="floats",
    doctest="""
        >>> ceil([-1.5, 0.5])
        array([-1.,  1.], dtype=float32)
    """,
    support=_TABLE,
)

ELEMENT_WISE_EXP = Pointwise(
    summary="e to the power of each element.",
    members={
        "InputTensor": "the exponents.",
    },
    scale_bias=True,
    reference=in_double(lambda desc, x: np.exp(x)),
    native="EXP",
    torch="exp",
    doctest="""
        >>> exp([0.0, 1.0])
        array([1.       , 2.7182817], dtype=float32)
    """,
    support=_TABLE,
)

ELEMENT_WISE_FLOOR = Pointwise(
    summary="The largest integer that is not above each element.",
    scale_bias=True,
    reference=in_wider_type(lambda desc, x: np.floor(x)),
    native="FLOOR",
    torch="floor",
    torch_in_own_type="floats",
    doctest="""
        >>> floor([-1.5, 0.5])
        array([-2.,  0.], dtype=float32)
    """,
    support=_TABLE,
)

ELEMENT_WISE_LOG = Pointwise(
    summary="The natural logarithm of each element; of 0 minus infinity, of what is below NaN.",
    scale_bias=True,
    reference=in_double(lambda desc, x: np.log(x)),
    native="LOG",
    torch="log",
    example={"InputTensor": POSITIVE},
    doctest="""
        >>> log([1.0, 0.0])
        array([  0., -inf], dtype=float32)
    """,
    support=_TABLE,
)

ELEMENT_WISE_POW = Pointwise(
    summary=(
        "x to the power of e for each pair of elements: NaN where x is below 0 and e no integer. Where both "
        "are integers the result is exact, truncated and modulo 2^n; 0 to a power below 0 gives all bits 1. "
        "Where one is a float, it is computed in double precision, of FLOAT32 alone within 1 unit in the last "
        "place, and becomes an integer again by truncation, saturated."
    ),
    inputs=("InputTensor", "ExponentTensor"),
    members={
        "InputTensor": "the elements x.",
        "ExponentTensor": "the exponents e, of any type that its table has. Below feature level 3.0 DirectML wants that of InputTensor, FLOAT32 or FLOAT16, which is not checked: constraints do not depend on the level.",
        "OutputTensor": "the results, of the type of InputTensor.",
    },
    scale_bias=True,
    same_types=(("InputTensor", "OutputTensor"),),
    reference=_power,
    native="POW",
    torch="pow",
    defaults={"OutputTensor": None},
    doctest="""
        >>> pow([2.0, 3.0], [[1.0], [2.0]])
        array([[2., 3.],
               [4., 9.]], dtype=float32)
    """,
    support="""
        3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        1.0 | 4      | FLOAT32, FLOAT16
    """,
)

ELEMENT_WISE_CONSTANT_POW = Pointwise(
    summary="Each element to the power of one exponent: NaN of what is below 0 where that is no integer.",
    members={
        "Exponent": "the exponent of all elements.",
    },
    scale_bias=True,
    reference=_constant_power,
    native=("CONSTANT_POW", "Exponent"),
    torch=lambda torch, desc, x: torch.pow(x, torch.full_like(x, desc.Exponent)),
    example={"InputTensor": POSITIVE, "Exponent": 1.5},
    support=_TABLE,
)

ELEMENT_WISE_RECIP = Pointwise(
    summary="1 / x for each element x.",
    scale_bias=True,
    reference=in_wider_type(lambda desc, x: 1 / x),
    native="RECIP",
    torch="reciprocal",
    torch_in_own_type="floats",
    example={"InputTensor": POSITIVE},
    doctest="""
        >>> recip([2.0, 0.25])
        array([0.5, 4. ], dtype=float32)
    """,
    support=_TABLE,
)

ELEMENT_WISE_SQRT = Pointwise(
    summary="The square root of each element, NaN of what is below 0.",
    scale_bias=True,
    reference=in_wider_type(lambda desc, x: np.sqrt(x)),
    native="SQRT",
    torch="sqrt",
    example={"InputTensor": POSITIVE},
    doctest="""
        >>> sqrt([9.0, 2.25])
        array([3. , 1.5], dtype=float32)
    """,
    support=_TABLE,
)

ELEMENT_WISE_SIGN = Pointwise(
    summary="-1 for each element below 0, 1 for each above, and 0 for all others: zeros of either sign, and NaN.",
    reference=in_wider_type(_sign),
    native="SIGN",
    torch=_sign_by_torch,
    doctest="""
        >>> sign([-2.5, 0.0, 3.0])
        array([-1.,  0.,  1.], dtype=float32)
    """,
    support="""
        4.1 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        2.1 | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        2.0 | 4      | FLOAT32, FLOAT16
    """,
)

ELEMENT_WISE_ERF = Pointwise(
    summary="The error function of each element: 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.",
    scale_bias=True,
    reference=in_double(lambda desc, x: np.vectorize(math.erf, "d")(x)),
    native="ERF",
    torch="erf",
    doctest="""
        >>> erf([0.0, 1.0])
        array([0.       , 0.8427008], dtype=float32)
    """,
    support="""
        3.0 | 1 to 8 | FLOAT32, FLOAT16
        2.0 | 4      | FLOAT32, FLOAT16
    """,
)

ELEMENT_WISE_ROUND = Pointwise(
    summary="The integer near each element that the mode says. Infinities, NaN and the sign of zero stay.",
    members={
        "RoundingMode": (
            "enums.RoundingMode | to the nearest integer, with halves to the even one; TOWARD_ZERO, which truncates; "
            "TOWARD_INFINITY, to the nearest with halves away from zero."
        ),
    },
    defaults={"RoundingMode": RoundingMode.HALVES_TO_NEAREST_EVEN},
    reference=in_wider_type(_round),
    native=_round_code,
    torch=_round_by_torch,
    example={"RoundingMode": RoundingMode.TOWARD_INFINITY},
    doctest="""
        >>> round([0.5, 1.5, -2.5])
        array([ 0.,  2., -2.], dtype=float32)
    """,
    support="""
        3.0 | 1 to 8 | FLOAT32, FLOAT16
        2.1 | 4      | FLOAT32, FLOAT16
    """,
)

ELEMENT_WISE_NEGATE = Pointwise(
    summary="-x for each element x; the lowest integer stays what it is.",
    reference=in_wider_type(lambda desc, x: -x),
    native="NEGATE",
    torch="neg",
    torch_in_own_type="all",
    doctest="""
        >>> negate([1, -2])
        array([-1,  2])
    """,
    support="""
        5.0 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8
    """,
)
