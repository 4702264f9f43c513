"""Interpolation as tables, one for each dimension: which elements of another tensor one is a weighted sum of."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ..core.strided_layout import Array


class Taps(NamedTuple):
    """A dimension's elements as weighted sums of another's, as a sparse matrix: for each the first that it is made of,
    how many follow each other from there, and where their weights begin in a list that elements may share parts of.
    `first` never decreases."""

    first: Array
    counts: Array
    starts: Array
    weights: Array

    def is_identity(self, size: int) -> bool:
        """Whether they are the elements of a dimension of that size themselves."""
        return (
            len(self.first) == size
            and bool((self.first == np.arange(size)).all())
            and bool((self.counts == 1).all())
            and bool((self.weights[self.starts] == 1).all())
        )


def simplest(scale: float) -> Fraction:
    """The fraction of the smallest terms that single precision rounds to this number, by the Stern-Brocot tree."""
    value = np.float32(scale)
    low, high = (Fraction(float(np.nextafter(value, np.float32(end)))) for end in (0, np.finfo(np.float32).max))
    exact = Fraction(float(value))
    return _simplest_between((low + exact) / 2, (exact + high) / 2)


def _simplest_between(low: Fraction, high: Fraction) -> Fraction:
    whole = ceil(low)
    if whole <= high:
        return Fraction(whole)
    below = whole - 1
    return below + 1 / _simplest_between(1 / (high - below), 1 / (low - below))


def places_of(size: int, out_size: int, ratio: Fraction, in_offset: float, out_offset: float) -> tuple[Array, int]:
    """The places (o - out_offset) / ratio - in_offset of elements o among `size` others, brought into 0 to the last, as
    whole numbers and what these are to be divided by. They are Python's where those of 64 bits may overflow."""
    (p, q), (a, b), (e, f) = (each.as_integer_ratio() for each in (ratio, Fraction(out_offset), Fraction(in_offset)))
    # n / d = (o - a / b) / (p / q) - e / f
    d = p * b * f
    largest = max((out_size * b + abs(a)) * q * f + abs(e) * p * b, size * d) * max(p, q) * 4
    o = np.arange(out_size, dtype=np.int64 if largest < 2**63 else object)
    return np.clip((o * b - a) * q * f - e * p * b, 0, (size - 1) * d), d


def copied(first: Array) -> Taps:
    """The elements of those numbers themselves."""
    every = np.ones(len(first), np.int64)
    return Taps(first.astype(np.int64), every, 0 * every, np.ones(1))


def linear(n: Array, d: int) -> Taps:
    """Places n / d, each between two elements."""
    low = n // d
    k = n - low * d
    return _in_pairs(low, k, (d - k) / d, k / d)


def linear_by_whole_weights(n: Array, d: int) -> Taps:
    """Likewise, but that the sums are d times as large: no weight is rounded."""
    low = n // d
    k = n - low * d
    return _in_pairs(low, k, d - k, k)


def _in_pairs(low: Array, k: Array, one: Array, other: Array) -> Taps:
    weights = np.empty((len(low), 2))
    weights[:, 0], weights[:, 1] = one, other
    return Taps(
        low.astype(np.int64), 1 + (k > 0).astype(np.int64), 2 * np.arange(len(low), dtype=np.int64), weights.reshape(-1)
    )


def stretched(n: Array, d: int, ratio: Fraction, size: int) -> Taps:
    """The triangle max(0, 1 - |i - n / d| * p / q), times d * q, of elements i between which and beyond the sums are
    exact. Places that are the same, as those beyond an end are, share their weights."""
    p, q = ratio.as_integer_ratio()
    is_new = np.append(True, n[1:] != n[:-1])
    row, n = np.cumsum(is_new) - 1, n[is_new]
    first = (n * p - q * d) // (p * d) + 1
    last = -((-n * p - q * d) // (p * d)) - 1

    def weight(i: Any, n: Array) -> Any:
        return q * d - abs(i * d - n) * p

    def sums(count: Array, one_end: Any, other_end: Any) -> Array:
        """Of weights in arithmetic progression."""
        result: Array = np.maximum(count, 0) * (weight(one_end, n) + weight(other_end, n)) // 2
        return result

    begin, end = np.maximum(first, 0), np.minimum(last, size - 1)
    counts = (end - begin + 1).astype(np.int64)
    starts = np.cumsum(counts) - counts
    step = np.arange(counts.sum()) - np.repeat(starts, counts)
    weights = weight(np.repeat(begin, counts) + step, np.repeat(n, counts))
    weights[starts] += sums(-first, first, -1)
    weights[starts + counts - 1] += sums(last - size + 1, size, last)
    totals = np.add.reduceat(weights, starts)
    weights = (weights / np.repeat(totals, counts)).astype(np.float64)
    return Taps(begin.astype(np.int64)[row], counts[row], starts[row], weights)


def transposed(taps: Taps, size: int) -> Taps:
    """What elements of the input give to those of the output, which follow each other, as places only grow."""
    ends = np.cumsum(taps.counts)
    output = np.repeat(np.arange(len(taps.counts)), taps.counts)
    tap = np.arange(len(output)) - np.repeat(ends - taps.counts, taps.counts)
    source = taps.first[output] + tap
    order = np.argsort(source, kind="stable")
    counts = np.bincount(source, minlength=size).astype(np.int64)
    starts = np.cumsum(counts) - counts
    first = np.zeros(size, np.int64)
    first[counts > 0] = output[order][starts[counts > 0]]
    # What gave nothing stands where its neighbour does.
    return Taps(np.maximum.accumulate(first), counts, starts, taps.weights[taps.starts[output] + tap][order])


def summed(x: Array, taps: Sequence[Taps]) -> Array:
    """Doubles as sums along one dimension after the other, from the first to the last, in the order of elements."""
    for axis, each in enumerate(taps):
        if not each.is_identity(x.shape[axis]):
            x = _summed(x, axis, each)
    return x


def _summed(x: Array, axis: int, taps: Taps) -> Array:
    y = np.zeros((*x.shape[:axis], len(taps.first), *x.shape[axis + 1 :]))
    for i in range(int(taps.counts.max())):
        (rows,) = np.nonzero(taps.counts > i)
        weights = taps.weights[taps.starts[rows] + i].reshape(-1, *[1] * (x.ndim - axis - 1))
        product = np.take(x, taps.first[rows] + i, axis) * weights
        place = (slice(None),) * axis + (rows,)
        y[place] = y[place] + product if i else product
    return y
