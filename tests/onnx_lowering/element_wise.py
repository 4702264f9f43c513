"""Element by element."""

from __future__ import annotations

import math
from functools import reduce

from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, NotSaid, broadcast_all, unary


def folded(name: str) -> Adapter:
    def adapter(node: Node) -> Expression:
        def two(a: Expression, b: Expression) -> Expression:
            return node(f"ELEMENT_WISE_{name}", ATensor=a, BTensor=b)

        return reduce(two, broadcast_all(*node.all))

    return adapter


def mean(node: Node) -> Expression:
    if len(node) == 2:
        return folded("MEAN")(node)
    return folded("ADD")(node) / len(node)


def mod(node: Node) -> Expression:
    # Of what has no sign both remainders are one.
    if not node.get("fmod", 0) and node.values[0].dtype.kind != "u":
        raise NotSaid("the sign of the divisor")
    return folded("MODULUS_TRUNCATE")(node)


def power(node: Node) -> Expression:
    x, e = broadcast_all(*node.all)
    return node("ELEMENT_WISE_POW", InputTensor=x, ExponentTensor=e)


def clip(node: Node) -> Expression:
    low, high = (float(node.value(i, default)) for i, default in ((1, -math.inf), (2, math.inf)))
    return node("ELEMENT_WISE_CLIP", InputTensor=node.input(0), Min=low, Max=high)


ADAPTERS: dict[str, Adapter] = {
    "Abs": unary("ELEMENT_WISE_ABS"),
    "Add": folded("ADD"),
    "Clip": clip,
    "Div": folded("DIVIDE"),
    "Exp": unary("ELEMENT_WISE_EXP"),
    "Identity": unary("ELEMENT_WISE_IDENTITY"),
    "Log": unary("ELEMENT_WISE_LOG"),
    "Max": folded("MAX"),
    "Mean": mean,
    "Min": folded("MIN"),
    "Mod": mod,
    "Mul": folded("MULTIPLY"),
    "Neg": unary("ELEMENT_WISE_NEGATE"),
    "Pow": power,
    "Reciprocal": unary("ELEMENT_WISE_RECIP"),
    "Sqrt": unary("ELEMENT_WISE_SQRT"),
    "Sub": folded("SUBTRACT"),
    "Sum": folded("ADD"),
}
