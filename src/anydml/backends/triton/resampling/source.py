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
from ..loops import quotient

UNROLLED = 4
"""Elements of a dimension up to which their weights are held in registers, and stand in the table for each alike: what
is beyond an element's own has a weight of 0, and is not read."""


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
    """Where its numbers begin: the places of the first elements, and with many how many and where their weights are."""
    weights: int = 0
    """Where its weights begin."""


@lru_cache(maxsize=512)
def generated(summed: tuple[tuple[int, int], ...], loops: int, copies: bool, may_lack: bool, result: str) -> Any:
    """The kernel.

    Args:
        summed: the number of a loop, and how many elements are summed along it, in the order in which sums are nested:
            the innermost first. The last loop is that over columns.
        loops: how many there are.
        copies: whether elements are copied, and there are no weights.
        may_lack: whether there are elements of no others, which are 0.
        result: an expression of the sum, `y`.
    """
    sizes = [f"size{i}" for i in range(loops)]
    divided = [f"{of}{i}" for i in range(1, loops - 1) for of in ("multiplier", "shift")]
    steps = [f"{of}{i}" for i in range(loops) for of in ("ys", "xs")]
    tables = [f"{of}{i}" for i, _ in summed for of in ("table", "weights")]
    names = ["x", "numbers", "weights", "y", "rows", "blocks", *sizes, *divided, *steps, *tables]
    constants = ["ROWS: tl.constexpr", "COLUMNS: tl.constexpr", "INDEX: tl.constexpr"]
    inner = loops - 1
    lines = [
        "program = tl.program_id(0)",
        "row = (program // blocks).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]",
        f"i{inner} = (program % blocks).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]",
        f"mask = (row < rows) & (i{inner} < size{inner})",
        "rest = row",
    ]
    for i in range(loops - 2, -1, -1):
        if i:
            lines.append(f"turn = quotient(rest, size{i}, multiplier{i}, shift{i})")
            lines += [f"i{i} = rest - turn * size{i}", "rest = turn"]
        else:
            lines.append(f"i{i} = rest")
    along = dict(summed)
    own = [f"i{i} * xs{i}" for i in range(loops) if i not in along]
    place = " + ".join([*own, "row * 0"])
    for i, most in summed:
        inside = f"i{i} < size{i}"
        lines.append(f"first{i} = tl.load(numbers + table{i} + i{i}, mask={inside}, other=0).to(INDEX)")
        if copies:
            continue
        if most <= UNROLLED:
            for t in range(most):
                lines.append(f"w{i}_{t} = tl.load(weights + weights{i} + size{i} * {t} + i{i}, mask={inside}, other=0)")
                lines.append(f"is{i}_{t} = w{i}_{t} != 0")
        else:
            lines.append(f"count{i} = tl.load(numbers + table{i} + size{i} + i{i}, mask={inside}, other=0)")
            lines.append(f"start{i} = tl.load(numbers + table{i} + size{i} * 2 + i{i}, mask={inside}, other=0)")
    if copies:
        found = " + ".join([place, *[f"first{i}" for i, _ in summed]])
        lines.append(f"y_ = tl.load(x + ({found}), mask=mask)")
    else:
        place = " + ".join([place, *[f"first{i}" for i, _ in summed]])
        _Nest(list(summed), lines).write(place)
        if may_lack:
            lacks = [f"(w{i}_0 == 0)" if most <= UNROLLED else f"(count{i} == 0)" for i, most in summed]
            lines.append(f"y_ = tl.where({' | '.join(lacks)}, 0.0, y_)")
    out = " + ".join(f"i{i} * ys{i}" for i in range(loops))
    lines.append(f"tl.store(y + ({out}), {result.format(y='y_')}, mask=mask)")
    source = ["@triton.jit", f"def kernel({', '.join([*names, *constants])}):", *[f"    {line}" for line in lines]]
    return kernel_of("\n".join(source) + "\n", "resampling", quotient=quotient)


class _Nest:
    """Writes loops over the elements of each dimension, the last one outermost."""

    def __init__(self, summed: Sequence[tuple[int, int]], lines: list[str]) -> None:
        self._summed = summed
        self._lines = lines

    def write(self, place: str) -> None:
        top = len(self._summed)
        self._lines += [f"at_{top} = {place}", f"in_{top} = mask"]
        self._level(top - 1, "")

    def _level(self, level: int, indent: str) -> str:
        """The lines of a level, and the name of its sum."""
        if level < 0:
            self._lines.append(f"{indent}v = tl.load(x + at_0, mask=in_0, other=0).to(tl.float64)")
            return "v"
        i, most = self._summed[level]
        total = "y_" if level == len(self._summed) - 1 else f"a{level}"
        if most <= UNROLLED:
            for t in range(most):
                self._term(level, indent, str(t), f"is{i}_{t}")
                inner = self._level(level - 1, indent)
                # Neither is the first product added to 0, nor what is not there: a sum of -0 and 0 is 0.
                product = f"{inner} * w{i}_{t}"
                added = f"tl.where(in_{level}, {total} + {product}, {total})" if t else product
                self._lines.append(f"{indent}{total} = {added}")
            return total
        self._lines.append(f"{indent}{total} = tl.zeros([ROWS, COLUMNS], tl.float64)")
        self._lines.append(f"{indent}for t{level} in range({most}):")
        within, turn = f"{indent}    ", f"t{level}"
        place = f"weights + weights{i} + start{i} + {turn}"
        self._lines.append(f"{within}w{i} = tl.load({place}, mask=count{i} > {turn}, other=0)")
        self._term(level, within, turn, f"(count{i} > {turn})")
        inner = self._level(level - 1, within)
        self._lines.append(f"{within}p{level} = {inner} * w{i}")
        added = f"tl.where(count{i} * 0 + {turn} == 0, p{level}, {total} + p{level})"
        self._lines.append(f"{within}{total} = tl.where((count{i} > {turn}) & mask, {added}, {total})")
        return total

    def _term(self, level: int, indent: str, t: str, inside: str) -> None:
        i = self._summed[level][0]
        self._lines.append(f"{indent}in_{level} = in_{level + 1} & {inside}")
        self._lines.append(f"{indent}at_{level} = at_{level + 1}{'' if t == '0' else f' + {t} * xs{i}'}")
