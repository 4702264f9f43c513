"""The source of kernels that move elements, and the arguments that it takes.

A thread computes an element of the output: its number is taken apart into the indices of the loops over the output, of
which each adds to the offset in the input. A loop is made of groups of segments, as the native engine's views are:
each is a run of the input at some step, or a constant. Where an element is looked up, indices are read at an offset of
their own. The kernel is generated for what loops are made of; all sizes and steps are arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from ..division import magic, quotient
from ..generated import kernel_of
from ..launch import next_power_of_2
from .words import copy_words


class Run(NamedTuple):
    """A segment of a loop, up to the loop's index `end` within its group, at offset + index * step of the input."""

    end: int
    offset: int
    step: int
    is_constant: bool = False


class Group(NamedTuple):
    """Segments, and all of them again and again from the index `begin` on."""

    begin: int
    runs: tuple[Run, ...]
    repeats: int = 1
    step: int = 0

    @property
    def length(self) -> int:
        return self.runs[-1].end


class Loop(NamedTuple):
    """A loop over the output, with its step there and in the tensor of indices."""

    size: int
    out: int
    groups: tuple[Group, ...]
    indices: int = 0

    @property
    def plain(self) -> Run | None:
        """The one run that it is made of."""
        (group, *others) = self.groups
        is_plain = not others and group.repeats == 1 and len(group.runs) == 1 and not group.runs[0].is_constant
        return group.runs[0] if is_plain else None


class Coordinate(NamedTuple):
    """An index that is looked up: where it is beside the first one, and what it is of."""

    offset: int
    size: int
    step: int


class Movement(NamedTuple):
    """What an output is made of; the last loop is the innermost."""

    loops: tuple[Loop, ...]
    coordinates: tuple[Coordinate, ...] = ()
    has_constant: bool = False
    has_input: bool = True


class _Writer:
    """Lines of a kernel, and its arguments."""

    def __init__(self, is_wide: bool) -> None:
        self.is_wide = is_wide
        self.lines: list[str] = []
        self.names: list[str] = []
        self.values: list[int] = []

    def number(self, value: int) -> str:
        """An argument; 0 and 1 are written out, as sums and products by them are left out."""
        name = f"n{len(self.names)}"
        self.names.append(name)
        self.values.append(value)
        return name

    def named(self, expression: str) -> str:
        if expression.isidentifier() or expression.isdigit():
            return expression
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        return name

    def divided(self, number: str, divisor: int) -> str:
        if self.is_wide:
            return self.named(f"{number} // {self.number(divisor)}")
        multiplier, shift = magic(divisor)
        # A multiplier of 1 stands in the source: Triton would make it no argument.
        return self.named(quotient(number, self.number(multiplier), self.number(shift)))

    def term(self, index: str, step: int) -> str:
        return "" if step == 0 else index if step == 1 else f"{index} * {self.number(step)}"


def _sum(terms: Sequence[str]) -> str:
    return " + ".join([term for term in terms if term]) or "0"


def _offset(writer: _Writer, loop: Loop, index: str) -> tuple[str, str]:
    """The offset that a loop adds in the input, and whether an element is the constant, "" for never."""
    plain = loop.plain
    if plain is not None:
        offset = writer.number(plain.offset) if plain.offset else ""
        return _sum([offset, writer.term(index, plain.step)]), ""
    offsets, flags = [], []
    for group in loop.groups:
        offset, flag = _group(writer, group, index)
        offsets.append(offset)
        flags.append(flag)
    for i in range(len(offsets) - 2, -1, -1):
        condition = writer.named(f"{index} < {writer.number(loop.groups[i + 1].begin)}")
        offsets[i] = writer.named(f"tl.where({condition}, {offsets[i]}, {offsets[i + 1]})")
        if flags[i] or flags[i + 1]:
            flags[i] = writer.named(f"tl.where({condition}, {flags[i] or 'False'}, {flags[i + 1] or 'False'})")
    return offsets[0], flags[0]


def _group(writer: _Writer, group: Group, index: str) -> tuple[str, str]:
    at = writer.named(f"{index} - {writer.number(group.begin)}") if group.begin else index
    terms = []
    if group.repeats > 1:
        # Before the group's begin it is negative, and not looked at.
        number = writer.named(f"tl.maximum({at}, 0)") if group.begin else at
        turn = writer.divided(number, group.length)
        terms.append(writer.term(turn, group.step))
        at = writer.named(f"{at} - {turn} * {writer.number(group.length)}")
    runs = group.runs
    offset, step = str(runs[-1].offset and writer.number(runs[-1].offset)), writer.number(runs[-1].step)
    flag = "True" if runs[-1].is_constant else "False"
    for run in runs[-2::-1]:
        condition = writer.named(f"{at} < {writer.number(run.end)}")
        offset = writer.named(f"tl.where({condition}, {writer.number(run.offset)}, {offset})")
        step = writer.named(f"tl.where({condition}, {writer.number(run.step)}, {step})")
        flag = writer.named(f"tl.where({condition}, {run.is_constant}, {flag})")
    if len(runs) == 1 and not runs[0].is_constant:
        flag = ""
    elif len(runs) == 1:
        flag = writer.named("rest == rest")
    if all(run.is_constant for run in runs):
        return "0", flag
    terms += [offset if offset != "0" else "", f"{at} * {step}"]
    return writer.named(_sum(terms)), flag


def _places(writer: _Writer, loops: Sequence[Loop]) -> tuple[list[str], list[str], list[str], list[str]]:
    """Of the number `rest` in nested loops: what they add to the offset in the input, which of them say that it is the
    constant, and what they add in the output and in the tensor of indices."""
    inside, flags, out, place = [], [], [], []
    rest = "rest"
    for d in range(len(loops) - 1, -1, -1):
        loop = loops[d]
        if d:
            turn = writer.divided(rest, loop.size)
            index = writer.named(f"{rest} - {turn} * {writer.number(loop.size)}")
            rest = turn
        else:
            index = rest
        offset, flag = _offset(writer, loop, index)
        inside.append(offset if offset != "0" else "")
        flags += [flag] if flag else []
        out.append(writer.term(index, loop.out))
        place.append(writer.term(index, loop.indices))
    return inside, flags, out, place


def generated(movement: Movement, is_wide: bool) -> tuple[Any, list[int], list[str]]:
    """The kernel, its arguments behind the pointers, and what its pointers are of.

    Args:
        movement: what is moved.
        is_wide: whether offsets take 64 bits.
    """
    writer = _Writer(is_wide)
    loops = movement.loops
    total = writer.number(prod(loop.size for loop in loops))
    inside, flags, out, place = _places(writer, loops)
    written = "at" if _is_packed(loops) else f"{_sum(out)} + at * 0"
    looked_up = _looked_up(writer, movement.coordinates, _sum(place))
    pointers = ["x"] * movement.has_input + ["i"] * bool(movement.coordinates) + ["y"]
    where = writer.named(f"{_sum([*inside, *looked_up])} + at * 0")
    mask = writer.named(" & ".join(["mask", *[f"({flag} == 0)" for flag in flags]])) if flags else "mask"
    constants = ["value"] * movement.has_constant
    names = [*pointers, *writer.names, *[f"{each}: tl.constexpr" for each in constants], "BLOCK: tl.constexpr"]
    first = "tl.program_id(0).to(tl.int64)" if is_wide else "tl.program_id(0)"
    body = [f"at = {first} * BLOCK + tl.arange(0, BLOCK)", f"mask = at < {total}", "rest = at", *writer.lines]
    if movement.has_input:
        other = ", other=value" if movement.has_constant else ""
        body.append(f"found = tl.load(x + ({where}), mask={mask}{other})")
    else:
        body.append("found = tl.full([BLOCK], value, y.dtype.element_ty)")
    body.append(f"tl.store(y + ({written}), found, mask=mask)")
    lines = ["@triton.jit", f"def kernel({', '.join(names)}):", *[f"    {line}" for line in body]]
    return _kernel("\n".join(lines) + "\n"), writer.values, pointers


def generated_rows(
    movement: Movement, begin: int, run: Run, beside: Sequence[tuple[int, int]], is_wide: bool
) -> tuple[Any, list[int], list[str]]:
    """Likewise of a kernel that copies a run of the innermost loop, which begins at that index, by words, or fills it:
    for all turns of the loops around it.

    Args:
        beside: indices from which on, and up to which, few elements are filled too.
    """
    writer = _Writer(is_wide)
    loops, inner = movement.loops[:-1], movement.loops[-1]
    total = writer.number(prod(loop.size for loop in loops))
    inside, flags, out, place = _places(writer, loops)
    looked_up = [] if run.is_constant else [*_looked_up(writer, movement.coordinates, _sum(place))]
    is_constant = "rest == rest" if run.is_constant else " | ".join(f"({flag} != 0)" for flag in flags)
    size = writer.number(run.end - begin)
    offset = writer.number(run.offset + begin * run.step)
    source = _sum([*inside, *looked_up, offset])
    target = _sum([*out, writer.number(begin * inner.out)])
    pointers = ["x"] * movement.has_input + ["i"] * bool(movement.coordinates) + ["y"]
    constants = ["value: tl.constexpr"] * movement.has_constant
    shape = ["SIZE: tl.constexpr", "BLOCK: tl.constexpr", "COLUMNS: tl.constexpr"]
    names = [*pointers, "parts", *writer.names, *constants, "ITEM: tl.constexpr", *shape]
    body = [
        "program = tl.program_id(0)",
        "part = program % parts",
        f"at = {'(program // parts).to(tl.int64)' if is_wide else '(program // parts)'} * BLOCK + tl.arange(0, BLOCK)",
        f"mask = at < {total}",
        "rest = at",
        *writer.lines,
        f"source = {'x' if movement.has_input else 'y'}.to(tl.int64) + (({source}) + at * 0).to(tl.int64) * SIZE",
        f"target = y.to(tl.int64) + (({target}) + at * 0).to(tl.int64) * SIZE",
        f"length = (at * 0 + {size}).to(tl.int64) * SIZE",
        f"is_constant = {is_constant or '0'}",
    ]
    value, flag = ("value", "is_constant[:, None]") if is_constant else ("0", "0")
    columns = "source[:, None], target[:, None], length[:, None], mask[:, None]"
    body.append(f"copy_words({columns}, {flag}, {value}, part, ITEM, {bool(is_constant)}, COLUMNS)")
    for first, until in beside:
        body += [
            "if part == 0:",
            f"    j = tl.arange(0, {next_power_of_2(until - first)})[None, :]",
            f"    edge = y + (({_sum(out)}) + at * 0)[:, None] + ({first * inner.out} + j * {inner.out})",
            "    filled = tl.full(edge.shape, value, tl.int64).to(y.dtype.element_ty)",
            f"    tl.store(edge, filled, mask=mask[:, None] & (j < {until - first}))",
        ]
    lines = ["@triton.jit", f"def kernel({', '.join(names)}):", *[f"    {line}" for line in body]]
    return _kernel("\n".join(lines) + "\n"), writer.values, pointers


def _looked_up(writer: _Writer, coordinates: Sequence[Coordinate], place: str) -> Iterator[str]:
    """An index that the dimension lacks is nobody's element; here it is an end's: nothing else is read."""
    if not coordinates:
        return
    place = writer.named(f"{place} + at * 0")
    kind = "tl.int64" if writer.is_wide else "tl.int32"
    for offset, size, step in coordinates:
        at = f"{place} + {writer.number(offset)}" if offset else place
        j = writer.named(f"tl.load(i + ({at}), mask=mask, other=0).to(tl.int64)")
        length = writer.number(size)
        j = writer.named(f"tl.where({j} < 0, {j} + {length}, {j})")
        j = writer.named(f"tl.minimum(tl.maximum({j}, 0), {length} - 1).to({kind})")
        yield writer.named(f"{j} * {writer.number(step)}")


def _is_packed(loops: Sequence[Loop]) -> bool:
    step = 1
    for loop in reversed(loops):
        if loop.out != step:
            return False
        step *= loop.size
    return True


@lru_cache(maxsize=1024)
def _kernel(source: str) -> Any:
    return kernel_of(source, "movement", copy_words=copy_words)
