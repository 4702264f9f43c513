"""Memory of devices: how what users give becomes an array there, and how results come back.

The CPU's is here. That of devices which PyTorch reaches is in ``backends/torch/memory.py``; its arrays have NumPy's
words for all that is asked of them outside of engines: ``dtype``, ``shape``, ``strides`` in bytes, ``ndim``, ``flags``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from .errors import DMLError, error, kind_of, refuse, violation
from .interop import as_array, is_channels_last, like
from .strided_layout import Array, Layout, overlaps_itself


class Memory(Protocol):
    """Where a device's arrays lie."""

    is_host: bool
    """Whether it is the CPU's, whose values can be looked at without waiting for anything."""

    def import_array(self, operator: str, where: str, value: Any) -> Array:
        """An array on the memory of `value`: here, or in the CPU's memory. Rules (A1), (A2) and (A12)."""
        ...

    def to_device(self, array: Array) -> Array:
        """The same array here: itself, or a copy of one in the CPU's memory."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """A new array. MemoryError or ValueError where there is no room."""
        ...

    def export(self, value: Any, out: Any, result: Array) -> Any:
        """A function's result: `out` where that was given, holding it, else an array like `value`, which may be it."""
        ...

    def bytes_of(self, buffer: Any) -> Array:
        """The memory of a contiguous buffer as a flat array of bytes. TypeError, ValueError or BufferError."""
        ...

    def view(self, layout: Layout, memory: Array, offset: int) -> Array:
        """The tensor at `offset` in a flat array of bytes."""
        ...

    def copy(self, target: Array, source: Array) -> None:
        """Copies elements; both are here."""
        ...

    def stream_key(self) -> int | None:
        """What memory that work here is done with may be used for: work of the same lane is done in turn. None where it
        must not be used again, as a graph is captured."""
        ...

    def recording(self, layouts: Sequence[Layout | None], inputs: int, kernels: int) -> Any:
        """What runs the same work again and again, on inputs and outputs of these layouts, with less effort of the host
        from some time on; it is called with the work and the arrays, and its `state` says what it does. None where
        there is nothing to gain."""
        ...

    def stopwatch(self, marks: int) -> AbstractContextManager[Stopwatch]:
        """Takes the time between marks, so many, that are set in the order of the work here."""
        ...


class Stopwatch(Protocol):
    def mark(self) -> None: ...

    def seconds(self) -> list[float]:
        """Between marks."""
        ...


class HostStopwatch:
    """By the CPU's clock."""

    def __init__(self) -> None:
        self._marks: list[float] = []

    def mark(self) -> None:
        self._marks.append(perf_counter())

    def seconds(self) -> list[float]:
        return [b - a for a, b in pairwise(self._marks)]


class HostMemory:
    """The CPU's."""

    is_host = True

    def import_array(self, operator: str, where: str, value: Any) -> Array:
        return as_array(operator, where, value)

    def to_device(self, array: Array) -> Array:
        return array

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        return np.empty(shape, dtype)

    def export(self, value: Any, out: Any, result: Array) -> Any:
        return out if out is not None else like(value, result)

    def bytes_of(self, buffer: Any) -> Array:
        view = memoryview(buffer)
        if "O" in view.format:
            raise TypeError("pointers to objects are no memory of numbers")
        return np.frombuffer(view, np.uint8)

    def view(self, layout: Layout, memory: Array, offset: int) -> Array:
        return layout.view(memory, offset)

    def copy(self, target: Array, source: Array) -> None:
        target[...] = source

    def stream_key(self) -> int | None:
        return 0

    def recording(self, layouts: Sequence[Layout | None], inputs: int, kernels: int) -> Any:
        return None

    def stopwatch(self, marks: int) -> AbstractContextManager[Stopwatch]:
        return nullcontext(HostStopwatch())


HOST = HostMemory()


def no_room(operator: str, tensors: Iterable[Any]) -> DMLError:
    """The error for a kernel that finds no memory to work in; rule (D6)."""
    size = sum(getattr(tensor, "nbytes", 0) for tensor in tensors)
    found = f"no memory beside {size} bytes of tensors"
    expected, remedy = "what the kernel works in", "OMP_NUM_THREADS=1 has it need the least"
    return error([violation(operator, "(D6)", "", found, expected, remedy, kind="memory")])


def address(array: Array) -> int:
    """Where element (0, ..., 0) lies."""
    if isinstance(array, np.ndarray):
        return int(array.__array_interface__["data"][0])
    return int(array.address)


def bytes_behind(array: Array, count: int) -> Array:
    """The bytes from element (0, ..., 0) on, as a flat array."""
    return restride(restride(array, (1,), (array.itemsize,)).view(np.uint8), (count,), (1,))


def restride(array: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """The same memory under another shape, and strides in bytes, of the same elements."""
    if isinstance(array, np.ndarray):
        return np.lib.stride_tricks.as_strided(array, shape, strides)
    return array.restrided(shape, strides)


def result_array(
    memory: Memory, name: str, out: Any, dtype: np.dtype[Any], shape: tuple[int, ...], model: Any = None
) -> Array:
    """The array that a result is written to: out's memory, or new, with the channels last where `model` has them there;
    rules (A1) to (A4) and (A7)."""
    if out is None:
        try:
            is_tensor = model is not None and type(model) is not np.ndarray
            if is_tensor and len(shape) == getattr(model, "ndim", 0) and is_channels_last(model):
                return _with_channels_last(memory, shape, dtype)
            return memory.empty(shape, dtype)
        except (MemoryError, ValueError) as problem:
            expected = "a result that fits in memory"
            return refuse(name, "(A4)", "out", f"{dtype} of shape {shape}: {problem}", expected, kind="memory")
    if isinstance(out, (list, tuple)):
        expected = "an array that can be written to, or None for a new one"
        refuse(name, "(A1)", "out", kind_of(out), expected, kind="type")
    array = memory.import_array(name, "out", out)
    if not array.flags.writeable:
        refuse(name, "(A3)", "out", "a read-only array", "a writable one")
    if array.dtype != dtype or array.shape != shape:
        found = f"{array.dtype} of shape {array.shape}"
        refuse(name, "(A4)", "out", found, f"{dtype} of shape {shape}")
    if array.size and overlaps_itself(array.shape, array.strides, array.itemsize):
        found = f"strides {array.strides} bytes for shape {array.shape}"
        refuse(name, "(A7)", "out", found, "strides that prove that no two elements overlap")
    # What lies elsewhere gets its result by a copy.
    here = memory.is_host or not isinstance(array, np.ndarray)
    return array if here else result_array(memory, name, None, dtype, shape)


def _with_channels_last(memory: Memory, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    array = memory.empty((shape[0], *shape[2:], shape[1]), dtype)
    first, *middle, last = array.strides
    return restride(array, shape, (first, last, *middle))
