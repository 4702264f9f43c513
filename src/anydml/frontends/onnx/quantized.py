"""Quantised chains kept in integers: what stands between DequantizeLinear and QuantizeLinear becomes an integer operator.

Quantisers write q(f(d(x))) for an operator f of a network. Where f is a convolution, a product, a sum or an average,
an operator of quantised numbers computes the same of exact integers, rounded once; where f moves or chooses elements
and scales are the same on both sides, it moves integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .node import Node

_MOVING = ("Dropout", "Flatten", "Identity", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators of which each result is an element of the first input."""


def in_integers(nodes: Sequence[Node], constants: Mapping[str, Any], outputs: Sequence[str]) -> list[Node]:
    """The nodes of a model, those that are computed between quantised numbers as integer operators.

    Args:
        nodes: in order; what is then not needed is still among them.
        constants: arrays by name.
        outputs: the names of the model's outputs.
    """
    rewriting = _Rewriting(nodes, constants, outputs)
    return [rewriting.rewritten(node) for node in nodes]


class _Rewriting:
    def __init__(self, nodes: Sequence[Node], constants: Mapping[str, Any], outputs: Sequence[str]) -> None:
        self._makers = {node.outputs[0]: node for node in nodes if node.outputs}
        self._uses = Counter(name for node in nodes for name in node.reads())
        self._uses.update(outputs)
        given = {node.outputs[0]: node.attributes.get("value") for node in nodes if node.op == "Constant"}
        self._constants = {**constants, **given}

    def rewritten(self, node: Node) -> Node:
        """A QuantizeLinear as the integer operator that it ends; every other node, and what there is none for, as it
        is."""
        if node.op != "QuantizeLinear" or len(node.inputs) != 3 or not self._is_plain(node):
            return node
        inner = self._inner(node.inputs[0])
        if inner is not None and inner.op == "Relu" and self._ends_below_zero(node):
            # What is negative saturates at the zero point.
            inner = self._inner(inner.inputs[0])
        rule = None if inner is None else _RULES.get(inner.op)
        found = None if inner is None or rule is None else rule(self, inner, node)
        return node if found is None else found

    def _inner(self, name: str) -> Node | None:
        """What makes a value that nothing else reads."""
        node = self._makers.get(name)
        return node if node is not None and self._uses[name] == 1 and len(node.outputs) == 1 else None

    def value(self, name: str) -> Any:
        return self._constants.get(name)

    def _is_plain(self, node: Node) -> bool:
        """Whether one scale and one zero point, both known, are those of all elements."""
        scale, zero_point = (self.value(name) for name in node.inputs[1:3])
        return (
            isinstance(scale, np.ndarray)
            and isinstance(zero_point, np.ndarray)
            and scale.size == zero_point.size == 1
            and scale.dtype == np.float32
            and zero_point.dtype in (np.uint8, np.int8)
            and not node.attributes.get("block_size", 0)
        )

    def _ends_below_zero(self, node: Node) -> bool:
        zero_point = self.value(node.inputs[2])
        return bool(zero_point.ravel()[0] == np.iinfo(zero_point.dtype).min)

    def operand(self, name: str, axis: int | None = None) -> tuple[str, str, str] | None:
        """Quantised numbers, their scale and zero point; `axis` is the one along which these may differ."""
        node = self._makers.get(name)
        if node is None or node.op != "DequantizeLinear" or len(node.inputs) != 3:
            return None
        scale, zero_point = (self.value(each) for each in node.inputs[1:3])
        is_per_axis = (
            axis is not None
            and isinstance(scale, np.ndarray)
            and isinstance(zero_point, np.ndarray)
            and scale.dtype == np.float32
            and zero_point.dtype in (np.uint8, np.int8)
            and node.attributes.get("axis", 1) == axis
            and not node.attributes.get("block_size", 0)
        )
        return (node.inputs[0], node.inputs[1], node.inputs[2]) if self._is_plain(node) or is_per_axis else None

    def are_alike(self, x: tuple[str, str, str], end: Node) -> bool:
        """Whether numbers are quantised as those that a QuantizeLinear gives."""
        pairs = [(self.value(ours), self.value(theirs)) for ours, theirs in zip(x[1:], end.inputs[1:3], strict=True)]
        return all(a.dtype == b.dtype and a.ravel()[0] == b.ravel()[0] for a, b in pairs)

    def bias(self, name: str, x: tuple[str, str, str], w: tuple[str, str, str]) -> str | None:
        """Integers whose scale is the product of the operands', as that of exact sums is."""
        node = self._makers.get(name)
        if node is None or node.op != "DequantizeLinear":
            return None
        integers, scale = self.value(node.inputs[0]), self.value(node.inputs[1])
        if not isinstance(integers, np.ndarray) or integers.dtype != np.int32 or not isinstance(scale, np.ndarray):
            return None
        if len(node.inputs) > 2 and node.inputs[2] and np.any(self.value(node.inputs[2])):
            return None
        product = self.value(x[1]).astype(np.float64).ravel() * self.value(w[1]).astype(np.float64).ravel()
        same = np.allclose(np.broadcast_to(scale.ravel(), product.shape), product, rtol=1e-6, atol=0)
        return node.inputs[0] if same else None


def _convolution(rewriting: _Rewriting, node: Node, end: Node) -> Node | None:
    x, w = rewriting.operand(node.inputs[0]), rewriting.operand(node.inputs[1], axis=0)
    if x is None or w is None:
        return None
    inputs = (*x, *w, *end.inputs[1:3])
    if len(node.inputs) > 2 and node.inputs[2]:
        bias = rewriting.bias(node.inputs[2], x, w)
        if bias is None:
            return None
        inputs = (*inputs, bias)
    return Node("QLinearConv", node.label, inputs, end.outputs, node.attributes, max(node.opset, 10))


def _of(op: str, opset: int = 1) -> Callable[[_Rewriting, Node, Node], Node | None]:
    """An operator whose inputs are those of the node, each with its scale and zero point, then the result's."""

    def rule(rewriting: _Rewriting, node: Node, end: Node) -> Node | None:
        operands = [rewriting.operand(name) for name in node.inputs]
        if any(each is None for each in operands):
            return None
        given = [name for each in operands if each is not None for name in each]
        return Node(op, node.label, (*given, *end.inputs[1:3]), end.outputs, node.attributes, opset)

    return rule


def _moving(rewriting: _Rewriting, node: Node, end: Node) -> Node | None:
    x = rewriting.operand(node.inputs[0])
    if x is None or not rewriting.are_alike(x, end):
        return None
    # Maxima of integers came with operator set 12, and nothing else with it.
    opset = max(node.opset, 12) if node.op == "MaxPool" else node.opset
    return replace(node, inputs=(x[0], *node.inputs[1:]), outputs=end.outputs, opset=opset)


def _joined(rewriting: _Rewriting, node: Node, end: Node) -> Node | None:
    operands = [each for name in node.inputs if (each := rewriting.operand(name)) is not None]
    if len(operands) < len(node.inputs):
        return None
    if all(rewriting.are_alike(each, end) for each in operands):
        return replace(node, inputs=tuple(each[0] for each in operands), outputs=end.outputs)
    inputs = (*end.inputs[1:3], *(name for each in operands for name in each))
    return Node("com.microsoft.QLinearConcat", node.label, inputs, end.outputs, node.attributes, 1)


def _product(rewriting: _Rewriting, node: Node, end: Node) -> Node | None:
    """alpha * a @ b + c, where alpha and beta are 1."""
    a, b = rewriting.operand(node.inputs[0]), rewriting.operand(node.inputs[1])
    scalars = [node.attributes.get(name, 1.0) for name in ("alpha", "beta")]
    if a is None or b is None or scalars != [1.0, 1.0]:
        return None
    bias: str | None = ""
    if len(node.inputs) > 2 and node.inputs[2]:
        bias = rewriting.bias(node.inputs[2], a, b)
    if bias is None:
        return None
    attributes = {key: value for key, value in node.attributes.items() if key != "beta"}
    inputs = (*a, *b, bias, *end.inputs[1:3])
    return Node("com.microsoft.QGemm", node.label, inputs, end.outputs, attributes, 1)


_RULES: dict[str, Callable[[_Rewriting, Node, Node], Node | None]] = {
    "Add": _of("com.microsoft.QLinearAdd"),
    "AveragePool": _of("com.microsoft.QLinearAveragePool"),
    "Concat": _joined,
    "Conv": _convolution,
    "Gemm": _product,
    "GlobalAveragePool": _of("com.microsoft.QLinearGlobalAveragePool"),
    "MatMul": _of("QLinearMatMul", 10),
    **dict.fromkeys(_MOVING, _moving),
}
"""By the operator between."""
