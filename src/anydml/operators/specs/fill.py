"""FILL_VALUE_CONSTANT and FILL_VALUE_SEQUENCE: tensors made of a number or two.

Decisions where the pages are silent: a float is rounded to ValueDataType, FLOAT16 among them, before anything is
computed. Element i of a sequence is ValueStart + i * ValueDelta, of floats in double precision, rounded once, of
integers modulo 2^n; the first is ValueStart, whatever ValueDelta.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...core import enums
from ...core.enums import OperatorType, TensorDataType
from ...core.strided_layout import DTYPES, Array
from ..constraints import is_held, type_of_output
from ..independence import all_dimensions, only
from ..schema import SCALAR, Choices, ConstraintFailure, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_FILL_VALUE_CONSTANT_OPERATOR_DESC(OperatorDesc):
    """Makes every element the same value.

    Args:
        OutputTensor: the elements.
        ValueDataType: the type of Value.
        Value: what every element is.

    Constraints:
        (C1) ValueDataType is the DataType of OutputTensor.
        (C2) Value is a value of ValueDataType: an integer that it holds, or a number in the range of its floats.

    Source: the page of DML_FILL_VALUE_CONSTANT_OPERATOR_DESC; since feature level 2.1.
    """

    OutputTensor: Tensor
    ValueDataType: enums.TensorDataType
    Value: SCALAR


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC(OperatorDesc):
    """Counts, in equal steps, through the elements in row-major order, whatever their strides.

    Args:
        OutputTensor: the elements.
        ValueDataType: the type of ValueStart and ValueDelta.
        ValueStart: the first element.
        ValueDelta: the step from each to the next.

    Constraints:
        (C1) ValueDataType is the DataType of OutputTensor.
        (C2) ValueStart is a value of ValueDataType: an integer that it holds, or a number in the range of its floats.
        (C3) ValueDelta is one too; where ValueDataType is unsigned, it may also be one of the signed type of its size.

    Source: the page of DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC; since feature level 2.1.
    """

    OutputTensor: Tensor
    ValueDataType: enums.TensorDataType
    ValueStart: SCALAR
    ValueDelta: SCALAR


def _constraints(desc: DML_FILL_VALUE_CONSTANT_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from type_of_output(desc, "(C1)", "ValueDataType")
    yield from is_held(desc, "(C2)", "Value", desc.ValueDataType)


def _constraints_of_sequence(desc: DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from type_of_output(desc, "(C1)", "ValueDataType")
    yield from is_held(desc, "(C2)", "ValueStart", desc.ValueDataType)
    yield from is_held(desc, "(C3)", "ValueDelta", desc.ValueDataType, signed=True)


def _any_sizes(desc: OperatorDesc) -> dict[str, Choices]:
    return {}


def value_as(value: Any, data_type: TensorDataType) -> Array:
    """A number as an element of a type."""
    dtype = DTYPES[data_type]
    # By way of the integers' own type, which NumPy rounds to a float once.
    return np.array(value if dtype.kind == "f" else int(value)).astype(dtype)


def _constant(desc: DML_FILL_VALUE_CONSTANT_OPERATOR_DESC) -> Array:
    return np.broadcast_to(value_as(desc.Value, desc.ValueDataType), desc.OutputTensor.Sizes)


def _sequence(desc: DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC) -> Array:
    start, delta = (value_as(each, desc.ValueDataType) for each in (desc.ValueStart, desc.ValueDelta))
    exact = np.dtype(np.float64 if start.dtype.kind == "f" else np.uint64)
    with np.errstate(all="ignore"):
        # start + i * delta
        y = np.arange(prod(desc.OutputTensor.Sizes), dtype=exact) * delta.astype(exact) + start.astype(exact)
        y[0] = start.astype(exact)
        return y.astype(start.dtype).reshape(desc.OutputTensor.Sizes)


FILL_VALUE_CONSTANT = OperatorSpec(
    operator_type=OperatorType.FILL_VALUE_CONSTANT,
    desc=DML_FILL_VALUE_CONSTANT_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_any_sizes,
    sizes_rule="",
    reference=_constant,
    independent=all_dimensions,
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        OutputTensor | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_4_0 and above
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    """),
)

FILL_VALUE_SEQUENCE = OperatorSpec(
    operator_type=OperatorType.FILL_VALUE_SEQUENCE,
    desc=DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC,
    constraints=_constraints_of_sequence,
    infer_sizes=_any_sizes,
    sizes_rule="",
    reference=_sequence,
    independent=lambda desc: only(desc, ()),
    support=support_table("""
        DML_FEATURE_LEVEL_5_0 and above
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_4_0 and above
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    """),
)
