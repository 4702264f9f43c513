"""Element by element."""

from __future__ import annotations

import math
from functools import reduce

from anydml import RoundingMode
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, broadcast_all, unary


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
    return folded("MODULUS_TRUNCATE" if node.get("fmod", 0) else "MODULUS_FLOOR")(node)


def power(node: Node) -> Expression:
    exponent = node.value(1)
    if exponent.size == 1 and exponent.dtype == node.values[0].dtype and exponent.dtype.kind == "f":
        return node("ELEMENT_WISE_CONSTANT_POW", InputTensor=node.input(0), Exponent=exponent.item())
    x, e = broadcast_all(*node.all)
    return node("ELEMENT_WISE_POW", InputTensor=x, ExponentTensor=e)


def clip(node: Node) -> Expression:
    low, high = (float(node.value(i, default)) for i, default in ((1, -math.inf), (2, math.inf)))
    return node("ELEMENT_WISE_CLIP", InputTensor=node.input(0), Min=low, Max=high)


ADAPTERS: dict[str, Adapter] = {
    "Abs": unary("ELEMENT_WISE_ABS"),
    "Acos": unary("ELEMENT_WISE_ACOS"),
    "Acosh": unary("ELEMENT_WISE_ACOSH"),
    "Add": folded("ADD"),
    "Asin": unary("ELEMENT_WISE_ASIN"),
    "Asinh": unary("ELEMENT_WISE_ASINH"),
    "Atan": unary("ELEMENT_WISE_ATAN"),
    "Atanh": unary("ELEMENT_WISE_ATANH"),
    "Ceil": unary("ELEMENT_WISE_CEIL"),
    "Clip": clip,
    "Cos": unary("ELEMENT_WISE_COS"),
    "Cosh": unary("ELEMENT_WISE_COSH"),
    "Div": folded("DIVIDE"),
    "Erf": unary("ELEMENT_WISE_ERF"),
    "Exp": unary("ELEMENT_WISE_EXP"),
    "Floor": unary("ELEMENT_WISE_FLOOR"),
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
    "Round": lambda node: node(
        "ELEMENT_WISE_ROUND", InputTensor=node.input(0), RoundingMode=RoundingMode.HALVES_TO_NEAREST_EVEN
    ),
    "Sign": unary("ELEMENT_WISE_SIGN"),
    "Sin": unary("ELEMENT_WISE_SIN"),
    "Sinh": unary("ELEMENT_WISE_SINH"),
    "Sqrt": unary("ELEMENT_WISE_SQRT"),
    "Sub": folded("SUBTRACT"),
    "Sum": folded("ADD"),
    "Tan": unary("ELEMENT_WISE_TAN"),
}
