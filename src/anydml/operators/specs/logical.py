"""Truth values: logic, comparisons, IS_NAN, IS_INFINITY, and IF, which chooses by them.

Decisions where the pages are silent:

1. Truth values are 0 or 1 of the output's type; every element of an input is true that is not 0.
2. Comparisons are those of IEEE 754: -0 equals 0, and with a NaN each is false. "Not equal" is EQUALS, then LOGICAL_NOT.
3. IF copies bits, so that the payloads of NaN stay.
4. What no page calls in-place is not: comparisons, IS_NAN, IS_INFINITY and IF.
5. The page of IF has a table for 2.0 and the next for 3.0, while the history of feature levels has integers from 2.1 on:
   the page holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.enums import IsInfinityMode
from ...core.strided_layout import DTYPES, Array
from ..pointwise import Pointwise


def _truth_of(function: Callable[..., Any]) -> Callable[..., Array]:
    """The reference of ``function(*elements)``, whose truth values become 0 or 1 of the output's type."""

    def reference(desc: Any, *elements: Array) -> Array:
        truth: Array = np.asarray(function(*elements)).astype(DTYPES[desc.OutputTensor.DataType])
        return truth

    return reference


def _chosen(desc: Any, condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition != 0, a, b)


def _is_infinity(desc: Any, x: Array) -> Array:
    wanted = {IsInfinityMode.POSITIVE: np.isposinf, IsInfinityMode.NEGATIVE: np.isneginf}.get(
        desc.InfinityMode, np.isinf
    )
    return _truth_of(wanted)(desc, x)


def _is_infinity_by_torch(torch: Any, desc: Any, x: Any) -> Any:
    names = {IsInfinityMode.POSITIVE: "isposinf", IsInfinityMode.NEGATIVE: "isneginf"}
    return getattr(torch, names.get(desc.InfinityMode, "isinf"))(x)


_OF_LOGIC = """
    3.0 | 1 to 8 | UINT32, UINT8
    2.0 | 4      | UINT32, UINT8
    1.0 | 4      | UINT32
"""

_OF_COMPARISONS = """
    4.1 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8 -> UINT32, UINT8
    3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8 -> UINT32, UINT8
    2.1 | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8 -> UINT32, UINT8
    2.0 | 4      | FLOAT32, FLOAT16 -> UINT32, UINT8
    1.0 | 4      | FLOAT32, FLOAT16 -> UINT32
"""

_OF_LATER_COMPARISONS = """
    4.1 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8 -> UINT32, UINT8
    3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8 -> UINT32, UINT8
"""

_A_AND_B = (("ATensor", "BTensor"),)
_TRUTH = np.array([[[[1, 0, 2], [0, 255, 0]]]], np.uint8), np.array([[[[1, 1, 0], [0, 7, 1]]]], np.uint8)
_OF_TRUTH = {"ATensor": _TRUTH[0], "BTensor": _TRUTH[1]}
_NEITHER = np.array([[[[np.nan, 1, np.inf], [0, -np.inf, np.nan]]]], np.float32)
"""What small examples compute with."""

ELEMENT_WISE_LOGICAL_AND = Pointwise(
    summary="Whether both of each pair of elements are true.",
    inputs=("ATensor", "BTensor"),
    truth="made",
    reference=_truth_of(np.logical_and),
    native="LOGICAL_AND",
    torch="logical_and",
    torch_takes="order",
    example=_OF_TRUTH,
    doctest="""
        >>> logical_and([True, True], [True, False])
        array([ True, False])
    """,
    support=_OF_LOGIC,
)

ELEMENT_WISE_LOGICAL_EQUALS = Pointwise(
    summary="Whether a == b, for each pair of elements.",
    inputs=("ATensor", "BTensor"),
    same_types=_A_AND_B,
    truth="made",
    in_place=False,
    reference=_truth_of(np.equal),
    native="EQUALS",
    torch="eq",
    torch_takes="order",
    doctest="""
        >>> equals([1.0, 2.0], 2)
        array([False,  True])
    """,
    support=_OF_COMPARISONS,
)

ELEMENT_WISE_LOGICAL_GREATER_THAN = Pointwise(
    summary="Whether a > b, for each pair of elements.",
    inputs=("ATensor", "BTensor"),
    same_types=_A_AND_B,
    truth="made",
    in_place=False,
    reference=_truth_of(np.greater),
    native="GREATER_THAN",
    torch="gt",
    torch_takes="order",
    doctest="""
        >>> greater_than([1.0, 3.0], 2)
        array([False,  True])
    """,
    support=_OF_COMPARISONS,
)

ELEMENT_WISE_LOGICAL_LESS_THAN = Pointwise(
    summary="Whether a < b, for each pair of elements.",
    inputs=("ATensor", "BTensor"),
    same_types=_A_AND_B,
    truth="made",
    in_place=False,
    reference=_truth_of(np.less),
    native="LESS_THAN",
    torch="lt",
    torch_takes="order",
    doctest="""
        >>> less_than([1.0, 3.0], 2)
        array([ True, False])
    """,
    support=_OF_COMPARISONS,
)

ELEMENT_WISE_LOGICAL_NOT = Pointwise(
    summary="Whether each element is not true.",
    truth="made",
    reference=_truth_of(np.logical_not),
    native="LOGICAL_NOT",
    torch="logical_not",
    torch_takes="order",
    example={"InputTensor": _TRUTH[0]},
    doctest="""
        >>> logical_not([True, False])
        array([False,  True])
    """,
    support=_OF_LOGIC,
)

ELEMENT_WISE_LOGICAL_OR = Pointwise(
    summary="Whether at least one of each pair of elements is true.",
    inputs=("ATensor", "BTensor"),
    truth="made",
    reference=_truth_of(np.logical_or),
    native="LOGICAL_OR",
    torch="logical_or",
    torch_takes="order",
    example=_OF_TRUTH,
    doctest="""
        >>> logical_or([True, False], [False, False])
        array([ True, False])
    """,
    support=_OF_LOGIC,
)

ELEMENT_WISE_LOGICAL_XOR = Pointwise(
    summary="Whether exactly one of each pair of elements is true.",
    inputs=("ATensor", "BTensor"),
    truth="made",
    reference=_truth_of(np.logical_xor),
    native="LOGICAL_XOR",
    torch="logical_xor",
    torch_takes="order",
    example=_OF_TRUTH,
    doctest="""
        >>> logical_xor([True, True], [True, False])
        array([False,  True])
    """,
    support=_OF_LOGIC,
)

ELEMENT_WISE_IS_NAN = Pointwise(
    summary="Whether each element is NaN.",
    same_types=(),
    truth="made",
    in_place=False,
    reference=_truth_of(np.isnan),
    native="IS_NAN",
    torch="isnan",
    torch_takes="order",
    example={"InputTensor": _NEITHER},
    doctest="""
        >>> is_nan([1.0, float("nan")])
        array([False,  True])
    """,
    support="""
        3.0 | 1 to 8 | FLOAT32, FLOAT16 -> UINT32, UINT8
        2.0 | 4      | FLOAT32, FLOAT16 -> UINT32, UINT8
    """,
)

ELEMENT_WISE_IF = Pointwise(
    summary="a where the condition is true, and b elsewhere, bit by bit.",
    inputs=("ConditionTensor", "ATensor", "BTensor"),
    members={
        "ConditionTensor": "the condition, true where it is not 0.",
        "OutputTensor": "the elements chosen, of the type of ATensor.",
    },
    same_types=(("ATensor", "BTensor", "OutputTensor"),),
    truth="kept",
    in_place=False,
    reference=_chosen,
    native="IF",
    torch=lambda torch, desc, condition, a, b: torch.where(condition != 0, a, b),
    torch_takes="bits",
    example={"ConditionTensor": _TRUTH[0], "ATensor": _NEITHER, "BTensor": _NEITHER[..., ::-1, :].copy()},
    doctest="""
        >>> if_([True, False], [1.0, 2.0], 9)
        array([1., 9.], dtype=float32)
    """,
    support="""
        DML_FEATURE_LEVEL_5_0 and above
        ConditionTensor | Input  | 1 to 8 | UINT8
        ATensor         | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        BTensor         | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor    | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        ConditionTensor | Input  | 1 to 8 | UINT8
        ATensor         | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        BTensor         | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor    | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_0 and above
        ConditionTensor | Input  | 4      | UINT8
        ATensor         | Input  | 4      | FLOAT16
        BTensor         | Input  | 4      | FLOAT16
        OutputTensor    | Output | 4      | FLOAT16
    """,
)

ELEMENT_WISE_IS_INFINITY = Pointwise(
    summary="Whether each element is an infinity.",
    members={"InfinityMode": "enums.IsInfinityMode | which infinities count: EITHER, POSITIVE or NEGATIVE."},
    defaults={"InfinityMode": IsInfinityMode.EITHER},
    same_types=(),
    truth="made",
    in_place=False,
    reference=_is_infinity,
    native=("IS_INFINITY", "InfinityMode"),
    torch=_is_infinity_by_torch,
    torch_takes="order",
    example={"InputTensor": _NEITHER, "InfinityMode": IsInfinityMode.NEGATIVE},
    doctest="""
        >>> is_infinity([float("inf"), -float("inf")], "positive")
        array([ True, False])
    """,
    support="""
        3.0 | 1 to 8 | FLOAT32, FLOAT16 -> UINT8
        2.1 | 4      | FLOAT32, FLOAT16 -> UINT8
    """,
)

ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL = Pointwise(
    summary="Whether a >= b, for each pair of elements.",
    inputs=("ATensor", "BTensor"),
    same_types=_A_AND_B,
    truth="made",
    in_place=False,
    reference=_truth_of(np.greater_equal),
    native="GREATER_THAN_OR_EQUAL",
    torch="ge",
    torch_takes="order",
    doctest="""
        >>> greater_than_or_equal([2.0, 1.0], 2)
        array([ True, False])
    """,
    support=_OF_LATER_COMPARISONS,
)

ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL = Pointwise(
    summary="Whether a <= b, for each pair of elements.",
    inputs=("ATensor", "BTensor"),
    same_types=_A_AND_B,
    truth="made",
    in_place=False,
    reference=_truth_of(np.less_equal),
    native="LESS_THAN_OR_EQUAL",
    torch="le",
    torch_takes="order",
    doctest="""
        >>> less_than_or_equal([2.0, 3.0], 2)
        array([ True, False])
    """,
    support=_OF_LATER_COMPARISONS,
)
