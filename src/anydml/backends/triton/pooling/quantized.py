"""QUANTIZED_LINEAR_AVERAGE_POOLING on a GPU: whole planes reduced, dense windows by sliding sums, or any window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import torch
import triton.language as tl

from ....core.enums import TensorDataType
from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch.tensors import TYPES
from ..launch import MOST, Launch, Planned, Tensors, next_power_of_2, too_many
from . import quantized_kernels as pooling_kernels

BLOCK = 1024
"""Outputs of a program that takes any window."""
UNROLLED = 32
"""Taps up to which the loops over a window are unrolled."""
MOST_TAPS = 257
"""Taps up to which a sum of bytes fits 16 bits."""
MOST_HEIGHT = 16
"""The height up to which a thread keeps the sums of a window's rows."""
LANES, STRIP, ROWS = 128, 56, 4
"""What a program has that goes down the rows: groups of 4 columns, rows of outputs at most, and rows of a group."""
MOST_WORDS = 48
"""Words read for a group, about: a group has fewer rows where it would take more."""
PLANE_TILE = 2048
"""Words of whole planes that a program reads at once."""
PROGRAMS = 1024
"""Programs there are at least before one takes several planes."""


@dataclass(frozen=True)
class Geometry:
    """Windows over (batch, channel, depth, height, width); tuples of three are of depth, height and width."""

    windows: tuple[int, ...]
    strides: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    dilations: tuple[int, ...]
    include_padding: bool
    x: Layout
    y: Layout
    steps: tuple[int, ...]
    """Strides of scales and zero points from channel to channel; 0 where all share one value."""
    types: tuple[torch.dtype | None, ...]
    """Types of the input, the output, scales and zero points."""

    @classmethod
    def of(cls, spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], y: Layout) -> Geometry:
        x, *quantisation = inputs
        assert x is not None
        strides, windows, starts, ends, dilations, (include_padding,) = spec.attributes(desc).values()
        missing = 5 - len(x.sizes)
        steps = [0 if each is None else each.strides[1] // each.dtype.itemsize for each in quantisation]
        return cls(
            (1,) * missing + windows,
            (1,) * missing + strides,
            (0,) * missing + starts,
            (0,) * missing + ends,
            (1,) * missing + dilations,
            bool(include_padding),
            _in_five(x),
            _in_five(y),
            tuple(steps),
            tuple(None if each is None else TYPES[each.type] for each in (x, y, *quantisation)),
        )

    @property
    def taps_inside(self) -> tuple[int, ...]:
        """Taps of a window that are inside the input, at most."""
        per_dimension = zip(self.windows, self.x.sizes[2:], self.dilations, strict=True)
        return tuple(min(window, (n - 1) // step + 1) for window, n, step in per_dimension)

    @property
    def reach(self) -> int:
        """A bound of the numbers that offsets are computed with."""
        layouts = sum(
            sum((n - 1) * step for n, step in zip(it.sizes, it.strides, strict=True)) for it in (self.x, self.y)
        )
        windows = sum(map(sum, (self.starts, self.ends, self.windows, self.dilations)))
        return layouts + windows + sum(n * step for n, step in zip(self.y.sizes[2:], self.strides, strict=True))

    @property
    def constants(self) -> dict[str, Any]:
        return {"LOWEST": 0 if self.y.type == TensorDataType.UINT8 else -128}

    @property
    def is_signed(self) -> bool:
        return self.x.type == TensorDataType.INT8


def _in_five(layout: Layout) -> Layout:
    """The layout with a depth of 1 where it has none. Elements have one byte, so strides count elements."""
    missing = 5 - len(layout.sizes)
    sizes, strides = layout.sizes, layout.strides
    return Layout(layout.type, (*sizes[:2], *(1,) * missing, *sizes[2:]), (*strides[:2], *(0,) * missing, *strides[2:]))


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    geometry = Geometry.of(spec, desc, inputs, outputs[0])
    window = " x ".join(map(str, spec.attributes(desc)["WindowSize"]))
    count = _count_of_whole_planes(geometry)
    if count is not None and prod(geometry.x.sizes[:2]) < 2**31 - PLANE_TILE:
        return _whole_planes(geometry, count)
    sliding = _sliding_sums(geometry, f"average pooling, windows of {window}, sliding sums")
    if sliding is not None:
        return sliding
    declined = too_many(-(-prod(geometry.y.sizes) // BLOCK))
    if declined is not None:
        return declined
    any_window = _any_window(geometry)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x, *quantisation = inputs
        any_window(x, outputs[0], *quantisation)

    launches = [(any_window, geometry.types)]
    return Planned(f"average pooling, windows of {window}, each by itself", run, launches)


def _any_window(geometry: Geometry) -> Launch:
    x, y = geometry.x, geometry.y
    number = prod(y.sizes)
    arguments = (
        geometry.steps,
        number,
        x.sizes[1],
        x.sizes[2:],
        y.sizes[2:],
        x.strides,
        y.strides,
        geometry.windows,
        geometry.strides,
        geometry.starts,
        geometry.ends,
        geometry.dilations,
    )
    constants = {
        **dict(zip(("KD", "KH", "KW"), geometry.taps_inside, strict=True)),
        "UNROLLED": prod(geometry.taps_inside) <= UNROLLED,
        "BLOCK": BLOCK,
        **geometry.constants,
        "INCLUDE_PADDING": geometry.include_padding,
        "INDEX": tl.int64 if max(geometry.reach, number) >= 2**31 - BLOCK else tl.int32,
        "TOTAL": tl.int64 if prod(geometry.taps_inside) * 255 >= 2**31 else tl.int32,
    }
    return Launch(pooling_kernels.pool_windows, -(-number // BLOCK), arguments, constants)


def _sliding_sums(geometry: Geometry, description: str) -> Planned | None:
    """Sliding sums down the rows, where these are packed and windows dense."""
    x, y = geometry.x, geometry.y
    if (
        x.strides[4] != 1
        or y.strides[4] != 1
        or set(geometry.dilations) != {1}
        or not geometry.strides[1] <= geometry.windows[1] <= MOST_HEIGHT
        or geometry.strides[2] not in (1, 2)
        or prod(geometry.windows) > MOST_TAPS
        or max(*x.sizes[2:], *y.sizes[2:], *geometry.starts, *geometry.ends) >= 2**28
    ):
        return None
    strips = -(-y.sizes[3] // STRIP)
    strip_rows = -(-y.sizes[3] // strips)
    words = geometry.windows[0] * geometry.strides[1] * (3 * geometry.strides[2] + geometry.windows[2] + 6) // 4
    rows = min(ROWS, strip_rows, max(MOST_WORDS // words, 1))
    groups = -(-strip_rows // rows)
    lanes = prod(y.sizes[:3]) * -(-y.sizes[4] // 4)
    if -(-lanes // LANES) * strips >= MOST:
        return None

    @cache
    def launch(in_words: bool, out_words: bool) -> Launch:
        arguments = (
            geometry.steps,
            lanes,
            strips,
            groups,
            x.sizes[1],
            x.sizes[2:],
            y.sizes[2:],
            x.strides[:4],
            y.strides[:4],
            geometry.starts,
            geometry.ends,
        )
        constants = {
            "ROWS": rows,
            **dict(zip(("KD", "KH", "KW"), geometry.windows, strict=True)),
            **dict(zip(("STRIDE_D", "STRIDE_H", "STRIDE"), geometry.strides, strict=True)),
            "SHIFT": -geometry.starts[2] % 4 if in_words else 0,
            "BLOCK": LANES,
            **geometry.constants,
            "SIGNED": geometry.is_signed,
            "INCLUDE_PADDING": geometry.include_padding,
            "IN_WORDS": in_words,
            "OUT_WORDS": out_words,
            "INDEX": tl.int64 if lanes >= 2**31 - LANES else tl.int32,
        }
        return Launch(pooling_kernels.pool_rows, -(-lanes // LANES) * strips, arguments, constants)

    x_in_words, y_in_words = (not any(each % 4 for each in (it.sizes[4], *it.strides[:4])) for it in (x, y))

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x, *quantisation = inputs
        y = outputs[0]
        in_words = x_in_words and x.data_ptr() % 4 == 0
        launch(in_words, y_in_words and y.data_ptr() % 4 == 0)(x, y, *quantisation)

    return Planned(description, run, [(launch(x_in_words, y_in_words), geometry.types)])


def _count_of_whole_planes(geometry: Geometry) -> int | None:
    """The taps that count, where one window covers each packed plane; else None."""
    x = geometry.x
    count = packed = 1
    for i in reversed(range(3)):
        size, window, dilation = x.sizes[i + 2], geometry.windows[i], geometry.dilations[i]
        covers = geometry.starts[i] == 0 and window >= size and (dilation == 1 or size == 1)
        if geometry.y.sizes[i + 2] != 1 or not covers or (x.strides[i + 2] != packed and size > 1):
            return None
        packed *= size
        count *= min(window, (size + geometry.ends[i] - 1) // dilation + 1) if geometry.include_padding else size
    return count


def _whole_planes(geometry: Geometry, count: int) -> Planned:
    x, y = geometry.x, geometry.y
    planes, channels, size = prod(x.sizes[:2]), x.sizes[1], prod(x.sizes[2:])
    x_batch, x_channel = x.strides[:2]

    @cache
    def launch(alignment: int) -> Launch:
        unit = max(alignment // 4, 1)
        # Planes that begin anywhere may need a word more.
        words = size // alignment if alignment > 1 else size // 4 + 2
        block = min(max(next_power_of_2(words * unit) // 2, 32 * unit), PLANE_TILE)
        blocks = -(-words * unit // block)
        planes_per_program = min(PLANE_TILE // block, next_power_of_2(planes // PROGRAMS + 1))
        arguments = (
            geometry.steps,
            planes,
            channels,
            size,
            count,
            words,
            x_batch // alignment,
            x_channel // alignment,
            *y.strides[:2],
        )
        constants = {
            "PLANES": planes_per_program,
            "BLOCK": block,
            "BLOCKS": blocks if blocks <= 2 else 0,
            "UNIT": unit,
            "IN_WORDS": alignment > 1,
            "IN_ONE": x.sizes[0] == 1 or x_batch == channels * x_channel,
            "SIGNED": geometry.is_signed,
            **geometry.constants,
            "TOTAL": tl.int64 if size * 255 >= 2**31 - 2**20 else tl.int32,
        }
        types = (tl.int32,) if alignment > 1 else ()
        return Launch(pooling_kernels.average_planes, -(-planes // planes_per_program), arguments, constants, types)

    def launch_for(address: int) -> Launch:
        bits = address | size | x_channel | x_batch
        return launch(16 if bits % 16 == 0 else 4 if bits % 4 == 0 else 1)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        tensor, *quantisation = inputs
        launch_for(tensor.data_ptr())(tensor, outputs[0], *quantisation)

    return Planned("average pooling of whole planes", run, [(launch_for(0), geometry.types)])
