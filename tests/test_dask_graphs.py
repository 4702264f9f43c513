"""Compiled functions and ONNX models over batches: each chunk of rows for itself, compiled once for each size."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import DMLError
from dask_chunks import chunked, computed, da, dask, same_bits, untouchable

onnx = pytest.importorskip("onnx")
helper = onnx.helper
InferenceSession = pytest.importorskip("anydml.onnx").InferenceSession

RNG = np.random.default_rng(0)
WEIGHTS = RNG.standard_normal((6, 5)).astype(np.float32)
FILTERS = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)


@anydml.compile
def layers(x: Any, weights: Any, slope: float = 0.5) -> Any:
    hidden = anydml.leaky_relu(x @ weights, slope)
    return {"hidden": hidden, "scores": anydml.softmax(hidden, -1)}


@anydml.compile
def network(x: Any) -> Any:
    y = anydml.relu(anydml.convolution(x, FILTERS))
    y = anydml.max_pooling(y, 2, strides=2)
    return anydml.reduce(y, "SUM", axes=[1, 2, 3])


@anydml.compile
def centred(x: Any) -> Any:
    return x - anydml.reduce(x, "AVERAGE", axes=[0])


@anydml.compile
def over_rows(x: Any) -> Any:
    return x * (1 / x.shape[0])


@pytest.mark.parametrize("call", ["dispatch", "call"])
def test_what_is_compiled_for_one_shape_computes_no_dask_array(call: str) -> None:
    lazy = untouchable((4, 6), np.float32, 2)
    graph = anydml.Graph(anydml.Device())
    tensor = anydml.DML_BUFFER_TENSOR_DESC(DataType=anydml.TensorDataType.FLOAT32, Sizes=(4, 6))
    operator = graph.device.create_operator(
        anydml.DML_ACTIVATION_RELU_OPERATOR_DESC(InputTensor=tensor, OutputTensor=tensor)
    )
    for compiled in (graph.compile([anydml.relu(graph.input((4, 6)))]), graph.device.compile_operator(operator)):
        with pytest.raises(DMLError, match=r"found a Dask array.*\(A1\)\. Use \.compute\(\)"):
            compiled.dispatch([lazy], [np.empty((4, 6), np.float32)]) if call == "dispatch" else compiled(lazy)


def rows_of(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def is_compiled_by_rows(result: Any) -> bool:
    return any("-rows-" in name for name in result.__dask_graph__().layers)


@pytest.mark.parametrize("rows", [(4, 4, 4), (1, 7, 2), (1, 1, 1)])
def test_functions_are_compiled_for_chunks_of_rows(rows: tuple[int, ...]) -> None:
    x = rows_of(sum(rows), 6)
    found = layers(da.from_array(x, chunks=(rows, 6)), WEIGHTS)
    assert found.keys() == {"hidden", "scores"}
    assert all(each.chunks == (rows, (5,)) and is_compiled_by_rows(each) for each in found.values())
    expected = layers(x, WEIGHTS)
    for name in found:
        np.testing.assert_allclose(computed(found[name]), expected[name], rtol=1e-6)


def test_networks_of_images() -> None:
    x = rows_of(7, 3, 10, 10)
    found = network(da.from_array(x, chunks=(3, 3, 10, 10)))
    assert is_compiled_by_rows(found)
    np.testing.assert_allclose(computed(found), network(x), rtol=1e-5)


@pytest.mark.parametrize("function", [centred, over_rows])
def test_rows_that_need_each_other_are_computed_together(function: Any) -> None:
    x = rows_of(9, 4)
    found = function(da.from_array(x, chunks=(4, 4)))
    assert not is_compiled_by_rows(found)
    np.testing.assert_allclose(computed(found), function(x), rtol=1e-5, atol=1e-6)


def test_arrays_that_are_cut_in_other_ways() -> None:
    x = rows_of(8, 6)
    found = layers(chunked(np.random.default_rng(3), x, 5), da.from_array(WEIGHTS, chunks=3))
    for name, expected in layers(x, WEIGHTS).items():
        assert not is_compiled_by_rows(found[name])
        np.testing.assert_allclose(computed(found[name]), expected, rtol=1e-5)


def test_what_lies_beside_has_all_rows() -> None:
    x, y = rows_of(9, 4), rows_of(9, 4)
    added = anydml.compile(lambda a, b: a + b)
    same_bits(added(da.from_array(x, chunks=(3, 4)), y), x + y)
    with pytest.raises(ValueError, match="broadcast"):
        added(da.from_array(x, chunks=(3, 4)), y[:3])


def test_a_function_is_traced_once_for_each_size() -> None:
    seen = []

    def doubled(x: Any) -> Any:
        seen.append(x.shape)
        return x * 2

    found = anydml.compile(doubled)(da.from_array(rows_of(13, 2), chunks=(3, 2)))
    seen.clear()
    computed(found)
    assert sorted(seen) == [(1, 2)]  # that of 3 rows was compiled as the graph was made


def model(*nodes: Any, shape: Any = ("n", 3, 8, 8), output: Any = None, constants: Any = ()) -> bytes:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, output)],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, ir_version=8, opset_imports=opsets).SerializeToString()


NETWORK = model(
    helper.make_node("Conv", ["x", "w"], ["c"]),
    helper.make_node("Relu", ["c"], ["r"]),
    helper.make_node("GlobalAveragePool", ["r"], ["p"]),
    helper.make_node("Flatten", ["p"], ["y"]),
    constants=[("w", FILTERS)],
)


def test_sessions_over_batches() -> None:
    session = InferenceSession(NETWORK)
    x = rows_of(11, 3, 8, 8)
    (found,) = session.run(None, {"x": da.from_array(x, chunks=(4, 2, 8, 5))})
    assert found.chunks == ((4, 4, 3), (4,))
    (expected,) = session.run(None, {"x": x})
    np.testing.assert_allclose(computed(found), expected, rtol=1e-5)
    (again,) = session.run(["y"], {"x": da.from_array(x, chunks=(4, 2, 8, 5))})
    assert again.name == found.name


def test_sessions_are_sent_and_compile_there() -> None:
    session = pickle.loads(pickle.dumps(InferenceSession(NETWORK)))
    x = rows_of(5, 3, 8, 8)
    expected = InferenceSession(NETWORK).run(None, {"x": x})
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], expected[0])
    (found,) = session.run(None, {"x": da.from_array(x, chunks=(2, 3, 8, 8))})
    graph = pickle.loads(pickle.dumps(dict(found.__dask_graph__())))
    blocks = dask.get(graph, [(found.name, i, 0) for i in range(3)])
    np.testing.assert_allclose(np.concatenate(blocks), expected[0], rtol=1e-5)


def test_one_chunk_may_be_any_model() -> None:
    sums = model(helper.make_node("ReduceSum", ["x", "axes"], ["y"]), constants=[("axes", np.array([0]))])
    session = InferenceSession(sums)
    x = rows_of(4, 3, 8, 8)
    same_bits(session.run(None, {"x": da.from_array(x, chunks=-1)}), session.run(None, {"x": x}))


def test_a_fixed_batch_takes_chunks_of_it() -> None:
    session = InferenceSession(model(helper.make_node("Relu", ["x"], ["y"]), shape=[2, 3]))
    x = rows_of(6, 3)
    (found,) = session.run(None, {"x": da.from_array(x, chunks=(2, 3))})
    np.testing.assert_array_equal(computed(found), np.maximum(x, 0))
    with pytest.raises(DMLError, match=r"\(N3\)"):
        session.run(None, {"x": da.from_array(x, chunks=(3, 3))})


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(DMLError) as raised:
        call()
    assert [each.rule for each in raised.value.violations] == ["(K4)"]
    return str(raised.value)


def test_outputs_without_the_batch_are_refused() -> None:
    sums = model(helper.make_node("ReduceSum", ["x", "axes"], ["y"]), constants=[("axes", np.array([0]))])
    x = untouchable((4, 3, 8, 8), np.float32, (2, 3, 8, 8))
    said = refused(lambda: InferenceSession(sums).run(None, {"x": x}))
    assert "run.y: found shape (1, 3, 8, 8) for 2 rows" in said
    turned = model(helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0, 2, 3]))
    refused(lambda: InferenceSession(turned).run(None, {"x": x}))


def test_inputs_of_several_batches_are_refused() -> None:
    node = helper.make_node("Add", ["a", "b"], ["y"])
    inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [name, 3]) for name in "ab"]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 3])]
    session = InferenceSession(helper.make_model(helper.make_graph([node], "g", inputs, outputs), ir_version=8))
    a, b = rows_of(6, 3), rows_of(1, 3)
    lazy = da.from_array(a, chunks=(2, 3))
    assert "6 rows" in refused(lambda: session.run(None, {"a": lazy, "b": da.from_array(b)}))
    same_bits(session.run(None, {"a": lazy, "b": b}), [a + b])
    same_bits(session.run(None, {"a": lazy, "b": da.from_array(a, chunks=(4, 1))}), [a + a])


def test_nothing_is_computed_while_the_graph_is_made() -> None:
    x = untouchable((8, 6), np.float32, (2, 6))
    assert all(isinstance(each, da.Array) for each in layers(x, WEIGHTS).values())
    images = untouchable((8, 3, 8, 8), np.float32, (3, 3, 8, 8))
    (found,) = InferenceSession(NETWORK).run(None, {"x": images})
    assert found.shape == (8, 4)
    assert len(found.__dask_graph__()) - len(images.__dask_graph__()) == 2 * 3 + 1


def perceptron(weights: np.ndarray) -> Any:
    """A model whose weights are so large that they are read beside it."""
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 64]) for name in "xy")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "perceptron", [x], [y], [onnx.numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_large_weights_are_sent_and_tell_models_apart() -> None:
    x = RNG.standard_normal((7, 64)).astype(np.float32)
    sessions = [InferenceSession(perceptron(RNG.standard_normal((64, 64)).astype(np.float32))) for _ in range(2)]
    lazy = [session.run(None, {"x": da.from_array(x, chunks=(3, 64))})[0] for session in sessions]
    assert lazy[0].name != lazy[1].name
    for session, found in zip(sessions, lazy, strict=True):
        (expected,) = session.run(None, {"x": x})
        sent = pickle.loads(pickle.dumps(session))
        np.testing.assert_array_equal(sent.run(None, {"x": x})[0], expected)
        np.testing.assert_allclose(computed(found), expected, rtol=1e-5, atol=1e-5)
