"""Diagonals and triangles."""

from __future__ import annotations

import numpy as np

from anydml import TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, NotSaid, packed

_LEAST, _MOST = -(2**31), 2**31 - 1


def eye_like(node: Node) -> Expression:
    from onnx.helper import tensor_dtype_to_np_dtype

    x = node.values[0]
    dtype = tensor_dtype_to_np_dtype(node.get("dtype")) if node.get("dtype") else x.dtype
    if np.dtype(dtype) not in DATA_TYPES:
        raise NotSaid(f"elements of {dtype}")
    output = packed(DATA_TYPES[np.dtype(dtype)], x.shape)
    return node("DIAGONAL_MATRIX", OutputTensor=output, Offset=node.get("k", 0), Value=1)


def trilu(node: Node) -> Expression:
    """A band of zeros, which reaches to the corner."""
    x, k = node.input(0), int(node.value(1, 0))
    begin, end = (_LEAST, k) if node.get("upper", 1) else (k + 1, _MOST)
    data_type: TensorDataType = x.tensor.DataType
    ends = {"DiagonalFillBegin": begin, "DiagonalFillEnd": end}
    return node("DIAGONAL_MATRIX1", InputTensor=x, ValueDataType=data_type, Value=0, **ends)


ADAPTERS: dict[str, Adapter] = {"EyeLike": eye_like, "Trilu": trilu}
