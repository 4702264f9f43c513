"""Windows over chunked dimensions: a chunk of the output needs its own elements, and a halo of those around them.

How wide that is, stride, dilation and padding say. Inside of the tensor a part has no padding; what it has at the ends
are the whole's, so that each window has the same taps in the same order. `WINDOWS` says what an operator's windows are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias, cast

import dask.array as da
import numpy as np

from ...core.enums import ConvolutionDirection
from ...core.strided_layout import Array
from ...operators.schema import Independence, OperatorDesc
from ...operators.specs.convolution import filter_windows
from ...operators.window_math import Window, pooling_windows
from .call import Call
from .parts import Place, Places, by_parts

Slides: TypeAlias = Callable[[Any], Mapping[int, Window]]
"""The windows of a desc, by the dimension that they slide along."""


def begins_of(boundaries: Sequence[int], size: int, least: int = 1) -> list[int]:
    """Where chunks of so many elements begin: at those of some boundaries that leave each chunk `least` of them."""
    begins = [0]
    for boundary in boundaries:
        if boundary - begins[-1] >= least and size - boundary >= least:
            begins.append(boundary)
    return begins


def inner(chunks: Sequence[int]) -> list[int]:
    """The boundaries between chunks."""
    return [*accumulate(chunks)][:-1]


def window_places(label: str, window: Window, places: int, index: int, chunks: Sequence[int]) -> list[Place]:
    """The places of a window, cut where the chunks of what it slides over are.

    Args:
        label: what it slides over.
        window: along one dimension.
        places: how many it has.
        index: the dimension's, in members of the desc.
        chunks: of that dimension.
    """

    def origin(place: int) -> int:
        return place * window.stride - window.start

    def end(place: int) -> int:
        return origin(place) + window.extent

    # A window that is padded on both sides belongs to the element at its centre.
    shift = window.start - min(window.start, window.extent // 2)
    boundaries = [-(-(boundary + shift) // window.stride) for boundary in inner(chunks)]
    # Each chunk has elements, and more of them than its neighbour needs again.
    boundaries = [each for each in boundaries if each > 0 and origin(each) < window.size and end(each - 1) > 0]
    begins = begins_of(boundaries, places, max(1, (window.extent - 1) // window.stride))
    found = []
    for first, behind in zip(begins, [*begins[1:], places], strict=True):
        begin, last = max(0, origin(first)), end(behind - 1)
        padding = begin - origin(first), max(0, min(window.end, last - window.size))
        members = ("StartPadding", index, padding[0]), ("EndPadding", index, padding[1])
        found.append(Place(behind - first, {label: (begin, max(begin + 1, min(window.size, last)))}, members))
    return found


def _pooling(desc: Any) -> dict[int, Window]:
    return dict(enumerate(pooling_windows(desc), 2))


def _convolution(desc: Any) -> dict[int, Window]:
    """But where zeros are put behind the result."""
    if getattr(desc, "Direction", ConvolutionDirection.FORWARD) != ConvolutionDirection.FORWARD:
        return {}
    padded = getattr(desc, "OutputPadding", (0,) * len(desc.Strides))
    windows = enumerate(filter_windows(desc, desc.InputTensor.Sizes[2:]), 2)
    return {number: window for number, window in windows if not padded[number - 2]}


WINDOWS: Mapping[str, Slides] = {
    "AVERAGE_POOLING": _pooling,
    "AVERAGE_POOLING1": _pooling,
    "CONVOLUTION": _convolution,
    "CONVOLUTION_INTEGER": _convolution,
    "LP_POOLING": _pooling,
    "LP_POOLING1": _pooling,
    "MAX_POOLING": _pooling,
    "MAX_POOLING1": _pooling,
    "MAX_POOLING2": _pooling,
    "QUANTIZED_LINEAR_AVERAGE_POOLING": _pooling,
    "QUANTIZED_LINEAR_CONVOLUTION": _convolution,
}
"""The operators whose InputTensor windows slide over."""


def windowed(call: Call) -> list[da.Array] | None:
    """Pooling and convolution along chunked dimensions."""
    label, desc = "InputTensor", cast(Any, call.desc)
    array = call.array(label)
    places: dict[int, list[Place]] = {}
    for number, window in WINDOWS[call.spec.name](desc).items():
        if array.shape[number] == window.size:
            count: int = desc.OutputTensor.Sizes[number]
            places[number] = window_places(label, window, count, number - 2, array.chunks[number])
    places = several(places)
    stated = call.independent
    if getattr(desc, "OutputIndicesTensor", None) is None:
        return by_parts(call, along(stated, places, label, *call.outputs), places) if places else None
    # Batch and channels are cut, too, as indices are made those of the whole.
    return by_parts(call, along(stated, {0: (), 1: (), **places}, label, *call.outputs), places, _counted_in_whole)


def several(places: Mapping[int, list[Place]]) -> dict[int, list[Place]]:
    """Those of dimensions that are cut."""
    return {number: each for number, each in places.items() if len(each) > 1}


def along(stated: Independence, places: Places, *labels: str) -> Independence:
    """What lines up, with dimensions of some tensors that have places."""
    more = {label: tuple([i if i in places else number for i, number in enumerate(stated[label])]) for label in labels}
    return {**stated, **more}


def _counted_in_whole(whole: OperatorDesc, desc: Any, where: Mapping[int, Place], results: list[Array]) -> list[Array]:
    """Indices of elements of the part as those of the whole; 0 for windows on padding alone, as there."""
    maxima, indices = results
    label = "InputTensor"
    sizes, of_part = getattr(whole, label).Sizes, desc.InputTensor.Sizes
    begins = [where[i].reads[label][0] if i in where else 0 for i in range(len(sizes))]
    coordinates = np.unravel_index(indices.astype(np.int64), of_part)
    flat = np.ravel_multi_index([each + begin for each, begin in zip(coordinates, begins, strict=True)], sizes)
    for i, window in enumerate(pooling_windows(desc), 2):
        empty = [o for o in range(maxima.shape[i]) if not window.taps_before(window.size, o)]
        flat[(slice(None),) * i + (empty,)] = 0
    return [maxima, flat.astype(indices.dtype)]


# Local response normalisation, whose window is the operator's own


def local_response(call: Call) -> list[da.Array] | None:
    """A window around each element along the channels, or along height and width."""
    label, desc = "InputTensor", cast(Any, call.desc)
    size = desc.LocalSize
    before = (size - 1) // 2
    array = call.array(label)
    places: dict[int, list[Place]] = {}
    for number in (1,) if desc.CrossChannel else (2, 3):
        length = array.shape[number]
        if length != desc.InputTensor.Sizes[number]:
            continue
        begins = begins_of(inner(array.chunks[number]), length, max(1, size - 1))
        places[number] = []
        for begin, end in zip(begins, [*begins[1:], length], strict=True):
            low, high = max(0, begin - before), min(length, end + size - 1 - before)
            places[number].append(Place(end - begin, {label: (low, high)}, made=high - low, skipped=begin - low))
    places = several(places)
    return by_parts(call, along(call.independent, places, label, *call.outputs), places) if places else None
