"""Logic, comparisons, choices and bits. ONNX's truth values are UINT8 here."""

from __future__ import annotations

import numpy as np

from anydml import IsInfinityMode
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, NotSaid, broadcast_all


def operands(node: Node) -> list[Expression]:
    """Broadcast, with truth values as bytes."""
    node.values = [x.view(np.uint8) if getattr(x, "dtype", None) == np.bool_ else x for x in node.values]
    return broadcast_all(*node.all)


def paired(name: str) -> Adapter:
    def adapter(node: Node) -> Expression:
        a, b = operands(node)
        return node(f"ELEMENT_WISE_{name}", ATensor=a, BTensor=b)

    return adapter


def alone(name: str) -> Adapter:
    return lambda node: node(f"ELEMENT_WISE_{name}", InputTensor=operands(node)[0])


def shifted(node: Node) -> Expression:
    return paired("BIT_SHIFT_LEFT" if node.get("direction") == b"LEFT" else "BIT_SHIFT_RIGHT")(node)


def where(node: Node) -> Expression:
    condition, a, b = operands(node)
    return node("ELEMENT_WISE_IF", ConditionTensor=condition, ATensor=a, BTensor=b)


def is_infinity(node: Node) -> Expression:
    modes = {(1, 1): IsInfinityMode.EITHER, (1, 0): IsInfinityMode.POSITIVE, (0, 1): IsInfinityMode.NEGATIVE}
    signs = node.get("detect_positive", 1), node.get("detect_negative", 1)
    if signs not in modes:
        raise NotSaid("no infinity")
    return node("ELEMENT_WISE_IS_INFINITY", InputTensor=node.input(0), InfinityMode=modes[signs])


ADAPTERS: dict[str, Adapter] = {
    "And": paired("LOGICAL_AND"),
    "BitShift": shifted,
    "BitwiseAnd": paired("BIT_AND"),
    "BitwiseNot": alone("BIT_NOT"),
    "BitwiseOr": paired("BIT_OR"),
    "BitwiseXor": paired("BIT_XOR"),
    "Equal": paired("LOGICAL_EQUALS"),
    "Greater": paired("LOGICAL_GREATER_THAN"),
    "GreaterOrEqual": paired("LOGICAL_GREATER_THAN_OR_EQUAL"),
    "IsInf": is_infinity,
    "IsNaN": alone("IS_NAN"),
    "Less": paired("LOGICAL_LESS_THAN"),
    "LessOrEqual": paired("LOGICAL_LESS_THAN_OR_EQUAL"),
    "Not": alone("LOGICAL_NOT"),
    "Or": paired("LOGICAL_OR"),
    "Where": where,
    "Xor": paired("LOGICAL_XOR"),
}
