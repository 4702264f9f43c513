"""Reductions of NaNs, infinities and zeros of both signs: which ones are found, and that all NaNs are the same."""

from __future__ import annotations

import numpy as np
import pytest

import anydml
from anydml import ReduceFunction

pytestmark = pytest.mark.native

FUNCTIONS = ("SUM", "AVERAGE", "L1", "L2", "SUM_SQUARE", "MULTIPLY", "LOG_SUM", "LOG_SUM_EXP", "MAX", "MIN")
GEOMETRIES = [
    ((70, 61, 17), 1),
    ((90, 7, 5), 1),
    ((300, 5), 1),
    ((4099, 3), 0),
    ((37, 1021), 1),
    ((33, 700), 0),
    ((9, 40000), 1),
]


def bits_of(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.itemsize}")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_all_nans_are_the_same(dtype: str, function: str) -> None:
    """Of elements whose NaNs have either sign and any payload."""
    rng = np.random.default_rng(5)
    expected = bits_of(np.array(np.nan, dtype))
    for shape, axis in GEOMETRIES:
        x = rng.integers(1, 9, shape).astype(dtype)
        lines = np.moveaxis(x, axis, -1)
        lines[::3, ..., 0] = np.inf
        lines[::3, ..., -1] = -np.inf
        nans = rng.integers(1, 1 << 9, lines[1::3].shape).astype(expected.dtype) | bits_of(np.array(np.inf, dtype))
        nans |= rng.integers(0, 2, nans.shape).astype(expected.dtype) << np.array(8 * x.itemsize - 1, expected.dtype)
        lines[1::3] = nans.view(dtype)
        found = np.moveaxis(anydml.reduce(x, ReduceFunction[function], axis), axis, -1)[..., 0]
        assert np.isnan(found[1::3]).all()
        assert (bits_of(found)[np.isnan(found)] == expected).all()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("shape", "axis"), GEOMETRIES)
def test_the_largest_beside_nans(dtype: str, shape: tuple[int, ...], axis: int) -> None:
    """NaNs of either sign are passed over beside numbers, which may be infinite; both zeros are equal."""
    rng = np.random.default_rng(axis)
    for values in ([-0.0, 0.0, np.nan], [-np.inf, np.nan], [np.inf, -1.0, np.nan], [-3.0, -0.0, 0.0]):
        x = rng.choice(np.array(values, dtype), shape)
        negative = rng.random(shape) < 0.5
        x[np.isnan(x) & negative] = -np.array(np.nan, dtype)
        lines = np.moveaxis(x, axis, -1)
        is_number = ~np.isnan(lines)
        for sign, name in ((1, "MAX"), (-1, "MIN")):
            best = np.where(is_number, sign * lines, -np.inf).max(-1, keepdims=True)
            index = (is_number & (sign * lines == best)).argmax(-1)
            found = np.moveaxis(anydml.reduce(x, ReduceFunction[name], axis), axis, -1)[..., 0]
            np.testing.assert_array_equal(found, np.where(is_number.any(-1), sign * best[..., 0], np.nan))
            places = getattr(anydml, f"arg{name.lower()}")(x, axis)
            np.testing.assert_array_equal(np.moveaxis(places, axis, -1)[..., 0], index)


def test_a_zero_keeps_its_sign() -> None:
    """As the largest of halves, which are compared as integers, in which -0 comes before 0."""
    x = np.full((40, 77), -0.0, np.float16)
    x[20:, 5] = 0.0
    assert np.signbit(anydml.reduce(x, "MAX", 1)[:20]).all()
    assert not np.signbit(anydml.reduce(x, "MAX", 1)[20:]).any()
    assert np.signbit(anydml.reduce(x, "MIN", 0)).all()
