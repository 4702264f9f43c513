"""Functions: their signatures, and what they take as an array."""

from __future__ import annotations

import array
import inspect
import mmap
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import anydml
from anydml import Device, DMLError, FeatureLevel, cumulative_summation, join, quantized_linear_average_pooling
from function_calls import Capsule, Interface, engine, image, pool, refused, scan, spying

# Signatures


@scan
def test_signature_of_scans(scan: Any) -> None:
    assert str(inspect.signature(scan, eval_str=False)).replace("'", "") == (
        "(x: Operand, axis: int = -1, *, exclusive: bool = False, reverse: bool = False, out: Output | None = None, "
        "device: Device | str | None = None) -> Result"
    )


@pytest.mark.parametrize(
    ("function", "positional", "keywords"),
    [
        (join, {"arrays": None, "axis": 0}, {"out": None, "device": None}),
        (
            quantized_linear_average_pooling,
            {"x": None, "input_scale": None, "input_zero_point": None},
            {
                "output_scale": inspect.Parameter.empty,
                "output_zero_point": None,
                "window_size": inspect.Parameter.empty,
                "strides": None,
                "start_padding": None,
                "end_padding": None,
                "dilations": None,
                "include_padding": False,
                "output_sizes": None,
                "output_dtype": None,
                "out": None,
                "device": None,
            },
        ),
    ],
)
def test_signature(function: Any, positional: dict[str, Any], keywords: dict[str, Any]) -> None:
    parameters = inspect.signature(function).parameters.values()
    by_kind = {
        kind: {p.name: p.default for p in parameters if p.kind is kind}
        for kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    }
    assert list(by_kind[inspect.Parameter.POSITIONAL_OR_KEYWORD]) == list(positional)
    assert by_kind[inspect.Parameter.KEYWORD_ONLY] == keywords


class OnGpu(Capsule):
    """One whose memory is a device's."""

    def __dlpack_device__(self) -> Any:
        return 2, 1


def test_memory_of_a_gpu_is_refused_with_its_device() -> None:
    x = np.ones(3, np.float32)
    parts = "OnGpu on cuda:1", "pass device='cuda:1'"
    refused("(A12)", lambda: anydml.cumulative_summation(OnGpu(x), device="cpu"), *parts)


KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "NumPy": lambda x: x,
    "view": lambda x: x[:],
    "interface": Interface,
    "DLPack": Capsule,
    "memoryview": memoryview,
    "array.array": lambda x: array.array("i", x.tolist()),
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype),
    "list": lambda x: x.tolist(),
    "tuple": lambda x: tuple(x.tolist()),
}


@engine
@pytest.mark.parametrize("kind", KINDS)
def test_any_array_is_taken(engine: str, kind: str) -> None:
    x = np.array([1, 2, 3, 4], np.int32)
    result = cumulative_summation(KINDS[kind](x), device=engine)
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, [1, 3, 6, 10])
    np.testing.assert_array_equal(join([KINDS[kind](x), KINDS[kind](x)], device=engine), [1, 2, 3, 4] * 2)
    np.testing.assert_array_equal(x, [1, 2, 3, 4])


@engine
@pytest.mark.parametrize("kind", ["NumPy", "view", "interface", "DLPack", "memoryview"])
def test_any_memory_is_written_to(engine: str, kind: str) -> None:
    memory = np.zeros(4, np.int32)
    out = KINDS[kind](memory)
    assert cumulative_summation(np.array([1, 2, 3, 4], np.int32), out=out, device=engine) is out
    np.testing.assert_array_equal(memory, [1, 3, 6, 10])


@pytest.mark.parametrize("kind", ["NumPy", "view", "interface", "DLPack", "memoryview"])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_nothing_is_copied(kind: str, step: int) -> None:
    device, spy = spying()
    x, memory = np.zeros((4, 6), np.int32)[::step, ::step], np.zeros((4, 6), np.int32)[::step, ::step]
    cumulative_summation(KINDS[kind](x), out=KINDS[kind](memory), device=device)
    for seen, given in ((spy.inputs[0], x), (spy.outputs[0], memory)):
        assert seen.ctypes.data == given.ctypes.data
        assert seen.strides == given.strides
    pieces = [x, memory]
    join([KINDS[kind](piece) for piece in pieces], device=device)
    for seen, given in zip(spy.inputs, pieces, strict=True):
        assert np.shares_memory(seen, given)


def test_pooling_copies_nothing_either() -> None:
    device, spy = spying()
    x, memory = image(2, 3, 4, 4)[:, ::-1], np.zeros((2, 3, 4, 4), np.uint8)[..., ::-1]
    pool(Capsule(x), out=memory, device=device)
    assert np.shares_memory(spy.inputs[0], x)
    assert np.shares_memory(spy.outputs[0], memory)


@scan
def test_float_lists_become_float32(scan: Any) -> None:
    result = scan([[1.0, 2], [3, 4]])
    assert result.dtype == np.float32
    assert scan([1, 2]).dtype == np.int64
    assert scan(np.float32([1])).dtype == np.float32
    assert scan([np.float32(1), np.float32(2)]).dtype == np.float32
    assert join([[1.0], [2.0]]).dtype == np.float32


@pytest.mark.parametrize("value", [1e39, -1e39, 2e308])
def test_a_number_too_large_for_float32_is_refused_but_infinity_is_not(value: float) -> None:
    if np.isinf(value):
        assert np.isinf(cumulative_summation([1.0, value])).tolist() == [False, True]
    else:
        refused("(A1)", lambda: cumulative_summation([1.0, value]), "too large for float32")


def test_an_empty_list_is_an_empty_array() -> None:
    result = cumulative_summation([], device="reference")
    assert (result.dtype, result.shape) == (np.float32, (0,))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_matrix_is_an_array_of_two_dimensions() -> None:
    result = cumulative_summation(np.asmatrix([[1, 2], [3, 4]]), axis=0)
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, [[1, 2], [4, 6]])


def test_a_mapped_file_is_read_and_written(tmp_path: Any) -> None:
    path = tmp_path / "data"
    path.write_bytes(np.float32([1, 2, 3, 4]).tobytes())
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        view = memoryview(mapped).cast("f")
        assert cumulative_summation(view, out=view) is view
        view.release()
    np.testing.assert_array_equal(np.frombuffer(path.read_bytes(), np.float32), [1, 3, 6, 10])


@pytest.mark.parametrize(
    ("operand", "found"),
    [
        (None, "found None"),
        (3, "int"),
        ("123", "str"),
        (object(), "object"),
        ({1, 2}, "set"),
        ((i for i in range(3)), "generator"),
        ([[1], [2, 3]], "inhomogeneous"),
        (np.ma.array([1, 2], mask=[False, True]), "use .filled()"),
    ],
)
def test_no_array(operand: Any, found: str) -> None:
    for call in (
        lambda: cumulative_summation(operand),
        lambda: join([operand, [1]]),
        lambda: pool(operand),
    ):
        error = refused("(A1)", call, found, "an array of numbers in the CPU's memory, or lists of numbers")
        assert isinstance(error, TypeError)


class Hostile:
    """Raises whatever an attribute's getter may raise."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__array") or name.startswith("__dlpack"):
            raise RuntimeError("no")
        raise AttributeError(name)


def test_what_a_foreign_array_raises_is_a_wrong_operand() -> None:
    refused("(A1)", lambda: cumulative_summation(Hostile()), "Hostile (no)")


@pytest.mark.parametrize(
    ("x", "name"),
    [
        (np.array([None]), "object"),
        (np.array([2**70]), "object"),
        (np.array(["a"]), "<U1"),
        (np.array([b"a"]), "|S1"),
        (np.array(["2026-01-01"], "M8[D]"), "datetime64[D]"),
        (np.array([1], "m8[s]"), "timedelta64[s]"),
        (np.zeros(1, [("a", "i4")]), "[('a', '<i4')]"),
        (np.zeros(1, np.longdouble), np.dtype(np.longdouble).name),
        (np.zeros(1, np.void(4).dtype), "|V4"),
    ],
)
def test_types_that_no_tensor_has(x: np.ndarray, name: str) -> None:
    for call in (lambda: cumulative_summation(x), lambda: join([x]), lambda: pool(x.reshape(1, 1, 1, 1))):
        error = refused("(S3)", call, name)
        assert isinstance(error, TypeError)


def test_a_wrong_type_is_named_as_the_function_has_it() -> None:
    x = np.array(["a"])
    assert refused("(S3)", lambda: cumulative_summation(x)).violations[0].where == "x"
    assert refused("(S3)", lambda: join([x])).violations[0].where == "arrays[0]"


@pytest.mark.parametrize(
    ("dtype", "remedy"),
    [
        (np.float64, ".astype(np.float32)"),
        (np.int16, ".astype(np.int32)"),
        (np.uint8, ".astype(np.int32)"),
        (np.int8, ".astype(np.int32)"),
    ],
)
@scan
def test_types_of_other_operators_come_with_a_remedy(scan: Any, dtype: Any, remedy: str) -> None:
    refused("(S3)", lambda: scan(np.ones(3, dtype)), remedy)


def test_a_type_is_there_from_a_level_on() -> None:
    device = Device("reference", FeatureLevel.LEVEL_4_0)
    refused("(S3)", lambda: cumulative_summation([1, 2], device=device), "int64 needs feature level 5.0")


def test_errors_name_what_was_written() -> None:
    """And not what the header calls it, which is for descs."""
    image, bytes_ = np.zeros((1, 1, 4, 4), np.int32), np.zeros((1, 1, 4, 4), np.int8)
    texts = {
        "CUMULATIVE_SUMMATION.x.dtype: found uint8, expected float32, float16, int64": (
            lambda: cumulative_summation(np.zeros((1, 1, 1, 3), np.uint8))
        ),
        "x.ndim: found 3, expected 4 or 5 (S2)": (
            lambda: quantized_linear_average_pooling(image[0], 1, output_scale=1, window_size=2)
        ),
        "x.dtype: found int32, expected int8 or uint8 (S3)": (
            lambda: quantized_linear_average_pooling(image, 1, output_scale=1, window_size=2)
        ),
        "window_size[0]: found 7, expected an extent of at most 4, the padded size (C7)": (
            lambda: quantized_linear_average_pooling(bytes_, 1, output_scale=1, window_size=7)
        ),
        "out.shape[2]: found 7, expected 3 (C8)": (
            lambda: quantized_linear_average_pooling(bytes_, 1, output_scale=1, window_size=2, output_sizes=(7, 7))
        ),
    }
    for text, call in texts.items():
        with pytest.raises(DMLError, match=re.escape(text)):
            call()


@pytest.mark.parametrize("dtype", [">f4", ">i4", ">i8", ">f2"])
def test_byte_swapped_input_is_named(dtype: str) -> None:
    x = np.ones(3, dtype)
    remedy = ".astype(x.dtype.newbyteorder('='))"
    refused("(A2)", lambda: cumulative_summation(x), "x: ", dtype, remedy)
    refused("(A2)", lambda: join([[1], x]), "arrays[1]", dtype, remedy)
    refused("(A2)", lambda: cumulative_summation([1, 1, 1], out=x), "out: ", dtype)
    assert (x == 1).all()
    assert x.astype(x.dtype.newbyteorder("=")).dtype.isnative
