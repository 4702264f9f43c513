"""Tensors as lines along some axes, for kernels that combine the elements of a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import triton.language as tl

from ...core.strided_layout import Layout, fold
from .launch import WIDE


class Loop(NamedTuple):
    """A dimension: its size, and its strides in elements."""

    size: int
    x: int
    y: int
    others: tuple[int, ...] = ()
    """Of further tensors, 0 where they are broadcast."""


@dataclass(frozen=True)
class Lines:
    """A tensor as lines, and another one that has as many, or an element for each."""

    loops: tuple[Loop, ...]
    """Over lines, the nearest first."""
    axis: tuple[Loop, ...]
    """Over the elements of a line, the last dimension's first."""

    @classmethod
    def of(
        cls, x: Layout, y: Layout, axes: Iterable[int], others: Sequence[Layout] = (), any_order: bool = False
    ) -> Lines:
        """Lines along the axes of x; `any_order` says that their elements may be walked in the order of memory."""
        along = set(axes)
        steps = [_steps(each) for each in others]
        every = [
            Loop(size, of_x, of_y, tuple([each[i] for each in steps]))
            for i, (size, of_x, of_y) in enumerate(zip(x.sizes, _steps(x), _steps(y), strict=True))
        ]
        lines = _folded([loop for i, loop in enumerate(every) if i not in along], len(others))
        within = [loop for i, loop in enumerate(every) if i in along]
        if any_order:
            within.sort(key=lambda loop: -abs(loop.x))
        axis = _folded(within, len(others))
        return cls(tuple(sorted(lines, key=lambda loop: (abs(loop.x), abs(loop.y)))), tuple(axis[::-1]))

    @property
    def count(self) -> int:
        """Of lines."""
        return prod(loop.size for loop in self.loops)

    @property
    def n(self) -> int:
        """The elements of a line."""
        return prod(loop.size for loop in self.axis)

    @property
    def adjacent(self) -> int:
        """Lines that lie nearer to each other than the elements of one do."""
        nearest = self.loops[0]
        steps = [abs(loop.x) for loop in self.axis if loop.size > 1]
        return nearest.size if not steps or abs(nearest.x) < min(steps) else 0

    @property
    def is_side_by_side(self) -> bool:
        """Whether the nearest lines are adjacent in both tensors."""
        return self.loops[0].x == self.loops[0].y == 1

    @property
    def index(self) -> Any:
        """Triton's type of offsets."""
        loops = (*self.loops, *self.axis)
        extents = [[(loop.size - 1) * abs(step) for step in (loop.x, loop.y, *loop.others)] for loop in loops]
        reach = max(map(sum, zip(*extents, strict=True)))
        return tl.int64 if max(reach, self.n, self.count) + (1 << 20) >= WIDE else tl.int32

    def arguments(self) -> tuple[tuple[int, ...], ...]:
        """Sizes and strides of the lines' loops, then of those along a line, as kernels take them."""
        return tuple([numbers for loops in (self.loops, self.axis) for numbers in _columns(loops)])


def _columns(loops: Sequence[Loop]) -> list[tuple[int, ...]]:
    rows = [(loop.size, loop.x, loop.y, *loop.others) for loop in loops]
    return [*zip(*rows, strict=True)]


def _steps(layout: Layout) -> list[int]:
    item = layout.dtype.itemsize
    return [0 if size == 1 else step // item for size, step in zip(layout.sizes, layout.strides, strict=True)]


def _folded(loops: Sequence[Loop], others: int) -> list[Loop]:
    """Without what moves no tensor; one loop at least."""
    strides = [*zip(*[(loop.x, loop.y, *loop.others) for loop in loops], strict=True)]
    sizes, _, last = fold([loop.size for loop in loops], strides, -1)
    folded = [loops[i]._replace(size=size) for size, i in zip(sizes, last, strict=True)]
    return folded or [Loop(1, 0, 0, (0,) * others)]
