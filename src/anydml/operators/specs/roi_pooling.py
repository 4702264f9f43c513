"""ROI_POOLING: the maxima of the bins that regions of images are divided into.

Decisions, where the page is silent:

1. round() takes halves away from zero, as C's does and so ONNX Runtime and Caffe; products of coordinates and SpatialScale
   are exact. A region is at least one element high and wide, though x2 < x1 - 1 or y2 < y1 - 1.
2. Bins that are empty, as they are outside the input, are 0, as in ONNX Runtime.
3. Where a coordinate of a region is NaN, all its bins are empty. One beyond 2^52, infinite ones among them, is as 2^52.
4. A region whose BatchID is no whole number from 0 to less than BatchCount is outside the input: its bins are empty.
5. Of NaNs and numbers the maximum is a number, as in MAX_POOLING; of those that are equal the first one, column by
   column. Not in-place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from ...core.enums import OperatorType
from ...core.strided_layout import Array
from ..constraints import same
from ..schema import (
    FLOAT,
    Choices,
    ConstraintFailure,
    Independence,
    OperatorDesc,
    OperatorSpec,
    Size2D,
    Tensor,
    support_table,
)

FARTHEST = 2.0**52


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_ROI_POOLING_OPERATOR_DESC(OperatorDesc):
    """Divides regions of images into bins, and takes the maximum of each.

    With y1 = round(RoiY1 * SpatialScale), y2 likewise and height = y2 - y1 + 1, bin i of Height is from
    y1 + floor(i * height / Height) to before y1 + ceil((i + 1) * height / Height), as far as the input goes.

    Args:
        InputTensor: {BatchCount, ChannelCount, InputHeight, InputWidth}.
        ROITensor: the number of the image and the corners, BatchID, x1, y1, x2, y2, of each region: {1, 1, NumROIs, 5}.
            Corners are part of a region.
        OutputTensor: {NumROIs, ChannelCount, Height, Width}.
        SpatialScale: the factor of coordinates, which makes them places in the input.
        PooledSize: the numbers of bins.

    Constraints:
        (C1) InputTensor, ROITensor and OutputTensor have the same DataType.
        (C2) ROITensor has the sizes 1, 1, NumROIs and 5.
        (C3) SpatialScale is finite.
        (C4) Width and Height of PooledSize are at least 1.
        (C5) OutputTensor has the sizes NumROIs, ChannelCount, and Height and Width of PooledSize.

    Source: the page of DML_ROI_POOLING_OPERATOR_DESC; since feature level 1.0.
    """

    InputTensor: Tensor
    ROITensor: Tensor
    OutputTensor: Tensor
    SpatialScale: FLOAT
    PooledSize: Size2D


def _constraints(desc: DML_ROI_POOLING_OPERATOR_DESC) -> Iterator[ConstraintFailure]:
    yield from same(desc, "(C1)", "DataType", "InputTensor", "ROITensor", "OutputTensor")
    sizes = desc.ROITensor.Sizes
    if len(sizes) == 4:
        for i, (wanted, meaning) in {0: (1, "1"), 1: (1, "1"), 3: (5, "5, BatchID and corners")}.items():
            if sizes[i] != wanted:
                yield ConstraintFailure("(C2)", f"ROITensor.Sizes[{i}]", str(sizes[i]), meaning)
    if not isfinite(desc.SpatialScale):
        yield ConstraintFailure("(C3)", "SpatialScale", str(desc.SpatialScale), "a finite number")
    for name in ("Width", "Height"):
        if getattr(desc.PooledSize, name) < 1:
            yield ConstraintFailure("(C4)", f"PooledSize.{name}", "0", "at least 1")


def _infer_sizes(desc: DML_ROI_POOLING_OPERATOR_DESC) -> dict[str, Choices]:
    pooled, sizes = desc.PooledSize, desc.InputTensor.Sizes
    if len(sizes) != 4 or len(desc.ROITensor.Sizes) != 4 or not pooled.Height or not pooled.Width:
        return {}
    return {"OutputTensor": ((desc.ROITensor.Sizes[2],), (sizes[1],), (pooled.Height,), (pooled.Width,))}


def _are_images(batch: Array, count: int) -> Array:
    with np.errstate(invalid="ignore"):
        numbers = batch.astype(np.float64)
        found: Array = (numbers >= 0) & (numbers < count) & (numbers == np.floor(numbers))
    return found


def _reference(desc: DML_ROI_POOLING_OPERATOR_DESC, x: Array, rois: Array) -> Array:
    y = np.zeros(desc.OutputTensor.Sizes, x.dtype)
    rois = rois[0, 0]
    are_images = _are_images(rois[:, 0], len(x))
    rows, columns = (_bins(desc, rois, axis, x.shape[axis], y.shape[axis]) for axis in (2, 3))
    for r, i, j in np.ndindex(*y.shape[:1], *y.shape[2:]):
        (top, bottom), (left, right) = rows[r, i], columns[r, j]
        if are_images[r] and top < bottom and left < right:
            under = x[int(rois[r, 0]), :, top:bottom, left:right].swapaxes(1, 2).reshape(x.shape[1], -1)
            y[r, :, i, j] = np.take_along_axis(under, _first_largest(under)[:, None], 1)[:, 0]
    return y


def _first_largest(x: Array) -> Array:
    """Of each row, where NaN is below every number."""
    best = np.zeros(len(x), np.intp)
    rows = np.arange(len(x))
    for k in range(x.shape[1]):
        held, candidate = x[rows, best], x[:, k]
        best = np.where((candidate > held) | ((held != held) & (candidate == candidate)), k, best)
    return best


def _bins(desc: DML_ROI_POOLING_OPERATOR_DESC, rois: Array, axis: int, size: int, count: int) -> Array:
    """Where the bins of each region begin and end in the dimension 2, of y, or 3, of x: {NumROIs, count, 2}."""
    with np.errstate(invalid="ignore"):
        places = rois[:, 4 - axis :: 2].astype(np.float64) * desc.SpatialScale
    places = np.clip(np.where(places < 0, np.ceil(places - 0.5), np.floor(places + 0.5)), -FARTHEST, FARTHEST)
    begin, end = places[:, :1], places[:, 1:]
    extent = np.maximum(end - begin + 1, 1)
    i = np.arange(count)
    edges = np.floor(i * extent / count) + begin, np.ceil((i + 1) * extent / count) + begin
    found = np.clip(np.stack(edges, -1), 0, size)
    return np.where(np.isnan(found), 0, found).astype(np.int64)


def _independent(desc: Any) -> Independence:
    """Regions and channels."""
    return {
        "InputTensor": (None, 1, None, None),
        "ROITensor": (None, None, 0, None),
        "OutputTensor": (0, 1, None, None),
    }


ROI_POOLING = OperatorSpec(
    operator_type=OperatorType.ROI_POOLING,
    desc=DML_ROI_POOLING_OPERATOR_DESC,
    constraints=_constraints,
    infer_sizes=_infer_sizes,
    sizes_rule="(C5)",
    reference=_reference,
    independent=_independent,
    support=support_table("""
        DML_FEATURE_LEVEL_1_0 and above
        InputTensor  | Input  | 4 | FLOAT32, FLOAT16
        ROITensor    | Input  | 4 | FLOAT32, FLOAT16
        OutputTensor | Output | 4 | FLOAT32, FLOAT16
    """),
)
