"""DEPTH_TO_SPACE and SPACE_TO_DEPTH, and their revisions: channels as blocks of an image, and back.

Decisions where the pages are silent or disagree with their examples: the sizes of SPACE_TO_DEPTH's output are those of
the examples, not those of the text, which are DEPTH_TO_SPACE's. A size that is no multiple of what it is divided by is
an error. All copy bits, so that NaN payloads survive; none runs in-place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import enums
from ...core.enums import DepthSpaceOrder, OperatorType
from ...core.strided_layout import Array
from ..constraints import same
from ..independence import only
from ..schema import (
    UINT,
    Choices,
    ConstraintFailure,
    OperatorDesc,
    OperatorSpec,
    Tensor,
    support_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_SPACE_TO_DEPTH_OPERATOR_DESC(OperatorDesc):
    """Makes channels of the places in the blocks of an image: {N, C, H, W} becomes {N, B * B * C, H / B, W / B}.

    The channels of the output are those of the input, again for each column of a block, and these for each of its rows:
    output[n, (i * B + j) * C + c, y, x] = input[n, c, y * B + i, x * B + j].

    Args:
        InputTensor: the images, {BatchCount, ChannelCount, Height, Width}.
        OutputTensor: the elements in depth.
        BlockSize: B, the height and the width of a block.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) BlockSize is at least 1.
        (C3) Height and Width are multiples of BlockSize.
        (C4) OutputTensor has the sizes {BatchCount, ChannelCount * BlockSize * BlockSize, Height / BlockSize,
            Width / BlockSize}.

    Source: the page of DML_SPACE_TO_DEPTH_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    BlockSize: UINT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_DEPTH_TO_SPACE_OPERATOR_DESC(OperatorDesc):
    """Makes blocks of an image of channels: {N, C, H, W} becomes {N, C / (B * B), H * B, W * B}.

    The inverse of SPACE_TO_DEPTH: with D = C / (B * B),
    output[n, c, y * B + i, x * B + j] = input[n, (i * B + j) * D + c, y, x].

    Args:
        InputTensor: the elements in depth, {BatchCount, ChannelCount, Height, Width}.
        OutputTensor: the images.
        BlockSize: B, the height and the width of a block.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) BlockSize is at least 1.
        (C3) ChannelCount is a multiple of BlockSize * BlockSize.
        (C4) OutputTensor has the sizes {BatchCount, ChannelCount / (BlockSize * BlockSize), Height * BlockSize,
            Width * BlockSize}.

    Source: the page of DML_DEPTH_TO_SPACE_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    BlockSize: UINT


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_DEPTH_TO_SPACE1_OPERATOR_DESC(OperatorDesc):
    """Makes blocks of an image of channels, which are in either order: {N, C, H, W} becomes {N, C / (B * B), H * B, W * B}.

    The inverse of SPACE_TO_DEPTH1. With D = C / (B * B), output[n, c, y * B + i, x * B + j] is
    input[n, (i * B + j) * D + c, y, x] in DEPTH_COLUMN_ROW, and input[n, (c * B + i) * B + j, y, x] in
    COLUMN_ROW_DEPTH.

    Args:
        InputTensor: the elements in depth, {BatchCount, ChannelCount, Height, Width}.
        OutputTensor: the images.
        BlockSize: B, the height and the width of a block.
        Order: whether the channels of an image follow each other in depth, or the elements of a block.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) BlockSize is at least 1.
        (C3) ChannelCount is a multiple of BlockSize * BlockSize.
        (C4) OutputTensor has the sizes {BatchCount, ChannelCount / (BlockSize * BlockSize), Height * BlockSize,
            Width * BlockSize}.

    Source: the page of DML_DEPTH_TO_SPACE1_OPERATOR_DESC; since feature level 2.1.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    BlockSize: UINT
    Order: enums.DepthSpaceOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_SPACE_TO_DEPTH1_OPERATOR_DESC(OperatorDesc):
    """Makes channels of the places in the blocks of an image, in either order: {N, C, H, W} becomes
    {N, B * B * C, H / B, W / B}.

    input[n, c, y * B + i, x * B + j] becomes output[n, (i * B + j) * C + c, y, x] in DEPTH_COLUMN_ROW, and
    output[n, (c * B + i) * B + j, y, x] in COLUMN_ROW_DEPTH.

    Args:
        InputTensor: the images, {BatchCount, ChannelCount, Height, Width}.
        OutputTensor: the elements in depth.
        BlockSize: B, the height and the width of a block.
        Order: whether the channels of an image follow each other in depth, or the elements of a block.

    Constraints:
        (C1) InputTensor and OutputTensor have the same DataType.
        (C2) BlockSize is at least 1.
        (C3) Height and Width are multiples of BlockSize.
        (C4) OutputTensor has the sizes {BatchCount, ChannelCount * BlockSize * BlockSize, Height / BlockSize,
            Width / BlockSize}.

    Source: the page of DML_SPACE_TO_DEPTH1_OPERATOR_DESC; since feature level 2.1.
    """

    InputTensor: Tensor
    OutputTensor: Tensor
    BlockSize: UINT
    Order: enums.DepthSpaceOrder


def _constraints_of_depth(desc: Any) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    if desc.BlockSize < 1:
        yield ConstraintFailure("(C2)", "BlockSize", str(desc.BlockSize), "at least 1")
    area = desc.BlockSize**2
    for channels in desc.InputTensor.Sizes[1:2]:
        if area and channels % area:
            expected = f"a multiple of {area}, which is BlockSize * BlockSize"
            yield ConstraintFailure("(C3)", "InputTensor.Sizes[1]", str(channels), expected)


def _constraints_of_space(desc: Any) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "OutputTensor")
    if desc.BlockSize < 1:
        yield ConstraintFailure("(C2)", "BlockSize", str(desc.BlockSize), "at least 1")
    for i, size in enumerate(desc.InputTensor.Sizes[2:4], 2):
        if desc.BlockSize and size % desc.BlockSize:
            expected = f"a multiple of {desc.BlockSize}, the BlockSize"
            yield ConstraintFailure("(C3)", f"InputTensor.Sizes[{i}]", str(size), expected)


def _sizes_of_space(desc: Any) -> dict[str, Choices]:
    block, sizes = desc.BlockSize, desc.InputTensor.Sizes
    if len(sizes) != 4 or block < 1 or sizes[1] % block**2:
        return {}
    batch, channels, height, width = sizes
    return {"OutputTensor": ((batch,), (channels // block**2,), (height * block,), (width * block,))}


def _sizes_of_depth(desc: Any) -> dict[str, Choices]:
    block, sizes = desc.BlockSize, desc.InputTensor.Sizes
    if len(sizes) != 4 or block < 1 or sizes[2] % block or sizes[3] % block:
        return {}
    batch, channels, height, width = sizes
    return {"OutputTensor": ((batch,), (channels * block**2,), (height // block,), (width // block,))}


def is_depth_first(desc: Any) -> bool:
    """Whether the channels of an image follow each other in depth."""
    return getattr(desc, "Order", DepthSpaceOrder.DEPTH_COLUMN_ROW) == DepthSpaceOrder.DEPTH_COLUMN_ROW


def _depth_to_space(desc: Any, x: Array) -> Array:
    block, (batch, channels, height, width) = desc.BlockSize, x.shape
    if is_depth_first(desc):
        y = x.reshape(batch, block, block, channels // block**2, height, width).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(batch, channels // block**2, block, block, height, width).transpose(0, 1, 4, 2, 5, 3)
    return y.reshape(desc.OutputTensor.Sizes)


def _space_to_depth(desc: Any, x: Array) -> Array:
    block, (batch, channels, height, width) = desc.BlockSize, x.shape
    y = x.reshape(batch, channels, height // block, block, width // block, block)
    order = (0, 3, 5, 1, 2, 4) if is_depth_first(desc) else (0, 1, 3, 5, 2, 4)
    return y.transpose(order).reshape(desc.OutputTensor.Sizes)


_SINCE_2_1 = """
    DML_FEATURE_LEVEL_5_0 and above
    InputTensor  | Input  | 4 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    OutputTensor | Output | 4 | FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    DML_FEATURE_LEVEL_2_1 and above
    InputTensor  | Input  | 4 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    OutputTensor | Output | 4 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
"""
_SINCE_1_0 = f"""{_SINCE_2_1}
    DML_FEATURE_LEVEL_1_0 and above
    InputTensor  | Input  | 4 | FLOAT32, FLOAT16
    OutputTensor | Output | 4 | FLOAT32, FLOAT16
"""


_EXAMPLE = np.arange(1, 17, dtype=np.float32)
_CRD = DepthSpaceOrder.COLUMN_ROW_DEPTH


def _to_space(operator_type: OperatorType, desc: type[OperatorDesc], support: str, **order: Any) -> OperatorSpec:
    return OperatorSpec(
        operator_type=operator_type,
        desc=desc,
        constraints=_constraints_of_depth,
        infer_sizes=_sizes_of_space,
        sizes_rule="(C4)",
        reference=_depth_to_space,
        independent=lambda desc: only(desc, [0]),
        example={"InputTensor": _EXAMPLE.reshape(1, 8, 1, 2), "BlockSize": 2, **order},
        support=support_table(support),
    )


def _to_depth(operator_type: OperatorType, desc: type[OperatorDesc], support: str, **order: Any) -> OperatorSpec:
    return OperatorSpec(
        operator_type=operator_type,
        desc=desc,
        constraints=_constraints_of_space,
        infer_sizes=_sizes_of_depth,
        sizes_rule="(C4)",
        reference=_space_to_depth,
        independent=lambda desc: only(desc, [0]),
        example={"InputTensor": _EXAMPLE.reshape(1, 2, 2, 4), "BlockSize": 2, **order},
        support=support_table(support),
    )


SPACE_TO_DEPTH = _to_depth(OperatorType.SPACE_TO_DEPTH, DML_SPACE_TO_DEPTH_OPERATOR_DESC, _SINCE_1_0)
DEPTH_TO_SPACE = _to_space(OperatorType.DEPTH_TO_SPACE, DML_DEPTH_TO_SPACE_OPERATOR_DESC, _SINCE_1_0)
DEPTH_TO_SPACE1 = _to_space(OperatorType.DEPTH_TO_SPACE1, DML_DEPTH_TO_SPACE1_OPERATOR_DESC, _SINCE_2_1, Order=_CRD)
SPACE_TO_DEPTH1 = _to_depth(OperatorType.SPACE_TO_DEPTH1, DML_SPACE_TO_DEPTH1_OPERATOR_DESC, _SINCE_2_1, Order=_CRD)
