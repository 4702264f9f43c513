"""The rectified linear unit whose slope below 0 is a tensor, which cannot be fused.

Decisions where the pages are silent: floats are computed in the next wider type and rounded once, integers modulo 2^n.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import rounded, same, sizes_of, widened
from ..schema import Choices, ConstraintFailure, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC(OperatorDesc):
    """f(x) = x where x >= 0, else slope * x, modulo 2^n of integers. May run in-place.

    Args:
        InputTensor: the elements.
        SlopeTensor: a slope for each element, of the same type and sizes.
        OutputTensor: the results, of the same type and sizes.

    Constraints:
        (C1) InputTensor, SlopeTensor and OutputTensor have the same DataType.
        (C2) InputTensor, SlopeTensor and OutputTensor have the same DimensionCount and Sizes.

    Source: the page of DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    SlopeTensor: Tensor
    OutputTensor: Tensor


def _constraints(desc: DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "SlopeTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "SlopeTensor", "OutputTensor")
    yield from same(desc, "(C2)", "Sizes", "InputTensor", "SlopeTensor")


def _infer_sizes(desc: DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.InputTensor)}


def _reference(desc: DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC, x: Array, slope: Array) -> Array:
    with np.errstate(all="ignore"):
        return rounded(np.where(x >= 0, widened(x), widened(slope) * widened(x)), x.dtype)


ACTIVATION_PARAMETERIZED_RELU = OperatorSpec(
    operator_type=OperatorType.ACTIVATION_PARAMETERIZED_RELU,
    desc=DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C2)",
    reference=_reference,
    in_place=True,
    support=support_table("""
        DML_FEATURE_LEVEL_5_1 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8
        SlopeTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16
        SlopeTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_2_0 and above
        InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16
        SlopeTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4      | FLOAT32, FLOAT16
        SlopeTensor  | Input  | 4      | FLOAT32, FLOAT16
        OutputTensor | Output | 4      | FLOAT32, FLOAT16
    """),
)
