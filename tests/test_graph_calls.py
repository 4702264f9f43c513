"""Calls of compiled operators and graphs with any arrays, their copies, and functions compiled for each signature."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import (
    DML_ACTIVATION_RELU_OPERATOR_DESC,
    DML_BUFFER_TENSOR_DESC,
    DML_CONSTANT_DATA_GRAPH_NODE_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_GEMM_OPERATOR_DESC,
    DML_GRAPH_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_OUTPUT_GRAPH_EDGE_DESC,
    DML_SPLIT_OPERATOR_DESC,
    CompiledOperator,
    Device,
    DMLError,
    DMLTypeError,
    Graph,
    MatrixTransform,
    TensorDataType,
    TensorFlags,
)
from anydml.graph.compile import CompiledGraph
from anydml.graph.desc import graph_of
from anydml.operators.schema import OperatorDesc
from cases import tensor
from harness import GPU, assert_same

pytestmark = pytest.mark.gpu

DEVICE = Device("cpu")
X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)


def operator(desc: OperatorDesc) -> CompiledOperator:
    return DEVICE.compile_operator(DEVICE.create_operator(desc))


def sums(data_type: str = "FLOAT32", **strides: Any) -> CompiledOperator:
    packed = tensor((2, 3), data_type)
    strided = {
        side: DML_BUFFER_TENSOR_DESC(DataType=packed.DataType, Sizes=packed.Sizes, Strides=each)
        for side, each in strides.items()
    }
    tensors = {"InputTensor": packed, "OutputTensor": packed, **strided}
    return operator(DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(**tensors, Axis=1))


def product(with_c: bool = False) -> CompiledOperator:
    matrix = tensor((2, 2))
    return operator(
        DML_GEMM_OPERATOR_DESC(
            ATensor=matrix,
            BTensor=matrix,
            CTensor=matrix if with_c else None,
            OutputTensor=matrix,
            TransA=MatrixTransform.NONE,
            TransB=MatrixTransform.NONE,
            Alpha=1,
            Beta=1,
        )
    )


def twice() -> CompiledGraph:
    """2 * x + y and x - y, with names."""
    graph = Graph(DEVICE)
    x, y = graph.input((2, 3), name="x"), graph.input((2, 3), name="y")
    return graph.compile({"more": 2 * x + y, "less": x - y})


def unnamed(count: int = 1) -> CompiledGraph:
    graph = Graph(DEVICE)
    x = graph.input((2, 3))
    return graph.compile([x + 1, x + 2][:count])


# Operands


SUMS = np.cumsum(X, axis=1)
KINDS: dict[str, Any] = {
    "array": X,
    "list": X.tolist(),
    "list of integers": [[1, -2, 3], [4, 5, -6]],
    "backward": np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "columns": np.asfortranarray(X),
    "spread": np.repeat(X, 2, axis=1)[:, ::2],
    "buffer": memoryview(X),
    "read-only": np.frombuffer(X.tobytes(), np.float32).reshape(2, 3),
    "flat": X.ravel(),
    "flat bytes": X.tobytes(),
    "unaligned": np.frombuffer(b"_" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 3),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strides", [{}, {"InputTensor": (4, 1)}, {"OutputTensor": (1, 2)}], ids=str)
def test_an_operator_takes_what_functions_take(kind: str, strides: dict[str, Any]) -> None:
    x = KINDS[kind]
    if kind.startswith("flat") and "InputTensor" in strides:
        x = np.concatenate([X[0], [0], X[1]]).astype(np.float32)
    found = sums(**strides)(x)
    assert type(found) is np.ndarray
    assert_same(np.ascontiguousarray(found), SUMS)


def test_a_list_has_the_type_of_its_tensor() -> None:
    assert_same(sums("INT32")([[1, 2, 3], [4, 5, 6]]), np.array([[1, 3, 6], [4, 9, 15]], np.int32))
    assert_same(sums("UINT64")([[2**63, 1, 0]] * 2)[0], np.array([2**63, 2**63 + 1, 2**63 + 1], np.uint64))
    graph = Graph(DEVICE)
    x = graph.input((1,), "float64")
    assert_same(graph.compile([x])([1e300]), np.array([1e300]))
    with pytest.raises(
        DMLError, match=r"CUMULATIVE_SUMMATION.InputTensor: found an array of float32, .* expected int32.*\(B6\)"
    ):
        sums("INT32")([[1.5, 2, 3], [4, 5, 6]])
    with pytest.raises(DMLError, match=r"InputTensor: found an array of int64, .*\(B6\)"):
        sums("UINT32")([[-1, 2, 3], [4, 5, 6]])
    with pytest.raises(DMLError, match=r"InputTensor: found list \(1e\+300 is too large for float32\)"):
        sums()([[1e300, 2, 3], [4, 5, 6]])
    with pytest.raises(DMLError, match=r"InputTensor: found list .*\(A1\)"):
        sums()([[1, 2, 3], [4]])


@pytest.mark.parametrize("wrong", [X.astype(np.float64), X[0], X.T, X[..., None], np.float32(1), 3.0])
def test_types_and_sizes_are_those_of_the_desc(wrong: Any) -> None:
    with pytest.raises(DMLError, match=r"CUMULATIVE_SUMMATION.InputTensor: found .*\((B6|A1)\)"):
        sums()(wrong)


def test_what_a_desc_broadcasts_is_given_broadcast() -> None:
    broadcast = sums(InputTensor=(0, 1))
    assert_same(broadcast(np.broadcast_to(X[0], (2, 3))), np.cumsum([X[0], X[0]], axis=1, dtype=np.float32))
    with pytest.raises(DMLError, match=r"InputTensor: found .* expected float32, .* strides \(0, 1\).*\(B6\)"):
        broadcast(X)


def test_tensors_in_tensors_out() -> None:
    torch = pytest.importorskip("torch")
    found = twice()(torch.tensor(X).T.contiguous().T, torch.ones(2, 3))
    assert {type(each) for each in found.values()} == {torch.Tensor}
    assert_same(found["more"].numpy(), 2 * X + 1)
    out = torch.zeros(3, 2).T
    assert sums()(torch.tensor(X), out=out) is out
    assert_same(np.ascontiguousarray(out.numpy()), SUMS)


# By position and by name


def test_by_position_or_by_name() -> None:
    y = np.ones((2, 3), np.float32)
    for found in (twice()(X, y), twice()(X, y=y), twice()(y=y, x=X)):
        assert list(found) == ["more", "less"]
        assert_same(found["more"], 2 * X + 1)
        assert_same(found["less"], X - 1)
    a, b = X[:, :2], X[:, 1:]
    assert_same(product()(BTensor=b, ATensor=a), a @ b)
    assert_same(product(with_c=True)(a, CTensor=a, BTensor=b), a @ b + a)
    assert_same(product()(a, b, None), a @ b)
    join = operator(DML_JOIN_OPERATOR_DESC(InputTensors=[tensor((1,))] * 2, OutputTensor=tensor((2,)), Axis=0))
    assert join(InputTensors=[[1], [2]]).tolist() == join([1], [2]).tolist() == [1, 2]


def test_one_output_several_or_by_name() -> None:
    assert_same(unnamed()(X), X + 1)
    one, two = unnamed(2)(X)
    assert_same(one, X + 1)
    assert_same(two, X + 2)
    whole, halves = tensor((4,)), [tensor((1,)), tensor((3,))]
    split = operator(DML_SPLIT_OPERATOR_DESC(InputTensor=whole, OutputTensors=halves, Axis=0))
    assert [each.tolist() for each in split([1, 2, 3, 4])] == [[1], [2, 3, 4]]
    graph = Graph(DEVICE)
    assert list(graph.compile({"y": -graph.input((1,))})([1])) == ["y"]


def test_what_no_output_needs_may_be_given() -> None:
    graph = Graph(DEVICE)
    x, _ = graph.input((2, 3), name="x"), graph.input((2, 3), name="unread")
    compiled = graph.compile([x + 1])
    for found in (compiled(X), compiled(X, X), compiled(X, "whatever"), compiled(unread=None, x=X)):
        assert_same(found, X + 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: unnamed()(), r"graph.inputs\[0\]: found None, .*\(B2\)"),
        (lambda: unnamed()(X, X), r"graph: found 2 inputs, expected at most 1: inputs\[0\] \(B11\)"),
        (lambda: unnamed()(x=X), r"graph.x: found an input of that name, .*\(B11\). Inputs without names"),
        (lambda: twice()(X), r"graph.y: found None, .*\(B2\)"),
        (lambda: twice()(X, z=X), r"graph.z: found an input of that name, expected x or y, out or persistent \(B11\)"),
        (lambda: twice()(X, X, y=X), r"graph.y: found an input that is given by position, too, .*\(B11\)"),
        (lambda: twice()(X, y=X.T), r"graph.y: found an array of float32, sizes \(3, 2\).*\(B6\)"),
        (lambda: product()(X[:, :2], X[:, :2], X[:, :2]), r"GEMM.CTensor: found .* the desc leaves it out \(B2\)"),
        (lambda: product()(X[:, :2], C=1), r"GEMM.C: found .*expected ATensor, BTensor or CTensor, .*\(B11\)"),
        (lambda: sums()(X, persistent=np.zeros(1, np.uint8)), r"persistent: found .*\(B9\)"),
    ],
)
def test_what_no_call_is(call: Any, message: str) -> None:
    with pytest.raises(DMLError, match=message):
        call()


def test_an_array_of_tensors_is_a_list() -> None:
    join = operator(DML_JOIN_OPERATOR_DESC(InputTensors=[tensor((1,))] * 2, OutputTensor=tensor((2,)), Axis=0))
    for wrong in ([[1]], np.zeros((2, 1), np.float32)):
        with pytest.raises(DMLTypeError, match=r"JOIN.InputTensors: found .* expected a list of 2: .*\(B11\)"):
            join(InputTensors=wrong)


def test_names_stand_in_explanations() -> None:
    assert twice().explain().splitlines()[1] == "inputs: x, y; outputs: more, less"
    assert "inputs" not in unnamed().explain()
    graph = Graph(DEVICE)
    x = graph.input((1,), name="x")
    text = graph.compile([x - graph.input((1,))]).explain()
    assert "\ninputs: x, inputs[1]; outputs: outputs[0]\n" in text


# Where to write


@pytest.mark.parametrize(
    "out", [np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32).T, np.zeros((4, 6), np.float32)[::2, ::2]]
)
def test_out_is_written_to_and_returned(out: np.ndarray) -> None:
    for call in (sums(), sums(OutputTensor=(1, 2)), sums(OutputTensor=(4, 1))):
        out[...] = 0
        assert call(X, out=out) is out
        assert_same(np.ascontiguousarray(out), SUMS)


def test_out_of_several_outputs() -> None:
    a, b = np.zeros((2, 2, 3), np.float32)
    found = unnamed(2)(X, out=[a, b])
    assert found[0] is a
    assert found[1] is b
    assert_same(a + b, 2 * X + 3)
    found = twice()(X, X, out={"less": a})
    assert found["less"] is a
    assert_same(a, X - X)
    assert_same(found["more"], 3 * X)


def test_in_place_where_the_operator_may() -> None:
    x = X.copy()
    assert sums()(x, out=x) is x
    assert_same(x, SUMS)
    a = X[:, :2].copy()
    with pytest.raises(DMLError, match=r"GEMM.OutputTensor: found memory shared with ATensor.*\(B7\)"):
        product()(a, a, out=a)
    assert_same(a, X[:, :2].copy())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sums()(X, out=X.astype(np.float64)), r"out: found float64 of shape \(2, 3\).*\(A4\)"),
        (lambda: sums()(X, out=X.T), r"out: found float32 of shape \(3, 2\), .*\(A4\)"),
        (lambda: sums()(X, out=np.frombuffer(X.tobytes(), np.float32).reshape(2, 3)), r"found a read-only .*\(A3\)"),
        (lambda: sums()(X, out=np.broadcast_to(X[0], (2, 3))), r"found a read-only array.*\(A3\)"),
        (lambda: sums()(X, out=[X]), r"out: found .*\(A1\)"),
        (lambda: unnamed(2)(X, out=X), r"graph.out: .*expected a list of 2 arrays: outputs\[0\], outputs\[1\] \(A4\)"),
        (lambda: twice()(X, X, out=[X, X]), r"graph.out: .*expected a dictionary of arrays, for more and less \(A4\)"),
        (lambda: twice()(X, X, out={"most": X}), r"graph.out: .*expected a dictionary of arrays"),
    ],
)
def test_what_is_not_written_to(call: Any, message: str) -> None:
    with pytest.raises(DMLError, match=message):
        call()


# What is owned


def owned() -> CompiledGraph:
    graph = Graph(DEVICE)
    weights = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(2, 3), Flags=TensorFlags.OWNED_BY_DML)
    return graph.compile([graph.input((2, 3), name="x") * graph.input(weights, name="w")])


def test_what_is_owned_is_bound_before() -> None:
    compiled = owned()
    persistent = compiled.initialise([None, X])
    for found in (compiled(X, persistent=persistent), compiled(X, None, persistent=persistent)):
        assert_same(found, X * X)
    with pytest.raises(DMLError, match=r"graph.w: found ndarray.*None: it is OWNED_BY_DML, bound at initialisation"):
        compiled(X, X, persistent=persistent)
    with pytest.raises(DMLError, match=r"persistent: found None.*\(B9\)"):
        compiled(X)


# Copies


COPIES = pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])


@COPIES
def test_what_is_compiled_is_compiled_anew(copied: Any) -> None:
    for compiled in (sums(), sums(OutputTensor=(1, 2)), unnamed(), DEVICE.compile_graph(graph_of(sums()._operator))):
        theirs = copied(compiled)
        assert theirs is not compiled
        assert theirs.explain() == compiled.explain()
        assert_same(np.ascontiguousarray(theirs(X)), np.ascontiguousarray(compiled(X)))
    theirs = copied(twice())
    assert_same(theirs(y=X, x=X)["more"], 3 * X)
    assert theirs.explain() == twice().explain()


@COPIES
def test_a_copy_is_initialised_for_itself(copied: Any) -> None:
    compiled = owned()
    persistent = compiled.initialise([None, X])
    theirs = copied(compiled)
    with pytest.raises(DMLError, match=r"persistent: found another buffer.*\(B9\)"):
        theirs(X, persistent=persistent)
    assert_same(theirs(X, persistent=theirs.initialise([None, 2 * X])), X * (2 * X))
    assert_same(compiled(X, persistent=persistent), X * X)


@COPIES
def test_operators_and_flags_are_copied(copied: Any) -> None:
    made = DEVICE.create_operator(
        DML_ACTIVATION_RELU_OPERATOR_DESC(InputTensor=tensor((2,)), OutputTensor=tensor((2,)))
    )
    theirs = copied([made, made])
    assert theirs[0] is theirs[1]
    assert (theirs[0].desc, theirs[0].spec) == (made.desc, made.spec)


@COPIES
def test_a_constant_is_as_it_was_when_the_graph_was_compiled(copied: Any) -> None:
    known = np.ones(4, np.uint8)
    node = DML_CONSTANT_DATA_GRAPH_NODE_DESC(Data=known)
    edge = DML_OUTPUT_GRAPH_EDGE_DESC(FromNodeIndex=0, FromNodeOutputIndex=0, GraphOutputIndex=0)
    compiled = DEVICE.compile_graph(DML_GRAPH_DESC(InputCount=0, OutputCount=1, Nodes=[node], OutputEdges=[edge]))
    known[:] = 2
    assert copied(compiled)().tolist() == compiled().tolist() == [1, 1, 1, 1]
    assert copied(node).Data.tolist() == [2, 2, 2, 2]


# Functions compiled for each signature


@anydml.compile
def scaled(x: Any, weights: Any, factor: float = 2) -> Any:
    CALLS.append((x, weights, factor))
    return anydml.relu(x @ weights) * factor


CALLS: list[Any] = []


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_it_is_traced_for_each_signature() -> None:
    CALLS.clear()
    for _ in range(2):
        assert scaled(ones(2, 3), ones(3, 1)).tolist() == [[6], [6]]
        assert scaled(ones(1, 1), weights=ones(1, 2)).tolist() == [[2, 2]]
        assert scaled(ones(1, 1), ones(1, 1), factor=3).tolist() == [[3]]
        assert scaled(ones(1, 1), ones(1, 1), factor=-0.0).tolist() == [[0]]
        assert scaled(ones(1, 1), ones(1, 1), factor=0.0).tolist() == [[0]]
        assert scaled(ones(1, 1).astype(np.float16), ones(1, 1).astype(np.float16)).dtype == np.float16
        # Strides are no part of it.
        assert scaled(ones(3, 2).T[::-1], ones(6, 1)[::2]).tolist() == [[6], [6]]
    assert len(CALLS) == 6
    assert all(isinstance(each, anydml.Expression) for x, w, _ in CALLS for each in (x, w))


def test_what_a_call_compiles_can_be_explained() -> None:
    compiled = scaled.graph(ones(2, 3), ones(3, 1))
    assert scaled.graph(2 * ones(2, 3), ones(3, 1)) is compiled
    assert "\ninputs: x, weights; outputs: outputs[0]\n" in compiled.explain()
    assert compiled(x=ones(2, 3), weights=ones(3, 1)).tolist() == [[6], [6]]


def test_structures_go_in_and_come_out() -> None:
    @anydml.compile(device="reference")
    def both(pieces: list[Any], options: dict[str, Any]) -> Any:
        joined = anydml.join(pieces, axis=options["axis"])
        return {"joined": joined, "rest": (joined + options["bias"], [options["bias"]])}

    a, b = ones(2, 1), 2 * ones(2, 2)
    found = both([a, b], {"axis": 1, "bias": ones(3)})
    assert found["joined"].tolist() == [[1, 2, 2]] * 2
    assert type(found["rest"]) is tuple
    assert found["rest"][0].tolist() == [[2, 3, 3]] * 2
    assert found["rest"][1][0].tolist() == [1, 1, 1]
    assert both.graph([a, b], {"axis": 1, "bias": ones(3)}).engine == "reference"
    assert both([b], {"axis": -1, "bias": ones(1)})["rest"][0].tolist() == [[3, 3]] * 2


def test_what_is_not_read_may_be_given() -> None:
    second = anydml.compile(lambda x, y: y + 1)
    assert second(ones(1), ones(2)).tolist() == [2, 2]
    identity = anydml.compile(lambda x: x)
    x = ones(2)
    assert identity(x).tolist() == [1, 1]
    assert not np.shares_memory(identity(x), x)


def test_a_closed_over_array_is_a_constant() -> None:
    known = np.array([1, 2], np.float32)
    assert anydml.compile(lambda x: x * known)([ones(2)][0]).tolist() == [1, 2]


def test_called_with_expressions_it_is_the_function_itself() -> None:
    outer = anydml.compile(lambda x: scaled(x, x, factor=1) + 1)
    assert outer(ones(2, 2)).tolist() == [[3, 3]] * 2
    graph = Graph(DEVICE)
    x = graph.input((1, 1))
    assert graph.compile([scaled(x, ones(1, 1))])(ones(1, 1)).tolist() == [[2]]


def test_the_64_signatures_called_last_are_kept() -> None:
    traced = []

    @anydml.compile
    def counted(x: Any) -> Any:
        traced.append(x.shape)
        return -x

    for size in range(1, 66):
        counted(ones(size))
        counted(ones(1))
    assert len(traced) == 65
    counted(ones(1))
    counted(ones(65))
    assert len(traced) == 65
    counted(ones(2))
    assert traced[65:] == [(2,)]


def test_a_method_is_compiled() -> None:
    class Layer:
        def __init__(self, weights: np.ndarray) -> None:
            self.weights = weights

        @anydml.compile
        def apply(self, x: Any) -> Any:
            """x by weights"""
            return x @ self.weights

    assert Layer(2 * ones(1, 1)).apply(ones(1, 1)).tolist() == [[2]]
    assert Layer(3 * ones(1, 1)).apply(ones(1, 1)).tolist() == [[3]]
    assert (Layer.apply.__name__, Layer.apply.__doc__) == ("apply", "x by weights")


def test_kinds_of_arrays() -> None:
    torch = pytest.importorskip("torch")
    negated = anydml.compile(lambda x: -x)
    assert type(negated(torch.ones(2))) is torch.Tensor
    assert negated(memoryview(np.array([1, 2], np.int8))).tolist() == [-1, -2]
    times = anydml.compile(lambda x, factor, dtype: (x * factor).astype(dtype))
    assert times(ones(2), np.float32(3), np.int32).tolist() == [3, 3]


def plain(x: Any) -> Any:
    return x + 1


def test_functions_are_pickled_and_copied() -> None:
    assert pickle.loads(pickle.dumps(scaled)) is scaled
    assert copy.deepcopy(scaled) is scaled
    compiled = anydml.compile(plain, device="reference")
    theirs = pickle.loads(pickle.dumps(compiled))
    assert theirs is not compiled
    assert (repr(theirs), theirs.device.name) == (repr(compiled), "reference")
    assert theirs(ones(1)).tolist() == [2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: anydml.compile(3), r"compile.function: found int 3, expected a function of arrays \(G9\)"),
        (lambda: anydml.compile(plain, flags=1), r"compile.flags: found .*\(D4\)"),
        (lambda: anydml.compile(plain, device="tpu"), r"Device.name: .*\(D1\)"),
        (lambda: anydml.compile(lambda x: X)(X), r"<lambda>.return: found ndarray.*, expected an Expression.*\(G12\)"),
        (lambda: anydml.compile(lambda x: None)(X), r"<lambda>.return: found None"),
        (lambda: anydml.compile(lambda x: [])(X), r"compile.outputs: found list .*\(G9\)"),
        (lambda: anydml.compile(plain)(3), r"plain.return: found int 4"),
        (lambda: anydml.compile(lambda x, y: x)(X, {1}), r"<lambda>: found an option without .*set.*\(G12\)"),
        (lambda: anydml.compile(plain)(X.astype(">f4")), r"plain.arrays\[0\]: .*\(A2\)"),
        (lambda: anydml.compile(plain)(np.zeros((0, 2), np.float32)), r"input.shape\[0\]: found 0, .*\(T2\)"),
        (lambda: anydml.compile(lambda x: x if x else -x)(X), r"Expression.bool\(\)"),
        (lambda: anydml.compile(lambda x: anydml.relu(x, out=X))(X), r"ACTIVATION_RELU.out: .*\(G9\)"),
    ],
)
def test_what_is_not_compiled(call: Any, message: str) -> None:
    with pytest.raises(DMLError, match=message):
        call()


def test_what_the_function_raises_is_raised() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        anydml.compile(lambda x, y: x)(X)
    assert "compile" in dir(anydml)
    assert "compile" not in anydml.__all__


@pytest.mark.skipif(not GPU, reason="needs PyTorch and Triton: make test-gpu")
def test_calls_on_a_gpu() -> None:
    """What lies elsewhere is brought there, and results come back like the first input."""
    torch = pytest.importorskip("torch")
    device: Any = Device(GPU)
    graph, place = Graph(device), device.memory.device
    x, y = graph.input((2, 3), name="x"), graph.input((3,))
    compiled = graph.compile({"turned": x.T, "back": x[:, ::-1], "more": x + y})
    there = torch.tensor(X, device=place)
    out = torch.zeros(3, 2, device=place).T
    for given in (X, X.tolist(), np.asfortranarray(X), there, there.T.contiguous().T):
        found = compiled(given, [1, 2, 3])
        kind = torch.Tensor if isinstance(given, torch.Tensor) else np.ndarray
        assert {type(each) for each in found.values()} == {kind}
        results = {name: np.asarray(torch.as_tensor(each).cpu()) for name, each in found.items()}
        assert_same(results["turned"], np.ascontiguousarray(X.T))
        assert_same(results["back"], np.ascontiguousarray(X[:, ::-1]))
        assert_same(results["more"], X + np.array([1, 2, 3], np.float32))
    ours = np.zeros((2, 6), np.float32)[:, ::2]
    found = compiled(there, there[0], out={"more": out, "back": ours})
    assert found["more"] is out
    assert found["back"] is ours
    assert_same(np.ascontiguousarray(out.cpu().numpy()), X + X[0])
    assert_same(np.ascontiguousarray(ours), np.ascontiguousarray(X[:, ::-1]))
    layer = anydml.compile(lambda x, weights: x @ weights, device=GPU)
    assert layer(there, torch.ones(3, 1, device=place)).cpu().tolist() == (X @ np.ones((3, 1))).tolist()
    assert_same(layer(X, np.ones((3, 1), np.float32)), X @ np.ones((3, 1), np.float32))
