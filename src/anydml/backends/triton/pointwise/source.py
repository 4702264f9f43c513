"""The source of pointwise kernels: of a line of elements for each program, or of a tile where an operand is transposed.

What is computed is a function of its own, which `trace.py` has made; sizes and steps are arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..division import quotient
from ..generated import kernel_of
from . import (
    circular_functions,
    constant_functions,
    functions,
    half_functions,
    integer_functions,
    power_functions,
    remainder_functions,
    single_functions,
)
from .narrow import CALLED
from .trace import Traced

_FUNCTIONS = {
    "double_quotient": functions.double_quotient,
    "half_quotient": functions.half_quotient,
    **{
        name: function
        for module in (
            half_functions,
            single_functions,
            circular_functions,
            constant_functions,
            integer_functions,
            power_functions,
            remainder_functions,
        )
        for name, function in vars(module).items()
        if name in CALLED
    },
}
"""What bodies call."""

IN_ORDER = 3
"""The step along each dimension of a tensor whose elements lie in the order of their numbers."""


@lru_cache(maxsize=512)
def line_kernel(body: Traced, steps: tuple[tuple[int, ...], ...], inputs: int, is_wide: bool, divides: bool) -> Any:
    """The kernel of a body.

    Args:
        body: what is computed.
        steps: of each tensor along each dimension: 0, 1, 2 for one that is an argument, or IN_ORDER.
        inputs: how many of the tensors are.
        is_wide: whether offsets take 64 bits.
        divides: whether indices are remainders, and not what multiplications make.
    """
    return kernel_of(_line_source(body, steps, inputs, is_wide, divides), "pointwise", **_FUNCTIONS)


@lru_cache(maxsize=512)
def tile_kernel(body: Traced, steps: tuple[tuple[int, ...], ...], crossed: int, is_wide: bool) -> Any:
    """Likewise of one whose programs have tiles of the loop `crossed` and of the last one."""
    return kernel_of(_tile_source(body, steps, crossed, is_wide), "pointwise", **_FUNCTIONS)


def _line_source(body: Traced, steps: tuple[tuple[int, ...], ...], inputs: int, is_wide: bool, divides: bool) -> str:
    dimensions = len(steps[0])
    names = [
        "count",
        *[f"{name}{d}" for name in ("size", "multiplier", "shift") for d in range(1, dimensions)],
        *_step_names(steps),
        "BLOCK: tl.constexpr",
    ]
    lines = _beginning(body, steps, names, "[BLOCK]", ["BLOCK: tl.constexpr"])
    first = "tl.program_id(0).to(tl.int64)" if is_wide else "tl.program_id(0)"
    lines += [f"    start = {first} * BLOCK", "    at = start + tl.arange(0, BLOCK)", "    rest = at"]
    for d in range(dimensions - 1, 0, -1):
        if divides:
            lines += [f"    i{d} = rest % size{d}", f"    rest = rest // size{d}"]
        else:
            lines += [f"    outer = {quotient('rest', f'multiplier{d}', f'shift{d}')}"]
            lines += [f"    i{d} = rest - outer * size{d}", "    rest = outer"]
    places = _places(steps, ["rest", *[f"i{d}" for d in range(1, dimensions)]][:dimensions], "at * 0", are_tiles=False)
    for condition, mask, stored in (
        ("if start + BLOCK <= count", "", ""),
        ("else", ", mask=at < count, other=0", ", mask=at < count"),
    ):
        lines.append(f"    {condition}:")
        lines += [f"        {line}" for line in _computed(steps, places, inputs, mask, stored, "[BLOCK]", "BLOCK")]
    return "\n".join(lines) + "\n"


def _tile_source(body: Traced, steps: tuple[tuple[int, ...], ...], crossed: int, is_wide: bool) -> str:
    dimensions, inputs = len(steps[0]), len(steps) - len(body.results)
    last = dimensions - 1
    shape = ["ROWS: tl.constexpr", "COLUMNS: tl.constexpr"]
    names = [*[f"size{d}" for d in range(dimensions)], "row_blocks", "column_blocks", *_step_names(steps), *shape]
    lines = _beginning(body, steps, names, "[ROWS, COLUMNS]", shape)
    lines += ["    rest = tl.program_id(0)" + ".to(tl.int64)" * is_wide]
    for d, block, tile in (
        (last, "column_blocks", "COLUMNS + tl.arange(0, COLUMNS)[None, :]"),
        (crossed, "row_blocks", "ROWS + tl.arange(0, ROWS)[:, None]"),
    ):
        lines += [f"    i{d} = rest % {block} * {tile}", f"    rest = rest // {block}"]
    for d in range(last - 1, -1, -1):
        if d != crossed:
            lines += [f"    i{d} = rest % size{d}", f"    rest = rest // size{d}"]
    places = _places(steps, [f"i{d}" for d in range(dimensions)], "none", are_tiles=True)
    lines += [
        f"    none = (i{crossed} + i{last}) * 0",
        f"    mask = (i{crossed} < size{crossed}) & (i{last} < size{last})",
    ]
    mask = ", mask=mask"
    lines += [
        f"    {line}"
        for line in _computed(steps, places, inputs, f"{mask}, other=0", mask, "[ROWS, COLUMNS]", "ROWS, COLUMNS")
    ]
    return "\n".join(lines) + "\n"


def _step_names(steps: Sequence[Sequence[int]]) -> list[str]:
    return [f"step{i}_{d}" for i, each in enumerate(steps) for d, step in enumerate(each) if step == 2]


def _beginning(
    body: Traced, steps: Sequence[Sequence[int]], names: Sequence[str], shape: str, constants: Sequence[str]
) -> list[str]:
    """The function that computes elements of a shape, and the kernel's signature."""
    xs = [f"x{i}" for i in range(len(steps) - len(body.results))]
    lines = ["@triton.jit", f"def compute({', '.join([*xs, *constants])}):"]
    lines += [f"    {line.replace('[BLOCK]', shape)}" for line in body.lines]
    lines += [f"    return {', '.join(body.results)}", "", ""]
    pointers = [f"p{i}" for i in range(len(steps))]
    return [*lines, "@triton.jit", f"def kernel({', '.join([*pointers, *names])}):"]


def _places(steps: Sequence[Sequence[int]], indices: Sequence[str], none: str, are_tiles: bool) -> list[str]:
    """Where elements are, by their indices; `none` is 0 for each element, which makes all of a tile of a row's, or a
    column's."""
    places = []
    for i, each in enumerate(steps):
        if IN_ORDER in each:
            places.append(f"p{i} + at")
            continue
        terms = [
            index if step == 1 else f"{index} * step{i}_{d}"
            for d, (index, step) in enumerate(zip(indices, each, strict=True))
            if step
        ]
        if are_tiles or not terms:
            terms.append(none)
        places.append(f"p{i} + ({' + '.join(terms)})")
    return places


def _computed(
    steps: Sequence[Sequence[int]], places: Sequence[str], inputs: int, mask: str, stored: str, shape: str, sizes: str
) -> list[str]:
    """Lines that load, compute and store."""
    lines = []
    for i in range(inputs):
        is_one = not any(steps[i])
        read = f"tl.broadcast_to(tl.load(p{i}), {shape})" if is_one else f"tl.load({places[i]}{mask})"
        lines.append(f"x{i} = {read}")
    ys = [f"y{i}" for i in range(inputs, len(steps))]
    lines.append(f"{', '.join(ys)} = compute({', '.join([*[f'x{i}' for i in range(inputs)], sizes])})")
    return [*lines, *[f"tl.store({places[int(y[1:])]}, {y}{stored})" for y in ys]]
