"""Functions of halves in single precision: of each half right when it is rounded to one, which the tests try.

Formulas and coefficients are the CPU's (`native/pointwise/half_functions.h`) where those need no tables. Quotients and
roots are what approximations and a step of Newton's give. A result that lies midway between two halves, where the exact
one does not, is moved by its last bit.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .functions import (
    TO_WHOLE,
    arc_tangent_quotient,
    bits_of,
    half_quotient,
    least,
    log_parts,
    polynomial,
    power_of_2,
    single_of,
    with_sign_of,
)

SELU_BELOW = tl.constexpr(1.7580311298370361)
SELU_ABOVE = tl.constexpr(1.0506999492645264)


@triton.jit
def untied(y, a, TIES: tl.constexpr):
    """Results, moved where a is a tie's; ties are pairs of an operand and what is added to the result's bits."""
    bits = bits_of(y)
    for i in tl.static_range(0, len(TIES), 2):
        bits = tl.where(a == TIES[i], bits + TIES[i + 1], bits)
    return single_of(bits)


@triton.jit
def _quotient(a, b):
    """The quotient by a positive number: its inverse is the square of its root's inverse."""
    root = tl.rsqrt(b)
    inverse = root * root
    quotient = a * inverse
    return tl.fma(tl.fma(0.0 - quotient, b, a), inverse, quotient)


@triton.jit
def _root(v):
    """The square root of a positive number."""
    inverse = tl.rsqrt(v)
    root = v * inverse
    return tl.fma(tl.fma(0.0 - root, root, v), 0.5 * inverse, root)


@triton.jit
def _exp2_of_product(x, HIGH: tl.constexpr, LOW: tl.constexpr, MOST: tl.constexpr):
    """2^(x * factor), within 2^-21 of it, of a factor in two parts; of an x beyond MOST that of MOST."""
    v = tl.clamp(x, -MOST, MOST, propagate_nan=tl.PropagateNan.ALL)
    shifted = tl.fma(v, HIGH, TO_WHOLE)
    f = tl.fma(v, LOW, tl.fma(v, HIGH, TO_WHOLE - shifted))
    power = polynomial(
        f,
        (1.0, 0.6931470036506653, 0.24022246897220612, 0.0555071085691452, 0.009671292267739773, 0.0013269537594169378),
    )
    return power * power_of_2(shifted)


@triton.jit
def half_exp(x):
    return untied(
        _exp2_of_product(x, 1.4426950216293335, 1.925962855864327e-08, 41.5),
        x,
        (0.007297515869140625, -1, 0.0226898193359375, -1, -2.615234375, 1),
    )


@triton.jit
def half_sigmoid(x):
    """All are moved towards 1/2 by their last bit: for small numbers they are next to ties beyond them."""
    power = _exp2_of_product(x, -1.4426950216293335, -1.925962855864327e-08, 41.5)
    y = bits_of(_quotient(1.0, power + 1.0)) - ((bits_of(x) >> 31) | 1)
    return untied(single_of(y), x, (-0.1639404296875, -3, -1.9921875, -1))


@triton.jit
def half_swish(x):
    """x / (1 + e^-x), and 0 at minus infinity."""
    power = _exp2_of_product(x, -1.4426950216293335, -1.925962855864327e-08, 41.5)
    y = untied(with_sign_of(_quotient(x, power + 1.0), x), x, (5.960464477539063e-08, 1, -1.7881393432617188e-07, -1))
    return tl.where(tl.abs(x) == float("inf"), tl.maximum(x, 0.0), y)


@triton.jit
def _expm1_quotient(r):
    """(e^r - 1 - r) / r^2"""
    return polynomial(
        r, (0.49999964237213135, 0.1666666865348816, 0.04166669026017189, 0.008333051577210426, 0.001392241334542632)
    )


@triton.jit
def _exponential(v):
    """2^n, and e^v / 2^n - 1."""
    moved = tl.fma(v, 1.4426950216293335, TO_WHOLE)
    n = moved - TO_WHOLE
    r = tl.fma(n, 1.9046542121259336e-09, tl.fma(n, -0.6931471824645996, v))
    return power_of_2(moved), tl.fma(_expm1_quotient(r), r * r, r)


@triton.jit
def half_elu(x):
    """e^x - 1 below 0, and x beyond."""
    scale, part = _exponential(tl.clamp(x, -20.0, 0.0, propagate_nan=tl.PropagateNan.ALL))
    return tl.where(x >= 0, x, tl.fma(scale, part, scale - 1.0))


@triton.jit
def half_scaled_elu(x):
    """With the constants 1.6732 and 1.0507, whose products with x are rounded to odd: many are next to ties."""
    scale, part = _exponential(tl.clamp(x, -20.0, 0.0, propagate_nan=tl.PropagateNan.ALL))
    below = tl.fma(scale, part, scale - 1.0) * SELU_BELOW
    above = x * SELU_ABOVE
    left = tl.fma(x, SELU_ABOVE, 0.0 - above)
    bits = bits_of(above)
    odd = tl.where(((left < 0) | (left > 0)) & ((bits & 1) == 0), bits + tl.where(left < 0, -1, 1), bits)
    return untied(tl.where(x >= 0, single_of(odd), below), x, (-0.001766204833984375, 1, -0.41650390625, -1))


@triton.jit
def half_sinh(x):
    """With t = e^a - 1: sinh a = (t + t / (t + 1)) / 2"""
    scale, part = _exponential(least(tl.abs(x), 13.0))
    t = tl.fma(scale, part, scale - 1.0)
    return with_sign_of((t + _quotient(t, t + 1.0)) * 0.5, x)


@triton.jit
def half_cosh(x):
    a = tl.abs(x)
    scale, part = _exponential(least(a, 13.0))
    y = tl.fma(scale, part, scale)
    return untied((y + _quotient(1.0, y)) * 0.5, a, (0.03125, 1))


@triton.jit
def half_tanh(x):
    """With t = e^2a - 1: tanh a = t / (t + 2)"""
    scale, part = _exponential(least(tl.abs(x) * 2.0, 20.0))
    t = tl.fma(scale, part, scale - 1.0)
    return with_sign_of(_quotient(t, t + 2.0), x)


@triton.jit
def half_scaled_tanh(x):
    """Of x / 2, which is no half where x is a small one: its hyperbolic tangent is below the tie."""
    y = bits_of(half_tanh(x * 0.5))
    return single_of(tl.where((x != 0) & (tl.abs(x) < 0.000244140625), y - 1, y))


@triton.jit
def _log_quotient(f):
    """(ln(1 + f) - f + f^2 / 2) / f^3"""
    return polynomial(
        f,
        (
            0.33333373069763184, -0.2500048577785492, 0.20001718401908875, -0.16652846336364746, 0.14219483733177185,
            -0.1262883096933365, 0.1212029829621315, -0.10333024710416794, 0.04811061546206474,
        ),
    )  # fmt: skip


@triton.jit
def _log(k, f, f_low, quotient):
    """k * ln 2 + ln(1 + f + f_low)"""
    f2 = f * f
    rest = tl.fma(f2 * f, quotient, tl.fma(f2, -0.5, tl.fma(k, 1.428606765330187e-06, f_low)))
    return tl.fma(k, 0.693145751953125, f) + rest


@triton.jit
def half_log(x):
    _, k, f = log_parts(x)
    y = untied(_log(k, f, 0.0, _log_quotient(f)), x, (0.005340576171875, -1))
    y = tl.where(x > 0, y, tl.where(x == 0, float("-inf"), float("nan")))
    return tl.where(x == float("inf"), x, y)


@triton.jit
def _log1p(v):
    """ln(1 + v) of v >= 0"""
    s = v + 1.0
    places, k, f = log_parts(s)
    return _log(k, f, (v - (s - 1.0)) * single_of(0x3F800000 - places), _log_quotient(f))


@triton.jit
def half_softplus(x):
    """ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|)"""
    scale, part = _exponential(tl.maximum(0.0 - tl.abs(x), -40.0, propagate_nan=tl.PropagateNan.ALL))
    y = tl.maximum(x, 0.0) + _log1p(tl.fma(scale, part, scale))
    return untied(y, x, (-6.389617919921875e-05, -1, -0.94189453125, -1))


@triton.jit
def half_atanh(x):
    """atanh a = ln(1 + 2 * a / (1 - a)) / 2"""
    a = tl.abs(x)
    y = _log1p(_quotient(a + a, 1.0 - a)) * 0.5
    return with_sign_of(tl.where(a == 1, float("inf"), y), x)


@triton.jit
def half_asinh(x):
    """asinh a = ln(a + sqrt(a^2 + 1)), and below 1/2 a + a^3 * p(a^2)"""
    a = tl.abs(x)
    z = a * a
    p = polynomial(z, (-0.16665880382061005, 0.07484699785709381, -0.042709220200777054, 0.020124532282352448))
    near = tl.fma(a * z, p, a)
    _, k, f = log_parts(a + _root(z + 1.0))
    # As _log_quotient, with coefficients by which fewer results are next to ties.
    quotient = polynomial(
        f,
        (
            0.33347564935684204, -0.24989207088947296, 0.1983184963464737, -0.16706301271915436, 0.1307182013988495,
            -0.11464226245880127, 0.15833780169487, -0.0001631313207326457, 4.567757283524543e-09,
        ),
    )  # fmt: skip
    y = tl.where(a < 0.5, near, _log(k, f, 0.0, quotient))
    y = untied(y, a, (258.5, -1))
    return with_sign_of(tl.where(a < float("inf"), y, a), x)


@triton.jit
def half_acosh(x):
    """acosh x = ln(1 + v), v = u + sqrt(u^2 + 2 * u), u = x - 1"""
    u = x - 1.0
    y = untied(_log1p(u + _root(tl.fma(u, u, u + u) + 8.673617379884035e-19)), x, (1.22265625, 1))
    return tl.where((x >= 1) & (x < float("inf")), y, tl.where(x == float("inf"), x, float("nan")))


@triton.jit
def _arc_sine(a):
    """Of an a beyond 1/2 asin(sqrt((1 - a) / 2)). What is added to the latter changes 0 alone."""
    z = tl.where(a > 0.5, tl.fma(a, -0.5, 0.5) + 8.673617379884035e-19, a * a)
    s = tl.where(a > 0.5, _root(z), a)
    p = polynomial(
        z, (0.1666688472032547, 0.07494746148586273, 0.045449238270521164, 0.024208800867199898, 0.042355142533779144)
    )
    return tl.fma(s * z, p, s)


@triton.jit
def half_asin(x):
    """Beyond 1/2 asin a = pi / 2 - 2 * asin(sqrt((1 - a) / 2))"""
    a = tl.abs(x)
    arc = _arc_sine(a)
    return with_sign_of(
        untied(tl.where(a > 0.5, tl.fma(arc, -2.0, 1.5707963705062866), arc), a, (0.136474609375, -1)), x
    )


@triton.jit
def half_acos(x):
    a = tl.abs(x)
    arc = _arc_sine(a)
    large = tl.where(x < 0, tl.fma(arc, -2.0, 3.1415927410125732), arc + arc)
    y = tl.where(a > 0.5, large, 1.5707963705062866 - with_sign_of(arc, x))
    return untied(y, x, (-4.470348358154297e-06, 1, -0.07318115234375, -1))


@triton.jit
def half_atan(x):
    """atan a = a + a^3 * p(a^2) for a to 1, and beyond pi / 2 - atan(1 / a)"""
    a = least(tl.abs(x), 1073741824.0)
    s = tl.where(a > 1, _quotient(1.0, a), a)
    z = s * s
    p = arc_tangent_quotient(z)
    near = tl.fma(s * z, p, s)
    y = tl.where(a > 1, 1.5707963705062866 - near, near)
    return with_sign_of(untied(y, a, (0.0283966064453125, 1, 0.2095947265625, 1, 6.4296875, 1, 9.359375, -1)), x)


@triton.jit
def _reduced(x):
    """x = n * pi / 2 + r: the last bits of n, and r."""
    shifted = tl.fma(x, 0.6366197466850281, TO_WHOLE)
    n = shifted - TO_WHOLE
    r = tl.fma(n, 4.371138828673793e-08, tl.fma(n, -1.5707963705062866, x))
    return bits_of(shifted), tl.fma(n, 1.7151245100058819e-15, r)


@triton.jit
def _sine_and_cosine(r):
    z = r * r
    p = polynomial(z, (-0.16666655242443085, 0.008332189172506332, -0.00019518291810527444))
    q = polynomial(z, (-0.5, 0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-05))
    return tl.fma(r * z, p, r), tl.fma(z, q, 1.0)


@triton.jit
def half_sin(x):
    n, r = _reduced(x)
    sine, cosine = _sine_and_cosine(r)
    y = single_of(bits_of(tl.where((n & 1) != 0, cosine, sine)) ^ ((n & 2) << 30))
    return tl.where(x == 0, x, untied(y, tl.abs(x), (0.2093505859375, 1, 300.0, -1)))


@triton.jit
def half_cos(x):
    n, r = _reduced(x)
    sine, cosine = _sine_and_cosine(r)
    y = single_of(bits_of(tl.where((n & 1) != 0, sine, cosine)) ^ (((n + 1) & 2) << 30))
    return untied(y, tl.abs(x), (0.0584716796875, 1))


@triton.jit
def half_tan(x):
    n, r = _reduced(x)
    sine, cosine = _sine_and_cosine(r)
    is_odd = (n & 1) != 0
    y = half_quotient(tl.where(is_odd, cosine, sine), tl.where(is_odd, 0.0 - sine, cosine))
    return tl.where(x == 0, x, untied(y, tl.abs(x), (0.0357666015625, 1)))


@triton.jit
def half_gelu(x):
    """max(x, 0) - a * 2^t, a = |x|, of which t is a polynomial: the logarithm of the normal distribution's tail."""
    a = least(tl.abs(x), 5.9)
    t = polynomial(
        a,
        (
            -1.0, -1.1511051654815674, -0.4592134654521942, -0.052455443888902664, 0.00695006875321269,
            1.7780492271413095e-05, -0.0003022599557880312, 8.914292993722484e-05, -1.4885874406900257e-05,
            1.5465977867279435e-06, -9.316265447978367e-08, 2.491293837891817e-09,
        ),
    )  # fmt: skip
    moved = t + TO_WHOLE
    f = t - (moved - TO_WHOLE)
    power = polynomial(
        f,
        (1.0, 0.6931470036506653, 0.24022246897220612, 0.0555071085691452, 0.009671292267739773, 0.0013269537594169378),
    )
    tail = a * single_of(bits_of(power) + (bits_of(moved) << 23))
    y = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL) - tail
    y = untied(
        single_of(bits_of(y) | (bits_of(x) & -0x80000000)),
        x,
        (5.960464477539063e-08, 1, 0.001338958740234375, -1, -0.001338958740234375, 1),
    )
    return tl.where(x == float("-inf"), 0.0, y)


@triton.jit
def half_sqrt(x):
    return tl.sqrt_rn(x)


@triton.jit
def half_softsign(x):
    """a / (1 + a); of infinity 1"""
    a = least(tl.abs(x), 1.152921504606847e18)
    return with_sign_of(_quotient(a, a + 1.0), x)


@triton.jit
def half_erf(x):
    """As of singles, with fewer coefficients."""
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
    far = 1.0 - e * power_of_2(moved)
    y = tl.where(a < 0.9, tl.fma(x, p, x), tl.where(x < 0, 0.0 - far, far))
    return tl.where(x != x, x, y)
