"""Small calls on a GPU, which are replayed by CUDA graphs after a few: the same bits, other data, other memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import anydml
from anydml.backends.torch.devices import is_interpreted
from anydml.draw import EXAMPLES
from anydml.functions import function_of
from applied import arguments_of
from harness import GPU

pytestmark = pytest.mark.gpu

# Of several calls of PyTorch, whose products are in double precision.
MULTIPLY = partial(anydml.matrix_multiply_integer, device="cuda")

on_card = pytest.mark.skipif(not GPU or is_interpreted(), reason="needs a GPU: make test-gpu")


def _called(name: str, inputs: list[Any]) -> list[np.ndarray]:
    """A function's results, on tensors that lie elsewhere at every call."""
    import torch

    desc = EXAMPLES[name][0]
    operands = [None if array is None else torch.from_numpy(array.copy()).cuda() for array in inputs]
    found = getattr(anydml, function_of(name))(**arguments_of(desc, operands), device="cuda")
    return [each.cpu().numpy() for each in (found if isinstance(found, (list, tuple)) else [found])]


@on_card
@pytest.mark.parametrize("name", EXAMPLES)
def test_replays_are_the_same(name: str) -> None:
    given = EXAMPLES[name][1]
    other = [
        None if array is None else array[::-1].copy() if array.dtype.kind == "f" and array.ndim else array
        for array in given
    ]
    first, first_of_other = _called(name, given), _called(name, other)
    for _ in range(6):
        again = _called(name, given)
    again_of_other = _called(name, other)
    for wanted, found in zip((*first, *first_of_other), (*again, *again_of_other), strict=True):
        np.testing.assert_array_equal(found, wanted)


@on_card
def test_many_calls_become_one_replay() -> None:
    import torch

    x = torch.arange(12, dtype=torch.uint8, device="cuda").reshape(1, 1, 3, 4)
    for _ in range(8):
        MULTIPLY(x, x.mT)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        MULTIPLY(x, x.mT)
    assert sum(each.count for each in profile.key_averages() if each.key == "cudaGraphLaunch") == 1


@on_card
def test_calls_that_others_capture_are_not_replayed() -> None:
    import torch

    x = torch.arange(12, dtype=torch.uint8, device="cuda").reshape(1, 1, 3, 4)
    for _ in range(8):
        wanted = MULTIPLY(x, x.mT)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = MULTIPLY(x, x.mT)
    found.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(found, wanted)


@on_card
def test_threads_and_streams_have_results_of_their_own() -> None:
    from concurrent.futures import ThreadPoolExecutor

    import torch

    def work(seed: int) -> bool:
        generator = np.random.default_rng(seed)
        with torch.cuda.stream(torch.cuda.Stream() if seed % 2 else torch.cuda.default_stream()):
            for _ in range(50):
                a, b = generator.integers(256, size=(2, 1, 1, 4, 4), dtype=np.uint8)
                found = MULTIPLY(torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda())
                if not np.array_equal(found.cpu().numpy(), np.matmul(a, b, dtype=np.int32)):
                    return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(8)))
