"""Normalisations of shapes that reach what small ones do not: chunks, parts, many columns, several threads; against
double precision of another order, and with the same bits however many threads there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import anydml
from anydml import DML_BUFFER_TENSOR_DESC
from anydml.core.strided_layout import Layout
from anydml.operators import spec_of
from anydml.operators.schema import OperatorDesc
from cases import tensor, tensor_of
from harness import bits, compiled, explained, run, units_of

pytestmark = [pytest.mark.native, pytest.mark.slow]

property_test = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
each_type = pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["float32", "float16"])
LARGE = [
    ((300_007,), (0,)),
    ((300, 1001), (0,)),
    ((300, 1001), (1,)),
    ((2100, 259), (0,)),
    ((70_003, 3), (0,)),
    ((70_003, 3), (1,)),
    ((9, 40_001), (0,)),
    ((3, 2, 150, 301), (0, 2, 3)),
    ((2, 3, 150, 301), (1,)),
    ((40, 7, 31, 29), (0, 2, 3)),
    ((5, 4, 6, 7, 3, 40), (1, 3, 5)),
]


def descs(x: DML_BUFFER_TENSOR_DESC, y: DML_BUFFER_TENSOR_DESC, axes: Sequence[int]) -> list[OperatorDesc]:
    """All operators of groups along axes."""
    kind = x.DataType.name
    own = tensor([1 if i in axes else size for i, size in enumerate(x.Sizes)], kind)
    sigmoid = anydml.DML_ACTIVATION_SIGMOID_OPERATOR_DESC()
    both = {"InputTensor": x, "OutputTensor": y}
    ends = {"OutputGradientTensor": y, "OutputScaleGradientTensor": own, "OutputBiasGradientTensor": own}
    parameters = {"MeanTensor": own, "VarianceTensor": own, "ScaleTensor": own}
    gradients = {"InputTensor": x, "InputGradientTensor": x, **parameters, **ends, "Epsilon": 0.5}
    return [
        anydml.DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC(**both, Axes=axes),
        anydml.DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC(**both, Axes=axes),
        anydml.DML_ACTIVATION_HARDMAX1_OPERATOR_DESC(**both, Axes=axes),
        anydml.DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC(
            **both, ScaleTensor=own, Axes=axes, UseMean=True, UseVariance=True, Epsilon=0.5, FusedActivation=sigmoid
        ),
        anydml.DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC(
            **both, BiasTensor=x, Axes=axes, UseMean=False, UseVariance=True
        ),
        anydml.DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC(
            **both, ScaleTensor=own, BiasTensor=own, OutputMeanTensor=own, OutputVarianceTensor=own, Epsilon=0.5
        ),
        anydml.DML_BATCH_NORMALIZATION_TRAINING_GRAD_OPERATOR_DESC(**gradients),
        anydml.DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC(**gradients),
    ]


def values_of(desc: OperatorDesc, seed: int) -> list[np.ndarray | None]:
    """Near 3, so that means do not vanish; variances are above 0."""
    rng = np.random.default_rng(seed)
    spec = spec_of(desc)
    assert spec is not None
    inputs: list[np.ndarray | None] = []
    for name, one in spec.inputs(desc):
        values = None if one is None else rng.normal(3, 2, one.Sizes).astype(Layout.of_desc(one).dtype)
        inputs.append(np.abs(values) if name == "VarianceTensor" and values is not None else values)
    return inputs


def most_of(desc: OperatorDesc) -> float:
    """Units by which results may be off what is rounded once."""
    return max(1.001, units_of(desc))


def assert_near(found: np.ndarray | None, expected: np.ndarray | None, most: float = 1.001) -> None:
    """Within so many units in the last place; what cancels is let be."""
    assert found is not None
    assert expected is not None
    with np.errstate(invalid="ignore"):
        units = np.spacing(np.abs(expected)).astype(np.float64)
        error = np.abs(found.astype(np.float64) - expected)
    assert ((found == expected) | (error <= most * units + 1e-9)).all()


@each_type
@pytest.mark.parametrize(("sizes", "axes"), LARGE, ids=str)
def test_large_groups(sizes: tuple[int, ...], axes: tuple[int, ...], dtype: Any) -> None:
    x = tensor(sizes, np.dtype(dtype).name.upper())
    for desc in descs(x, x, axes):
        inputs = values_of(desc, len(sizes))
        assert explained(desc)[0] == "cpu"
        operator = compiled("cpu", desc)
        kind = np.dtype(dtype)
        many, one = ([np.empty(t.Sizes, kind) for _, t in operator.spec.outputs(desc) if t] for _ in range(2))
        operator.dispatch(inputs, many)
        with threadpool_limits(1, "openmp"):
            operator.dispatch(inputs, one)
        outputs = [np.empty_like(each) for each in many]
        compiled("reference", desc).dispatch(inputs, outputs)
        for found, again, expected in zip(many, one, outputs, strict=True):
            np.testing.assert_array_equal(found.view(bits(found)), again.view(bits(again)))
            assert_near(found, expected, most_of(desc))


@each_type
@pytest.mark.parametrize(("width", "gap"), [(1021, 0), (1021, 3), (61, 0)])
def test_rows_past_the_caches(width: int, gap: int, dtype: Any) -> None:
    """The same bits as of some of the rows, which stay in the caches, and nothing between rows that lie apart."""
    rows = (16 << 20) // width // np.dtype(dtype).itemsize + 2
    x = np.random.default_rng(gap).normal(3, 2, (rows, 1, 1, width)).astype(dtype)
    functions: list[Callable[[np.ndarray, np.ndarray], Any]] = [
        lambda x, y: anydml.softmax(x, 3, out=y),
        lambda x, y: anydml.log_softmax(x, 3, out=y),
        lambda x, y: anydml.lp_normalization(x, 3, out=y),
        lambda x, y: anydml.mean_variance_normalization(x, axes=(3,), out=y),
    ]
    for function in functions:
        room, parts = (np.full((rows * (width + gap) + 1), 77, dtype) for _ in range(2))
        whole, some = (each[1:].reshape(rows, 1, 1, width + gap)[..., :width] for each in (room, parts))
        function(x, whole)
        at_once = 100_000 // width * 16  # as short rows are computed sixteen at a time
        for first in range(0, rows, at_once):
            function(x[first : first + at_once], some[first : first + at_once])
        np.testing.assert_array_equal(room.view(bits(room)), parts.view(bits(parts)))


EXTREMES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "far from 0": lambda x: x + 1e6,
    "further": lambda x: np.where(x > 4, -3e38, x * 1e30),
    "masked": lambda x: np.where(x > 4, -np.inf, x),
    "next to the least numbers": lambda x: x * 15 - 60,
    "all equal": lambda x: x * 0 - 5000,
    "no numbers": lambda x: np.where(x > 2.5, -np.inf, np.nan),
    "infinities": lambda x: np.where(x > 8, np.inf, x),
    "none above the lowest": lambda x: x * 0 - np.inf,
}


@each_type
@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize(
    ("sizes", "axis"),
    [((5, 301), 1), ((130, 37), 0), ((2, 2055, 35), 1), ((4, 33_003), 1), ((2, 70_001), 1)],
    ids=str,
)
def test_extremes_of_softmax(sizes: tuple[int, ...], axis: int, name: str, dtype: Any) -> None:
    """All results, also next to 0, within some units in the last place; what has no number is the same."""
    with np.errstate(over="ignore"):
        x = EXTREMES[name](np.random.default_rng(4).normal(3, 2, sizes)).astype(dtype)
    tensors: dict[str, Any] = {"InputTensor": tensor_of(x), "OutputTensor": tensor_of(x), "Axes": (axis,)}
    for desc in (
        anydml.DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC(**tensors),
        anydml.DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC(**tensors),
        anydml.DML_ACTIVATION_HARDMAX1_OPERATOR_DESC(**tensors),
    ):
        (found,), (expected,) = run("cpu", desc, [x]), run("reference", desc, [x])
        assert found is not None
        assert expected is not None
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        with np.errstate(invalid="ignore"):
            error = np.abs(found.astype(np.float64) - expected)
            assert (
                (found == expected) | np.isnan(found) | (error <= most_of(desc) * np.spacing(np.abs(expected)))
            ).all()


@each_type
@property_test
@given(data=st.data())
def test_any_strides_of_any_tensor(dtype: Any, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=4))
    axes = sorted(data.draw(st.sets(st.integers(0, len(sizes) - 1), min_size=1)))
    kind = np.dtype(dtype).name.upper()

    def laid_out(broadcasts: bool) -> DML_BUFFER_TENSOR_DESC:
        strides, step = [0] * len(sizes), 1
        for i in data.draw(st.permutations(range(len(sizes)))):
            strides[i] = step
            step = step * sizes[i] + data.draw(st.integers(0, 3))
        if broadcasts:
            strides = [data.draw(st.sampled_from([0, each, each])) for each in strides]
        return tensor(sizes, kind, strides)

    x = laid_out(True)
    for desc in descs(x, laid_out(False), axes):
        assert explained(desc)[0] == "cpu"
        inputs = values_of(desc, 1)
        # Of what broadcasts, all elements are one.
        seen = [i for i, stride in enumerate(x.strides) if stride == 0]
        inputs = [
            each if each is None or each.shape != tuple(sizes) else np.broadcast_to(
                each[tuple(slice(0, 1) if i in seen else slice(None) for i in range(each.ndim))], each.shape)
            for each in inputs
        ]  # fmt: skip
        for found, expected in zip(run("cpu", desc, inputs), run("reference", desc, inputs), strict=True):
            assert_near(found, expected, most_of(desc))


@each_type
@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("count", [1, 4, 5, 64])
def test_large_local_responses(dtype: Any, across: bool, count: int) -> None:
    rng = np.random.default_rng(count)
    x, g = (rng.normal(size=(3, 30, 40, 53)).astype(dtype) for _ in range(2))
    options: dict[str, Any] = {"CrossChannel": across, "LocalSize": count, "Beta": 0.75, "Bias": 1}
    options["Alpha"] = 0.001 if count == 5 else 0.5  # of windows that add little to Bias, too
    for desc, inputs in (
        (
            anydml.DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC(
                InputTensor=tensor_of(x), OutputTensor=tensor_of(x, (1, 3, 4800, 90)), **options
            ),
            [x],
        ),
        (
            anydml.DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC(
                InputTensor=tensor_of(x, (53 * 40 * 30, 1, 30 * 53, 30)),
                InputGradientTensor=tensor_of(g),
                OutputGradientTensor=tensor_of(g),
                **options,
            ),
            [x, g],
        ),
    ):
        assert explained(desc)[0] == "cpu"
        (found,), (expected,) = run("cpu", desc, inputs), run("reference", desc, inputs)
        assert_near(found, expected)
        with threadpool_limits(1, "openmp"):
            (again,) = run("cpu", desc, inputs)
        assert found is not None
        assert again is not None
        np.testing.assert_array_equal(found.view(bits(found)), again.view(bits(again)))


@each_type
@pytest.mark.parametrize(("order", "more"), [((0, 1, 2, 3), 0), ((0, 2, 3, 1), 0), ((0, 2, 3, 1), 3)])
def test_local_responses_past_the_caches_are_those_of_each_image(dtype: Any, order: Sequence[int], more: int) -> None:
    """Large results are sent by pieces, of rows side by side or with gaps between them, which are left alone."""
    sizes = ((18 << 20) // np.dtype(dtype).itemsize // (35 * 53 * 13), 35, 53, 13)
    rng = np.random.default_rng(1)
    x, g = (rng.standard_normal(sizes, np.float32).astype(dtype) for _ in range(2))
    x[1] *= 100  # of windows that add much to Bias, too
    lying = [sizes[i] for i in order]
    memory = np.full((*lying[:-1], lying[-1] + more), 7, dtype)
    out = memory[..., : lying[-1]].transpose(np.argsort(order))
    for of, inputs in (
        (anydml.local_response_normalization, [x]),
        (anydml.local_response_normalization_grad, [x, g]),
    ):
        of(*inputs, 5, out=out)
        assert (memory[..., lying[-1] :] == 7).all()
        for i in (0, 1, 2, sizes[0] - 1):
            assert_near(out[i], of(*(each[i : i + 1] for each in inputs), 5)[0])


@each_type
def test_a_batch_by_constants_of_any_shape(dtype: Any) -> None:
    """Of elements, of rows, of channels, and of none, with activations that single precision is not fused with."""
    rng = np.random.default_rng(2)
    sizes = (4, 5, 60, 70)
    x = rng.normal(size=sizes).astype(dtype)
    for own in (sizes, (4, 1, 60, 1), (1, 5, 1, 1), (1, 1, 1, 1), (1, 1, 1, 70)):
        mean, scale, bias = (rng.normal(size=own).astype(dtype) for _ in range(3))
        variance = rng.uniform(0.5, 2, own).astype(dtype)
        desc = anydml.DML_BATCH_NORMALIZATION_OPERATOR_DESC(
            InputTensor=tensor_of(x),
            MeanTensor=tensor_of(mean),
            VarianceTensor=tensor_of(variance),
            ScaleTensor=tensor_of(scale),
            BiasTensor=tensor_of(bias),
            OutputTensor=tensor_of(x, (5, 1, 70 * 20, 20)),
            Spatial=True,
            Epsilon=0.5,
            FusedActivation=anydml.DML_ACTIVATION_TANH_OPERATOR_DESC(),
        )
        assert explained(desc)[0] == "cpu"
        inputs = [x, mean, variance, scale, bias]
        (found,), (expected,) = run("cpu", desc, inputs), run("reference", desc, inputs)
        assert_near(found, expected)


def _channels_last(x: Any) -> Any:
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


@each_type
@pytest.mark.parametrize("channels", [33, 61, 128, 129])
def test_layouts_of_a_batch(dtype: Any, channels: int) -> None:
    """Of elements with channels last, or those of input or output alone: as of planes, up to the order of sums."""
    rng = np.random.default_rng(channels)
    x, gradient = (rng.normal(size=(2, channels, 13, 7)).astype(dtype) for _ in range(2))
    mean, scale, bias = (rng.normal(size=(1, channels, 1, 1)).astype(dtype) for _ in range(3))
    variance = rng.uniform(0.5, 2, mean.shape).astype(dtype)
    planes = [
        anydml.batch_normalization(x, mean, variance, scale, bias),
        *anydml.batch_normalization_training(x, scale, bias),
        *anydml.batch_normalization_training_grad(x, gradient, mean, variance, scale),
    ]
    x, gradient = _channels_last(x), _channels_last(gradient)
    outputs = [_channels_last(each) if each.shape == x.shape else np.empty_like(each) for each in planes]
    # With outputs of their own, which are of planes; and with channels last everywhere.
    out: Any
    for out in (None, outputs):
        found = [
            anydml.batch_normalization(x, mean, variance, scale, bias, out=out and out[0]),
            *anydml.batch_normalization_training(x, scale, bias, out=out and out[1:4]),
            *anydml.batch_normalization_training_grad(x, gradient, mean, variance, scale, out=out and out[4:]),
        ]
        for each, expected in zip(found, planes, strict=True):
            np.testing.assert_allclose(each, expected, 2e-3 if dtype == np.float16 else 2e-6, 1e-4)
