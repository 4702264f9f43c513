"""ROI_POOLING: rounding, bins that overlap, that are empty, and what is outside, NaN, strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml import DML_ROI_POOLING_OPERATOR_DESC, DML_SIZE_2D
from anydml.operators.schema import OperatorDesc
from support_tables import FLOATS, Shape, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan


def _case(
    id: str,
    x: Any,
    rois: Any,
    y: Any,
    scale: float = 1,
    dtype: Any = np.float32,
    strides: Sequence[Sequence[int] | None] = (None, None, None),
) -> Case:
    """Of one image of one channel, where there are less than 4 dimensions."""
    x, y = (np.asarray(each, dtype) for each in (x, y))
    rois = np.asarray(rois, dtype)[None, None]
    x = x if x.ndim == 4 else x[None, None]
    y = y if y.ndim == 4 else y[:, None]
    desc = DML_ROI_POOLING_OPERATOR_DESC(
        InputTensor=tensor_of(x, strides[0]),
        ROITensor=tensor_of(rois, strides[1]),
        OutputTensor=tensor_of(y, strides[2]),
        SpatialScale=scale,
        PooledSize=DML_SIZE_2D(Width=y.shape[3], Height=y.shape[2]),
    )
    return Case(f"roi_pooling-{id}", desc, [x, rois], [y])


_RAMP = 10 * np.arange(4)[:, None] + np.arange(4)
_IMAGES = np.stack([_RAMP, 100 + _RAMP])[:, None].repeat(2, 1) * np.array([1, -1])[:, None, None]
_WHOLE = [[0, 0, 0, 3, 3]]
_ROW = np.arange(1, 9)[None]
_NAN_BITS = np.array([[0x7FC01234, 0xFF812345]], np.uint32).view(np.float32)

CASES = [
    _case("halves", _RAMP, _WHOLE, [[[11, 13], [31, 33]]]),
    _case("halves-float16", _RAMP, _WHOLE, [[[11, 13], [31, 33]]], dtype=np.float16),
    # Three bins of 4: 0 to 2, 1 to 3, 2 to 4.
    _case("overlapping", _RAMP, _WHOLE, [[[31, 32, 33]]]),
    _case("more-bins-than-elements", [[1, 2]], [[0, 0, 0, 1, 0]], [[[1, 1, 2, 2]]]),
    # 0.5 and 2.5 are 1 and 3, -0.5 is -1: halves go away from zero.
    _case("rounded", _ROW, [[0, 0.5, 0, 2.5, 0], [0, -0.5, 0, 0.4, 0], [0, 1.49, 0, 1.5, 0]], [[[4]], [[1]], [[3]]]),
    _case("scaled", _RAMP, [[0, 0, 0, 6, 6]], [[[11, 13], [31, 33]]], 0.5),
    _case("scaled-backwards", _ROW, [[0, -1, 0, -3, 0]], [[[2, 3, 4]]], -1),
    # At least one element, though the ends are crossed.
    _case("crossed", _ROW, [[0, 4, 0, 1, 0], [0, 4, 0, 3, 0]], [[[5]], [[5]]]),
    _case("images-and-channels", _IMAGES, [[1, 0, 0, 3, 3], [0, 0, 0, 3, 3], [1, 1, 1, 1, 1]],
        [[[[133]], [[-100]]], [[[33]], [[0]]], [[[111]], [[-111]]]]),
    # Bins of 2 from -2 to 6, of an image of 4.
    _case("outside", [[-1, -2, -3, -4]], [[0, -2, 0, 5, 0]], [[[0, -1, -3, 0]]]),
    _case("far-outside", [[-1, -2, -3, -4]], [[0, 9, 0, 12, 0], [0, 0, 7, 3, 9], [0, -9, 0, -8, 0]],
        [[[0, 0]], [[0, 0]], [[0, 0]]]),
    _case("no-numbers", [[-1, -2]], [[0, NAN, 0, 1, 0], [0, 0, 0, NAN, 0], [0, 0, NAN, 1, 0], [0, 0, 0, 1, NAN]],
        [[[0, 0]]] * 4),
    _case("no-images", [[-1, -2]], [[i, 0, 0, 1, 0] for i in (1, -1, 0.5, NAN, INF, -INF, 2.0**40, -0.0)],
        [[[0, 0]]] * 7 + [[[-1, -2]]]),
    _case("infinite", [[1, 2]], [[0, 0, -INF, 1, 0], [0, INF, 0, INF, 0], [0, 0, 0, INF, 0], [0, -INF, 0, -INF, 0]],
        [[[1, 2]], [[0, 0]], [[2, 0]], [[0, 0]]]),
    _case("infinite-float16", [[1, 2]], [[0, 0, -INF, 1, 0], [0, 0, 0, INF, 0]], [[[1, 2]], [[2, 0]]],
        dtype=np.float16),
    _case("special", [[NAN, 1, INF, NAN, -INF, NAN, NAN, 3]], [[0, 0, 0, 7, 0]], [[[1, INF, -INF, 3]]]),
    _case("nan-alone", _NAN_BITS, [[0, 0, 0, 1, 0], [0, 1, 0, 1, 0]], [[[NAN]], [[NAN]]]),
    _case("lowest", [[-INF, -INF]], [[0, 0, 0, 1, 0]], [[[-INF]]]),
    _case("one-element", [[7]], [[0, 0, 0, 0, 0]] * 2, [[[7, 7], [7, 7]]] * 2),
    _case("transposed", _RAMP.T, _WHOLE, [[[11, 31], [13, 33]]], strides=((0, 0, 1, 4), (7, 7, 5, 1), (99, 99, 2, 13))),
    _case("broadcast", np.full((2, 3, 4, 4), 5), [[1, 0, 0, 3, 3]] * 3, np.full((3, 3, 2, 2), 5),
        strides=((0, 0, 0, 0), (0, 0, 0, 1), (40, 10, 4, 1))),
    _case("gapped-rois", _ROW, [[0, 1, 0, 3, 0], [0, 2, 0, 4, 0]], [[[4]], [[5]]], strides=(None, (0, 0, 1, 2), None)),
]  # fmt: skip


def _right(**members: Any) -> OperatorDesc:
    right: dict[str, Any] = {
        "InputTensor": tensor((2, 3, 4, 5)),
        "ROITensor": tensor((1, 1, 6, 5)),
        "OutputTensor": tensor((6, 3, 2, 3)),
        "SpatialScale": 1,
        "PooledSize": DML_SIZE_2D(Width=3, Height=2),
    }
    return DML_ROI_POOLING_OPERATOR_DESC(**{**right, **members})


def _wrong(rule: str, where: str, found: str, expected: str, **members: Any) -> Negative:
    return Negative(rule, _right(**members), where, found, expected)


NEGATIVES = [
    _wrong("(C1)", "ROITensor.DataType", "FLOAT16", "FLOAT32, that of", ROITensor=tensor((1, 1, 6, 5), "FLOAT16")),
    _wrong("(C1)", "OutputTensor.DataType", "FLOAT16", "FLOAT32, that", OutputTensor=tensor((6, 3, 2, 3), "FLOAT16")),
    _wrong("(C2)", "ROITensor.Sizes[0]", "2", "1", ROITensor=tensor((2, 1, 6, 5))),
    _wrong("(C2)", "ROITensor.Sizes[1]", "2", "1", ROITensor=tensor((1, 2, 6, 5))),
    _wrong("(C2)", "ROITensor.Sizes[3]", "4", "5, BatchID and corners", ROITensor=tensor((1, 1, 6, 4))),
    _wrong("(C3)", "SpatialScale", "nan", "a finite number", SpatialScale=NAN),
    _wrong("(C4)", "PooledSize.Width", "0", "at least 1", PooledSize=DML_SIZE_2D(Width=0, Height=2)),
    _wrong("(C4)", "PooledSize.Height", "0", "at least 1", PooledSize=DML_SIZE_2D(Width=3, Height=0)),
    _wrong("(C5)", "OutputTensor.Sizes[0]", "5", "6", OutputTensor=tensor((5, 3, 2, 3))),
    _wrong("(C5)", "OutputTensor.Sizes[1]", "4", "3", OutputTensor=tensor((6, 4, 2, 3))),
    _wrong("(C5)", "OutputTensor.Sizes[3]", "2", "3", OutputTensor=tensor((6, 3, 2, 2))),
]
RIGHT = [_right()]


def _of_ones(operator: str, **shapes: Shape) -> OperatorDesc:
    tensors: Mapping[str, Any] = {
        name: tensor(((1,) * rank)[1:] + (5,) * min(rank, 1) if name == "ROITensor" else (1,) * rank, kind.name)
        for name, (rank, kind) in shapes.items()
    }
    return _right(**tensors, PooledSize=DML_SIZE_2D(Width=1, Height=1))


SUPPORT = {"ROI_POOLING": Support([("1.0", 4, 4, FLOATS)], desc=_of_ones)}
KERNELS = {"ROI_POOLING": "maxima of bins of "}
