"""What lies between the kernels of a graph: which memory each tensor has, and how long."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from .ir import Place, Step
from .memory_plan import LiveRange, largest_alive, plan
from .verify import Port


def given_ports(steps: Sequence[Step], ends: Collection[Port]) -> dict[Port, int]:
    """Tensors that kernels bring in memory of their own, and the last step that reads each."""
    if any(step.demands is not None for step in steps):
        return {}
    found = {}
    for step in steps:
        (place, *more) = step.writes
        if place is None or more or place.port in ends or not step.served.kernel.gives:
            continue
        reads = [
            (k, read)
            for k, other in enumerate(steps)
            for read in other.reads
            if read is not None and read.port == place.port
        ]
        room, item = place.layout.bounds()[1], place.layout.dtype
        if reads and all(read.layout.bounds()[1] <= room and read.layout.dtype == item for _, read in reads):
            found[place.port] = max(k for k, _ in reads)
    return found


class Room(NamedTuple):
    """The memory of what lies between kernels."""

    offsets: dict[Port, int]
    size: int
    """In bytes, of all."""
    alive: int
    """The most bytes that are needed at once."""


def room_between(steps: Sequence[Step], elsewhere: Collection[Port], kept: Collection[Port]) -> Room:
    """Where tensors lie that a kernel writes and others read.

    Args:
        steps: the kernels.
        elsewhere: tensors that are outputs, or that kernels bring in memory of their own.
        kept: those that are read when all kernels have run.
    """
    last = dict.fromkeys(kept, len(steps))
    for i, step in enumerate(steps):
        for place in step.reads:
            if place is not None:
                last[place.port] = max(last.get(place.port, 0), i)
    lives: list[LiveRange] = []
    buffers: dict[Port, int] = {}
    for i, step in enumerate(steps):
        for place in step.writes:
            if place is None or place.port in elsewhere:
                continue
            until = last.get(place.port, i)
            taken = _taken_over(step, place, i, last, buffers)
            if taken is None:
                buffers[place.port] = len(lives)
                lives.append(LiveRange(place.room, i, until))
            else:
                buffers[place.port] = taken
                lives[taken] = lives[taken]._replace(last=until)
    offsets, total = plan(lives)
    return Room({port: offsets[buffer] for port, buffer in buffers.items()}, total, largest_alive(lives))


def _taken_over(step: Step, place: Place, now: int, last: dict[Port, int], buffers: dict[Port, int]) -> int | None:
    """The buffer of an input that an operator which runs in-place may write over, as nothing reads it later."""
    may_be_over = step.vertex.spec.in_place or step.served.kernel.may_overwrite_input
    if not may_be_over or len(step.writes) > 1:
        return None
    for read in step.reads if step.vertex.spec.in_place else step.reads[:1]:
        if (
            read is not None
            and read.port in buffers
            and last[read.port] == now
            and read.layout.same_place(place.layout)
            and sum(other is not None and other.port == read.port for other in step.reads) == 1
        ):
            return buffers[read.port]
    return None
