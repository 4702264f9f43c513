"""Element-wise operators of two tensors: f(a, b) for each pair of elements. Strides of 0 broadcast.

Decisions where the pages are silent: floats are computed in the next wider type and rounded once; a division of integers
by 0 gives all bits 1, quotient and remainder, as in Direct3D; of a NaN and a number, the larger and the smaller is the
number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import rounded, same, scaled, sizes_of, widened
from ..fused_activation import activated
from ..schema import (
    Choices,
    ConstraintFailure,
    OperatorDesc,
    OperatorSpec,
    OptionalActivation,
    OptionalScaleBias,
    SupportTable,
    Tensor,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Binary(OperatorDesc):
    ATensor: Tensor
    BTensor: Tensor
    OutputTensor: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_ADD_OPERATOR_DESC(_Binary):
    """a + b for each pair of elements. Integers wrap modulo 2^n. May run in-place.

    Args:
        ATensor: the elements a.
        BTensor: the elements b.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) ATensor, BTensor and OutputTensor have the same DataType.
        (C2) ATensor, BTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_ADD_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC(_Binary):
    """a / b for each pair of elements. Integer quotients are truncated; of a division by 0 all bits are 1, and the
    lowest integer divided by -1 is itself. May run in-place.

    Args:
        ATensor: the elements a.
        BTensor: the elements b.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) ATensor, BTensor and OutputTensor have the same DataType.
        (C2) ATensor, BTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_MAX_OPERATOR_DESC(_Binary):
    """The larger of each pair of elements, the number of a number and a NaN. May run in-place.

    Args:
        ATensor: the elements a.
        BTensor: the elements b.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) ATensor, BTensor and OutputTensor have the same DataType.
        (C2) ATensor, BTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_MAX_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_MEAN_OPERATOR_DESC(_Binary):
    """(a + b) / 2 for each pair of elements. Of integers the exact sum is halved, and truncated. May run in-place.

    Args:
        ATensor: the elements a.
        BTensor: the elements b.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) ATensor, BTensor and OutputTensor have the same DataType.
        (C2) ATensor, BTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_MEAN_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_MIN_OPERATOR_DESC(_Binary):
    """The smaller of each pair of elements, the number of a number and a NaN. May run in-place.

    Args:
        ATensor: the elements a.
        BTensor: the elements b.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) ATensor, BTensor and OutputTensor have the same DataType.
        (C2) ATensor, BTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_MIN_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC(_Binary):
    """a * b for each pair of elements. Integers wrap modulo 2^n. May run in-place.

    Args:
        ATensor: the elements a.
        BTensor: the elements b.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) ATensor, BTensor and OutputTensor have the same DataType.
        (C2) ATensor, BTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_POW_OPERATOR_DESC(OperatorDesc):
    """x to the power of e for each pair of elements: NaN where x is below 0 and e no integer. May run in-place.

    Where both are integers the result is exact, truncated and modulo 2^n; 0 to a power below 0 gives all bits 1. Where
    one is a float, it is computed in double precision, and becomes an integer again by truncation, saturated.

    Args:
        InputTensor: the elements x.
        ExponentTensor: the exponents e, of any type that its table has. Below feature level 3.0 DirectML wants that of
            InputTensor, FLOAT32 or FLOAT16, which is not checked: constraints do not depend on the level.
        OutputTensor: the results, of the type of InputTensor.
        ScaleBias: applied to each x first; none where absent.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor, ExponentTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_POW_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    ExponentTensor: Tensor
    OutputTensor: Tensor
    ScaleBias: OptionalScaleBias = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC(_Binary):
    """a - b for each pair of elements. Integers wrap modulo 2^n. May run in-place.

    Args:
        ATensor: the elements a.
        BTensor: the elements b.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) ATensor, BTensor and OutputTensor have the same DataType.
        (C2) ATensor, BTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_ADD1_OPERATOR_DESC(_Binary):
    """f(a + b) for each pair of elements, with an activation f. May run in-place.

    Args:
        ATensor: the elements a.
        BTensor: the elements b.
        OutputTensor: the results, of the same type and sizes.
        FusedActivation: the activation, its tensors None; the sum itself where absent.

    Constraints:
        (C1) ATensor, BTensor and OutputTensor have the same DataType.
        (C2) ATensor, BTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_ADD1_OPERATOR_DESC; since feature level 2.0.
    """

    FusedActivation: OptionalActivation = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC(_Binary):
    """The remainder a - b * trunc(a / b) for each pair of elements, of the sign of a. Of a division by 0 all bits are 1
    for integers, and NaN for floats. May run in-place.

    Args:
        ATensor: the elements a.
        BTensor: the elements b.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) ATensor, BTensor and OutputTensor have the same DataType.
        (C2) ATensor, BTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC; since feature level 2.1.
    """


def _constraints(desc: Any) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "ATensor", "BTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "ATensor", "BTensor", "OutputTensor")
    yield from same(desc, "(C2)", "Sizes", "ATensor", "BTensor")


def _constraints_of_pow(desc: DML_ELEMENT_WISE_POW_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "ExponentTensor", "OutputTensor")
    yield from same(desc, "(C2)", "Sizes", "InputTensor", "ExponentTensor")


def _infer_sizes(desc: Any) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.ATensor)}


def _infer_sizes_of_pow(desc: DML_ELEMENT_WISE_POW_OPERATOR_DESC) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.InputTensor)}


def _quotient(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.divide(a, b)
    divisor = np.where(b == 0, b.dtype.type(1), b)
    quotient = a // divisor
    # NumPy's is rounded down.
    quotient += ((quotient < 0) & (quotient * divisor != a)).astype(a.dtype)
    return np.where(b == 0, ~np.zeros((), a.dtype), quotient)


def _remainder(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    return np.where(b == 0, ~np.zeros((), a.dtype), np.fmod(a, np.where(b == 0, b.dtype.type(1), b)))


def _mean(a: Array, b: Array) -> Array:
    # Halves of 32 bits are exact in float64, and truncated by the rounding.
    return (a.astype(np.float64) + b) / 2


def _power(desc: DML_ELEMENT_WISE_POW_OPERATOR_DESC, x: Array, e: Array) -> Array:
    if x.dtype.kind != "f" and e.dtype.kind != "f" and desc.ScaleBias is None:
        return _integer_power(x, e.astype(np.int64))
    return np.power(scaled(desc, x).astype(np.float64), e.astype(np.float64))


def _integer_power(x: Array, e: Array) -> Array:
    """By squaring, modulo 2^n; below 0, where 1 / x^-e truncated is 0 but for 1 and -1."""
    power, square, rest = np.ones_like(x), x.copy(), np.abs(e)
    while rest.any():
        power = np.where(rest & 1, power * square, power)
        square = square * square
        rest = rest >> 1
    is_unit = np.abs(x.astype(np.int64)) == 1
    inverse = np.where(x == 0, ~np.zeros((), x.dtype), np.where(is_unit, power, x.dtype.type(0)))
    return np.where(e < 0, inverse, power)


def _spec(
    operator_type: OperatorType,
    desc: type[OperatorDesc],
    function: Callable[[Array, Array], Array],
    support: SupportTable,
) -> OperatorSpec:
    def reference(desc: Any, a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            return rounded(function(widened(a), widened(b)), a.dtype)

    return OperatorSpec(
        operator_type=operator_type,
        desc=desc,
        constraints=_constraints,
        infer_sizes=_infer_sizes,
        sizes_rule="(C2)",
        reference=reference,
        in_place=True,
        support=support,
    )


_SUMS = support_table("""
    DML_FEATURE_LEVEL_5_1 and above
    ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    DML_FEATURE_LEVEL_4_1 and above
    ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
    BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
    DML_FEATURE_LEVEL_3_0 and above
    ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
    BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
    DML_FEATURE_LEVEL_2_1 and above
    ATensor      | Input  | 4 to 5 | FLOAT32, FLOAT16, INT32, UINT32
    BTensor      | Input  | 4 to 5 | FLOAT32, FLOAT16, INT32, UINT32
    OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16, INT32, UINT32
    DML_FEATURE_LEVEL_1_0 and above
    ATensor      | Input  | 4 to 5 | FLOAT32, FLOAT16
    BTensor      | Input  | 4 to 5 | FLOAT32, FLOAT16
    OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16
""")

_EXTREMES = support_table("""
    DML_FEATURE_LEVEL_5_0 and above
    ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    DML_FEATURE_LEVEL_3_0 and above
    ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    DML_FEATURE_LEVEL_2_1 and above
    ATensor      | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    BTensor      | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    DML_FEATURE_LEVEL_1_0 and above
    ATensor      | Input  | 4      | FLOAT32, FLOAT16
    BTensor      | Input  | 4      | FLOAT32, FLOAT16
    OutputTensor | Output | 4      | FLOAT32, FLOAT16
""")


ELEMENT_WISE_ADD = _spec(OperatorType.ELEMENT_WISE_ADD, DML_ELEMENT_WISE_ADD_OPERATOR_DESC, np.add, _SUMS)

ELEMENT_WISE_DIVIDE = _spec(
    OperatorType.ELEMENT_WISE_DIVIDE,
    DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC,
    _quotient,
    support_table("""
        DML_FEATURE_LEVEL_6_0 and above
        ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_5_1 and above
        ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        DML_FEATURE_LEVEL_2_1 and above
        ATensor      | Input  | 4      | FLOAT32, FLOAT16, INT32, UINT32
        BTensor      | Input  | 4      | FLOAT32, FLOAT16, INT32, UINT32
        OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, UINT32
        DML_FEATURE_LEVEL_1_0 and above
        ATensor      | Input  | 4      | FLOAT32, FLOAT16
        BTensor      | Input  | 4      | FLOAT32, FLOAT16
        OutputTensor | Output | 4      | FLOAT32, FLOAT16
    """),
)

ELEMENT_WISE_MAX = _spec(OperatorType.ELEMENT_WISE_MAX, DML_ELEMENT_WISE_MAX_OPERATOR_DESC, np.fmax, _EXTREMES)

ELEMENT_WISE_MEAN = _spec(
    OperatorType.ELEMENT_WISE_MEAN,
    DML_ELEMENT_WISE_MEAN_OPERATOR_DESC,
    _mean,
    support_table("""
        DML_FEATURE_LEVEL_3_0 and above
        ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        DML_FEATURE_LEVEL_2_1 and above
        ATensor      | Input  | 4      | FLOAT32, FLOAT16, INT32, UINT32
        BTensor      | Input  | 4      | FLOAT32, FLOAT16, INT32, UINT32
        OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, UINT32
        DML_FEATURE_LEVEL_1_0 and above
        ATensor      | Input  | 4      | FLOAT32, FLOAT16
        BTensor      | Input  | 4      | FLOAT32, FLOAT16
        OutputTensor | Output | 4      | FLOAT32, FLOAT16
    """),
)

ELEMENT_WISE_MIN = _spec(OperatorType.ELEMENT_WISE_MIN, DML_ELEMENT_WISE_MIN_OPERATOR_DESC, np.fmin, _EXTREMES)

ELEMENT_WISE_MULTIPLY = _spec(
    OperatorType.ELEMENT_WISE_MULTIPLY, DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC, np.multiply, _SUMS
)


def _reference_of_pow(desc: DML_ELEMENT_WISE_POW_OPERATOR_DESC, x: Array, e: Array) -> Array:
    with np.errstate(all="ignore"):
        return rounded(_power(desc, x, e), x.dtype)


ELEMENT_WISE_POW = OperatorSpec(
    operator_type=OperatorType.ELEMENT_WISE_POW,
    desc=DML_ELEMENT_WISE_POW_OPERATOR_DESC,
    constraints=_constraints_of_pow,
    infer_sizes=_infer_sizes_of_pow,
    sizes_rule="(C2)",
    reference=_reference_of_pow,
    in_place=True,
    support=support_table("""
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor    | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        ExponentTensor | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor   | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor    | Input  | 4      | FLOAT32, FLOAT16
        ExponentTensor | Input  | 4      | FLOAT32, FLOAT16
        OutputTensor   | Output | 4      | FLOAT32, FLOAT16
    """),
)

ELEMENT_WISE_SUBTRACT = _spec(
    OperatorType.ELEMENT_WISE_SUBTRACT,
    DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC,
    np.subtract,
    support_table("""
        DML_FEATURE_LEVEL_5_1 and above
        ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_4_1 and above
        ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
        BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32
        DML_FEATURE_LEVEL_3_0 and above
        ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, UINT32
        DML_FEATURE_LEVEL_2_1 and above
        ATensor      | Input  | 4      | FLOAT32, FLOAT16, INT32, UINT32
        BTensor      | Input  | 4      | FLOAT32, FLOAT16, INT32, UINT32
        OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, UINT32
        DML_FEATURE_LEVEL_1_0 and above
        ATensor      | Input  | 4      | FLOAT32, FLOAT16
        BTensor      | Input  | 4      | FLOAT32, FLOAT16
        OutputTensor | Output | 4      | FLOAT32, FLOAT16
    """),
)


def _reference_of_add1(desc: DML_ELEMENT_WISE_ADD1_OPERATOR_DESC, a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return rounded(activated(desc.FusedActivation, widened(a) + widened(b)), a.dtype)


ELEMENT_WISE_ADD1 = OperatorSpec(
    operator_type=OperatorType.ELEMENT_WISE_ADD1,
    desc=DML_ELEMENT_WISE_ADD1_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C2)",
    reference=_reference_of_add1,
    in_place=True,
    support=support_table("""
        DML_FEATURE_LEVEL_3_0 and above
        ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16
        BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_2_0 and above
        ATensor      | Input  | 4 to 5 | FLOAT32, FLOAT16
        BTensor      | Input  | 4 to 5 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16
    """),
)

ELEMENT_WISE_MODULUS_TRUNCATE = _spec(
    OperatorType.ELEMENT_WISE_MODULUS_TRUNCATE,
    DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC,
    _remainder,
    support_table("""
        DML_FEATURE_LEVEL_6_0 and above
        ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        ATensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        BTensor      | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        ATensor      | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        BTensor      | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    """),
)
