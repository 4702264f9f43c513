"""CUDA graphs of small operators: an operator's calls of PyTorch, captured once and replayed on buffers of their own.

Each call of PyTorch takes the host 5 to 10 microseconds, as does a copy into or out of a buffer, and as does a replay,
however many calls were captured. For tensors that are copied in no time, many calls are therefore better replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ...core.strided_layout import DATA_TYPES, Layout, overlaps_itself
from .tensors import TYPES, stream_key_of

Run: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], None]
"""Takes inputs and outputs, None for what is left out."""

_MOST = 1 << 20
"""Bytes of all tensors that are copied in no time."""

_BEFORE = 4
"""Calls of an operator before it is captured: most are called once, or a few times."""

CAPTURING = Lock()
"""Held while copies and a replay, which belong together, are launched, and while calls are captured."""


class _Captured(NamedTuple):
    """A graph, and the buffers that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    inputs: list[Any]
    outputs: list[Any]


def replayed(
    run: Run, device: torch.device, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run | None:
    """What runs an operator as `run` does, and by a graph from its sixth call on; None where that would not pay.

    Args:
        run: calls PyTorch.
        device: where.
        inputs: how its tensors lie.
        outputs: likewise.
    """
    layouts = [layout for layout in (*inputs, *outputs) if layout is not None]
    if device.type != "cuda" or sum(layout.bounds()[1] for layout in layouts) > _MOST:
        return None
    # What is broadcast has no buffer that could be written.
    if any(overlaps_itself(layout.sizes, layout.strides, layout.dtype.itemsize) for layout in layouts):
        return None
    return _Replayed(run, device, inputs, outputs)


class _Replayed:
    def __init__(
        self, run: Run, device: torch.device, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
    ) -> None:
        self._run = run
        self._device = device
        self._inputs = inputs
        self._outputs = outputs
        self._left = _BEFORE
        self._pays: bool | None = None
        """None until the calls were counted; False, too, where they wait for the device."""
        self._by_stream: dict[int, _Captured] = {}

    def __call__(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        if self._left or self._pays is False:
            self._left = max(self._left - 1, 0)
            self._run(inputs, outputs)
            return
        stream = stream_key_of(self._device)
        captured = None if stream is None else self._by_stream.get(stream)
        if captured is None:
            self._run_and_capture(stream, inputs, outputs)
            return
        with CAPTURING, torch.inference_mode():
            for own, given in zip(captured.inputs, inputs, strict=True):
                if own is not None:
                    own.copy_(given)
            captured.graph.replay()
            for own, given in zip(captured.outputs, outputs, strict=True):
                if own is not None:
                    given.copy_(own)

    def _run_and_capture(self, stream: int | None, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        watched = Watched()
        with watched:
            self._run(inputs, outputs)
        copied = sum(each is not None for each in (*inputs, *outputs))
        self._pays = watched.calls > copied + 1 and not watched.meets_host
        if self._pays and stream is not None:
            with CAPTURING, torch.inference_mode():
                self._by_stream[stream] = self._capture(_pool_of(self._device, stream))

    def _capture(self, pool: Any) -> _Captured:
        """The calls as a graph, whose intermediate tensors lie in `pool`."""
        sides = [[self._buffer(layout) for layout in side] for side in (self._inputs, self._outputs)]
        aside, current = _aside(self._device), torch.cuda.current_stream(self._device)
        aside.wait_stream(current)
        with torch.cuda.stream(aside):
            # What libraries allocate for a stream when they first run on it must not be a graph's.
            self._run(*sides)
            graph = graph_of(lambda: self._run(*sides), pool)
        current.wait_stream(aside)
        return _Captured(graph, *sides)

    def _buffer(self, layout: Layout | None) -> Any:
        if layout is None:
            return None
        steps = [step // layout.dtype.itemsize for step in layout.strides]
        buffer = torch.empty_strided(layout.sizes, steps, dtype=TYPES[DATA_TYPES[layout.dtype]], device=self._device)
        return buffer.zero_()


_WAITING = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default)
"""Calls that wait for the device."""


class Watched(TorchDispatchMode):  # type: ignore[misc]
    """The calls of PyTorch that are made within."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.meets_host = False
        """Whether one of them reads or gives a tensor in the CPU's memory, which no graph may wait for."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        found = func(*args, **(kwargs or {}))
        met = tree_leaves((args, kwargs, found))
        self.meets_host |= func in _WAITING
        self.meets_host |= any(isinstance(each, torch.Tensor) and each.device.type == "cpu" for each in met)
        return found


@cache
def _aside(device: torch.device) -> torch.cuda.Stream:
    """A stream to capture on, which the default one can't be."""
    return torch.cuda.Stream(device)


@cache
def _pool_of(device: torch.device, stream: int) -> Any:
    """The memory of what is computed within graphs of a stream, which run one after the other.

    It lasts as long as a graph that has it: a small one, which is kept.
    """
    pool = torch.cuda.graph_pool_handle()
    element = torch.zeros(1, device=device)
    with torch.cuda.stream(_aside(device)):
        _KEPT.append((element, graph_of(element.zero_, pool)))
    return pool


_KEPT: list[Any] = []


def graph_of(calls: Callable[[], object], pool: Any) -> torch.cuda.CUDAGraph:
    """The work of calls as a graph, captured on the current stream; what they allocate lies in `pool`."""
    graph = torch.cuda.CUDAGraph()
    graph.capture_begin(pool, capture_error_mode="thread_local")
    try:
        calls()
    finally:
        graph.capture_end()
    return graph
