"""An operator applied to chunked operands: what the adapter hands to the methods that make task graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, TypeAlias

import dask.array as da
import numpy as np

from ...core.errors import refuse
from ...core.packed_array import PackedArray, unpacked_dtype
from ...core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ...operators.schema import Independence, OperatorDesc, OperatorSpec

Shape: TypeAlias = tuple[int, ...]


def check_sizes(name: str, where: str, array: da.Array) -> None:
    """Refuses chunks of unknown sizes; rule (K1)."""
    if any(isnan(size) for size in array.shape):
        remedy = "Use .compute_chunk_sizes(), which computes the array"
        refuse(name, "(K1)", where, f"a Dask array of shape {array.shape}", "chunks of known sizes", remedy)


@dataclass(frozen=True, slots=True)
class Operand:
    """What a tensor of a desc is read from, be it chunked or in memory.

    Args:
        array: a Dask array, a NumPy array or a PackedArray, of the tensor's number of dimensions.
        shape: the tensor's; where it is longer, the array broadcasts.
    """

    array: Any
    shape: Shape

    @classmethod
    def of(cls, array: Any) -> Operand:
        return cls(array, tuple(map(int, array.shape)))

    @property
    def dtype(self) -> np.dtype[Any]:
        array = self.array
        dtype: np.dtype[Any] = unpacked_dtype(array.data_type) if isinstance(array, PackedArray) else array.dtype
        return dtype

    def spread(self, shape: Shape) -> Operand:
        """Broadcast to a shape as NumPy does; where that has the same sizes but for 1s, they go with their sizes."""
        if shape == self.shape:
            return self
        longer = [size for size in self.shape if size != 1]
        if longer == [size for size in shape if size != 1]:
            squeezed = self.array[tuple([0 if size == 1 else slice(None) for size in self.shape])]
            return Operand(squeezed[tuple([None if size == 1 else slice(None) for size in shape])], shape)
        return Operand(self.array[(None,) * (len(shape) - len(self.shape))], shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An operator on operands, whose desc has passed the rules.

    Args:
        spec: the operator.
        desc: that of whole tensors.
        operands: by the header's labels; None for those left out.
        device: a Device, or the name of one, which tasks run on.
        gives_truth: whether the results, of UINT8, are truth values.
    """

    spec: OperatorSpec
    desc: OperatorDesc
    operands: Mapping[str, Operand | None]
    device: Any
    gives_truth: bool = False

    @property
    def independent(self) -> Independence:
        return self.spec.independent(self.desc)

    @property
    def outputs(self) -> dict[str, DML_BUFFER_TENSOR_DESC]:
        """Those that there are, by label."""
        return {label: tensor for label, tensor in self.spec.outputs(self.desc) if tensor is not None}

    @property
    def there(self) -> dict[str, Operand]:
        """The operands that are not left out, by label."""
        return {label: operand for label, operand in self.operands.items() if operand is not None}

    def array(self, label: str) -> da.Array:
        """An operand as a Dask array, of size 1 where it broadcasts."""
        operand = self.there[label]
        return operand.array if isinstance(operand.array, da.Array) else da.from_array(operand.array, chunks=-1)

    def replaced(self, operands: Mapping[str, Any], **members: Any) -> Call:
        """The same operator on other arrays, by label, and with other members of its desc."""
        there = {label: Operand.of(array) for label, array in operands.items()}
        return replace(self, desc=replace(self.desc, **members), operands={**self.operands, **there})
