"""CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT on a GPU: which kernel walks a tensor, and in what tiles.

The order in which floats are combined depends on sizes, strides, type and, along rows, on where these begin modulo 16
bytes, in every launch alike; the number of lines is among the sizes, as few long ones are cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from threading import Lock
from typing import Any, NamedTuple

import torch
import triton.language as tl

from ....core.enums import AxisDirection, TensorDataType
from ....core.strided_layout import Layout, fold
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch.tensors import DEFAULT_STREAM, TYPES, stream_key_of
from ..launch import BITS, LARGE, WIDE, Launch, Planned, Tensors, next_power_of_2
from . import lookback as scan_chain_kernels
from . import narrow as scan_narrow_kernels
from . import rows as scan_row_kernels
from . import short as scan_short_kernels
from . import tile as scan_kernels

TILE, TILE_BYTES, SHORT_BYTES = 4096, 16 << 10, 4 << 10
"""Elements and bytes of a tile where elements of a line are adjacent, at most; and bytes of one of whole lines that are
no longer than this: the more programs share the GPU, the less it waits."""
VECTOR = 16
"""Bytes that a thread reads or writes at once, at multiples of as many."""
SEGMENT = 2 << 10
"""Bytes of a row, up to which several are scanned as one; and of what a warp scans so."""
SEGMENT_WARPS = 1, 2, 4
"""Warps that scan several rows as one: the fewest that leave few elements idle."""
ROW_TILES = {2: (1024, 512, 256), 4: (1024, 512, 256), 8: (512, 256)}
"""Elements of a tile of a row that a warp scans alone, by the bytes of an element; the second of them and the next of
products. The largest that leaves few elements idle."""
WIDE_TILES, WIDE_ROW, MANY_ROWS = {2: 2048, 4: 2048, 8: 1024}, 8192, 8192
"""Elements of a tile of a row that four warps scan, those of a row from which on they do, and rows that keep a GPU busy
with one warp each."""
BUSY = 2 / 3
"""The least part of a tile's elements that are to be in use, where there is a choice."""
LONG = 1024
"""Elements of a part of a product, at most: a product of so many mantissas stays in range."""
WARP, WARPS = 32, 4
DEEP = 16
"""Elements of a part where lines are adjacent, all of one thread; twice as many where a thread reads pairs."""
NARROW = 2 * WARP
"""Adjacent lines, below which a tile is read and written in the order of memory: a small program's threads."""
FEW_PROGRAMS, MANY_LINES = 256, 1 << 16
"""Programs that keep a GPU busy: fewer long lines go in chains. Lines that keep it busy with a warp for each tile."""
PIECE, TILES, SCALED_TILES = 8 << 10, {2: 4, 4: 4, 8: 2}, 8
"""Bytes of a tile in a chain along a line, at most, and tiles of a piece of sums, by the bytes of an element, and of
products: pieces that are read before they are scanned are to stay in the cache until they are."""
FLAT = {2: 7, 4: 7, 8: NARROW - 1}
"""Adjacent lines, by the bytes of an element, up to which a program's threads hold a piece of long ones, as the cache
would be read by pieces of sectors: more elements take more instructions than memory time."""
HELD = {2: (4096, 4), 4: (4096, 4), 8: (2048, 4)}
"""Elements of such a piece, its lines rounded up to a power of 2, and warps, by the bytes of an element."""
PIECES = {2: 16 << 10, 4: 20 << 10, 8: 16 << 10}
"""Bytes of a piece of sums where lines lie side by side, by those of an element: all that are read before they are
scanned are to stay in the cache until they are."""
WIDE_PIECES = {2: 40 << 10, 4: 80 << 10, 8: 40 << 10}
"""Likewise where many lie so."""
LINES, SHALLOW = {2: 128, 4: 64, 8: 64}, 8
"""Lines of a tile, by the bytes of an element, and elements of a part, where lines begin at odd places: memory is slow
at what begins in the middle of its lines, so more of it side by side."""
CHAINED = {2: (128, 4), 4: (128, 8), 8: (64, 8)}
"""Likewise in chains of any lines: twice as many elements of halves are more than registers hold."""
MANY_STEPS = 64
"""Elements of a line, from which on such tiles pay."""
FACTORS = 8 << 10
"""Elements of a piece of products there."""
GROUPS = 8, 32, 48
"""Pieces in a group of a chain, and groups in a super-tile: of several lines, of one of products, of one of sums. The
exponents of a super-tile's elements, of 32 * 32 pieces of 8192, add up to less than 2^31 even if each is -149.
"""
LAST_EPOCH = 2**31 - 1
"""The largest epoch, the upper half of a word, of launches that use the same words one after the other."""


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
        adjacent = self.lines[0]
        return (
            min(adjacent.x, adjacent.y) < min(self.axis.x, self.axis.y)
            or adjacent.x + adjacent.y < self.axis.x + self.axis.y
        )

    @property
    def is_even(self) -> bool:
        """Whether lines lie side by side so that two by two they begin at even places."""
        first, *others = self.lines
        strides = [stride for loop in (self.axis, *others) for stride in (loop.x, loop.y)]
        return first.x == first.y == 1 and not any(number % 2 for number in (first.size, *strides))

    @property
    def is_along(self) -> bool:
        """Whether elements of a line lie side by side."""
        return self.axis.x == self.axis.y == 1

    @property
    def is_packed(self) -> bool:
        """Whether lines lie one behind the other."""
        return self.is_along and all(loop.x == loop.y == self.axis.size for loop in self.lines) and len(self.lines) <= 1

    def arguments(self) -> tuple[Any, ...]:
        """In the order of the kernels' signatures."""
        zero = 0
        return (zero, *self.axis, self.count, *self._lines)

    def row_arguments(self) -> tuple[Any, ...]:
        """Likewise where elements of a line lie side by side."""
        span = 1 + sum((loop.size - 1) * loop.x for loop in (self.axis, *self.lines))
        return (span, self.axis.size, self.count, *self._lines)

    @property
    def _lines(self) -> tuple[tuple[int, ...], ...]:
        return tuple(zip(*(self.lines or (Loop(1, 0, 0),)), strict=True))

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
    axis, direction, exclusive = [value for (value,) in spec.attributes(desc).values()]
    product = spec.name == "CUMULATIVE_PRODUCT"
    dtype, accumulator, scaled = _types(x.type, product)
    geometry = Geometry.of(x, y, axis)
    constants = {
        "PRODUCT": product,
        "SCALED": scaled,
        "ACCUMULATOR": accumulator,
        "EXCLUSIVE": bool(exclusive),
        "REVERSE": direction == AxisDirection.DECREASING,
        "INDEX": geometry.index,
    }
    adjacent = geometry.lines[0].size if geometry.is_across else 0
    if not adjacent and geometry.is_along:
        planned = _rows(geometry, constants, dtype, device)
        if planned is not None:
            return planned
    if 0 < adjacent < NARROW:
        kernel, warps = scan_narrow_kernels.scan_narrow, WARPS // 2
        tile = _narrow_tile(geometry, adjacent, dtype, scaled)
    else:
        kernel = scan_kernels.scan_tiles
        tile, warps = _tile(geometry, adjacent, dtype, scaled)
    lines, size = tile.get("USED", tile["LINES"]), tile["PARTS"] * tile["DEPTH"]
    programs = -(-geometry.count // lines)
    # A tile of a product is small along the axis.
    busy = FEW_PROGRAMS * WARPS // warps * (2 if scaled and not adjacent else 1)
    is_odd = adjacent >= NARROW and not scaled and not geometry.is_even
    if geometry.axis.size > 4 * size and programs * (lines if is_odd else 1) < busy * (NARROW if is_odd else 1):
        return _chained(geometry, adjacent, tile, constants, dtype, device)
    if programs >= 2**31:
        return Declined(f"{programs} programs are more than a launch takes")
    constants = {"LOOPS": max(len(geometry.lines), 1), **tile, **constants}
    launch = Launch(kernel, programs, geometry.arguments(), constants, (_TYPED[dtype],) * 2, warps)
    return _launched(f"scan by tiles of {lines} lines x {size}, {programs} programs", launch, dtype)


def _launched(description: str, launch: Launch, dtype: torch.dtype) -> Planned:
    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0])

    return Planned(description, run, [(launch, [dtype, dtype])])


def _rows(geometry: Geometry, constants: dict[str, Any], dtype: torch.dtype, device: str) -> Planned | Declined | None:
    """Of elements side by side; None where tiles of whole rows fit as they are."""
    n, count, item, scaled = geometry.axis.size, geometry.count, dtype.itemsize, constants["SCALED"]
    if n * item <= SHORT_BYTES and n == next_power_of_2(n):
        return None
    if n * item <= SEGMENT:
        has_segments = geometry.is_packed and not constants["EXCLUSIVE"]
        return _segments(geometry, constants, dtype) if has_segments else None
    if n > 4 * TILE and count < FEW_PROGRAMS * (2 if scaled else 1):
        return _chained(geometry, 0, {}, constants, dtype, device)
    if count >= 2**31:
        return Declined(f"{count} programs are more than a launch takes")
    vector = VECTOR // item
    if count < MANY_ROWS or (n >= WIDE_ROW and not scaled):
        size, warps = min(WIDE_TILES[item], LONG if scaled else TILE), WARPS
    else:
        sizes, warps = [size for size in ROW_TILES[item] if not scaled or size < ROW_TILES[item][0]], 1
        reach = n + vector - 1
        size = next((size for size in sizes if reach >= BUSY * (-(-reach // size) * size)), sizes[-1])
    form = {"PARTS": 1, "DEPTH": size, "VECTOR": vector, "ONE": n + vector - 1 <= size}
    constants = {"LOOPS": max(len(geometry.lines), 1), **form, **constants}
    arguments = geometry.row_arguments()
    launch = Launch(scan_row_kernels.scan_rows, count, arguments, constants, (_TYPED[dtype],) * 2, warps)
    return _launched(f"scan of rows by tiles of {size}, {count} programs", launch, dtype)


def _segments(geometry: Geometry, constants: dict[str, Any], dtype: torch.dtype) -> Planned | Declined:
    """Of short rows, several as one."""
    n, vector = geometry.axis.size, VECTOR // dtype.itemsize
    of_warp = SEGMENT // max(dtype.itemsize, 4 if constants["SCALED"] else 0)
    rows = {warps: (warps * of_warp - vector + 1) // n for warps in SEGMENT_WARPS}
    used = {warps: rows[warps] * n / (warps * of_warp) for warps in SEGMENT_WARPS}
    warps = next((warps for warps in SEGMENT_WARPS if used[warps] >= 0.85), max(SEGMENT_WARPS, key=used.__getitem__))
    programs = -(-geometry.count // rows[warps])
    if programs >= 2**31:
        return Declined(f"{programs} programs are more than a launch takes")
    form = {"ROWS": rows[warps], "SIZE": warps * of_warp, "VECTOR": vector}
    names = ("PRODUCT", "SCALED", "ACCUMULATOR", "REVERSE", "INDEX")
    constants = {**form, **{name: constants[name] for name in names}}
    arguments = (0, n * geometry.count, n, -(-(2**32) // n))
    launch = Launch(scan_short_kernels.scan_short_rows, programs, arguments, constants, (_TYPED[dtype],) * 2, warps)
    return _launched(f"segmented scan of {rows[warps]} rows by each of {programs} programs", launch, dtype)


def _tile(geometry: Geometry, adjacent: int, dtype: torch.dtype, scaled: bool) -> tuple[dict[str, Any], int]:
    """A tile, in the kernels' words, and the warps that share it."""
    axis, count = geometry.axis.size, geometry.count
    whole = next_power_of_2(axis)
    pairs = False
    if adjacent:
        # 256 bytes side by side: memory is slow at pieces that are shorter and far from each other.
        pairs = dtype.itemsize == 2 and not scaled and geometry.is_even
        lines, depth, most = WARP if dtype.itemsize == 8 else 2 * WARP, min(whole, DEEP), WARPS
        if scaled and count < MANY_LINES:
            # An element takes more instructions: threads with more of them each, and fewer that wait for others.
            lines, depth, most = WARP, min(whole, 2 * DEEP), WARPS // 2
        least = 2 * MANY_LINES if dtype.itemsize == 2 else MANY_LINES
        if count >= least and axis > MANY_STEPS and not scaled and not geometry.is_even:
            lines, depth = LINES[dtype.itemsize], SHALLOW
            parts = warps = WARPS
        else:
            parts = warps = 1 if count >= MANY_LINES else min(most, next_power_of_2(-(-axis // depth)))
        if pairs and count >= 4 * MANY_LINES:
            lines *= 2
        elif pairs:
            depth = min(whole, 2 * DEEP)
    else:
        is_short = whole * dtype.itemsize <= SHORT_BYTES
        elements = LONG if scaled else min(TILE, (SHORT_BYTES if is_short else TILE_BYTES) // dtype.itemsize)
        depth, warps = min(whole, elements), WARPS
        lines = min(elements // depth, next_power_of_2(count))
        parts = 2 if scaled and axis > depth else 1
    dim, one = 1 if adjacent else 2, axis <= parts * depth
    return {"LINES": lines, "PARTS": parts, "DEPTH": depth, "DIM": dim, "PAIRS": pairs, "ONE": one}, warps


def _narrow_tile(geometry: Geometry, adjacent: int, dtype: torch.dtype, scaled: bool) -> dict[str, Any]:
    """A tile of few lines side by side, for two warps: as many steps along the axis as leave few threads idle."""
    lines = next((lines for lines in (16, 32) if lines // adjacent * adjacent >= 0.75 * lines), NARROW)
    parts = min(NARROW // lines, next_power_of_2(geometry.axis.size))
    lines = NARROW // parts
    depth = min(DEEP, next_power_of_2(-(-geometry.axis.size // parts)))
    size, groups = parts * depth, lines // adjacent
    gap = 1 if groups * (size + 1) * adjacent <= size * lines else 0
    low = 1 if scaled or adjacent >= 8 else min(depth, 16 // dtype.itemsize)
    return {
        "LINES": lines,
        "PARTS": parts,
        "DEPTH": depth,
        "ADJACENT": adjacent,
        "USED": groups * adjacent,
        "PITCH": (size + gap) * adjacent,
        "LOW": low,
        "SAME_STRIDES": all(loop.x == loop.y for loop in (geometry.axis, *geometry.lines)),
    }


def _chained(
    geometry: Geometry, adjacent: int, tile: dict[str, Any], constants: dict[str, Any], dtype: torch.dtype, device: str
) -> Planned:
    accumulator, scaled = constants["ACCUMULATOR"], constants["SCALED"]
    is_row, is_narrow = not adjacent and geometry.is_along, 0 < adjacent <= FLAT[dtype.itemsize]
    if is_narrow:
        form, warps = _narrow_piece(geometry, adjacent, dtype)
    else:
        form, warps = _piece(geometry, adjacent, tile, dtype, scaled)
    lines, size = form["LINES"], form.get("TILES", 1) * form["PARTS"] * form["DEPTH"]
    group = GROUPS[0] if lines > 1 else GROUPS[1 if scaled else 2]
    reach = geometry.axis.size + (VECTOR // dtype.itemsize - 1 if is_row else 0)
    blocks, pieces = -(-geometry.count // form.get("ADJACENT", lines)), -(-reach // size)
    width = accumulator.primitive_bitwidth // 32 + scaled
    words = 16 + (pieces + -(-pieces // group) + pieces // group**2 + 1) * blocks * lines * width
    constants = {
        "GROUP": group,
        "SPAN": max(group, WARP * warps // lines),
        "WORDS": width,
        "LOOPS": max(len(geometry.lines), 1),
        **({"TILES": form["TILES"], "DEPTH": form["DEPTH"], "VECTOR": VECTOR // dtype.itemsize} if is_row else form),
        **constants,
    }
    typed = _TYPED[dtype]
    programs, others = blocks * pieces, geometry.row_arguments() if is_row else geometry.arguments()
    kernels = scan_chain_kernels
    kernel = kernels.scan_row_chain if is_row else kernels.scan_narrow_chain if is_narrow else kernels.scan_chain
    # The epoch and the first ticket, which each launch has of its own: integers of 32 bits, and of 64.
    arguments = (1, LARGE, *others)
    launch = Launch(kernel, programs, arguments, constants, (typed, typed), warps)
    run = _Chain(launch, programs, others, words, torch.device(device))
    description = f"chained scan, {pieces} pieces of {lines} lines x {size}, {blocks} side by side"
    return Planned(description, run, [(launch, [dtype, dtype, torch.int64])])


def _narrow_piece(geometry: Geometry, adjacent: int, dtype: torch.dtype) -> tuple[dict[str, Any], int]:
    """A piece of few lines side by side, which threads hold while they wait, and the warps that share it."""
    elements, warps = HELD[dtype.itemsize]
    lines = next_power_of_2(adjacent)
    width = max(WARP * warps, lines)
    reach = [
        steps * max(loop.x, loop.y) for steps, loop in ((elements // lines, geometry.axis), (lines, geometry.lines[0]))
    ]
    form = {
        "ADJACENT": adjacent,
        "LINES": lines,
        "PARTS": width // lines,
        "DEPTH": elements // width,
        "WITHIN": tl.int64 if sum(reach) >= WIDE else tl.int32,
    }
    return form, warps


def _piece(
    geometry: Geometry, adjacent: int, tile: dict[str, Any], dtype: torch.dtype, scaled: bool
) -> tuple[dict[str, Any], int]:
    """A piece of lines side by side, or of one line, and the warps that share it."""
    item, lines, parts, warps = dtype.itemsize, tile.get("LINES", 1), 1, WARPS
    pairs = False
    if 0 < adjacent < NARROW:
        lines, warps = next_power_of_2(adjacent), WARPS // 2
        parts, depth, elements = NARROW // lines, DEEP * (2 if item == 2 and not scaled else 1), PIECES[item] // item
    elif adjacent:
        parts, depth, elements = WARPS, DEEP, WIDE_PIECES[item] // item
        if not scaled and geometry.count >= 2 * CHAINED[item][0]:
            lines, depth = CHAINED[item]
        elif not scaled:
            pairs = tile["PAIRS"]
    else:
        depth = elements = min(LONG if scaled else TILE, PIECE // item)
    elements = FACTORS if scaled else elements
    tiles = max(1, elements // (lines * parts * depth))
    if not adjacent:
        tiles = SCALED_TILES if scaled else TILES[item]
    form = {
        "TILES": tiles,
        "LINES": lines,
        "PARTS": parts,
        "DEPTH": depth,
        "DIM": 1 if adjacent else 2,
        "PAIRS": pairs,
    }
    return form, warps


class _Chain:
    """Launches a chained scan, with words in which its programs publish aggregates and prefixes.

    Each launch has an epoch of its own, so that nothing has to be cleared on the stream where all of them run in order
    and none is captured. Elsewhere each launch has words of its own.
    """

    def __init__(
        self, launch: Launch, programs: int, arguments: tuple[Any, ...], words: int, device: torch.device
    ) -> None:
        self._launch, self._programs, self._arguments = launch, programs, arguments
        self._count, self._device = words, device
        self._lock = Lock()
        self._kept: torch.Tensor | None = None
        self._epoch = 0

    def __call__(self, inputs: Tensors, outputs: Tensors) -> None:
        if stream_key_of(self._device) != DEFAULT_STREAM:
            return self._run(inputs[0], outputs[0], self._new(), 1)
        # They run in the order of their epochs.
        with self._lock:
            if self._kept is None or self._epoch == LAST_EPOCH:
                self._kept, self._epoch = self._new(), 0
            self._epoch += 1
            try:
                self._run(inputs[0], outputs[0], self._kept, self._epoch)
            except BaseException:
                # Whether it runs is not known, and so not what the words will hold.
                self._kept = None
                raise

    def _run(self, x: torch.Tensor, y: torch.Tensor, words: torch.Tensor, epoch: int) -> None:
        self._launch(x, y, words, arguments=(epoch, (epoch - 1) * self._programs, *self._arguments))

    def _new(self) -> torch.Tensor:
        return torch.zeros(self._count, dtype=torch.int64, device=self._device)


_TYPED = {torch.float32: tl.float32, torch.float16: tl.float16, torch.int32: tl.int32, torch.int64: tl.int64}


def _types(data_type: TensorDataType, product: bool) -> tuple[torch.dtype, Any, bool]:
    """The type that a kernel reads and writes, that of its accumulators, and whether these carry exponents."""
    if data_type == TensorDataType.FLOAT32:
        return torch.float32, tl.float64, product
    if data_type == TensorDataType.FLOAT16:
        return torch.float16, tl.float64 if product else tl.float32, product
    bits = BITS[TYPES[data_type].itemsize]
    return bits, {torch.int32: tl.int32, torch.int64: tl.int64}[bits], False
