"""Expressions of a graph that is being built, what they are bound to, and what operators take and give."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

import anydml
from anydml import OperatorType
from anydml.core.errors import kind_of, listing
from anydml.core.strided_layout import DTYPES, Array, Layout
from anydml.frontends.directmlx import Expression as Built
from anydml.operators import spec
from anydml.operators.fused_activation import FUSIBLE
from anydml.operators.schema import FUSED

from ._tensors import TensorDesc, wrong


def own(value: Any) -> Any:
    """An expression as anydml has it; a number as it is."""
    return built_of("", "", value) if isinstance(value, Expression) else value


def built_of(function: str, where: str, value: Any) -> Built:
    if isinstance(value, Expression) and value._built is not None:
        return value._built
    raise wrong(
        function,
        "an Expression of nothing" if isinstance(value, Expression) else kind_of(value),
        "an Expression",
        where,
    )


class Expression:
    """A tensor of a graph that is being built. ``+ - * / %`` take another one, a number or an array, a constant."""

    # NumPy leaves an operator with a number or an array of its own to this class.
    __array_ufunc__ = None

    def __init__(self, built: Built | None = None) -> None:
        self._built = built

    def get_output_desc(self) -> TensorDesc:
        return TensorDesc._of(built_of("get_output_desc", "self", self).tensor)

    def __add__(self, other: Expression | float) -> Expression:
        return Expression(own(self) + own(other))

    def __sub__(self, other: Expression | float) -> Expression:
        return Expression(own(self) - own(other))

    def __mul__(self, other: Expression | float) -> Expression:
        return Expression(own(self) * own(other))

    def __truediv__(self, other: Expression | float) -> Expression:
        return Expression(own(self) / own(other))

    def __mod__(self, other: Expression | float) -> Expression:
        # DirectMLX's, which is C's; that of anydml's expressions is Python's.
        return Expression(anydml.modulus_truncate(own(self), own(other)))

    def __radd__(self, other: float) -> Expression:
        return Expression(other + own(self))

    def __rsub__(self, other: float) -> Expression:
        return Expression(other - own(self))

    def __rmul__(self, other: float) -> Expression:
        return Expression(other * own(self))

    def __rtruediv__(self, other: float) -> Expression:
        return Expression(other / own(self))

    def __neg__(self) -> Expression:
        return Expression(-own(self))


class Binding:
    """An input's expression with its data, which are copied."""

    def __init__(self, expr: Expression, data: Any) -> None:
        self._expr = built_of("Binding", "expr", expr)
        data_type = self._expr.tensor.DataType
        if data_type not in DTYPES:
            raise wrong("Binding", f"an expression of {data_type.name}", "one of elements of whole bytes", "expr")
        dtype = DTYPES[data_type]
        self._data: Array = np.array(data, dtype, order="C").reshape(-1)
        layout = Layout.of_desc(self._expr.tensor)
        # As the desc has it, where that can be, it is bound at a glance.
        is_enough = layout.bounds()[1] <= self._data.nbytes
        self._shaped: Array = layout.view(self._data.view(np.uint8)) if is_enough else self._data


class TensorData:
    """A result: ``numpy.array(x)`` reads it."""

    def __init__(self, array: Any) -> None:
        self._array = np.asarray(array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._array, dtype=dtype, copy=copy)


class OutputOptions(IntEnum):
    """Which outputs gru() gives."""

    Both = 0
    Sequence = 1
    Single = 2


class Size2D:
    """A size in two dimensions."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height


class FusedActivation:
    """An activation that an operator applies to its result.

    Args:
        activation: its operator; INVALID for none.
        param_1: Alpha; SHRINK's Bias, SOFTPLUS's Steepness.
        param_2: Beta; SCALED_ELU's Gamma, SHRINK's Threshold.
    """

    def __init__(
        self, activation: OperatorType = OperatorType.INVALID, param_1: float = 0.0, param_2: float = 0.0
    ) -> None:
        self.activation = activation
        self.param_1 = param_1
        self.param_2 = param_2

    def _desc(self) -> Any:
        if self.activation == OperatorType.INVALID:
            return None
        name = self.activation.name if isinstance(self.activation, OperatorType) else ""
        if name not in FUSIBLE:
            raise wrong(
                "FusedActivation", kind_of(self.activation), listing(f"OperatorType.{each}" for each in FUSIBLE)
            )
        found = spec(name)
        numbers = [member for member in found.members if member not in found.tensors]
        values = dict(zip(numbers, (self.param_1, self.param_2), strict=False))
        return found.desc(**dict.fromkeys(found.tensors, FUSED), **values)


class MaxPoolingOutputs:
    """What max_pooling() gives."""

    def __init__(self, values: Expression, indices: Expression) -> None:
        self.values = values
        self.indices = indices


class GRUOutputs:
    """What gru() gives."""

    def __init__(self, sequence: Expression, single: Expression) -> None:
        self.sequence = sequence
        self.single = single
