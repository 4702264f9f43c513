"""Regions of images: cut out and resampled, pooled; and blocks put back."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .shapes import broadcast, filled


def roi_align(node: NodeContext) -> Any:
    mode, samples = node.get("mode", "avg"), node.get("sampling_ratio", 0)
    if mode == "max" and not samples:
        raise NotLowered("as many samples for a maximum as each region's size says")
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
        if mode == "max":
            return _largest(node, x.astype(np.float32), rois.astype(np.float32) * scale, sizes).astype(node.dtype(0))
        found: Expression = node.call(
            "roi_align",
            x,
            rois,
            node.x(2).astype(np.uint32),
            sizes,
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


def _largest(node: NodeContext, x: Expression, rois: Expression, sizes: tuple[int, int]) -> Expression:
    """ONNX's maximum is that of weighted elements, four around each sample, where DirectML's is that of their sums.

    max over samples and corners of weight[region, sample, corner] * x[channel, element[region, sample, corner]]
    """
    n, channels, height, width = x.shape
    samples, count = node.get("sampling_ratio"), rois.shape[0]
    rows = _corners(node, rois[:, 1::2], sizes[0], height)
    columns = _corners(node, rois[:, 0::2], sizes[1], width)
    images = node.x(2).astype(np.int64).reshape(count, 1, 1) * np.array([height * width], np.int64)
    planes = x.transpose(1, 0, 2, 3).reshape(channels, n * height * width)
    best: Expression | None = None
    for (row, row_weight), (column, column_weight) in product(rows, columns):
        elements = images + (row * np.array([width], np.int64)).reshape(count, -1, 1) + column.reshape(count, 1, -1)
        weights = row_weight.reshape(count, -1, 1) * column_weight.reshape(count, 1, -1)
        found = node.call("gather", planes, elements, 1) * weights
        best = found if best is None else node.call("max", best, found)
    assert best is not None
    parted = best.reshape(channels, count, sizes[0], samples, sizes[1], samples)
    most: Expression = node.call("reduce", parted, "max", [3, 5])
    return most.reshape(channels, count, *sizes).transpose(1, 0, 2, 3)


def _corners(node: NodeContext, ends: Expression, bins: int, size: int) -> list[tuple[Expression, Expression]]:
    """The elements before and behind each sample of an axis, {regions, samples}, and their weights; 0 far outside."""
    samples = node.get("sampling_ratio")
    is_half = node.get("coordinate_transformation_mode", "half_pixel") == "half_pixel" and node.opset >= 16
    parts = ((np.arange(bins * samples) + 0.5) / (bins * samples)).astype(np.float32)
    start = ends[:, :1] - 0.5 if is_half else ends[:, :1]
    at = start + (ends[:, 1:] - ends[:, :1]) * parts
    inside = ((at >= -1.0) & (at <= float(size))).astype(np.float32)
    at = node.call("clip", at, 0.0, size - 1.0)
    low = node.call("floor", at)
    high = node.call("clip", low + 1.0, 0.0, size - 1.0)
    behind = at - low
    return [(low.astype(np.int64), (1 - behind) * inside), (high.astype(np.int64), behind * inside)]


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
