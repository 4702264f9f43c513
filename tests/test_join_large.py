"""JOIN where only large outputs reach: parts on several threads, streamed blocks, shuffles and transposed squares."""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np
import pytest

from anydml import join
from exact import check_join
from harness import printed_everywhere

pytestmark = [pytest.mark.native, pytest.mark.slow]

STREAMED = (16 << 20) + 4096
"""Bytes from which an output is streamed, and some."""
GUARD = 64


def pieces_of(runs: tuple[int, ...], size: int, seed: int = 0) -> list[np.ndarray]:
    """Bytes in rows, whose join has at least `size` of them."""
    random = np.random.default_rng(seed)
    rows = -(-size // sum(runs))
    return [random.integers(0, 256, (rows, run), np.uint8) for run in runs]


def assert_joined(pieces: list[np.ndarray], axis: int, offset: int = 0) -> None:
    """Into memory at an offset from alignment, between guards, from memory that ends where the pieces end."""
    shape = list(pieces[0].shape)
    shape[axis] = sum(piece.shape[axis] for piece in pieces)
    item = pieces[0].itemsize
    size = int(np.prod(shape)) * item
    for poison in (0xA5, 0x5A):
        memory = np.full(2 * GUARD + size, poison, np.uint8)
        begin = (offset - memory.ctypes.data) % GUARD
        out = np.ndarray(shape, pieces[0].dtype, memory, begin)
        join(pieces, axis, out=out)
        check_join(pieces, out, axis)
        assert (memory[:begin] == poison).all()
        assert (memory[begin + size :] == poison).all()


def at_the_end_of_a_page(array: np.ndarray) -> np.ndarray:
    """A copy behind which there is no memory to be read, where the system lets that be arranged."""
    size = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, size + mmap.PAGESIZE), np.uint8)
    if sys.platform == "linux":
        ctypes.CDLL(None).mprotect(ctypes.c_void_p(memory.ctypes.data + size), mmap.PAGESIZE, 0)
    copy = memory[size - array.nbytes : size].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


RUNS: list[tuple[int, ...]] = [
    (1, 1),
    (1, 1, 1),
    (1, 2, 3, 4),
    (3, 5),
    (12, 20),
    (7, 1, 64, 9),
    (31, 33),
    (65, 200),
    (1,) * 19,
    (2,) * 11,
    (4,) * 9,
    (8,) * 5,
    (1,) * 300,
    (3,) * 9,
    (2047, 2049),
    (4096, 10007),
    (100000, 1),
    (1,) * 9,
    (1,) * 15,
    (2,) * 5,
    (2,) * 33,
    (4,) * 3,
    (3,) * 70,
    (7,) * 20,
    (96,) * 48,
    (65, 3, 200) * 21,
    tuple(range(1, 31)),
    (5, 31, 2, 64, 17, 1, 48, 3, 16),
    (255, 257),
    (300,) * 20,
    (63, 1000, 1, 64),
    (57, 1, 1, 1, 1, 1, 1, 1),
    (15, 1),
    (1000,) * 20,
    (9,) * 500,
    (2050, 1, 4000) * 9,
    (65,) * 64,
    ((31,) * 33 + (96,)) * 4,
]


@pytest.mark.parametrize("runs", RUNS, ids=lambda runs: f"{len(runs)}x{runs[0]}")
@pytest.mark.parametrize("size", [100, 5000, 700_001])
def test_runs_of_every_size(runs: tuple[int, ...], size: int) -> None:
    for offset in (0, 1):
        assert_joined(pieces_of(runs, size), 1, offset)


@pytest.mark.parametrize("runs", RUNS, ids=lambda runs: f"{len(runs)}x{runs[0]}")
def test_streamed_outputs(runs: tuple[int, ...]) -> None:
    assert_joined(pieces_of(runs, STREAMED), 1, offset=1)


@pytest.mark.parametrize("runs", RUNS, ids=lambda runs: f"{len(runs)}x{runs[0]}")
@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 31, 33, 400])
def test_nothing_is_read_beyond_the_inputs(runs: tuple[int, ...], rows: int) -> None:
    pieces = [at_the_end_of_a_page(piece[:rows]) for piece in pieces_of(runs, rows * sum(runs))]
    assert_joined(pieces, 1)


def test_nothing_is_read_beyond_inputs_that_are_streamed() -> None:
    for runs in ((1, 1, 1), (1,) * 9, (7,) * 20, (12, 20), (300,) * 20, (96,) * 48, (65, 3, 200) * 21, *RUNS[-6:]):
        assert_joined([at_the_end_of_a_page(piece) for piece in pieces_of(runs, STREAMED)], 1, offset=3)


@pytest.mark.parametrize("offset", [0, 2, 16, 63])
def test_streamed_elements_across_lines(offset: int) -> None:
    values = np.arange(STREAMED // 8, dtype=np.uint64).reshape(-1, 4)
    assert_joined([values[:, :1], values[:, 1:], values[:, ::-2]], 1, offset)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_pieces_that_lie_otherwise_than_the_output(axis: int) -> None:
    values = np.random.default_rng(1).integers(0, 99, (20, 30, 40, 50), np.int16)
    transposed = np.ascontiguousarray(values.T).T
    backward = values[::-1, :, ::-1]
    broadcast = np.broadcast_to(values[:1, :, :1], values.shape)
    pieces = [values, transposed, backward, broadcast]
    assert_joined(pieces, axis)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_outputs_with_gaps(axis: int) -> None:
    values = np.random.default_rng(2).integers(0, 99, (3, 30, 40, 50), np.int32)
    pieces = [values[0], values[1, ::-1], values[2]]
    shape = list(pieces[0].shape)
    shape[axis] *= 3
    for lay in (lambda m: m[::2, ::2, ::2], lambda m: m[:, :, : m.shape[2] // 2], lambda m: m[::-1].swapaxes(1, 2)):
        sizes = [2 * max(shape)] * 3
        memory = np.full(sizes, -1, np.int32)
        out = lay(memory)[: shape[0], : shape[1], : shape[2]]
        out[...] = -2
        untouched = memory == -1
        join(pieces, axis, out=out)
        check_join(pieces, out, axis)
        assert (memory[untouched] == -1).all()
        assert untouched.sum() + out.size == memory.size


SCRIPT = """
import hashlib, numpy as np, test_join_large as t
from anydml import join
digest = hashlib.sha256()
for runs in t.RUNS:
    digest.update(join(t.pieces_of(runs, 2_000_003), 1).tobytes())
print(digest.hexdigest())
"""


def test_the_same_bytes_on_every_instruction_set_and_number_of_threads() -> None:
    assert len(printed_everywhere(SCRIPT)) == 1
