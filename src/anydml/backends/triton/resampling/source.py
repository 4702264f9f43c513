"""The source of kernels that compute elements as weighted sums of others, by a table for each dimension.

A program has a tile of the output, rows by columns, of which columns are the innermost loop: what tables say of a row
is read once for all of its columns, and likewise of a column. Sums are nested, the first dimension's innermost: each
is put together in the order of the reference, in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..generated import kernel_of

UNROLLED = 4
"""Elements of a dimension up to which their weights are held in registers."""


class Loop(NamedTuple):
    """A loop over the output, with strides in elements. `most` elements of the input are summed along it; 0 is its own
    place."""

    size: int
    y: int
    x: int
    most: int = 0
    number: int = 0
    """Of the dimension, in whose order sums are nested."""
    table: int = 0
    """Where its part of the table of numbers begins: the first elements, how many, and where their weights begin."""


@lru_cache(maxsize=512)
def generated(summed: tuple[tuple[int, int], ...], loops: int, copies: bool, result: str) -> Any:
    """The kernel.

    Args:
        summed: the number of a loop, and how many elements are summed along it, in the order in which sums are nested:
            the innermost first. The last loop is that over columns.
        loops: how many there are.
        copies: whether elements are copied, and there are no weights.
        result: an expression of the sum, `y`.
    """
    sizes = [f"size{i}" for i in range(loops)]
    steps = [f"{of}{i}" for i in range(loops) for of in ("ys", "xs")]
    tables = [f"table{i}" for i, _ in summed]
    names = ["x", "numbers", "weights", "y", "rows", "blocks", *sizes, *steps, *tables]
    constants = ["ROWS: tl.constexpr", "COLUMNS: tl.constexpr", "INDEX: tl.constexpr"]
    lines = [
        "program = tl.program_id(0)",
        "row = (program // blocks).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]",
        f"i{loops - 1} = (program % blocks).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]",
        f"mask = (row < rows) & (i{loops - 1} < size{loops - 1})",
        "rest = row",
    ]
    for i in range(loops - 2, -1, -1):
        if i:
            lines += [f"i{i} = rest % size{i}", f"rest = rest // size{i}"]
        else:
            lines.append(f"i{i} = rest")
    along = dict(summed)
    own = [f"i{i} * xs{i}" for i in range(loops) if i not in along]
    place = " + ".join([*own, "row * 0"])
    for i, most in summed:
        of = f"numbers + table{i} + i{i}"
        lines.append(f"first{i} = tl.load({of}, mask=i{i} < size{i}, other=0)")
        if copies:
            continue
        lines += [
            f"count{i} = tl.load({of} + size{i}, mask=i{i} < size{i}, other=0)",
            f"start{i} = tl.load({of} + size{i} * 2, mask=i{i} < size{i}, other=0)",
        ]
        if most <= UNROLLED:
            lines += [
                f"w{i}_{t} = tl.load(weights + start{i} + {t}, mask=count{i} > {t}, other=0)" for t in range(most)
            ]
    if copies:
        found = " + ".join([place, *[f"first{i}.to(INDEX) * xs{i}" for i, _ in summed]])
        lines.append(f"y_ = tl.load(x + ({found}), mask=mask)")
    else:
        lines += _nested(list(summed), place)
    out = " + ".join(f"i{i} * ys{i}" for i in range(loops))
    lines.append(f"tl.store(y + ({out}), {result.format(y='y_')}, mask=mask)")
    source = ["@triton.jit", f"def kernel({', '.join([*names, *constants])}):", *[f"    {line}" for line in lines]]
    return kernel_of("\n".join(source) + "\n", "resampling")


def _nested(summed: Sequence[tuple[int, int]], place: str) -> list[str]:
    """Loops over the elements of each dimension, the last one outermost."""
    lines: list[str] = [f"at_{len(summed)} = {place}", f"in_{len(summed)} = mask"]

    def nest(level: int, indent: str) -> str:
        """The lines of a level, and the name of its sum."""
        if level < 0:
            lines.append(f"{indent}v = tl.load(x + at_0, mask=in_0, other=0).to(tl.float64)")
            return "v"
        i, most = summed[level]
        total = "y_" if level == len(summed) - 1 else f"a{level}"
        lines.append(f"{indent}{total} = tl.zeros([ROWS, COLUMNS], tl.float64)")
        is_unrolled = most <= UNROLLED
        turns = [str(t) for t in range(most)] if is_unrolled else [f"t{level}"]
        if not is_unrolled:
            lines.append(f"{indent}for t{level} in range({most}):")
            indent += "    "
        for t in turns:
            lines.append(f"{indent}is_{level} = (count{i} > {t}) & mask")
            lines.append(f"{indent}in_{level} = in_{level + 1} & is_{level}")
            lines.append(f"{indent}at_{level} = at_{level + 1} + (first{i} + {t}).to(INDEX) * xs{i}")
            inner = nest(level - 1, indent)
            weight = f"w{i}_{t}"
            if not is_unrolled:
                weight = f"w{i}"
                lines.append(f"{indent}w{i} = tl.load(weights + start{i} + {t}, mask=count{i} > {t}, other=0)")
            # The first product is not added to 0, whose sign it would take.
            added = f"p{level}" if t == "0" else f"{total} + p{level}"
            if not is_unrolled:
                added = f"tl.where(count{i} * 0 + {t} == 0, p{level}, {total} + p{level})"
            lines.append(f"{indent}p{level} = {inner} * {weight}")
            lines.append(f"{indent}{total} = tl.where(is_{level}, {added}, {total})")
        return total

    nest(len(summed) - 1, "")
    return lines
