"""The recurrent operators' CPU kernels: against the specification's own double precision, and against themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import anydml
from anydml import Device, Graph
from anydml.core.enums import RecurrentNetworkDirection
from anydml.operators import spec, spec_of
from anydml.operators.fused_activation import FUSIBLE, fused_since
from anydml.operators.schema import OperatorDesc
from cases import tensor_of
from harness import run
from test_recurrent import BIDIRECTIONAL, INITIAL, USUAL, each_operator, sizes, values

pytestmark = [pytest.mark.native, pytest.mark.slow]

MEMBERS = {"Alpha": 0.5, "Beta": 0.25, "Gamma": 1.25, "Steepness": 1.5, "Bias": 0.25, "Threshold": 0.5}
FUSED = [name for name in FUSIBLE if fused_since(name, "RNN")]


def fused(name: str) -> OperatorDesc:
    return spec(name).desc(**{each: MEMBERS[each] for each in spec(name).attribute_names})


def scaled(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """With weights that keep sums near 1, so that no step makes much of an error of the step before."""
    for name in ("WeightTensor", "RecurrenceTensor"):
        inputs[name] = (inputs[name] / np.sqrt(inputs[name].shape[3])).astype(inputs[name].dtype)
    return inputs


def strided(data: st.DataObject, shape: Sequence[int]) -> list[int] | None:
    """Any order of dimensions, with gaps; None for a packed tensor."""
    if data.draw(st.booleans()):
        return None
    strides, step = [0] * len(shape), data.draw(st.integers(1, 2))
    for i in data.draw(st.permutations(range(len(shape)))):
        strides[i], step = step, step * shape[i] + data.draw(st.integers(0, 2))
    return strides


def desc_of(
    operator: str, inputs: dict[str, np.ndarray], strides: dict[str, Any] | None = None, **options: Any
) -> OperatorDesc:
    """Of all outputs, where the options do not leave one out."""
    x, r = inputs["InputTensor"], inputs["RecurrenceTensor"]
    dimensions = {"steps": x.shape[1], "batch": x.shape[2], "hidden": r.shape[3], "directions": r.shape[1]}
    outputs = {
        name: np.empty(each, x.dtype)
        for name, each in sizes(operator, **dimensions).items()
        if name.startswith("Output") and name not in options
    }
    tensors = {name: tensor_of(array, (strides or {}).get(name)) for name, array in {**inputs, **outputs}.items()}
    clip = {"ClipThreshold": 0} if operator == "LSTM" else {}
    usual = USUAL[operator] * r.shape[1]
    return spec(operator).desc(**{**tensors, **clip, "ActivationDescs": usual, **options})


def by_kernel(desc: OperatorDesc, inputs: dict[str, np.ndarray]) -> list[np.ndarray | None]:
    return run("cpu", desc, [inputs.get(name) for name, _ in specification_of(desc).inputs(desc)])


def specification_of(desc: OperatorDesc) -> Any:
    found = spec_of(desc)
    assert found is not None
    return found


def by_reference(desc: OperatorDesc, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    found = specification_of(desc)
    result = found.reference(desc, *[inputs.get(name) for name, _ in found.inputs(desc)])
    return list(result)


def assert_near(actual: Sequence[np.ndarray | None], expected: Sequence[np.ndarray]) -> None:
    for one, other in zip(actual, expected, strict=True):
        if one is None:
            continue
        # A rounding of FLOAT16, and what singles make of some dozen products.
        relative = 2**-10 if one.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(one.astype(float), other.astype(float), rtol=relative, atol=2e-5)


@settings(max_examples=80, deadline=None)
@given(st.data())
@each_operator
def test_is_what_double_precision_gives(operator: str, data: st.DataObject) -> None:
    direction = data.draw(st.sampled_from(RecurrentNetworkDirection))
    dimensions = {
        "steps": data.draw(st.integers(1, 5)),
        "batch": data.draw(st.sampled_from([1, 2, 3, 4, 6, 7, 13, 25])),
        "read": data.draw(st.sampled_from([1, 5, 16, 37, 530])),
        "hidden": data.draw(st.sampled_from([1, 2, 15, 16, 17, 33, 64, 70, 81])),
        "directions": 2 if direction == BIDIRECTIONAL else 1,
    }
    dtype = data.draw(st.sampled_from([np.float32, np.float16]))
    inputs = scaled(values(operator, np.random.default_rng(data.draw(st.integers(0, 2**32))), dtype, **dimensions))
    optional = [name for name, row in spec(operator).tensors.items() if row.kind == "Optional input"]
    inputs = {name: each for name, each in inputs.items() if name not in optional or data.draw(st.booleans())}
    outputs = [name for name in spec(operator).tensors if name.startswith("Output")]
    kept = data.draw(st.sampled_from(outputs))
    options: dict[str, Any] = {name: None for name in outputs if name != kept and data.draw(st.booleans())}
    if operator == "LSTM":
        options["ClipThreshold"] = data.draw(st.sampled_from([0.25, 1]))
        options |= {name: data.draw(st.booleans()) for name in ("UseClipThreshold", "CoupleInputForget")}
    elif operator == "GRU":
        options["LinearBeforeReset"] = data.draw(st.booleans())
    shapes = sizes(operator, **dimensions)
    strides = {name: strided(data, shape) for name, shape in shapes.items()}
    desc = desc_of(operator, inputs, strides, Direction=direction, **options)
    assert_near(by_kernel(desc, inputs), by_reference(desc, inputs))


@pytest.mark.parametrize("name", FUSED)
def test_an_activation_has_the_bits_of_its_operator(name: str) -> None:
    """Of H_t = f(X_t)."""
    x = np.concatenate([np.linspace(-9, 9, 155), [np.nan, np.inf, -np.inf, 0, -0.0]]).astype(np.float32)
    inputs = {
        "InputTensor": x.reshape(1, 1, -1, 1),
        "WeightTensor": np.ones((1, 1, 1, 1), np.float32),
        "RecurrenceTensor": np.zeros((1, 1, 1, 1), np.float32),
    }
    desc = desc_of("RNN", inputs, ActivationDescs=[fused(name)], OutputSingleTensor=None)
    (y, _) = by_kernel(desc, inputs)
    assert y is not None
    alone = fused(name)
    tensors = dict.fromkeys(spec(name).tensors, tensor_of(x.reshape(1, 1, -1, 1)))
    members = {each: getattr(alone, each) for each in spec(name).attribute_names}
    (expected,) = run("cpu", spec(name).desc(**tensors, **members), [x.reshape(1, 1, -1, 1)])
    assert expected is not None
    # Biases of 0 and products with states of 0 are added, which makes 0 of -0.
    np.testing.assert_array_equal(y.ravel(), expected.ravel())


@pytest.mark.parametrize("name", FUSED)
@each_operator
def test_every_activation_for_every_gate(operator: str, name: str) -> None:
    rng = np.random.default_rng(3)
    inputs = scaled(values(operator, rng, steps=3, batch=2, read=5, hidden=70, directions=1))
    for gate in range(len(USUAL[operator])):
        acts = list(USUAL[operator])
        acts[gate] = fused(name)
        desc = desc_of(operator, inputs, ActivationDescs=acts)
        assert_near(by_kernel(desc, inputs), by_reference(desc, inputs))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@each_operator
def test_a_sequence_in_a_batch_has_the_bits_that_it_has_alone(operator: str, dtype: Any) -> None:
    """However many share a tile of registers, whatever the lengths, and whatever lies behind a sequence's end."""
    dimensions = {"steps": 5, "read": 19, "hidden": 37, "directions": 2}
    inputs = scaled(values(operator, np.random.default_rng(4), dtype, batch=31, **dimensions))
    lengths = inputs["SequenceLengthsTensor"].ravel()
    for i, length in enumerate(lengths):
        inputs["InputTensor"][0, length:, i] = np.nan if i % 2 else np.inf
    options: dict[str, Any] = {"Direction": BIDIRECTIONAL}
    y, *last = by_kernel(desc_of(operator, inputs, **options), inputs)
    for i in range(31):
        alone = {name: each for name, each in inputs.items() if name != "SequenceLengthsTensor"}
        alone["InputTensor"] = inputs["InputTensor"][:, :, i : i + 1]
        alone["SequenceLengthsTensor"] = inputs["SequenceLengthsTensor"][..., i : i + 1]
        alone |= {name: inputs[name][:, :, i : i + 1] for name in INITIAL if name in inputs}
        sequence, *states = by_kernel(desc_of(operator, alone, **options), alone)
        for actual, expected in zip([sequence, *states], [y, *last], strict=True):
            assert actual is not None
            assert expected is not None
            np.testing.assert_array_equal(actual[:, :, 0], expected[:, :, i])


@pytest.mark.parametrize(
    ("batch", "steps", "hidden", "directions"), [(1, 150, 272, 1), (17, 70, 100, 2), (270, 3, 120, 1)]
)
@each_operator
def test_large_layers_have_the_same_bits_on_every_number_of_threads(
    operator: str, batch: int, steps: int, hidden: int, directions: int
) -> None:
    """Of which steps, and sequences, are computed in several parts, or sequences each on a thread of its own."""
    rng = np.random.default_rng(5)
    sizes: dict[str, Any] = {"steps": steps, "batch": batch, "read": 33, "hidden": hidden, "directions": directions}
    inputs = scaled(values(operator, rng, **sizes))
    inputs["SequenceLengthsTensor"][...] = np.maximum(inputs["SequenceLengthsTensor"], steps - 1)
    options: dict[str, Any] = {"Direction": BIDIRECTIONAL} if directions == 2 else {}
    desc = desc_of(operator, inputs, **options)
    many = by_kernel(desc, inputs)
    with threadpool_limits(1, "openmp"):
        one = by_kernel(desc, inputs)
    for actual, expected in zip(many, one, strict=True):
        np.testing.assert_array_equal(actual, expected)
    assert_near(many, by_reference(desc, inputs))


@pytest.mark.parametrize("known", ["weights", "everything else", "no recurrence", "input"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@each_operator
def test_constants_of_a_graph_are_packed_once(operator: str, dtype: Any, known: str) -> None:
    dimensions = {"steps": 4, "batch": 5, "read": 530, "hidden": 83, "directions": 2}
    inputs = scaled(values(operator, np.random.default_rng(7), dtype, False, **dimensions))
    desc = desc_of(operator, inputs, Direction=BIDIRECTIONAL)
    names = [name for name, _ in spec(operator).inputs(desc)]
    constants = {
        "weights": names[1:3],
        "everything else": names[1:],
        "no recurrence": [names[1], *names[3:]],
        "input": names[:3],
    }[known]
    graph = Graph(Device("cpu"))
    expressions = []
    for name in names:
        x = tensor_of(inputs[name])
        expressions.append(graph.constant(x, inputs[name]) if name in constants else graph.input(x))
    members = {name: getattr(desc, name) for name in spec(operator).attribute_names}
    results = graph.operator(
        type(desc),
        **dict(zip(names, expressions, strict=True)),
        **{name: tensor for name, tensor in spec(operator).outputs(desc)},
        **members,
    )
    outputs = [np.empty(each.tensor.Sizes, dtype) for each in results]
    compiled = graph.compile(list(results))
    given_ = [inputs[name] for name in names if name not in constants]
    for _ in range(2):
        compiled.dispatch(given_, outputs)
        for actual, expected in zip(outputs, by_kernel(desc, inputs), strict=True):
            np.testing.assert_array_equal(actual, expected)


@each_operator
def test_arrays_whose_strides_are_negative(operator: str) -> None:
    """Which no desc has, but functions' arrays have."""
    inputs = scaled(values(operator, np.random.default_rng(6), steps=4, batch=3, read=5, hidden=18, directions=1))
    inputs.pop("SequenceLengthsTensor")
    function = getattr(anydml, operator.lower())
    names = {
        "x": "InputTensor",
        "weight": "WeightTensor",
        "recurrence": "RecurrenceTensor",
        "bias": "BiasTensor",
        "hidden_init": "HiddenInitTensor",
    }
    arrays = {name: inputs[each] for name, each in names.items()}
    expected = function(**arrays)
    turned = {name: array[..., ::-1].copy()[..., ::-1] for name, array in arrays.items()}
    for actual, right in zip(function(**turned), expected, strict=True):
        np.testing.assert_array_equal(actual, right)
