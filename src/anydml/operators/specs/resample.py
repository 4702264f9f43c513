"""RESAMPLE and its revisions, and their gradients: a tensor at other places of its dimensions.

Decisions, where the pages are silent or contradict themselves:

1. Output element o of a dimension is at x = (o - OutputPixelOffset) / Scale - InputPixelOffset of the input, which is the
   pages' formula solved for it; RESAMPLE has the offsets 1/2 and -1/2. x is brought into 0 to the last element first.
2. Places are exact. A Scale stands for the simplest fraction that single precision rounds to it, so that 0.33333334 is a
   third, and ties and whole places are where the ratio of two sizes has them. Offsets are taken as they are.
3. The nearest element is floor(x + 1/2) in RESAMPLE, RESAMPLE1 and RESAMPLE_GRAD: of two as near the later one. The pages
   say that it is RESAMPLE2 with DECREASING and -0.5 more in OutputPixelOffsets; that is right of InputPixelOffsets. Their
   example of a gradient, which names no offsets, is that of 1/2 and 0. RoundingDirection rounds x itself, up or down.
4. LINEAR is computed in double precision, dimension by dimension, from the first to the last, and rounded once; to integers
   the nearest, of two the even one. A neighbour at a distance of 1 counts for nothing, be it infinite or NaN.
5. Antialiased stretches the filter of LINEAR by 1 / Scale wherever Scale is below 1: the page says so of 1 / Scale > 2, and
   its factor max(1, 1 / Scale) of all. What the filter reaches beyond an end is the end's, and weights are divided by
   their sum, as ONNX has it.
6. A gradient adds what an element gave to the outputs, in the order of the outputs, likewise. What gave nothing gets 0.
7. OutputTensor may have any sizes. Those that a function infers are floor(size * Scale) and at least 1; of a gradient
   floor(size / Scale). Scales are positive and finite, offsets finite. Not in-place. What is nearest is copied by bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor, isfinite
from typing import Any, ClassVar

import numpy as np

from ...core import enums
from ...core.enums import AxisDirection, InterpolationMode, OperatorType
from ...core.strided_layout import Array
from ..constraints import same
from ..independence import only
from ..interpolation import Taps, copied, linear, places_of, simplest, stretched, summed, transposed
from ..schema import (
    BOOL,
    Choices,
    ConstraintFailure,
    Count,
    FLOATs,
    Independence,
    OperatorDesc,
    OperatorSpec,
    Tensor,
    support_table,
)

_COUNTS = {"DimensionCount": ("Scales", "InputPixelOffsets", "OutputPixelOffsets")}


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_RESAMPLE_OPERATOR_DESC(OperatorDesc):
    """Resamples a tensor by its pixels' centres.

    Args:
        InputTensor: the elements.
        OutputTensor: what they are at its places, of any sizes.
        InterpolationMode: the nearest element, or LINEAR between two in each dimension.
        ScaleCount: the number of dimensions; derived from Scales.
        Scales: how many places of the output one of the input is long, for each dimension.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) ScaleCount is that of InputTensor.
        (C4) Scales are positive and finite.

    Source: the page of DML_RESAMPLE_OPERATOR_DESC; since feature level 2.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    InterpolationMode: enums.InterpolationMode
    ScaleCount: Count = None
    Scales: FLOATs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"ScaleCount": ("Scales",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_RESAMPLE1_OPERATOR_DESC(OperatorDesc):
    """Resamples a tensor, with offsets of its own.

    Args:
        InputTensor: the elements.
        OutputTensor: what they are at its places, of any sizes.
        InterpolationMode: the nearest element, or LINEAR between two in each dimension.
        DimensionCount: the number of dimensions; derived from the arrays that follow.
        Scales: how many places of the output one of the input is long, for each dimension.
        InputPixelOffsets: added to the input's places before they are scaled; 0.5 for the centres of pixels.
        OutputPixelOffsets: added behind; -0.5 for the centres of pixels.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) DimensionCount is that of InputTensor.
        (C4) Scales are positive and finite.
        (C5) InputPixelOffsets and OutputPixelOffsets are finite.

    Source: the page of DML_RESAMPLE1_OPERATOR_DESC; since feature level 2.1.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    InterpolationMode: enums.InterpolationMode
    DimensionCount: Count = None
    Scales: FLOATs
    InputPixelOffsets: FLOATs
    OutputPixelOffsets: FLOATs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = _COUNTS


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_RESAMPLE_GRAD_OPERATOR_DESC(OperatorDesc):
    """The gradients of RESAMPLE1.

    Args:
        InputGradientTensor: the gradients of the outputs.
        OutputGradientTensor: those of the inputs, of any sizes.
        InterpolationMode: the nearest element, or LINEAR between two in each dimension.
        DimensionCount: the number of dimensions; derived from the arrays that follow.
        Scales: how many places of the output one of the input is long, for each dimension.
        InputPixelOffsets: added to the input's places before they are scaled; 0.5 for the centres of pixels.
        OutputPixelOffsets: added behind; -0.5 for the centres of pixels.

    Constraints:
        (C1) InputGradientTensor and OutputGradientTensor have the same DataType.
        (C2) InputGradientTensor and OutputGradientTensor have the same DimensionCount.
        (C3) DimensionCount is that of InputGradientTensor.
        (C4) Scales are positive and finite.
        (C5) InputPixelOffsets and OutputPixelOffsets are finite.

    Source: the page of DML_RESAMPLE_GRAD_OPERATOR_DESC; since feature level 3.0.
    """

    InputGradientTensor: Tensor
    OutputGradientTensor: Tensor
    InterpolationMode: enums.InterpolationMode
    DimensionCount: Count = None
    Scales: FLOATs
    InputPixelOffsets: FLOATs
    OutputPixelOffsets: FLOATs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = _COUNTS


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_RESAMPLE2_OPERATOR_DESC(OperatorDesc):
    """Resamples a tensor, rounding places up or down.

    Args:
        InputTensor: the elements.
        OutputTensor: what they are at its places, of any sizes.
        InterpolationMode: the nearest element, or LINEAR between two in each dimension.
        RoundingDirection: where to a place between two elements is rounded by NEAREST_NEIGHBOR: INCREASING is up.
        DimensionCount: the number of dimensions; derived from the arrays that follow.
        Scales: how many places of the output one of the input is long, for each dimension.
        InputPixelOffsets: added to the input's places before they are scaled; 0.5 for the centres of pixels.
        OutputPixelOffsets: added behind; -0.5 for the centres of pixels.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) DimensionCount is that of InputTensor.
        (C4) Scales are positive and finite.
        (C5) InputPixelOffsets and OutputPixelOffsets are finite.

    Source: the page of DML_RESAMPLE2_OPERATOR_DESC; since feature level 5.1.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    InterpolationMode: enums.InterpolationMode
    RoundingDirection: enums.AxisDirection
    DimensionCount: Count = None
    Scales: FLOATs
    InputPixelOffsets: FLOATs
    OutputPixelOffsets: FLOATs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = _COUNTS


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_RESAMPLE_GRAD1_OPERATOR_DESC(OperatorDesc):
    """The gradients of RESAMPLE2.

    Args:
        InputGradientTensor: the gradients of the outputs.
        OutputGradientTensor: those of the inputs, of any sizes.
        InterpolationMode: the nearest element, or LINEAR between two in each dimension.
        RoundingDirection: where to a place between two elements is rounded by NEAREST_NEIGHBOR: INCREASING is up.
        DimensionCount: the number of dimensions; derived from the arrays that follow.
        Scales: how many places of the output one of the input is long, for each dimension.
        InputPixelOffsets: added to the input's places before they are scaled; 0.5 for the centres of pixels.
        OutputPixelOffsets: added behind; -0.5 for the centres of pixels.

    Constraints:
        (C1) InputGradientTensor and OutputGradientTensor have the same DataType.
        (C2) InputGradientTensor and OutputGradientTensor have the same DimensionCount.
        (C3) DimensionCount is that of InputGradientTensor.
        (C4) Scales are positive and finite.
        (C5) InputPixelOffsets and OutputPixelOffsets are finite.

    Source: the page of DML_RESAMPLE_GRAD1_OPERATOR_DESC; since feature level 5.1.
    """

    InputGradientTensor: Tensor
    OutputGradientTensor: Tensor
    InterpolationMode: enums.InterpolationMode
    RoundingDirection: enums.AxisDirection
    DimensionCount: Count = None
    Scales: FLOATs
    InputPixelOffsets: FLOATs
    OutputPixelOffsets: FLOATs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = _COUNTS


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_RESAMPLE3_OPERATOR_DESC(OperatorDesc):
    """Resamples a tensor, antialiased if so wanted.

    Args:
        InputTensor: the elements.
        OutputTensor: what they are at its places, of any sizes.
        InterpolationMode: the nearest element, or LINEAR between two in each dimension.
        RoundingDirection: where to a place between two elements is rounded by NEAREST_NEIGHBOR: INCREASING is up.
        DimensionCount: the number of dimensions; derived from the arrays that follow.
        Scales: how many places of the output one of the input is long, for each dimension.
        InputPixelOffsets: added to the input's places before they are scaled; 0.5 for the centres of pixels.
        OutputPixelOffsets: added behind; -0.5 for the centres of pixels.
        Antialiased: whether LINEAR takes all elements that a place of the output stands for, where Scale is below 1.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) DimensionCount is that of InputTensor.
        (C4) Scales are positive and finite.
        (C5) InputPixelOffsets and OutputPixelOffsets are finite.

    Source: the page of DML_RESAMPLE3_OPERATOR_DESC; since feature level 6.4.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    InterpolationMode: enums.InterpolationMode
    RoundingDirection: enums.AxisDirection
    DimensionCount: Count = None
    Scales: FLOATs
    InputPixelOffsets: FLOATs
    OutputPixelOffsets: FLOATs
    Antialiased: BOOL

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = _COUNTS


def _constraints(desc: Any) -> Iterator[ConstraintFailure]:
    yield from _alike(desc, "(C1)", "(C2)", "(C3)")
    yield from _scaled(desc, "(C4)")


def _constraints_with_offsets(desc: Any) -> Iterator[ConstraintFailure]:
    yield from _alike(desc, "(C1)", "(C2)", "(C3)")
    yield from _scaled(desc, "(C4)")
    for name in ("InputPixelOffsets", "OutputPixelOffsets"):
        for i, offset in enumerate(getattr(desc, name)):
            if not isfinite(offset):
                yield ConstraintFailure("(C5)", f"{name}[{i}]", str(offset), "a finite number")


def _alike(desc: Any, of_types: str, of_ranks: str, of_count: str) -> Iterator[ConstraintFailure]:
    first, second, *_ = desc.__dataclass_fields__
    yield from same(desc, of_types, "DataType", first, second)
    yield from same(desc, of_ranks, "DimensionCount", first, second)
    (count,) = desc.counts
    rank = len(getattr(desc, first).Sizes)
    if getattr(desc, count) != rank:
        yield ConstraintFailure(of_count, count, str(getattr(desc, count)), f"{rank}, that of {first}")


def _scaled(desc: Any, label: str) -> Iterator[ConstraintFailure]:
    for i, scale in enumerate(desc.Scales):
        if not (scale > 0 and isfinite(scale)):
            yield ConstraintFailure(label, f"Scales[{i}]", str(scale), "a positive number that is not infinite")


def _infer_sizes(desc: Any) -> dict[str, Choices]:
    first, second, *_ = desc.__dataclass_fields__
    sizes = getattr(desc, first).Sizes
    if len(sizes) != len(desc.Scales) or not all(scale > 0 and isfinite(scale) for scale in desc.Scales):
        return {}
    scales = [1 / ratio if first != "InputTensor" else ratio for ratio in map(simplest, desc.Scales)]
    return {second: tuple((max(floor(size * scale), 1),) for size, scale in zip(sizes, scales, strict=True))}


def taps_of(desc: Any) -> list[Taps]:
    """For each dimension of the output."""
    first, second, *_ = desc.__dataclass_fields__
    is_gradient = first != "InputTensor"
    sizes = getattr(desc, first).Sizes, getattr(desc, second).Sizes
    x_sizes, y_sizes = sizes[::-1] if is_gradient else sizes
    rank = len(x_sizes)
    offsets = [
        getattr(desc, name, (half,) * rank) for name, half in (("InputPixelOffsets", 0.5), ("OutputPixelOffsets", -0.5))
    ]
    taps = [_taps(desc, *each) for each in zip(x_sizes, y_sizes, desc.Scales, *offsets, strict=True)]
    return [transposed(*each) for each in zip(taps, x_sizes, strict=True)] if is_gradient else taps


def _taps(desc: Any, size: int, out_size: int, scale: float, in_offset: float, out_offset: float) -> Taps:
    """Of elements of the output."""
    ratio = simplest(scale)
    n, d = places_of(size, out_size, ratio, in_offset, out_offset)
    if desc.InterpolationMode == InterpolationMode.LINEAR:
        return stretched(n, d, ratio, size) if getattr(desc, "Antialiased", False) and ratio < 1 else linear(n, d)
    direction = getattr(desc, "RoundingDirection", None)
    if direction is None:
        return copied((2 * n + d) // (2 * d))
    return copied(n // d if direction == AxisDirection.DECREASING else -(-n // d))


def _reference(desc: Any, x: Array) -> Array:
    taps = taps_of(desc)
    if copies(desc):
        for axis, each in enumerate(taps):
            x = np.take(x, each.first, axis)
        return x
    with np.errstate(all="ignore"):
        y = summed(x.astype(np.float64), taps)
        return (np.rint(y) if x.dtype.kind != "f" else y).astype(x.dtype)


def copies(desc: Any) -> bool:
    """Whether each element of the output is one of the input."""
    return desc.InterpolationMode == InterpolationMode.NEAREST_NEIGHBOR and hasattr(desc, "InputTensor")


def _independent(desc: Any) -> Independence:
    sizes: Sequence[int] = getattr(desc, next(iter(desc.__dataclass_fields__))).Sizes
    return only(
        desc, [i for i, (taps, size) in enumerate(zip(taps_of(desc), sizes, strict=True)) if taps.is_identity(size)]
    )


_specified = partial(
    OperatorSpec, infer_sizes=_infer_sizes, sizes_rule="", reference=_reference, independent=_independent
)

RESAMPLE = _specified(
    operator_type=OperatorType.RESAMPLE,
    desc=DML_RESAMPLE_OPERATOR_DESC,
    constraints=_constraints,
    support=support_table("""
        DML_FEATURE_LEVEL_6_2 and above
        InputTensor  | Input  | 1 to 4 | FLOAT32, FLOAT16, INT8, UINT8
        OutputTensor | Output | 1 to 4 | FLOAT32, FLOAT16, INT8, UINT8
        DML_FEATURE_LEVEL_5_1 and above
        InputTensor  | Input  | 1 to 4 | FLOAT32, FLOAT16
        OutputTensor | Output | 1 to 4 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_2_0 and above
        InputTensor  | Input  | 4 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 | FLOAT32, FLOAT16
    """),
)

RESAMPLE1 = _specified(
    operator_type=OperatorType.RESAMPLE1,
    desc=DML_RESAMPLE1_OPERATOR_DESC,
    constraints=_constraints_with_offsets,
    support=support_table("""
        DML_FEATURE_LEVEL_6_2 and above
        InputTensor  | Input  | 1 to 4 | FLOAT32, FLOAT16, INT8, UINT8
        OutputTensor | Output | 1 to 4 | FLOAT32, FLOAT16, INT8, UINT8
        DML_FEATURE_LEVEL_5_1 and above
        InputTensor  | Input  | 1 to 4 | FLOAT32, FLOAT16
        OutputTensor | Output | 1 to 4 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_2_1 and above
        InputTensor  | Input  | 4 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 | FLOAT32, FLOAT16
    """),
)

RESAMPLE_GRAD = _specified(
    operator_type=OperatorType.RESAMPLE_GRAD,
    desc=DML_RESAMPLE_GRAD_OPERATOR_DESC,
    constraints=_constraints_with_offsets,
    support=support_table("""
        DML_FEATURE_LEVEL_5_1 and above
        InputGradientTensor  | Input  | 1 to 4 | FLOAT32, FLOAT16
        OutputGradientTensor | Output | 1 to 4 | FLOAT32, FLOAT16
        DML_FEATURE_LEVEL_3_0 and above
        InputGradientTensor  | Input  | 4 | FLOAT32, FLOAT16
        OutputGradientTensor | Output | 4 | FLOAT32, FLOAT16
    """),
)

RESAMPLE2 = _specified(
    operator_type=OperatorType.RESAMPLE2,
    desc=DML_RESAMPLE2_OPERATOR_DESC,
    constraints=_constraints_with_offsets,
    support=support_table("""
        DML_FEATURE_LEVEL_6_2 and above
        InputTensor  | Input  | 1 to 4 | FLOAT32, FLOAT16, INT8, UINT8
        OutputTensor | Output | 1 to 4 | FLOAT32, FLOAT16, INT8, UINT8
        DML_FEATURE_LEVEL_5_1 and above
        InputTensor  | Input  | 1 to 4 | FLOAT32, FLOAT16
        OutputTensor | Output | 1 to 4 | FLOAT32, FLOAT16
    """),
)

RESAMPLE_GRAD1 = _specified(
    operator_type=OperatorType.RESAMPLE_GRAD1,
    desc=DML_RESAMPLE_GRAD1_OPERATOR_DESC,
    constraints=_constraints_with_offsets,
    support=support_table("""
        DML_FEATURE_LEVEL_5_1 and above
        InputGradientTensor  | Input  | 1 to 4 | FLOAT32, FLOAT16
        OutputGradientTensor | Output | 1 to 4 | FLOAT32, FLOAT16
    """),
)

RESAMPLE3 = _specified(
    operator_type=OperatorType.RESAMPLE3,
    desc=DML_RESAMPLE3_OPERATOR_DESC,
    constraints=_constraints_with_offsets,
    support=support_table("""
        DML_FEATURE_LEVEL_6_4 and above
        InputTensor  | Input  | 1 to 4 | FLOAT32, FLOAT16, INT8, UINT8
        OutputTensor | Output | 1 to 4 | FLOAT32, FLOAT16, INT8, UINT8
    """),
)
