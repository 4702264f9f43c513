"""Arrays of INT4 and UINT4, which NumPy has no data type for: two elements in a byte, the first in the low half.

Elements follow each other in row-major order without gaps, also across rows, so that a byte may hold the last element
of one row and the first of the next one. Of an odd number the high half of the last byte is 0 where it is written, and
anything where it is read. ml_dtypes' int4 and uint4, a byte for each element, are packed; that package need not be
there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .enums import TensorDataType, member_spelt
from .errors import kind_of, refuse
from .strided_layout import Array

FOUR_BITS = (TensorDataType.UINT4, TensorDataType.INT4)
"""The data types whose elements are halves of bytes."""
LIMITS = {TensorDataType.UINT4: (0, 15), TensorDataType.INT4: (-8, 7)}
"""The least and the largest number of each."""
_ML_DTYPES = {"uint4": TensorDataType.UINT4, "int4": TensorDataType.INT4}
_LABEL, _NAME = "(A19)", "PackedArray"


class PackedArray:
    """Numbers of 4 bits, two in a byte, with the shape that the bytes alone do not tell.

    Args:
        data: the bytes, contiguous ones of uint8: a NumPy array or one of another library, or bytes. Not copied.
        data_type: TensorDataType.INT4 or UINT4, or its name.
        shape: an integer or integers.

    Attributes:
        data: the bytes, as they were given; those that are no array as a NumPy array.
        data_type: the data type.
        shape: the sizes.

    Raises:
        DMLError: (A19).

    >>> x = PackedArray.pack([[1, -2, 3]], "INT4")
    >>> x.data
    array([225,   3], dtype=uint8)
    >>> x.unpack()
    array([[ 1, -2,  3]], dtype=int8)
    """

    __slots__ = ("data", "data_type", "shape")

    def __init__(self, data: Any, data_type: TensorDataType | str, shape: int | Sequence[int]) -> None:
        self.data_type = as_four_bits(data_type)
        self.shape = _as_shape(shape)
        if isinstance(data, (bytes, bytearray, memoryview)):
            data = np.frombuffer(data, np.uint8)
        wanted = bytes_for(self.size)
        is_array = str(getattr(data, "dtype", "")).rpartition(".")[2] == "uint8" and hasattr(data, "shape")
        if not is_array or tuple(data.shape) != (wanted,) or not _is_contiguous(data):
            expected = f"{wanted} contiguous bytes, an array of uint8 of one dimension, for shape {self.shape}"
            refuse(_NAME, _LABEL, "data", kind_of(data), expected, "PackedArray.pack packs numbers")
        self.data = data

    @classmethod
    def pack(cls, values: Any, data_type: TensorDataType | str) -> PackedArray:
        """Packs integers.

        Args:
            values: an array, or lists, of integers that the data type holds; ml_dtypes' numbers too.
            data_type: TensorDataType.INT4 or UINT4, or its name.

        Raises:
            DMLError: (A19).
        """
        kind = as_four_bits(data_type)
        return cls(pack_codes(_as_codes(values, kind)), kind, np.shape(values))

    def unpack(self) -> Array:
        """The numbers as an array of int8 or uint8; what lies on a GPU is copied to the CPU's memory."""
        return unpack_codes(self._on_host(), self.data_type, self.shape)

    def to_bytes(self) -> bytes:
        """The bytes that the elements take."""
        return self._on_host().tobytes()

    def _on_host(self) -> Array:
        if isinstance(self.data, np.ndarray):
            return self.data
        found: Array = self.data.cpu().numpy() if hasattr(self.data, "cpu") else np.from_dlpack(self.data)
        return found

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def __repr__(self) -> str:
        return f"<PackedArray of {self.data_type.name} {self.shape}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedArray, (self.data, self.data_type, self.shape)


def as_four_bits(data_type: Any) -> TensorDataType:
    """INT4 or UINT4, by its member or its name; rule (A19)."""
    found = member_spelt(TensorDataType, data_type)
    if found in FOUR_BITS and isinstance(found, TensorDataType):
        return found
    refuse(_NAME, _LABEL, "data_type", kind_of(data_type), "TensorDataType.INT4 or UINT4, or its name", kind="type")


def four_bits_of(dtype: Any) -> TensorDataType | None:
    """INT4 or UINT4 where a data type is one of these, another library's among them, or its name; None of others."""
    if isinstance(dtype, np.dtype):
        # Of NumPy's own types none has 4 bits, and their names take long to make.
        return None if dtype.isbuiltin == 1 else _ML_DTYPES.get(dtype.name)
    if isinstance(dtype, TensorDataType):
        return dtype if dtype in FOUR_BITS else None
    if isinstance(dtype, str):
        return _ML_DTYPES.get(dtype.lower())
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        return _ML_DTYPES.get(dtype.__name__)
    return _ML_DTYPES.get(str(dtype).removeprefix("torch.")) if type(dtype).__module__ == "torch" else None


def as_packed(value: Any) -> PackedArray | None:
    """A packed array as it is, and an array of ml_dtypes' as one; None for all others."""
    if isinstance(value, PackedArray):
        return value
    is_numpy = isinstance(value, (np.ndarray, np.generic))
    kind = four_bits_of(value.dtype) if is_numpy and value.dtype.itemsize == 1 else None
    return None if kind is None else PackedArray.pack(value, kind)


def as_ml_dtypes(packed: PackedArray) -> Array:
    """An array of the package ml_dtypes, which is loaded, as somebody has an array of it."""
    dtype = getattr(sys.modules["ml_dtypes"], packed.data_type.name.lower())
    return packed.unpack().astype(dtype)


def unpacked_dtype(data_type: TensorDataType) -> np.dtype[Any]:
    """NumPy's smallest type for the numbers of INT4 or UINT4."""
    return np.dtype(np.uint8 if data_type == TensorDataType.UINT4 else np.int8)


def bytes_for(count: int) -> int:
    """The bytes that so many elements take."""
    return (count + 1) // 2


def pack_codes(codes: Array) -> Array:
    """The bytes of integers modulo 16."""
    flat = codes.reshape(-1).astype(np.uint8) & 15
    packed = flat[::2].copy()
    packed[: flat.size // 2] |= flat[1::2] << 4
    return packed


def unpack_codes(data: Array, data_type: TensorDataType, shape: Sequence[int]) -> Array:
    """The numbers in flat bytes, as int8 or uint8."""
    halves = np.empty((data.size, 2), np.uint8)
    halves[:, 0], halves[:, 1] = data & 15, data >> 4
    codes = halves.reshape(-1)[: prod(shape)].reshape(shape)
    if data_type == TensorDataType.UINT4:
        return codes
    signed: Array = (codes ^ 8).astype(np.int8) - np.int8(8)
    return signed


def _is_contiguous(data: Any) -> bool:
    flags: Any = getattr(data, "flags", None)
    if hasattr(flags, "c_contiguous"):
        return bool(flags.c_contiguous)
    return not hasattr(data, "is_contiguous") or bool(data.is_contiguous())


def _as_codes(values: Any, data_type: TensorDataType) -> Array:
    low, high = LIMITS[data_type]
    expected = f"integers from {low} to {high}, which {data_type.name} holds"
    try:
        array = np.asarray(values)
        if four_bits_of(array.dtype) is not None:
            array = array.astype(np.int8)
    except Exception as problem:  # what a foreign array raises is its own business
        refuse(_NAME, _LABEL, "values", f"{kind_of(values)} ({problem})", expected, kind="type")
    if array.size and array.dtype.kind not in "iu":
        refuse(_NAME, _LABEL, "values", kind_of(values), expected, kind="type")
    if array.size and not low <= array.min() <= array.max() <= high:
        refuse(_NAME, _LABEL, "values", f"numbers from {array.min()} to {array.max()}", expected)
    return array


def _as_shape(shape: Any) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if not all(isinstance(size, (int, np.integer)) and not isinstance(size, bool) and size >= 0 for size in sizes):
        refuse(_NAME, _LABEL, "shape", kind_of(shape), "an integer, or integers, of at least 0", kind="type")
    return tuple(map(int, sizes))
