"""The samples of regions of interest, and what ROI_ALIGN and its gradients make of them, by NumPy.

The decisions are those of ``specs/roi_align.py``. Dimensions of arrays: R regions, O output elements of a dimension, K
samples of each that are inside the input, T elements of the input, the taps, that those are made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ..core.enums import InterpolationMode, ReduceFunction
from ..core.strided_layout import Array


class Samples(NamedTuple):
    """Those of a dimension."""

    low: Array
    """The element at or before each, {R, O, K}."""
    share: Array
    """The weight of the next element, likewise; that of `low` is the rest."""
    along: Array
    """Where each is between the ends of its region, of which 0 is the first and 1 the last, likewise."""
    inside: Array
    """How many there are, {R, O}."""
    number: Array
    """How many there would be, {R, 1}."""

    def known(self) -> Array:
        """Which of {R, O, K} there are."""
        found: Array = np.arange(self.low.shape[-1]) < self.inside[..., None]
        return found


class Taps(NamedTuple):
    """Elements of a dimension and their weights, {R, O, T}, in ascending order; 0 where there are no more."""

    indices: Array
    weights: Array


def scaled_ends(desc: Any, regions: Array, axis: int) -> tuple[Array, Array]:
    """Where regions begin and how long they are, in the dimension 2, of y, or 3, of x; products are exact."""
    scale = desc.SpatialScaleX if axis == 3 else desc.SpatialScaleY
    with np.errstate(invalid="ignore"):
        corners = regions.astype(np.float64)[:, 3 - axis :: 2] * scale
        return corners[:, 0], corners[:, 1] - corners[:, 0]


def samples(desc: Any, regions: Array, there: Array, axis: int, size: int, outputs: int) -> Samples:
    """The samples inside the input, of regions {R, 4} of images that are there, {R}."""
    begin, length = scaled_ends(desc, regions, axis)
    there = there & np.isfinite(begin) & np.isfinite(length)
    begin, length = (np.where(there, each, 0.0)[:, None, None] for each in (begin, length))
    least = max(desc.MinimumSamplesPerOutput, 1)
    count = np.clip(np.ceil(np.abs(length) / outputs), least, desc.MaximumSamplesPerOutput)
    offset = np.full_like(count, getattr(desc, "OutputPixelOffset", -0.5))
    divisor = count * outputs
    if getattr(desc, "AlignRegionsToCorners", False):
        single = divisor == 1
        offset, divisor = np.where(single, -0.5, 0.0), np.where(single, 1.0, divisor - 1)
    origin = begin - getattr(desc, "InputPixelOffset", 0.5)
    first = count * np.arange(outputs)[:, None]

    def place(k: Array) -> Array:
        result: Array = (first + k - offset) * length / divisor + origin
        return result

    def is_before(p: Array) -> Array:
        return np.where(length >= 0, p < -1, p > size)

    def is_behind(p: Array) -> Array:
        return np.where(length >= 0, p > size, p < -1)

    none = np.zeros_like(first)
    start = _bisected(none, none + count, lambda k: ~is_before(place(k)))
    end = np.where(there[:, None, None], _bisected(start, none + count, lambda k: is_behind(place(k))), start)
    inside = (end - start)[..., 0].astype(np.int64)
    k = start + np.arange(max(int(inside.max()), 1))
    p = np.clip(place(k), 0, size - 1)
    along = (first + k - offset) / divisor
    if desc.InterpolationMode == InterpolationMode.LINEAR:
        low = np.floor(p)
        return Samples(low.astype(np.int64), p - low, along, inside, count[..., 0])
    return Samples(np.ceil(p - 0.5).astype(np.int64), np.zeros_like(p), along, inside, count[..., 0])


def _bisected(low: Array, high: Array, holds: Any) -> Array:
    """The first whole number from `low` on for which a condition that stays once it holds does, or `high`."""
    while (low < high).any():
        middle = np.floor((low + high) / 2)
        found = holds(middle)
        open_ones = low < high
        low, high = np.where(open_ones & ~found, middle + 1, low), np.where(open_ones & found, middle, high)
    return low


def taps(each: Samples, size: int, low: Array, high: Array) -> Taps:
    """The sums, for each element, of numbers that samples give to the one at or before them and to the next one."""
    weights = np.zeros((*each.inside.shape, size))
    known = each.known()
    for k in range(each.low.shape[-1]):
        for index, number in ((each.low[..., k], low[..., k]), (each.low[..., k] + 1, high[..., k])):
            index = np.minimum(index, size - 1)[..., None]
            number = np.where(known[..., k] & (number != 0), number, 0.0)[..., None]
            np.put_along_axis(weights, index, np.take_along_axis(weights, index, -1) + number, -1)
    most = max(int((weights != 0).sum(-1).max()), 1)
    indices = np.argsort(weights == 0, -1, kind="stable")[..., :most]
    return Taps(indices, np.take_along_axis(weights, indices, -1))


def weights_of(each: Samples, size: int) -> Taps:
    return taps(each, size, 1 - each.share, each.share)


def slopes_of(each: Samples, size: int) -> tuple[Taps, Taps]:
    """The derivatives of those weights by the ends of a region, as if these were at the scale of the input."""
    moves = each.share > 0
    first, last = np.where(moves, 1 - each.along, 0.0), np.where(moves, each.along, 0.0)
    return taps(each, size, -first, first), taps(each, size, -last, last)


def weighted(x: Array, batch: Array, rows: Taps, columns: Taps) -> Array:
    """Sums over columns of those over rows, {R, C, OH, OW}, of images {B, C, H, W}."""
    partial = np.zeros((*rows.indices.shape[:2], x.shape[1], x.shape[3]))
    for t in range(rows.indices.shape[-1]):
        weight = rows.weights[:, :, t, None, None]
        product = x[batch[:, None], :, rows.indices[:, :, t]] * weight
        partial = np.where(weight != 0, partial + product if t else product, partial)
    y = np.zeros((*partial.shape[:3], columns.indices.shape[1]))
    for t in range(columns.indices.shape[-1]):
        index = np.broadcast_to(columns.indices[:, None, None, :, t], y.shape)
        weight = columns.weights[:, None, None, :, t]
        product = np.take_along_axis(partial, index, -1) * weight
        y = np.where(weight != 0, y + product if t else product, y)
    return y.transpose(0, 2, 1, 3)


class Regions(NamedTuple):
    """All of a desc's, of images of a height and a width."""

    rows: Samples
    columns: Samples
    batch: Array
    """The images that they are of; the first for those that are of none."""

    def total(self) -> Array:
        """The number of samples of an output element, {R, 1, 1, 1}."""
        total: Array = (self.rows.number * self.columns.number)[..., None, None]
        return total


def regions_of(desc: Any, rois: Array, indices: Array, image: tuple[int, ...], outputs: tuple[int, ...]) -> Regions:
    """Of images {B, C, H, W} and outputs {R, C, OH, OW}."""
    corners, batch = rois.reshape(-1, 4), indices.reshape(-1).astype(np.int64)
    there = batch < image[0]
    rows, columns = (samples(desc, corners, there, axis, image[axis], outputs[axis]) for axis in (2, 3))
    return Regions(rows, columns, np.where(there, batch, 0))


def align(desc: Any, x: Array, rois: Array, indices: Array) -> Array:
    dtype = x.dtype
    x = x.astype(np.float64)
    found = regions_of(desc, rois, indices, x.shape, desc.OutputTensor.Sizes)
    outside = found.total() - (found.rows.inside[:, :, None] * found.columns.inside[:, None])[:, None]
    value = desc.OutOfBoundsInputValue
    with np.errstate(all="ignore"):
        if desc.ReductionFunction == ReduceFunction.MAX:
            y, *_ = _largest(x, found)
            y = np.where((outside > 0) & _exceeds(np.full_like(y, value), y), value, y)
        else:
            columns = weights_of(found.columns, x.shape[3])
            y = weighted(x, found.batch, weights_of(found.rows, x.shape[2]), columns)
            y = np.where(outside > 0, y + outside * value, y) / found.total()
        return y.astype(dtype)


def _exceeds(candidate: Array, best: Array) -> Array:
    found: Array = (candidate > best) | ((best != best) & (candidate == candidate))
    return found


def _corners(each: Samples, k: int) -> Iterator[tuple[Array, Array]]:
    """Of a sample of each output element the elements that it is made of, and their weights, {R, O}."""
    low, share = each.low[..., k], each.share[..., k]
    yield low, 1 - share
    yield low + (share > 0), share


def _sample(x: Array, found: Regions, i: int, j: int) -> Array:
    """Sample (i, j) of each output element, {R, C, OH, OW}."""
    value: Any = None
    for column, by_column in _corners(found.columns, j):
        part: Any = None
        for row, by_row in _corners(found.rows, i):
            elements = x[found.batch[:, None, None], :, row[:, :, None], column[:, None]].transpose(0, 3, 1, 2)
            weight = by_row[:, None, :, None]
            part = elements * weight if part is None else np.where(weight != 0, part + elements * weight, part)
        weight = by_column[:, None, None]
        value = part * weight if value is None else np.where(weight != 0, value + part * weight, value)
    return np.asarray(value)


def _largest(x: Array, found: Regions) -> tuple[Array, Array, Array]:
    """The largest sample inside the input and which one it is; NaN and -1 where there is none."""
    shape = (len(found.batch), x.shape[1], found.rows.low.shape[1], found.columns.low.shape[1])
    best, at_row, at_column = np.full(shape, np.nan), np.full(shape, -1), np.full(shape, -1)
    for i, j in product(range(found.rows.low.shape[-1]), range(found.columns.low.shape[-1])):
        value = _sample(x, found, i, j)
        known = (i < found.rows.inside)[:, None, :, None] & (j < found.columns.inside)[:, None, None]
        wins = known & ((at_row < 0) | _exceeds(value, best))
        best = np.where(wins, value, best)
        at_row, at_column = np.where(wins, i, at_row), np.where(wins, j, at_column)
    return best, at_row, at_column


def align_grad(desc: Any, x: Array | None, gradient: Array, rois: Array, indices: Array) -> tuple[Any, Any]:
    image = (desc.OutputGradientTensor if desc.InputTensor is None else desc.InputTensor).Sizes
    dtype, gradient = gradient.dtype, gradient.astype(np.float64)
    x = None if x is None else x.astype(np.float64)
    found = regions_of(desc, rois, indices, image, gradient.shape)
    linear = desc.InterpolationMode == InterpolationMode.LINEAR
    of_input = of_regions = None
    with np.errstate(all="ignore"):
        if desc.ReductionFunction == ReduceFunction.MAX:
            assert x is not None
            of_input, of_regions = _grad_of_largest(desc, x, gradient, found)
        else:
            gradient = gradient / found.total()
            if desc.OutputGradientTensor is not None:
                of_input = _grad_of_average(gradient, found, image)
            if desc.OutputROIGradientTensor is not None:
                assert x is not None
                of_regions = _grad_of_regions(x, gradient, found)
        if of_regions is not None:
            scales = np.array([desc.SpatialScaleX, desc.SpatialScaleY] * 2)
            of_regions = of_regions * scales if linear else np.zeros_like(of_regions)
            of_regions = of_regions.reshape(rois.shape).astype(dtype)
        return None if of_input is None else of_input.astype(dtype), of_regions


def _grad_of_average(gradient: Array, found: Regions, image: tuple[int, ...]) -> Array:
    """Regions one after the other, and their rows; of each the sums of what its elements give to columns, first."""
    y = np.zeros(image)
    rows, columns = weights_of(found.rows, image[2]), weights_of(found.columns, image[3])
    for r, i in product(range(len(gradient)), range(gradient.shape[2])):
        row, given = np.zeros((image[1], image[3])), np.zeros(image[3], bool)
        for j, t in product(range(gradient.shape[3]), range(columns.indices.shape[-1])):
            at, weight = columns.indices[r, j, t], columns.weights[r, j, t]
            if weight != 0:
                row[:, at] += weight * gradient[r, :, i, j]
                given[at] = True
        for t in range(rows.indices.shape[-1]):
            if rows.weights[r, i, t] != 0:
                y[found.batch[r], :, rows.indices[r, i, t], given] += (rows.weights[r, i, t] * row[:, given]).T
    return y


def _grad_of_regions(x: Array, gradient: Array, found: Regions) -> Array:
    """{R, 4}; an output element's terms are summed in the order of channels and of elements."""
    rows, columns = weights_of(found.rows, x.shape[2]), weights_of(found.columns, x.shape[3])
    (top, bottom), (left, right) = slopes_of(found.rows, x.shape[2]), slopes_of(found.columns, x.shape[3])
    terms = [
        weighted(x, found.batch, *each) for each in ((rows, left), (top, columns), (rows, right), (bottom, columns))
    ]
    return np.stack([_summed(each * gradient) for each in terms], -1)


def _summed(terms: Array) -> Array:
    """Of each region, one after the other."""
    sums: Array = np.cumsum(terms.reshape(len(terms), -1), 1)[:, -1]
    return sums


def _grad_of_largest(desc: Any, x: Array, gradient: Array, found: Regions) -> tuple[Array, Array]:
    y, of_regions = np.zeros(x.shape), np.zeros((len(gradient), 4))
    _, at_row, at_column = _largest(x, found)
    for r, c, i, j in np.ndindex(*gradient.shape):
        if at_row[r, c, i, j] < 0:
            continue
        plane, g = x[found.batch[r], c], gradient[r, c, i, j]
        row, column = (
            _Sample(int(each.low[r, o, k]), float(each.share[r, o, k]), float(each.along[r, o, k]))
            for each, o, k in ((found.rows, i, at_row[r, c, i, j]), (found.columns, j, at_column[r, c, i, j]))
        )
        for (m, by_row), (n, by_column) in product(row.taps(), column.taps()):
            y[found.batch[r], c, m, n] += by_row * (by_column * g)
        if column.share > 0:
            across = sum(weight * (plane[m, column.low + 1] - plane[m, column.low]) for m, weight in row.taps()) * g
            of_regions[r, 0] += (1 - column.along) * across
            of_regions[r, 2] += column.along * across
        if row.share > 0:
            down = sum(weight * (plane[row.low + 1, n] - plane[row.low, n]) for n, weight in column.taps()) * g
            of_regions[r, 1] += (1 - row.along) * down
            of_regions[r, 3] += row.along * down
    return y, of_regions


class _Sample(NamedTuple):
    low: int
    share: float
    along: float

    def taps(self) -> list[tuple[int, float]]:
        rest = [(self.low + 1, self.share)] if self.share > 0 else []
        return [(self.low, 1 - self.share), *rest]
