"""Tensors as tiles of rows and columns, for kernels whose indices are taken apart once for each row and each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import triton.language as tl

from ...core.strided_layout import Layout
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


def inner_first(numbers: Sequence[int]) -> tuple[int, ...]:
    """As kernels take the sizes and strides of loops; one loop at least."""
    return tuple(numbers[::-1])
