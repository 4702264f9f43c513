"""Operators that are no computation in double precision on a GPU, nor one of 64 bits: of one operand by functions of
singles and of halves, and quotients of integers by those of integers of up to 32 bits.

A line has an operator's function, and the constants for which it is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import frexp
from typing import Any

import torch

from ....core.tensor_desc import single
from ....operators.schema import OperatorDesc

_LIBRARY = torch.library.Library("anydml", "FRAGMENT")
_LIBRARY.define("narrow(Tensor x, str function, float[] constants) -> Tensor")
_LIBRARY.impl("narrow", lambda x, function, constants: torch.empty_like(x), "Meta")
_LIBRARY.define("narrow_integer(Tensor a, Tensor b, str function) -> Tensor")
_LIBRARY.impl("narrow_integer", lambda a, b, function: torch.empty_like(a), "Meta")
"""Calls for the tracer alone, which knows what they compute."""

_HALF, _SINGLE = torch.float16, torch.float32
_Constants = tuple[float, ...] | None
"""Of a function; None where it is not right."""
_ConstantsOf = Callable[[Any, torch.dtype], _Constants]


def _always(desc: Any, dtype: torch.dtype) -> _Constants:
    return ()


def _if_1(*members: str) -> _ConstantsOf:
    return lambda desc, dtype: () if all(getattr(desc, member) == 1 for member in members) else None


def _elu(below: float, above: float, dtype: torch.dtype) -> _Constants:
    """What e^x - 1 is multiplied by, as a single and what is left, and what is beyond 0."""
    high = single(below)
    if dtype == _HALF:
        return () if below == above == 1 else None
    # What is left of one that is next to the least numbers is none of them, and of infinity there is none.
    return (high, below - high, above) if 2**-60 < abs(below) < 2**60 and abs(above) < 2**60 else None


def _scaled_elu(desc: Any, dtype: torch.dtype) -> _Constants:
    if dtype == _HALF:
        return () if (desc.Alpha, desc.Gamma) == (single(1.6732), single(1.0507)) else None
    return _elu(desc.Alpha * desc.Gamma, desc.Gamma, dtype)


def _tanh(desc: Any, dtype: torch.dtype) -> _Constants:
    if dtype == _HALF:
        return () if (desc.Alpha, desc.Beta) == (1, 0.5) else None
    # A product with a power of 2 is exact.
    return (desc.Beta,) if desc.Alpha == 1 and frexp(desc.Beta)[0] == 0.5 else None


_OF_ONE = (
    *("ACOS", "ACOSH", "ASIN", "ASINH", "ATAN", "ATANH", "COS", "COSH", "SIN", "SINH", "TAN", "TANH"),
    *("ERF", "EXP", "LOG", "SQRT"),
)
_FUNCTIONS: dict[str, tuple[str, _ConstantsOf]] = {
    "ACTIVATION_CELU": ("elu", lambda desc, dtype: _elu(1, 1, dtype) if desc.Alpha == 1 else None),
    "ACTIVATION_ELU": ("elu", lambda desc, dtype: _elu(desc.Alpha, 1, dtype)),
    "ACTIVATION_GELU": ("gelu", _always),
    "ACTIVATION_PARAMETRIC_SOFTPLUS": ("softplus", _if_1("Alpha", "Beta")),
    "ACTIVATION_SCALED_ELU": ("scaled_elu", _scaled_elu),
    "ACTIVATION_SCALED_TANH": ("scaled_tanh", _tanh),
    "ACTIVATION_SIGMOID": ("sigmoid", _always),
    "ACTIVATION_SOFTPLUS": ("softplus", _if_1("Steepness")),
    "ACTIVATION_SOFTSIGN": ("softsign", _always),
    "ACTIVATION_SWISH": ("swish", _if_1("SigmoidInputScale")),
    "ACTIVATION_TANH": ("tanh", _always),
    **{f"ELEMENT_WISE_{name}": (name.lower(), _always) for name in _OF_ONE},
}
_PREFIXES = {_HALF: "half", _SINGLE: "single"}
# The exponential of singles takes no longer than memory in double precision.
_LEFT_OUT = {"single_exp"}
_OF_INTEGERS = {
    "ELEMENT_WISE_DIVIDE": "integer_quotient",
    "ELEMENT_WISE_MODULUS_TRUNCATE": "integer_remainder",
    "ELEMENT_WISE_MODULUS_FLOOR": "integer_floored_remainder",
}
_INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32)
CALLED = {f"{prefix}_{name}" for prefix in _PREFIXES.values() for name, _ in _FUNCTIONS.values()} - _LEFT_OUT
CALLED |= {*_OF_INTEGERS.values()}


def call_of(name: str, desc: OperatorDesc, dtype: torch.dtype) -> Callable[[Sequence[Any], Sequence[Any]], None] | None:
    """A call for the tracer, of tensors of a type; None where no function is right."""
    if dtype in _INTEGERS and name in _OF_INTEGERS:
        return lambda read, written: written[0].copy_(torch.ops.anydml.narrow_integer(*read, _OF_INTEGERS[name]))
    if name not in _FUNCTIONS or getattr(desc, "ScaleBias", None) is not None:
        return None
    function = f"{_PREFIXES.get(dtype)}_{_FUNCTIONS[name][0]}"
    constants = _FUNCTIONS[name][1](desc, dtype) if function in CALLED else None
    if constants is None:
        return None
    given = list(constants)

    def run(read: Sequence[Any], written: Sequence[Any]) -> None:
        written[0].copy_(torch.ops.anydml.narrow(read[0], function, given))

    return run
