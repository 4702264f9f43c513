"""TOP_K and NONZERO_COORDINATES on a GPU: lines sorted in registers, and elements counted before they are written."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import torch

from ....core.enums import AxisDirection
from ....core.strided_layout import Layout
from ....core.tensor_desc import packed_strides
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import BITS, WIDE, Launch, Planned, Tensors, between_elements, next_power_of_2, too_many
from ..movement.plan import POINTED
from ..tiles import folded_loops, index_type, inner_first, steps_of
from . import kernels as selection_kernels

BLOCK = 4096
"""Elements of a program that looks for those that are there."""
LONGEST, SORTED = 1024, 1024
"""Elements of the longest line that is sorted in registers, and of all that a program sorts."""
AT_ONCE = 4096
"""Elements of the longest line of which some are selected in registers."""
LEAST_LEFT_OUT = 4
"""How many times fewer elements are left of these at least."""
LEAST_SELECTED = 64
"""Elements of a line, up to which all are sorted."""
MOST_BRANCHES = 128
"""Smaller blocks in a block."""
TILE = 4096
"""Elements of a program that looks for the best of blocks."""
RANKED, MOST_RANKED = 256, 128
"""Elements of a program that ranks them, and of the longest line that is ranked."""
SELECTED = 256
"""Elements, up to which a program selects from several lines."""
OF_EACH, LEAST_OF_EACH = 8, 32
"""Of how many elements one is selected at once, and of how many at least, where lines are many."""
FEW_LINES = 512
"""Lines or programs, below which they are few."""
LEAST_TURNED = 16
"""Elements of a line, from which on lines that lie side by side are packed first, as sorts go along a line."""
THREAD, MOST_OF_THREAD, SHORT = 8, 32, 128
"""Elements of a thread, and so how many warps there are: where programs are few, where they are many, and twice as many
as of few in lines up to SHORT."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    (x,) = [layout for layout in inputs if layout is not None]
    declined = between_elements((x, *outputs))
    if declined is not None:
        return declined
    if spec.name == "NONZERO_COORDINATES":
        return _coordinates(x, outputs[1], torch.device(device))
    values, indices = outputs
    return _top(desc, x, values, indices, torch.device(device))


def _coordinates(x: Layout, rows: Layout, device: torch.device) -> Planned | Declined:
    n, columns = prod(x.sizes), rows.sizes[-1]
    programs = -(-n // BLOCK)
    row_step, column_step = steps_of(rows)[-2:]
    sizes, steps = inner_first(folded_loops(x.sizes, [steps_of(x)])[0])
    last = x.sizes[::-1][:columns]
    moved = BITS[x.dtype.itemsize]
    constants = {"IS_FLOAT": x.dtype.kind == "f", "LOOPS": len(sizes)}
    block = {"BLOCK": BLOCK, "INDEX": index_type((x, rows), programs * BLOCK)}
    loops = (n, sizes, *divisors(sizes), steps)
    count = Launch(selection_kernels.count_nonzero, programs, loops, {**constants, **block}, (POINTED[moved],))
    write = Launch(
        selection_kernels.write_coordinates,
        programs,
        (*loops, last, *divisors(last), row_step, column_step),
        {**constants, "COLUMNS": columns, **block},
        (POINTED[moved],),
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        counts = torch.empty(programs, dtype=torch.int32, device=device)
        count(inputs[0], counts)
        write(inputs[0], counts.cumsum(0), *outputs)

    word = torch.uint32
    launches = (count, [moved, torch.int32]), (write, [moved, torch.int64, word, word])
    return Planned(f"what is there of {n} elements, {BLOCK} at once, counted first", run, launches)


def _top(desc: Any, x: Layout, values: Layout, indices: Layout, device: torch.device) -> Planned | Declined:
    n, k, axis = x.sizes[desc.Axis], desc.K, desc.Axis
    is_wide = x.dtype.itemsize > 4
    is_sorted = not is_wide and n <= LONGEST and (n <= LEAST_SELECTED or 2 * k > n)
    if n >= WIDE or (not is_sorted and k > min(LONGEST, AT_ONCE // LEAST_LEFT_OUT, MOST_RANKED if is_wide else k)):
        return Declined(f"this kernel takes few of lines of more than {LONGEST} elements")
    steps = [steps_of(each) for each in (x, values, indices)]
    # Where there are many lines, no more of each than are left anyway.
    is_few = prod(x.sizes) < FEW_LINES * n
    at_once = AT_ONCE if is_few else min(max(OF_EACH * k, LEAST_OF_EACH), AT_ONCE)
    is_turned = n >= LEAST_TURNED and steps[0][axis] > min([step for step in steps[0] if step > 0], default=0)
    is_packed = is_turned and n <= (LONGEST if is_sorted else at_once)
    if is_packed:
        within = packed_strides([*x.sizes[:axis], *x.sizes[axis + 1 :], n])
        steps[0] = [*within[:axis], within[-1], *within[axis:-1]]
    others = [i for i in range(len(x.sizes)) if i != axis]
    loops, _ = folded_loops([x.sizes[i] for i in others], [[each[i] for i in others] for each in steps])
    # The nearest lines are neighbours in a program.
    loops = sorted(loops, key=lambda loop: -abs(loop[1]))
    sizes, *of_lines = inner_first(loops, 3)
    lines = _Lines(
        n,
        k,
        prod(sizes),
        sizes,
        getattr(desc, "AxisDirection", AxisDirection.DECREASING) == AxisDirection.DECREASING,
        index_type((x, values, indices), prod(sizes) * (n + AT_ONCE)),
    )
    taken = [_Places(of, each[axis]) for of, each in zip(of_lines, steps, strict=True)]
    kinds = [TYPES[each.type] for each in (x, values, indices)]
    if is_sorted:
        chosen = _sorted(lines, n, taken, False)
        if isinstance(chosen, Declined):
            return chosen

        def run(inputs: Tensors, outputs: Tensors) -> None:
            x = inputs[0].movedim(axis, -1).contiguous() if is_packed else inputs[0]
            chosen(x, x, *outputs)

        types = [kinds[0], kinds[0], *kinds[1:]]
        return Planned(f"{k} of {lines.total} lines of {n}, sorted", run, ((chosen, types),))
    return _selected(lines, taken, kinds, at_once, axis if is_packed else None, is_turned and not is_packed, device)


def _selected(
    lines: _Lines,
    taken: Sequence[_Places],
    kinds: Sequence[torch.dtype],
    at_once: int,
    packed_axis: int | None,
    is_side_by_side: bool,
    device: torch.device,
) -> Planned | Declined:
    """The best k of a line are in those k blocks of it whose best elements are the best, of equal ones the first: and
    so down a tree of blocks, each of as many of the next smaller ones."""
    kind, (n, k, count, *_) = kinds[0], lines
    is_wide = kind.itemsize > 4
    key, number = torch.uint64 if is_wide else torch.uint32, torch.int32
    branches = min(1 << (at_once // k).bit_length() - 1, MOST_BRANCHES)
    lengths, places = [n], [taken[0]]
    while lengths[-1] > at_once:
        lengths.append(-(-lengths[-1] // branches))
        # Lines that lie side by side do so in their keys.
        side_by_side = _Places(_Places.packed(lines.sizes, 1).of_lines, count)
        places.append(side_by_side if is_side_by_side else _Places.packed(lines.sizes, lengths[-1]))
    trunks: list[Launch | Declined] = []
    selects: list[Launch | Declined] = []
    for level, (length, where) in enumerate(zip(lengths, places, strict=True)):
        if level + 1 < len(lengths):
            trunks.append(_blocks(lines, length, where, places[level + 1], level == 0, branches, is_side_by_side))
        is_top = level + 1 == len(lengths)
        selects.insert(0, _select(lines, length, where, level == 0, 0 if is_top else branches))
    given = _Places.packed(lines.sizes, k)
    order = _ranked(lines, taken[1:]) if is_wide else _sorted(lines, k, [given, *taken[1:]], True)
    launches: list[Launch] = []
    for each in (*trunks, *selects, order):
        if isinstance(each, Declined):
            return each
        launches.append(each)
    *before, last = launches
    building, selecting = before[: len(trunks)], before[len(trunks) :]

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x = inputs[0] if packed_axis is None else inputs[0].movedim(packed_axis, -1).contiguous()
        levels = [x]
        for length, trunk in zip(lengths[1:], building, strict=True):
            keys = torch.empty(count * length, dtype=key, device=device)
            trunk(levels[-1], keys)
            levels.append(keys)
        numbers = torch.empty(count * k, dtype=number, device=device)
        values = torch.empty(count * k, dtype=kind, device=device)
        for select in selecting:
            parents, numbers = numbers, torch.empty(count * k, dtype=number, device=device)
            select(levels.pop(), parents, values, numbers)
        last(values, numbers, *outputs)

    types: list[list[torch.dtype]] = [[kind if i == 0 else key, key] for i in range(len(trunks))]
    types += [[kind if i == len(selects) - 1 else key, number, kind, number] for i in range(len(selects))]
    types.append([kind, number, *kinds[1:]])
    words = f"{k} of {count} lines of {n}, selected by bisection in {len(selects)} steps"
    return Planned(words, run, tuple(zip(launches, types, strict=True)))


class _Lines(NamedTuple):
    """What of lines is chosen."""

    n: int
    k: int
    total: int
    sizes: tuple[int, ...]
    """Of the loops over lines, the innermost first."""
    is_largest: bool
    index: Any

    @property
    def loops(self) -> tuple[Any, ...]:
        return (self.sizes, *divisors(self.sizes))


def _blocks(
    lines: _Lines, length: int, x: _Places, keys: _Places, is_first: bool, branches: int, is_side_by_side: bool
) -> Launch | Declined:
    """The keys of blocks, of x or of smaller blocks."""
    parts = -(-length // branches)
    at_once = max(TILE // branches, 1)
    if is_side_by_side:
        at_once = min(at_once, next_power_of_2(lines.total))
        chunks = -(-lines.total // at_once)
        programs = parts * chunks
    else:
        chunks, programs = 1, -(-lines.total * parts // at_once)
    (divisor,) = zip(*divisors([parts]), strict=True)
    step = keys.of_lines[0], keys.along
    return too_many(programs) or Launch(
        selection_kernels.best_of_blocks,
        programs,
        (length, lines.total, parts, chunks, *divisor, *step, *lines.loops, x.of_lines, x.along),
        {
            **{"IS_KEY": not is_first, "IS_LARGEST": lines.is_largest},
            **{"SIDE_BY_SIDE": is_side_by_side, "LOOPS": len(lines.sizes)},
            **{"LINES": at_once, "SIZE": branches, "INDEX": lines.index},
        },
    )


def _select(lines: _Lines, length: int, x: _Places, is_last: bool, branches: int) -> Launch | Declined:
    size = max(next_power_of_2(lines.k * branches or length), 2)
    at_once = min(max(SELECTED // size, 1), next_power_of_2(lines.total))
    programs = -(-lines.total // at_once)
    # As few warps as registers allow, as they wait for each other; more of them where there are few programs.
    thread = THREAD if programs < FEW_LINES else MOST_OF_THREAD
    return too_many(programs) or Launch(
        selection_kernels.select_of_lines,
        programs,
        (length, lines.k, lines.total, *lines.loops, x.of_lines, x.along),
        {
            **{"IS_KEY": not is_last, "IS_LARGEST": lines.is_largest, "BRANCHES": branches},
            **{"HAS_VALUES": is_last, "LOOPS": len(lines.sizes)},
            **{"LINES": at_once, "SIZE": size, "INDEX": lines.index},
        },
        num_warps=min(max(at_once * size // (32 * thread), 1), 16),
    )


def _sorted(lines: _Lines, length: int, places: Sequence[_Places], has_given: bool) -> Launch | Declined:
    """Lines that registers hold, in order."""
    size = max(next_power_of_2(length), 2)
    at_once = min(SORTED // size, next_power_of_2(lines.total))
    programs = -(-lines.total // at_once)
    # Long lines in one warp, as what lies in others is reached through memory.
    thread = THREAD if programs < FEW_LINES else MOST_OF_THREAD if size > SHORT else 2 * THREAD
    return too_many(programs) or Launch(
        selection_kernels.sort_lines,
        programs,
        (
            *(length, lines.k, lines.total, *lines.loops),
            *[each.of_lines for each in places],
            *[each.along for each in places],
        ),
        {
            **{"IS_LARGEST": lines.is_largest, "HAS_GIVEN": has_given, "LOOPS": len(lines.sizes), "LINES": at_once},
            **{"SIZE": size, "TOP": max(next_power_of_2(lines.k), 2), "INDEX": lines.index},
        },
        num_warps=min(max(at_once * size // (32 * thread), 1), 16),
    )


def _ranked(lines: _Lines, places: Sequence[_Places]) -> Launch | Declined:
    programs = -(-lines.total * lines.k // RANKED)
    (divisor,) = zip(*divisors([lines.k]), strict=True)
    return too_many(programs) or Launch(
        selection_kernels.rank_lines,
        programs,
        (
            *(lines.k, lines.total, *divisor, *lines.loops),
            *[each.of_lines for each in places],
            *[each.along for each in places],
        ),
        {
            **{"IS_LARGEST": lines.is_largest, "LOOPS": len(lines.sizes)},
            **{"CHUNK": 8, "BLOCK": RANKED, "INDEX": lines.index},
        },
    )


class _Places(NamedTuple):
    """Where a tensor's lines begin, by steps of their loops, and the step along them."""

    of_lines: tuple[int, ...]
    along: int

    @classmethod
    def packed(cls, sizes: Sequence[int], length: int) -> _Places:
        return cls(tuple([length * prod(sizes[:i]) for i in range(len(sizes))]), 1)
