"""Operators that ONNX defines by others: the nodes of their functions, for those that no lowering says."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import onnx

from .context import NodeContext, NotLowered
from .control import Inlined
from .node import Body, Node, nodes_of, renamed_node
from .values import Value


def expanded(context: NodeContext) -> Inlined:
    """The nodes of a node's function.

    Raises:
        NotLowered: where ONNX defines the operator by no others.
    """
    node = context.node
    domain, _, name = node.op.rpartition(".")
    if not onnx.defs.has(name, node.opset, domain):
        raise NotLowered("an operator that ONNX does not define, and that has no lowering here")
    schema = onnx.defs.get_schema(name, node.opset, domain)
    function = _function_of(schema, context)
    if function is None:
        raise NotLowered("DirectML has no operator for it")
    defaults = {
        name: onnx.helper.get_attribute_value(attribute.default_value)
        for name, attribute in schema.attributes.items()
        if attribute.default_value.name
    }
    given = {name: value.decode() if isinstance(value, bytes) else value for name, value in defaults.items()}
    given |= node.attributes
    # Those of preview domains don't say which version of ONNX's own operators they are of.
    opsets = {"": onnx.defs.onnx_opset_version()} | {each.domain: each.version for each in function.opset_import}
    inner = nodes_of(function.node, opsets)
    attributes = [
        {each.name: given.get(each.ref_attr_name) for each in proto.attribute if each.ref_attr_name}
        for proto in function.node
    ]
    prefix = f"{node.label}/"
    names = dict.fromkeys(function.input, "")
    names |= dict(zip(function.input, node.inputs, strict=False))
    names |= {own: f"{prefix}{own}" for each in inner for own in each.outputs if own}
    found = []
    for each, references in zip(inner, attributes, strict=True):
        own = {key: value for key, value in each.attributes.items() if key not in references}
        own |= {key: value for key, value in references.items() if value is not None}
        plain = Node(each.op, each.label, each.inputs, each.outputs, own, each.opset)
        found.append(renamed_node(plain, prefix, names))
    ends = [names.get(name, "") for name in function.output]
    pairs = zip(ends, node.outputs, strict=False)
    found += [Node("Identity", node.label, (end,), (output,), {}, 13) for end, output in pairs if end and output]
    return Inlined(found)


def _function_of(schema: Any, context: NodeContext) -> onnx.FunctionProto | None:
    if schema.has_function:
        function: onnx.FunctionProto = schema.function_body
        return function
    if not schema.has_context_dependent_function:
        return None
    types = [_type_of(context, i).SerializeToString() for i in range(len(context))]
    proto = proto_of(context.node)
    version = max((v for v in schema.context_dependent_function_opset_versions if v <= context.opset), default=None)
    versions = schema.context_dependent_function_opset_versions
    found = schema.get_context_dependent_function_with_opset_version(
        version if version is not None else min(versions), proto.SerializeToString(), types
    )
    function = onnx.FunctionProto()
    function.ParseFromString(found)
    return function if function.node else None


def _type_of(context: NodeContext, i: int) -> onnx.TypeProto:
    if not context.has(i):
        return onnx.TypeProto()
    return type_of(context.value(i))


def refusal(node: Node, values: dict[str, Value]) -> str:
    """What ONNX's inference of types and shapes says against a node; "" where that is nothing.

    Nodes with bodies are not looked at, as these read what they are not given; their own nodes are.
    """
    signature = _signature(node, [values.get(each) for each in node.inputs])
    if signature in _SOUND:
        return ""
    said = _refusal(node, values)
    if not said and signature is not None:
        if len(_SOUND) >= _CAPACITY:
            _SOUND.clear()
        _SOUND.add(signature)
    return said


_SOUND: set[Hashable] = set()
"""Signatures that nothing was said against: networks repeat layers."""
_CAPACITY = 4096


def _signature(node: Node, given: Sequence[Value]) -> Hashable:
    """All that inference looks at; None where it is not only numbers, strings, types and shapes."""
    attributes: list[Hashable] = []
    for key, value in node.attributes.items():
        # 1 equals 1.0, which is of another type.
        each = (tuple(value), *map(type, value)) if isinstance(value, list) else (value, type(value))
        attributes.append((key, *each))
    kinds = [
        None if each is None else () if isinstance(each, list) else (each.dtype, tuple(each.shape)) for each in given
    ]
    signature = node.op, node.opset, tuple(attributes), tuple(map(bool, node.inputs)), tuple(map(bool, node.outputs))
    try:
        hash((signature, tuple(kinds)))
    except TypeError:
        return None
    return signature, tuple(kinds)


def _refusal(node: Node, values: dict[str, Value]) -> str:
    domain, _, name = node.op.rpartition(".")
    if node.op == "Constant" or not onnx.defs.has(name, node.opset, domain) or any(True for _ in node.bodies()):
        return ""
    given = [values.get(each) for each in node.inputs]
    if node.attributes.get("num_outputs", len(node.outputs)) != len(node.outputs):
        return f"{node.attributes['num_outputs']} parts for {len(node.outputs)} outputs"  # inference counts them all
    if any((each is None and name) or isinstance(each, list) for each, name in zip(given, node.inputs, strict=True)):
        return ""  # an empty optional, or a sequence, of which an empty one has no type
    if node.op.startswith("Optional"):
        return ""  # an optional is known by its value, which has not its type
    large = [key for key, each in node.attributes.items() if isinstance(each, int) and not -(2**31) <= each < 2**31]
    if large:
        # Inference computes with axes in 32 bits, and reads outside of shapes then.
        return f"attribute {large[0]!r} of {node.attributes[large[0]]}" if "axis" in large else ""
    try:
        schema = onnx.defs.get_schema(name, node.opset, domain)
        types = {each: type_of(value) for each, value in zip(node.inputs, given, strict=True) if each}
        onnx.shape_inference.infer_node_outputs(schema, proto_of(node), types)
    except Exception as problem:  # its own classes are those of C++ code
        return str(problem)
    return ""


def type_of(value: Value) -> onnx.TypeProto:
    """The type that ONNX has for a value."""
    if isinstance(value, list):
        return onnx.helper.make_sequence_type_proto(type_of(value[0]) if value else onnx.TypeProto())
    if value.dtype.kind in "OUST":
        return onnx.helper.make_tensor_type_proto(onnx.TensorProto.STRING, value.shape)
    return onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def proto_of(node: Node) -> onnx.NodeProto:
    """A node as ONNX has it."""
    domain, _, name = node.op.rpartition(".")
    proto = onnx.NodeProto(op_type=name, domain=domain, name=node.label, input=node.inputs, output=node.outputs)
    for key, value in node.attributes.items():
        proto.attribute.append(onnx.helper.make_attribute(key, _attribute(value)))
    return proto


def _attribute(value: Any) -> Any:
    if isinstance(value, Body):
        return value.proto
    if isinstance(value, np.ndarray):
        return onnx.numpy_helper.from_array(value)
    return [_attribute(each) for each in value] if isinstance(value, list) else value
