"""What a member of a desc may be, by its annotation: (F1) to (F4) and (F8) to (F11) of ``validate.py``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf

from ..core import enums
from ..core.errors import listing
from ..core.tensor_desc import (
    DML_BUFFER_TENSOR_DESC,
    DML_SCALE_BIAS,
    DML_SIZE_2D,
    SINGLE_END,
)
from .fused_activation import FUSIBLE
from .registry import spec_of

UINT_MAX = 2**32 - 1


def is_uint(value: object) -> bool:
    return type(value) is int and 0 <= value <= UINT_MAX


def _is_int(value: object) -> bool:
    return type(value) is int and -(2**31) <= value < 2**31


def _is_number(value: object) -> bool:
    # An integer of more bits might be no float.
    return type(value) is float or (type(value) is int and value.bit_length() <= 64)


def _is_float(value: object) -> bool:
    # The desc has rounded all but what single precision does not hold.
    return type(value) is float and not SINGLE_END <= abs(value) < inf


def _is_scale_bias(value: object) -> bool:
    return isinstance(value, DML_SCALE_BIAS) and _is_float(value.Scale) and _is_float(value.Bias)


def _is_size(value: object) -> bool:
    return isinstance(value, DML_SIZE_2D) and is_uint(value.Width) and is_uint(value.Height)


def _is_activation(value: object) -> bool:
    spec = spec_of(value)
    return spec is not None and spec.name in FUSIBLE


def is_tensor(value: object) -> bool:
    return isinstance(value, DML_BUFFER_TENSOR_DESC)


_ACTIVATION = "the desc of an activation that may be fused, such as DML_ACTIVATION_RELU_OPERATOR_DESC()"
CHECKS: dict[str, tuple[str, str, Callable[[object], bool]]] = {
    "Tensor": ("(F1)", "a DML_BUFFER_TENSOR_DESC", is_tensor),
    "OptionalTensor": ("(F1)", "a DML_BUFFER_TENSOR_DESC or None", lambda value: value is None or is_tensor(value)),
    "UINT": ("(F2)", "an integer from 0 to 2^32 - 1", is_uint),
    "BOOL": ("(F3)", "True or False", lambda value: isinstance(value, int) and value in (0, 1)),
    "FLOAT": ("(F8)", "a number of single precision", _is_float),
    "SCALAR": ("(F8)", "a real number", _is_number),
    "OptionalScaleBias": (
        "(F9)",
        "a DML_SCALE_BIAS of two numbers, or None",
        lambda value: value is None or _is_scale_bias(value),
    ),
    "INT": ("(F2)", "an integer from -2^31 to 2^31 - 1", _is_int),
    "Size2D": ("(F10)", "a DML_SIZE_2D of two integers from 0 to 2^32 - 1", _is_size),
    "Activation": ("(F11)", _ACTIVATION, _is_activation),
    "OptionalActivation": ("(F11)", f"{_ACTIVATION}, or None", lambda value: value is None or _is_activation(value)),
    # None where what it counts is malformed, which is said already.
    "Count": ("(F2)", "an integer from 0 to 2^32 - 1", lambda value: value is None or is_uint(value)),
}
"""Rule, expectation and check by a member's annotation; any that is not here is the name of an enum."""

ELEMENTS = {"Tensors": "Tensor", "UINTs": "UINT", "INTs": "INT", "FLOATs": "FLOAT", "Activations": "Activation"}
"""What a list is of, by its annotation."""


@cache
def check_of(annotation: str) -> tuple[str, str, Callable[[object], bool]]:
    if annotation in CHECKS:
        return CHECKS[annotation]
    enum = getattr(enums, annotation.rpartition(".")[2])
    expected = listing(f"{enum.__name__}.{name}" for name in enum.__members__)
    return "(F4)", expected, lambda value: isinstance(value, enum)
