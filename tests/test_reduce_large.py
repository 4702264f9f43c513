"""Reductions of shapes that reach what small ones do not: chunks, strips, tiles, several threads; against exact
arithmetic, and with the same bits however many threads there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import fsum, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import anydml
from anydml import ReduceFunction
from exact import FLOATS
from harness import bits

pytestmark = [pytest.mark.native, pytest.mark.slow]

property_test = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
ORDERED = ("float32", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
WHOLE = ("int32", "uint32", "int64", "uint64")
MOST = 40_000
LARGE = [
    ((300_007,), (0,)),
    ((700, 1001), (0,)),
    ((700, 1001), (1,)),
    ((700, 1001), (0, 1)),
    ((200_003, 3), (0,)),
    ((200_003, 3), (1,)),
    ((40_001, 17), (0,)),
    ((9, 70_001), (0,)),
    ((50, 7, 2003), (1,)),
    ((5001, 11, 13), (1,)),
    ((30, 5, 5003), (0, 2)),
    ((31, 1201, 21), (0, 2)),
    ((5003, 9), (1,)),
    ((901, 61, 31), (1,)),
    ((501, 200, 3), (1,)),
]


@st.composite
def arrays(draw: st.DrawFn, dtypes: Sequence[str]) -> tuple[np.ndarray, list[int]]:
    """An array with gaps, transposed, backward or broadcast, and axes."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    dimensions = draw(st.integers(1, 5))
    weights = draw(st.lists(st.floats(0, 1), min_size=dimensions, max_size=dimensions))
    elements = MOST ** draw(st.floats(0, 1))
    shape = [max(1, int(elements ** (weight / max(sum(weights), 1e-3)))) for weight in weights]
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 2, -1, -2]), min_size=dimensions, max_size=dimensions))
    order = draw(st.permutations(range(dimensions)))
    held = np.zeros([shape[i] * abs(steps[i]) for i in order], dtype)
    held = held[tuple(slice(None, None, steps[i]) for i in order)].transpose(np.argsort(order))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if dtype.kind == "f":
        held[...] = rng.normal(size=shape).round(draw(st.sampled_from([0, 3])))
    else:
        limits = np.iinfo(dtype)
        few = draw(st.booleans())
        low, high = (0, 4) if few else (int(limits.min), int(limits.max))
        held[...] = rng.integers(low, high, shape, dtype, endpoint=True)
    if draw(st.integers(0, 4)) == 0:
        held = np.broadcast_to(held.take([0], 0), shape)
    axes = draw(st.lists(st.integers(0, dimensions - 1), min_size=1, max_size=dimensions, unique=True))
    return held, axes


def rows(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    kept = [i for i in range(x.ndim) if i not in axes]
    return x.transpose(*kept, *sorted(axes)).reshape(-1, prod(x.shape[i] for i in axes))


def reduced(function: str, x: np.ndarray, axes: Sequence[int], **options: Any) -> np.ndarray:
    y = anydml.reduce(x, function, list(axes), device="cpu", **options)
    assert y.shape == tuple(1 if i in axes else size for i, size in enumerate(x.shape))
    return np.asarray(y).ravel()


def wrapped(value: int, dtype: np.dtype[Any]) -> int:
    low = int(np.iinfo(dtype).min)
    return (value - low) % 2 ** (8 * dtype.itemsize) + low


INTEGERS: dict[str, Callable[[list[int]], int]] = {
    "sum": sum,
    "l1": lambda row: sum(map(abs, row)),
    "sum_square": lambda row: sum(value * value for value in row),
}


@pytest.mark.parametrize("function", INTEGERS)
@property_test
@given(data=st.data())
def test_sums_of_integers_wrap(function: str, data: st.DataObject) -> None:
    x, axes = data.draw(arrays(WHOLE))
    exact = [wrapped(INTEGERS[function](row), x.dtype) for row in rows(x, axes).tolist()]
    assert reduced(function, x, axes).tolist() == exact


@property_test
@given(data=st.data())
def test_products_of_integers_wrap(data: st.DataObject) -> None:
    x, axes = data.draw(arrays(WHOLE))
    x = x | x.dtype.type(1)
    exact = []
    for row in rows(x, axes).tolist():
        product = 1
        for value in row:
            product = product * value % 2**64
        exact.append(wrapped(product, x.dtype))
    assert reduced("multiply", x, axes).tolist() == exact


@property_test
@given(data=st.data())
def test_the_largest_and_the_smallest_and_where(data: st.DataObject) -> None:
    x, axes = data.draw(arrays(ORDERED))
    if x.dtype.kind == "f" and data.draw(st.booleans()):
        odd = np.random.default_rng(x.size).random(x.shape)
        x = np.where(odd < 0.4, np.nan, np.where(odd < 0.6, -np.inf, np.where(odd < 0.7, np.inf, x))).astype(x.dtype)
    for function, pick in (("max", np.fmax), ("min", np.fmin)):
        found = reduced(function, x, axes)
        every = rows(x, axes)
        np.testing.assert_array_equal(found, pick.reduce(every, axis=1))
        index = getattr(anydml, f"arg{function}")
        for reverse in (False, True):
            at = np.asarray(index(x, axes, reverse=reverse, device="cpu")).ravel()
            for row, value, i in zip(every, found, at.tolist(), strict=True):
                equal = np.flatnonzero((row == value) | np.isnan(value)).tolist()
                assert i == equal[-1 if reverse else 0]


def near(value: Any, exact: float | Fraction, slack: float) -> bool:
    """Within a unit in the last place, and a rounding of the wider type for each element."""
    float_ = FLOATS[value.dtype]
    if np.isinf(value):  # what is more than halfway to the number behind the largest
        return bool(Fraction(float(np.sign(value))) * Fraction(exact) > Fraction(float(np.finfo(value.dtype).max)))
    return abs(Fraction(float(value)) - Fraction(exact)) <= float_.ulp(value) + Fraction(slack) * float_.unit


TERMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sum": lambda row: row,
    "average": lambda row: row,
    "l1": np.abs,
    "sum_square": np.square,
}


@pytest.mark.parametrize("function", TERMS)
@property_test
@given(data=st.data())
def test_sums_of_floats(function: str, data: st.DataObject) -> None:
    x, axes = data.draw(arrays(("float32", "float16")))
    for row, value in zip(rows(x, axes), reduced(function, x, axes), strict=True):
        terms = TERMS[function](row.astype(np.float64))
        parts = len(row) if function == "average" else 1
        assert near(value, fsum(terms) / parts, len(row) * fsum(abs(terms)) / parts)


@property_test
@given(data=st.data())
def test_roots_and_logarithms(data: st.DataObject) -> None:
    x, axes = data.draw(arrays(("float32", "float16")))
    x = abs(x) + x.dtype.type(0.5)
    for row, root, logarithm in zip(rows(x, axes), reduced("l2", x, axes), reduced("log_sum", x, axes), strict=True):
        wide = row.astype(np.float64)
        exact = np.sqrt(fsum(wide * wide))
        assert near(root, exact, len(row) * exact)
        # The logarithm of what has an error of a rounding for each element.
        assert near(logarithm, np.log(fsum(wide)), len(row) + 4)


@property_test
@given(data=st.data())
def test_logarithms_of_sums_of_exponentials(data: st.DataObject) -> None:
    x, axes = data.draw(arrays(("float32", "float16")))
    for row, value in zip(rows(x, axes), reduced("log_sum_exp", x, axes), strict=True):
        wide = row.astype(np.longdouble)
        largest = wide.max()
        rest = np.delete(np.exp(wide - largest), wide.argmax()).sum()
        exact = largest + np.log1p(rest)
        # The unit is that of the largest element, where the logarithm takes it away.
        slack = float(np.spacing(abs(row.dtype.type(largest)))) if abs(exact) < abs(largest) else 0.0
        assert abs(np.longdouble(value) - exact) <= np.spacing(abs(value)) + slack


@property_test
@given(data=st.data())
def test_products_of_floats(data: st.DataObject) -> None:
    """Also where a part of them leaves the range of doubles."""
    x, axes = data.draw(arrays(("float32",)))
    rng = np.random.default_rng(x.size)
    x = np.ldexp(rng.uniform(1, 2, x.shape), rng.integers(-100, 100, x.shape)).astype(np.float32)
    for row, value in zip(rows(x, axes), reduced("multiply", x, axes), strict=True):
        m, e = 1.0, 0
        for each in row.tolist():
            m, more = np.frexp(m * each)
            e += int(more)
        with np.errstate(over="ignore", under="ignore"):
            exact = np.float32(np.ldexp(m, max(-2000, min(2000, e))))
        np.testing.assert_allclose(value, exact, rtol=2e-7, atol=1e-45)


@pytest.mark.parametrize("dtype", ORDERED)
def test_indices_of_few_and_many_short_lines(dtype: str) -> None:
    """Of elements many of which are equal, and of lines of which some have no number."""
    rng = np.random.default_rng(5)
    for length in (2, 3, 5, 7, 8, 9, 16, 17, 31, 33, 64, 65, 130):
        for lines in (1, 5, 17, 64, 131):
            x = rng.integers(0, 4, (lines, length)).astype(dtype)
            for kind, y in (("rows", x), ("columns", np.asfortranarray(x)), ("gapped", np.tile(x, 2)[:, :length])):
                where = f"{kind} {lines} x {length}"
                for function, library in ((anydml.argmax, np.argmax), (anydml.argmin, np.argmin)):
                    np.testing.assert_array_equal(function(y, 1).ravel(), library(y, 1), where)
                    last = length - 1 - library(y[:, ::-1], 1)
                    np.testing.assert_array_equal(function(y, 1, reverse=True).ravel(), last, where)
                np.testing.assert_array_equal(anydml.reduce(y, "MAX", 1).ravel(), y.max(1), where)
                if np.dtype(dtype).kind == "f":
                    holes = np.where(rng.random(y.shape) < 0.3, np.dtype(dtype).type(np.nan), y)
                    holes[::7] = np.nan
                    expected = np.argmax(np.where(np.isnan(holes), -1, holes), 1)
                    np.testing.assert_array_equal(anydml.argmax(holes, 1).ravel(), expected, where)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16", "float32", "int64"])
@pytest.mark.parametrize(
    "shape",
    [
        *((70, 61, 31), (3, 128, 31), (5, 129, 20), (90, 50, 3), (70, 200, 3), (7, 1000, 5), (900, 7, 5)),
        *((20, 255, 7), (40, 5, 100), (20, 64, 128)),
    ],
)
def test_indices_of_few_columns_in_planes(dtype: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(6).integers(0, 4, shape).astype(dtype)
    np.testing.assert_array_equal(anydml.argmax(x, 1)[:, 0], np.argmax(x, 1))
    np.testing.assert_array_equal(anydml.argmin(x, 1, reverse=True)[:, 0], shape[1] - 1 - np.argmin(x[:, ::-1], 1))
    np.testing.assert_array_equal(anydml.reduce(x, "MIN", 1)[:, 0], x.min(1))


def requests() -> Iterator[tuple[str, str, tuple[int, ...], tuple[int, ...]]]:
    for shape, axes in LARGE:
        for function in ReduceFunction:
            for dtype in ("float32", "float16"):
                yield function.name, dtype, shape, axes
        for function, dtype in (("SUM", "int64"), ("MAX", "int8"), ("ARGMIN", "int8"), ("ARGMAX", "int16")):
            yield function, dtype, shape, axes


@pytest.mark.parametrize(("function", "dtype", "shape", "axes"), list(requests()))
def test_the_same_bits_for_every_number_of_threads(
    function: str, dtype: str, shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    """Of what another order of combining would change: what is large is taken away again."""
    rng = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        large = 2**14 if dtype == "float16" else 2**40
        terms = np.array([large, 1, large / 16, -large, -large / 16])
        x = (terms[np.arange(prod(shape)) % 5] * rng.uniform(0.9, 1, prod(shape))).astype(dtype).reshape(shape)
        x = np.exp2(x / large * 4).astype(dtype) if function in ("MULTIPLY", "LOG_SUM", "LOG_SUM_EXP") else x
    else:
        x = rng.integers(-100, 100, shape).astype(dtype)
    with threadpool_limits(1, "openmp"):
        one = reduced(function, x, axes)
    for threads in (2, 16):
        with threadpool_limits(threads, "openmp"):
            found = reduced(function, x, axes)
        np.testing.assert_array_equal(found.view(bits(found)), one.view(bits(one)))
    with threadpool_limits(2, "openmp"):
        turned = reduced(function, np.asfortranarray(x), axes)
    if function.startswith(("ARG", "M")) and function != "MULTIPLY":
        np.testing.assert_array_equal(turned, one)


def test_a_long_sum_of_half_precision() -> None:
    """A running sum of FLOAT16 would stay at 2048, one of FLOAT32 at 2^24."""
    for shape, axis in (((2**25, 1), 0), ((1, 2**25), 1), ((2**25, 3), 0)):
        x = np.broadcast_to(np.float16(1), shape)
        assert (reduced("average", x, [axis]) == 1).all()
        packed = np.ones(shape, np.float16)
        assert (reduced("average", packed, [axis]) == 1).all()
