"""An ONNX node, and what the lowering of many operators shares: shapes, strides, windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import anydml
from anydml import DML_BUFFER_TENSOR_DESC, Graph, PackedArray, TensorDataType
from anydml.core.packed_array import four_bits_of
from anydml.core.strided_layout import DATA_TYPES
from anydml.core.tensor_desc import packed_strides
from anydml.frontends.directmlx import Expression


class NotSaid(Exception):
    """What no desc says, or none that is right."""


class Node:
    """An ONNX node, with what its inputs hold: where a desc has a member, an input has to be known."""

    def __init__(self, graph: Graph, op: str, outputs: Sequence[str], attributes: dict[str, Any], values: Any) -> None:
        self.graph = graph
        self.op = op
        self.outputs = outputs
        self.attributes = attributes
        self.values = values
        self.read: list[np.ndarray] = []
        """What the graph's inputs are bound to."""

    def __len__(self) -> int:
        return len(self.values)

    def has(self, i: int) -> bool:
        return i < len(self) and self.values[i] is not None

    def value(self, i: int, default: Any = None) -> Any:
        return self.values[i] if self.has(i) else default

    def get(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def input(self, i: int) -> Expression:
        x = self.values[i]
        data_type = data_type_of(x)
        if data_type is None:
            raise NotSaid(f"elements of {getattr(x, 'dtype', type(x).__name__)}")
        tensor = packed(data_type, x.shape or (1,))
        # Bytes, which may be reinterpreted.
        given = PackedArray.pack(x, data_type).data if data_type.bits == 4 else x
        bytes_ = np.zeros(tensor.TotalTensorSizeInBytes, np.uint8)
        bytes_[: given.nbytes] = np.ascontiguousarray(given).reshape(-1).view(np.uint8)
        self.read.append(bytes_)
        return self.graph.input(tensor)

    @property
    def all(self) -> list[Expression]:
        return [self.input(i) for i in range(len(self))]

    def constant(self, array: np.ndarray) -> Expression:
        return self.graph.constant(packed(DATA_TYPES[array.dtype], array.shape), array)

    def apply(self, name: str, **members: Any) -> list[Expression]:
        return self.graph.operator(getattr(anydml, f"DML_{name}_OPERATOR_DESC"), **members)

    def __call__(self, name: str, **members: Any) -> Expression:
        return self.apply(name, **members)[0]


class Counted(NamedTuple):
    """An output whose size along an axis another one says."""

    output: Expression
    count: Expression
    axis: int


Adapter = Callable[[Node], Any]


def data_type_of(x: Any) -> TensorDataType | None:
    """Of an array, ml_dtypes' types of 4 bits among those that there are; None of all others."""
    dtype = getattr(x, "dtype", None)
    return four_bits_of(dtype) or DATA_TYPES.get(dtype)


def packed(data_type: TensorDataType, sizes: Sequence[int]) -> DML_BUFFER_TENSOR_DESC:
    return DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=tuple(sizes))


def sizes_of(x: Expression) -> tuple[int, ...]:
    return tuple(x.tensor.Sizes)


def reshaped(x: Expression, sizes: Sequence[int]) -> Expression:
    return x.reinterpret(x.tensor.DataType, tuple(sizes))


def strided(x: Expression, sizes: Sequence[int], strides: Sequence[int]) -> Expression:
    return x.reinterpret(x.tensor.DataType, tuple(sizes), tuple(strides))


def permuted(x: Expression, order: Sequence[int]) -> Expression:
    sizes, strides = sizes_of(x), x.tensor.strides
    return strided(x, [sizes[i] for i in order], [strides[i] for i in order])


def broadcast(x: Expression, sizes: Sequence[int]) -> Expression:
    """By strides of 0."""
    own = (1,) * (len(sizes) - len(sizes_of(x))) + sizes_of(x)
    steps = zip(own, packed_strides(own), sizes, strict=True)
    return strided(x, sizes, [0 if size == 1 < wanted else step for size, step, wanted in steps])


def broadcast_all(*each: Expression) -> list[Expression]:
    sizes = np.broadcast_shapes(*map(sizes_of, each))
    return [broadcast(x, sizes) for x in each]


def per_channel(x: Expression, rank: int) -> Expression:
    return reshaped(x, (1, *sizes_of(x), *(1,) * (rank - 2)))


def unary(name: str, **members: tuple[str, float]) -> Adapter:
    """Members come from attributes, or are their defaults."""
    return lambda node: node(
        name, InputTensor=node.input(0), **{member: node.get(*each) for member, each in members.items()}
    )


def windowed(node: Node, n: int) -> dict[str, list[int]]:
    """How a window of n dimensions moves, and on which padding."""
    start, end = np.reshape(node.get("pads", [0] * 2 * n), (2, n)).tolist()
    strides, dilations = (list(node.get(name, [1] * n)) for name in ("strides", "dilations"))
    return {"Strides": strides, "Dilations": dilations, "StartPadding": start, "EndPadding": end}


def fitted(node: Node, sizes: Sequence[int], taps: Sequence[int]) -> dict[str, list[int]]:
    """With auto_pad the padding for one output per stride."""
    members = windowed(node, len(taps))
    if (auto := node.get("auto_pad", b"NOTSET")).startswith(b"SAME"):
        each = zip(sizes, taps, members["Strides"], members["Dilations"], strict=True)
        totals = [
            max((-(-size // stride) - 1) * stride + (tap - 1) * dilation + 1 - size, 0)
            for size, tap, stride, dilation in each
        ]
        members["StartPadding"], members["EndPadding"] = halves(totals, auto)
    return members


def halves(totals: Sequence[int], auto: bytes) -> tuple[list[int], list[int]]:
    less, more = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return (less, more) if auto == b"SAME_UPPER" else (more, less)
