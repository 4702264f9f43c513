"""PADDING and PADDING1: a tensor with more elements at its ends.

Decisions where the pages are silent: a padding that is longer than the input is filled as if the input were repeated,
by turns mirrored in REFLECTION and SYMMETRIC, without end, and WRAP repeats it as it is; REFLECTION repeats an only
element. PADDING's PaddingValue is rounded to FLOAT16, truncated and saturated to integers; PADDING1's is one of the
tensors' type, rounded to its floats, and in other modes than CONSTANT may be any. What is copied is copied by bits. Not
in-place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core import enums
from ...core.enums import OperatorType, PaddingMode, TensorDataType
from ...core.strided_layout import DTYPES, Array
from ..constraints import as_many, is_held, rounded, same, type_of_output
from ..independence import only
from ..schema import (
    FLOAT,
    SCALAR,
    Choices,
    ConstraintFailure,
    Count,
    Independence,
    OperatorDesc,
    OperatorSpec,
    Tensor,
    UINTs,
    support_table,
)
from .fill import value_as


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_PADDING_OPERATOR_DESC(OperatorDesc):
    """Puts elements before and behind those of a tensor: a constant, or what it holds itself.

    Args:
        InputTensor: the elements.
        OutputTensor: the padded tensor.
        PaddingMode: of {1, 2, 3}, padded by 2 and 2, CONSTANT makes {v, v, 1, 2, 3, v, v}, EDGE {1, 1, 1, 2, 3, 3, 3},
            REFLECTION {3, 2, 1, 2, 3, 2, 1}, SYMMETRIC (since 3.0) {2, 1, 1, 2, 3, 3, 2}, WRAP (since 6.4)
            {2, 3, 1, 2, 3, 1, 2}.
        PaddingValue: what CONSTANT pads with; of no meaning in other modes.
        DimensionCount: the number of dimensions; derived from the arrays that follow.
        StartPadding: elements before the input's, for each dimension.
        EndPadding: elements behind the input's.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) DimensionCount is that of InputTensor.
        (C4) OutputTensor has the sizes of InputTensor + StartPadding + EndPadding.

    Source: the page of DML_PADDING_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    PaddingMode: enums.PaddingMode
    PaddingValue: FLOAT
    DimensionCount: Count = None
    StartPadding: UINTs
    EndPadding: UINTs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"DimensionCount": ("StartPadding", "EndPadding")}


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_PADDING1_OPERATOR_DESC(OperatorDesc):
    """Puts elements before and behind those of a tensor: a constant of the tensor's type, or what it holds itself.

    Args:
        InputTensor: the elements.
        OutputTensor: the padded tensor.
        PaddingMode: of {1, 2, 3}, padded by 2 and 2, CONSTANT makes {v, v, 1, 2, 3, v, v}, EDGE {1, 1, 1, 2, 3, 3, 3},
            REFLECTION {3, 2, 1, 2, 3, 2, 1}, SYMMETRIC {2, 1, 1, 2, 3, 3, 2}, WRAP (since 6.4) {2, 3, 1, 2, 3, 1, 2}.
        PaddingValueDataType: the type of PaddingValue.
        PaddingValue: what CONSTANT pads with; of no meaning in other modes.
        DimensionCount: the number of dimensions; derived from the arrays that follow.
        StartPadding: elements before the input's, for each dimension.
        EndPadding: elements behind the input's.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) DimensionCount is that of InputTensor.
        (C4) OutputTensor has the sizes of InputTensor + StartPadding + EndPadding.
        (C5) PaddingValueDataType is the DataType of OutputTensor.
        (C6) In CONSTANT, PaddingValue is a value of PaddingValueDataType: an integer that it holds, or a number in the
            range of its floats.

    Source: the page of DML_PADDING1_OPERATOR_DESC; since feature level 5.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    PaddingMode: enums.PaddingMode
    PaddingValueDataType: enums.TensorDataType
    PaddingValue: SCALAR
    DimensionCount: Count = None
    StartPadding: UINTs
    EndPadding: UINTs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"DimensionCount": ("StartPadding", "EndPadding")}


def _constraints(desc: DML_PADDING_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputTensor")
    yield from as_many(desc, "(C3)")


def _constraints_of_padding1(desc: DML_PADDING1_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputTensor")
    yield from as_many(desc, "(C3)")
    yield from type_of_output(desc, "(C5)", "PaddingValueDataType")
    if desc.PaddingMode == PaddingMode.CONSTANT:
        yield from is_held(desc, "(C6)", "PaddingValue", desc.PaddingValueDataType)


def _infer_sizes(desc: Any) -> dict[str, Choices]:
    if desc.DimensionCount != len(desc.InputTensor.Sizes):
        return {}
    ends = zip(desc.InputTensor.Sizes, desc.StartPadding, desc.EndPadding, strict=True)
    return {"OutputTensor": tuple((size + start + end,) for size, start, end in ends)}


def _reflected(i: Array, size: int) -> Array:
    """There and back again, the ends once."""
    period = max(2 * size - 2, 1)
    sources: Array = np.minimum(i % period, -i % period)
    return sources


def _symmetric(i: Array, size: int) -> Array:
    """There and back again, the ends twice."""
    period = 2 * size
    sources: Array = np.minimum(i % period, (-i - 1) % period)
    return sources


_SOURCES: Mapping[PaddingMode, Callable[[Array, int], Array]] = {
    PaddingMode.EDGE: lambda i, size: np.clip(i, 0, size - 1),
    PaddingMode.REFLECTION: _reflected,
    PaddingMode.SYMMETRIC: _symmetric,
    PaddingMode.WRAP: lambda i, size: i % size,
}
"""The element, of so many, that stands at the places i of a padded axis, of which 0 is the first element's own."""


def constant_of(desc: Any) -> Array:
    """What CONSTANT pads with, as an element."""
    if isinstance(desc, DML_PADDING1_OPERATOR_DESC):
        return value_as(desc.PaddingValue, desc.PaddingValueDataType)
    with np.errstate(over="ignore"):
        return rounded(np.array([desc.PaddingValue]), DTYPES[desc.InputTensor.DataType]).reshape(())


def _reference(desc: Any, x: Array) -> Array:
    if desc.PaddingMode == PaddingMode.CONSTANT:
        y = np.full(desc.OutputTensor.Sizes, constant_of(desc), x.dtype)
        y[tuple([slice(start, start + size) for start, size in zip(desc.StartPadding, x.shape, strict=True)])] = x
        return y
    for axis, (start, end) in enumerate(zip(desc.StartPadding, desc.EndPadding, strict=True)):
        size = x.shape[axis]
        x = np.take(x, _SOURCES[desc.PaddingMode](np.arange(-start, size + end), size), axis)
    return x


def _independent(desc: Any) -> Independence:
    """The dimensions without padding."""
    ends = zip(desc.StartPadding, desc.EndPadding, strict=True)
    return only(desc, [i for i, padding in enumerate(ends) if padding == (0, 0)])


PADDING = OperatorSpec(
    operator_type=OperatorType.PADDING,
    desc=DML_PADDING_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C4)",
    reference=_reference,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_5_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_1 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16
    """),
)

PADDING1 = OperatorSpec(
    operator_type=OperatorType.PADDING1,
    desc=DML_PADDING1_OPERATOR_DESC,
    constraints=_constraints_of_padding1,
    infer_sizes=_infer_sizes,
    sizes_rule="(C4)",
    reference=_reference,
    independent=_independent,
    example={
        "InputTensor": np.arange(1, 7, dtype=np.float32).reshape(1, 1, 2, 3),
        "PaddingMode": PaddingMode.CONSTANT,
        "PaddingValueDataType": TensorDataType.FLOAT32,
        "PaddingValue": 9,
        "StartPadding": (0, 0, 1, 2),
        "EndPadding": (0, 0, 1, 0),
    },
    support=support_table("""
        DML_FEATURE_LEVEL_5_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    """),
)
