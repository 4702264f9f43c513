"""What engines see of a tensor: its data type, sizes and signed strides in bytes, whether from a desc or an array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .enums import TensorDataType
from .tensor_desc import DML_BUFFER_TENSOR_DESC

Array = npt.NDArray[Any]

DTYPES: dict[TensorDataType, np.dtype[Any]] = {
    TensorDataType.FLOAT32: np.dtype(np.float32),
    TensorDataType.FLOAT16: np.dtype(np.float16),
    TensorDataType.UINT32: np.dtype(np.uint32),
    TensorDataType.UINT16: np.dtype(np.uint16),
    TensorDataType.UINT8: np.dtype(np.uint8),
    TensorDataType.INT32: np.dtype(np.int32),
    TensorDataType.INT16: np.dtype(np.int16),
    TensorDataType.INT8: np.dtype(np.int8),
    TensorDataType.FLOAT64: np.dtype(np.float64),
    TensorDataType.UINT64: np.dtype(np.uint64),
    TensorDataType.INT64: np.dtype(np.int64),
}
"""NumPy's type for each data type; it has none for the 4-bit ones."""

DATA_TYPES: dict[np.dtype[Any], TensorDataType] = {dtype: data_type for data_type, dtype in DTYPES.items()}


class Layout(NamedTuple):
    """Where the elements of a tensor lie, relative to element (0, ..., 0).

    Elements of 4 bits have no address: a tensor of them, which is packed, is laid out as its bytes are, a flat one of
    UINT8. What the halves are its desc says.
    """

    type: TensorDataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes; negative where an array runs backward."""

    @classmethod
    def of_desc(cls, tensor: DML_BUFFER_TENSOR_DESC) -> Layout:
        # A stride of a size of 1 moves nothing, but might not fit NumPy's.
        item = tensor.DataType.bits // 8
        if tensor.DataType.bits == 4:
            return cls(TensorDataType.UINT8, ((prod(tensor.Sizes) + 1) // 2,), (1,))
        steps = zip(tensor.Sizes, tensor.strides, strict=True)
        return cls(tensor.DataType, tuple(tensor.Sizes), tuple([step * item if n > 1 else 0 for n, step in steps]))

    @classmethod
    def of_array(cls, array: Array) -> Layout:
        """The layout of an array whose dtype has a data type."""
        return cls(DATA_TYPES[array.dtype], array.shape, array.strides)

    @property
    def dtype(self) -> np.dtype[Any]:
        return DTYPES[self.type]

    def bounds(self) -> tuple[int, int]:
        """First byte and end of the elements, relative to element (0, ..., 0)."""
        return bounds(self.sizes, self.strides, self.dtype.itemsize)

    def view(self, memory: Array, offset: int = 0) -> Array:
        """The tensor at `offset` in a flat array of bytes."""
        return np.ndarray(self.sizes, self.dtype, memory, offset, self.strides)

    def is_packed(self) -> bool:
        """Whether the elements follow each other without a gap, the last dimension's first."""
        step = self.dtype.itemsize
        for size, stride in zip(self.sizes[::-1], self.strides[::-1], strict=True):
            if size > 1 and stride != step:
                return False
            step *= size
        return True

    def same_place(self, other: Layout) -> bool:
        """Whether both put the same elements at the same bytes; the stride of a size of 1 does not matter."""
        if self.type != other.type or self.sizes != other.sizes:
            return False
        if self.strides == other.strides:
            return True
        for size, a, b in zip(self.sizes, self.strides, other.strides, strict=True):
            if size > 1 and a != b:
                return False
        return True


def bounds(sizes: Sequence[int], strides: Sequence[int], item: int) -> tuple[int, int]:
    """The first byte of a tensor and the byte after its last, relative to its element (0, ..., 0)."""
    low, high = 0, item
    for size, stride in zip(sizes, strides, strict=True):
        step = (size - 1) * stride
        if step < 0:
            low += step
        else:
            high += step
    return low, high


def overlaps_itself(sizes: Sequence[int], strides: Sequence[int], item: int) -> bool:
    """Whether two elements might share bytes.

    False is a proof: sorted by stride, each stride (of a size above 1) is at least the span of those below it,
    span = item + sum((size - 1) * stride). True may be wrong; a cleverer proof is not looked for.
    """
    span = item
    for stride, size in sorted((abs(stride), size) for size, stride in zip(sizes, strides, strict=True) if size > 1):
        if stride < span:
            return True
        span += (size - 1) * stride
    return False


def fold(sizes: Sequence[int], strides: Iterable[Sequence[int]], keep: int) -> tuple[tuple[int, ...], int, list[int]]:
    """Merges neighbouring dimensions that every one of `strides` walks as one, never `keep` with another.

    Returns the folded sizes, the new index of `keep`, and for each of them the last original dimension in it: the
    one whose stride is the folded dimension's.
    """
    every = list(strides)
    folded: list[int] = []
    last: list[int] = []
    new_keep = 0
    for i, size in enumerate(sizes):
        if i == keep:
            new_keep = len(folded)
        elif size == 1:
            continue
        elif folded and last[-1] != keep and all(s[last[-1]] == s[i] * size for s in every):
            folded[-1] *= size
            last[-1] = i
            continue
        folded.append(size)
        last.append(i)
    return tuple(folded), new_keep, last
