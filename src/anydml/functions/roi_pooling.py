"""Maxima of regions of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.tensor_desc import DML_SIZE_2D
from ..device import Device
from ._apply import apply, leading
from ._arguments import per_dimension
from ._documentation import documented
from ._names import REQUIRED, refuse_unknown
from ._operand_adapter import Shape
from ._types import Operand, Output, Result


@documented("ROI_POOLING")
def roi_pooling(
    x: Operand,
    roi: Operand,
    pooled_size: DML_SIZE_2D | int | Sequence[int] = REQUIRED,
    *,
    spatial_scale: float = 1.0,
    out: Output | None = None,
    device: Device | str | None = None,
    **others: Any,
) -> Result:
    """Divides regions of images into bins, and takes the maximum of each: DML_OPERATOR_ROI_POOLING.

    It is torchvision's roi_pool and ONNX's MaxRoiPool; torchvision's x2 and y2 are no part of a region.

    Args:
        x: an array or an expression, float32 or float16 of shape (N, C, H, W).
        roi: likewise, of x's type: the image's number and the corners x1, y1, x2, y2 of each region, (regions, 5), with
            any leading dimensions of 1; corners are part of a region.
        pooled_size: the numbers of bins, a DML_SIZE_2D, (height, width) or one number for both.
        spatial_scale: the factor of corners, which makes them places in x.
        out: where to write, of any strides; no memory shared with an input. Returned.

    Returns:
        An array like `x`, of its type and of shape (regions, C, height, width). Bins outside x are
        0, as are those of an image that is not there.

    >>> roi_pooling([[[[1.0, 2.0], [3.0, 4.0]]]], [[0.0, 0.0, 0.0, 1.0, 1.0]], (1, 2))
    array([[[[3., 4.]]]], dtype=float32)
    """
    if others or pooled_size is REQUIRED:
        refuse_unknown(roi_pooling, "ROI_POOLING", others, pooled_size=pooled_size)
    size = pooled_size
    if not isinstance(size, DML_SIZE_2D):
        height, width = per_dimension("ROI_POOLING", "pooled_size", size, 2)
        size = DML_SIZE_2D(Width=width, Height=height)
    operands = {"InputTensor": x, "ROITensor": roi}
    return apply(
        "ROI_POOLING", out, device, spread=_of_4_dimensions, **operands, SpatialScale=spatial_scale, PooledSize=size
    )


def _of_4_dimensions(name: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    roi = shapes["ROITensor"]
    return {"ROITensor": leading(roi, 4)} if len(roi) < 4 else {}
