"""Graphs built from expressions, in the manner of DirectMLX: an operator applied to expressions gives others."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.annotations import unquoted
from ..core.enums import ExecutionFlags, FeatureLevel, TensorDataType, TensorFlags
from ..core.errors import kind_of, listing, refuse
from ..core.strided_layout import DATA_TYPES
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC, plain
from ..core.truth_values import BOOL, as_bytes, is_bool
from ..functions._arguments import as_dtype
from ..functions._call import as_device, raise_any
from ..graph.compile import CompiledGraph, compile_graph
from ..graph.desc import (
    DML_CONSTANT_DATA_GRAPH_NODE_DESC,
    DML_GRAPH_DESC,
    DML_INPUT_GRAPH_EDGE_DESC,
    DML_INTERMEDIATE_GRAPH_EDGE_DESC,
    DML_OPERATOR_GRAPH_NODE_DESC,
    DML_OUTPUT_GRAPH_EDGE_DESC,
    Interface,
    Node,
)
from ..graph.verify import GRAPH, Port
from ..operators import ANY_OPERATOR, OPERATORS, spec
from ..operators.schema import OperatorDesc, OperatorSpec, Tensor
from ..operators.shape_inference import complete, is_input
from ..operators.validate import check_tensor
from ..runtime.call import OPTIONS_OF_CALLS
from ..runtime.compiled import Operator
from .expression import Expression as Expression
from .expression import ExpressionAdapter as ExpressionAdapter
from .graph_tensor import mistake, sizes_of

if TYPE_CHECKING:
    from ..device import Device


def _is_bool_type(dtype: Any) -> bool:
    return dtype in (bool, np.bool_, BOOL) or str(dtype) in ("bool", "torch.bool")


@unquoted
class Graph:
    """Builds a graph.

    Args:
        device: where it will run, or its name.

    >>> from anydml import *
    >>> graph = Graph("cpu")
    >>> x = graph.input((3,), name="x")
    >>> (sums,) = graph.operator(DML_CUMULATIVE_SUMMATION_OPERATOR_DESC, InputTensor=x, Axis=0)
    >>> compiled = graph.compile([sums * 10 + x])
    >>> compiled([1, 2, 3])
    array([11., 32., 63.], dtype=float32)
    >>> compiled(x=[0, 0, 1])
    array([ 0.,  0., 11.], dtype=float32)
    """

    def __init__(self, device: Device | str | None = None) -> None:
        self.device = as_device(device)
        self.label = ""
        """What messages call operators that are added without a name."""
        self._inputs: dict[int, Tensor] = {}
        self._names: dict[int, str] = {}
        self._truth_inputs: set[int] = set()
        self._nodes: list[Node] = []
        self._sources: list[list[Port | None]] = []
        self._made: dict[Hashable, Operator] = {}
        """The operators that functions made, which networks of equal layers have many times."""

    def __anydml_graph_adapter__(self, name: str, out: Any, device: Any) -> ExpressionAdapter:
        return ExpressionAdapter(name, self, out, device)

    def input(self, like: Any, dtype: Any = None, index: int | None = None, *, name: str = "") -> Expression:
        """An input of the graph.

        Args:
            like: its shape, an integer or integers; or an array of its type and shape; or its desc.
            dtype: beside a shape its data type, NumPy's, another library's or DirectML's, or its name; float32 where
                None; bool for truth values, which are UINT8. Beside a desc the index.
            index: its number in a dispatch; the next one where None.
            name: what messages, explain(), pictures and calls call it, if anything.

        Raises:
            DMLError: (T2), (T5), (T10), (S3), (A1), (G9), (G11).

        >>> Graph().input((3, 4), "float16")
        <Expression of FLOAT16 (3, 4)>
        """
        if isinstance(like, DML_BUFFER_TENSOR_DESC) and index is None:
            dtype, index = None, dtype
        is_truth = is_bool(like) or _is_bool_type(dtype)
        tensor = self._tensor_like(like, np.uint8 if _is_bool_type(dtype) else dtype)
        number = len(self._inputs) if index is None else plain(index)
        if type(number) is not int or number in self._inputs or not 0 <= number < 2**20:
            raise mistake("input", "index", kind_of(index), "an integer, of an input that is not there yet", "(G9)")
        if not isinstance(name, str):
            raise mistake("input", "name", kind_of(name), "a string", "(G11)")
        if name in OPTIONS_OF_CALLS or (name and name in self._names.values()):
            expected = f"another than those of inputs that are there, and than {listing(OPTIONS_OF_CALLS, 'and')}"
            refuse("input", "(G11)", "name", repr(name), expected)
        self._inputs[number] = tensor
        self._names[number] = name
        if is_truth:
            self._truth_inputs.add(number)
        return Expression(self, Port(GRAPH, number), tensor, is_truth=is_truth)

    def _tensor_like(self, like: Any, dtype: Any) -> Tensor:
        is_shape = isinstance(like, (tuple, list, int, np.integer))
        if not is_shape and dtype is not None:
            raise mistake("input", "dtype", kind_of(dtype), "None beside what is no shape", "(G9)")
        if isinstance(like, DML_BUFFER_TENSOR_DESC):
            return like
        if is_shape:
            sizes = sizes_of("input", "(T2)", like)
            if isinstance(dtype, TensorDataType):
                data_type = dtype
            else:
                data_type = DATA_TYPES[as_dtype("input", "dtype", np.float32 if dtype is None else dtype)]
        else:
            array = as_bytes(self.device.memory.import_array("input", "like", like))
            if array.dtype not in DATA_TYPES:
                refuse("input", "(S3)", "like", str(array.dtype), listing(map(str, DATA_TYPES)), kind="type")
            sizes, data_type = tuple(array.shape), DATA_TYPES[array.dtype]
        tensor = DML_BUFFER_TENSOR_DESC(DataType=data_type, Sizes=sizes)
        wrong = check_tensor("input", "", tensor, self.device.strict)
        raise_any(replace(each, where=each.where.replace("Sizes", "shape")) for each in wrong)
        return tensor

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
            raise mistake(
                "operator",
                "kind",
                kind_of(kind),
                f"the class of the desc, DML_..._OPERATOR_DESC, of {ANY_OPERATOR}",
                "(G9)",
            )
        found = spec(name_of_kind)
        members, sources, read = self._wired(found, members)
        desc = complete(found, members, self.device.feature_level)
        return self._added(found, self.device.create_operator(desc), name, sources, read, members)

    def _wired(
        self, found: OperatorSpec, members: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[Port | None], dict[str, list[Expression]]]:
        """An operator's members with descs for what it reads, the ports of that, and its expressions."""
        sources: list[Port | None] = []
        read: dict[str, list[Expression]] = {}
        described = dict(members)
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
            described[member] = [one.tensor for one in each] if many is given else each[0].tensor
            sources += [one.port for one in each]
            read[member] = each
        return described, sources, read

    def _added(
        self,
        found: OperatorSpec,
        operator: Operator,
        name: str,
        sources: list[Port | None],
        read: Mapping[str, Sequence[Expression]],
        members: Mapping[str, Any],
    ) -> list[Expression]:
        """The outputs of an operator that is added."""
        node = DML_OPERATOR_GRAPH_NODE_DESC(Operator=operator, Name=name or self.label)
        self._nodes.append(node)
        self._sources.append(sources)
        outputs = [
            (Port(len(self._nodes) - 1, i), tensor) for i, (_, tensor) in enumerate(found.outputs(operator.desc))
        ]
        is_truth = _gives_truth(found, read, members)
        return [
            Expression(self, port, tensor, is_truth=is_truth and tensor.DataType == TensorDataType.UINT8)
            for port, tensor in outputs
            if tensor is not None
        ]

    def compile(
        self,
        outputs: Sequence[Expression] | Mapping[str, Expression],
        flags: ExecutionFlags = ExecutionFlags.NONE,
    ) -> CompiledGraph:
        """Compiles what the outputs need.

        Args:
            outputs: the graph's, in the order of a dispatch; a dictionary has them with their names.
            flags: as for :meth:`anydml.Device.compile_operator`.

        Raises:
            DMLError: (G1) to (G9), (G11), (D4).

        >>> graph = Graph()
        >>> x = graph.input((2,))
        >>> graph.compile({"double": 2 * x, "square": x**2})([3, 4])
        {'double': array([6., 8.], dtype=float32), 'square': array([ 9., 16.], dtype=float32)}
        """
        names = list(outputs) if isinstance(outputs, Mapping) else []
        for i, name in enumerate(names):
            if not isinstance(name, str) or not name:
                expected = "a name, a string of at least one character"
                raise mistake("compile", f"outputs[{i}]", kind_of(name), expected, "(G11)")
        ends = self._ends(list(outputs.values()) if isinstance(outputs, Mapping) else outputs)
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
        bound = Interface(
            inputs=dict(self._inputs),
            outputs={i: end.tensor for i, end in enumerate(ends)},
            input_names={number: name for number, name in self._names.items() if name},
            output_names=dict(enumerate(names)),
            truth_inputs=frozenset(self._truth_inputs),
            truth_outputs=frozenset([i for i, end in enumerate(ends) if end._is_truth]),
        )
        return compile_graph(self.device, desc, flags, bound)

    def _ends(self, outputs: object) -> list[Expression]:
        """What the outputs of a graph are wired to."""
        if not isinstance(outputs, (list, tuple)) or not outputs:
            raise mistake("compile", "outputs", kind_of(outputs), "a list of at least one Expression", "(G9)")
        ends = []
        for i, each in enumerate(outputs):
            end = self._own("compile", f"outputs[{i}]", each)
            is_truth = end._is_truth
            if end._is_view:
                end = self._copied(end)
            elif end.port.node == GRAPH:
                # An input is not wired to an output; its bytes are copied, as they lie.
                lying = replace(end.tensor, Flags=TensorFlags.NONE)
                end = self._copied(end, lying)
            end._is_truth = is_truth
            ends.append(end)
        return ends

    def _copied(self, x: Expression, lying: DML_BUFFER_TENSOR_DESC | None = None) -> Expression:
        """A copy, packed or as a desc has it. Before level 4.1 no operator copies 64 bits, but each copies twice 32."""
        kind, identity = x.tensor.DataType, spec("ELEMENT_WISE_IDENTITY").desc
        if kind.bits < 64 or self.device.feature_level >= FeatureLevel.LEVEL_4_1:
            members: dict[str, Any] = {} if lying is None else {"OutputTensor": lying}
            return self.operator(identity, InputTensor=x, **members)[0]
        halves = x.reinterpret(TensorDataType.UINT32, *_as_pairs(x.tensor))
        if lying is None:
            return self.operator(identity, InputTensor=halves)[0].reinterpret(kind, x.shape)
        sizes, strides = _as_pairs(lying)
        words = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.UINT32, Sizes=sizes, Strides=strides)
        (copied,) = self.operator(identity, InputTensor=halves, OutputTensor=words)
        return copied.reinterpret(kind, lying.Sizes, lying.strides)

    def _check_output(self, found: OperatorSpec, member: str, given: object) -> None:
        is_one = "array" not in found.tensors[member].kind
        if is_one and not isinstance(given, (DML_BUFFER_TENSOR_DESC, TensorDataType, NoneType)):
            expected = "a DML_BUFFER_TENSOR_DESC, or a TensorDataType, such as TensorDataType.FLOAT32"
            raise mistake(found.name, member, kind_of(given), expected, "(G9)")

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
            raise mistake(method, where, kind_of(given), "an Expression", "(G9)")
        if given.graph is not self:
            raise mistake(method, where, "an expression of another graph", "one of this graph", "(G9)")
        return given


def _as_pairs(tensor: DML_BUFFER_TENSOR_DESC) -> tuple[list[int], list[int]]:
    """Sizes and strides of a tensor of 64 bits as one of 32, in as many dimensions where its last is packed."""
    sizes, strides = list(tensor.Sizes), list(tensor.strides)
    if strides[-1] == 1 or sizes[-1] == 1:
        return [*sizes[:-1], 2 * sizes[-1]], [*(2 * each for each in strides[:-1]), 1]
    return [*sizes, 2], [*(2 * each for each in strides), 1]


_COPIES = (
    *("ELEMENT_WISE_IDENTITY", "GATHER", "GATHER_ELEMENTS", "GATHER_ND", "GATHER_ND1", "JOIN", "SCATTER_ELEMENTS"),
    *("SCATTER_ND", "REVERSE_SUBSEQUENCES", "SLICE", "SLICE1", "SPLIT", "TILE"),
    *("DEPTH_TO_SPACE", "DEPTH_TO_SPACE1", "SPACE_TO_DEPTH", "SPACE_TO_DEPTH1"),
)
"""Operators of which each element of a result is one of an input's that has no indices or lengths."""


def _gives_truth(found: OperatorSpec, given: Mapping[str, Sequence[Expression]], members: Mapping[str, Any]) -> bool:
    """Whether the results of UINT8 are truth values: made of any elements, or copied, or of bits of such."""
    truth = "" if found.pointwise is None else found.pointwise.truth
    copied: Iterable[str] = ()
    if truth == "kept":
        copied = set(found.pointwise.group_of(found.pointwise.output)) & given.keys()
    elif found.name in _COPIES and members.get("ScaleBias") is None:
        copied = [member for member in given if member not in ("IndicesTensor", "SequenceLengthsTensor")]
    return truth == "made" or (bool(copied) and all(each._is_truth for member in copied for each in given[member]))
