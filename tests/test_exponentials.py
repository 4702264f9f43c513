"""Exponentials and logarithms on the CPU, on every instruction set: all numbers of half precision, and of single
precision every 65521st and what lies around the ends, against double precision, whose own error is next to none here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import erfc, sqrt
from typing import Any

import numpy as np
import pytest

from anydml import _native
from anydml.core.strided_layout import Array
from anydml.operators import spec
from cases import tensor_of
from harness import engines_of, run

pytestmark = [pytest.mark.native, pytest.mark.slow]

SETS = _native.build_info()["instruction_sets"]
ALPHA, GAMMA = float(np.float32(1.6732632)), float(np.float32(1.050701))
SLOPE, THIRD = float(np.float32(1 / 6)), float(np.float32(1 / 3))


def elu(x: Array, alpha: float = 1.0) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(x))


def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x: Array) -> Array:
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))


def swish(x: Array, scale: float = 1.0) -> Array:
    y: Array = x * sigmoid(x * scale)
    return np.where(np.isinf(x) & (x * scale < 0), 0, y)


def gelu(x: Array) -> Array:
    tails = np.array([erfc(each) for each in (x / -sqrt(2)).flat]).reshape(x.shape)
    return np.where(x == -np.inf, 0, x / 2 * tails)


def hard_swish(x: Array) -> Array:
    return np.where(x == -np.inf, 0, x * np.clip(x * SLOPE + 0.5, 0, 1))


FUNCTIONS: dict[str, tuple[dict[str, float], Callable[[Array], Array]]] = {
    "ELEMENT_WISE_EXP": ({}, np.exp),
    "ELEMENT_WISE_LOG": ({}, np.log),
    "ELEMENT_WISE_CONSTANT_POW": ({"Exponent": THIRD}, lambda x: x**THIRD),
    "ACTIVATION_ELU": ({"Alpha": 1.0}, elu),
    "ACTIVATION_GELU": ({}, gelu),
    "ACTIVATION_HARD_SWISH": ({"Alpha": SLOPE, "Beta": 0.5}, hard_swish),
    "ACTIVATION_SCALED_ELU": ({"Alpha": ALPHA, "Gamma": GAMMA}, lambda x: GAMMA * elu(x, ALPHA)),
    "ACTIVATION_SIGMOID": ({}, sigmoid),
    "ACTIVATION_SOFTPLUS": ({"Steepness": 1.0}, softplus),
    "ACTIVATION_SWISH": ({"SigmoidInputScale": 1.0}, swish),
    "ACTIVATION_TANH": ({}, np.tanh),
}
ENDS = (
    *(0.0, 2.0**-149, 2.0**-126, 2.0**-25, 2.0**-24, 2.0**-12, 0.25, 0.288, 0.406, 0.5, 0.6, 0.6931472, 0.7071068),
    *(1.0, 1.4142135, 2.0, 8.5, 10.0, 16.6, 17.33, 20.0, 32.0, 87.33655, 88.72284, 90.0, 103.97208, 105.0),
    *(2.0**22, 2.0**23, 3.4028235e38),
)
"""Where results overflow and underflow, where formulas meet, and where they saturate."""


def halves() -> Array:
    return np.arange(2**16, dtype=np.uint16).view(np.float16)


def singles() -> Array:
    every = np.arange(0, 2**32, 65521, dtype=np.uint64).astype(np.uint32)
    around = np.array(ENDS, np.float32).view(np.uint32)[:, None] + np.arange(-200, 201)
    around = around[around >= 0].astype(np.uint32)
    special = np.array([np.inf, -np.inf, np.nan], np.float32).view(np.uint32)
    return np.concatenate([every, around, around | 0x80000000, special, special + 1]).astype(np.uint32).view(np.float32)


def all_bits(name: str, x: Array, members: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> Iterator[Array]:
    """The results of every instruction set."""
    found = spec(name)
    desc: Any = found.desc(InputTensor=tensor_of(x), OutputTensor=tensor_of(x), **members)
    assert "cpu" in engines_of(desc)
    for instruction_set in SETS:
        monkeypatch.setenv("ANYDML_CPU", instruction_set)
        (y,) = run("cpu", desc, [x])
        assert y is not None
        yield y


@pytest.mark.parametrize("values", [halves, singles])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_within_a_unit_of_single_precision(
    name: str, values: Callable[[], Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so of half precision next to nothing beyond half a unit."""
    x = values()
    members, function = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64))
        nearest = exact.astype(x.dtype)
    limits = np.finfo(x.dtype)
    units = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 1, limits.minexp) - limits.nmant)
    most = 1 + 2**-20 if x.dtype == np.float32 else 0.5 + 2**-12
    finite = np.isfinite(nearest)
    first: Array | None = None
    for y in all_bits(name, x, members, monkeypatch):
        np.testing.assert_array_equal(y[~finite], nearest[~finite])
        errors = np.abs(y[finite].astype(np.float64) - exact[finite]) / units[finite]
        assert errors.max() <= most, (x[finite][errors.argmax()], errors.max())
        if name != "ACTIVATION_SCALED_ELU":  # of whose 0 the sign is that of a factor
            np.testing.assert_array_equal(np.signbit(y[exact == 0]), np.signbit(exact[exact == 0]))
        first = y if first is None else first
        kept = ~np.isnan(y)
        np.testing.assert_array_equal(y[kept].view(f"u{y.itemsize}"), first[kept].view(f"u{y.itemsize}"))


def pairs(name: str, x: Array, y: Array, monkeypatch: pytest.MonkeyPatch) -> Iterator[Array]:
    """The results of every instruction set, of an operator of two operands."""
    found = spec(name)
    desc: Any = found.desc(**dict(zip(found.tensors, map(tensor_of, (x, y, x)), strict=True)))
    assert "cpu" in engines_of(desc)
    for instruction_set in SETS:
        monkeypatch.setenv("ANYDML_CPU", instruction_set)
        (result,) = run("cpu", desc, [x, y])
        assert result is not None
        yield result


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_powers_that_can_be_held_are_exact(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of positive and negative numbers, with whole exponents and halves, and neighbours of each kind in a vector."""
    base = np.array([1, 2, 3, 5, 7, 9, 16, 25, 1.5, 2.25, 0.25, 0.5, -1, -2, -3, -1.5, 0, -0.0], dtype)
    exponent = np.array([0, 1, 2, 3, 4, 0.5, 1.5, -1, -2, -0.5, 0.25], dtype)
    x, e = [np.ascontiguousarray(each) for each in np.broadcast_arrays(base[:, None], exponent)]
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), e.astype(np.float64))
        is_held = (exact == exact.astype(dtype)) | np.isnan(exact)
    for y in pairs("ELEMENT_WISE_POW", x, e, monkeypatch):
        np.testing.assert_array_equal(y[is_held], exact[is_held].astype(dtype))


def test_powers_and_angles_of_any_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits at random, powers that nearly overflow, and what is next to 1, within a unit of single precision."""
    random = np.random.default_rng(27)
    x = random.integers(0, 2**32, (3, 40_009), np.uint64).astype(np.uint32).view(np.float32)
    y = random.integers(0, 2**32, x.shape, np.uint64).astype(np.uint32).view(np.float32)
    x[1:] = np.abs(x[1:])
    x[2] = 1 + random.uniform(-0.06, 0.06, x.shape[1])
    with np.errstate(all="ignore"):
        y[1:] = random.uniform(-104, 89, y[1:].shape) / np.log(x[1:].astype(np.float64))
    for name, function in (("ELEMENT_WISE_POW", np.power), ("ELEMENT_WISE_ATAN_YX", np.arctan2)):
        with np.errstate(all="ignore"):
            exact = function(x.astype(np.float64), y.astype(np.float64))
            nearest = exact.astype(np.float32)
        finite = np.isfinite(nearest)
        units = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 1, -126) - 23)
        first: Array | None = None
        for result in pairs(name, x, y, monkeypatch):
            np.testing.assert_array_equal(result[~finite], nearest[~finite])
            errors = np.abs(result[finite].astype(np.float64) - exact[finite]) / units[finite]
            assert errors.max() <= 1 + 2**-20, (x[finite][errors.argmax()], y[finite][errors.argmax()], errors.max())
            first = result if first is None else first
            kept = ~np.isnan(result)
            np.testing.assert_array_equal(result[kept].view(np.uint32), first[kept].view(np.uint32))


@pytest.mark.parametrize(("alpha", "beta"), [(2.0**40, 0.5), (2.0**-40, 2.0**-30), (0.25, 0.0), (-0.5, 1.0)])
def test_hard_swish_of_any_factors(alpha: float, beta: float) -> None:
    x = np.array([-np.inf, -100, -1, -(2.0**-60), 2.0**-140, 0.3, 1, 2.0**90, np.inf, np.nan], np.float32)
    found = spec("ACTIVATION_HARD_SWISH")
    desc: Any = found.desc(InputTensor=tensor_of(x), OutputTensor=tensor_of(x), Alpha=alpha, Beta=beta)
    (y,) = run("cpu", desc, [x])
    with np.errstate(all="ignore"):
        factor = np.clip(x.astype(np.float64) * alpha + beta, 0, 1)
        expected = np.where(np.isinf(x) & (factor == 0), 0, x.astype(np.float64) * factor).astype(np.float32)
    np.testing.assert_allclose(y, expected, rtol=2**-23)


@pytest.mark.parametrize(("alpha", "gamma"), [(2.0**90, 2.0**90), (2.0**-90, 2.0**-90), (0.0, 3.0), (np.inf, 1.0)])
def test_factors_beyond_single_precision(alpha: float, gamma: float) -> None:
    x = np.array([-np.inf, -100, -1, -(2.0**-60), -(2.0**-140), 1, np.nan], np.float32)
    found = spec("ACTIVATION_SCALED_ELU")
    desc: Any = found.desc(InputTensor=tensor_of(x), OutputTensor=tensor_of(x), Alpha=alpha, Gamma=gamma)
    (y,) = run("cpu", desc, [x])
    with np.errstate(all="ignore"):
        expected = (gamma * elu(x.astype(np.float64), alpha)).astype(np.float32)
    np.testing.assert_allclose(y, expected, rtol=2**-23)


@pytest.mark.parametrize("scale", [1.7, -0.3, 2.0**16, 2.0**-16, 1e10, -1e-10])
def test_swish_of_any_scale(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond 2^16 it is computed in double precision."""
    scale = float(np.float32(scale))
    x = np.concatenate([singles(), (np.linspace(-130, 130, 10007) / scale).astype(np.float32)])
    with np.errstate(all="ignore"):
        exact = swish(x.astype(np.float64), scale)
        nearest = exact.astype(np.float32)
    finite = np.isfinite(nearest)
    for y in all_bits("ACTIVATION_SWISH", x, {"SigmoidInputScale": scale}, monkeypatch):
        np.testing.assert_array_equal(y[~finite], nearest[~finite])
        with np.errstate(over="ignore"):
            errors = np.abs(y[finite].astype(np.float64) - exact[finite]) / np.spacing(np.abs(nearest[finite]))
        assert errors.max() <= 1 + 2**-20, (x[finite][errors.argmax()], errors.max())
