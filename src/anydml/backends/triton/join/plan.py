"""JOIN on a GPU: one launch, whatever the number of inputs; where these lie is written to a table before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import NamedTuple

import numpy as np
import torch
import triton.language as tl

from ....core.strided_layout import Layout, fold
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch.tensors import stream_key_of
from ..launch import LARGE, Launch, Planned, Tensors, next_power_of_2
from ..movement.parts import WASTE, parts_of
from . import kernels as join_kernels

TILE_BYTES = 32 << 10
"""Bytes that a program copies."""
SHIFTED, SHIFTED_TILE = 4, 4 << 10
"""Bytes of a word, up to which runs are written in words of 8 bytes that are put together, and that a program copies
then."""
FEW_COLUMNS = 32, 16
"""Words of a part of such a run that is short, where a power of 2 is much more than its words."""
SHORT_RUNS = {1: 64, 2: 64, 4: 16, 8: 16}
"""Words of the mean run, by their bytes, up to which rows are interleaved column by column."""
NARROW_ROW = 4
"""Words of a row, up to which several rows are packed into larger words."""
BLOCK, BLOCKS, PROGRAMS = 1024, 16, 1 << 16
"""Elements that a program copies at once, and how often, where strides let it copy element by element alone: oftener
where there would be more programs than that."""
_KEPT = 64
"""Tables of addresses that a compiled operator keeps."""
_ADDRESS_COUNTS = (4, 16, 64)
"""Addresses that a launch may take as arguments; it takes the fewest that are enough."""

_WORDS = {1: tl.int8, 2: tl.int16, 4: tl.int32, 8: tl.int64}


@dataclass(frozen=True)
class Piece:
    """An input, and where it goes: sizes and strides in bytes, of dimensions that both walk, folded."""

    sizes: tuple[int, ...]
    x: tuple[int, ...]
    y: tuple[int, ...]
    start: int
    """Bytes before it in the output."""

    def as_rows(self, item: int) -> tuple[int, int, int, int] | None:
        """The number of rows, the bytes of a row and the distances of rows in x and y, where a row is contiguous."""
        sizes, x, y = self.sizes, self.x, self.y
        if not sizes or x[-1] != item or y[-1] != item:
            sizes, x, y = (*sizes, 1), (*x, item), (*y, item)
        if len(sizes) == 1:
            sizes, x, y = (1, *sizes), (0, *x), (0, *y)
        return None if len(sizes) > 2 else (sizes[0], sizes[1] * item, x[0], y[0])


def _pieces(inputs: Sequence[Layout], y: Layout, axis: int) -> list[Piece]:
    pieces = []
    start = 0
    # In the order of the output's memory, in which channels may lie last.
    order = sorted(range(len(y.sizes)), key=lambda i: -y.strides[i])
    for x in inputs:
        walked, steps, ends = ([each[i] for i in order] for each in (x.sizes, x.strides, y.strides))
        sizes, _, last = fold(walked, [steps, ends], -1)
        pieces.append(Piece(sizes, tuple(steps[i] for i in last), tuple(ends[i] for i in last), start))
        start += x.sizes[axis] * y.strides[axis]
    return pieces


class Addresses:
    """Tables of addresses on the device, kept for inputs that are joined again.

    A kernel writes them from its arguments, so that whatever uses a table on the same stream comes after, and a graph
    that is captured writes its own at each replay. So none is shared with another stream, or with a graph.
    """

    def __init__(self, count: int, device: torch.device) -> None:
        self._device = device
        self._size = next((size for size in _ADDRESS_COUNTS if size >= count), _ADDRESS_COUNTS[-1])
        self._launches = -(-count // self._size)
        constants = {"COUNT": self._size}
        self.launch = Launch(join_kernels.write_addresses, 1, (0, (LARGE,) * self._size), constants, (tl.int64,), 1)
        self._tables: dict[tuple[int, bytes], _Table] = {}

    def table(self, stream: int, places: bytes) -> _Table:
        """The table of these addresses, 8 bytes each, for launches on a stream."""
        key = stream, places
        found = self._tables.get(key)
        if found is None:
            found = self.write(places)
            if len(self._tables) >= _KEPT:
                # Another thread may have been the first to make room.
                self._tables.pop(next(iter(self._tables)), None)
            self._tables[key] = found
        return found

    def write(self, places: bytes) -> _Table:
        size, addresses = self._size, np.frombuffer(places, np.int64).tolist()
        table = torch.empty(size * self._launches, dtype=torch.int64, device=self._device)
        for first in range(0, size * self._launches, size):
            part = addresses[first : first + size]
            self.launch(table, arguments=(first, (*part, *[0] * (size - len(part)))))
        return _Table(table, gcd(16, *addresses))


class _Table(NamedTuple):
    addresses: torch.Tensor
    alignment: int
    """The alignment that all addresses have, up to 16."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    (y,) = outputs
    (axis,) = spec.attributes(desc)["Axis"]
    pieces = _pieces([x for x in inputs if x is not None], y, axis)
    item = y.dtype.itemsize
    rows = [piece.as_rows(item) for piece in pieces]
    shared = {(row[0], row[3]) for row in rows if row is not None}
    if None in rows or len(shared) > 1:
        return _kernel(lambda alignment: _by_elements(pieces, item), item, item, len(pieces), device)
    ((count, y_row),) = shared
    runs = [_Run(row[1], row[2], piece.start) for row, piece in zip(rows, pieces, strict=True) if row is not None]
    step = gcd(16, y_row, *(number for run in runs for number in run))

    def planned(alignment: int) -> _Copy:
        size = min(alignment, 8)
        if len(runs) > 1 and count > 1 and sum(run.size for run in runs) <= SHORT_RUNS[size] * size * len(runs):
            return _by_columns(runs, count, y_row, size)
        if size <= SHIFTED:
            return _by_shifts(runs, count, y_row, size)
        return _by_runs(runs, count, y_row, size, alignment == 16)

    width = sum(run.size for run in runs)
    is_short = count > 1 and len(runs) >= 2 and width <= NARROW_ROW * step and step < 4
    is_even = y_row == width and width * count % 4 == 0 and len({run.x_row for run in runs}) == 1
    packed = _packed_rows(runs, count, step) if is_short and is_even else None
    return _kernel(planned, step, item, len(pieces), device, packed)


class _Run(NamedTuple):
    """The run of an input in each row, in bytes."""

    size: int
    x_row: int
    start: int
    """Bytes before it in a row of the output."""


class _Copy(NamedTuple):
    launch: Launch
    units: np.ndarray
    """A row of numbers for each."""
    description: str


_units_of_graphs: dict[int, torch.Tensor] = {}
"""What captured graphs read, which may outlive the operator: kept for ever."""


def _kernel(
    planned: Callable[[int], _Copy], step: int, item: int, count: int, device: str, packed: _Copy | None = None
) -> Planned:
    """A kernel whose words divide `step` bytes, one for each alignment that addresses may have; and `packed`, which
    needs no more than an output that begins at a multiple of 4."""
    place = torch.device(device)
    addresses = Addresses(count, place)
    copies = {step >> i: planned(step >> i) for i in range(5) if step >> i >= min(item, step)}
    # Copied while we wait, so that every stream may read them.
    usual = packed or copies[step]
    units_of = {id(it): torch.from_numpy(it.units).to(place) for it in (usual, *copies.values())}

    def run_at(inputs: Tensors, outputs: Tensors, places: bytes) -> None:
        stream, read = stream_key_of(place), places[: 8 * count]
        table = addresses.write(read) if stream is None else addresses.table(stream, read)
        out = outputs[0]
        is_even = packed is not None and out.data_ptr() % 4 == 0
        copy = usual if is_even else copies[gcd(step, out.data_ptr(), table.alignment)]
        units = units_of[id(copy)]
        if stream is None:
            _units_of_graphs[id(units)] = units
        copy.launch(table.addresses, units, out)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        run_at(inputs, outputs, np.array([x.data_ptr() for x in inputs], np.int64).tobytes())

    launches = (usual.launch, [torch.int64] * 3), (addresses.launch, [torch.int64])
    return Planned(f"join of {count} inputs, {usual.description}", run, launches, run_at)


def _by_runs(runs: list[_Run], rows: int, y_row: int, size: int, even: bool) -> _Copy:
    columns = min(next_power_of_2(max(run.size for run in runs) // size), TILE_BYTES // size)
    tile_rows = min(TILE_BYTES // (columns * size), next_power_of_2(rows))
    units = _units([(i, run.size // size, run.x_row // size, run.start // size) for i, run in enumerate(runs)], columns)
    units[:, 1] *= columns
    constants = {"WORD": _WORDS[size], "ROWS": tile_rows, "COLUMNS": columns, "EVEN": even}
    arguments = len(units), rows, y_row // size
    launch = Launch(
        join_kernels.join_runs,
        len(units) * -(-rows // tile_rows),
        arguments,
        constants,
        (tl.int64, tl.int64, _WORDS[size]),
    )
    return _Copy(launch, units, f"{rows} rows of runs, by tiles of {tile_rows} x {columns * size} bytes")


def _by_shifts(runs: list[_Run], rows: int, y_row: int, size: int) -> _Copy:
    columns = _columns(max(run.size for run in runs))
    tile_rows = min(SHIFTED_TILE // (columns * 8), next_power_of_2(rows))
    units = _units([(i, run.size, run.x_row, run.start) for i, run in enumerate(runs)], columns * 8)
    constants = {"ITEM": _WORDS[size], "ROWS": tile_rows, "COLUMNS": columns}
    programs, types = len(units) * -(-rows // tile_rows), (tl.int64, tl.int64, tl.int8)
    launch = Launch(join_kernels.join_shifted, programs, (len(units), rows, y_row), constants, types)
    return _Copy(launch, units, f"{rows} rows of runs, by shifted tiles of {tile_rows} x {columns * 8} bytes")


def _units(pieces: Sequence[tuple[int, ...]], part: int) -> np.ndarray:
    """Of each piece, of which the second number is how much it has, its parts: their number is put before that one."""
    table = np.array(pieces, np.int64)
    counts = -(-table[:, 1] // part)
    every = np.repeat(np.arange(len(table)), counts)
    numbers = np.arange(len(every)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.ascontiguousarray(np.insert(table[every], 1, numbers, axis=1))


def _words(runs: Sequence[_Run], size: int) -> np.ndarray:
    """Of each word of a row of the output the input, the word's number in its run, and the input's row stride."""
    pieces = [(i, run.size // size, run.x_row // size) for i, run in enumerate(runs)]
    return np.ascontiguousarray(_units(pieces, 1)[:, [0, 1, 3]])


def _columns(run: int) -> int:
    """The words of a part of a run of so many bytes: few where many would leave threads idle."""
    words = -(-run // 8)
    columns = min(parts_of(run)[0], SHIFTED_TILE // 8)
    few = (size for size in FEW_COLUMNS if -(-words // size) * size <= WASTE * words)
    return columns if -(-words // columns) * columns <= WASTE * words else next(few, columns)


def _by_columns(runs: list[_Run], rows: int, y_row: int, size: int) -> _Copy:
    units = _words(runs, size)
    columns = min(next_power_of_2(len(units)), 64)
    tile_rows = max(TILE_BYTES // 8 // (columns * size), 1)
    constants = {"WORD": _WORDS[size], "ROWS": tile_rows, "COLUMNS": columns}
    arguments = len(units), rows, y_row // size
    programs = -(-rows // tile_rows) * -(-len(units) // columns)
    launch = Launch(join_kernels.join_columns, programs, arguments, constants, (tl.int64, tl.int64, _WORDS[size]))
    return _Copy(
        launch, units, f"{rows} rows of short runs interleaved, by tiles of {tile_rows} x {columns * size} bytes"
    )


def _packed_rows(runs: list[_Run], rows: int, size: int) -> _Copy:
    units = _words(runs, size)
    width, count = len(units), rows * len(units) * size // 4
    constants = {"WORD": _WORDS[size], "WIDTH": width, "COLUMNS": next_power_of_2(width), "BLOCK": BLOCK}
    launch = Launch(
        join_kernels.join_packed_rows,
        -(-count // (BLOCK * width)),
        (count, runs[0].x_row // size),
        constants,
        (tl.int64, tl.int64, tl.int32),
    )
    return _Copy(launch, units, f"{rows} rows of {width} words, {4 // size} packed into one store")


def _by_elements(pieces: list[Piece], item: int) -> _Copy:
    loops = max(1, *(len(piece.sizes) for piece in pieces))
    counts = [prod(piece.sizes) for piece in pieces]
    blocks = max(BLOCKS, next_power_of_2(-(-sum(counts) // (BLOCK * PROGRAMS))))
    table: list[tuple[int, ...]] = []
    for i, (piece, count) in enumerate(zip(pieces, counts, strict=True)):
        numbers: list[int] = []
        for size, x, y in zip(piece.sizes[::-1], piece.x[::-1], piece.y[::-1], strict=True):
            numbers += [size, x // item, y // item]
        numbers += [1, 0, 0] * (loops - len(piece.sizes))
        table.append((i, count, piece.start // item, *numbers))
    units = _units(table, BLOCK * blocks)
    units[:, 1] *= BLOCK * blocks
    constants = {"LOOPS": loops, "WORD": _WORDS[item], "BLOCK": BLOCK, "BLOCKS": blocks}
    launch = Launch(
        join_kernels.join_elements, len(units), (len(units),), constants, (tl.int64, tl.int64, _WORDS[item])
    )
    return _Copy(launch, units, "element by element")
