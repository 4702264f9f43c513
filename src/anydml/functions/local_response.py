"""Normalisations by what lies around an element."""

from __future__ import annotations

from typing import Any

from ..device import Device
from ._apply import apply
from ._documentation import documented
from ._names import refuse_unknown
from ._types import Operand, Output, Result


@documented("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(
    x: Operand,
    local_size: int,
    *,
    cross_channel: bool = True,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """x / (bias + alpha / local_size * the sum of squares around x)^beta: DML_OPERATOR_LOCAL_RESPONSE_NORMALIZATION.

    Args:
        x: an array or an expression, float32 or float16 of shape (N, C, H, W).
        local_size: elements that are summed, along each dimension concerned.
        cross_channel: whether they are summed across channels, or in a square of one channel.
        alpha: the factor of the sum.
        beta: the exponent.
        bias: added to the sum.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type and shape.

    >>> local_response_normalization([[[[1.0]], [[2.0]]]], 2, alpha=2, beta=1)
    array([[[[0.16666667]],
    <BLANKLINE>
            [[0.4       ]]]], dtype=float32)
    """
    if others:
        refuse_unknown(local_response_normalization, "LOCAL_RESPONSE_NORMALIZATION", others)
    return apply(
        "LOCAL_RESPONSE_NORMALIZATION",
        out,
        device,
        InputTensor=x,
        CrossChannel=cross_channel,
        LocalSize=local_size,
        Alpha=alpha,
        Beta=beta,
        Bias=bias,
    )


@documented("LOCAL_RESPONSE_NORMALIZATION_GRAD")
def local_response_normalization_grad(
    x: Operand,
    input_gradient: Operand,
    local_size: int,
    *,
    cross_channel: bool = True,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """The gradients of :func:`local_response_normalization`: DML_OPERATOR_LOCAL_RESPONSE_NORMALIZATION_GRAD.

    Args:
        x: an array or an expression, float32 or float16 of shape (N, C, H, W): what was normalised.
        input_gradient: likewise, of the same shape: the gradients of what came of it.
        local_size: as it was there, and so are the others.
        cross_channel: whether squares are summed across channels, or in a square of one channel.
        alpha: the factor of the sum.
        beta: the exponent.
        bias: added to the sum.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        The gradients of `x`, an array like it, of its type and shape.

    >>> local_response_normalization_grad([[[[1.0]], [[2.0]]]], [[[[6.0]], [[0.0]]]], 2, alpha=2, beta=1)
    array([[[[ 0.6666667]],
    <BLANKLINE>
            [[-0.6666667]]]], dtype=float32)
    """
    if others:
        refuse_unknown(local_response_normalization_grad, "LOCAL_RESPONSE_NORMALIZATION_GRAD", others)
    return apply(
        "LOCAL_RESPONSE_NORMALIZATION_GRAD",
        out,
        device,
        InputTensor=x,
        InputGradientTensor=input_gradient,
        CrossChannel=cross_channel,
        LocalSize=local_size,
        Alpha=alpha,
        Beta=beta,
        Bias=bias,
    )
