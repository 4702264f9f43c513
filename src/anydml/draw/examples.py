"""The small examples that stand for operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..layout import DATA_TYPES, Array
from ..operators.cumulative import DML_CUMULATIVE_PRODUCT_OPERATOR_DESC, DML_CUMULATIVE_SUMMATION_OPERATOR_DESC
from ..operators.join import DML_JOIN_OPERATOR_DESC
from ..operators.pooling import DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC
from ..schema import OperatorDesc
from ..tensor import DML_BUFFER_TENSOR_DESC


def _packed(array: Array) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[array.dtype], Sizes=array.shape)


def _one(value: float, dtype: type[np.generic]) -> Array:
    return np.array(value, dtype).reshape(1, 1, 1, 1)


_TABLE = np.array([[[[2, 1, 3, 5], [3, 8, 7, 3], [9, 6, 2, 4]]]], np.float32)
_LEFT = np.arange(1, 7, dtype=np.float32).reshape(1, 1, 2, 3)
_RIGHT = np.arange(7, 15, dtype=np.float32).reshape(1, 1, 2, 4)
_IMAGE = np.array([[[[12, 15, 11, 18], [16, 17, 20, 13], [14, 10, 22, 19], [21, 12, 16, 24]]]], np.uint8)

EXAMPLES: Mapping[str, tuple[OperatorDesc, Sequence[Array | None]]] = {
    "JOIN": (
        DML_JOIN_OPERATOR_DESC(
            InputTensors=[_packed(_LEFT), _packed(_RIGHT)],
            OutputTensor=_packed(np.empty((1, 1, 2, 7), np.float32)),
            Axis=3,
        ),
        [_LEFT, _RIGHT],
    ),
    "CUMULATIVE_SUMMATION": (
        DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=_packed(_TABLE), OutputTensor=_packed(_TABLE), Axis=3),
        [_TABLE],
    ),
    "CUMULATIVE_PRODUCT": (
        DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(InputTensor=_packed(_TABLE), OutputTensor=_packed(_TABLE), Axis=3),
        [_TABLE],
    ),
    "QUANTIZED_LINEAR_AVERAGE_POOLING": (
        DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC(
            InputTensor=_packed(_IMAGE),
            InputScaleTensor=_packed(_one(0.5, np.float32)),
            InputZeroPointTensor=_packed(_one(10, np.uint8)),
            OutputScaleTensor=_packed(_one(0.25, np.float32)),
            OutputZeroPointTensor=_packed(_one(3, np.uint8)),
            OutputTensor=_packed(np.empty((1, 1, 2, 2), np.uint8)),
            Strides=(2, 2),
            WindowSize=(3, 3),
            StartPadding=(1, 1),
            EndPadding=(0, 0),
            Dilations=(1, 1),
        ),
        [_IMAGE, _one(0.5, np.float32), _one(10, np.uint8), _one(0.25, np.float32), _one(3, np.uint8)],
    ),
}
"""For each operator that has a picture by name: its desc and its inputs."""
