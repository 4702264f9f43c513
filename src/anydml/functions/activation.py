"""Activations of each element, which other functions take as descs, to apply them to their results."""

from __future__ import annotations

from typing import Any

from ..runtime.device import Device
from ._apply import apply, broadcast_all


def elu(x: Any, alpha: float = 1.0, *, out: Any = None, device: Device | str | None = None) -> Any:
    """x where x >= 0, else alpha * (e^x - 1), for each element x: DML_OPERATOR_ACTIVATION_ELU.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: minus the limit at minus infinity.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_ELU_OPERATOR_DESC, feature level 1.0.

    >>> elu([1.0, -1.0])
    array([ 1.        , -0.63212055], dtype=float32)
    """
    return apply("ACTIVATION_ELU", out, device, InputTensor=x, Alpha=alpha)


def hard_sigmoid(
    x: Any, alpha: float = 0.2, beta: float = 0.5, *, out: Any = None, device: Device | str | None = None
) -> Any:
    """max(0, min(alpha * x + beta, 1)) for each element x: DML_OPERATOR_ACTIVATION_HARD_SIGMOID.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: the slope between 0 and 1.
        beta: the value at 0.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC, feature level 1.0.

    >>> hard_sigmoid([-4.0, 0.0, 1.0])
    array([0. , 0.5, 0.7], dtype=float32)
    """
    return apply("ACTIVATION_HARD_SIGMOID", out, device, InputTensor=x, Alpha=alpha, Beta=beta)


def leaky_relu(x: Any, alpha: float = 0.01, *, out: Any = None, device: Device | str | None = None) -> Any:
    """x where x >= 0, else alpha * x, for each element x: DML_OPERATOR_ACTIVATION_LEAKY_RELU.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: the slope below 0.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC, feature level 1.0.

    >>> leaky_relu([1.0, -1.0])
    array([ 1.  , -0.01], dtype=float32)
    """
    return apply("ACTIVATION_LEAKY_RELU", out, device, InputTensor=x, Alpha=alpha)


def linear(x: Any, alpha: float, beta: float = 0.0, *, out: Any = None, device: Device | str | None = None) -> Any:
    """alpha * x + beta for each element x: DML_OPERATOR_ACTIVATION_LINEAR.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: the slope.
        beta: the value at 0.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_LINEAR_OPERATOR_DESC, feature level 1.0.

    >>> linear([1.0, 2.0], 10, 1)
    array([11., 21.], dtype=float32)
    """
    return apply("ACTIVATION_LINEAR", out, device, InputTensor=x, Alpha=alpha, Beta=beta)


def parametric_softplus(
    x: Any, alpha: float, beta: float, *, out: Any = None, device: Device | str | None = None
) -> Any:
    """alpha * ln(1 + e^(beta * x)) for each element x: DML_OPERATOR_ACTIVATION_PARAMETRIC_SOFTPLUS.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: the scale of results.
        beta: the scale of elements.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC, feature level 1.0.

    >>> parametric_softplus([0.0, 1.0], 2, 1)
    array([1.3862944, 2.6265233], dtype=float32)
    """
    return apply("ACTIVATION_PARAMETRIC_SOFTPLUS", out, device, InputTensor=x, Alpha=alpha, Beta=beta)


def relu(x: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """max(0, x) for each element x: DML_OPERATOR_ACTIVATION_RELU.

    Args:
        x: an array or an expression of float32, float16, int32, int16 or int8.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_RELU_OPERATOR_DESC, feature level 1.0.

    >>> relu([1.0, -1.0])
    array([1., 0.], dtype=float32)
    """
    return apply("ACTIVATION_RELU", out, device, InputTensor=x)


def scaled_elu(
    x: Any, alpha: float = 1.6732, gamma: float = 1.0507, *, out: Any = None, device: Device | str | None = None
) -> Any:
    """gamma * x where x > 0, else gamma * alpha * (e^x - 1), for each element x: DML_OPERATOR_ACTIVATION_SCALED_ELU.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: the scale below 0.
        gamma: the scale of all.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC, feature level 1.0.

    >>> scaled_elu([1.0, -1.0])
    array([ 1.0507   , -1.1112876], dtype=float32)
    """
    return apply("ACTIVATION_SCALED_ELU", out, device, InputTensor=x, Alpha=alpha, Gamma=gamma)


def scaled_tanh(
    x: Any, alpha: float = 1.0, beta: float = 0.5, *, out: Any = None, device: Device | str | None = None
) -> Any:
    """alpha * tanh(beta * x) for each element x: DML_OPERATOR_ACTIVATION_SCALED_TANH.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: the limit at infinity.
        beta: the scale of elements.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC, feature level 1.0.

    >>> scaled_tanh([0.0, 1.0])
    array([0.        , 0.46211717], dtype=float32)
    """
    return apply("ACTIVATION_SCALED_TANH", out, device, InputTensor=x, Alpha=alpha, Beta=beta)


def sigmoid(x: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """1 / (1 + e^-x) for each element x: DML_OPERATOR_ACTIVATION_SIGMOID.

    Args:
        x: an array or an expression of float32 or float16.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_SIGMOID_OPERATOR_DESC, feature level 1.0.

    >>> sigmoid([0.0, 2.0])
    array([0.5      , 0.8807971], dtype=float32)
    """
    return apply("ACTIVATION_SIGMOID", out, device, InputTensor=x)


def softplus(x: Any, steepness: float = 1.0, *, out: Any = None, device: Device | str | None = None) -> Any:
    """ln(1 + e^(steepness * x)) / steepness for each element x: DML_OPERATOR_ACTIVATION_SOFTPLUS.

    Args:
        x: an array or an expression of float32 or float16.
        steepness: how close to relu; below feature level 6.4 at least 1.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC, feature level 1.0.

    >>> softplus([0.0, 1.0])
    array([0.6931472, 1.3132616], dtype=float32)
    """
    return apply("ACTIVATION_SOFTPLUS", out, device, InputTensor=x, Steepness=steepness)


def softsign(x: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """x / (1 + |x|) for each element x: DML_OPERATOR_ACTIVATION_SOFTSIGN.

    Args:
        x: an array or an expression of float32 or float16.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC, feature level 1.0.

    >>> softsign([1.0, -3.0])
    array([ 0.5 , -0.75], dtype=float32)
    """
    return apply("ACTIVATION_SOFTSIGN", out, device, InputTensor=x)


def tanh(x: Any, *, out: Any = None, device: Device | str | None = None) -> Any:
    """The hyperbolic tangent of each element: DML_OPERATOR_ACTIVATION_TANH.

    Args:
        x: an array or an expression of float32 or float16.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_TANH_OPERATOR_DESC, feature level 1.0.

    >>> tanh([0.0, 1.0])
    array([0.       , 0.7615942], dtype=float32)
    """
    return apply("ACTIVATION_TANH", out, device, InputTensor=x)


def thresholded_relu(x: Any, alpha: float = 1.0, *, out: Any = None, device: Device | str | None = None) -> Any:
    """x where x > alpha, else 0, for each element x: DML_OPERATOR_ACTIVATION_THRESHOLDED_RELU.

    Args:
        x: an array or an expression of float32 or float16.
        alpha: the threshold.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC, feature level 1.0.

    >>> thresholded_relu([0.5, 1.5])
    array([0. , 1.5], dtype=float32)
    """
    return apply("ACTIVATION_THRESHOLDED_RELU", out, device, InputTensor=x, Alpha=alpha)


def shrink(
    x: Any, bias: float = 0.0, threshold: float = 0.5, *, out: Any = None, device: Device | str | None = None
) -> Any:
    """Elements moved towards 0 by bias, and 0 within the threshold: DML_OPERATOR_ACTIVATION_SHRINK.

    Args:
        x: an array or an expression of float32, float16 or an integer type.
        bias: what is taken from elements above the threshold, and added to those below minus the threshold.
        threshold: the end of what becomes 0.
        out: where to write, of the result's type and shape and of any strides; may be the operand itself. Returned.
        device: a Device or its name; "cpu" where None.

    Returns:
        An array like `x`, of its type and shape.

    Raises:
        DMLError: a ValueError or TypeError that names the rule; `out` is untouched then.

    Source: the page of DML_ACTIVATION_SHRINK_OPERATOR_DESC, feature level 2.0.

    >>> shrink([-2.0, 0.25, 2.0], 0.5)
    array([-1.5,  0. ,  1.5], dtype=float32)
    """
    return apply("ACTIVATION_SHRINK", out, device, InputTensor=x, Bias=bias, Threshold=threshold)


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
