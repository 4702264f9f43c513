"""An operator of a WebNN graph, and what the lowering of many shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import anydml
from anydml import Graph, PackedArray, TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from anydml.frontends.directmlx import Expression

from .case import array, number
from .layouts import broadcast, packed

_ORDERS = {"nchw": (0, 1, 2, 3), "nhwc": (0, 3, 1, 2)}


class Node:
    """An operator, with the expressions that there are so far.

    A tensor without dimensions is an expression of one, of size 1; the ranks of inputs are those that WebNN has.
    """

    def __init__(
        self, graph: Graph, operator: Mapping[str, Any], values: Mapping[str, Expression], ranks: Mapping[str, int]
    ) -> None:
        self.graph = graph
        self.arguments: dict[str, Any] = {}
        # An argument that is left out in the middle is null; options are named as arguments are.
        for argument in filter(None, operator["arguments"]):
            for name, value in argument.items():
                self.arguments |= value or {} if name == "options" else {name: value}
        self._values = values
        self._ranks = ranks

    def has(self, name: str) -> bool:
        return self.arguments.get(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        return self.arguments[name] if self.has(name) else default

    def number(self, name: str, default: float) -> Any:
        return number(self.get(name, default))

    @property
    def x(self) -> Expression:
        """The first operand, whose name is not the same in all operators."""
        return self._values[next(iter(self.arguments.values()))]

    def operand(self, name: str) -> Expression:
        return self._values[self.arguments[name]]

    def operands(self, *names: str) -> list[Expression]:
        return [self.operand(name) for name in names]

    def optional(self, name: str, default: Expression | None = None) -> Expression | None:
        return self.operand(name) if self.has(name) else default

    def value_of(self, name: str) -> Expression:
        return self._values[name]

    def rank(self, name: str) -> int:
        return self._ranks.get(self.arguments[name], self.operand(name).ndim)

    def filled(self, like: Expression, sizes: Sequence[int], value: float) -> Expression:
        """One number for all elements, of the type of another expression."""
        one = self.constant(np.full((1,) * len(sizes), value, like.dtype))
        return broadcast(one, sizes)

    def constant(self, values: np.ndarray) -> Expression:
        return constant(self.graph, values)

    def apply(self, name: str, **members: Any) -> list[Expression]:
        return self.graph.operator(getattr(anydml, f"DML_{name}_OPERATOR_DESC"), **members)

    def __call__(self, name: str, **members: Any) -> Expression:
        return self.apply(name, **members)[0]


Adapter = Callable[[Node], Any]


def operand(graph: Graph, given: Mapping[str, Any]) -> Expression:
    """An input of the graph, or a constant."""
    data_type = data_type_of(given)
    if given.get("constant"):
        return constant(graph, np.atleast_1d(array(given)), data_type)
    return graph.input(packed(data_type, given["descriptor"]["shape"] or (1,)))


def data_type_of(given: Mapping[str, Any]) -> TensorDataType:
    """Of an operand of a case."""
    return TensorDataType[given["descriptor"]["dataType"].upper()]


def bound(given: Mapping[str, Any]) -> Any:
    """What an input of the graph is bound to."""
    values, data_type = np.atleast_1d(array(given)), data_type_of(given)
    return PackedArray.pack(values, data_type) if data_type.bits == 4 else values


def constant(graph: Graph, values: np.ndarray, data_type: TensorDataType | None = None) -> Expression:
    """Numbers of the array's type, or of another one."""
    tensor = packed(data_type or DATA_TYPES[values.dtype], values.shape)
    values = PackedArray.pack(values, tensor.DataType).data if tensor.DataType.bits == 4 else values
    # A tensor's bytes are a multiple of 4.
    data = np.zeros(tensor.TotalTensorSizeInBytes, np.uint8)
    data[: values.nbytes] = np.frombuffer(values.tobytes(), np.uint8)
    return graph.constant(tensor, data)


def unary(name: str, **members: tuple[str, float]) -> Adapter:
    """Members come from options, or are their defaults."""
    return lambda node: node(
        name, InputTensor=node.x, **{member: node.number(*each) for member, each in members.items()}
    )


def channels_first(x: Expression, layout: str) -> Expression:
    """An image by its strides, as DirectML has it."""
    return x.transpose(_ORDERS[layout])


def as_laid_out(y: Expression, layout: str) -> Expression:
    """DirectML's result in the layout that it was given in."""
    return y.transpose(np.argsort(_ORDERS[layout]).tolist())


def along(x: Expression, axes: Sequence[int], rank: int) -> Expression:
    """A tensor whose dimensions are, in turn, those axes of another of this rank, with 1s for all its others."""
    x = x.transpose(np.argsort(axes).tolist())
    sizes = dict(zip(sorted(axes), x.shape, strict=True))
    strides = dict(zip(sorted(axes), x.tensor.strides, strict=True))
    return x.reinterpret(
        x.tensor.DataType, [sizes.get(i, 1) for i in range(rank)], [strides.get(i, 0) for i in range(rank)]
    )


def per_channel(x: Expression, rank: int, axis: int = 1) -> Expression:
    return along(x, [axis], rank)
