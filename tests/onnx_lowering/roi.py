"""Regions of interest."""

from __future__ import annotations

import numpy as np

from anydml import DML_SIZE_2D
from anydml.core.enums import InterpolationMode, ReduceFunction
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, NotSaid, packed, reshaped, sizes_of


def max_roi_pool(node: Node) -> Expression:
    rois = node.input(1)
    height, width = node.get("pooled_shape")
    return node(
        "ROI_POOLING",
        InputTensor=node.input(0),
        ROITensor=reshaped(rois, (1, 1, *sizes_of(rois))),
        SpatialScale=node.get("spatial_scale", 1.0),
        PooledSize=DML_SIZE_2D(Width=width, Height=height),
    )


def roi_align(node: Node) -> Expression:
    mode = node.get("mode", b"avg")
    samples = node.get("sampling_ratio", 0)
    if mode == b"max" and samples != 1:
        raise NotSaid("the maximum of weighted elements, where DirectML's is that of sums of them")
    x, rois = node.input(0), node.input(1)
    is_half = node.get("coordinate_transformation_mode", b"half_pixel") == b"half_pixel"
    indices = node.constant(np.asarray(node.values[2], np.uint32))
    scale = node.get("spatial_scale", 1.0)
    count, (_, channels, *_) = sizes_of(rois)[0], sizes_of(x)
    sizes = (count, channels, node.get("output_height", 1), node.get("output_width", 1))
    return node(
        "ROI_ALIGN1",
        InputTensor=x,
        ROITensor=rois,
        BatchIndicesTensor=indices,
        OutputTensor=packed(x.tensor.DataType, sizes),
        ReductionFunction=ReduceFunction.MAX if mode == b"max" else ReduceFunction.AVERAGE,
        InterpolationMode=InterpolationMode.LINEAR,
        SpatialScaleX=scale,
        SpatialScaleY=scale,
        InputPixelOffset=0.5 if is_half else 0.0,
        OutputPixelOffset=-0.5,
        OutOfBoundsInputValue=0.0,
        MinimumSamplesPerOutput=samples or 1,
        MaximumSamplesPerOutput=samples or 2**32 - 1,
        AlignRegionsToCorners=False,
    )


ADAPTERS: dict[str, Adapter] = {"MaxRoiPool": max_roi_pool, "RoiAlign": roi_align}
