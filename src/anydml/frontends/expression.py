"""Expressions: what operators, slices and NumPy's methods make of tensors of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign, inf, prod
from typing import Any

import numpy as np

from ..core.annotations import unquoted
from ..core.errors import kind_of, refuse
from ..core.tensor_desc import DML_SCALE_BIAS, SINGLE_END, is_packed
from ..core.truth_values import is_bool
from ..functions import load
from ..functions._arguments import as_axes
from ..functions._weak_operands import take_all
from ..operators import spec
from .graph_adapter import GraphAdapter
from .graph_tensor import GraphTensor, sizes_of
from .indexing import window_of


@unquoted
class Expression(GraphTensor):
    """A tensor of a graph that is being built: what an operator will give, an input or a constant.

    ``+ - * / // % **`` and ``abs`` are element-wise operators, as functions apply them: operands broadcast, and an
    array is a constant of the graph. With a number ``+ - * /`` are an identity that scales, but for integers with an
    integer. ``%`` is MODULUS_FLOOR, whose remainder has the sign of the right operand, and ``//`` is rounded down, as
    Python's are. ``@`` is GEMM, as NumPy's matmul: the dimensions before the last two broadcast.
    ``x[2:, ::-1, 0, None]`` is NumPy's too, a SLICE or SLICE1.

    ``< <= > >= == !=`` compare elements, and give truth values, of which ``& | ^ ~`` are logical operators; of other
    elements they are those of bits, as ``<< >>`` are. Graphs return truth values as the library's.

    It is hashed, and found in dictionaries, as the very object that it is; it has no truth value.

    Attributes:
        graph: the graph.
        tensor: its desc.
    """

    __iter__ = None
    """Python would ask for elements by number until an IndexError."""

    # NumPy leaves an operator with a number or an array of its own to this class.
    __array_ufunc__ = None

    def __anydml_adapter__(self, name: str, out: Any, device: Any) -> ExpressionAdapter:
        return ExpressionAdapter(name, self.graph, out, device)

    def __repr__(self) -> str:
        return f"<Expression of {self.tensor.DataType.name} {self.shape}>"

    def astype(self, dtype: Any) -> Expression:
        """The elements as values of another type, as :func:`anydml.cast` has them."""
        result: Expression = load("cast")(self, dtype)
        return result

    def reshape(self, *shape: int | Sequence[int]) -> Expression:
        """The elements, in row-major order, under another shape; they are copied where they don't lie so.

        Args:
            shape: integers, or a tuple of them; one of them may be -1, which is then inferred.

        Raises:
            DMLError: (G10).
        """
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        sizes = sizes_of("reshape", "(G10)", given)
        count, known = prod(self.shape), prod(size for size in sizes if size != -1)
        if sizes.count(-1) == 1 and known > 0 and count % known == 0:
            sizes = tuple([count // known if size == -1 else size for size in sizes])
        if not sizes or min(sizes) < 1 or prod(sizes) != count:
            expected = f"sizes of at least 1 whose product is {count}, that of {self.shape}; -1 for one of them at most"
            refuse("reshape", "(G10)", "shape", kind_of(sizes), expected)
        return self._packed().reinterpret(self.tensor.DataType, sizes)

    def transpose(self, *axes: int | Sequence[int] | None) -> Expression:
        """The dimensions in another order, by strides, without a copy; a graph's output is copied.

        Args:
            axes: the dimensions in their new order, integers or a tuple of them, negative ones from the last; reversed
                where there are none.

        Raises:
            DMLError: (A5), (G10).
        """
        given = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))) else axes
        order = as_axes("transpose", given, self.ndim) if given else tuple(range(self.ndim))[::-1]
        if sorted(order) != list(range(self.ndim)):
            expected = f"each of 0 to {self.ndim - 1} once"
            refuse("transpose", "(G10)", "axes", kind_of(given), expected)
        sizes, strides = ([side[axis] for axis in order] for side in (self.shape, self.tensor.strides))
        found = self.reinterpret(self.tensor.DataType, sizes, strides)
        found._is_view = not is_packed(found.tensor.Sizes, found.tensor.strides)
        return found

    @property
    def T(self) -> Expression:
        """The dimensions in the opposite order."""
        return self.transpose()

    def __getitem__(self, index: Any) -> Expression:
        window = window_of(self.shape, index)
        found = self
        if not window.is_whole(self.shape):
            found = load("slice")(self, window.offsets, window.sizes, window.steps)
        return found if found.shape == window.shape else found.reshape(window.shape)

    def __matmul__(self, other: Any) -> Expression:
        return _product(self.graph, self, other)

    def __rmatmul__(self, other: Any) -> Expression:
        return _product(self.graph, other, self)

    def __bool__(self) -> bool:
        remedy = "Computed values are known after a dispatch; `is` tells expressions apart"
        refuse("Expression", "(G10)", "bool()", repr(self), "an array, which has values", remedy, kind="type")

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return _paired("equals", self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return ~_paired("equals", self, other)

    def __lt__(self, other: object) -> Expression:
        return _paired("less_than", self, other)

    def __le__(self, other: object) -> Expression:
        return _paired("less_than_or_equal", self, other)

    def __gt__(self, other: object) -> Expression:
        return _paired("greater_than", self, other)

    def __ge__(self, other: object) -> Expression:
        return _paired("greater_than_or_equal", self, other)

    __hash__ = object.__hash__

    def _packed(self) -> Expression:
        """Itself, or a copy whose elements follow each other without gaps."""
        return self if is_packed(self.tensor.Sizes, self.tensor.strides) else self._unary("identity")

    def __add__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return _paired("add", self, other) if number is None else self._scaled(1, number)

    def __sub__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return _paired("subtract", self, other) if number is None else self._scaled(1, -number)

    def __mul__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return _paired("multiply", self, other) if number is None else self._scaled(number, 0)

    def __truediv__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        inverse = None if number is None else self._scale_of(1 / number if number else copysign(inf, number))
        return _paired("divide", self, other) if inverse is None else self._scaled(inverse, 0)

    def __floordiv__(self, other: Any) -> Expression:
        return _floor_quotient(self.graph, self, other)

    def __rfloordiv__(self, other: Any) -> Expression:
        return _floor_quotient(self.graph, other, self)

    def __and__(self, other: Any) -> Expression:
        return self._of_bits("and", other)

    def __or__(self, other: Any) -> Expression:
        return self._of_bits("or", other)

    def __xor__(self, other: Any) -> Expression:
        return self._of_bits("xor", other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Expression:
        return self._unary("logical_not" if self._is_truth else "bit_not")

    def __lshift__(self, other: Any) -> Expression:
        return _paired("bit_shift_left", self, other)

    def __rlshift__(self, other: Any) -> Expression:
        return _paired("bit_shift_left", other, self)

    def __rshift__(self, other: Any) -> Expression:
        return _paired("bit_shift_right", self, other)

    def __rrshift__(self, other: Any) -> Expression:
        return _paired("bit_shift_right", other, self)

    def __mod__(self, other: Any) -> Expression:
        return _paired("modulus_floor", self, other)

    def __pow__(self, other: Any) -> Expression:
        return _paired("pow", self, other)

    def __radd__(self, other: Any) -> Expression:
        return self.__add__(other)

    def __rsub__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return _paired("subtract", other, self) if number is None else self._scaled(-1, number)

    def __rmul__(self, other: Any) -> Expression:
        return self.__mul__(other)

    def __rtruediv__(self, other: Any) -> Expression:
        number = self._scale_of(other)
        return _paired("divide", other, self) if number is None else self._unary("recip")._scaled(number, 0)

    def __rmod__(self, other: Any) -> Expression:
        return _paired("modulus_floor", other, self)

    def __rpow__(self, other: Any) -> Expression:
        return _paired("pow", other, self)

    def __neg__(self) -> Expression:
        return 0 - self

    def __abs__(self) -> Expression:
        return self._unary("abs")

    def _scale_of(self, other: Any) -> float | None:
        """A number that an identity may scale by or add: one of single precision, but no integer beside integers, which
        scaling would not take exactly, nor let wrap."""
        number = _plain(other)
        if type(number) not in (int, float) or SINGLE_END <= abs(number) < inf:
            return None
        is_exact = type(number) is int and self.tensor.DataType.name.startswith(("INT", "UINT"))
        return None if is_exact else number

    def _scaled(self, scale: float, bias: float) -> Expression:
        return self._unary("identity", scale_bias=DML_SCALE_BIAS(Scale=scale, Bias=bias))

    def _of_bits(self, name: str, other: Any) -> Expression:
        """An operator of bits, the logical one of truth values."""
        are_truth = self._is_truth and is_bool(other)
        return _paired(f"{'logical' if are_truth else 'bit'}_{name}", self, other)

    def _unary(self, function: str, **options: Any) -> Expression:
        result: Expression = load(function)(self, **options)
        return result


class ExpressionAdapter(GraphAdapter):
    """Operands of which one is an expression."""

    def take(self, where: str, value: Any, is_own: bool = False) -> Expression:
        taken: Expression = super().take(where, value, is_own)
        return taken


def _paired(function: str, a: Any, b: Any) -> Expression:
    result: Expression = load(function)(_plain(a), _plain(b))
    return result


def _product(graph: Any, a: Any, b: Any) -> Expression:
    """NumPy's matmul: a vector is a row before a matrix, and a column behind one."""
    side = ExpressionAdapter("GEMM", graph, None, None)
    left, right = side.take("a", a), side.take("b", b)
    is_row, is_column = left.ndim == 1, right.ndim == 1
    if is_row and is_column:
        remedy = "Keep a dimension: x[None, :] @ y"
        refuse("GEMM", "(G10)", "", "a product of two vectors, of 0 dimensions", "1 or more dimensions", remedy)
    product: Expression = load("gemm")(left[None] if is_row else left, right[:, None] if is_column else right)
    if is_row or is_column:
        *batch, rows, columns = product.shape
        return product.reshape(*batch, columns if is_row else rows)
    return product


def _floor_quotient(graph: Any, a: Any, b: Any) -> Expression:
    """Python's floor division: the truncated quotient, less 1 where there is a remainder of the sign that b has not.

    Of floats trunc(a / b) is (a - r) / b, to the nearest integer, with their remainder r; of FLOAT16 in FLOAT32, which
    has room for what (a - r) loses. What is divided by 0 is as DIVIDE has it.
    """
    divide = spec("ELEMENT_WISE_DIVIDE")
    side = ExpressionAdapter(divide.name, graph, None, None)
    taken = take_all(side, divide, {"ATensor": _plain(a), "BTensor": _plain(b)}, {}, True)
    left, right = (side.spread(each, each.shape or (1,)) for each in taken.values())
    if left.dtype == np.float16 == right.dtype:
        return _floor_quotient(graph, left.astype(np.float32), right.astype(np.float32)).astype(np.float16)
    quotient: Expression = _paired("divide", left, right)
    if quotient.dtype.kind == "u":
        return quotient
    rest: Expression = _paired("modulus_truncate", left, right)
    is_above = ((rest < 0) & (right > 0)) | ((rest > 0) & (right < 0))
    if quotient.dtype.kind == "f":
        whole = load("round")((left - rest) / right)
        quotient = load("if_")(right == 0, quotient, whole)
    result: Expression = quotient - is_above.astype(quotient.dtype)
    return result


def _plain(other: Any) -> Any:
    """NumPy's numbers as Python's, which have no type of their own beside an expression."""
    return other.item() if isinstance(other, np.generic) else other
