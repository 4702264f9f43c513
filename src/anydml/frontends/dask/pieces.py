"""Chunks computed piece by piece, so that results in double precision take no more memory than caches have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core.strided_layout import Array

_ELEMENTS = 1 << 17


def in_pieces(function: Callable[..., Array], dtype: np.dtype[Any], x: Array, *others: Array) -> Array:
    """A function of elements, and of others that broadcast to them, rounded to a type."""
    y = np.empty(x.shape, dtype)
    with np.errstate(all="ignore"):
        for place in _pieces(x):
            y[place] = function(x[place], *[_part(other, place) for other in others])
    return y


def squared_distances(x: Array, mean: Array, axes: Sequence[int]) -> Array:
    """The sums of (x - mean)^2 along axes, which keep size 1."""
    sums = np.zeros(mean.shape)
    for place in _pieces(x):
        squares = (x[place].astype(np.float64) - _part(mean, place)) ** 2
        target = sums[_within(sums, place)]
        target += squares.sum(axis=tuple(axes), keepdims=True)
    return sums


def _pieces(x: Array) -> Iterator[tuple[slice, ...]]:
    """Parts along the longest dimension."""
    if x.size == 0:
        return
    longest = int(np.argmax(x.shape))
    size = x.shape[longest]
    step = max(1, _ELEMENTS * size // x.size)
    for start in range(0, size, step):
        yield tuple([slice(start, start + step) if i == longest else slice(None) for i in range(x.ndim)])


def _part(other: Array, place: tuple[slice, ...]) -> Array:
    return other[_within(other, place)]


def _within(other: Array, place: tuple[slice, ...]) -> tuple[slice, ...]:
    return tuple([slice(None) if size == 1 else part for size, part in zip(other.shape, place, strict=True)])
