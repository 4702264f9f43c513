"""Resampling along chunked dimensions: an output's places lie between elements, which taps say.

A part is at other places of a shorter tensor, which the offsets of pixels say, exactly. What the neighbours of an
element weigh is then the same.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import dask.array as da
import numpy as np

from ...core.enums import InterpolationMode
from ...core.tensor_desc import single
from ...operators import spec
from ...operators.interpolation import Taps, simplest
from ...operators.specs.resample import taps_of
from .call import Call
from .parts import Place, by_parts
from .windows import along, begins_of, inner, several


def resampled(call: Call) -> list[da.Array] | None:
    """Chunks of the output from the elements around their places."""
    label = "InputTensor"
    desc: Any = _with_offsets(call.desc)
    x = call.array(label)
    places: dict[int, list[Place]] = {}
    for number, taps in enumerate(taps_of(call.desc)):
        if number in call.independent[label] or x.shape[number] != desc.InputTensor.Sizes[number]:
            continue
        scale, found = simplest(desc.Scales[number]), []
        for begin, end in _ranges(taps, x.chunks[number]):
            low, high = _read(taps, begin, end)
            # So many places are a whole number of elements: parts that are alike have one desc.
            turns, rest = divmod(begin, scale.numerator)
            moved = low - turns * scale.denominator
            offsets = desc.InputPixelOffsets[number] + moved, desc.OutputPixelOffsets[number] - rest
            if any(single(offset) != offset for offset in offsets):
                return None
            members = ("InputPixelOffsets", number, offsets[0]), ("OutputPixelOffsets", number, offsets[1])
            found.append(Place(end - begin, {label: (low, high)}, members))
        places[number] = found
    places = several(places)
    if not places:
        return None
    call = replace(call, spec=spec("RESAMPLE1"), desc=desc) if desc is not call.desc else call
    return by_parts(call, along(call.independent, places, label, *call.outputs), places)


def _with_offsets(desc: Any) -> Any:
    """RESAMPLE, whose offsets are those of pixels' centres, as RESAMPLE1."""
    if hasattr(desc, "InputPixelOffsets"):
        return desc
    count = len(desc.Scales)
    return spec("RESAMPLE1").desc(
        InputTensor=desc.InputTensor,
        OutputTensor=desc.OutputTensor,
        InterpolationMode=desc.InterpolationMode,
        Scales=desc.Scales,
        InputPixelOffsets=[0.5] * count,
        OutputPixelOffsets=[-0.5] * count,
    )


def _ranges(taps: Taps, chunks: Any) -> list[tuple[int, int]]:
    """Chunks of the output, which begin amid the places with taps in two chunks, and are no longer than the input's."""
    size, longest = len(taps.first), max(chunks)
    sides = [np.searchsorted(each, inner(chunks)).tolist() for each in (taps.first, taps.first + taps.counts - 1)]
    begins = begins_of([sum(each) // 2 for each in zip(*sides, strict=True)], size)
    ranges = []
    for begin, end in zip(begins, [*begins[1:], size], strict=True):
        count = -(-(end - begin) // longest)
        bounds = [begin + (end - begin) * i // count for i in range(count + 1)]
        ranges += [*pairwise(bounds)]
    return ranges


def _read(taps: Taps, begin: int, end: int) -> tuple[int, int]:
    """The elements that places are made of."""
    ends = taps.first[begin:end] + taps.counts[begin:end]
    return int(taps.first[begin]), int(ends.max())


def upsampled(call: Call) -> list[da.Array] | None:
    """Images enlarged by whole factors: more than the chunk is made of what is read, and cut off."""
    label, desc = "InputTensor", cast(Any, call.desc)
    x = call.array(label)
    reach = int(desc.InterpolationMode == InterpolationMode.LINEAR)
    places: dict[int, list[Place]] = {}
    for number, factor in ((x.ndim - 2, desc.ScaleSize.Height), (x.ndim - 1, desc.ScaleSize.Width)):
        size = x.shape[number]
        if size != desc.InputTensor.Sizes[number] or factor == 1:
            continue
        begins = begins_of(inner(x.chunks[number]), size)
        places[number] = []
        for begin, end in zip(begins, [*begins[1:], size], strict=True):
            low, high = max(0, begin - reach), min(size, end + reach)
            made, skipped = (high - low) * factor, (begin - low) * factor
            places[number].append(Place((end - begin) * factor, {label: (low, high)}, made=made, skipped=skipped))
    places = several(places)
    return by_parts(call, along(call.independent, places, label, *call.outputs), places) if places else None
