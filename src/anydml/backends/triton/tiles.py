"""Tensors as tiles of rows and columns, for kernels whose indices are taken apart once for each row and each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import triton.language as tl

from ...core.strided_layout import Layout, fold
from ..base import Declined
from ..torch.devices import is_interpreted
from .launch import WIDE, next_power_of_2, too_many

ELEMENTS, WIDEST = 1024, 256
"""Elements of a tile, and its columns."""
BEYOND = 1 << 20
"""More than the elements that a program reaches beyond the last one."""


class Tiles(NamedTuple):
    rows: int
    """Of a tile."""
    columns: int
    blocks: int
    """Tiles of a row."""
    programs: int

    @property
    def shape(self) -> dict[str, int]:
        return {"ROWS": self.rows, "COLUMNS": self.columns}


def tiles_of(rows: int, columns: int, elements: int = 0, widest: int = 0) -> Tiles | Declined:
    """Of so many rows and columns, each of a program."""
    if is_interpreted():
        # Which takes as long for a program as for many elements.
        elements = 8 * (elements or ELEMENTS)
    wide = min(widest or WIDEST, next_power_of_2(columns))
    high = min(max(1, (elements or ELEMENTS) // wide), next_power_of_2(rows))
    blocks = -(-columns // wide)
    programs = blocks * -(-rows // high)
    return too_many(programs) or Tiles(high, wide, blocks, programs)


def index_type(layouts: Sequence[Layout], most: int = 0) -> Any:
    """Triton's type of offsets in these tensors, and of `most` other numbers."""
    reach = max((high - low) // layout.dtype.itemsize for layout in layouts for low, high in [layout.bounds()])
    return tl.int64 if max(reach, most) + BEYOND >= WIDE else tl.int32


def steps_of(layout: Layout) -> list[int]:
    """Strides in elements; 0 of what has one."""
    item = layout.dtype.itemsize
    return [0 if size == 1 else step // item for size, step in zip(layout.sizes, layout.strides, strict=True)]


def folded_loops(
    sizes: Sequence[int], strides: Sequence[Sequence[int]], keep: int = -1
) -> tuple[list[tuple[int, ...]], int]:
    """Loops that all tensors walk as one, of a size and a step of each; and the number of the one that is kept."""
    folded, kept, last = fold(sizes, strides, keep)
    return [(size, *[each[i] for each in strides]) for size, i in zip(folded, last, strict=True)], kept


def inner_first(loops: Sequence[Sequence[int]], tensors: int = 1) -> list[tuple[int, ...]]:
    """Sizes, and steps of each tensor, as kernels take those of loops; of one loop, where there is none."""
    return [*zip(*(loops[::-1] or [(1, *(0,) * tensors)]), strict=True)]
