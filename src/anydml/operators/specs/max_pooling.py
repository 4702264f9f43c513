"""MAX_POOLING and its revisions: the maximum in a sliding window, and where it lies.

Decisions where the pages are silent: an output size may be rounded up, but on a strict device; dilation widens the
window's extent; padding is never the maximum, and an index never points into it. A window on padding alone gives the
type's lowest value (of floats -inf) and the index 0. Of NaNs and numbers the maximum is a number, as it is
element-wise; of NaNs alone it is the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.enums import OperatorType, TensorDataType
from ...core.strided_layout import Array
from ..constraints import same
from ..independence import only
from ..schema import (
    Choices,
    ConstraintFailure,
    Count,
    Independence,
    OperatorDesc,
    OperatorSpec,
    OptionalTensor,
    Tensor,
    UINTs,
    support_table,
)
from ..window_math import Window, pooled_sizes, pooling_constraints, pooling_windows


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_MAX_POOLING_OPERATOR_DESC(OperatorDesc):
    """The maximum of the elements in a sliding window. Not in-place.

    Args:
        InputTensor: {BatchCount, ChannelCount, Height, Width}, or {..., Depth, Height, Width} in 5-D.
        OutputTensor: the maxima.
        DimensionCount: the number of spatial dimensions, 2 or 3; derived from the arrays that follow.
        Strides: steps of the window, for each spatial dimension.
        WindowSize: taps of the window.
        StartPadding: elements of padding before the input, which are never the maximum.
        EndPadding: elements of padding behind the input, likewise.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) DimensionCount is 2 less than the DimensionCount of InputTensor.
        (C4) Strides and WindowSize are at least 1.
        (C5) WindowSize is at most the padded size.
        (C6) OutputTensor has the sizes of the batch and the channels, and in each spatial dimension
            floor((padded size - WindowSize) / stride) + 1, or the same rounded up, but on a strict device.

    Source: the page of DML_MAX_POOLING_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    DimensionCount: Count = None
    Strides: UINTs
    WindowSize: UINTs
    StartPadding: UINTs
    EndPadding: UINTs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "DimensionCount": ("Strides", "WindowSize", "StartPadding", "EndPadding")
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_MAX_POOLING1_OPERATOR_DESC(OperatorDesc):
    """The maximum of the elements in a sliding window, and its index in the input. Not in-place.

    An index counts the elements of the whole input as one packed array, batch and channels included, from 0. Of equal
    maxima it is the first one's. With no OutputIndicesTensor it is MAX_POOLING.

    Args:
        InputTensor: {BatchCount, ChannelCount, Height, Width}, or {..., Depth, Height, Width} in 5-D.
        OutputTensor: the maxima.
        OutputIndicesTensor: their indices; None for no indices.
        DimensionCount: the number of spatial dimensions, 2 or 3; derived from the arrays that follow.
        Strides: steps of the window, for each spatial dimension.
        WindowSize: taps of the window.
        StartPadding: elements of padding before the input, which are never the maximum.
        EndPadding: elements of padding behind the input, likewise.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor, OutputTensor and OutputIndicesTensor have the same DimensionCount.
        (C3) DimensionCount is 2 less than the DimensionCount of InputTensor.
        (C4) Strides and WindowSize are at least 1.
        (C5) WindowSize is at most the padded size.
        (C6) OutputTensor has the sizes of the batch and the channels, and in each spatial dimension
            floor((padded size - WindowSize) / stride) + 1, or the same rounded up, but on a strict device.
            So has OutputIndicesTensor.
        (C7) OutputIndicesTensor has the Sizes of OutputTensor.
        (C8) UINT32 indices are of an InputTensor of at most 2^32 elements.

    Source: the page of DML_MAX_POOLING1_OPERATOR_DESC; since feature level 2.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    OutputIndicesTensor: OptionalTensor = None
    DimensionCount: Count = None
    Strides: UINTs
    WindowSize: UINTs
    StartPadding: UINTs
    EndPadding: UINTs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "DimensionCount": ("Strides", "WindowSize", "StartPadding", "EndPadding")
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_MAX_POOLING2_OPERATOR_DESC(DML_MAX_POOLING1_OPERATOR_DESC):
    """The maximum of the elements in a sliding window, whose taps may lie apart, and its index in the input. Not in-place.

    An index counts the elements of the whole input as one packed array, batch and channels included, from 0. Of equal
    maxima it is the first one's. With Dilations of 1 it is MAX_POOLING1.

    Args:
        InputTensor: {BatchCount, ChannelCount, Height, Width}, or {..., Depth, Height, Width} in 5-D.
        OutputTensor: the maxima.
        OutputIndicesTensor: their indices; None for no indices.
        DimensionCount: the number of spatial dimensions, 2 or 3; derived from the arrays that follow.
        Strides: steps of the window, for each spatial dimension.
        WindowSize: taps of the window.
        StartPadding: elements of padding before the input, which are never the maximum.
        EndPadding: elements of padding behind the input, likewise.
        Dilations: distance of neighbouring taps; 1 for a dense window.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor, OutputTensor and OutputIndicesTensor have the same DimensionCount.
        (C3) DimensionCount is 2 less than the DimensionCount of InputTensor.
        (C4) Strides, WindowSize and Dilations are at least 1.
        (C5) The window's extent, (WindowSize - 1) * Dilation + 1, is at most the padded size.
        (C6) OutputTensor has the sizes of the batch and the channels, and in each spatial dimension
            floor((padded size - extent) / stride) + 1, or the same rounded up, but on a strict device.
            So has OutputIndicesTensor.
        (C7) OutputIndicesTensor has the Sizes of OutputTensor.
        (C8) UINT32 indices are of an InputTensor of at most 2^32 elements.

    Source: the page of DML_MAX_POOLING2_OPERATOR_DESC; since feature level 2.1.
    """

    Dilations: UINTs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "DimensionCount": ("Strides", "WindowSize", "StartPadding", "EndPadding", "Dilations")
    }


def _constraints(desc: DML_MAX_POOLING_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    return pooling_constraints(desc, "(C1)", "(C2)", "(C3)", "(C4)", "(C5)")


def _constraints_with_indices(desc: DML_MAX_POOLING1_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from pooling_constraints(desc, "(C1)", "(C2)", "(C3)", "(C4)", "(C5)")
    if desc.OutputIndicesTensor is not None:
        yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputIndicesTensor")
        outputs = desc.OutputTensor.Sizes, desc.OutputIndicesTensor.Sizes
        right = pooled_sizes(desc).get("OutputTensor", ())
        # What is wrong by itself, (C6) says.
        if all(size in choice for sizes in outputs for size, choice in zip(sizes, right, strict=False)):
            yield from same(desc, "(C7)", "Sizes", "OutputTensor", "OutputIndicesTensor")
        elements = math.prod(desc.InputTensor.Sizes)
        if desc.OutputIndicesTensor.DataType == TensorDataType.UINT32 and elements > 2**32:
            found, expected = f"UINT32, of {elements} elements", "UINT64 where there are more than 2^32 elements"
            yield ConstraintFailure("(C8)", "OutputIndicesTensor.DataType", found, expected)


def _infer_sizes(desc: DML_MAX_POOLING1_OPERATOR_DESC) -> dict[str, Choices]:
    return {name: sizes for sizes in pooled_sizes(desc).values() for name in ("OutputTensor", "OutputIndicesTensor")}


def _first_maximum(x: Array, index: Array, axis: int) -> tuple[Array, Array]:
    """The first maximum along an axis and its index; the lowest value and 0 where there is no element."""
    if not x.shape[axis]:
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        shape = x.shape[:axis] + x.shape[axis + 1 :]
        return np.full(shape, lowest, x.dtype), np.zeros(shape, index.dtype)
    # The C library's fmax passes a signalling NaN on.
    quiet = np.where(x == x, x, np.nan).astype(x.dtype) if x.dtype.kind == "f" else x
    maximum = np.fmax.reduce(quiet, axis=axis, keepdims=True)
    first = ((x == maximum) | (maximum != maximum)).argmax(axis=axis, keepdims=True)
    value, place = (np.take_along_axis(each, first, axis).squeeze(axis) for each in (x, index))
    return value, place


def first_maxima(windows: Sequence[Window], places: Sequence[int], x: Array) -> tuple[Array, Array]:
    """The maximum of each window and its index in the whole input.

    Along the last dimension first, so that of equal maxima the first in memory wins.
    """
    index = np.arange(x.size).reshape(x.shape)
    for i, (window, count) in reversed(list(enumerate(zip(windows, places, strict=True)))):
        axis = i + 2
        under = [(slice(None),) * axis + (window.elements(o),) for o in range(count)]
        found = [_first_maximum(x[place], index[place], axis) for place in under]
        x, index = (np.stack(each, axis=axis) for each in zip(*found, strict=True))
    return x, index


def _reference_with_indices(desc: Any, x: Array) -> tuple[Array, Array]:
    return first_maxima(pooling_windows(desc), desc.OutputTensor.Sizes[2:], x)


def _reference(desc: DML_MAX_POOLING_OPERATOR_DESC, x: Array) -> Array:
    return _reference_with_indices(desc, x)[0]


def _independent(desc: Any) -> Independence:
    """Batch and channels, but that an index counts them too."""
    return only(desc, (0, 1) if getattr(desc, "OutputIndicesTensor", None) is None else ())


MAX_POOLING = OperatorSpec(
    operator_type=OperatorType.MAX_POOLING,
    desc=DML_MAX_POOLING_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=pooled_sizes,
    sizes_rule="(C6)",
    reference=_reference,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_5_0 and above
        InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16, INT8, UINT8
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16, INT8, UINT8
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16
    """),
)


def _with_indices(operator_type: OperatorType, desc: type[OperatorDesc], since: str) -> OperatorSpec:
    return OperatorSpec(
        operator_type=operator_type,
        desc=desc,
        constraints=_constraints_with_indices,
        infer_sizes=_infer_sizes,
        sizes_rule="(C6)",
        reference=_reference_with_indices,
        independent=_independent,
        support=support_table(f"""
            DML_FEATURE_LEVEL_5_0 and above
            InputTensor         | Input           | 4 to 5 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
            OutputTensor        | Output          | 4 to 5 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
            OutputIndicesTensor | Optional output | 4 to 5 | UINT64, UINT32
            DML_FEATURE_LEVEL_3_0 and above
            InputTensor         | Input           | 4 to 5 | FLOAT32, FLOAT16, INT8, UINT8
            OutputTensor        | Output          | 4 to 5 | FLOAT32, FLOAT16, INT8, UINT8
            OutputIndicesTensor | Optional output | 4 to 5 | UINT32
            {since} and above
            InputTensor         | Input           | 4 to 5 | FLOAT32, FLOAT16
            OutputTensor        | Output          | 4 to 5 | FLOAT32, FLOAT16
            OutputIndicesTensor | Optional output | 4 to 5 | UINT32
        """),
    )


MAX_POOLING1 = _with_indices(OperatorType.MAX_POOLING1, DML_MAX_POOLING1_OPERATOR_DESC, "DML_FEATURE_LEVEL_2_0")
MAX_POOLING2 = _with_indices(OperatorType.MAX_POOLING2, DML_MAX_POOLING2_OPERATOR_DESC, "DML_FEATURE_LEVEL_2_1")
