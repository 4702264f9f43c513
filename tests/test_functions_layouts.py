"""Functions: axes, flags, strides, empty arrays and many dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anydml import DMLError, cumulative_product, cumulative_summation, join
from function_calls import TRUTHS, engine, image, pool, refused, scan
from harness import assert_same

# Axes


@engine
@scan
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3, np.int64(1), np.uint8(2), np.array(1)])
def test_axes(engine: str, scan: Any, axis: Any) -> None:
    x = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
    numpy = np.cumsum if scan is cumulative_summation else np.cumprod
    assert_same(scan(x, axis, device=engine), numpy(x, int(axis), dtype=np.int32))


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


@scan
@pytest.mark.parametrize("flag", [True, 1, np.True_])
def test_flags(scan: Any, flag: Any) -> None:
    expected = scan([2, 3, 4], exclusive=True, reverse=True)
    np.testing.assert_array_equal(scan([2, 3, 4], exclusive=flag, reverse=flag), expected)


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
@scan
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
def test_strides_of_all_sorts(engine: str, scan: Any, axis: int, view: Any) -> None:
    x = view(np.arange(1, 61, dtype=np.int64).reshape(3, 4, 5))
    numpy = np.cumsum if scan is cumulative_summation else np.cumprod
    assert_same(scan(x, axis, device=engine), numpy(x, axis))
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
@scan
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
@pytest.mark.parametrize("exclusive", [False, True])
def test_scans_of_empty_arrays(engine: str, scan: Any, shape: tuple[int, ...], exclusive: bool) -> None:
    x = np.ones(shape, np.float32)
    for axis in range(len(shape)):
        result = scan(x, axis, exclusive=exclusive, device=engine)
        assert (result.shape, result.dtype) == (shape, np.float32)
        assert scan(x, axis, out=x, device=engine) is x


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
