"""Element by element."""

from __future__ import annotations

import math

import numpy as np

import anydml
from anydml import TensorDataType
from anydml.core.enums import RoundingMode
from anydml.frontends.directmlx import Expression

from .layouts import broadcast_all
from .node import Adapter, Node, unary


def binary(name: str) -> Adapter:
    def adapter(node: Node) -> Expression:
        a, b = broadcast_all(*node.operands("a", "b"))
        return node(f"ELEMENT_WISE_{name}", ATensor=a, BTensor=b)

    return adapter


def logical(name: str) -> Adapter:
    """What gives truth values."""

    def adapter(node: Node) -> Expression:
        a, b = broadcast_all(*node.operands("a", "b"))
        return node(f"ELEMENT_WISE_LOGICAL_{name}", ATensor=a, BTensor=b, OutputTensor=TensorDataType.UINT8)

    return adapter


def is_nan(node: Node) -> Expression:
    return node("ELEMENT_WISE_IS_NAN", InputTensor=node.x, OutputTensor=TensorDataType.UINT8)


def is_infinite(node: Node) -> Expression:
    either = getattr(anydml, "DML_IS_INFINITY_MODE_EITHER", None)  # the enum comes with the operator
    return node("ELEMENT_WISE_IS_INFINITY", InputTensor=node.x, OutputTensor=TensorDataType.UINT8, InfinityMode=either)


def not_equal(node: Node) -> Expression:
    return node("ELEMENT_WISE_LOGICAL_NOT", InputTensor=logical("EQUALS")(node))


def clamp(node: Node) -> Expression:
    x = node.x
    if x.dtype.kind == "f":
        low, high = node.number("minValue", -math.inf), node.number("maxValue", math.inf)
        return node("ELEMENT_WISE_CLIP", InputTensor=x, Min=low, Max=high)
    # CLIP's bounds are floats, which not all integers are.
    held = np.iinfo(x.dtype)
    bounds = node.number("minValue", held.min), node.number("maxValue", held.max)
    low, high = (int(max(held.min, min(bound, held.max))) for bound in bounds)
    return node("ELEMENT_WISE_CLIP1", InputTensor=x, MinMaxDataType=x.tensor.DataType, Min=low, Max=high)


def power(node: Node) -> Expression:
    x, exponent = broadcast_all(*node.operands("a", "b"))
    return node("ELEMENT_WISE_POW", InputTensor=x, ExponentTensor=exponent)


def round_even(node: Node) -> Expression:
    return node("ELEMENT_WISE_ROUND", InputTensor=node.x, RoundingMode=RoundingMode.HALVES_TO_NEAREST_EVEN)


def where(node: Node) -> Expression:
    condition, a, b = broadcast_all(*node.operands("condition", "trueValue", "falseValue"))
    return node("ELEMENT_WISE_IF", ConditionTensor=condition, ATensor=a, BTensor=b)


ADAPTERS: dict[str, Adapter] = {
    "abs": unary("ELEMENT_WISE_ABS"),
    "add": binary("ADD"),
    "ceil": unary("ELEMENT_WISE_CEIL"),
    "clamp": clamp,
    "cos": unary("ELEMENT_WISE_COS"),
    "div": binary("DIVIDE"),
    "equal": logical("EQUALS"),
    "erf": unary("ELEMENT_WISE_ERF"),
    "exp": unary("ELEMENT_WISE_EXP"),
    "floor": unary("ELEMENT_WISE_FLOOR"),
    "greater": logical("GREATER_THAN"),
    "greaterOrEqual": logical("GREATER_THAN_OR_EQUAL"),
    "identity": unary("ELEMENT_WISE_IDENTITY"),
    "isInfinite": is_infinite,
    "isNaN": is_nan,
    "lesser": logical("LESS_THAN"),
    "lesserOrEqual": logical("LESS_THAN_OR_EQUAL"),
    "log": unary("ELEMENT_WISE_LOG"),
    "logicalAnd": logical("AND"),
    "logicalNot": unary("ELEMENT_WISE_LOGICAL_NOT"),
    "logicalOr": logical("OR"),
    "logicalXor": logical("XOR"),
    "max": binary("MAX"),
    "min": binary("MIN"),
    "mul": binary("MULTIPLY"),
    "neg": unary("ELEMENT_WISE_NEGATE"),
    "notEqual": not_equal,
    "pow": power,
    "reciprocal": unary("ELEMENT_WISE_RECIP"),
    "roundEven": round_even,
    "sign": unary("ELEMENT_WISE_SIGN"),
    "sin": unary("ELEMENT_WISE_SIN"),
    "sqrt": unary("ELEMENT_WISE_SQRT"),
    "sub": binary("SUBTRACT"),
    "tan": unary("ELEMENT_WISE_TAN"),
    "where": where,
}
