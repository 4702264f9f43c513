"""Remainders of singles and of halves, by quotients in double precision.

With q the whole number next to m / n, of magnitudes m and n, m - q * n is exact, as it has no bit below both of theirs
and is not above n; where it is negative, q was one too large.
"""

from __future__ import annotations

import triton
import triton.language as tl

FAR = tl.constexpr(2.0**38)
"""How many times n m is where a quotient has too many bits."""
STEPS = tl.constexpr(8)
"""By which the largest single comes below the least one, each by as many bits."""


@triton.jit
def _number(like, value: tl.constexpr):
    return tl.full(like.shape, value, tl.float64)


@triton.jit
def _rest_of(m, n, quotient):
    """What is left of m; the quotient is rounded by an addition of 1.5 * 2^52."""
    q = (quotient + _number(m, 6755399441055744.0)) - _number(m, 6755399441055744.0)
    rest = tl.fma(q * -1, n, m)
    return tl.where(rest < 0, rest + n, rest)


@triton.jit
def _magnitude(a, b, IS_HALF: tl.constexpr):
    """Of what is left of a, and that of b, in double precision."""
    m, n = tl.abs(a).to(tl.float64), tl.abs(b).to(tl.float64)
    if IS_HALF:
        # Quotients of halves have up to 40 bits; by a step of Newton's an inverse has more than 42.
        inverse = (1.0 / tl.abs(b)).to(tl.float64)
        inverse = tl.fma(tl.fma(inverse * -1, n, _number(n, 1.0)), inverse, inverse)
        rest = _rest_of(m, n, m * inverse)
    else:
        rest = m
        if tl.max((m >= n * FAR).to(tl.int32), 0) > 0:
            for step in tl.static_range(STEPS - 1, 0, -1):
                multiple = n * _number(n, 2.0 ** (38 * step))
                rest = _rest_of(rest, multiple, rest / multiple)
        rest = _rest_of(rest, n, rest / n)
    return tl.where((n == float("inf")) & (m < float("inf")), m, rest), n


@triton.jit
def _with_sign_of(magnitude, a):
    return tl.where(a.to(tl.int32, bitcast=True) < 0, magnitude * -1, magnitude).to(tl.float32)


@triton.jit
def _truncated(a, b, IS_HALF: tl.constexpr):
    """Of the sign of a."""
    rest, _ = _magnitude(a, b, IS_HALF)
    return _with_sign_of(rest, a)


@triton.jit
def _floored(a, b, IS_HALF: tl.constexpr):
    """Of the sign of b. A sum of two halves that was rounded to a single is rounded right to a half."""
    rest, n = _magnitude(a, b, IS_HALF)
    differ = (a.to(tl.int32, bitcast=True) ^ b.to(tl.int32, bitcast=True)) < 0
    return tl.where((rest != 0) & differ, _with_sign_of(n - rest, b), _with_sign_of(rest, a))


@triton.jit
def half_remainder(a, b):
    return _truncated(a, b, True)


@triton.jit
def half_floored_remainder(a, b):
    return _floored(a, b, True)


@triton.jit
def single_remainder(a, b):
    return _truncated(a, b, False)


@triton.jit
def single_floored_remainder(a, b):
    return _floored(a, b, False)
