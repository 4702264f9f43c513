"""The activations, over random values and the ends of each type, against exact arithmetic and PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anydml
from anydml import FeatureLevel
from anydml.core.strided_layout import Array
from anydml.operators import spec
from cases import tensor, tensor_of
from exact import FLOATS
from harness import ENGINE, GPU, IN_SINGLES, ON_GPUS, engines_of, run

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

TYPES = [each.type for each in FLOATS]
DIGITS = Context(prec=120, Emax=10**17, Emin=-(10**17))
COUNT = 200


@pytest.fixture(scope="module", autouse=True, params=dict.fromkeys((ENGINE, "cpu")))
def engine(request: pytest.FixtureRequest) -> str:
    """Where all is computed; by the reference what that does not serve."""
    global where
    where = request.param
    return where


def computed(operator: str, *inputs: Array, **options: Any) -> Array:
    found = spec(f"ACTIVATION_{operator}")
    *names, output = found.tensors
    tensors = {name: tensor_of(x) for name, x in zip(names, inputs, strict=True)}
    desc = found.desc(**tensors, **{output: tensor_of(inputs[0])}, **options)
    (result,) = run(where if where in engines_of(desc) else ENGINE, desc, inputs)
    assert result is not None
    return result


def floats(dtype: type[np.floating[Any]], seed: int) -> Array:
    """Any bits that are a finite number, among them some of ordinary size."""
    rng = np.random.default_rng(seed)
    x = np.frombuffer(rng.bytes(COUNT * np.dtype(dtype).itemsize), dtype)
    return np.concatenate([x[np.isfinite(x)], rng.uniform(-8, 8, COUNT).astype(dtype), np.zeros(1, dtype)])


def singles(count: int, seed: int) -> list[float]:
    """Numbers of single precision, as members are."""
    return [float(value) for value in np.random.default_rng(seed).uniform(-2, 2, count).astype(np.float32)]


def assert_close(y: Array, exact: Sequence[Decimal | Fraction], units: Fraction = Fraction(51, 100)) -> None:
    """Within half a unit in the last place, and a little: computed in double precision, rounded once. Or within other
    units."""
    kind = FLOATS[y.dtype]
    for result, value in zip(y.tolist(), map(Fraction, exact), strict=True):
        if np.isinf(result):
            assert abs(value) >= kind.threshold * Fraction(999_999, 1_000_000), (result, float(value))
        else:
            assert abs(Fraction(result) - value) <= kind.ulp(result) * units, (result, float(value))


# Element by element


def power(x: Decimal) -> Decimal:
    """e^x, of what is not far above 0; 0 where nothing here is as small."""
    return Decimal(0) if x < -5000 else x.exp()


def softplus(x: Decimal) -> Decimal:
    return max(x, Decimal(0)) + (1 + power(-abs(x))).ln()


def sigmoid(x: Decimal) -> Decimal:
    return 1 / (1 + power(-x)) if x > 0 else power(x) / (1 + power(x))


def tanh(x: Decimal) -> Decimal:
    twice = power(-2 * abs(x))
    return ((1 - twice) / (1 + twice)).copy_sign(x)


def elu(x: Decimal, alpha: Decimal) -> Decimal:
    return x if x > 0 else alpha * (power(x) - 1)


def shrink(x: Decimal, bias: Decimal, threshold: Decimal) -> Decimal:
    return x - bias if x > threshold else x + bias if x < -threshold else Decimal(0)


EXACT: Mapping[str, Callable[..., Decimal]] = {
    "ELU": elu,
    "HARD_SIGMOID": lambda x, alpha, beta: max(Decimal(0), min(alpha * x + beta, Decimal(1))),
    "IDENTITY": lambda x: x,
    "LEAKY_RELU": lambda x, alpha: x if x >= 0 else alpha * x,
    "LINEAR": lambda x, alpha, beta: alpha * x + beta,
    "PARAMETRIC_SOFTPLUS": lambda x, alpha, beta: alpha * softplus(beta * x),
    "RELU": lambda x: max(Decimal(0), x),
    "SCALED_ELU": lambda x, alpha, gamma: gamma * elu(x, alpha),
    "SCALED_TANH": lambda x, alpha, beta: alpha * tanh(beta * x),
    "SIGMOID": sigmoid,
    "SOFTPLUS": lambda x, steepness: softplus(steepness * x) / steepness,
    "SOFTSIGN": lambda x: x / (1 + abs(x)),
    "TANH": tanh,
    "THRESHOLDED_RELU": lambda x, alpha: x if x > alpha else Decimal(0),
    "SHRINK": shrink,
}
"""f(x) and the members in header order."""


def members(operator: str, seed: int) -> dict[str, float]:
    names = [name for name, kind in spec(f"ACTIVATION_{operator}").members.items() if kind == "FLOAT"]
    return dict(zip(names, singles(len(names), seed), strict=True))


def exact(operator: str, x: Array, options: Mapping[str, float]) -> list[Decimal]:
    with localcontext(DIGITS):
        return [EXACT[operator](Decimal(value), *map(Decimal, options.values())) for value in x.tolist()]


def most_units(operator: str, dtype: type[np.floating[Any]]) -> Fraction:
    """1 of single precision, which is next to nothing of half."""
    names = {"cpu": IN_SINGLES, GPU: ON_GPUS}.get(where, ())
    return Fraction(1) if f"ACTIVATION_{operator}" in names and dtype == np.float32 else Fraction(51, 100)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operator", EXACT)
def test_floats_are_rounded_once(operator: str, dtype: type[np.floating[Any]]) -> None:
    for seed in range(3):
        x, options = floats(dtype, seed), members(operator, seed)
        assert_close(computed(operator, x, **options), exact(operator, x, options), most_units(operator, dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_parameterized_relu_is_rounded_once(dtype: type[np.floating[Any]]) -> None:
    x, slope = floats(dtype, 4), floats(dtype, 5)
    count = min(len(x), len(slope))
    x, slope = x[-count:], slope[-count:]
    pairs = zip(x.tolist(), slope.tolist(), strict=True)
    y = [Fraction(a) if a >= 0 else Fraction(a) * Fraction(b) for a, b in pairs]
    np.testing.assert_array_equal(
        computed("PARAMETERIZED_RELU", x, slope), np.array([FLOATS[x.dtype].rounded(each) for each in y])
    )


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_integers(dtype: type[np.signedinteger[Any]]) -> None:
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(6)
    x, slope = (rng.integers(limits.min, limits.max, COUNT, dtype, endpoint=True) for _ in range(2))
    np.testing.assert_array_equal(computed("RELU", x), [max(0, value) for value in x.tolist()])
    wide = [a if a >= 0 else a * b for a, b in zip(x.tolist(), slope.tolist(), strict=True)]
    y = [(value - limits.min) % 2**limits.bits + limits.min for value in wide]
    np.testing.assert_array_equal(computed("PARAMETERIZED_RELU", x, slope), np.array(y, dtype))


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_shrunk_integers_are_truncated_and_saturated(name: str) -> None:
    limits = np.iinfo(name)
    x = np.random.default_rng(7).integers(limits.min, limits.max, COUNT, name, endpoint=True)
    x[::2] //= limits.max // 100  # about as large as the constants
    for bias, threshold in product((0.0, 1.5, -3.75, 100.25, 127.0, 2.0**31), (0.5, -2.0, 100.0, 127.5)):
        shrunk = [shrink(Decimal(value), Decimal(bias), Decimal(threshold)) for value in x.tolist()]
        y = [max(limits.min, min(int(value), limits.max)) for value in shrunk]
        np.testing.assert_array_equal(computed("SHRINK", x, Bias=bias, Threshold=threshold), np.array(y, name))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operator", EXACT)
def test_nan_stays_nan(operator: str, dtype: type[np.floating[Any]]) -> None:
    for seed in range(8, 11):
        (y,) = computed(operator, np.array([np.nan], dtype), **members(operator, seed))
        assert np.isnan(y)


@pytest.mark.parametrize("steepness", [0.5, -1.0, np.nan])
@pytest.mark.parametrize("is_fused", [False, True])
def test_a_steepness_below_1_needs_a_level(steepness: float, is_fused: bool) -> None:
    x = tensor((1, 1, 1, 2))
    softplus = anydml.DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC
    desc: Any = softplus(InputTensor=x, OutputTensor=x, Steepness=steepness)
    if is_fused:
        tensors = dict.fromkeys(("ATensor", "BTensor", "OutputTensor"), x)
        desc = anydml.DML_ELEMENT_WISE_ADD1_OPERATOR_DESC(**tensors, FusedActivation=softplus(Steepness=steepness))
    assert anydml.validate(desc) == []
    (violation,) = anydml.validate(desc, FeatureLevel.LEVEL_6_3)
    assert (violation.rule, violation.found) == ("(S5)", str(steepness))
    assert violation.where == ("FusedActivation.Steepness" if is_fused else "Steepness")
    assert violation.remedy == f"{steepness} needs feature level 6.4"


# Fused


def added(a: Array, b: Array, activation: Any) -> Array:
    tensors = dict(zip(("ATensor", "BTensor", "OutputTensor"), map(tensor_of, (a, b, a)), strict=True))
    desc = anydml.DML_ELEMENT_WISE_ADD1_OPERATOR_DESC(**tensors, FusedActivation=activation)
    (result,) = run(where if where in engines_of(desc) else ENGINE, desc, [a, b])
    assert result is not None
    return result


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operator", EXACT)
def test_a_fused_activation_is_that_of_the_exact_sum(operator: str, dtype: type[np.floating[Any]]) -> None:
    rng = np.random.default_rng(12)
    a, b = (rng.uniform(-4, 4, COUNT).astype(dtype) for _ in range(2))
    options = members(operator, 13)
    activation = spec(f"ACTIVATION_{operator}").desc(**options)
    with localcontext(DIGITS):
        sums = [Decimal(x) + Decimal(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        y = [EXACT[operator](each, *map(Decimal, options.values())) for each in sums]
    assert_close(added(a, b, activation), y)


# Along axes


def grouped(x: Array, axes: Sequence[int]) -> list[list[tuple[int, ...]]]:
    """The places of each group's elements, in the order of the dimensions."""
    groups: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for place in np.ndindex(x.shape):
        groups.setdefault(tuple(0 if i in axes else at for i, at in enumerate(place)), []).append(place)
    return list(groups.values())


@st.composite
def groups(draw: st.DrawFn) -> tuple[Array, list[int]]:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    axes = draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([1, 10, 1000]))
    x = (scale * rng.normal(size=sizes)).astype(draw(st.sampled_from(TYPES)))
    return (np.round(x) if draw(st.booleans()) else x), axes


@settings(max_examples=60, deadline=None)
@given(groups())
def test_along_axes(given: tuple[Array, list[int]]) -> None:
    x, axes = given
    units = Fraction(3) if x.dtype == np.float32 else Fraction(51, 100)
    softmax, log_softmax, hardmax = (
        computed(operator, x, Axes=axes) for operator in ("SOFTMAX1", "LOG_SOFTMAX1", "HARDMAX1")
    )
    for places in grouped(x, axes):
        values = [float(x[place]) for place in places]
        with localcontext(DIGITS):
            powers = [Decimal(value).exp() for value in values]
            parts = [each / sum(powers) for each in powers]
            logarithms = [each.ln() for each in parts]
        assert_close(np.array([softmax[place] for place in places]), parts, units)
        assert_close(np.array([log_softmax[place] for place in places]), logarithms, units)
        assert [hardmax[place] for place in places] == [i == values.index(max(values)) for i in range(len(values))]


@pytest.mark.parametrize("operator", ["HARDMAX", "LOG_SOFTMAX", "SOFTMAX"])
@pytest.mark.parametrize("sizes", [(7,), (3, 5), (1, 1, 2, 4), (1,) * 8])
def test_rows_are_along_the_last_axis(operator: str, sizes: tuple[int, ...]) -> None:
    x = np.random.default_rng(14).normal(size=sizes).astype(np.float32)
    along = computed(f"{operator}1", x, Axes=[len(sizes) - 1])
    np.testing.assert_array_equal(computed(operator, x), along)


# PyTorch


@pytest.fixture(scope="module")
def functional() -> Any:
    return pytest.importorskip("torch").nn.functional


TORCH: list[tuple[str, dict[str, Any], Callable[[Any, Any], Any]]] = [
    ("ELU", {"Alpha": 1.5}, lambda f, x: f.elu(x, 1.5)),
    ("HARD_SIGMOID", {"Alpha": 0.25, "Beta": 0.5}, lambda f, x: f.hardtanh(x / 4 + 0.5, 0, 1)),
    ("LEAKY_RELU", {"Alpha": 0.25}, lambda f, x: f.leaky_relu(x, 0.25)),
    ("RELU", {}, lambda f, x: f.relu(x)),
    ("SIGMOID", {}, lambda f, x: x.sigmoid()),
    ("SOFTPLUS", {"Steepness": 2}, lambda f, x: f.softplus(x, 2, 1000)),
    ("TANH", {}, lambda f, x: x.tanh()),
    ("THRESHOLDED_RELU", {"Alpha": 0.5}, lambda f, x: f.threshold(x, 0.5, 0)),
    ("SHRINK", {"Bias": 0.5, "Threshold": 0.5}, lambda f, x: f.softshrink(x, 0.5)),
    ("SHRINK", {"Bias": 0, "Threshold": 0.5}, lambda f, x: f.hardshrink(x, 0.5)),
    ("SOFTMAX", {}, lambda f, x: f.softmax(x, -1)),
    ("LOG_SOFTMAX", {}, lambda f, x: f.log_softmax(x, -1)),
]


@pytest.mark.parametrize(("operator", "options", "function"), TORCH, ids=[name for name, _, _ in TORCH])
def test_pytorch_agrees(functional: Any, operator: str, options: Any, function: Callable[[Any, Any], Any]) -> None:
    """In double precision, and of infinities and NaN."""
    torch = pytest.importorskip("torch")
    special = [[np.inf, 1, 0], [-np.inf, 1, 0], [np.nan, 1, 0], [-0.5, 0.5, 1000], [-1000, -0.0, 2]]
    x = np.concatenate([special, np.random.default_rng(15).normal(0, 4, (40, 3))]).astype(np.float32)
    expected = function(functional, torch.from_numpy(x).double()).numpy().astype(np.float32)
    np.testing.assert_allclose(computed(operator, x, **options), expected, rtol=2**-23, atol=2**-149)


def test_pytorch_agrees_on_a_slope_of_its_own(functional: Any) -> None:
    torch = pytest.importorskip("torch")
    x = np.array([[-2, 3, -np.inf, np.nan]], np.float32)
    slope = np.array([0.5, 7, 2, 1], np.float32)
    expected = functional.prelu(torch.from_numpy(x), torch.from_numpy(slope)).numpy()
    np.testing.assert_array_equal(computed("PARAMETERIZED_RELU", x, slope[None]), expected)
