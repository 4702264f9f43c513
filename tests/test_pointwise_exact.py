"""The pointwise operators of floats against arbitrary precision: all numbers of half precision, rounded right, and
many of single precision, within a unit in the last place.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from math import copysign, inf, nan, nextafter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anydml import RoundingMode
from anydml.core.strided_layout import Array
from anydml.operators import spec
from cases import tensor_of
from harness import assert_same, bits, engines_of, run

mp = pytest.importorskip("mpmath", reason="mpmath is not installed")

pytestmark = pytest.mark.slow

PRECISION = 100
"""In bits, of what is exact here; angles are reduced with more."""
COUNT = 50_000


def real(function: Any) -> Callable[[Any], Any]:
    """A function of real numbers: NaN where the value is complex, or there is none."""

    def value(x: Any) -> Any:
        try:
            y = function(x)
        except (ValueError, ZeroDivisionError):
            return mp.nan
        return mp.nan if isinstance(y, mp.mpc) else y

    return value


def half_away(x: Any) -> Any:
    return mp.sign(x) * mp.floor(abs(x) + mp.mpf(0.5))


def half_even(x: Any) -> Any:
    return mp.nint(x)


SLOPE = float(np.float32(1 / 6))
EXACT: dict[str, tuple[dict[str, Any], Any]] = {
    "ELEMENT_WISE_ACOS": ({}, mp.acos),
    "ELEMENT_WISE_ASIN": ({}, mp.asin),
    "ELEMENT_WISE_ATAN": ({}, mp.atan),
    "ELEMENT_WISE_COS": ({}, mp.cos),
    "ELEMENT_WISE_SIN": ({}, mp.sin),
    "ELEMENT_WISE_TAN": ({}, mp.tan),
    "ELEMENT_WISE_SINH": ({}, mp.sinh),
    "ELEMENT_WISE_COSH": ({}, mp.cosh),
    "ELEMENT_WISE_TANH": ({}, mp.tanh),
    "ELEMENT_WISE_ASINH": ({}, mp.asinh),
    "ELEMENT_WISE_ACOSH": ({}, mp.acosh),
    "ELEMENT_WISE_ATANH": ({}, lambda x: mp.sign(x) * mp.inf if abs(x) == 1 else mp.atanh(x)),
    "ELEMENT_WISE_ERF": ({}, mp.erf),
    "ELEMENT_WISE_CEIL": ({}, mp.ceil),
    "ELEMENT_WISE_FLOOR": ({}, mp.floor),
    "ELEMENT_WISE_SIGN": ({}, mp.sign),
    "ELEMENT_WISE_CONSTANT_POW": ({"Exponent": 2.5}, lambda x: x**2.5),
    "ELEMENT_WISE_EXP": ({}, mp.exp),
    "ELEMENT_WISE_LOG": ({}, lambda x: mp.log(x) if x != 0 else -mp.inf),
    "ELEMENT_WISE_SQRT": ({}, mp.sqrt),
    "ACTIVATION_ELU": ({"Alpha": SLOPE}, lambda x: x if x >= 0 else SLOPE * mp.expm1(x)),
    "ACTIVATION_SCALED_ELU": (
        {"Alpha": 0.75, "Gamma": 1.25},
        lambda x: mp.mpf(1.25) * (x if x > 0 else mp.mpf(0.75) * mp.expm1(x)),
    ),
    "ACTIVATION_SIGMOID": ({}, lambda x: 1 / (1 + mp.exp(-x))),
    "ACTIVATION_SOFTPLUS": ({"Steepness": 1.0}, lambda x: mp.log1p(mp.exp(x)) if x < 50 else x + mp.exp(-x)),
    "ACTIVATION_TANH": ({}, mp.tanh),
    "ACTIVATION_CELU": ({"Alpha": 2.0}, lambda x: x if x >= 0 else 2 * mp.expm1(x / 2)),
    "ACTIVATION_GELU": ({}, lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2),
    "ACTIVATION_SWISH": ({"SigmoidInputScale": 1.5}, lambda x: x / (1 + mp.exp(-x * mp.mpf(1.5)))),
    "ACTIVATION_HARD_SWISH": (
        {"Alpha": SLOPE, "Beta": 0.5},
        lambda x: x * max(mp.mpf(0), min(mp.mpf(1), SLOPE * x + mp.mpf(0.5))),
    ),
}
ROUNDED = {
    RoundingMode.HALVES_TO_NEAREST_EVEN: half_even,
    RoundingMode.TOWARD_ZERO: lambda x: mp.sign(x) * mp.floor(abs(x)),
    RoundingMode.TOWARD_INFINITY: half_away,
}
EXACT |= {f"ELEMENT_WISE_ROUND {mode.name}": ({"RoundingMode": mode}, each) for mode, each in ROUNDED.items()}
"""Operators with their members and what they are."""


def described(name: str, x: Array) -> Any:
    found = spec(name.split()[0])
    return found.desc(InputTensor=tensor_of(x), OutputTensor=tensor_of(x), **EXACT[name][0])


def engines(name: str) -> list[str]:
    return engines_of(described(name, np.zeros(2, np.float16)))


def to_odd(value: Any) -> float:
    """A double that rounds to any narrower type as the value does: its last bit tells of all that follow."""
    if mp.isnan(value) or mp.isinf(value) or abs(value) > 1e300:
        return nan if mp.isnan(value) else inf if value > 0 else -inf
    near = float(value)
    if mp.mpf(near) == value:
        return near
    lower = near if abs(mp.mpf(near)) < abs(value) else nextafter(near, 0)
    bits = np.float64(lower).view(np.uint64) | np.uint64(1)
    return copysign(float(bits.view(np.float64)), value)


def halves() -> Array:
    return np.arange(2**16, dtype=np.uint16).view(np.float16)


DIGESTS = dict(
    line.rsplit(maxsplit=1) for line in Path(__file__).with_name("exact_halves.txt").read_text().splitlines()
)
"""Of what all finite halves give, rounded once, as `rounded` finds in a second or two for each operator."""
SOME = 61
"""Every so many of them are computed each time."""


def rounded(name: str, x: Array) -> Array:
    """What halves give, rounded once."""
    function = real(EXACT[name][1])
    with mp.workprec(PRECISION):
        exact = [to_odd(function(mp.mpf(each))) for each in x.tolist()]
    with np.errstate(over="ignore"):
        return np.array(exact).astype(np.float16)


def digest(y: Array) -> str:
    """There is one zero and one NaN."""
    ones = np.where(np.isnan(y), np.float16(nan), y) + np.float16(0)
    return sha256(ones.tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("name", EXACT)
def test_all_halves_are_rounded_right(name: str) -> None:
    x = halves()
    finite = x[np.isfinite(x)]
    some = rounded(name, finite[::SOME])
    for engine in engines(name):
        (y,) = run(engine, described(name, x), [x])
        assert y is not None
        found = y[np.isfinite(x)]
        assert_same(found[::SOME], some)
        if digest(found) != DIGESTS.get(name):
            assert_same(found, right := rounded(name, finite))
            assert digest(right) == DIGESTS.get(name), "exact_halves.txt needs this digest"
        of_nan = 0 if name == "ELEMENT_WISE_SIGN" else nan
        np.testing.assert_array_equal(y[np.isnan(x)], of_nan)


def singles(name: str) -> Array:
    """Any bits that are a finite number, and as many of ordinary size."""
    rng = np.random.default_rng(sum(map(ord, name)))
    any_bits = np.frombuffer(rng.bytes(4 * COUNT), np.float32)
    return np.concatenate([any_bits[np.isfinite(any_bits)], rng.uniform(-8, 8, COUNT).astype(np.float32)])


@pytest.mark.parametrize("name", EXACT)
def test_singles_are_within_a_unit(name: str) -> None:
    """Of every hundredth in arbitrary precision, and of all in double precision, as the reference has them."""
    x = singles(name)
    (wide,) = run("reference", described(name, x), [x])
    assert wide is not None
    function, some = real(EXACT[name][1]), slice(None, None, 100)
    with mp.workprec(4 * PRECISION):
        exact = np.array([to_odd(function(mp.mpf(each))) for each in x[some].tolist()])
    with np.errstate(over="ignore"):
        right = exact.astype(np.float32)
    for engine in engines(name):
        (y,) = run(engine, described(name, x), [x])
        assert y is not None
        assert_same(y, wide, units=1)
        assert_same(y[some], right, units=1)


# Where floats have two zeros


ZEROS = {
    "ELEMENT_WISE_ASIN": ([0.0, -0.0], [0.0, -0.0]),
    "ELEMENT_WISE_ATAN": ([0.0, -0.0], [0.0, -0.0]),
    "ELEMENT_WISE_SIN": ([0.0, -0.0], [0.0, -0.0]),
    "ELEMENT_WISE_TAN": ([0.0, -0.0], [0.0, -0.0]),
    "ELEMENT_WISE_SINH": ([0.0, -0.0], [0.0, -0.0]),
    "ELEMENT_WISE_TANH": ([0.0, -0.0], [0.0, -0.0]),
    "ELEMENT_WISE_ASINH": ([0.0, -0.0], [0.0, -0.0]),
    "ELEMENT_WISE_ATANH": ([0.0, -0.0], [0.0, -0.0]),
    "ELEMENT_WISE_CEIL": ([0.0, -0.0, -0.5], [0.0, -0.0, -0.0]),
    "ELEMENT_WISE_FLOOR": ([0.0, -0.0, 0.5], [0.0, -0.0, 0.0]),
    "ELEMENT_WISE_ROUND HALVES_TO_NEAREST_EVEN": ([0.0, -0.0, -0.5, 0.5], [0.0, -0.0, -0.0, 0.0]),
    "ELEMENT_WISE_ROUND TOWARD_ZERO": ([0.0, -0.0, -0.75, 0.75], [0.0, -0.0, -0.0, 0.0]),
    "ELEMENT_WISE_ROUND TOWARD_INFINITY": ([0.0, -0.0, -0.25, 0.25], [0.0, -0.0, -0.0, 0.0]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("name", "engine"), [(name, engine) for name in ZEROS for engine in engines(name)])
def test_the_sign_of_zero_stays(name: str, engine: str, dtype: type) -> None:
    x, expected = (np.array(each, dtype) for each in ZEROS[name])
    (y,) = run(engine, described(name, x), [x])
    assert y is not None
    np.testing.assert_array_equal(y.view(bits(y)), expected.view(bits(expected)))


def of_two(name: str, a: Array, b: Array) -> Any:
    found = spec(name)
    *names, output = found.tensors
    return found.desc(**dict(zip(names, map(tensor_of, (a, b)), strict=True)), **{output: tensor_of(a)})


def engines_of_two(name: str) -> tuple[str, ...]:
    pair = np.zeros(2, np.float32)
    return engines_of(of_two(name, pair, pair))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("engine", engines_of_two("ELEMENT_WISE_ATAN_YX"))
def test_angles_are_rounded_right(engine: str, dtype: type) -> None:
    """Of any bits, of ordinary numbers, and of the axes; within a unit of FLOAT32."""
    rng = np.random.default_rng(7)
    y, x = (np.frombuffer(rng.bytes(np.dtype(dtype).itemsize * 2000), dtype) for _ in range(2))
    ordinary = rng.uniform(-4, 4, (2, 2000)).astype(dtype)
    y, x = (np.concatenate([any_bits, each]) for any_bits, each in zip((y, x), ordinary, strict=True))
    finite = np.isfinite(y) & np.isfinite(x) & ((x != 0) | (y != 0))
    y, x = y[finite], x[finite]
    (angles,) = run(engine, of_two("ELEMENT_WISE_ATAN_YX", y, x), [y, x])
    with mp.workprec(PRECISION):
        exact = [to_odd(mp.atan2(mp.mpf(a), mp.mpf(b))) for a, b in zip(y.tolist(), x.tolist(), strict=True)]
    assert angles is not None
    assert_same(angles, np.array(exact).astype(dtype), units=int(dtype == np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("engine", engines_of_two("ELEMENT_WISE_MODULUS_FLOOR"))
def test_a_floored_remainder_is_pythons(engine: str, dtype: type) -> None:
    """And its zeros have the divisor's sign."""
    rng = np.random.default_rng(8)
    a, b = rng.choice(np.array([-7.5, -3, -1, -0.0, 0.0, 1, 2.25, 3, 1000], dtype), (2, 500))
    a, b = a[b != 0], b[b != 0]
    (y,) = run(engine, of_two("ELEMENT_WISE_MODULUS_FLOOR", a, b), [a, b])
    expected = np.array([left % right for left, right in zip(a.tolist(), b.tolist(), strict=True)], dtype)
    assert y is not None
    np.testing.assert_array_equal(y.view(bits(y)), expected.view(bits(expected)))
