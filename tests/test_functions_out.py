"""Functions: where they write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anydml
from anydml import cumulative_summation, join
from function_calls import Interface, engine, image, pool, refused, scan


@engine
@scan
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[::-1], lambda x: x.T, lambda x: x[::2, 1:]])
def test_in_place(engine: str, scan: Any, view: Any) -> None:
    numpy = np.cumsum if scan is cumulative_summation else np.cumprod
    for axis in (0, 1):
        memory = np.arange(1, 17, dtype=np.int32).reshape(4, 4)
        x = view(memory)
        expected = memory.copy()
        view(expected)[...] = numpy(x, axis)
        assert scan(x, axis, out=x, device=engine) is x
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
