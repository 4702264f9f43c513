"""Element-wise functions of one operand, and of two, which broadcast."""

from __future__ import annotations

from typing import Any

from ..core.tensor_desc import DML_SCALE_BIAS, plain, single
from ..device import Device
from ..operators.schema import OperatorDesc
from ._apply import apply, broadcast_all
from ._call import data_type_of
from ._documentation import documented
from ._operand_adapter import adapter_for


@documented("ELEMENT_WISE_IDENTITY")
def identity(
    x: Any, *, scale_bias: DML_SCALE_BIAS | None = None, out: Any = None, device: Device | str | None = None
) -> Any:
    """Copies each element: DML_OPERATOR_ELEMENT_WISE_IDENTITY.

    It does what DML_OPERATOR_ACTIVATION_IDENTITY does, too.

    Args:
        x: an array or an expression of float64, float32, float16 or an integer type.
        scale_bias: a DML_SCALE_BIAS, applied to each element first; none where None.

    Returns:
        An array like `x`, of its type and shape; without a scale_bias a copy of bits.

    >>> identity([1.0, 2.0], scale_bias=DML_SCALE_BIAS(Scale=10, Bias=1))
    array([11., 21.], dtype=float32)
    """
    return apply("ELEMENT_WISE_IDENTITY", out, device, InputTensor=x, ScaleBias=scale_bias)


@documented("ELEMENT_WISE_ABS")
def abs(
    x: Any, *, scale_bias: DML_SCALE_BIAS | None = None, out: Any = None, device: Device | str | None = None
) -> Any:
    """The absolute value of each element: DML_OPERATOR_ELEMENT_WISE_ABS.

    Args:
        x: an array or an expression of float32, float16 or a signed integer type.
        scale_bias: a DML_SCALE_BIAS, applied to each element first; none where None.

    Returns:
        An array like `x`, of its type and shape; the lowest integer, which has none, stays what it is.

    >>> abs([-1.5, 2.0])
    array([1.5, 2. ], dtype=float32)
    """
    return apply("ELEMENT_WISE_ABS", out, device, InputTensor=x, ScaleBias=scale_bias)


@documented("ELEMENT_WISE_CLIP", "ELEMENT_WISE_CLIP1")
def clip(
    x: Any,
    min: float,
    max: float,
    *,
    scale_bias: DML_SCALE_BIAS | None = None,
    out: Any = None,
    device: Device | str | None = None,
) -> Any:
    """Limits each element to an interval: DML_OPERATOR_ELEMENT_WISE_CLIP.

    f(x) = min(max, max(min, x)), and min of a NaN. Of integers, ends that single precision does not hold are taken
    exactly, by DML_OPERATOR_ELEMENT_WISE_CLIP1.

    Args:
        x: an array or an expression of float32, float16 or an integer type.
        min: the lower end.
        max: the upper end; where it is below min, every result.
        scale_bias: a DML_SCALE_BIAS, applied to each element first; none where None.

    Returns:
        An array like `x`, of its type and shape.

    >>> clip([1, 5, 9], 2, 7)
    array([2, 5, 7])
    """
    side = adapter_for("ELEMENT_WISE_CLIP", [x], out, device)
    seen = side.look("x", x)
    ends = {"Min": plain(min), "Max": plain(max)}
    is_long = {*map(type, ends.values())} == {int} and any(single(end) != end for end in ends.values())
    if not is_long or seen.dtype.kind == "f":
        return apply("ELEMENT_WISE_CLIP", out, device, InputTensor=x, ScaleBias=scale_bias, **ends)
    # It takes the other one of ends that are crossed.
    ends["Min"] = sorted(ends.values())[0]
    ends["MinMaxDataType"] = data_type_of("ELEMENT_WISE_CLIP1", "x", seen)
    return apply("ELEMENT_WISE_CLIP1", out, device, InputTensor=x, ScaleBias=scale_bias, **ends)


@documented("ELEMENT_WISE_EXP")
def exp(
    x: Any, *, scale_bias: DML_SCALE_BIAS | None = None, out: Any = None, device: Device | str | None = None
) -> Any:
    """e to the power of each element: DML_OPERATOR_ELEMENT_WISE_EXP.

    Args:
        x: an array or an expression of float32 or float16.
        scale_bias: a DML_SCALE_BIAS, applied to each element first; none where None.

    Returns:
        An array like `x`, of its type and shape.

    >>> exp([0.0, 1.0])
    array([1.       , 2.7182817], dtype=float32)
    """
    return apply("ELEMENT_WISE_EXP", out, device, InputTensor=x, ScaleBias=scale_bias)


@documented("ELEMENT_WISE_LOG")
def log(
    x: Any, *, scale_bias: DML_SCALE_BIAS | None = None, out: Any = None, device: Device | str | None = None
) -> Any:
    """The natural logarithm of each element: DML_OPERATOR_ELEMENT_WISE_LOG.

    Args:
        x: an array or an expression of float32 or float16.
        scale_bias: a DML_SCALE_BIAS, applied to each element first; none where None.

    Returns:
        An array like `x`, of its type and shape; of 0 minus infinity, of what is below NaN.

    >>> log([1.0, 0.0])
    array([  0., -inf], dtype=float32)
    """
    return apply("ELEMENT_WISE_LOG", out, device, InputTensor=x, ScaleBias=scale_bias)


@documented("ELEMENT_WISE_RECIP")
def recip(
    x: Any, *, scale_bias: DML_SCALE_BIAS | None = None, out: Any = None, device: Device | str | None = None
) -> Any:
    """1 / x for each element x: DML_OPERATOR_ELEMENT_WISE_RECIP.

    Args:
        x: an array or an expression of float32 or float16.
        scale_bias: a DML_SCALE_BIAS, applied to each element first; none where None.

    Returns:
        An array like `x`, of its type and shape.

    >>> recip([2.0, 0.25])
    array([0.5, 4. ], dtype=float32)
    """
    return apply("ELEMENT_WISE_RECIP", out, device, InputTensor=x, ScaleBias=scale_bias)


@documented("ELEMENT_WISE_SQRT")
def sqrt(
    x: Any, *, scale_bias: DML_SCALE_BIAS | None = None, out: Any = None, device: Device | str | None = None
) -> Any:
    """The square root of each element: DML_OPERATOR_ELEMENT_WISE_SQRT.

    Args:
        x: an array or an expression of float32 or float16.
        scale_bias: a DML_SCALE_BIAS, applied to each element first; none where None.

    Returns:
        An array like `x`, of its type and shape; NaN of what is below 0.

    >>> sqrt([9.0, 2.25])
    array([3. , 1.5], dtype=float32)
    """
    return apply("ELEMENT_WISE_SQRT", out, device, InputTensor=x, ScaleBias=scale_bias)


@documented("ELEMENT_WISE_THRESHOLD")
def threshold(
    x: Any, min: float, *, scale_bias: DML_SCALE_BIAS | None = None, out: Any = None, device: Device | str | None = None
) -> Any:
    """Raises each element to a lower end: DML_OPERATOR_ELEMENT_WISE_THRESHOLD.

    Args:
        x: an array or an expression of float32, float16 or an integer type of at most 32 bits.
        min: the lower end; of integers the lowest that is not below it.
        scale_bias: a DML_SCALE_BIAS, applied to each element first; none where None.

    Returns:
        An array like `x`, of its type and shape: max(x, min) for each element x, min for a NaN.

    >>> threshold([1.0, 3.0], 2)
    array([2., 3.], dtype=float32)
    """
    return apply("ELEMENT_WISE_THRESHOLD", out, device, InputTensor=x, Min=min, ScaleBias=scale_bias)


@documented("ELEMENT_WISE_NEGATE")
def negate(x: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """-x for each element x: DML_OPERATOR_ELEMENT_WISE_NEGATE.

    Args:
        x: an array or an expression of float32, float16 or a signed integer type.

    Returns:
        An array like `x`, of its type and shape; the lowest integer stays what it is.

    >>> negate([1, -2])
    array([-1,  2])
    """
    return apply("ELEMENT_WISE_NEGATE", out, device, InputTensor=x)


@documented("ELEMENT_WISE_ADD", "ELEMENT_WISE_ADD1")
def add(
    a: Any, b: Any, *, activation: OperatorDesc | None = None, out: Any = None, device: Device | str | None = None
) -> Any:
    """a + b for each pair of elements: DML_OPERATOR_ELEMENT_WISE_ADD.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.
        activation: the desc of an activation, without tensors, that is applied to the sum; none where None.

    Returns:
        An array like `a`; integers wrap.

    >>> add([[1.0], [2.0]], [10.0, 20.0])
    array([[11., 21.],
           [12., 22.]], dtype=float32)
    """
    operator, options = "ELEMENT_WISE_ADD", {}
    if activation is not None:
        operator, options = "ELEMENT_WISE_ADD1", {"FusedActivation": activation}
    return apply(operator, out, device, spread=broadcast_all, ATensor=a, BTensor=b, **options)


@documented("ELEMENT_WISE_SUBTRACT")
def subtract(a: Any, b: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """a - b for each pair of elements: DML_OPERATOR_ELEMENT_WISE_SUBTRACT.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.

    Returns:
        An array like `a`; integers wrap.

    >>> subtract([3.0, 4.0], 1)
    array([2., 3.], dtype=float32)
    """
    return apply("ELEMENT_WISE_SUBTRACT", out, device, spread=broadcast_all, ATensor=a, BTensor=b)


@documented("ELEMENT_WISE_MULTIPLY")
def multiply(a: Any, b: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """a * b for each pair of elements: DML_OPERATOR_ELEMENT_WISE_MULTIPLY.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.

    Returns:
        An array like `a`; integers wrap.

    >>> multiply([3, 4], [[1], [2]])
    array([[3, 4],
           [6, 8]])
    """
    return apply("ELEMENT_WISE_MULTIPLY", out, device, spread=broadcast_all, ATensor=a, BTensor=b)


@documented("ELEMENT_WISE_DIVIDE")
def divide(a: Any, b: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """a / b for each pair of elements: DML_OPERATOR_ELEMENT_WISE_DIVIDE.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.

    Returns:
        An array like `a`; integer quotients are truncated, and all bits of one by 0 are 1.

    >>> divide([7, -7], 2)
    array([ 3, -3])
    """
    return apply("ELEMENT_WISE_DIVIDE", out, device, spread=broadcast_all, ATensor=a, BTensor=b)


@documented("ELEMENT_WISE_MAX")
def max(a: Any, b: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """The larger of each pair of elements: DML_OPERATOR_ELEMENT_WISE_MAX.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.

    Returns:
        An array like `a`; of a NaN and a number, the number.

    >>> max([1.0, 5.0], 3)
    array([3., 5.], dtype=float32)
    """
    return apply("ELEMENT_WISE_MAX", out, device, spread=broadcast_all, ATensor=a, BTensor=b)


@documented("ELEMENT_WISE_MEAN")
def mean(a: Any, b: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """(a + b) / 2 for each pair of elements: DML_OPERATOR_ELEMENT_WISE_MEAN.

    Args:
        a: an array or an expression of float32, float16, int32 or uint32, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.

    Returns:
        An array like `a`; of integers the exact sum is halved, and truncated.

    >>> mean([1.0, 5.0], [2.0, 6.0])
    array([1.5, 5.5], dtype=float32)
    """
    return apply("ELEMENT_WISE_MEAN", out, device, spread=broadcast_all, ATensor=a, BTensor=b)


@documented("ELEMENT_WISE_MIN")
def min(a: Any, b: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """The smaller of each pair of elements: DML_OPERATOR_ELEMENT_WISE_MIN.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.

    Returns:
        An array like `a`; of a NaN and a number, the number.

    >>> min([1.0, 5.0], 3)
    array([1., 3.], dtype=float32)
    """
    return apply("ELEMENT_WISE_MIN", out, device, spread=broadcast_all, ATensor=a, BTensor=b)


@documented("ELEMENT_WISE_POW")
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

    Returns:
        An array like `x`, of its type; NaN where x is below 0 and the exponent no integer.

    >>> pow([2.0, 3.0], [[1.0], [2.0]])
    array([[2., 3.],
           [4., 9.]], dtype=float32)
    """
    operands = {"InputTensor": x, "ExponentTensor": exponent}
    return apply("ELEMENT_WISE_POW", out, device, spread=broadcast_all, **operands, ScaleBias=scale_bias)


@documented("ELEMENT_WISE_MODULUS_TRUNCATE")
def modulus_truncate(a: Any, b: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """The remainder a - b * trunc(a / b) for each pair of elements: DML_OPERATOR_ELEMENT_WISE_MODULUS_TRUNCATE.

    Args:
        a: an array or an expression of float32, float16 or an integer type, or a number beside one.
        b: likewise, of the same type; both broadcast as NumPy's arrays do.

    Returns:
        An array like `a`, each of the sign of a; of a division by 0, NaN, or all bits 1 of an integer.

    >>> modulus_truncate([7, -7], 3)
    array([ 1, -1])
    """
    return apply("ELEMENT_WISE_MODULUS_TRUNCATE", out, device, spread=broadcast_all, ATensor=a, BTensor=b)
