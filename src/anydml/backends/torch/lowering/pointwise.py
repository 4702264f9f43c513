"""Pointwise operators, by the PyTorch functions that their rows name; and activations fused into other operators.

What PyTorch computes in the elements' own type and rounds right, it writes where it belongs; the rest is computed in
double precision, and integers in 64 bits. Bits are those of integers, and truth values PyTorch's own, until they are
stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ....core.enums import TensorDataType
from ....core.strided_layout import DTYPES, Layout
from ....operators import spec_of
from ....operators.pointwise import Pointwise
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.clip import limits
from . import Run, Tensors
from .values import bits, clipped, double, flipped, modular, ordered, store, widened

_CLIPS = ("ELEMENT_WISE_CLIP", "ELEMENT_WISE_CLIP1", "ELEMENT_WISE_THRESHOLD")
_CLIP_GRADS = ("ELEMENT_WISE_CLIP_GRAD", "ELEMENT_WISE_CLIP_GRAD1")

_RUNS: dict[str, Run] = {
    "ACTIVATION_RELU": lambda read, written: torch.clamp(read[0], min=0, out=written[0]),
    # x * slope is rounded once in the elements' own type, too.
    "ACTIVATION_PARAMETERIZED_RELU": lambda read, written: written[0].copy_(
        torch.where(read[0] >= 0, read[0], read[1] * read[0])
    ),
    "ACTIVATION_RELU_GRAD": lambda read, written: written[0].copy_(torch.where(read[0] > 0, read[1], 0)),
}
"""What writes to its output itself."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run:
    if spec.name in _RUNS:
        return _RUNS[spec.name]
    layout, row = outputs[0], spec.pointwise
    assert layout is not None
    if spec.name in _CLIP_GRADS:
        return _clip_grad(desc, layout.type)
    if getattr(desc, "ScaleBias", None) is None and getattr(desc, "FusedActivation", None) is None:
        if row.native == "COPY":
            return lambda read, written: bits(written[0]).copy_(bits(read[0]))
        if row.torch_in_own_type == "all" or (row.torch_in_own_type == "floats" and layout.dtype.kind == "f"):
            exact = getattr(torch, row.torch)
            return lambda read, written: exact(*map(modular, read), out=modular(written[0]))
        if spec.name == "ELEMENT_WISE_SIGN":
            if layout.dtype.kind == "u":
                return lambda read, written: store(bits(read[0]) != 0, bits(written[0]))
            return lambda read, written: torch.sign(read[0], out=written[0])
    if row.torch_takes == "bits":
        of_bits = _call_of(row, desc)
        return lambda read, written: store(of_bits(*map(bits, read)), bits(written[0]))
    function = _function(spec.name, row, desc, layout)

    def run(read: Tensors, written: Tensors) -> None:
        store(function(*read), written[0])

    return run


def _clip_grad(desc: Any, data_type: TensorDataType) -> Run:
    """Copies the bits of a gradient that passes."""
    low, high = limits(data_type, desc.Min, desc.Max)
    is_long = data_type == TensorDataType.UINT64
    low, high = (int(end) - (1 << 63) for end in (low, high)) if is_long else (low, high)

    def run(read: Tensors, written: Tensors) -> None:
        x, gradient = read
        x = double(x) if x.is_floating_point() else flipped(widened(x)) if is_long else widened(x)
        bits(written[0]).copy_(bits(gradient).masked_fill((x <= low) | (x >= high), 0))

    return run


def _call_of(row: Pointwise, desc: Any) -> Callable[..., Any]:
    """What PyTorch computes by a row."""
    function = row.torch
    assert function is not None
    if isinstance(function, str):
        named: Callable[..., Any] = getattr(torch, function)
        return named
    return lambda *operands: function(torch, desc, *operands)


def _function(name: str, row: Pointwise, desc: Any, layout: Layout) -> Callable[..., Any]:
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
    if name == "ELEMENT_WISE_POW":
        exponents = DTYPES[desc.ExponentTensor.DataType]
        if not is_float and exponents.kind != "f" and scale_bias is None:
            return lambda x, e: _integer_power(widened(x), widened(e), 8 * exponents.itemsize)
    of_integers = (_OF_LONG if is_long else _OF_INTEGERS).get(name)
    if of_integers is not None and not is_float:
        return lambda a, b: of_integers(widened(a), widened(b))
    call, activation = _call_of(row, desc), fused(getattr(desc, "FusedActivation", None))
    if row.torch_takes == "order":
        return lambda *operands: call(*map(ordered, operands))

    def others_of(operands: Sequence[Any]) -> list[Any]:
        return [None if each is None else double(each) for each in operands]

    return lambda x, *others: activation(call(scaled(x), *others_of(others)))


def fused(desc: OperatorDesc | None) -> Callable[[Any], Any]:
    """An activation of what another operator has computed, to be stored."""
    spec = spec_of(desc)
    if desc is None or spec is None:
        return lambda y: y
    if spec.name in _CLIPS:
        return clipped(desc, TensorDataType.FLOAT32)
    row = spec.pointwise
    if row is None:
        from .softmax import function_of

        return function_of(spec, desc)
    call = _call_of(row, desc)
    return call if row.torch_in_own_type == "all" else lambda y: call(double(y))


def finish(desc: OperatorDesc | None) -> Callable[[Any, Any], None]:
    """Writes what another operator has computed, after an activation."""
    spec, activation = spec_of(desc), fused(desc)

    def write(y: Any, out: Any) -> None:
        if spec is not None and spec.name == "ACTIVATION_RELU" and y.dtype == out.dtype:
            torch.clamp(y, min=0, out=out)  # in one pass
        else:
            store(activation(y), out)

    return write


# Integers of 64 bits, which hold those of 32


def _quotient(a: Any, b: Any) -> Any:
    """Truncated. Neither 0 nor -1 is divided by, as processors trap where there is no quotient."""
    is_zero, is_minus_1 = b == 0, b == -1
    quotient = torch.div(a, b.masked_fill(is_zero | is_minus_1, 1), rounding_mode="trunc")
    return torch.where(is_minus_1, -a, quotient).masked_fill(is_zero, -1)


def _remainder(a: Any, b: Any) -> Any:
    is_zero = b == 0
    return torch.fmod(a, b.masked_fill(is_zero | (b == -1), 1)).masked_fill(is_zero, -1)


def _floored_remainder(a: Any, b: Any) -> Any:
    is_zero = b == 0
    return torch.remainder(a, b.masked_fill(is_zero | (b == -1), 1)).masked_fill(is_zero, -1)


def _difference_square(a: Any, b: Any) -> Any:
    return (a - b) * (a - b)


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
    "ELEMENT_WISE_DIVIDE": _quotient,
    "ELEMENT_WISE_MODULUS_TRUNCATE": _remainder,
    "ELEMENT_WISE_MODULUS_FLOOR": _floored_remainder,
    "ELEMENT_WISE_DIFFERENCE_SQUARE": _difference_square,
    "ELEMENT_WISE_MAX": torch.maximum,
    "ELEMENT_WISE_MIN": torch.minimum,
}
_OF_LONG: dict[str, Callable[[Any, Any], Any]] = {
    "ELEMENT_WISE_DIVIDE": _quotient_of_long,
    "ELEMENT_WISE_MODULUS_TRUNCATE": _remainder_of_long,
    "ELEMENT_WISE_MODULUS_FLOOR": _remainder_of_long,
    "ELEMENT_WISE_MAX": lambda a, b: flipped(torch.maximum(flipped(a), flipped(b))),
    "ELEMENT_WISE_MIN": lambda a, b: flipped(torch.minimum(flipped(a), flipped(b))),
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
