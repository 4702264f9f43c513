"""Windows the other way round: gradients of pooling, and transposed convolution, along chunked dimensions.

What a window gives is added to the elements under it. A part is made of all windows over its elements, each whole, so
that it has more elements than the chunk, which are cut off; the order of what is added to one stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import dask.array as da

from ...core.enums import ConvolutionDirection
from ...operators.specs.convolution import filter_windows
from ...operators.specs.pooling_grad import windows
from ...operators.window_math import Window
from .call import Call
from .parts import Place, by_parts
from .windows import along, begins_of, inner, several, windowed


def _places(window: Window, places: int, index: int, boundaries: Sequence[int], over: str, under: str) -> list[Place]:
    """Chunks of what windows lie over.

    Args:
        window: along one dimension of the output.
        places: how many it has.
        index: the dimension's, in members of the desc.
        boundaries: where chunks of the output are to begin.
        over: the input that has an element for each place.
        under: the one, if any, that has those under the windows.
    """
    begins = begins_of([each for each in boundaries if each > 0], window.size, window.extent)
    found = []
    for begin, end in zip(begins, [*begins[1:], window.size], strict=True):
        # From the first window that reaches the chunk, and from one that begins no later than it.
        first = (begin + window.start - window.extent) // window.stride + 1
        first = min(max(0, first), (begin + window.start) // window.stride, places - 1)
        behind = max(first + 1, min(places, -(-(end + window.start) // window.stride)))
        origin, last = (
            first * window.stride - window.start,
            (behind - 1) * window.stride - window.start + window.extent,
        )
        low, high = max(0, origin), max(end, min(window.size, last))
        padding = low - origin, max(0, min(window.end, last - window.size))
        members = ("StartPadding", index, padding[0]), ("EndPadding", index, padding[1])
        reads = {over: (first, behind), under: (low, high)}
        found.append(Place(end - begin, reads, members, made=high - low, skipped=begin - low))
    return found


def _begins(window: Window, chunks: Sequence[int]) -> list[int]:
    """Where the windows of chunks of places begin."""
    return [each * window.stride - window.start + min(window.start, window.extent // 2) for each in inner(chunks)]


def pooling_gradients(call: Call) -> list[da.Array] | None:
    """Of averages and of maxima."""
    return _by_windows(call, dict(enumerate(windows(cast(Any, call.desc)), 2)), "InputGradientTensor", "InputTensor")


def convolution(call: Call) -> list[da.Array] | None:
    """Of both directions."""
    desc = cast(Any, call.desc)
    if desc.Direction == ConvolutionDirection.FORWARD:
        return windowed(call)
    sizes = [size - more for size, more in zip(desc.OutputTensor.Sizes[2:], desc.OutputPadding, strict=True)]
    numbered = zip(range(2, len(sizes) + 2), filter_windows(desc, sizes), desc.OutputPadding, strict=True)
    # Where zeros are put behind the result it is not cut.
    return _by_windows(call, {number: window for number, window, more in numbered if not more}, "InputTensor", "")


def _by_windows(call: Call, slides: Mapping[int, Window], over: str, under: str) -> list[da.Array] | None:
    labels = [label for label in (over, under) if label in call.there]
    arrays = {label: call.array(label) for label in labels}
    places: dict[int, list[Place]] = {}
    for number, window in slides.items():
        if any(array.shape[number] != call.there[label].shape[number] for label, array in arrays.items()):
            continue
        chunks = arrays[over].chunks[number]
        cut = under in arrays and arrays[under].numblocks[number] > 1
        boundaries = inner(arrays[under].chunks[number]) if cut else _begins(window, chunks)
        places[number] = _places(window, sum(chunks), number - 2, boundaries, over, under)
    places = several(places)
    return by_parts(call, along(call.independent, places, *labels, *call.outputs), places) if places else None
