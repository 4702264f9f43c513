"""Circular functions of singles and their inverses, in single precision, within 1 unit in the last place.

Formulas and coefficients are the CPU's (`native/pointwise/single_*.h`), without tables.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .functions import (
    TO_WHOLE,
    arc_tangent_quotient,
    bits_of,
    least,
    polynomial,
    root_of,
    rough_inverse,
    single_of,
    sum_of,
    with_sign_of,
)

HALF_PI = tl.constexpr(1.5707963705062866)
HALF_PI_LOW = tl.constexpr(-4.371138828673793e-08)

FAR = tl.constexpr(16384.0)
"""Angles beyond go by integers: pi in three singles is not enough."""

INVERSE_HALF_PI = tl.constexpr((0, 0x28BE60DB, 0x9391054A, 0x7F09D5F4, 0x7D4D3770, 0x36D8A566, 0x4F10E410, 0x7F9458EA))
"""The bits of 2 / pi, of which the first is that of 2^33."""


@triton.jit
def _cube_of(r, square):
    """r^3, and what rounding leaves of it, which counts where a polynomial has more than a tenth of the result."""
    cube = r * square
    return cube, tl.fma(r, tl.fma(r, r, 0.0 - square), tl.fma(r, square, 0.0 - cube))


@triton.jit
def _minus(high, low, u, rest):
    """high + low - (u + rest), |high| > |u|, or 0"""
    difference = high - u
    return difference + (((high - difference) - u) + (low - rest))


@triton.jit
def _arc_sine(a):
    """asin s = s + rest: where a is large, s = sqrt((1 - a) / 2), and asin a = pi/2 - 2 * asin s."""
    is_large = a > 0.5
    # What is added changes 0 alone.
    z = tl.where(is_large, tl.fma(a, -0.5, 0.5) + 8.673617379884035e-19, a * a)
    root, root_low = root_of(z, 0.0)
    s = tl.where(is_large, root, a)
    p = polynomial(
        z, (0.16666752099990845, 0.074953094124794, 0.04546914994716644, 0.024184778332710266, 0.042158305644989014)
    )
    return is_large, s, tl.fma(s * z, p, tl.where(is_large, root_low, 0.0))


@triton.jit
def single_asin(x):
    is_large, s, rest = _arc_sine(tl.abs(x))
    large = _minus(HALF_PI, HALF_PI_LOW, s + s, rest + rest)
    return with_sign_of(tl.where(is_large, large, s + rest), x)


@triton.jit
def single_acos(x):
    """pi/2 - asin x; where x is large, 2 * asin s, or pi less that."""
    is_large, s, rest = _arc_sine(tl.abs(x))
    is_below = x < 0
    factor = tl.where(is_large, tl.where(is_below, 2.0, -2.0), tl.where(is_below, -1.0, 1.0))
    high = tl.where(is_large, tl.where(is_below, 2 * HALF_PI, 0.0), HALF_PI)
    low = tl.where(is_large, tl.where(is_below, 2 * HALF_PI_LOW, 0.0), HALF_PI_LOW)
    return tl.where(x == 1, 0.0, _minus(high, low, s * factor, rest * factor))


@triton.jit
def single_atan(x):
    """a + a^3 * p(a^2) for a to 1, and beyond pi/2 - atan(1 / a)"""
    # An infinity counts as a number so large that 1 / a is next to nothing.
    a = least(tl.abs(x), 1.152921504606847e18)
    is_large = a > 1
    rough = rough_inverse(a)
    s = tl.where(is_large, tl.fma(tl.fma(0.0 - a, rough, 1.0), rough, rough), a)
    z = s * s
    p = arc_tangent_quotient(z)
    # The rounding error of 1 / a, by the slope of the arc tangent, 1 / (1 + z), roughly.
    error = tl.fma(0.0 - a, s, 1.0) * (s * tl.fma(z, -0.5, 1.0))
    cube, cube_low = _cube_of(s, z)
    rest = tl.fma(cube, p, tl.fma(cube_low, p, tl.where(is_large, error, 0.0)))
    return with_sign_of(tl.where(is_large, _minus(HALF_PI, HALF_PI_LOW, s, rest), s + rest), x)


@triton.jit
def _reduced_far(x):
    """The reduction of Payne and Hanek: the mantissa times the bits of 2 / pi that count, as an integer."""
    bits = bits_of(x)
    mantissa = ((bits << 8) | -0x80000000).to(tl.uint32, bitcast=True).to(tl.uint64)
    places = ((bits >> 23) & 0xFF) - 126
    first = places >> 5
    high = tl.full(x.shape, 0, tl.uint64)
    middle, low, least_word = high, high, high
    for i in tl.static_range(0, 5):
        is_here = first == i
        high = tl.where(is_here, INVERSE_HALF_PI[i], high)
        middle = tl.where(is_here, INVERSE_HALF_PI[i + 1], middle)
        low = tl.where(is_here, INVERSE_HALF_PI[i + 2], low)
        least_word = tl.where(is_here, INVERSE_HALF_PI[i + 3], least_word)
    shift = (places & 31).to(tl.uint64)
    high = (((high << 32) | middle) << shift) >> 32
    middle = (((middle << 32) | low) << shift) >> 32 & 0xFFFFFFFF
    low = (((low << 32) | least_word) << shift) >> 32 & 0xFFFFFFFF
    product = mantissa * middle + ((mantissa * low) >> 32) + ((mantissa * high) << 32)
    # The whole part is rounded to the nearest; what is left is times 2^-62.
    whole = (product + (1 << 61)) >> 62
    left = (product - (whole << 62)).to(tl.int64, bitcast=True).to(tl.float64) * 3.4061215800865545e-19
    r = left.to(tl.float32)
    low_part = (left - r.to(tl.float64)).to(tl.float32)
    n = whole.to(tl.int32)
    is_below = x < 0
    r = tl.where(tl.abs(x) < float("inf"), tl.where(is_below, 0.0 - r, r), float("nan"))
    return tl.where(is_below, 0 - n, n), r, tl.where(is_below, 0.0 - low_part, low_part)


@triton.jit
def _reduced(x):
    """x = n * pi/2 + r + low, |r| <= pi/4, by the reduction of Cody and Waite: n's last bits, r and low. Where x is 0,
    r has its sign, and low is -0, which changes no zero."""
    moved = tl.fma(x, 0.6366197466850281, TO_WHOLE)
    n = moved - TO_WHOLE
    most = tl.fma(n, -1.570796251296997, x)
    r = tl.fma(n, -7.549533620476723e-08, most)
    left = 0.0 - tl.fma(n, 7.549533620476723e-08, r - most)
    low = tl.fma(n, -2.5633440682570896e-12, left)
    n = bits_of(moved)
    if tl.max(tl.abs(x)) > FAR:
        is_far = tl.abs(x) > FAR
        n_far, r_far, low_far = _reduced_far(x)
        n = tl.where(is_far, n_far, n)
        r = tl.where(is_far, r_far, r)
        low = tl.where(is_far, low_far, low)
    return n, r, low


@triton.jit
def _sine_of_turned(x, TURNS: tl.constexpr):
    """sin(x + TURNS * pi/2): sin(r + low) = r - (r^3 * p(r^2) - low), and cos(r + low) = 1 - r^2 / 2 + r^4 * q(r^2)
    - r * low"""
    n, r, low = _reduced(x)
    z = r * r
    p = polynomial(z, (0.16666655242443085, -0.008332189172506332, 0.00019518291810527444))
    sine = r - tl.fma(r * z, p, 0.0 - low)
    q = polynomial(z, (0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-05))
    high = tl.fma(z, -0.5, 1.0)
    rest = tl.fma(0.0 - r, low, tl.fma(z, -0.5, 1.0 - high))
    cosine = high + tl.fma(z * z, q, rest)
    n = n + TURNS
    return single_of(bits_of(tl.where((n & 1) != 0, cosine, sine)) ^ ((n & 2) << 30))


@triton.jit
def single_sin(x):
    return tl.where(x == 0, x, _sine_of_turned(x, 0))


@triton.jit
def single_cos(x):
    return _sine_of_turned(x, 1)


@triton.jit
def single_tan(x):
    """tan(r + low) = r + r^3 * p(r^2) + low * (1 + 1.5 * r^2), roughly; or -1 by that, behind odd multiples of pi/2."""
    n, r, low = _reduced(x)
    z = r * r
    p = polynomial(
        z,
        (
            0.33333349227905273, 0.13332675397396088, 0.05405890569090843, 0.02128630131483078,
            0.010827045887708664, 9.89524633041583e-05, 0.004372249823063612,
        ),
    )  # fmt: skip
    cube, cube_low = _cube_of(r, z)
    rest = tl.fma(cube, p, tl.fma(cube_low, p, tl.fma(low * 1.5, z, low)))
    high, rest = sum_of(r, rest)
    magnitude = tl.abs(high)
    rough = with_sign_of(rough_inverse(magnitude), high)
    left = tl.fma(0.0 - rest, rough, tl.fma(0.0 - high, rough, 1.0))
    y = tl.where((n & 1) != 0, 0.0 - tl.fma(rough, left, rough), high)
    return tl.where(x == 0, x, y)
