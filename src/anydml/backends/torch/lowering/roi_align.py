"""ROI_ALIGN, its revision and gradients, as weighted sums of rows and columns that regions name.

Loops are as long as a desc says, not as regions do: over as many samples as can be inside the input, and over the
elements, the taps, that those are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import torch

from ....core.enums import InterpolationMode, ReduceFunction
from ....core.strided_layout import Layout
from ....operators.schema import OperatorSpec
from ....operators.specs.roi_align import image_of
from ...base import Declined
from . import Run, Tensors
from .values import double, store, widened

_MOST_PAIRS = 4096
"""Of samples in height and width that are compared one after the other."""
_AT_ONCE = 1 << 26
"""Elements of planes of regions that are held at once."""


class _Axis(NamedTuple):
    """A dimension: its number, its size, the size of what comes out, and the most samples of an element of that which
    are inside the input. Where there are more than are looked at, those are looked for."""

    number: int
    size: int
    outputs: int
    samples: int
    all_are_seen: bool


class _Samples(NamedTuple):
    """Those of the specification's, of regions R, elements O and samples K: {R, O, K}, but `number`, {R, 1}."""

    low: Any
    share: Any
    along: Any
    known: Any
    number: Any


class _Taps(NamedTuple):
    indices: Any
    weights: Any


def plan(
    spec: OperatorSpec, desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run | Declined:
    is_gradient = hasattr(desc, "InputGradientTensor")
    image = (desc.InputTensor if not is_gradient else image_of(desc)).Sizes
    sizes = (desc.InputGradientTensor if is_gradient else desc.OutputTensor).Sizes
    rows, columns = (_axis(desc, i, image[i], sizes[i]) for i in (2, 3))
    is_linear = desc.InterpolationMode == InterpolationMode.LINEAR
    is_largest = desc.ReductionFunction == ReduceFunction.MAX
    pairs = rows.samples * columns.samples
    if is_largest and (is_linear or is_gradient) and pairs > _MOST_PAIRS:
        limit = f"MAX of up to {pairs} samples; it compares {_MOST_PAIRS}, which MaximumSamplesPerOutput limits them to"
        return Declined(limit)
    if is_gradient:
        return _align_grad(desc, rows, columns, is_largest, is_linear)
    return _align(desc, rows, columns, is_largest, is_linear)


def _axis(desc: Any, number: int, size: int, outputs: int) -> _Axis:
    # Samples are half an element apart or more, but for the least number of them.
    inside = max(desc.MinimumSamplesPerOutput, 2 * size + 5)
    most = desc.MaximumSamplesPerOutput
    return _Axis(number, size, outputs, min(most, inside), most <= inside)


def _align(desc: Any, rows: _Axis, columns: _Axis, is_largest: bool, is_linear: bool) -> Run:
    value = desc.OutOfBoundsInputValue

    def run(read: Tensors, written: Tensors) -> None:
        x = double(read[0])
        batch, corners, there = _regions(read[1], read[2], len(x))
        down, across = (_samples(desc, corners, there, axis) for axis in (rows, columns))
        total = (down.number * across.number)[..., None, None]
        inside = (down.known.sum(-1)[:, :, None] * across.known.sum(-1)[:, None])[:, None]
        is_outside = total > inside
        if is_largest:
            if is_linear:
                y, *_ = _largest(x, batch, down, across)
            else:
                y = _largest_element(
                    x, batch, *(_weights(each, axis) for each, axis in ((down, rows), (across, columns)))
                )
            y = torch.where(is_outside & _exceeds(torch.full_like(y, value), y), value, y)
        else:
            y = _weighted(x, batch, _weights(down, rows), _weights(across, columns))
            y = torch.where(is_outside, y + (total - inside) * value, y) / total
        store(y, written[0])

    return run


def _align_grad(desc: Any, rows: _Axis, columns: _Axis, is_largest: bool, is_linear: bool) -> Run:
    image = image_of(desc).Sizes
    step = max(1, _AT_ONCE // (image[1] * image[2] * image[3]))

    def run(read: Tensors, written: Tensors) -> None:
        of_x, of_regions = written
        gradient = double(read[1])
        x = None if read[0] is None else double(read[0])
        batch, corners, there = _regions(read[2], read[3], image[0])
        y = None if of_x is None else gradient.new_zeros(image)
        sums = gradient.new_zeros((len(corners), 4))
        for first in range(0, len(corners), step):
            part = slice(first, first + step)
            down, across = (_samples(desc, corners[part], there[part], axis) for axis in (rows, columns))
            planes: Any = None
            if is_largest:
                planes, sums[part] = _of_largest(x, gradient[part], batch[part], down, across)
            else:
                shared = gradient[part] / (down.number * across.number)[..., None, None]
                if y is not None:
                    planes = _spread(
                        shared,
                        _dense(_weights_given(down), down, rows),
                        _dense(_weights_given(across), across, columns),
                    )
                if of_regions is not None and is_linear:
                    sums[part] = _of_regions(x, shared, batch[part], down, across, rows, columns)
            if y is not None:
                for r in range(len(planes)):
                    # One after the other, as regions of one image overlap.
                    y.index_add_(0, batch[first + r : first + r + 1], planes[r : r + 1])
        if y is not None:
            store(y, of_x)
        if of_regions is not None:
            sums[:, 0::2] *= desc.SpatialScaleX
            sums[:, 1::2] *= desc.SpatialScaleY
            store(sums.reshape(of_regions.shape), of_regions)

    return run


def _regions(rois: Any, indices: Any, images: int) -> tuple[Any, Any, Any]:
    """The images that regions are of, the first for those of none; their corners; and whether they are of one."""
    batch = widened(indices).reshape(-1)
    there = batch < images
    return torch.where(there, batch, 0), double(rois).reshape(-1, 4), there


def _samples(desc: Any, corners: Any, there: Any, axis: _Axis) -> _Samples:
    """As the specification has them."""
    scale = desc.SpatialScaleX if axis.number == 3 else desc.SpatialScaleY
    begin, end = (corners[:, 3 - axis.number + i] * scale for i in (0, 2))
    there = there & begin.isfinite() & end.isfinite()
    begin, length = (torch.where(there, each, 0.0)[:, None, None] for each in (begin, end - begin))
    least = max(desc.MinimumSamplesPerOutput, 1)
    number = (length.abs() / axis.outputs).ceil().clamp(least, desc.MaximumSamplesPerOutput)
    offset = torch.full_like(number, getattr(desc, "OutputPixelOffset", -0.5))
    divisor = number * axis.outputs
    if getattr(desc, "AlignRegionsToCorners", False):
        single = divisor == 1
        offset, divisor = torch.where(single, -0.5, torch.zeros_like(offset)), torch.where(single, 1.0, divisor - 1)
    origin = begin - getattr(desc, "InputPixelOffset", 0.5)
    options = {"dtype": torch.float64, "device": corners.device}
    first = number * torch.arange(axis.outputs, **options)[:, None]

    def place(k: Any) -> Any:
        return (first + k - offset) * length / divisor + origin

    def is_before(p: Any) -> Any:
        return torch.where(length >= 0, p < -1, p > axis.size)

    def is_behind(p: Any) -> Any:
        return torch.where(length >= 0, p > axis.size, p < -1)

    start = torch.zeros_like(first)
    if not axis.all_are_seen:
        start = _bisected(start, start + number, desc.MaximumSamplesPerOutput, lambda k: ~is_before(place(k)))
    k = start + torch.arange(axis.samples, **options)
    p = place(k)
    known = there[:, None, None] & (k < number) & ~is_before(p) & ~is_behind(p)
    p, along = p.clamp(0, axis.size - 1), (first + k - offset) / divisor
    low = p.floor() if desc.InterpolationMode == InterpolationMode.LINEAR else (p - 0.5).ceil()
    share = p - low if desc.InterpolationMode == InterpolationMode.LINEAR else torch.zeros_like(p)
    return _Samples(low.to(torch.int64), share, along, known, number[..., 0])


def _bisected(low: Any, high: Any, most: int, holds: Callable[[Any], Any]) -> Any:
    """The first whole number for which a condition does that stays once it holds, of as many as there are at most."""
    for _ in range(most.bit_length() + 1):
        middle = ((low + high) / 2).floor()
        found, is_open = holds(middle), low < high
        low, high = torch.where(is_open & ~found, middle + 1, low), torch.where(is_open & found, middle, high)
    return low


def _weights_given(each: _Samples) -> tuple[Any, Any]:
    """What samples give to the element at or before them, and to the next one."""
    return 1 - each.share, each.share


def _dense(given: tuple[Any, Any], each: _Samples, axis: _Axis) -> Any:
    """The sums of what samples give to all elements of a dimension, {R, O, size}."""
    weights = each.share.new_zeros((*each.share.shape[:2], axis.size))
    for k in range(each.low.shape[-1]):
        for numbers, index in zip(given, (each.low, each.low + 1), strict=True):
            number = torch.where(each.known[..., k] & (numbers[..., k] != 0), numbers[..., k], 0.0)
            weights.scatter_add_(-1, index[..., k, None].clamp(max=axis.size - 1), number[..., None])
    return weights


def _taps(given: tuple[Any, Any], each: _Samples, axis: _Axis) -> _Taps:
    weights = _dense(given, each, axis)
    most = min(axis.size, 2 * axis.samples)
    indices = (weights == 0).to(torch.uint8).argsort(dim=-1, stable=True)[..., :most]
    return _Taps(indices, weights.gather(-1, indices))


def _weights(each: _Samples, axis: _Axis) -> _Taps:
    return _taps(_weights_given(each), each, axis)


def _reduced(x: Any, batch: Any, rows: _Taps, columns: _Taps, combined: Callable[[Any, Any, Any, bool], Any]) -> Any:
    """Elements that weights name, combined in rows and then in columns: {R, C, OH, OW}, of images {B, C, H, W}."""
    partial: Any = x.new_zeros((*rows.indices.shape[:2], x.shape[1], x.shape[3]))
    for t in range(rows.indices.shape[-1]):
        elements = x[batch[:, None], :, rows.indices[:, :, t]]
        partial = combined(partial, elements, rows.weights[:, :, t, None, None], t == 0)
    y = x.new_zeros((*partial.shape[:3], columns.indices.shape[1]))
    for t in range(columns.indices.shape[-1]):
        elements = partial.gather(-1, columns.indices[:, None, None, :, t].expand(y.shape))
        y = combined(y, elements, columns.weights[:, None, None, :, t], t == 0)
    return y.permute(0, 2, 1, 3)


def _weighted(x: Any, batch: Any, rows: _Taps, columns: _Taps) -> Any:
    def added(y: Any, elements: Any, weight: Any, is_first: bool) -> Any:
        return torch.where(weight != 0, elements * weight if is_first else y + elements * weight, y)

    return _reduced(x, batch, rows, columns, added)


def _largest_element(x: Any, batch: Any, rows: _Taps, columns: _Taps) -> Any:
    """NaN where there is none."""

    def larger(y: Any, elements: Any, weight: Any, is_first: bool) -> Any:
        y = torch.full_like(y, torch.nan) if is_first else y
        return torch.where((weight != 0) & _exceeds(elements, y), elements, y)

    return _reduced(x, batch, rows, columns, larger)


def _exceeds(candidate: Any, best: Any) -> Any:
    return (candidate > best) | ((best != best) & (candidate == candidate))


def _corners(each: _Samples, k: int) -> list[tuple[Any, Any]]:
    """Of a sample of each element the elements of the input that it is made of, and their weights, {R, O}."""
    low, share = each.low[..., k], each.share[..., k]
    return [(low, 1 - share), (low + (share > 0), share)]


def _sample(x: Any, batch: Any, rows: _Samples, columns: _Samples, i: int, j: int) -> Any:
    """Sample (i, j) of each element, {R, C, OH, OW}."""
    value: Any = None
    for column, by_column in _corners(columns, j):
        part: Any = None
        for row, by_row in _corners(rows, i):
            elements = x[batch[:, None, None], :, row[:, :, None], column[:, None]].permute(0, 3, 1, 2)
            weight = by_row[:, None, :, None]
            part = elements * weight if part is None else torch.where(weight != 0, part + elements * weight, part)
        weight = by_column[:, None, None]
        value = part * weight if value is None else torch.where(weight != 0, value + part * weight, value)
    return value


def _largest(x: Any, batch: Any, rows: _Samples, columns: _Samples) -> tuple[Any, Any, Any]:
    """The largest sample inside the input, and which one it is; NaN and -1 where there is none."""
    best = x.new_full((len(batch), x.shape[1], rows.low.shape[1], columns.low.shape[1]), torch.nan)
    at_row, at_column = (torch.full_like(best, -1, dtype=torch.int64) for _ in range(2))
    for i, j in product(range(rows.low.shape[-1]), range(columns.low.shape[-1])):
        value = _sample(x, batch, rows, columns, i, j)
        known = rows.known[:, None, :, None, i] & columns.known[:, None, None, :, j]
        wins = known & ((at_row < 0) | _exceeds(value, best))
        best = torch.where(wins, value, best)
        at_row, at_column = torch.where(wins, i, at_row), torch.where(wins, j, at_column)
    return best, at_row, at_column


def _spread(gradient: Any, rows: Any, columns: Any) -> Any:
    """What each region gives to its image: {R, C, H, W}, by weights {R, OH, H} and {R, OW, W}."""
    part = gradient.new_zeros((*gradient.shape[:3], columns.shape[-1]))
    for j in range(gradient.shape[3]):
        weight = columns[:, None, None, j]
        part = torch.where(weight != 0, part + weight * gradient[..., j, None], part)
    planes = gradient.new_zeros((*gradient.shape[:2], rows.shape[-1], columns.shape[-1]))
    for i in range(gradient.shape[2]):
        weight = rows[:, None, i, :, None]
        planes = torch.where(weight != 0, planes + weight * part[:, :, i, None], planes)
    return planes


def _of_regions(
    x: Any, gradient: Any, batch: Any, down: _Samples, across: _Samples, rows: _Axis, columns: _Axis
) -> Any:
    """{R, 4}, of what an average's samples give."""
    by_row, by_column = _weights(down, rows), _weights(across, columns)
    (top, bottom), (left, right) = _slopes(down, rows), _slopes(across, columns)
    pairs = ((by_row, left), (top, by_column), (by_row, right), (bottom, by_column))
    return torch.stack([(_weighted(x, batch, *each) * gradient).sum((1, 2, 3)) for each in pairs], -1)


def _slopes(each: _Samples, axis: _Axis) -> tuple[_Taps, _Taps]:
    """The derivatives of weights by the ends of a region."""
    moves = each.share > 0
    first, last = torch.where(moves, 1 - each.along, 0.0), torch.where(moves, each.along, 0.0)
    return _taps((-first, first), each, axis), _taps((-last, last), each, axis)


def _of_largest(x: Any, gradient: Any, batch: Any, rows: _Samples, columns: _Samples) -> tuple[Any, Any]:
    """What each region gives to its image, {R, C, H, W}, and its own gradients, {R, 4}."""
    _, at_row, at_column = _largest(x, batch, rows, columns)
    is_there = at_row >= 0

    def chosen(each: _Samples, at: Any, axis: int) -> tuple[Any, Any, Any]:
        shape = (len(batch), 1, -1, 1) if axis == 2 else (len(batch), 1, 1, -1)
        parts = (part.reshape(*shape, part.shape[-1]) for part in (each.low, each.share, each.along))
        index = at.clamp(min=0)[..., None]
        return tuple(part.expand(*at.shape, part.shape[-1]).gather(-1, index)[..., 0] for part in parts)

    (low, by_row, down), (left, by_column, across) = chosen(rows, at_row, 2), chosen(columns, at_column, 3)
    height, width = x.shape[2:]
    planes = gradient.new_zeros((len(batch), x.shape[1], height * width))
    elements = x.index_select(0, batch).flatten(2)
    found: dict[tuple[int, int], Any] = {}
    for (a, row), (b, column) in product(enumerate((1 - by_row, by_row)), enumerate((1 - by_column, by_column))):
        place = (low + a).clamp(max=height - 1) * width + (left + b).clamp(max=width - 1)
        found[a, b] = elements.gather(-1, place.flatten(2)).reshape(place.shape)
        given = torch.where(is_there & (row != 0) & (column != 0), row * (column * gradient), 0.0)
        for i, j in product(range(gradient.shape[2]), range(gradient.shape[3])):
            # One element of each channel, so that no two are added to one at once.
            planes.scatter_add_(-1, place[:, :, i, j, None], given[:, :, i, j, None])

    def slope(ends: list[Any], share: Any, weight: Any, is_moving: Any) -> Any:
        steps = [ends[1] - ends[0], ends[3] - ends[2]]
        value = (1 - weight) * steps[0]
        value = torch.where(weight > 0, value + weight * steps[1], value) * gradient
        return torch.where(is_there & is_moving, share * value, 0.0).sum((1, 2, 3))

    sideways = [found[0, 0], found[0, 1], found[1, 0], found[1, 1]]
    downward = [found[0, 0], found[1, 0], found[0, 1], found[1, 1]]
    sums = [
        slope(sideways, 1 - across, by_row, by_column > 0),
        slope(downward, 1 - down, by_column, by_row > 0),
        slope(sideways, across, by_row, by_column > 0),
        slope(downward, down, by_column, by_row > 0),
    ]
    return planes.reshape(*planes.shape[:2], height, width), torch.stack(sums, -1)
