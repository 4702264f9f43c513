"""CUDA graphs of whole graphs: the kernels of all operators, captured once and replayed.

A replay takes the host some microseconds, where each kernel's launch takes as many, and each call of PyTorch twice as
many. What is captured has addresses in it: those of the graph's own memory, and of what a dispatch brings. Tensors that
come at the same address every time are read and written there; others are copied into and out of buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import torch

from ...core.strided_layout import Layout, overlaps_itself
from .replay import CAPTURING, Watched, graph_of
from .tensors import stream_key_of

Work = Callable[[Sequence[Any], Sequence[Any]], None]
"""Takes the arrays of a dispatch, inputs and outputs."""

BEFORE = 2
"""Dispatches before one is captured, so that what runs once or twice is not; from what differs between them it is known
what is brought elsewhere every time."""

LARGEST = 256 << 20
"""Bytes of all buffers."""

FEWEST, PER_BUFFER = 2, 2
"""Kernels that are worth a replay, and more of them for each copy."""

TRIALS = 8
"""Captures, after which addresses that go on changing are no longer followed."""

_FREE = "not replayed yet: it is captured when it has run a few times"
_STREAMS: dict[tuple[torch.device, int], torch.cuda.Stream] = {}
_TAKEN: set[int] = set()
_STREAMS_LOCK = Lock()


class _Captured(NamedTuple):
    graph: torch.cuda.CUDAGraph
    places: list[int | None]
    """The address of each input and output that is where it was; None for what has a buffer, or is not there."""
    buffers: list[Any]
    """Of the others."""


class Recording:
    """Work that is captured when it has run a few times, on one stream, and not by two threads at once.

    Args:
        memory: of the device.
        layouts: of inputs and outputs, None for what is not there.
        inputs: how many of them are inputs.
        kernels: how many there are.
    """

    def __init__(self, memory: Any, layouts: Sequence[Layout | None], inputs: int, kernels: int) -> None:
        self._memory = memory
        self._layouts = layouts
        self._inputs = inputs
        self._kernels = kernels
        self._last: list[int | None] | None = None
        self._moving: set[int] = set()
        """The numbers of tensors that were elsewhere than the time before."""
        self._runs = 0
        self._trials = 0
        self._captured: _Captured | None = None
        self._pool: Any = None
        self.state = _FREE if kernels >= FEWEST else "not replayed, as there is one kernel"

    def __call__(self, work: Work, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Runs the work, the same at every call."""
        arrays = [*inputs, *outputs]
        pairs = zip(arrays, self._layouts, strict=True)
        places = [None if each is None or layout is None else each.address for each, layout in pairs]
        captured = self._captured
        if captured is not None and all(
            place is None or place == now for place, now in zip(captured.places, places, strict=True)
        ):
            self._replay(captured, arrays)
            return
        if self._trials >= TRIALS or self._kernels < FEWEST:
            work(inputs, outputs)
            return
        if self._last is not None:
            self._moving |= {
                i for i, (a, b) in enumerate(zip(self._last, places, strict=True)) if a != b and None not in (a, b)
            }
        self._last = places
        self._runs += 1
        if self._runs <= BEFORE:
            work(inputs, outputs)
        else:
            self._run_and_capture(work, arrays, places)

    def _replay(self, captured: _Captured, arrays: Sequence[Any]) -> None:
        with torch.cuda.device(self._memory.device), torch.inference_mode():
            self._by_way_of(captured.buffers, arrays, captured.graph.replay)

    def _by_way_of(self, buffers: Sequence[Any], arrays: Sequence[Any], work: Callable[[], None]) -> None:
        """Work on buffers in place of those arrays that have one."""
        for i, buffer in enumerate(buffers[: self._inputs]):
            if buffer is not None:
                buffer.tensor.copy_(arrays[i].tensor)
        work()
        for i, buffer in enumerate(buffers[self._inputs :], self._inputs):
            if buffer is not None:
                arrays[i].tensor.copy_(buffer.tensor)

    def _run_and_capture(self, work: Work, arrays: list[Any], places: list[int | None]) -> None:
        """Runs the work once, where the graph will run it, so that no kernel is compiled while it is captured."""
        self._trials += 1
        reason, buffers = self._reason(), [None] * len(arrays)
        if not reason:
            try:
                with torch.cuda.device(self._memory.device):
                    buffers = [self._buffer(i) if i in self._moving else None for i in range(len(arrays))]
            except (RuntimeError, MemoryError):
                reason = "there is no memory for buffers"
        used = [array if buffer is None else buffer for array, buffer in zip(arrays, buffers, strict=True)]
        given, written = used[: self._inputs], used[self._inputs :]
        with Watched() as seen, torch.cuda.device(self._memory.device), torch.inference_mode():
            self._by_way_of(buffers, arrays, lambda: work(given, written))
        if reason := reason or ("a kernel waits for the CPU's memory" if seen.meets_host else ""):
            self._trials = TRIALS
            self.state = f"not replayed, as {reason}"
            return
        try:
            with CAPTURING, torch.inference_mode():
                graph = self._capture(lambda: work(given, written))
        except (RuntimeError, MemoryError) as problem:
            self.state = f"not replayed, as the capture failed: {' '.join(str(problem).split())[:200]}"
            return
        fixed = [None if i in self._moving else place for i, place in enumerate(places)]
        self._captured = _Captured(graph, fixed, buffers)
        self._runs = BEFORE - 1
        copied = f", {len(self._moving)} tensors by way of buffers" if self._moving else ""
        self.state = f"replayed as one CUDA graph{copied}"

    def _reason(self) -> str:
        """Why it would not pay to capture it, or is not possible; empty where there is nothing."""
        layouts = [layout for i in self._moving if (layout := self._layouts[i]) is not None]
        if self._kernels < FEWEST + PER_BUFFER * len(layouts):
            return f"{len(layouts)} tensors are elsewhere every time"
        if sum(layout.bounds()[1] for layout in layouts) > LARGEST:
            return "tensors are elsewhere every time that are too large to be copied"
        if any(overlaps_itself(each.sizes, each.strides, each.dtype.itemsize) for each in layouts):
            return "a tensor is elsewhere every time that is broadcast"
        return "" if self._aside() is not None else "too many streams have graphs"

    def _aside(self) -> torch.cuda.Stream | None:
        """A stream to capture on: what libraries keep for it is used by work of one stream alone, in turn."""
        device = self._memory.device
        stream = stream_key_of(device)
        if stream is None:
            return None
        with _STREAMS_LOCK:
            found = _STREAMS.get((device, stream))
            if found is None:
                # Of another priority than those that are commonly asked for, which PyTorch hands out again and again.
                found = torch.cuda.Stream(device, priority=-1)
                if found.cuda_stream in _TAKEN:
                    return None
                _TAKEN.add(found.cuda_stream)
                _STREAMS[device, stream] = found
            return found

    def _capture(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        device = self._memory.device
        with torch.cuda.device(device):
            aside, current = self._aside(), torch.cuda.current_stream(device)
            assert aside is not None
            self._pool = self._pool or torch.cuda.graph_pool_handle()
            aside.wait_stream(current)
            with torch.cuda.stream(aside):
                # What cuBLAS allocates for a stream when it first runs on it must not be a graph's.
                small = torch.zeros((2, 2), device=device)
                torch.addmm(small[0], small, small)
                graph = graph_of(work, self._pool)
            current.wait_stream(aside)
        return graph

    def _buffer(self, number: int) -> Any:
        layout = self._layouts[number]
        assert layout is not None
        flat = self._memory.empty((layout.bounds()[1],), np.dtype(np.uint8))
        flat.tensor.zero_()
        return self._memory.view(layout, flat, 0)
