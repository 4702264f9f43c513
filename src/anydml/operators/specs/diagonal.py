"""DIAGONAL_MATRIX and DIAGONAL_MATRIX1: a diagonal, or a band of them, of one value, in a stack of matrices.

Decisions where the pages are silent or contradict themselves:

1. DIAGONAL_MATRIX: Value, a FLOAT, is rounded to floats, and becomes an integer by truncation, saturated.
2. DIAGONAL_MATRIX1: a float is rounded to ValueDataType, FLOAT16 among them. Its first example, of Value 7, shows 1s:
   Value is what is filled in.
3. DIAGONAL_MATRIX1: what keeps its value is copied bit by bit, NaNs too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from ...core import enums
from ...core.enums import OperatorType
from ...core.strided_layout import DTYPES, Array
from ..constraints import is_held, rounded, same, sizes_of, type_of_output
from ..independence import all_but
from ..schema import (
    FLOAT,
    INT,
    SCALAR,
    Choices,
    ConstraintFailure,
    Independence,
    OperatorDesc,
    OperatorSpec,
    OptionalTensor,
    Tensor,
    support_table,
)
from .fill import value_as


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_DIAGONAL_MATRIX_OPERATOR_DESC(OperatorDesc):
    """Makes matrices that are Value on a diagonal, and 0 elsewhere.

    Args:
        OutputTensor: {..., Height, Width}; those before the last two dimensions count matrices.
        Offset: the diagonal: of row y the element y + Offset.
        Value: what its elements are.

    Constraints:
        (C1) Value is no NaN where OutputTensor is of integers.

    Source: the page of DML_DIAGONAL_MATRIX_OPERATOR_DESC; since feature level 2.0.
    """

    OutputTensor: Tensor
    Offset: INT
    Value: FLOAT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_DIAGONAL_MATRIX1_OPERATOR_DESC(OperatorDesc):
    """Makes a band of diagonals of matrices Value, and leaves the rest.

    A diagonal's number is that of its column less that of its row. The band has those from DiagonalFillBegin to before
    DiagonalFillEnd; where that is the smaller one, all but those from it to before DiagonalFillBegin.

    Args:
        InputTensor: what is left, {..., Height, Width}; None where that is 0.
        OutputTensor: the matrices; those before the last two dimensions count them.
        ValueDataType: the type of Value.
        Value: what the band's elements are.
        DiagonalFillBegin: the first diagonal of the band.
        DiagonalFillEnd: the one behind its last.

    Constraints:
        (C1) ValueDataType is the DataType of OutputTensor.
        (C2) Value is a value of ValueDataType: an integer that it holds, or a number in the range of its floats.
        (C3) InputTensor and OutputTensor have the same DataType.
        (C4) InputTensor and OutputTensor have the same DimensionCount.
        (C5) OutputTensor has the Sizes of InputTensor.

    Source: the page of DML_DIAGONAL_MATRIX1_OPERATOR_DESC; since feature level 5.1.
    """

    InputTensor: OptionalTensor = None
    OutputTensor: Tensor
    ValueDataType: enums.TensorDataType
    Value: SCALAR
    DiagonalFillBegin: INT
    DiagonalFillEnd: INT


def _is_a_number(desc: DML_DIAGONAL_MATRIX_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    data_type = desc.OutputTensor.DataType
    if isnan(desc.Value) and not data_type.name.startswith("FLOAT"):
        yield ConstraintFailure("(C1)", "Value", "nan", f"a number, as OutputTensor is of {data_type.name}")


def _constraints(desc: DML_DIAGONAL_MATRIX1_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from type_of_output(desc, "(C1)", "ValueDataType")
    yield from is_held(desc, "(C2)", "Value", desc.ValueDataType)
    if desc.InputTensor is not None:
        yield from same(desc, "(C3)", "DataType", "InputTensor", "OutputTensor")
        yield from same(desc, "(C4)", "DimensionCount", "InputTensor", "OutputTensor")


def _any_sizes(desc: DML_DIAGONAL_MATRIX_OPERATOR_DESC) -> dict[str, Choices]:
    return {}


def _infer_sizes(desc: DML_DIAGONAL_MATRIX1_OPERATOR_DESC) -> dict[str, Choices]:
    return {} if desc.InputTensor is None else {"OutputTensor": sizes_of(desc.InputTensor)}


def value_of(desc: Any) -> Array:
    """What a diagonal's elements are."""
    if isinstance(desc, DML_DIAGONAL_MATRIX1_OPERATOR_DESC):
        return value_as(desc.Value, desc.ValueDataType)
    with np.errstate(over="ignore"):
        return rounded(np.array(desc.Value), DTYPES[desc.OutputTensor.DataType])


def band_of(desc: Any) -> tuple[int, int]:
    """DiagonalFillBegin and DiagonalFillEnd."""
    if isinstance(desc, DML_DIAGONAL_MATRIX1_OPERATOR_DESC):
        return desc.DiagonalFillBegin, desc.DiagonalFillEnd
    return desc.Offset, desc.Offset + 1


def _reference(desc: Any, x: Array | None = None) -> Array:
    *_, height, width = sizes = desc.OutputTensor.Sizes
    begin, end = band_of(desc)
    diagonal = np.arange(width) - np.arange(height)[:, np.newaxis]
    is_filled = (end >= begin) ^ (diagonal >= begin) ^ (diagonal < end)
    value = value_of(desc)
    return np.where(is_filled, value, np.zeros(sizes, value.dtype) if x is None else x)


def _independent(desc: Any) -> Independence:
    """The matrices of a stack."""
    rank = len(desc.OutputTensor.Sizes)
    return all_but(desc, (rank - 2, rank - 1))


DIAGONAL_MATRIX = OperatorSpec(
    operator_type=OperatorType.DIAGONAL_MATRIX,
    desc=DML_DIAGONAL_MATRIX_OPERATOR_DESC,
    constraints=_is_a_number,
    infer_sizes=_any_sizes,
    sizes_rule="",
    reference=_reference,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_5_1 and above
        OutputTensor | Output | 2 to 4 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_4_0 and above
        OutputTensor | Output | 2 to 4 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_0 and above
        OutputTensor | Output | 4      | FLOAT32, FLOAT16
    """),
)

DIAGONAL_MATRIX1 = OperatorSpec(
    operator_type=OperatorType.DIAGONAL_MATRIX1,
    desc=DML_DIAGONAL_MATRIX1_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C5)",
    reference=_reference,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_5_1 and above
        InputTensor  | Optional input | 2 to 4 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output         | 2 to 4 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    """),
)
