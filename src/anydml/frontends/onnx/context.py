"""What a lowering sees of a node: its attributes, its inputs as expressions or as values that are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...core.packed_array import four_bits_of
from ...core.strided_layout import DATA_TYPES
from ...functions import load
from ..directmlx import Expression, ExpressionAdapter, Graph
from .node import Node
from .values import Counted, Held, Shape, Traced, Value, shape_of


class NotLowered(Exception):
    """What DirectML's operators don't do, or what no lowering here says; its text is the reason."""


class Unknown(Exception):
    """A value has to be known before a node can be lowered.

    Attributes:
        name: what the graph of ONNX calls it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


class Demand(NamedTuple):
    """A truth value that must hold for what a run brings, or else the run is refused; rule (N4)."""

    truth: Expression
    found: str
    expected: str
    label: str


def constant_of(graph: Graph, array: Any) -> Expression:
    """An array that nobody changes as a constant of a graph; one of 0 dimensions as (1,)."""
    # The name of an operator that takes such elements.
    name = "ELEMENT_WISE_LOGICAL_NOT" if array.dtype == np.bool_ else "ELEMENT_WISE_IDENTITY"
    if four_bits_of(array.dtype) is not None:
        name = "DEQUANTIZE"
    side = ExpressionAdapter(name, graph, None, None)
    return side.take("", array.reshape(array.shape or (1,)), is_own=True)


class NodeContext:
    """A node that is being lowered.

    A lowering is a function of this that returns, for each output, or for the only one:

    - an Expression, of the output's shape;
    - :meth:`shaped`, where the shape is of 0 dimensions, which expressions don't have: they have one of size 1;
    - an array, which is known on the host from then on;
    - a :class:`Counted`, whose size depends on data;
    - a list of these in a list, for a sequence; None for an optional without a value.

    Attributes:
        graph: what expressions belong to.
        node: the node.
    """

    def __init__(self, graph: Graph, node: Node, values: dict[str, Value], inputs: Callable[[str], Expression]) -> None:
        self.graph = graph
        self.node = node
        self.demands: list[Demand] = []
        self._values = values
        self._inputs = inputs

    @property
    def op(self) -> str:
        return self.node.op

    @property
    def opset(self) -> int:
        """The version of the operator's domain."""
        return self.node.opset

    def __len__(self) -> int:
        """The number of inputs, those that are left out between others among them."""
        return len(self.node.inputs)

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, or its default."""
        return self.node.attributes.get(name, default)

    def required(self, name: str) -> Any:
        """An attribute that has no default."""
        if name not in self.node.attributes:
            raise NotLowered(f"its attribute {name!r} is missing")
        return self.node.attributes[name]

    def has(self, i: int) -> bool:
        """Whether an input is there."""
        return i < len(self) and bool(self.node.inputs[i]) and self._values.get(self.node.inputs[i]) is not None

    def value(self, i: int) -> Value:
        """An input as it is: a Held, a Traced, an array, a list of them."""
        if i >= len(self) or not self.node.inputs[i]:
            raise NotLowered(f"its input {i} is missing")
        return self._values[self.node.inputs[i]]

    def wants(self, i: int) -> bool:
        """Whether an output is asked for."""
        return i < len(self.node.outputs) and bool(self.node.outputs[i])

    def shape(self, i: int) -> Shape:
        """An input's shape, () among them."""
        return shape_of(self.value(i))

    def rank(self, i: int) -> int:
        return len(self.shape(i))

    def dtype(self, i: int) -> np.dtype[Any]:
        """An input's data type: NumPy's, bool among them."""
        found: np.dtype[Any] = self.value(i).dtype
        return found

    def is_known(self, i: int) -> bool:
        """Whether an input is an array on the host."""
        return self.has(i) and isinstance(self.value(i), np.ndarray)

    def known(self, i: int, default: Any = None) -> Any:
        """An input as an array on the host, computed first where it has to be; `default` where it is left out."""
        if not self.has(i):
            return default
        value = self.value(i)
        if isinstance(value, (Held, Traced)):
            raise Unknown(self.node.inputs[i])
        return value

    def integers(self, i: int, default: Any = None) -> Any:
        """A known input as a list of Python's integers."""
        value = self.known(i)
        return default if value is None else [int(each) for each in np.ravel(value)]

    def number(self, i: int, default: Any = None) -> Any:
        """A known input of one element as Python's number."""
        value = self.known(i)
        if value is not None and np.size(value) != 1:
            raise NotLowered(f"{np.size(value)} elements where one is wanted")
        return default if value is None else np.ravel(value)[0].item()

    def x(self, i: int = 0) -> Expression:
        """An input as an expression: of its shape, but (1,) for an array of 0 dimensions."""
        value = self.value(i)
        if isinstance(value, Traced):
            return value.expression
        if isinstance(value, list):
            raise NotLowered("a sequence where a tensor is wanted")
        if 0 in shape_of(value):
            raise NotLowered(f"an empty tensor, of shape {shape_of(value)}")
        if value.dtype.kind in "OUST":
            raise NotLowered("strings")
        return self._inputs(self.node.inputs[i])

    def xs(self) -> list[Expression]:
        """All inputs as expressions."""
        return [self.x(i) for i in range(len(self))]

    def constant(self, array: Any) -> Expression:
        """An array as a constant of the graph; one of 0 dimensions as (1,)."""
        return constant_of(self.graph, np.asarray(array))

    def call(self, function: str, *operands: Any, **options: Any) -> Any:
        """One of anydml's functions, such as ``call("gemm", a, b, trans_a=True)``."""
        return load(function)(*operands, **options)

    def operator(self, name: str, **members: Any) -> list[Expression]:
        """An operator by the header's name and members, where no function says it."""
        from ...operators import spec

        return self.graph.operator(spec(name).desc, **members)

    def shaped(self, expression: Expression, shape: Shape) -> Traced:
        """A result with its shape, whose elements are the expression's in row-major order."""
        if expression.shape != (shape or (1,)):
            expression = expression.reshape(shape or (1,))
        return Traced(expression, tuple(shape))

    def narrowed(self, x: Expression, dtype: Any) -> Expression:
        """Integers in a smaller type that DirectML has an operator for; a run is refused where one does not fit."""
        wanted = np.dtype(dtype)
        if x.dtype == wanted:
            return x
        small = x.astype(wanted)
        back = small.astype(x.dtype) if DATA_TYPES[x.dtype] is not DATA_TYPES[wanted] else small
        self.demand(back == x, f"an integer beyond {wanted}", f"integers of {wanted}, as DirectML's operator takes")
        return small

    def demand(self, truth: Expression, found: str, expected: str) -> None:
        """Refuses a run for which not all of `truth`, truth values, hold."""
        all_of = load("reduce")(truth.astype(np.uint32), "min")
        self.demands.append(Demand(all_of, found, expected, self.node.label))

    def expanded(self, **changes: Any) -> NodeContext:
        """The same with other members of its node: what one operator of ONNX says in words of another."""
        return NodeContext(self.graph, replace(self.node, **changes), self._values, self._inputs)


Lowering: TypeAlias = Callable[[NodeContext], Any]
__all__ = ["Counted", "Demand", "Lowering", "NodeContext", "NotLowered", "Unknown", "constant_of"]
