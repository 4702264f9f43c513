"""Activations with any constants, in double precision, within 2^-44 of what is exact: of halves what is right when it
is rounded, but for a constant in ten thousand, and of singles within a unit.

PyTorch's functions of doubles are within 2^-52, which takes twice as long.
"""

from __future__ import annotations

import triton
import triton.language as tl

TO_WHOLE = tl.constexpr(6755399441055744.0)
"""1.5 * 2^52, to which an addition rounds to whole numbers, which are then the last bits."""
DROPPED = tl.constexpr((1 << 29) - 1)
"""The bits that a double has and a single hasn't."""


@triton.jit
def double(like, number: tl.constexpr):
    return tl.full(like.shape, number, tl.float64)


@triton.jit
def polynomial_of_doubles(x, C: tl.constexpr):
    """c0 + c1 * x + c2 * x^2 + ..., by Horner's scheme."""
    y = double(x, C[len(C) - 1])
    for i in tl.static_range(2, len(C) + 1):
        y = tl.fma(y, x, double(x, C[len(C) - i]))
    return y


@triton.jit
def power_of_2(shifted):
    """2^n of the n that was rounded by adding TO_WHOLE, above -1023."""
    bits = (shifted.to(tl.int64, bitcast=True) << 52) + 0x3FF0000000000000
    return bits.to(tl.float64, bitcast=True)


@triton.jit
def expm1_of_rest(r):
    """e^r - 1 for r from -ln(2) / 2 to ln(2) / 2, by the minimax polynomial of (e^r - 1) / r, within 2^-49."""
    return r * polynomial_of_doubles(
        r,
        (
            1.0000000000000013, 0.5000000000000001, 0.1666666666661564, 0.04166666666662416, 0.008333333367315376,
            0.0013888888917199863, 0.00019841190641680637, 2.4801521317484083e-05, 2.763264346501463e-06,
            2.7620078203806394e-07,
        ),
    )  # fmt: skip


@triton.jit
def _exponential(t):
    """2^n, and e^t / 2^n - 1, of a t from -700 to 700."""
    shifted = tl.fma(t, double(t, 1.4426950408889634), double(t, TO_WHOLE))
    r = tl.fma(shifted - double(t, TO_WHOLE), double(t, -0.6931471805599453), t)
    return power_of_2(shifted), expm1_of_rest(r)


@triton.jit
def inverse_of(x):
    """1 / x of numbers from 1 to 2^127, by a step of Newton's."""
    y = (1.0 / x.to(tl.float32)).to(tl.float64)
    return tl.fma(tl.fma(y * -1, x, double(x, 1.0)), y, y)


@triton.jit
def rounded_once(y, IS_HALF: tl.constexpr):
    """As a single; for what is rounded to halves to odd, so that it is rounded once: the last bit is 1 wherever one
    below it was."""
    if IS_HALF:
        bits = y.to(tl.int64, bitcast=True)
        low = bits & DROPPED
        y = ((bits - low) | ((low + DROPPED) & (DROPPED + 1))).to(tl.float64, bitcast=True)
    return y.to(tl.float32)


@triton.jit
def _elu(x, scale: tl.constexpr, below: tl.constexpr, above: tl.constexpr, IS_HALF: tl.constexpr):
    """below * (e^(scale * x) - 1) of an x below 0, and above * x of others."""
    wide = x.to(tl.float64)
    t = wide * double(wide, scale)
    power, part = _exponential(tl.where(t < -700.0, -700.0, tl.where(t > 0.0, 0.0, t)))
    negative = tl.fma(power, part, power - 1.0) * double(wide, below)
    return rounded_once(tl.where(x >= 0, wide * double(wide, above), tl.where(x < 0, negative, wide)), IS_HALF)


@triton.jit
def _tanh(x, alpha: tl.constexpr, beta: tl.constexpr, IS_HALF: tl.constexpr):
    """alpha * tanh(beta * x), beta above 0: with t = e^2a - 1 of a magnitude a t / (t + 2)."""
    a = tl.abs(x).to(tl.float64) * double(x, 2.0 * beta)
    power, part = _exponential(tl.where(a > 44.0, 44.0, a))
    t = tl.fma(power, part, power - 1.0)
    y = t * inverse_of(t + 2.0) * double(x, alpha)
    return rounded_once(tl.where(x.to(tl.int32, bitcast=True) < 0, y * -1, y), IS_HALF)


@triton.jit
def _softplus(x, alpha: tl.constexpr, beta: tl.constexpr, IS_HALF: tl.constexpr):
    """alpha * ln(1 + e^t) = alpha * (max(t, 0) + ln(1 + v)), t = beta * x and v = e^-|t|, of which the logarithm is
    2 * atanh(s), s = v / (2 + v)."""
    t = x.to(tl.float64) * double(x, beta)
    a = tl.abs(t) * -1
    power, part = _exponential(tl.where(a < -700.0, -700.0, a))
    v = tl.fma(power, part, power)
    s = v * inverse_of(v + 2.0)
    # The minimax polynomial of atanh(s) / s of s^2, within 2^-54.
    quotient = polynomial_of_doubles(
        s * s,
        (
            1.0, 0.33333333333341286, 0.199999999976438, 0.1428571455582858, 0.11111095430673142, 0.09091429900236955,
            0.07681838124445817, 0.06795652742789947, 0.04940394524382393, 0.08890381913056651,
        ),
    )  # fmt: skip
    y = tl.where(t > 0, t, tl.where(t <= 0, 0.0, t)) + (s * 2.0) * quotient
    return rounded_once(y * double(x, alpha), IS_HALF)


@triton.jit
def half_constant_elu(x, scale: tl.constexpr, below: tl.constexpr, above: tl.constexpr):
    return _elu(x, scale, below, above, True)


@triton.jit
def single_constant_elu(x, scale: tl.constexpr, below: tl.constexpr, above: tl.constexpr):
    return _elu(x, scale, below, above, False)


@triton.jit
def half_constant_tanh(x, alpha: tl.constexpr, beta: tl.constexpr):
    return _tanh(x, alpha, beta, True)


@triton.jit
def single_constant_tanh(x, alpha: tl.constexpr, beta: tl.constexpr):
    return _tanh(x, alpha, beta, False)


@triton.jit
def half_constant_softplus(x, alpha: tl.constexpr, beta: tl.constexpr):
    return _softplus(x, alpha, beta, True)


@triton.jit
def single_constant_softplus(x, alpha: tl.constexpr, beta: tl.constexpr):
    return _softplus(x, alpha, beta, False)
