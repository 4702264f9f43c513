"""JOIN and SPLIT: tensors put together along an axis, and one cut into pieces.

Decision where the page of SPLIT is silent: it does not run in-place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..independence import all_but
from ..schema import UINT, Choices, ConstraintFailure, Count, OperatorDesc, OperatorSpec, Tensor, Tensors, support_table


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_JOIN_OPERATOR_DESC(OperatorDesc):
    """Joins tensors along an axis, in the order given; a single tensor is copied.

    A copy of bits: NaN payloads survive. Inputs may be strided, broadcast and in one buffer. Not in-place.

    Args:
        InputCount: how many tensors are joined; derived from InputTensors.
        InputTensors: the tensors to join. They differ in size along Axis only.
        OutputTensor: the joined tensor.
        Axis: the dimension along which they are joined.

    Constraints:
        (C1) InputCount is greater than 0.
        (C2) Every tensor has the same DataType.
        (C3) Every tensor has the same DimensionCount.
        (C4) Axis is less than that DimensionCount.
        (C5) Sizes of InputTensors agree in every dimension but Axis.
        (C6) OutputTensor has those sizes, and along Axis the sum of the sizes of InputTensors.

    Source: the page of DML_JOIN_OPERATOR_DESC; since feature level 1.0.
    """

    InputCount: Count = None
    InputTensors: Tensors
    OutputTensor: Tensor
    Axis: UINT

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"InputCount": ("InputTensors",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_SPLIT_OPERATOR_DESC(OperatorDesc):
    """Cuts a tensor into pieces along an axis, in the order given; into a single one it is copied.

    A copy of bits: NaN payloads survive. Not in-place.

    Args:
        InputTensor: the tensor to cut.
        OutputCount: how many pieces there are; derived from OutputTensors.
        OutputTensors: the pieces. They differ in size along Axis only.
        Axis: the dimension along which the tensor is cut.

    Constraints:
        (C1) OutputCount is greater than 0.
        (C2) Every tensor has the same DataType.
        (C3) Every tensor has the same DimensionCount.
        (C4) Axis is less than that DimensionCount.
        (C5) Sizes of OutputTensors are those of InputTensor in every dimension but Axis.
        (C6) Along Axis they add up to the size of InputTensor.

    Source: the page of DML_SPLIT_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    OutputCount: Count = None
    OutputTensors: Tensors
    Axis: UINT

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"OutputCount": ("OutputTensors",)}


_Labelled = tuple[str, Tensor]


def _constraints(desc: DML_JOIN_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    if not desc.InputTensors:
        yield ConstraintFailure("(C1)", "InputCount", "0", "at least 1")
        return
    first, *others = [(f"InputTensors[{i}]", tensor) for i, tensor in enumerate(desc.InputTensors)]
    yield from _alike("(C2)", "(C3)", first, [*others, ("OutputTensor", desc.OutputTensor)])
    yield from _on_axis("(C4)", desc.Axis, first)
    label, wanted = first
    for where, tensor in others:
        if len(tensor.Sizes) == len(wanted.Sizes):
            for i, (found, size) in enumerate(zip(tensor.Sizes, wanted.Sizes, strict=True)):
                if i != desc.Axis and found != size:
                    expected = f"{size}, that of {label}: sizes may differ along Axis {desc.Axis} only"
                    yield ConstraintFailure("(C5)", f"{where}.Sizes[{i}]", str(found), expected)


def _constraints_of_split(desc: DML_SPLIT_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    if not desc.OutputTensors:
        yield ConstraintFailure("(C1)", "OutputCount", "0", "at least 1")
        return
    whole = ("InputTensor", desc.InputTensor)
    pieces = [(f"OutputTensors[{i}]", tensor) for i, tensor in enumerate(desc.OutputTensors)]
    yield from _alike("(C2)", "(C3)", whole, pieces)
    yield from _on_axis("(C4)", desc.Axis, whole)
    if _all_have_the_axis(desc):
        size, total = desc.InputTensor.Sizes[desc.Axis], sum(piece.Sizes[desc.Axis] for piece in desc.OutputTensors)
        if total != size:
            found = f"sizes along Axis {desc.Axis} that add up to {total}"
            yield ConstraintFailure("(C6)", "OutputTensors", found, f"{size}, that of InputTensor")


def _all_have_the_axis(desc: DML_SPLIT_OPERATOR_DESC) -> bool:
    return all(desc.Axis < len(tensor.Sizes) for tensor in (desc.InputTensor, *desc.OutputTensors))


def _alike(types: str, counts: str, first: _Labelled, others: Sequence[_Labelled]) -> Iterator[ConstraintFailure]:
    label, wanted = first
    for where, tensor in others:
        if tensor.DataType != wanted.DataType:
            expected = f"{wanted.DataType.name}, that of {label}"
            yield ConstraintFailure(types, f"{where}.DataType", tensor.DataType.name, expected)
        if len(tensor.Sizes) != len(wanted.Sizes):
            expected = f"{len(wanted.Sizes)}, that of {label}"
            yield ConstraintFailure(counts, f"{where}.DimensionCount", str(len(tensor.Sizes)), expected)


def _on_axis(rule: str, axis: int, first: _Labelled) -> Iterator[ConstraintFailure]:
    rank = len(first[1].Sizes)
    if axis >= rank:
        yield ConstraintFailure(rule, "Axis", str(axis), f"less than {rank}, the DimensionCount")


def _infer_sizes(desc: DML_JOIN_OPERATOR_DESC) -> dict[str, Choices]:
    ranks = {len(tensor.Sizes) for tensor in desc.InputTensors}
    if len(ranks) != 1 or desc.Axis >= min(ranks):
        return {}
    sizes = [(size,) for size in desc.InputTensors[0].Sizes]
    sizes[desc.Axis] = (sum(tensor.Sizes[desc.Axis] for tensor in desc.InputTensors),)
    return {"OutputTensor": tuple(sizes)}


def _infer_pieces(desc: DML_SPLIT_OPERATOR_DESC) -> dict[str, Choices]:
    """Along Axis a piece has the size that it has: (C6) is about all of them."""
    if not _all_have_the_axis(desc):
        return {}
    sizes = [(size,) for size in desc.InputTensor.Sizes]
    before, behind = sizes[: desc.Axis], sizes[desc.Axis + 1 :]
    return {
        f"OutputTensors[{i}]": (*before, (piece.Sizes[desc.Axis],), *behind)
        for i, piece in enumerate(desc.OutputTensors)
    }


def _join(desc: DML_JOIN_OPERATOR_DESC, *inputs: Array) -> Array:
    return np.concatenate(inputs, axis=desc.Axis)


def _split(desc: DML_SPLIT_OPERATOR_DESC, x: Array) -> tuple[Array, ...]:
    ends = np.cumsum([piece.Sizes[desc.Axis] for piece in desc.OutputTensors])
    return tuple(np.split(x, ends[:-1], desc.Axis))


SPLIT = OperatorSpec(
    operator_type=OperatorType.SPLIT,
    desc=DML_SPLIT_OPERATOR_DESC,
    constraints=_constraints_of_split,
    infer_sizes=_infer_pieces,
    sizes_rule="(C5)",
    reference=_split,
    independent=lambda desc: all_but(desc, [desc.Axis]),
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor   | Input        | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensors | Output array | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor   | Input        | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensors | Output array | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor   | Input        | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensors | Output array | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor   | Input        | 4      | FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16
        OutputTensors | Output array | 4      | FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16
    """),
)

JOIN = OperatorSpec(
    operator_type=OperatorType.JOIN,
    desc=DML_JOIN_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C6)",
    reference=_join,
    independent=lambda desc: all_but(desc, [desc.Axis]),
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensors | Input array | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output      | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensors | Input array | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output      | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensors | Input array | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output      | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_1_0 and above
        InputTensors | Input array | 4      | FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16
        OutputTensor | Output      | 4      | FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16
    """),
)
