"""Triton's kernel of softmax(a Q K^T) V: flash attention, which goes over blocks of keys with a running softmax.

Products are made by tensor cores: of singles as sums of three products of numbers in TF32, whose parts below 2^-22 are
left out, or of one where TF32 is allowed.
"""

from __future__ import annotations

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def attend(
    q, k, v, y, queries, keys, heads, scale, q_steps, k_steps, v_steps, y_steps,
    SIZE: tl.constexpr, VALUE_SIZE: tl.constexpr, SIZES: tl.constexpr, VALUE_SIZES: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A program has ROWS queries of a head.

    Args:
        q: queries, keys, values and the result: {batch, heads, length, size}.
        queries: how many there are.
        q_steps: strides in elements.
        SIZE: elements of a query, and of a value; SIZES and VALUE_SIZES are the next powers of 2.
        KEYS: of a block.
    """
    blocks = tl.cdiv(queries, ROWS)
    head = tl.program_id(0) // blocks
    rows = (tl.program_id(0) % blocks) * ROWS + tl.arange(0, ROWS)
    batch = (head // heads).to(tl.int64)
    head = (head % heads).to(tl.int64)
    at, of_value, places = tl.arange(0, SIZES), tl.arange(0, VALUE_SIZES), tl.arange(0, KEYS)
    is_row, is_at, is_of_value = (rows < queries)[:, None], at < SIZE, (of_value < VALUE_SIZE)[None, :]
    lines = rows.to(tl.int64)[:, None]
    q += batch * q_steps[0] + head * q_steps[1]
    x = tl.load(q + lines * q_steps[2] + at[None, :] * q_steps[3], mask=is_row & is_at[None, :], other=0)
    k += batch * k_steps[0] + head * k_steps[1] + at[:, None] * k_steps[3]
    v += batch * v_steps[0] + head * v_steps[1] + of_value[None, :] * v_steps[3]
    largest = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, VALUE_SIZES], tl.float32)
    for first in range(0, keys, KEYS):
        key = first + places
        is_key, there = key < keys, key.to(tl.int64)
        columns = tl.load(k + there[None, :] * k_steps[2], mask=is_key[None, :] & is_at[:, None], other=0)
        scores = tl.dot(x, columns, input_precision=PRECISION) * (scale * LOG2_E)
        scores = tl.where(is_key[None, :], scores, float("-inf"))
        now = tl.maximum(largest, tl.max(scores, 1))
        # Where all are minus infinity so far, nothing is subtracted: the weights are 0.
        base = tl.where(now == float("-inf"), 0.0, now)
        weights = tl.exp2(scores - base[:, None])
        factor = tl.exp2(largest - base)
        total = total * factor + tl.sum(weights, 1)
        values = tl.load(v + there[:, None] * v_steps[2], mask=is_key[:, None] & is_of_value, other=0)
        sums = tl.dot(weights.to(values.dtype), values, sums * factor[:, None], input_precision=PRECISION)
        largest = now
    y += batch * y_steps[0] + head * y_steps[1]
    place = y + lines * y_steps[2] + of_value[None, :] * y_steps[3]
    tl.store(place, (sums / total[:, None]).to(y.dtype.element_ty), mask=is_row & is_of_value)
