"""Control flow: If, Loop and Scan, whose conditions are read on the host, become the nodes of their bodies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .context import NodeContext, NotLowered
from .node import Body, Node
from .values import Value


@dataclass
class Inlined:
    """Nodes that stand for another, with the constants that they read."""

    nodes: list[Node]
    constants: dict[str, Value] = field(default_factory=dict)


def inlined(context: NodeContext) -> Inlined | None:
    """What a node of control flow comes to; None for all other nodes."""
    found = _BY_OP.get(context.op)
    return None if found is None else found(context)


def renaming(node: Node, names: list[str]) -> list[Node]:
    """Identities that give values the names of a node's outputs."""
    pairs = zip(names, node.outputs, strict=False)
    return [Node("Identity", node.label, (name,), (output,), {}, node.opset) for name, output in pairs if output]


def _if(context: NodeContext) -> Inlined:
    is_true = bool(np.ravel(context.known(0))[0])
    body: Body = context.required("then_branch" if is_true else "else_branch")
    nodes, constants, outputs = body.instance(f"{context.node.label}/", {})
    return Inlined(nodes + renaming(context.node, outputs), constants)


def _loop(context: NodeContext) -> Inlined:
    """ONNX's Loop: at most M iterations, while the condition holds; the first of a Loop whose state is in attributes.

    An iteration is the body's nodes and a node Loop that goes on with what they give. What earlier iterations gave
    stands behind its inputs, so that it is kept until it is stacked.
    """
    node = replace(context.node, inputs=(*context.node.inputs, "", "")[: max(len(context.node.inputs), 2)])
    i: int = context.get(_ITERATION, 0)
    first: Node = context.get(_FIRST, node)
    body: Body = context.required("body")
    most = context.number(0) if context.has(0) else None
    goes_on = bool(np.ravel(context.known(1))[0]) if context.has(1) else True
    end = len(first.inputs)
    carried, collected = node.inputs[2:end], node.inputs[end:]
    if not goes_on or (most is not None and i >= most):
        return _collected(first, carried, collected, body)
    if i >= _MOST_ITERATIONS:
        raise NotLowered(f"a loop of more than {_MOST_ITERATIONS} iterations, each of which is traced")
    prefix = f"{first.label}[{i}]/"
    count = f"{prefix}iteration"
    names = dict(zip(body.inputs, (count, node.inputs[1] or f"{prefix}true", *carried), strict=False))
    nodes, constants, outputs = body.instance(prefix, names)
    constants |= {count: np.array(i, np.int64), f"{prefix}true": np.array(True)}
    inputs = (node.inputs[0], *outputs[: end - 1], *collected, *outputs[end - 1 :])
    state = {"body": body, _ITERATION: i + 1, _FIRST: first}
    return Inlined([*nodes, Node("Loop", first.label, inputs, first.outputs, state, node.opset)], constants)


def _collected(first: Node, carried: tuple[str, ...], collected: tuple[str, ...], body: Body) -> Inlined:
    """The outputs of a Loop: what is carried, then what each iteration gave, stacked."""
    nodes = renaming(first, list(carried))
    constants: dict[str, Value] = {}
    scans = len(body.outputs) - 1 - len(carried)
    for j, output in enumerate(first.outputs[len(carried) :]):
        parts = list(collected[j::scans])
        if output and parts:
            nodes += _stacked(first, parts, output, 0)
        elif output:
            constants[output] = _nothing(body, len(carried) + 1 + j)
    return Inlined(nodes, constants)


def _stacked(node: Node, parts: list[str], output: str, axis: int) -> list[Node]:
    return [
        Node("SequenceConstruct", node.label, tuple(parts), (f"{output}/parts",), {}, 11),
        Node("ConcatFromSequence", node.label, (f"{output}/parts",), (output,), {"axis": axis, "new_axis": 1}, 11),
    ]


def _concat_from_sequence(context: NodeContext) -> Inlined:
    """A sequence's tensors, by names of their own, joined: along a new axis each gets one first."""
    node, axis = context.node, context.required("axis")
    prefix = f"{node.label}/"
    parts = {f"{prefix}{i}": each for i, each in enumerate(context.value(0))}
    if not parts:
        raise NotLowered("an empty sequence, whose tensors have no shape")
    names, nodes, constants = tuple(parts), [], dict(parts)
    if context.get("new_axis", 0):
        constants[f"{prefix}axis"] = np.array([axis], np.int64)
        names = tuple([f"{prefix}with axis {i}" for i in range(len(parts))])
        for part, name in zip(parts, names, strict=True):
            nodes.append(Node("Unsqueeze", node.label, (part, f"{prefix}axis"), (name,), {}, 13))
    nodes.append(Node("Concat", node.label, names, node.outputs, {"axis": axis}, 13))
    return Inlined(nodes, constants)


def _nothing(body: Body, number: int) -> Any:
    """What no iteration gave: an empty array of the type that the body's output says."""
    import onnx

    tensor = body.proto.output[number].type.tensor_type
    sizes = [dim.dim_value for dim in tensor.shape.dim]
    return np.zeros((0, *sizes), onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))


def _scan(context: NodeContext) -> Inlined:
    """ONNX's Scan since opset 9: the body over the elements of inputs along their axes."""
    node = context.node
    if context.opset < 9:
        return _scan_of_batches(context)
    body: Body = context.required("body")
    scanned = context.required("num_scan_inputs")
    states = len(node.inputs) - scanned
    outputs = len(node.outputs) - states
    axes = context.get("scan_input_axes", [0] * scanned)
    backwards = context.get("scan_input_directions", [0] * scanned)
    out_axes = context.get("scan_output_axes", [0] * outputs)
    out_backwards = context.get("scan_output_directions", [0] * outputs)
    length = context.shape(states)[axes[0] % context.rank(states)]
    nodes: list[Node] = []
    constants: dict[str, Value] = {}
    carried = list(node.inputs[:states])
    collected: list[list[str]] = []
    for i in range(length):
        prefix = f"{node.label}[{i}]/"
        slices = []
        for j in range(scanned):
            at = f"{prefix}at{j}"
            constants[at] = np.array(length - 1 - i if backwards[j] else i, np.int64)
            slices.append(f"{prefix}slice{j}")
            attributes = {"axis": axes[j]}
            nodes.append(Node("Gather", node.label, (node.inputs[states + j], at), (slices[-1],), attributes, 13))
        names = dict(zip(body.inputs, [*carried, *slices], strict=True))
        own, known, given = body.instance(prefix, names)
        nodes += own
        constants |= known
        carried = given[:states]
        collected.append(given[states:])
    nodes += renaming(node, carried)
    for j, output in enumerate(node.outputs[states:]):
        if output:
            parts = [each[j] for each in collected]
            nodes += _stacked(node, parts[::-1] if out_backwards[j] else parts, output, out_axes[j])
    return Inlined(nodes, constants)


def _scan_of_batches(context: NodeContext) -> Inlined:
    """ONNX's Scan of opset 8: one of opset 9 for each batch, the first dimension of all inputs and outputs."""
    node = context.node
    if context.has(0):
        raise NotLowered("sequences of lengths of their own")
    scanned = context.required("num_scan_inputs")
    attributes = {
        "body": context.required("body"),
        "num_scan_inputs": scanned,
        "scan_input_directions": context.get("directions", [0] * scanned),
    }
    nodes: list[Node] = []
    constants: dict[str, Value] = {}
    outputs = []
    for i in range(context.shape(1)[0]):
        prefix = f"{node.label}[{i}]/"
        constants[f"{prefix}at"] = np.array(i, np.int64)
        inputs = tuple([f"{prefix}{name}" for name in node.inputs[1:]])
        outputs.append(tuple([f"{prefix}{name}" for name in node.outputs]))
        for name, own in zip(node.inputs[1:], inputs, strict=True):
            nodes.append(Node("Gather", node.label, (name, f"{prefix}at"), (own,), {"axis": 0}, 13))
        nodes.append(Node("Scan", f"{prefix}scan", inputs, outputs[-1], attributes, 9))
    for j, output in enumerate(node.outputs):
        nodes += _stacked(node, [each[j] for each in outputs], output, 0) if output else []
    return Inlined(nodes, constants)


_MOST_ITERATIONS = 1 << 12
_ITERATION, _FIRST = "anydml iteration", "anydml first"
"""Attributes with the state of a Loop that goes on."""

_BY_OP = {"ConcatFromSequence": _concat_from_sequence, "If": _if, "Loop": _loop, "Scan": _scan}
