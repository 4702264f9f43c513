"""Regions of images: cut out and resampled, pooled; and blocks put back."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .shapes import broadcast, filled


def roi_align(node: NodeContext) -> Any:
    mode, samples = node.get("mode", "avg"), node.get("sampling_ratio", 0)
    if mode == "max" and samples != 1:
        raise NotLowered("the maximum of weighted elements, where DirectML's is that of sums of them")
    own, count = node.shape(0), node.shape(1)[0]
    sizes = (node.get("output_height", 1), node.get("output_width", 1))
    # Operator set 16 brought the attribute, and its default.
    transform = node.get("coordinate_transformation_mode", "half_pixel") if node.opset >= 16 else "output_half_pixel"
    is_half, scale = transform == "half_pixel", node.get("spatial_scale", 1.0)

    def make() -> Expression:
        x, rois = node.x(0), node.x(1)
        if not is_half:
            # Of half precision an element's part of a large coordinate would be lost.
            x, rois = x.astype(np.float32), _enlarged(node, rois.astype(np.float32), scale)
        found: Expression = node.call(
            "roi_align",
            x,
            rois,
            node.x(2).astype(np.uint32),
            sizes,
            reduction_function="MAX" if mode == "max" else "AVERAGE",
            spatial_scale_x=scale,
            spatial_scale_y=scale,
            input_pixel_offset=0.5 if is_half else 0.0,
            minimum_samples_per_output=samples or 1,
            maximum_samples_per_output=samples or 2**32 - 1,
        )
        return found.astype(node.dtype(0))

    return filled(node, (count, own[1], *sizes), make)


def _enlarged(node: NodeContext, rois: Expression, scale: float) -> Expression:
    """Regions of at least one element, as ONNX has them without half pixels: max(x2, x1 + 1 / scale)."""
    low, high = rois[:, :2], rois[:, 2:]
    least = low + 1 / scale
    # No more than one element, so that rounding does not ask for another sample of it.
    least = least - abs(least) * 2.0**-22
    joined: Expression = node.call("join", [low, node.call("max", high, least)], 1)
    return joined


def max_roi_pool(node: NodeContext) -> Any:
    sizes, scale = tuple(node.required("pooled_shape")), node.get("spatial_scale", 1.0)
    shape = (node.shape(1)[0], node.shape(0)[1], *sizes)
    return filled(node, shape, lambda: node.call("roi_pooling", node.x(0), node.x(1), sizes, spatial_scale=scale))


def col2im(node: NodeContext) -> Any:
    image, window = node.integers(1), node.integers(2)
    n = len(image)
    batch, rows, _ = node.shape(0)
    start, end = np.reshape(node.get("pads", [0] * 2 * n), (2, n)).tolist()
    options = {name: node.get(name, [1] * n) for name in ("strides", "dilations")}

    shape = (batch, rows // prod(window), *image)

    def make() -> Expression:
        if 0 in node.shape(0):
            return broadcast(node.constant(np.zeros(1, node.dtype(0))), shape)
        found: Expression = node.call("fold", node.x(0), image, window, start_padding=start, end_padding=end, **options)
        return found

    return filled(node, shape, make)


LOWERINGS: dict[str, Lowering] = {
    "Col2Im": col2im,
    "MaxRoiPool": max_roi_pool,
    "RoiAlign": roi_align,
}
