"""Signals while native code runs: what a handler raises ends the call, and later calls work."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import anydml

pytestmark = [
    pytest.mark.native,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the system has no interval timers"),
]


class Interruption(Exception):
    """What the handler raises."""


@pytest.fixture
def interrupt_soon() -> Iterator[Callable[[], None]]:
    """Has a signal sent that comes while a call of a tenth of a second runs."""

    def interrupt(*_: object) -> None:
        raise Interruption

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.01) and None
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


ORDER = np.random.default_rng(0).permutation(2**22)

CALLS: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "pointwise": lambda x, out: anydml.exp(x, out=out),
    "rows": lambda x, out: anydml.cumulative_summation(x.reshape(-1, 2**10), out=out.reshape(-1, 2**10)),
    "a row": lambda x, out: anydml.cumulative_product(x, out=out),
    "columns": lambda x, out: anydml.cumulative_summation(x.reshape(2**12, -1), 0, out=out.reshape(2**12, -1)),
    "movement": lambda x, out: anydml.slice(x.reshape(2**14, 2**14).T, 0, 2**14, out=out.reshape(2**14, 2**14)),
    "gather": lambda x, out: anydml.gather(x.reshape(-1, 64), ORDER, out=out.reshape(-1, 64)),
    "scatter": lambda x, out: anydml.scatter_nd(
        x.reshape(-1, 64), ORDER[:, None], x.reshape(-1, 64), out=out.reshape(-1, 64)
    ),
    "cast": lambda x, out: anydml.cast(x.view(np.int32), np.float32, out=out),
    "join": lambda x, out: anydml.join([x[::2], x[1::2]], out=out),
    "convolution": lambda x, out: anydml.convolution(
        x[: 2**25].reshape(1, 512, 256, 256), np.ones((512, 512, 1, 3), np.float32), start_padding=(0, 1),
        end_padding=(0, 1), out=out[: 2**25].reshape(1, 512, 256, 256),
    ),
    "recurrent": lambda x, out: anydml.lstm(
        x[: 2**22].reshape(1, 2**12, 8, 128),
        np.full((1, 1, 2048, 128), 0.01, np.float32), np.full((1, 1, 2048, 512), 0.01, np.float32),
        out=[out[: 2**24].reshape(2**12, 1, 8, 512), *out[2**24 : 2**24 + 2**13].reshape(2, 1, 1, 8, 512)],
    ),
}  # fmt: skip
WRITTEN = {"convolution": 2**25, "recurrent": 2**24}
"""Of what a call writes less than all."""


@pytest.fixture(scope="module")
def large() -> tuple[np.ndarray, np.ndarray]:
    """What is read and what is written, a gibibyte each, which the system takes a second to give."""
    return np.full(2**28, 1.5, np.float32), np.empty(2**28, np.float32)


@pytest.mark.parametrize("name", CALLS)
def test_a_signal_ends_a_call(
    name: str, large: tuple[np.ndarray, np.ndarray], interrupt_soon: Callable[[], None]
) -> None:
    """Before all is written: that the exception comes after the work is not what is meant."""
    x, out = large
    seen = out[: WRITTEN.get(name, out.size) : 509]  # threads write far more than that at a time
    CALLS[name](x, out)  # the second call begins with its kernel
    seen.fill(-7)

    def interrupted() -> None:
        interrupt_soon()
        CALLS[name](x, out)

    with pytest.raises(Interruption):
        interrupted()
    # What is copied from scratch memory that was not written either is 0.
    assert (seen <= 0).any()
    np.testing.assert_array_equal(anydml.cumulative_summation(np.arange(5)), [0, 1, 3, 6, 10])
