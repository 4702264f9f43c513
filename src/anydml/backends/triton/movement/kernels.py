"""Triton's kernels of operators whose elements depend on where they are; all copy bits.

A thread computes an element of the output: its number is taken apart into indices, the innermost dimension's first.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..reduction.kernels import decomposed


@triton.jit
def _elements(count, sizes, y_strides, RANK: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr):
    at = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    return at, at < count, decomposed(at, sizes, y_strides, RANK)


@triton.jit
def _index(at, sizes, DIMENSION: tl.constexpr):
    """The index in a dimension, counted from the innermost."""
    for i in tl.static_range(DIMENSION):
        at = at // sizes[i]
    return at % sizes[DIMENSION]


@triton.jit
def fill_diagonals(
    x, y, count, begin, end, sizes, x_strides, y_strides,
    VALUE: tl.constexpr, HAS_INPUT: tl.constexpr, RANK: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The diagonals from `begin` on to before `end`, or all others where these are crossed; the rest of x, or of 0."""
    at, mask, place = _elements(count, sizes, y_strides, RANK, BLOCK, INDEX)
    diagonal = (_index(at, sizes, 0) - _index(at, sizes, 1)).to(tl.int64)
    is_filled = (diagonal >= begin) ^ (diagonal < end) ^ (at * 0 + end >= at * 0 + begin)
    value = tl.full([BLOCK], 0, y.dtype.element_ty)
    if HAS_INPUT:
        value = tl.load(x + decomposed(at, sizes, x_strides, RANK), mask=mask & (is_filled == 0), other=0)
    tl.store(y + place, tl.where(is_filled, tl.full([BLOCK], VALUE, y.dtype.element_ty), value), mask=mask)


@triton.jit
def one_hot(
    indices, values, y, count, step, sizes, index_strides, y_strides,
    DIMENSION: tl.constexpr, SIGNED: tl.constexpr, RANK: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The second of two values, `step` apart, at each index, which counts from the end where it is negative."""
    at, mask, place = _elements(count, sizes, y_strides, RANK, BLOCK, INDEX)
    wanted = tl.load(indices + decomposed(at, sizes, index_strides, RANK), mask=mask, other=0).to(tl.int64)
    if SIGNED:
        wanted = tl.where(wanted < 0, wanted + sizes[DIMENSION], wanted)
    is_hot = wanted == _index(at, sizes, DIMENSION)
    tl.store(y + place, tl.where(is_hot, tl.load(values + step), tl.load(values)), mask=mask)


@triton.jit
def reverse_subsequences(
    x, lengths, y, count, axis_stride, sizes, x_strides, length_strides, y_strides,
    DIMENSION: tl.constexpr, RANK: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The first elements of each line backward, as many as its length says. `x_strides` has 0 along lines, where x has
    `axis_stride`."""
    at, mask, place = _elements(count, sizes, y_strides, RANK, BLOCK, INDEX)
    length = tl.load(lengths + decomposed(at, sizes, length_strides, RANK), mask=mask, other=0).to(tl.int64)
    # From 2^63 on lengths are negative ones of 64 bits.
    length = tl.where((length < 0) | (length > sizes[DIMENSION]), sizes[DIMENSION], length)
    i = _index(at, sizes, DIMENSION)
    source = tl.where(i < length, length - 1 - i, i).to(INDEX)
    value = tl.load(x + decomposed(at, sizes, x_strides, RANK) + source * axis_stride, mask=mask)
    tl.store(y + place, value, mask=mask)
