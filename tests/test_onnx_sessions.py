"""Sessions of ONNX models: what is fed and given, signatures that are kept, several threads, the backend interface."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

from onnx import TensorProto, helper

import anydml
import anydml.onnx
from anydml import DMLError
from anydml.onnx import backend
from onnx_samples import model_of, value

X = np.array([[1, -2, 3], [0, 5, -6]], np.float32)


def session(*nodes: Any, output: str = "y", **options: Any) -> anydml.onnx.InferenceSession:
    """Of a model with an input x of two columns of any length."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, "n"])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
    )
    return anydml.onnx.InferenceSession(helper.make_model(graph, ir_version=8), **options)


def relu(**options: Any) -> anydml.onnx.InferenceSession:
    return session(helper.make_node("Relu", ["x"], ["y"], "relu"), **options)


def refused(call: Callable[[], Any], rule: str) -> str:
    with pytest.raises(DMLError) as raised:
        call()
    assert [each.rule for each in raised.value.violations] == [rule]
    return str(raised.value)


@pytest.mark.parametrize(
    ("feeds", "said"),
    [
        ({}, "no x"),
        ({"x": X, "z": X}, "'z'"),
        ({"x": X.astype(np.float64)}, "elements of float64, expected float32"),
        ({"x": X[:1]}, "shape (1, 3)"),
        ({"x": X[0]}, "shape (3,)"),
        ([X], "list"),
    ],
)
def test_feeds_that_are_not_the_models(feeds: Any, said: str) -> None:
    ready = relu()
    assert said in refused(lambda: ready.run(None, feeds), "(N3)")
    assert said in refused(lambda: ready.run(None, feeds), "(N3)")


def test_outputs_are_asked_for_by_name() -> None:
    ready = relu()
    (found,) = ready.run(["y"], {"x": X})
    np.testing.assert_array_equal(found, np.maximum(X, 0))
    assert ready.run([], {"x": X}) == []
    assert "'z'" in refused(lambda: ready.run(["z"], {"x": X}), "(N3)")


def test_several_graphs_are_no_graph() -> None:
    found = session(helper.make_node("NonZero", ["x"], ["i"]), helper.make_node("Cast", ["i"], ["y"], to=1))
    assert "0 graphs" in refused(lambda: found.graph, "(N5)")
    np.testing.assert_array_equal(found.run(None, {"x": X})[0], np.array(np.nonzero(X), np.float32))
    assert len(found.graphs) == 2
    assert "2 graphs" in refused(lambda: found.graph, "(N5)")


def test_each_signature_is_compiled_once() -> None:
    ready = relu()
    for _ in range(2):
        for length in (1, 3, 7):
            x = np.linspace(-1, 1, 2 * length, dtype=np.float32).reshape(2, length)
            np.testing.assert_array_equal(ready.run(None, {"x": x})[0], np.maximum(x, 0))
    assert len(ready._kept) == 3


def test_strides_lists_and_tensors_are_taken() -> None:
    ready = relu()
    wanted = np.maximum(X, 0)
    strided = np.repeat(X, 2, axis=1)[:, ::2]
    for x in (X, strided, np.asfortranarray(X), X.copy(), X.tolist(), [[1, -2, 3], [0, 5, -6]]):
        np.testing.assert_array_equal(ready.run(None, {"x": x})[0], wanted)
    torch = pytest.importorskip("torch")
    found = ready.run(None, {"x": torch.from_numpy(X)})[0]
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_results_are_new_each_time() -> None:
    ready = relu()
    first = ready.run(None, {"x": X})[0]
    kept = first.copy()
    ready.run(None, {"x": -X})
    np.testing.assert_array_equal(first, kept)


def test_threads_share_a_session() -> None:
    ready = relu()

    def work(seed: int) -> bool:
        generator = np.random.default_rng(seed)
        for _ in range(20):
            x = generator.standard_normal((2, int(generator.integers(1, 6)))).astype(np.float32)
            if not np.array_equal(ready.run(None, {"x": x})[0], np.maximum(x, 0)):
                return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(8)))


def test_what_is_left_to_another_runtime_is_said() -> None:
    graph = helper.make_graph(
        [helper.make_node("StringNormalizer", ["x"], ["y"], "strings", case_change_action="UPPER")],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.STRING, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, None)],
    )
    found = anydml.onnx.InferenceSession(helper.make_model(graph, ir_version=8), fallback=True)
    assert found.run(None, {"x": np.array(["a", "b"], object)})[0].tolist() == ["A", "B"]
    assert "strings (StringNormalizer)" in found.explain()


def test_what_no_runtime_does_is_said_in_the_words_of_each() -> None:
    graph = helper.make_graph(
        [helper.make_node("ImageDecoder", ["x"], ["y"], "decoder")],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
    )
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 20)])
    found = anydml.onnx.InferenceSession(model, fallback=True)
    said = refused(lambda: found.run(None, {"x": np.zeros(5, np.uint8)}), "(N2)")
    assert "node 'decoder'" in said
    assert "ONNX's reference: " in said


def test_the_backend_interface() -> None:
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA:999")
    node = helper.make_node("Add", ["a", "b"], ["c"])
    (found,) = backend.run_node(node, [X, X])
    np.testing.assert_array_equal(found, X + X)
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "ab"],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, [2, 3])],
    )
    model = helper.make_model(graph, ir_version=8)
    for given in ([X, X], {"a": X, "b": X}):
        np.testing.assert_array_equal(backend.run_model(model, given)[0], X + X)


@pytest.mark.parametrize("level", anydml.FeatureLevel, ids=lambda level: level.number)
def test_a_check_computes_what_shapes_depend_on_at_every_level(level: anydml.FeatureLevel) -> None:
    """Also where a device of the level has no graphs, or none that copy INT64."""
    nodes = [
        helper.make_node("Relu", ["x"], ["positive"]),
        helper.make_node("NonZero", ["positive"], ["places"]),
        helper.make_node("Cast", ["places"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Gelu", ["floats"], ["y"], domain=""),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])
    checked = anydml.onnx.check(model, level)
    assert (checked.nodes, checked.ended) == (4, "")
    refused = [each.operator for each in checked.violations]
    since = {"NonZero": anydml.FeatureLevel.LEVEL_4_0, "Cast": anydml.FeatureLevel.LEVEL_3_1}
    assert {op for op in since if op in refused} == {op for op, first in since.items() if level < first}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"providers": ["CPUExecutionProvider"]},
            "providers: found an argument that is unknown.*device says where to run",
        ),
        ({"sess_options": None}, "OMP_NUM_THREADS says"),
        ({"fall_back": True}, "Did you mean fallback?"),
    ],
)
def test_arguments_of_other_sessions_are_told(options: dict[str, Any], said: str) -> None:
    assert re.search(said, refused(lambda: relu(**options), "(A15)"))


def test_what_is_fed_and_asked_for_wrongly_has_a_remedy() -> None:
    ready = relu()
    assert "Convert it to float32" in refused(lambda: ready.run(None, {"x": X.astype(np.float64)}), "(N3)")
    assert "found str 'y', expected a list of names (N3). Write ['y']" in refused(
        lambda: ready.run("y", {"x": X}), "(N3)"
    )


@pytest.mark.parametrize("level", ["4.0", "4.1"])
def test_outputs_of_64_bits_where_no_operator_copies_them(level: str) -> None:
    """Coordinates are columns of what the operator gives, and an input may be an output: IDENTITY has no INT64
    before."""
    found = helper.make_node("NonZero", ["x"], ["places"])
    same = helper.make_node("Identity", ["n"], ["m"])
    ends = [value("places", [4, None], np.int64), value("m", [1, 1, 1, 2], np.int64)]
    starts = [value("x", [1, 1, 2, 3]), value("n", [1, 1, 1, 2], np.int64)]
    session = anydml.onnx.InferenceSession(
        model_of([found, same], starts, ends), device=anydml.Device(feature_level=level)
    )
    x, n = np.array([[[[0, 2, 0], [-1, 0, 3]]]], np.float32), np.array([[[[2**40, -(2**62)]]]])
    places, m = session.run(None, {"x": x, "n": n})
    np.testing.assert_array_equal(places, np.array(np.nonzero(x)))
    np.testing.assert_array_equal(m, n)
