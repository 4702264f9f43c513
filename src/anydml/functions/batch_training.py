"""Batch normalisation in training: by the batch's own mean and variance, and the gradients of both kinds."""

from __future__ import annotations

from typing import Any

from ..device import Device
from ..operators.schema import OperatorDesc
from ._apply import apply_all, over_channels
from ._documentation import documented
from ._names import refuse_unknown
from ._types import Operand, Output, Result


@documented("BATCH_NORMALIZATION_TRAINING")
def batch_normalization_training(
    x: Operand,
    scale: Operand,
    bias: Operand,
    fused_add: Operand | None = None,
    *,
    epsilon: float = 1e-5,
    activation: OperatorDesc | str | None = None,
    out: list[Output] | tuple[Output, ...] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> list[Result]:
    """scale * (x - mean) / sqrt(variance + epsilon) + bias, by x's own mean and variance:
    DML_OPERATOR_BATCH_NORMALIZATION_TRAINING.

    Args:
        x: an array or an expression, float32 or float16.
        scale: likewise, a number for each channel, or of as many dimensions, each of x's size or 1. Mean and variance
            are taken along those of size 1.
        bias: likewise, of the shape of `scale`.
        fused_add: likewise, of the shape of `x`: what is added before the activation; none where None.
        epsilon: added to the variance, so that it is not 0.
        activation: the desc of an activation, without tensors, or its name, that is applied to the result; none where
            None.
        out: a list of three arrays to write to, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type and shape; the means and the variances, of mean squares, in the dimensions of
        `scale`.

    >>> y, mean, variance = batch_normalization_training([[1.0], [5.0]], [10.0], [0.5], epsilon=0)
    >>> y, mean, variance
    (array([[-9.5],
           [10.5]], dtype=float32), array([[3.]], dtype=float32), array([[4.]], dtype=float32))
    """
    if others:
        refuse_unknown(batch_normalization_training, "BATCH_NORMALIZATION_TRAINING", others)
    return apply_all(
        "BATCH_NORMALIZATION_TRAINING",
        out,
        device,
        spread=over_channels,
        InputTensor=x,
        ScaleTensor=scale,
        BiasTensor=bias,
        FusedAddTensor=fused_add,
        Epsilon=epsilon,
        FusedActivation=activation,
    )


@documented("BATCH_NORMALIZATION_TRAINING_GRAD")
def batch_normalization_training_grad(
    x: Operand,
    input_gradient: Operand,
    mean: Operand,
    variance: Operand,
    scale: Operand,
    *,
    epsilon: float = 1e-5,
    out: list[Output] | tuple[Output, ...] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> list[Result]:
    """The gradients of :func:`batch_normalization_training`: DML_OPERATOR_BATCH_NORMALIZATION_TRAINING_GRAD.

    With g the incoming gradient, root = sqrt(variance + epsilon) and means along the dimensions in which `mean` has a
    size of 1: scale / root * (g - mean(g) - (x - mean) * mean(g * (x - mean)) / root^2).

    Args:
        x: an array or an expression, float32 or float16: what was normalised.
        input_gradient: likewise, of the same shape: the gradients of what came of it.
        mean: an array or an expression of the same type, which the function has returned, of as many dimensions, each
            of x's size or 1; or a number for each channel.
        variance: likewise.
        scale: likewise.
        epsilon: as it was there.
        out: a list of three arrays to write to, of any strides; no memory shared with an input. Returned.

    Returns:
        The gradients of `x`, an array like it, of `scale`, and of the bias, in the dimensions of `scale`.

    >>> x, g = [[1.0], [5.0], [3.0], [3.0]], [[1.0], [0.0], [0.0], [0.0]]
    >>> batch_normalization_training_grad(x, g, [3.0], [2.0], [4.0], epsilon=2)[0]
    array([[ 1. ],
           [ 0. ],
           [-0.5],
           [-0.5]], dtype=float32)
    """
    if others:
        refuse_unknown(batch_normalization_training_grad, "BATCH_NORMALIZATION_TRAINING_GRAD", others)
    return apply_all(
        "BATCH_NORMALIZATION_TRAINING_GRAD",
        out,
        device,
        spread=over_channels,
        InputTensor=x,
        InputGradientTensor=input_gradient,
        MeanTensor=mean,
        VarianceTensor=variance,
        ScaleTensor=scale,
        Epsilon=epsilon,
    )


@documented("BATCH_NORMALIZATION_GRAD")
def batch_normalization_grad(
    x: Operand,
    input_gradient: Operand,
    mean: Operand,
    variance: Operand,
    scale: Operand,
    *,
    epsilon: float = 1e-5,
    out: list[Output] | tuple[Output, ...] | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> list[Result]:
    """The gradients of :func:`batch_normalization`: DML_OPERATOR_BATCH_NORMALIZATION_GRAD.

    Those of x are input_gradient * scale / sqrt(variance + epsilon), as mean and variance do not depend on it.

    Args:
        x: an array or an expression, float32 or float16: what was normalised.
        input_gradient: likewise, of the same shape: the gradients of what came of it.
        mean: an array or an expression of the same type, as it was there: a number for each channel, or of as many
            dimensions, each of x's size or 1.
        variance: likewise.
        scale: likewise.
        epsilon: as it was there.
        out: a list of three arrays to write to, of any strides; no memory shared with an input. Returned.

    Returns:
        The gradients of `x`, an array like it, of `scale`, and of the bias, in the dimensions of `scale`.

    >>> batch_normalization_grad([[1.0], [5.0]], [[1.0], [2.0]], [3.0], [4.0], [10.0], epsilon=0)
    [array([[ 5.],
           [10.]], dtype=float32), array([[1.]], dtype=float32), array([[3.]], dtype=float32)]
    """
    if others:
        refuse_unknown(batch_normalization_grad, "BATCH_NORMALIZATION_GRAD", others)
    return apply_all(
        "BATCH_NORMALIZATION_GRAD",
        out,
        device,
        spread=over_channels,
        InputTensor=x,
        InputGradientTensor=input_gradient,
        MeanTensor=mean,
        VarianceTensor=variance,
        ScaleTensor=scale,
        Epsilon=epsilon,
    )
