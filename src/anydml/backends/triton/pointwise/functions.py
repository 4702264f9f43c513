"""What functions of singles and of halves have in common."""

from __future__ import annotations

import triton
import triton.language as tl

TO_WHOLE = tl.constexpr(12582912.0)
"""1.5 * 2^23, to which an addition rounds to whole numbers, which are then the last bits."""


@triton.jit
def bits_of(x):
    return x.to(tl.int32, bitcast=True)


@triton.jit
def single_of(bits):
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def power_of_2(moved):
    """2^n of the n that was rounded by adding TO_WHOLE."""
    return single_of((bits_of(moved) + 127) << 23)


@triton.jit
def with_sign_of(y, x):
    """Of a y that is not negative, or has the sign already.

    Without a mask for y, by which LLVM knows a sign that is copied, and copies it between halves: eight instructions.
    """
    return single_of(bits_of(y) | (bits_of(x) & -0x80000000))


@triton.jit
def least(a, MOST: tl.constexpr):
    """The lesser one; NaN stays NaN."""
    return tl.minimum(a, MOST, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def polynomial(x, C: tl.constexpr):
    """c0 + c1 * x + c2 * x^2 + ..., by Horner's scheme."""
    y = tl.fma(x, C[len(C) - 1], C[len(C) - 2])
    for i in tl.static_range(3, len(C) + 1):
        y = tl.fma(y, x, C[len(C) - i])
    return y


@triton.jit
def sum_of(larger, smaller):
    """Dekker's fast two-sum: the sum, and its rounding error."""
    total = larger + smaller
    return total, smaller - (total - larger)


@triton.jit
def rough_inverse(x):
    """Next to 1 / x of an x above 0."""
    root = tl.rsqrt(x)
    return root * root


@triton.jit
def root_of(v, v_low):
    """The square root of a number above 0, and its rounding error."""
    inverse = tl.rsqrt(v)
    root = v * inverse
    return root, (tl.fma(0.0 - root, root, v) + v_low) * (inverse * 0.5)


@triton.jit
def log_parts(x):
    """x = m * 2^k, m from sqrt(1/2) to sqrt(2): the bits of 2^k less those of 1, k and m - 1."""
    above = bits_of(x) - 0x3F3504F3
    places = above & -0x800000
    return places, (above >> 23).to(tl.float32), single_of(bits_of(x) - places) - 1.0


@triton.jit
def arc_tangent_quotient(z):
    """(atan a - a) / a^3, z = a^2, for a from 0 to 1."""
    return polynomial(
        z,
        (
            -0.33333298563957214, 0.1999852955341339, -0.14264015853405, 0.10950880497694016, -0.08399306237697601,
            0.05788137763738632, -0.031096938997507095, 0.010868623852729797, -0.0017827945994213223,
        ),
    )  # fmt: skip


@triton.jit
def half_quotient(a, b):
    """The quotient of halves, seen as singles: what is right when it is rounded to a half.

    No quotient of theirs is nearer than 2^-23 of it to what lies midway between two halves, and none is midway. By a
    step of Newton's an approximation is within 2^-24; there is none where a or b is infinite, or b is 0.
    """
    inverse = 1.0 / b
    quotient = a * inverse
    rest = tl.fma(0.0 - quotient, b, a)
    return tl.where(rest == rest, tl.fma(rest, inverse, quotient), quotient)


@triton.jit
def double_quotient(a, b):
    """a / b of doubles, b a single, rounded right: by the inverse, which is computed once where b is one for all, and a
    step of Markstein's. There is none where a or b is infinite, or b is 0."""
    inverse = tl.full(b.shape, 1.0, tl.float64) / b
    quotient = a * inverse
    rest = tl.fma(quotient * -1, b, a)
    return tl.where(rest == rest, tl.fma(rest, inverse, quotient), quotient)
