"""What training takes: gradients against automatic differentiation in double precision, a step of Adam against exact
arithmetic, and the layouts in which outputs may lie over inputs."""

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
from anydml import TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from anydml.operators import spec
from anydml.operators.shape_inference import complete
from cases import tensor, tensor_of
from exact import FLOATS
from harness import ENGINE, Memory, bits, compiled, engines_of, run
from test_properties import shapes, strides

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

property_test = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
each_float = pytest.mark.parametrize("dtype", FLOATS, ids=str)


def computed(
    operator: str,
    inputs: dict[str, np.ndarray | None],
    layout: Sequence[int] | None = None,
    promised: float = 0,
    **options: Any,
) -> list[np.ndarray]:
    """By every engine of the CPU that serves it, which have to agree but for what is promised beside a rounding; the
    first input is laid out as is said."""
    found = spec(operator)
    first = next(iter(inputs))
    tensors = {
        name: None if x is None else tensor_of(x, layout if name == first else None) for name, x in inputs.items()
    }
    desc = complete(found, {**tensors, **options}, max(anydml.FeatureLevel))
    engines = [ENGINE] if ENGINE != "reference" else engines_of(desc)
    first_found, *others = [run(engine, desc, list(inputs.values())) for engine in engines]
    for other in others:
        for a, b in zip(first_found, other, strict=True):
            assert a is not None
            assert b is not None
            of_double = np.spacing(np.abs(a)).astype(np.float64)
            least = 1e-3 * of_double + max(promised, 1e-300)
            np.testing.assert_array_less(np.abs(a.astype(np.float64) - b) - of_double, least)
    return [each for each in first_found if each is not None]


def random(data: st.DataObject, dtype: Any, sizes: Sequence[int], low: float = -2) -> np.ndarray:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    return rng.uniform(low, 2, sizes).astype(dtype)


def doubles(torch: Any, *arrays: np.ndarray) -> list[Any]:
    return [torch.tensor(each.astype(np.float64), requires_grad=True) for each in arrays]


def assert_close(y: np.ndarray, expected: Any, size: Any = 1.0) -> None:
    """Within a unit in the last place, and the roundings in double precision of what was added up."""
    expected = expected.detach().numpy()
    ulps = np.spacing(np.abs(expected).astype(y.dtype)).astype(np.float64)
    assert (np.abs(y.astype(np.float64) - expected) <= ulps + 1e-11 * size).all()


def parameter_sizes(data: st.DataObject, sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(data.draw(st.sampled_from([1, size])) for size in sizes)


@each_float
@property_test
@given(data=st.data())
def test_training_and_its_gradients_as_differentiated(torch: Any, dtype: np.dtype[Any], data: st.DataObject) -> None:
    sizes = data.draw(shapes())
    own = parameter_sizes(data, sizes)
    axes = tuple(i for i, size in enumerate(own) if size == 1)
    x, g, added = (random(data, dtype, sizes) for _ in range(3))
    scale, bias = (random(data, dtype, own) for _ in range(2))
    epsilon = float(np.float32(0.25))
    wide, of_scale, of_bias, of_added = doubles(torch, x, scale, bias, added)
    mean = wide.mean(axes, keepdim=True) if axes else wide
    variance = ((wide - mean) ** 2).mean(axes, keepdim=True) if axes else 0 * wide
    y = of_scale * (wide - mean) / torch.sqrt(variance + epsilon) + of_bias + of_added
    inputs = {"InputTensor": x, "ScaleTensor": scale, "BiasTensor": bias, "FusedAddTensor": added}
    layout = data.draw(strides(sizes))
    found = computed("BATCH_NORMALIZATION_TRAINING", inputs, layout, Epsilon=epsilon)
    for each, expected in zip(found, (y, mean, variance), strict=True):
        assert_close(each, expected, 10)
    # By statistics that are not rounded, as the derivative is of these.
    if dtype != np.float32:
        return
    y.backward(torch.tensor(g.astype(np.float64)))
    gradients = [wide.grad, of_scale.grad, of_bias.grad]
    statistics = {"MeanTensor": found[1], "VarianceTensor": found[2]}
    inputs = {"InputTensor": x, "InputGradientTensor": g, **statistics, "ScaleTensor": scale}
    found = computed("BATCH_NORMALIZATION_TRAINING_GRAD", inputs, layout, Epsilon=epsilon)
    for each, expected in zip(found, gradients, strict=True):
        # Mean and variance have been rounded.
        assert_close(each, expected, x.size * 1e4)


@each_float
@property_test
@given(data=st.data())
def test_gradients_beside_constants_as_differentiated(torch: Any, dtype: np.dtype[Any], data: st.DataObject) -> None:
    sizes = data.draw(shapes())
    own = parameter_sizes(data, sizes)
    x, g = (random(data, dtype, sizes) for _ in range(2))
    mean, variance, scale = (random(data, dtype, own, low) for low in (-2, 0, -2))
    epsilon = float(np.float32(0.25))
    wide, of_scale, bias = doubles(torch, x, scale, np.zeros(own))
    root = torch.sqrt(torch.tensor(variance.astype(np.float64)) + epsilon)
    y = of_scale * (wide - torch.tensor(mean.astype(np.float64))) / root + bias
    y.backward(torch.tensor(g.astype(np.float64)))
    inputs = {"InputTensor": x, "InputGradientTensor": g, "MeanTensor": mean, "VarianceTensor": variance}
    layout = data.draw(strides(sizes))
    found = computed("BATCH_NORMALIZATION_GRAD", {**inputs, "ScaleTensor": scale}, layout, Epsilon=epsilon)
    for each, expected in zip(found, (wide.grad, of_scale.grad, bias.grad), strict=True):
        assert_close(each, expected, 10 * x.size)


@each_float
@pytest.mark.parametrize("across", [False, True])
@property_test
@given(data=st.data())
def test_gradients_of_local_responses_as_differentiated(
    torch: Any, dtype: np.dtype[Any], across: bool, data: st.DataObject
) -> None:
    sizes = tuple(data.draw(st.tuples(*(st.integers(1, most) for most in (2, 7, 6, 6)))))
    x, g = (random(data, dtype, sizes) for _ in range(2))
    count = data.draw(st.integers(1, 9))
    few = data.draw(st.sampled_from([0.3, 0.003]))
    alpha, beta, bias = (float(np.float32(each)) for each in (few, 0.75, 1.5))
    (wide,) = doubles(torch, x)
    before, after = (count - 1) // 2, count // 2
    padding = (0, 0, 0, 0, before, after) if across else (before, after, before, after)
    padded = torch.nn.functional.pad(wide**2, padding)
    windows = padded.unfold(1, count, 1) if across else padded.unfold(2, count, 1).unfold(3, count, 1)
    y = wide / (bias + alpha / count * windows.flatten(4).sum(-1)) ** beta
    y.backward(torch.tensor(g.astype(np.float64)))
    options = {"CrossChannel": across, "LocalSize": count, "Alpha": alpha, "Beta": beta, "Bias": bias}
    inputs: dict[str, np.ndarray | None] = {"InputTensor": x, "InputGradientTensor": g}
    # Of windows across channels that add little to Bias, docs/numerics.md promises this beside half a unit.
    promised = 2**-30 * np.abs(g).max() / bias**beta if across and few < 0.01 else 0
    layout = data.draw(strides(sizes))
    (found,) = computed("LOCAL_RESPONSE_NORMALIZATION_GRAD", inputs, layout, promised, **options)
    assert_close(found, wide.grad, max(100, promised / 1e-11))


@each_float
@property_test
@given(data=st.data())
def test_norms_as_in_torch(torch: Any, dtype: np.dtype[Any], data: st.DataObject) -> None:
    sizes = tuple(data.draw(st.tuples(*(st.integers(1, 9),) * 4)))
    x, axis, p = random(data, dtype, sizes), data.draw(st.integers(0, 3)), data.draw(st.sampled_from([1, 2]))
    epsilon = float(np.float32(data.draw(st.sampled_from([1e-5, 0.5, 3]))))
    expected = torch.nn.functional.normalize(torch.tensor(x.astype(np.float64)), p=p, dim=axis, eps=epsilon)
    layout = data.draw(strides(sizes))
    (found,) = computed("LP_NORMALIZATION", {"InputTensor": x}, layout, Axis=axis, Epsilon=epsilon, P=p)
    assert_close(found, expected)


NAMES = ("InputParametersTensor", "InputFirstMomentTensor", "InputSecondMomentTensor", "GradientTensor")
OUTPUTS = ("OutputParametersTensor", "OutputFirstMomentTensor", "OutputSecondMomentTensor")
CONTEXT = Context(prec=60)


def root(x: Fraction) -> Fraction:
    return Fraction(CONTEXT.sqrt(CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))))


@each_float
def test_a_step_of_adam_is_rounded_once(dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(6)
    sizes = (3, 4, 5, 7)
    x, m, g = (rng.uniform(-2, 2, sizes).astype(dtype) for _ in range(3))
    v = rng.uniform(0, 2, sizes).astype(dtype)
    step = np.full((1, 1, 1, 1), 3, dtype)
    options = {"LearningRate": 0.01, "Beta1": 0.9, "Beta2": 0.999, "Epsilon": 1e-8}
    found = computed(
        "ADAM_OPTIMIZER", {**dict(zip(NAMES, (x, m, v, g), strict=True)), "TrainingStepTensor": step}, **options
    )
    rate, beta1, beta2, epsilon = (Fraction(float(np.float32(each))) for each in options.values())
    alpha = root(1 - beta2**3) / (1 - beta1**3)
    every = zip(*(each.reshape(-1).astype(np.float64) for each in (x, m, v, g)), strict=True)
    for place, numbers in enumerate(every):
        a, b, c, d = map(Fraction, numbers)
        mean, square = beta1 * b + (1 - beta1) * d, beta2 * c + (1 - beta2) * d * d
        exact = (a - rate * alpha * mean / (root(square) + epsilon), mean, square)
        for y, value in zip(found, exact, strict=True):
            got = Fraction(float(y.reshape(-1)[place]))
            unit = Fraction(float(np.spacing(np.abs(dtype.type(float(value))))))
            assert abs(got - value) <= unit * Fraction(501, 1000)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("over", [(0, 1, 2), (3, 0, 1), (2, 3, 0), (1, None, 3)], ids=str)
def test_outputs_of_adam_may_lie_over_any_input_but_the_step(dtype: Any, over: Sequence[int | None]) -> None:
    rng = np.random.default_rng(7)
    sizes, layout = (2, 3, 5, 9), (200, 60, 10, 1)
    arrays = [rng.uniform(0, 2, sizes).astype(dtype) for _ in range(4)]
    step = np.full((1, 1, 1, 1), 2, np.uint32)
    each = tensor(sizes, DATA_TYPES[np.dtype(dtype)].name, layout)
    desc = anydml.DML_ADAM_OPTIMIZER_OPERATOR_DESC(
        **dict.fromkeys((*NAMES, *OUTPUTS), each),
        TrainingStepTensor=tensor((1, 1, 1, 1), TensorDataType.UINT32.name),
        LearningRate=0.5,
        Beta1=0.5,
        Beta2=0.75,
        Epsilon=1,
    )
    expected = run(ENGINE, desc, [*arrays, step])
    for engine in [ENGINE] if ENGINE != "reference" else engines_of(desc):
        read = [Memory(each, 0xA5, array, engine) for array in arrays]
        written = [Memory(each, 0xA5, engine=engine) if i is None else read[i] for i in over]
        step_memory = Memory(tensor((1, 1, 1, 1), "UINT32"), 0xA5, step, engine)
        operator = compiled(engine, desc)
        operator.dispatch([memory.array for memory in (*read, step_memory)], [memory.array for memory in written])
        for memory, y in zip(written, expected, strict=True):
            assert y is not None
            np.testing.assert_array_equal(memory.values.view(bits(y)), y.view(bits(y)))
            memory.assert_only_elements_changed()


def test_functions_take_what_the_forward_functions_return() -> None:
    rng = np.random.default_rng(8)
    x, g = (rng.uniform(-2, 2, (4, 3, 5)).astype(np.float32) for _ in range(2))
    scale, bias = (rng.uniform(-2, 2, 3).astype(np.float32) for _ in range(2))
    y, mean, variance = anydml.batch_normalization_training(x, scale, bias)
    np.testing.assert_allclose(anydml.batch_normalization(x, mean, variance, scale, bias), y, rtol=1e-5, atol=1e-6)
    of_x, of_scale, of_bias = anydml.batch_normalization_training_grad(x, g, mean, variance, scale)
    assert of_x.shape == x.shape
    assert of_scale.shape == of_bias.shape == mean.shape == (1, 3, 1)
    # What a constant adds is normalised away, and so is a factor.
    np.testing.assert_allclose(of_x.sum((0, 2)), 0, atol=1e-4)
    np.testing.assert_allclose((of_x * x).sum((0, 2)), 0, atol=1e-3)
    fixed = anydml.batch_normalization_grad(x, g, mean, variance, scale)
    np.testing.assert_array_equal(fixed[1], of_scale)
    np.testing.assert_array_equal(fixed[2], of_bias)


def test_adam_takes_arrays_of_few_dimensions() -> None:
    x, m, v = (np.float32([1, 2]) for _ in range(3))
    found = anydml.adam_optimizer(x, m, v, np.float32([0, 1]), 1)
    assert [each.shape for each in found] == [(2,)] * 3
    scalar = anydml.adam_optimizer(x[0], m[0], v[0], np.float32(0), np.uint32(1))
    np.testing.assert_array_equal([each.item() for each in scalar], [each[0] for each in found])
