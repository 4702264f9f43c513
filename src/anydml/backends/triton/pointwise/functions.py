"""Functions in single precision, where doubles would take longer than memory.

The coefficients of all polynomials are those of the least largest relative error of the result (Lawson's algorithm).
"""

from __future__ import annotations

import triton
import triton.language as tl

TO_WHOLE = tl.constexpr(12582912.0)
"""1.5 * 2^23, to which an addition rounds to whole numbers, which are then the last bits."""


@triton.jit
def _power_of_2(moved):
    return ((moved.to(tl.int32, bitcast=True) + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def erf(x):
    """The error function of singles, to within 0.87 units in the last place."""
    # erf x = x + x p(x^2) for |x| < 0.9, where the product is small beside x.
    a = tl.abs(x)
    a = tl.where(a < 3.93, a, 3.93)
    z = a * a
    p = tl.fma(z, 8.513102511642501e-05, -0.0008175639086402953)
    p = tl.fma(p, z, 0.005203858949244022)
    p = tl.fma(p, z, -0.02686050906777382)
    p = tl.fma(p, z, 0.11283715069293976)
    p = tl.fma(p, z, -0.37612634897232056)
    p = tl.fma(p, z, 0.12837916612625122)
    # Beyond, 1 - erfc |x| = 1 - 2^t, t = |x| r(|x|), with what r and t lack by their last roundings.
    s = tl.fma(a, 3.540452325978549e-06, -5.607680941466242e-05)
    s = tl.fma(s, a, 0.0003549673710949719)
    s = tl.fma(s, a, -0.0008822589297778904)
    s = tl.fma(s, a, -0.0023060396779328585)
    s = tl.fma(s, a, 0.030290132388472557)
    s = tl.fma(s, a, -0.14999550580978394)
    s = tl.fma(s, a, -0.9178181886672974)
    r = tl.fma(s, a, -1.6280072927474976)
    t = a * r
    lacking = tl.fma(a, tl.fma(s, a, -1.6280072927474976 - r), tl.fma(a, r, 0.0 - t))
    moved = t + TO_WHOLE
    f = (t - (moved - TO_WHOLE)) + lacking
    e = tl.fma(f, 0.0001534580806037411, 0.0013399930903688073)
    e = tl.fma(e, f, 0.009618489071726799)
    e = tl.fma(e, f, 0.05550328642129898)
    e = tl.fma(e, f, 0.24022646248340607)
    e = tl.fma(e, f, 0.6931471824645996)
    e = tl.fma(e, f, 1.0)
    far = 1.0 - e * _power_of_2(moved)
    y = tl.where(a < 0.9, tl.fma(x, p, x), tl.where(x < 0, 0.0 - far, far))
    return tl.where(x != x, x, y)


@triton.jit
def half_erf(x):
    """Likewise of halves, seen as singles: what is right when it is rounded to a half, which was tried for each."""
    a = tl.abs(x)
    a = tl.where(a < 3.93, a, 3.93)
    z = a * a
    p = tl.fma(z, -0.0006090357783250511, 0.0050119622610509396)
    p = tl.fma(p, z, -0.02677890844643116)
    p = tl.fma(p, z, 0.11282140761613846)
    p = tl.fma(p, z, -0.3761252462863922)
    p = tl.fma(p, z, 0.12837913632392883)
    r = tl.fma(a, -0.0023550998885184526, 0.026475219056010246)
    r = tl.fma(r, a, -0.14274728298187256)
    r = tl.fma(r, a, -0.9233115315437317)
    t = a * tl.fma(r, a, -1.626478672027588)
    moved = t + TO_WHOLE
    f = t - (moved - TO_WHOLE)
    e = tl.fma(f, 0.009570096619427204, 0.05591785907745361)
    e = tl.fma(e, f, 0.240247443318367)
    e = tl.fma(e, f, 0.6931217908859253)
    e = tl.fma(e, f, 1.0)
    far = 1.0 - e * _power_of_2(moved)
    y = tl.where(a < 0.9, tl.fma(x, p, x), tl.where(x < 0, 0.0 - far, far))
    return tl.where(x != x, x, y)


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
