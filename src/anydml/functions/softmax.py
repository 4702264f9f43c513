"""Activations along axes: softmax, its logarithm, and hardmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..device import Device
from ._apply import apply
from ._arguments import as_axes
from ._documentation import documented
from ._names import NOT_GIVEN, axes_of, refuse_unknown
from ._operand_adapter import adapter_for
from ._types import Operand, Output, Result


@documented("ACTIVATION_SOFTMAX", "ACTIVATION_SOFTMAX1")
def softmax(
    x: Operand,
    axes: int | Sequence[int] | None = NOT_GIVEN,
    *,
    axis: int | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """e^x / sum(e^x) for each element x: DML_OPERATOR_ACTIVATION_SOFTMAX1.

    The sum is along axes, which together make a group. Along the last axis of one row, or of a matrix of them, it is
    DML_OPERATOR_ACTIVATION_SOFTMAX.

    Args:
        x: an array or an expression of float32 or float16.
        axes: an axis, or several; negative ones count from the last, which it is where not given. None for all.
        axis: one axis, in place of `axes`.
        out: where to write, of x's type and shape and of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type and shape.

    >>> softmax([[0.0, 0.0], [0.0, 100.0]])
    array([[5.0e-01, 5.0e-01],
           [3.8e-44, 1.0e+00]], dtype=float32)
    """
    if others:
        refuse_unknown(softmax, "ACTIVATION_SOFTMAX", others)
    return _along("ACTIVATION_SOFTMAX", x, axes_of("ACTIVATION_SOFTMAX", axes, axis, -1), out, device)


@documented("ACTIVATION_LOG_SOFTMAX", "ACTIVATION_LOG_SOFTMAX1")
def log_softmax(
    x: Operand,
    axes: int | Sequence[int] | None = NOT_GIVEN,
    *,
    axis: int | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """ln(e^x / sum(e^x)) for each element x: DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1.

    The sum is along axes, which together make a group. Along the last axis of one row, or of a matrix of them, it is
    DML_OPERATOR_ACTIVATION_LOG_SOFTMAX.

    Args:
        x: an array or an expression of float32 or float16.
        axes: an axis, or several; negative ones count from the last, which it is where not given. None for all.
        axis: one axis, in place of `axes`.
        out: where to write, of x's type and shape and of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type and shape.

    >>> log_softmax([0.0, 0.0])
    array([-0.6931472, -0.6931472], dtype=float32)
    """
    if others:
        refuse_unknown(log_softmax, "ACTIVATION_LOG_SOFTMAX", others)
    return _along("ACTIVATION_LOG_SOFTMAX", x, axes_of("ACTIVATION_LOG_SOFTMAX", axes, axis, -1), out, device)


@documented("ACTIVATION_HARDMAX", "ACTIVATION_HARDMAX1")
def hardmax(
    x: Operand,
    axes: int | Sequence[int] | None = NOT_GIVEN,
    *,
    axis: int | None = None,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """1 for the largest element along axes, 0 for all others: DML_OPERATOR_ACTIVATION_HARDMAX1.

    Along the last axis of one row, or of a matrix of them, it is DML_OPERATOR_ACTIVATION_HARDMAX.

    Args:
        x: an array or an expression of float32 or float16.
        axes: an axis, or several; negative ones count from the last, which it is where not given. None for all.
        axis: one axis, in place of `axes`.
        out: where to write, of x's type and shape and of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type and shape; of equal elements the first has the 1.

    >>> hardmax([[1.0, 3.0, 3.0]])
    array([[0., 1., 0.]], dtype=float32)
    """
    if others:
        refuse_unknown(hardmax, "ACTIVATION_HARDMAX", others)
    return _along("ACTIVATION_HARDMAX", x, axes_of("ACTIVATION_HARDMAX", axes, axis, -1), out, device)


def _along(name: str, x: Any, axes: Any, out: Any, device: Any) -> Any:
    side = adapter_for(name, [x], out, device)
    shape = side.look("x", x).shape
    each = as_axes(name, axes, len(shape))
    if each == (len(shape) - 1,) and all(size == 1 for size in shape[:-2]):
        return apply(name, out, device, InputTensor=x)
    return apply(f"{name}1", out, device, InputTensor=x, Axes=each)
