"""Activations of each element, which other functions take as descs, to apply them to their results."""

from __future__ import annotations

from typing import Any

from ..device import Device
from ._apply import apply, broadcast_all
from ._documentation import documented


@documented("ACTIVATION_ELU")
def elu(x: Any, alpha: float = 1.0, *, out: Any = None, device: Device | str | None = None) -> Any:
    """x where x >= 0, else alpha * (e^x - 1), for each element x: DML_OPERATOR_ACTIVATION_ELU.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: minus the limit at minus infinity.

    Returns:
        An array like `x`, of its type and shape.

    >>> elu([1.0, -1.0])
    array([ 1.        , -0.63212055], dtype=float32)
    """
    return apply("ACTIVATION_ELU", out, device, InputTensor=x, Alpha=alpha)


@documented("ACTIVATION_HARD_SIGMOID")
def hard_sigmoid(
    x: Any, alpha: float = 0.2, beta: float = 0.5, *, out: Any = None, device: Device | str | None = None
) -> Any:
    """max(0, min(alpha * x + beta, 1)) for each element x: DML_OPERATOR_ACTIVATION_HARD_SIGMOID.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: the slope between 0 and 1.
        beta: the value at 0.

    Returns:
        An array like `x`, of its type and shape.

    >>> hard_sigmoid([-4.0, 0.0, 1.0])
    array([0. , 0.5, 0.7], dtype=float32)
    """
    return apply("ACTIVATION_HARD_SIGMOID", out, device, InputTensor=x, Alpha=alpha, Beta=beta)


@documented("ACTIVATION_LEAKY_RELU")
def leaky_relu(x: Any, alpha: float = 0.01, *, out: Any = None, device: Device | str | None = None) -> Any:
    """x where x >= 0, else alpha * x, for each element x: DML_OPERATOR_ACTIVATION_LEAKY_RELU.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: the slope below 0.

    Returns:
        An array like `x`, of its type and shape.

    >>> leaky_relu([1.0, -1.0])
    array([ 1.  , -0.01], dtype=float32)
    """
    return apply("ACTIVATION_LEAKY_RELU", out, device, InputTensor=x, Alpha=alpha)


@documented("ACTIVATION_LINEAR")
def linear(x: Any, alpha: float, beta: float = 0.0, *, out: Any = None, device: Device | str | None = None) -> Any:
    """alpha * x + beta for each element x: DML_OPERATOR_ACTIVATION_LINEAR.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: the slope.
        beta: the value at 0.

    Returns:
        An array like `x`, of its type and shape.

    >>> linear([1.0, 2.0], 10, 1)
    array([11., 21.], dtype=float32)
    """
    return apply("ACTIVATION_LINEAR", out, device, InputTensor=x, Alpha=alpha, Beta=beta)


@documented("ACTIVATION_PARAMETRIC_SOFTPLUS")
def parametric_softplus(
    x: Any, alpha: float, beta: float, *, out: Any = None, device: Device | str | None = None
) -> Any:
    """alpha * ln(1 + e^(beta * x)) for each element x: DML_OPERATOR_ACTIVATION_PARAMETRIC_SOFTPLUS.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: the scale of results.
        beta: the scale of elements.

    Returns:
        An array like `x`, of its type and shape.

    >>> parametric_softplus([0.0, 1.0], 2, 1)
    array([1.3862944, 2.6265233], dtype=float32)
    """
    return apply("ACTIVATION_PARAMETRIC_SOFTPLUS", out, device, InputTensor=x, Alpha=alpha, Beta=beta)


@documented("ACTIVATION_RELU")
def relu(x: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """max(0, x) for each element x: DML_OPERATOR_ACTIVATION_RELU.

    Args:
        x: an array or an expression of float32, float16, int32, int16 or int8.

    Returns:
        An array like `x`, of its type and shape.

    >>> relu([1.0, -1.0])
    array([1., 0.], dtype=float32)
    """
    return apply("ACTIVATION_RELU", out, device, InputTensor=x)


@documented("ACTIVATION_SCALED_ELU")
def scaled_elu(
    x: Any, alpha: float = 1.6732, gamma: float = 1.0507, *, out: Any = None, device: Device | str | None = None
) -> Any:
    """gamma * x where x > 0, else gamma * alpha * (e^x - 1), for each element x: DML_OPERATOR_ACTIVATION_SCALED_ELU.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: the scale below 0.
        gamma: the scale of all.

    Returns:
        An array like `x`, of its type and shape.

    >>> scaled_elu([1.0, -1.0])
    array([ 1.0507   , -1.1112876], dtype=float32)
    """
    return apply("ACTIVATION_SCALED_ELU", out, device, InputTensor=x, Alpha=alpha, Gamma=gamma)


@documented("ACTIVATION_SCALED_TANH")
def scaled_tanh(
    x: Any, alpha: float = 1.0, beta: float = 0.5, *, out: Any = None, device: Device | str | None = None
) -> Any:
    """alpha * tanh(beta * x) for each element x: DML_OPERATOR_ACTIVATION_SCALED_TANH.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: the limit at infinity.
        beta: the scale of elements.

    Returns:
        An array like `x`, of its type and shape.

    >>> scaled_tanh([0.0, 1.0])
    array([0.        , 0.46211717], dtype=float32)
    """
    return apply("ACTIVATION_SCALED_TANH", out, device, InputTensor=x, Alpha=alpha, Beta=beta)


@documented("ACTIVATION_SIGMOID")
def sigmoid(x: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """1 / (1 + e^-x) for each element x: DML_OPERATOR_ACTIVATION_SIGMOID.

    Args:
        x: an array or an expression of float32 or float16.

    Returns:
        An array like `x`, of its type and shape.

    >>> sigmoid([0.0, 2.0])
    array([0.5      , 0.8807971], dtype=float32)
    """
    return apply("ACTIVATION_SIGMOID", out, device, InputTensor=x)


@documented("ACTIVATION_SOFTPLUS")
def softplus(x: Any, steepness: float = 1.0, *, out: Any = None, device: Device | str | None = None) -> Any:
    """ln(1 + e^(steepness * x)) / steepness for each element x: DML_OPERATOR_ACTIVATION_SOFTPLUS.

    Args:
        x: an array or an expression of float32 or float16.
        steepness: how close to relu; below feature level 6.4 at least 1.

    Returns:
        An array like `x`, of its type and shape.

    >>> softplus([0.0, 1.0])
    array([0.6931472, 1.3132616], dtype=float32)
    """
    return apply("ACTIVATION_SOFTPLUS", out, device, InputTensor=x, Steepness=steepness)


@documented("ACTIVATION_SOFTSIGN")
def softsign(x: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """x / (1 + |x|) for each element x: DML_OPERATOR_ACTIVATION_SOFTSIGN.

    Args:
        x: an array or an expression of float32 or float16.

    Returns:
        An array like `x`, of its type and shape.

    >>> softsign([1.0, -3.0])
    array([ 0.5 , -0.75], dtype=float32)
    """
    return apply("ACTIVATION_SOFTSIGN", out, device, InputTensor=x)


@documented("ACTIVATION_TANH")
def tanh(x: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """The hyperbolic tangent of each element: DML_OPERATOR_ACTIVATION_TANH.

    Args:
        x: an array or an expression of float32 or float16.

    Returns:
        An array like `x`, of its type and shape.

    >>> tanh([0.0, 1.0])
    array([0.       , 0.7615942], dtype=float32)
    """
    return apply("ACTIVATION_TANH", out, device, InputTensor=x)


@documented("ACTIVATION_THRESHOLDED_RELU")
def thresholded_relu(x: Any, alpha: float = 1.0, *, out: Any = None, device: Device | str | None = None) -> Any:
    """x where x > alpha, else 0, for each element x: DML_OPERATOR_ACTIVATION_THRESHOLDED_RELU.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: the threshold.

    Returns:
        An array like `x`, of its type and shape.

    >>> thresholded_relu([0.5, 1.5])
    array([0. , 1.5], dtype=float32)
    """
    return apply("ACTIVATION_THRESHOLDED_RELU", out, device, InputTensor=x, Alpha=alpha)


@documented("ACTIVATION_SHRINK")
def shrink(
    x: Any, bias: float = 0.0, threshold: float = 0.5, *, out: Any = None, device: Device | str | None = None
) -> Any:
    """Elements moved towards 0 by bias, and 0 within the threshold: DML_OPERATOR_ACTIVATION_SHRINK.

    Args:
        x: an array or an expression of float32, float16 or an integer type.
        bias: what is taken from elements above the threshold, and added to those below minus the threshold.
        threshold: the end of what becomes 0.

    Returns:
        An array like `x`, of its type and shape.

    >>> shrink([-2.0, 0.25, 2.0], 0.5)
    array([-1.5,  0. ,  1.5], dtype=float32)
    """
    return apply("ACTIVATION_SHRINK", out, device, InputTensor=x, Bias=bias, Threshold=threshold)


@documented("ACTIVATION_PARAMETERIZED_RELU")
def parameterized_relu(x: Any, slope: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """x where x >= 0, else slope * x, for each pair of elements: DML_OPERATOR_ACTIVATION_PARAMETERIZED_RELU.

    Args:
        x: an array or an expression of float32, float16, int32, int16 or int8, or a number beside one.
        slope: likewise, of the same type; both broadcast as NumPy's arrays do.

    Returns:
        An array like `x`; integers wrap.

    >>> parameterized_relu([[1.0, -2.0], [-3.0, 4.0]], [[0.5], [10.0]])
    array([[  1.,  -1.],
           [-30.,   4.]], dtype=float32)
    """
    operands = {"InputTensor": x, "SlopeTensor": slope}
    return apply("ACTIVATION_PARAMETERIZED_RELU", out, device, spread=broadcast_all, **operands)
