"""ROI_ALIGN, its revision and gradients: the page's example, samples, offsets, corners, what is outside, strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anydml import TensorDataType
from anydml.core.enums import InterpolationMode, ReduceFunction
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from support_tables import FLOATS, Shape, Support

from . import Case, Negative, tensor, tensor_of

INF, NAN = np.inf, np.nan
NEAREST, LINEAR = InterpolationMode.NEAREST_NEIGHBOR, InterpolationMode.LINEAR
AVERAGE, MAX = ReduceFunction.AVERAGE, ReduceFunction.MAX
MANY = 2**32 - 1
_FORWARD = ("ROI_ALIGN", "ROI_ALIGN1")


def _members(
    operator: str,
    mode: InterpolationMode = LINEAR,
    function: ReduceFunction = AVERAGE,
    samples: tuple[int, int] = (1, MANY),
    scales: tuple[float, float] = (1, 1),
    offsets: tuple[float, float] = (0.5, -0.5),
    outside: float = 0,
    to_corners: bool = False,
) -> dict[str, Any]:
    members = {
        "ReductionFunction": function,
        "InterpolationMode": mode,
        "SpatialScaleX": scales[0],
        "SpatialScaleY": scales[1],
        "InputPixelOffset": offsets[0],
        "OutputPixelOffset": offsets[1],
        "OutOfBoundsInputValue": outside,
        "MinimumSamplesPerOutput": samples[0],
        "MaximumSamplesPerOutput": samples[1],
        "AlignRegionsToCorners": to_corners,
    }
    return {name: value for name, value in members.items() if name in spec(operator).members}


def _case(
    operator: str,
    id: str,
    x: Any,
    rois: Any,
    y: Any,
    indices: Any = None,
    dtype: Any = np.float32,
    strides: Sequence[Sequence[int] | None] = (None,) * 4,
    **options: Any,
) -> Case:
    """Of one channel, where there are less than 4 dimensions: an image, and an output element of a row or of a number
    for each region."""
    x, rois = np.asarray(x, dtype), np.asarray(rois, dtype)
    count = rois.size // 4
    y = np.asarray(y, dtype)
    x = x if x.ndim == 4 else x.reshape(1, 1, *x.shape)
    y = y if y.ndim == 4 else y.reshape(count, 1, *[*y.shape[1:], 1, 1][:2])
    indices = np.asarray([0] * count if indices is None else indices, np.uint32)
    arrays = dict(
        zip(("InputTensor", "ROITensor", "BatchIndicesTensor", "OutputTensor"), (x, rois, indices, y), strict=True)
    )
    tensors = {name: tensor_of(each, stride) for (name, each), stride in zip(arrays.items(), strides, strict=True)}
    desc = spec(operator).desc(**tensors, **_members(operator, **options))
    return Case(f"{operator.lower()}-{id}", desc, [x, rois, indices], [y])


def _both(*arguments: Any, **options: Any) -> list[Case]:
    return [_case(name, *arguments, **options) for name in _FORWARD]


_COUNTED = np.arange(1, 17).reshape(4, 4)
_QUARTERS = [[0, 0, 2, 2], [2, 0, 4, 2], [0, 2, 2, 4], [2, 2, 4, 4]]
_SQUEEZED = [[[1, 1, 2]], [[3, 3, 4]], [[9, 9, 10]], [[11, 11, 12]]]
_RAMP = 10 * np.arange(4)[:, None] + np.arange(4)
_WHOLE = [[0, 0, 4, 4]]
_TWO_IMAGES = np.stack([_RAMP, 100 + _RAMP])[:, None].repeat(2, 1) * np.array([1, -1])[:, None, None]
_ONCE = (1, 1)

CASES = [
    # The page's of the gradient, where ties go to the first of two.
    *_both("page", _COUNTED, _QUARTERS, _SQUEEZED, mode=NEAREST, samples=_ONCE),
    # Samples at 0 and 1, and at 2 and 3.
    *_both("average", _RAMP, _WHOLE, [[[5.5, 7.5], [25.5, 27.5]]]),
    *_both("average-float16", _RAMP, _WHOLE, [[[5.5, 7.5], [25.5, 27.5]]], dtype=np.float16),
    *_both("max", _RAMP, _WHOLE, [[[11, 13], [31, 33]]], function=MAX),
    *_both("max-float16", _RAMP, _WHOLE, [[[11, 13], [31, 33]]], function=MAX, dtype=np.float16),
    *_both("nearest", _RAMP, _WHOLE, [[[5.5, 7.5], [25.5, 27.5]]], mode=NEAREST),
    *_both("nearest-max", _RAMP, _WHOLE, [[[11, 13], [31, 33]]], mode=NEAREST, function=MAX),
    *_both("one-sample", _RAMP, _WHOLE, [[[5.5, 7.5], [25.5, 27.5]]], samples=_ONCE),
    *_both("one-sample-nearest", _RAMP, _WHOLE, [[[0, 2], [20, 22]]], samples=_ONCE, mode=NEAREST),
    # Samples at -1/4, 1/4, 3/4 and 5/4, of which the first is brought to 0.
    *_both("least-samples", _RAMP[:1], [[0, 0, 2, 1]], [[[9 / 16]]], samples=(4, 9)),
    *_both("least-samples-max", _RAMP[:1], [[0, 0, 2, 1]], [[[1.25]]], samples=(4, 9), function=MAX),
    *_both("most-samples", _RAMP, _WHOLE, [[[16.5]]], samples=(0, 2)),
    # Two and a half elements make three samples: at 1/12 * 5 - 1/2 and the like.
    *_both("rounded-up", _RAMP[:1], [[0.5, 0, 3, 1]], [[[1.25]]]),
    *_both("turned-round", _RAMP, [[4, 0, 0, 4]], [[[7.5, 5.5], [27.5, 25.5]]]),
    *_both("turned-round-max", _RAMP, [[4, 4, 0, 0]], [[[33, 31], [13, 11]]], function=MAX),
    *_both("empty", _RAMP, [[1, 1, 1, 1]], [[[5.5, 5.5], [5.5, 5.5]]]),
    *_both("scaled", _RAMP, [[0, 0, 1, 0.5]], [[[5.5, 7.5], [25.5, 27.5]]], scales=(4, 8)),
    *_both("images-and-channels", _TWO_IMAGES, [*_WHOLE, *_WHOLE, [1, 1, 1, 1]],
        np.array([[[[116.5]], [[-116.5]]], [[[16.5]], [[-16.5]]], [[[105.5]], [[-105.5]]]]), indices=[1, 0, 1]),
    # Samples at -2, which is outside, at -1, 0 and 1.
    *_both("outside", _RAMP, [[-2, 0, 2, 4]], [[[7, 15, 15, 16]]], outside=7),
    *_both("partly-outside", _RAMP, [[-2, 0, 2, 4]], [[[11, 15.5]]], outside=7),
    *_both("partly-outside-max", _RAMP, [[-2, 0, 2, 4]], [[[40, 31]]], outside=40, function=MAX),
    *_both("outside-is-less", _RAMP, [[-2, 0, 2, 4]], [[[30, 31]]], outside=-3, function=MAX),
    *_both("outside-nan", _RAMP, [[-2, 0, 2, 4], [9, 9, 9, 9]], [[[NAN, 15.5]], [[NAN, NAN]]], outside=NAN),
    *_both("outside-nan-max", _RAMP, [[-2, 0, 2, 4], [9, 9, 9, 9]], [[[30, 31]], [[NAN, NAN]]], outside=NAN,
        function=MAX),
    # Samples at 3, 4, 5 and 6: one behind the last is not outside yet.
    *_both("outside-behind", _RAMP[:1], [[3, 0, 7, 1]], [[[3, 3, -INF, -INF]]], outside=-INF),
    *_both("outside-turned-round", _RAMP[:1], [[7, 0, 3, 1]], [[[-5, -5, 3, 3]]], outside=-5),
    # Of 2^26 samples in a row three are inside: at -1, 0 and 1.
    *_both("far-outside", [[4, 8]], [[-(2.0**25), 0, 2.0**25, 1]], [[[20 / 2**26 + 2 * (1 - 4 / 2**26)]]], outside=2),
    *_both("far-outside-max", [[4, 8]], [[-(2.0**25), 0, 2.0**25, 1]], [[[8]]], outside=2, function=MAX),
    *_both("no-numbers", _RAMP, [[NAN, 0, 4, 4], [0, 0, INF, 4], [0, -INF, 4, 4], [0, 0, 4, NAN], [-INF, 0, INF, 4]],
        [9] * 5, outside=9),
    *_both("no-numbers-max", _RAMP, [[NAN, 0, 4, 4], [-INF, 0, INF, 4]], [9, 9], outside=9, function=MAX),
    *_both("no-numbers-float16", _RAMP, [[NAN, 0, 4, 4], [-INF, 0, INF, 4]], [9, 9], outside=9, dtype=np.float16),
    *_both("special", [[INF, 1, NAN, -INF, 2]], [[0, 0, 2, 1], [1, 0, 2, 1], [2, 0, 4, 1], [0.5, 0, 4.5, 1]],
        [INF, 1, NAN, NAN]),
    *_both("special-max", [[INF, 1, NAN, -INF, 2]], [[1, 0, 4, 1], [2, 0, 3, 1], [0, 0, 5, 1]], [1, NAN, INF],
        function=MAX),
    # Sums of single precision would lose the ones.
    *_both("sums-are-wide", [[2.0**25, 1, 1, -(2.0**25)]], [[0, 0, 4, 1]], [0.5]),
    *_both("transposed", _RAMP.T, _WHOLE, [[[5.5, 25.5], [7.5, 27.5]]],
        strides=((16, 16, 1, 4), (1, 3), (7,), (99, 99, 3, 20))),
    *_both("broadcast", np.full((2, 3, 4, 4), 5), [_WHOLE * 3], np.full((3, 3, 2, 2), 5), indices=[[1, 1, 1]],
        strides=((0, 0, 0, 0), (4, 0, 1), (3, 0), (40, 10, 4, 1))),
    *_both("broadcast-max", np.full((2, 3, 4, 4), 5), [[_WHOLE * 3]], np.full((3, 3, 2, 2), 5), indices=[[[[1, 0, 1]]]],
        function=MAX, strides=((0, 0, 0, 0), (4, 4, 0, 1), (3, 3, 3, 1), None)),
    *_both("one-element", [[7]], [[0, 0, 1, 1], [0, 0, 0, 0]], np.full((2, 2, 3), 7)),
    # Samples at 0, 1, 2, 3: the corners of the region are elements.
    _case("ROI_ALIGN1", "corners", _RAMP, [[0, 0, 3, 3]], [_RAMP], samples=_ONCE, offsets=(0, 0), to_corners=True),
    _case("ROI_ALIGN1", "corners-far", _RAMP, [[0, 0, 3, 3]], [[[0, 3], [30, 33]]], samples=_ONCE, offsets=(0, -0.5),
        to_corners=True),
    _case("ROI_ALIGN1", "corners-turned-round", _RAMP, [[3, 0, 0, 3]], [[[3, 0], [33, 30]]], samples=_ONCE,
        offsets=(0, 0), to_corners=True),
    _case("ROI_ALIGN1", "corners-of-one", _RAMP, [[0, 0, 3, 3]], [16.5], samples=_ONCE, offsets=(0, 0),
        to_corners=True),
    _case("ROI_ALIGN1", "corners-of-centres", _RAMP, [[0.5, 0.5, 3.5, 3.5]], [_RAMP], samples=_ONCE, to_corners=True),
    _case("ROI_ALIGN1", "corners-sampled", _RAMP, [[0, 0, 3, 3]], [[[5.5, 7.5], [25.5, 27.5]]], offsets=(0, 0),
        samples=(2, 2), to_corners=True),
    _case("ROI_ALIGN1", "no-offsets", _RAMP, [[0, 0, 4, 4]], [[[0, 2], [20, 22]]], samples=_ONCE, offsets=(0, 0)),
    _case("ROI_ALIGN1", "output-half-pixel", _RAMP, [[0, 0, 3, 3]], [16.5], samples=_ONCE, offsets=(0, -0.5)),
]  # fmt: skip


def _grad(
    id: str,
    x: Any,
    gradient: Any,
    rois: Any,
    of_x: Any = None,
    of_rois: Any = None,
    indices: Any = None,
    dtype: Any = np.float32,
    strides: Mapping[str, Sequence[int]] | None = None,
    **options: Any,
) -> Case:
    """Without InputTensor where x is None."""
    operator = "ROI_ALIGN_GRAD"
    rois = np.asarray(rois, dtype)
    count = rois.size // 4
    gradient = np.asarray(gradient, dtype)
    gradient = gradient if gradient.ndim == 4 else gradient.reshape(count, 1, *[*gradient.shape[1:], 1, 1][:2])
    indices = np.asarray([0] * count if indices is None else indices, np.uint32)
    x, of_x = (
        None if each is None else np.asarray(each, dtype).reshape((1, 1, *np.shape(each))[-4:]) for each in (x, of_x)
    )
    of_rois = None if of_rois is None else np.asarray(of_rois, dtype).reshape(rois.shape)
    names = [*spec(operator).tensors]
    arrays = dict(zip(names, (x, gradient, rois, indices, of_x, of_rois), strict=True))
    tensors = {
        name: None if each is None else tensor_of(each, (strides or {}).get(name)) for name, each in arrays.items()
    }
    desc = spec(operator).desc(**tensors, **_members(operator, **options))
    return Case(f"roi_align_grad-{id}", desc, [x, gradient, rois, indices], [of_x, of_rois])


_PAGE = [[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]], [[10, 11, 12]]]
_SPREAD = [[3, 3, 9, 6], [0, 0, 0, 0], [15, 9, 21, 12], [0, 0, 0, 0]]
_EIGHTHS = np.full((4, 4), 2)

CASES += [
    _grad("page", None, _PAGE, _QUARTERS, _SPREAD, mode=NEAREST, samples=_ONCE),
    _grad("page-with-input", _COUNTED, _PAGE, _QUARTERS, _SPREAD, mode=NEAREST, samples=_ONCE),
    _grad("page-float16", None, _PAGE, _QUARTERS, _SPREAD, mode=NEAREST, samples=_ONCE, dtype=np.float16),
    _grad("average", None, [[[8, 8], [8, 8]]], _WHOLE, _EIGHTHS),
    _grad("average-twice", None, [[[8, 8], [8, 8]]] * 2, _WHOLE * 2, 2 * _EIGHTHS),
    _grad("between", None, [[[8]]], [[1, 1, 2, 2.5]], [[0] * 4, [0, 6, 0, 0], [0, 2, 0, 0], [0] * 4], samples=_ONCE),
    # A whole place in x, and a quarter on the way in y.
    _grad("of-regions", _RAMP, [[[8]]], [[1, 1, 2, 2.5]], None, [[0, 40, 0, 40]], samples=_ONCE),
    # Samples at 3/2 and 3/2, the middle of the region: half of each end's move, times 1 and 10.
    _grad("of-both", _RAMP, [[[2]]], _WHOLE, [[0] * 4, [0, 0.5, 0.5, 0], [0, 0.5, 0.5, 0], [0] * 4], [[1, 10, 1, 10]],
        samples=_ONCE),
    _grad("of-both-float16", _RAMP, [[[2]]], _WHOLE, [[0] * 4, [0, 0.5, 0.5, 0], [0, 0.5, 0.5, 0], [0] * 4],
        [[1, 10, 1, 10]], samples=_ONCE, dtype=np.float16),
    _grad("of-scaled", _RAMP, [[[2]]], [[0, 0, 1, 0.5]], None, [[4, 80, 4, 80]], samples=_ONCE, scales=(4, 8)),
    _grad("of-regions-nearest", _RAMP, [[[2]]], [[0, 0, 1, 0.5]], None, [[0] * 4], mode=NEAREST),
    _grad("of-corners", _RAMP, [[[2, 4]]], [[0.5, 1, 1.5, 1]], None, [[2, 0, 4, 0]], samples=_ONCE, offsets=(0, 0),
        to_corners=True),
    # Samples at 0 and 1, at 2 and 3: the last of each is the largest.
    _grad("max", _RAMP, [[[1, 2], [3, 4]]], _WHOLE, [[0] * 4, [0, 1, 0, 2], [0] * 4, [0, 3, 0, 4]], function=MAX),
    _grad("max-float16", _RAMP, [[[1, 2], [3, 4]]], _WHOLE, [[0] * 4, [0, 1, 0, 2], [0] * 4, [0, 3, 0, 4]],
        function=MAX, dtype=np.float16),
    _grad("max-ties", np.ones((4, 4)), [[[1, 2], [3, 4]]], _WHOLE, [[1, 0, 2, 0], [0] * 4, [3, 0, 4, 0], [0] * 4],
        function=MAX),
    _grad("max-nan", [[NAN, 1, NAN, NAN]], [[[1, 2]]], [[0, 0, 4, 1]], [[0, 1, 2, 0]], function=MAX),
    # At 1/2, of 0 and 4; at 3/2, of 4 and 2.
    _grad("max-between", [[0, 4, 2]], [[[6]]], [[0.5, 0, 2.5, 1]], [[0, 3, 3]], [[-3, 0, -9, 0]], function=MAX),
    _grad("nearest-max", _RAMP, [[[1, 2], [3, 4]]], _WHOLE, [[0] * 4, [0, 1, 0, 2], [0] * 4, [0, 3, 0, 4]], [[0] * 4],
        mode=NEAREST, function=MAX),
    # Two samples of four are inside, at -1 and 0.
    _grad("outside", [[3, 5]], [[[8]]], [[-2.5, 0, 1.5, 1]], [[3, 1]], [[0.5, 0, 3.5, 0]], samples=(4, 4)),
    _grad("outside-max", [[3, 5]], [[[8]], [[9]]], [[-2, 0, 1, 1], [7, 7, 8, 8]], [[8, 0]], [[0] * 4] * 2,
        function=MAX),
    _grad("no-numbers", [[3, 5]], [8, 8, 8], [[NAN, 0, 1, 1], [0, 0, INF, 1], [0, -INF, 1, 1]], [[0, 0]],
        [[0] * 4] * 3),
    _grad("no-numbers-max", [[3, 5]], [8, 8], [[NAN, 0, 1, 1], [0, 0, INF, 1]], [[0, 0]], [[0] * 4] * 2, function=MAX),
    _grad("turned-round", None, [[[8, 16]]], [[4, 0, 0, 1]], [[8, 8, 4, 4]]),
    _grad("special", None, [[[INF, 1, NAN]]], [[0, 0, 3, 1]], [[INF, 1, NAN, 0]]),
    # 2^60 + 1 - 2^60 in double precision, one region after the other.
    _grad("cancels-in-order", None, [2.0**60, 1, -(2.0**60)], [[0, 0, 1, 1]] * 3, [[0]]),
    _grad("images-and-channels", None, np.array([[[[1]], [[2]]], [[[3]], [[4]]], [[[5]], [[6]]]]), [[0, 0, 1, 1]] * 3,
        np.array([[[[3]], [[4]]], [[[6]], [[8]]]]), indices=[1, 0, 1]),
    _grad("strides", _RAMP.T, [[[2]]], _WHOLE, [[0] * 4, [0, 0.5, 0.5, 0], [0, 0.5, 0.5, 0], [0] * 4],
        [[10, 1, 10, 1]], samples=_ONCE, strides={"InputTensor": (0, 0, 1, 4), "InputGradientTensor": (0, 0, 0, 0),
        "ROITensor": (5, 1), "BatchIndicesTensor": (0,), "OutputGradientTensor": (99, 99, 2, 13),
        "OutputROIGradientTensor": (99, 2)}),
    _grad("leading-ones", _RAMP, [[[2]]], [[_WHOLE]], [[0] * 4, [0, 0.5, 0.5, 0], [0, 0.5, 0.5, 0], [0] * 4],
        [[1, 10, 1, 10]], samples=_ONCE, indices=[[[[0]]]]),
]  # fmt: skip


def _right(operator: str, **members: Any) -> OperatorDesc:
    right: dict[str, Any] = {
        "InputTensor": tensor((2, 3, 4, 5)),
        "InputGradientTensor": tensor((6, 3, 2, 2)),
        "ROITensor": tensor((6, 4)),
        "BatchIndicesTensor": tensor((6,), "UINT32"),
        "OutputTensor": tensor((6, 3, 2, 2)),
        "OutputGradientTensor": tensor((2, 3, 4, 5)),
        "OutputROIGradientTensor": tensor((6, 4)),
    }
    found = spec(operator)
    right = {name: value for name, value in right.items() if name in found.members}
    return found.desc(**{**right, **_members(operator), **members})


_NAMES = (*_FORWARD, "ROI_ALIGN_GRAD")
_OTHERS = {"ROI_ALIGN_GRAD": ("InputTensor", "ROITensor", "OutputGradientTensor", "OutputROIGradientTensor")}


def _negatives(operator: str) -> list[Negative]:
    def wrong(rule: str, where: str, found: str, expected: str, **members: Any) -> Negative:
        return Negative(rule, _right(operator, **members), where, found, expected)

    others = _OTHERS.get(operator, ("ROITensor", "OutputTensor"))
    first = "InputGradientTensor" if operator in _OTHERS else "InputTensor"
    right = _right(operator)
    negatives = [
        *[
            wrong("(C1)", f"{name}.DataType", "FLOAT16", f"FLOAT32, that of {first}",
                **{name: tensor(getattr(right, name).Sizes, "FLOAT16")})
            for name in others
        ],
        wrong("(C2)", "ROITensor.Sizes[2]", "5", "4, the corners", ROITensor=tensor((1, 6, 5))),
        wrong("(C2)", "ROITensor.Sizes[0]", "2", "1, before", ROITensor=tensor((2, 6, 4))),
        wrong("(C3)", "BatchIndicesTensor.Sizes[0]", "5", "6, the regions", BatchIndicesTensor=tensor((5,), "UINT32")),
        wrong("(C3)", "BatchIndicesTensor.Sizes[0]", "2", "1, before", BatchIndicesTensor=tensor((2, 6), "UINT32")),
        wrong("(C4)", "ReductionFunction", "MIN", "AVERAGE or MAX", ReductionFunction=ReduceFunction.MIN),
        wrong("(C5)", "SpatialScaleX", "inf", "a finite number", SpatialScaleX=INF),
        wrong("(C5)", "SpatialScaleY", "nan", "a finite number", SpatialScaleY=NAN),
        wrong("(C6)", "MaximumSamplesPerOutput", "0", "at least 1", MaximumSamplesPerOutput=0),
        wrong("(C6)", "MinimumSamplesPerOutput", "4", "at most 3", MinimumSamplesPerOutput=4,
            MaximumSamplesPerOutput=3),
    ]  # fmt: skip
    if operator != "ROI_ALIGN":
        negatives += [
            wrong("(C5)", "InputPixelOffset", "inf", "a finite number", InputPixelOffset=INF),
            wrong("(C5)", "OutputPixelOffset", "-inf", "a finite number", OutputPixelOffset=-INF),
        ]
    if operator in _FORWARD:
        return [
            *negatives,
            wrong("(C7)", "OutputTensor.Sizes[0]", "5", "6", OutputTensor=tensor((5, 3, 2, 2))),
            wrong("(C7)", "OutputTensor.Sizes[1]", "4", "3", OutputTensor=tensor((6, 4, 2, 2))),
        ]
    gradient = {"InputGradientTensor": tensor((5, 3, 2, 2))}, {"InputGradientTensor": tensor((6, 4, 2, 2))}
    none = dict.fromkeys(("OutputGradientTensor", "OutputROIGradientTensor"))
    return [
        *negatives,
        wrong("(C7)", "InputGradientTensor.Sizes[0]", "5", "6, the regions of ROITensor", **gradient[0]),
        wrong("(C7)", "InputGradientTensor.Sizes[1]", "4", "3, the channels of InputTensor", **gradient[1]),
        wrong("(C8)", "OutputGradientTensor", "None", "it, or OutputROIGradientTensor", **none),
        wrong("(C9)", "InputTensor", "None", "a tensor, as OutputROIGradientTensor is wanted", InputTensor=None),
        wrong("(C9)", "InputTensor", "None", "a tensor, as ReductionFunction is MAX", InputTensor=None,
            OutputROIGradientTensor=None, ReductionFunction=MAX),
        wrong("(C10)", "OutputGradientTensor.Sizes[3]", "6", "5", OutputGradientTensor=tensor((2, 3, 4, 6))),
        wrong("(C10)", "OutputROIGradientTensor.Sizes[0]", "5", "6", OutputROIGradientTensor=tensor((5, 4))),
    ]  # fmt: skip


NEGATIVES = [negative for operator in _NAMES for negative in _negatives(operator)]
RIGHT = [_right(operator) for operator in _NAMES]


def _shapes(operator: str, tensor: str, shape: Shape) -> Mapping[str, Shape]:
    data = shape[1] if tensor != "BatchIndicesTensor" else TensorDataType.FLOAT32
    shapes = {name: (4, data) for name in spec(operator).tensors}
    shapes |= {name: (2, data) for name in shapes if "ROI" in name}
    shapes |= {"BatchIndicesTensor": (1, TensorDataType.UINT32), tensor: shape}
    if tensor == "ROITensor" and "OutputROIGradientTensor" in shapes:
        shapes["OutputROIGradientTensor"] = shape
    if tensor == "OutputROIGradientTensor":
        shapes["ROITensor"] = shape
    return shapes


def _of_ones(operator: str, **shapes: Shape) -> OperatorDesc:
    tensors = {
        name: tensor(((1,) * rank)[1:] + (4,) * min(rank, 1) if "ROI" in name else (1,) * rank, kind.name)
        for name, (rank, kind) in shapes.items()
    }
    return spec(operator).desc(**tensors, **_members(operator))


def _support(level: str, names: Sequence[str]) -> Support:
    tables = {name: [(level, 4, 4, FLOATS)] for name in names}
    tables |= {name: [(level, 2, 4, FLOATS)] for name in names if "ROI" in name}
    return Support({**tables, "BatchIndicesTensor": [(level, 1, 4, "UINT32")]}, desc=_of_ones, others=_shapes)


_OF_ALIGN = ("InputTensor", "ROITensor", "OutputTensor")
SUPPORT = {
    "ROI_ALIGN": _support("3.0", _OF_ALIGN),
    "ROI_ALIGN1": _support("4.0", _OF_ALIGN),
    "ROI_ALIGN_GRAD": _support("4.1", ("InputGradientTensor", *_OTHERS["ROI_ALIGN_GRAD"])),
}
KERNELS = {
    **dict.fromkeys(_FORWARD, "(averages|maxima) of samples of "),
    "ROI_ALIGN_GRAD": "gradients of (averages|maxima) of samples of ",
}
