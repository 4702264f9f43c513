"""Graphs: their rules, and the memory between their nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anydml import (
    DML_CONSTANT_DATA_GRAPH_NODE_DESC,
    DML_ELEMENT_WISE_ADD_OPERATOR_DESC,
    DML_ELEMENT_WISE_EXP_OPERATOR_DESC,
    DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC,
    DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC,
    DML_GRAPH_DESC,
    DML_JOIN_OPERATOR_DESC,
    Device,
    DMLError,
    FeatureLevel,
    HResult,
    TensorFlags,
)
from anydml.graph.memory_plan import ALIGNMENT, LiveRange, largest_alive, plan
from cases import tensor
from graph_descs import DEVICE, X, added, between, chain, changed, into, negated, node, out_of, refused, sums, x

pytestmark = pytest.mark.gpu

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
