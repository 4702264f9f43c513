"""Element-wise operators of one tensor: f(g(x)) for each element x, g(x) = x * Scale + Bias where there is a ScaleBias.

Decisions where the pages are silent: floats are computed in the next wider type, g and f together, and rounded once,
but for EXP and LOG of FLOAT32 without a ScaleBias, which are within 1 unit in the last place; integers that have a
ScaleBias are computed in double precision, truncated and saturated. Of a NaN and a number, the larger and the smaller is
the number, as in Direct3D.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import enums
from ...core.enums import OperatorType, TensorDataType
from ...core.strided_layout import DTYPES, Array
from ..constraints import is_held, rounded, same, scaled, sizes_of, type_of_output
from ..schema import (
    FLOAT,
    SCALAR,
    Choices,
    ConstraintFailure,
    OperatorDesc,
    OperatorSpec,
    OptionalScaleBias,
    SupportTable,
    Tensor,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unary(OperatorDesc):
    InputTensor: Tensor
    OutputTensor: Tensor
    ScaleBias: OptionalScaleBias = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC(_Unary):
    """Copies each element: f(x) = x. Strides may differ, which changes a tensor's layout. May run in-place.

    Without a ScaleBias it is a copy of bits.

    Args:
        InputTensor: what is copied.
        OutputTensor: the copy, of the same type and sizes.
        ScaleBias: applied to each element first; none where absent.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_ABS_OPERATOR_DESC(_Unary):
    """The absolute value of each element; of the lowest integer, which has none, that integer. May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        ScaleBias: applied to each element first; none where absent.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_ABS_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_CLIP_OPERATOR_DESC(_Unary):
    """Limits each element to an interval: f(x) = min(Max, max(Min, x)). May run in-place.

    Integers are limited to those in the interval. A NaN becomes Min, or Max where that is below Min.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        ScaleBias: applied to each element first; none where absent.
        Min: the lower end.
        Max: the upper end; where it is below Min, every result.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_CLIP_OPERATOR_DESC; since feature level 1.0.
    """

    Min: FLOAT
    Max: FLOAT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_EXP_OPERATOR_DESC(_Unary):
    """e to the power of each element. May run in-place.

    Args:
        InputTensor: the exponents.
        OutputTensor: the results, of the same type and sizes.
        ScaleBias: applied to each element first; none where absent.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_EXP_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_LOG_OPERATOR_DESC(_Unary):
    """The natural logarithm of each element; of 0 minus infinity, of what is below NaN. May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        ScaleBias: applied to each element first; none where absent.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_LOG_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_RECIP_OPERATOR_DESC(_Unary):
    """1 / x for each element x. May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        ScaleBias: applied to each element first; none where absent.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_RECIP_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_SQRT_OPERATOR_DESC(_Unary):
    """The square root of each element, NaN of what is below 0. May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        ScaleBias: applied to each element first; none where absent.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_SQRT_OPERATOR_DESC; since feature level 1.0.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_THRESHOLD_OPERATOR_DESC(_Unary):
    """Raises each element to a lower end: f(x) = max(x, Min), and so a NaN. May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        ScaleBias: applied to each element first; none where absent.
        Min: the lower end; of integers the lowest that is not below it.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_THRESHOLD_OPERATOR_DESC; since feature level 1.0.
    """

    Min: FLOAT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC(_Unary):
    """Limits each element to an interval of its own type: f(x) = max(Min, min(x, Max)). May run in-place.

    A NaN becomes Max, or Min where that is above Max.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.
        ScaleBias: applied to each element first; none where absent.
        MinMaxDataType: the type of Min and Max.
        Min: the lower end; where it is above Max, every result.
        Max: the upper end.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.
        (C3) MinMaxDataType is the DataType of OutputTensor.
        (C4) Min and Max are values of MinMaxDataType: integers that it holds, or numbers in the range of its floats.

    Source: the page of DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC; since feature level 5.0.
    """

    MinMaxDataType: enums.TensorDataType
    Min: SCALAR
    Max: SCALAR


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC(OperatorDesc):
    """-x for each element x; the lowest integer stays what it is. May run in-place.

    Args:
        InputTensor: the elements.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC; since feature level 5.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor


def _constraints(desc: Any) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputTensor")


def _constraints_of_clip1(desc: DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputTensor")
    yield from type_of_output(desc, "(C3)", "MinMaxDataType")
    for name in ("Min", "Max"):
        yield from is_held(desc, "(C4)", name, desc.MinMaxDataType)


def _infer_sizes(desc: Any) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.InputTensor)}


def _spec(
    operator_type: OperatorType,
    desc: type[OperatorDesc],
    reference: Callable[..., Array],
    support: SupportTable,
    constraints: Callable[[Any], Iterator[ConstraintFailure]] = _constraints,
) -> OperatorSpec:
    return OperatorSpec(
        operator_type=operator_type,
        desc=desc,
        constraints=constraints,
        infer_sizes=_infer_sizes,
        sizes_rule="(C2)",
        reference=reference,
        in_place=True,
        support=support,
    )


def _each(function: Callable[[Any, Array], Any]) -> Callable[..., Array]:
    """The reference of ``function(desc, g(x))``, computed in the wider type."""

    def reference(desc: Any, x: Array) -> Array:
        with np.errstate(all="ignore"):
            return rounded(function(desc, scaled(desc, x)), x.dtype)

    return reference


def _identity(desc: DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC, x: Array) -> Array:
    return x if desc.ScaleBias is None else _each(lambda desc, x: x)(desc, x)


def _clip(desc: DML_ELEMENT_WISE_CLIP_OPERATOR_DESC, x: Array) -> Any:
    """min(Max, max(Min, x)), of integers with the lowest and the highest between Min and Max."""
    # Fused into another operator, whose results are floats, it has no tensors.
    data_type = TensorDataType.FLOAT32 if desc.OutputTensor is None else desc.OutputTensor.DataType
    low, high = limits(data_type, desc.Min, desc.Max)
    return np.fmin(_of(x, high), np.fmax(_of(x, low), x))


def _threshold(desc: DML_ELEMENT_WISE_THRESHOLD_OPERATOR_DESC, x: Array) -> Any:
    low, _ = limits(desc.OutputTensor.DataType, desc.Min, math.inf)
    return np.fmax(x, _of(x, low))


def _clip1(desc: DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC, x: Array) -> Any:
    low, high = limits(desc.OutputTensor.DataType, desc.Min, desc.Max)
    return np.fmax(_of(x, low), np.fmin(x, _of(x, high)))


def limits(data_type: TensorDataType, low: float, high: float) -> tuple[float, float]:
    """The ends of an interval as values of a type; NaN, which limits nothing, as the type's own."""
    dtype = DTYPES[data_type]
    if dtype.kind == "f":
        return low, high
    limits = np.iinfo(dtype)
    ends = [limits.min if math.isnan(low) else low, limits.max if math.isnan(high) else high]
    whole = [max(limits.min, min(end, limits.max)) for end in ends]
    return math.ceil(whole[0]), math.floor(whole[1])


def _of(x: Array, value: float) -> Any:
    """A value in the type that x is computed in."""
    return x.dtype.type(value)


_FLOATS = support_table("""
    DML_FEATURE_LEVEL_3_0 and above
    InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16
    OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16
    DML_FEATURE_LEVEL_1_0 and above
    InputTensor  | Input  | 4      | FLOAT32, FLOAT16
    OutputTensor | Output | 4      | FLOAT32, FLOAT16
""")

ELEMENT_WISE_IDENTITY = _spec(
    OperatorType.ELEMENT_WISE_IDENTITY,
    DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC,
    _identity,
    support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor  | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16
    """),
)

ELEMENT_WISE_ABS = _spec(
    OperatorType.ELEMENT_WISE_ABS,
    DML_ELEMENT_WISE_ABS_OPERATOR_DESC,
    _each(lambda desc, x: np.abs(x)),
    support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor  | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8
        OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4      | FLOAT32, FLOAT16
        OutputTensor | Output | 4      | FLOAT32, FLOAT16
    """),
)

ELEMENT_WISE_CLIP = _spec(
    OperatorType.ELEMENT_WISE_CLIP,
    DML_ELEMENT_WISE_CLIP_OPERATOR_DESC,
    _each(_clip),
    support_table("""
        DML_FEATURE_LEVEL_5_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor  | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4      | FLOAT32, FLOAT16
        OutputTensor | Output | 4      | FLOAT32, FLOAT16
    """),
)

ELEMENT_WISE_EXP = _spec(
    OperatorType.ELEMENT_WISE_EXP, DML_ELEMENT_WISE_EXP_OPERATOR_DESC, _each(lambda desc, x: np.exp(x)), _FLOATS
)

ELEMENT_WISE_LOG = _spec(
    OperatorType.ELEMENT_WISE_LOG, DML_ELEMENT_WISE_LOG_OPERATOR_DESC, _each(lambda desc, x: np.log(x)), _FLOATS
)

ELEMENT_WISE_RECIP = _spec(
    OperatorType.ELEMENT_WISE_RECIP, DML_ELEMENT_WISE_RECIP_OPERATOR_DESC, _each(lambda desc, x: 1 / x), _FLOATS
)

ELEMENT_WISE_SQRT = _spec(
    OperatorType.ELEMENT_WISE_SQRT, DML_ELEMENT_WISE_SQRT_OPERATOR_DESC, _each(lambda desc, x: np.sqrt(x)), _FLOATS
)

ELEMENT_WISE_THRESHOLD = _spec(
    OperatorType.ELEMENT_WISE_THRESHOLD,
    DML_ELEMENT_WISE_THRESHOLD_OPERATOR_DESC,
    _each(_threshold),
    support_table("""
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor  | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4      | FLOAT32, FLOAT16
        OutputTensor | Output | 4      | FLOAT32, FLOAT16
    """),
)

ELEMENT_WISE_CLIP1 = _spec(
    OperatorType.ELEMENT_WISE_CLIP1,
    DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC,
    _each(_clip1),
    support_table("""
        DML_FEATURE_LEVEL_5_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    """),
    _constraints_of_clip1,
)

ELEMENT_WISE_NEGATE = _spec(
    OperatorType.ELEMENT_WISE_NEGATE,
    DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC,
    _each(lambda desc, x: -x),
    support_table("""
        DML_FEATURE_LEVEL_5_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8
    """),
)
