"""CAST: elements as values of another type.

Decisions where the page is silent: a float becomes the nearest one of the other type, halves to even, or an infinity
where it is too large; an integer the nearest float. A float becomes an integer by truncation, saturated, and NaN 0, as
in Direct3D. An integer becomes another modulo 2^n. To the same type bits are copied. Not in-place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import DTYPES, Array
from ..constraints import rounded, same, sizes_of, widened
from ..independence import all_dimensions
from ..schema import Choices, ConstraintFailure, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_CAST_OPERATOR_DESC(OperatorDesc):
    """Converts each element to the type of the output.

    Args:
        InputTensor: the elements.
        OutputTensor: the same, as values of its DataType.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_CAST_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor


def _constraints(desc: DML_CAST_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DimensionCount", "InputTensor", "OutputTensor")


def _infer_sizes(desc: DML_CAST_OPERATOR_DESC) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.InputTensor)}


def _reference(desc: DML_CAST_OPERATOR_DESC, x: Array) -> Array:
    dtype = DTYPES[desc.OutputTensor.DataType]
    if dtype == x.dtype:
        return x
    with np.errstate(all="ignore"):
        return rounded(widened(x), dtype)


CAST = OperatorSpec(
    operator_type=OperatorType.CAST,
    desc=DML_CAST_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C1)",
    reference=_reference,
    independent=all_dimensions,
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor  | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_1 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor  | Input  | 4      | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4      | FLOAT32, FLOAT16, INT16, INT8, UINT16, UINT8
        OutputTensor | Output | 4      | FLOAT32, FLOAT16, INT16, INT8, UINT16, UINT8
    """),
)
