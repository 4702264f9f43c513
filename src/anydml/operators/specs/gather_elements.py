"""GATHER_ELEMENTS and SCATTER_ELEMENTS: an index for each element, along one axis.

Decisions where the pages are silent or disagree with each other: an index that the axis does not have is an error, and
nothing is written. Where several indices of SCATTER_ELEMENTS name the same element, the last one counts in row-major
order. It is not in-place. That it came with feature level 1.0, as its page has it, the history of feature levels says of
2.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import limits_of_indices, not_indices, same, sizes_of
from ..independence import all_but
from ..schema import UINT, Choices, ConstraintFailure, Independence, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_GATHER_ELEMENTS_OPERATOR_DESC(OperatorDesc):
    """Copies an element for each index: output[i, j, ...] = input[indices[i, j, ...], j, ...] along axis 0.

    Negative indices, of signed types, count from the end of the axis. A copy of bits: NaN payloads survive. Not
    in-place.

    Args:
        InputTensor: the elements.
        IndicesTensor: which of them are copied, each from its own place in all dimensions but Axis.
        OutputTensor: the copied elements.
        Axis: the dimension of InputTensor that the indices are of.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) Every tensor has the same DimensionCount.
        (C3) Axis is less than that DimensionCount.
        (C4) IndicesTensor has the sizes of InputTensor but along Axis.
        (C5) OutputTensor has the sizes of IndicesTensor.
        (V1) An index is less than the size of the axis, and at least 0, or at least minus that size where its type is
            signed.

    Source: the page of DML_GATHER_ELEMENTS_OPERATOR_DESC; since feature level 2.1.
    """

    InputTensor: Tensor
    IndicesTensor: Tensor
    OutputTensor: Tensor
    Axis: UINT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_SCATTER_ELEMENTS_OPERATOR_DESC(OperatorDesc):
    """Copies a tensor, and sets an element for each index: output[indices[i, j, ...], j, ...] = updates[i, j, ...] along
    axis 0.

    Negative indices, of signed types, count from the end of the axis. Of several updates of one element the last one
    counts, in row-major order. A copy of bits: NaN payloads survive. Not in-place. The first headers call it
    DML_SCATTER_OPERATOR_DESC.

    Args:
        InputTensor: the elements.
        IndicesTensor: which of them are set, each at its own place in all dimensions but Axis.
        UpdatesTensor: what they are set to.
        OutputTensor: the elements, with the updates.
        Axis: the dimension of OutputTensor that the indices are of.

    Constraints:
        (C1) InputTensor, UpdatesTensor and OutputTensor have the same DataType.
        (C2) Every tensor has the same DimensionCount.
        (C3) Axis is less than that DimensionCount.
        (C4) IndicesTensor has the sizes of InputTensor but along Axis.
        (C5) UpdatesTensor has the sizes of IndicesTensor.
        (C6) OutputTensor has the sizes of InputTensor.
        (V1) An index is less than the size of the axis, and at least 0, or at least minus that size where its type is
            signed.

    Source: the page of DML_SCATTER_ELEMENTS_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    IndicesTensor: Tensor
    UpdatesTensor: Tensor
    OutputTensor: Tensor
    Axis: UINT


_Desc = DML_GATHER_ELEMENTS_OPERATOR_DESC | DML_SCATTER_ELEMENTS_OPERATOR_DESC


def _constraints(desc: DML_GATHER_ELEMENTS_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "IndicesTensor", "OutputTensor")
    yield from _axis_within(desc, "(C3)")
    yield from _same_but_along_axis(desc, "(C4)")


def _scatter_constraints(desc: DML_SCATTER_ELEMENTS_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "UpdatesTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "IndicesTensor", "UpdatesTensor", "OutputTensor")
    yield from _axis_within(desc, "(C3)")
    yield from _same_but_along_axis(desc, "(C4)")
    yield from same(desc, "(C5)", "Sizes", "IndicesTensor", "UpdatesTensor")


def _axis_within(desc: _Desc, label: str) -> Iterator[ConstraintFailure]:
    rank = len(desc.InputTensor.Sizes)
    if desc.Axis >= rank:
        yield ConstraintFailure(label, "Axis", str(desc.Axis), f"less than {rank}, the DimensionCount")


def _same_but_along_axis(desc: _Desc, label: str) -> Iterator[ConstraintFailure]:
    pairs = zip(desc.InputTensor.Sizes, desc.IndicesTensor.Sizes, strict=False)
    if len(desc.InputTensor.Sizes) == len(desc.IndicesTensor.Sizes):
        for i, (wanted, found) in enumerate(pairs):
            if found != wanted and i != desc.Axis:
                expected = f"{wanted}, that of InputTensor, but along Axis"
                yield ConstraintFailure(label, f"IndicesTensor.Sizes[{i}]", str(found), expected)


def _value_limits(desc: _Desc) -> dict[str, tuple[int, int]]:
    return {"IndicesTensor": limits_of_indices(desc.IndicesTensor, desc.InputTensor.Sizes[desc.Axis])}


def _check_values(desc: _Desc, inputs: Sequence[Array | None]) -> Iterator[ConstraintFailure]:
    limits = _value_limits(desc)["IndicesTensor"]
    yield from not_indices("(V1)", inputs[1], limits, f"the indices of axis {desc.Axis} of InputTensor")


def _gather(desc: DML_GATHER_ELEMENTS_OPERATOR_DESC, x: Array, indices: Array) -> Array:
    return np.take_along_axis(x, indices.astype(np.intp), desc.Axis)


def _scatter(desc: DML_SCATTER_ELEMENTS_OPERATOR_DESC, x: Array, indices: Array, updates: Array) -> Array:
    y = x.copy()
    # One index of each line at a time, so that the last one counts.
    lines = (np.moveaxis(each, desc.Axis, 0)[:, None] for each in (indices.astype(np.intp), updates))
    for index, update in zip(*lines, strict=True):
        np.put_along_axis(np.moveaxis(y, desc.Axis, 0), index, update, 0)
    return y


def _gather_sizes(desc: DML_GATHER_ELEMENTS_OPERATOR_DESC) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.IndicesTensor)}


def _scatter_sizes(desc: DML_SCATTER_ELEMENTS_OPERATOR_DESC) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.InputTensor)}


def _gather_independent(desc: DML_GATHER_ELEMENTS_OPERATOR_DESC) -> Independence:
    """All dimensions, of which InputTensor is needed whole along the axis."""
    every = tuple(range(len(desc.OutputTensor.Sizes)))
    x = tuple([None if i == desc.Axis else i for i in every])
    return {"InputTensor": x, "IndicesTensor": every, "OutputTensor": every}


_TABLE = np.array([[[[2, 1, 3, 5], [3, 8, 7, 3], [9, 6, 2, 4]]]], np.float32)
_INDICES = np.array([[[[2, 0, 0, -1], [1, 2, 2, 0]]]], np.int32)
_UPDATES = np.arange(10, 18, dtype=np.float32).reshape(1, 1, 2, 4)

GATHER_ELEMENTS = OperatorSpec(
    operator_type=OperatorType.GATHER_ELEMENTS,
    desc=DML_GATHER_ELEMENTS_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_gather_sizes,
    sizes_rule="(C5)",
    reference=_gather,
    independent=_gather_independent,
    check_values=_check_values,
    value_limits=_value_limits,
    example={"InputTensor": _TABLE, "IndicesTensor": _INDICES, "Axis": 2},
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor   | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 1 to 8 | INT64, INT32, UINT64, UINT32
        OutputTensor  | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor   | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 1 to 8 | INT64, INT32, UINT64, UINT32
        OutputTensor  | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor   | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 4      | UINT32
        OutputTensor  | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    """),
)

SCATTER_ELEMENTS = OperatorSpec(
    operator_type=OperatorType.SCATTER_ELEMENTS,
    desc=DML_SCATTER_ELEMENTS_OPERATOR_DESC,
    constraints=_scatter_constraints,
    infer_sizes=_scatter_sizes,
    sizes_rule="(C6)",
    reference=_scatter,
    independent=lambda desc: all_but(desc, [desc.Axis]),
    check_values=_check_values,
    value_limits=_value_limits,
    example={"InputTensor": _TABLE, "IndicesTensor": _INDICES, "UpdatesTensor": _UPDATES, "Axis": 2},
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor   | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 1 to 8 | INT64, INT32, UINT64, UINT32
        UpdatesTensor | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor  | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor   | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 1 to 8 | INT64, INT32, UINT64, UINT32
        UpdatesTensor | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor  | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor   | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        IndicesTensor | Input  | 4      | UINT32
        UpdatesTensor | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor  | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor   | Input  | 4      | FLOAT32, FLOAT16
        IndicesTensor | Input  | 4      | UINT32
        UpdatesTensor | Input  | 4      | FLOAT32, FLOAT16
        OutputTensor  | Output | 4      | FLOAT32, FLOAT16
    """),
)
