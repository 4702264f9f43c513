"""Functions of singles in single precision, within 1 unit in the last place, and GELU in double precision.

Formulas and most coefficients are the CPU's (`native/pointwise/single_*.h`), without tables; those of ERF, GELU and
ATANH are of the least largest relative error of the result (Lawson's algorithm). Where an inverse or a root is followed
by its error, an approximation serves.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .functions import (
    TO_WHOLE,
    bits_of,
    least,
    log_parts,
    polynomial,
    power_of_2,
    root_of,
    rough_inverse,
    single_of,
    sum_of,
    with_sign_of,
)

LN2 = tl.constexpr(0.6931471824645996)
LN2_LOW = tl.constexpr(-1.9046542121259336e-09)

BEYOND_ROOT = tl.constexpr(1073741824.0)
"""From here on x and sqrt(x^2 + 1) are one."""


@triton.jit
def _exponential(x):
    """e^x = 2^n * (1 + part + low): n's last 9 bits, part and low."""
    moved = tl.fma(x - 0.059, 1.4426950216293335, TO_WHOLE)
    n = moved - TO_WHOLE
    most = tl.fma(n, 0.0 - LN2, x)
    r = tl.fma(n, 0.0 - LN2_LOW, most)
    r_low = tl.fma(n, 0.0 - LN2_LOW, most - r)
    r2 = r * r
    q = polynomial(
        r,
        (
            0.5,
            0.1666666865348816,
            0.04166654869914055,
            0.00833231583237648,
            0.0013921428471803665,
            0.00020790704002138227,
        ),
    )
    part = tl.fma(q, r2, r)
    return bits_of(moved), part, tl.fma(q, r2, r - part) + r_low


@triton.jit
def _scale(n, MORE: tl.constexpr):
    """2^(n + MORE)"""
    return single_of((n + (127 + MORE)) << 23)


@triton.jit
def _inverse_of_sum(larger, smaller, low):
    """1 / (larger + smaller + low), with a step of Newton's."""
    high, rest = sum_of(larger, smaller)
    rough = rough_inverse(high)
    left = tl.fma(0.0 - (rest + low), rough, tl.fma(0.0 - high, rough, 1.0))
    return tl.fma(rough, left, rough)


@triton.jit
def single_sigmoid(x):
    """With y = e^|x|: 1 / (1 + y), or what that is less than 1. Both are times 2^-64, which the largest y needs."""
    n, part, _ = _exponential(least(tl.abs(x), 105.0))
    scale = _scale(n, -64)
    y = tl.fma(scale, part, scale)
    w = _inverse_of_sum(y, 5.421010862427522e-20, tl.fma(scale, part, scale - y)) * 5.421010862427522e-20
    return tl.where(x < 0, w, 1.0 - w)


@triton.jit
def single_tanh(x):
    """Below 5/8 a + a^3 * g(a^2), and beyond 1 - 2 / (1 + e^2a)"""
    a = least(tl.abs(x), 9.5)
    n, part, low = _exponential(a + a)
    scale = _scale(n, 0)
    y = tl.fma(scale, part, scale)
    w = _inverse_of_sum(y, 1.0, tl.fma(scale, low, tl.fma(scale, part, scale - y)))
    z = a * a
    g = polynomial(
        z,
        (-0.3333328664302826, 0.13331542909145355, -0.053746771067380905, 0.02065912075340748, -0.0057249353267252445),
    )
    return with_sign_of(tl.where(a < 0.625, tl.fma(z * a, g, a), tl.fma(w, -2.0, 1.0)), x)


@triton.jit
def single_swish(x):
    """x / (1 + y), y = e^-x, with a step of Newton's; 0 at minus infinity. Both 1 and y are times 2^-64."""
    v = tl.maximum(least(x, 30.0), -120.0, propagate_nan=tl.PropagateNan.ALL)
    n, part, _ = _exponential(0.0 - v)
    scale = _scale(n, -64)
    y = tl.fma(scale, part, scale)
    y_low = tl.fma(scale, part, scale - y)
    high, low = sum_of(tl.maximum(y, 5.421010862427522e-20), tl.minimum(y, 5.421010862427522e-20))
    rough = rough_inverse(high)
    quotient = v * rough
    more = tl.fma(quotient, low + y_low, tl.fma(quotient, high, 0.0 - v))
    found = with_sign_of(tl.fma(0.0 - more, rough, quotient) * 5.421010862427522e-20, v)
    return tl.where(x > 30, x, tl.where(x == float("-inf"), 0.0, found))


@triton.jit
def single_elu(x, BELOW: tl.constexpr, BELOW_LOW: tl.constexpr, ABOVE: tl.constexpr):
    """(BELOW + BELOW_LOW) * (e^x - 1) below 0, e^x - 1 = 2^n * part + (2^n - 1); and x * ABOVE beyond."""
    n, part, low = _exponential(tl.clamp(x, -20.0, 0.0, propagate_nan=tl.PropagateNan.ALL))
    scale = _scale(n, 0)
    less = scale - 1.0
    high = tl.fma(scale, part, less)
    low = tl.fma(scale, low, tl.fma(scale, part, less - high))
    below = tl.fma(high, BELOW, tl.fma(high, BELOW_LOW, low * BELOW))
    return tl.where(x >= 0, x * ABOVE, below)


@triton.jit
def single_scaled_elu(x, BELOW: tl.constexpr, BELOW_LOW: tl.constexpr, ABOVE: tl.constexpr):
    return single_elu(x, BELOW, BELOW_LOW, ABOVE)


@triton.jit
def single_scaled_tanh(x, BETA: tl.constexpr):
    return single_tanh(x * BETA)


@triton.jit
def single_softsign(x):
    """a / (1 + a), with a step of Newton's; beyond 2^100 it is 1."""
    a = least(tl.abs(x), 1.2676506002282294e30)
    high, low = sum_of(tl.maximum(a, 1.0), tl.minimum(a, 1.0))
    rough = rough_inverse(high)
    quotient = a * rough
    left = tl.fma(0.0 - quotient, low, tl.fma(0.0 - quotient, high, a))
    return with_sign_of(tl.fma(left, rough, quotient), x)


@triton.jit
def _log1p_rest(f, f_low):
    """ln(1 + f) - f = -f^2 / 2 + f^3 * p(f), for f from sqrt(1/2) - 1 to 1/2; with what is left of f."""
    f2 = f * f
    p = polynomial(
        f,
        (
            0.33333319425582886, -0.2500027120113373, 0.20001785457134247, -0.1665402501821518, 0.14216071367263794,
            -0.12636874616146088, 0.12129645049571991, -0.10456649959087372, 0.048062194138765335,
        ),
    )  # fmt: skip
    return tl.fma(f2 * f, p, tl.fma(f2, -0.5, f_low))


@triton.jit
def single_softplus(x):
    """max(x, 0) + ln(1 + y), y = e^-|x|; from y = 1/2 on ln(1 + y) = ln 2 + ln(1 + (y - 1) / 2)."""
    n, part, part_low = _exponential(tl.maximum(0.0 - tl.abs(x), -105.0, propagate_nan=tl.PropagateNan.ALL))
    # Times 2^64, as what is left of rounding would be too small.
    scale = _scale(n, 64)
    scaled = tl.fma(scale, part, scale)
    y = scaled * 5.421010862427522e-20
    y_low = tl.fma(scale, part_low, tl.fma(scale, part, scale - scaled)) * 5.421010862427522e-20
    is_large = y >= 0.5
    f = tl.where(is_large, tl.fma(y, 0.5, -0.5), y)
    # The rounding error of y is scaled by the logarithm's slope, roughly.
    rest = _log1p_rest(f, tl.fma(y_low * y, -0.5, y_low))
    whole, whole_low = sum_of(tl.where(is_large, LN2, 0.0), tl.maximum(x, 0.0))
    total, low = sum_of(whole, f)
    found = total + (tl.where(is_large, whole_low + LN2_LOW, whole_low) + (low + rest))
    return tl.where(x > 32, x, found)


@triton.jit
def _log_of_parts(k, f, f_low):
    """k * ln 2 + ln(1 + f + f_low)"""
    total, rest = sum_of(k * 0.693145751953125, f)
    return total + _log1p_rest(f, tl.fma(k, 1.428606765330187e-06, rest + f_low))


@triton.jit
def _log_of_sum(high, low, more):
    """ln(high + low) + more * ln 2 of numbers from 1 to 2^127."""
    places, k, f = log_parts(high)
    f_low = low * single_of(0x3F800000 - places)
    # By the logarithm's slope, 1 / (1 + f) = 1 - f + 0.8 * f^2, roughly.
    slope = f * tl.fma(f, 0.8, -1.0)
    return _log_of_parts(k + more, f, tl.fma(slope, f_low, f_low))


@triton.jit
def single_log(x):
    is_small = x < 1.1754943508222875e-38
    _, k, f = log_parts(tl.where(is_small, x * 8388608.0, x))
    y = _log_of_parts(tl.where(is_small, k - 23.0, k), f, 0.0)
    y = tl.where(x > 0, y, tl.where(x == 0, float("-inf"), float("nan")))
    return tl.where(x == float("inf"), x, y)


@triton.jit
def _quarter_exponential(a):
    """e^a / 4 in two parts, and 4 / e^a: halves of them are too large for a single where their sum is not."""
    n, part, part_low = _exponential(least(a, 89.6))
    scale = _scale(n, -2)
    high = tl.fma(scale, part, scale)
    rough = rough_inverse(high)
    inverse = tl.fma(rough, tl.fma(0.0 - high, rough, 1.0), rough)
    return high, tl.fma(scale, part_low, tl.fma(scale, part, scale - high)), inverse


@triton.jit
def single_cosh(x):
    """(e^a + e^-a) / 2"""
    high, low, inverse = _quarter_exponential(tl.abs(x))
    return (high + tl.fma(inverse, 0.0625, low)) * 2.0


@triton.jit
def single_sinh(x):
    """(e^a - e^-a) / 2, and below 1 a + a^3 * p(a^2)"""
    a = tl.abs(x)
    high, low, inverse = _quarter_exponential(a)
    far = (high + tl.fma(inverse, -0.0625, low)) * 2.0
    z = a * a
    p = polynomial(z, (0.1666666716337204, 0.00833331048488617, 0.00019842895562760532, 2.7822131869470468e-06))
    return with_sign_of(tl.where(a < 1, tl.fma(a * z, p, a), far), x)


@triton.jit
def single_asinh(x):
    """ln(a + sqrt(a^2 + 1)), and below 1/2 a + a^3 * p(a^2)"""
    a = tl.abs(x)
    z = a * a
    p = polynomial(
        z, (-0.1666664332151413, 0.07498640567064285, -0.04438295215368271, 0.028160931542515755, -0.013222961686551571)
    )
    near = tl.fma(a * z, p, a)
    is_beyond = a >= BEYOND_ROOT
    b = tl.where(is_beyond, BEYOND_ROOT, a)
    square = tl.fma(b, b, 1.0)
    root, root_low = root_of(square, tl.fma(b, b, 1.0 - square))
    high, low = sum_of(root, b)
    low = tl.where(is_beyond, 0.0, low + root_low)
    y = _log_of_sum(tl.where(is_beyond, a * 0.5, high), low, tl.where(is_beyond, 2.0, 0.0))
    return tl.where(a < float("inf"), with_sign_of(tl.where(a < 0.5, near, y), x), x)


@triton.jit
def single_acosh(x):
    """ln(x + sqrt(x^2 - 1)), x^2 - 1 = u^2 + 2 * u, u = x - 1"""
    is_beyond = x >= BEYOND_ROOT
    u = tl.where(is_beyond, BEYOND_ROOT, x) - 1.0
    square = tl.fma(u, u, u + u)
    root, root_low = root_of(square, tl.fma(u, u, (u + u) - square))
    high, low = sum_of(x, root)
    low = tl.where(is_beyond, 0.0, low + root_low)
    y = _log_of_sum(tl.where(is_beyond, x * 0.5, high), low, tl.where(is_beyond, 2.0, 0.0))
    y = tl.where((x > 1) & (x < float("inf")), y, tl.where(x == float("inf"), x, float("nan")))
    return tl.where(x == 1, 0.0, y)


@triton.jit
def single_atanh(x):
    """ln((1 + a) / (1 - a)) / 2, and below 1/2 a + a^3 * p(a^2)"""
    a = tl.abs(x)
    z = a * a
    p = polynomial(
        z,
        (
            0.33333298563957214, 0.20002587139606476, 0.14221487939357758,
            0.11833957582712173, 0.05098561942577362, 0.17719632387161255,
        ),
    )  # fmt: skip
    near = tl.fma(a * z, p, a)
    bottom = 1.0 - a
    top = 1.0 + a
    inverse = rough_inverse(bottom)
    quotient = top * inverse
    left = tl.fma(0.0 - quotient, bottom, top) + (a - (top - 1.0))
    y = tl.where(a < 0.5, near, _log_of_sum(quotient, left * inverse, 0.0) * 0.5)
    y = tl.where(a < 1, y, tl.where(a == 1, float("inf"), float("nan")))
    return with_sign_of(y, x)


@triton.jit
def single_sqrt(x):
    return tl.sqrt_rn(x)


@triton.jit
def _fine_polynomial(x, C: tl.constexpr):
    """In double precision."""
    y = tl.full(x.shape, C[len(C) - 1], tl.float64)
    for i in tl.static_range(2, len(C) + 1):
        y = tl.fma(y, x, tl.full(x.shape, C[len(C) - i], tl.float64))
    return y


@triton.jit
def single_gelu(single):
    """x * tail(-x), with the tail of the normal distribution, in double precision: for a from 0 on tail(a) =
    e^(-a^2 / 2) * t * p(t), t = 1 / (3.5 + a), and tail(-a) = 1 - tail(a)."""
    # So far off the tail is 0 in single precision.
    v = tl.clamp(single, -15.0, 15.0, propagate_nan=tl.PropagateNan.ALL)
    x = v.to(tl.float64)
    a = tl.abs(x)
    rough = rough_inverse(tl.abs(v) + 3.5).to(tl.float64)
    t = tl.fma(tl.fma(0.0 - (a + 3.5), rough, tl.full(x.shape, 1, tl.float64)), rough, rough)
    p = _fine_polynomial(
        t,
        (
            0.3989981277941883, 1.3917991027336714, 4.645597608965075, 9.767217704152282, 71.38921087503563,
            -266.554919528745, 1789.9451717730406, -5882.66153039855, 8515.319209803065, -4685.6614975587545,
        ),
    )  # fmt: skip
    square = x * x
    factor = tl.full(x.shape, -0.7213475204444817, tl.float64)
    to_whole = tl.full(x.shape, 6755399441055744.0, tl.float64)
    moved = tl.fma(square, factor, to_whole)
    f = tl.fma(square, factor, to_whole - moved)
    power = _fine_polynomial(
        f,
        (
            1.0, 0.6931472028559706, 0.2402264791349879, 0.05550332469693868,
            0.00961843736643999, 0.0013398874866609829, 0.00015353360625337326,
        ),
    )  # fmt: skip
    power = (power.to(tl.int64, bitcast=True) + (moved.to(tl.int64, bitcast=True) << 52)).to(tl.float64, bitcast=True)
    # max(x, 0) - a * tail(a)
    y = tl.fma(0.0 - a * (t * p), power, tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)).to(tl.float32)
    y = tl.where(single == float("-inf"), 0.0, with_sign_of(y, single))
    return tl.where(single > 15, single, y)


@triton.jit
def single_erf(x):
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
    far = 1.0 - e * power_of_2(moved)
    y = tl.where(a < 0.9, tl.fma(x, p, x), tl.where(x < 0, 0.0 - far, far))
    return tl.where(x != x, x, y)
