"""Scales, zero points and the types of quantised results, as functions take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._apply import leading
from ._arguments import as_axis, as_dtype, as_parameter
from ._operand_adapter import OperandAdapter, Shape, are_arrays


def is_untyped(value: Any) -> bool:
    """Whether it is a number, or a list of numbers, which have no type that anybody chose."""
    return value is None or (isinstance(value, (int, float, list, tuple)) and not isinstance(value, np.generic))


def quantised_dtype(
    side: OperandAdapter, name: str, given: Any, out: Any, where: str, zero_point: Any, usual: np.dtype[Any]
) -> np.dtype[Any]:
    """The type of quantised results."""
    if given is not None:
        return as_dtype(name, "output_dtype", given, "int8 or uint8")
    if out is not None:
        return side.memory.import_array(name, "out", out).dtype
    typed = usual if is_untyped(zero_point) else side.look(where, zero_point).dtype
    return typed if typed.itemsize == 1 else usual


def quantisation_parameter(side: OperandAdapter, name: str, where: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """A scale or a zero point in its type; an expression as it is."""
    if (value is None and where.endswith("zero_point")) or not are_arrays([value]):
        return value
    return side.memory.to_device(as_parameter(side.memory, name, where, value, dtype))


def along(
    side: OperandAdapter, name: str, where: str, value: Any, dtype: np.dtype[Any], shape: Shape, axis: int
) -> Any:
    """A parameter, where it has one dimension along an axis of a shape."""
    parameter = quantisation_parameter(side, name, where, value, dtype)
    if parameter is None:
        return None
    wanted = shape_along(name, tuple(parameter.shape), shape, axis)
    return parameter if wanted == tuple(parameter.shape) else parameter.reshape(wanted)


def shape_along(name: str, own: Shape, shape: Shape, axis: int) -> Shape:
    """That of a parameter of one dimension along an axis of a shape; its own where it is one number, or of more."""
    if len(own) != 1 or own == (1,) or len(shape) < 2:
        return own
    number = as_axis(name, axis, len(shape))
    return (1,) * number + own + (1,) * (len(shape) - number - 1)


def vector_parameter(side: OperandAdapter, name: str, where: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """Likewise, of one dimension or more: a number would take the type of the first operand."""
    found = quantisation_parameter(side, name, where, value, dtype)
    return found.reshape(1) if are_arrays([found]) and found is not None and found.ndim == 0 else found


def laid_along(shape: Shape, axis: int, rank: int) -> Shape:
    """The shape of a scale or a zero point among tensors of `rank` dimensions: of one dimension along an axis, counted
    from the last; of fewer dimensions, those that are missing lead."""
    if len(shape) == 1 <= -axis <= rank:
        return (*(1,) * (rank + axis), *shape, *(1,) * (-axis - 1))
    return leading(shape, rank)
