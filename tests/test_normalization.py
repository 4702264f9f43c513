"""The normalisations against PyTorch in double precision, and against exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import anydml
from anydml import validate
from anydml.operators import spec
from anydml.operators.fused_activation import FUSIBLE, fused_since
from cases import tensor, tensor_of
from cases.normalization import NAMES
from exact import FLOATS, _near
from harness import ENGINE, bits, run
from test_properties import shapes, strides

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

property_test = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
each_float = pytest.mark.parametrize("dtype", FLOATS, ids=str)


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def computed(
    operator: str, inputs: Sequence[np.ndarray | None], layout: Sequence[int] | None = None, **options: Any
) -> np.ndarray:
    tensors = {name: None if x is None else tensor_of(x) for name, x in zip(NAMES[operator], inputs, strict=True)}
    x = inputs[0]
    assert x is not None
    tensors["InputTensor"] = tensor_of(x, layout)
    desc = getattr(anydml, f"DML_{operator}_OPERATOR_DESC")(**tensors, OutputTensor=tensor_of(x), **options)
    (y,) = run(ENGINE, desc, inputs)
    assert y is not None
    return y


def random(data: st.DataObject, dtype: np.dtype[Any], sizes: Sequence[int], low: float = -2) -> np.ndarray:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    return rng.uniform(low, 2, sizes).astype(dtype)


@st.composite
def images(draw: st.DrawFn) -> tuple[int, ...]:
    return tuple(draw(st.tuples(st.integers(1, 3), st.integers(1, 7), st.integers(1, 9), st.integers(1, 9))))


def assert_close(y: np.ndarray, expected: Any, size: Any) -> None:
    """Within a unit in the last place, and some roundings in the wider type of what was added up."""
    expected = expected.numpy()
    unit = float(FLOATS[y.dtype].unit) * 16
    ulps = np.spacing(np.abs(expected).astype(y.dtype)).astype(np.float64)
    assert (np.abs(y.astype(np.float64) - expected) <= ulps + unit * size).all()


@each_float
@property_test
@given(data=st.data())
def test_batch_as_in_torch(torch: Any, dtype: np.dtype[Any], data: st.DataObject) -> None:
    sizes = data.draw(images())
    x = random(data, dtype, sizes)
    mean, variance, scale, bias = (random(data, dtype, sizes[1], low) for low in (-2, 0, -2, -2))
    epsilon = float(np.float32(data.draw(st.sampled_from([1e-5, 0.5]))))
    wide = [torch.tensor(each.astype(np.float64)) for each in (x, mean, variance, scale, bias)]
    expected = torch.nn.functional.batch_norm(*wide, eps=epsilon)
    shaped = [each.reshape(1, -1, 1, 1) for each in (mean, variance, scale, bias)]
    y = computed("BATCH_NORMALIZATION", [x, *shaped], data.draw(strides(sizes)), Spatial=True, Epsilon=epsilon)
    root = np.sqrt(shaped[1].astype(np.float64) + epsilon)
    assert_close(y, expected, 4 * np.abs(shaped[2]) / root + np.abs(shaped[3]))


@each_float
@pytest.mark.parametrize("across", [False, True])
@property_test
@given(data=st.data())
def test_mean_and_variance_as_in_torch(torch: Any, dtype: np.dtype[Any], across: bool, data: st.DataObject) -> None:
    sizes = data.draw(images())
    x = random(data, dtype, sizes)
    scale, bias = (random(data, dtype, sizes[1]) if data.draw(st.booleans()) else None for _ in range(2))
    wide = [None if each is None else torch.tensor(each.astype(np.float64)) for each in (x, scale, bias)]
    epsilon = float(np.float32(0.01))
    groups = 1 if across else sizes[1]
    # PyTorch refuses a single element; in a batch of two it takes it.
    twice = torch.cat([wide[0], wide[0]])
    expected = torch.nn.functional.group_norm(twice, groups, *wide[1:], eps=epsilon)[: sizes[0]]
    shaped = [None if each is None else each.reshape(1, -1, 1, 1) for each in (scale, bias)]
    options: dict[str, Any] = {"NormalizeVariance": True, "Epsilon": epsilon}
    layout = data.draw(strides(sizes))
    y = computed("MEAN_VARIANCE_NORMALIZATION", [x, *shaped], layout, CrossChannel=across, **options)
    axes = data.draw(st.permutations([1, 2, 3] if across else [2, 3]))
    same = computed("MEAN_VARIANCE_NORMALIZATION1", [x, *shaped], layout, Axes=axes, **options)
    np.testing.assert_array_equal(y.view(bits(y)), same.view(bits(same)))
    assert_close(y, expected, 100)


@each_float
@property_test
@given(data=st.data())
def test_mean_and_variance_along_any_axes(torch: Any, dtype: np.dtype[Any], data: st.DataObject) -> None:
    sizes = data.draw(shapes())
    axes = data.draw(st.permutations(range(len(sizes))))[: data.draw(st.integers(1, len(sizes)))]
    x = random(data, dtype, sizes)
    scale, bias = (
        random(data, dtype, [data.draw(st.sampled_from([1, size])) for size in sizes])
        if data.draw(st.booleans())
        else None
        for _ in range(2)
    )
    wide, factor, term = (None if each is None else torch.tensor(each.astype(np.float64)) for each in (x, scale, bias))
    variance, mean = torch.var_mean(wide, tuple(axes), correction=0, keepdim=True)
    divided = data.draw(st.booleans())
    epsilon = float(np.float32(0.01))
    expected = (wide - mean) / torch.sqrt(variance + epsilon) if divided else wide - mean
    expected = expected if factor is None else expected * factor
    expected = expected if term is None else expected + term
    options: dict[str, Any] = {"Axes": axes, "NormalizeVariance": divided, "Epsilon": epsilon}
    y = computed("MEAN_VARIANCE_NORMALIZATION1", [x, scale, bias], data.draw(strides(sizes)), **options)
    assert_close(y, expected, 100)


@each_float
@property_test
@given(data=st.data())
def test_local_response_across_channels_as_in_torch(torch: Any, dtype: np.dtype[Any], data: st.DataObject) -> None:
    sizes = data.draw(images())
    x = random(data, dtype, sizes)
    count = data.draw(st.integers(1, 9))
    few = data.draw(st.sampled_from([0.3, 0.003]))
    alpha, beta, bias = (float(np.float32(each)) for each in (few, 0.75, 1.5))
    # Of an even number PyTorch has the longer half before the element, ONNX behind it.
    wide = torch.tensor(x.astype(np.float64)).flip(1)
    expected = torch.nn.functional.local_response_norm(wide, count, alpha, beta, bias).flip(1)
    options: dict[str, Any] = {"CrossChannel": True, "LocalSize": count, "Alpha": alpha, "Beta": beta, "Bias": bias}
    assert_close(computed("LOCAL_RESPONSE_NORMALIZATION", [x], data.draw(strides(sizes)), **options), expected, 2)


@each_float
@property_test
@given(data=st.data())
def test_local_response_within_a_channel(torch: Any, dtype: np.dtype[Any], data: st.DataObject) -> None:
    sizes = data.draw(images())
    x = random(data, dtype, sizes)
    count = data.draw(st.integers(1, 20))
    few = data.draw(st.sampled_from([0.3, 0.003]))
    alpha, beta, bias = (float(np.float32(each)) for each in (few, 0.75, 1.5))
    wide = torch.tensor(x.astype(np.float64))
    before, after = (count - 1) // 2, count // 2
    padded = torch.nn.functional.pad(wide**2, (before, after, before, after))
    sums = torch.nn.functional.avg_pool2d(padded, count, 1) * count**2
    expected = wide / (bias + alpha / count * sums) ** beta
    options: dict[str, Any] = {"CrossChannel": False, "LocalSize": count, "Alpha": alpha, "Beta": beta, "Bias": bias}
    assert_close(computed("LOCAL_RESPONSE_NORMALIZATION", [x], data.draw(strides(sizes)), **options), expected, 2)


FUSED = [name for name in FUSIBLE if fused_since(name, "BATCH_NORMALIZATION")]


@each_float
@pytest.mark.parametrize("activation", FUSED)
def test_a_fused_activation_is_applied_to_what_is_not_rounded(activation: str, dtype: np.dtype[Any]) -> None:
    """As if the normalisation gave FLOAT32 of FLOAT16, whose results have to round to those that are fused."""
    found = spec(activation)
    numbers = {name: 0.375 for name, kind in found.members.items() if kind == "FLOAT"}
    x = np.random.default_rng(3).uniform(-4, 4, (2, 3, 4, 5)).astype(dtype)
    options: dict[str, Any] = {"NormalizeVariance": True, "Epsilon": 0.5}
    fused = found.desc(**numbers)
    for operator, axes in (
        ("MEAN_VARIANCE_NORMALIZATION", {"CrossChannel": True}),
        ("MEAN_VARIANCE_NORMALIZATION1", {"Axes": (1, 2, 3)}),
    ):
        y = computed(operator, [x, None, None], **axes, **options, FusedActivation=fused)
        wide = x.astype(np.float64)
        mean = wide.mean((1, 2, 3), keepdims=True)
        normal = (wide - mean) / np.sqrt(((wide - mean) ** 2).mean((1, 2, 3), keepdims=True) + 0.5)
        expected = found.reference(fused, normal)
        unit = np.spacing(np.abs(expected).astype(dtype)).astype(np.float64)
        assert (np.abs(y - expected) <= 0.5 * unit + 40 * float(FLOATS[dtype].unit)).all()


CONTEXT = Context(prec=60)


@each_float
def test_the_formula_is_rounded_once(dtype: np.dtype[Any]) -> None:
    """Beside a cancelling bias, where a rounding on the way would be all that is left."""
    rng = np.random.default_rng(4)
    x, mean, scale, bias = (rng.uniform(-2, 2, 200).astype(dtype) for _ in range(4))
    variance = rng.uniform(0, 2, 200).astype(dtype)
    y = computed("BATCH_NORMALIZATION", [x, mean, variance, scale, bias], Spatial=True, Epsilon=0.25)
    for value, *parts in zip(y, x, mean, variance, scale, bias, strict=True):
        a, m, v, s, b = (Fraction(float(each)) for each in parts)
        square = v + Fraction(1, 4)
        root = Fraction(CONTEXT.sqrt(CONTEXT.divide(Decimal(square.numerator), Decimal(square.denominator))))
        slack = 8 * FLOATS[dtype].unit * (abs(s * (a - m)) / root + abs(b))
        assert _near(FLOATS[dtype], value, s * (a - m) / root + b, slack)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("axes", [[3], [2, 3], [1, 2, 3]])
def test_an_infinite_element_leaves_its_line_infinite_without_the_variance(dtype: type, axes: list[int]) -> None:
    """The mean is infinite, too: other elements of the line are infinitely far below it, and that one is no number."""
    x = np.ones((1, 2, 3, 40), dtype)
    x[0, 1, 1, 7] = np.inf
    with np.errstate(invalid="ignore"):
        expected = x - x.mean(tuple(axes), keepdims=True)
    for layout in (x, np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)):
        y = anydml.mean_variance_normalization(layout, axes=axes, normalize_variance=False)
        np.testing.assert_array_equal(y, expected)


def test_a_large_mean_leaves_the_variance_its_digits() -> None:
    """A mean of squares less the square of the mean would have none of them in FLOAT32's double precision."""
    x = np.float32([1e9, 1e9 + 64, 1e9 + 128])
    options: dict[str, Any] = {"Axes": (0,), "NormalizeVariance": True, "Epsilon": 0}
    y = computed("MEAN_VARIANCE_NORMALIZATION1", [x, None, None], **options)
    np.testing.assert_array_equal(y, np.float32([-(1.5**0.5), 0, 1.5**0.5]))


def test_norms_of_halves_are_rounded_once_along_columns() -> None:
    """By way of singles, a few of so many would be rounded twice."""
    x = np.random.default_rng(1).normal(1, 3, (4, 1, 600, 64)).astype(np.float16)
    wide = x.astype(np.float64)
    for p in (1, 2):
        norm = (np.abs(wide) ** p).sum(2, keepdims=True) ** (1 / p)
        np.testing.assert_array_equal(anydml.lp_normalization(x, 2, p=p), (wide / norm).astype(np.float16))


def test_the_bits_depend_on_no_stride() -> None:
    x = np.random.default_rng(5).uniform(-2, 2, (3, 37, 5, 41)).astype(np.float32)
    for operator, options in (
        ("MEAN_VARIANCE_NORMALIZATION", {"CrossChannel": True, "NormalizeVariance": True, "Epsilon": 0}),
        ("LOCAL_RESPONSE_NORMALIZATION", {"CrossChannel": False, "LocalSize": 7, "Alpha": 1, "Beta": 1, "Bias": 1}),
    ):
        inputs = [x, None, None][: len(NAMES[operator])]
        first, *others = [
            computed(operator, inputs, layout, **options)
            for layout in (None, (1, 3, 111, 555), (37 * 5 * 50, 250, 50, 1))
        ]
        for other in others:
            np.testing.assert_array_equal(first.view(bits(first)), other.view(bits(other)))


def test_a_region_of_any_size_takes_no_longer_than_its_tensor() -> None:
    sizes = (1, 1, 1, 200_000)
    desc = anydml.DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC(
        InputTensor=tensor(sizes), OutputTensor=tensor(sizes), CrossChannel=False, LocalSize=2**32 - 1,
        Alpha=2**32 - 1, Beta=1, Bias=0,
    )  # fmt: skip
    assert validate(desc) == []
    (y,) = run(ENGINE, desc, [np.ones(sizes, np.float32)])
    np.testing.assert_array_equal(y, np.full(sizes, np.float32(1 / 200_000)))
