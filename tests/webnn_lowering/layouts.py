"""Tensors of a graph under other sizes and strides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anydml import DML_BUFFER_TENSOR_DESC, TensorDataType
from anydml.core.tensor_desc import packed_strides
from anydml.frontends.directmlx import Expression


def packed(data_type: TensorDataType, sizes: Sequence[int]) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=tuple(sizes))


def broadcast(x: Expression, sizes: Sequence[int]) -> Expression:
    """By strides of 0."""
    own = (1,) * (len(sizes) - len(x.shape)) + x.shape
    steps = zip(own, packed_strides(own), sizes, strict=True)
    strides = [0 if size == 1 < wanted else step for size, step, wanted in steps]
    return x.reinterpret(x.tensor.DataType, tuple(sizes), tuple(strides))


def broadcast_all(*each: Expression) -> list[Expression]:
    sizes = np.broadcast_shapes(*(x.shape for x in each))
    return [broadcast(x, sizes) for x in each]
