"""REVERSE_SUBSEQUENCES: the first elements along an axis, as many as a tensor says, backward.

Decisions where the page is silent: what is copied is copied by bits. Not in-place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import same, sizes_of
from ..independence import all_but
from ..schema import UINT, Choices, ConstraintFailure, OperatorDesc, OperatorSpec, Tensor, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC(OperatorDesc):
    """Reverses the first elements along an axis, as many as the length of each sequence; those behind stay.

    output[..., i, ...] = input[..., length - 1 - i, ...] where i < length, else input[..., i, ...]. A length that the
    axis does not have is the axis' own.

    Args:
        InputTensor: the sequences.
        SequenceLengthsTensor: their lengths.
        OutputTensor: the reversed sequences.
        Axis: the dimension that sequences lie along.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) Every tensor has the same DimensionCount.
        (C3) Axis is less than that DimensionCount.
        (C4) SequenceLengthsTensor has the sizes of InputTensor, but 1 along Axis.
        (C5) OutputTensor has the sizes of InputTensor.

    Source: the page of DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC; since feature level 2.1.
    """

    InputTensor: Tensor
    SequenceLengthsTensor: Tensor
    OutputTensor: Tensor
    Axis: UINT


def _constraints(desc: DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "SequenceLengthsTensor", "OutputTensor")
    rank = len(desc.InputTensor.Sizes)
    if desc.Axis >= rank:
        yield ConstraintFailure("(C3)", "Axis", str(desc.Axis), f"less than {rank}, the DimensionCount")
        return
    sizes = zip(desc.SequenceLengthsTensor.Sizes, desc.InputTensor.Sizes, strict=False)
    for i, (found, size) in enumerate(sizes):
        wanted, why = (1, "along Axis") if i == desc.Axis else (size, "that of InputTensor")
        if found != wanted:
            yield ConstraintFailure("(C4)", f"SequenceLengthsTensor.Sizes[{i}]", str(found), f"{wanted}, {why}")


def _infer_sizes(desc: DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.InputTensor)}


def _reference(desc: DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC, x: Array, lengths: Array) -> Array:
    size = x.shape[desc.Axis]
    i = np.arange(size).reshape(-1, *(1,) * (x.ndim - 1 - desc.Axis))
    length = np.minimum(lengths, size).astype(np.intp)
    return np.take_along_axis(x, np.where(i < length, length - 1 - i, i), desc.Axis)


REVERSE_SUBSEQUENCES = OperatorSpec(
    operator_type=OperatorType.REVERSE_SUBSEQUENCES,
    desc=DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C5)",
    reference=_reference,
    independent=lambda desc: all_but(desc, [desc.Axis]),
    example={
        "InputTensor": np.arange(1, 13, dtype=np.float32).reshape(1, 1, 3, 4),
        "SequenceLengthsTensor": np.array([2, 4, 3], np.uint32).reshape(1, 1, 3, 1),
        "Axis": 3,
    },
    support=support_table("""
        DML_FEATURE_LEVEL_5_0 and above
        InputTensor           | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        SequenceLengthsTensor | Input  | 1 to 8 | UINT64, UINT32
        OutputTensor          | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_4_0 and above
        InputTensor           | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        SequenceLengthsTensor | Input  | 1 to 8 | UINT32
        OutputTensor          | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor           | Input  | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        SequenceLengthsTensor | Input  | 4 to 5 | UINT32
        OutputTensor          | Output | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor           | Input  | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        SequenceLengthsTensor | Input  | 4      | UINT32
        OutputTensor          | Output | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    """),
)
