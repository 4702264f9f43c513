"""BATCH_NORMALIZATION of packed tensors by channels on a GPU, RELU fused: all is read and written once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ....core.enums import TensorDataType
from ....core.strided_layout import Layout
from ....core.tensor_desc import is_packed
from ....operators import spec_of
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch.tensors import TYPES
from ..launch import MOST, Launch, Planned, Tensors, next_power_of_2
from ..pointwise import plan as pointwise
from . import kernels

BLOCK, TILE, LARGEST_ROW = 512, 2048, 256
"""Elements of a tile of rows, each of one channel, and where channels lie last, and its channels there."""
TILES, MANY = 16, 1 << 22
"""Tiles of a program, which computes a channel's factor once for them, of a tensor of many elements."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    d: Any = desc
    x, *parameters = inputs
    assert x is not None
    is_last = channels_lie_last(x) and channels_lie_last(outputs[0])
    are_packed = is_last or (x.is_packed() and outputs[0].is_packed())
    if x.type not in (TensorDataType.FLOAT32, TensorDataType.FLOAT16) or len(x.sizes) < 2 or not are_packed:
        return pointwise.plan(spec, desc, inputs, outputs, device)
    activation = spec_of(d.FusedActivation)
    if activation is not None and activation.name != "ACTIVATION_RELU":
        return pointwise.plan(spec, desc, inputs, outputs, device)
    steps, item = [], x.dtype.itemsize
    for parameter in parameters:
        assert parameter is not None
        strides = [0 if size == 1 else step for size, step in zip(parameter.sizes, parameter.strides, strict=True)]
        channel = strides.pop(1)
        if any(strides) or channel % item:
            return pointwise.plan(spec, desc, inputs, outputs, device)
        steps.append(channel // item)
    constants = {"STEPS": tuple(steps), "EPSILON": d.Epsilon, "HAS_RELU": activation is not None}
    launch = _by_columns(x.sizes, constants) if is_last else by_channel(kernels.normalize, x.sizes, constants)
    if isinstance(launch, Declined):
        return launch

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(*inputs, outputs[0])

    words = f"rows of {x.sizes[1]} channels" if is_last else f"{prod(x.sizes[:2])} rows by channel"
    return Planned(words, run, ((launch, [TYPES[x.type]] * 6),))


def channels_lie_last(layout: Layout) -> bool:
    """Whether the channels of packed images follow each other, and are several."""
    if len(layout.sizes) < 3 or layout.sizes[1] == 1:
        return False
    order = [0, *range(2, len(layout.sizes)), 1]
    sizes, strides = ([each[i] for i in order] for each in (layout.sizes, layout.strides))
    item = layout.dtype.itemsize
    return is_packed(sizes, [stride // item for stride in strides])


def by_channel(kernel: Any, sizes: Sequence[int], constants: dict[str, Any]) -> Launch | Declined:
    """A launch on rows of one channel each, of packed sizes: the kernel takes `rows`, `inner`, `channels` and `blocks`,
    and TILES, ROWS and COLUMNS after the other constants. Short rows are several of a tile."""
    rows, inner = prod(sizes[:2]), prod(sizes[2:])
    columns = min(next_power_of_2(inner), BLOCK)
    high = min(BLOCK // columns, next_power_of_2(rows))
    tiles = min(-(-inner // columns), TILES) if prod(sizes) >= MANY else 1
    blocks = -(-inner // (columns * tiles))
    programs = -(-rows // high) * blocks
    if max(programs, inner, rows + high) >= MOST:
        return Declined(f"this kernel takes less than {MOST} elements of a channel, rows and programs")
    shape = {"TILES": tiles, "ROWS": high, "COLUMNS": columns}
    return Launch(kernel, programs, (rows, inner, sizes[1], blocks), {**constants, **shape})


def _by_columns(sizes: Sequence[int], constants: dict[str, Any]) -> Launch | Declined:
    channels, rows = sizes[1], prod(sizes) // sizes[1]
    columns = min(next_power_of_2(channels), LARGEST_ROW)
    high = max(1, TILE // columns)
    tiles = TILES if prod(sizes) >= MANY else 1
    blocks = -(-channels // columns)
    programs = -(-rows // (high * tiles)) * blocks
    if programs >= MOST:
        return Declined(f"this kernel takes less than {MOST} programs")
    shape = {"TILES": tiles, "ROWS": high, "COLUMNS": columns}
    return Launch(kernels.normalize_channels, programs, (rows, channels, blocks), {**constants, **shape})
