"""Halves with constants of any bits: every half, on every instruction set, rounded as the exact result is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from anydml import _native
from anydml.core.strided_layout import Array
from anydml.operators import spec
from cases import tensor_of
from harness import run

pytestmark = [pytest.mark.native, pytest.mark.slow]

SETS = _native.build_info()["instruction_sets"]
X = np.arange(2**16, dtype=np.uint16).view(np.float16)
WIDE = X.astype(np.float64)
ORDINARY = (1 / 6, 0.5, 0.25, 1.0, 2.0, 0.01, -0.5, 0.0, 1.5, 3.0, 1 + 2**-11, 2**-12 + 2**-23)
EXTREME = (2.0**-60, 2.0**60, -(2.0**-30), 2.0**-126, 65504.0, 2.0**127, 2.0**-149)
PAIRS = 40


def constants() -> Iterator[tuple[float, float]]:
    """Those of networks, of few bits and of many, and such as lie far apart; singles all of them."""
    random = np.random.default_rng(27)
    yield from [(a, b) for a in ORDINARY[:6] for b in ORDINARY]
    yield from [(a, b) for a in EXTREME for b in (0.5 + 2**-12, 1.0, 0.0, -3.0)]
    yield from (random.uniform(-2, 2, (PAIRS, 2)) * 2.0 ** random.integers(-8, 5, (PAIRS, 2))).tolist()
    yield from np.round(random.uniform(-64, 64, (PAIRS, 2))) / 64


def to_odd(high: Array, low: Array) -> Array:
    """A sum whose first term is it, rounded: the last bit tells of all that follow."""
    bits = high.view(np.int64)
    moved = (bits & 1 == 0) & (low != 0) & np.isfinite(high)
    away = (low > 0) == (high > 0)
    return np.where(moved, np.where(away, bits + 1, bits - 1), bits).view(np.float64)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    high = a + b
    added = high - a
    return high, (a - (high - added)) + (b - added)


def exact_linear(a: float, b: float) -> tuple[Array, Array]:
    return two_sum(WIDE * a, np.full_like(WIDE, b))


def linear(a: float, b: float) -> Array:
    return to_odd(*exact_linear(a, b))


def hard_sigmoid(a: float, b: float) -> Array:
    return np.clip(linear(a, b), 0, 1)


def hard_swish(a: float, b: float) -> Array:
    """Of y = a * x + b in two parts of which the first has 26 bits, so that products with halves are exact."""
    high, low = exact_linear(a, b)
    first = (high.view(np.int64) & -(2**27)).view(np.float64)
    product, rest = two_sum(WIDE * first, WIDE * (high - first))
    y = to_odd(*two_sum(product, rest + WIDE * low))
    cut = np.where(high <= 0, WIDE * 0, np.where(high >= 1, WIDE, y))
    return np.where(np.isinf(WIDE) & (high <= 0), 0, np.where(np.isnan(high), np.nan, cut))


def leaky_relu(a: float) -> Array:
    return np.where(WIDE >= 0, WIDE, WIDE * a)


def scaled_product(a: float) -> Array:
    return np.where(WIDE > 0, WIDE * a, np.nan)


def shrink(bias: float, threshold: float) -> Array:
    moved = np.where(threshold < WIDE, linear(1.0, -bias), linear(1.0, bias))
    return np.where(threshold < np.abs(WIDE), moved, np.where(np.isnan(WIDE), WIDE, 0))


def results(name: str, **members: float) -> Iterator[Array]:
    found = spec(name)
    desc: Any = found.desc(InputTensor=tensor_of(X), OutputTensor=tensor_of(X), **members)
    for each in SETS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ANYDML_CPU", each)
            (y,) = run("cpu", desc, [X])
        assert y is not None
        yield y


CASES = {
    "ACTIVATION_LINEAR": ("Alpha", "Beta", linear),
    "ACTIVATION_HARD_SIGMOID": ("Alpha", "Beta", hard_sigmoid),
    "ACTIVATION_HARD_SWISH": ("Alpha", "Beta", hard_swish),
    "ACTIVATION_SHRINK": ("Bias", "Threshold", shrink),
    "ACTIVATION_LEAKY_RELU": ("Alpha", "", lambda a, b: leaky_relu(a)),
    "ACTIVATION_SCALED_ELU": ("Gamma", "", lambda a, b: scaled_product(a)),
}


@pytest.mark.parametrize("name", CASES)
def test_halves_with_any_constants_are_rounded_right(name: str) -> None:
    first, second, function = CASES[name]
    for pair in constants():
        a, b = (float(np.float32(each)) for each in pair)
        members = {first: a, second: b} if second else {first: a}
        if name == "ACTIVATION_SCALED_ELU":
            members["Alpha"] = 1.0
        with np.errstate(all="ignore"):
            expected = function(a, b).astype(np.float16)
        for y in results(name, **members):
            known = ~np.isnan(expected) if name == "ACTIVATION_SCALED_ELU" else np.full(X.shape, True)
            np.testing.assert_array_equal(y[known], expected[known], err_msg=f"{a!r}, {b!r}")


def test_reciprocals_of_halves_are_rounded_right() -> None:
    with np.errstate(all="ignore"):
        expected = (1 / WIDE).astype(np.float16)
    for y in results("ELEMENT_WISE_RECIP"):
        np.testing.assert_array_equal(y, expected)
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(y[zeros]), np.signbit(X[zeros]))
