"""Graphs built from expressions, in the manner of DirectMLX: an operator applied to expressions gives others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..enums import TensorDataType
from ..errors import Violation, error
from ..inference import complete, is_input
from ..operators import ANY, OPERATORS, spec
from ..schema import OperatorDesc, Tensor
from ..tensor import DML_BUFFER_TENSOR_DESC, DML_SCALE_BIAS
from ..validate import kind_of
from . import (
    DML_CONSTANT_DATA_GRAPH_NODE_DESC,
    DML_GRAPH_DESC,
    DML_INPUT_GRAPH_EDGE_DESC,
    DML_INTERMEDIATE_GRAPH_EDGE_DESC,
    DML_OPERATOR_GRAPH_NODE_DESC,
    DML_OUTPUT_GRAPH_EDGE_DESC,
    Node,
)
from .compiled import CompiledGraph, compile_graph
from .rules import GRAPH, Port

if TYPE_CHECKING:
    from ..device import Device


class Expression:
    """A tensor of a graph that is being built: what an operator will give, an input or a constant.

    ``+ - * / %`` with another expression are element-wise operators; with a number they are an identity that scales.

    Attributes:
        graph: the graph.
        tensor: its desc.
    """

    # NumPy leaves an operator with a number of its own to this class.
    __array_ufunc__ = None

    def __init__(self, graph: Graph, port: Port, tensor: Tensor) -> None:
        self.graph = graph
        self.port = port
        self.tensor = tensor

    def __repr__(self) -> str:
        return f"<Expression of {self.tensor.DataType.name} {tuple(self.tensor.Sizes)}>"

    def reinterpret(
        self, data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None = None
    ) -> Expression:
        """The same bytes as another tensor."""
        tensor = DML_BUFFER_TENSOR_DESC(
            DataType=data_type,
            Sizes=sizes,
            Strides=strides,
            Flags=self.tensor.Flags,
            TotalTensorSizeInBytes=self.tensor.TotalTensorSizeInBytes,
            GuaranteedBaseOffsetAlignment=self.tensor.GuaranteedBaseOffsetAlignment,
        )
        return Expression(self.graph, self.port, tensor)

    def __add__(self, other: Expression | float) -> Expression:
        return self._binary("ADD", other) if isinstance(other, Expression) else self._scaled(1, other)

    def __sub__(self, other: Expression | float) -> Expression:
        return self._binary("SUBTRACT", other) if isinstance(other, Expression) else self._scaled(1, -other)

    def __mul__(self, other: Expression | float) -> Expression:
        return self._binary("MULTIPLY", other) if isinstance(other, Expression) else self._scaled(other, 0)

    def __truediv__(self, other: Expression | float) -> Expression:
        if isinstance(other, Expression):
            return self._binary("DIVIDE", other)
        return self._scaled(1 / other, 0)

    def __mod__(self, other: Expression) -> Expression:
        return self._binary("MODULUS_TRUNCATE", other) if isinstance(other, Expression) else NotImplemented

    def __radd__(self, other: float) -> Expression:
        return self._scaled(1, other)

    def __rsub__(self, other: float) -> Expression:
        return self._scaled(-1, other)

    def __rmul__(self, other: float) -> Expression:
        return self._scaled(other, 0)

    def __rtruediv__(self, other: float) -> Expression:
        return self._scaled(other, 0, self._unary("RECIP"))

    def __neg__(self) -> Expression:
        return self._scaled(-1, 0)

    def _binary(self, name: str, other: Expression) -> Expression:
        return self.graph.operator(spec(f"ELEMENT_WISE_{name}").desc, ATensor=self, BTensor=other)[0]

    def _unary(self, name: str, **members: Any) -> Expression:
        return self.graph.operator(spec(f"ELEMENT_WISE_{name}").desc, InputTensor=self, **members)[0]

    def _scaled(self, scale: float, bias: float, of: Expression | None = None) -> Expression:
        return (of or self)._unary("IDENTITY", ScaleBias=DML_SCALE_BIAS(Scale=scale, Bias=bias))


class Graph:
    """Builds a graph.

    Args:
        device: where it will run.

    >>> import numpy as np
    >>> from anydml import *
    >>> graph = Graph(Device("cpu"))
    >>> x = graph.input(DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(3,)))
    >>> (sums,) = graph.operator(DML_CUMULATIVE_SUMMATION_OPERATOR_DESC, InputTensor=x, Axis=0)
    >>> y = np.empty(3, np.float32)
    >>> graph.compile([sums * 10 + x]).dispatch([np.array([1, 2, 3], np.float32)], [y])
    >>> y
    array([11., 32., 63.], dtype=float32)
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._inputs: dict[int, Tensor] = {}
        self._nodes: list[Node] = []
        self._sources: list[list[Port | None]] = []

    def input(self, tensor: Tensor, index: int | None = None) -> Expression:
        """An input of the graph.

        Args:
            tensor: its desc.
            index: its number in a dispatch; the next one where None.
        """
        if not isinstance(tensor, DML_BUFFER_TENSOR_DESC):
            raise _error("input", "tensor", kind_of(tensor), "a DML_BUFFER_TENSOR_DESC", "(G9)")
        number = len(self._inputs) if index is None else index
        if number in self._inputs or not 0 <= number < 2**20:
            raise _error("input", "index", str(number), "an input that is not there yet", "(G9)")
        self._inputs[number] = tensor
        return Expression(self, Port(GRAPH, number), tensor)

    def constant(self, tensor: Tensor, data: Any, name: str = "") -> Expression:
        """What is known when the graph is compiled: the bytes of a tensor."""
        self._nodes.append(DML_CONSTANT_DATA_GRAPH_NODE_DESC(Data=data, Name=name))
        self._sources.append([])
        return Expression(self, Port(len(self._nodes) - 1, 0), tensor)

    def operator(self, kind: type[OperatorDesc], name: str = "", **members: Any) -> list[Expression]:
        """Applies an operator.

        Args:
            kind: the class of its desc.
            name: what messages call it.
            members: as its desc has them, but an expression for each input. An output is inferred where it is not
                given; a TensorDataType says its type, where that is not the first input's, or that an optional output
                is wanted; a DML_BUFFER_TENSOR_DESC says all of it.

        Returns:
            The outputs that there are, in header order.

        Raises:
            DMLError: what is wrong with the desc; (G9).
        """
        name_of_kind = getattr(kind, "__name__", "").removeprefix("DML_").removesuffix("_OPERATOR_DESC")
        if name_of_kind not in OPERATORS or spec(name_of_kind).desc is not kind:
            raise _error(
                "operator", "kind", kind_of(kind), f"the class of the desc, DML_..._OPERATOR_DESC, of {ANY}", "(G9)"
            )
        found = spec(name_of_kind)
        sources: list[Port | None] = []
        for member in found.tensors:
            given = members.get(member)
            if not is_input(found, member):
                continue
            if given is None:
                sources.append(None)
                continue
            many = given if isinstance(given, (list, tuple)) else [given]
            labels = [f"{member}[{i}]" for i in range(len(many))] if many is given else [member]
            each = [self._own(found.name, label, one) for label, one in zip(labels, many, strict=True)]
            members[member] = [one.tensor for one in each] if many is given else each[0].tensor
            sources += [one.port for one in each]
        desc = complete(found, members, self.device.feature_level)
        node = DML_OPERATOR_GRAPH_NODE_DESC(Operator=self.device.create_operator(desc), Name=name)
        self._nodes.append(node)
        self._sources.append(sources)
        outputs = [(Port(len(self._nodes) - 1, i), tensor) for i, (_, tensor) in enumerate(found.outputs(desc))]
        return [Expression(self, port, tensor) for port, tensor in outputs if tensor is not None]

    def compile(self, outputs: Sequence[Expression]) -> CompiledGraph:
        """Compiles what the outputs need.

        Args:
            outputs: the graph's, in the order of a dispatch.

        Raises:
            DMLError: (G1) to (G9).
        """
        if not isinstance(outputs, (list, tuple)):
            raise _error("compile", "outputs", kind_of(outputs), "a list of Expression", "(G9)")
        for i, each in enumerate(outputs):
            self._own("compile", f"outputs[{i}]", each)
        # What is an input, or its bytes, is copied: an input is not wired to an output.
        identity = spec("ELEMENT_WISE_IDENTITY").desc
        ends = [self.operator(identity, InputTensor=e)[0] if e.port.node == GRAPH else e for e in outputs]
        numbers = {node: i for i, node in enumerate(self._needed(end.port.node for end in ends))}
        into, between = [], []
        for node, i in numbers.items():
            for j, port in enumerate(self._sources[node]):
                if port is None:
                    continue
                if port.node == GRAPH:
                    edge = DML_INPUT_GRAPH_EDGE_DESC(GraphInputIndex=port.number, ToNodeIndex=i, ToNodeInputIndex=j)
                    into.append(edge)
                else:
                    between.append(
                        DML_INTERMEDIATE_GRAPH_EDGE_DESC(
                            FromNodeIndex=numbers[port.node],
                            FromNodeOutputIndex=port.number,
                            ToNodeIndex=i,
                            ToNodeInputIndex=j,
                        )
                    )
        desc = DML_GRAPH_DESC(
            InputCount=max(self._inputs, default=-1) + 1,
            OutputCount=len(ends),
            Nodes=[self._nodes[node] for node in numbers],
            InputEdges=into,
            IntermediateEdges=between,
            OutputEdges=[
                DML_OUTPUT_GRAPH_EDGE_DESC(
                    FromNodeIndex=numbers[end.port.node], FromNodeOutputIndex=end.port.number, GraphOutputIndex=i
                )
                for i, end in enumerate(ends)
            ],
        )
        return compile_graph(self.device, desc, self._inputs, {i: each.tensor for i, each in enumerate(outputs)})

    def _needed(self, ends: Iterable[int]) -> list[int]:
        """The nodes that outputs depend on, in the order in which they were made."""
        needed: set[int] = set()
        waiting = list(ends)
        while waiting:
            node = waiting.pop()
            if node not in needed:
                needed.add(node)
                waiting += [port.node for port in self._sources[node] if port is not None and port.node != GRAPH]
        return sorted(needed)

    def _own(self, method: str, where: str, given: object) -> Expression:
        if not isinstance(given, Expression):
            raise _error(method, where, kind_of(given), "an Expression", "(G9)")
        if given.graph is not self:
            raise _error(method, where, "an expression of another graph", "one of this graph", "(G9)")
        return given


def _error(operator: str, where: str, found: str, expected: str, rule: str) -> Exception:
    return error([Violation(operator=operator, where=where, found=found, expected=expected, rule=rule, kind="type")])
