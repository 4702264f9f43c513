"""Graphs give what their operators give one by one, and explain says how."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anydml import (
    DML_BUFFER_ARRAY_BINDING,
    DML_BUFFER_BINDING,
    DML_BUFFER_TENSOR_DESC,
    DML_CONSTANT_DATA_GRAPH_NODE_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_ELEMENT_WISE_ADD_OPERATOR_DESC,
    DML_ELEMENT_WISE_EXP_OPERATOR_DESC,
    DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC,
    DML_GATHER_OPERATOR_DESC,
    DML_GRAPH_DESC,
    Device,
    DMLError,
    Graph,
    TensorDataType,
    TensorFlags,
)
from anydml.operators.schema import OperatorDesc
from cases import tensor
from graph_descs import DEVICE, POINTWISE_CHAIN, X, added, between, chain, changed, into, negated, node, out_of, sums, x
from harness import ENGINES, POISONS, Memory

pytestmark = pytest.mark.gpu

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
