"""Triton's kernel of reductions of long rows that begin anywhere: read by whole vectors, as scans of rows are."""

from __future__ import annotations

import triton
import triton.language as tl

from ..scan.rows import from_vector, in_vector, load_places, places_of
from .kernels import accumulated, combined_along, decomposed, finished


@triton.jit
def reduce_rows(
    x, y, span, n, sizes, x_strides, y_strides,
    KIND: tl.constexpr, MAP: tl.constexpr, FINISH: tl.constexpr, VALUE: tl.constexpr, SECOND: tl.constexpr,
    NONE: tl.constexpr, LAST: tl.constexpr, NOWHERE: tl.constexpr, LOOPS: tl.constexpr, DEPTH: tl.constexpr,
    VECTOR: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """A program combines a row of n elements that lie side by side, of a tensor that spans so many.

    The other words are those of `reduce_lines`.
    """
    row = tl.program_id(0).to(INDEX)
    at = decomposed(row, sizes, x_strides, LOOPS)
    # Elements are at the places from `lead` on to before `end`, place 0 being a multiple of 16 bytes; those from `low`
    # on to before `high` are the tensor's.
    lead = in_vector(x + at)
    base = from_vector(x + at)
    low = tl.where(at < lead, lead, 0)
    high = tl.minimum(span - at, n + 16) + lead
    end = n + lead
    zero = tl.full((), 0, INDEX)
    a = tl.full((1, 1, DEPTH), NONE, VALUE)
    b = tl.full((1, 1, DEPTH), NOWHERE if KIND == "ARG" else 0, SECOND)
    for offset in range(zero, end, DEPTH):
        start = zero + offset
        values = load_places(base, start, lead, end, low, high, 1, DEPTH, VECTOR, 0)
        place = places_of(start, 1, DEPTH)
        mask = (place >= lead) & (place < end)
        a, b = accumulated(a, b, values, mask, place - lead, 0, KIND, MAP, VALUE, SECOND, NONE, LAST)
    a, b = tl.reshape(a, (1, DEPTH)), tl.reshape(b, (1, DEPTH))
    a, b = combined_along(a, b, zero, zero + n, 1, KIND, LAST, NOWHERE)
    a = finished(a, b, n, KIND, FINISH)
    target = y + decomposed(row, sizes, y_strides, LOOPS) + tl.zeros((1, 1), tl.int32)
    tl.store(target, a.to(y.dtype.element_ty))


@triton.jit
def largest_bytes(
    x, y, n, sizes, x_strides, y_strides,
    IS_MINIMUM: tl.constexpr, WORD: tl.constexpr, LOOPS: tl.constexpr, DEPTH: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The largest byte of a row, or the smallest, of which the complement is the largest one's.

    Words of 4 bytes, shifted so that each byte is the upper one in turn, are compared whole: the largest word has the
    largest byte.
    """
    row = tl.program_id(0).to(INDEX)
    first = x + decomposed(row, sizes, x_strides, LOOPS)
    address = first.to(tl.int64)
    head = tl.minimum((4 - (address & 3)) & 3, n)
    words = (n - head) >> 2
    base = (address + head).to(tl.pointer_type(tl.int32))
    LOWEST: tl.constexpr = 0 if tl.uint32 == WORD else -0x7F7F7F80
    lowest = tl.full((1, DEPTH), LOWEST, tl.int32)
    a, b, c, d = lowest, lowest, lowest, lowest
    a, b, c, d = a.to(WORD, bitcast=True), b.to(WORD, bitcast=True), c.to(WORD, bitcast=True), d.to(WORD, bitcast=True)
    at = tl.arange(0, DEPTH)[None, :]
    for start in range(tl.full((), 0, tl.int64), words, DEPTH):
        word = tl.load(base + start + at, mask=start + at < words, other=~LOWEST if IS_MINIMUM else LOWEST)
        word = (~word if IS_MINIMUM else word).to(WORD, bitcast=True)
        a = tl.maximum(a, word)
        b = tl.maximum(b, word << 8)
        c = tl.maximum(c, word << 16)
        d = tl.maximum(d, word << 24)
    best = tl.max(tl.maximum(tl.maximum(a, b), tl.maximum(c, d)) >> 24, 1, keep_dims=True)
    # The bytes before the first word and behind the last.
    i = tl.arange(0, 8)[None, :]
    at = tl.where(i < 4, i, head + words * 4 + i - 4)
    is_edge = (at < n) & ((i >= 4) | (i < head))
    edge = tl.load(first + at, mask=is_edge, other=0).to(WORD)
    edge = ~edge if IS_MINIMUM else edge
    if tl.uint32 == WORD:
        edge = edge & 0xFF
    edge = tl.where(is_edge, edge, tl.full((1, 8), LOWEST, tl.int32).to(WORD, bitcast=True) >> 24)
    best = tl.maximum(best, tl.max(edge, 1, keep_dims=True))
    best = ~best if IS_MINIMUM else best
    tl.store(y + decomposed(row, sizes, y_strides, LOOPS) + tl.zeros((1, 1), tl.int32), best.to(y.dtype.element_ty))
