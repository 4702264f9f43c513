"""GATHER: elements along an axis, by their indices.

Decisions where the page is silent or disagrees with itself: an index that the axis does not have is an error, and
nothing is written. IndexDimensions may be all of IndicesTensor's dimensions, or 0, which takes the axis away. Where a
result has more dimensions than its tensor, 1s are left out that lead it, and then those that lead the indices: so the
page's example of IndexDimensions 2 has a result of 2 dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import limits_of_indices, not_indices, same
from ..schema import UINT, Choices, ConstraintFailure, Independence, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_GATHER_OPERATOR_DESC(OperatorDesc):
    """Copies elements along an axis: output[..., i, ...] = input[..., indices[i], ...].

    The indices' dimensions stand where the axis stood. Negative indices, of signed types, count from its end. A copy
    of bits: NaN payloads survive. Not in-place.

    Args:
        InputTensor: the elements.
        IndicesTensor: which of them are copied; 1 in every dimension before the last IndexDimensions.
        OutputTensor: the copied elements.
        Axis: the dimension of InputTensor that the indices are of.
        IndexDimensions: how many of the last dimensions of IndicesTensor make up the indices.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) Every tensor has the same DimensionCount.
        (C3) Axis is less than that DimensionCount.
        (C4) IndexDimensions is at most that DimensionCount.
        (C5) IndicesTensor has sizes of 1 before its last IndexDimensions.
        (C6) The result has no more dimensions than that DimensionCount, leading 1s left out.
        (C7) OutputTensor has the sizes of InputTensor before Axis, then the last IndexDimensions of IndicesTensor,
            then those of InputTensor behind Axis; 1s before them where they are fewer.
        (V1) An index is less than the size of the axis, and at least 0, or at least minus that size where its type is
            signed.

    Source: the page of DML_GATHER_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    IndicesTensor: Tensor
    OutputTensor: Tensor
    Axis: UINT
    IndexDimensions: UINT


def _constraints(desc: DML_GATHER_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "IndicesTensor", "OutputTensor")
    rank = len(desc.InputTensor.Sizes)
    if desc.Axis >= rank:
        yield ConstraintFailure("(C3)", "Axis", str(desc.Axis), f"less than {rank}, the DimensionCount")
    if desc.IndexDimensions > rank:
        yield ConstraintFailure(
            "(C4)", "IndexDimensions", str(desc.IndexDimensions), f"at most {rank}, the DimensionCount"
        )
    leading = max(len(desc.IndicesTensor.Sizes) - desc.IndexDimensions, 0)
    for i, size in enumerate(desc.IndicesTensor.Sizes[:leading]):
        if size != 1:
            expected = f"1, before the last IndexDimensions, which are {desc.IndexDimensions}"
            yield ConstraintFailure("(C5)", f"IndicesTensor.Sizes[{i}]", str(size), expected)
    if _is_computable(desc) and len(sizes := _sizes(desc)) > rank:
        found = f"{desc.IndexDimensions}, and so a result of sizes {tuple(sizes)}"
        yield ConstraintFailure("(C6)", "IndexDimensions", found, f"a result of at most {rank} dimensions")


def _is_computable(desc: DML_GATHER_OPERATOR_DESC) -> bool:
    rank = len(desc.InputTensor.Sizes)
    return rank == len(desc.IndicesTensor.Sizes) and desc.Axis < rank and desc.IndexDimensions <= rank


def result_dimensions(desc: DML_GATHER_OPERATOR_DESC) -> list[tuple[str, int]]:
    """The result's last dimensions, each by tensor and number; those before are of size 1, and leading 1s that would be
    too many are left out."""
    rank, axis = len(desc.InputTensor.Sizes), desc.Axis
    before, after = ([("InputTensor", i) for i in each] for each in (range(axis), range(axis + 1, rank)))
    indices = [("IndicesTensor", i) for i in range(rank - desc.IndexDimensions, rank)]
    for leading in (before, indices):
        while len(before + indices + after) > rank and leading and _size(desc, *leading[0]) == 1:
            del leading[0]
    return before + indices + after


def _size(desc: DML_GATHER_OPERATOR_DESC, name: str, dimension: int) -> int:
    size: int = getattr(desc, name).Sizes[dimension]
    return size


def _sizes(desc: DML_GATHER_OPERATOR_DESC) -> list[int]:
    """The result's."""
    sizes = [_size(desc, *each) for each in result_dimensions(desc)]
    return [1] * (len(desc.InputTensor.Sizes) - len(sizes)) + sizes


def _infer_sizes(desc: DML_GATHER_OPERATOR_DESC) -> dict[str, Choices]:
    return {"OutputTensor": tuple((size,) for size in _sizes(desc))} if _is_computable(desc) else {}


def _value_limits(desc: DML_GATHER_OPERATOR_DESC) -> dict[str, tuple[int, int]]:
    return {"IndicesTensor": limits_of_indices(desc.IndicesTensor, desc.InputTensor.Sizes[desc.Axis])}


def _check_values(desc: DML_GATHER_OPERATOR_DESC, inputs: Sequence[Array | None]) -> Iterator[ConstraintFailure]:
    limits = _value_limits(desc)["IndicesTensor"]
    yield from not_indices("(V1)", inputs[1], limits, f"the indices of axis {desc.Axis} of InputTensor")


def _reference(desc: DML_GATHER_OPERATOR_DESC, x: Array, indices: Array) -> Array:
    those = indices.reshape(indices.shape[x.ndim - desc.IndexDimensions :]).astype(np.intp)
    return np.take(x, those, desc.Axis).reshape(desc.OutputTensor.Sizes)


def _independent(desc: DML_GATHER_OPERATOR_DESC) -> Independence:
    """All but the axis, at the places that the indices have moved them to."""
    rank, those = len(desc.OutputTensor.Sizes), result_dimensions(desc)
    places = {each: rank - len(those) + i for i, each in enumerate(those)}
    inputs = {name: [places.get((name, i)) for i in range(rank)] for name in ("InputTensor", "IndicesTensor")}
    return {**inputs, "OutputTensor": [i if i in places.values() else None for i in range(rank)]}


GATHER = OperatorSpec(
    operator_type=OperatorType.GATHER,
    desc=DML_GATHER_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C7)",
    reference=_reference,
    independent=_independent,
    check_values=_check_values,
    value_limits=_value_limits,
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
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor   | Input  | 4      | FLOAT32, FLOAT16
        IndicesTensor | Input  | 4      | UINT32
        OutputTensor  | Output | 4      | FLOAT32, FLOAT16
    """),
)
