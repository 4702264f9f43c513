"""ONE_HOT: along an axis one value where an index says, and another one elsewhere.

Decisions where the page is silent: an index that the axis does not have, also a negative one before its beginning, gives
the off value throughout. The on value is the second element of ValuesTensor in row-major order, which is the second
one along its last dimension longer than 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import same
from ..schema import UINT, Choices, ConstraintFailure, Independence, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ONE_HOT_OPERATOR_DESC(OperatorDesc):
    """Makes one-hot vectors along an axis: the on value at an index, the off value everywhere else.

    Negative indices, of signed types, count from the end of the axis. An index that the axis does not have gives a vector
    of off values. A copy of bits: NaN payloads survive. Not in-place.

    Args:
        IndicesTensor: where the on value is; 1 along Axis.
        ValuesTensor: the off value, then the on value; what comes behind them is not read.
        OutputTensor: the vectors.
        Axis: the dimension along which they lie.

    Constraints:
        (C1) ValuesTensor and OutputTensor have the same DataType.
        (C2) Every tensor has the same DimensionCount.
        (C3) Axis is less than that DimensionCount.
        (C4) IndicesTensor has a size of 1 along Axis.
        (C5) ValuesTensor has at least 2 elements.
        (C6) OutputTensor has the sizes of IndicesTensor, and any size along Axis.

    Source: the page of DML_ONE_HOT_OPERATOR_DESC; since feature level 2.0.
    """

    IndicesTensor: Tensor
    ValuesTensor: Tensor
    OutputTensor: Tensor
    Axis: UINT


def _constraints(desc: DML_ONE_HOT_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "ValuesTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "IndicesTensor", "ValuesTensor", "OutputTensor")
    sizes = desc.IndicesTensor.Sizes
    if desc.Axis >= len(sizes):
        yield ConstraintFailure("(C3)", "Axis", str(desc.Axis), f"less than {len(sizes)}, the DimensionCount")
    elif sizes[desc.Axis] != 1:
        remedy = "Give the indices a dimension of 1 there, as np.expand_dims does."
        yield ConstraintFailure(
            "(C4)", f"IndicesTensor.Sizes[{desc.Axis}]", str(sizes[desc.Axis]), "1, along Axis", remedy
        )
    if prod(desc.ValuesTensor.Sizes) < 2:
        found = f"{desc.ValuesTensor.Sizes}, of 1 element"
        yield ConstraintFailure(
            "(C5)", "ValuesTensor.Sizes", found, "at least 2 elements, the off value and the on value"
        )


def _infer_sizes(desc: DML_ONE_HOT_OPERATOR_DESC) -> dict[str, Choices]:
    sizes, output, axis = desc.IndicesTensor.Sizes, desc.OutputTensor.Sizes, desc.Axis
    if len(sizes) != len(output) or axis >= len(sizes):
        return {}
    return {"OutputTensor": tuple((output[i] if i == axis else size,) for i, size in enumerate(sizes))}


def _reference(desc: DML_ONE_HOT_OPERATOR_DESC, indices: Array, values: Array) -> Array:
    off, on = values.reshape(-1)[:2]
    size = desc.OutputTensor.Sizes[desc.Axis]
    place = np.arange(size).reshape([-1 if i == desc.Axis else 1 for i in range(indices.ndim)])
    # No index of 64 bits is compared as a float, nor does a size leave the indices' type.
    is_there = indices == place.astype(indices.dtype)
    is_there &= place <= np.iinfo(indices.dtype).max
    if indices.dtype.kind == "i":
        is_there |= indices.astype(np.int64) == place - size
    y: Array = np.where(is_there, on, off)
    return y


def _independent(desc: DML_ONE_HOT_OPERATOR_DESC) -> Independence:
    """All but the axis, of which the values have none."""
    places = [None if i == desc.Axis else i for i in range(len(desc.OutputTensor.Sizes))]
    return {"IndicesTensor": places, "ValuesTensor": [None] * len(places), "OutputTensor": places}


ONE_HOT = OperatorSpec(
    operator_type=OperatorType.ONE_HOT,
    desc=DML_ONE_HOT_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C6)",
    reference=_reference,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        IndicesTensor | Input  | 1 to 8 | INT64, INT32, UINT64, UINT32
        ValuesTensor  | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor  | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        IndicesTensor | Input  | 1 to 8 | INT64, INT32, UINT64, UINT32
        ValuesTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor  | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        IndicesTensor | Input  | 4      | UINT32
        ValuesTensor  | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor  | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_0 and above
        IndicesTensor | Input  | 4      | UINT32
        ValuesTensor  | Input  | 4      | FLOAT32, FLOAT16
        OutputTensor  | Output | 4      | FLOAT32, FLOAT16
    """),
)
