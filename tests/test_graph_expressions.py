"""Expressions of graphs in NumPy's words: shapes, slices, transposition, products, and what they refuse."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anydml
from anydml import (
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    Device,
    DMLError,
    DMLTypeError,
    Expression,
    FeatureLevel,
    Graph,
    TensorDataType,
    TensorFlags,
    cumulative_summation,
)
from anydml.core.tensor_desc import DML_BUFFER_TENSOR_DESC
from cases import tensor
from harness import assert_same

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def value(function: Any, x: np.ndarray = X, device: str = "cpu") -> Any:
    """What a function of an input gives, in a packed array."""
    graph = Graph(device)
    result = graph.compile([function(graph.input(x))])(x)
    assert result.flags.c_contiguous
    return result


# Inputs


@pytest.mark.parametrize(
    ("arguments", "data_type", "shape"),
    [
        (((3, 4),), "FLOAT32", (3, 4)),
        (([3, 4], np.int8), "INT8", (3, 4)),
        ((5, "float16"), "FLOAT16", (5,)),
        ((np.int64(5), TensorDataType.UINT4), "UINT4", (5,)),
        ((np.zeros((2, 1), np.uint16),), "UINT16", (2, 1)),
        ((bytearray(3),), "UINT8", (3,)),
        ((np.zeros((4, 6), np.int64)[::-2, 1:3],), "INT64", (2, 2)),
    ],
)
def test_an_input_by_its_shape_or_an_array(arguments: Any, data_type: str, shape: tuple[int, ...]) -> None:
    found = Graph(Device("cpu")).input(*arguments)
    assert found.tensor == tensor(shape, data_type)
    assert found.shape == shape
    assert found.ndim == len(shape)


def test_the_second_argument_beside_a_desc_is_the_index() -> None:
    graph = Graph()
    b, a = graph.input(tensor((2,)), 1), graph.input((2,), index=0)
    ones = np.ones(2, np.float32)
    assert graph.compile([a - b])(3 * ones, ones).tolist() == [2, 2]
    with pytest.raises(DMLError, match=r"input.dtype: found type .*, expected None beside what is no shape \(G9\)"):
        graph.input(ones, float)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((2, 0),), r"input.shape\[1\]: found 0, expected at least 1 \(T2\)"),
        (((),), r"input.shape: found 0 dimensions, expected 1 to 8 \(T2\)"),
        (((1,) * 9,), r"input.shape: found 9 dimensions.* \(T2\)"),
        (((2**62, 4),), r"input.shape: found a span of .* \(T5\)"),
        ((np.float32(1),), r"input.shape: found 0 dimensions.* \(T2\)"),
        (((2.0, 3),), r"input.shape: found .*, expected integers \(T2\)"),
        (((2, True),), r"input.shape: found .*, expected integers \(T2\)"),
        (((2, 3), "bfloat"), r"input.dtype: found .* \(S3\)"),
        ((np.zeros(2, complex),), r"input.like: found complex128, expected float32,.* \(S3\)"),
        (("(3, 4)",), r"input.like: found str.*, expected an array.* \(A1\)"),
    ],
)
def test_what_is_no_input(arguments: Any, message: str) -> None:
    with pytest.raises(DMLError, match=message):
        Graph().input(*arguments)


def test_a_strict_device_holds_for_inputs_too() -> None:
    with pytest.raises(DMLError, match=r"input.shape: found 4294967296 elements, .* \(T10\)"):
        Graph(Device("cpu", strict=True)).input((2**16, 2**16))


@pytest.mark.parametrize("name", ["out", "persistent", "x", 3, None])
def test_names_of_inputs(name: Any) -> None:
    graph = Graph()
    graph.input((2,), name="x")
    graph.input((2,))
    graph.input((2,))
    with pytest.raises(DMLError, match=r"input.name: found .*\(G11\)"):
        graph.input((2,), name=name)


@pytest.mark.parametrize("name", ["", 3, None])
def test_names_of_outputs(name: Any) -> None:
    graph = Graph()
    x = graph.input((2,))
    with pytest.raises(DMLError, match=r"compile.outputs\[1\]: found .*\(G11\)"):
        graph.compile({"y": x, name: x})


# Shapes


def test_astype_is_the_cast_that_remedies_name() -> None:
    graph = Graph()
    x = graph.input((2,), "float64")
    with pytest.raises(DMLTypeError, match=r"as .astype\(np.float32\) does"):
        abs(x)
    assert_same(graph.compile([abs(x.astype(np.float32))])([-1.5, 2]), np.array([1.5, 2], np.float32))


def test_what_an_expression_says_of_itself() -> None:
    x = Graph().input((2, 3), "int8")
    assert (x.shape, x.ndim, x.dtype, x.T.shape) == ((2, 3), 2, np.dtype(np.int8), (3, 2))
    with pytest.raises(DMLTypeError, match=r"found an expression of UINT4, .* \(S3\)"):
        _ = Graph().input((2,), TensorDataType.UINT4).dtype


@pytest.mark.parametrize("shape", [(24,), (4, 6), (-1,), (2, -1, 2), (1, 24, 1), ((3, 8),), (np.int64(24),)])
def test_reshape(shape: Any) -> None:
    assert_same(value(lambda x: x.reshape(*shape)), X.reshape(*shape))
    assert_same(value(lambda x: x.T.reshape(*shape)), X.T.reshape(*shape))
    assert_same(value(lambda x: (x + x).reshape(*shape)), (X + X).reshape(*shape))


@pytest.mark.parametrize("shape", [(23,), (-1, -1), (0, 24), (5, -1), (), (-2, -12), (0, -1), (2.0, 12), ("24",)])
def test_what_it_is_not_reshaped_to(shape: Any) -> None:
    with pytest.raises(DMLError, match=r"reshape.shape: found .*\(G10\)"):
        Graph().input(X).reshape(*shape)


@pytest.mark.parametrize("axes", [(), (None,), (2, 0, 1), (-1, 0, -2), ((1, 2, 0),), ([0, 1, 2],)])
def test_transpose(axes: Any) -> None:
    assert_same(value(lambda x: x.transpose(*axes)), np.ascontiguousarray(X.transpose(*axes)))
    expected = np.cumsum(X.transpose(*axes), axis=1, dtype=np.float32)
    assert_same(value(lambda x: cumulative_summation(x.transpose(*axes), 1)), np.ascontiguousarray(expected))


def test_transposing_copies_nothing() -> None:
    graph = Graph()
    x = graph.input((2, 3))
    assert graph.compile([x.T + 1]).explain().startswith("graph: 1 kernels; 0 bytes")
    assert x.T.T.tensor.strides == x.tensor.strides


@pytest.mark.parametrize(
    ("axes", "rule"), [((0, 1), "G10"), ((0, 0, 1), "G10"), ((0, 1, 3), "A5"), ((0.5, 1, 2), "A5")]
)
def test_axes_that_it_has_not(axes: Any, rule: str) -> None:
    with pytest.raises(DMLError, match=rf"transpose.axes: .*\({rule}\)"):
        Graph().input(X).transpose(*axes)


def test_outputs_of_the_same_bytes() -> None:
    graph = Graph()
    y = anydml.softmax(graph.input((1, 6)))
    x = np.arange(6, dtype=np.float32)[None]
    expected = anydml.softmax(x)
    ways = [y.T, y, y.reshape(3, 2), y.reinterpret(anydml.TensorDataType.INT32, (6,)), y, y.reshape(3, 2).T]
    found = graph.compile(ways)(x)
    rows = expected.reshape(3, 2)
    wanted = [expected.T, expected, rows, expected.ravel().view(np.int32), expected, rows.T]
    for array, each in zip(found, wanted, strict=True):
        assert_same(array, each)


def test_the_same_again_is_another_node() -> None:
    """Functions make an operator of a graph once; its nodes have names and operands of their own."""
    graph = Graph()
    x, y = graph.input((3,)), graph.input((3,))
    expressions = [anydml.elu(x, 0.5), anydml.elu(y, 0.5), anydml.elu(x, 0.25), anydml.elu(x, 0.5)]
    given = [np.array([-1, 0, 1], np.float32), np.array([2, -3, 4], np.float32)]
    wanted = [anydml.elu(given[i], alpha) for i, alpha in ((0, 0.5), (1, 0.5), (0, 0.25), (0, 0.5))]
    for found, each in zip(graph.compile(expressions)(*given), wanted, strict=True):
        assert_same(found, each)
    with pytest.raises(DMLError, match="alpha"):
        anydml.elu(x, [0.5])  # type: ignore[arg-type]


def test_an_input_as_other_bytes_is_an_output() -> None:
    """With the strides that it was given, and without the flags of an input."""
    graph = Graph()
    x = graph.input(DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=(4,), Flags=TensorFlags.OWNED_BY_DML))
    compiled = graph.compile([x.reinterpret(TensorDataType.FLOAT32, (2,), (2,)), x])
    ours = np.zeros(3, np.float32)
    persistent = compiled.initialise([np.arange(1, 5, dtype=np.float32)])
    compiled.dispatch([None], [ours[::2], np.empty(4, np.float32)], persistent=persistent)
    assert ours.tolist() == [1, 0, 3]


# Slices


INDICES: list[Any] = [
    0,
    (-1, np.int64(2)),
    (slice(None), slice(None, None, -1)),
    (1, slice(0, 3, 2), -1, None),
    (Ellipsis, slice(-3, -1)),
    (None, Ellipsis, None),
    (slice(None), 2),
    (slice(5, None, -3), Ellipsis, slice(3, 0, -2)),
    Ellipsis,
    (),
    slice(0, 1),
    (Ellipsis, slice(-1, None, -5)),
    (slice(1, 0, -1), Ellipsis),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_an_index_is_as_in_numpy(index: Any, device: str) -> None:
    assert_same(value(lambda x: x[index], device=device), np.ascontiguousarray(X[index]))
    assert_same(
        value(lambda x: x.T[index[:1] if index == () else index], device=device), np.ascontiguousarray(X.T[index])
    )


def slices(size: int) -> st.SearchStrategy[Any]:
    return st.one_of(st.slices(size), st.integers(-size, size - 1), st.none())


@given(st.tuples(slices(5), slices(4), slices(5), slices(4)))
@settings(max_examples=60, deadline=None)
def test_any_index_is_as_in_numpy(index: Any) -> None:
    x = np.arange(20, dtype=np.int32).reshape(5, 4)
    try:
        expected = x[index]
    except IndexError:
        expected = None
    graph = Graph("reference")
    operand = graph.input(x)
    if expected is None or not expected.size or not expected.ndim:
        with pytest.raises(DMLError, match=r"\(G10\)"):
            operand[index]
    else:
        assert_same(graph.compile([operand[index]])(x), np.ascontiguousarray(expected))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (2, r"index\[0\]: found 2, expected -2 to 1, of size 2 \(G10\)"),
        ((0, -4), r"index\[1\]: found -4, expected -3 to 2"),
        ((0, 0, 0), r"index: found one element, of 0 dimensions, .*\(G10\). Keep a dimension"),
        ((0, 0, 0, 0), r"index: found 4 indices, expected at most 3"),
        ((Ellipsis, Ellipsis), r"found several ellipses"),
        (slice(2, 2), r"index\[0\]: found 2:2:None, which takes nothing of size 2, .* no empty tensors"),
        (slice(None, None, 0), r"index\[0\]: .*of a step that is not 0"),
        (slice("a", None), r"index\[0\]: .*a slice of integers"),
        (True, r"index\[0\]: found bool True, expected an integer, a slice"),
        (1.0, r"index\[0\]: found float 1.0"),
        ([0, 1], r"index\[0\]: found list"),
        (np.array([0, 1]), r"index\[0\]: found ndarray.* \(G10\). anydml.gather takes indices"),
    ],
)
def test_what_is_no_index(index: Any, message: str) -> None:
    with pytest.raises(DMLError, match=message):
        Graph().input(X)[index]


def test_it_is_no_sequence() -> None:
    x = Graph().input(X)
    with pytest.raises(TypeError, match="not iterable"):
        iter(x)
    assert np.array([x, 1], object)[0] is x


# Products


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3), (3, 4)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((5, 2, 3), (3,)),
        ((3,), (5, 3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
        ((2, 3), (7, 3, 2)),
    ],
)
def test_products_are_as_in_numpy(a: Any, b: Any) -> None:
    rng = np.random.default_rng(1)
    left, right = (rng.integers(-4, 5, shape).astype(np.float32) for shape in (a, b))
    expected = left @ right
    graph = Graph()
    x, y = graph.input(left), graph.input(right)
    compiled = graph.compile([x @ y, left @ y, x @ right])
    for found in compiled(left, right):
        assert_same(found, expected)
    if left.ndim > 1 and right.ndim > 1:
        graph = Graph()
        x, y = graph.input(np.swapaxes(left, -1, -2)), graph.input(right)
        swapped = (*range(left.ndim - 2), left.ndim - 1, left.ndim - 2)
        compiled = graph.compile([x.transpose(swapped) @ y])
        assert_same(compiled(np.swapaxes(left, -1, -2), right), expected)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ((2, 3), (2, 3), r"GEMM.b.*found 2, expected 3.*\(C4\)"),
        ((3,), (3,), r"GEMM: found a product of two vectors, .*\(G10\). Keep a dimension: x\[None, :\] @ y"),
        ((1, 1, 1, 2, 3), (3, 4), r"GEMM.a.ndim: found 5, expected 2, 3 or 4 \(S2\)"),
        ((5, 2, 3), (6, 3, 4), r"GEMM.b.shape\[0\]: found 6, expected 5, that of a \(C3\)"),
    ],
)
def test_products_that_there_are_not(a: Any, b: Any, message: str) -> None:
    graph = Graph()
    with pytest.raises(DMLError, match=message):
        graph.input(a) @ graph.input(b)


def test_products_of_integers_are_refused_by_type() -> None:
    graph = Graph()
    with pytest.raises(DMLTypeError, match=r"GEMM.a.dtype: found int32.* \(S3\)"):
        graph.input((2, 2), "int32") @ np.ones((2, 2), np.int32)
    with pytest.raises(DMLError, match=r"GEMM.a.ndim: found 2 at feature level 3.1, expected 4 \(S2\)"):
        Graph(Device("cpu", FeatureLevel.LEVEL_3_1)).input((2, 2)) @ np.ones((2, 2), np.float32)


# Truth values


COMPARED: list[Any] = [
    lambda x: x == x.T.T,
    lambda x: x != 1,
    lambda x: np.float32(1) == x,
    lambda x: np.ones(24, np.float32).reshape(2, 3, 4) != x,
    lambda x: x < 1,
    lambda x: x <= X[:, ::-1],
    lambda x: x > x[:1],
    lambda x: x >= 2,
    lambda x: np.float32(1) < x,
    lambda x: (x > 3) & (x < 9) | (x == 20),
    lambda x: ~(x > 3) ^ (x < 9),
    lambda x: (x > 3) & True,
    lambda x: np.True_ ^ (x > 3),
    lambda x: (x > 3) & (X < 9),
    lambda x: (x > 3)[1, ::-1, None],
    lambda x: (x > 3).reshape(4, 6),
    lambda x: (x > 3).T,
]


@pytest.mark.parametrize("compare", COMPARED)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_comparisons_and_logic_are_as_in_numpy(compare: Any, device: str) -> None:
    found = value(compare, device=device)
    assert found.dtype == np.bool_
    np.testing.assert_array_equal(found, compare(X))


def test_truth_values_are_taken_and_chosen_by() -> None:
    graph = Graph()
    x, mask = graph.input(X), graph.input((2, 3, 4), bool, name="mask")
    assert (mask.dtype, mask.tensor.DataType, (x > 1).dtype) == (np.bool_, TensorDataType.UINT8, np.bool_)
    compiled = graph.compile({"chosen": anydml.where(mask & (x > 5), x, -1.0), "not": ~mask, "itself": mask})
    given = X % 2 == 0
    results = compiled(X, given)
    np.testing.assert_array_equal(results["chosen"], np.where(given & (X > 5), X, np.float32(-1)))
    np.testing.assert_array_equal(results["not"], ~given)
    np.testing.assert_array_equal(results["itself"], given)
    out = np.empty((2, 3, 4), bool)
    assert compiled(X, mask=given.tolist(), out={"not": out})["not"] is out
    np.testing.assert_array_equal(out, ~given)
    # By a dispatch they are bytes.
    bits = [np.empty((2, 3, 4), kind) for kind in (np.float32, np.uint8, np.uint8)]
    compiled.dispatch([X, given.view(np.uint8)], bits)
    np.testing.assert_array_equal(bits[1], (~given).view(np.uint8))


def test_truth_values_that_are_moved_remain_such() -> None:
    graph = Graph()
    mask = graph.input((1, 4, 2, 2), bool)
    moved = anydml.reverse_subsequences(anydml.space_to_depth(anydml.depth_to_space(mask, 2), 2), [4], 1)
    assert moved.dtype == np.bool_
    given = np.arange(16).reshape(1, 4, 2, 2) % 3 == 0
    np.testing.assert_array_equal(graph.compile([moved])(given), given[:, ::-1])


def test_truth_values_are_numbers_where_they_are_no_longer_such() -> None:
    graph = Graph()
    x = graph.input(X)
    for each in ((x > 3) + (x > 4), (x > 3) & np.uint8(3), (x > 3).astype(np.uint8), (x > 3) << 1):
        assert each.dtype == np.uint8
    assert graph.compile([(x > 3) + (x > 4)])(X).max() == 2


OF_BITS: list[Any] = [
    lambda x, y: x & y,
    lambda x, y: x | 3,
    lambda x, y: 5 ^ x,
    lambda x, y: ~x,
    lambda x, y: x << (y & 3),
    lambda x, y: x >> 1,
    lambda x, y: 1 << (y & 7),
    lambda x, y: 200 >> (y & 7),
]


@pytest.mark.parametrize("function", OF_BITS)
def test_operators_of_bits_are_as_in_numpy(function: Any) -> None:
    x, y = np.arange(0, 250, 10, dtype=np.uint8), np.arange(25, dtype=np.uint8)
    graph = Graph()
    assert_same(graph.compile([function(graph.input(x), graph.input(y))])(x, y), function(x, y))


def test_shifts_are_of_types_without_a_sign() -> None:
    with pytest.raises(DMLTypeError, match=r"BIT_SHIFT_LEFT.a.dtype: found int32.*\(S3\)"):
        Graph().input((2,), "int32") << 1


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64, np.float16, np.float32])
def test_floor_division_is_pythons(dtype: Any) -> None:
    rng, kind = np.random.default_rng(5), np.dtype(dtype)
    if kind.kind == "f":
        a, b = (rng.standard_normal((2, 500)) * [[40], [3]]).astype(dtype)
        a[:4], b[:5] = [np.inf, -np.inf, np.nan, 0], [1, 2, 3, np.inf, -np.inf]
    else:
        limits = np.iinfo(dtype)
        a, b = rng.integers(limits.min, limits.max, (2, 500), dtype, endpoint=True)
        a[0], b[:9] = limits.min, [3, 1, 2, 5, 7, 3, 1, 2, limits.max]
        b[b == 0] = 1
    graph = Graph()
    x, y = graph.input(a), graph.input(b)
    found = graph.compile([x // y, x // 7, 100 // y])(a, b)
    with np.errstate(all="ignore"):
        for result, expected in zip(found, (a // b, a // dtype(7), dtype(100) // b), strict=True):
            assert_same(result, expected)


def test_floor_division_by_0_is_as_divide_has_it() -> None:
    for dtype, expected in (("int32", [-1] * 3), ("uint8", [255] * 3), ("float32", [np.inf, np.nan, np.inf])):
        graph = Graph()
        found = graph.compile([graph.input((3,), dtype) // 0])(np.array([5, 0, 9], dtype))
        assert_same(found, np.array(expected, dtype))


# What it is not


def test_it_has_no_truth_value() -> None:
    x = Graph().input(X)
    for ask in (bool, lambda x: not x, lambda x: 1 if x else 2):
        with pytest.raises(TypeError, match=r"Expression.bool\(\): found <Expression of FLOAT32 \(2, 3, 4\)>.*\(G10\)"):
            ask(x)


def test_it_is_hashed_as_the_object_that_it_is() -> None:
    graph = Graph()
    x, y = graph.input(X), graph.input(X)
    names = {x: "x", y: "y"}
    assert (names[x], names[y], len({x, y, x})) == ("x", "y", 2)
    assert x in [x, y]


# Copies


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_graphs_are_pickled_and_copied(copied: Any) -> None:
    graph = Graph(Device("cpu", FeatureLevel.LEVEL_6_2))
    x = graph.input((3,), name="x")
    known = graph.constant(tensor((3,)), memoryview(np.array([1, 2, 3], np.float32)), "known")
    (sums,) = graph.operator(DML_CUMULATIVE_SUMMATION_OPERATOR_DESC, InputTensor=x, Axis=0)
    y = sums * known
    theirs, (a, b) = copied((graph, (x, y)))
    assert isinstance(a, Expression)
    assert theirs is a.graph is b.graph is not graph
    assert theirs.device.feature_level == FeatureLevel.LEVEL_6_2
    assert theirs.compile([b + a])(x=[1, 1, 1]).tolist() == [2, 5, 10]
    # What is added to one is not in the other.
    assert graph.compile([y + 1])([1, 1, 1]).tolist() == [2, 5, 10]
    with pytest.raises(DMLError, match="an expression of another graph"):
        graph.compile([b])


def test_a_copy_stays_on_the_device() -> None:
    device = Device("reference", FeatureLevel.LEVEL_5_0, strict=True)
    assert copy.deepcopy(device) is copy.copy(device) is device
    assert copy.deepcopy(Graph(device)).device is device
    other = pickle.loads(pickle.dumps(device))
    assert repr(other) == repr(device)
    assert other.debug == device.debug
