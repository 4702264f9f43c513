"""Triton's kernels of elements of which the place tells what is computed."""

from __future__ import annotations

import triton
import triton.language as tl

from ..loops import apart
from ..reduction.kernels import decomposed


@triton.jit
def count_up(
    y, count, start, delta, sizes, y_steps,
    IS_FLOAT: tl.constexpr, LOOPS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """start + i * delta, in double precision or modulo 2^64, of up to 32 bits modulo 2^32; the first one is `start`.
    Both are given by their bits."""
    at = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    first, step = tl.full([BLOCK], start, tl.int64), tl.full([BLOCK], delta, tl.int64)
    if not IS_FLOAT and y.dtype.element_ty.primitive_bitwidth <= 32:
        value = at.to(tl.int32) * step.to(tl.int32) + first.to(tl.int32)
    elif IS_FLOAT:
        first, step = first.to(tl.float64, bitcast=True), step.to(tl.float64, bitcast=True)
        value = tl.where(at == 0, first, at.to(tl.float64) * step + first)
    else:
        value = at.to(tl.int64) * step + first
    tl.store(y + decomposed(at, sizes, y_steps, LOOPS), value.to(y.dtype.element_ty), mask=at < count)


@triton.jit
def scale_channels(
    x, y, rows, columns, blocks, channels, row_sizes, x_row_steps, y_row_steps, sizes, x_steps, y_steps,
    SCALE: tl.constexpr, BIAS: tl.constexpr, LOOPS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """SCALE * x + the number of BIAS that is of its channel; rows are {batch, channels}."""
    program = tl.program_id(0)
    row = (program // blocks).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (program % blocks).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (row < rows) & (column < columns)
    at = decomposed(row, row_sizes, x_row_steps, 2) + decomposed(column, sizes, x_steps, LOOPS)
    value = tl.load(x + at, mask=mask, other=0).to(tl.float64) * SCALE
    bias = tl.full([ROWS, 1], BIAS[0], tl.float64)
    for i in tl.static_range(1, len(BIAS)):
        bias = tl.where(row % channels == i, tl.full([ROWS, 1], BIAS[i], tl.float64), bias)
    place = decomposed(row, row_sizes, y_row_steps, 2) + decomposed(column, sizes, y_steps, LOOPS)
    tl.store(y + place, (value + bias).to(y.dtype.element_ty), mask=mask)


@triton.jit
def _random_words(c0, c1, c2, c3, k0, k1, MULTIPLIERS: tl.constexpr, WEYL: tl.constexpr, ROUNDS: tl.constexpr):
    """Philox 4x32, as ``operators/specs/random.py`` has it: a round takes the halves of two products."""
    m0, m1 = tl.full([1], MULTIPLIERS[0], tl.uint32), tl.full([1], MULTIPLIERS[1], tl.uint32)
    w0, w1 = tl.full([1], WEYL[0], tl.uint32), tl.full([1], WEYL[1], tl.uint32)
    for _ in tl.static_range(ROUNDS):
        high0, high1 = tl.umulhi(c0, m0 + c0 * 0), tl.umulhi(c2, m1 + c2 * 0)
        low0, low1 = c0 * m0, c2 * m1
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + w0, k1 + w1
    return c0, c1, c2, c3


@triton.jit
def _state_word(state, i: tl.constexpr, step):
    return tl.load(state + (tl.arange(0, 1) + i) * step).to(tl.uint32, bitcast=True)


@triton.jit
def _counted_on(state, step, blocks):
    """The four words of the state's counter plus a number, which is not negative."""
    low = _state_word(state, 0, step).to(tl.uint64) | (_state_word(state, 1, step).to(tl.uint64) << 32)
    high = _state_word(state, 2, step).to(tl.uint64) | (_state_word(state, 3, step).to(tl.uint64) << 32)
    total = low + blocks.to(tl.uint64)
    high = high + (total < low).to(tl.uint64)
    return total.to(tl.uint32), (total >> 32).to(tl.uint32), high.to(tl.uint32), (high >> 32).to(tl.uint32)


@triton.jit
def random_blocks(
    state, y, new_state, count, state_step, new_step, sizes, multipliers, shifts, y_steps,
    HAS_STATE: tl.constexpr, MULTIPLIERS: tl.constexpr, WEYL: tl.constexpr, ROUNDS: tl.constexpr,
    LOOPS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Four numbers of each count from the state's on, the first program's also where the counter goes on."""
    program = tl.program_id(0)
    block = program.to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    k0, k1 = _state_word(state, 4, state_step), _state_word(state, 5, state_step)
    c0, c1, c2, c3 = _counted_on(state, state_step, block)
    c0, c1, c2, c3 = _random_words(c0, c1, c2, c3, k0, k1, MULTIPLIERS, WEYL, ROUNDS)
    words = tl.join(tl.join(c0, c2), tl.join(c1, c3)).reshape([4 * BLOCK])
    at = program.to(INDEX) * (4 * BLOCK) + tl.arange(0, 4 * BLOCK)
    tl.store(y + apart(at, sizes, multipliers, shifts, y_steps, LOOPS), words, mask=at < count)
    if HAS_STATE:
        none = tl.arange(0, 1)
        is_first = none + program == 0
        end = (none.to(tl.int64) + count + 3) // 4
        w0, w1, w2, w3 = _counted_on(state, state_step, end)
        tl.store(new_state + none, w0, mask=is_first)
        tl.store(new_state + (none + 1) * new_step, w1, mask=is_first)
        tl.store(new_state + (none + 2) * new_step, w2, mask=is_first)
        tl.store(new_state + (none + 3) * new_step, w3, mask=is_first)
        tl.store(new_state + (none + 4) * new_step, k0, mask=is_first)
        tl.store(new_state + (none + 5) * new_step, k1, mask=is_first)
