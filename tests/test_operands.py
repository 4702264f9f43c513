"""What people hold: arrays of other libraries, numbers, lists, names, and elements that are only copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import DMLError, FeatureLevel, MatrixTransform, PaddingMode, ReduceFunction, TensorDataType
from harness import ENGINES, assert_same

X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
IMAGE = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4)
engine = pytest.mark.parametrize("engine", ENGINES)


def refused(rule: str, call: Callable[[], Any], *parts: str) -> DMLError:
    """The error of a call that breaks one rule; `parts` are in its text."""
    with pytest.raises(DMLError) as raised:
        call()
    assert {violation.rule for violation in raised.value.violations} == {rule}, raised.value
    for part in parts:
        assert part in str(raised.value)
    return raised.value


# Objects with __array__


class Series:
    """An object with ``__array__`` and nothing else, as those of pandas, xarray, h5py and zarr."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.memory


class Broken:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise RuntimeError("the file is closed")


@engine
def test_what_has_array_goes_in_and_arrays_come_out(engine: str) -> None:
    for call in (
        lambda x: anydml.cumulative_summation(x, device=engine),
        lambda x: anydml.join([x, x], device=engine),
        lambda x: anydml.relu(x, device=engine),
        lambda x: anydml.add(x, x, device=engine),
        lambda x: anydml.softmax(x, device=engine),
        lambda x: anydml.split(x, 2, device=engine)[0],
    ):
        result = call(Series(X))
        assert type(result) is np.ndarray
        assert_same(result, call(X))


def test_what_has_array_is_a_scale_a_constant_and_an_input_of_a_dispatch() -> None:
    image = np.arange(8, dtype=np.uint8).reshape(1, 2, 2, 2)
    scale, zero_point = Series(np.float32([1, 2])), Series(np.uint8([0, 1]))
    pooled = anydml.quantized_linear_average_pooling(image, scale, zero_point, output_scale=1, window_size=2)
    expected = anydml.quantized_linear_average_pooling(image, [1, 2], [0, 1], output_scale=1, window_size=2)
    assert_same(pooled, expected)
    graph = anydml.Graph(anydml.Device())
    tensor = anydml.DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=X.shape)
    x, out = graph.input(tensor), np.empty_like(X)
    graph.compile([anydml.add(x, Series(X))]).dispatch([Series(X)], [out])
    assert_same(out, X + X)


def test_what_has_array_goes_into_what_is_compiled() -> None:
    graph = anydml.Graph(anydml.Device())
    assert_same(graph.compile([anydml.relu(graph.input(X.shape))])(Series(X)), np.maximum(X, 0))
    traced = anydml.compile(lambda x, y: anydml.add(x, y))
    for given in ([Series(X), X], [X, Series(X)], [Series(X), Series(X)]):
        result = traced(*given)
        assert type(result) is np.ndarray
        assert_same(result, X + X)
    assert repr(traced.graph(Series(X), X)) == repr(traced.graph(X, X))
    refused("(A1)", lambda: traced(X, Broken()), "Broken (the file is closed)")


def test_what_has_array_is_not_copied_where_it_need_not_be() -> None:
    x = X.copy()
    series = Series(x)
    assert np.shares_memory(anydml.core.interop.as_operand("", "x", series), x)


def test_what_has_array_is_never_written_to() -> None:
    target = Series(np.zeros_like(X))
    for call in (anydml.relu, anydml.cumulative_summation, lambda x, out: anydml.join([x], out=out)):
        refused("(A1)", lambda: call(X, out=target), "out: found Series", "assign the result, as out[:] = result")  # noqa: B023
    assert not target.memory.any()
    tensor = anydml.DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.FLOAT32, Sizes=X.shape)
    desc = anydml.DML_ACTIVATION_RELU_OPERATOR_DESC(InputTensor=tensor, OutputTensor=tensor)
    device = anydml.Device()
    refused("(A1)", lambda: device.compile_operator(device.create_operator(desc)).dispatch([X], [target]))
    assert not target.memory.any()


def test_what_array_raises_is_told() -> None:
    refused("(A1)", lambda: anydml.relu(Broken()), "Broken (the file is closed)")


# Numbers and lists


@engine
@pytest.mark.parametrize("number", [np.float64(2), np.array(2.0), np.int64(2), np.array(2), np.float16(2), [2], [2.0]])
def test_what_has_no_type_of_its_own_takes_that_beside(engine: str, number: Any) -> None:
    for dtype in (np.float32, np.float16):
        x = X.astype(dtype)
        assert_same(anydml.multiply(x, number, device=engine), x * dtype(2))
        assert_same(anydml.multiply(number, x, device=engine), dtype(2) * x)


@engine
def test_lists_of_integers_beside_floats(engine: str) -> None:
    assert_same(anydml.add(X, [1, 2, 3], device=engine), X + np.float32([1, 2, 3]))
    assert_same(anydml.add([1, 2], [0.5, 1], device=engine), np.float32([1.5, 3]))
    assert_same(anydml.join([X, [[1, 2, 3]]], device=engine), np.concatenate([X, np.float32([[1, 2, 3]])]))
    assert_same(anydml.join([[1], [1.5]], device=engine), np.float32([1, 1.5]))
    assert_same(anydml.join([[1], np.int8([2])], device=engine), np.int8([1, 2]))
    assert_same(anydml.gather(X, [1], device=engine), X[1:])
    assert_same(anydml.add([1, 2], [3, 4], device=engine), np.array([4, 6]))
    assert_same(anydml.pow(X, [2], device=engine), X * X)
    half = np.float16([1, 2])
    assert_same(anydml.add(half, [0.5, 1], device=engine), np.float16([1.5, 3]))


@engine
def test_lists_of_integers_become_floats_where_integers_are_not_taken(engine: str) -> None:
    assert_same(anydml.relu([1, -2], device=engine), np.float32([1, 0]))
    assert_same(anydml.exp([0, 0], device=engine), np.float32([1, 1]))
    assert_same(anydml.reduce([1, 2], ReduceFunction.AVERAGE, device=engine), np.float32([1.5]))
    assert_same(anydml.reduce([1, 2], ReduceFunction.SUM, device=engine), np.array([3]))
    assert_same(anydml.gemm([[1, 2]], [[3], [4]], device=engine), np.float32([[11]]))
    assert_same(anydml.convolution([[[1, 2, 3]]], [[[1, 1]]], [1], device=engine), np.float32([[[4, 6]]]))
    states, _ = anydml.rnn([[[[1]], [[0]]]], [[[[1]]]], [[[[0]]]], sequence_lengths=[[[[2]]]], device=engine)
    np.testing.assert_allclose(states.ravel(), np.tanh([1, 0]), rtol=1e-6)


def test_what_the_type_beside_does_not_hold_is_refused() -> None:
    refused("(C1)", lambda: anydml.add(np.int8([1]), [128]))
    refused("(C1)", lambda: anydml.add(np.int32([1]), [1.5]))
    refused("(C1)", lambda: anydml.add(np.float16([1]), [1e6]))
    refused("(C1)", lambda: anydml.add(np.int32([1]), np.float32(1.5)))
    refused("(C1)", lambda: anydml.add(X, np.ones(3, np.int64)))
    refused("(A8)", lambda: anydml.join([np.int8([1]), [128]]))


def test_an_exponent_keeps_a_type_of_its_own() -> None:
    """It may have one, and powers of integers are exact."""
    x = np.array([3, 10], np.int32)
    for exponent in (np.array(5, np.int8), np.array(0.5, np.float32)):
        assert_same(anydml.pow(x, exponent), (x.astype(np.float64) ** exponent).astype(np.int32))


@engine
def test_arrays_of_0_dimensions(engine: str) -> None:
    x = np.array(-3, np.float32)
    for call, expected in (
        (lambda **options: anydml.relu(x, **options), 0),
        (lambda **options: anydml.abs(np.float32(-3), **options), 3),
        (lambda **options: anydml.add(x, x, **options), -6),
        (lambda **options: anydml.identity(x, **options), -3),
        (lambda **options: anydml.reduce(x, "sum", **options), -3),
    ):
        result = call(device=engine)
        assert (type(result), result.shape, result) == (np.ndarray, (), expected)
        out = np.zeros((), np.float32)
        for _ in range(2):
            assert call(out=out, device=engine) is out
            assert out == expected
        refused("(A4)", lambda: call(out=np.zeros(1, np.float32), device=engine))  # noqa: B023
    assert_same(anydml.cast(x, "int32", device=engine), np.array(-3, np.int32))
    refused("(A5)", lambda: anydml.softmax(x, device=engine))


def test_a_number_is_no_model_for_the_result() -> None:
    torch = pytest.importorskip("torch")
    assert isinstance(anydml.add(2, torch.ones(3)), torch.Tensor)
    assert isinstance(anydml.multiply(np.float64(2), torch.ones(3)), torch.Tensor)
    assert anydml.multiply(torch.tensor(2.0, dtype=torch.float64), torch.ones(3)).tolist() == [2, 2, 2]
    assert isinstance(anydml.relu(torch.tensor(-1.0)), torch.Tensor)


# Parameters of one dimension


@engine
def test_a_bias_of_one_dimension(engine: str) -> None:
    for rank in (3, 4, 5):
        x = np.ones((1, 2, *(3,) * (rank - 2)), np.float32)
        filter = np.ones((4, 2, *(2,) * (rank - 2)), np.float32)
        bias = np.float32([1, 2, 3, 4])
        expected = anydml.convolution(x, filter, bias.reshape(1, 4, *(1,) * (rank - 2)), device=engine)
        assert_same(anydml.convolution(x, filter, bias, device=engine), expected)
        assert_same(anydml.convolution(x, filter, [1, 2, 3, 4], device=engine), expected)
    found = "bias.shape: found (1, 3, 1, 1, 1), expected (1, 4, 1, 1, 1)"
    refused("(C7)", lambda: anydml.convolution(x, filter, bias[:3]), found)


@engine
def test_parameters_of_normalisations_of_one_dimension(engine: str) -> None:
    mean, variance, scale, bias = (np.float32([1, 2, 3]) + i for i in range(4))
    columns = [each.reshape(1, 3, 1, 1) for each in (mean, variance, scale, bias)]
    expected = anydml.batch_normalization(IMAGE, *columns, device=engine)
    assert_same(anydml.batch_normalization(IMAGE, mean, variance, scale, bias, device=engine), expected)
    each = [column[0] for column in columns]
    assert_same(anydml.batch_normalization(IMAGE, *each, device=engine), expected)
    instance = anydml.mean_variance_normalization(IMAGE, columns[0], columns[1], axes=(2, 3), device=engine)
    assert_same(anydml.mean_variance_normalization(IMAGE, mean, variance, axes=(2, 3), device=engine), instance)
    rows, weight = IMAGE.reshape(2, 3, 16), np.arange(16, dtype=np.float32)
    layer = anydml.mean_variance_normalization(rows, weight.reshape(1, 1, 16), axes=-1, device=engine)
    assert_same(anydml.mean_variance_normalization(rows, weight, axes=-1, device=engine), layer)
    channels = anydml.mean_variance_normalization(rows, mean.reshape(1, 3, 1), axes=-1, device=engine)
    assert_same(anydml.mean_variance_normalization(rows, mean, axis=-1, device=engine), channels)


def test_a_parameter_that_fits_two_ways_is_refused() -> None:
    x, weight = np.ones((2, 3, 3), np.float32), np.ones(3, np.float32)
    call = lambda weight: anydml.mean_variance_normalization(x, weight, axes=-1)  # noqa: E731
    refused("(A17)", lambda: call(weight), "scale: found shape (3,)", "(1, 3, 1), of channels, or (1, 1, 3)")
    call(weight.reshape(1, 3, 1))
    call(weight.reshape(1, 1, 3))


@engine
def test_operands_of_recurrent_layers_without_leading_dimensions(engine: str) -> None:
    random = np.random.default_rng(0)
    x, w, r, b, h = (
        random.random(shape, np.float32) for shape in ((3, 2, 4), (1, 15, 4), (1, 15, 5), (1, 30), (1, 2, 5))
    )
    expected = anydml.gru(x[None], w[None], r[None], b[None, None], h[None], device=engine)
    for result, right in zip(anydml.gru(x, w, r, b[0], h, device=engine), expected, strict=True):
        assert_same(result, right)


# Names


@engine
def test_names_of_members(engine: str) -> None:
    for name in ("sum", "SUM", "DML_REDUCE_FUNCTION_SUM", "ReduceFunction.SUM"):
        assert_same(anydml.reduce(X, name, device=engine), anydml.reduce(X, ReduceFunction.SUM, device=engine))
    assert anydml.reduce(X, "argmax", device=engine).dtype == np.uint32
    padded = anydml.padding(X, 1, 1, mode=PaddingMode.EDGE, device=engine)
    assert_same(anydml.padding(X, 1, 1, mode="edge", device=engine), padded)
    assert_same(anydml.padding(X, 0, 0, mode="constant", device=engine), X)
    expected = anydml.gemm(X, X, trans_b=MatrixTransform.TRANSPOSE, device=engine)
    for transposed in (True, "transpose", "TRANSPOSE"):
        assert_same(anydml.gemm(X, X, trans_a=False, trans_b=transposed, device=engine), expected)
    enlarged = anydml.upsample_2d(IMAGE, 2, anydml.InterpolationMode.LINEAR, device=engine)
    assert_same(anydml.upsample_2d(IMAGE, 2, "linear", device=engine), enlarged)


@engine
def test_names_of_activations(engine: str) -> None:
    for name in ("relu", "RELU", "ACTIVATION_RELU", "DML_OPERATOR_ACTIVATION_RELU"):
        assert_same(anydml.add(X, X, activation=name, device=engine), np.maximum(X + X, 0))
    assert_same(
        anydml.add(X, 0, activation="leaky_relu", device=engine),
        anydml.leaky_relu(X, device=engine),
    )
    operands = np.ones((1, 2, 1, 1), np.float32), np.ones((1, 1, 1, 1), np.float32), np.ones((1, 1, 1, 1), np.float32)
    for result, expected in zip(
        anydml.rnn(*operands, activations=["tanh"], direction="forward", device=engine),
        anydml.rnn(*operands, device=engine),
        strict=True,
    ):
        assert_same(result, expected)


def test_copies_are_counted_in_the_callers_words() -> None:
    refused("(A15)", lambda: anydml.tile(X, reps=2), "Did you mean repeats?")
    refused("(A10)", lambda: anydml.tile(X, (2,) * (X.ndim + 1)), "TILE.repeats: found list")
    refused("(A10)", lambda: anydml.tile(X, 2.5), "TILE.repeats: found list")
    np.testing.assert_array_equal(anydml.tile(X, 2), np.tile(X, 2))


def test_other_names_come_with_what_is_meant() -> None:
    refused("(F4)", lambda: anydml.reduce(X, "summ"), "function: found str 'summ'", "Did you mean 'sum'?")
    refused("(F4)", lambda: anydml.reduce(X, "mean"), "Did you mean 'average'?")
    refused("(F4)", lambda: anydml.padding(X, 1, 1, mode="replicate"), "Did you mean 'edge'?")
    refused("(F11)", lambda: anydml.add(X, X, activation="rely"), "Did you mean 'relu'?")
    refused("(A16)", lambda: anydml.gemm(X, X.T, activation="clip"), "Min=..., Max=...")
    refused("(F4)", lambda: anydml.gemm(X, X, trans_b=2), "trans_b: found int 2")


@pytest.mark.parametrize("level", ["5.0", "LEVEL_5_0", "DML_FEATURE_LEVEL_5_0", 0x5000, FeatureLevel.LEVEL_5_0])
def test_names_of_levels(level: Any) -> None:
    assert anydml.Device(feature_level=level).feature_level is FeatureLevel.LEVEL_5_0


@pytest.mark.parametrize("name", ["FLOAT32", "float32", "DML_TENSOR_DATA_TYPE_FLOAT32"])
def test_names_of_data_types_in_descs(name: Any) -> None:
    tensor = anydml.DML_BUFFER_TENSOR_DESC(DataType=name, Sizes=(3,))
    assert tensor.DataType is TensorDataType.FLOAT32
    assert tensor.TotalTensorSizeInBytes == 12


def test_zero_points_of_the_types_that_nobody_chose() -> None:
    x = np.full((1, 2, 1, 1), 10, np.uint8)
    for zero_point in (np.int64([3, 3]), np.array([3, 3]), np.int32(3), np.array(3)):
        pooled = anydml.quantized_linear_average_pooling(x, 1, zero_point, output_scale=1, window_size=1)
        assert_same(pooled, x - np.uint8(3))
        pooled = anydml.quantized_linear_average_pooling(
            x, 1, output_scale=1, output_zero_point=zero_point, window_size=1
        )
        assert_same(pooled, x + np.uint8(3))
    wrong = np.array([3, 256])
    refused(
        "(A9)",
        lambda: anydml.quantized_linear_average_pooling(x, 1, wrong, output_scale=1, window_size=1),
        "0 to 255, which uint8 holds",
    )


# Arguments


def test_axis_beside_axes() -> None:
    for call in (
        lambda **axes: anydml.reduce(X, "sum", **axes),
        lambda **axes: anydml.softmax(X, **axes),
        lambda **axes: anydml.log_softmax(X, **axes),
        lambda **axes: anydml.hardmax(X, **axes),
        lambda **axes: anydml.mean_variance_normalization(X, **axes),
    ):
        assert_same(call(axis=0), call(axes=0))
        refused("(A15)", lambda: call(axis=0, axes=0), "axis: found axis beside axes")  # noqa: B023
    refused("(A5)", lambda: anydml.mean_variance_normalization(X), "axes: found nothing")


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: anydml.reduce(X, "sum", keepdims=True), "Dimensions are kept, at a size of 1; np.squeeze"),
        (lambda: anydml.reduce(X, "sum", dim=0), "Did you mean axis?"),
        (lambda: anydml.cumulative_summation(X, dim=0), "Did you mean axis?"),
        (lambda: anydml.join([X], dim=0), "Did you mean axis?"),
        (lambda: anydml.convolution(IMAGE, IMAGE, padding=1), "Did you mean start_padding and end_padding?"),
        (lambda: anydml.convolution(IMAGE, IMAGE, groups=1), "Did you mean group_count?"),
        (lambda: anydml.convolution(IMAGE, IMAGE, stride=1), "Did you mean strides?"),
        (lambda: anydml.max_pooling(IMAGE, kernel_size=2), "Did you mean window_size?"),
        (lambda: anydml.average_pooling(IMAGE, kernel_size=2), "Did you mean window_size?"),
        (lambda: anydml.leaky_relu(X, negative_slope=0.1), "Did you mean alpha?"),
        (lambda: anydml.relu(X, inplace=True), "expected x, out or device"),
        (lambda: anydml.batch_normalization(X, X, X, X, X, eps=0), "Did you mean epsilon?"),
    ],
)
def test_words_of_other_libraries(call: Callable[[], Any], part: str) -> None:
    assert isinstance(refused("(A15)", call, part), TypeError)


# Copies by their bytes


BOOL = np.array([[True, False, True], [False, False, True]])
COMPLEX = (np.arange(6).reshape(2, 3) * (1 + 2j)).astype(np.complex64)
COPIES: dict[str, Callable[..., Any]] = {
    "join": lambda x, **options: anydml.join([x, x], axis=-1, **options),
    "split": lambda x, **options: anydml.split(x, [1, 2], axis=1, **options),
    "slice": lambda x, **options: anydml.slice(x, 0, (2, 2), (1, 2) if x.shape[1] > 3 else 1, **options),
    "backward": lambda x, **options: anydml.slice(x, 0, (2, 3), (-1, -1), **options),
    "gather": lambda x, **options: anydml.gather(x, [[2, 0]], axis=-1, **options),
    "gather_elements": lambda x, **options: anydml.gather_elements(x, [[2, 0]] * 2, 1, **options),
    "gather_nd": lambda x, **options: anydml.gather_nd(x, [[1, 2], [0, -1]], **options),
    "scatter_elements": lambda x, **options: anydml.scatter_elements(x, [[2, 0]] * 2, x[:, :2], 1, **options),
    "scatter_nd": lambda x, **options: anydml.scatter_nd(x, [[1], [0]], x, **options),
    "identity": lambda x, **options: anydml.identity(x, **options),
}
EXPECTED: dict[str, Callable[[np.ndarray], Any]] = {
    "join": lambda x: np.concatenate([x, x], -1),
    "split": lambda x: np.split(x, [1], 1),
    "slice": lambda x: x[:, :2],
    "backward": lambda x: x[::-1, ::-1],
    "gather": lambda x: np.take(x, [[2, 0]], -1),
    "gather_elements": lambda x: x[:, [2, 0]],
    "gather_nd": lambda x: x[[1, 0], [2, -1]],
    "scatter_elements": lambda x: x[:, [1, 1, 0]],
    "scatter_nd": lambda x: x[::-1],
    "identity": lambda x: x,
}
each_copy = pytest.mark.parametrize("copy", COPIES)


def pieces(result: Any) -> list[Any]:
    return result if isinstance(result, list) else [result]


@engine
@each_copy
@pytest.mark.parametrize("x", [BOOL, COMPLEX, COMPLEX.astype(np.complex128), COMPLEX.astype(np.complex128).T.copy().T])
def test_elements_that_are_only_copied(engine: str, copy: str, x: np.ndarray) -> None:
    expected = pieces(EXPECTED[copy](x))
    for _ in range(2):
        results = COPIES[copy](x, device=engine)
        for result, right in zip(pieces(results), expected, strict=True):
            assert_same(result, right)
    outs = [np.zeros_like(each) for each in expected]
    written = COPIES[copy](x, out=outs if copy == "split" else outs[0], device=engine)
    for result, out, right in zip(pieces(written), outs, expected, strict=True):
        assert result is out
        assert_same(out, right)


@each_copy
@pytest.mark.parametrize("dtype", ["bfloat16", "bool", "complex64", "complex128"])
def test_tensors_that_are_only_copied(copy: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    numbers = torch.arange(6).reshape(2, 3)
    x = (numbers * (1 + 2j) if dtype.startswith("complex") else numbers).to(getattr(torch, dtype))
    wide = torch.complex128 if x.is_complex() else torch.float64
    for result, expected in zip(pieces(COPIES[copy](x)), pieces(EXPECTED[copy](x.to(wide).numpy())), strict=True):
        assert (type(result), result.dtype) == (torch.Tensor, x.dtype)
        assert result.to(wide).tolist() == expected.tolist()
        out = torch.zeros_like(result)
        if copy != "split":
            assert COPIES[copy](x, out=out) is out
            assert torch.equal(out, result)


def test_bits_survive_by_bytes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    bits = np.arange(2**16, dtype=np.uint16)
    copied = anydml.identity(bits.view(ml_dtypes.bfloat16))
    assert copied.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(copied.view(np.uint16), bits)
    quarter = bits.view(np.uint8).view(ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal(anydml.join([quarter, quarter])[quarter.size :].view(np.uint8), bits.view(np.uint8))


def test_conjugated_tensors_are_copied_as_they_read() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert anydml.identity(x).tolist() == [1 - 2j, 3 + 1j]


@pytest.mark.parametrize("dtype", ["complex64", "bfloat16"])
def test_gradients_are_not_lost_by_bytes(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(3, dtype=getattr(torch, dtype), requires_grad=True)
    refused("(A1)", lambda: anydml.identity(x), "Use .detach()")
    with torch.no_grad():
        assert torch.equal(anydml.identity(x), x)


def test_lists_of_truth_values_are_copied() -> None:
    assert_same(anydml.join([[True], [False]]), np.array([True, False]))


def test_what_is_only_copied_is_written_to_what_is_like_it() -> None:
    out = np.zeros(3, np.uint8)
    refused("(A18)", lambda: anydml.identity(np.array([True] * 3), out=out), "out: found ndarray of uint8")
    refused("(S3)", lambda: anydml.identity(BOOL, scale_bias=anydml.DML_SCALE_BIAS(Scale=1, Bias=0)), "bool")
    refused("(A8)", lambda: anydml.join([np.array([True]), np.array([1], np.uint8)]))
    for call in (anydml.relu, anydml.cumulative_summation, anydml.negate):
        refused("(S3)", lambda: call(BOOL), "bool")  # noqa: B023
        refused("(S3)", lambda: call(COMPLEX), "complex64")  # noqa: B023


# Indices


@engine
@pytest.mark.parametrize("shape", [(), (2,), (2, 2), (1, 2, 3), (2, 1, 1, 3)])
def test_indices_of_any_rank(engine: str, shape: tuple[int, ...]) -> None:
    for sizes in ((3,), (3, 4), (1, 3, 2), (2, 3, 4, 1)):
        x = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
        for axis in range(-len(sizes), len(sizes)):
            indices = np.arange(np.prod(shape, dtype=int)).reshape(shape) % sizes[axis]
            expected = np.take(x, indices, axis)
            for _ in range(2):
                assert_same(anydml.gather(x, indices, axis, device=engine), expected)
            out = np.empty_like(expected)
            assert anydml.gather(x, indices, axis, out=out, device=engine) is out
            assert_same(out, expected)


def test_an_index_may_be_a_number() -> None:
    assert_same(anydml.gather(X, 1), X[1])
    assert_same(anydml.gather(X, -1, axis=1), X[:, -1])
    refused(
        "(V1)",
        lambda: anydml.gather(X, [[0, 5]]),
        "indices: found 5 at (0, 1), expected from -2 to 1, the indices of axis 0 of x",
    )
    refused("(V1)", lambda: anydml.gather(X, [9]), "indices: found 9 at (0,), expected")
    refused("(V1)", lambda: anydml.gather(X, [[1, 9]], 1), "indices: found 9 at (0, 1), expected")
    refused("(V1)", lambda: anydml.gather(X, 9), "indices: found 9, expected")
    refused("(A1)", lambda: anydml.gather(X, 1.5), "indices: found float 1.5")


@engine
def test_tuples_of_any_rank(engine: str) -> None:
    x = np.arange(24).reshape(2, 3, 4)
    for tuples, batch, expected in (
        ([1, 2, 3], 0, x[1, 2, 3]),
        ([1], 0, x[1]),
        ([[[[1, 0]], [[0, 2]]]], 0, x[[1, 0], [0, 2]][None, :, None]),
        ([[[1], [2]], [[0], [0]]], 1, np.stack([x[0, [1, 2]], x[1, [0, 0]]])),
        ([[[1, 2]], [[0, -1]]], 1, x[[0, 1], [1, 0], [2, -1]][:, None]),
    ):
        assert_same(anydml.gather_nd(x, tuples, batch_dimension_count=batch, device=engine), np.array(expected))
    for tuples, updates, place in (([1, 2, 3], 7, (1, 2, 3)), ([[[1], [0]]], x[None], (slice(None, None, -1),))):
        changed = x.copy()
        changed[place] = updates
        assert_same(anydml.scatter_nd(x, tuples, np.array(updates), device=engine), changed)
    refused("(V1)", lambda: anydml.gather_nd(x, [[0, 3]]), "indices: found 3 at (0, 0, 1), expected from -3 to 2")
    refused("(C6)", lambda: anydml.gather_nd(x, [[0, 0, 0, 0]]), "at most 3 coordinates")
    refused("(C8)", lambda: anydml.scatter_nd(x, [[0]], x), "updates")


def test_indices_of_any_rank_in_graphs() -> None:
    graph = anydml.Graph(anydml.Device())
    x = graph.input(anydml.DML_BUFFER_TENSOR_DESC(DataType="float32", Sizes=X.shape))
    gathered = anydml.gather(x, np.array([[0, 1], [1, 0]]))
    assert tuple(gathered.tensor.Sizes) == (2, 2, 3)
    out = np.empty((2, 2, 3), np.float32)
    graph.compile([gathered]).dispatch([X], [out])
    assert_same(out, np.take(X, [[0, 1], [1, 0]], 0))


# Remedies


def test_remedies_in_the_words_of_the_tensors_library() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(2, 3)
    for call, part in (
        (lambda: anydml.cumulative_summation(x.double()), "Convert it with .float()"),
        (lambda: anydml.relu(x.double()), "Convert it with .float()"),
        (lambda: anydml.cumulative_summation(x.to(torch.uint8)), "Convert it with .int()"),
        (lambda: anydml.join([x, x.half()]), "Convert it with .float()"),
        (lambda: anydml.average_pooling(x, 2), "x[None, None] adds them"),
    ):
        with pytest.raises(DMLError) as raised:
            call()
        assert part in str(raised.value)
    with pytest.raises(DMLError, match=r"as \.astype\(np\.float32\) does"):
        anydml.relu(np.ones(3))


def test_a_remedy_leads_to_a_result() -> None:
    with pytest.raises(DMLError, match=r"x\[np\.newaxis, np\.newaxis\] adds them"):
        anydml.average_pooling(X, 2)
    assert anydml.average_pooling(X[np.newaxis, np.newaxis], 2).shape == (1, 1, 1, 2)
