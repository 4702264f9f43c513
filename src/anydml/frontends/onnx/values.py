"""What is known of a value while a model is traced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from ...core.packed_array import FOUR_BITS, four_bits_of
from ...core.strided_layout import DATA_TYPES
from ..directmlx import Expression

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """An array that a run holds: fed, or computed by an earlier piece. Its type and shape are known.

    Attributes:
        key: what the run calls it.
    """

    key: str
    shape: Shape
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Traced:
    """An expression of the graph that is being built.

    Attributes:
        expression: of the same shape, but (1,) for an array of 0 dimensions.
        shape: ONNX's.
    """

    expression: Expression
    shape: Shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return dtype_of(self.expression)


@dataclass(frozen=True, slots=True)
class Counted:
    """A result whose size along an axis is a value that has to be computed first; what lies behind is undefined.

    Attributes:
        expression: as large as it may get.
        count: an expression of one element.
        axis: of `expression`.
    """

    expression: Expression
    count: Expression
    axis: int


Value: TypeAlias = Any
"""A Held, a Traced, an array that is known on the host, a list of these for a sequence, None for an empty optional."""


def dtype_of(x: Expression) -> np.dtype[Any]:
    """NumPy's data type of an expression; of 4 bits ml_dtypes', as onnx has them."""
    data_type = x.tensor.DataType
    return np.dtype(getattr(ml_dtypes, data_type.name.lower())) if data_type in FOUR_BITS else x.dtype


def is_held_by_directml(dtype: np.dtype[Any]) -> bool:
    """Whether DirectML has tensors of a data type; truth values are UINT8."""
    return dtype in DATA_TYPES or dtype == np.bool_ or four_bits_of(dtype) is not None


def shape_of(value: Any) -> Shape:
    """Of a Held, a Traced or an array."""
    return tuple(value.shape)


def leaves(value: Value) -> list[Value]:
    """The arrays that a value is made of."""
    if isinstance(value, list):
        return [leaf for each in value for leaf in leaves(each)]
    return [] if value is None else [value]
