"""Graphs: their rules, what compiling makes of them, and that they give what their operators give one by one."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anydml import (
    DML_ACTIVATION_RELU_OPERATOR_DESC,
    DML_BUFFER_ARRAY_BINDING,
    DML_BUFFER_BINDING,
    DML_BUFFER_TENSOR_DESC,
    DML_CAST_OPERATOR_DESC,
    DML_CONSTANT_DATA_GRAPH_NODE_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_ELEMENT_WISE_ADD1_OPERATOR_DESC,
    DML_ELEMENT_WISE_ADD_OPERATOR_DESC,
    DML_ELEMENT_WISE_EXP_OPERATOR_DESC,
    DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC,
    DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC,
    DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC,
    DML_GATHER_OPERATOR_DESC,
    DML_GEMM_OPERATOR_DESC,
    DML_GRAPH_DESC,
    DML_INPUT_GRAPH_EDGE_DESC,
    DML_INTERMEDIATE_GRAPH_EDGE_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_OPERATOR_GRAPH_NODE_DESC,
    DML_OUTPUT_GRAPH_EDGE_DESC,
    DML_SCALE_BIAS,
    DML_SPLIT_OPERATOR_DESC,
    Device,
    DMLError,
    Expression,
    FeatureLevel,
    Graph,
    HResult,
    MatrixTransform,
    TensorDataType,
    TensorFlags,
)
from anydml.core.strided_layout import DATA_TYPES, DTYPES
from anydml.draw import draw_graph
from anydml.graph.memory_plan import ALIGNMENT, LiveRange, largest_alive, plan
from anydml.operators import spec
from anydml.operators.schema import OperatorDesc
from cases import tensor
from harness import ENGINES, POISONS, Memory

DEVICE = Device("cpu")
X = tensor([2, 3])


def node(desc: OperatorDesc, device: Device = DEVICE, name: str = "") -> DML_OPERATOR_GRAPH_NODE_DESC:
    return DML_OPERATOR_GRAPH_NODE_DESC(Operator=device.create_operator(desc), Name=name)


def sums(tensor: DML_BUFFER_TENSOR_DESC = X, **members: Any) -> DML_CUMULATIVE_SUMMATION_OPERATOR_DESC:
    return DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=tensor, OutputTensor=tensor, Axis=1, **members)


def negated(tensor: DML_BUFFER_TENSOR_DESC = X) -> DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC:
    return DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC(InputTensor=tensor, OutputTensor=tensor)


def added(tensor: DML_BUFFER_TENSOR_DESC = X) -> DML_ELEMENT_WISE_ADD_OPERATOR_DESC:
    return DML_ELEMENT_WISE_ADD_OPERATOR_DESC(ATensor=tensor, BTensor=tensor, OutputTensor=tensor)


def into(graph_input: int, node: int, number: int = 0) -> DML_INPUT_GRAPH_EDGE_DESC:
    return DML_INPUT_GRAPH_EDGE_DESC(GraphInputIndex=graph_input, ToNodeIndex=node, ToNodeInputIndex=number)


def out_of(node: int, graph_output: int = 0, number: int = 0) -> DML_OUTPUT_GRAPH_EDGE_DESC:
    return DML_OUTPUT_GRAPH_EDGE_DESC(FromNodeIndex=node, FromNodeOutputIndex=number, GraphOutputIndex=graph_output)


def between(source: int, target: int, number: int = 0) -> DML_INTERMEDIATE_GRAPH_EDGE_DESC:
    return DML_INTERMEDIATE_GRAPH_EDGE_DESC(
        FromNodeIndex=source, FromNodeOutputIndex=0, ToNodeIndex=target, ToNodeInputIndex=number
    )


def chain() -> DML_GRAPH_DESC:
    """The sums of x, negated, and x added."""
    return DML_GRAPH_DESC(
        InputCount=1,
        OutputCount=1,
        Nodes=[node(sums()), node(negated(), name="turn"), node(added())],
        InputEdges=[into(0, 0), into(0, 2, 1)],
        IntermediateEdges=[between(0, 1), between(1, 2)],
        OutputEdges=[out_of(2)],
    )


def changed(desc: DML_GRAPH_DESC, **members: Any) -> DML_GRAPH_DESC:
    """With other members, and the counts of these."""
    counts = dict.fromkeys(("NodeCount", "InputEdgeCount", "OutputEdgeCount", "IntermediateEdgeCount"))
    return replace(desc, **{**counts, **members})


x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
POINTWISE_CHAIN = x - np.cumsum(x, axis=1)


def refused(desc: Any, device: Device = DEVICE) -> list[tuple[str, str]]:
    with pytest.raises(DMLError) as caught:
        device.compile_graph(desc)
    return [(violation.rule, violation.where) for violation in caught.value.violations]


# What a graph gives


@pytest.mark.parametrize("engine", ENGINES)
def test_a_chain_of_operators(engine: str) -> None:
    there = Device(engine)
    desc = changed(chain(), Nodes=[node(each, there) for each in (sums(), negated(), added())])
    graph = there.compile_graph(desc)
    for poison in POISONS:
        read, written = Memory(X, poison, x, engine), Memory(X, poison, engine=engine)
        graph.dispatch([read.array], [written.array])
        np.testing.assert_array_equal(written.values, POINTWISE_CHAIN)
        read.assert_untouched()
        written.assert_only_elements_changed()


def test_through_a_binding_table() -> None:
    graph = DEVICE.compile_graph(chain())
    initializer = DEVICE.create_operator_initializer([graph])
    DEVICE.dispatch(initializer, DEVICE.create_binding_table(initializer))
    memory = np.zeros(256, np.uint8)
    memory[:24] = x.view(np.uint8).ravel()
    table = DEVICE.create_binding_table(graph)
    table.bind_inputs([DML_BUFFER_BINDING(Buffer=memory, SizeInBytes=24)])
    table.bind_outputs([DML_BUFFER_BINDING(Buffer=memory, Offset=128)])
    DEVICE.dispatch(graph, table)
    np.testing.assert_array_equal(memory[128:152].view(np.float32).reshape(2, 3), POINTWISE_CHAIN)
    assert not memory[152:].any()


def test_constants_are_read_and_folded() -> None:
    constant = DML_CONSTANT_DATA_GRAPH_NODE_DESC(Data=x)
    desc = DML_GRAPH_DESC(
        InputCount=1,
        OutputCount=2,
        Nodes=[constant, node(sums()), node(added())],
        InputEdges=[into(0, 2, 1)],
        IntermediateEdges=[between(0, 1), between(1, 2)],
        OutputEdges=[out_of(2), out_of(1, 1)],
    )
    graph = DEVICE.compile_graph(desc)
    assert "folded into constants: Nodes[1] (CUMULATIVE_SUMMATION)" in graph.explain()
    y, z = np.empty_like(x), np.empty_like(x)
    graph.dispatch([x], [y, z])
    np.testing.assert_array_equal(z, np.cumsum(x, axis=1))
    np.testing.assert_array_equal(y, z + x)


def test_a_constant_may_be_an_output() -> None:
    constant = DML_CONSTANT_DATA_GRAPH_NODE_DESC(Data=b"abc")
    graph = DEVICE.compile_graph(DML_GRAPH_DESC(InputCount=0, OutputCount=1, Nodes=[constant], OutputEdges=[out_of(0)]))
    y = np.zeros(3, np.uint8)
    graph.dispatch([], [y])
    assert y.tobytes() == b"abc"


def test_bytes_are_read_anew() -> None:
    """As other sizes and another type, from an input of the graph, from between and into two outputs."""
    whole = tensor([6], "INT32")
    desc = DML_GRAPH_DESC(
        InputCount=1,
        OutputCount=2,
        Nodes=[
            node(sums()),
            node(negated(whole)),
            node(DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=whole, OutputTensor=whole, Axis=0)),
        ],
        InputEdges=[into(0, 0), into(0, 1)],
        IntermediateEdges=[between(0, 2)],
        OutputEdges=[out_of(1), out_of(2, 1)],
    )
    y, z = np.empty(6, np.int32), np.empty(6, np.int32)
    DEVICE.compile_graph(desc).dispatch([x], [y, z])
    np.testing.assert_array_equal(y, -x.view(np.int32).ravel())
    np.testing.assert_array_equal(
        z, np.cumsum(np.cumsum(x, axis=1, dtype=np.float32).view(np.int32).ravel(), dtype=np.int32)
    )


def test_one_tensor_as_two_outputs_that_is_read_besides() -> None:
    desc = changed(chain(), OutputCount=3, OutputEdges=[out_of(2), out_of(1, 1), out_of(1, 2)])
    outputs = [np.empty_like(x) for _ in range(3)]
    DEVICE.compile_graph(desc).dispatch([x], outputs)
    np.testing.assert_array_equal(outputs[0], POINTWISE_CHAIN)
    np.testing.assert_array_equal(outputs[1], -np.cumsum(x, axis=1))
    np.testing.assert_array_equal(outputs[2], outputs[1])


BYTES = [tensor([n], "UINT8") for n in (3, 4)]
"""Of different spans, but the same TotalTensorSizeInBytes."""


def copied(source: DML_BUFFER_TENSOR_DESC) -> DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC:
    return DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC(InputTensor=source, OutputTensor=source)


@pytest.mark.parametrize("written", BYTES)
@pytest.mark.parametrize("wanted", [3, 4])
def test_an_output_is_written_no_further_than_it_is_bound(written: DML_BUFFER_TENSOR_DESC, wanted: int) -> None:
    graph = Graph(DEVICE)
    (y,) = graph.operator(DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC, InputTensor=graph.input(written))
    memory = np.full(8, 99, np.uint8)
    given_bytes = np.arange(1, 1 + written.Sizes[0], dtype=np.uint8)
    graph.compile([y.reinterpret(TensorDataType.UINT8, [wanted])]).dispatch([given_bytes], [memory[:wanted]])
    assert memory[:3].tolist() == [1, 2, 3]
    assert (memory[wanted:] == 99).all()


def test_an_input_has_the_bytes_of_all_that_it_feeds() -> None:
    """Whichever comes first; and an output that is read, too."""
    for first, second in (BYTES, BYTES[::-1]):
        desc = DML_GRAPH_DESC(
            InputCount=1,
            OutputCount=2,
            Nodes=[node(copied(first)), node(copied(second))],
            InputEdges=[into(0, 0), into(0, 1)],
            OutputEdges=[out_of(0), out_of(1, 1)],
        )
        graph = DEVICE.compile_graph(desc)
        outputs = [np.zeros(each.Sizes, np.uint8) for each in (first, second)]
        graph.dispatch([np.array([1, 2, 3, 4], np.uint8)], outputs)
        assert [each.tolist() for each in outputs] == [[1, 2, 3, 4][: each.Sizes[0]] for each in (first, second)]
        with pytest.raises(DMLError, match=r"graph.inputs\[0\]: found 3 bytes, expected at least 4.*\(B6\)"):
            graph.dispatch([np.array([1, 2, 3], np.uint8)], outputs)
    chained = DML_GRAPH_DESC(
        InputCount=1,
        OutputCount=2,
        Nodes=[node(copied(BYTES[0])), node(copied(BYTES[1]))],
        InputEdges=[into(0, 0)],
        IntermediateEdges=[between(0, 1)],
        OutputEdges=[out_of(0), out_of(1, 1)],
    )
    memory = np.full(8, 99, np.uint8)
    y = np.zeros(4, np.uint8)
    DEVICE.compile_graph(chained).dispatch([np.array([1, 2, 3], np.uint8)], [memory[:3], y])
    assert memory[:3].tolist() == y[:3].tolist() == [1, 2, 3]
    assert (memory[3:] == 99).all()


def test_what_is_folded_may_be_read_as_more_bytes() -> None:
    graph = Graph(DEVICE)
    constant = graph.constant(BYTES[0], b"abcd")
    (copy,) = graph.operator(DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC, InputTensor=constant)
    y = np.zeros(4, np.uint8)
    graph.compile([copy.reinterpret(TensorDataType.UINT8, [4])]).dispatch([], [y])
    assert y[:3].tobytes() == b"abc"


def test_a_preparation_that_fails_leaves_nothing_initialised() -> None:
    indices = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.UINT32, Sizes=(1, 2), Flags=TensorFlags.OWNED_BY_DML)
    owned = replace(X, Flags=TensorFlags.OWNED_BY_DML)
    gather = DML_GATHER_OPERATOR_DESC(
        InputTensor=owned, IndicesTensor=indices, OutputTensor=tensor([2, 2]), Axis=1, IndexDimensions=1
    )
    desc = DML_GRAPH_DESC(
        InputCount=2,
        OutputCount=1,
        Nodes=[node(gather)],
        InputEdges=[into(0, 0), into(1, 0, 1)],
        OutputEdges=[out_of(0)],
    )
    graph = DEVICE.compile_graph(desc)
    assert "Nodes[0] (GATHER): GATHER is served by" in graph.explain()
    bindings = [
        DML_BUFFER_BINDING(Buffer=np.pad(x.view(np.uint8).ravel(), (0, 8))),
        DML_BUFFER_BINDING(Buffer=np.array([0, 7], np.uint32)),
    ]
    resource = DML_BUFFER_BINDING(Buffer=np.zeros(graph.binding_properties().PersistentResourceSize, np.uint8))
    initializer = DEVICE.create_operator_initializer([graph])
    table = DEVICE.create_binding_table(initializer)
    table.bind_inputs([DML_BUFFER_ARRAY_BINDING(Bindings=bindings)])
    table.bind_outputs([resource])
    with pytest.raises(DMLError, match=r"Nodes\[0\] \(GATHER\).IndicesTensor: .*\(V1\)"):
        DEVICE.dispatch(initializer, table)
    with pytest.raises(DMLError, match=r"\(B9\)"):
        graph.dispatch([None, None], [np.empty((2, 2), np.float32)], persistent=resource.Buffer)


def test_owned_inputs_are_bound_at_initialisation() -> None:
    owned = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(2, 3), Flags=TensorFlags.OWNED_BY_DML)
    add = DML_ELEMENT_WISE_ADD_OPERATOR_DESC(ATensor=X, BTensor=owned, OutputTensor=X)
    desc = DML_GRAPH_DESC(
        InputCount=2,
        OutputCount=1,
        Nodes=[node(sums()), node(add)],
        InputEdges=[into(0, 0), into(1, 1, 1)],
        IntermediateEdges=[between(0, 1)],
        OutputEdges=[out_of(1)],
    )
    graph = DEVICE.compile_graph(desc)
    weights = np.array([[10, 20, 30], [40, 50, 60]], np.float32)
    persistent = graph.initialise([None, weights.copy()])
    y = np.empty_like(x)
    graph.dispatch([x, None], [y], persistent=persistent)
    np.testing.assert_array_equal(y, np.cumsum(x, axis=1) + weights)


def test_what_depends_on_owned_tensors_alone_runs_once() -> None:
    """When they are bound: -w and exp(-w) here, whose sum with x is wanted, and -w itself."""
    graph = Graph(DEVICE)
    a, w = graph.input(X), graph.input(replace(X, Flags=TensorFlags.OWNED_BY_DML))
    negative = -w
    (power,) = graph.operator(DML_ELEMENT_WISE_EXP_OPERATOR_DESC, InputTensor=negative)
    compiled = graph.compile([a + power, negative, negative.reinterpret(TensorDataType.INT32, [6])])
    text = compiled.explain()
    assert text.startswith("graph: 1 kernels")
    assert "run once, when it is initialised: Nodes[0] (ELEMENT_WISE_IDENTITY), Nodes[1] (ELEMENT_WISE_EXP)" in text
    for weights in (np.log(x + 1), np.ones_like(x)):
        persistent = compiled.initialise([None, weights])
        outputs = [np.empty_like(x), np.empty_like(x), np.empty(6, np.int32)]
        compiled.dispatch([x, None], outputs, persistent=persistent)
        np.testing.assert_allclose(outputs[0], x + 1 / np.exp(weights), rtol=1e-6)
        np.testing.assert_array_equal(outputs[1], -weights)
        np.testing.assert_array_equal(outputs[2], (-weights).view(np.int32).ravel())
    with pytest.raises(DMLError, match=r"\(B9\)"):
        compiled.dispatch([x, None], outputs)


def test_an_input_without_an_edge_is_none() -> None:
    graph = DEVICE.compile_graph(changed(chain(), InputCount=2))
    y = np.empty_like(x)
    graph.dispatch([x, None], [y])
    np.testing.assert_array_equal(y, POINTWISE_CHAIN)
    with pytest.raises(DMLError, match=r"\(B2\)"):
        graph.dispatch([x, x], [y])


def test_outputs_share_no_memory_with_inputs() -> None:
    y = x.copy()
    with pytest.raises(DMLError, match=r"graph.outputs\[0\]: found memory shared with inputs\[0\].*\(B7\)"):
        DEVICE.compile_graph(chain()).dispatch([y], [y])
    np.testing.assert_array_equal(y, x)


def test_explain_names_every_kernel() -> None:
    device = Device("reference")
    desc = changed(chain(), Nodes=[node(sums(), device), node(negated(), device, "turn"), node(added(), device)])
    text = device.compile_graph(desc).explain()
    assert "graph: 3 kernels; 64 bytes of intermediate tensors, of which at most 64 are alive at once" in text
    assert "Nodes[1] (ELEMENT_WISE_NEGATE, 'turn'): ELEMENT_WISE_NEGATE is served by" in text


def test_explain_tells_what_is_one_pass() -> None:
    text = DEVICE.compile_graph(chain()).explain()
    assert "graph: 2 kernels; 64 bytes of intermediate tensors, of which at most 64 are alive at once" in text
    both = "Nodes[1] (ELEMENT_WISE_NEGATE, 'turn') + Nodes[2] (ELEMENT_WISE_ADD)"
    assert f"in one pass: {both}" in text
    assert f"{both}: ELEMENT_WISE_CHAIN is served by cpu: negate, add, 6 elements" in text


@given(st.data())
def test_random_graphs_give_what_their_operators_give(data: st.DataObject) -> None:
    """Of additions, negations and sums of earlier values; what nobody reads is an output of the graph."""
    values = [data.draw(st.integers(-9, 9)) + np.arange(6, dtype=np.int32).reshape(2, 3) for _ in range(2)]
    kind = tensor([2, 3], "INT32")
    nodes, edges, inputs = [], [], []
    read = set()
    for i in range(data.draw(st.integers(1, 12))):
        choice = data.draw(st.sampled_from(["add", "negate", "sum"]))
        desc: OperatorDesc = {"add": added, "negate": negated, "sum": sums}[choice](kind)
        taken = [data.draw(st.integers(0, len(values) - 1)) for _ in range(1 + (choice == "add"))]
        for number, source in enumerate(taken):
            if source < 2:
                inputs.append(into(source, i, number))
            else:
                edges.append(between(source - 2, i, number))
                read.add(source)
        first = values[taken[0]]
        results = {"add": first + values[taken[-1]], "negate": -first, "sum": first.cumsum(1, np.int32)}
        values.append(results[choice])
        nodes.append(node(desc))
    unread = [i for i in range(2, len(values)) if i not in read]
    unread += data.draw(st.lists(st.sampled_from(range(2, len(values))), max_size=3))
    desc = DML_GRAPH_DESC(
        InputCount=2,
        OutputCount=len(unread),
        Nodes=nodes,
        InputEdges=inputs,
        IntermediateEdges=edges,
        OutputEdges=[out_of(source - 2, i) for i, source in enumerate(unread)],
    )
    graph = DEVICE.compile_graph(desc)
    fed = {edge.GraphInputIndex for edge in inputs}
    for _ in range(2):
        outputs = [np.full((2, 3), 99, np.int32) for _ in unread]
        graph.dispatch([values[i] if i in fed else None for i in range(2)], outputs)
        for i, y in zip(unread, outputs, strict=True):
            np.testing.assert_array_equal(y, values[i])


# Chains


def kernels(expressions: list[Any], graph: Graph) -> int:
    return len(graph.compile(expressions).steps)


def test_what_is_one_pass_and_what_is_not() -> None:
    def inputs(count: int, *tensors: DML_BUFFER_TENSOR_DESC) -> tuple[Graph, list[Any]]:
        graph = Graph(DEVICE)
        return graph, [graph.input(each) for each in tensors or [X] * count]

    graph, (a, b) = inputs(2)
    assert kernels([a * b + a - b], graph) == 1
    graph, (a, b) = inputs(2)
    both = a * b
    assert kernels([both * both + both], graph) == 1, "read thrice, but within the chain"
    graph, (a, b) = inputs(2)
    both = a * b
    assert kernels([both + a, both - a], graph) == 3, "read by two"
    graph, (a, b) = inputs(2)
    both = a * b
    assert kernels([both + a, both], graph) == 2, "an output"
    graph, (a, b) = inputs(2)
    one, other = (each.reinterpret(TensorDataType.FLOAT32, [3, 2]) for each in (a * b, a - b))
    assert kernels([one + other], graph) == 3, "other sizes"
    graph, many = inputs(10)
    total = many[0]
    for each in many[1:]:
        total = total + each
    assert kernels([total], graph) == 2, "as many inputs as the kernels take, and one more"


FLOAT_LINKS: dict[str, dict[str, Any]] = {
    "ELEMENT_WISE_ADD": {},
    "ELEMENT_WISE_SUBTRACT": {},
    "ELEMENT_WISE_MULTIPLY": {},
    "ELEMENT_WISE_MEAN": {},
    "ELEMENT_WISE_MAX": {},
    "ELEMENT_WISE_NEGATE": {},
    "ELEMENT_WISE_ABS": {},
    "ELEMENT_WISE_CLIP": {"Min": -3, "Max": 5.5},
    "ELEMENT_WISE_IDENTITY": {"ScaleBias": DML_SCALE_BIAS(Scale=0.3, Bias=0.7)},
    "ACTIVATION_RELU": {},
    "ACTIVATION_LEAKY_RELU": {"Alpha": 0.1},
    "ACTIVATION_LINEAR": {"Alpha": 1.1, "Beta": -0.3},
    "ACTIVATION_HARD_SIGMOID": {"Alpha": 0.2, "Beta": 0.5},
}


@given(st.data())
def test_chains_give_what_their_operators_give(data: st.DataObject) -> None:
    """Each rounded to its type: the same bits as one by one, by the operators' references."""
    kind = data.draw(st.sampled_from([TensorDataType.FLOAT32, TensorDataType.FLOAT16]))
    sizes = data.draw(st.sampled_from([(2, 3), (5, 301), (3, 2, 130)]))
    packed = DML_BUFFER_TENSOR_DESC(DataType=kind, Sizes=sizes)
    row = replace(packed, Strides=(0,) * (len(sizes) - 1) + (1,), TotalTensorSizeInBytes=None)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = np.float16 if kind == TensorDataType.FLOAT16 else np.float32
    given_ = [rng.normal(0, 3, sizes).astype(dtype), np.broadcast_to(rng.normal(0, 3, sizes[-1:]).astype(dtype), sizes)]
    steps = data.draw(
        st.lists(
            st.tuples(st.sampled_from([*FLOAT_LINKS]), st.integers(0, 99), st.integers(0, 99)), min_size=2, max_size=9
        )
    )
    results = []
    for device in (DEVICE, Device("reference")):
        graph = Graph(device)
        values = [graph.input(packed), graph.input(row)]
        for name, first, second in steps:
            found = spec(name)
            taken = [member for member in found.tensors if member != "OutputTensor"]
            # Mostly what was computed last.
            operands = [values[-1] if first % 3 else values[first % len(values)], values[second % len(values)]]
            tensors = dict(zip(taken, operands, strict=False))
            values += graph.operator(found.desc, **tensors, OutputTensor=packed, **FLOAT_LINKS[name])
        y = np.empty(sizes, dtype)
        graph.compile([values[-1] + values[0] - values[1]]).dispatch(given_, [y])
        results.append(y)
    np.testing.assert_array_equal(*results)


# Rules


def test_what_is_no_graph() -> None:
    good = chain()
    assert refused(None) == [("(G1)", "desc")]
    assert refused(changed(good, Nodes=None)) == [("(G1)", "Nodes")]
    assert refused(changed(good, Nodes=[*good.Nodes[:2], 7])) == [("(G1)", "Nodes[2]")]
    assert refused(changed(good, NodeCount=4)) == [("(G1)", "NodeCount")]
    assert refused(changed(good, NodeCount=float(len(good.Nodes)))) == [("(G1)", "NodeCount")]
    assert refused(changed(good, InputCount=-1)) == [("(G1)", "InputCount")]
    assert refused(changed(good, OutputCount=2**32 - 1)) == [("(G1)", "OutputCount")]
    wrong = replace(good.InputEdges[0], ToNodeIndex="0")
    assert refused(changed(good, InputEdges=[wrong, good.InputEdges[1]])) == [("(G1)", "InputEdges[0].ToNodeIndex")]
    nameless = replace(good.Nodes[0], Name=None)
    assert refused(changed(good, Nodes=[nameless, *good.Nodes[1:]])) == [("(G1)", "Nodes[0].Name")]
    assert refused(changed(good, Nodes=[node(sums(), Device()), *good.Nodes[1:]])) == [("(G1)", "Nodes[0].Operator")]
    bad = replace(good.Nodes[0], Operator=sums())
    assert refused(changed(good, Nodes=[bad, *good.Nodes[1:]])) == [("(G1)", "Nodes[0].Operator")]
    for data in (None, x[:, ::2], np.array([None]), b""):
        constant = DML_CONSTANT_DATA_GRAPH_NODE_DESC(Data=data, DataSize=8)
        assert refused(changed(good, Nodes=[constant, *good.Nodes[1:]])) == [("(G1)", "Nodes[0].Data")]
    constant = DML_CONSTANT_DATA_GRAPH_NODE_DESC(Data=b"1234", DataSize=8)
    assert refused(changed(good, Nodes=[constant, *good.Nodes[1:]])) == [("(G1)", "Nodes[0].DataSize")]


def test_edges_lead_to_what_there_is() -> None:
    good = chain()
    assert refused(changed(good, InputEdges=[into(0, 3), good.InputEdges[1]])) == [
        ("(G2)", "InputEdges[0].ToNodeIndex")
    ]
    assert refused(changed(good, InputEdges=[into(1, 0), good.InputEdges[1]])) == [
        ("(G2)", "InputEdges[0].GraphInputIndex")
    ]
    assert refused(changed(good, IntermediateEdges=[between(0, 1, 1), between(1, 2)])) == [
        ("(G2)", "IntermediateEdges[0].ToNodeInputIndex")
    ]
    assert refused(changed(good, OutputEdges=[out_of(2, number=1)])) == [("(G2)", "OutputEdges[0].FromNodeOutputIndex")]
    assert refused(changed(good, OutputEdges=[out_of(2, 1)])) == [("(G2)", "OutputEdges[0].GraphOutputIndex")]


def test_everything_is_connected_once() -> None:
    good = chain()
    twice = [*good.IntermediateEdges, between(0, 2)]
    assert refused(changed(good, IntermediateEdges=twice)) == [("(G3)", "Nodes[2] (ELEMENT_WISE_ADD).ATensor")]
    assert refused(changed(good, InputEdges=[into(0, 0)])) == [("(G3)", "Nodes[2] (ELEMENT_WISE_ADD).BTensor")]
    unread = [*good.Nodes, DML_CONSTANT_DATA_GRAPH_NODE_DESC(Data=x)]
    DEVICE.compile_graph(changed(good, Nodes=unread))
    strict = Device("cpu", strict=True)
    nodes = [node(each, strict) for each in (sums(), negated(), added())]
    assert refused(changed(good, Nodes=[*nodes, unread[3]]), strict) == [("(G3)", "Nodes[3] (constant).Data")]
    assert refused(changed(good, OutputCount=2)) == [("(G4)", "outputs[1]")]
    two = [out_of(2), out_of(1)]
    assert refused(changed(good, OutputEdges=two)) == [("(G4)", "outputs[0]")]


def test_there_is_no_cycle() -> None:
    good = chain()
    nodes = [node(added()), *good.Nodes[1:]]
    edges = [between(0, 1), between(1, 2), between(1, 0, 1)]
    desc = changed(good, Nodes=nodes, IntermediateEdges=edges)
    with pytest.raises(DMLError, match=r"a cycle of 2 nodes: Nodes.0. .* -> Nodes.1. .*'turn'. -> Nodes.0.") as caught:
        DEVICE.compile_graph(desc)
    assert [violation.rule for violation in caught.value.violations] == ["(G5)"]


def test_connected_tensors_have_the_same_bytes() -> None:
    good = chain()
    larger = [good.Nodes[0], node(negated(tensor([2, 4]))), good.Nodes[2]]
    assert refused(changed(good, Nodes=larger)) == [("(G6)", "IntermediateEdges[0]"), ("(G6)", "IntermediateEdges[1]")]
    constant = [DML_CONSTANT_DATA_GRAPH_NODE_DESC(Data=x[0]), *good.Nodes[1:]]
    assert refused(changed(good, Nodes=constant, InputEdges=[into(0, 2, 1)])) == [("(G6)", "IntermediateEdges[0]")]
    other = [node(sums(tensor([2, 2]))), node(negated(tensor([2, 2]))), good.Nodes[2]]
    found = refused(changed(good, Nodes=other))
    assert ("(G6)", "InputEdges[1]") in found


def test_what_is_owned_comes_from_outside() -> None:
    good = chain()
    owned = replace(X, Flags=TensorFlags.OWNED_BY_DML)
    turn = node(DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC(InputTensor=owned, OutputTensor=X))
    assert refused(changed(good, Nodes=[good.Nodes[0], turn, good.Nodes[2]])) == [("(G7)", "IntermediateEdges[0]")]
    add = node(DML_ELEMENT_WISE_ADD_OPERATOR_DESC(ATensor=X, BTensor=owned, OutputTensor=X))
    assert refused(changed(good, Nodes=[*good.Nodes[:2], add])) == [("(G7)", "InputEdges[1]")]


def test_levels() -> None:
    for level, constant in ((FeatureLevel.LEVEL_2_0, False), (FeatureLevel.LEVEL_6_1, True)):
        device = Device("cpu", level)
        four = tensor([1, 1, 2, 3])
        copy = DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC(InputTensor=four, OutputTensor=four)
        first = DML_CONSTANT_DATA_GRAPH_NODE_DESC(Data=x) if constant else node(copy, device)
        desc = DML_GRAPH_DESC(
            InputCount=1,
            OutputCount=1,
            Nodes=[first, node(copy, device)],
            InputEdges=[] if constant else [into(0, 0)],
            IntermediateEdges=[between(0, 1)],
            OutputEdges=[out_of(1)],
        )
        with pytest.raises(DMLError, match=r"\(G8\)") as caught:
            device.compile_graph(desc)
        assert caught.value.hresult == HResult.DXGI_ERROR_UNSUPPORTED


def test_objects_of_a_graph_are_of_its_device() -> None:
    graph = DEVICE.compile_graph(chain())
    other = Device()
    with pytest.raises(DMLError, match=r"\(D2\)"):
        other.create_binding_table(graph)
    with pytest.raises(DMLError, match=r"\(D4\)"):
        DEVICE.compile_graph(chain(), 1)  # type: ignore[arg-type]


# Memory between


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(0, 12), st.integers(0, 12)), max_size=30))
def test_what_is_alive_together_lies_apart(drawn: list[tuple[int, int, int]]) -> None:
    lives = [LiveRange(size, min(a, b), max(a, b)) for size, a, b in drawn]
    offsets, total = plan(lives)
    assert total >= largest_alive(lives)
    for i, (life, offset) in enumerate(zip(lives, offsets, strict=True)):
        assert offset % ALIGNMENT == 0
        assert offset + life.size <= total
        for other, start in zip(lives[:i], offsets[:i], strict=True):
            together = life.first <= other.last and other.first <= life.last
            assert not together or offset + life.size <= start or start + other.size <= offset


def test_a_chain_takes_two_buffers_and_one_where_it_runs_in_place() -> None:
    steps = 20
    desc = DML_GRAPH_DESC(
        InputCount=1,
        OutputCount=1,
        Nodes=[node(DML_JOIN_OPERATOR_DESC(InputTensors=[X], OutputTensor=X, Axis=0)) for _ in range(steps)],
        InputEdges=[into(0, 0)],
        IntermediateEdges=[between(i, i + 1) for i in range(steps - 1)],
        OutputEdges=[out_of(steps - 1)],
    )
    assert "; 128 bytes of intermediate" in DEVICE.compile_graph(desc).explain()
    device = Device("reference")
    desc = changed(desc, Nodes=[node(negated(), device) for _ in range(steps)])
    assert "; 64 bytes of intermediate" in device.compile_graph(desc).explain()


def test_exp_is_not_run_before_it_is_dispatched() -> None:
    """What depends on an input is not folded."""
    exp = DML_ELEMENT_WISE_EXP_OPERATOR_DESC(InputTensor=X, OutputTensor=X)
    graph = DEVICE.compile_graph(
        DML_GRAPH_DESC(InputCount=1, OutputCount=1, Nodes=[node(exp)], InputEdges=[into(0, 0)], OutputEdges=[out_of(0)])
    )
    assert "folded" not in graph.explain()


# Expressions


def test_operators_of_expressions() -> None:
    graph = Graph(DEVICE)
    a, b = graph.input(X), graph.input(X)
    values = np.array([[1, -2, 3], [4, 5, -6]], np.float32), np.array([[2, 4, 8], [-2, 1, 4]], np.float32)
    built = [a + b, a - b, a * b, a / b, a % b, -a, a + 1, 1 + a, a - 1, 1 - a, a * 2, 2 * a, a / 4, 8 / b]
    p, q = values
    remainders = np.fmod(p, q)
    expected = [p + q, p - q, p * q, p / q, remainders, -p, p + 1, 1 + p, p - 1, 1 - p, p * 2, 2 * p, p / 4, 8 / q]
    outputs = [np.empty_like(p) for _ in built]
    graph.compile(built).dispatch(list(values), outputs)
    for y, right in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(y, right)
    assert repr(a) == "<Expression of FLOAT32 (2, 3)>"


def computed(function: Callable[[Any], Expression], value: np.ndarray) -> np.ndarray:
    """What a graph makes of its only input."""
    graph = Graph(DEVICE)
    built = function(graph.input(tensor(value.shape, DATA_TYPES[value.dtype].name)))
    y = np.empty(built.tensor.Sizes, DTYPES[built.tensor.DataType])
    graph.compile([built]).dispatch([value], [y])
    return y


ROW = np.array([1, -2, 0.5], np.float32)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a + ROW,
        lambda a: ROW + a,
        lambda a: a - ROW,
        lambda a: ROW - a,
        lambda a: a * ROW[:, np.newaxis, np.newaxis],
        lambda a: ROW * a,
        lambda a: a / ROW,
        lambda a: ROW / a,
        lambda a: a**ROW,
        lambda a: ROW**a,
        lambda a: a * [1.0, 2.0, 3.0],
        lambda a: [1.0, 2.0, 3.0] - a,
        lambda a: a * np.array(3, np.float32),
        lambda a: a**2,
        lambda a: 2**a,
        lambda a: abs(a),
        lambda a: a / 0,
        lambda a: a / -0.0,
        lambda a: a / 1e-39,
        lambda a: a - np.uint8(1),
        lambda a: np.float64(2) * a,
    ],
)
def test_operators_of_expressions_take_arrays_and_numbers(function: Callable[[Any], Any]) -> None:
    with np.errstate(all="ignore"):
        expected = np.float32(function(x - 3))
    np.testing.assert_array_max_ulp(computed(function, x - 3), expected, 1)


def test_remainders_of_expressions_have_the_sign_of_the_left() -> None:
    values = np.array([-3, 3, -5], np.float32)
    np.testing.assert_array_equal(computed(lambda a: a % 2, values), np.fmod(values, 2))
    np.testing.assert_array_equal(computed(lambda a: -2 % a, values), np.fmod(-2, values))
    np.testing.assert_array_equal(computed(lambda a: [4.0, 4, -4] % a, values), np.fmod([4, 4, -4], values))


def test_integers_and_integers_are_exact_and_wrap() -> None:
    long, short = np.array([2**60 + 1, -(2**60) - 1]), np.array([49, -98, 2**31 - 1], np.int32)
    for function in (lambda a: a + 1, lambda a: 2**62 + 1 - a, lambda a: a * 3, lambda a: -a, lambda a: a - np.int8(1)):
        np.testing.assert_array_equal(computed(function, long), function(long))
    np.testing.assert_array_equal(computed(lambda a: a / 49, short), [1, -2, (2**31 - 1) // 49])
    np.testing.assert_array_equal(computed(lambda a: 98 / a, short), [2, -1, 0])
    np.testing.assert_array_equal(computed(lambda a: a + 2, short), [51, -96, -(2**31) + 1])
    np.testing.assert_array_equal(computed(lambda a: a**2, short), [49**2, 98**2, 1])
    # A fraction scales, and what it gives is truncated and saturated.
    np.testing.assert_array_equal(computed(lambda a: a * 1.5, short), [73, -147, 2**31 - 1])


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda a: a + np.ones(3), r"ELEMENT_WISE_ADD.b.dtype: found float64, .*\(S3\). Convert it to float32"),
        (lambda a: np.ones(3) * a, r"ELEMENT_WISE_MULTIPLY.b.dtype: found float64, .* Convert it to float32"),
        (lambda a: a + np.ones(4, np.float32), r"ELEMENT_WISE_ADD.b: found shape \(4,\), .* broadcasts .*\(A13\)"),
        (lambda a: a - "1", r"ELEMENT_WISE_SUBTRACT.b: found str '1', expected an array of numbers.*\(A1\)"),
        (lambda a: None / a, r"ELEMENT_WISE_DIVIDE.a: found None, expected an array of numbers.*\(A1\)"),
        (lambda a: a * True, r"ELEMENT_WISE_MULTIPLY.b: found bool True, expected an array of numbers.*\(A1\)"),
        (lambda a: a + 1e39, r"ELEMENT_WISE_ADD.b: found float 1e\+39, expected a number that float32.*\(A13\)"),
        (lambda a: a * 10**400, r"ELEMENT_WISE_MULTIPLY.b: found int 1000.*, expected a number that float32.*\(A13\)"),
    ],
)
def test_what_operators_of_expressions_do_not_take(function: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(DMLError, match=text):
        function(Graph(DEVICE).input(X))


def test_outputs_are_inferred() -> None:
    graph = Graph(DEVICE)
    a, b = graph.input(tensor([2, 3])), graph.input(tensor([2, 5]))
    (joined,) = graph.operator(DML_JOIN_OPERATOR_DESC, InputTensors=[a, b], Axis=1)
    assert tuple(joined.tensor.Sizes) == (2, 8)
    wanted = tensor([2, 8], strides=[1, 2])
    (strided,) = graph.operator(DML_JOIN_OPERATOR_DESC, InputTensors=[a, b], Axis=1, OutputTensor=wanted)
    assert strided.tensor == wanted
    y = np.empty((8, 2), np.float32).T
    graph.compile([strided]).dispatch([x, np.ones((2, 5), np.float32)], [y])
    np.testing.assert_array_equal(y, np.hstack([x, np.ones((2, 5))]))
    with pytest.raises(DMLError, match=r"JOIN.Axis: found 2, expected less than 2, the DimensionCount \(C4\)"):
        graph.operator(DML_JOIN_OPERATOR_DESC, InputTensors=[a, b], Axis=2)


def test_outputs_are_inferred_beside_inputs_of_their_sizes() -> None:
    graph = Graph(DEVICE)
    a, b, right, wrong = (graph.input(tensor(sizes)) for sizes in ([2, 3], [3, 5], [2, 5], [2, 3]))
    none = MatrixTransform.NONE
    product = {"ATensor": a, "BTensor": b, "TransA": none, "TransB": none, "Alpha": 1, "Beta": 1}
    (y,) = graph.operator(DML_GEMM_OPERATOR_DESC, CTensor=right, **product)
    assert tuple(y.tensor.Sizes) == (2, 5)
    with pytest.raises(DMLError, match=r"GEMM.CTensor.Sizes: found \(2, 3\), expected \(2, 5\), .* \(C5\)"):
        graph.operator(DML_GEMM_OPERATOR_DESC, CTensor=wrong, **product)


def test_several_outputs_are_given() -> None:
    graph = Graph(DEVICE)
    a = graph.input(X)
    pieces = [tensor([2, 2]), tensor([2, 1])]
    left, right = graph.operator(DML_SPLIT_OPERATOR_DESC, InputTensor=a, OutputTensors=pieces, Axis=1)
    y, z = np.empty((2, 1), np.float32), np.empty((2, 2), np.float32)
    graph.compile([-right, left]).dispatch([x], [y, z])
    np.testing.assert_array_equal(y, -x[:, 2:])
    np.testing.assert_array_equal(z, x[:, :2])
    for outputs in ({}, {"OutputTensors": TensorDataType.FLOAT32}):
        with pytest.raises(DMLError, match=r"SPLIT.OutputTensors: found .*, expected a list, each a .* \(F1\)"):
            graph.operator(DML_SPLIT_OPERATOR_DESC, InputTensor=a, Axis=1, **outputs)


def test_what_has_no_inputs_is_folded() -> None:
    graph = Graph(DEVICE)
    members = {"ValueDataType": TensorDataType.FLOAT32, "ValueStart": 1, "ValueDelta": 2}
    (odd,) = graph.operator(DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC, OutputTensor=X, **members)
    compiled = graph.compile([graph.input(X) + odd])
    assert "folded into constants: Nodes[0] (FILL_VALUE_SEQUENCE)" in compiled.explain()
    y = np.empty_like(x)
    compiled.dispatch([x], [y])
    np.testing.assert_array_equal(y, x + np.arange(1, 13, 2).reshape(2, 3))
    with pytest.raises(DMLError, match=r"FILL_VALUE_SEQUENCE.OutputTensor: found None, .* \(F1\)"):
        graph.operator(DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC, **members)


def test_what_outputs_do_not_need_is_not_compiled() -> None:
    graph = Graph(DEVICE)
    a = graph.input(X)
    graph.operator(DML_ELEMENT_WISE_EXP_OPERATOR_DESC, InputTensor=a)
    assert "graph: 1 kernels" in graph.compile([-a]).explain()


def test_inputs_and_bytes_read_anew_are_outputs_too() -> None:
    graph = Graph(DEVICE)
    a = graph.input(X)
    flat = (-a).reinterpret(TensorDataType.FLOAT32, [6])
    y, z = np.empty_like(x), np.empty(6, np.float32)
    graph.compile([a, flat]).dispatch([x], [y, z])
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(z, -x.ravel())
    wrong = a.reinterpret(TensorDataType.FLOAT32, [7])
    with pytest.raises(DMLError, match=r"\(T6\)"):
        graph.compile([wrong + wrong])


def test_a_constant_of_a_graph() -> None:
    graph = Graph(DEVICE)
    y = np.empty_like(x)
    graph.compile([graph.input(X) + graph.constant(X, x)]).dispatch([x], [y])
    np.testing.assert_array_equal(y, x + x)


def test_expressions_of_two_graphs_do_not_meet() -> None:
    graph, other = Graph(DEVICE), Graph(DEVICE)
    a, b = graph.input(X), other.input(X)
    with pytest.raises(DMLError, match=r"ELEMENT_WISE_ADD.b: found an expression of another graph.*\(G9\)"):
        a + b
    with pytest.raises(DMLError, match=r"compile.outputs\[0\]: found an expression of another graph.*\(G9\)"):
        graph.compile([b])
    with pytest.raises(DMLError, match=r"JOIN.InputTensors\[0\]: found .*, expected an Expression \(G9\)"):
        graph.operator(DML_JOIN_OPERATOR_DESC, InputTensors=[x], Axis=0)
    for index in (0, -1, 2**32, True, 1.0, "1"):
        with pytest.raises(DMLError, match=r"input.index: found .*, expected an integer, of an input .* \(G9\)"):
            graph.input(X, index)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["JOIN", DML_BUFFER_TENSOR_DESC, None, negated()])
def test_an_operator_is_applied_by_the_class_of_its_desc(kind: Any) -> None:
    with pytest.raises(DMLError, match=r"operator.kind: found .*, expected the class of the desc.*\(G9\)"):
        Graph(DEVICE).operator(kind)


def test_what_a_graph_is_not_built_from() -> None:
    graph = Graph(DEVICE)
    for wrong in (None, 3, [2, 3]):
        with pytest.raises(DMLError, match=r"input.tensor: found .*, expected a DML_BUFFER_TENSOR_DESC \(G9\)"):
            graph.input(wrong)  # type: ignore[arg-type]
    a = graph.input(X)
    for none in (a, (each for each in [a]), [], ()):
        with pytest.raises(DMLError, match=r"compile.outputs: .*, expected a list of at least one Expression \(G9\)"):
            graph.compile(none)  # type: ignore[arg-type]
    with pytest.raises(
        DMLError, match=r"CAST.OutputTensor: found str 'UINT8', .* such as TensorDataType.FLOAT32 \(G9\)"
    ):
        graph.operator(DML_CAST_OPERATOR_DESC, InputTensor=a, OutputTensor="UINT8")
    for odd in ("INT32", 6, None):
        with pytest.raises(DMLError, match=r"reinterpret.data_type: .*, such as TensorDataType.FLOAT32 \(G9\)"):
            a.reinterpret(odd, [6])  # type: ignore[arg-type]


def test_activations_are_fused_where_nothing_else_reads_the_result() -> None:
    graph = Graph(DEVICE)
    a = graph.input(X)
    (added,) = graph.operator(DML_ELEMENT_WISE_ADD1_OPERATOR_DESC, ATensor=a, BTensor=a)
    (relu,) = graph.operator(DML_ACTIVATION_RELU_OPERATOR_DESC, InputTensor=added)
    y, z = np.empty_like(x), np.empty_like(x)
    compiled = graph.compile([relu])
    assert "Nodes[1] (ACTIVATION_RELU) fused into Nodes[0] (ELEMENT_WISE_ADD1)" in compiled.explain()
    compiled.dispatch([x - 3], [y])
    np.testing.assert_array_equal(y, np.maximum(0, 2 * (x - 3)))
    both = graph.compile([relu, added])
    assert "fused" not in both.explain()
    both.dispatch([x - 3], [y, z])
    np.testing.assert_array_equal(z, 2 * (x - 3))


def test_the_picture_of_a_graph() -> None:
    graph = Graph(DEVICE)
    a = graph.input(X)
    owned = graph.input(replace(X, Flags=TensorFlags.OWNED_BY_DML))
    (added,) = graph.operator(DML_ELEMENT_WISE_ADD1_OPERATOR_DESC, ATensor=a, BTensor=owned)
    (relu,) = graph.operator(DML_ACTIVATION_RELU_OPERATOR_DESC, InputTensor=added)
    compiled = graph.compile([relu * relu])
    persistent = compiled.initialise([None, x])
    times = compiled.times([x, None], [np.empty_like(x)], persistent=persistent)
    assert len(times) == len(compiled.steps) == 1
    assert min(times) > 0
    svg = draw_graph(compiled, times)
    texts = [each.text for each in ElementTree.fromstring(svg).iter() if each.tag.endswith("text")]
    merged = ("ELEMENT_WISE_ADD1", "+ ACTIVATION_RELU", "+ ELEMENT_WISE_MULTIPLY")
    for text in ("inputs[0]", *merged, "weights {2, 3}", "to outputs[0]"):
        assert text in texts
    assert "inputs[1]" not in texts
    assert sum(" us" in str(text) or " ms" in str(text) for text in texts) == 1
    assert draw_graph(compiled) == draw_graph(compiled)
