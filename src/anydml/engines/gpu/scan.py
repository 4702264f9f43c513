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
LONG = 1024
"""Elements of a part of a product, at most: so many mantissas stay in range."""
WARP, WARPS = 32, 4
DEEP = 16
"""Elements of a part where many lines lie side by side, and half as many as where few do: a thread has them all."""
NARROW, FLAT = 8, 64
"""Fewer lines side by side are read along the axis: they lie in the lines of a cache that a thread reads next. Elements
of a part there; of products a quarter."""
FEW, MANY = 256, 1 << 18
"""Programs that keep a GPU busy: fewer long lines go in chains. Lines that keep it busy with a warp for each tile."""
PIECE, TILES = 8 << 10, 4
"""Bytes of a tile in a chain, at most, and tiles of a piece."""
GROUPS = 8, 48
"""Pieces in a group of a chain, and groups in a great group: of several lines, and of one. The exponents of a great
group's elements, of 48 * 48 pieces of 4096, add up to less than 2^31 even if each is -149.
"""


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
    tile, warps = _tile(geometry, dtype, scaled)
    size = tile["PARTS"] * tile["DEPTH"]
    programs = -(-geometry.count // tile["LINES"])
    loops = {"LOOPS": max(len(geometry.lines), 1)}
    # A tile of a product is small along the axis.
    if geometry.axis.size > 4 * size and programs < FEW * (2 if scaled and tile["DIM"] == 2 else 1):
        return _in_a_chain(geometry, {**loops, **tile, **constants}, dtype, warps)
    if programs >= 2**31:
        return Declined(f"{programs} programs are more than a launch takes")
    typed = _TYPED[dtype]
    constants = {**loops, **tile, "ONE": geometry.axis.size <= size, **constants}
    launch = Launch(scan_kernels.scan_tiles, programs, geometry.arguments(), constants, (typed, typed), warps)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0])

    description = f"scan by tiles of {tile['LINES']} lines x {size}, {programs} programs"
    return Planned(description, run, [(launch, [dtype, dtype])])


def _tile(geometry: Geometry, dtype: torch.dtype, scaled: bool) -> tuple[dict[str, Any], int]:
    """A tile, in the kernels' words, and the warps that share it."""
    axis, count = geometry.axis.size, geometry.count
    whole = next_power_of_2(axis)
    near = geometry.lines[0].size if geometry.is_across else 0
    is_narrow = 0 < near < NARROW
    if is_narrow:
        lines, parts, depth, warps = WARP // 2, 1, min(whole, FLAT // (4 if scaled else 1)), 1
    elif near >= 2 * WARP:
        # 256 bytes side by side: memory is slow at pieces that are shorter and far from each other.
        lines, depth = 2 * WARP if dtype.itemsize <= 4 else WARP, min(whole, DEEP)
        parts = warps = 1 if count >= MANY else min(WARPS, next_power_of_2(-(-axis // depth)))
    elif near:
        lines, depth = min(next_power_of_2(near), WARP), min(whole, 2 * DEEP)
        warps = min(WARPS, next_power_of_2(-(-axis // depth)))
        parts = warps * WARP // lines
    else:
        elements = LONG if scaled else min(TILE, TILE_BYTES // dtype.itemsize)
        parts, depth, warps = 1, min(whole, elements), WARPS
        lines = min(elements // depth, next_power_of_2(count))
    dim = 2 if is_narrow or not near else 1
    return {"LINES": lines, "PARTS": parts, "DEPTH": depth, "DIM": dim, "NARROW": is_narrow}, warps


def _in_a_chain(geometry: Geometry, constants: dict[str, Any], dtype: torch.dtype, warps: int) -> Planned:
    lines, tally = constants["LINES"], constants["TALLY"]
    tiles = 1
    if constants["DIM"] == 2:
        tiles = TILES
        constants["DEPTH"] = min(constants["DEPTH"], PIECE // dtype.itemsize)
    size = tiles * constants["PARTS"] * constants["DEPTH"]
    blocks, pieces = -(-geometry.count // lines), -(-geometry.axis.size // size)
    group = GROUPS[lines == 1]
    span = max(group, WARP * warps) if lines == 1 else group
    width = tally.primitive_bitwidth // 32 + constants["SCALED"]
    words = 16 + (pieces + -(-pieces // group) + pieces // group**2 + 1) * blocks * lines * width
    constants = {"GROUP": group, "SPAN": span, "WORDS": width, "TILES": tiles, **constants}
    typed = _TYPED[dtype]
    arguments = geometry.arguments()
    launch = Launch(scan_kernels.scan_chain, blocks * pieces, arguments, constants, (typed, typed), warps)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x, y = inputs[0], outputs[0]
        launch(x, y, torch.zeros(words, dtype=torch.int64, device=x.device))

    description = f"scan by a chain of {pieces} pieces of {lines} lines x {size}, {blocks} of them side by side"
    return Planned(description, run, [(launch, [dtype, dtype, torch.int64])])


_TYPED = {torch.float32: tl.float32, torch.float16: tl.float16, torch.int32: tl.int32, torch.int64: tl.int64}


def _types(data_type: TensorDataType, product: bool) -> tuple[torch.dtype, Any, bool]:
    """The type that a kernel reads and writes, that of its tallies, and whether these carry exponents."""
    if data_type == TensorDataType.FLOAT32:
        return torch.float32, tl.float64, product
    if data_type == TensorDataType.FLOAT16:
        return torch.float16, tl.float64 if product else tl.float32, product
    bits = BITS[TYPES[data_type].itemsize]
    return bits, {torch.int32: tl.int32, torch.int64: tl.int64}[bits], False
