"""Tables of a FlatBuffer, read with every offset checked; the package ``flatbuffers`` knows how they lie.

A vtable says where a table's fields are; what is not in it has its default. Offsets of strings, vectors and tables lead
forwards, so no data lead in a circle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .files import Refused

_U8, _U16, _U32, _I32, _U64 = (np.dtype(f"<{kind}") for kind in ("u1", "u2", "u4", "i4", "u8"))


class Table:
    """A table.

    Args:
        data: the whole file.
        position: where the table begins.

    Raises:
        Refused: it lies outside of the data.
    """

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position
        self._vtable = position - int(self._number(_I32, position))
        self._fields = int(self._number(_U16, self._vtable)) // 2

    @classmethod
    def root(cls, data: bytes) -> Table:
        """The table that a file begins with."""
        import flatbuffers
        from flatbuffers.number_types import UOffsetTFlags

        if len(data) < 2 * _U32.itemsize:
            raise Refused(f"{len(data)} bytes", _EXPECTED)
        return cls(data, flatbuffers.encode.Get(UOffsetTFlags.packer_type, data, 0))

    def has(self, field: int) -> bool:
        """Whether a field is there; fields are counted from 0."""
        return self._place(field) is not None

    def number(self, field: int, dtype: Any, default: int = 0) -> int:
        """A field that is an integer."""
        place = self._place(field)
        return default if place is None else int(self._number(np.dtype(f"<{dtype}"), place))

    def text(self, field: int) -> str:
        """A field that is a string; "" where it is not there."""
        place = self._place(field)
        return "" if place is None else self._text(self._target(place))

    def texts(self, field: int) -> list[str]:
        """A field that is a vector of strings."""
        return [self._text(self._target(place)) for place in self._elements(field, 4)]

    def table(self, field: int) -> Table | None:
        """A field that is a table, or a union that holds one."""
        place = self._place(field)
        return None if place is None else Table(self.data, self._target(place))

    def tables(self, field: int) -> list[Table]:
        """A field that is a vector of tables."""
        return [Table(self.data, self._target(place)) for place in self._elements(field, 4)]

    def struct(self, field: int, size: int) -> bytes:
        """The bytes of a struct that a union holds."""
        place = self._place(field)
        if place is None:
            raise Refused("a number that is missing", _EXPECTED)
        return self._bytes(self._target(place), size)

    def array(self, field: int, dtype: Any) -> Any:
        """A field that is a vector of numbers; None where it is not there."""
        place = self._place(field)
        if place is None:
            return None
        kind = np.dtype(f"<{dtype}")
        start = self._target(place)
        count = int(self._number(_U32, start))
        return np.frombuffer(self._bytes(start + 4, count * kind.itemsize), kind)

    def _place(self, field: int) -> int | None:
        """Where a field is; None where the table has none."""
        if field + 2 >= self._fields:
            return None
        offset = int(self._number(_U16, self._vtable + 4 + 2 * field))
        return self.position + offset if offset else None

    def _target(self, place: int) -> int:
        return place + int(self._number(_U32, place))

    def _elements(self, field: int, size: int) -> Iterator[int]:
        place = self._place(field)
        if place is None:
            return
        start = self._target(place)
        count = int(self._number(_U32, start))
        self._bytes(start + 4, count * size)
        yield from range(start + 4, start + 4 + count * size, size)

    def _text(self, start: int) -> str:
        return self._bytes(start + 4, int(self._number(_U32, start))).decode(errors="backslashreplace")

    def _number(self, dtype: np.dtype[Any], start: int) -> Any:
        return np.frombuffer(self._bytes(start, dtype.itemsize), dtype)[0]

    def _bytes(self, start: int, size: int) -> bytes:
        if start < 0 or start + size > len(self.data):
            raise Refused(f"an offset of {start} in {len(self.data)} bytes", _EXPECTED)
        return self.data[start : start + size]


_EXPECTED = "a serialised graph, as ONNX Runtime writes it"
