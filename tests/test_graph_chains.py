"""Chains of pointwise operators in a graph: what is one pass, and that it gives the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anydml import (
    DML_BUFFER_TENSOR_DESC,
    DML_SCALE_BIAS,
    Device,
    Graph,
    TensorDataType,
    cumulative_summation,
    relu,
)
from anydml.operators import spec
from graph_descs import DEVICE, X

pytestmark = pytest.mark.gpu


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
    assert kernels([both + a, both - a], graph) == 1, "read by two, and all outputs of one pass"
    graph, (a, b) = inputs(2)
    both = a * b
    assert kernels([both + a, both], graph) == 1, "an output, written on the way"
    graph, (a, b) = inputs(2)
    both = a * b
    assert kernels([both + cumulative_summation(both, axis=1)], graph) == 3, "read by what the chain reads"
    graph, (a, b) = inputs(2)
    both = a * b
    assert kernels([cumulative_summation(both, axis=1), relu(both + b)], graph) == 2, "read by another kernel behind it"
    graph, (a, b) = inputs(2)
    one, other = (each.reinterpret(TensorDataType.FLOAT32, [3, 2]) for each in (a * b, a - b))
    assert kernels([one + other], graph) == 3, "other sizes"
    graph, many = inputs(12)
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
    also = data.draw(st.lists(st.integers(2, 1 + len(steps)), max_size=3, unique=True))
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
        ends = [values[-1] + values[0] - values[1], *(values[i] for i in also)]
        y = np.empty((len(ends), *sizes), dtype)
        graph.compile(ends).dispatch(given_, [*y])
        results.append(y)
    np.testing.assert_array_equal(*results)
