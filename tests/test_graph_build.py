"""Graphs that are built of expressions."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_ACTIVATION_RELU_OPERATOR_DESC,
    DML_BUFFER_TENSOR_DESC,
    DML_CAST_OPERATOR_DESC,
    DML_ELEMENT_WISE_ADD1_OPERATOR_DESC,
    DML_ELEMENT_WISE_EXP_OPERATOR_DESC,
    DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC,
    DML_GEMM_OPERATOR_DESC,
    DML_JOIN_OPERATOR_DESC,
    DML_SPLIT_OPERATOR_DESC,
    Device,
    DMLError,
    Expression,
    Graph,
    MatrixTransform,
    TensorDataType,
    TensorFlags,
)
from anydml.core.strided_layout import DATA_TYPES, DTYPES
from anydml.draw import draw_graph
from cases import tensor
from graph_descs import DEVICE, X, negated, x
from harness import assert_same

pytestmark = pytest.mark.gpu


def test_operators_of_expressions() -> None:
    graph = Graph(DEVICE)
    a, b = graph.input(X), graph.input(X)
    values = np.array([[1, -2, 3], [4, 5, -6]], np.float32), np.array([[2, 4, 8], [-2, 1, 4]], np.float32)
    built = [a + b, a - b, a * b, a / b, a % b, -a, a + 1, 1 + a, a - 1, 1 - a, a * 2, 2 * a, a / 4, 8 / b]
    p, q = values
    remainders = np.mod(p, q)
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


def test_remainders_of_expressions_have_the_sign_of_the_right() -> None:
    for dtype in (np.float32, np.int32):
        values = np.array([-3, 3, -5], dtype)
        np.testing.assert_array_equal(computed(lambda a: a % 2, values), values % 2)
        np.testing.assert_array_equal(computed(lambda a: a % -2, values), values % -2)
        np.testing.assert_array_equal(computed(lambda a: -2 % a, values), -2 % values)
        np.testing.assert_array_equal(computed(lambda a: [4, 4, -4] % a, values), np.array([4, 4, -4]) % values)


@pytest.mark.parametrize(("dtype", "operator"), [("float32", "CONSTANT_POW"), ("int32", "ELEMENT_WISE_POW")])
def test_a_power_of_floats_by_a_number_has_no_tensor_of_exponents(dtype: str, operator: str) -> None:
    graph = Graph(DEVICE)
    assert operator in graph.compile([graph.input((2,), dtype) ** 2]).explain()


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
    for wrong in (None, 3.0, {"Sizes": [2, 3]}):
        with pytest.raises(DMLError, match=r"input.like: found .*, expected an array of numbers .* \(A1\)"):
            graph.input(wrong)
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
    for text in ("inputs[0]", *merged, "weights {2, 3}", "outputs[0]"):
        assert text in texts
    assert "inputs[1]" not in texts
    assert sum(" us" in str(text) or " ms" in str(text) for text in texts) == 1
    assert draw_graph(compiled) == draw_graph(compiled)


@pytest.mark.parametrize("level", ["2.1", "4.0", "4.1", "6.4"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32])
def test_views_of_64_bits_are_outputs_at_every_level(level: str, dtype: Any) -> None:
    """Of levels before 4.1 no operator copies them as they are."""
    numbers = np.arange(6).reshape(1, 1, 2, 3).astype(dtype) + dtype(np.iinfo(dtype).max // 3)
    graph = Graph(Device(DEVICE.name, level))
    given = graph.input(numbers)
    column = graph.input(
        DML_BUFFER_TENSOR_DESC(DataType=DATA_TYPES[np.dtype(dtype)], Sizes=(1, 1, 3, 1), Strides=(9, 9, 3, 1))
    )
    ends = {"turned": given.transpose(0, 1, 3, 2), "same": given, "column": column}
    strided = np.lib.stride_tricks.as_strided(
        numbers, (1, 1, 3, 1), tuple(numbers.itemsize * each for each in (0, 0, 2, 1))
    )
    found = graph.compile(ends)(numbers, strided)
    assert_same(found["turned"], np.ascontiguousarray(numbers.transpose(0, 1, 3, 2)))
    assert_same(found["same"], numbers)
    np.testing.assert_array_equal(found["column"], strided)
