"""Operators that are no computation in double precision on a GPU, nor one of 64 bits: of one operand by functions of
singles and of halves, and quotients of integers by those of integers of up to 32 bits; and remainders of floats, by
quotients in double precision.

A line has an operator's function, and the constants for which it is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign, frexp, isfinite
from typing import Any

import torch

from ....core.tensor_desc import single
from ....operators.schema import OperatorDesc
from ...torch.tensors import TYPES

_LIBRARY = torch.library.Library("anydml", "FRAGMENT")
_LIBRARY.define("narrow(Tensor x, str function, float[] constants) -> Tensor")
_LIBRARY.impl("narrow", lambda x, function, constants: torch.empty_like(x), "Meta")
_LIBRARY.define("narrow_pair(Tensor a, Tensor b, str function) -> Tensor")
_LIBRARY.impl("narrow_pair", lambda a, b, function: torch.empty_like(a), "Meta")
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
    "ELEMENT_WISE_CONSTANT_POW": (
        "constant_power",
        lambda desc, dtype: (desc.Exponent,) if isfinite(desc.Exponent) else None,
    ),
}
_WITH_CONSTANTS: dict[str, tuple[str, Callable[[Any], tuple[float, ...]]]] = {
    "ACTIVATION_CELU": ("constant_elu", lambda desc: (1 / desc.Alpha, desc.Alpha, 1)),
    "ACTIVATION_ELU": ("constant_elu", lambda desc: (1, desc.Alpha, 1)),
    "ACTIVATION_PARAMETRIC_SOFTPLUS": ("constant_softplus", lambda desc: (desc.Alpha, desc.Beta)),
    "ACTIVATION_SCALED_ELU": ("constant_elu", lambda desc: (1, desc.Alpha * desc.Gamma, desc.Gamma)),
    "ACTIVATION_SCALED_TANH": (
        "constant_tanh",
        lambda desc: (copysign(desc.Alpha, desc.Alpha * desc.Beta), abs(desc.Beta)),
    ),
    "ACTIVATION_SOFTPLUS": ("constant_softplus", lambda desc: (1 / desc.Steepness, desc.Steepness)),
}
"""Functions in double precision of constants for which the former are not right, of usual sizes."""
_USUAL = 2.0**-60, 2.0**60
_PREFIXES = {_HALF: "half", _SINGLE: "single"}
# The exponential of singles takes no longer than memory in double precision.
_LEFT_OUT = {"single_exp"}
_OF_INTEGERS = {
    "ELEMENT_WISE_DIVIDE": "integer_quotient",
    "ELEMENT_WISE_MODULUS_TRUNCATE": "integer_remainder",
    "ELEMENT_WISE_MODULUS_FLOOR": "integer_floored_remainder",
}
_OF_FLOATS = {
    "ELEMENT_WISE_MODULUS_FLOOR": "floored_remainder",
    "ELEMENT_WISE_MODULUS_TRUNCATE": "remainder",
    "ELEMENT_WISE_POW": "power",
}
_INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32)
CALLED = {f"{prefix}_{name}" for prefix in _PREFIXES.values() for name, _ in _FUNCTIONS.values()} - _LEFT_OUT
CALLED |= {f"{prefix}_{name}" for prefix in _PREFIXES.values() for name, _ in _WITH_CONSTANTS.values()}
CALLED |= {*_OF_INTEGERS.values()} | {
    f"{prefix}_{name}" for prefix in _PREFIXES.values() for name in _OF_FLOATS.values()
}


def _usual(constants_of: Callable[[Any], tuple[float, ...]], desc: Any) -> _Constants:
    try:
        constants = constants_of(desc)
    except ZeroDivisionError:
        return None
    return constants if all(_USUAL[0] < abs(each) < _USUAL[1] for each in constants) else None


def call_of(name: str, desc: OperatorDesc, dtype: torch.dtype) -> Callable[[Sequence[Any], Sequence[Any]], None] | None:
    """A call for the tracer, of tensors of a type; None where no function is right."""
    pairs = _OF_INTEGERS if dtype in _INTEGERS else _OF_FLOATS if dtype in _PREFIXES else {}
    is_scaled = getattr(desc, "ScaleBias", None) is not None
    exponents = getattr(desc, "ExponentTensor", None)
    are_alike = exponents is None or TYPES[exponents.DataType] == dtype
    if name in pairs and are_alike and not is_scaled:
        function = pairs[name] if dtype in _INTEGERS else f"{_PREFIXES[dtype]}_{pairs[name]}"
        return lambda read, written: written[0].copy_(torch.ops.anydml.narrow_pair(*read, function))
    if name not in _FUNCTIONS or is_scaled:
        return None
    function = f"{_PREFIXES.get(dtype)}_{_FUNCTIONS[name][0]}"
    constants = _FUNCTIONS[name][1](desc, dtype) if function in CALLED else None
    if constants is None and name in _WITH_CONSTANTS and dtype in _PREFIXES:
        function = f"{_PREFIXES[dtype]}_{_WITH_CONSTANTS[name][0]}"
        constants = _usual(_WITH_CONSTANTS[name][1], desc)
    if constants is None:
        return None
    given = list(constants)

    def run(read: Sequence[Any], written: Sequence[Any]) -> None:
        written[0].copy_(torch.ops.anydml.narrow(read[0], function, given))

    return run
