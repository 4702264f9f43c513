"""The functions of all operators: they give what descs give, on arrays and on expressions, or say what is wrong."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import (
    DML_ACTIVATION_RELU_OPERATOR_DESC,
    DML_ACTIVATION_SOFTMAX_OPERATOR_DESC,
    DML_BUFFER_TENSOR_DESC,
    DML_SCALE_BIAS,
    Device,
    DMLError,
    Expression,
    FeatureLevel,
    Graph,
    PackedArray,
    ReduceFunction,
    TensorDataType,
)
from anydml.core.strided_layout import Layout
from anydml.functions import BUILTINS, FUNCTIONS, load
from anydml.operators import OPERATORS, spec_of
from applied import applied, arguments_of, as_described, function_of, operands_of
from cases import Case, all_cases, operator_of, some_of_each, tensor, tensor_of
from harness import GPU, assert_same, engines_of, units_of
from test_cases import UNPROMISED
from together import Row, together

pytestmark = pytest.mark.slow

OTHERWISE = {
    "clip1-float": "of NaN, and of ends that are crossed, the function has what CLIP has, as NumPy",
    "multihead_attention-past-of-5": "what is present has 4 dimensions",
    "multihead_attention1-lengths-in": "what is present has room for all that is past",
    "slice1-fewer": "a function copies all that a window has",
    "slice-one-element": "a stride is one of SLICE1, of 31 bits",
}
"""What descs do that functions do otherwise, by how the cases' ids begin."""

CASES = [case for case in all_cases() if not case.id.startswith(tuple(OTHERWISE))]


def each_of(cases: Sequence[Case]) -> Callable[[Any], Any]:
    """A test for each operator."""
    return together("case", [Row(operator_of(case), case.id, (case,)) for case in cases])


def check(case: Case, outputs: Sequence[Any], engine: str = "cpu") -> None:
    row = spec_of(case.desc).pointwise  # type: ignore[union-attr]
    for found, wanted in zip(as_described(case.desc, outputs), case.outputs, strict=True):
        if wanted is not None:
            array = found.data if isinstance(found, PackedArray) else np.asarray(found)
            if row is not None and not row.group_of(row.output):
                # The function gives truth values, or UINT8.
                assert array.dtype in (np.bool_, np.uint8)
                array = array.astype(wanted.dtype)
            elif array.dtype == np.bool_:
                array = array.view(np.uint8)
            assert_same(array, wanted, units_of(case.desc, engine))


def input_of(x: Any) -> DML_BUFFER_TENSOR_DESC:
    """The tensor of an operand."""
    return tensor(x.shape, x.data_type.name) if isinstance(x, PackedArray) else tensor_of(x)


def values(outputs: Sequence[Expression | None], inputs: Sequence[np.ndarray]) -> list[np.ndarray | None]:
    """What the expressions of a graph are, for its inputs."""
    there = [each for each in outputs if each is not None]
    layouts = [Layout.of_desc(each.tensor) for each in there]
    results = [np.empty(layout.sizes, layout.dtype) for layout in layouts]
    compiled = there[0].graph.compile(there)
    packed = [np.ascontiguousarray(x) for x in inputs]
    compiled.dispatch([None if t is None else x for t, x in zip(compiled.inputs, packed, strict=True)], results)
    each_result = iter(results)
    return [None if each is None else next(each_result) for each in outputs]


@each_of(CASES)
def test_arrays(case: Case) -> None:
    check(case, applied(case.desc, operands_of(case.desc, case.inputs)))


ELSEWHERE = [case for case in CASES if GPU in engines_of(case.desc) and case.id not in UNPROMISED] if GPU else []


@pytest.mark.gpu
@each_of(ELSEWHERE)
def test_arrays_on_a_gpu(case: Case) -> None:
    outputs = applied(case.desc, operands_of(case.desc, case.inputs), device=GPU)
    # What has no operand to be like is a tensor there.
    has_operands = any(x is not None for x in case.inputs)
    check(case, outputs if has_operands else [each.cpu() for each in outputs], GPU)


@each_of(some_of_each(CASES))
def test_expressions(case: Case) -> None:
    graph = Graph(Device("cpu"))
    operands = [None if x is None else graph.input(input_of(x)) for x in operands_of(case.desc, case.inputs)]
    more = {"graph": graph} if all(each is None for each in operands) else {}
    check(case, values(applied(case.desc, operands, **more), [x for x in case.inputs if x is not None]))


@each_of(some_of_each([case for case in CASES if len(case.inputs) > 1]))
def test_an_array_among_expressions_is_a_constant(case: Case) -> None:
    graph = Graph(Device("cpu"))
    place, first = next((i, x) for i, x in enumerate(case.inputs) if x is not None)
    operands = operands_of(case.desc, case.inputs)
    operands[place] = graph.input(input_of(operands[place]))
    check(case, values(applied(case.desc, operands), [first]))


# The table


def test_each_operator_has_a_function() -> None:
    assert {function_of(operator) for operator in OPERATORS} == set(FUNCTIONS)
    for name in FUNCTIONS:
        function = getattr(anydml, name)
        assert function.__name__ == name
        assert function is load(name)
        assert name in dir(anydml)
        assert (name in anydml.__all__) == (name not in BUILTINS)
        *_, out, device = signature(function).parameters.values()
        assert (out.name, out.default, device.name, device.default) == ("out", None, "device", None)


def test_other_names_are_of_the_very_functions() -> None:
    assert anydml.where is anydml.if_


def test_all_of_it_replaces_no_builtin() -> None:
    assert set(FUNCTIONS) & set(dir(builtins)) == set(BUILTINS)
    found: dict[str, Any] = {}
    exec("from anydml import *", found)
    assert not {name for name in found if not name.startswith("_")} & set(dir(builtins))


@pytest.mark.parametrize(
    ("level", "call"),
    [
        ("1.0", lambda device, x: anydml.add(x, x, device=device)),
        ("1.0", lambda device, x: anydml.clip(x, 0, 1, device=device)),
        ("1.0", lambda device, x: anydml.max_pooling(x, 1, device=device)),
        ("1.0", lambda device, x: anydml.slice(x, 0, [1, 1, 2, 2], device=device)),
        ("1.0", lambda device, x: anydml.softmax(x, device=device)),
        ("1.0", lambda device, x: anydml.mean_variance_normalization(x, axes=(-1, -2), device=device)),
        ("2.0", lambda device, x: anydml.add(x, x, activation=DML_ACTIVATION_RELU_OPERATOR_DESC(), device=device)),
        ("2.0", lambda device, x: anydml.max_pooling(x, 1, indices_dtype=np.uint32, device=device)),
        ("2.1", lambda device, x: anydml.max_pooling(x, 1, dilations=1, device=device)),
        ("2.1", lambda device, x: anydml.slice(x, 0, [1, 1, 2, 2], -1, device=device)),
        ("2.1", lambda device, x: anydml.mean_variance_normalization(x, axes=3, device=device)),
        ("1.0", lambda device, x: anydml.pow(x, 2, device=device)),
        ("1.0", lambda device, x: anydml.tanh(x, device=device)),
        ("2.0", lambda device, x: anydml.tanh(x, scale_bias=DML_SCALE_BIAS(Scale=2, Bias=0), device=device)),
        ("3.1", lambda device, x: anydml.clip_grad(x, x, 0, 1, device=device)),
        ("5.0", lambda device, x: anydml.clip(x.astype(np.int64), 0, 2**40 + 1, device=device)),
        ("5.0", lambda device, x: anydml.clip_grad(x.astype(np.int64), 1, 0, 2**40 + 1, device=device)),
        ("5.1", lambda device, x: anydml.softmax(x, (2, 3), device=device)),
    ],
)
def test_the_oldest_revision_that_does_it(level: str, call: Callable[[Device, np.ndarray], Any]) -> None:
    x = np.ones((1, 1, 2, 2), np.float32)
    for each in FeatureLevel:
        device = Device("reference", each)
        if each.number >= level:
            call(device, x)
        else:
            with pytest.raises(DMLError, match=f"feature level {level}"):
                call(device, x)


# Operands


@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((3, 1), (1, 4)), ((), (2, 2)), ((2, 1, 3), (4, 1)), ((1,), (5,))])
def test_operands_broadcast_as_numpy_does(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (np.arange(1, 1 + np.prod(shape), dtype=np.int32).reshape(shape) for shape in shapes)
    for function, numpy in ((anydml.subtract, np.subtract), (anydml.max, np.maximum), (anydml.multiply, np.multiply)):
        assert_same(function(a, b), numpy(a, b))
        assert_same(function(b[..., ::-1] if b.ndim else b, a), numpy(b[..., ::-1] if b.ndim else b, a))
        graph = Graph(Device("cpu"))
        if a.ndim:
            (found,) = values([function(graph.input(tensor_of(a)), b)], [a])
            assert_same(found, numpy(a, b))  # type: ignore[arg-type]
    expected = np.where(a >= 0, a, a * b)
    assert_same(anydml.parameterized_relu(-a, b), np.broadcast_to(-a * b, expected.shape))


def test_a_number_is_of_the_type_beside_it() -> None:
    x = np.array([1, 2], np.int8)
    assert_same(anydml.add(x, 3), np.array([4, 5], np.int8))
    assert_same(anydml.subtract(3, x), np.array([2, 1], np.int8))
    assert_same(anydml.pow(x.astype(np.float16), 0.5), np.sqrt(x.astype(np.float16)))
    graph = Graph(Device("cpu"))
    (found,) = values([anydml.divide(1, graph.input(tensor((2,))))], [np.array([2, 4], np.float32)])
    assert_same(found, np.array([0.5, 0.25], np.float32))  # type: ignore[arg-type]
    assert np.isinf(anydml.max(np.ones(1, np.float16), float("inf"))[0])
    assert_same(anydml.add(np.zeros(1, np.float32), 2**100), np.array([2**100], np.float32))


def test_a_number_has_no_type_beside_one_that_numpy_has_not() -> None:
    x = Graph(Device("cpu")).input(tensor((2,), "UINT4"))
    for call in (lambda: x + 1, lambda: anydml.pow(x, 2), lambda: anydml.clip(x, 1, 2)):
        with pytest.raises(
            DMLError, match=r"ELEMENT_WISE_.*: found an expression of UINT4, expected .*float32.* \(S3\)"
        ):
            call()


@pytest.mark.parametrize(
    ("a", "b", "c"), [((2, 3), (3, 4), (4,)), ((5, 1, 2, 3), (2, 3, 4), ()), ((2, 3), (6, 3, 1), (2, 1))]
)
def test_products_broadcast_as_numpy_does(a: Any, b: Any, c: Any) -> None:
    left, right, more = (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in (a, b, c))
    assert_same(anydml.gemm(left, right, more, alpha=2), 2 * (left @ right) + more)
    transposed = np.ascontiguousarray(right.swapaxes(-1, -2))
    assert_same(anydml.gemm(left, transposed, trans_b=anydml.MatrixTransform.TRANSPOSE), left @ right)
    graph = Graph(Device("cpu"))
    (found,) = values([anydml.gemm(graph.input(tensor_of(left)), right, more)], [left])
    assert_same(found, left @ right + more)  # type: ignore[arg-type]


def test_axes_count_from_the_last() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert_same(anydml.reduce(x, ReduceFunction.SUM, -2), x.sum(1, keepdims=True))
    assert_same(anydml.reduce(x, ReduceFunction.MAX, [0, -1]), x.max((0, 2), keepdims=True))
    assert_same(anydml.reduce(x, ReduceFunction.MIN), x.min(keepdims=True))
    assert_same(anydml.gather(x, [[0, 1]], -1, index_dimensions=1), np.take(x, [0, 1], -1))
    assert_same(anydml.gather(x, np.int32([2, -3]), 1), np.take(x, [2, -3], 1))
    for piece, expected in zip(anydml.split(x, 2, -1), np.split(x, 2, -1), strict=True):
        assert_same(piece, expected)
    np.testing.assert_array_equal(anydml.hardmax(x, -2).argmax(1), np.full((2, 4), 2))


def test_crossed_ends_are_numpys() -> None:
    x = np.array([-(2**40), 5, 2**40], np.int64)
    for low, high in ((2**40 - 1, 3), (3, 2**40 - 1), (-(2**40) + 1, 2**40 - 1)):
        assert_same(anydml.clip(x, low, high), np.clip(x, low, high))


@pytest.mark.parametrize("step", [1, 2, -1])
def test_out_is_written_and_returned(step: int) -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    memory = np.full((1, 1, 6, 8), -1, np.float32)
    out = memory[..., ::step, ::step][..., :3, :4]
    assert anydml.relu(x, out=out) is out
    assert_same(out, x)
    assert (memory == -1).sum() == 36
    indices = np.zeros((1, 1, 3, 3), np.uint64)
    maxima, found = anydml.max_pooling(x, (1, 2), indices_dtype="uint64", out=[out[..., :3], indices])
    assert found is indices
    assert_same(maxima, x[..., 1:])
    same = x.copy()
    assert anydml.negate(same, out=same) is same
    assert_same(same, -x)


def test_out_says_what_may_be_rounded_up() -> None:
    x = np.arange(5, dtype=np.float32).reshape(1, 1, 1, 5)
    options = {"window_size": (1, 2), "strides": 2}
    assert anydml.max_pooling(x, **options).shape == (1, 1, 1, 2)
    out = np.empty((1, 1, 1, 3), np.float32)
    assert_same(anydml.max_pooling(x, **options, out=out), np.float32([[[[1, 3, 4]]]]))
    assert_same(anydml.max_pooling(x, **options, output_sizes=(1, 3)), out)
    assert anydml.reduce(x, ReduceFunction.ARGMAX, out=np.empty((1,) * 4, np.int64)).dtype == np.int64


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda x: anydml.relu(x), (0, 3)),
        (lambda x: anydml.add(x, np.ones(3, np.float32)), (0, 3)),
        (lambda x: anydml.softmax(x), (0, 3)),
        (lambda x: anydml.reduce(x, ReduceFunction.SUM, 1), (0, 1)),
        (lambda x: anydml.gemm(x, np.ones((3, 2), np.float32)), (0, 2)),
        (lambda x: anydml.cast(x, np.int8), (0, 3)),
        (lambda x: anydml.gather(np.ones((4, 3), np.float32), np.zeros(0, np.int32)), (0, 3)),
        (lambda x: anydml.split(x, [1, 2], 1)[1], (0, 2)),
        (lambda x: anydml.average_pooling(x.reshape(0, 1, 1, 3), (1, 2)), (0, 1, 1, 2)),
        (lambda x: anydml.convolution(x.reshape(0, 1, 3), np.ones((5, 1, 2), np.float32)), (0, 5, 2)),
        (lambda x: anydml.fill_value_constant((0, 2), 1), (0, 2)),
    ],
)
def test_empty_arrays(call: Callable[[np.ndarray], Any], shape: tuple[int, ...]) -> None:
    assert call(np.empty((0, 3), np.float32)).shape == shape


def test_nothing_comes_from_nothing() -> None:
    empty = np.empty((3, 0), np.float32)
    for call in (
        lambda: anydml.reduce(empty, ReduceFunction.SUM, 1),
        lambda: anydml.gemm(empty, empty.T),
        lambda: anydml.padding(empty, 1, 1),
    ):
        with pytest.raises(DMLError, match=r"x.shape\[1\]: found 0|a.shape\[1\]: found 0"):
            call()


def test_torch_in_torch_out() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([[1.0, -2.0], [3.0, -4.0]])
    assert torch.equal(anydml.relu(x), torch.relu(x))
    assert torch.equal(anydml.add(x, np.float32([10, 20])), x + torch.tensor([10.0, 20.0]))
    assert torch.equal(anydml.gemm(x, x.T), x @ x.T)
    assert torch.equal(anydml.cast(x, torch.int32), x.to(torch.int32))
    out = torch.zeros(2, 4)[:, ::2]
    assert anydml.exp(x, out=out) is out
    assert torch.allclose(out, torch.exp(x))


# What is wrong

X = np.ones((2, 3), np.float32)
IMAGE = np.ones((1, 2, 4, 4), np.float32)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: anydml.relu(X.astype(np.float64)),
            "ACTIVATION_RELU.x.dtype: found float64, expected float32, float16, ",
        ),
        (lambda: anydml.relu(X.astype(np.float64)), "(S3). Convert it to float32, as .astype(np.float32) does"),
        (
            lambda: anydml.exp(np.array([1, 2])),
            "ELEMENT_WISE_EXP.x.dtype: found int64, expected float32 or float16 (S3). Convert",
        ),
        (lambda: anydml.exp(X > 0), "ELEMENT_WISE_EXP.x: found bool, expected float32 or float16 (S3)"),
        (lambda: anydml.gather(X, X), "GATHER.indices.dtype: found float32, expected "),
        (
            lambda: anydml.gather(X, [3]),
            "GATHER.indices: found 3 at (0,), expected from -2 to 1, the indices of axis 0",
        ),
        (
            lambda: anydml.upsample_2d(np.float32(4), 2),
            "x.shape: found 0 dimensions, expected 1 to 8 (T2). x[np.newaxis] adds a",
        ),
        (lambda: anydml.convolution(np.ones((1, 1, 4, 4)), np.ones((3, 3))), "filter[np.newaxis] adds a dimension"),
        (
            lambda: anydml.convolution(np.ones((1, 1, 4, 4)), np.ones((1, 1, 3, 3)), activation=3),
            "CONVOLUTION.activation: found int 3, expected the desc of an activation that may be fused, such as "
            "DML_ACTIVATION_RELU_OPERATOR_DESC(), or None (F11)",
        ),
        (lambda: anydml.sqrt(4.0), "ELEMENT_WISE_SQRT.x: found float 4.0, expected an array of numbers"),
        (lambda: anydml.add(1, 2), "ELEMENT_WISE_ADD.a: found int 1, expected an array of numbers"),
        (lambda: anydml.add(X, None), "ELEMENT_WISE_ADD.b: found None, expected an array of numbers"),
        (lambda: anydml.add(X, X[:, :2]), "sizes that are the same, or 1, counted from the last (A13)"),
        (lambda: anydml.add(X, X.astype(np.int32)), "ADD.b.dtype: found int32, expected float32, that of a (C1)"),
        (lambda: anydml.add(X.astype(np.int8), 128), "ADD.b: found int 128, expected a number that int8, the type of "),
        (lambda: anydml.add(X.astype(np.int8), 0.5), "b: found float 0.5, expected a number that int8"),
        (lambda: anydml.add(X, True), "ADD.b: found bool True, expected an array"),
        (lambda: anydml.add(X, X, activation="rely"), "ADD1.activation: found str 'rely', expected the desc of an"),
        (lambda: anydml.clip(X, "a", 2), "CLIP.min: found str 'a', expected a number of single precision (F8)"),
        (lambda: anydml.elu(X, None), "ELU.alpha: found None, expected a number of single precision"),
        (lambda: anydml.abs(X, scale_bias=2), "ABS.scale_bias: found int 2, expected a DML_SCALE_BIAS of two numbers"),
        (
            lambda: anydml.softmax(X, 2),
            "SOFTMAX.axes: found int 2, expected -2 to 1, for an array of 2 dimensions (A5)",
        ),
        (lambda: anydml.softmax(X, [0, 0]), "SOFTMAX1.axes[1]: found 0 again, expected every axis once (C5)"),
        (lambda: anydml.softmax(X, []), "SOFTMAX1.axis_count: found 0, expected at least 1 (C3)"),
        (lambda: anydml.reduce(X, "SUN"), "REDUCE.function: found str 'SUN', expected ReduceFunction.ARGMAX, "),
        (lambda: anydml.reduce(X, ReduceFunction.ARGMAX, output_dtype="odd"), "REDUCE.output_dtype: found str 'odd'"),
        (lambda: anydml.reduce(X.astype(np.int32), ReduceFunction.AVERAGE), "found int32, expected float32 or float16"),
        (lambda: anydml.convolution(X, X), "CONVOLUTION.x.ndim: found 2, expected 3, 4 or 5 (S2)"),
        (
            lambda: anydml.convolution(IMAGE, IMAGE[:, :1]),
            "filter.shape[1]: found 1, expected 2, the channels of x (C6)",
        ),
        (lambda: anydml.convolution(IMAGE, IMAGE, strides=0), "CONVOLUTION.strides[0]: found 0, expected at least 1"),
        (lambda: anydml.convolution(IMAGE, IMAGE, strides=(1, 2, 3)), "strides: found tuple (1, 2, 3), expected an"),
        (lambda: anydml.convolution(IMAGE, IMAGE, group_count=3), "group_count: found 3, expected a divisor of 2"),
        (
            lambda: anydml.convolution(IMAGE, IMAGE, bias=X),
            "CONVOLUTION.bias.ndim: found 2, expected 4, that of x (C2)",
        ),
        (
            lambda: anydml.convolution(IMAGE, IMAGE, output_sizes=2),
            "CONVOLUTION.out.shape[2]: found 2, expected 1 (C9)",
        ),
        (lambda: anydml.gemm(X, X), "GEMM.b.shape[0]: found 2, expected 3, that of a.shape[1] (C4)"),
        (lambda: anydml.gemm(X, X.T, X), "GEMM.c.shape: found (2, 3), expected (2, 2), that of out (C5)"),
        (lambda: anydml.gemm(X[0], X[0]), "GEMM.a.ndim: found 1, expected 2, 3 or 4"),
        (lambda: anydml.max_pooling(IMAGE, 5), "MAX_POOLING.window_size[0]: found 5, expected an extent of at most 4"),
        (lambda: anydml.max_pooling(IMAGE, None), "MAX_POOLING.window_size: found None, expected an integer, or 2 of"),
        (
            lambda: anydml.max_pooling(IMAGE, 2, indices_dtype=np.int8),
            "output_indices.dtype: found int8, expected uint64",
        ),
        (
            lambda: anydml.max_pooling(IMAGE, 2, output_sizes=0),
            "output_sizes: found tuple (0, 0), expected at least 1 in",
        ),
        (
            lambda: anydml.max_pooling(IMAGE, 2, indices_dtype=np.uint32, out=X),
            "out: found ndarray of float32, shape (2, 3)",
        ),
        (lambda: anydml.average_pooling(IMAGE, 2, include_padding=2), "include_padding: found int 2, expected True or"),
        (lambda: anydml.lp_pooling(IMAGE, 2, p=0), "LP_POOLING.p: found 0, expected at least 1 (C7)"),
        (
            lambda: anydml.slice(X, 0, [2, 4]),
            "SLICE.offsets[1]: found 0, with sizes[1] 4 and strides[1] 1 a last element",
        ),
        (lambda: anydml.slice(X, 0, 2, 0), "SLICE1.strides[0]: found 0, expected a stride that is not 0 (C6)"),
        (
            lambda: anydml.slice(X, 0, 4, 2),
            "SLICE1.offsets[0]: found 0, with sizes[0] 4 an end of 4, expected an end of",
        ),
        (lambda: anydml.split(X, 2, 1), "SPLIT.sizes: found int 2, expected sizes that add up to 3, that of x along"),
        (lambda: anydml.split(X, [1.0, 2.0], 1), "SPLIT.sizes: found list [1.0, 2.0], expected a list of integers, or"),
        (lambda: anydml.split(X, [-1, 4], 1), "along the axis, or a number that divides it (A14)"),
        (lambda: anydml.split(X, [1, 2], 1, out=X), "SPLIT.out: found "),
        (
            lambda: anydml.padding(X, -1, 0),
            "PADDING.start_padding[0]: found int -1, expected an integer from 0 to 2^32 - 1",
        ),
        (lambda: anydml.padding(X, 1, 1, mode="EDGY"), "PADDING.mode: found str 'EDGY', expected PaddingMode.CONSTANT"),
        (lambda: anydml.cast(X, None), "CAST.dtype: found None, expected a data type, such as np.float32 (S3)"),
        (lambda: anydml.cast(X, TensorDataType.UINT4), "CAST.dtype: found TensorDataType"),
        (lambda: anydml.upsample_2d(IMAGE, 0), "UPSAMPLE_2D.scale_size.Width: found 0, expected from 1 to"),
        (
            lambda: anydml.value_scale_2d(IMAGE, 1, [0, 0]),
            "VALUE_SCALE_2D.channel_count: found 2, expected 1 or 3 (C3)",
        ),
        (
            lambda: anydml.fill_value_constant((2,), 300, np.uint8),
            "value: found 300, expected an integer from 0 to 255",
        ),
        (lambda: anydml.fill_value_constant("a", 1), "FILL_VALUE_CONSTANT.shape: found str 'a', expected a list of"),
        (
            lambda: anydml.fill_value_constant([2, -1], 1),
            "shape: found list [2, -1], expected sizes of at least 0 (A10)",
        ),
        (lambda: anydml.fill_value_sequence(-1), "shape: found int -1, expected sizes of at least 0 (A10)"),
        (
            lambda: anydml.fill_value_constant((), 1),
            "FILL_VALUE_CONSTANT.out.shape: found 0 dimensions, expected 1 to 8",
        ),
        (lambda: anydml.mean_variance_normalization(X, axes=[2]), "axes: found int 2, expected -2 to 1"),
        (
            lambda: anydml.batch_normalization(X, X, X, X, X[:1, :2]),
            "bias.shape[1]: found 2, expected 3, that of x, or 1",
        ),
        (lambda: anydml.rnn(IMAGE, X, X), "RNN.weight.shape[2]: found 2, expected 3, 1 * hidden_size (C3)"),
        (lambda: anydml.gru(IMAGE, IMAGE, IMAGE, activations=[]), "GRU.activations: found 0 activations, expected 2"),
        (lambda: anydml.relu(X, out=np.ones((3, 2), np.float32)), "ACTIVATION_RELU.out: found float32 of shape (3, 2)"),
        (lambda: anydml.relu(X, out=X[:, ::-1]), "ACTIVATION_RELU.out: found memory shared with x"),
        (
            lambda: anydml.softmax(X, out=X),
            "ACTIVATION_SOFTMAX.out: found memory shared with x, expected memory of its",
        ),
        (lambda: anydml.relu(X, device="gpu"), "Device.name: found str 'gpu', expected cpu, "),
        (
            lambda: anydml.relu(np.ones((1,) * 9, np.float32)),
            "ACTIVATION_RELU.x.shape: found 9 dimensions, expected 1 to 8",
        ),
    ],
)
def test_errors_name_what_was_written(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(DMLError, match=re.escape(text)) as raised:
        call()
    assert all(violation.rule for violation in raised.value.violations)
    assert isinstance(raised.value, (ValueError, TypeError))


def test_errors_of_expressions_name_what_was_written() -> None:
    graph, other = Graph(Device("cpu")), Graph(Device("cpu"))
    x, y = graph.input(tensor((2, 3))), other.input(tensor((2, 3)))
    old = Graph(Device("cpu", FeatureLevel.LEVEL_3_0)).input(tensor((2, 3)))
    calls: dict[str, Callable[[], Any]] = {
        "ELEMENT_WISE_ADD.b: found an expression of another graph, expected one of this graph (G9)": (
            lambda: anydml.add(x, y)
        ),
        "JOIN.arrays[1]: found an expression of another graph": lambda: anydml.join([x, y]),
        "ACTIVATION_RELU.out: found ndarray": lambda: anydml.relu(x, out=X),
        "ACTIVATION_RELU.device: found str 'reference', expected Device('cpu'": lambda: anydml.relu(
            x, device="reference"
        ),
        "CUMULATIVE_SUMMATION.axis: found int 2, expected -2 to 1": lambda: anydml.cumulative_summation(x, 2),
        "GEMM.b.shape[0]: found 2, expected 3, that of a.shape[1] (C4)": lambda: anydml.gemm(x, x),
        "ELEMENT_WISE_ADD.b.dtype: found int32, expected float32, that of a (C1)": (
            lambda: anydml.add(x, X.astype(np.int32))
        ),
        "ELEMENT_WISE_ADD.b: found <U1": lambda: anydml.add(x, ["a"]),
        "ACTIVATION_SOFTMAX1: found no such operator at feature level 3.0": lambda: anydml.softmax(old, 0),
        "GEMM.activation: found ACTIVATION_SOFTMAX at feature level 3.0, expected ": (
            lambda: anydml.gemm(old, X.T, activation=DML_ACTIVATION_SOFTMAX_OPERATOR_DESC())
        ),
        "compile.outputs[0]: found an expression of another graph": lambda: graph.compile([anydml.relu(y)]),
    }
    for text, call in calls.items():
        with pytest.raises(DMLError, match=re.escape(text)):
            call()


class Odd:
    """An object whose words mean something else."""

    shape = 5
    dtype = "odd"


FIRST = {function_of(spec_of(case.desc).name): case for case in reversed(CASES)}  # type: ignore[union-attr]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_anything_odd_is_a_named_error(name: str) -> None:
    """Or means something after all; never another exception."""
    case = FIRST[name]
    right = arguments_of(case.desc, operands_of(case.desc, case.inputs))
    for argument in {*right, *signature(getattr(anydml, name)).parameters}:
        for odd in (
            None,
            np.float32,
            np,
            Odd(),
            type,
            ...,
            "odd",
            {},
            {1},
            [],
            [[]],
            -1,
            2**70,
            1e400,
            float("nan"),
            X > 0,
        ):
            try:
                getattr(anydml, name)(**{**right, argument: odd})
            except DMLError as problem:
                refused = problem.violations
            else:
                refused = ()
            assert all(violation.rule for violation in refused)


def test_equal_numbers_that_differ_are_told_apart() -> None:
    assert np.signbit(anydml.fill_value_constant(1, -0.0)).tolist() == [True]
    assert np.signbit(anydml.fill_value_constant(1, 0.0)).tolist() == [False]
    anydml.elu(X, 1.0)
    with pytest.raises(DMLError, match="alpha: found bool True"):
        anydml.elu(X, True)
    scales = [DML_SCALE_BIAS(Scale=-1, Bias=bias) for bias in (0.0, -0.0)]
    zero = np.zeros(1, np.float32)
    assert [np.signbit(anydml.identity(zero, scale_bias=each))[0] for each in scales] == [False, True]
