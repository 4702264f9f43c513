"""Gradients of pooling against exact sums and PyTorch's automatic differentiation, and what unpooling is to pooling."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import lcm, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml
from harness import ENGINES, assert_same
from test_properties import property_test


@st.composite
def windows(draw: Any, dimensions: int = 0, dilated: bool = False) -> dict[str, Any]:
    """A window that fits at one place at least, and the sizes of what it slides over."""
    n = dimensions or draw(st.integers(2, 3))
    ends = [(1, 5), (1, 3), (1, 3), (1, 2 if dilated else 1), (0, 2), (0, 2)]
    each = [
        draw(st.tuples(*(st.integers(*pair) for pair in ends)).filter(lambda d: (d[1] - 1) * d[3] < d[0] + d[4] + d[5]))
        for _ in range(n)
    ]
    names = "sizes", "window_size", "strides", "dilations", "start_padding", "end_padding"
    return dict(zip(names, map(list, zip(*each, strict=True)), strict=True))


def elements_under(window: dict[str, Any]) -> list[list[list[int]]]:
    """For each dimension and each place what the window's taps lie on, padding too."""
    found = []
    for size, taps, stride, dilation, start, end in zip(*window.values(), strict=True):
        places = (size + start + end - (taps - 1) * dilation - 1) // stride + 1
        found.append([[o * stride + k * dilation - start for k in range(taps)] for o in range(places)])
    return found


def numbers(seed: int, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Of so few exponents that double precision holds their sums."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 6, shape)).astype(dtype)


TYPES = st.sampled_from([np.float32, np.float16])
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("engine", ENGINES)
@property_test
@given(window=windows(), include_padding=st.booleans(), dtype=TYPES, seed=SEEDS)
def test_shares_are_those_of_exact_sums(
    engine: str, window: dict[str, Any], include_padding: bool, dtype: Any, seed: int
) -> None:
    under, sizes = elements_under(window), window["sizes"]
    # Whole numbers, of which Python's have all sums of shares, times a multiple of all counts.
    whole = np.random.default_rng(seed).integers(-2000, 2001, (1, 2, *map(len, under)))
    parts = lcm(*range(1, prod(window["window_size"]) + 1))
    exact = np.zeros((1, 2, *sizes), object)
    for place in product(*(range(len(each)) for each in under)):
        taps = [each[o] for each, o in zip(under, place, strict=True)]
        inside = [[e for e in each if 0 <= e < size] for each, size in zip(taps, sizes, strict=True)]
        count = prod(len(each) for each in (taps if include_padding else inside))
        if all(inside):
            shares = whole[(..., *place)].astype(object) * (parts // count)
            exact[np.ix_([0], [0, 1], *inside)] += shares.reshape(1, 2, *(1,) * len(sizes))
    options = {name: window[name] for name in ("strides", "start_padding", "end_padding")}
    y = anydml.average_pooling_grad(
        whole.astype(dtype), sizes, window["window_size"], **options, include_padding=include_padding, device=engine
    )
    expected = np.array([float(Fraction(each, parts)) for each in exact.flat]).reshape(exact.shape)
    # Sums of shares that are rounded to doubles; they round as the exact sum does but beside a tie.
    assert ((expected - 1e-9).astype(dtype) <= y).all()
    assert (y <= (expected + 1e-9).astype(dtype)).all()


@pytest.mark.parametrize("engine", ENGINES)
@property_test
@given(window=windows(dimensions=2, dilated=True), dtype=TYPES, seed=SEEDS)
def test_gradients_of_maxima_are_exact_sums_at_the_first_of_them(
    engine: str, window: dict[str, Any], dtype: Any, seed: int
) -> None:
    """Of few different numbers and NaN, so that many are equal."""
    under, sizes = elements_under(window), window["sizes"]
    rng = np.random.default_rng(seed)
    x = rng.choice([-1, 0, 1, np.nan], (1, 2, *sizes)).astype(dtype)
    gradient = numbers(seed, 1, 2, *map(len, under), dtype=dtype)
    exact = np.full(x.shape, Fraction(0))
    for n, c, *place in np.ndindex(gradient.shape):
        taps = product(*(each[o] for each, o in zip(under, place, strict=True)))
        inside = [tap for tap in taps if all(0 <= e < size for e, size in zip(tap, sizes, strict=True))]
        if inside:
            best = max(inside, key=lambda tap: np.nan_to_num(x[(n, c, *tap)], nan=-9))
            exact[(n, c, *best)] += Fraction(float(gradient[(n, c, *place)]))
    options = {name: each for name, each in window.items() if name != "sizes"}
    y = anydml.max_pooling_grad(x, gradient, **options, device=engine)
    assert_same(y, np.array([float(each) for each in exact.flat]).reshape(x.shape).astype(dtype))


@property_test
@given(window=windows(), include_padding=st.booleans(), seed=SEEDS)
def test_gradients_of_averages_are_those_of_automatic_differentiation(
    window: dict[str, Any], include_padding: bool, seed: int
) -> None:
    torch = pytest.importorskip("torch")
    padding = [min(each) for each in zip(window["start_padding"], [k // 2 for k in window["window_size"]], strict=True)]
    sizes = [max(size, k) for size, k in zip(window["sizes"], window["window_size"], strict=True)]
    x = torch.from_numpy(numbers(seed, 2, 3, *sizes, dtype=np.float64)).requires_grad_()
    options = {"stride": window["strides"], "padding": padding, "count_include_pad": include_padding}
    y = getattr(torch.nn.functional, f"avg_pool{len(sizes)}d")(x, window["window_size"], **options)
    gradient = numbers(seed + 1, *y.shape)
    y.backward(torch.from_numpy(gradient.astype(np.float64)))
    found = anydml.average_pooling_grad(
        gradient,
        sizes,
        window["window_size"],
        strides=window["strides"],
        start_padding=padding,
        end_padding=padding,
        include_padding=include_padding,
    )
    np.testing.assert_allclose(found, x.grad.numpy(), rtol=1e-6, atol=1e-5)


@property_test
@given(window=windows(dimensions=2, dilated=True), seed=SEEDS)
def test_gradients_of_maxima_are_those_of_automatic_differentiation(window: dict[str, Any], seed: int) -> None:
    torch = pytest.importorskip("torch")
    taps, dilations = window["window_size"], window["dilations"]
    padding = [min(each) for each in zip(window["start_padding"], [k // 2 for k in taps], strict=True)]
    sizes = [max(size, (k - 1) * d + 1) for size, k, d in zip(window["sizes"], taps, dilations, strict=True)]
    values = np.random.default_rng(seed).permutation(2 * 3 * sizes[0] * sizes[1]).reshape(2, 3, *sizes)
    x = torch.from_numpy(values.astype(np.float64)).requires_grad_()
    y = torch.nn.functional.max_pool2d(x, taps, window["strides"], padding, dilations)
    gradient = numbers(seed, *y.shape)
    y.backward(torch.from_numpy(gradient.astype(np.float64)))
    options = {"strides": window["strides"], "dilations": dilations, "start_padding": padding, "end_padding": padding}
    found = anydml.max_pooling_grad(values.astype(np.float32), gradient, taps, **options)
    np.testing.assert_allclose(found, x.grad.numpy(), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("engine", ENGINES)
@property_test
@given(
    window=windows(dimensions=2),
    dtype=st.sampled_from(["f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"]),
    index=st.sampled_from([np.uint32, np.uint64]),
    seed=SEEDS,
)
def test_maxima_are_put_back_where_they_were(
    engine: str, window: dict[str, Any], dtype: str, index: Any, seed: int
) -> None:
    """Their gradients are 1 at just these places, of windows that lie on elements."""
    x = np.random.default_rng(seed).integers(1, 100, (2, 3, *window["sizes"])).astype(dtype)
    options = {"strides": window["strides"]}
    taps = [min(k, size) for k, size in zip(window["window_size"], window["sizes"], strict=True)]
    maxima, indices = anydml.max_pooling(x, taps, **options, indices_dtype=index, device=engine)
    y = anydml.max_unpooling(maxima, indices, window["sizes"], device=engine)
    expected = np.zeros_like(x)
    expected.reshape(-1)[indices.astype(np.intp)] = maxima
    assert_same(y, expected)
    where = anydml.max_pooling_grad(x.astype(np.float32), np.ones_like(maxima, np.float32), taps, **options)
    np.testing.assert_array_equal(where > 0, y > 0)


@pytest.mark.parametrize("engine", ENGINES)
@property_test
@given(count=st.integers(1, 60), size=st.integers(1, 40), most=st.integers(1, 60), seed=SEEDS)
def test_of_equal_indices_the_last_one_counts(engine: str, count: int, size: int, most: int, seed: int) -> None:
    indices = np.random.default_rng(seed).integers(0, most, (1, 1, 1, count))
    x = np.arange(1, count + 1, dtype=np.uint16).reshape(indices.shape)
    expected = np.zeros((1, 1, 1, size), x.dtype)
    for place, value in zip(indices.flat, x.flat, strict=True):
        if place < size:
            expected[..., place] = value
    assert_same(anydml.max_unpooling(x, indices.astype(np.uint64), (1, size), device=engine), expected)


@pytest.mark.parametrize("index", [np.uint32, np.uint64])
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.int64])
def test_many_maxima_are_put_back(dtype: Any, index: Any) -> None:
    """More than are looked at together: in order as pooling has them, and in none."""
    rng = np.random.default_rng(7)
    for indices in (np.arange(0, 1_200_000, 3), rng.permutation(1_300_000)[:400_000]):
        x = rng.integers(1, 100, (1, 4, 400, 250)).astype(dtype)
        places = indices.reshape(x.shape).astype(index)
        expected = np.zeros(1_200_000, dtype)
        is_there = indices < expected.size
        expected[indices[is_there]] = x.reshape(-1)[is_there]
        found = anydml.max_unpooling(x, places, (500, 600))
        np.testing.assert_array_equal(found.reshape(-1), expected)


def test_other_libraries_words() -> None:
    x = np.zeros((1, 1, 4, 4), np.float32)
    with pytest.raises(anydml.DMLError, match="Did you mean window_size"):
        anydml.max_pooling_grad(x, x, kernel_size=1)
    with pytest.raises(anydml.DMLError, match="Did you mean output_sizes"):
        anydml.average_pooling_grad(x, window_size=1, output_size=4)
    with pytest.raises(anydml.DMLError, match="Did you mean output_sizes"):
        anydml.max_unpooling(x, x.astype(np.uint32), output_size=4)
