"""ONE_HOT, DIAGONAL_MATRIX and REVERSE_SUBSEQUENCES on a GPU, each in one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.diagonal import band_of, value_of
from ...base import Declined
from ...torch import lowering as calls
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import BITS, Launch, Planned, Tensors, between_elements, next_power_of_2, too_many
from ..tiles import folded_loops, index_type, inner_first, steps_of, tiles_of
from . import kernels as placed_kernels
from .parts import parts_of
from .plan import LONG_RUN, POINTED

BLOCK = 1024
"""Elements of a program that has a line of them."""
WORDS = 512
"""Words of one that copies runs."""
WORD = 16
"""Bytes that are written at once."""
TILE = 4096
"""Of one that has a tile: an index is read once for each of its columns, or rows, and not for each class."""

Made: TypeAlias = tuple[Launch, list[Any]] | Declined


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    d: Any = desc
    (y,), given = outputs, [layout for layout in inputs if layout is not None]
    declined = between_elements((*given, y))
    if declined is not None:
        return declined
    if spec.name == "DIAGONAL_MATRIX" and y.is_packed() and y.sizes[-1] * y.dtype.itemsize % WORD:
        return _one_diagonal(d, y)
    make = {"ONE_HOT": _one_hot, "REVERSE_SUBSEQUENCES": _reversed}.get(spec.name, _diagonals)
    made = make(d, given, y)
    if isinstance(made, Declined):
        return made
    launch, _ = made

    def run(inputs: Tensors, outputs: Tensors) -> None:
        read = [each for each in inputs if each is not None]
        launch(*(read or outputs), *outputs)

    return Planned(f"one pass over {prod(y.sizes)} elements", run, (made,))


def _one_hot(d: Any, given: Sequence[Layout], y: Layout) -> Made:
    indices, values = given
    classes, of_y = y.sizes[d.Axis], steps_of(y)
    around = [i for i in range(len(y.sizes)) if i != d.Axis]
    # In the order of the output's memory.
    around.sort(key=lambda i: -abs(of_y[i]))
    of_each = [[steps[i] for i in around] for steps in (steps_of(indices), of_y)]
    loops, _ = folded_loops([y.sizes[i] for i in around], of_each)
    sizes, *steps = inner_first(loops, 2)
    is_last = steps[1][0] > of_y[d.Axis]
    lines = prod(y.sizes) // classes
    rows, columns = (lines, classes) if is_last else (classes, lines)
    tiles = tiles_of(rows, columns, TILE)
    if isinstance(tiles, Declined):
        return tiles
    bits, moved = POINTED[BITS[y.dtype.itemsize]], BITS[y.dtype.itemsize]
    of_values = next((step for step, size in zip(steps_of(values), values.sizes, strict=True) if size > 1), 0)
    launch = Launch(
        placed_kernels.one_hot,
        tiles.programs,
        (rows, columns, tiles.blocks, classes, of_values, of_y[d.Axis], sizes, *divisors(sizes), *steps),
        {
            "SIGNED": indices.dtype.kind == "i",
            "IS_LAST": is_last,
            "DIVIDES": sizes[0] % 16 == 0 and not is_last,
            "LOOPS": len(sizes),
            **tiles.shape,
            "INDEX": index_type((*given, y), max(rows, columns)),
        },
        (None, bits, bits),
    )
    return launch, [TYPES[indices.type], moved, moved]


def _reversed(d: Any, given: Sequence[Layout], y: Layout) -> Made:
    x, lengths = given
    bits, moved = POINTED[BITS[y.dtype.itemsize]], BITS[y.dtype.itemsize]
    types, typed = [moved, TYPES[lengths.type], moved], (bits, None, bits)
    sizes, steps = list(y.sizes), [steps_of(each) for each in (x, lengths, y)]
    run = _run_of(sizes, steps, d.Axis)
    is_long = run * y.dtype.itemsize >= LONG_RUN[y.dtype.itemsize]
    # An axis of one element is no part of a run, as the kernel counts along it.
    kept = len(sizes) if not is_long else next(i for i in range(d.Axis + 1, len(sizes) + 1) if prod(sizes[i:]) <= run)
    of_axis, loops = _loops(sizes[:kept], [each[:kept] for each in steps], d.Axis)
    rows = prod(sizes[:kept])
    index = index_type((*given, y), prod(sizes) + BLOCK)
    if not is_long:
        programs = -(-rows // BLOCK)
        constants = {**of_axis, "BLOCK": BLOCK, "INDEX": index}
        arguments = (rows, steps[0][d.Axis], *loops)
        kernel = placed_kernels.reverse_subsequences
    else:
        columns, parts = parts_of(run * y.dtype.itemsize)
        # The bytes at the ends of runs are a tile of their own, of 32 bytes of each.
        at_once = max(min(WORDS // max(columns, 32 // y.dtype.itemsize), next_power_of_2(rows)), 1)
        programs = parts * -(-rows // at_once)
        constants = {**of_axis, "ITEM": bits, "BLOCK": at_once, "COLUMNS": columns, "INDEX": index}
        arguments = (rows, parts, run, steps[0][d.Axis], *loops)
        kernel = placed_kernels.reverse_runs
    declined = too_many(programs)
    return declined or (Launch(kernel, programs, arguments, constants, typed), types)


def _run_of(sizes: Sequence[int], steps: Sequence[Sequence[int]], axis: int) -> int:
    """How many elements lie side by side in the input and in the output, all of one line's index and length."""
    of_x, of_lengths, of_y = steps
    run = 1
    for i in range(len(sizes) - 1, axis, -1):
        if sizes[i] > 1 and (of_lengths[i], of_x[i], of_y[i]) != (0, run, run):
            break
        run *= sizes[i]
    return run


def _one_diagonal(d: Any, y: Layout) -> Planned:
    """By clearing memory first, where rows begin between words, which tiles would write element by element."""
    moved = BITS[y.dtype.itemsize]
    value, (height, columns) = int(value_of(d).view(np.dtype(f"i{y.dtype.itemsize}"))), y.sizes[-2:]

    def run(inputs: Tensors, outputs: Tensors) -> None:
        matrix = outputs[0].view(moved)
        matrix.zero_()
        if -height < d.Offset < columns:
            matrix.diagonal(d.Offset, -2, -1).fill_(value)

    return Planned(f"{prod(y.sizes)} elements cleared, and then a diagonal", calls.guarded("DIAGONAL_MATRIX", run))


def _diagonals(d: Any, given: Sequence[Layout], y: Layout) -> Made:
    value = value_of(d)
    item, moved = y.dtype.itemsize, BITS[y.dtype.itemsize]
    height, columns = y.sizes[-2:]
    rows = prod(y.sizes[:-1])
    tiles = tiles_of(rows, columns, TILE)
    if isinstance(tiles, Declined):
        return tiles
    *of_rows, of_columns = zip(*[steps_of(each) for each in (*given, y)], strict=True)
    if not given:
        of_rows, of_columns = [(0, *each) for each in of_rows], (0, *of_columns)
    # The rows of a matrix are a loop of their own.
    loops, _ = folded_loops(y.sizes[:-1], [*zip(*of_rows, strict=True)], len(of_rows) - 1)
    sizes, *steps = inner_first(loops, 2)
    begin, end = band_of(d)
    band = (min(max(diagonal, -height), columns) for diagonal in (begin, end))
    launch = Launch(
        placed_kernels.fill_diagonals,
        tiles.programs,
        (rows, columns, tiles.blocks, *band, sizes, *divisors(sizes), *steps, *of_columns),
        {
            "VALUE": int(value.view(np.dtype(f"i{item}"))),
            "HAS_INPUT": bool(given),
            "IS_CROSSED": end < begin,
            "LOOPS": len(sizes),
            **tiles.shape,
            "INDEX": index_type((*given, y), max(rows, columns)),
        },
        (POINTED[moved],) * 2,
    )
    return launch, [moved, moved]


def _loops(sizes: Sequence[int], steps: Sequence[Sequence[int]], axis: int) -> tuple[dict[str, int], tuple[Any, ...]]:
    """Loops over the elements of an output, the innermost first: how many there are and which one the axis is; sizes,
    what divides by them, and the steps of each input, 0 along the axis; and the same of the output, whose steps are the
    last, and which has loops of its own, as they are one where it is packed."""
    *of_inputs, of_y = steps
    without = [[0 if i == axis else step for i, step in enumerate(each)] for each in of_inputs]
    loops, kept = folded_loops(sizes, without, axis)
    loop_sizes, *of_each = inner_first(loops, len(of_inputs))
    y_sizes, y_steps = inner_first(folded_loops(sizes, [of_y])[0])
    constants = {"DIMENSION": len(loops) - 1 - kept, "LOOPS": len(loop_sizes), "LOOPS_OF_Y": len(y_sizes)}
    return constants, (loop_sizes, *divisors(loop_sizes), *of_each, y_sizes, *divisors(y_sizes), y_steps)
