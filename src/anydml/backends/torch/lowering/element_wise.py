"""Element-wise operators.

What PyTorch computes in the elements' own type and rounds right, it writes where it belongs; the rest is computed in a
wider type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ....core.enums import TensorDataType
from ....core.strided_layout import DTYPES, Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from . import Run, Tensors
from .activation import fused
from .values import bits, clipped, double, flipped, modular, store, widened

_EXACT: dict[str, Callable[..., Any]] = {
    "ABS": torch.abs,
    "ADD": torch.add,
    "ADD1": torch.add,
    "MULTIPLY": torch.mul,
    "NEGATE": torch.neg,
    "SUBTRACT": torch.sub,
}
"""Of every type."""
_EXACT_OF_FLOATS: dict[str, Callable[..., Any]] = {
    "DIVIDE": torch.div,
    "MAX": torch.fmax,
    "MIN": torch.fmin,
    "RECIP": torch.reciprocal,
}
"""Without the root, of which the CPU's vector library has the nearest value or the one beside it."""
_UNARY: dict[str, Callable[[Any], Any]] = {
    "IDENTITY": lambda x: x,
    "ABS": torch.abs,
    "EXP": torch.exp,
    "LOG": torch.log,
    "RECIP": torch.reciprocal,
    "SQRT": torch.sqrt,
}
_CLIPS = ("CLIP", "CLIP1", "THRESHOLD")


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run:
    name = spec.name.removeprefix("ELEMENT_WISE_")
    layout = outputs[0]
    assert layout is not None
    is_float = layout.dtype.kind == "f"
    is_plain = getattr(desc, "ScaleBias", None) is None and getattr(desc, "FusedActivation", None) is None
    if name == "IDENTITY" and is_plain:
        return lambda read, written: bits(written[0]).copy_(bits(read[0]))
    exact = {**_EXACT, **(_EXACT_OF_FLOATS if is_float else {})}.get(name) if is_plain else None
    if exact is not None:
        return lambda read, written: exact(*map(modular, read), out=modular(written[0]))
    function = _function(name, desc, layout)

    def run(read: Tensors, written: Tensors) -> None:
        store(function(*read), written[0])

    return run


def _function(name: str, desc: Any, layout: Layout) -> Callable[..., Any]:
    """What an operator computes from its tensors, to be stored."""
    is_float, is_long = layout.dtype.kind == "f", layout.type == TensorDataType.UINT64
    scale_bias = getattr(desc, "ScaleBias", None)

    def scaled(x: Any) -> Any:
        return double(x) if scale_bias is None else double(x) * scale_bias.Scale + scale_bias.Bias

    if name in _CLIPS:
        clip = clipped(desc, layout.type)
        if scale_bias is not None or layout.type == TensorDataType.FLOAT16:
            return lambda x: clip(scaled(x))
        if is_float:
            return clip
        if is_long:
            signed = clipped(desc, layout.type, 1 << 63)
            return lambda x: flipped(signed(flipped(widened(x))))
        return lambda x: clip(widened(x))
    if name == "POW":
        is_integer = not is_float and DTYPES[desc.ExponentTensor.DataType].kind != "f" and scale_bias is None
        if is_integer:
            turns = 8 * DTYPES[desc.ExponentTensor.DataType].itemsize
            return lambda x, e: _integer_power(widened(x), widened(e), turns)
        return lambda x, e: torch.pow(scaled(x), double(e))
    if name in _UNARY:
        return lambda x: _UNARY[name](scaled(x))
    if name == "ADD1":
        activation = fused(desc.FusedActivation)
        return lambda a, b: activation(double(a) + double(b))
    if name == "MEAN":
        return lambda a, b: (double(a) + double(b)) / 2
    if is_float:
        assert name == "MODULUS_TRUNCATE", name
        return lambda a, b: torch.fmod(double(a), double(b))
    of_integers = (_OF_LONG if is_long else _OF_INTEGERS)[name]
    return lambda a, b: of_integers(widened(a), widened(b))


# Integers of 64 bits, which hold those of 32


def _quotient(a: Any, b: Any) -> Any:
    """Truncated. Neither 0 nor -1 is divided by, as processors trap where there is no quotient."""
    is_zero, is_minus_1 = b == 0, b == -1
    quotient = torch.div(a, b.masked_fill(is_zero | is_minus_1, 1), rounding_mode="trunc")
    return torch.where(is_minus_1, -a, quotient).masked_fill(is_zero, -1)


def _remainder(a: Any, b: Any) -> Any:
    is_zero = b == 0
    return torch.fmod(a, b.masked_fill(is_zero | (b == -1), 1)).masked_fill(is_zero, -1)


def _is_below(a: Any, b: Any) -> Any:
    return flipped(a) < flipped(b)


def _quotient_of_long(a: Any, b: Any) -> Any:
    """By half of a, which is a signed number: 2 * (a / 2 / b) is the quotient, or 1 less. A b in the upper half of its
    type goes into a once, or not at all."""
    divisor = b.masked_fill(b <= 0, 1)
    quotient = torch.div((a >> 1) & ~(-1 << 63), divisor, rounding_mode="trunc") * 2
    quotient = quotient + ~_is_below(a - quotient * divisor, divisor)
    return torch.where(b < 0, (~_is_below(a, b)).to(torch.int64), quotient).masked_fill(b == 0, -1)


def _remainder_of_long(a: Any, b: Any) -> Any:
    return (a - _quotient_of_long(a, b) * b).masked_fill(b == 0, -1)


_OF_INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "DIVIDE": _quotient,
    "MODULUS_TRUNCATE": _remainder,
    "MAX": torch.maximum,
    "MIN": torch.minimum,
}
_OF_LONG: dict[str, Callable[[Any, Any], Any]] = {
    "DIVIDE": _quotient_of_long,
    "MODULUS_TRUNCATE": _remainder_of_long,
    "MAX": lambda a, b: flipped(torch.maximum(flipped(a), flipped(b))),
    "MIN": lambda a, b: flipped(torch.minimum(flipped(a), flipped(b))),
}
"""Of UINT64."""


def _integer_power(x: Any, e: Any, turns: int) -> Any:
    """By squaring, with as many turns as the type of e has bits; below 0, where 1 / x^-e truncated is 0 but for 1
    and -1, and of 0 all bits are 1."""
    power, square, rest = torch.ones_like(x), x, e.abs()
    for turn in range(turns):
        power = torch.where((rest >> turn) & 1 != 0, power * square, power)
        square = square * square
    inverse = torch.where(x.abs() == 1, power, 0).masked_fill(x == 0, -1)
    return torch.where(e < 0, inverse, power)
