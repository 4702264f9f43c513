"""The element-wise operators, over random values and the ends of each type, against exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from math import floor, isqrt
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import TensorDataType
from anydml.core.strided_layout import DTYPES
from anydml.operators import spec
from cases import tensor_of
from exact import FLOATS
from harness import ENGINE, bits, engines_of, run

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

COUNT = 400
INTEGERS = [data_type for data_type, dtype in DTYPES.items() if dtype.kind in "iu"]


@pytest.fixture(scope="module", autouse=True, params=dict.fromkeys((ENGINE, "cpu")))
def engine(request: pytest.FixtureRequest) -> str:
    """Where all is computed; by the reference what that does not serve."""
    global where
    where = request.param
    return where


def computed(operator: str, *inputs: np.ndarray, **options: Any) -> np.ndarray:
    found = spec(f"ELEMENT_WISE_{operator}")
    *names, output = found.tensors
    tensors = {name: tensor_of(x) for name, x in zip(names, inputs, strict=True)}
    desc = found.desc(**tensors, **{output: tensor_of(inputs[0])}, **options)
    return run(where if where in engines_of(desc) else ENGINE, desc, inputs)[0]


def integers(data_type: TensorDataType, seed: int) -> np.ndarray:
    """Of all sizes, the ends and what is next to them and to 0 among them."""
    rng = np.random.default_rng(seed)
    dtype = DTYPES[data_type]
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, COUNT, dtype, endpoint=True) >> rng.integers(0, limits.bits, COUNT, dtype)
    ends = [limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1, 2, 3] + [-1, -2, -3] * (limits.min < 0)
    return np.concatenate([x, rng.choice(np.array(ends, dtype), COUNT)])[rng.permutation(2 * COUNT)]


def floats(dtype: type[np.floating[Any]], seed: int) -> np.ndarray:
    """Any bits that are a finite number, among them some of ordinary size."""
    rng = np.random.default_rng(seed)
    x = np.frombuffer(rng.bytes(COUNT * np.dtype(dtype).itemsize), dtype)
    return np.concatenate([x[np.isfinite(x)], rng.uniform(-8, 8, COUNT).astype(dtype)])


def wrapped(value: int, dtype: np.dtype[Any]) -> int:
    limits = np.iinfo(dtype)
    return (value - int(limits.min)) % 2**limits.bits + int(limits.min)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else -1


INTEGER_RESULTS: dict[str, Callable[[int, int], int]] = {
    "ADD": lambda a, b: a + b,
    "SUBTRACT": lambda a, b: a - b,
    "MULTIPLY": lambda a, b: a * b,
    "DIVIDE": truncated,
    "MODULUS_TRUNCATE": lambda a, b: a - b * truncated(a, b) if b else -1,
    "MODULUS_FLOOR": lambda a, b: a % b if b else -1,
    "DIFFERENCE_SQUARE": lambda a, b: (a - b) ** 2,
    "MAX": max,
    "MIN": min,
    "MEAN": lambda a, b: truncated(a + b, 2),
    "POW": lambda x, e: x**e if e >= 0 else -1 if x == 0 else x ** (-e) if abs(x) == 1 else 0,
}


def types_of(operator: str) -> list[TensorDataType]:
    rows = spec(f"ELEMENT_WISE_{operator}").tensors
    return [data_type for data_type in INTEGERS if data_type in rows["OutputTensor"].data_types]


@pytest.mark.parametrize(
    ("operator", "data_type"),
    [(operator, data_type) for operator in INTEGER_RESULTS for data_type in types_of(operator)],
    ids=lambda each: each if isinstance(each, str) else each.name,
)
def test_integers_of_two(operator: str, data_type: TensorDataType) -> None:
    a, b = integers(data_type, 1), integers(data_type, 2)
    if operator == "POW":  # the exact power has to fit into memory
        b = (b % 40 - (20 if a.dtype.kind == "i" else 0)).astype(b.dtype)
    exact = [wrapped(INTEGER_RESULTS[operator](x, y), a.dtype) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_array_equal(computed(operator, a, b), np.array(exact, a.dtype))


@pytest.mark.parametrize("data_type", INTEGERS, ids=lambda each: each.name)
def test_integers_of_one(data_type: TensorDataType) -> None:
    x = integers(data_type, 3)
    kinds = {operator: types_of(operator) for operator in ("IDENTITY", "ABS", "NEGATE", "CLIP1", "CLIP", "THRESHOLD")}
    low, high = sorted(integers(data_type, 4)[:2].tolist())
    exact: dict[str, Callable[[int], int]] = {"IDENTITY": int, "ABS": abs, "NEGATE": lambda value: -value}
    for operator, function in exact.items():
        if data_type in kinds[operator]:
            expected = [wrapped(function(value), x.dtype) for value in x.tolist()]
            np.testing.assert_array_equal(computed(operator, x), np.array(expected, x.dtype))
    limited = np.array([max(low, min(value, high)) for value in x.tolist()], x.dtype)
    ends = {"MinMaxDataType": data_type, "Min": low, "Max": high}
    np.testing.assert_array_equal(computed("CLIP1", x, **ends), limited)
    # These ends are integers of single precision, and between integers.
    limited = np.array([max(3, min(value, 100)) for value in x.tolist()], x.dtype)
    np.testing.assert_array_equal(computed("CLIP", x, Min=2.5, Max=100.5), limited)
    gradient = integers(data_type, 7)
    passed = np.where([low < value < high for value in x.tolist()], gradient, 0)
    np.testing.assert_array_equal(computed("CLIP_GRAD1", x, gradient, **ends), passed)
    passed = np.where([3 < value < 100 for value in x.tolist()], gradient, 0)
    np.testing.assert_array_equal(computed("CLIP_GRAD", x, gradient, Min=2.5, Max=100.5), passed)
    signs = [(value > 0) - (value < 0) for value in x.tolist()]
    np.testing.assert_array_equal(computed("SIGN", x), np.array(signs, x.dtype))
    if data_type in kinds["THRESHOLD"]:
        raised = np.array([max(3, value) for value in x.tolist()], x.dtype)
        np.testing.assert_array_equal(computed("THRESHOLD", x, Min=2.5), raised)


FLOAT_RESULTS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "ADD": lambda a, b: a + b,
    "SUBTRACT": lambda a, b: a - b,
    "MULTIPLY": lambda a, b: a * b,
    "DIVIDE": lambda a, b: a / b,
    "MEAN": lambda a, b: (a + b) / 2,
    "MODULUS_TRUNCATE": lambda a, b: a - b * int(a / b),
    "MODULUS_FLOOR": lambda a, b: a - b * floor(a / b),
    "MAX": max,
    "MIN": min,
}


def assert_nearest(y: np.ndarray, exact: list[Fraction]) -> None:
    np.testing.assert_array_equal(y, np.array([FLOATS[y.dtype].rounded(each) for each in exact]))


@pytest.mark.parametrize("dtype", [each.type for each in FLOATS])
@pytest.mark.parametrize("operator", FLOAT_RESULTS)
def test_floats_of_two_are_rounded_once(operator: str, dtype: type[np.floating[Any]]) -> None:
    a, b = floats(dtype, 5), floats(dtype, 6)
    count = min(len(a), len(b))
    a, b = a[-count:], b[-count:]
    a, b = a[b != 0], b[b != 0]
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    exact = [FLOAT_RESULTS[operator](Fraction(x), Fraction(y)) for x, y in pairs]
    assert_nearest(computed(operator, a, b), exact)


@pytest.mark.parametrize("dtype", [each.type for each in FLOATS])
def test_squares_of_differences_have_the_wider_types_error(dtype: type[np.floating[Any]]) -> None:
    """That of a difference twice, and of a product, before the one rounding; halves are rounded once."""
    a, b = floats(dtype, 5), floats(dtype, 6)
    count = min(len(a), len(b))
    a, b = a[-count:], b[-count:]
    of, y = FLOATS[np.dtype(dtype)], computed("DIFFERENCE_SQUARE", a, b)
    for left, right, found in zip(a.tolist(), b.tolist(), y, strict=True):
        exact = (Fraction(left) - Fraction(right)) ** 2
        slack = 4 * of.unit if dtype is not np.float16 else 0
        assert of.rounded(exact * (1 - slack)) <= found <= of.rounded(exact * (1 + slack)), (left, right)


def root(x: Fraction) -> Fraction:
    """To 300 bits, and odd there where it is no square: on the right side of every tie."""
    scaled = x.numerator * 2**600 // x.denominator
    whole = isqrt(scaled)
    return Fraction(whole + (0 if Fraction(whole, 2**300) ** 2 == x else Fraction(1, 2))) / 2**300


@pytest.mark.parametrize("dtype", [each.type for each in FLOATS])
def test_floats_of_one_are_rounded_once(dtype: type[np.floating[Any]]) -> None:
    x = floats(dtype, 7)
    x = x[x != 0]
    exact = [Fraction(value) for value in x.tolist()]
    assert_nearest(computed("RECIP", x), [1 / value for value in exact])
    assert_nearest(computed("NEGATE", x), [-value for value in exact])
    assert_nearest(computed("ABS", x), [abs(value) for value in exact])
    assert_nearest(computed("SQRT", np.abs(x)), [root(abs(value)) for value in exact])


@pytest.mark.parametrize("dtype", [each.type for each in FLOATS])
@pytest.mark.parametrize("operator", ["EXP", "LOG", "POW"])
def test_what_is_no_fraction_is_within_a_unit(operator: str, dtype: type[np.floating[Any]]) -> None:
    x = floats(dtype, 8)
    x = x if operator == "EXP" else np.abs(x[x != 0])
    e = floats(dtype, 9)[-len(x) :]
    x = x[-len(e) :]
    y = computed(operator, x, e) if operator == "POW" else computed(operator, x)
    context = Context(prec=60, Emax=10**15, Emin=-(10**15))
    limits = np.finfo(dtype)
    for value, power, result in zip(x.tolist(), e.tolist(), y, strict=True):
        if operator == "LOG":
            exact = context.ln(Decimal(value))
        else:
            exponent = (
                Decimal(value) if operator == "EXP" else context.multiply(context.ln(Decimal(value)), Decimal(power))
            )
            if abs(exponent) > 1000:
                assert result == (np.inf if exponent > 0 else 0)
                continue
            exact = context.exp(exponent)
        if np.isinf(result):
            assert abs(exact) > Decimal(float(limits.max))
        else:
            unit = Decimal(float(max(np.spacing(np.abs(result)), limits.smallest_subnormal)))
            assert abs(exact - Decimal(float(result))) <= unit, (value, power)


@pytest.mark.parametrize("dtype", [each.type for each in FLOATS])
def test_powers_of_integers(dtype: type[np.floating[Any]]) -> None:
    """Halves are rounded once, which an approximation could not, as some lie halfway between two floats; singles are
    exact where there is such a number, and within a unit in the last place elsewhere."""
    pairs = [(x, e) for e in range(2, 16) for x in (*range(-20, 20), 65, 257, 4097) if abs(x) ** e < 2**53]
    x, e = (np.array(each, dtype) for each in zip(*pairs, strict=True))
    exact = [Fraction(base) ** int(power) for base, power in zip(x.tolist(), e.tolist(), strict=True)]
    y = computed("POW", x, e)
    assert_nearest_or_exact(y, exact)


def assert_nearest_or_exact(y: np.ndarray, exact: list[Fraction]) -> None:
    if y.dtype == np.float16:
        assert_nearest(y, exact)
        return
    nearest = [FLOATS[y.dtype].rounded(each) for each in exact]
    for value, wanted, rounded in zip(y, exact, nearest, strict=True):
        unit = 0 if wanted == rounded else Fraction(float(np.spacing(np.abs(rounded))))
        assert abs(Fraction(float(value)) - wanted) <= unit, (value, wanted)


@pytest.mark.parametrize("dtype", [each.type for each in FLOATS])
def test_powers_of_what_is_special(dtype: type[np.floating[Any]]) -> None:
    """As in C, by NumPy's double precision, the signs of infinities too."""
    values = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2, -2, 0.5, -0.5, 3, -3, 17, -17, 0.75, -0.75, 60000, -60000]
    x, e = (np.array(each, dtype).ravel() for each in np.meshgrid(values, values))
    y = computed("POW", x, e)
    with np.errstate(all="ignore"):
        doubles = np.power(x.astype(np.float64), e.astype(np.float64))
        expected = doubles.astype(dtype)
    # Numbers between two floats, of which the nearest is a promise of halves alone.
    between = np.isfinite(expected) & (expected.astype(np.float64) != doubles) & (expected != 0)
    if dtype == np.float16:
        between[:] = False
    np.testing.assert_array_equal(y[~between], expected[~between])
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(y)[is_number], np.signbit(expected)[is_number])
    np.testing.assert_array_max_ulp(y[between], expected[between], 1)


@pytest.mark.parametrize("data_type", TensorDataType)
def test_a_copy_is_one_of_bits(data_type: TensorDataType) -> None:
    if data_type not in spec("ELEMENT_WISE_IDENTITY").tensors["OutputTensor"].data_types:
        return
    dtype = DTYPES[data_type]
    x = np.frombuffer(np.random.default_rng(10).bytes(COUNT * dtype.itemsize), dtype)
    np.testing.assert_array_equal(computed("IDENTITY", x).view(bits(x)), x.view(bits(x)))


@pytest.mark.parametrize("dtype", [each.type for each in FLOATS])
def test_scale_and_bias_and_their_function_are_rounded_once(dtype: type[np.floating[Any]]) -> None:
    x = np.random.default_rng(11).uniform(-8, 8, COUNT).astype(dtype)
    scale_bias = anydml.DML_SCALE_BIAS(Scale=0.3, Bias=0.75)
    exact = [Fraction(scale_bias.Scale) * Fraction(value) + Fraction(scale_bias.Bias) for value in x.tolist()]
    assert_nearest(computed("IDENTITY", x, ScaleBias=scale_bias), exact)
    assert_nearest(computed("RECIP", x, ScaleBias=scale_bias), [1 / value for value in exact])
