"""QUANTIZED_LINEAR_AVERAGE_POOLING on a GPU: whole planes, rows of words of 4 elements, or any window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
import triton.language as tl

from ...enums import TensorDataType
from ...layout import Layout
from ...schema import OperatorDesc, OperatorSpec
from .. import Declined
from . import pooling_kernels
from .launch import Launch, Planned, Tensors, next_power_of_2

BLOCK = 1024
"""Outputs of a program that takes any window."""
UNROLLED = 32
"""Taps of a window whose loops are unrolled."""
MOST_TAPS = 257
"""Of a window whose sum of bytes 16 bits hold."""
LANES, ROWS = 128, 28
"""Of a program that goes down the rows: its groups of 4 columns, and rows."""
PLANE_TILE = 4096
"""Elements, or words, of whole planes that a program reads at once."""


@dataclass(frozen=True)
class Geometry:
    """Windows over (batch, channel, depth, height, width); what is of spatial dimensions alone is of the last three."""

    windows: tuple[int, ...]
    strides: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    dilations: tuple[int, ...]
    include_padding: bool
    x: Layout
    y: Layout
    steps: tuple[int, ...]
    """Of scales and zero points from channel to channel; 0 where all share one value."""

    @classmethod
    def of(cls, spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], y: Layout) -> Geometry:
        x, *quantisation = inputs
        assert x is not None
        strides, windows, starts, ends, dilations, (include_padding,) = spec.attributes(desc)
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
        )

    @property
    def most(self) -> tuple[int, ...]:
        """So many taps of a window are inside the input, at most."""
        per_dimension = zip(self.windows, self.x.sizes[2:], self.dilations, strict=True)
        return tuple(min(window, (n - 1) // step + 1) for window, n, step in per_dimension)

    @property
    def reach(self) -> int:
        """The largest of the numbers that places are computed with, or more."""
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
    """With a depth of 1 where it has none. Elements have one byte: strides count elements."""
    missing = 5 - len(layout.sizes)
    sizes, strides = layout.sizes, layout.strides
    return Layout(layout.type, (*sizes[:2], *(1,) * missing, *sizes[2:]), (*strides[:2], *(0,) * missing, *strides[2:]))


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    geometry = Geometry.of(spec, desc, inputs, outputs[0])
    window = " x ".join(map(str, spec.attributes(desc)[1]))
    count = _count_of_whole_planes(geometry)
    if count is not None:
        return _whole_planes(geometry, count)
    any_window = _any_window(geometry)
    by_rows = _by_rows(geometry)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x, *quantisation = inputs
        y = outputs[0]
        if by_rows is not None and (x.data_ptr() | y.data_ptr()) % 4 == 0:
            by_rows(x, y, *quantisation)
        else:
            any_window(x, y, *quantisation)

    return Planned(f"pooling by windows of {window}, {'each by itself' if by_rows is None else 'by rows'}", run)


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
        **dict(zip(("KD", "KH", "KW"), geometry.most, strict=True)),
        "UNROLLED": prod(geometry.most) <= UNROLLED,
        "BLOCK": BLOCK,
        **geometry.constants,
        "INCLUDE_PADDING": geometry.include_padding,
        "INDEX": tl.int64 if max(geometry.reach, number) >= 2**31 - BLOCK else tl.int32,
        "TOTAL": tl.int64 if prod(geometry.most) * 255 >= 2**31 else tl.int32,
    }
    return Launch(pooling_kernels.pool_windows, -(-number // BLOCK), arguments, constants)


def _by_rows(geometry: Geometry) -> Launch | None:
    """Where rows are whole words of 4 elements and windows are dense."""
    x, y = geometry.x, geometry.y
    sizes_and_steps = (x.sizes[4], y.sizes[4], *x.strides[:4], *y.strides[:4])
    if (
        x.strides[4] != 1
        or y.strides[4] != 1
        or any(each % 4 for each in sizes_and_steps)
        or set(geometry.dilations) != {1}
        or geometry.strides[2] not in (1, 2)
        or geometry.windows[1] < geometry.strides[1]
        or prod(geometry.windows) > MOST_TAPS
        or geometry.reach >= 2**31
    ):
        return None
    rows = min(ROWS, y.sizes[3])
    lanes = prod(y.sizes[:3]) * -(-y.sizes[3] // rows) * (y.sizes[4] // 4)
    arguments = (
        geometry.steps,
        lanes,
        x.sizes[1],
        x.sizes[4] // 4,
        y.sizes[4] // 4,
        x.sizes[2:],
        y.sizes[2:],
        tuple(step // 4 for step in x.strides[:4]),
        tuple(step // 4 for step in y.strides[:4]),
        geometry.starts,
        geometry.ends,
    )
    constants = {
        "ROWS": rows,
        **dict(zip(("KD", "KH", "KW"), geometry.windows, strict=True)),
        **dict(zip(("STRIDE_D", "STRIDE_H", "STRIDE"), geometry.strides, strict=True)),
        "SHIFT": geometry.starts[2],
        "BLOCK": LANES,
        **geometry.constants,
        "SIGNED": geometry.is_signed,
        "INCLUDE_PADDING": geometry.include_padding,
    }
    return Launch(pooling_kernels.pool_rows, -(-lanes // LANES), arguments, constants, (tl.int32, tl.int32))


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
    x_steps = x.strides[:2]

    def summing(size: int, steps: Sequence[int], in_words: bool) -> Launch:
        block = min(next_power_of_2(size), PLANE_TILE)
        abreast = PLANE_TILE // block
        tile = {"PLANES": abreast, "BLOCK": block, "WORDS": in_words, "SIGNED": geometry.is_signed}
        types = (tl.int32,) if in_words else ()
        return Launch(pooling_kernels.sum_planes, -(-planes // abreast), (planes, channels, size, *steps), tile, types)

    by_bytes = summing(size, x_steps, False)
    by_words = (
        None if any(each % 4 for each in (size, *x_steps)) else summing(size // 4, [s // 4 for s in x_steps], True)
    )

    def quantising(added: int) -> Launch:
        arguments = geometry.steps, planes, channels, size, count, added, *y.strides[:2]
        constants = {"BLOCK": LANES, **geometry.constants}
        return Launch(pooling_kernels.quantise_planes, -(-planes // LANES), arguments, constants)

    plain, biased = quantising(0), quantising(128 if geometry.is_signed else 0)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        tensor, *quantisation = inputs
        totals = torch.empty(planes, dtype=torch.int64, device=tensor.device)
        if by_words is not None and tensor.data_ptr() % 4 == 0:
            by_words(tensor, totals)
            biased(totals, outputs[0], *quantisation)
        else:
            by_bytes(tensor, totals)
            plain(totals, outputs[0], *quantisation)

    return Planned(f"pooling of whole planes, by {'bytes' if by_words is None else 'words'}", run)
