"""REDUCE, ARGMIN and ARGMAX on a GPU: which tiles go along which lines, and where lines are cut.

The order in which elements are combined depends on sizes, strides and type alone, on every run and every GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, nan
from typing import Any, NamedTuple

import torch
import triton.language as tl

from ....core.enums import AxisDirection, ReduceFunction
from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch.tensors import TYPES
from ..launch import MOST, WIDE, Launch, Planned, Tensors, between_elements, next_power_of_2, too_many
from ..lines import Lines
from . import kernels as reduction_kernels
from . import rows as reduction_row_kernels

TILE, HEAVY_TILE, WIDE_TILE = 1024, 256, 2048
"""Elements of a tile along lines; of one whose accumulators take two words, or many instructions; of one of few long
lines, and of one across lines."""
EXPONENTIALS, AHEAD = {False: (32, 1), True: (128, 4)}, 16
"""Elements of a tile of exponentials, and the warps that share it, along lines and across them; and the tiles that are
read at once."""
SIDE_BY_SIDE = 64
"""Lines of a tile that goes along the axis where lines lie side by side."""
FEW_LINES = 16
"""Adjacent lines, below which a tile goes along the axis all the same."""
FEW_ROWS = 512
"""Long lines, below which a program has more of one."""
PROGRAMS, SPAN = 2048, 1 << 14
"""Programs that keep a GPU busy, to which lines are cut, and the fewest elements of a program then."""
WARPS, WIDE_WARPS = 2, 8
"""Of a program along lines, and across them."""
SMALL_ITEM, VECTOR, LONG_ROW = 2, 16, 512
"""Bytes of an element, up to which rows that begin anywhere are read by whole vectors; of a vector; and of a row, from
which on they are."""
ROW_TILE, BYTES_TILE = 512, 256
"""Elements of a tile then; half of it where accumulators take two words. Words of a tile of bytes."""
STEPS, LEAST = 4, 16
"""Tiles along a short line, and the fewest elements of each."""


class Function(NamedTuple):
    kind: str
    map: str = ""
    finish: str = ""


FUNCTIONS = {
    ReduceFunction.ARGMAX: Function("ARG"),
    ReduceFunction.ARGMIN: Function("ARG", "NEGATIVE"),
    ReduceFunction.AVERAGE: Function("SUM", "", "MEAN"),
    ReduceFunction.L1: Function("SUM", "ABS"),
    ReduceFunction.L2: Function("SUM", "SQUARE", "ROOT"),
    ReduceFunction.LOG_SUM: Function("SUM", "", "LOG"),
    ReduceFunction.LOG_SUM_EXP: Function("LOG_SUM"),
    ReduceFunction.MAX: Function("MAX"),
    ReduceFunction.MIN: Function("MAX", "NEGATIVE", "NEGATIVE"),
    ReduceFunction.MULTIPLY: Function("PRODUCT"),
    ReduceFunction.SUM: Function("SUM"),
    ReduceFunction.SUM_SQUARE: Function("SUM", "SQUARE"),
}


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    d: Any = desc
    x, y = inputs[0], outputs[0]
    assert x is not None
    declined = between_elements((x, y))
    if declined is not None:
        return declined
    function = FUNCTIONS[d.Function if spec.name == "REDUCE" else ReduceFunction[spec.name]]
    if x.dtype.kind == "u" and function.map == "ABS":
        function = FUNCTIONS[ReduceFunction.SUM]
    lines = Lines.of(x, y, d.Axes)
    is_last = getattr(d, "AxisDirection", AxisDirection.INCREASING) == AxisDirection.DECREASING
    accumulator = accumulator_of(function, x, lines.n, is_last)
    rows = _rows(lines, accumulator, TYPES[x.type], TYPES[y.type])
    if rows is not None:
        return rows
    found = reduction(lines, accumulator, TYPES[x.type], TYPES[y.type], torch.device(device))
    if isinstance(found, Declined):
        return found

    def run(inputs: Tensors, outputs: Tensors) -> None:
        found.run(inputs[0], outputs[0], outputs[0])

    return Planned(found.words, run, found.launches)


def _rows(lines: Lines, accumulator: Accumulator, given: torch.dtype, taken: torch.dtype) -> Planned | None:
    """Of long rows of small elements side by side that begin anywhere, of which there are many; else None."""
    (axis, *others), item, count = lines.axis, given.itemsize, lines.count
    is_odd = any(loop.x * item % VECTOR for loop in lines.loops) or lines.n * item % VECTOR
    kind = accumulator.constants["KIND"]
    if others or axis.x != 1 or kind == "LOG_SUM" or min(loop.x for loop in lines.loops) < 0:
        return None
    if item > SMALL_ITEM or not is_odd or lines.n * item < LONG_ROW or not FEW_ROWS <= count < MOST:
        return None
    span = lines.n + sum((loop.size - 1) * loop.x for loop in lines.loops)
    if item == 1:
        return _bytes(lines, accumulator, given, taken) if kind == "MAX" else None
    size = ROW_TILE // (2 if accumulator.second is not None else 1)
    launch = Launch(
        reduction_row_kernels.reduce_rows,
        count,
        (span, lines.n, *lines.arguments()[:3]),
        {
            **accumulator.constants,
            "LOOPS": len(lines.loops),
            "DEPTH": size,
            "VECTOR": VECTOR // item,
            "INDEX": lines.index,
        },
        num_warps=1,
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0])

    return Planned(f"reduce {count} rows of {lines.n} by tiles of {size}", run, ((launch, [given, taken]),))


def _bytes(lines: Lines, accumulator: Accumulator, given: torch.dtype, taken: torch.dtype) -> Planned:
    constants = {
        "IS_MINIMUM": accumulator.constants["MAP"] == "NEGATIVE",
        "WORD": tl.int32 if given == torch.int8 else tl.uint32,
        "LOOPS": len(lines.loops),
        "DEPTH": BYTES_TILE,
        "INDEX": lines.index,
    }
    arguments = (lines.n, *lines.arguments()[:3])
    launch = Launch(reduction_row_kernels.largest_bytes, lines.count, arguments, constants, num_warps=1)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0])

    return Planned(f"reduce {lines.count} rows of {lines.n} bytes by words", run, ((launch, [given, taken]),))


class Accumulator(NamedTuple):
    constants: dict[str, Any]
    first: torch.dtype
    second: torch.dtype | None
    """None where there is no second half."""


def accumulator_of(function: Function, x: Layout, n: int, is_last: bool = False) -> Accumulator:
    """What a line of x, of n elements, is combined in."""
    kind, map, finish = function
    is_float = x.dtype.kind == "f"
    if kind in ("MAX", "ARG", "LOG_SUM"):
        first = torch.float32 if is_float else TYPES[x.type] if x.dtype.itemsize > 2 else torch.int32
        none: float = -inf if kind == "LOG_SUM" else nan if is_float else torch.iinfo(first).min
    elif is_float:
        first = torch.float64 if x.dtype.itemsize > 2 or kind in ("PRODUCT", "MOMENTS") else torch.float32
        none = 1 if kind == "PRODUCT" else 0
    else:
        first = torch.int64 if x.dtype.itemsize > 4 else torch.int32
        kind, none = ("MULTIPLY", 1) if kind == "PRODUCT" else (kind, 0)
    index = torch.int64 if n >= WIDE else torch.int32
    wide = torch.float64 if x.dtype.itemsize > 2 else torch.float32
    second = {"ARG": index, "PRODUCT": torch.int32, "LOG_SUM": wide, "MOMENTS": first}.get(kind)
    constants = {
        "KIND": kind,
        "MAP": map,
        "FINISH": finish,
        "VALUE": _triton(first),
        "SECOND": _triton(second or torch.int32),
        "NONE": none,
        "LAST": is_last,
        "NOWHERE": -1 if is_last else torch.iinfo(index).max,
    }
    return Accumulator(constants, first, second)


def _triton(dtype: torch.dtype) -> Any:
    return getattr(tl, str(dtype).removeprefix("torch."))


class Reduction(NamedTuple):
    words: str
    run: Callable[[Any, Any, Any], None]
    """Takes a tensor, and where results go: or both halves of the accumulators of lines, one behind the other."""
    launches: Sequence[tuple[Launch, Sequence[torch.dtype | None]]]


def reduction(
    lines: Lines, accumulator: Accumulator, given: torch.dtype, taken: torch.dtype | None, device: torch.device
) -> Reduction | Declined:
    """Reduces each line to an element of a type, or to an accumulator where that is None."""
    first, second = accumulator.first, accumulator.second
    count, n = lines.count, lines.n
    is_across = lines.adjacent >= FEW_LINES
    is_heavy = second is not None
    has_exponentials = accumulator.constants["KIND"] == "LOG_SUM"
    tile, warps = _shared(is_across, is_heavy, count)
    if has_exponentials:
        tile, warps = EXPONENTIALS[is_across]
    shape = _tile(is_across, max(lines.adjacent, 1), count, n, tile)
    blocks = -(-count // shape["LINES"])
    parts, span = _cut(blocks, shape["LINES"], n, shape["DEPTH"])
    declined = too_many(blocks * parts)
    if declined is not None:
        return declined
    every = lines.arguments()
    along = every[len(every) // 2 :]
    loops = (*every[:3], *along[:2])
    kinds = {
        "LOOPS": len(lines.loops),
        "AXES": len(lines.axis),
        "SIDE_BY_SIDE": lines.loops[0].x == 1,
        "DIM": 0 if is_across else 1,
    }
    index = tl.int64 if count * parts + (1 << 20) >= WIDE else lines.index

    def launch(n: int, span: int, shape: dict[str, int], steps: tuple[int, ...], states: tuple[bool, bool]) -> Launch:
        blocks = -(-count // shape["LINES"])
        where = dict(zip(("FROM_STATES", "TO_STATES"), states, strict=True))
        ahead = min(AHEAD, next_power_of_2(-(-span // shape["DEPTH"]))) if has_exponentials else 0
        return Launch(
            reduction_kernels.reduce_lines,
            blocks * -(-n // span),
            (n, span, lines.n, count, blocks, *steps, *loops),
            {**accumulator.constants, **where, **kinds, **shape, "AHEAD": ahead, "INDEX": index},
            num_warps=warps,
        )

    states = [first, second or first]
    last = states if taken is None else [taken, taken]
    words = f"reduce {count} lines of {n}, {shape['LINES']} x {shape['DEPTH']} at once"
    if parts == 1:
        whole = launch(n, n, shape, (0, 0, 1, 0), (False, taken is None))

        def run(x: Any, y: Any, z: Any) -> None:
            whole(x, x, y, z)

        return Reduction(words, run, ((whole, [given, given, *last]),))

    steps = (1, count) if is_across else (parts, 1)
    cut = launch(n, span, shape, (0, 0, *steps), (False, True))
    joined = launch(parts, parts, _tile(is_across, 1, count, parts, tile), (*steps, 1, 0), (True, taken is None))

    def run_cut(x: Any, y: Any, z: Any) -> None:
        a = torch.empty(count * parts, dtype=first, device=device)
        b = torch.empty(count * parts, dtype=second, device=device) if second else a
        cut(x, x, a, b)
        joined(a, b, y, z)

    launches = (cut, [given, given, *states]), (joined, [*states, *last])
    return Reduction(f"{words}, in {parts} parts", run_cut, launches)


def _shared(is_across: bool, is_heavy: bool, count: int) -> tuple[int, int]:
    """The elements of a tile, and the warps that share it."""
    if is_across:
        is_wide = not is_heavy and count <= SIDE_BY_SIDE * PROGRAMS // 2
        return (WIDE_TILE, WIDE_WARPS) if is_wide else (WIDE_TILE // (4 if is_heavy else 2), WIDE_WARPS // 2)
    if is_heavy:
        return HEAVY_TILE, WARPS
    return (WIDE_TILE, WIDE_WARPS // 2) if count < FEW_ROWS else (TILE, WARPS)


def _tile(is_across: bool, adjacent: int, count: int, n: int, elements: int) -> dict[str, int]:
    if is_across:
        lines = min(SIDE_BY_SIDE, next_power_of_2(count))
        return {"LINES": lines, "DEPTH": min(elements // lines, next_power_of_2(n))}
    # Short lines take several steps, so that few places of a tile lie beyond their end, and few are combined.
    depth = min(
        elements // next_power_of_2(adjacent), max(next_power_of_2(-(-n // STEPS)), min(next_power_of_2(n), LEAST))
    )
    return {"LINES": min(elements // depth, next_power_of_2(count)), "DEPTH": depth}


def _cut(blocks: int, lines: int, n: int, depth: int) -> tuple[int, int]:
    """How many parts there are of a line, and how many elements each has."""
    parts = min(PROGRAMS // blocks, lines * n // SPAN)
    if blocks > PROGRAMS // 2 or parts < 2:
        return 1, n
    span = -(-n // (parts * depth)) * depth
    return -(-n // span), span
