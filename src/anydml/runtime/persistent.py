"""Persistent resources: how an operator knows its own, and what it has prepared for them."""

from __future__ import annotations

from itertools import count
from os import urandom
from typing import Any, NamedTuple

import numpy as np

from ..core.memory import address
from ..core.strided_layout import Array
from .binding import Bound


class ResourceTag:
    """Tells an operator's persistent resources: on the CPU they begin with bytes of its own, and a number of each
    initialisation. To look at other memory would mean to wait for a device; of that the addresses are known."""

    _NUMBER = 8
    """Bytes of a number."""

    def __init__(self) -> None:
        self._bytes = urandom(16)
        self._size = len(self._bytes) + self._NUMBER
        self._numbers = count(1)
        self._addresses: dict[int, int] = {}

    def put(self, memory: Array, offset: int) -> None:
        number = next(self._numbers)
        if isinstance(memory, np.ndarray):
            mark = self._bytes + number.to_bytes(self._NUMBER, "little")
            memory[offset : offset + self._size] = np.frombuffer(mark, np.uint8)
        else:
            self._addresses[address(memory) + offset] = number

    def remove(self, memory: Array, offset: int) -> None:
        if isinstance(memory, np.ndarray):
            memory[offset : offset + self._size] = 0
        else:
            self._addresses.pop(address(memory) + offset, None)

    def number(self, memory: Array, offset: int) -> int | None:
        """Of the initialisation that filled the memory; None where none of this operator did."""
        if not isinstance(memory, np.ndarray):
            return self._addresses.get(address(memory) + offset)
        mark = memory[offset : offset + self._size].tobytes()
        return int.from_bytes(mark[len(self._bytes) :], "little") if mark.startswith(self._bytes) else None


class InitialisedResource(NamedTuple):
    """A persistent resource, as long as it is as it was filled."""

    inputs: dict[int, Bound]
    """What is OWNED_BY_DML, by the number of the input."""
    work: Any
    """What was prepared for it: of an operator what runs, of a graph all that its kernels want."""


KEPT = 4
"""Of how many persistent resources an operator keeps what it has prepared; for others it prepares anew."""
