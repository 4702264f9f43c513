"""Element-wise operators: f(x) or f(a, b) for each element, and where there is a ScaleBias f(g(x)), g(x) = x * Scale + Bias.

Decisions where the pages are silent: floats are computed in the next wider type, f and g together, and rounded once,
but for EXP and LOG of FLOAT32 without a ScaleBias, which are within 1 unit in the last place; integers that have a
ScaleBias are computed in double precision, truncated and saturated. A division of integers by 0 gives all bits 1,
quotient and remainder, as in Direct3D. Of a NaN and a number, the larger and the smaller is the number, as there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.enums import RoundingMode, TensorDataType
from ...core.strided_layout import DTYPES, Array
from ...core.tensor_desc import DML_SCALE_BIAS
from ..constraints import is_held, rounded, scaled, type_of_output
from ..fused_activation import activated
from ..pointwise import POSITIVE, Constants, Pointwise, in_wider_type
from ..schema import ConstraintFailure


def limits(data_type: TensorDataType, low: float, high: float) -> tuple[float, float]:
    """The ends of an interval as values of a type; NaN, which limits nothing, as the type's own."""
    dtype = DTYPES[data_type]
    if dtype.kind == "f":
        return low, high
    limits = np.iinfo(dtype)
    ends = [limits.min if math.isnan(low) else low, limits.max if math.isnan(high) else high]
    whole = [max(limits.min, min(end, limits.max)) for end in ends]
    return math.ceil(whole[0]), math.floor(whole[1])


def _identity(desc: Any, x: Array) -> Array:
    return x if desc.ScaleBias is None else in_wider_type(lambda desc, x: x)(desc, x)


def _clip(desc: Any, x: Array) -> Any:
    """min(Max, max(Min, x)), of integers with the lowest and the highest between Min and Max."""
    # Fused into another operator, whose results are floats, it has no tensors.
    data_type = TensorDataType.FLOAT32 if desc.OutputTensor is None else desc.OutputTensor.DataType
    low, high = limits(data_type, desc.Min, desc.Max)
    return np.fmin(_of(x, high), np.fmax(_of(x, low), x))


def _clip_code(desc: Any, data_type: TensorDataType) -> Constants:
    return "CLIP", limits(data_type, desc.Min, desc.Max)


def _round(desc: Any, x: Array) -> Any:
    """Of the mode TOWARD_INFINITY sign(x) * floor(|x| + 1/2), which the wider type holds exactly."""
    if desc.RoundingMode == RoundingMode.TOWARD_INFINITY:
        return np.copysign(np.floor(np.abs(x) + 0.5), x)
    return np.rint(x) if desc.RoundingMode == RoundingMode.HALVES_TO_NEAREST_EVEN else np.trunc(x)


def _round_code(desc: Any, data_type: TensorDataType) -> Constants:
    names = {RoundingMode.TOWARD_ZERO: "TRUNCATE", RoundingMode.TOWARD_INFINITY: "ROUND_AWAY"}
    return names.get(desc.RoundingMode, "ROUND_EVEN"), ()


def _round_by_torch(torch: Any, desc: Any, x: Any) -> Any:
    if desc.RoundingMode == RoundingMode.TOWARD_INFINITY:
        return torch.copysign((x.abs() + 0.5).floor(), x)
    return x.round() if desc.RoundingMode == RoundingMode.HALVES_TO_NEAREST_EVEN else x.trunc()


def _threshold(desc: Any, x: Array) -> Any:
    low, _ = limits(desc.OutputTensor.DataType, desc.Min, math.inf)
    return np.fmax(x, _of(x, low))


def _threshold_code(desc: Any, data_type: TensorDataType) -> Constants:
    return "CLIP", limits(data_type, desc.Min, math.inf)


def _clip1(desc: Any, x: Array) -> Any:
    low, high = limits(desc.OutputTensor.DataType, desc.Min, desc.Max)
    return np.fmax(_of(x, low), np.fmin(x, _of(x, high)))


def _clip1_code(desc: Any, data_type: TensorDataType) -> Constants:
    low, high = limits(data_type, desc.Min, desc.Max)
    is_float = DTYPES[data_type].kind == "f"
    return ("CLIP_FROM_ABOVE", (low, high)) if is_float else ("CLIP", (low, max(low, high)))


def _check_clip1(desc: Any) -> Iterator[ConstraintFailure]:
    yield from type_of_output(desc, "(C3)", "MinMaxDataType")
    for name in ("Min", "Max"):
        yield from is_held(desc, "(C4)", name, desc.MinMaxDataType)


def _of(x: Array, value: float) -> Any:
    """A value in the type that x is computed in."""
    return x.dtype.type(value)


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


def _mean(desc: Any, a: Array, b: Array) -> Array:
    # Halves of 32 bits are exact in float64, and truncated by the rounding.
    return (a.astype(np.float64) + b) / 2


def _power(desc: Any, x: Array, e: Array) -> Array:
    with np.errstate(all="ignore"):
        if x.dtype.kind != "f" and e.dtype.kind != "f" and desc.ScaleBias is None:
            return _integer_power(x, e.astype(np.int64))
        return rounded(np.power(scaled(desc, x).astype(np.float64), e.astype(np.float64)), x.dtype)


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

ELEMENT_WISE_ADD = Pointwise(
    summary="a + b for each pair of elements. Integers wrap modulo 2^n.",
    inputs=("ATensor", "BTensor"),
    reference=in_wider_type(lambda desc, a, b: a + b),
    native="ADD",
    torch="add",
    torch_in_own_type="all",
    support=_TABLE_1,
)

ELEMENT_WISE_CLIP = Pointwise(
    summary=(
        "Limits each element to an interval: f(x) = min(Max, max(Min, x)). Integers are limited to those in "
        "the interval. A NaN becomes Min, or Max where that is below Min."
    ),
    members={
        "Min": "the lower end.",
        "Max": "the upper end; where it is below Min, every result.",
    },
    scale_bias=True,
    reference=in_wider_type(_clip),
    native=_clip_code,
    example={"Min": -1, "Max": 0.75},
    support=_TABLE_2,
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

ELEMENT_WISE_EXP = Pointwise(
    summary="e to the power of each element.",
    members={
        "InputTensor": "the exponents.",
    },
    scale_bias=True,
    reference=in_wider_type(lambda desc, x: np.exp(x)),
    native="EXP",
    torch="exp",
    doctest="""
        >>> exp([0.0, 1.0])
        array([1.       , 2.7182817], dtype=float32)
    """,
    support=_TABLE_3,
)

ELEMENT_WISE_LOG = Pointwise(
    summary="The natural logarithm of each element; of 0 minus infinity, of what is below NaN.",
    scale_bias=True,
    reference=in_wider_type(lambda desc, x: np.log(x)),
    native="LOG",
    torch="log",
    example={"InputTensor": POSITIVE},
    doctest="""
        >>> log([1.0, 0.0])
        array([  0., -inf], dtype=float32)
    """,
    support=_TABLE_3,
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

ELEMENT_WISE_POW = Pointwise(
    summary=(
        "x to the power of e for each pair of elements: NaN where x is below 0 and e no integer. Where both "
        "are integers the result is exact, truncated and modulo 2^n; 0 to a power below 0 gives all bits 1. "
        "Where one is a float, it is computed in double precision, and becomes an integer again by "
        "truncation, saturated."
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
    support=_TABLE_3,
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
    support=_TABLE_3,
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

ELEMENT_WISE_THRESHOLD = Pointwise(
    summary="Raises each element to a lower end: f(x) = max(x, Min), and so a NaN.",
    members={
        "Min": "the lower end; of integers the lowest that is not below it.",
    },
    scale_bias=True,
    reference=in_wider_type(_threshold),
    native=_threshold_code,
    example={"Min": 0},
    doctest="""
        >>> threshold([1.0, 3.0], 2)
        array([2., 3.], dtype=float32)
    """,
    support="""
        3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        2.1 | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
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
    support="""
        6.0 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        2.1 | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    """,
)

ELEMENT_WISE_CLIP1 = Pointwise(
    summary=(
        "Limits each element to an interval of its own type: f(x) = max(Min, min(x, Max)). A NaN becomes Max, "
        "or Min where that is above Max."
    ),
    members={
        "MinMaxDataType": "enums.TensorDataType | the type of Min and Max.",
        "Min": "SCALAR | the lower end; where it is above Max, every result.",
        "Max": "SCALAR | the upper end.",
    },
    scale_bias=True,
    constraints={
        "(C3)": "MinMaxDataType is the DataType of OutputTensor.",
        "(C4)": "Min and Max are values of MinMaxDataType: integers that it holds, or numbers in the range of its floats.",
    },
    check=_check_clip1,
    reference=in_wider_type(_clip1),
    native=_clip1_code,
    example={"MinMaxDataType": TensorDataType.FLOAT32, "Min": -1, "Max": 0.75},
    support="""
        5.0 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
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
