"""Element-wise functions of two operands, which broadcast."""

from __future__ import annotations

from typing import Any

from ..core.tensor_desc import DML_SCALE_BIAS
from ..operators.schema import OperatorDesc
from ..runtime.device import Device
from ._apply import apply, broadcast_all


def add(
    a: Any, b: Any, *, activation: OperatorDesc | None = None, out: Any = None, device: Device | str | None = None
) -> Any:
    """a + b for each pair of elements: DML_OPERATOR_ELEMENT_WISE_ADD.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.
        activation: the desc of an activation, without tensors, that is applied to the sum; none where None.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `a`; integers wrap.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ELEMENT_WISE_ADD_OPERATOR_DESC, feature level 1.0, and that of
    DML_ELEMENT_WISE_ADD1_OPERATOR_DESC, 2.0, which has activations.

    >>> add([[1.0], [2.0]], [10.0, 20.0])
    array([[11., 21.],
           [12., 22.]], dtype=float32)
    """
    operator, options = "ELEMENT_WISE_ADD", {}
    if activation is not None:
        operator, options = "ELEMENT_WISE_ADD1", {"FusedActivation": activation}
    return apply(operator, out, device, spread=broadcast_all, ATensor=a, BTensor=b, **options)


def subtract(a: Any, b: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """a - b for each pair of elements: DML_OPERATOR_ELEMENT_WISE_SUBTRACT.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `a`; integers wrap.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC, feature level 1.0.

    >>> subtract([3.0, 4.0], 1)
    array([2., 3.], dtype=float32)
    """
    return apply("ELEMENT_WISE_SUBTRACT", out, device, spread=broadcast_all, ATensor=a, BTensor=b)


def multiply(a: Any, b: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """a * b for each pair of elements: DML_OPERATOR_ELEMENT_WISE_MULTIPLY.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `a`; integers wrap.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC, feature level 1.0.

    >>> multiply([3, 4], [[1], [2]])
    array([[3, 4],
           [6, 8]])
    """
    return apply("ELEMENT_WISE_MULTIPLY", out, device, spread=broadcast_all, ATensor=a, BTensor=b)


def divide(a: Any, b: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """a / b for each pair of elements: DML_OPERATOR_ELEMENT_WISE_DIVIDE.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `a`; integer quotients are truncated, and all bits of one by 0 are 1.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC, feature level 1.0.

    >>> divide([7, -7], 2)
    array([ 3, -3])
    """
    return apply("ELEMENT_WISE_DIVIDE", out, device, spread=broadcast_all, ATensor=a, BTensor=b)


def max(a: Any, b: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """The larger of each pair of elements: DML_OPERATOR_ELEMENT_WISE_MAX.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `a`; of a NaN and a number, the number.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ELEMENT_WISE_MAX_OPERATOR_DESC, feature level 1.0.

    >>> max([1.0, 5.0], 3)
    array([3., 5.], dtype=float32)
    """
    return apply("ELEMENT_WISE_MAX", out, device, spread=broadcast_all, ATensor=a, BTensor=b)


def mean(a: Any, b: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """(a + b) / 2 for each pair of elements: DML_OPERATOR_ELEMENT_WISE_MEAN.

    Args:
        a: an array or an expression of float32, float16, int32 or uint32, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `a`; of integers the exact sum is halved, and truncated.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ELEMENT_WISE_MEAN_OPERATOR_DESC, feature level 1.0.

    >>> mean([1.0, 5.0], [2.0, 6.0])
    array([1.5, 5.5], dtype=float32)
    """
    return apply("ELEMENT_WISE_MEAN", out, device, spread=broadcast_all, ATensor=a, BTensor=b)


def min(a: Any, b: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """The smaller of each pair of elements: DML_OPERATOR_ELEMENT_WISE_MIN.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `a`; of a NaN and a number, the number.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ELEMENT_WISE_MIN_OPERATOR_DESC, feature level 1.0.

    >>> min([1.0, 5.0], 3)
    array([1., 3.], dtype=float32)
    """
    return apply("ELEMENT_WISE_MIN", out, device, spread=broadcast_all, ATensor=a, BTensor=b)


def pow(
    x: Any,
    exponent: Any,
    *,
    scale_bias: DML_SCALE_BIAS | None = None,
    out: Any = None,
    device: Device | str | None = None,
) -> Any:
    """x to the power of the exponent for each pair of elements: DML_OPERATOR_ELEMENT_WISE_POW.

    Args:
        x: an array or an expression of float32, float16 or an integer type of at most 32 bits, or a number beside one.
        exponent: likewise, of any type of these; both broadcast as NumPy's arrays do.
        scale_bias: a DML_SCALE_BIAS, applied to each x first; none where None.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type; NaN where x is below 0 and the exponent no integer.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ELEMENT_WISE_POW_OPERATOR_DESC, feature level 1.0.

    >>> pow([2.0, 3.0], [[1.0], [2.0]])
    array([[2., 3.],
           [4., 9.]], dtype=float32)
    """
    operands = {"InputTensor": x, "ExponentTensor": exponent}
    return apply("ELEMENT_WISE_POW", out, device, spread=broadcast_all, **operands, ScaleBias=scale_bias)


def modulus_truncate(a: Any, b: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """The remainder a - b * trunc(a / b) for each pair of elements: DML_OPERATOR_ELEMENT_WISE_MODULUS_TRUNCATE.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `a`, each of the sign of a; of a division by 0, NaN, or all bits 1 of an integer.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC, feature level 2.1.

    >>> modulus_truncate([7, -7], 3)
    array([ 1, -1])
    """
    return apply("ELEMENT_WISE_MODULUS_TRUNCATE", out, device, spread=broadcast_all, ATensor=a, BTensor=b)


def parameterized_relu(x: Any, slope: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """x where x >= 0, else slope * x, for each pair of elements: DML_OPERATOR_ACTIVATION_PARAMETERIZED_RELU.

    Args:
        x: an array or an expression of float32, float16, int32, int16 or int8, or a number beside one.
        slope: likewise, of the same type; both broadcast as NumPy's arrays do.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`; integers wrap.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC, feature level 1.0.

    >>> parameterized_relu([[1.0, -2.0], [-3.0, 4.0]], [[0.5], [10.0]])
    array([[  1.,  -1.],
           [-30.,   4.]], dtype=float32)
    """
    operands = {"InputTensor": x, "SlopeTensor": slope}
    return apply("ACTIVATION_PARAMETERIZED_RELU", out, device, spread=broadcast_all, **operands)
