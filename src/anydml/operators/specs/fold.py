"""FOLD: blocks of a sliding window put back in their places, and summed where they overlap.

Decisions where the page is silent or contradicts itself:

1. It asks for one DimensionCount of both tensors, and its examples have 3 and 4. OutputTensor has 2 more than there are
   spatial dimensions; InputTensor has 3 that matter, and may have dimensions of size 1 before them.
2. It says nothing of data types: all that other sums of elements take.
3. Sums of FLOAT32 are held in double precision, those of FLOAT16 in single precision, and rounded once; those of
   FLOAT64 are held in that. Terms are added to 0 in the order of the window's elements, row-major. Integers wrap.
4. What lies on padding is left out. An element that no block has is 0.
5. Blocks are as many as the formula says, rounded down in each dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import ClassVar

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import DTYPES, Array
from ..constraints import at_least_1, rounded, same, widened
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
from ..window_math import Window, too_large, windows_over


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_FOLD_OPERATOR_DESC(OperatorDesc):
    """Puts the blocks that a sliding window has cut out back in their places, and sums what overlaps.

    Column l of InputTensor is block l, counted row-major as the window slides; its elements are, for each channel, those
    under the window, row-major. It undoes UNFOLD where blocks do not overlap.

    Args:
        InputTensor: {BatchCount, ChannelCount * product of WindowSizes, BlockCount}, with any leading sizes of 1.
        OutputTensor: {BatchCount, ChannelCount, spatial sizes...}.
        DimensionCount: the number of spatial dimensions, 1 to 6; derived from the arrays that follow.
        WindowSizes: the window's, for each spatial dimension.
        Strides: steps of the window.
        Dilations: distance of the window's elements; 1 for a dense window.
        StartPadding: elements of padding before OutputTensor, which are left out.
        EndPadding: elements of padding behind it, likewise.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) All sizes of InputTensor before its last three are 1.
        (C3) DimensionCount is 2 less than the DimensionCount of OutputTensor.
        (C4) WindowSizes, Strides and Dilations are at least 1.
        (C5) The window's extent, (WindowSizes - 1) * Dilations + 1, is at most the padded size of OutputTensor.
        (C6) The last three sizes of InputTensor are those of the batch, of the channels times the product of
            WindowSizes, and the product of floor((padded size - extent) / stride) + 1 over the spatial dimensions.

    Source: the page of DML_FOLD_OPERATOR_DESC; since feature level 6.4.
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


def windows(desc: DML_FOLD_OPERATOR_DESC) -> list[Window]:
    return windows_over(desc, "OutputTensor", "WindowSizes")


def _constraints(desc: DML_FOLD_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    sizes = desc.InputTensor.Sizes
    for i, size in enumerate(sizes[:-3]):
        if size != 1:
            yield ConstraintFailure("(C2)", f"InputTensor.Sizes[{i}]", str(size), "1, before the last three")
    spatial = len(desc.OutputTensor.Sizes) - 2
    if spatial > 0 and desc.DimensionCount != spatial:
        expected = f"{spatial}, 2 less than the DimensionCount of OutputTensor"
        yield ConstraintFailure("(C3)", "DimensionCount", str(desc.DimensionCount), expected)
    yield from at_least_1(desc, "(C4)", "WindowSizes", "Strides", "Dilations")
    under = windows(desc)
    yield from too_large("(C5)", under, "WindowSizes")
    if not under or any(window.extent > window.padded for window in under):
        return
    batch, channels = desc.OutputTensor.Sizes[:2]
    taps, blocks = prod(desc.WindowSizes), prod(window.places[0] for window in under)
    wanted = (
        (batch, f"{batch}, the batch of OutputTensor"),
        (
            channels * taps,
            f"{channels * taps}, {channels} channels of OutputTensor times {taps} elements of the window",
        ),
        (blocks, f"{blocks}, the blocks that the window cuts out of OutputTensor"),
    )
    for i, (size, expected) in enumerate(wanted, len(sizes) - 3):
        if i >= 0 and sizes[i] != size:
            yield ConstraintFailure("(C6)", f"InputTensor.Sizes[{i}]", str(sizes[i]), expected)


def _any_sizes(desc: DML_FOLD_OPERATOR_DESC) -> dict[str, Choices]:
    return {}


def _reference(desc: DML_FOLD_OPERATOR_DESC, x: Array) -> Array:
    under = windows(desc)
    places = [window.places[0] for window in under]
    x = widened(x).reshape(*desc.OutputTensor.Sizes[:2], *desc.WindowSizes, *places)
    y = np.zeros(desc.OutputTensor.Sizes, x.dtype)
    slices = (window.tap_slices(count) for window, count in zip(under, places, strict=True))
    with np.errstate(all="ignore"):
        for each in product(*slices):
            taps, blocks, elements = zip(*each, strict=True)
            y[:, :, *elements] += x[:, :, *taps, *blocks]
        return rounded(y, DTYPES[desc.OutputTensor.DataType])


def _independent(desc: DML_FOLD_OPERATOR_DESC) -> Independence:
    """The batch; channels are one dimension with the window's elements."""
    leading, spatial = (len(tensor.Sizes) - 3 for tensor in (desc.InputTensor, desc.OutputTensor))
    return {
        "InputTensor": (*(None,) * leading, 0, None, None),
        "OutputTensor": (0, *(None,) * (spatial + 2)),
    }


FOLD = OperatorSpec(
    operator_type=OperatorType.FOLD,
    desc=DML_FOLD_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_any_sizes,
    sizes_rule="",
    reference=_reference,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_6_4 and above
        InputTensor  | Input  | 3 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        OutputTensor | Output | 3 to 8 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    """),
)
