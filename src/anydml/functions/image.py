"""Images enlarged, scaled and shifted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.enums import InterpolationMode
from ..core.tensor_desc import DML_SIZE_2D
from ..device import Device
from ._apply import apply
from ._arguments import per_dimension
from ._documentation import documented
from ._names import refuse_unknown
from ._types import Operand, Output, Result


@documented("UPSAMPLE_2D")
def upsample_2d(
    x: Operand,
    scale_size: DML_SIZE_2D | int | Sequence[int],
    interpolation_mode: InterpolationMode | str = InterpolationMode.NEAREST_NEIGHBOR,
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Enlarges height and width by whole factors: DML_OPERATOR_UPSAMPLE_2D.

    Args:
        x: an array or an expression of shape (N, C, H, W) or (N, C, D, H, W); its types `anydml ops UPSAMPLE_2D` lists.
        scale_size: the factors, a DML_SIZE_2D, (height, width) or one number for both.
        interpolation_mode: an InterpolationMode or its name: the nearest element, or LINEAR between four.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type.

    >>> upsample_2d([[[[1.0, 2.0]]]], (1, 2))
    array([[[[1., 1., 2., 2.]]]], dtype=float32)
    """
    if others:
        refuse_unknown(upsample_2d, "UPSAMPLE_2D", others)
    size = scale_size
    if not isinstance(size, DML_SIZE_2D):
        height, width = per_dimension("UPSAMPLE_2D", "scale_size", size, 2)
        size = DML_SIZE_2D(Width=width, Height=height)
    return apply("UPSAMPLE_2D", out, device, InputTensor=x, ScaleSize=size, InterpolationMode=interpolation_mode)


@documented("VALUE_SCALE_2D")
def value_scale_2d(
    x: Operand,
    scale: float,
    bias: Sequence[float],
    *,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """scale * x + bias[channel] for each element x: DML_OPERATOR_VALUE_SCALE_2D.

    Args:
        x: an array or an expression, float32 or float16 of shape (N, C, H, W), of 1 or 3 channels.
        scale: the factor of all elements.
        bias: what is added, for each channel.
        out: where to write, of any strides; no memory shared with x. Returned.

    Returns:
        An array like `x`, of its type and shape.

    >>> value_scale_2d([[[[1.0, 2.0]]]], 10, [0.5])
    array([[[[10.5, 20.5]]]], dtype=float32)
    """
    if others:
        refuse_unknown(value_scale_2d, "VALUE_SCALE_2D", others)
    return apply("VALUE_SCALE_2D", out, device, InputTensor=x, Scale=scale, Bias=bias)
