"""CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT on a GPU: which kernel walks a tensor, and in what tiles.

The order in which floats are combined depends on sizes, strides and type alone, on every run and in every launch; the
number of lines is among the sizes, as few long ones are cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import torch
import triton.language as tl

from ...enums import AxisDirection, TensorDataType
from ...layout import Layout, fold
from ...schema import OperatorDesc, OperatorSpec
from .. import Declined
from . import scan_kernels
from .launch import BITS, TYPES, Launch, Planned, Tensors, next_power_of_2

TILE, TILE_BYTES = 4096, 16 << 10
"""Elements and bytes of a tile where elements of a line lie side by side, at most."""
WARP = 32
DEEP = 32
"""Elements of a line in a tile of lines side by side, one or two for each thread of a warp."""
NARROW = 8
"""Fewer lines side by side are read along the axis: they lie in the lines of a cache that a thread reads next."""
FEW = 256
"""Programs that keep a GPU busy; fewer long lines are cut."""
STEP_BYTES, MOST_PARTS = 16 << 20, 1024
"""What is reduced, and then found again in the second-level cache: its bytes, and in so many tiles at most."""


class Loop(NamedTuple):
    """A dimension: its size, and its strides in elements."""

    size: int
    x: int
    y: int


@dataclass(frozen=True)
class Geometry:
    """A tensor as lines along an axis."""

    axis: Loop
    lines: tuple[Loop, ...]
    """The nearest first."""

    @classmethod
    def of(cls, x: Layout, y: Layout, axis: int) -> Geometry:
        item = x.dtype.itemsize
        sizes, at, last = fold(x.sizes, [x.strides, y.strides], axis)
        loops = [Loop(size, x.strides[i] // item, y.strides[i] // item) for size, i in zip(sizes, last, strict=True)]
        along = loops.pop(at)
        return cls(along, tuple(sorted(loops, key=lambda loop: (min(loop.x, loop.y), max(loop.x, loop.y)))))

    @property
    def count(self) -> int:
        """Of lines."""
        return prod(loop.size for loop in self.lines)

    @property
    def is_across(self) -> bool:
        """Whether lines are nearer to each other than the elements of a line, as they are read and written."""
        if not self.lines or self.axis.size == 1:
            return bool(self.lines)
        near = self.lines[0]
        return min(near.x, near.y) < min(self.axis.x, self.axis.y) or near.x + near.y < self.axis.x + self.axis.y

    def arguments(self) -> tuple[Any, ...]:
        """In the order of the kernels' signatures."""
        lines = self.lines or (Loop(1, 0, 0),)
        zero = 0
        return (zero, *self.axis, self.count, *(tuple(numbers) for numbers in zip(*lines, strict=True)))

    @property
    def index(self) -> Any:
        """The type of offsets."""
        reach = [max(loop.size, TILE) * max(loop.x, loop.y, 1) for loop in (self.axis, *self.lines)]
        return tl.int64 if sum(reach) + TILE >= 2**31 else tl.int32


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    (x,), (y,) = inputs, outputs
    assert x is not None
    _, axis, direction, exclusive = (None, *(value for (value,) in spec.attributes(desc)))
    product = spec.name == "CUMULATIVE_PRODUCT"
    dtype, tally, scaled = _types(x.type, product)
    geometry = Geometry.of(x, y, axis)
    constants = {
        "PRODUCT": product,
        "SCALED": scaled,
        "TALLY": tally,
        "EXCLUSIVE": bool(exclusive),
        "REVERSE": direction == AxisDirection.DECREASING,
        "INDEX": geometry.index,
    }
    is_across = geometry.is_across
    is_narrow = is_across and geometry.lines[0].size < NARROW
    if is_narrow:
        lines, along, warps = WARP // 2, min(next_power_of_2(geometry.axis.size), DEEP), 1
        is_across = False
    elif is_across:
        # Two lines for a thread where there are many: wider pieces are read.
        lines, warps = (2 * WARP if geometry.count >= 8 * WARP * FEW and not scaled else WARP), 1
        deep = DEEP // 2 if lines > WARP and dtype.itemsize == 8 else DEEP
        along = min(next_power_of_2(geometry.axis.size), deep)
    else:
        elements = min(TILE, TILE_BYTES // dtype.itemsize) // (2 if scaled else 1)
        along, warps = min(next_power_of_2(geometry.axis.size), elements), 4
        lines = min(elements // along, next_power_of_2(geometry.count))
    programs = -(-geometry.count // lines)
    if geometry.axis.size > 8 * along and programs < FEW:
        return _in_steps(geometry, constants, dtype, lines, along, int(not is_across), is_narrow, programs, warps)
    if programs >= 2**31:
        return Declined(f"{programs} programs are more than a launch takes")
    tile = {
        "LINES": lines,
        "AXIS": along,
        "DIM": int(not is_across),
        "NARROW": is_narrow,
        "ONE": geometry.axis.size <= along,
    }
    shape = {"LOOPS": max(len(geometry.lines), 1), **tile}
    typed = _TYPED[dtype]
    arguments = geometry.arguments()
    launch = Launch(scan_kernels.scan_tiles, programs, arguments, {**shape, **constants}, (typed, typed), warps)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0])

    return Planned(f"scan by tiles of {lines} lines x {along}, {programs} programs", run)


def _in_steps(
    geometry: Geometry,
    constants: dict[str, Any],
    dtype: torch.dtype,
    lines: int,
    along: int,
    dim: int,
    narrow: bool,
    blocks: int,
    warps: int,
) -> Planned:
    tiles = -(-geometry.axis.size // along)
    parts = max(1, STEP_BYTES // (blocks * lines * along * dtype.itemsize))
    parts = min(1 << (parts.bit_length() - 1), next_power_of_2(tiles), MOST_PARTS)
    steps = -(-tiles // parts)
    span = max(parts, WARP * warps) if lines == 1 else parts
    tile = {"PARTS": parts, "SPAN": span, "LINES": lines, "AXIS": along, "DIM": dim, "NARROW": narrow}
    shape = {"LOOPS": max(len(geometry.lines), 1), **tile}
    typed = _TYPED[dtype]
    launch = Launch(scan_kernels.scan_step, 2 * parts * blocks, (), {**shape, **constants}, (typed, typed), warps)
    wide = _WIDE[constants["TALLY"]]
    arguments = geometry.arguments()

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x, y = inputs[0], outputs[0]
        totals = torch.empty(2 * blocks * parts * lines, dtype=wide, device=x.device)
        carries = torch.empty(2 * blocks * lines, dtype=wide, device=totals.device)
        exponents: tuple[torch.Tensor | None, ...] = (None, None)
        if constants["SCALED"]:
            exponents = tuple(torch.empty_like(each, dtype=torch.int32) for each in (totals, carries))
        for step in range(steps + 1):
            launch(x, y, totals, exponents[0], carries, exponents[1], arguments=(step, *arguments))

    return Planned(f"scan by {steps} steps of {parts} tiles of {lines} lines x {along}, {blocks} rows of them", run)


_TYPED = {torch.float32: tl.float32, torch.float16: tl.float16, torch.int32: tl.int32, torch.int64: tl.int64}
_WIDE = {tl.float64: torch.float64, tl.float32: torch.float32, tl.int32: torch.int32, tl.int64: torch.int64}


def _types(data_type: TensorDataType, product: bool) -> tuple[torch.dtype, Any, bool]:
    """The type that a kernel reads and writes, that of its tallies, and whether these carry exponents."""
    if data_type == TensorDataType.FLOAT32:
        return torch.float32, tl.float64, product
    if data_type == TensorDataType.FLOAT16:
        return torch.float16, tl.float32, product
    bits = BITS[TYPES[data_type].itemsize]
    return bits, {torch.int32: tl.int32, torch.int64: tl.int64}[bits], False
