"""Copies of runs of bytes that begin anywhere, in words of 8 bytes, for Triton kernels of several runs each."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def copy_words(
    source, target, length, is_row, is_constant, pattern, part,
    ITEM: tl.constexpr, HAS_CONSTANT: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Copies part number `part`, of COLUMNS words, of runs of `length` bytes between addresses, a column of them.

    A word is written at a multiple of 8, made of two that are read at multiples of 8 by a funnel shift. The bytes at
    the ends of a run, for which that would read beyond it, fewer than 16 each, are copied element by element with part
    0.
    Where HAS_CONSTANT, runs of which `is_constant` is set get the pattern, 8 bytes.
    """
    SIZE: tl.constexpr = ITEM.primitive_bitwidth // 8
    lead = target & 7
    shift = (source - lead) & 7
    # Words from the first on whose two words are of the run: so many bytes of the run come before.
    head = (8 - lead) & 7
    head += tl.where(shift > head, 8, 0)
    words = tl.maximum((length - head - tl.where(shift == 0, 0, 8 - shift)) >> 3, 0)
    words = tl.where(is_row, words, 0)
    column = part * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = column < words
    is_read = mask & (is_constant == 0) if HAS_CONSTANT else mask
    low_at = (source + head - shift).to(tl.pointer_type(tl.int64)) + column
    low = tl.load(low_at, mask=is_read, other=0).to(tl.uint64)
    high = tl.load(low_at + 1, mask=is_read & (shift > 0), other=0).to(tl.uint64)
    bits = (shift * 8).to(tl.uint64)
    # In two steps, as nothing is shifted by 64.
    word = ((low >> bits) | ((high << 1) << (63 - bits))).to(tl.int64)
    if HAS_CONSTANT:
        word = tl.where(is_constant, tl.full([1, 1], pattern, tl.int64), word)
    tl.store((target + head).to(tl.pointer_type(tl.int64)) + column, word, mask=mask)
    if part == 0:
        head = tl.where(words > 0, head, tl.minimum(head, length))
        tail = head + words * 8
        item = tl.arange(0, 32 // SIZE)[None, :]
        skipped = tl.where(item < 16 // SIZE, 0, tail - 16)
        at = skipped + item * SIZE
        is_edge = is_row & (at < length) & ((at < head) | (at >= tail))
        from_edge = tl.max_contiguous((source + skipped).to(tl.pointer_type(ITEM)) + item, [1, 16 // SIZE])
        to_edge = tl.max_contiguous((target + skipped).to(tl.pointer_type(ITEM)) + item, [1, 16 // SIZE])
        has_edge = is_edge & (is_constant == 0) if HAS_CONSTANT else is_edge
        edge = tl.load(from_edge, mask=has_edge, other=0)
        if HAS_CONSTANT:
            edge = tl.where(is_constant, tl.full([1, 1], pattern, tl.int64).to(ITEM), edge)
        tl.store(to_edge, edge, mask=is_edge)
