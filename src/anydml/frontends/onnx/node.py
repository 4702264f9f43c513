"""Nodes of ONNX graphs, with attributes as Python has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import onnx


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of an ONNX graph.

    Attributes:
        op: its type; with its domain before it where that is not ONNX's own: ``com.microsoft.Gelu``.
        label: what messages and pictures call it: its name, or else that of its first output.
        inputs: names of values; "" for one that is left out.
        outputs: likewise.
        attributes: numbers, strings, lists of them, arrays of tensors; graphs as :class:`Body`.
        opset: the version of the domain's operator set that says what it means.
    """

    op: str
    label: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    opset: int

    def reads(self) -> set[str]:
        """The values that it depends on, those that its bodies take from outside among them."""
        found = {name for name in self.inputs if name}
        for body in self.bodies():
            found |= body.captures()
        return found

    def bodies(self) -> Iterator[Body]:
        """The graphs among its attributes."""
        for value in self.attributes.values():
            yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, Body))


@dataclass(frozen=True, slots=True)
class Body:
    """A graph that is a node's attribute, such as a branch of If.

    Attributes:
        inputs: the names of its inputs.
        outputs: the names of its outputs.
        nodes: in an order in which they can run.
        constants: arrays by name.
        proto: the graph as the model has it.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: dict[str, Any]
    proto: onnx.GraphProto = field(repr=False)

    def captures(self) -> set[str]:
        """The values of the outer graph that it reads."""
        given = {*self.inputs, *self.constants, *(name for node in self.nodes for name in node.outputs)}
        read = {*self.outputs}.union(*(node.reads() for node in self.nodes))
        return {name for name in read if name} - given

    def instance(self, prefix: str, names: dict[str, str]) -> tuple[list[Node], dict[str, Any], list[str]]:
        """A copy whose values have names of their own.

        Args:
            prefix: what stands before the names of values that it computes.
            names: what its inputs are called outside; what is not in it, and not computed within, keeps its name.

        Returns:
            Its nodes, its constants by name, and the names of its outputs.
        """
        own = {name: f"{prefix}{name}" for node in self.nodes for name in node.outputs if name}
        own |= {name: f"{prefix}{name}" for name in self.constants}
        renamed = own | names
        nodes = [renamed_node(node, prefix, renamed) for node in self.nodes]
        constants = {renamed[name]: value for name, value in self.constants.items()}
        return nodes, constants, [renamed.get(name, name) for name in self.outputs]


def renamed_node(node: Node, prefix: str, names: dict[str, str]) -> Node:
    """A node that reads and gives values under other names."""
    inputs = tuple(names.get(name, name) for name in node.inputs)
    outputs = tuple(names.get(name, name) for name in node.outputs)
    attributes = {key: _renamed_bodies(value, names) for key, value in node.attributes.items()}
    return replace(node, label=f"{prefix}{node.label}", inputs=inputs, outputs=outputs, attributes=attributes)


def _renamed_bodies(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed_bodies(each, names) for each in value]
    if not isinstance(value, Body):
        return value
    inner = {name: new for name, new in names.items() if name in value.captures()}
    nodes = tuple(renamed_node(node, "", inner) for node in value.nodes)
    outputs = tuple(inner.get(name, name) for name in value.outputs)
    return replace(value, nodes=nodes, outputs=outputs)


def nodes_of(protos: Sequence[onnx.NodeProto], opsets: dict[str, int]) -> list[Node]:
    """Nodes, in the order in which the model has them, which is one in which they can run."""
    return [_node_of(proto, opsets) for proto in protos]


def body_of(graph: onnx.GraphProto, opsets: dict[str, int]) -> Body:
    """A graph that stands within a node."""
    return Body(
        inputs=tuple(each.name for each in graph.input),
        outputs=tuple(each.name for each in graph.output),
        nodes=tuple(nodes_of(graph.node, opsets)),
        constants=constants_of(graph),
        proto=graph,
    )


def constants_of(graph: onnx.GraphProto) -> dict[str, Any]:
    """The initializers of a graph, as arrays."""
    return {each.name: array_of(each) for each in graph.initializer}


def array_of(tensor: onnx.TensorProto) -> Any:
    """A tensor as an array, of NumPy's types or of ml_dtypes'."""
    return onnx.numpy_helper.to_array(tensor)


def _node_of(proto: onnx.NodeProto, opsets: dict[str, int]) -> Node:
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    outputs = tuple(proto.output)
    return Node(
        op=f"{domain}.{proto.op_type}" if domain else proto.op_type,
        label=proto.name or next((name for name in outputs if name), proto.op_type),
        inputs=tuple(proto.input),
        outputs=outputs,
        attributes={each.name: _attribute(each, opsets) for each in proto.attribute if not each.ref_attr_name},
        opset=opsets.get(domain, 1),
    )


def _attribute(attribute: onnx.AttributeProto, opsets: dict[str, int]) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    is_many = attribute.type in _MANY
    return [_plain(each, opsets) for each in value] if is_many else _plain(value, opsets)


_MANY = frozenset(
    getattr(onnx.AttributeProto, name) for name in ("FLOATS", "INTS", "STRINGS", "TENSORS", "GRAPHS", "TYPE_PROTOS")
)


def _plain(value: Any, opsets: dict[str, int]) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    if isinstance(value, onnx.TensorProto):
        return array_of(value)
    return body_of(value, opsets) if isinstance(value, onnx.GraphProto) else value
