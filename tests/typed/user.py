"""A user's script, as type checkers see it: what comes out of what goes in. It also runs."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import anydml
from anydml import Device, Expression, FeatureLevel, Graph, PackedArray, ReduceFunction, TensorDataType, join, relu


class Tensor:
    """A tensor of another library: PyTorch's has these methods."""

    def __init__(self, array: NDArray[np.float32]) -> None:
        self.array = array

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __array_namespace__(self) -> Any:
        return Library


class Library:
    @staticmethod
    def from_dlpack(array: Any) -> Tensor:
        memory: Any = np.from_dlpack(array)
        return Tensor(memory)


class Series:
    """What has ``__array__`` alone."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.float32]:
        return np.ones((1, 1, 2, 2), np.float32)


x: NDArray[np.float32] = np.ones((1, 1, 2, 2), np.float32)
target: NDArray[np.float32] = np.empty(1, np.float32)
tensor, series = Tensor(x), Series()

assert_type(relu(x), NDArray[Any])
assert_type(relu([1, -2]), NDArray[Any])
assert_type(relu(series), NDArray[Any])
assert_type(relu(np.float32(1)), NDArray[Any])
assert_type(relu(tensor), Tensor)
assert_type(relu([0.5], out=target), NDArray[np.float32])
assert_type(anydml.add(tensor, 1, out=x), NDArray[np.float32])
assert_type(anydml.leaky_relu(tensor, 0.1), Tensor)
assert_type(anydml.cumulative_summation(x, axis=-1, exclusive=True), NDArray[Any])
assert_type(anydml.add(x, 1), NDArray[Any])
packed = PackedArray.pack([[1, -8], [7, 2]], "INT4")
assert_type(anydml.dequantize(packed, [[0.5]], PackedArray.pack([[1]], "INT4")), NDArray[Any])
real: NDArray[np.float32] = np.empty((2, 2), np.float32)
assert_type(anydml.dequantize(packed, 0.5, out=real), NDArray[np.float32])
assert_type(anydml.quantize([[1.0, 2.0], [3.0, 4.0]], 0.5, out=packed), PackedArray)
assert_type(anydml.add(2, x), NDArray[Any])
assert_type(anydml.add(np.float64(2), tensor), Tensor)
assert_type(anydml.add(x, [1, 2], activation="relu"), NDArray[Any])
assert_type(anydml.reduce(x, "sum", axis=-1), NDArray[Any])
assert_type(anydml.reduce(tensor, ReduceFunction.SUM, (2, 3)), Tensor)
assert_type(anydml.softmax(x, axes=[2, 3]), NDArray[Any])
assert_type(anydml.cast(x, "uint8"), NDArray[Any])
assert_type(anydml.cast(x, np.uint8), NDArray[Any])
assert_type(anydml.cast(tensor, TensorDataType.UINT8), Tensor)
assert_type(join([x, x], axis=1), NDArray[Any])
assert_type(join([tensor, tensor]), Tensor)
assert_type(anydml.split(x, 2, -1), list[NDArray[Any]])
assert_type(anydml.split(tensor, 2, 2), list[Tensor])
assert_type(anydml.convolution(x, [[[[1.0]]]], [1.0], strides=2), NDArray[Any])
assert_type(anydml.gemm(x, x, trans_b=True), NDArray[Any])
assert_type(anydml.gemm(x, x, 1.0, trans_b="transpose"), NDArray[Any])
assert_type(anydml.max_pooling(x, 2), NDArray[Any])
assert_type(anydml.max_pooling(x, 2, indices_dtype="uint32"), list[NDArray[Any]])
assert_type(anydml.padding(x, 1, 1, mode="edge"), NDArray[Any])
assert_type(anydml.gather(x, [0], 3), NDArray[Any])
assert_type(anydml.pow(x, 2), NDArray[Any])

device = Device("cpu", FeatureLevel.LEVEL_6_4)
graph = Graph(device)
expression = graph.input(anydml.DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(1, 1, 2, 2)))
assert_type(relu(expression), Expression)
assert_type(relu(expression).graph, Graph)
assert_type(anydml.add(x, expression), Expression)
assert_type(anydml.add(expression, 1), Expression)
assert_type(join([expression, expression]), Expression)
assert_type(anydml.convolution(expression, x), Expression)
assert_type(anydml.fill_value_constant((2,), 1, graph=graph), Expression)
assert_type(anydml.validate(anydml.DML_ACTIVATION_RELU_OPERATOR_DESC()), list[anydml.Violation])
