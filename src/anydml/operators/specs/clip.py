"""Limits to an interval, f(x), and their gradients; where there is a ScaleBias f(g(x)), g(x) = x * Scale + Bias.

Decisions where the pages are silent: floats are computed in the next wider type, and rounded once; integers that have a
ScaleBias are computed in double precision, truncated and saturated. An end that is NaN limits nothing. The ends of
integers are those of the integers in the interval that the type has, for the gradients too, which are 0 at the ends
themselves. The gradient passes where an element is NaN, as no comparison of the page's formula holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.enums import TensorDataType
from ...core.strided_layout import DTYPES, Array
from ..constraints import is_held, type_of_output
from ..pointwise import Constants, Pointwise, in_wider_type
from ..schema import ConstraintFailure


def limits(data_type: TensorDataType, low: float, high: float) -> tuple[float, float]:
    """The ends of an interval as values of a type; NaN, which limits nothing, as the type's own."""
    dtype = DTYPES[data_type]
    if dtype.kind == "f":
        return low, high
    limits = np.iinfo(dtype)
    ends = [limits.min if math.isnan(low) else low, limits.max if math.isnan(high) else high]
    whole = [max(limits.min, min(end, limits.max)) for end in ends]
    return math.ceil(whole[0]), math.floor(whole[1])


def _clip(desc: Any, x: Array) -> Any:
    """min(Max, max(Min, x)), of integers with the lowest and the highest between Min and Max."""
    # Fused into another operator, whose results are floats, it has no tensors.
    data_type = TensorDataType.FLOAT32 if desc.OutputTensor is None else desc.OutputTensor.DataType
    low, high = limits(data_type, desc.Min, desc.Max)
    return np.fmin(_of(x, high), np.fmax(_of(x, low), x))


def _clip_code(desc: Any, data_type: TensorDataType) -> Constants:
    return "CLIP", limits(data_type, desc.Min, desc.Max)


def _threshold(desc: Any, x: Array) -> Any:
    low, _ = limits(desc.OutputTensor.DataType, desc.Min, math.inf)
    return np.fmax(x, _of(x, low))


def _threshold_code(desc: Any, data_type: TensorDataType) -> Constants:
    return "CLIP", limits(data_type, desc.Min, math.inf)


def _clip1(desc: Any, x: Array) -> Any:
    low, high = limits(desc.OutputTensor.DataType, desc.Min, desc.Max)
    return np.fmax(_of(x, low), np.fmin(x, _of(x, high)))


def _clip1_code(desc: Any, data_type: TensorDataType) -> Constants:
    low, high = limits(data_type, desc.Min, desc.Max)
    # Scaled integers are doubles, which may be NaN.
    is_float = DTYPES[data_type].kind == "f" or desc.ScaleBias is not None
    return ("CLIP_FROM_ABOVE", (low, high)) if is_float else ("CLIP", (low, max(low, high)))


def _check_clip1(desc: Any) -> Iterator[ConstraintFailure]:
    yield from type_of_output(desc, "(C3)", "MinMaxDataType")
    for name in ("Min", "Max"):
        yield from is_held(desc, "(C4)", name, desc.MinMaxDataType)


def _clip_grad(desc: Any, x: Array, gradient: Array) -> Array:
    low, high = limits(desc.InputTensor.DataType, desc.Min, desc.Max)
    return np.where((x <= _of(x, low)) | (x >= _of(x, high)), gradient.dtype.type(0), gradient)


def _clip_grad_code(desc: Any, data_type: TensorDataType) -> Constants:
    return "CLIP_GRAD", limits(data_type, desc.Min, desc.Max)


def _check_clip_grad1(desc: Any) -> Iterator[ConstraintFailure]:
    yield from type_of_output(desc, "(C3)", "MinMaxDataType", "OutputGradientTensor")
    for name in ("Min", "Max"):
        yield from is_held(desc, "(C4)", name, desc.MinMaxDataType)


def _of(x: Array, value: float) -> Any:
    """A value in the type that x is computed in."""
    return x.dtype.type(value)


_SUPPORT = """
    5.0 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    2.1 | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    1.0 | 4      | FLOAT32, FLOAT16
"""

ELEMENT_WISE_CLIP = Pointwise(
    summary=(
        "Limits each element to an interval: f(x) = min(Max, max(Min, x)). Integers are limited to those in "
        "the interval. A NaN becomes Min, or Max where that is below Min."
    ),
    members={
        "Min": "the lower end.",
        "Max": "the upper end; where it is below Min, every result.",
    },
    scale_bias=True,
    reference=in_wider_type(_clip),
    native=_clip_code,
    example={"Min": -1, "Max": 0.75},
    support=_SUPPORT,
)

ELEMENT_WISE_THRESHOLD = Pointwise(
    summary="Raises each element to a lower end: f(x) = max(x, Min), and so a NaN.",
    members={
        "Min": "the lower end; of integers the lowest that is not below it.",
    },
    scale_bias=True,
    reference=in_wider_type(_threshold),
    native=_threshold_code,
    example={"Min": 0},
    doctest="""
        >>> threshold([1.0, 3.0], 2)
        array([2., 3.], dtype=float32)
    """,
    support="""
        3.0 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        2.1 | 4      | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
        1.0 | 4      | FLOAT32, FLOAT16
    """,
)

ELEMENT_WISE_CLIP_GRAD = Pointwise(
    summary="The gradients of CLIP: 0 for each element x where x <= Min or x >= Max, else the incoming gradient.",
    inputs=("InputTensor", "InputGradientTensor"),
    output="OutputGradientTensor",
    members={
        "Min": "the lower end.",
        "Max": "the upper end.",
    },
    reference=in_wider_type(_clip_grad),
    native=_clip_grad_code,
    example={"Min": -1, "Max": 5},
    support="""
        5.0 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
        3.1 | 1 to 8 | FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8
    """,
)

ELEMENT_WISE_CLIP1 = Pointwise(
    summary=(
        "Limits each element to an interval of its own type: f(x) = max(Min, min(x, Max)). A NaN becomes Max, "
        "or Min where that is above Max."
    ),
    members={
        "MinMaxDataType": "enums.TensorDataType | the type of Min and Max.",
        "Min": "SCALAR | the lower end; where it is above Max, every result.",
        "Max": "SCALAR | the upper end.",
    },
    scale_bias=True,
    constraints={
        "(C3)": "MinMaxDataType is the DataType of OutputTensor.",
        "(C4)": "Min and Max are values of MinMaxDataType: integers that it holds, or numbers in the range of its floats.",
    },
    check=_check_clip1,
    reference=in_wider_type(_clip1),
    native=_clip1_code,
    example={"MinMaxDataType": TensorDataType.FLOAT32, "Min": -1, "Max": 0.75},
    support="""
        5.0 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    """,
)

ELEMENT_WISE_CLIP_GRAD1 = Pointwise(
    summary="The gradients of CLIP1: 0 for each element x where x <= Min or x >= Max, else the incoming gradient.",
    inputs=("InputTensor", "InputGradientTensor"),
    output="OutputGradientTensor",
    members={
        "MinMaxDataType": "enums.TensorDataType | the type of Min and Max.",
        "Min": "SCALAR | the lower end.",
        "Max": "SCALAR | the upper end.",
    },
    constraints={
        "(C3)": "MinMaxDataType is the DataType of OutputGradientTensor.",
        "(C4)": "Min and Max are values of MinMaxDataType: integers that it holds, or numbers in the range of its floats.",
    },
    check=_check_clip_grad1,
    reference=in_wider_type(_clip_grad),
    native=_clip_grad_code,
    example={"MinMaxDataType": TensorDataType.FLOAT32, "Min": -1, "Max": 5},
    support="""
        5.0 | 1 to 8 | FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8
    """,
)
