"""Chains of pointwise operators in a graph: what is one pass, and that it gives the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml
from anydml import (
    DML_BUFFER_TENSOR_DESC,
    DML_SCALE_BIAS,
    Device,
    Graph,
    IsInfinityMode,
    RoundingMode,
    TensorDataType,
    cumulative_summation,
    relu,
)
from anydml.core.strided_layout import DTYPES, Array
from anydml.operators import spec
from graph_descs import DEVICE, X
from harness import assert_same

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


# Of mixed types

FLOAT32, FLOAT16, UINT8 = TensorDataType.FLOAT32, TensorDataType.FLOAT16, TensorDataType.UINT8
SIXTH = float(np.float32(1 / 6))
LINKS: list[tuple[str, str, dict[str, Any]]] = [
    # The operator's operands and result: (f)loats of one type, (b)ytes, which are numbers as well as truth values, a
    # (s)cale and a (z)ero point, and such of one element, 1 and 0; zero points may be absent.
    *((f"ELEMENT_WISE_LOGICAL_{name}", "ff b", {}) for name in ("EQUALS", "LESS_THAN", "GREATER_THAN_OR_EQUAL")),
    *((f"ELEMENT_WISE_LOGICAL_{name}", "bb b", {}) for name in ("GREATER_THAN", "AND", "OR", "XOR")),
    ("ELEMENT_WISE_LOGICAL_NOT", "b b", {}),
    ("ELEMENT_WISE_IS_NAN", "f b", {}),
    ("ELEMENT_WISE_IS_INFINITY", "f b", {"InfinityMode": IsInfinityMode.POSITIVE}),
    ("ELEMENT_WISE_IF", "bff f", {}),
    ("ELEMENT_WISE_IF", "bbb b", {}),
    ("ELEMENT_WISE_DEQUANTIZE_LINEAR", "bsz f", {}),
    ("ELEMENT_WISE_QUANTIZE_LINEAR", "fsz b", {}),
    ("ELEMENT_WISE_QUANTIZED_LINEAR_ADD", "b10b1010 b", {}),
    *((f"ELEMENT_WISE_{name}", "bb b", {}) for name in ("ADD", "MAX", "BIT_XOR")),
    ("ELEMENT_WISE_BIT_COUNT", "b b", {}),
    *((f"ELEMENT_WISE_{name}", "ff f", {}) for name in ("ADD", "MULTIPLY", "DIVIDE", "MIN")),
    ("ELEMENT_WISE_ROUND", "f f", {"RoundingMode": RoundingMode.HALVES_TO_NEAREST_EVEN}),
    ("ACTIVATION_RELU", "f f", {}),
    ("ACTIVATION_HARD_SWISH", "f f", {"Alpha": SIXTH, "Beta": 0.5}),
]
FUNCTIONS: list[tuple[str, str, dict[str, Any]]] = [
    *((f"ACTIVATION_{name}", "f f", {}) for name in ("SIGMOID", "TANH", "GELU")),
    *((f"ELEMENT_WISE_{name}", "f f", {}) for name in ("EXP", "SIN")),
]
"""What engines round otherwise in places, which a comparison behind it would tell apart."""


class Link(NamedTuple):
    """An operator of a random graph."""

    name: str
    operands: tuple[int | None, ...]
    """Numbers of values, the inputs first."""
    result: TensorDataType
    members: dict[str, Any]


class Mixed(NamedTuple):
    """A random graph of pointwise operators, and what goes in."""

    inputs: list[Array]
    links: list[Link]
    ends: list[int]

    def tensor(self, n: int) -> DML_BUFFER_TENSOR_DESC:
        if n >= len(self.inputs):
            kind = self.links[n - len(self.inputs)].result
            return DML_BUFFER_TENSOR_DESC(DataType=kind, Sizes=self.inputs[0].shape)
        x = self.inputs[n]
        kind = next(kind for kind, dtype in DTYPES.items() if dtype == x.dtype)
        strides = tuple(stride // x.itemsize for stride in x.strides)
        return DML_BUFFER_TENSOR_DESC(DataType=kind, Sizes=x.shape, Strides=strides)

    def desc(self, i: int, tensors: Sequence[Any]) -> Any:
        """Of a link, with its inputs."""
        link = self.links[i]
        found = spec(link.name)
        *names, output = found.tensors
        taken = {name: None if n is None else tensors[n] for name, n in zip(names, link.operands, strict=True)}
        return found.desc, {**taken, output: self.tensor(len(self.inputs) + i), **link.members}

    def of_graph(self, device: Device) -> list[Array]:
        """What a device gives for the whole."""
        graph = Graph(device)
        values = [graph.input(self.tensor(n)) for n in range(len(self.inputs))]
        for i in range(len(self.links)):
            desc, members = self.desc(i, values)
            values += graph.operator(desc, **members)
        # What nothing reads, a graph leaves out.
        needed = {*self.ends}
        for i in range(len(self.links) - 1, -1, -1):
            needed |= {*self.links[i].operands} if len(self.inputs) + i in needed else set()
        given = [x if n in needed else None for n, x in enumerate(self.inputs)]
        results = [np.empty(self.inputs[0].shape, DTYPES[self.tensor(n).DataType]) for n in self.ends]
        graph.compile([values[n] for n in self.ends]).dispatch(given, results)
        return results

    def one_by_one(self) -> list[Array]:
        """What the CPU's kernels give for each operator by itself."""
        tensors = [self.tensor(n) for n in range(len(self.inputs) + len(self.links))]
        values = [*self.inputs]
        for i, link in enumerate(self.links):
            desc, members = self.desc(i, tensors)
            y = np.empty(self.inputs[0].shape, DTYPES[link.result])
            compiled = DEVICE.compile_operator(DEVICE.create_operator(desc(**members)))
            compiled.dispatch([None if n is None else values[n] for n in link.operands], [y])
            values.append(y)
        return [values[n] for n in self.ends]


@st.composite
def mixed(draw: st.DrawFn, links: Sequence[tuple[str, str, dict[str, Any]]]) -> Mixed:
    sizes = draw(st.sampled_from([(2, 3), (5, 301), (3, 2, 130)]))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    ones = (1,) * len(sizes)
    floats = [rng.normal(0, 3, each).astype(dtype) for dtype in ("f4", "f2") for each in (sizes, sizes[-1:])]
    numbers = rng.integers(0, 256, sizes, np.uint8), rng.integers(0, 2, (sizes[0], *ones[1:]), np.uint8)
    scales = np.float32(0.25), np.float16(0.375)
    inputs = [np.broadcast_to(each, sizes) for each in (*floats, *numbers, *scales)]
    inputs += [np.full(ones, 0.5, np.float32), np.full(ones, 9, np.uint8)]
    # Of the values that may be operands; the inputs behind them are scales and zero points.
    kinds = dict(enumerate([FLOAT32, FLOAT32, FLOAT16, FLOAT16, UINT8, UINT8]))
    found: list[Link] = []
    for number in range(len(inputs), len(inputs) + draw(st.integers(2, 9))):
        name, signature, members = draw(st.sampled_from(links))
        of_floats = draw(st.sampled_from([FLOAT32, FLOAT16]))
        *letters, _, result = signature
        operands: list[int | None] = []
        for letter in letters:
            fixed = {"s": 6 if of_floats == FLOAT32 else 7, "1": 8, "0": 9}
            if letter in "z0" and draw(st.booleans()):
                operands.append(None)
            elif letter in fixed:
                operands.append(fixed[letter])
            else:
                kind = of_floats if letter == "f" else UINT8
                # Mostly what was computed last.
                operands.append(draw(st.sampled_from([n for n in reversed(kinds) if kinds[n] == kind])))
        kinds[number] = of_floats if result == "f" else UINT8
        found.append(Link(name, tuple(operands), kinds[number], members))
    others = draw(st.lists(st.sampled_from(range(len(inputs), number)), max_size=3, unique=True))
    return Mixed(inputs, found, [number, *others])


@given(mixed(LINKS))
def test_chains_of_mixed_types_give_what_their_operators_give(graph: Mixed) -> None:
    for y, expected in zip(graph.of_graph(DEVICE), graph.of_graph(Device("reference")), strict=True):
        assert_same(y, expected)


@given(mixed([*LINKS, *FUNCTIONS]))
def test_chains_give_what_kernels_give_one_by_one(graph: Mixed) -> None:
    for y, expected in zip(graph.of_graph(DEVICE), graph.one_by_one(), strict=True):
        assert_same(y, expected)


def test_what_is_absent_and_of_one_element_is_in_one_pass() -> None:
    def tensor(kind: TensorDataType, *sizes: int) -> DML_BUFFER_TENSOR_DESC:
        return DML_BUFFER_TENSOR_DESC(DataType=kind, Sizes=sizes or (4, 6))

    def quantised(graph: Graph, scale: Any, x: Any, zero_point: Any = None) -> Any:
        desc: Any = spec("ELEMENT_WISE_QUANTIZE_LINEAR").desc
        tensors = {"InputTensor": x, "ScaleTensor": scale, "ZeroPointTensor": zero_point}
        return graph.operator(desc, **tensors, OutputTensor=tensor(UINT8))[0]

    graph = Graph(DEVICE)
    x, scale, zero_point = [graph.input(tensor(kind)) for kind in (FLOAT32, FLOAT32, UINT8)]
    assert kernels([quantised(graph, scale, relu(x))], graph) == 1
    assert kernels([quantised(graph, scale, relu(x), zero_point)], graph) == 1
    graph = Graph(DEVICE)
    a, b, scale, zero_point = [
        graph.input(each) for each in (tensor(UINT8), tensor(UINT8), tensor(FLOAT32, 1, 1), tensor(UINT8, 1, 1))
    ]
    scales = dict.fromkeys(("AScaleTensor", "BScaleTensor", "OutputScaleTensor"), scale)
    desc: Any = spec("ELEMENT_WISE_QUANTIZED_LINEAR_ADD").desc
    (total,) = graph.operator(desc, ATensor=a, BTensor=b, **scales, AZeroPointTensor=zero_point)
    assert kernels([anydml.max(total, a)], graph) == 1
    assert kernels([anydml.max(total, a), total], graph) == 1
    # One element that is computed is needed before the others are.
    scales["AScaleTensor"] = relu(scale)
    (total,) = graph.operator(desc, ATensor=a, BTensor=b, **scales)
    assert kernels([anydml.max(total, a)], graph) == 2


@pytest.mark.parametrize("between", [None, anydml.sigmoid])
@pytest.mark.parametrize(("before", "after"), [(np.int8(-3), np.uint8(9)), (np.uint8(200), np.int8(-7))])
def test_chains_of_many_bytes_are_what_they_are_of_each(between: Any, before: Any, after: Any) -> None:
    """Many are looked up in a table of all results where that takes less time: those of functions always."""

    def computed(x: Array) -> tuple[Array, str]:
        kind = TensorDataType.INT8 if x.dtype == np.int8 else UINT8
        graph = Graph(DEVICE)
        codes = graph.input(DML_BUFFER_TENSOR_DESC(DataType=kind, Sizes=x.shape, Strides=x.strides))
        real = anydml.dequantize_linear(codes, 0.03, before)
        compiled = graph.compile([anydml.quantize_linear(between(real) if between else real, 0.007, after)])
        assert len(compiled.steps) == 1
        y = np.empty(x.shape, after.dtype)
        compiled.dispatch([x], [y])
        return y, compiled.explain()

    results, _ = computed(np.arange(256, dtype=np.uint8).view(before.dtype))
    rng = np.random.default_rng(5)
    for x in rng.integers(0, 256, (67, 97), np.uint8), rng.integers(0, 256, (67, 131), np.uint8)[:, :97]:
        y, how = computed(x.view(before.dtype))
        assert_same(y, results[x])
        assert between is None or "by a table" in how
