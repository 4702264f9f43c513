"""ROI_POOLING: the maxima of rows, and then of columns, that the bins of regions have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ....core.strided_layout import Layout
from ....operators.schema import OperatorSpec
from ....operators.specs.roi_pooling import FARTHEST
from . import Run, Tensors
from .values import double, store


def plan(spec: OperatorSpec, desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Run:
    def run(read: Tensors, written: Tensors) -> None:
        x, rois = double(read[0]), double(read[1]).reshape(-1, 5)
        number = rois[:, 0]
        there = (number >= 0) & (number < len(x)) & (number == number.floor())
        batch = torch.where(there, number, 0.0).to(torch.int64)
        (top, bottom), (left, right) = (
            _bins(desc, rois, axis, x.shape[axis], written[0].shape[axis]) for axis in (2, 3)
        )
        partial = x.new_full((len(rois), x.shape[1], top.shape[1], x.shape[3]), torch.nan)
        for i in range(x.shape[2]):
            under = ((top <= i) & (i < bottom))[:, None, :, None]
            partial = _larger(partial, x[batch, :, i][:, :, None], under)
        y = x.new_full(written[0].shape, torch.nan)
        for j in range(x.shape[3]):
            under = ((left <= j) & (j < right))[:, None, None]
            y = _larger(y, partial[..., j, None], under)
        is_full = there[:, None, None] & (top < bottom)[:, :, None] & (left < right)[:, None]
        store(torch.where(is_full[:, None], y, 0.0), written[0])

    return run


def _larger(best: Any, candidate: Any, under: Any) -> Any:
    """Of NaN and a number the number."""
    return torch.where(under & ((candidate > best) | (best != best)), candidate, best)


def _bins(desc: Any, rois: Any, axis: int, size: int, count: int) -> tuple[Any, Any]:
    """Where the bins of each region begin and end, {R, count}."""
    places = rois[:, 4 - axis :: 2] * desc.SpatialScale
    places = torch.where(places < 0, (places - 0.5).ceil(), (places + 0.5).floor()).clamp(-FARTHEST, FARTHEST)
    begin, end = places[:, :1], places[:, 1:]
    extent = (end - begin + 1).clamp(min=1)
    i = torch.arange(count, dtype=torch.float64, device=rois.device)
    edges = (i * extent / count).floor() + begin, ((i + 1) * extent / count).ceil() + begin
    first, last = (torch.nan_to_num(each, nan=0.0).clamp(0, size) for each in edges)
    return first, last
