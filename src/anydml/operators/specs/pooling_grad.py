"""AVERAGE_POOLING_GRAD and MAX_POOLING_GRAD: gradients of averages and of maxima in a sliding window, back at the elements.

Decisions where the pages are silent:

1. The gradients have the sizes of what pooling gives, rounded down, or, but on a strict device, up; the page of maxima
   calls that typical alone.
2. An average's gradient is divided by what the average was divided by, in each window; of a window that counts nothing
   it is left out.
3. The first maximum of a window, row-major, takes its gradient; a number is larger than a NaN, as in MAX_POOLING. What
   falls to a window on padding alone is left out.
4. Sums of FLOAT32 and of FLOAT16 are held in double precision, windows in row-major order, and rounded once. An element
   that no window has is 0.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import DTYPES, Array
from ..constraints import at_least_1, rounded, same, sizes_of
from ..independence import only
from ..schema import (
    BOOL,
    Choices,
    ConstraintFailure,
    Count,
    OperatorDesc,
    OperatorSpec,
    Tensor,
    UINTs,
    support_table,
)
from ..window_math import Window, pooling_windows, too_large, windows_over, wrong_dimension_count
from .max_pooling import first_maxima


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC(OperatorDesc):
    """The gradients of AVERAGE_POOLING: each window's, in equal shares, at the elements under it. Not in-place.

    Where windows overlap shares are summed, in double precision, and rounded once.

    Args:
        InputGradientTensor: the gradients of the averages, {BatchCount, ChannelCount, Height, Width}, or {..., Depth,
            Height, Width} in 5-D.
        OutputGradientTensor: those of what was averaged.
        DimensionCount: the number of spatial dimensions, 2 or 3; derived from the arrays that follow.
        Strides: steps of the window, for each spatial dimension.
        WindowSize: taps of the window.
        StartPadding: elements of padding before what was averaged.
        EndPadding: elements of padding behind it.
        IncludePadding: whether padding counted in the divisor.

    Constraints:
        (C1) InputGradientTensor and OutputGradientTensor have the same DataType.
        (C2) InputGradientTensor and OutputGradientTensor have the same DimensionCount.
        (C3) DimensionCount is 2 less than the DimensionCount of InputGradientTensor.
        (C4) Strides and WindowSize are at least 1.
        (C5) WindowSize is at most the padded size of OutputGradientTensor.
        (C6) InputGradientTensor has the sizes of the batch and the channels of OutputGradientTensor, and in each spatial
            dimension floor((padded size - WindowSize) / stride) + 1, or the same rounded up, but on a strict device.

    Source: the page of DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC; since feature level 3.0.
    """

    InputGradientTensor: Tensor
    OutputGradientTensor: Tensor
    DimensionCount: Count = None
    Strides: UINTs
    WindowSize: UINTs
    StartPadding: UINTs
    EndPadding: UINTs
    IncludePadding: BOOL = False

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "DimensionCount": ("Strides", "WindowSize", "StartPadding", "EndPadding")
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_MAX_POOLING_GRAD_OPERATOR_DESC(OperatorDesc):
    """The gradients of MAX_POOLING2: each window's at its first maximum, and 0 elsewhere. Not in-place.

    Where windows share a maximum gradients are summed, in double precision, and rounded once.

    Args:
        InputTensor: what MAX_POOLING2 was given, {BatchCount, ChannelCount, Height, Width}.
        InputGradientTensor: the gradients of the maxima.
        OutputGradientTensor: those of what MAX_POOLING2 was given.
        DimensionCount: the number of spatial dimensions, 2; derived from the arrays that follow.
        Strides: steps of the window, for each spatial dimension.
        WindowSize: taps of the window.
        StartPadding: elements of padding before the input, which are never the maximum.
        EndPadding: elements of padding behind the input, likewise.
        Dilations: distance of neighbouring taps; 1 for a dense window.

    Constraints:
        (C1) InputTensor, InputGradientTensor and OutputGradientTensor have the same DataType.
        (C2) DimensionCount is 2 less than the DimensionCount of InputTensor.
        (C3) Strides, WindowSize and Dilations are at least 1.
        (C4) The window's extent, (WindowSize - 1) * Dilation + 1, is at most the padded size.
        (C5) InputGradientTensor has the sizes of the batch and the channels of InputTensor, and in each spatial
            dimension floor((padded size - extent) / stride) + 1, or the same rounded up, but on a strict device.
        (C6) OutputGradientTensor has the sizes of InputTensor.

    Source: the page of DML_MAX_POOLING_GRAD_OPERATOR_DESC; since feature level 3.0.
    """

    InputTensor: Tensor
    InputGradientTensor: Tensor
    OutputGradientTensor: Tensor
    DimensionCount: Count = None
    Strides: UINTs
    WindowSize: UINTs
    StartPadding: UINTs
    EndPadding: UINTs
    Dilations: UINTs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "DimensionCount": ("Strides", "WindowSize", "StartPadding", "EndPadding", "Dilations")
    }


_Average = DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC
_Max = DML_MAX_POOLING_GRAD_OPERATOR_DESC


def windows(desc: _Average | _Max) -> list[Window]:
    """Those over what was pooled."""
    if isinstance(desc, _Max):
        return pooling_windows(desc)
    return windows_over(desc, "OutputGradientTensor", "WindowSize")


def _average_constraints(desc: _Average) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputGradientTensor", "OutputGradientTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputGradientTensor", "OutputGradientTensor")
    yield from wrong_dimension_count(desc, "(C3)", "InputGradientTensor")
    yield from at_least_1(desc, "(C4)", "Strides", "WindowSize")
    yield from too_large("(C5)", windows(desc), "WindowSize")
    yield from _no_places(desc, "(C6)", desc.OutputGradientTensor)


def _max_constraints(desc: _Max) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "InputGradientTensor", "OutputGradientTensor")
    yield from wrong_dimension_count(desc, "(C2)")
    yield from at_least_1(desc, "(C3)", "Strides", "WindowSize", "Dilations")
    yield from too_large("(C4)", windows(desc), "WindowSize")
    yield from _no_places(desc, "(C5)", desc.InputTensor)


def _no_places(desc: _Average | _Max, label: str, pooled: Tensor) -> Iterator[ConstraintFailure]:
    """Sizes of InputGradientTensor that pooling does not give."""
    under, found = windows(desc), desc.InputGradientTensor.Sizes
    if not under or len(found) != len(pooled.Sizes) or any(window.extent > window.padded for window in under):
        return
    right = [*((size,) for size in pooled.Sizes[:2]), *(window.places for window in under)]
    for i, (size, choice) in enumerate(zip(found, right, strict=True)):
        if size not in choice:
            expected = " or ".join(map(str, choice))
            yield ConstraintFailure(label, f"InputGradientTensor.Sizes[{i}]", str(size), expected)


def _any_sizes(desc: _Average) -> dict[str, Choices]:
    return {}


def _sizes_of_input(desc: _Max) -> dict[str, Choices]:
    return {"OutputGradientTensor": sizes_of(desc.InputTensor)}


def counts(desc: _Average) -> list[list[int]]:
    """For each spatial dimension the factor of the divisor at each place."""
    places = desc.InputGradientTensor.Sizes[2:]
    with_padding = bool(desc.IncludePadding)
    return [
        [window.counted(o, with_padding) for o in range(many)]
        for window, many in zip(windows(desc), places, strict=True)
    ]


def steps(desc: _Average | _Max) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """For each tap that lies on elements at some places: those places, and those elements. Taps come from the last to
    the first, so that each element meets its windows in their row-major order."""
    many = desc.InputGradientTensor.Sizes[2:]
    each = [[*window.tap_slices(places)][::-1] for window, places in zip(windows(desc), many, strict=True)]
    for taps in product(*each):
        _, of_places, of_elements = zip(*taps, strict=True)
        yield of_places, of_elements


def _average_grad(desc: _Average, gradient: Array) -> Array:
    # Python's integers: with padding there may be more than 2^63 taps.
    each = [np.array(along, object) for along in counts(desc)]
    count = functools.reduce(np.multiply.outer, each).astype(np.float64)
    y = np.zeros(desc.OutputGradientTensor.Sizes)
    with np.errstate(all="ignore"):
        # A window without a count has no tap on an element.
        shares = gradient.astype(np.float64) / np.maximum(count, 1)
        for places, elements in steps(desc):
            y[:, :, *elements] += shares[:, :, *places]
        return rounded(y, DTYPES[desc.OutputGradientTensor.DataType])


def _max_grad(desc: _Max, x: Array, gradient: Array) -> Array:
    under, many = windows(desc), gradient.shape[2:]
    _, index = first_maxima(under, many, x)
    has_elements = functools.reduce(
        np.multiply.outer, [_are_on_elements(window, places) for window, places in zip(under, many, strict=True)]
    )
    chosen = np.broadcast_to(has_elements, gradient.shape)
    y = np.zeros(x.size)
    with np.errstate(all="ignore"):
        # One by one, as an index may come more than once.
        np.add.at(y, index[chosen], gradient[chosen].astype(np.float64))
        return rounded(y.reshape(x.shape), x.dtype)


def _are_on_elements(window: Window, places: int) -> Array:
    return np.array([window.counted(o, False) > 0 for o in range(places)])


AVERAGE_POOLING_GRAD = OperatorSpec(
    operator_type=OperatorType.AVERAGE_POOLING_GRAD,
    desc=DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC,
    constraints=_average_constraints,
    infer_sizes=_any_sizes,
    sizes_rule="",
    reference=_average_grad,
    independent=lambda desc: only(desc, (0, 1)),
    support=support_table("""
        DML_FEATURE_LEVEL_3_0 and above
        InputGradientTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16
        OutputGradientTensor | Output | 4 to 5 | FLOAT32, FLOAT16
    """),
)

MAX_POOLING_GRAD = OperatorSpec(
    operator_type=OperatorType.MAX_POOLING_GRAD,
    desc=DML_MAX_POOLING_GRAD_OPERATOR_DESC,
    constraints=_max_constraints,
    infer_sizes=_sizes_of_input,
    sizes_rule="(C6)",
    reference=_max_grad,
    independent=lambda desc: only(desc, (0, 1)),
    support=support_table("""
        DML_FEATURE_LEVEL_3_0 and above
        InputTensor          | Input  | 4 | FLOAT32, FLOAT16
        InputGradientTensor  | Input  | 4 | FLOAT32, FLOAT16
        OutputGradientTensor | Output | 4 | FLOAT32, FLOAT16
    """),
)
