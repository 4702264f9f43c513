"""What is known of a value while a model is traced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

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
        return self.expression.dtype


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


def shape_of(value: Any) -> Shape:
    """Of a Held, a Traced or an array."""
    return tuple(value.shape)


def leaves(value: Value) -> list[Value]:
    """The arrays that a value is made of."""
    if isinstance(value, list):
        return [leaf for each in value for leaf in leaves(each)]
    return [] if value is None else [value]
