"""A model's resources: initial values from lists, constants, sequences and files; their bytes; their text.

Nothing is computed before :meth:`Buffer.create`; how many bytes that will take is known from the counts alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ...core.enums import TensorDataType
from ...core.strided_layout import DTYPES, Array
from .files import Refused, npy_array

_CHUNK = 1 << 16


class Initial(Protocol):
    """Initial values."""

    @property
    def nbytes(self) -> int: ...

    def fill(self, memory: Array) -> None:
        """Writes them to `nbytes` bytes of memory."""


@dataclass(frozen=True, slots=True)
class Values:
    """Values given one by one, as bytes."""

    data: bytes

    @property
    def nbytes(self) -> int:
        return len(self.data)

    def fill(self, memory: Array) -> None:
        memory[...] = np.frombuffer(self.data, np.uint8)


@dataclass(frozen=True, slots=True)
class Constant:
    """One value, `count` times."""

    count: int
    value: np.generic

    @property
    def nbytes(self) -> int:
        return self.count * self.value.itemsize

    def fill(self, memory: Array) -> None:
        memory.view(self.value.dtype)[...] = self.value


@dataclass(frozen=True, slots=True)
class Sequential:
    """start, start + delta, start + delta + delta: added up in the data type itself, rounding or wrapping each time."""

    count: int
    start: np.generic
    delta: np.generic

    @property
    def nbytes(self) -> int:
        return self.count * self.start.itemsize

    def fill(self, memory: Array) -> None:
        dtype = self.start.dtype
        values = memory.view(dtype)
        terms = np.full(min(self.count, _CHUNK) + 1, self.delta, dtype)
        terms[0] = self.start
        with np.errstate(all="ignore"):
            for begin in range(0, self.count, _CHUNK):
                sums = np.add.accumulate(terms, dtype=dtype)
                count = min(_CHUNK, self.count - begin)
                values[begin : begin + count] = sums[:count]
                terms[0] = sums[-1]


@dataclass(frozen=True, slots=True)
class RawFile:
    """A file's bytes."""

    path: Path
    nbytes: int

    def fill(self, memory: Array) -> None:
        try:
            with open(self.path, "rb") as file:
                count = file.readinto(memory.data)
        except OSError as problem:
            raise Refused(f"{str(self.path)!r} ({problem.strerror})", "a file that can be read") from None
        if count != self.nbytes:
            raise Refused(f"{count} bytes of {str(self.path)!r}", f"the {self.nbytes} bytes that it had before")


@dataclass(frozen=True, slots=True)
class NpyFile:
    """A .npy file's elements in row-major order."""

    path: Path
    nbytes: int
    dtype: np.dtype[Any]

    def fill(self, memory: Array) -> None:
        array = npy_array(self.path)
        if array.nbytes != self.nbytes or array.dtype.newbyteorder("=") != self.dtype:
            raise Refused(f"{str(self.path)!r} changed", "the file that it was before")
        memory.view(self.dtype).reshape(array.shape)[...] = array


@dataclass(frozen=True, slots=True)
class Deferred:
    """No values: those of a result that is bound to it, and its size, are known when that has been computed."""

    nbytes: int = 0

    def fill(self, memory: Array) -> None:
        """There is nothing to write."""


DEFERRED = Deferred()


@dataclass(frozen=True, slots=True)
class Result:
    """The values of a result, in a resource that was deferred."""

    array: Array
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return self.array.size

    def fill(self, memory: Array) -> None:
        memory[...] = self.array


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A resource."""

    data_type: TensorDataType
    """Of its elements; UNKNOWN where they are of several types."""
    size: int
    """In bytes, a multiple of 4."""
    offset: int
    """Of the initial values, in bytes; what is around them is 0."""
    initial: Initial

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of an element; that of bytes where elements are of several types."""
        return DTYPES.get(self.data_type, np.dtype(np.uint8))

    @property
    def count(self) -> int:
        """The elements up to the end of the initial values: what is printed and written."""
        return (self.offset + self.initial.nbytes) // self.dtype.itemsize

    def create(self) -> Array:
        """The resource's memory as bytes, with its initial values.

        Raises:
            Refused: a file can't be read any more.
            MemoryError: there is not as much memory.
        """
        memory = np.zeros(self.size, np.uint8)
        self.initial.fill(memory[self.offset : self.offset + self.initial.nbytes])
        return memory

    def elements(self, memory: Array) -> Array:
        """The elements in a resource's memory, without the padding behind them."""
        return memory[: self.count * self.dtype.itemsize].view(self.dtype)


def number(data_type: TensorDataType, value: object) -> np.generic | None:
    """A JSON value as an element of a data type; None where it is none.

    Floats may be any number that rounds to a finite one of their type, or the strings "nan", "inf" and "-inf" in any
    case; integers are JSON's integers in their type's range.
    """
    dtype = DTYPES[data_type]
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        fits = type(value) is int and limits.min <= value <= limits.max
        return dtype.type(value) if fits else None
    if isinstance(value, str):
        return dtype.type(value) if value.lower() in ("nan", "inf", "-inf") else None
    if type(value) not in (int, float):
        return None
    try:
        with np.errstate(over="ignore"):
            rounded: np.generic = dtype.type(float(value))  # type: ignore[arg-type]
    except OverflowError:
        return None
    return rounded if np.isfinite(rounded) else None


def numbers(data_type: TensorDataType, values: Sequence[object]) -> Array | int:
    """JSON values as elements of a data type, or the index of the first that is none."""
    dtype = DTYPES[data_type]
    if dtype.kind == "f" and set(map(type, values)) <= {int, float}:
        try:
            with np.errstate(over="ignore"):
                quick = np.array(values, np.float64).astype(dtype)
            if np.isfinite(quick).all():
                return quick
        except OverflowError:
            pass  # the loop below finds which
    elements = []
    for i, value in enumerate(values):
        element = number(data_type, value)
        if element is None:
            return i
        elements.append(element)
    return np.array(elements, dtype)


def expected_number(data_type: TensorDataType) -> str:
    """What :func:`number` takes, for a message."""
    dtype = DTYPES[data_type]
    if dtype.kind == "f":
        return f'a number that {data_type.name} holds, or "nan", "inf" or "-inf"'
    limits = np.iinfo(dtype)
    return f"an integer from {limits.min} to {limits.max}"


def describe(value: object) -> str:
    """What a JSON value is, for a message."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    plain = isinstance(value, str) and value.isprintable()
    text = f'"{value}"' if plain else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def text_of(elements: Array, verbose: bool) -> Iterator[str]:
    """Elements as text, piece by piece: ``2, 8, 64, 192``, or a line for each with its index and its bits.

    Floats have 6 significant digits, as C++ prints them. INT8 and UINT8 are numbers (DxDispatch prints them as
    characters).
    """
    width = len(str(len(elements) - 1))
    form = "{:g}" if elements.dtype.kind == "f" else "{}"
    bits = elements.view(f"u{elements.itemsize}")
    for begin in range(0, len(elements), _CHUNK):
        end = begin + _CHUNK
        words = [form.format(value) for value in elements[begin:end].tolist()]
        if verbose:
            rows = zip(words, bits[begin:end].tolist(), strict=True)
            hexes = 2 * elements.itemsize
            yield "".join(f"\n[{begin + i:{width}}] {word} (0x{b:0{hexes}X})" for i, (word, b) in enumerate(rows))
        else:
            yield (", " if begin else "") + ", ".join(words)
