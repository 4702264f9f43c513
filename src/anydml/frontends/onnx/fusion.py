"""Patterns of nodes that are one operator of DirectML: x * sigmoid(x), which exporters write for SiLU, is SWISH.

As one operator it becomes part of the convolution before it, instead of a pass over memory of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .node import Node


def fused(nodes: Sequence[Node], outputs: Sequence[str]) -> list[Node]:
    """The nodes of a model with what is a pattern as one node; what is then not needed is still among them.

    Args:
        nodes: in order.
        outputs: the names of the model's outputs.
    """
    makers = {node.outputs[0]: node for node in nodes if node.outputs}
    uses = Counter(name for node in nodes for name in node.reads())
    uses.update(outputs)

    def rewritten(node: Node) -> Node:
        if node.op != "Mul" or node.opset < 7 or len(node.inputs) != 2:
            return node
        for x, other in (node.inputs, node.inputs[::-1]):
            gate = makers.get(other)
            if gate is not None and gate.op == "Sigmoid" and gate.inputs == (x,) and uses[other] == 1:
                return Node("Swish", node.label, (x,), node.outputs, {}, _SINCE)
        return node

    return [rewritten(node) for node in nodes]


_SINCE = 24
"""The operator set that has Swish."""
