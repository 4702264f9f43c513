"""Where intermediate tensors lie: each in bytes that none alive at the same time has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

ALIGNMENT = 64
"""Of each tensor, in bytes: a line of a CPU's cache."""


class LiveRange(NamedTuple):
    """A tensor from the step that writes it to the last that reads it."""

    size: int
    """In bytes."""
    first: int
    last: int


def rounded_up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def largest_alive(lives: Sequence[LiveRange]) -> int:
    """The most bytes that are alive at one step: no plan takes less."""
    changes = np.zeros(max((life.last for life in lives), default=0) + 2, np.int64)
    for life in lives:
        changes[life.first] += rounded_up(life.size)
        changes[life.last + 1] -= rounded_up(life.size)
    return int(changes.cumsum().max())


def plan(lives: Sequence[LiveRange]) -> tuple[list[int], int]:
    """The offset of each tensor, and the bytes that all of them take.

    One tensor after the other goes to the lowest place that is free while it lives. To find the best order is hard in
    the worst case; the best of three that do well is taken.
    """
    orders: list[Callable[[LiveRange], int]] = [
        lambda life: -life.size,
        lambda life: -life.size * (life.last - life.first + 1),
        lambda life: life.first,
    ]
    best: tuple[list[int], int] | None = None
    for key in orders:
        found = _placed(lives, sorted(range(len(lives)), key=lambda i: key(lives[i])))
        if best is None or found[1] < best[1]:
            best = found
        if best[1] == largest_alive(lives):
            break
    assert best is not None
    return best


def _placed(lives: Sequence[LiveRange], order: Sequence[int]) -> tuple[list[int], int]:
    offsets = [0] * len(lives)
    # First step, last step, offset and end of what is placed.
    placed = np.zeros((4, len(lives)), np.int64)
    for count, i in enumerate(order):
        size, first, last = lives[i]
        beside = placed[2:, :count][:, (placed[0, :count] <= last) & (placed[1, :count] >= first)]
        offset = 0
        for start, end in beside[:, beside[0].argsort()].T.tolist():
            if start >= offset + size:
                break
            offset = max(offset, end)
        offsets[i] = offset
        placed[:, count] = first, last, offset, offset + rounded_up(size)
    return offsets, int(placed[3].max(initial=0))
