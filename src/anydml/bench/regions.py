"""The rows of blocks that are cut out and put back, of regions of images, and of elements that are placed or made by
what other numbers say: of operators that neither copy runs nor reduce."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from ..core.enums import InterpolationMode, RandomGeneratorType, ReduceFunction
from ..core.strided_layout import DATA_TYPES
from ..core.tensor_desc import DML_SIZE_2D
from .cases import LINE
from .computation import Built, Computation, Node, Shape, Tensor
from .movement import of_runs
from .normalising import images_of
from .places import Place

Build = Callable[[int, str], Built]
_ALL = ("float32", "float16", "uint8", "int64")
_FLOATS = _ALL[:2]


# Blocks


def _window(size: int, stride: int, padding: int, side: int, is_fold: bool) -> Build:
    """Square windows on an image of so many channels that all blocks are as many elements as there are."""

    def places_of(along: int) -> int:
        return (along + 2 * padding - size) // stride + 1

    def build(most: int, dtype: str) -> Built:
        taps, height = size * size, side
        while height > size and most < taps * places_of(height) * places_of(side):
            height = max(height // 2, size)
        places = places_of(height) * places_of(side)
        shape = (1, max(most // (taps * places), 1), height, side)
        blocks = (1, shape[1] * taps, places)
        # Sums of them are exact in any order.
        tensors = [Tensor(each, low=0, high=8, dtype=dtype) for each in (shape, blocks)]
        options = {"padding": padding, "stride": stride}
        members = {
            "WindowSizes": (size, size),
            "Strides": (stride, stride),
            "Dilations": (1, 1),
            "StartPadding": (padding, padding),
            "EndPadding": (padding, padding),
        }

        def fold(torch: Any, x: Any, y: Any) -> Callable[[], Any]:
            return lambda: torch.nn.functional.fold(x, shape[2:], size, **options)

        def unfold(torch: Any, x: Any, y: Any) -> Callable[[], Any]:
            return lambda: torch.nn.functional.unfold(x, size, **options)

        whole, cut = tensors
        source, target = (cut, whole) if is_fold else (whole, cut)
        torch = fold if is_fold else unfold
        return Built({"InputTensor": source}, {"OutputTensor": target}, members, torch=torch)

    return build


def _blocks() -> Iterator[Computation]:
    for size, stride, padding, side in ((3, 1, 1, 56), (2, 2, 0, 56), (7, 2, 3, 113), (3, 1, 1, 13)):
        name = f"{size}x{size}/{stride}, of {side} x {side}"
        run = (side + 2 * padding - size) // stride + 1
        for dtype in _ALL:
            limit = of_runs(run * np.dtype(dtype).itemsize).limit
            yield Computation("UNFOLD", name, limit, dtype, build=_window(size, stride, padding, side, False))
            yield Computation("FOLD", name, None, dtype, build=_window(size, stride, padding, side, True))


# Elements that are placed


def _one_hot(classes: int, is_last: bool, index: str) -> Build:
    def build(most: int, dtype: str) -> Built:
        classes_ = min(classes, most)
        rows = max(most // classes_, 1)
        shape, indices = ((rows, classes_), (rows, 1)) if is_last else ((1, classes_, rows), (1, 1, rows))
        axis = len(shape) - 1 if is_last else 1
        inputs = {
            "IndicesTensor": Tensor(indices, index, 0, classes_ - 1),
            "ValuesTensor": Tensor((1,) * (len(shape) - 1) + (2,), values=_off_and_on),
        }

        def torch(torch: Any, indices: Any, values: Any, y: Any) -> Callable[[], Any]:
            where = indices.long()
            return lambda: y.zero_().scatter_(axis, where, 1)

        return Built(inputs, {"OutputTensor": Tensor(shape)}, {"Axis": axis}, torch=torch)

    return build


def _off_and_on(place: Place, shape: Shape, dtype: Any) -> Any:
    return place.cast(np.arange(2).reshape(shape), dtype)


def _unpooling(index: str, side: int) -> Build:
    """Of windows of 2 x 2, each of which has its maximum somewhere."""

    def build(most: int, dtype: str) -> Built:
        planes = images_of(side, side)(most)
        small = (1, planes[0], planes[1] // 2 or 1, planes[2] // 2 or 1)

        def indices(place: Place, shape: Shape, kind: Any) -> Any:
            _, channels, rows, columns = shape
            corner = np.arange(channels)[:, None, None] * planes[1] + 2 * np.arange(rows)[None, :, None]
            corner = corner * planes[2] + 2 * np.arange(columns)
            inside = place.integers(0, 2, shape) * planes[2] + place.integers(0, 2, shape)
            return np.minimum(corner + inside, prod(planes) - 1).astype(kind)

        def numpy(np: Any, x: Any, indices: Any, y: Any) -> Callable[[], Any]:
            def run() -> None:
                y.fill(0)
                y.reshape(-1)[indices] = x

            return run

        def torch(torch: Any, x: Any, indices: Any, y: Any) -> Callable[[], Any]:
            within = (indices.long() % (planes[1] * planes[2])).contiguous()
            return lambda: torch.nn.functional.max_unpool2d(x, within, 2, output_size=planes[1:])

        return Built(
            {"InputTensor": Tensor(small, low=0, high=99), "IndicesTensor": Tensor(small, index, values=indices)},
            {"OutputTensor": Tensor((1, *planes))},
            {},
            numpy,
            torch if np.dtype(dtype).kind == "f" else None,
        )

    return build


def _reversed(width: int, is_first: bool) -> Build:
    """Sequences of 128 steps of some elements, of batches, along the first axis or the second."""

    def build(most: int, dtype: str) -> Built:
        steps, elements = min(128, most), min(width, max(most // 128, 1))
        batch = max(most // (steps * elements), 1)
        shape = (steps, batch, elements) if is_first else (batch, steps, elements)
        lengths = (1, batch, 1) if is_first else (batch, 1, 1)
        axis = int(not is_first)

        def same_in_a_run(place: Place, shape: Shape, kind: Any) -> Any:
            return np.broadcast_to(place.cast(place.integers(1, steps + 1, lengths, np.int16), kind), shape)

        inputs = {
            "InputTensor": Tensor(shape, low=0, high=99),
            "SequenceLengthsTensor": Tensor((*lengths[:2], elements), "uint64", values=same_in_a_run),
        }
        attributes = {"batch_axis": 1 - axis, "time_axis": axis}
        node = Node("ReverseSequence", ("InputTensor", "SequenceLengthsTensor/lengths"), attributes)
        return Built(inputs, {"OutputTensor": Tensor(shape)}, {"Axis": axis}, node=node)

    return build


def _placed() -> Iterator[Computation]:
    for classes in (10, 21, 1000):
        for is_last in (True, False):
            for dtype in _ALL[: 4 if classes == 21 else 1]:
                name = f"of {classes}, {'rows' if is_last else 'planes'}"
                yield Computation("ONE_HOT", name, 1.15, dtype, build=_one_hot(classes, is_last, "int64"))
    for side in (112, 57):
        for dtype in _ALL:
            yield Computation("MAX_UNPOOLING", f"of {side} x {side}", None, dtype, build=_unpooling("uint32", side))
    for width, dtypes in ((1, _ALL[1:]), (5, _FLOATS), (64, _FLOATS), (1000, _ALL)):
        for is_first in (True, False):
            for dtype in dtypes:
                run = width * np.dtype(dtype).itemsize
                name = f"runs of {run} B, {'steps' if is_first else 'batches'} first"
                build = _reversed(width, is_first)
                limit = of_runs(run).limit if run >= LINE else None
                yield Computation("REVERSE_SUBSEQUENCES", name, limit, dtype, build=build)


# Regions


def _corners(side: int, batch: bool = False) -> Callable[[Place, Shape, Any], Any]:
    """x1, y1, x2, y2 of regions from a fifth of an image to all of it; before them the image's number, if that is
    among them."""

    def values(place: Place, shape: Shape, dtype: Any) -> Any:
        first = place.integers(0, 2 * side, (*shape[:-1], 2), np.int16) / 4
        size = place.integers(side, 2 * side, (*shape[:-1], 2), np.int16) / 4
        images = [np.zeros((*shape[:-1], 1))] * batch
        return np.concatenate([*images, first, first + size], -1).astype(dtype)

    return values


_CHANNELS, _SIDE = 64, 50


def _regions(operator: str, pooled: int, samples: int, **options: Any) -> Build:
    """Regions of one image, so many that what becomes of them is as many elements."""

    def build(most: int, dtype: str) -> Built:
        side = _SIDE if most >= _CHANNELS * _SIDE * _SIDE else 12
        channels = min(_CHANNELS, max(most // (side * side), 1))
        count = max(most // (channels * pooled * pooled), 1)
        image, regions = Tensor((1, channels, side, side), low=-4, high=4), (count, channels, pooled, pooled)
        made = Tensor(regions, low=-4, high=4)
        if operator == "ROI_POOLING":
            inputs = {"InputTensor": image, "ROITensor": Tensor((1, 1, count, 5), values=_corners(side, batch=True))}
            members = {"SpatialScale": 1.0, "PooledSize": DML_SIZE_2D(Width=pooled, Height=pooled)}
            attributes = {"pooled_shape": [pooled, pooled], "spatial_scale": 1.0}
            node = Node("MaxRoiPool", ("InputTensor", "ROITensor/rows"), attributes)
            return Built(inputs, {"OutputTensor": made}, members, node=node)
        inputs = {
            "InputTensor": image,
            "ROITensor": Tensor((count, 4), values=_corners(side)),
            "BatchIndicesTensor": Tensor((count,), "uint32", 0, 0),
        }
        members = {
            "ReductionFunction": ReduceFunction.AVERAGE,
            "InterpolationMode": InterpolationMode.LINEAR,
            "SpatialScaleX": 1.0,
            "SpatialScaleY": 1.0,
            "InputPixelOffset": 0.5,
            "OutputPixelOffset": -0.5,
            "OutOfBoundsInputValue": 0.0,
            "MinimumSamplesPerOutput": samples or 1,
            "MaximumSamplesPerOutput": samples or 1 << 20,
            "AlignRegionsToCorners": False,
            **options,
        }
        if operator == "ROI_ALIGN":
            del members["InputPixelOffset"], members["OutputPixelOffset"], members["AlignRegionsToCorners"]
        if operator == "ROI_ALIGN_GRAD":
            del members["OutOfBoundsInputValue"]
            given = {"InputTensor": image, "InputGradientTensor": made, **inputs}
            return Built(given, {"OutputGradientTensor": image}, members)
        # Its maxima are of other numbers.
        has_node = members["ReductionFunction"] == ReduceFunction.AVERAGE
        attributes = {
            "output_height": pooled,
            "output_width": pooled,
            "sampling_ratio": samples,
            "coordinate_transformation_mode": "half_pixel",
        }
        node = Node("RoiAlign", ("InputTensor", "ROITensor", "BatchIndicesTensor/signed"), attributes)
        return Built(inputs, {"OutputTensor": made}, members, node=node if has_node else None)

    return build


def _of_regions() -> Iterator[Computation]:
    greatest = {"ReductionFunction": ReduceFunction.MAX}
    for operator, name, pooled, samples, options in (
        ("ROI_POOLING", "7x7", 7, 0, {}),
        ("ROI_ALIGN", "7x7, 2 samples", 7, 2, {}),
        ("ROI_ALIGN1", "7x7, 2 samples", 7, 2, {}),
        ("ROI_ALIGN1", "14x14, 2 samples", 14, 2, {}),
        ("ROI_ALIGN1", "5x5, any number", 5, 0, {}),
        ("ROI_ALIGN1", "7x7, 2 samples, largest", 7, 2, greatest),
        ("ROI_ALIGN_GRAD", "7x7, 2 samples", 7, 2, {}),
        ("ROI_ALIGN_GRAD", "5x5, any number", 5, 0, {}),
        ("ROI_ALIGN_GRAD", "7x7, 2 samples, largest", 7, 2, greatest),
    ):
        for dtype in _FLOATS:
            yield Computation(operator, name, None, dtype, build=_regions(operator, pooled, samples, **options))


# Elements that are made


def _scaled(most: int, dtype: str) -> Built:
    rows = max(most // 3 // 224, 1)
    shape = (max(rows // 224, 1), 3, min(rows, 224), min(224, most // 3))
    bias = (1.0, 2.0, 3.0)

    def torch(torch: Any, x: Any, y: Any) -> Callable[[], Any]:
        more = torch.tensor(bias, dtype=x.dtype).reshape(-1, 1, 1)
        return lambda: torch.add(more, x, alpha=0.5, out=y)

    members = {"Scale": 0.5, "Bias": bias}
    return Built({"InputTensor": Tensor(shape)}, {"OutputTensor": Tensor(shape)}, members, torch=torch)


def _random(most: int, dtype: str) -> Built:
    inputs = {"InputStateTensor": Tensor((6,), low=0, high=99)}
    return Built(inputs, {"OutputTensor": Tensor((most,))}, {"Type": RandomGeneratorType.PHILOX_4X32_10})


def _square(most: int) -> Shape:
    side = int(most**0.5)
    return (1, side, side)


def _diagonal(most: int, dtype: str) -> Built:
    def torch(torch: Any, y: Any) -> Callable[[], Any]:
        return lambda: torch.eye(*y.shape[1:], out=y[0])

    return Built({}, {"OutputTensor": Tensor(_square(most))}, {"Offset": 0, "Value": 1.0}, torch=torch)


def _band(most: int, dtype: str) -> Built:
    """The upper triangle, the rest being 0."""
    x = Tensor(_square(most), low=0, high=99)
    members: Mapping[str, Any] = {"Value": 0, "DiagonalFillBegin": -(1 << 30), "DiagonalFillEnd": 0}

    def torch(torch: Any, x: Any, y: Any) -> Callable[[], Any]:
        return lambda: torch.triu(x, out=y)

    return Built({"InputTensor": x}, {"OutputTensor": x}, {"ValueDataType": _type(dtype), **members}, torch=torch)


def _type(dtype: str) -> Any:
    return DATA_TYPES[np.dtype(dtype)]


def _enlarged(is_back: bool) -> Build:
    def build(most: int, dtype: str) -> Built:
        wide = images_of(3, 128, 256)(most)
        wide = (*wide[:2], 2 * (wide[2] // 2) or 2, 2 * (wide[3] // 2) or 2)
        small = (*wide[:2], wide[2] // 2, wide[3] // 2)
        images, larger = Tensor(small, low=-4, high=4), Tensor(wide, low=-4, high=4)
        if is_back:

            def backwards(torch: Any, gradient: Any, y: Any) -> Callable[[], Any]:
                function = torch.ops.aten.upsample_bilinear2d_backward
                return lambda: function(gradient, wide[2:], small, False, 2.0, 2.0)

            members: dict[str, Any] = {"Scales": (1.0, 1.0, 2.0, 2.0), "InterpolationMode": InterpolationMode.LINEAR}
            members |= {"InputPixelOffsets": (0.5,) * 4, "OutputPixelOffsets": (-0.5,) * 4}
            return Built({"InputGradientTensor": larger}, {"OutputGradientTensor": images}, members, torch=backwards)

        def forwards(torch: Any, x: Any, y: Any) -> Callable[[], Any]:
            return lambda: torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")

        members = {"ScaleSize": DML_SIZE_2D(Width=2, Height=2), "InterpolationMode": InterpolationMode.LINEAR}
        return Built({"InputTensor": images}, {"OutputTensor": larger}, members, torch=forwards)

    return build


def _made() -> Iterator[Computation]:
    for dtype in _FLOATS:
        yield Computation("VALUE_SCALE_2D", "3 channels", 1.15, dtype, build=_scaled)
        yield Computation("UPSAMPLE_2D", "linear by 2", None, dtype, build=_enlarged(False))
        yield Computation("RESAMPLE_GRAD", "bilinear by 2", None, dtype, build=_enlarged(True))
    yield Computation("RANDOM_GENERATOR", "one row", None, "uint32", build=_random)
    for dtype in _ALL:
        yield Computation("DIAGONAL_MATRIX", "square", 1.15, dtype, build=_diagonal)
        yield Computation("DIAGONAL_MATRIX1", "upper triangle", 1.15, dtype, build=_band)


def regions() -> Iterator[Computation]:
    yield from _blocks()
    yield from _placed()
    yield from _of_regions()
    yield from _made()
