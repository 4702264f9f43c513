"""Triton's kernel of BATCH_NORMALIZATION."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def normalize(
    x, mean, variance, scale, bias, y, inner, channels, blocks,
    STEPS: tl.constexpr, EPSILON: tl.constexpr, HAS_RELU: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Rows of `inner` elements, each of one channel: (x - mean) / sqrt(variance + EPSILON) * scale + bias, in double.

    STEPS: of mean, variance, scale and bias from channel to channel.
    """
    program = tl.program_id(0)
    row = program // blocks
    channel = row % channels
    at = (program - row * blocks) * BLOCK + tl.arange(0, BLOCK)
    mask = at < inner
    place = row.to(tl.int64) * inner + at
    centre = tl.load(mean + channel * STEPS[0]).to(tl.float64)
    spread = tl.sqrt(tl.load(variance + channel * STEPS[1]).to(tl.float64) + EPSILON)
    z = (tl.load(x + place, mask=mask).to(tl.float64) - centre) / spread
    z = z * tl.load(scale + channel * STEPS[2]).to(tl.float64) + tl.load(bias + channel * STEPS[3]).to(tl.float64)
    result = z.to(tl.float32)
    if HAS_RELU:
        result = tl.where(result < 0, 0.0, result)
    tl.store(y + place, result, mask=mask)
