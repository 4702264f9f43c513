"""Logic, bits and quantisation against exact arithmetic: Python's integers and fractions."""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anydml
from anydml import DMLError, DMLTypeError
from harness import ENGINES

every_engine = pytest.mark.parametrize("engine", ENGINES)

FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
SCALES = st.floats(2.0**-60, 2.0**60, width=32)


def single(exact: Fraction) -> Fraction:
    """The FLOAT32 nearest to a number in its normal range, of two the even one."""
    if not exact:
        return exact
    exponent = 0
    while abs(exact) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(exact) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - 23, -149)
    return round(exact / unit) * unit


def quantised(quotient: Fraction, zero_point: int, low: int, high: int) -> int:
    return max(low, min(round(quotient) + zero_point, high))


@every_engine
@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(FINITE, SCALES, st.integers(-128, 127)), min_size=1, max_size=9))
def test_quotients_are_rounded_to_single_precision_and_then_to_integers(engine: str, drawn: Any) -> None:
    x, scale, zero_point = (np.array(side) for side in zip(*drawn, strict=True))
    x, scale = x.astype(np.float32), scale.astype(np.float32)
    found = anydml.quantize_linear(x, scale, zero_point, axis=0, output_dtype="int8", device=engine)
    expected = [
        quantised(single(Fraction(float(a)) / Fraction(float(b))), int(z), -128, 127)
        for a, b, z in zip(x, scale, zero_point, strict=True)
    ]
    assert found.tolist() == expected


@every_engine
@settings(max_examples=100, deadline=None)
@given(st.integers(0, 255), st.integers(0, 255), SCALES)
def test_dequantised_numbers_of_8_bits_are_rounded_once(engine: str, x: int, zero_point: int, scale: float) -> None:
    found = anydml.dequantize_linear(np.array([x], np.uint8), scale, zero_point, device=engine)
    assert Fraction(float(found[0])) == single((x - zero_point) * Fraction(scale))


@every_engine
@settings(max_examples=100, deadline=None)
@given(st.integers(0, 255), st.integers(-128, 127), *[st.integers(-12, 12)] * 3, st.integers(0, 255))
def test_sums_of_quantised_numbers(engine: str, a: int, b: int, i: int, j: int, k: int, zero_point: int) -> None:
    """With scales that are powers of 2 all is exact in double precision."""
    found = anydml.quantized_linear_add(
        np.array([a], np.uint8),
        2.0**i,
        np.array([b], np.int8),
        2.0**j,
        output_scale=2.0**k,
        a_zero_point=100,
        output_zero_point=zero_point,
        device=engine,
    )
    total = (a - 100) * Fraction(2) ** i + b * Fraction(2) ** j
    assert found.tolist() == [quantised(total / Fraction(2) ** k, zero_point, 0, 255)]


@pytest.mark.parametrize("dtypes", [("uint8", "uint8", "uint8"), ("int8", "uint8", "int8"), ("uint8", "int8", "uint8")])
@pytest.mark.parametrize(
    ("a_scale", "b_scale", "scale"),
    [
        (0.021, 0.033, 0.047),  # next to no integer
        (1 / 32, 1 / 32, 1 / 32),
        (0.1, 0.1, 0.2),  # every other sum is a tie
        (0.3, 0.3, 0.2),  # almost
        (-0.375, 1.5, 0.125),
        (1000.0, -1000.0, 0.5),  # beyond what is computed in single precision
        (0.5, 0.0, 2.0**-149),
        (0.5, np.inf, 1.0),
        (0.5, 0.25, 0.0),
    ],
)
def test_sums_of_all_pairs_of_quantised_numbers(
    dtypes: tuple[str, str, str], a_scale: float, b_scale: float, scale: float
) -> None:
    a, b = [np.arange(256).astype(dtype) for dtype in dtypes[:2]]
    a, b = np.repeat(a, 256), np.tile(b, 256)
    zero_points = [np.array(value).astype(dtype) for value, dtype in zip((100, 7, 120), dtypes, strict=True)]
    found = anydml.quantized_linear_add(
        a,
        a_scale,
        b,
        b_scale,
        output_scale=scale,
        a_zero_point=zero_points[0],
        b_zero_point=zero_points[1],
        output_zero_point=zero_points[2],
    )
    of_a, of_b, of_output = [float(np.float32(each)) for each in (a_scale, b_scale, scale)]
    with np.errstate(all="ignore"):
        total = (a.astype(float) - zero_points[0]) * of_a + (b.astype(float) - zero_points[1]) * of_b
        rounded = np.rint(total / of_output)
    rounded[np.isnan(rounded)] = 0
    limits = np.iinfo(dtypes[2])
    np.testing.assert_array_equal(found, np.clip(rounded + zero_points[2], limits.min, limits.max).astype(dtypes[2]))


@pytest.mark.parametrize("output", ["int8", "uint8"])
@pytest.mark.parametrize("scale", [0.1, 1 / 64, -3.0, 0.0, 2.0**-120, np.inf])
def test_numbers_of_all_kinds_are_quantised_by_one_scale(output: str, scale: float) -> None:
    rng = np.random.default_rng(6)
    x = (rng.integers(-4000, 4000, 5000) / 128).astype(np.float32)
    x[::61], x[::67], x[::71] = np.nan, np.inf, -np.inf
    x[::73] = 3e38
    with np.errstate(all="ignore"):
        quotient = np.rint(x / np.float32(scale)).astype(float)
    quotient[np.isnan(quotient)] = 0
    limits = np.iinfo(output)
    expected = np.clip(quotient + 7, limits.min, limits.max).astype(output)
    np.testing.assert_array_equal(anydml.quantize_linear(x, scale, np.array(7, output)), expected)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int16", "uint16", "int8", "uint8"])
@pytest.mark.parametrize("output", [np.float32, np.float16])
@pytest.mark.parametrize("are_one", [(True, True), (True, False), (False, True), (False, False)])
def test_scales_and_zero_points_that_are_one_or_many(dtype: str, output: Any, are_one: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(5)
    limits = np.iinfo(dtype)
    # Small numbers first, which 24 bits hold, then some of all, and at last the ends.
    x = np.concatenate([np.arange(100), rng.integers(limits.min, limits.max, 400), [limits.min, limits.max] * 9])
    x = x.astype(dtype)
    scale = rng.uniform(0.001, 0.002, x.size).astype(output)
    zero_point = rng.integers(0, 100, x.size).astype(dtype)
    scale[:] = scale[0] if are_one[0] else scale
    zero_point[:] = zero_point[0] if are_one[1] else zero_point
    found = anydml.dequantize_linear(
        x, scale[0] if are_one[0] else scale, zero_point[0] if are_one[1] else zero_point, axis=0
    )
    assert found.dtype == output
    with np.errstate(over="ignore"):
        exact = (x.astype(float) - zero_point) * scale.astype(float)
        np.testing.assert_array_equal(found, exact.astype(output))


def test_what_quotients_are_decides_halves() -> None:
    """In FLOAT32 3 / 10 of it is a half; exactly it is below, or above."""
    scale = np.float32(0.1)
    for number in range(1, 40, 2):
        x = np.float32(number / 20)
        expected = quantised(single(Fraction(float(x)) / Fraction(float(scale))), 0, 0, 255)
        assert anydml.quantize_linear(np.array([x]), scale).tolist() == [expected]


COMPARISONS = {
    "equals": operator.eq,
    "less_than": operator.lt,
    "greater_than": operator.gt,
    "less_than_or_equal": operator.le,
    "greater_than_or_equal": operator.ge,
}


@every_engine
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_comparisons_of_long_integers_are_exact(engine: str, dtype: Any, data: Any) -> None:
    limits = np.iinfo(dtype)
    ends = st.sampled_from([limits.min, limits.max, limits.max - 1, 2**53, 2**53 + 1])
    numbers = st.one_of(ends, st.integers(limits.min, limits.max))
    a, b = data.draw(numbers), data.draw(numbers)
    for name, function in COMPARISONS.items():
        found = getattr(anydml, name)(np.array([a], dtype), np.array([b], dtype), device=engine)
        assert found.dtype == np.bool_
        assert found.tolist() == [function(a, b)]


@every_engine
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_bits_are_those_of_pythons_integers(engine: str, dtype: Any, data: Any) -> None:
    ones = int(np.iinfo(dtype).max)
    a, b = data.draw(st.integers(0, ones)), data.draw(st.integers(0, ones))
    x, y, width = np.array([a], dtype), np.array([b], dtype), ones.bit_length()
    expected = {
        "bit_and": a & b,
        "bit_or": a | b,
        "bit_xor": a ^ b,
        "bit_shift_left": (a << b % width) & ones,
        "bit_shift_right": a >> b % width,
    }
    for name, number in expected.items():
        assert getattr(anydml, name)(x, y, device=engine).tolist() == [number]
    assert anydml.bit_not(x, device=engine).tolist() == [ones - a]
    assert anydml.bit_count(x, device=engine).tolist() == [a.bit_count()]


# What functions take and give


@pytest.fixture(params=["numpy", "torch"])
def library(request: pytest.FixtureRequest) -> Any:
    """What makes arrays of its kind, and their type of truth values."""
    if request.param == "numpy":
        return np.asarray, np.dtype(np.bool_)
    torch = pytest.importorskip("torch")
    return torch.tensor, torch.bool


def test_truth_values_are_the_librarys(library: Any) -> None:
    make, bool_ = library
    x = make(np.float32([1, 2, 3]))
    mask = anydml.greater_than(x, 1.5)
    results = {
        "greater_than": (mask, [False, True, True]),
        "logical_not": (anydml.logical_not(mask), [True, False, False]),
        "logical_and": (anydml.logical_and(mask, make([True, True, False])), [False, True, False]),
        "with a list": (anydml.logical_or(mask, [True, False, False]), [True, True, True]),
        "with one": (anydml.logical_xor(mask, True), [True, False, False]),
        "bit_and": (anydml.bit_and(mask, make([True, True, False])), [False, True, False]),
        "bit_not": (anydml.bit_not(mask), [True, False, False]),
        "where": (anydml.where(mask, mask, False), [False, True, True]),
        "is_nan": (anydml.is_nan(x), [False, False, False]),
    }
    for name, (found, expected) in results.items():
        assert type(found) is type(x), name
        assert (found.dtype, found.tolist()) == (bool_, expected), name
    assert anydml.where(mask, x, 0).tolist() == [0, 2, 3]
    assert anydml.where(mask, 1.5, 0).tolist() == [0, 1.5, 1.5]
    out = anydml.logical_not(mask)
    assert anydml.less_than(x, 2.5, out=out) is out
    assert out.tolist() == [True, True, False]


def test_truth_values_in_what_is_given_have_its_type() -> None:
    x = np.float32([1, 2])
    for dtype in (np.bool_, np.uint8, np.uint32):
        out = np.full((2, 2), 9, dtype).T[:, 0]
        assert anydml.equals(x, 2, out=out) is out
        assert out.tolist() == [0, 1]
    with pytest.raises(DMLError, match=r"EQUALS.out: found float32 .*, expected uint8 .*\(A4\)"):
        anydml.equals(x, 2, out=np.empty(2, np.float32))


def test_any_byte_but_0_is_true_and_32_bits_stay_so() -> None:
    assert anydml.logical_not(np.uint8([0, 1, 2, 255])).tolist() == [True, False, False, False]
    found = anydml.logical_and(np.uint32([256, 0]), np.uint32([1 << 31, 1]))
    assert (found.dtype, found.tolist()) == (np.uint32, [1, 0])


def test_truth_values_are_not_taken_for_numbers() -> None:
    mask = np.array([True, False])
    with pytest.raises(DMLTypeError, match=r"ADD.a: found bool.*\(S3\)|ADD.a: found .*bool"):
        anydml.add(mask, mask)
    with pytest.raises(DMLError, match=r"EQUALS.b.dtype"):
        anydml.equals(np.float32([1, 2]), mask)


@pytest.mark.parametrize("mode", ["positive", "POSITIVE", anydml.IsInfinityMode.POSITIVE])
def test_modes_of_infinity(mode: Any) -> None:
    x = np.float16([np.inf, -np.inf, 0])
    assert anydml.is_infinity(x).tolist() == [True, True, False]
    assert anydml.is_infinity(x, mode).tolist() == [True, False, False]
    with pytest.raises(DMLTypeError, match=r"IS_INFINITY.infinity_mode.*\(F4\)"):
        anydml.is_infinity(x, "both")


# Scales and zero points


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("scale", "zero_point", "axis"),
    [
        (0.5, None, 1),
        (2, 3, 1),
        (np.float32(0.5), np.uint8(3), 1),
        ([0.5, 1, 2], [1, 2, 3], 1),
        ([0.5, 1, 2, 4], 7, -1),
        (np.float32([0.5, 1]), np.uint8([1, 2]), 0),
        (np.float32([[[0.5], [1], [2]]]), np.uint8([[[1, 2, 3, 4]]]), 1),
        ([3.0], [5], 1),
    ],
)
def test_scales_of_a_tensor_and_of_an_axis(scale: Any, zero_point: Any, axis: int) -> None:
    def placed(value: Any) -> np.ndarray:
        array = np.asarray(0 if value is None else value, np.float64)
        is_along = array.ndim == 1 and array.size > 1
        return array.reshape([-1 if d == axis % 3 else 1 for d in range(3)]) if is_along else array

    expected = np.clip(np.rint(X / placed(scale)) + placed(zero_point), 0, 255).astype(np.uint8)
    found = anydml.quantize_linear(X, scale, zero_point, axis=axis)
    np.testing.assert_array_equal(found, expected)
    back = anydml.dequantize_linear(found, scale, zero_point, axis=axis)
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, (expected - placed(zero_point)) * placed(scale))
    graph = anydml.Graph()
    x = graph.input(X)
    both = anydml.quantize_linear(x, scale, zero_point, axis=axis)
    compiled = graph.compile([both, anydml.dequantize_linear(both, scale, zero_point, axis=axis)])
    for result, wanted in zip(compiled(X), (found, back), strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_types_of_results() -> None:
    half = X.astype(np.float16)
    assert anydml.quantize_linear(half, 0.5).dtype == np.uint8
    assert anydml.quantize_linear(half, 0.5, np.int8(1)).dtype == np.int8
    assert anydml.quantize_linear(X.astype(np.int32), 0.5, output_dtype="int8").dtype == np.int8
    assert anydml.quantize_linear(X, 0.5, out=np.empty(X.shape, np.int8)).dtype == np.int8
    codes = np.arange(3, dtype=np.uint8)
    assert anydml.dequantize_linear(codes, np.float16(0.5)).dtype == np.float16
    assert anydml.dequantize_linear(codes, 0.5, out=np.empty(3, np.float16)).dtype == np.float16


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: anydml.quantize_linear(X, None), r"QUANTIZE_LINEAR.scale: found None.*\(A9\)"),
        (lambda: anydml.quantize_linear(X, "1"), r"QUANTIZE_LINEAR.scale.*\(A1\)"),
        (lambda: anydml.quantize_linear(X, 1.0, 300), r"zero_point: found int 300, expected 0 to 255.*\(A9\)"),
        (lambda: anydml.quantize_linear(X, [1.0, 2.0]), r"scale: found shape \(1, 2, 1\).*\(A13\)"),
        (lambda: anydml.quantize_linear(X, [1.0] * 3, axis=3), r"axis: found int 3, expected -3 to 2.*\(A5\)"),
        (lambda: anydml.quantize_linear(X, 1.0, output_dtype="float32"), r"\(S3\)|\(A9\)"),
        (lambda: anydml.dequantize_linear(X, 1.0), r"DEQUANTIZE_LINEAR.x.dtype: found float32.*\(S3\)"),
        (
            lambda: anydml.quantized_linear_add(X[0, 0].astype(np.uint8), [1.0, 2.0], np.uint8([1]), 1, output_scale=1),
            r"QUANTIZED_LINEAR_ADD.a_scale.shape: found .*, expected 1 in each dimension \(C3\)",
        ),
    ],
)
def test_what_is_no_scale(call: Any, message: str) -> None:
    with pytest.raises(DMLError, match=message):
        call()
