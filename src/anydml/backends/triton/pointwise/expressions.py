"""Calls of PyTorch that compute element by element, as expressions of Triton: a table of ATen's operators.

A line has the expression of operands a, b and c. They have the type of the result; those of comparisons the type that
PyTorch promotes them to. What is computed of halves is computed in single precision and rounded, as PyTorch does.
"""

from __future__ import annotations

from typing import Any

import torch

TYPES: dict[torch.dtype, str] = {
    torch.bool: "tl.int1",
    **{getattr(torch, name): f"tl.{name}" for name in ("int8", "int16", "int32", "int64")},
    **{getattr(torch, name): f"tl.{name}" for name in ("uint8", "uint16", "uint32", "uint64")},
    **{getattr(torch, name): f"tl.{name}" for name in ("float16", "float32", "float64")},
}
"""Triton's names."""

ARITHMETIC: dict[str, str] = {
    "add": "{a} + {b}",
    "sub": "{a} - {b}",
    "rsub": "{b} - {a}",
    "mul": "{a} * {b}",
    "bitwise_and": "{a} & {b}",
    "bitwise_or": "{a} | {b}",
    "bitwise_xor": "{a} ^ {b}",
    "abs": "tl.abs({a})",
    "floor": "tl.floor({a})",
    "ceil": "tl.ceil({a})",
    "sign": "({a} > 0).to({t}) - ({a} < 0).to({t})",
    "maximum": "tl.where(({a} > {b}) | ({a} != {a}), {a}, {b})",
    "minimum": "tl.where(({a} < {b}) | ({a} != {a}), {a}, {b})",
}
"""Of floats and integers alike."""

OF_FLOATS: dict[str, str] = {
    # A negation by subtraction would lose the sign of 0.
    "neg": "{a} * {minus_one}",
    "reciprocal": "tl.div_rn({one}, {a})",
    "div": "tl.div_rn({a}, {b})",
    "sqrt": "tl.sqrt_rn({a})",
    "round": "libdevice.rint({a})",
    "trunc": "libdevice.trunc({a})",
    "copysign": "libdevice.copysign({a}, {b})",
    "fmax": "tl.where(({a} > {b}) | ({b} != {b}), {a}, {b})",
    "fmin": "tl.where(({a} < {b}) | ({b} != {b}), {a}, {b})",
}
"""Of floats, each with one result that is right."""

OF_DOUBLES: dict[str, str] = {
    "reciprocal": "{one} / {a}",
    "div": "{a} / {b}",
    "sigmoid": "{one} / ({one} + libdevice.exp({a} * {minus_one}))",
    "sqrt": "tl.sqrt({a})",
    "atan2": "libdevice.atan2({a}, {b})",
    "pow": "libdevice.pow({a}, {b})",
    "fmod": "libdevice.fmod({a}, {b})",
    **{
        name: f"libdevice.{name}({{a}})"
        for name in (
            *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin", "sinh", "tan", "tanh"),
            *("erf", "erfc", "exp", "expm1", "log", "log1p"),
        )
    },
}
"""As which PyTorch's calls compute what is no single operation."""

OF_INTEGERS: dict[str, str] = {
    "neg": "0 - {a}",
    "bitwise_not": "~{a}",
    "div": "{a} // {b}",
    "fmod": "{a} % {b}",
    "remainder": "{a} % {b} + tl.where(({a} % {b} != 0) & (({a} % {b} < 0) != ({b} < 0)), {b}, 0)",
    # By a number of places that is none of the type's all bits are shifted out.
    "__lshift__": "tl.where(({b} < 0) | ({b} >= {bits}), 0, {a} << ({b} & ({bits} - 1)))",
    "__rshift__": "{a} >> tl.where(({b} < 0) | ({b} >= {bits}), {bits} - 1, {b})",
}
"""Division truncates in Triton, as in C."""

COMPARISONS: dict[str, str] = {
    "eq": "{a} == {b}",
    "ne": "{a} != {b}",
    "lt": "{a} < {b}",
    "le": "{a} <= {b}",
    "gt": "{a} > {b}",
    "ge": "{a} >= {b}",
    "logical_and": "({a} != 0) & ({b} != 0)",
    "logical_or": "({a} != 0) | ({b} != 0)",
    "logical_xor": "({a} != 0) ^ ({b} != 0)",
    "logical_not": "{a} == 0",
    "isnan": "{a} != {a}",
    "isinf": "tl.abs({a}) == float('inf')",
    "isposinf": "{a} == float('inf')",
    "isneginf": "{a} == -float('inf')",
}
"""Which give truth values."""


def expression(name: str, dtype: torch.dtype, operands: dict[str, str]) -> str | None:
    """What computes a call in a type; None where there is no line for it.

    Args:
        name: of ATen's operator.
        dtype: that it is computed in.
        operands: the expressions of a, b and c, as many as there are.
    """
    if dtype == torch.bool and name == "bitwise_not":
        return "{a} == 0".format(**operands)
    own = OF_FLOATS if dtype.is_floating_point else OF_INTEGERS
    if dtype == torch.float64:
        own = {**OF_FLOATS, **OF_DOUBLES}
    template = {**COMPARISONS, **ARITHMETIC, **own}.get(name)
    if template is None:
        return None
    words: dict[str, Any] = {"t": TYPES[dtype], "bits": 8 * dtype.itemsize}
    words |= {"one": number(1, dtype), "minus_one": number(-1, dtype)}
    return template.format(**operands, **words)


def number(value: float | bool, dtype: torch.dtype) -> str:
    """A constant of a type: by itself it would be a single."""
    if dtype.is_floating_point:
        text = f"float('{float(value)}')" if value != value or abs(value) == float("inf") else repr(float(value))
    else:
        text = str(int(value))
    return f"tl.full([BLOCK], {text}, {TYPES[dtype]})"


def converted(value: str, before: torch.dtype, after: torch.dtype) -> str:
    """A value as one of another type, as PyTorch converts it."""
    if before == after:
        return value
    return f"({value} != 0)" if after == torch.bool else f"({value}).to({TYPES[after]})"


def seen_as(value: str, before: torch.dtype, after: torch.dtype) -> str:
    """A value's bits as those of a type of its size."""
    if before == after:
        return value
    if torch.bool in (before, after):
        return converted(value, before, after)
    return f"({value}).to({TYPES[after]}, bitcast=True)"
