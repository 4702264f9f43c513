"""CONVOLUTION, forward and backward (transposed), in 1 to 3 spatial dimensions.

Decisions where the page is silent: forward, a filter has the sizes {output channels, input channels / groups, ...}, and
backward {input channels, output channels / groups, ...}, as in ONNX and PyTorch. Backward is the transpose of the forward
convolution from the output, so that paddings cut the output, and several of its sizes give the same input; elements that
no tap reaches are 0. OutputPadding enlarges what a convolution gives in either direction, by zeros, before bias and
activation; for a larger transposed convolution let OutputTensor be larger, and OutputPadding be 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from ...core import enums
from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import WIDER, at_least_1, rounded, same, widened
from ..fused_activation import activated
from ..schema import (
    UINT,
    Choices,
    ConstraintFailure,
    Count,
    Independence,
    OperatorDesc,
    OperatorSpec,
    OptionalActivation,
    OptionalTensor,
    Tensor,
    UINTs,
    support_table,
)
from ..window_math import Window, too_large, windows_of, wrong_dimension_count


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_CONVOLUTION_OPERATOR_DESC(OperatorDesc):
    """FusedActivation(convolution of the input with the filter + bias), in groups of channels.

    Along each spatial dimension, with s = Strides, p = StartPadding, d = Dilations and taps k of the filter w:
    FORWARD, y[o] is the sum of w[k] * x[o * s - p + k * d], to which taps on padding add nothing; BACKWARD, y[j] is the
    sum of w[k] * x[o] over all o and k with o * s - p + k * d = j. In mode CONVOLUTION, w is counted from its end.

    FLOAT32 is computed in double and FLOAT16 in single precision, the terms in any order, and rounded once, after the
    activation. Native code computes FLOAT32 in single precision, too. On GPUs a tap on padding is a product with 0, which
    is NaN where its weight is infinite. Not in-place.

    Args:
        InputTensor: {BatchCount, InputChannelCount, Height, Width}, with Depth before Height in 5-D, only Width in 3-D.
        FilterTensor: FORWARD {OutputChannelCount, InputChannelCount / GroupCount, ...},
            BACKWARD {InputChannelCount, OutputChannelCount / GroupCount, ...}.
        BiasTensor: {1, OutputChannelCount, 1, ...}; None for none.
        OutputTensor: {BatchCount, OutputChannelCount, ...}.
        Mode: CROSS_CORRELATION takes the filter as it is, CONVOLUTION turns it round in every spatial dimension.
        Direction: FORWARD, or BACKWARD for a transposed convolution.
        DimensionCount: the number of spatial dimensions, 1 to 3; derived from the arrays that follow.
        Strides: steps of the filter, for each spatial dimension.
        Dilations: distance of neighbouring taps; 1 for a dense filter.
        StartPadding: elements of padding before the input; BACKWARD, elements cut off before the output.
        EndPadding: elements of padding behind the input; BACKWARD, elements cut off behind the output.
        OutputPadding: zeros put behind the result, to which bias and activation are still applied.
        GroupCount: groups that the channels are divided into, each with its own part of the filter; with as many as
            there are channels, the convolution is depthwise.
        FusedActivation: what is applied to the result; None for nothing.

    Constraints:
        (C1) InputTensor, FilterTensor, BiasTensor and OutputTensor have the same DataType.
        (C2) InputTensor, FilterTensor, BiasTensor and OutputTensor have the same DimensionCount.
        (C3) DimensionCount is 2 less than the DimensionCount of InputTensor.
        (C4) Strides, Dilations and GroupCount are at least 1.
        (C5) GroupCount divides the channels of InputTensor, and FORWARD those of OutputTensor.
        (C6) FilterTensor has the input's channels, FORWARD those of a group.
        (C7) BiasTensor has a size of OutputChannelCount at index 1, and of 1 elsewhere.
        (C8) With an extent of (filter size - 1) * Dilation + 1, FORWARD the filter's extent is at most the padded size;
            BACKWARD the paddings leave at least one element.
        (C9) OutputTensor has the sizes of the batch and of the output's channels, and in each spatial dimension,
            OutputPadding left out, FORWARD floor((padded size - extent) / Stride) + 1;
            BACKWARD (input size - 1) * Stride + extent - StartPadding - EndPadding, or up to max(Stride, Dilation) - 1
            more.

    Source: the page of DML_CONVOLUTION_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    FilterTensor: Tensor
    BiasTensor: OptionalTensor = None
    OutputTensor: Tensor
    Mode: enums.ConvolutionMode
    Direction: enums.ConvolutionDirection
    DimensionCount: Count = None
    Strides: UINTs
    Dilations: UINTs
    StartPadding: UINTs
    EndPadding: UINTs
    OutputPadding: UINTs
    GroupCount: UINT
    FusedActivation: OptionalActivation = None

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "DimensionCount": ("Strides", "Dilations", "StartPadding", "EndPadding", "OutputPadding")
    }


_Desc = DML_CONVOLUTION_OPERATOR_DESC


# What takes any desc is for convolutions of integers, too, which have no Mode, Direction, OutputPadding nor activation.


def _is_forward(desc: Any) -> bool:
    return getattr(desc, "Direction", enums.ConvolutionDirection.FORWARD) == enums.ConvolutionDirection.FORWARD


def _output_padding(desc: Any) -> Sequence[int]:
    return getattr(desc, "OutputPadding", (0,) * len(desc.Strides))


def output_channels(desc: Any) -> int:
    sizes: Sequence[int] = desc.FilterTensor.Sizes
    return sizes[0] if _is_forward(desc) else sizes[1] * int(desc.GroupCount)


def _is_computable(desc: Any) -> bool:
    ranks = {len(desc.InputTensor.Sizes), len(desc.FilterTensor.Sizes)}
    return ranks == {len(desc.Strides) + 2} and min((*desc.Strides, *desc.Dilations), default=0) >= 1


def filter_windows(desc: Any, sizes: Sequence[int]) -> list[Window]:
    """The filter's over spatial sizes: FORWARD those of the input, BACKWARD those of the output."""
    taps = desc.FilterTensor.Sizes[2:]
    return windows_of(sizes, taps, desc.Strides, desc.StartPadding, desc.EndPadding, desc.Dilations)


def _places(desc: Any) -> list[tuple[int, ...] | range]:
    """The spatial sizes that are right for the output; an empty range where padding leaves nothing."""
    sizes = desc.InputTensor.Sizes[2:]
    places: list[tuple[int, ...] | range] = []
    for window, padding in zip(filter_windows(desc, sizes), _output_padding(desc), strict=True):
        if _is_forward(desc):
            places.append((window.places[0] + padding,))
        else:
            first = (window.size - 1) * window.stride + window.extent - window.start - window.end
            last = first + max(window.stride, window.dilation) - 1
            places.append(range(max(1, first) + padding, last + padding + 1))
    return places


def _constraints(desc: _Desc) -> Iterator[ConstraintFailure]:
    names = ["InputTensor", "FilterTensor", *(["BiasTensor"] if desc.BiasTensor is not None else []), "OutputTensor"]
    yield from same(desc, "(C1)", "DataType", *names)
    yield from same(desc, "(C2)", "DimensionCount", *names)
    yield from filter_constraints(desc, "(C3)", "(C4)", ("(C5)", "(C6)", "(C7)"), "(C8)")


def filter_constraints(
    desc: Any, count: str, zero: str, channels: tuple[str, str, str], fit: str
) -> Iterator[ConstraintFailure]:
    """Those of convolutions in general, each by its label; `channels` of their division into groups, of the filter, and
    of a bias."""
    yield from wrong_dimension_count(desc, count)
    yield from at_least_1(desc, zero, "Strides", "Dilations")
    if desc.GroupCount < 1:
        yield ConstraintFailure(zero, "GroupCount", str(desc.GroupCount), "at least 1")
    if len(desc.InputTensor.Sizes) == len(desc.FilterTensor.Sizes) >= 2 and desc.GroupCount >= 1:
        yield from _wrong_channels(desc, *channels)
    if _is_computable(desc):
        if _is_forward(desc):
            yield from too_large(fit, filter_windows(desc, desc.InputTensor.Sizes[2:]), "FilterTensor.Sizes", 2)
        else:
            for i, places in enumerate(_places(desc)):
                if not places:
                    found = f"{desc.StartPadding[i]}, with an EndPadding of {desc.EndPadding[i]}"
                    yield ConstraintFailure(
                        fit, f"StartPadding[{i}]", found, "paddings that leave at least one element"
                    )


def _wrong_channels(desc: Any, division: str, matching: str, of_bias: str) -> Iterator[ConstraintFailure]:
    channels, groups, filters = desc.InputTensor.Sizes[1], desc.GroupCount, desc.FilterTensor.Sizes
    if channels % groups:
        yield ConstraintFailure(
            division, "GroupCount", str(groups), f"a divisor of {channels}, the channels of InputTensor"
        )
    elif _is_forward(desc) and filters[0] % groups:
        yield ConstraintFailure(
            division, "GroupCount", str(groups), f"a divisor of {filters[0]}, the channels of OutputTensor"
        )
    i, wanted = (1, channels // groups) if _is_forward(desc) else (0, channels)
    if filters[i] != wanted and not channels % groups:
        expected = f"{wanted}, the channels of {'a group of ' if groups > 1 and i == 1 else ''}InputTensor"
        yield ConstraintFailure(matching, f"FilterTensor.Sizes[{i}]", str(filters[i]), expected)
    bias = getattr(desc, "BiasTensor", None)
    if bias is not None and len(bias.Sizes) == len(filters):
        wanted_sizes = (1, output_channels(desc), *[1] * (len(filters) - 2))
        if bias.Sizes != wanted_sizes:
            yield ConstraintFailure(of_bias, "BiasTensor.Sizes", str(bias.Sizes), str(wanted_sizes))


def infer_sizes(desc: Any) -> dict[str, Choices]:
    if not _is_computable(desc):
        return {}
    places = _places(desc)
    if not all(size and size[0] > 0 for size in places):
        return {}
    return {"OutputTensor": ((desc.InputTensor.Sizes[0],), (output_channels(desc),), *places)}


def _reference(desc: _Desc, x: Array, w: Array, bias: Array | None) -> Array:
    with np.errstate(all="ignore"):
        y = convolved(desc, x, w, WIDER[x.dtype])
        if bias is not None:
            y += widened(bias)
        return rounded(activated(desc.FusedActivation, y), x.dtype)


def convolved(
    desc: Any,
    x: Array,
    w: Array,
    dtype: np.dtype[Any],
    of_input: Callable[[Array], Array] = widened,
    of_filter: Callable[[Array], Array] = widened,
) -> Array:
    """One product of matrices for each tap: of what it weighs, at all places where it lies on elements.

    Args:
        dtype: the type that is computed in.
        of_input: elements as what is multiplied.
        of_filter: likewise weights, {groups, output channels of a group, input channels of it}.
    """
    groups, output = desc.GroupCount, desc.OutputTensor.Sizes
    forward = _is_forward(desc)
    if getattr(desc, "Mode", None) == enums.ConvolutionMode.CONVOLUTION:
        w = np.flip(w, tuple(range(2, w.ndim)))
    x = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    if not forward:
        w = w.swapaxes(1, 2)
    y = np.zeros((output[0], groups, w.shape[1], *output[2:]), dtype)
    found = [size - padding for size, padding in zip(output[2:], _output_padding(desc), strict=True)]
    large, small = (x.shape[3:], found) if forward else (found, x.shape[3:])
    slices = [window.tap_slices(places) for window, places in zip(filter_windows(desc, large), small, strict=True)]
    for each in product(*slices):
        tap, places, elements = zip(*each, strict=True)
        read, written = (elements, places) if forward else (places, elements)
        weights, weighed = of_filter(w[(..., *tap)]), of_input(x[(..., *read)])
        terms = np.matmul(weights, weighed.reshape(*weighed.shape[:3], -1))
        y[(..., *written)] += terms.reshape(*terms.shape[:3], *weighed.shape[3:])
    return y.reshape(output)


def _independent(desc: _Desc) -> Independence:
    """The batch, and of a single group the output's channels, which the filter has first, BACKWARD second."""
    spatial = [None] * len(desc.Strides)
    channels = 1 if desc.GroupCount == 1 else None
    of_filter = [channels, None] if _is_forward(desc) else [None, channels]
    bias = {} if desc.BiasTensor is None else {"BiasTensor": [None, channels, *spatial]}
    return {
        "InputTensor": [0, None, *spatial],
        "FilterTensor": [*of_filter, *spatial],
        **bias,
        "OutputTensor": [0, channels, *spatial],
    }


CONVOLUTION = OperatorSpec(
    operator_type=OperatorType.CONVOLUTION,
    desc=DML_CONVOLUTION_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=infer_sizes,
    sizes_rule="(C9)",
    reference=_reference,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_4_0 and above
        InputTensor  | Input          | 3 to 5 | FLOAT32, FLOAT16
        FilterTensor | Input          | 3 to 5 | FLOAT32, FLOAT16
        BiasTensor   | Optional input | 3 to 5 | FLOAT32, FLOAT16
        OutputTensor | Output         | 3 to 5 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input          | 4 to 5 | FLOAT32, FLOAT16
        FilterTensor | Input          | 4 to 5 | FLOAT32, FLOAT16
        BiasTensor   | Optional input | 4 to 5 | FLOAT32, FLOAT16
        OutputTensor | Output         | 4 to 5 | FLOAT32, FLOAT16
    """),
)
