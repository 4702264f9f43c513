"""SLICE and SLICE1: every so many elements of a window. SLICE_GRAD: these elements back in their places.

Decisions where the pages are silent: a stride of 0 is refused by SLICE too. SLICE_GRAD takes as few elements of the
window as SLICE1 gives. All copy bits, so that NaN payloads survive; none runs in-place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.enums import OperatorType, TensorDataType
from ...core.strided_layout import Array
from ...core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..constraints import as_many, at_least_1, same
from ..independence import only
from ..schema import (
    Choices,
    ConstraintFailure,
    Count,
    Independence,
    INTs,
    OperatorDesc,
    OperatorSpec,
    Tensor,
    UINTs,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_SLICE_OPERATOR_DESC(OperatorDesc):
    """Copies a part of a tensor: along each dimension, element i is the input's element Offset + i * Stride.

    Args:
        InputTensor: the elements.
        OutputTensor: those that are copied.
        DimensionCount: the number of dimensions; derived from the arrays that follow.
        Offsets: the first element copied, for each dimension.
        Sizes: the number of elements copied.
        Strides: the distance of neighbours in the input; 1 for a dense part.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) DimensionCount is that of InputTensor.
        (C4) Sizes and Strides are at least 1.
        (C5) The last element copied, Offset + (Size - 1) * Stride, is in InputTensor.
        (C6) OutputTensor has the Sizes.

    Source: the page of DML_SLICE_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    DimensionCount: Count = None
    Offsets: UINTs
    Sizes: UINTs
    Strides: UINTs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"DimensionCount": ("Offsets", "Sizes", "Strides")}


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_SLICE1_OPERATOR_DESC(OperatorDesc):
    """Copies a part of a window of a tensor, along a dimension of negative stride from the window's end.

    Along each dimension, element i is the input's element start + i * Stride, where start is the window's first
    element, or its last where Stride is negative.

    Args:
        InputTensor: the elements.
        OutputTensor: those that are copied: all of the window that the strides reach, or fewer.
        DimensionCount: the number of dimensions; derived from the arrays that follow.
        InputWindowOffsets: the first element of the window, for each dimension.
        InputWindowSizes: the elements of the window.
        InputWindowStrides: the distance of neighbours in the input; negative to copy backward.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) DimensionCount is that of InputTensor.
        (C4) InputWindowSizes are at least 1.
        (C5) The window is inside InputTensor: InputWindowOffset + InputWindowSize is at most the size.
        (C6) InputWindowStrides are not 0.
        (C7) OutputTensor has sizes of at most floor((InputWindowSize - 1) / |InputWindowStride|) + 1.

    Source: the page of DML_SLICE1_OPERATOR_DESC; since feature level 2.1.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    DimensionCount: Count = None
    InputWindowOffsets: UINTs
    InputWindowSizes: UINTs
    InputWindowStrides: INTs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "DimensionCount": ("InputWindowOffsets", "InputWindowSizes", "InputWindowStrides")
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_SLICE_GRAD_OPERATOR_DESC(OperatorDesc):
    """The gradients of SLICE1: each element where SLICE1 took it from, and 0 in all other places.

    Along each dimension, element i goes to the output's element start + i * Stride, where start is the window's first
    element, or its last where Stride is negative.

    Args:
        InputGradientTensor: the gradients of SLICE1's output.
        OutputGradientTensor: those of its input.
        DimensionCount: the number of dimensions; derived from the arrays that follow.
        InputWindowOffsets: the first element of the window, for each dimension.
        InputWindowSizes: the elements of the window.
        InputWindowStrides: the distance of neighbours in the output; negative for those that were copied backward.

    Constraints:
        (C1) InputGradientTensor and OutputGradientTensor have the same DataType.
        (C2) InputGradientTensor and OutputGradientTensor have the same DimensionCount.
        (C3) DimensionCount is that of InputGradientTensor.
        (C4) InputWindowSizes are at least 1.
        (C5) The window is inside OutputGradientTensor: InputWindowOffset + InputWindowSize is at most the size.
        (C6) InputWindowStrides are not 0.
        (C7) InputGradientTensor has sizes of at most floor((InputWindowSize - 1) / |InputWindowStride|) + 1.

    Source: the page of DML_SLICE_GRAD_OPERATOR_DESC; since feature level 3.0.
    """

    InputGradientTensor: Tensor
    OutputGradientTensor: Tensor
    DimensionCount: Count = None
    InputWindowOffsets: UINTs
    InputWindowSizes: UINTs
    InputWindowStrides: INTs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "DimensionCount": ("InputWindowOffsets", "InputWindowSizes", "InputWindowStrides")
    }


# Lists of several lengths, which (C2) and (C3) name, are looked at as far as all of them go.


def _constraints(desc: DML_SLICE_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputTensor")
    yield from as_many(desc, "(C3)")
    yield from at_least_1(desc, "(C4)", "Sizes", "Strides")
    numbers = zip(desc.InputTensor.Sizes, desc.Offsets, desc.Sizes, desc.Strides, strict=False)
    for i, (size, offset, count, stride) in enumerate(numbers):
        last = offset + (count - 1) * stride
        if last >= size and count and stride:
            found = f"{offset}, with Sizes[{i}] {count} and Strides[{i}] {stride} a last element {last}"
            yield ConstraintFailure(
                "(C5)", f"Offsets[{i}]", found, f"a last element below {size}, the size of InputTensor"
            )


def _constraints_of_windows(desc: Any) -> Iterator[ConstraintFailure]:
    """Those of SLICE1, and, of the tensors in their other roles, of SLICE_GRAD."""
    is_grad = isinstance(desc, DML_SLICE_GRAD_OPERATOR_DESC)
    given, made = ("InputGradientTensor", "OutputGradientTensor") if is_grad else ("InputTensor", "OutputTensor")
    whole, part = (made, given) if is_grad else (given, made)
    yield from same(desc, "(C1)", "DataType", given, made)
    yield from same(desc, "(C2)", "DimensionCount", given, made)
    yield from as_many(desc, "(C3)", given)
    yield from at_least_1(desc, "(C4)", "InputWindowSizes")
    windows = zip(desc.InputWindowOffsets, desc.InputWindowSizes, strict=True)
    for i, (size, (offset, window)) in enumerate(zip(getattr(desc, whole).Sizes, windows, strict=False)):
        if offset + window > size:
            found = f"{offset}, with InputWindowSizes[{i}] {window} an end of {offset + window}"
            yield ConstraintFailure(
                "(C5)", f"InputWindowOffsets[{i}]", found, f"an end of at most {size}, the size of {whole}"
            )
    for i, stride in enumerate(desc.InputWindowStrides):
        if stride == 0:
            yield ConstraintFailure("(C6)", f"InputWindowStrides[{i}]", "0", "a stride that is not 0")
    for i, (size, (most,)) in enumerate(zip(getattr(desc, part).Sizes, _largest(desc), strict=False)):
        if size > most:
            yield ConstraintFailure("(C7)", f"{part}.Sizes[{i}]", str(size), f"at most {most}, which the window has")


def _infer_sizes(desc: DML_SLICE_OPERATOR_DESC) -> dict[str, Choices]:
    return {"OutputTensor": tuple((size,) for size in desc.Sizes)} if all(desc.Sizes) else {}


def _largest_sizes(desc: DML_SLICE1_OPERATOR_DESC) -> dict[str, Choices]:
    largest = _largest(desc)
    return {"OutputTensor": largest} if largest else {}


def _largest(desc: Any) -> Choices:
    """The elements that there are in the windows; none where a broken constraint leaves that open."""
    if not all((*desc.InputWindowSizes, *desc.InputWindowStrides)):
        return ()
    windows = zip(desc.InputWindowSizes, desc.InputWindowStrides, strict=True)
    return tuple(((size - 1) // abs(stride) + 1,) for size, stride in windows)


def _any_sizes(desc: DML_SLICE_GRAD_OPERATOR_DESC) -> dict[str, Choices]:
    return {}


def starts_of(desc: Any) -> list[int]:
    """The first element that is taken of each window."""
    windows = zip(desc.InputWindowOffsets, desc.InputWindowSizes, desc.InputWindowStrides, strict=True)
    return [offset if stride > 0 else offset + size - 1 for offset, size, stride in windows]


def _from(x: Array, starts: Sequence[int], strides: Sequence[int], sizes: Sequence[int]) -> Array:
    reached = x[tuple([slice(start, None, stride) for start, stride in zip(starts, strides, strict=True)])]
    return reached[tuple([slice(size) for size in sizes])]


def _slice(desc: DML_SLICE_OPERATOR_DESC, x: Array) -> Array:
    return _from(x, desc.Offsets, desc.Strides, desc.Sizes)


def _slice1(desc: DML_SLICE1_OPERATOR_DESC, x: Array) -> Array:
    return _from(x, starts_of(desc), desc.InputWindowStrides, desc.OutputTensor.Sizes)


def _slice_grad(desc: DML_SLICE_GRAD_OPERATOR_DESC, x: Array) -> Array:
    y = np.zeros(desc.OutputGradientTensor.Sizes, x.dtype)
    _from(y, starts_of(desc), desc.InputWindowStrides, x.shape)[...] = x
    return y


# Dimensions that are copied whole, in their order, are independent. What repeats their sizes is cut with them.


def _independent(desc: DML_SLICE_OPERATOR_DESC) -> Independence:
    whole = zip(desc.Sizes, desc.Strides, desc.InputTensor.Sizes, strict=True)
    return only(desc, [i for i, (count, stride, size) in enumerate(whole) if count == size and stride == 1])


def _independent_of_slice1(desc: DML_SLICE1_OPERATOR_DESC) -> Independence:
    whole = zip(desc.OutputTensor.Sizes, desc.InputWindowStrides, desc.InputTensor.Sizes, strict=True)
    return only(desc, [i for i, (count, stride, size) in enumerate(whole) if count == size and stride == 1])


def _independent_of_grad(desc: DML_SLICE_GRAD_OPERATOR_DESC) -> Independence:
    sizes = desc.InputGradientTensor.Sizes, desc.OutputGradientTensor.Sizes
    whole = zip(*sizes, desc.InputWindowStrides, strict=True)
    return only(desc, [i for i, (count, size, stride) in enumerate(whole) if count == size and stride == 1])


SLICE = OperatorSpec(
    operator_type=OperatorType.SLICE,
    desc=DML_SLICE_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C6)",
    reference=_slice,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor  | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, UINT32, UINT16
    """),
)

SLICE1 = OperatorSpec(
    operator_type=OperatorType.SLICE1,
    desc=DML_SLICE1_OPERATOR_DESC,
    constraints=_constraints_of_windows,
    infer_sizes=_largest_sizes,
    sizes_rule="",
    reference=_slice1,
    independent=_independent_of_slice1,
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputTensor  | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    """),
)

SLICE_GRAD = OperatorSpec(
    operator_type=OperatorType.SLICE_GRAD,
    desc=DML_SLICE_GRAD_OPERATOR_DESC,
    constraints=_constraints_of_windows,
    infer_sizes=_any_sizes,
    sizes_rule="",
    reference=_slice_grad,
    independent=_independent_of_grad,
    example={
        "InputGradientTensor": np.arange(1, 5, dtype=np.float32).reshape(1, 1, 2, 2),
        "OutputGradientTensor": DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(1, 1, 4, 4)),
        "InputWindowOffsets": (0, 0, 0, 0),
        "InputWindowSizes": (1, 1, 4, 4),
        "InputWindowStrides": (1, 1, 2, -2),
    },
    support=support_table("""
        DML_FEATURE_LEVEL_4_1 and above
        InputGradientTensor  | Input  | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputGradientTensor | Output | 1 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_1 and above
        InputGradientTensor  | Input  | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputGradientTensor | Output | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        DML_FEATURE_LEVEL_3_0 and above
        InputGradientTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        OutputGradientTensor | Output | 4 to 5 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    """),
)
