"""Graphs built from expressions, in the manner of DirectMLX: an operator applied to expressions gives others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import copysign, inf
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.enums import ExecutionFlags, TensorDataType
from ..core.errors import DMLError, error, kind_of, listing, refuse, violation
from ..core.strided_layout import DATA_TYPES, DTYPES
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC, DML_SCALE_BIAS, SINGLE_END, plain
from ..functions import element_wise as _element_wise
from ..functions._call import as_device, data_type_of
from ..functions._messages import in_function_terms
from ..functions._operand_adapter import OperandInfo, Shape, argument_label, broadcast_strides
from ..graph.compile import CompiledGraph, compile_graph
from ..graph.desc import (
    DML_CONSTANT_DATA_GRAPH_NODE_DESC,
    DML_GRAPH_DESC,
    DML_INPUT_GRAPH_EDGE_DESC,
    DML_INTERMEDIATE_GRAPH_EDGE_DESC,
    DML_OPERATOR_GRAPH_NODE_DESC,
    DML_OUTPUT_GRAPH_EDGE_DESC,
    Node,
)
from ..graph.verify import GRAPH, Port
from ..operators import ANY_OPERATOR, OPERATORS, spec
from ..operators.schema import OperatorDesc, OperatorSpec, Tensor
from ..operators.shape_inference import complete, is_input

if TYPE_CHECKING:
    from ..device import Device


_functions: Any = _element_wise
"""What operators of expressions apply; most are made of rows."""


class Expression:
    """A tensor of a graph that is being built: what an operator will give, an input or a constant.

    ``+ - * / % **`` and ``abs`` are element-wise operators, as functions apply them: operands broadcast, and an array
    is a constant of the graph. With a number ``+ - * /`` are an identity that scales, but for integers with an integer.
    ``%`` is MODULUS_TRUNCATE, whose remainder has the sign of the left operand, as C's has.

    Attributes:
        graph: the graph.
        tensor: its desc.
    """

    # NumPy leaves an operator with a number or an array of its own to this class.
    __array_ufunc__ = None

    def __anydml_adapter__(self, name: str, out: Any, device: Any) -> ExpressionAdapter:
        return ExpressionAdapter(name, self.graph, out, device)

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
        if not isinstance(data_type, TensorDataType):
            expected = "a TensorDataType, such as TensorDataType.FLOAT32"
            raise _error("reinterpret", "data_type", kind_of(data_type), expected, "(G9)")
        tensor = DML_BUFFER_TENSOR_DESC(
            DataType=data_type,
            Sizes=sizes,
            Strides=strides,
            Flags=self.tensor.Flags,
            TotalTensorSizeInBytes=self.tensor.TotalTensorSizeInBytes,
            GuaranteedBaseOffsetAlignment=self.tensor.GuaranteedBaseOffsetAlignment,
        )
        return Expression(self.graph, self.port, tensor)

    def __add__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return _paired(_functions.add, self, other) if number is None else self._scaled(1, number)

    def __sub__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return _paired(_functions.subtract, self, other) if number is None else self._scaled(1, -number)

    def __mul__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return _paired(_functions.multiply, self, other) if number is None else self._scaled(number, 0)

    def __truediv__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        inverse = None if number is None else self._scale_of(1 / number if number else copysign(inf, number))
        return _paired(_functions.divide, self, other) if inverse is None else self._scaled(inverse, 0)

    def __mod__(self, other: Any) -> Expression:
        return _paired(_functions.modulus_truncate, self, other)

    def __pow__(self, other: Any) -> Expression:
        return _paired(_functions.pow, self, other)

    def __radd__(self, other: Any) -> Expression:
        return self.__add__(other)

    def __rsub__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return _paired(_functions.subtract, other, self) if number is None else self._scaled(-1, number)

    def __rmul__(self, other: Any) -> Expression:
        return self.__mul__(other)

    def __rtruediv__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return (
            _paired(_functions.divide, other, self)
            if number is None
            else self._unary(_functions.recip)._scaled(number, 0)
        )

    def __rmod__(self, other: Any) -> Expression:
        return _paired(_functions.modulus_truncate, other, self)

    def __rpow__(self, other: Any) -> Expression:
        return _paired(_functions.pow, other, self)

    def __neg__(self) -> Expression:
        return 0 - self

    def __abs__(self) -> Expression:
        return self._unary(_functions.abs)

    def _scale_of(self, other: Any) -> float | None:
        """A number that an identity may scale by or add: one of single precision, but no integer beside integers, which
        scaling would not take exactly, nor let wrap."""
        number = _plain(other)
        if type(number) not in (int, float) or SINGLE_END <= abs(number) < inf:
            return None
        is_exact = type(number) is int and self.tensor.DataType.name.startswith(("INT", "UINT"))
        return None if is_exact else number

    def _scaled(self, scale: float, bias: float) -> Expression:
        return self._unary(_functions.identity, scale_bias=DML_SCALE_BIAS(Scale=scale, Bias=bias))

    def _unary(self, function: Callable[..., Any], **options: Any) -> Expression:
        result: Expression = function(self, **options)
        return result


def _paired(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Expression:
    result: Expression = function(_plain(a), _plain(b))
    return result


def _plain(other: Any) -> Any:
    """NumPy's numbers as Python's, which have no type of their own beside an expression."""
    return other.item() if isinstance(other, np.generic) else other


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

    def __anydml_graph_adapter__(self, name: str, out: Any, device: Any) -> ExpressionAdapter:
        return ExpressionAdapter(name, self, out, device)

    def input(self, tensor: Tensor, index: int | None = None) -> Expression:
        """An input of the graph.

        Args:
            tensor: its desc.
            index: its number in a dispatch; the next one where None.
        """
        if not isinstance(tensor, DML_BUFFER_TENSOR_DESC):
            raise _error("input", "tensor", kind_of(tensor), "a DML_BUFFER_TENSOR_DESC", "(G9)")
        number = len(self._inputs) if index is None else plain(index)
        if type(number) is not int or number in self._inputs or not 0 <= number < 2**20:
            raise _error("input", "index", kind_of(index), "an integer, of an input that is not there yet", "(G9)")
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
                "operator",
                "kind",
                kind_of(kind),
                f"the class of the desc, DML_..._OPERATOR_DESC, of {ANY_OPERATOR}",
                "(G9)",
            )
        found = spec(name_of_kind)
        sources: list[Port | None] = []
        for member in found.tensors:
            given = members.get(member)
            if not is_input(found, member):
                self._check_output(found, member, given)
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

    def compile(self, outputs: Sequence[Expression], flags: ExecutionFlags = ExecutionFlags.NONE) -> CompiledGraph:
        """Compiles what the outputs need.

        Args:
            outputs: the graph's, in the order of a dispatch.
            flags: as for :meth:`anydml.Device.compile_operator`.

        Raises:
            DMLError: (G1) to (G9), (D4).
        """
        if not isinstance(outputs, (list, tuple)) or not outputs:
            raise _error("compile", "outputs", kind_of(outputs), "a list of at least one Expression", "(G9)")
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
        written = {i: each.tensor for i, each in enumerate(outputs)}
        return compile_graph(self.device, desc, flags, self._inputs, written)

    def _check_output(self, found: OperatorSpec, member: str, given: object) -> None:
        is_one = "array" not in found.tensors[member].kind
        if is_one and not isinstance(given, (DML_BUFFER_TENSOR_DESC, TensorDataType, NoneType)):
            expected = "a DML_BUFFER_TENSOR_DESC, or a TensorDataType, such as TensorDataType.FLOAT32"
            raise _error(found.name, member, kind_of(given), expected, "(G9)")

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


class ExpressionAdapter:
    """Operands of a graph, arrays among them its constants."""

    def __init__(self, name: str, graph: Graph, out: Any, device: Any) -> None:
        self.name = name
        self.graph = graph
        remedy = "Leave it out: a graph is dispatched on its own device, with arrays to write to"
        if out is not None:
            (found,) = out if isinstance(out, list) and len(out) == 1 else [out]
            refuse(name, "(G9)", "out", kind_of(found), "None beside expressions", remedy)
        if device is not None and as_device(device) is not graph.device:
            refuse(name, "(G9)", "device", kind_of(device), f"{graph.device}, that of the graph", remedy)
        self.memory = graph.device.memory

    def take(self, where: str, value: Any) -> Expression:
        if isinstance(value, Expression):
            return value
        found = self.memory.import_array(self.name, where, value)
        array = found if isinstance(found, np.ndarray) else found.numpy()
        tensor = DML_BUFFER_TENSOR_DESC(DataType=data_type_of(self.name, where, array), Sizes=array.shape)
        data = np.zeros(tensor.TotalTensorSizeInBytes or 0, np.uint8)
        data[: array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
        return self.graph.constant(tensor, data, where)

    def shape(self, operand: Any) -> Shape:
        return tuple(operand.tensor.Sizes)

    def dtype(self, operand: Any) -> np.dtype[Any]:
        data_type = operand.tensor.DataType
        if data_type not in DTYPES:
            refuse(self.name, "(S3)", "", f"an expression of {data_type.name}", listing(DATA_TYPES), kind="type")
        return DTYPES[data_type]

    def look(self, where: str, value: Any) -> OperandInfo:
        if isinstance(value, Expression):
            return OperandInfo(self.shape(value), self.dtype(value))
        array = self.memory.import_array(self.name, where, value)
        return OperandInfo(tuple(array.shape), array.dtype)

    def spread(self, operand: Any, shape: Shape) -> Any:
        tensor = operand.tensor
        if tuple(tensor.Sizes) == shape:
            return operand
        return operand.reinterpret(
            tensor.DataType, shape, broadcast_strides(self.shape(operand), tensor.strides, shape)
        )

    def wanted_sizes(self, rank: int) -> Shape:
        return ()

    def apply(self, operands: Mapping[str, Any], options: Mapping[str, Any], sizes: Shape, like: Any) -> list[Any]:
        found, device = spec(self.name), self.graph.device
        inputs: dict[str, Any] = {}
        for label, operand in operands.items():
            member, bracket, _ = label.partition("[")
            if bracket:
                inputs.setdefault(member, []).append(operand)
            else:
                inputs[member] = operand
        try:
            tensors = {
                member: [one.tensor for one in each] if isinstance(each, list) else each and each.tensor
                for member, each in inputs.items()
            }
            desc = complete(found, {**options, **tensors}, device.feature_level, sizes)
            outputs = {member: getattr(desc, member) for member in found.tensors if member not in inputs}
            outputs = {member: tensor for member, tensor in outputs.items() if tensor is not None}
            given = {member: each for member, each in inputs.items() if each is not None}
            return [*self.graph.operator(found.desc, **{**options, **given, **outputs})]
        except DMLError as problem:
            names = {label: argument_label(label) for label in operands}
            raise error(in_function_terms(problem.violations, device, names)) from None


def _error(operator: str, where: str, found: str, expected: str, rule: str) -> Exception:
    return error([violation(operator, rule, where, found, expected, kind="type")])
