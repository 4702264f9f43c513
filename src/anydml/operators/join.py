"""JOIN: concatenation along an axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..enums import OperatorType
from ..layout import Array
from ..schema import UINT, Broken, Choices, Count, OperatorDesc, OperatorSpec, Tensor, Tensors, support_table


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


def _constraints(desc: DML_JOIN_OPERATOR_DESC) -> Iterator[Broken]:
    if not desc.InputTensors:
        yield Broken("(C1)", "InputCount", "0", "at least 1")
        return
    first = desc.InputTensors[0]
    others = [(f"InputTensors[{i}]", tensor) for i, tensor in enumerate(desc.InputTensors)][1:]
    for where, tensor in [*others, ("OutputTensor", desc.OutputTensor)]:
        if tensor.DataType != first.DataType:
            expected = f"{first.DataType.name}, that of InputTensors[0]"
            yield Broken("(C2)", f"{where}.DataType", tensor.DataType.name, expected)
        if len(tensor.Sizes) != len(first.Sizes):
            expected = f"{len(first.Sizes)}, that of InputTensors[0]"
            yield Broken("(C3)", f"{where}.DimensionCount", str(len(tensor.Sizes)), expected)
    if desc.Axis >= len(first.Sizes):
        yield Broken("(C4)", "Axis", str(desc.Axis), f"less than {len(first.Sizes)}, the DimensionCount")
    for where, tensor in others:
        if len(tensor.Sizes) == len(first.Sizes):
            for i, (found, size) in enumerate(zip(tensor.Sizes, first.Sizes, strict=True)):
                if i != desc.Axis and found != size:
                    expected = f"{size}, that of InputTensors[0]: sizes may differ along Axis {desc.Axis} only"
                    yield Broken("(C5)", f"{where}.Sizes[{i}]", str(found), expected)


def _infer_sizes(desc: DML_JOIN_OPERATOR_DESC) -> dict[str, Choices]:
    ranks = {len(tensor.Sizes) for tensor in desc.InputTensors}
    if len(ranks) != 1 or desc.Axis >= min(ranks):
        return {}
    sizes = [(size,) for size in desc.InputTensors[0].Sizes]
    sizes[desc.Axis] = (sum(tensor.Sizes[desc.Axis] for tensor in desc.InputTensors),)
    return {"OutputTensor": tuple(sizes)}


def _reference(desc: DML_JOIN_OPERATOR_DESC, *inputs: Array) -> Array:
    return np.concatenate(inputs, axis=desc.Axis)


JOIN = OperatorSpec(
    operator_type=OperatorType.JOIN,
    desc=DML_JOIN_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C6)",
    reference=_reference,
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
