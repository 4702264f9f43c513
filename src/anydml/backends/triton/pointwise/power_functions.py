"""Powers of singles and of halves, in double precision: x^e = 2^(e * log2 x), within 2^-40.

A power that a single holds, or that lies midway between two halves, is exact: results are rounded to 36 bits first, of
which such a number has no more than 25.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .constant_functions import (
    TO_WHOLE,
    double,
    expm1_of_rest,
    inverse_of,
    polynomial_of_doubles,
    power_of_2,
    rounded_once,
)

MOST = tl.constexpr(300.0)
"""An exponent of 2 beyond which a single has no power of it."""


@triton.jit
def _log2(x):
    """Of numbers above 0: with x = m * 2^k, m from sqrt(1/2) to sqrt(2), and s = (m - 1) / (m + 1), it is
    k + 2 * atanh(s) / ln 2."""
    bits = x.to(tl.int64, bitcast=True)
    k = (bits - 0x3FE6A09E667F3BCD) >> 52
    f = (bits - (k << 52)).to(tl.float64, bitcast=True) - 1.0
    s = f * inverse_of(f + 2.0)
    # The minimax polynomial of 2 * atanh(s) / (s * ln 2) of s^2, within 2^-52.
    quotient = polynomial_of_doubles(
        s * s,
        (
            2.885390081777927, 0.9617966939243335, 0.5770780172467822, 0.4121984019742357, 0.3206163935263423,
            0.26144407006393944, 0.2429183013526297,
        ),
    )  # fmt: skip
    return tl.fma(s, quotient, k.to(tl.float64))


@triton.jit
def _exp2(t):
    t = tl.where(t > MOST, MOST, tl.where(t < -MOST, -MOST, t))
    shifted = t + double(t, TO_WHOLE)
    r = (t - (shifted - double(t, TO_WHOLE))) * double(t, 0.6931471805599453)
    power = power_of_2(shifted)
    return tl.fma(power, expm1_of_rest(r), power)


@triton.jit
def _power(x, e, IS_HALF: tl.constexpr):
    """C's power: of 1, and to the power of 0, it is 1, of a NaN too."""
    base, e = x.to(tl.float64), e.to(tl.float64)
    size = tl.abs(base)
    y = _exp2(e * _log2(size))
    bits = (y.to(tl.int64, bitcast=True) + (1 << 15)) & -(1 << 16)
    y = bits.to(tl.float64, bitcast=True)
    infinity = double(base, float("inf"))
    y = tl.where(size == 0, tl.where(e < 0, infinity, 0.0), y)
    y = tl.where(size == infinity, tl.where(e < 0, 0.0, infinity), y)
    y = tl.where(size == 1.0, 1.0, y)
    is_whole = tl.floor(e) == e
    is_odd = is_whole & (tl.floor(e * 0.5) != e * 0.5)
    is_negative = x.to(tl.int32, bitcast=True) < 0
    y = tl.where(is_negative & is_odd, y * -1, y)
    nan = double(base, float("nan"))
    y = tl.where(is_negative & (is_whole == 0) & (size > 0) & (size < infinity), nan, y)
    y = tl.where((base != base) | ((e != e) & (base != 1.0)), nan, y)
    return rounded_once(tl.where(e == 0, 1.0, y), IS_HALF)


@triton.jit
def half_power(x, e):
    return _power(x, e, True)


@triton.jit
def single_power(x, e):
    return _power(x, e, False)


@triton.jit
def half_constant_power(x, exponent: tl.constexpr):
    return _power(x, double(x, exponent), True)


@triton.jit
def single_constant_power(x, exponent: tl.constexpr):
    return _power(x, double(x, exponent), False)
