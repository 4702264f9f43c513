"""RANDOM_GENERATOR: streams may be cut anywhere, counters carry, and the new state goes on where the numbers end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml
from cases.random import block
from harness import ENGINES
from test_properties import property_test

COUNTERS = st.integers(0, 2**128 - 1) | st.sampled_from([2**32 - 2, 2**64 - 2, 2**96 - 2, 2**128 - 2])
KEYS = st.integers(0, 2**64 - 1)


def state_of(counter: int, key: int) -> np.ndarray:
    return np.array([(counter | key << 128) >> 32 * i & 0xFFFFFFFF for i in range(6)], np.uint32)


def words(state: np.ndarray) -> int:
    return sum(int(word) << 32 * i for i, word in enumerate(state))


@pytest.mark.parametrize("engine", ENGINES)
@property_test
@given(counter=COUNTERS, key=KEYS, count=st.integers(1, 200))
def test_every_block_is_that_of_its_counter(engine: str, counter: int, key: int, count: int) -> None:
    numbers, new = anydml.random_generator(state_of(counter, key), count, device=engine)
    blocks = -(-count // 4)
    expected = [word for i in range(blocks) for word in block((counter + i) % 2**128, key)]
    assert numbers.tolist() == expected[:count]
    assert words(new) == (counter + blocks) % 2**128 | key << 128


@property_test
@given(counter=COUNTERS, key=KEYS, counts=st.lists(st.integers(1, 40), min_size=1, max_size=6))
def test_a_stream_goes_on_from_its_new_state(counter: int, key: int, counts: list[int]) -> None:
    whole, end = anydml.random_generator(state_of(counter, key), 4 * sum(counts))
    state, parts = state_of(counter, key), []
    for count in counts:
        part, state = anydml.random_generator(state, (count, 4))
        parts += part.reshape(-1).tolist()
    assert parts == whole.tolist()
    assert state.tolist() == end.tolist()


def test_a_seed_is_a_key() -> None:
    seed = 0x0123456789ABCDEF
    numbers, state = anydml.random_generator(seed, 9)
    assert words(state) == 3 | seed << 128
    assert numbers.tolist() == anydml.random_generator(state_of(0, seed), 9)[0].tolist()
    assert numbers.tolist() == anydml.random_generator(np.uint64(seed), 9)[0].tolist()


@pytest.mark.parametrize("seed", [-1, 2**64, True])
def test_what_is_no_seed(seed: int) -> None:
    with pytest.raises(anydml.DMLError, match=r"a seed from 0 to 2\^64 - 1, or a state of six words \(A10\)"):
        anydml.random_generator(seed, 3)


def test_the_state_may_be_written_over() -> None:
    """Its words are read before others are written."""
    state = state_of(2**64 - 1, 5)
    numbers = np.empty(5, np.uint32)
    expected = anydml.random_generator(state, 5)
    anydml.random_generator(state.copy(), 5, out=[numbers, state])
    assert (numbers.tolist(), state.tolist()) == tuple(each.tolist() for each in expected)


def test_numbers_are_of_all_bits() -> None:
    """Means of 2^20 bits are within 5 standard deviations."""
    numbers, _ = anydml.random_generator(1, 2**20)
    ones = [np.count_nonzero(numbers >> bit & 1) for bit in range(32)]
    assert max(abs(each - 2**19) for each in ones) < 5 * 2**9
