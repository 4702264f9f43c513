"""UNFOLD: the blocks under a window that slides, each a column.

Decisions where the page is silent or contradicts itself: elements are of any type. InputTensor has 3 to 8 dimensions,
OutputTensor 3, as in the page's examples, which its table and its constraint of the same DimensionCount contradict.
Padding is 0. What is copied is copied by bits. Not in-place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import at_least_1, same
from ..schema import (
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
from ..window_math import Window, too_large, windows_over, wrong_dimension_count


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_UNFOLD_OPERATOR_DESC(OperatorDesc):
    """Copies the blocks under a window that slides over the spatial dimensions, each into a column: im2col.

    The rows are the elements of a window, channel by channel, the columns its places, both in row-major order. In one
    dimension output[n, c * WindowSize + w, b] is the padded input's element [n, c, b * Stride + w * Dilation].

    Args:
        InputTensor: {BatchCount, ChannelCount} and 1 to 6 spatial dimensions.
        OutputTensor: {BatchCount, rows, columns}.
        DimensionCount: the number of spatial dimensions; derived from the arrays that follow.
        WindowSizes: the window's elements, for each spatial dimension.
        Strides: the steps of the window.
        Dilations: the distance of its elements; 1 for neighbours.
        StartPadding: zeros before the input's elements.
        EndPadding: zeros behind them.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) DimensionCount is the number of InputTensor's spatial dimensions.
        (C3) WindowSizes, Strides and Dilations are at least 1.
        (C4) The window, (WindowSize - 1) * Dilation + 1, is at most as long as the padded input.
        (C5) OutputTensor has the sizes {BatchCount, ChannelCount * the product of WindowSizes, the product of the
            blocks of each dimension}, which are floor((padded size - window) / Stride) + 1.

    Source: the page of DML_UNFOLD_OPERATOR_DESC; since feature level 6.4.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    DimensionCount: Count = None
    WindowSizes: UINTs
    Strides: UINTs
    Dilations: UINTs
    StartPadding: UINTs
    EndPadding: UINTs

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "DimensionCount": ("WindowSizes", "Strides", "Dilations", "StartPadding", "EndPadding")
    }


def windows(desc: DML_UNFOLD_OPERATOR_DESC) -> list[Window]:
    return windows_over(desc, "InputTensor", "WindowSizes")


def blocks_of(desc: DML_UNFOLD_OPERATOR_DESC) -> list[int]:
    """The places of the window, for each spatial dimension."""
    return [window.places[0] for window in windows(desc)]


def _constraints(desc: DML_UNFOLD_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    yield from wrong_dimension_count(desc, "(C2)")
    yield from at_least_1(desc, "(C3)", "WindowSizes", "Strides", "Dilations")
    yield from too_large("(C4)", windows(desc), "WindowSizes")


def _infer_sizes(desc: DML_UNFOLD_OPERATOR_DESC) -> dict[str, Choices]:
    under = windows(desc)
    if not under or any(window.extent > window.padded for window in under):
        return {}
    batch, channels, *_ = desc.InputTensor.Sizes
    return {"OutputTensor": ((batch,), (channels * prod(desc.WindowSizes),), (prod(blocks_of(desc)),))}


def _reference(desc: DML_UNFOLD_OPERATOR_DESC, x: Array) -> Array:
    rank = len(desc.WindowSizes)
    x = np.pad(x, [(0, 0), (0, 0), *zip(desc.StartPadding, desc.EndPadding, strict=True)])
    for i, blocks in enumerate(blocks_of(desc)):
        taps = np.arange(desc.WindowSizes[i]) * desc.Dilations[i]
        x = np.take(x, taps[:, None] + np.arange(blocks) * desc.Strides[i], 2 + 2 * i)
    y = x.transpose(0, 1, *range(2, 2 + 2 * rank, 2), *range(3, 3 + 2 * rank, 2))
    return y.reshape(desc.OutputTensor.Sizes)


def _independent(desc: DML_UNFOLD_OPERATOR_DESC) -> Independence:
    """The batch alone."""
    return {"InputTensor": (0, *[None] * (len(desc.InputTensor.Sizes) - 1)), "OutputTensor": (0, None, None)}


UNFOLD = OperatorSpec(
    operator_type=OperatorType.UNFOLD,
    desc=DML_UNFOLD_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C5)",
    reference=_reference,
    independent=_independent,
    example={
        "InputTensor": np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3),
        "WindowSizes": (2, 2),
        "Strides": (1, 1),
        "Dilations": (1, 1),
        "StartPadding": (0, 0),
        "EndPadding": (0, 1),
    },
    support=support_table("""
        DML_FEATURE_LEVEL_6_4 and above
        InputTensor  | Input  | 3 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 3      | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    """),
)
