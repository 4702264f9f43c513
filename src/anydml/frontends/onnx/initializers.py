"""Reading of a serialised model with its large initializers in arrays of their own.

Protobuf copies each field when it parses a message and again when the field is read, ONNX's checker parses once more,
and memory that is touched for the first time costs as much as the copy. So the wire format is walked for the raw data
of initializers, which is read to where it stays; protobuf and the checker get the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from math import prod
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from google.protobuf.message import DecodeError

_LEAST = 4096
"""Bytes of raw data from which on an initializer is read by itself."""
_ALIGNMENT = 64
"""Of arrays, in bytes: the lines of caches."""


class Split(NamedTuple):
    """A model in two parts.

    Attributes:
        proto: whose large initializers have no data, and 0 as their only size.
        arrays: those initializers, by name.
        is_external: whether there was data in other files.
    """

    proto: onnx.ModelProto
    arrays: dict[str, Any]
    is_external: bool = False


def split_file(path: Path) -> Split:
    """What :func:`split` gives for a file of a serialised model.

    Raises:
        OSError: for a file that cannot be read.
        Exception: what protobuf raises where it is no model.
    """
    with path.open("rb", buffering=0) as file:

        def read(at: int, into: memoryview) -> None:
            file.seek(at)
            while into:
                count = file.readinto(into)
                if not count:
                    raise ValueError("the file became shorter while it was read")
                into = into[count:]

        if path.stat().st_size == 0:
            return Split(onnx.load_model_from_string(b""), {})
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            return _split(data, read)


def split(data: bytes) -> Split:
    """The model that bytes hold, in two parts.

    Raises:
        Exception: what protobuf raises where it is none.
    """

    def read(at: int, into: memoryview) -> None:
        into[:] = memoryview(data)[at : at + len(into)]

    return _split(data, read)


class _Raw(NamedTuple):
    """Where the raw data of an initializer lies, and what it is."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    at: int
    size: int


def _split(data: bytes | mmap, read: Callable[[int, memoryview], None]) -> Split:
    found: list[_Raw] = []
    try:
        rest = _without_raw_data(data, found) if sys.byteorder == "little" else data[:]
    except (IndexError, ValueError, DecodeError):  # protobuf has words for what is wrong
        found, rest = [], data[:]
    proto = onnx.load_model_from_string(rest)
    starts, end = [], 0
    for each in found:
        starts.append(end)
        end += -(-each.size // _ALIGNMENT) * _ALIGNMENT
    # In one piece, which the system backs by large pages where it can.
    whole = np.empty(end + _ALIGNMENT, np.uint8)
    shift = -whole.ctypes.data % _ALIGNMENT
    for each, start in zip(found, starts, strict=True):
        read(each.at, whole[shift + start : shift + start + each.size].data)
    # Nobody changes them: graphs have them as constants, without a copy.
    whole.flags.writeable = False
    arrays = {
        each.name: whole[shift + start : shift + start + each.size].view(each.dtype).reshape(each.shape)
        for each, start in zip(found, starts, strict=True)
    }
    return Split(proto, arrays)


# The wire format of protocol buffers: a field is a tag, its number times 8 with a kind of value, and the value; strings
# and messages have their lengths before them. Numbers of fields are those of onnx.proto.

_VARINT, _8_BYTES, _LENGTH, _4_BYTES = 0, 1, 2, 5
_GRAPH = 7 << 3 | _LENGTH
_INITIALIZER = 5 << 3 | _LENGTH
_RAW_DATA = 9 << 3 | _LENGTH
_BESIDE_RAW_DATA = frozenset(onnx.TensorProto.DESCRIPTOR.fields_by_name[name].number for name in (
    "dims", "data_type", "name", "doc_string",
))  # fmt: skip
"""Fields of a tensor whose raw data is read by itself; where others are, it is left to protobuf."""


def _varint(data: bytes | mmap, at: int) -> tuple[int, int]:
    """An integer of 7 bits in a byte, the lowest first, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("an integer of more than 64 bits")


def _fields(data: bytes | mmap, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Of each field of a message its tag, where it starts, where its value does, and where it ends."""
    while start < end:
        tag, value = _varint(data, start)
        kind = tag & 7
        if kind == _LENGTH:
            size, value = _varint(data, value)
            stop = value + size
        elif kind == _VARINT:
            stop = _varint(data, value)[1]
        elif kind in (_8_BYTES, _4_BYTES):
            stop = value + (8 if kind == _8_BYTES else 4)
        else:
            raise ValueError("a kind of value that is out of use")
        if stop > end:
            raise ValueError("a field that ends behind its message")
        yield tag, start, value, stop
        start = stop


def _message(tag: int, content: bytes) -> bytes:
    """A field that is a message."""
    return _as_varint(tag) + _as_varint(len(content)) + content


def _as_varint(value: int) -> bytes:
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def _without_raw_data(data: bytes | mmap, found: list[_Raw]) -> bytes:
    """The bytes of a model whose large initializers have no data; what they have is added to `found`."""

    def graph(start: int, end: int) -> bytes | None:
        return _replaced(data, start, end, _INITIALIZER, initializer)

    def initializer(start: int, end: int) -> bytes | None:
        return _without_own(data, start, end, found) if end - start >= _LEAST else None

    replaced = _replaced(data, 0, len(data), _GRAPH, graph)
    return data[:] if replaced is None else replaced


def _replaced(
    data: bytes | mmap, start: int, end: int, wanted: int, of: Callable[[int, int], bytes | None]
) -> bytes | None:
    """The bytes of a message with other ones for messages in it; None where nothing is another."""
    parts: list[bytes] = []
    kept = start
    for tag, at, value, stop in _fields(data, start, end):
        content = of(value, stop) if tag == wanted else None
        if content is not None:
            parts += [data[kept:at], _message(tag, content)]
            kept = stop
    return b"".join([*parts, data[kept:end]]) if parts else None


def _without_own(data: bytes | mmap, start: int, end: int, found: list[_Raw]) -> bytes | None:
    """The bytes of a tensor without its raw data; None where it is no array of whole bytes, or has none."""
    fields = list(_fields(data, start, end))
    raw = [(value, stop) for tag, _, value, stop in fields if tag == _RAW_DATA]
    others = [field for field in fields if field[0] != _RAW_DATA]
    if len(raw) != 1 or any(tag >> 3 not in _BESIDE_RAW_DATA for tag, *_ in others):
        return None
    tensor = onnx.TensorProto.FromString(b"".join(data[at:stop] for _, at, _, stop in others))
    shape = tuple(tensor.dims)
    (at, stop), types = raw[0], onnx.helper.get_all_tensor_dtypes()
    if tensor.data_type not in types or tensor.data_type == onnx.TensorProto.STRING or any(size < 0 for size in shape):
        return None
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    # Of less than a byte, NumPy has a byte for each.
    if not dtype.itemsize or prod(shape) * dtype.itemsize != stop - at or stop - at < _LEAST:
        return None
    found.append(_Raw(tensor.name, dtype, shape, at, stop - at))
    tensor.dims[:] = [0]
    content: bytes = tensor.SerializeToString()
    return content
