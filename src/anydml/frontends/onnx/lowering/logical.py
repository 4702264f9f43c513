"""Logic, comparisons, choices and bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.enums import IsInfinityMode
from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .pointwise import applied, binary, broadcast_shape, call, same_bytes, unary

_LOGICAL = {
    "And": "logical_and",
    "Equal": "equals",
    "Greater": "greater_than",
    "GreaterOrEqual": "greater_than_or_equal",
    "Less": "less_than",
    "LessOrEqual": "less_than_or_equal",
    "Or": "logical_or",
    "Xor": "logical_xor",
}

_BITS = {"BitwiseAnd": "bit_and", "BitwiseOr": "bit_or", "BitwiseXor": "bit_xor"}

_INFINITIES = {(1, 1): IsInfinityMode.EITHER, (1, 0): IsInfinityMode.POSITIVE, (0, 1): IsInfinityMode.NEGATIVE}


def negation(node: NodeContext) -> Any:
    return applied(node, lambda x: node.call("logical_not", x))


def is_nan(node: NodeContext) -> Any:
    return applied(node, lambda x: node.call("is_nan", x), np.bool_)


def is_infinity(node: NodeContext) -> Any:
    mode = _INFINITIES.get((int(node.get("detect_positive", 1)), int(node.get("detect_negative", 1))))
    if mode is None:
        return np.zeros(node.shape(0), np.bool_)
    return applied(node, lambda x: node.call("is_infinity", x, mode), np.bool_)


def where(node: NodeContext) -> Any:
    """The type is the second input's."""
    if node.dtype(1).kind in "OUST":
        raise NotLowered("strings")
    if 0 in (shape := broadcast_shape(node)):
        return np.zeros(shape, node.dtype(1))
    return node.shaped(node.call("if_", *node.xs()), shape)


def bit_shift(node: NodeContext) -> Any:
    """A shift by a width or more, or by less than 0, leaves no bit but those of the sign."""
    is_left = node.required("direction") == "LEFT"
    function = "bit_shift_left" if is_left else "bit_shift_right"
    width = node.dtype(0).itemsize * 8
    are_less = node.is_known(1) and bool(np.all((node.known(1) >= 0) & (node.known(1) < width)))

    def shifted(a: Expression, n: Expression) -> Expression:
        """DirectML's, of which only the last bits of n count."""
        y = call(node, function, a, n)
        return y if are_less else call(node, "if_", n < width, y, 0)

    def formula(a: Expression, n: Expression) -> Expression:
        """Of signed integers that are less than 0 the right shift is ~(~a >> n): ones come in from the left."""
        if a.dtype.kind == "u":
            return shifted(a, n)
        signed, unsigned = a.dtype, np.dtype(f"u{a.dtype.itemsize}")
        is_negative = a < 0
        whole = a if is_left else call(node, "if_", is_negative, ~a, a)
        y = same_bytes(shifted(same_bytes(whole, unsigned), same_bytes(n, unsigned)), signed)
        return y if is_left else call(node, "if_", is_negative, ~y, y)

    return applied(node, formula)


LOWERINGS: dict[str, Lowering] = {
    **{op: binary(function, np.bool_) for op, function in _LOGICAL.items()},
    **{op: binary(function) for op, function in _BITS.items()},
    "BitShift": bit_shift,
    "BitwiseNot": unary("bit_not"),
    "IsInf": is_infinity,
    "IsNaN": is_nan,
    "Not": negation,
    "Where": where,
}
