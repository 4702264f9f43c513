"""TOP_K and TOP_K1: the largest or smallest elements along an axis, in order, and their indices.

Decisions where the pages are silent or others differ: NaN is larger than every number, as in NumPy's and PyTorch's
order, and all NaNs are equal; so are 0 and -0. K may be the size of the axis, as in ONNX and NumPy, where the page has
it less. Equal elements come in the order of their indices, in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...core import enums
from ...core.enums import OperatorType, TensorDataType
from ...core.strided_layout import DTYPES, Array
from ..constraints import same
from ..independence import all_but
from ..schema import UINT, Choices, ConstraintFailure, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_TOP_K_OPERATOR_DESC(OperatorDesc):
    """Finds the largest elements along an axis, the largest first, and their indices.

    Of equal elements those of lower indices are chosen, and come first. NaN is larger than every number. Not in-place.

    Args:
        InputTensor: the elements.
        OutputValueTensor: those that were chosen; a copy of their bits.
        OutputIndexTensor: their indices along the axis.
        Axis: the dimension along which is chosen.
        K: how many are.

    Constraints:
        (C1) InputTensor and OutputValueTensor have the same DataType.
        (C2) Every tensor has the same DimensionCount.
        (C3) Axis is less than that DimensionCount.
        (C4) K is at least 1, and at most the size of InputTensor along Axis.
        (C5) OutputValueTensor and OutputIndexTensor have the sizes of InputTensor, and K along Axis.
        (C6) UINT32 indices are of an axis of at most 2^32 elements.

    Source: the page of DML_TOP_K_OPERATOR_DESC; since feature level 2.0.
    """

    InputTensor: Tensor
    OutputValueTensor: Tensor
    OutputIndexTensor: Tensor
    Axis: UINT
    K: UINT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_TOP_K1_OPERATOR_DESC(DML_TOP_K_OPERATOR_DESC):
    """Finds the largest or smallest elements along an axis, in order, and their indices.

    Of equal elements those of lower indices are chosen, and come first. NaN is larger than every number. Not in-place.

    Args:
        InputTensor: the elements.
        OutputValueTensor: those that were chosen; a copy of their bits.
        OutputIndexTensor: their indices along the axis.
        Axis: the dimension along which is chosen.
        K: how many are.
        AxisDirection: DECREASING for the largest, the largest first; INCREASING for the smallest, the smallest first.

    Constraints:
        (C1) InputTensor and OutputValueTensor have the same DataType.
        (C2) Every tensor has the same DimensionCount.
        (C3) Axis is less than that DimensionCount.
        (C4) K is at least 1, and at most the size of InputTensor along Axis.
        (C5) OutputValueTensor and OutputIndexTensor have the sizes of InputTensor, and K along Axis.
        (C6) UINT32 indices are of an axis of at most 2^32 elements.

    Source: the page of DML_TOP_K1_OPERATOR_DESC; since feature level 2.1.
    """

    AxisDirection: enums.AxisDirection


def _constraints(desc: DML_TOP_K_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputValueTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputValueTensor", "OutputIndexTensor")
    rank = len(desc.InputTensor.Sizes)
    if desc.Axis >= rank:
        yield ConstraintFailure("(C3)", "Axis", str(desc.Axis), f"less than {rank}, the DimensionCount")
        return
    size = desc.InputTensor.Sizes[desc.Axis]
    if not 1 <= desc.K <= size:
        yield ConstraintFailure("(C4)", "K", str(desc.K), f"from 1 to {size}, the size of InputTensor along Axis")
    if desc.OutputIndexTensor.DataType == TensorDataType.UINT32 and size > 2**32:
        expected = f"a type that holds {size - 1}"
        yield ConstraintFailure("(C6)", "OutputIndexTensor.DataType", "UINT32", expected)


def _infer_sizes(desc: DML_TOP_K_OPERATOR_DESC) -> dict[str, Choices]:
    sizes = desc.InputTensor.Sizes
    if desc.Axis >= len(sizes) or not 1 <= desc.K <= sizes[desc.Axis]:
        return {}
    right = tuple((desc.K if i == desc.Axis else size,) for i, size in enumerate(sizes))
    return {"OutputValueTensor": right, "OutputIndexTensor": right}


def _reference(desc: DML_TOP_K_OPERATOR_DESC, x: Array) -> tuple[Array, Array]:
    """By the ranks of the distinct values, which no change of sign overflows; NumPy sorts NaN last."""
    _, ranks = np.unique(x, return_inverse=True)
    ranks = ranks.reshape(x.shape)
    direction = getattr(desc, "AxisDirection", enums.AxisDirection.DECREASING)
    keys = -ranks if direction == enums.AxisDirection.DECREASING else ranks
    order = np.argsort(keys, axis=desc.Axis, kind="stable").take(range(desc.K), desc.Axis)
    return np.take_along_axis(x, order, desc.Axis), order.astype(DTYPES[desc.OutputIndexTensor.DataType])


_TABLE = """
    DML_FEATURE_LEVEL_5_0 and above
    InputTensor       | Input  | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    OutputValueTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    OutputIndexTensor | Output | 1 to 8 | UINT64, UINT32
    DML_FEATURE_LEVEL_3_1 and above
    InputTensor       | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    OutputValueTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    OutputIndexTensor | Output | 1 to 8 | UINT32
    DML_FEATURE_LEVEL_2_1 and above
    InputTensor       | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    OutputValueTensor | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    OutputIndexTensor | Output | 4      | UINT32
"""
_FIRST = """
    DML_FEATURE_LEVEL_2_0 and above
    InputTensor       | Input  | 4      | FLOAT32, FLOAT16
    OutputValueTensor | Output | 4      | FLOAT32, FLOAT16
    OutputIndexTensor | Output | 4      | UINT32
"""


def _specification(operator_type: OperatorType, desc: type[OperatorDesc], table: str) -> OperatorSpec:
    return OperatorSpec(
        operator_type=operator_type,
        desc=desc,
        constraints=_constraints,
        infer_sizes=_infer_sizes,
        sizes_rule="(C5)",
        reference=_reference,
        independent=lambda desc: all_but(desc, [desc.Axis]),
        support=support_table(table),
    )


TOP_K = _specification(OperatorType.TOP_K, DML_TOP_K_OPERATOR_DESC, _TABLE + _FIRST)
TOP_K1 = _specification(OperatorType.TOP_K1, DML_TOP_K1_OPERATOR_DESC, _TABLE)
