"""Arithmetic, element by element.

Of NaNs MAX, MIN and CLIP give the other operand, as DirectML's operators do; ONNX does not say.
"""

from __future__ import annotations

from functools import reduce
from math import inf, prod
from typing import Any

import numpy as np

from ....core.enums import FeatureLevel
from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .pointwise import applied, binary, call, folded, has, unary, unchanged

_UNARY = {
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Log": "log",
    "Reciprocal": "recip",
    "Round": "round",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
}


def absolute(node: NodeContext) -> Any:
    """Unsigned integers, which ABS does not take, are as they are."""
    return unchanged(node) if node.dtype(0).kind == "u" else unary("abs")(node)


def negative(node: NodeContext) -> Any:
    """-x, where NEGATE is not there by a scale of -1, or 0 - x of integers."""
    return unary("negate")(node) if has(node, FeatureLevel.LEVEL_5_0) else applied(node, lambda x: -x)


def mean(node: NodeContext) -> Any:
    """(a + b + ...) / n; MEAN of two."""
    n = len(node)
    if n == 2:
        return binary("mean")(node)
    return applied(node, lambda *xs: reduce(lambda a, b: a + b, xs) * (1 / n))


def modulus(node: NodeContext) -> Any:
    """The remainder has the sign of the dividend where fmod is 1, and else of the divisor."""
    return binary("modulus_truncate" if node.get("fmod", 0) else "modulus_floor")(node)


# Powers


def power(node: NodeContext) -> Any:
    """The result is of the first input's type, whatever the exponent's is."""
    return applied(node, lambda x, exponent: _power(node, x, exponent))


def _power(node: NodeContext, x: Expression, exponent: Expression) -> Any:
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        return _integer_power(node, x, exponent)
    if node.is_known(1) and x.dtype.kind == "f" and np.size(node.known(1)) == 1:
        number = node.number(1)
        if type(number) is not int or abs(number) <= 1 << 24:
            return call(node, "pow", x, float(number))
    if exponent.dtype.kind in "iu" and exponent.dtype.itemsize == 8:
        exponent = node.narrowed(exponent, np.int32)
    return call(node, "pow", x, exponent)


def _integer_power(node: NodeContext, x: Expression, exponent: Expression) -> Expression:
    """Exponentiation by squaring: the product of x^(2^i) for each bit i of the exponent, modulo 2^64."""
    if node.is_known(1):
        given = node.known(1)
        if np.any(given != np.trunc(given)) or np.any(given < 0) or np.any(given >= 2**62):
            raise NotLowered("a power of integers of 64 bits whose exponent is no integer of 0 to 2^62")
        bits = range(int(np.max(given)).bit_length())
        exponents = node.constant(given.astype(x.dtype))
    else:
        exponents = exponent.astype(x.dtype)
        demanded = (exponents >= 0) & (exponents < 64)
        demanded = demanded & (exponents.astype(exponent.dtype) == exponent)
        node.demand(
            demanded, "an exponent beyond that", "an integer of 0 to 63, to which integers of 64 bits are raised"
        )
        bits = range(6)
    result, square = None, x
    for i in bits:
        square = square * square if i else square
        factor = call(node, "if_", (exponents & (1 << i)) != 0, square, 1)
        result = factor if result is None else result * factor
    return call(node, "if_", exponents == exponents, 1, x) if result is None else result


# Limits


def clip(node: NodeContext) -> Any:
    """min(max, max(min, x)) with limits that are inputs from operator set 11 on, and attributes before.

    What is known of them is in CLIP's desc; what is not is an operand of MAX and MIN.
    """
    dtype = node.dtype(0)
    if 0 in node.shape(0):
        return np.zeros(node.shape(0), dtype)
    if node.opset < 11:
        limits = [node.get("min", -inf), node.get("max", inf)]
        return node.shaped(call(node, "clip", node.x(0), *limits), node.shape(0))
    for i in (1, 2):
        if node.has(i) and prod(node.shape(i)) != 1:
            raise NotLowered(f"limits of shape {node.shape(i)}")
    known = all(node.is_known(i) for i in (1, 2) if node.has(i))
    x = node.x(0)
    if known:
        least, most = (-inf, inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        low, high = node.number(1, int(least) if dtype.kind in "iu" else least), node.number(2, most)
        if low == least and high == most:
            return unchanged(node)
        return node.shaped(call(node, "clip", x, low, high), node.shape(0))
    for i, function in ((1, "max"), (2, "min")):
        if node.has(i):
            x = call(node, function, x, node.x(i))
    return node.shaped(x, node.shape(0))


LOWERINGS: dict[str, Lowering] = {
    **{op: unary(function) for op, function in _UNARY.items()},
    "Abs": absolute,
    "Add": binary("add"),
    "Clip": clip,
    "Div": binary("divide"),
    "Max": folded("max"),
    "Mean": mean,
    "Min": folded("min"),
    "Mod": modulus,
    "Mul": binary("multiply"),
    "Neg": negative,
    "Pow": power,
    "Sub": binary("subtract"),
    "Sum": folded("add"),
}
