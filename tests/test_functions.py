"""The functions: what they take, what they refuse, and what they leave untouched."""

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
from anydml import (
    Device,
    DMLError,
    FeatureLevel,
    cumulative_product,
    cumulative_summation,
    join,
    quantized_linear_average_pooling,
)
from anydml.backends.base import Kernel
from harness import ENGINES, assert_same

engine = pytest.mark.parametrize("engine", ENGINES)
tally = pytest.mark.parametrize("tally", [cumulative_summation, cumulative_product], ids=["sum", "product"])


def refused(rule: str, call: Callable[[], Any], *parts: str) -> DMLError:
    """The error of a call that breaks one rule; `parts` are in its text."""
    with pytest.raises(DMLError) as raised:
        call()
    assert {violation.rule for violation in raised.value.violations} == {rule}, raised.value
    for part in parts:
        assert part in str(raised.value)
    return raised.value


def image(*shape: int, dtype: Any = np.uint8) -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def pool(x: Any, input_scale: Any = 1.0, input_zero_point: Any = None, **options: Any) -> Any:
    """A window of one element, unless told otherwise."""
    return quantized_linear_average_pooling(
        x, input_scale, input_zero_point, **{"output_scale": 1.0, "window_size": 1, **options}
    )


# Signatures


@tally
def test_signature_of_tallies(tally: Any) -> None:
    assert str(inspect.signature(tally, eval_str=False)).replace("'", "") == (
        "(x: Any, axis: int = -1, *, exclusive: bool = False, reverse: bool = False, out: Any = None, "
        "device: Device | str | None = None) -> Any"
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


# Kinds of arrays


class Interface:
    """An object with ``__array_interface__`` and nothing else."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.memory.__array_interface__


class Capsule:
    """An object with DLPack and nothing else."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory

    def __dlpack__(self, **options: Any) -> Any:
        return self.memory.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.memory.__dlpack_device__()


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


class Spy:
    """An engine that keeps what it is given."""

    name = "spy"
    inputs: tuple[Any, ...] = ()
    outputs: tuple[Any, ...] = ()

    def compile(self, *operator: Any) -> Kernel:
        return Kernel("keeps what it is given", self.run)

    def run(self, inputs: Any, outputs: Any) -> None:
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)


def spying() -> tuple[Device, Spy]:
    device, spy = Device("reference"), Spy()
    device._engines = (spy,)
    return device, spy


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


@tally
def test_float_lists_become_float32(tally: Any) -> None:
    result = tally([[1.0, 2], [3, 4]])
    assert result.dtype == np.float32
    assert tally([1, 2]).dtype == np.int64
    assert tally(np.float32([1])).dtype == np.float32
    assert tally([np.float32(1), np.float32(2)]).dtype == np.float32
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
        (np.array([True]), "bool"),
        (np.array([1j]), "complex128"),
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
    x = np.array([1j])
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
@tally
def test_types_of_other_operators_come_with_a_remedy(tally: Any, dtype: Any, remedy: str) -> None:
    refused("(S3)", lambda: tally(np.ones(3, dtype)), remedy)


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


# Axes

TRUTHS = (True, np.True_, np.array(True))


@engine
@tally
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3, np.int64(1), np.uint8(2), np.array(1)])
def test_axes(engine: str, tally: Any, axis: Any) -> None:
    x = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
    numpy = np.cumsum if tally is cumulative_summation else np.cumprod
    assert_same(tally(x, axis, device=engine), numpy(x, int(axis), dtype=np.int32))


@pytest.mark.parametrize("axis", [3, -4, 2**70, -(2**70)])
def test_axes_outside(axis: int) -> None:
    x = np.ones((2, 3, 4), np.float32)
    refused("(A5)", lambda: cumulative_summation(x, axis), "-3 to 2, for an array of 3 dimensions")
    refused("(A5)", lambda: join([x], axis), "-3 to 2")


@pytest.mark.parametrize("axis", [1.0, "0", None, (0,), [0], np.array([0, 1]), np.float32(1), *TRUTHS])
def test_axes_that_are_no_integers(axis: Any) -> None:
    for call in (lambda: cumulative_summation([[1]], axis), lambda: join([[[1]]], axis)):
        error = refused("(A5)", call, "an integer")
        assert isinstance(error, TypeError)


def test_scalars_have_no_axis() -> None:
    found = "found an array of 0 dimensions, expected 1 or more"
    refused("(A5)", lambda: cumulative_summation(np.float32(3)), found, "x.reshape(1)")
    refused("(A5)", lambda: join([np.array(3)]), found)


# Flags


@tally
@pytest.mark.parametrize("flag", [True, 1, np.True_])
def test_flags(tally: Any, flag: Any) -> None:
    expected = tally([2, 3, 4], exclusive=True, reverse=True)
    np.testing.assert_array_equal(tally([2, 3, 4], exclusive=flag, reverse=flag), expected)


@pytest.mark.parametrize("flag", [2, -1, None, 1.0, "no", [], np.array([True, False]), np.zeros(0, bool)])
def test_other_flags_are_refused(flag: Any) -> None:
    for call, name in (
        (lambda: cumulative_summation([1], exclusive=flag), "exclusive"),
        (lambda: cumulative_product([1], reverse=flag), "reverse"),
        (lambda: pool(image(1, 1, 2, 2), include_padding=flag), "include_padding"),
    ):
        error = refused("(A11)", call, f"{name}: found ", "True or False")
        assert isinstance(error, TypeError)


# Layouts


@engine
@tally
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::-1],
        lambda x: x[:, ::-1, ::2],
        lambda x: x[..., ::-1],
        lambda x: x.T,
        lambda x: x[1:, 1:, 1:],
        lambda x: x[::-2, ::-1, ::-3],
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: np.broadcast_to(x[:, :1, :1], x.shape),
        lambda x: np.asfortranarray(x),
    ],
)
def test_strides_of_all_sorts(engine: str, tally: Any, axis: int, view: Any) -> None:
    x = view(np.arange(1, 61, dtype=np.int64).reshape(3, 4, 5))
    numpy = np.cumsum if tally is cumulative_summation else np.cumprod
    assert_same(tally(x, axis, device=engine), numpy(x, axis))
    assert_same(join([x, x[:1]], 0, device=engine), np.concatenate([x, x[:1]]))


@engine
@pytest.mark.parametrize(
    "view",
    [
        lambda m: m[::2, ::2],
        lambda m: m[::-2, ::-2],
        lambda m: m[:3, 1:5].T[:3, :3],
        lambda m: m[1:4, 2:5][::-1],
        lambda m: m.T[2:5, 1:4],
    ],
)
def test_out_of_any_strides_and_gaps_keep_their_bytes(engine: str, view: Any) -> None:
    x = np.arange(9, dtype=np.int32).reshape(3, 3)
    memory = np.full((6, 6), 0x5A5A5A5A, np.int32)
    out = view(memory)
    out_before = memory.copy()
    assert cumulative_summation(x, 0, out=out, device=engine) is out
    np.testing.assert_array_equal(out, x.cumsum(0))
    view(out_before)[...] = out
    np.testing.assert_array_equal(memory, out_before)


@engine
def test_unaligned_memory(engine: str) -> None:
    x = np.array([1.5, 2, 3, 4], np.float32)
    for offset in (1, 2, 3):
        given = np.frombuffer(bytes(offset) + x.tobytes(), np.float32, offset=offset)
        target = bytearray(b"\xa5" * (16 + offset + 3))
        out = np.frombuffer(target, np.float32, 4, offset)
        assert cumulative_summation(given, out=out, device=engine) is out
        np.testing.assert_array_equal(out, [1.5, 3.5, 6.5, 10.5])
        assert target[:offset] == b"\xa5" * offset
        assert target[offset + 16 :] == b"\xa5" * 3
        np.testing.assert_array_equal(join([given, given], device=engine), [*x, *x])


@engine
def test_unaligned_fields_of_records(engine: str) -> None:
    records = np.zeros(5, [("flag", "u1"), ("value", "<i4")])
    records["value"] = [1, 2, 3, 4, 5]
    records["flag"] = 0xA5
    assert_same(cumulative_summation(records["value"], device=engine), np.array([1, 3, 6, 10, 15], np.int32))
    cumulative_summation(records["value"], out=records["value"], device=engine)
    np.testing.assert_array_equal(records["value"], [1, 3, 6, 10, 15])
    assert (records["flag"] == 0xA5).all()


# Empty arrays


@engine
@tally
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
@pytest.mark.parametrize("exclusive", [False, True])
def test_tallies_of_empty_arrays(engine: str, tally: Any, shape: tuple[int, ...], exclusive: bool) -> None:
    x = np.ones(shape, np.float32)
    for axis in range(len(shape)):
        result = tally(x, axis, exclusive=exclusive, device=engine)
        assert (result.shape, result.dtype) == (shape, np.float32)
        assert tally(x, axis, out=x, device=engine) is x


@pytest.mark.parametrize("x", [np.ones((0, 3)), np.ones((0,), np.int8)])
def test_empty_arrays_have_right_types_too(x: np.ndarray) -> None:
    refused("(S3)", lambda: cumulative_summation(x, device="reference"))


@engine
def test_join_skips_empty_pieces(engine: str) -> None:
    x = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert_same(join([x[:0], x, x[:0], x[:1]], device=engine), np.concatenate([x, x[:1]]))
    assert_same(join([x[:, :0], x], axis=1, device=engine), x)
    result = join([x, x[:0]], device=engine)
    assert not np.shares_memory(result, x)


@engine
def test_join_of_empty_pieces_only(engine: str) -> None:
    x = np.ones((0, 3), np.uint8)
    assert join([x, x], device=engine).shape == (0, 3)
    assert join([x, x], axis=1, device=engine).shape == (0, 6)
    assert join([np.ones((2, 0), np.float64)] * 3, axis=0, device=engine).shape == (6, 0)


@engine
@pytest.mark.parametrize("shape", [(0, 3, 4, 4), (2, 0, 4, 4), (0, 0, 4, 4), (0, 1, 2, 3, 4)])
def test_pooling_of_no_images(engine: str, shape: tuple[int, ...]) -> None:
    spatial = tuple(size - 1 for size in shape[2:])
    result = pool(np.ones(shape, np.uint8), window_size=2, output_dtype=np.int8, device=engine)
    assert (result.shape, result.dtype) == ((*shape[:2], *spatial), np.int8)


def test_an_image_of_no_pixels_is_refused() -> None:
    with pytest.raises(DMLError, match=r"x\.shape\[2\]: found 0"):
        pool(np.ones((1, 1, 0, 4), np.uint8))


# Many dimensions


@engine
@pytest.mark.parametrize("axis", [0, 4, 9, 31])
def test_more_than_8_dimensions_that_fold(engine: str, axis: int) -> None:
    x = np.arange(24, dtype=np.int32).reshape(2, 1, 1, 1, 3, 1, 1, 1, 1, 4, *(1,) * 22)
    assert_same(cumulative_summation(x, axis, device=engine), x.cumsum(axis, dtype=np.int32))
    assert_same(join([x, x, x], axis, device=engine), np.concatenate([x, x, x], axis))


@engine
def test_ten_dimensions_of_two_fold(engine: str) -> None:
    x = np.arange(1024, dtype=np.int64).reshape((2,) * 10)
    for axis in range(10):
        assert_same(
            cumulative_summation(x, axis, reverse=True, device=engine), np.flip(np.flip(x, axis).cumsum(axis), axis)
        )
        assert_same(join([x, x[::-1]], axis, device=engine), np.concatenate([x, x[::-1]], axis))


def test_dimensions_that_do_not_fold_are_refused() -> None:
    x = np.arange(4**9, dtype=np.int32).reshape((4,) * 9)[(slice(None, None, 2),) * 9]
    refused("(A6)", lambda: cumulative_summation(x), "9 dimensions that fold into 9", "np.ascontiguousarray")
    assert_same(cumulative_summation(np.ascontiguousarray(x)), x.cumsum(-1, dtype=np.int32))
    out = np.zeros((4,) * 9, np.int32)[(slice(None, None, 2),) * 9]
    refused("(A6)", lambda: cumulative_summation(np.ascontiguousarray(x), out=out))
    assert not out.any()


def test_sizes_are_checked_before_dimensions_are_folded() -> None:
    pieces = [np.ones((2,) * 9, np.float32), np.ones((*(2,) * 8, 1), np.float32)]
    with pytest.raises(DMLError, match=r"\(A8\)"):
        join(pieces, device="reference")


def test_empty_arrays_of_many_dimensions() -> None:
    x = np.ones((2, 0, *(2,) * 8), np.float32)
    assert cumulative_summation(x, device="reference").shape == x.shape


# Where to write


@engine
@tally
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[::-1], lambda x: x.T, lambda x: x[::2, 1:]])
def test_in_place(engine: str, tally: Any, view: Any) -> None:
    numpy = np.cumsum if tally is cumulative_summation else np.cumprod
    for axis in (0, 1):
        memory = np.arange(1, 17, dtype=np.int32).reshape(4, 4)
        x = view(memory)
        expected = memory.copy()
        view(expected)[...] = numpy(x, axis)
        assert tally(x, axis, out=x, device=engine) is x
        np.testing.assert_array_equal(memory, expected)


@engine
@pytest.mark.parametrize(
    "other",
    [
        lambda m: m[1:5],
        lambda m: m[:4][::-1],
        lambda m: m[3:7],
        lambda m: m[0:8:2],
        lambda m: m[1:8:2],
    ],
)
def test_overlapping_is_refused_and_untouched(engine: str, other: Any) -> None:
    memory = np.arange(8, dtype=np.int32)
    refused("(B7)", lambda: cumulative_summation(memory[:4], out=other(memory), device=engine), "memory shared")
    np.testing.assert_array_equal(memory, np.arange(8))


@engine
def test_transposed_in_place_is_refused(engine: str) -> None:
    x = np.arange(9, dtype=np.int32).reshape(3, 3)
    refused("(B7)", lambda: cumulative_summation(x, out=x.T, device=engine))
    np.testing.assert_array_equal(x, np.arange(9).reshape(3, 3))


@engine
def test_join_and_pooling_want_memory_of_their_own(engine: str) -> None:
    x = np.arange(4, dtype=np.int32)
    refused("(B7)", lambda: join([x], out=x, device=engine), "does not run in-place")
    memory = np.arange(12, dtype=np.int32)
    refused("(B7)", lambda: join([memory[:4], memory[6:8]], out=memory[6:12], device=engine), "arrays[1]")
    np.testing.assert_array_equal(memory, np.arange(12))
    join([memory[:3], memory[1:4]], out=memory[6:12], device=engine)
    np.testing.assert_array_equal(memory[6:], [0, 1, 2, 1, 2, 3])
    y = image(1, 1, 2, 2)
    refused("(B7)", lambda: pool(y, out=y, device=engine))
    np.testing.assert_array_equal(y, image(1, 1, 2, 2))


def test_an_out_that_overlaps_itself_is_refused() -> None:
    memory = np.arange(6, dtype=np.int32)
    for strides in ((4, 4), (8, 4), (-4, 4), (12, 8)):
        out = np.lib.stride_tricks.as_strided(memory[2:] if strides[0] < 0 else memory, (2, 3), strides)
        refused("(A7)", lambda: cumulative_summation(np.ones((2, 3), np.int32), out=out), "overlap")  # noqa: B023
    refused("(A3)", lambda: cumulative_summation([[1, 2]] * 2, out=np.broadcast_to(np.int64(0), (2, 2))))
    np.testing.assert_array_equal(memory, np.arange(6))


@pytest.mark.parametrize(
    ("out", "found"),
    [
        (np.zeros(4, np.float32), "float32 of shape (4,)"),
        (np.zeros(3, np.float64), "float64 of shape (3,)"),
        (np.zeros((1, 3), np.float32), "float32 of shape (1, 3)"),
        (np.zeros(12, np.uint8), "uint8 of shape (12,)"),
        (np.zeros((), np.float32), "float32 of shape ()"),
        (bytearray(12), "uint8 of shape (12,)"),
    ],
)
def test_an_out_of_another_type_or_shape(out: Any, found: str) -> None:
    refused("(A4)", lambda: cumulative_summation(np.ones(3, np.float32), out=out), found, "float32 of shape (3,)")
    assert not np.any(out)


@pytest.mark.parametrize("out", [[0.0] * 3, (0.0,) * 3, "out", 7])
def test_an_out_that_is_no_array(out: Any) -> None:
    expected = "that can be written to, or None for a new one"
    for call in (cumulative_summation, anydml.relu, lambda x, out: join([x], out=out)):
        error = refused("(A1)", lambda: call(np.ones(3, np.float32), out=out), "out: ", expected)  # noqa: B023
        assert isinstance(error, TypeError)


def test_a_read_only_out_is_named() -> None:
    out = np.zeros(3, np.float32)
    out.flags.writeable = False
    for given in (out, bytes(12), memoryview(bytes(12)), Interface(out)):
        refused("(A3)", lambda: cumulative_summation(np.ones(3, np.float32), out=given), "out: ", "read-only")  # noqa: B023


# Join


@pytest.mark.parametrize("arrays", [[], (), None, 3, "ab", np.ones((2, 2)), {1: 2}, (x for x in [[1]])])
def test_join_takes_a_list_of_arrays(arrays: Any) -> None:
    refused("(A8)", lambda: join(arrays), "arrays: ")


def test_join_wants_one_number_of_dimensions() -> None:
    refused("(A8)", lambda: join([[1], [[1]]]), "found ndim 2, shape (1, 1), expected ndim 1, that of arrays[0]")


def test_a_join_like_one_before_is_judged_anew() -> None:
    """What was right once is run with few checks; these must see every difference."""
    pieces = [np.arange(6, dtype=np.int32).reshape(2, 3) + 10 * i for i in range(3)]
    expected = np.concatenate(pieces, 1)
    out = np.empty((2, 9), np.int32)
    for _ in range(3):
        assert_same(join(pieces, 1), expected)
        assert_same(join(tuple(pieces), -1), expected)
        assert join(pieces, 1, out=out) is out
        assert_same(out, expected)
    first, second, third = pieces
    assert_same(join([first, np.asfortranarray(second), third], 1), expected)
    assert_same(join([second, first, third[:, ::-1]], 1), np.concatenate([second, first, third[:, ::-1]], 1))
    refused("(A8)", lambda: join([first, second.astype(np.uint32), third], 1), "arrays[1]: found uint32")
    refused("(A8)", lambda: join([first, second, third.view(np.float32)], 1), "arrays[2]: found float32")
    refused("(A2)", lambda: join([first, second.astype(">i4"), third], 1), "arrays[1]")
    refused("(A1)", lambda: join([first, np.ma.MaskedArray(second), third], 1), "arrays[1]")
    refused("(B7)", lambda: join([first, out[:, 2:5], third], 1, out=out), "arrays[1]")
    out.flags.writeable = False
    refused("(A3)", lambda: join(pieces, 1, out=out))
    refused("(A5)", lambda: join(pieces, 2))
    assert_same(out, expected)


@pytest.mark.parametrize("second", [np.float16([1]), np.int32([1]), np.float64([1])])
def test_join_wants_one_type(second: np.ndarray) -> None:
    found = f"arrays[1]: found {second.dtype}, expected float32, the type of arrays[0]"
    refused("(A8)", lambda: join([np.float32([1]), second]), found)
    refused("(A8)", lambda: join([[1], [1.5]]), "arrays[1]: found float32, expected int64")


def test_join_wants_one_size_but_along_the_axis() -> None:
    x, y = np.ones((2, 3), np.int8), np.ones((2, 4), np.int8)
    refused("(A8)", lambda: join([x, y]), "arrays[1]: found shape (2, 4)", "(2, 3), the shape of arrays[0], but along")
    assert join([x, y], 1).shape == (2, 7)
    refused("(A4)", lambda: join([x, y], 1, out=np.zeros((2, 6), np.int8)), "shape (2, 7)")


@pytest.mark.parametrize("piece", [np.ones((0, 7), np.int8), np.ones((0, 3), np.float32)])
def test_an_empty_piece_has_the_others_type_and_sizes(piece: np.ndarray) -> None:
    refused("(A8)", lambda: join([np.ones((2, 3), np.int8), piece]), "arrays[1]")
    refused("(A8)", lambda: join([piece, np.ones((2, 3), np.int8)]), "arrays[1]")


def test_a_wrong_piece_is_named_by_its_own_index() -> None:
    x = np.ones((2, 3), np.int8)
    with pytest.raises(DMLError, match=r"\[2\]"):
        join([x[:0], x, np.ones((2, 4), np.int8)])


@engine
def test_join_copies_bits(engine: str) -> None:
    nans = np.array([0x7FA00001, 0xFFC12345, 0x80000000], np.uint32)
    result = join([nans.view(np.float32), nans.view(np.float32)], device=engine)
    np.testing.assert_array_equal(result.view(np.uint32), [*nans, *nans])


# Pooling


@engine
def test_scalars_and_vectors_for_channels(engine: str) -> None:
    x = np.full((2, 3, 2, 2), 20, np.uint8)
    column = (1, 3, 1, 1)
    expected = np.broadcast_to(np.array([10, 11, 17], np.uint8).reshape(column), x.shape)
    for make in (list, tuple, np.array, lambda v: np.array(v).reshape(1, 3, 1, 1)):
        result = quantized_linear_average_pooling(
            x,
            make([1.0, 2.0, 3.0]),
            np.asarray(make([10, 5, 0])).astype(np.uint8),
            output_scale=make([1, 3, 4]),
            output_zero_point=[0, 1, 2],
            window_size=1,
            device=engine,
        )
        assert_same(result, expected)


@pytest.mark.parametrize(
    "zero_point", [3, np.uint8(3), np.array(3, np.uint8), [3], [3, 3], np.uint8([3, 3]), np.uint8([[[[3]], [[3]]]])]
)
def test_zero_points_typed_and_not(zero_point: Any) -> None:
    x = np.full((1, 2, 1, 1), 10, np.uint8)
    np.testing.assert_array_equal(pool(x, input_zero_point=zero_point), np.full(x.shape, 7))
    np.testing.assert_array_equal(pool(x, output_zero_point=zero_point), np.full(x.shape, 13))


@pytest.mark.parametrize("zero_point", [np.int8(3), np.int64(3), np.uint8([3]).astype(np.int16), np.array([3])])
def test_a_typed_zero_point_has_the_tensors_type(zero_point: Any) -> None:
    refused(
        "(A9)", lambda: pool(image(1, 1, 2, 2), input_zero_point=zero_point), "input_zero_point", "uint8, the type of"
    )
    refused(
        "(A9)",
        lambda: pool(image(1, 1, 2, 2), output_zero_point=zero_point, output_dtype=np.uint8),
        "output_zero_point",
        "uint8, the type of",
    )


@pytest.mark.parametrize(
    ("dtype", "zero_point"),
    [(np.uint8, -1), (np.uint8, 256), (np.int8, 128), (np.int8, -129), (np.uint8, [0, 256]), (np.int8, 2**62)],
)
def test_a_zero_point_fits_its_type(dtype: Any, zero_point: Any) -> None:
    x, limits = np.ones((1, 2, 2, 2), dtype), np.iinfo(dtype)
    for name in ("input_zero_point", "output_zero_point"):
        refused("(A9)", lambda: pool(x, **{name: zero_point}), name, f"{limits.min} to {limits.max}")  # noqa: B023


@pytest.mark.parametrize("zero_point", [2**70, -(2**70), [1.5], 1.0, "3", [None], 1j, [True]])
def test_a_zero_point_is_an_integer(zero_point: Any) -> None:
    with pytest.raises(DMLError, match="input_zero_point"):
        pool(image(1, 1, 2, 2), input_zero_point=zero_point)
    with pytest.raises(DMLError, match="output_zero_point"):
        pool(image(1, 1, 2, 2), output_zero_point=zero_point)


@pytest.mark.parametrize(
    "value", [[1], [1, 1, 1], [], [[1, 1]], np.ones((2, 1)), np.ones((1, 2, 1)), np.ones((2, 1, 1, 1))]
)
def test_one_value_or_one_for_each_channel(value: Any) -> None:
    x = image(1, 2, 2, 2)
    if np.shape(value) in ((1,), (1, 2)) and np.size(value) == 1:
        pool(x, value)
        return
    for name in ("input_scale", "output_scale"):
        call = {"input_scale": value} if name == "input_scale" else {"output_scale": value}
        refused("(A9)", lambda: pool(x, **call), name, f"shape {np.shape(value)}", "2 of them")  # noqa: B023


@pytest.mark.parametrize("scale", ["1", None, 1j, [None], True, [True], object()])
def test_a_scale_is_a_number(scale: Any) -> None:
    with pytest.raises(DMLError, match="input_scale") as raised:
        pool(image(1, 1, 2, 2), scale)
    assert isinstance(raised.value, TypeError)


@pytest.mark.parametrize("scale", [[[1], [1, 2]], 10**5000], ids=["ragged", "huge"])
def test_a_scale_that_numpy_cannot_read(scale: Any) -> None:
    with pytest.raises(DMLError, match="input_scale"):
        pool(image(1, 1, 2, 2), scale)


@engine
@pytest.mark.parametrize("scale", [0, 0.0, -1, np.nan, np.inf, -np.inf, 1e-50, 1e39, [1, 0], [np.nan, 1]])
@pytest.mark.parametrize("name", ["input_scale", "output_scale"])
def test_scales_that_are_none_are_refused_and_nothing_written(engine: str, scale: Any, name: str) -> None:
    out = np.full((1, 2, 2, 2), 0xA5, np.uint8)
    refused("(V1)", lambda: pool(image(1, 2, 2, 2), **{name: scale}, out=out, device=engine), "finite scale")
    assert (out == 0xA5).all()


def test_the_output_type_is_outs_then_the_zero_points_then_xs() -> None:
    x = image(1, 1, 2, 2)
    assert pool(x).dtype == np.uint8
    assert pool(x, output_zero_point=3).dtype == np.uint8
    assert pool(x, output_zero_point=np.int8(3)).dtype == np.int8
    assert pool(x, output_zero_point=np.int8([3])).dtype == np.int8
    assert pool(x, out=np.zeros(x.shape, np.int8)).dtype == np.int8
    assert pool(x, output_dtype=np.int8).dtype == np.int8
    assert pool(x, output_dtype="int8", output_zero_point=-3).dtype == np.int8
    refused("(A9)", lambda: pool(x, output_dtype=np.int8, output_zero_point=np.uint8(3)))
    refused("(A9)", lambda: pool(x, out=np.zeros(x.shape, np.int8), output_zero_point=np.uint8(3)))
    refused("(A4)", lambda: pool(x, output_dtype=np.uint8, out=np.zeros(x.shape, np.int8)))


@pytest.mark.parametrize("dtype", ["nope", 5, object(), {}, [("a", "i1")], "int32", np.float32, ">i2", "O"])
def test_other_output_types_are_refused(dtype: Any) -> None:
    refused(
        "(S3)",
        lambda: pool(image(1, 1, 2, 2), output_dtype=dtype),
        "int8 or uint8",
    )


@pytest.mark.parametrize("dtype", ["f4,(", "i4,,", "3i1"])
def test_output_types_that_numpy_stumbles_over(dtype: str) -> None:
    refused("(S3)", lambda: pool(image(1, 1, 2, 2), output_dtype=dtype))


@engine
def test_output_sizes_rounded_up(engine: str) -> None:
    x = np.array([10, 20, 30, 40, 50], np.uint8).reshape(1, 1, 1, 5)
    options: dict[str, Any] = {"window_size": (1, 2), "strides": (1, 2), "device": engine}
    np.testing.assert_array_equal(pool(x, **options).ravel(), [15, 35])
    np.testing.assert_array_equal(pool(x, **options, output_sizes=(1, 2)).ravel(), [15, 35])
    np.testing.assert_array_equal(pool(x, **options, output_sizes=(1, 3)).ravel(), [15, 35, 50])
    np.testing.assert_array_equal(pool(x, **options, out=np.zeros((1, 1, 1, 3), np.uint8)).ravel(), [15, 35, 50])
    for sizes in ((1, 4), (1, 1), (2, 2), (1, 0)):
        with pytest.raises(DMLError, match=r"out\.shape|output_sizes"):
            pool(x, **options, output_sizes=sizes)
    strict = Device(engine, strict=True)
    refused("(C8)", lambda: pool(x, **{**options, "device": strict}, output_sizes=(1, 3)), "strict")


@pytest.mark.parametrize("sizes", [(1,), (1, 2, 3), (1.0, 2.0), "12"])
def test_output_sizes_are_one_for_each_dimension(sizes: Any) -> None:
    refused("(A10)", lambda: pool(image(1, 1, 2, 3), output_sizes=sizes), "output_sizes")


def test_negative_output_sizes() -> None:
    with pytest.raises(ValueError, match=r"\(A10\)"):
        pool(image(1, 1, 2, 3), output_sizes=(-1, 3))


def test_an_out_of_other_dimensions_is_told_the_right_shape() -> None:
    refused("(A4)", lambda: pool(image(1, 1, 2, 3), out=np.zeros(6, np.uint8)), "of shape (1, 1, 2, 3)")


@engine
@pytest.mark.parametrize("one", [2, np.int64(2), np.array(2), [2, 2], (2, 2), np.array([2, 2]), [np.uint8(2), 2]])
def test_options_are_a_number_or_one_for_each_dimension(engine: str, one: Any) -> None:
    x = image(1, 1, 5, 5)
    pooled = pool(x, window_size=one, strides=one, device=engine)
    np.testing.assert_array_equal(pooled, [[[[3, 5], [13, 15]]]])
    assert pool(x, window_size=one, dilations=one, start_padding=one, end_padding=one).shape == (1, 1, 7, 7)


@pytest.mark.parametrize("name", ["window_size", "strides", "start_padding", "end_padding", "dilations"])
@pytest.mark.parametrize("value", [[1], [1, 1, 1], 1.0, "11", [1.0, 1], {}, [[1, 1]], *TRUTHS, [1, True]])
def test_other_options_are_refused(name: str, value: Any) -> None:
    refused("(A10)", lambda: pool(image(1, 1, 5, 5), **{name: value}), name, "an integer, or 2 of them")


@pytest.mark.parametrize("truth", TRUTHS)
def test_truth_values_are_no_integers(truth: Any) -> None:
    x = np.ones((1, 4), np.float32)
    for rule, call, name in (
        ("(A5)", lambda: anydml.reduce(x, anydml.ReduceFunction.SUM, axes=truth), "axes"),
        ("(A5)", lambda: anydml.reduce(x, anydml.ReduceFunction.SUM, axes=[truth]), "axes"),
        ("(A5)", lambda: anydml.gather(x, [[0]], axis=truth), "axis"),
        ("(A10)", lambda: anydml.padding(x, truth, 0), "start_padding"),
        ("(A10)", lambda: anydml.slice(x, 0, [1, truth]), "sizes"),
        ("(A10)", lambda: anydml.fill_value_constant([2, truth], 1), "shape"),
        ("(A14)", lambda: anydml.split(x, truth), "sizes"),
        ("(A14)", lambda: anydml.split(x, [truth, 3], 1), "sizes"),
    ):
        refused(rule, call, f"{name}: found ", "integer")


def test_a_tensor_of_truth_is_no_integer_either() -> None:
    truth = pytest.importorskip("torch").tensor(True)
    refused("(A5)", lambda: cumulative_summation([[1]], truth), "an integer")


def test_an_array_that_is_one_number_is_a_number() -> None:
    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(anydml.reduce(x, anydml.ReduceFunction.SUM, axes=np.array(1)), [[4], [4]])
    assert anydml.fill_value_constant(np.array(2), 1).shape == (2,)
    assert len(anydml.split(x, np.array(2))) == 2


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"window_size": 0}, "(C5)"),
        ({"strides": 0}, "(C5)"),
        ({"dilations": 0}, "(C5)"),
        ({"window_size": -1}, "(F2)"),
        ({"start_padding": -1}, "(F2)"),
        ({"end_padding": 2**32}, "(F2)"),
        ({"window_size": 6}, "(C7)"),
        ({"window_size": 2, "dilations": 5}, "(C7)"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], rule: str) -> None:
    for more in ({}, {"output_sizes": (5, 5)}):
        out = np.full((1, 1, 5, 5), 0xA5, np.uint8)
        with pytest.raises(DMLError, match=rf"\({rule[1:-1]}\)"):
            pool(image(1, 1, 5, 5), **options, **more, out=out)
        assert (out == 0xA5).all()


@pytest.mark.parametrize("shape", [(), (3,), (3, 3), (1, 3, 3), (1, 1, 1, 1, 1, 1)])
def test_an_image_has_4_or_5_dimensions(shape: tuple[int, ...]) -> None:
    with pytest.raises(DMLError, match=r"\(S2\)|\(T2\)"):
        pool(np.ones(shape, np.uint8))


@engine
def test_end_padding_does_not_follow_start_padding(engine: str) -> None:
    x = np.array([4, 8], np.uint8).reshape(1, 1, 1, 2)
    result = pool(x, window_size=(1, 2), start_padding=(0, 1), device=engine)
    np.testing.assert_array_equal(result.ravel(), [4, 6])


# Devices


@pytest.mark.parametrize("device", ["nope", "", 5, object(), ["cpu"], np.float32])
def test_no_device(device: Any) -> None:
    for call in (
        lambda: cumulative_summation([1], device=device),
        lambda: join([[1]], device=device),
        lambda: pool(image(1, 1, 1, 1), device=device),
    ):
        refused("(D1)", call, "cpu, reference, cuda, cuda:1 or xpu")


def test_a_devices_level_holds_in_functions() -> None:
    device = Device("reference", FeatureLevel.LEVEL_3_0)
    refused("(S1)", lambda: cumulative_product(np.ones((1, 1, 1, 1), np.float32), device=device), "3.1 or higher")
    refused("(S2)", lambda: join([np.ones((2, 2), np.float32)], device=device), "4 or 5")


@engine
def test_results_do_not_alias_each_other(engine: str) -> None:
    x = np.ones(4, np.int32)
    first = cumulative_summation(x, device=engine)
    second = cumulative_summation(first, device=engine)
    np.testing.assert_array_equal(first, [1, 2, 3, 4])
    np.testing.assert_array_equal(second, [1, 3, 6, 10])


def test_the_functions_are_public() -> None:
    for function in (cumulative_summation, cumulative_product, join, quantized_linear_average_pooling):
        assert getattr(anydml, function.__name__) is function
        assert function.__name__ in anydml.__all__


# PyTorch


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@engine
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64", "uint32", "uint64"])
def test_torch_in_torch_out(torch: Any, engine: str, dtype: str) -> None:
    x = torch.tensor([[1, 2, 3], [4, 5, 6]]).to(getattr(torch, dtype))
    result = cumulative_summation(x, 0, device=engine)
    assert isinstance(result, torch.Tensor)
    assert result.dtype == x.dtype
    assert result.tolist() == [[1, 2, 3], [5, 7, 9]]
    joined = join([x, x.numpy()], device=engine)
    assert isinstance(joined, torch.Tensor)
    assert joined.shape == (4, 3)


@engine
def test_torch_out(torch: Any, engine: str) -> None:
    x, memory = torch.tensor([1, 2, 3]), torch.zeros(6, dtype=torch.int64)
    out = memory[::2]
    assert cumulative_summation(x, out=out, device=engine) is out
    assert memory.tolist() == [1, 0, 3, 0, 6, 0]
    assert cumulative_summation(x, out=x, device=engine) is x
    assert x.tolist() == [1, 3, 6]
    target = np.zeros(3, np.int64)
    assert cumulative_summation(x, out=target, device=engine) is target


@engine
def test_torch_pooling(torch: Any, engine: str) -> None:
    x = torch.full((1, 2, 2, 2), 8, dtype=torch.uint8)
    options = {"window_size": 2, "device": engine}
    result = pool(x, torch.tensor([1.0, 2.0]), torch.tensor(4, dtype=torch.uint8), **options, output_dtype=torch.int8)
    assert isinstance(result, torch.Tensor)
    assert (result.dtype, result.flatten().tolist()) == (torch.int8, [4, 8])
    typed = pool(x, output_zero_point=torch.tensor([1, 2], dtype=torch.int8), **options)
    assert (typed.dtype, typed.flatten().tolist()) == (torch.int8, [9, 10])


def test_torch_without_a_copy(torch: Any) -> None:
    device, spy = spying()
    x, out = torch.zeros(4, 6)[:, ::2], torch.zeros(4, 3)
    cumulative_summation(x, out=out, device=device)
    assert spy.inputs[0].ctypes.data == x.data_ptr()
    assert spy.outputs[0].ctypes.data == out.data_ptr()


def test_torch_refusals(torch: Any) -> None:
    refused("(A1)", lambda: cumulative_summation(torch.ones(3, requires_grad=True)), "detach()")
    refused("(A1)", lambda: cumulative_summation(torch.ones(3, device="meta")), "meta")
    refused("(A1)", lambda: cumulative_summation(torch.ones(3), out=torch.ones(3, requires_grad=True)), "out: ")
    # Whose memory holds the opposite of what is read.
    refused("(A1)", lambda: cumulative_summation((torch.ones(3) * 1j).conj().imag), "resolve_neg()")
    refused("(S3)", lambda: cumulative_summation(torch.ones(3, dtype=torch.float64)), "float64")
    refused("(A7)", lambda: cumulative_summation(torch.ones(3), out=torch.zeros(1).expand(3)))


def test_torch_bfloat16_is_named(torch: Any) -> None:
    x = torch.ones(3, dtype=torch.bfloat16)
    for call in (lambda: cumulative_summation(x), lambda: join([x]), lambda: anydml.relu(x)):
        refused("(A1)", call, "torch.bfloat16", "Convert it with .float() or .half()")
    np.testing.assert_array_equal(cumulative_summation(x.half()), [1, 2, 3])
    refused("(A1)", lambda: anydml.relu(torch.ones(3), out=x), "out: found Tensor of torch.bfloat16")
    # Of a tensor that is refused for another reason the type is no matter.
    assert "half" not in str(refused("(A1)", lambda: cumulative_summation(torch.ones(3, device="meta")), "meta"))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_floats_of_ml_dtypes_come_with_a_remedy(name: str) -> None:
    x = np.ones(3, getattr(pytest.importorskip("ml_dtypes"), name))
    for call in (lambda: cumulative_summation(x), lambda: anydml.relu(x)):
        refused("(S3)", call, name, "Convert it to float32, as .astype(np.float32) does")


@pytest.mark.parametrize("dtype", ["UINT8", "uint8", np.uint8, anydml.TensorDataType.UINT8])
def test_a_data_type_may_be_its_name(dtype: Any) -> None:
    assert anydml.cast([1.0, 2.0], dtype).dtype == np.uint8
    assert anydml.fill_value_constant(2, 1, dtype).dtype == np.uint8
    assert pool(image(1, 1, 2, 2), output_dtype=dtype).dtype == np.uint8


@pytest.mark.parametrize("dtype", ["UNKNOWN", "UINT4", "Uint8", "bfloat16", ""])
def test_other_names_are_no_data_types(dtype: str) -> None:
    refused("(S3)", lambda: anydml.cast([1.0, 2.0], dtype), "dtype: found ", "a data type, such as np.float32")


@pytest.mark.parametrize("flag", [2, "yes", None, np.zeros(2), 0.5])
@pytest.mark.parametrize("name", ["exclusive", "reverse"])
def test_a_flag_is_true_or_false(name: str, flag: Any) -> None:
    with pytest.raises(DMLError, match=rf"{name}: .*\(A11\)"):
        anydml.cumulative_summation(np.ones(3, np.float32), **{name: flag})


def test_a_number_too_large_for_float32_is_named() -> None:
    with pytest.raises(DMLError, match=r"1e\+300 is too large for float32"):
        anydml.cumulative_summation([1.0, 1e300])


@pytest.mark.parametrize("x", [[2**63, 1], [-1, 2**63], [[1, 2], [-3, 2**64 - 1]]])
def test_integers_that_numpy_would_round_are_refused(x: list[Any]) -> None:
    with pytest.raises(DMLError, match=r"integers that no data type holds together.*\(A1\)"):
        anydml.cumulative_summation(x)


@pytest.mark.parametrize("call", [lambda x: anydml.cumulative_summation(x), lambda x: anydml.join([x, x])])
def test_no_room_for_a_result_the_second_time(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call like the one before takes a shorter way, which says the same."""
    x = np.ones(3, np.float32)
    call(x)

    def full(*arguments: Any) -> Any:
        raise MemoryError("Unable to allocate 12 bytes")

    monkeypatch.setattr("anydml.core.memory.HostMemory.empty", full)
    with pytest.raises(DMLError) as raised:
        call(x)
    assert raised.value.violations[0].rule == "(A4)"
    assert isinstance(raised.value, MemoryError)


class Odd:
    """An object whose words mean something else."""

    shape = 5
    dtype = "odd"


@pytest.mark.parametrize("odd", [np.float32, np, Odd(), type, ...], ids=["class", "module", "object", "type", "..."])
def test_anything_odd_is_a_named_error(odd: Any) -> None:
    """Classes have NumPy's words for arrays, too."""
    x = np.ones((1, 1, 2, 2), np.float32)
    right = {"output_scale": 1.0, "window_size": 1}
    calls: list[Callable[[], Any]] = [
        lambda: anydml.cumulative_summation(odd),
        lambda: anydml.cumulative_summation(x, axis=odd),
        lambda: anydml.cumulative_summation(x, exclusive=odd),
        lambda: anydml.cumulative_summation(x, out=odd),
        lambda: anydml.cumulative_summation(x, device=odd),
        lambda: anydml.join(odd),
        lambda: anydml.join([x, odd]),
        lambda: anydml.quantized_linear_average_pooling(x.astype(np.uint8), odd, **right),
        lambda: anydml.quantized_linear_average_pooling(x.astype(np.uint8), 1.0, **{**right, "window_size": odd}),
        lambda: anydml.Device(odd),
        lambda: anydml.Device(feature_level=odd),
        lambda: anydml.Device(strict=odd),
        lambda: anydml.Device().create_operator(odd),
        lambda: anydml.Device().compile_operator(odd),
        lambda: anydml.Device().check_feature_support(anydml.Feature.FEATURE_LEVELS, odd),
        lambda: anydml.validate(odd, strict=odd),
    ]
    for call in calls:
        with pytest.raises(DMLError):
            call()
    tensor = anydml.DML_BUFFER_TENSOR_DESC(DataType=odd, Sizes=odd, Strides=odd)
    desc = anydml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(
        InputTensor=tensor, OutputTensor=odd, Axis=odd, AxisDirection=odd
    )
    assert {violation.rule for violation in anydml.validate(desc)} >= {"(F1)", "(F2)", "(F4)", "(T1)", "(T2)"}


def test_remedies_that_newcomers_need() -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(DMLError, match=r"Convert it to float32, as \.astype\(np\.float32\) does"):
        anydml.join([x, x.astype(np.int32)])
    with pytest.raises(DMLError, match=r"x\[np\.newaxis, np\.newaxis\] adds them"):
        anydml.quantized_linear_average_pooling(np.ones((2, 3), np.uint8), 1.0, output_scale=1.0, window_size=())
    with pytest.raises(DMLError, match=r"Write FeatureLevel\.LEVEL_2_1"):
        anydml.Device(feature_level="2.1")  # type: ignore[arg-type]
    with pytest.raises(DMLError, match="cuda is a GPU of NVIDIA or AMD"):
        anydml.Device("gpu")
    with pytest.raises(DMLError, match="found str 'yes', expected True or False"):
        anydml.Device(debug="yes")  # type: ignore[arg-type]
