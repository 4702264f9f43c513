"""join: what pieces it takes, and what it says of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anydml import DMLError, join
from function_calls import engine, refused
from harness import assert_same


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
