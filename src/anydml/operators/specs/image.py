"""UPSAMPLE_2D and VALUE_SCALE_2D: images enlarged by whole factors, and their channels scaled and shifted.

Decisions where the pages are silent: both are computed in double precision and rounded once; neither runs in-place.
UPSAMPLE_2D takes the centres of pixels for their places, as ONNX's half_pixel and PyTorch's align_corners=False do:
output element o is at (o + 1/2) / scale - 1/2 of the input, and what lies beyond an end is the end's. A neighbour at a
distance of 1 counts for nothing in LINEAR, be it infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...core import enums
from ...core.enums import InterpolationMode, OperatorType
from ...core.strided_layout import Array
from ..constraints import rounded, same, sizes_of
from ..independence import all_but
from ..interpolation import Taps, copied, linear_by_whole_weights, summed
from ..schema import (
    FLOAT,
    Choices,
    ConstraintFailure,
    Count,
    FLOATs,
    Independence,
    OperatorDesc,
    OperatorSpec,
    Size2D,
    Tensor,
    support_table,
)

_UINT_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_UPSAMPLE_2D_OPERATOR_DESC(OperatorDesc):
    """Enlarges the last two dimensions by whole factors.

    Args:
        InputTensor: {BatchCount, ChannelCount, Height, Width}, or {..., Depth, Height, Width} in 5-D.
        OutputTensor: the enlarged images.
        ScaleSize: the factors.
        InterpolationMode: the nearest element of the input, or LINEAR between its four neighbours in height and width.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount.
        (C3) Width and Height of ScaleSize are at least 1, and enlarge their dimensions to at most 2^32 - 1.
        (C4) OutputTensor has the sizes of InputTensor, its last two times Height and Width of ScaleSize.

    Source: the page of DML_UPSAMPLE_2D_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    ScaleSize: Size2D
    InterpolationMode: enums.InterpolationMode


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_VALUE_SCALE_2D_OPERATOR_DESC(OperatorDesc):
    """Scales all elements, and adds a number for each channel: Scale * x + Bias[channel].

    Args:
        InputTensor: {BatchCount, ChannelCount, Height, Width}.
        OutputTensor: the results, of the same type and sizes.
        Scale: the factor of all elements.
        ChannelCount: the number of channels, 1 or 3; derived from Bias.
        Bias: what is added, for each channel.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) InputTensor and OutputTensor have the same DimensionCount and Sizes.
        (C3) ChannelCount is 1 or 3.
        (C4) ChannelCount is that of InputTensor.

    Source: the page of DML_VALUE_SCALE_2D_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    Scale: FLOAT
    ChannelCount: Count = None
    Bias: FLOATs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"ChannelCount": ("Bias",)}


def _constraints(desc: DML_UPSAMPLE_2D_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputTensor")
    for name, size in zip(("Width", "Height"), desc.InputTensor.Sizes[::-1], strict=False):
        scale = getattr(desc.ScaleSize, name)
        if not 1 <= scale <= max(1, _UINT_MAX // max(size, 1)):
            expected = f"from 1 to {_UINT_MAX // max(size, 1)}, as the size is {size}"
            yield ConstraintFailure("(C3)", f"ScaleSize.{name}", str(scale), expected)


def _constraints_of_value_scale(desc: DML_VALUE_SCALE_2D_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from same(desc, "(C2)", "DimensionCount", "InputTensor", "OutputTensor")
    if desc.ChannelCount not in (1, 3):
        yield ConstraintFailure("(C3)", "ChannelCount", str(desc.ChannelCount), "1 or 3")
    for channels in desc.InputTensor.Sizes[1:2]:
        if desc.ChannelCount != channels:
            expected = f"{channels}, the channels of InputTensor"
            yield ConstraintFailure("(C4)", "ChannelCount", str(desc.ChannelCount), expected)


def _infer_sizes(desc: DML_UPSAMPLE_2D_OPERATOR_DESC) -> dict[str, Choices]:
    *outer, height, width = [1, 1, *desc.InputTensor.Sizes]
    scale = desc.ScaleSize
    if len(outer) < 2 or not scale.Height or not scale.Width:
        return {}
    return {"OutputTensor": tuple((size,) for size in (*outer[2:], height * scale.Height, width * scale.Width))}


def _same_sizes(desc: DML_VALUE_SCALE_2D_OPERATOR_DESC) -> dict[str, Choices]:
    return {"OutputTensor": sizes_of(desc.InputTensor)}


def _upsample(desc: DML_UPSAMPLE_2D_OPERATOR_DESC, x: Array) -> Array:
    scale = desc.ScaleSize
    if desc.InterpolationMode == InterpolationMode.NEAREST_NEIGHBOR:
        return x.repeat(scale.Height, -2).repeat(scale.Width, -1)
    with np.errstate(invalid="ignore"):
        y = summed(x.astype(np.float64), taps_of_upsample(desc))
    return rounded(y / divisor_of_upsample(desc), x.dtype)


def taps_of_upsample(desc: DML_UPSAMPLE_2D_OPERATOR_DESC) -> list[Taps]:
    """For each dimension of a linear output, of whole weights: one division rounds at the end."""
    *outer, height, width = desc.InputTensor.Sizes
    taps = [copied(np.arange(size)) for size in outer]
    for size, scale in ((height, desc.ScaleSize.Height), (width, desc.ScaleSize.Width)):
        # (o + 1/2) / scale - 1/2 = n / (2 * scale)
        n = np.clip(2 * np.arange(size * scale) + 1 - scale, 0, 2 * scale * (size - 1))
        taps.append(linear_by_whole_weights(n, 2 * scale))
    return taps


def divisor_of_upsample(desc: DML_UPSAMPLE_2D_OPERATOR_DESC) -> float:
    """What the sums are to be divided by."""
    return float(4 * desc.ScaleSize.Height * desc.ScaleSize.Width)


def _value_scale(desc: DML_VALUE_SCALE_2D_OPERATOR_DESC, x: Array) -> Array:
    with np.errstate(all="ignore"):
        return rounded(x.astype(np.float64) * desc.Scale + np.array(desc.Bias).reshape(-1, 1, 1), x.dtype)


def _independent_of_upsample(desc: DML_UPSAMPLE_2D_OPERATOR_DESC) -> Independence:
    rank = len(desc.InputTensor.Sizes)
    return all_but(desc, (rank - 2, rank - 1))


UPSAMPLE_2D = OperatorSpec(
    operator_type=OperatorType.UPSAMPLE_2D,
    desc=DML_UPSAMPLE_2D_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C4)",
    reference=_upsample,
    independent=_independent_of_upsample,
    support=support_table("""
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4 to 5 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 to 5 | FLOAT32, FLOAT16
    """),
)

VALUE_SCALE_2D = OperatorSpec(
    operator_type=OperatorType.VALUE_SCALE_2D,
    desc=DML_VALUE_SCALE_2D_OPERATOR_DESC,
    constraints=_constraints_of_value_scale,
    infer_sizes=_same_sizes,
    sizes_rule="(C2)",
    reference=_value_scale,
    independent=lambda desc: all_but(desc, [1]),
    support=support_table("""
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 | FLOAT32, FLOAT16
    """),
)
