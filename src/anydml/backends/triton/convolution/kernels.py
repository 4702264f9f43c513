"""Triton's kernels of what follows a convolution."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def finish(
    x, bias, y, inner, channels, blocks, HAS_BIAS: tl.constexpr, HAS_RELU: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Rows of `inner` elements, each of one channel: max(x + bias, 0)."""
    program = tl.program_id(0)
    row = program // blocks
    at = (program - row * blocks) * BLOCK + tl.arange(0, BLOCK)
    mask = at < inner
    place = row.to(tl.int64) * inner + at
    result = tl.load(x + place, mask=mask).to(tl.float32)
    if HAS_BIAS:
        result += tl.load(bias + row % channels).to(tl.float32)
    if HAS_RELU:
        result = tl.where(result < 0, 0.0, result)
    tl.store(y + place, result, mask=mask)


@triton.jit
def finish_along_channels(
    x, bias, y, count, channels, HAS_BIAS: tl.constexpr, HAS_RELU: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """The same where the channels of a place lie side by side."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    result = tl.load(x + at, mask=mask).to(tl.float32)
    if HAS_BIAS:
        result += tl.load(bias + at % channels, mask=mask).to(tl.float32)
    if HAS_RELU:
        result = tl.where(result < 0, 0.0, result)
    tl.store(y + at, result, mask=mask)
